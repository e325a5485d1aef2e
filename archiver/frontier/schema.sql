-- crawl.db, schema version 1; the steps to later versions lie beside it. Times are seconds since the epoch (REAL) unless a comment says otherwise.

CREATE TABLE hosts (
    id         INTEGER PRIMARY KEY,
    key        TEXT    NOT NULL UNIQUE,            -- scheme and authority: https://example.org:8443
    waiting    INTEGER NOT NULL DEFAULT 0,         -- URLs in state waiting; kept by the triggers below
    parked     REAL    NOT NULL DEFAULT 0,         -- not one request before (Retry-After)
    robots     TEXT    NOT NULL DEFAULT 'unknown' CHECK (robots IN ('unknown', 'known', 'unreachable')),
    robots_url INTEGER REFERENCES urls (id),       -- the row whose answer holds, or will hold, the rules
    robots_at  REAL    NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE urls (
    id       INTEGER PRIMARY KEY,
    url      TEXT    NOT NULL UNIQUE,              -- the seen-set: canonical, exact
    host     INTEGER NOT NULL REFERENCES hosts (id),
    state    TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'archived', 'failed', 'excluded')),
    hop      TEXT    NOT NULL,                     -- L E X R P M: how its via led here
    path     TEXT    NOT NULL,                     -- hop path from the seed; empty for a seed
    depth    INTEGER NOT NULL,
    off_scope_hops   INTEGER NOT NULL,
    priority INTEGER NOT NULL,                     -- smaller goes first
    via      INTEGER REFERENCES urls (id),
    seed     INTEGER REFERENCES urls (id),         -- itself for a seed
    due      REAL    NOT NULL DEFAULT 0,
    tries    INTEGER NOT NULL DEFAULT 0,
    status   INTEGER NOT NULL DEFAULT 0,           -- of the last answer; 0: none
    failure  TEXT    NOT NULL DEFAULT '',          -- a word of errors.Failure
    note     TEXT    NOT NULL DEFAULT '',          -- why, for a person
    settled  REAL
) STRICT;

CREATE INDEX urls_waiting ON urls (host, priority) WHERE state = 'waiting';  -- and by id, as every index
CREATE INDEX urls_later ON urls (host, due) WHERE state = 'waiting' AND due > 0;
CREATE INDEX urls_next ON urls (due) WHERE state = 'waiting' AND due > 0;
CREATE INDEX hosts_waiting ON hosts (parked, id) WHERE waiting > 0;

CREATE TRIGGER urls_added AFTER INSERT ON urls WHEN new.state = 'waiting' BEGIN
    UPDATE hosts SET waiting = waiting + 1 WHERE id = new.host;
END;
CREATE TRIGGER urls_left AFTER UPDATE OF state ON urls WHEN old.state = 'waiting' AND new.state <> 'waiting' BEGIN
    UPDATE hosts SET waiting = waiting - 1 WHERE id = new.host;
END;
CREATE TRIGGER urls_back AFTER UPDATE OF state ON urls WHEN old.state <> 'waiting' AND new.state = 'waiting' BEGIN
    UPDATE hosts SET waiting = waiting + 1 WHERE id = new.host;
END;

CREATE TABLE seeds (
    url      INTEGER PRIMARY KEY REFERENCES urls (id),
    position INTEGER NOT NULL
) STRICT;

CREATE TABLE robots (
    url    INTEGER PRIMARY KEY REFERENCES urls (id),
    status INTEGER NOT NULL,                       -- 0: no answer came
    body   BLOB    NOT NULL                        -- decoded, at most 512 KiB
) STRICT;

CREATE TABLE warcs (
    id        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,             -- the final name, without .open
    committed INTEGER NOT NULL DEFAULT 0,          -- bytes that the rows of this database speak of
    closed    INTEGER NOT NULL DEFAULT 0,          -- 1: has its final name and its final length
    indexed   INTEGER NOT NULL DEFAULT 0           -- 1: its lines stand in index.cdxj
) STRICT;

CREATE TABLE captures (
    id              INTEGER PRIMARY KEY,
    url             INTEGER NOT NULL REFERENCES urls (id),
    timestamp       INTEGER NOT NULL,              -- microseconds since the epoch: WARC-Date
    status          INTEGER NOT NULL,
    mime            TEXT    NOT NULL,
    payload_digest  TEXT    NOT NULL,
    payload_length  INTEGER NOT NULL,
    warc            INTEGER NOT NULL REFERENCES warcs (id),
    offset          INTEGER NOT NULL,              -- response, request and metadata follow each other from here
    response_length INTEGER NOT NULL,
    request_length  INTEGER NOT NULL,
    metadata_length INTEGER NOT NULL,
    received        INTEGER NOT NULL,              -- bytes of the response as they crossed the wire
    duration            REAL    NOT NULL,              -- seconds from sending the request to the end of the answer
    truncated       TEXT    NOT NULL DEFAULT '',
    UNIQUE (warc, offset)
) STRICT;

CREATE INDEX captures_url ON captures (url);

CREATE TABLE refusals (                            -- what scope did not take: a sample for each rule and host
    url  TEXT    NOT NULL PRIMARY KEY,
    rule TEXT    NOT NULL,
    via  INTEGER REFERENCES urls (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE refusal_counts (                      -- how many links each rule refused, all of them
    rule  TEXT    NOT NULL,
    host  TEXT    NOT NULL,
    links INTEGER NOT NULL,
    kept  INTEGER NOT NULL DEFAULT 0,              -- rows in refusals; kept by the trigger below
    PRIMARY KEY (rule, host)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER refusals_added AFTER INSERT ON refusals BEGIN
    UPDATE refusal_counts SET kept = kept + 1
    WHERE rule = new.rule AND host = substr(new.url, 1, 7 + instr(substr(new.url, 9), '/'));
END;
