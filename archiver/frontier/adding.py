"""The seen-set: found URLs become rows, each once, by the shortest way that leads to it.

What is known is looked up in one question, and most links end there; only what is new, or has come nearer while it
waits, is written. A way by a guess is the longest of all: what only scripts have named becomes what it is when
something names it for certain, and waits again if it was given up as a guess. Runs inside its caller's transaction.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable

import aiosqlite

from archiver import url
from archiver.model import NewUrl, State
from archiver.scope import is_guess

KNOWN = """
SELECT urls.url, urls.id, depth, strays, priority, urls.path, state, host
FROM json_each(?) AS given JOIN urls ON urls.url = given.value
"""
INSERT = """
INSERT INTO urls (url, host, hop, path, depth, strays, priority, via, seed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
LEAD_NEARER = """
UPDATE urls SET hop = ?, path = ?, depth = ?, strays = ?, via = ?, seed = ?
WHERE id = ? AND (state = 'waiting' OR hop = 'X')
"""
REVIVE = """
UPDATE urls SET state = 'waiting', status = 0, failure = '', note = '', due = 0, tries = 0, settled = NULL
WHERE id = ? AND state = 'excluded'
"""
NAMED_MEANWHILE = """
SELECT id, host FROM urls WHERE id IN (SELECT value FROM json_each(?)) AND state = 'excluded' AND hop NOT IN ('X', 'R')
"""
HURRY = "UPDATE urls SET priority = ? WHERE id = ? AND state = 'waiting'"

Found = tuple[NewUrl, int]  # a URL, and the row of the document that names it


async def add(db: aiosqlite.Connection, links: Iterable[Found]) -> Counter[int]:
    """Make *links* known; how many new URLs each host has got."""
    found: dict[str, Found] = {}
    for new, via in links:
        known = found.get(new.url)
        found[new.url] = (new, via) if known is None else _best(known, (new, via))
    if not found:
        return Counter()
    nearer: list[tuple[Found, int]] = []
    sooner: list[tuple[int, int]] = []
    revived: list[tuple[int, int]] = []
    for address, row, depth, strays, priority, path, state, host in await db.execute_fetchall(
        KNOWN, (json.dumps(list(found)),)
    ):
        new, via = found.pop(address)
        if state == State.EXCLUDED and is_guess(path) and not is_guess(new.path):
            revived.append((row, host))
        if _far(new) < (is_guess(path), depth, strays):
            nearer.append(((new, via), row))
        if new.priority < priority:
            sooner.append((new.priority, row))
    seeds = await _seeds(db, {via for _, via in found.values()} | {via for (_, via), _ in nearer})
    await db.executemany(REVIVE, [(row,) for row, _ in revived])
    await db.executemany(
        LEAD_NEARER,
        [(new.hop.value, new.path, new.depth, new.strays, via, seeds[via], row) for (new, via), row in nearer],
    )
    await db.executemany(HURRY, sooner)
    hosts = await hosts_of(db, {url.origin(address) for address in found})
    places = [hosts[url.origin(address)] for address in found]
    await db.executemany(
        INSERT,
        [
            (new.url, host, new.hop.value, new.path, new.depth, new.strays, new.priority, via, seeds[via])
            for (new, via), host in zip(found.values(), places, strict=True)
        ],
    )
    return Counter((*places, *(host for _, host in revived)))


def _best(one: Found, other: Found) -> Found:
    """The nearer of two ways to a URL, and the sooner of their priorities."""
    near = other if _far(other[0]) < _far(one[0]) else one
    sooner = min(one[0].priority, other[0].priority)
    return near if near[0].priority == sooner else (near[0]._replace(priority=sooner), near[1])


def _far(new: NewUrl) -> tuple[bool, int, int]:
    return is_guess(new.path), new.depth, new.strays


async def named_meanwhile(db: aiosqlite.Connection, rows: Iterable[int]) -> Counter[int]:
    """Those of *rows*, just given up as guesses, that became more than that while they were asked for wait again.

    How many of each host that are.
    """
    given = json.dumps(list(rows))
    found = await db.execute_fetchall(NAMED_MEANWHILE, (given,)) if given != "[]" else []
    await db.executemany(REVIVE, [(row,) for row, _ in found])
    return Counter(int(host) for _, host in found)


async def _seeds(db: aiosqlite.Connection, rows: Collection[int]) -> dict[int, int | None]:
    """The seed at the head of each row's path."""
    wanted = json.dumps(list(rows))
    found = await db.execute_fetchall(
        "SELECT id, seed FROM urls WHERE id IN (SELECT value FROM json_each(?))", (wanted,)
    )
    return {int(row[0]): row[1] for row in found}


async def hosts_of(db: aiosqlite.Connection, keys: Collection[str]) -> dict[str, int]:
    """The row of each host, made where there is none."""
    wanted = json.dumps(sorted(keys))
    await db.execute("INSERT OR IGNORE INTO hosts (key) SELECT value FROM json_each(?)", (wanted,))
    found = await db.execute_fetchall(
        "SELECT key, id FROM hosts WHERE key IN (SELECT value FROM json_each(?))", (wanted,)
    )
    return {str(row[0]): int(row[1]) for row in found}
