"""Look up single URLs in crawl.db, for `explain` and `urls`. Read only, on a connection from `account.opened`.

Every answer is bounded, whatever the database contains. Lists are read in pages, each in its own transaction, so a slow
reader at the other end of a pipe does not hold up a running crawl.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from archiver import url
from archiver.frontier import settle
from archiver.frontier.connection import Reader
from archiver.frontier.gathered import INCOMPLETE, MISSING
from archiver.frontier.retry import LAST_BLOCKED, STATUS_IN, names_of
from archiver.model import Hop, PatternTally, Robots, State

MAX_STEPS = 250  # hops of a path that are looked up
MAX_CAPTURES = 100  # of one URL
MAX_AHEAD = 10_000  # URLs counted before another one
PAGE = 1000  # rows in one transaction
_MICRO = 1_000_000
_LAST = "\U0010ffff"  # comes after every character of a URL
_BEHIND_ALL = "i"  # comes after every http and https URL


@dataclass(frozen=True, slots=True)
class UrlRow:
    """One row of urls."""

    id: int
    url: str
    state: State
    hop: Hop
    path: str
    depth: int
    off_scope_hops: int
    priority: int
    due: float
    tries: int
    status: int
    failure: str
    note: str
    settled: float
    via: str
    again: int = 0
    visited: int = 0  # URLs of its host that count for the limit of a host …
    received: int = 0  # … and bytes
    language: str = ""  # Accept-Language of its next visit


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """One URL on the way from a seed, and the hop that led to it."""

    url: str
    hop: Hop | None  # None for a seed


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """One capture, and the place of its response record."""

    moment: float
    status: int
    mime: str
    received: int
    duration: float
    digest: str
    file: str
    offset: int
    length: int
    truncated: str
    revisit: str = ""  # a word of `Profile`
    language: str = ""  # Accept-Language of a further visit
    machine: str = ""  # whose directory holds the file, if several crawl together


@dataclass(frozen=True, slots=True)
class RefusedLink:
    """A link that the scope refused, as kept in the sample."""

    url: str
    rule: str
    via: str


@dataclass(frozen=True, slots=True)
class HostState:
    """One host in the frontier."""

    key: str
    waiting: int
    not_before: float
    robots: str  # unknown, known, unreachable
    answer: Robots | None  # the answer for robots.txt; None if unknown
    robots_url: str
    rate: float = 0.0  # learned; 0: as configured
    slowed: str = ""
    failing_since: float = 0.0  # when it stopped answering
    paused: int = 0  # 1: it refuses us, 2: it needs a login; it gets no more requests in this run


_URL = """
SELECT urls.id, urls.url, urls.state, urls.hop, urls.path, urls.depth, urls.off_scope_hops, urls.priority, urls.due,
       urls.tries, urls.status, urls.failure, urls.note, coalesce(urls.settled, 0), coalesce(above.url, ''),
       urls.requeued, hosts.visited, hosts.received, urls.language
FROM urls JOIN hosts ON hosts.id = urls.host LEFT JOIN urls AS above ON above.id = urls.via
"""
_WAY = """
WITH RECURSIVE way (url, hop, path, via, step) AS (
    SELECT url, hop, path, via, 1 FROM urls WHERE id = ?
    UNION ALL
    SELECT urls.url, urls.hop, urls.path, urls.via, step + 1 FROM way JOIN urls ON urls.id = way.via WHERE step < ?
)
SELECT url, hop, path FROM way ORDER BY step DESC
"""
_CAPTURES = """
SELECT timestamp, captures.status, mime, received, duration, payload_digest,
       CASE closed WHEN 1 THEN warcs.name ELSE warcs.name || '.open' END, offset, response_length, truncated, revisit,
       language, machine
FROM captures JOIN warcs ON warcs.id = captures.warc WHERE url = ? ORDER BY captures.id DESC LIMIT ?
"""
_HOST = """
SELECT hosts.key, waiting, not_before, hosts.robots, robots.status, robots.body, coalesce(urls.url, ''), rate,
       slow_reason, failing_since, paused * CASE blocked_since WHEN 0 THEN 2 ELSE 1 END
