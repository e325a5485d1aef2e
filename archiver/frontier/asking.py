"""robots.txt in the frontier: which row holds, or will hold, the rules of a host.

A redirect moves the question to another row, which is visited before everything else and answers it for every host
that asks. A row that the crawl knows as a page of its own is left alone: it has no rules to give (RFC 9309 §2.3.1.2
lets that count as unavailable). Runs inside its caller's transaction.
"""

import sqlite3
from collections import Counter

import aiosqlite

from archiver import url
from archiver.frontier import adding
from archiver.model import Hop, NewUrl, Robots, Settlement

BEFORE_ALL = -1  # the priority of rows that lead to a robots.txt

ASK = """
INSERT INTO urls (url, host, hop, path, depth, strays, priority) VALUES (?, ?, 'P', 'P', 0, 0, -1)
ON CONFLICT (url) DO UPDATE SET priority = -1 WHERE state = 'waiting'
"""
POINT = "UPDATE hosts SET robots_url = (SELECT id FROM urls WHERE url = ?) WHERE id = ?"
TAKE_ON = """
UPDATE hosts SET robots = CASE (SELECT state FROM urls WHERE id = robots_url)
    WHEN 'waiting' THEN 'unknown' WHEN 'archived' THEN 'known' ELSE 'unreachable' END
WHERE id = ?
"""
MARK = """
UPDATE hosts SET robots_at = :at, robots =
    CASE WHEN (SELECT status FROM robots WHERE url = :row) BETWEEN 200 AND 499 THEN 'known' ELSE 'unreachable' END
WHERE robots_url = :row AND EXISTS (SELECT 1 FROM robots WHERE url = :row)
"""


async def ask(db: aiosqlite.Connection, host: int) -> None:
    """Put robots.txt of *host* into its queue, before everything else, unless it is there or answered."""
    key, asked = await _row(db, "SELECT key, robots_url FROM hosts WHERE id = ?", (host,)) or ("", None)
    if asked is None:
        address = f"{key}/robots.txt"
        await db.execute(ASK, (address, host))
        await db.execute(POINT, (address, host))
        await db.execute(TAKE_ON, (host,))


async def answer(db: aiosqlite.Connection, each: Settlement, robots: Robots) -> tuple[set[int], Counter[int]]:
    """Keep what a robots.txt said, or where it is instead: the hosts for which that is news, and new URLs by host."""
    row, added = each.claim.id, Counter[int]()
    if robots.redirect is not None:
        target, added = await _lead_to(db, each, robots.redirect)
        if target:
            await db.execute("UPDATE hosts SET robots_url = ? WHERE robots_url = ?", (target, row))
            return await _mark(db, target, each.settled), added
    await db.execute(
        "INSERT OR REPLACE INTO robots (url, status, body) VALUES (?, ?, ?)", (row, robots.status, robots.body)
    )
    return await _mark(db, row, each.settled), added


async def _lead_to(db: aiosqlite.Connection, each: Settlement, target: str) -> tuple[int, Counter[int]]:
    """The row of *target*, if it can answer for robots.txt: 0 if not."""
    path = each.claim.path + Hop.REDIRECT
    new = NewUrl(target, Hop.REDIRECT, path, depth=0, strays=0, priority=BEFORE_ALL)
    known = await _row(db, "SELECT id, host, state, path FROM urls WHERE url = ?", (target,))
    if known is None:
        added = await adding.add(db, [(new, each.claim.id)])
        found = await _row(db, "SELECT id FROM urls WHERE url = ?", (target,))
        return (int(found[0]) if found else 0), added
    row, host, state, known_path = known
    if row == each.claim.id:
        return 0, Counter()
    if state == "waiting" and (target == url.origin(target) + "/robots.txt" or is_way(known_path)):
        await db.execute("UPDATE urls SET priority = ? WHERE id = ?", (BEFORE_ALL, row))
        return int(row), Counter({int(host): 0})
    answered = await _row(db, "SELECT 1 FROM robots WHERE url = ?", (row,))
    return (int(row) if answered else 0), Counter()


def is_way(path: str) -> bool:
    """Whether a row with this hop *path* leads to nothing but a robots.txt."""
    return path.startswith(Hop.PREREQUISITE) and not path.strip(Hop.PREREQUISITE + Hop.REDIRECT)


async def _mark(db: aiosqlite.Connection, row: int, now: float) -> set[int]:
    """The hosts whose rules stand in, or are awaited from, URL *row*; marked as known where they are."""
    await db.execute(MARK, {"row": row, "at": now})
    return {int(found[0]) for found in await db.execute_fetchall("SELECT id FROM hosts WHERE robots_url = ?", (row,))}


async def _row(db: aiosqlite.Connection, sql: str, values: tuple[object, ...]) -> sqlite3.Row | None:
    async with db.execute(sql, values) as cursor:
        return await cursor.fetchone()
