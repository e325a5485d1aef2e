-- Schema version 3: what a host has taught us about how it wants to be asked.

ALTER TABLE urls ADD COLUMN again INTEGER NOT NULL DEFAULT 0;  -- how often it was made due again after its last word

ALTER TABLE hosts ADD COLUMN rate REAL NOT NULL DEFAULT 0;       -- starts a second that it bears, as learned; 0: as configured
ALTER TABLE hosts ADD COLUMN rate_limit REAL NOT NULL DEFAULT 0; -- the rate at its latest overload
ALTER TABLE hosts ADD COLUMN width REAL NOT NULL DEFAULT 0;      -- requests at once that it bears; 0: as configured
ALTER TABLE hosts ADD COLUMN slowed TEXT NOT NULL DEFAULT '';    -- why: 503, timeout, slow answers
ALTER TABLE hosts ADD COLUMN failing REAL NOT NULL DEFAULT 0;    -- since when it does not answer; 0: it does
ALTER TABLE hosts ADD COLUMN pause REAL NOT NULL DEFAULT 0;      -- seconds between probes while it sleeps (until `parked`)

ALTER TABLE hosts ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;    -- URLs visited at least once, robots.txt aside …
ALTER TABLE hosts ADD COLUMN received INTEGER NOT NULL DEFAULT 0; -- … and bytes of all responses; kept by the triggers below
UPDATE hosts SET spent = counted.urls FROM (
    SELECT host, count(*) AS urls FROM urls WHERE tries > 0 AND priority >= 0 GROUP BY host
) AS counted WHERE counted.host = hosts.id;
UPDATE hosts SET received = counted.size FROM (
    SELECT host, sum(captures.received) AS size FROM captures JOIN urls ON urls.id = captures.url GROUP BY host
) AS counted WHERE counted.host = hosts.id;
CREATE TRIGGER urls_spent AFTER UPDATE OF tries, priority ON urls
WHEN (new.tries > 0 AND new.priority >= 0) <> (old.tries > 0 AND old.priority >= 0) BEGIN
    UPDATE hosts SET spent = spent + iif(new.tries > 0 AND new.priority >= 0, 1, -1) WHERE id = new.host;
END;
CREATE TRIGGER captures_received AFTER INSERT ON captures BEGIN
    UPDATE hosts SET received = received + new.received WHERE id = (SELECT host FROM urls WHERE id = new.url);
END;

ALTER TABLE hosts ADD COLUMN robots_next INTEGER REFERENCES urls (id);  -- the row from which newer rules are awaited

CREATE TABLE tallies (                             -- what patterns of URLs and directories have brought: see traps
    pattern  TEXT    NOT NULL PRIMARY KEY,
    visits   INTEGER NOT NULL,
    fruitful INTEGER NOT NULL,
    streak   INTEGER NOT NULL,                     -- barren pages since the last fruitful one
    strict   INTEGER NOT NULL
) STRICT;
