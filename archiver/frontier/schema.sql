-- The tables of crawl.db. Times are seconds since the epoch (REAL) unless a comment gives another unit.

CREATE TABLE hosts (                                   -- origins (scheme, name, port): their queue, throttle and robots.txt
    id             INTEGER PRIMARY KEY,
    key            TEXT    NOT NULL UNIQUE,            -- scheme and authority: https://example.org:8443

    waiting        INTEGER NOT NULL DEFAULT 0,         -- URLs in each state; the triggers below keep these counts
    archived       INTEGER NOT NULL DEFAULT 0,
    failed         INTEGER NOT NULL DEFAULT 0,
    excluded       INTEGER NOT NULL DEFAULT 0,
    held           INTEGER NOT NULL DEFAULT 0,
    visited        INTEGER NOT NULL DEFAULT 0,         -- URLs visited at least once, without robots.txt; by trigger
    received       INTEGER NOT NULL DEFAULT 0,         -- bytes of all responses; by trigger

    not_before     REAL    NOT NULL DEFAULT 0,         -- no request before this time (Retry-After, host backoff)
    rate           REAL    NOT NULL DEFAULT 0,         -- throttle: requests per second; 0: as configured
    rate_limit     REAL    NOT NULL DEFAULT 0,         -- throttle: the rate at the latest overload
    concurrency    REAL    NOT NULL DEFAULT 0,         -- throttle: requests in flight; 0: as configured
    slow_reason    TEXT    NOT NULL DEFAULT '',        -- throttle: 503, timeout, slow answers
    failing_since  REAL    NOT NULL DEFAULT 0,         -- host backoff: first failure in a row; 0: the host answers
    probe_interval REAL    NOT NULL DEFAULT 0,         -- host backoff: seconds between two probes; 0: no backoff
    blocked_since  REAL    NOT NULL DEFAULT 0,         -- first of a run of refusals or block pages; 0: not blocked
    paused         INTEGER NOT NULL DEFAULT 0,         -- 1: no request until the next run, because the host blocks us

    robots         TEXT    NOT NULL DEFAULT 'unknown' CHECK (robots IN ('unknown', 'known', 'unreachable')),
    robots_url     INTEGER REFERENCES urls (id),       -- the row whose answer holds, or will hold, the rules
    robots_at      REAL    NOT NULL DEFAULT 0,         -- when the rules were fetched
    robots_next    INTEGER REFERENCES urls (id),       -- the row that will hold newer rules

    politeness_group TEXT  NOT NULL DEFAULT ''         -- of the latest lease; empty: never leased
) STRICT;

CREATE INDEX hosts_waiting ON hosts (not_before, id) WHERE waiting > 0;
CREATE INDEX hosts_robots ON hosts (robots_url) WHERE robots_url IS NOT NULL;
CREATE INDEX hosts_robots_next ON hosts (robots_next) WHERE robots_next IS NOT NULL;

CREATE TABLE urls (                                    -- the URL queue and the seen-set
    id             INTEGER PRIMARY KEY,
    url            TEXT    NOT NULL UNIQUE,            -- the seen-set: canonical, exact
    host           INTEGER NOT NULL REFERENCES hosts (id),
    state          TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'archived', 'failed', 'excluded', 'held')),
    hop            TEXT    NOT NULL,                   -- L E X R P M: how its via led here
    path           TEXT    NOT NULL,                   -- hop path from the seed; empty for a seed
    depth          INTEGER NOT NULL,                   -- links on the path
    off_scope_hops INTEGER NOT NULL,                   -- hops since the crawl left its scope
    priority       INTEGER NOT NULL,                   -- smaller goes first; negative: leads to a robots.txt
    referrer       INTEGER NOT NULL DEFAULT 0,         -- referrer policy: a place in policy.referrer.POLICIES
    via            INTEGER REFERENCES urls (id),       -- the URL that led here
    seed           INTEGER REFERENCES urls (id),       -- the seed at the head of the path; itself for a seed
    due            REAL    NOT NULL DEFAULT 0,         -- no visit before this time
    tries          INTEGER NOT NULL DEFAULT 0,         -- visits since the URL was queued
    language       TEXT    NOT NULL DEFAULT '',        -- Accept-Language of its next visit; empty: as in the settings
    tries_before   INTEGER NOT NULL DEFAULT 0,         -- of `tries`: those before the first visit in this language
    status         INTEGER NOT NULL DEFAULT 0,         -- of the last answer; 0: none
    failure        TEXT    NOT NULL DEFAULT '',        -- a word of errors.Failure
    note           TEXT    NOT NULL DEFAULT '',        -- why, for a person; of a held URL: its rule and its pattern
    settled        REAL,                               -- when the last visit ended
    requeued       INTEGER NOT NULL DEFAULT 0          -- times it was asked for again after it was settled or stored
) STRICT;

