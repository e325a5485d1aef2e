"""The URL queue and the seen-set: add links as rows, each URL once, and read the URLs that are due.

One query finds the known URLs, which are most of them. Only new URLs, and waiting URLs with a shorter path, are
written. A speculative path counts as the longest: if something else names the URL later, it gets that path, and is
queued again if it was excluded as speculative.

Indexes answer each query, so its time depends on the size of the result and not of the queue. For hosts that have used
up their quota, only robots.txt and its redirects are due. Everything here runs in the caller's transaction, or only
reads.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from archiver import humanize, url
from archiver.errors import Failure
from archiver.frontier.connection import Connection, Reader, Values
from archiver.frontier.leases import HELD_BY_OTHERS, at_present, until_free
from archiver.frontier.links import CLAIM_COLUMNS, Found, claim_of, distance, policy_code
from archiver.frontier.port import EarlierFind, HostRow, HostWindow, UrlWindow
from archiver.model import Hop, NewUrl, Robots, State
from archiver.policy.limits import ThrottleState
from archiver.policy.quotas import BlockedByPerson, HeldBack, Quotas
from archiver.policy.retry import HostBackoff
from archiver.policy.scope import is_guess

KNOWN = """
SELECT urls.url, urls.id, depth, off_scope_hops, priority, urls.path, state, host
FROM json_each(?) AS given JOIN urls ON urls.url = given.value
"""
INSERT = """
INSERT OR ROLLBACK INTO urls (
    url, host, hop, path, depth, off_scope_hops, priority, referrer, via, seed, state, failure, note
)
VALUES {rows}
"""  # OR ROLLBACK, here and in settle.py: then SQLite need not be able to take back a single row
LEAD_NEARER = """
UPDATE urls SET hop = ?, path = ?, depth = ?, off_scope_hops = ?, referrer = ?, via = ?, seed = ?
WHERE id = ? AND (state = 'waiting' OR hop = 'X')
"""
REVIVE = """
UPDATE urls SET state = 'waiting', status = 0, failure = '', note = '', due = 0, tries = 0, settled = NULL
WHERE id = ? AND state IN ('excluded', 'held')
"""
NAMED_MEANWHILE = """
SELECT id, host FROM urls WHERE id IN (SELECT value FROM json_each(?)) AND state = 'excluded' AND hop NOT IN ('X', 'R')
"""
HURRY = "UPDATE urls SET priority = ? WHERE id = ? AND state = 'waiting'"


def add_links(db: Connection, links: Iterable[Found]) -> tuple[Counter[int], list[NewUrl]]:
    """Add *links*. Return the number of new URLs by host, and one link per URL that may be cached after the commit."""
    found: dict[str, Found] = {}
    for each in links:
        address = each[0].url
        known = found.get(address)
        found[address] = each if known is None else _best(known, each)
    if not found:
        return Counter(), []
    nearer: list[tuple[Found, int]] = []
    sooner: list[tuple[int, int]] = []
    revived: list[tuple[int, int]] = []
    idle: list[NewUrl] = []
    for address, row, depth, off_scope_hops, priority, path, state, host in db.rows(
        KNOWN, (json.dumps(sorted(found)),)
    ):
        new, via = found.pop(address)
        waits = state == State.WAITING
        was_guess = state == State.EXCLUDED and is_guess(path) and not is_guess(new.path)
        if was_guess or (state == State.HELD and not new.held):  # a better link names it now
            revived.append((row, host))
            waits = True
        if is_nearer := distance(new) < (is_guess(path), depth, off_scope_hops):
            nearer.append(((new, via), row))
        if is_sooner := new.priority < priority:
            sooner.append((new.priority, row))
        if waits or (state != State.HELD and not (is_nearer or is_sooner)):  # the next link may release what is held
            idle.append(new)
    seeds = _seeds(db, {via for _, via in found.values()} | {via for (_, via), _ in nearer})
    db.executemany(REVIVE, [(row,) for row, _ in revived])
    db.executemany(
        LEAD_NEARER,
        [
            (new.hop.value, new.path, new.depth, new.off_scope_hops, policy_code(new), via, seeds[via], row)
            for (new, via), row in nearer
        ],
    )
    db.executemany(HURRY, sooner)
    places = _insert(db, found.values(), seeds)
    idle.extend(new for new, _ in found.values() if not new.held)
    return Counter((*places, *(host for _, host in revived))), idle


def add_found(db: Connection, links: Sequence[Found]) -> int:
    """Add *links* and return the number of new URLs."""
    return add_links(db, links)[0].total()


def moves_seed(links: Iterable[NewUrl]) -> bool:
    """Return True if one of *links* is the target of a seed's redirect, by which the scope may grow."""
    return any(new.hop is Hop.REDIRECT and not new.path.strip(Hop.REDIRECT) for new in links)


