"""The one transaction of the crawl: what a batch of visits means, in SQL, in a fixed order of sets of rows.

Hosts before URLs, URLs before what speaks of them, counts last. Runs inside a transaction that its caller
begins and commits; nothing here decides anything that the settlements do not say.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import aiosqlite

from archiver import url
from archiver.frontier.port import Settled
from archiver.model import LIFE, Event, FileState, Hop, Settlement, State

REFUSALS_KEPT = 1000  # for each rule and host, so that a page full of foreign links cannot fill the disk
LONGEST_CHAIN = 250  # redirects looked back upon for a loop

INSERT_URL = """
INSERT INTO urls (url, host, hop, path, depth, strays, priority, via, seed)
VALUES (?, (SELECT id FROM hosts WHERE key = ?), ?, ?, ?, ?, ?, ?, (SELECT seed FROM urls WHERE id = ?))
ON CONFLICT (url) DO UPDATE
SET hop = excluded.hop, path = excluded.path, depth = excluded.depth, strays = excluded.strays,
    priority = excluded.priority, via = excluded.via, seed = excluded.seed
WHERE state = 'waiting' AND tries = 0 AND excluded.priority < priority
"""
INSERT_CAPTURE = """
INSERT OR IGNORE INTO captures (url, timestamp, status, mime, payload_digest, payload_length, warc, offset,
                                response_length, request_length, metadata_length, received, took, truncated)