CREATE INDEX urls_waiting ON urls (host, priority) WHERE state = 'waiting';  -- then by id, as in every index
CREATE INDEX urls_later ON urls (host, due) WHERE state = 'waiting' AND due > 0;
CREATE INDEX urls_next ON urls (due) WHERE state = 'waiting' AND due > 0;
CREATE INDEX urls_moved ON urls (seed) WHERE hop = 'R';           -- where seeds redirect to
CREATE INDEX urls_rules ON urls (state) WHERE priority < 0;       -- robots.txt and the redirects to one
CREATE INDEX urls_held ON urls (note, url) WHERE state = 'held';

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
        visited = visited + (new.tries > 0 AND new.priority >= 0) - (old.tries > 0 AND old.priority >= 0)
    WHERE id = new.host;
END;

CREATE TABLE seeds (                                   -- the URLs that the crawl was given
    url      INTEGER PRIMARY KEY REFERENCES urls (id),
    position INTEGER NOT NULL                          -- in the order given
) STRICT;

CREATE TABLE robots (                                  -- answers for robots.txt
    url    INTEGER PRIMARY KEY REFERENCES urls (id),
    status INTEGER NOT NULL,                           -- 0: no answer
    body   BLOB    NOT NULL                            -- decoded, at most 512 KiB
) STRICT;

CREATE TABLE warcs (                                   -- WARC files and how far each is committed
    id        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,                 -- the final name, without .open
    committed INTEGER NOT NULL DEFAULT 0,              -- bytes that this database has rows for
    closed    INTEGER NOT NULL DEFAULT 0,              -- 1: the file has its final name and its final length
    indexed   INTEGER NOT NULL DEFAULT 0,              -- 1: its lines are in index.cdxj
    digest    TEXT    NOT NULL DEFAULT '',             -- sha256:HEX of a closed file; empty: not known
    modified  INTEGER NOT NULL DEFAULT 0,              -- modification time at that digest, in nanoseconds
    machine   TEXT    NOT NULL DEFAULT ''              -- whose directory holds it; empty: there is only one
) STRICT;

CREATE TABLE captures (                                -- response and revisit records: where each one is
    id              INTEGER PRIMARY KEY,
    url             INTEGER NOT NULL REFERENCES urls (id),
    timestamp       INTEGER NOT NULL,                  -- microseconds since the epoch: WARC-Date
    status          INTEGER NOT NULL,
    mime            TEXT    NOT NULL,
    payload_digest  TEXT    NOT NULL,
    payload_length  INTEGER NOT NULL,
    warc            INTEGER NOT NULL REFERENCES warcs (id),
    offset          INTEGER NOT NULL,                  -- of the response; request and metadata records follow it
    response_length INTEGER NOT NULL,
    request_length  INTEGER NOT NULL,
    metadata_length INTEGER NOT NULL,
    received        INTEGER NOT NULL,                  -- bytes of the response as they crossed the wire
    duration        REAL    NOT NULL,                  -- seconds from sending the request to the end of the answer
    truncated       TEXT    NOT NULL DEFAULT '',       -- a word of model.Truncation
    revisit         TEXT    NOT NULL DEFAULT '',       -- a word of model.Profile; empty: the record is a response
    blocked         TEXT    NOT NULL DEFAULT '',       -- sign of a challenge or block page; empty: it is none
    language        TEXT    NOT NULL DEFAULT '',       -- Accept-Language of a further visit; empty: as in the settings
    UNIQUE (warc, offset)
) STRICT;

CREATE INDEX captures_url ON captures (url);
CREATE INDEX captures_blocked ON captures (url) WHERE blocked <> '';
-- Responses that a revisit may refer to. The end of a digest is enough to find them and takes a quarter of the space.
CREATE INDEX captures_payload ON captures (substr(payload_digest, -8))
WHERE revisit = '' AND truncated = '' AND payload_length > 0 AND status / 100 <> 3;

CREATE TRIGGER captures_received AFTER INSERT ON captures BEGIN
    UPDATE hosts SET received = received + new.received WHERE id = (SELECT host FROM urls WHERE id = new.url);
END;

