-- Schema version 7: URLs that are held back as a suspected trap, whole rows, so that one command takes them up again.

-- urls.state may be 'held' too. SQLite changes no check in place, so the table is made again
-- (https://www.sqlite.org/lang_altertable.html, "making other kinds of table schema changes").
CREATE TABLE new_urls (
    id       INTEGER PRIMARY KEY,
    url      TEXT    NOT NULL UNIQUE,
    host     INTEGER NOT NULL REFERENCES hosts (id),
    state    TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'archived', 'failed', 'excluded', 'held')),
    hop      TEXT    NOT NULL,
    path     TEXT    NOT NULL,
    depth    INTEGER NOT NULL,
    off_scope_hops   INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    via      INTEGER REFERENCES urls (id),
    seed     INTEGER REFERENCES urls (id),
    due      REAL    NOT NULL DEFAULT 0,
    tries    INTEGER NOT NULL DEFAULT 0,
    status   INTEGER NOT NULL DEFAULT 0,
    failure  TEXT    NOT NULL DEFAULT '',
    note     TEXT    NOT NULL DEFAULT '',
    settled  REAL,
    again    INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO new_urls (id, url, host, state, hop, path, depth, off_scope_hops, priority, via, seed, due, tries, status, failure,
                      note, settled, again)
SELECT id, url, host, state, hop, path, depth, off_scope_hops, priority, via, seed, due, tries, status, failure,
       note, settled, again FROM urls;
DROP TRIGGER captures_received;  -- a table cannot be renamed while a trigger names one that is not there
DROP TABLE urls;                 -- with its indexes and triggers
ALTER TABLE new_urls RENAME TO urls;
CREATE TRIGGER captures_received AFTER INSERT ON captures BEGIN
    UPDATE hosts SET received = received + new.received WHERE id = (SELECT host FROM urls WHERE id = new.url);
END;
CREATE INDEX urls_waiting ON urls (host, priority) WHERE state = 'waiting';
CREATE INDEX urls_later ON urls (host, due) WHERE state = 'waiting' AND due > 0;
CREATE INDEX urls_next ON urls (due) WHERE state = 'waiting' AND due > 0;
CREATE INDEX urls_moved ON urls (seed) WHERE hop = 'R';
CREATE INDEX urls_rules ON urls (state) WHERE priority < 0;
CREATE INDEX urls_held ON urls (note, url) WHERE state = 'held';  -- note: the rule, and the pattern of URLs

ALTER TABLE hosts ADD COLUMN held INTEGER NOT NULL DEFAULT 0;     -- URLs in that state; kept by the triggers below
CREATE TRIGGER urls_added AFTER INSERT ON urls BEGIN
    UPDATE hosts SET
        waiting = waiting + (new.state = 'waiting'), archived = archived + (new.state = 'archived'),
        failed = failed + (new.state = 'failed'), excluded = excluded + (new.state = 'excluded'),
        held = held + (new.state = 'held')
    WHERE id = new.host;
END;
CREATE TRIGGER urls_changed AFTER UPDATE OF state, tries, priority ON urls
WHEN new.state <> old.state OR (new.tries > 0 AND new.priority >= 0) <> (old.tries > 0 AND old.priority >= 0) BEGIN
    UPDATE hosts SET
        waiting = waiting + (new.state = 'waiting') - (old.state = 'waiting'),
        archived = archived + (new.state = 'archived') - (old.state = 'archived'),
        failed = failed + (new.state = 'failed') - (old.state = 'failed'),
        excluded = excluded + (new.state = 'excluded') - (old.state = 'excluded'),
        held = held + (new.state = 'held') - (old.state = 'held'),
        spent = spent + (new.tries > 0 AND new.priority >= 0) - (old.tries > 0 AND old.priority >= 0)
    WHERE id = new.host;
END;

-- What a pattern may cost: pages that showed nothing new, how many of them real lists answer for, and how many pages
-- of it a person has released.
ALTER TABLE tallies ADD COLUMN barren INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tallies ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tallies ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
UPDATE tallies SET barren = visits - fruitful;

-- What versions before had refused as a trap is held from now on: rows that waited, and the samples of refused links.
UPDATE urls SET state = 'held' WHERE state = 'excluded' AND failure = 'trap' AND note LIKE '%: http%';
INSERT OR IGNORE INTO hosts (key) SELECT substr(url, 1, 7 + instr(substr(url, 9), '/')) FROM refusals
WHERE substr(rule, 1, instr(rule, ':')) IN ('barren-pages:', 'pattern-budget:', 'directory-budget:', 'max-repeats:',
                                            'max-segments:', 'max-years-ahead:', 'max-url-length:');
INSERT OR IGNORE INTO urls (url, host, state, hop, path, depth, off_scope_hops, priority, via, seed, failure, note)
SELECT refusals.url, hosts.id, 'held', 'L', above.path || 'L', above.depth + 1, above.off_scope_hops, max(above.priority, 0) + 1,
       above.id, above.seed, 'trap', rule || iif(rule LIKE '%: http%', '', ': ' || hosts.key || '/*')
FROM refusals JOIN urls AS above ON above.id = refusals.via
JOIN hosts ON hosts.key = substr(refusals.url, 1, 7 + instr(substr(refusals.url, 9), '/'))
WHERE substr(rule, 1, instr(rule, ':')) IN ('barren-pages:', 'pattern-budget:', 'directory-budget:', 'max-repeats:',
                                            'max-segments:', 'max-years-ahead:', 'max-url-length:');
DELETE FROM refusals WHERE url IN (SELECT url FROM urls WHERE state = 'held');
UPDATE refusal_counts SET links = max(0, links - kept), kept = 0,
                          rule = rule || iif(rule LIKE '%: http%', '', ': ' || host || '/*')
WHERE substr(rule, 1, instr(rule, ':')) IN ('barren-pages:', 'pattern-budget:', 'directory-budget:', 'max-repeats:',
                                            'max-segments:', 'max-years-ahead:', 'max-url-length:');
