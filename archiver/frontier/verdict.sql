-- Schema version 6: how each run ended, and which hosts refuse us.

CREATE TABLE runs (
    id     INTEGER PRIMARY KEY,
    began  REAL    NOT NULL,
    ended  REAL,                                   -- NULL: it still runs, or it was killed
    code   INTEGER,                                -- exit code: see model.ExitCode
    reason TEXT    NOT NULL DEFAULT ''             -- why it ended, for a person: --max-urls 30 is reached
) STRICT;

ALTER TABLE captures ADD COLUMN blocked TEXT NOT NULL DEFAULT '';  -- by which sign it is a challenge or block page
CREATE INDEX captures_blocked ON captures (url) WHERE blocked <> '';

ALTER TABLE hosts ADD COLUMN refuses REAL NOT NULL DEFAULT 0;   -- since when the host refuses us; 0: it does not …
ALTER TABLE hosts ADD COLUMN paused INTEGER NOT NULL DEFAULT 0; -- … and 1: nothing is asked of it until the next run

CREATE INDEX urls_rules ON urls (state) WHERE priority < 0;  -- robots.txt, which is no page of the site