CREATE TABLE resources (                               -- records of no visit: DNS look-ups, settings, logs
    id        INTEGER PRIMARY KEY,
    uri       TEXT    NOT NULL,                        -- WARC-Target-URI
    timestamp INTEGER NOT NULL,                        -- microseconds since the epoch: WARC-Date
    mime      TEXT    NOT NULL,                        -- Content-Type of the record
    digest    TEXT    NOT NULL,                        -- of its payload, which is its block
    warc      INTEGER NOT NULL REFERENCES warcs (id),
    offset    INTEGER NOT NULL,
    length    INTEGER NOT NULL,
    UNIQUE (warc, offset)
) STRICT;

CREATE TABLE refusals (                                -- links out of scope: a sample for each rule and host
    url  TEXT    NOT NULL PRIMARY KEY,
    rule TEXT    NOT NULL,
    via  INTEGER REFERENCES urls (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE refusal_counts (                          -- all links out of scope, by rule and host
    rule  TEXT    NOT NULL,
    host  TEXT    NOT NULL,
    links INTEGER NOT NULL,
    kept  INTEGER NOT NULL DEFAULT 0,                  -- of these, rows in refusals
    PRIMARY KEY (rule, host)
) STRICT, WITHOUT ROWID;

CREATE TABLE pattern_tallies (                         -- results of each pattern of URLs: see policy/traps.py
    id       INTEGER PRIMARY KEY,                      -- in the order of their first visits
    pattern  TEXT    NOT NULL UNIQUE,                  -- http://example.org/calendar/N/N
    visits   INTEGER NOT NULL,
    fruitful INTEGER NOT NULL,                         -- visits that showed something new
    streak   INTEGER NOT NULL,                         -- visits since the last of these
    barren   INTEGER NOT NULL DEFAULT 0,               -- visits that showed nothing new
    listed   INTEGER NOT NULL DEFAULT 0,               -- barren visits that real lists account for
    released INTEGER NOT NULL DEFAULT 0                -- further barren visits that a person allows
) STRICT;

CREATE TABLE asks (                                    -- what scripts send: a POST, or headers of a GET; see ask.py
    url INTEGER PRIMARY KEY REFERENCES urls (id),
    ask TEXT    NOT NULL                               -- JSON
) STRICT;

CREATE TABLE views (                                   -- pages that a browser shows: see frontier/views.py
    url     INTEGER PRIMARY KEY REFERENCES urls (id),
    host    INTEGER NOT NULL REFERENCES hosts (id),
    need    INTEGER NOT NULL,                          -- smaller goes first: see policy/views.py
    pattern TEXT    NOT NULL,                          -- of its URL; empty: not computed yet
    state   TEXT    NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'done', 'left out')),
    rounds  INTEGER NOT NULL DEFAULT 0,                -- times it was shown
    brought INTEGER NOT NULL DEFAULT 0,                -- URLs that only its views found
    missing INTEGER NOT NULL DEFAULT 0,                -- URLs that a replay will miss
    title   TEXT    NOT NULL DEFAULT '',               -- as scripts have set it
    ended   TEXT    NOT NULL DEFAULT ''                -- why its view was cut short; empty: it was not
) STRICT;

CREATE INDEX views_due ON views (need, url) WHERE state = 'due';
CREATE INDEX views_left_out ON views (pattern) WHERE state = 'left out';

CREATE TABLE cookies (                                 -- cookies by RFC 6265bis: see policy/cookies.py
    domain    TEXT    NOT NULL,                        -- host name without a leading dot
    path      TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    host_only INTEGER NOT NULL,                        -- 1: sent to this host, not to its subdomains
    value     TEXT    NOT NULL,                        -- latin-1 characters, one for each byte
    secure    INTEGER NOT NULL,
    http_only INTEGER NOT NULL,
    same_site TEXT    NOT NULL,                        -- a word of model.SameSite
    created   REAL    NOT NULL,                        -- seconds since the epoch
    expires   REAL,                                    -- NULL: with the session, which is the whole crawl
    private   INTEGER NOT NULL,                        -- 1: the user's own, only for verified connections
    changed   REAL    NOT NULL,                        -- when it got its value
    PRIMARY KEY (domain, path, name, host_only)
) STRICT, WITHOUT ROWID;

CREATE TABLE crawlers (                                -- the processes that crawl, or did: see frontier/leases.py
    id    INTEGER PRIMARY KEY,                         -- never used again, so it is the epoch of its leases
    name  TEXT    NOT NULL,                            -- the same after a restart; part of the names of its WARC files
    ends  REAL    NOT NULL,                            -- when all its leases end unless they are renewed
    ended INTEGER NOT NULL DEFAULT 0,                  -- 1: it has left, or another crawler took a group over from it
    urls  INTEGER NOT NULL DEFAULT 0,                  -- of --max-urls: in its hands, not settled
    heard INTEGER NOT NULL DEFAULT 0                   -- the latest row of orders that it has taken up
) STRICT;