def _insert(db: Connection, links: Collection[Found], seeds: Mapping[int, int | None]) -> list[int]:
    """Add a row for each of *links*; return the hosts of the waiting ones, once for each URL."""
    origins = [url.origin(new.url) for new, _ in links]
    hosts = hosts_of(db, set(origins))
    places = [hosts[origin] for origin in origins]
    db.many(
        INSERT,
        [
            (
                new.url,
                host,
                new.hop.value,
                new.path,
                new.depth,
                new.off_scope_hops,
                new.priority,
                policy_code(new),
                via,
                seeds[via],
                *_life(new),
            )
            for (new, via), host in zip(links, places, strict=True)
        ],
    )
    return [host for (new, _), host in zip(links, places, strict=True) if not new.held]


def _life(new: NewUrl) -> tuple[str, str, str]:
    """Return state, failure and note of a new URL."""
    return (State.HELD.value, Failure.TRAP.value, new.held) if new.held else (State.WAITING.value, "", "")


def _best(one: Found, other: Found) -> Found:
    """Return the nearer of two links to a URL, with the earlier priority; held only if both are."""
    near = other if distance(other[0]) < distance(one[0]) else one
    sooner = min(one[0].priority, other[0].priority)
    held = near[0].held if one[0].held and other[0].held else ""
    new = near[0]
    return near if (new.priority, new.held) == (sooner, held) else (new._replace(priority=sooner, held=held), near[1])


def named_meanwhile(db: Connection, rows: Iterable[int]) -> Counter[int]:
    """Queue those of *rows* again that were excluded as speculative, but have another path by now.

    Return how many, by host.
    """
    given = json.dumps(list(rows))
    found = db.rows(NAMED_MEANWHILE, (given,)) if given != "[]" else []
    db.executemany(REVIVE, [(row,) for row, _ in found])
    return Counter(int(host) for _, host in found)


def _seeds(db: Connection, rows: Collection[int]) -> dict[int, int | None]:
    """Return the seed of each row."""
    wanted = json.dumps(list(rows))
    found = db.rows("SELECT id, seed FROM urls WHERE id IN (SELECT value FROM json_each(?))", (wanted,))
    return {int(row[0]): row[1] for row in found}


ADD_HOSTS = "INSERT INTO hosts (key) SELECT value FROM json_each(?) WHERE TRUE ON CONFLICT DO NOTHING"


def hosts_of(db: Connection, keys: Collection[str]) -> dict[str, int]:
    """Return the row of each host. Hosts without a row get one."""
    wanted = sorted(keys)
    found = _known_hosts(db, wanted)
    if new := [key for key in wanted if key not in found]:
        db.execute(ADD_HOSTS, (json.dumps(new),))
        found |= _known_hosts(db, new)
    return found


def _known_hosts(db: Connection, keys: Sequence[str]) -> dict[str, int]:
    known = "SELECT key, id FROM hosts WHERE key IN (SELECT value FROM json_each(?))"
    return {str(row[0]): int(row[1]) for row in db.rows(known, (json.dumps(keys),))}