FROM hosts LEFT JOIN robots ON robots.url = hosts.robots_url LEFT JOIN urls ON urls.id = hosts.robots_url
WHERE hosts.key = ?
"""
_AHEAD = """
SELECT count(*) FROM (SELECT 1 FROM urls WHERE host = (SELECT host FROM urls WHERE id = :id) AND state = 'waiting'
                      AND (priority < :priority OR priority = :priority AND id < :id) LIMIT :most) AS earlier
"""
_REFUSED = """
SELECT refusals.url, rule, coalesce(urls.url, '') FROM refusals LEFT JOIN urls ON urls.id = refusals.via
"""


@dataclass(frozen=True, slots=True)
class UrlFilter:
    """A filter for lists of URLs. A URL must meet all conditions."""

    states: tuple[State, ...] = tuple(State)
    statuses: tuple[tuple[int, int], ...] = ()  # of the last answer, as (first, last) of ranges; none: any
    missing: bool = False  # only missing requisites of archived pages
    blocked: bool = False  # only URLs whose last answer is a challenge or block page
    truncated: bool = False  # only URLs whose last answer is incomplete or does not decode

    def conditions(self) -> tuple[str, list[object]]:
        """Return the filter as SQL and its values."""
        conditions = ["urls.state IN (SELECT value FROM json_each(?))"]
        values: list[object] = [json.dumps([state.value for state in self.states])]
        if self.statuses:
            conditions.append(f"({' OR '.join([STATUS_IN] * len(self.statuses))})")
            values += [bound for span in self.statuses for bound in span]
        if self.missing:
            conditions.append(f"{MISSING} AND above.state = 'archived'")
        if self.blocked:
            conditions.append(f"urls.id IN ({LAST_BLOCKED})")
        if self.truncated:
            conditions.append(INCOMPLETE)
        return " AND ".join(conditions), values


def known(db: Reader, address: str) -> UrlRow | None:
    """Return the row of *address*, or None."""
    row = db.execute(f"{_URL} WHERE urls.url = ?", (address,)).fetchone()
    return None if row is None else _known(row)


def way(db: Reader, row: UrlRow) -> tuple[list[DiscoveryStep], bool]:
    """Return the URLs from the seed (or a robots.txt) to *row*, and True if the beginning is missing."""
    found = db.execute(_WAY, (row.id, MAX_STEPS)).fetchall()
    steps = [DiscoveryStep(address, Hop(hop) if path else None) for address, hop, path in found]
    return steps, steps[0].hop not in {None, Hop.PREREQUISITE}


def captures(db: Reader, row: UrlRow) -> list[StoredCapture]:
    """Return the newest captures of *row*, newest first."""
    found = db.execute(_CAPTURES, (row.id, MAX_CAPTURES))
    return [StoredCapture(moment / _MICRO, *others) for moment, *others in found]


def ahead(db: Reader, row: UrlRow) -> int:
    """Return the number of URLs of the same host that go before *row*, at most `MAX_AHEAD`."""
    parameters = {"id": row.id, "priority": row.priority, "most": MAX_AHEAD}
    return int(db.execute(_AHEAD, parameters).fetchone()[0])


def host(db: Reader, key: str) -> HostState | None:
    """Return the host *key*, or None if the crawl does not know it."""
    row = db.execute(_HOST, (key,)).fetchone()
    if row is None:
        return None
    name, waiting, not_before, robots, status, body, address, *rest = row
    answer = None
    if robots != "unknown":
        answer = Robots(status if status is not None else 404 if robots == "known" else 0, body or b"")
    return HostState(name, waiting, not_before, robots, answer, address, *rest)


def refused(db: Reader, address: str) -> RefusedLink | None:
    """Return the refusal of *address*, or None if it is not in the sample."""
    row = db.execute(f"{_REFUSED} WHERE refusals.url = ?", (address,)).fetchone()
    return None if row is None else RefusedLink(*row)


def refused_without_trace(db: Reader, key: str) -> list[tuple[str, int]]:
    """Return the rules that refused more links to the host *key* than the sample has, with their counts."""
    rows = "SELECT rule, links FROM refusal_counts WHERE host = ? AND links > kept ORDER BY links DESC, rule LIMIT 20"
    return list(db.execute(rows, (key,)))


MOVED = """
SELECT urls.url, origin.url
FROM seeds CROSS JOIN urls ON urls.seed = seeds.url JOIN urls AS origin ON origin.id = seeds.url
WHERE urls.hop = 'R' AND urls.path <> '' AND trim(urls.path, 'R') = '' ORDER BY urls.id
"""  # where redirects of seeds led, and which seeds

LINKS_SEARCHED = 1 << 21  # rows, so that a large frontier takes no longer than a second or two
LINKS_RECALLED = 1 << 17  # 40 MB while they are read
LATEST_LINKS = """
SELECT via.url, urls.url FROM urls JOIN urls AS via ON via.id = urls.via
WHERE urls.hop = 'L' AND urls.host IN (SELECT id FROM hosts WHERE key IN (SELECT value FROM json_each(?)))
    AND urls.id > (SELECT max(id) FROM urls) - ?
