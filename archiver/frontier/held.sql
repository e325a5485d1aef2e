-- Schema version 7: URLs that are held back as a suspected trap, whole rows, so that one command takes them up again.

-- What urls.state may be. Only the check changes, no row does, so the text of the schema is changed in its place
-- (https://www.sqlite.org/lang_altertable.html, "the simpler and faster procedure").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''failed'', ''excluded'')', '''failed'', ''excluded'', ''held'')')
WHERE type = 'table' AND name = 'urls';
PRAGMA writable_schema = RESET;

CREATE INDEX urls_held ON urls (note, url) WHERE state = 'held';  -- note: the rule, and the pattern of URLs

ALTER TABLE hosts ADD COLUMN held INTEGER NOT NULL DEFAULT 0;     -- URLs in that state; kept by the triggers below
DROP TRIGGER urls_added;
CREATE TRIGGER urls_added AFTER INSERT ON urls BEGIN
    UPDATE hosts SET
        waiting = waiting + (new.state = 'waiting'), archived = archived + (new.state = 'archived'),
        failed = failed + (new.state = 'failed'), excluded = excluded + (new.state = 'excluded'),
        held = held + (new.state = 'held')
    WHERE id = new.host;
END;
DROP TRIGGER urls_changed;
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

-- What versions before had refused as a trap while it waited is held from now on.
UPDATE urls SET state = 'held' WHERE state = 'excluded' AND failure = 'trap' AND note LIKE '%: http%';