KNOWN_EARLIER = "SELECT urls.url FROM json_each(?) AS given JOIN urls ON urls.url = given.value"
TAKE = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, requeued, via, seed)
VALUES (?, ?, ?, ?, ?, ?, ?, 1, (SELECT id FROM urls WHERE url = ?), (SELECT id FROM urls WHERE url = ?))
ON CONFLICT DO NOTHING
"""


def unknown(db: Connection, addresses: Collection[str]) -> set[str]:
    """Return those of *addresses* that have no row."""
    known = {str(row[0]) for row in db.rows(KNOWN_EARLIER, (json.dumps(sorted(addresses)),))}
    return set(addresses) - known


def enqueue_earlier(db: Connection, recalled: Sequence[EarlierFind]) -> int:
    """Add waiting rows for the URLs that have none; return how many."""
    hosts = hosts_of(db, {url.origin(each.new.url) for each in recalled})
    count = 0
    for new, via, seed in recalled:
        values = (
            new.url,
            hosts[url.origin(new.url)],
            new.hop.value,
            new.path,
            new.depth,
            new.off_scope_hops,
            new.priority,
        )
        count += db.execute(TAKE, (*values, via, seed)).rowcount
    return count


# If the host may be asked, any URL counts, otherwise only robots.txt and its redirects. If its first URLs are for later
# the index of those shows whether all are. Given: ids of hosts that have used up their quotas, now, now, now.
HAS_DUE = """
CASE WHEN hosts.id NOT IN (SELECT value FROM json_each(?)) AND hosts.paused = 0
THEN EXISTS (SELECT 1 FROM (SELECT due FROM urls WHERE host = hosts.id AND state = 'waiting' LIMIT 64) f WHERE due <= ?)
     OR EXISTS (SELECT 1 FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0 AND due <= ?)
     OR hosts.waiting > (SELECT count(*) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0)
ELSE EXISTS (SELECT 1 FROM urls WHERE host = hosts.id AND state = 'waiting' AND due <= ? AND priority < 0) END
"""
COSTS_OF = "SELECT id, key, visited, received FROM hosts WHERE id IN (SELECT value FROM json_each(?))"
COSTS = "SELECT key, visited, received, waiting FROM hosts WHERE waiting > 0"
PAGES_OF = """
SELECT count(*) FROM urls WHERE host IN (SELECT value FROM json_each(?)) AND state = 'waiting' AND priority >= 0
"""


# Waiting hosts whose robots.txt is on another host, by redirect, and is not known yet.
RULES_ELSEWHERE = """
SELECT hosts.id, elsewhere.key FROM hosts JOIN urls ON urls.id = hosts.robots_url
JOIN hosts AS elsewhere ON elsewhere.id = urls.host
WHERE hosts.id IN (SELECT value FROM json_each(?)) AND hosts.robots = 'unknown' AND elsewhere.id <> hosts.id
"""


def held_back(db: Reader, quotas: Quotas) -> HeldBack:
    """Return what keeps hosts from being asked, in words."""
    found: dict[str, list[int]] = {}  # hosts and waiting URLs by the limit
    for key, visited, received, waiting in db.execute(COSTS) if quotas.any else ():
        quota = quotas.of(key)
        if not quota.block and (limit := quota.reached(visited, received)):
            sums = found.setdefault(f"--{limit.replace(':', '')}", [0, 0])
            sums[0] += 1
            sums[1] += waiting
    limits = " and ".join(_described(limit, *found[limit]) for limit in sorted(found, reverse=True))
    blocked = blocked_hosts(db, quotas)
    urls = humanize.count(sum(each.urls for each in blocked), "URL waits", "URLs wait")
    return HeldBack(limits, f"a person blocked {', '.join(each.pattern for each in blocked)}; {urls}" * bool(blocked))


def blocked_hosts(db: Reader, quotas: Quotas) -> list[BlockedByPerson]:
    """Return what a person has blocked and waits, by pattern."""
    found: dict[str, list[int]] = {}
    rows = db.execute("SELECT id, key FROM hosts WHERE waiting > 0").fetchall() if quotas.blocks else ()
    for host, key in rows:
        if pattern := quotas.block(key):
            found.setdefault(pattern, []).append(host)
    counts = {pattern: db.execute(PAGES_OF, (json.dumps(hosts),)).fetchone()[0] for pattern, hosts in found.items()}
    return [BlockedByPerson(pattern, len(hosts), counts[pattern]) for pattern, hosts in found.items()]


def _described(limit: str, hosts: int, waiting: int) -> str:
    urls = humanize.count(waiting, "URL waits", "URLs wait")
    return f"{limit} is reached by {humanize.count(hosts, 'host')}, for which {urls}"


NEVER = float("inf")

HOST_COLUMNS = """
SELECT hosts.id, hosts.key, hosts.not_before, hosts.robots, robots.status, robots.body,
       hosts.rate, hosts.rate_limit, hosts.concurrency, hosts.slow_reason, hosts.failing_since, hosts.probe_interval,
       CASE WHEN hosts.robots_next IS NULL THEN hosts.robots_at ELSE 9e999 END, hosts.received > 0,
       hosts.blocked_since