ORDER BY urls.id DESC LIMIT ?
"""


def moved(db: Reader) -> list[tuple[str, str]]:
    """Return the places to which redirects of seeds led, each with its seed."""
    return list(db.execute(MOVED).fetchall())


def learned(db: Reader, most: int) -> list[PatternTally]:
    """Return the tallies of at most *most* URL patterns."""
    return settle.pattern_tallies(db.execute(settle.NEWEST, (most,)))


def latest_links(db: Reader, sites: Collection[str]) -> list[tuple[str, str]]:
    """Return the latest links that were queued within *sites* (scheme and authority), each as (page, target)."""
    rows = db.execute(LATEST_LINKS, (json.dumps(sorted(sites)), LINKS_SEARCHED, LINKS_RECALLED))
    return [(page, target) for page, target in rows if url.has_origin(page) and url.has_origin(target)]


def keys(db: Reader, wanted: str) -> list[str]:
    """Return the hosts that *wanted* names: `example.org`, `example.org:8443` or `https://example.org`."""
    name = wanted.lower().rstrip("/")
    rows = db.execute("SELECT key FROM hosts UNION SELECT host FROM refusal_counts ORDER BY 1")
    return [key for (key,) in rows if name in names_of(key)]


def listed(db: Reader, which: UrlFilter, hosts: Sequence[str] | None) -> Iterator[UrlRow]:
    """Yield the URLs that pass *which*, in order of discovery. If *hosts* is given, only theirs, by name."""
    among, values = which.conditions()
    if hosts is None:
        after = 0
        order = f"{_URL} WHERE urls.id > ? AND {among} ORDER BY urls.id LIMIT ?"
        while page := _page(db, order, (after, *values, PAGE)):
            yield from map(_known, page)
            after = page[-1][0]
        return
    order = f"{_URL} WHERE urls.url > ? AND urls.url < ? AND {among} ORDER BY urls.url LIMIT ?"
    for key in hosts:
        last, behind = _span(key)
        while page := _page(db, order, (last, behind, *values, PAGE)):
            yield from map(_known, page)
            last = page[-1][1]


def listed_refused(db: Reader, hosts: Sequence[str] | None) -> Iterator[RefusedLink]:
    """Yield the refusals in the sample, by name. If *hosts* is given, only theirs."""
    order = f"{_REFUSED} WHERE refusals.url > ? AND refusals.url < ? ORDER BY refusals.url LIMIT ?"
    for last, behind in [("", _BEHIND_ALL)] if hosts is None else map(_span, hosts):
        after = last
        while page := _page(db, order, (after, behind, PAGE)):
            for row in page:
                yield RefusedLink(*row)
            after = page[-1][0]


def _span(key: str) -> tuple[str, str]:
    """Return bounds around all URLs of the host *key* but none of `key.org`: "." and "0" are next to "/"."""
    return f"{key}.{_LAST}", f"{key}0"


def _page(db: Reader, order: str, values: tuple[object, ...]) -> list[Any]:
    """Return the next rows and end the transaction, so that SQLite need not keep its snapshot for us."""
    rows: list[Any] = db.execute(order, values).fetchall()
    db.execute("COMMIT")
    db.execute("BEGIN")
    return rows


def _known(row: Sequence[Any]) -> UrlRow:
    number, address, state, hop, *others = row
    return UrlRow(number, address, State(state), Hop(hop), *others)
