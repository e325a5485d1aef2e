-- Schema version 4: what is asked all the time is answered by an index, however many URLs and hosts there are.

ALTER TABLE hosts ADD COLUMN archived INTEGER NOT NULL DEFAULT 0; -- URLs in that state; kept by the trigger below
ALTER TABLE hosts ADD COLUMN failed   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN excluded INTEGER NOT NULL DEFAULT 0;
UPDATE hosts SET archived = counted.archived, failed = counted.failed, excluded = counted.excluded FROM (
    SELECT host, sum(state = 'archived') AS archived, sum(state = 'failed') AS failed,
           sum(state = 'excluded') AS excluded
    FROM urls WHERE state <> 'waiting' GROUP BY host
) AS counted WHERE counted.host = hosts.id;

DROP TRIGGER urls_added;
CREATE TRIGGER urls_added AFTER INSERT ON urls BEGIN
    UPDATE hosts SET
        waiting = waiting + (new.state = 'waiting'), archived = archived + (new.state = 'archived'),
        failed = failed + (new.state = 'failed'), excluded = excluded + (new.state = 'excluded')
    WHERE id = new.host;
END;
DROP TRIGGER urls_left;
DROP TRIGGER urls_back;
DROP TRIGGER urls_spent;
CREATE TRIGGER urls_changed AFTER UPDATE OF state, tries, priority ON urls
WHEN new.state <> old.state OR (new.tries > 0 AND new.priority >= 0) <> (old.tries > 0 AND old.priority >= 0) BEGIN
    UPDATE hosts SET
        waiting = waiting + (new.state = 'waiting') - (old.state = 'waiting'),
        archived = archived + (new.state = 'archived') - (old.state = 'archived'),
        failed = failed + (new.state = 'failed') - (old.state = 'failed'),
        excluded = excluded + (new.state = 'excluded') - (old.state = 'excluded'),
        spent = spent + (new.tries > 0 AND new.priority >= 0) - (old.tries > 0 AND old.priority >= 0)
    WHERE id = new.host;
END;

DROP TRIGGER refusals_added;  -- who keeps a batch of them says once how many: `refusal_counts.kept`

CREATE INDEX hosts_robots ON hosts (robots_url) WHERE robots_url IS NOT NULL;  -- who is answered by one robots.txt …
CREATE INDEX hosts_robots_next ON hosts (robots_next) WHERE robots_next IS NOT NULL;  -- … or will be
CREATE INDEX urls_moved ON urls (seed) WHERE hop = 'R';  -- where seeds moved to
