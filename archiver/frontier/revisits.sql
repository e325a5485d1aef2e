-- Schema version 5: payloads that are stored once, and records that belong to no visit.

ALTER TABLE captures ADD COLUMN revisit TEXT NOT NULL DEFAULT '';  -- a word of model.Profile; empty: the record is a response

-- What a revisit may name. The end of a digest is enough to find it by, and a quarter of all of it: see payloads.py.
CREATE INDEX captures_payload ON captures (substr(payload_digest, -8))
WHERE revisit = '' AND truncated = '' AND payload_length > 0 AND status / 100 <> 3;

CREATE TABLE records (                             -- what an index lists beside captures: dns, settings, logs
    id        INTEGER PRIMARY KEY,
    uri       TEXT    NOT NULL,                    -- WARC-Target-URI
    timestamp INTEGER NOT NULL,                    -- microseconds since the epoch: WARC-Date
    mime      TEXT    NOT NULL,                    -- Content-Type of the record
    digest    TEXT    NOT NULL,                    -- of its payload, which is its block
    warc      INTEGER NOT NULL REFERENCES warcs (id),
    offset    INTEGER NOT NULL,
    length    INTEGER NOT NULL,
    UNIQUE (warc, offset)
) STRICT;
