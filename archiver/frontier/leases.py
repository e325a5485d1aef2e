"""Leases of politeness groups: which crawler alone may ask the hosts of a group.

A crawler joins and gets a number that is never used again. All its leases end at the same time, unless it renews them
by one row. Another crawler may take a group over when that time has passed. From then on the former one can renew
nothing, and its settlements enter captures only. See docs/decisions/0060-leases-in-the-database.md.

Crawlers also share a budget: URLs, starts of requests and bytes a second. A crawler says what it has spent and what it
would like, several times a second, in one transaction. A URL counts as soon as a crawler has it in hand. A start is a
place in time that is given away once; one that is not used is lost. Bytes are paid afterwards, with time in which no
request starts. So the sum over all crawlers never exceeds a limit, whichever crawlers come, go or die.

The clock is the database's own: with SQLite the monotonic one of this machine, which all processes on it share and no
one can set; with PostgreSQL that of its server. Only durations cross the port. Everything here runs in the caller's
transaction, or only reads.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from archiver.frontier.connection import Connection
from archiver.frontier.orders.table import close
from archiver.frontier.port import LEASE, CrawlLimits, Grant, Wish

NEVER = float("inf")


class CrawlerAtTime(NamedTuple):
    """One crawler at one moment."""

    crawler: int  # 0: a process that does not crawl, for which no host is leased
    now: float  # by the clock of the database


def at_present(db: Connection, crawler: int) -> CrawlerAtTime:
    """Return *crawler* at the present moment."""
    return CrawlerAtTime(crawler, db.now())


ALIVE = "crawlers.ends > :now AND crawlers.ended = 0"
OTHERS_ALIVE = f"SELECT min(ends) FROM crawlers WHERE id <> :crawler AND {ALIVE}"  # noqa: S608  a constant
HELD_BY_OTHERS = f"""coalesce((
    SELECT leases.crawler FROM leases WHERE leases.politeness_group = hosts.politeness_group
), 0) IN (SELECT id FROM crawlers WHERE id <> :crawler AND {ALIVE})"""  # noqa: S608  a constant
# Without statistics of leases, PostgreSQL would read all of them for each host if this were a join.
HAS_ENDED = "SELECT ended FROM crawlers WHERE id = ?"
KNOWN = """
SELECT politeness_group, crawler, last_start, coalesce(crawlers.ends, 0), coalesce(crawlers.ended, 1)
FROM leases LEFT JOIN crawlers ON crawlers.id = leases.crawler
WHERE politeness_group IN (SELECT value FROM json_each(?))
"""
TAKE = """
INSERT INTO leases (politeness_group, crawler) VALUES {rows}
ON CONFLICT (politeness_group) DO UPDATE SET crawler = excluded.crawler
"""
WAITING_HOSTS = "SELECT count(*) FROM (SELECT 1 FROM hosts WHERE waiting > 0 LIMIT ?) AS waiting_hosts"
NAME_GROUP = "UPDATE hosts SET politeness_group = ? WHERE id = ? AND politeness_group <> ?"
GIVE_BACK = "UPDATE leases SET crawler = NULL, last_start = ? WHERE politeness_group = ? AND crawler = ?"
OWN_HOSTS = """
SELECT hosts.id FROM hosts JOIN leases ON leases.politeness_group = hosts.politeness_group
WHERE leases.crawler = ? AND hosts.id IN (SELECT value FROM json_each(?))
"""


def clear(db: Connection) -> None:
    """Forget all crawlers: none of them runs any more."""
    db.execute("DELETE FROM budget")
    db.execute("DELETE FROM leases")
    db.execute("DELETE FROM crawlers")


def join(db: Connection, name: str) -> int:
    """Add a crawler of this *name*, without leases, and return its number."""
    return int(db.row("INSERT INTO crawlers (name, ends) VALUES (?, ?) RETURNING id", (name, db.now() + LEASE))[0])


def latest(db: Connection, name: str) -> int:
    """Return the number under which the crawler *name* joined last; 0 if it never did."""
    return int(db.row("SELECT coalesce(max(id), 0) FROM crawlers WHERE name = ?", (name,))[0])


def share(db: Connection, most: int, crawlers: int) -> int:
    """Return how many hosts each crawler may lease, so that all get the same number; *crawlers*: there are at least."""
    (alive,) = db.row(f"SELECT count(*) FROM crawlers WHERE {ALIVE}", {"now": db.now()})  # noqa: S608  a constant
    parts = max(alive, crawlers)
    (hosts,) = db.row(WAITING_HOSTS, (most * parts,))
    return int(-(-hosts // parts))


def renew(db: Connection, crawler: int) -> bool:
    """Renew all leases; return False if another crawler has taken one over."""
    ends = "UPDATE crawlers SET ends = ? WHERE id = ? AND ended = 0"
    return bool(db.execute(ends, (db.now() + LEASE, crawler)).rowcount)


def lease(db: Connection, crawler: int, wanted: Mapping[int, str]) -> dict[int, float]:
    """Lease the groups of hosts that no other crawler has; *wanted*: hosts and their groups.

    Return the hosts that we have now. For those taken from another crawler, say how many seconds ago it may have
    started a request; for all others, infinity.
    """
    if has_ended(db, crawler):
        return {}
    me = at_present(db, crawler)
    ago = dict.fromkeys(wanted.values(), NEVER)
    new, dead = set(ago), set[int]()
    for group, owner, last_start, ends, ended in db.rows(KNOWN, (json.dumps(sorted(new)),)):
        if owner == crawler:
            new.discard(group)
        elif owner is not None and ends > me.now and not ended:
            new.discard(group)
            del ago[group]
        else:
            ago[group] = max(0.0, me.now - (last_start if owner is None else ends))
            dead.update(() if owner is None else (owner,))
    db.many(TAKE, [(group, crawler) for group in sorted(new)])
    db.executemany("UPDATE crawlers SET ended = 1 WHERE id = ?", [(owner,) for owner in sorted(dead)])
    db.executemany(NAME_GROUP, [(group, host, group) for host, group in wanted.items()])
    return {host: ago[group] for host, group in wanted.items() if group in ago}


def give_back(db: Connection, crawler: int, last_starts: Mapping[str, float]) -> None:
    """Give groups back, with the number of seconds since their latest requests started."""
    now = db.now()
    db.executemany(GIVE_BACK, [(now - ago, group, crawler) for group, ago in last_starts.items()])


def leave(db: Connection, crawler: int, last_starts: Mapping[str, float]) -> None:
    """Give all groups back; of those not in *last_starts* we assume a request right now. No order waits for us."""
    give_back(db, crawler, last_starts)
    db.execute("UPDATE crawlers SET ends = min(ends, ?), ended = 1 WHERE id = ?", (db.now(), crawler))
    close(db, db.now())


def has_ended(db: Connection, crawler: int) -> bool:
    """Return True if *crawler* has left, another one has taken a group over from it, or a new run has forgotten it."""
    row = db.row(HAS_ENDED, (crawler,)) if crawler else (0,)
    return row is None or bool(row[0])


def lost(db: Connection, crawler: int, hosts: Collection[int]) -> frozenset[int]:
    """Return those of *hosts* that *crawler* had leased and has not any more, so that others may decide about them."""
    if not has_ended(db, crawler):
        return frozenset()
    own = {int(row[0]) for row in db.rows(OWN_HOSTS, (crawler, json.dumps(sorted(hosts))))}
    return frozenset(hosts) - own


def decide(db: Connection, crawler: int, host: int, act: Callable[[Connection, int], int | None]) -> int | None:
    """Call *act* for *host*, unless *crawler* has lost its lease."""
    return None if lost(db, crawler, (host,)) else act(db, host)


def until_free(db: Connection, me: CrawlerAtTime) -> float:
    """Return the seconds until the leases of another crawler may end; infinity if there is no other."""
    ends = db.row(OTHERS_ALIVE, me._asdict())[0] if me.crawler else None
    return NEVER if ends is None else float(ends) - me.now


AHEAD = 0.5  # seconds: no place in time is given away earlier

VISITED = "SELECT coalesce(sum(visited), 0) FROM hosts"
OTHERS = f"SELECT coalesce(sum(urls), 0) FROM crawlers WHERE id <> :crawler AND {ALIVE}"  # noqa: S608  a constant
READ = "SELECT next_start, paid_until FROM budget"
WRITE = """
INSERT INTO budget (id, next_start, paid_until) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET next_start = excluded.next_start, paid_until = excluded.paid_until
"""


def draw(db: Connection, crawler: int, limits: CrawlLimits, wish: Wish) -> Grant:
    """Take what *wish* says off the budget, as far as there is so much."""
    me = at_present(db, crawler)
    urls, used_up = _urls(db, me, limits, wish) if limits.urls else (wish.urls, False)
    next_start, paid_until = db.row(READ) or (0.0, 0.0)
    starts: list[float] = []
    if limits.step:
        next_start = max(next_start, me.now)
        while len(starts) < wish.starts and next_start < me.now + AHEAD:
            starts.append(next_start - me.now)
            next_start += limits.step
    if limits.bandwidth:
        paid_until = max(paid_until, me.now) + wish.received / limits.bandwidth
    db.execute(WRITE, (next_start, paid_until))
    return Grant(urls, used_up, tuple(starts), max(0.0, paid_until - me.now))


def _urls(db: Connection, me: CrawlerAtTime, limits: CrawlLimits, wish: Wish) -> tuple[int, bool]:
    """Return how many further URLs the crawler may hand out, and whether none is left for anyone."""
    visited = db.row(VISITED)[0]
    left = limits.urls - visited - db.row(OTHERS, me._asdict())[0] - wish.in_hand
    urls = max(0, min(wish.urls, left))
    db.execute("UPDATE crawlers SET urls = ? WHERE id = ?", (wish.in_hand + urls, me.crawler))
    return urls, visited >= limits.urls