VALUES (?, ?, ?, ?, ?, ?, (SELECT id FROM warcs WHERE name = ?), ?, ?, ?, ?, ?, ?, ?)
"""
UPSERT_FILE = """
INSERT INTO warcs (name, committed, closed) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET committed = max(committed, excluded.committed), closed = max(closed, excluded.closed)
"""
UPDATE_URL = """
UPDATE urls SET state = ?, status = ?, failure = ?, note = ?, due = ?, tries = tries + ?, settled = ?
WHERE id = ? AND state = 'waiting'
"""
INSERT_REFUSAL = """
INSERT OR IGNORE INTO refusals (url, rule, via) SELECT ?, ?, ?
WHERE coalesce((SELECT links FROM refusal_counts WHERE rule = ? AND host = ?), 0) < ?
"""
LOOP = """
WITH RECURSIVE chain (id, via, hop, step) AS (
    SELECT id, via, hop, 1 FROM urls WHERE id = :start
    UNION ALL
    SELECT urls.id, urls.via, urls.hop, step + 1 FROM chain JOIN urls ON urls.id = chain.via
    WHERE chain.hop = 'R' AND step < :longest
)
SELECT 1 FROM chain JOIN urls AS target ON target.id = chain.id WHERE target.url = :target LIMIT 1
"""


async def settle(db: aiosqlite.Connection, settlements: Sequence[Settlement], files: Sequence[FileState]) -> Settled:
    """Write the whole batch; the caller commits."""
    before = await _scalar(db, "SELECT coalesce(max(id), 0) FROM urls")
    found = [(new, settlement.claim.id) for settlement in settlements for new in settlement.found]
    keys = {url.origin(new.url) for new, _ in found}
    keys |= {url.origin(each.robots.redirect) for each in settlements if each.robots and each.robots.redirect}
    await db.executemany("INSERT OR IGNORE INTO hosts (key) VALUES (?)", [(key,) for key in sorted(keys)])
    await db.executemany(
        INSERT_URL,
        [
            (new.url, url.origin(new.url), new.hop.value, new.path, new.depth, new.strays, new.priority, via, via)
            for new, via in found
        ],
    )
    await db.executemany(UPSERT_FILE, [(file.name, file.size, int(file.closed)) for file in files])
    await db.executemany(INSERT_CAPTURE, list(_captures(settlements)))
    await db.executemany(UPDATE_URL, [_row(each) for each in settlements])
    await db.executemany(
        "UPDATE hosts SET parked = max(parked, ?) WHERE id = ?", [(each.park, each.claim.host) for each in settlements if each.park]
    )
    await _refuse(db, settlements)
    await _name_loops(db, settlements)
    resolved: set[int] = set()
    for each in settlements:
        if each.robots is not None:
            resolved |= await _robots(db, each)
    async with db.execute("SELECT host, count(*) FROM urls WHERE id > ? GROUP BY host", (before,)) as cursor:
        added = {int(row[0]): int(row[1]) async for row in cursor}
    return Settled(frozenset(added), sum(added.values()), frozenset(resolved))


def _row(each: Settlement) -> tuple[str | int | float | None, ...]:
    state = LIFE[State.WAITING, each.event]
    visited = int(each.event is not Event.FORBID)
    due = each.due if each.event is Event.RETRY else 0.0
    return state.value, each.status, each.failure, each.note, due, visited, each.settled, each.claim.id


def _captures(settlements: Iterable[Settlement]) -> Iterable[tuple[str | int | float, ...]]:
    for each in settlements:
        capture = each.capture
        if capture is not None:
            yield (
                each.claim.id,
                capture.timestamp,
                capture.status,
                capture.mime,
                capture.payload_digest,
                capture.payload_length,
                capture.warc,
                capture.response.offset,
                capture.response.length,
                capture.request.length,
                capture.metadata.length,
                capture.received,
                each.took,
                capture.truncated.value if capture.truncated else "",
            )


async def _refuse(db: aiosqlite.Connection, settlements: Sequence[Settlement]) -> None:
    refused = [(refusal, each.claim.id, url.origin(refusal.url)) for each in settlements for refusal in each.refused]
    if not refused:
        return
    await db.executemany(
        INSERT_REFUSAL, [(refusal.url, refusal.rule, via, refusal.rule, host, REFUSALS_KEPT) for refusal, via, host in refused]
    )
    counts = Counter((refusal.rule, host) for refusal, _, host in refused)
    await db.executemany(
        "INSERT INTO refusal_counts (rule, host, links) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET links = links + excluded.links",
        [(rule, host, links) for (rule, host), links in counts.items()],
    )


async def _name_loops(db: aiosqlite.Connection, settlements: Sequence[Settlement]) -> None:
    for each in settlements:
        for new in each.found:
            if new.hop is Hop.REDIRECT:
                looking = {"start": each.claim.id, "longest": LONGEST_CHAIN, "target": new.url}
                if await _scalar(db, LOOP, looking):
                    note = f"redirect loop: back to {new.url}"
                    await db.execute("UPDATE urls SET note = ? WHERE id = ?", (note, each.claim.id))


async def _robots(db: aiosqlite.Connection, each: Settlement) -> set[int]:
    """Keep what a robots.txt said, or where its rules are instead; the hosts for which that is news."""
    robots, row = each.robots, each.claim.id
    if robots is None:
        return set()
    if robots.redirect:
        await db.execute(
            INSERT_URL,
            (robots.redirect, url.origin(robots.redirect), Hop.REDIRECT.value, each.claim.path + "R", 0, 0, -1, row, row),
        )
        target = await _scalar(db, "SELECT id FROM urls WHERE url = ?", (robots.redirect,))
        # A target that was archived as something else has no rules to give; then the answer at hand is all there is.
        usable = await _scalar(
            db, "SELECT 1 FROM urls WHERE id = ? AND id <> ? AND (state = 'waiting' OR id IN (SELECT url FROM robots))", (target, row)
        )
        if usable:
            await db.execute("UPDATE hosts SET robots_url = ? WHERE robots_url = ?", (target, row))
            await db.execute("UPDATE urls SET priority = -1 WHERE id = ? AND state = 'waiting'", (target,))
            return await _answered(db, target)
    await db.execute("INSERT OR REPLACE INTO robots (url, status, body) VALUES (?, ?, ?)", (row, robots.status, robots.body))
    return await _answered(db, row)


async def _answered(db: aiosqlite.Connection, row: int) -> set[int]:
    """The hosts whose rules stand in, or are awaited from, URL *row*; marked as known where they are."""
    await db.execute(
        """UPDATE hosts SET robots_at = unixepoch(), robots =
               CASE WHEN (SELECT status FROM robots WHERE url = :row) BETWEEN 200 AND 499 THEN 'known' ELSE 'unreachable' END
           WHERE robots_url = :row AND EXISTS (SELECT 1 FROM robots WHERE url = :row)""",
        {"row": row},
    )
    async with db.execute("SELECT id FROM hosts WHERE robots_url = ?", (row,)) as cursor:
        return {int(found[0]) async for found in cursor}


async def _scalar(db: aiosqlite.Connection, sql: str, values: Sequence[object] | dict[str, object] = ()) -> int:
    async with db.execute(sql, values) as cursor:
        row = await cursor.fetchone()
    return int(row[0]) if row is not None and row[0] is not None else 0