FROM hosts LEFT JOIN robots ON robots.url = hosts.robots_url
"""
MAY_BE_DUE = """
SELECT not_before, id FROM hosts
WHERE waiting > 0 AND not_before <= :due AND (not_before, id) > (:since, :last) AND {free}
ORDER BY not_before, id LIMIT :page
"""
LONG_AGO = -1e18  # before all times
PAGES = (256, 16_384)  # hosts that one statement reads: at first, and at most
DUE = f"""{HOST_COLUMNS}
WHERE hosts.id IN (SELECT value FROM json_each(?)) AND {HAS_DUE}
ORDER BY hosts.not_before, hosts.id LIMIT ?
"""  # noqa: S608  constants
SOME = f"{HOST_COLUMNS} WHERE hosts.id IN (SELECT value FROM json_each(?))"  # noqa: S608  constants
NEXT = f"""{CLAIM_COLUMNS}
WHERE urls.host = ? AND urls.state = 'waiting' AND urls.due <= ? {{which}}
ORDER BY urls.priority, urls.id LIMIT ?
"""
COUNTED = """
SELECT (SELECT min(due) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0 AND due > ? {which}),
       waiting, visited, received
FROM hosts WHERE id = ?
"""
LEADS_TO_ROBOTS = "AND urls.priority < 0"
WAITING = "SELECT id, waiting FROM hosts WHERE id IN (SELECT value FROM json_each(?))"
NEXT_DUE = """
SELECT min(due) FROM urls WHERE state = 'waiting' AND due > 0 AND due > ?
UNION ALL SELECT min(not_before) FROM hosts WHERE waiting > 0 AND not_before > ?
"""


def due_hosts(
    db: Connection, now: float, most: int, leased: Collection[int], quotas: Quotas, crawler: int
) -> list[HostRow]:
    """Return the hosts with a URL that is due, longest waiting first, without those in *leased* and of others."""
    found: list[HostRow] = []
    among = frozenset(leased)
    me = at_present(db, crawler)
    free = "TRUE" if until_free(db, me) == NEVER else f"NOT {HELD_BY_OTHERS}"
    values = {"due": now, **me._asdict()}
    others = (row for row in _may_be_due(db, MAY_BE_DUE.format(free=free), values) if row not in among)
    while len(found) < most and (next_ones := list(islice(others, min(most, 1000)))):
        ids, spent = _permitted(db, next_ones, quotas)
        found += map(_host, db.rows(DUE, (json.dumps(ids), json.dumps(spent), now, now, now, most - len(found))))
    return found


def _may_be_due(db: Connection, sql: str, values: Mapping[str, object]) -> Iterator[int]:
    """Yield the hosts that *sql* finds, each once, reading few of them if few are wanted."""
    since, last, page = LONG_AGO, 0, PAGES[0]
    seen: set[int] = set()  # others may write between two statements
    while rows := db.rows(sql, {**values, "since": since, "last": last, "page": page}):
        yield from (row for _, row in rows if row not in seen)
        seen.update(row for _, row in rows)
        since, last = rows[-1]
        page = min(4 * page, PAGES[1])


def _permitted(db: Connection, hosts: Sequence[int], quotas: Quotas) -> tuple[Sequence[int], list[int]]:
    """Return those of *hosts* that may be asked, and those of them that may be asked for a robots.txt only.

    A host that a person blocked may not be asked at all. One whose robots.txt is there has no rules meanwhile.
    """
    if not quotas.any:
        return hosts, []
    rows = db.rows(COSTS_OF, (json.dumps(hosts),))
    blocked = {host for host, key, *_ in rows if quotas.block(key)} if quotas.blocks else set()
    spent = {host for host, key, visited, received in rows if quotas.of(key).reached(visited, received)} - blocked
    elsewhere = db.rows(RULES_ELSEWHERE, (json.dumps(hosts),)) if quotas.blocks else ()
    spent |= {host for host, key in elsewhere if quotas.block(key)} - blocked
    return [host for host in hosts if host not in blocked], list(spent)


def host_rows(db: Connection, wanted: Iterable[int]) -> list[HostRow]:
    """Return the hosts *wanted* that are in the database, in this order."""
    order = list(wanted)
    found = {row[0]: _host(row) for row in db.rows(SOME, (json.dumps(order),))}
    return [found[host] for host in order if host in found]


def windows(db: Connection, wanted: Sequence[HostWindow], now: float) -> list[UrlWindow]:
    """Return the next URLs of each of the hosts *wanted*."""
    queries: list[tuple[str, Values]] = []
    for each in wanted:
        which = LEADS_TO_ROBOTS if each.prerequisites else ""
        queries.append((NEXT.format(which=which), (each.host, now, each.most)))
        queries.append((COUNTED.format(which=which), (now, each.host)))
    found = db.each(queries)
    return [_window(urls, *counts) for urls, counts in zip(found[::2], found[1::2], strict=True)]


def count_waiting(db: Connection, hosts: Iterable[int]) -> int:
    """Return the number of URLs that wait on *hosts*."""
    some = "SELECT coalesce(sum(waiting), 0) FROM hosts WHERE id IN (SELECT value FROM json_each(?))"
    return int(db.row(some, (json.dumps(list(hosts)),))[0])


def waiting(db: Connection, hosts: Iterable[int]) -> dict[int, int]:
    """Return the number of URLs that wait on each of *hosts*."""
    return dict(db.rows(WAITING, (json.dumps(list(hosts)),)))


def next_due(db: Connection, now: float, crawler: int) -> float:
    """Return the time when the next URL or lease of another crawler becomes due after *now*; infinity if none."""
    times = (float(row[0]) for row in db.rows(NEXT_DUE, (now, now)) if row[0] is not None)
    return min(*times, now + until_free(db, at_present(db, crawler)), NEVER)


def _window(urls: Iterable[Any], counts: Any) -> UrlWindow:
    due, *numbers = counts
    return UrlWindow(tuple(map(claim_of, urls)), NEVER if due is None else float(due), *numbers)


def _host(row: Any) -> HostRow:
    known = {
        "unknown": None,
        "known": Robots(row[4] or 404, row[5] or b""),
        "unreachable": Robots(row[4] or 0, row[5] or b""),
    }
    backoff = HostBackoff(row[10], row[11], row[2] if row[11] else 0.0)
    return HostRow(
        row[0], row[1], row[2], known[row[3]], ThrottleState(*row[6:10]), backoff, row[12], bool(row[13]), row[14]
    )