CREATE TABLE budget (                                  -- what all crawlers together have spent, in one row
    id         INTEGER PRIMARY KEY,
    next_start REAL NOT NULL,                          -- --global-rate: the next place in time that is not given away
    paid_until REAL NOT NULL                           -- --bandwidth: when all bytes will have had their time
) STRICT;                                              -- times: as those of leases

CREATE TABLE leases (                                  -- politeness groups, each with the only crawler that asks its hosts
    politeness_group TEXT NOT NULL PRIMARY KEY,        -- as in policy/limits.py; a host alone: its id
    crawler    INTEGER REFERENCES crawlers (id),       -- NULL: none
    last_start REAL NOT NULL DEFAULT 0                 -- if none: when the latest request of its hosts may have started
) STRICT, WITHOUT ROWID;                               -- times of both tables: of the machine's monotonic clock

CREATE TABLE revisions (                               -- changes that each crawler must hear of: see frontier/links.py
    name   TEXT    NOT NULL PRIMARY KEY,               -- links, orders
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE orders (                                  -- what people have told the crawl to do: see frontier/orders/table.py
    id        INTEGER PRIMARY KEY,
    given     REAL    NOT NULL,
    who       TEXT    NOT NULL,                        -- user@machine
    verb      TEXT    NOT NULL,                        -- a word of frontier.orders.table.Verb
    arguments TEXT    NOT NULL,                        -- a JSON list of texts
    state     TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done')),
    answer    TEXT    NOT NULL DEFAULT '',             -- what came of it, for a person
    answered  REAL                                     -- NULL: not every crawler has taken it up yet
) STRICT;

CREATE TABLE included (                                -- URLs that an order to include brought back: see frontier/orders/including.py
    url  INTEGER PRIMARY KEY REFERENCES urls (id),
    rule TEXT    NOT NULL,                             -- the regular expression
    note TEXT    NOT NULL                              -- by what the URL was excluded before
) STRICT;

CREATE TABLE events (                                  -- what --on reports: see frontier/events/notes.py
    id   INTEGER PRIMARY KEY,
    once TEXT    NOT NULL UNIQUE,                      -- digest of what happened, which is written once
    kind TEXT    NOT NULL,                             -- a word of config.event_settings.EventKind
    run  INTEGER NOT NULL,                             -- a row of runs
    body TEXT    NOT NULL                              -- JSON, as it is delivered
) STRICT;

CREATE INDEX events_kind ON events (kind);

CREATE TABLE deliveries (                              -- events that receivers get: see frontier/events/deliveries.py
    event    INTEGER NOT NULL REFERENCES events (id),
    receiver TEXT    NOT NULL,                         -- digest of its setting, which may be a secret
    state    TEXT    NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'given up')),
    tries    INTEGER NOT NULL DEFAULT 0,
    due      REAL    NOT NULL DEFAULT 0,               -- no try before this time
    tried    REAL,                                     -- time of the latest try; NULL: there was none
    result   TEXT    NOT NULL DEFAULT '',              -- of the latest try, for a person
    PRIMARY KEY (event, receiver)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_waiting ON deliveries (receiver, event) WHERE state = 'waiting';

CREATE TABLE machines (                                -- directories that crawl together: see frontier/machines.py
    name      TEXT NOT NULL PRIMARY KEY,               -- part of the names of its crawlers and WARC files
    directory TEXT NOT NULL,                           -- where it is: host:/path
    joined    REAL NOT NULL,                           -- times: as those of leases
    seen      REAL NOT NULL,                           -- when it was last known to be alive
    forgotten REAL                                     -- when it was written off; NULL: it was not
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (                                -- of a crawl on several machines, in one row
    id       INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,                         -- raised by each change
    text     TEXT    NOT NULL,                         -- as in crawl.toml, without secrets and what each machine has itself
    secrets  TEXT    NOT NULL DEFAULT ''               -- names of headers that each machine must have itself
) STRICT;

CREATE TABLE runs (                                    -- the runs of this crawl: start, end and reason
    id        INTEGER PRIMARY KEY,
    started   REAL    NOT NULL,
    ended     REAL,                                    -- NULL: it is running, or it was killed
    exit_code INTEGER,                                 -- see model.ExitCode
    reason    TEXT    NOT NULL DEFAULT ''              -- why it ended, for a person: --max-urls 30 is reached
) STRICT;
