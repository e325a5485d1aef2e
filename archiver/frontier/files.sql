-- Schema version 2: what a WARC file was when it got its final name, so that a later change of it is seen.

ALTER TABLE warcs ADD COLUMN digest TEXT NOT NULL DEFAULT '';      -- sha256:HEX of all its bytes; empty: not known
ALTER TABLE warcs ADD COLUMN modified INTEGER NOT NULL DEFAULT 0;  -- its time of modification, in nanoseconds
