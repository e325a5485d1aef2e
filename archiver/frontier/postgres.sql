-- What PostgreSQL has in place of parts of schema.sql; frontier/postgres.py makes the tables from there.
-- An index here replaces the one of the same name. A B-tree takes no value over 2,704 bytes, and URLs may be longer, so
-- these are found by their hashes. Only for `ON CONFLICT (…) DO UPDATE` it must be md5.

CREATE FUNCTION max(DOUBLE PRECISION, DOUBLE PRECISION) RETURNS DOUBLE PRECISION LANGUAGE SQL IMMUTABLE PARALLEL SAFE
    AS 'SELECT greatest($1, $2)';
CREATE FUNCTION max(BIGINT, BIGINT) RETURNS BIGINT LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS 'SELECT greatest($1, $2)';
CREATE FUNCTION min(DOUBLE PRECISION, DOUBLE PRECISION) RETURNS DOUBLE PRECISION LANGUAGE SQL IMMUTABLE PARALLEL SAFE
    AS 'SELECT least($1, $2)';
CREATE FUNCTION min(BIGINT, BIGINT) RETURNS BIGINT LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS 'SELECT least($1, $2)';

ALTER TABLE urls ADD CONSTRAINT urls_url EXCLUDE USING hash (url WITH =);
ALTER TABLE refusals ADD CONSTRAINT refusals_url EXCLUDE USING hash (url WITH =);
CREATE UNIQUE INDEX pattern_tallies_pattern ON pattern_tallies (md5(pattern));
CREATE UNIQUE INDEX refusal_counts_rule ON refusal_counts (md5(rule), host);
CREATE UNIQUE INDEX cookies_name ON cookies (domain, md5(path), md5(name), host_only);
-- No index names hosts.waiting, which most updates change: so they need not write a row's place into each index again.
ALTER TABLE hosts ADD COLUMN has_waiting BOOLEAN GENERATED ALWAYS AS (waiting > 0) STORED;
CREATE INDEX hosts_waiting ON hosts (not_before, id) WHERE has_waiting;
CREATE INDEX urls_waiting ON urls (host, priority, id) WHERE state = 'waiting';
CREATE INDEX urls_held ON urls USING hash (note) WHERE state = 'held';
CREATE INDEX captures_payload ON captures (right(payload_digest, 8))
WHERE revisit = '' AND truncated = '' AND payload_length > 0 AND status / 100 <> 3;

ALTER TABLE urls SET (fillfactor = 85);  -- a row changes twice in its life
ALTER TABLE hosts SET (fillfactor = 50);
ALTER TABLE revisions SET (fillfactor = 10);

CREATE FUNCTION count_added_urls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE hosts SET
        waiting = hosts.waiting + delta.waiting, archived = hosts.archived + delta.archived,
        failed = hosts.failed + delta.failed, excluded = hosts.excluded + delta.excluded, held = hosts.held + delta.held
    FROM (
        SELECT host, count(*) FILTER (WHERE state = 'waiting') AS waiting,
               count(*) FILTER (WHERE state = 'archived') AS archived, count(*) FILTER (WHERE state = 'failed') AS failed,
               count(*) FILTER (WHERE state = 'excluded') AS excluded, count(*) FILTER (WHERE state = 'held') AS held
        FROM added GROUP BY host
    ) AS delta WHERE hosts.id = delta.host;
    RETURN NULL;
END $$;
CREATE TRIGGER urls_added AFTER INSERT ON urls REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_added_urls();

CREATE FUNCTION count_changed_urls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE hosts SET
        waiting = hosts.waiting + delta.waiting, archived = hosts.archived + delta.archived,
        failed = hosts.failed + delta.failed, excluded = hosts.excluded + delta.excluded, held = hosts.held + delta.held,
        visited = hosts.visited + delta.visited
    FROM (
        SELECT host, sum(sign) FILTER (WHERE state = 'waiting') AS waiting,
               sum(sign) FILTER (WHERE state = 'archived') AS archived, sum(sign) FILTER (WHERE state = 'failed') AS failed,
               sum(sign) FILTER (WHERE state = 'excluded') AS excluded, sum(sign) FILTER (WHERE state = 'held') AS held,
               sum(sign) FILTER (WHERE tries > 0 AND priority >= 0) AS visited
        FROM (
            SELECT host, state, tries, priority, 1 AS sign FROM rows_after
            UNION ALL SELECT host, state, tries, priority, -1 FROM rows_before
        ) AS both_states GROUP BY host
    ) AS sums
    CROSS JOIN LATERAL (
        SELECT coalesce(sums.waiting, 0) AS waiting, coalesce(sums.archived, 0) AS archived,
               coalesce(sums.failed, 0) AS failed, coalesce(sums.excluded, 0) AS excluded,
               coalesce(sums.held, 0) AS held, coalesce(sums.visited, 0) AS visited
    ) AS delta
    WHERE hosts.id = sums.host
      AND (delta.waiting, delta.archived, delta.failed, delta.excluded, delta.held, delta.visited) <> (0, 0, 0, 0, 0, 0);
    RETURN NULL;
END $$;
CREATE TRIGGER urls_changed AFTER UPDATE ON urls REFERENCING OLD TABLE AS rows_before NEW TABLE AS rows_after
FOR EACH STATEMENT EXECUTE FUNCTION count_changed_urls();

CREATE FUNCTION count_received() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE hosts SET received = hosts.received + delta.received
    FROM (
        SELECT urls.host, sum(added.received) AS received FROM added JOIN urls ON urls.id = added.url GROUP BY urls.host
    ) AS delta WHERE hosts.id = delta.host;
    RETURN NULL;
END $$;
CREATE TRIGGER captures_received AFTER INSERT ON captures REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_received();

CREATE TABLE versions (schema BIGINT NOT NULL);
INSERT INTO revisions (name, number) VALUES ('transactions', 0);  -- a transaction that has raised it is the only one that writes
