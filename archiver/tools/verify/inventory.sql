-- What was found in the WARC files: one row for each whole record. A temporary database, so that memory stays flat.

CREATE TABLE IF NOT EXISTS files (
    id        INTEGER PRIMARY KEY,
    path      TEXT    NOT NULL,                    -- as findings name it
    name      TEXT    NOT NULL,                    -- the last part of the path
    read_to   INTEGER NOT NULL,                    -- how far it was read: a file may grow meanwhile
    whole_to  INTEGER NOT NULL                     -- end of its last whole record
) STRICT;

CREATE TABLE IF NOT EXISTS records (
    file        INTEGER NOT NULL REFERENCES files (id),
    offset      INTEGER NOT NULL,
    inner       INTEGER NOT NULL,                  -- bytes of the gzip member before the record
    length      INTEGER,                           -- NULL: shares its member
    type        TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    url         TEXT    NOT NULL,
    date        TEXT    NOT NULL,
    concurrent  TEXT    NOT NULL,                  -- the first WARC-Concurrent-To
    warcinfo    TEXT    NOT NULL,
    digest      TEXT    NOT NULL,                  -- WARC-Payload-Digest as it stands there
    content     TEXT    NOT NULL,                  -- Content-Type, without parameters, in lower case
    status      INTEGER NOT NULL,                  -- of the HTTP response; 0: none
    mime        TEXT    NOT NULL,                  -- of the payload, empty: not said; of a request: its method
    truncated   TEXT    NOT NULL,
    origin      TEXT    NOT NULL,                  -- WARC-Refers-To-Target-URI
    origin_id   TEXT    NOT NULL,                  -- WARC-Refers-To
    origin_date TEXT    NOT NULL,
    indexed     INTEGER NOT NULL DEFAULT 0,        -- 1: a line of the index names it
    captured    INTEGER NOT NULL DEFAULT 0         -- 1: a row of the frontier names it
) STRICT;

CREATE VIEW IF NOT EXISTS placed AS
SELECT files.path, records.rowid AS number, records.*, substr(digest, instr(digest, ':') + 1) AS digest_value
FROM records JOIN files ON files.id = records.file;
