"""Commit a batch of visits, and add the visits that recovery found in the WARC files.

Everything here runs in the caller's transaction. Rows are written in a fixed order: hosts, URLs, rows that refer to
URLs, counts. The settlements hold all decisions.

Recovery adds a row for each visit, and a waiting row for the URL that led to it if there is none. If recovery also
finds that URL's own record, it completes the row; otherwise the URL is visited again.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from archiver import url
from archiver.frontier import cookies, hosts, links, retry, url_queue, views
from archiver.frontier.connection import Connection
from archiver.frontier.links import Found, RecentLinks, policy_code
from archiver.frontier.port import Settled
from archiver.model import (
    LIFE,
    Claim,
    Event,
    FileState,
    Hop,
    NewUrl,
    PatternTally,
    Refusal,
    Resource,
    Settlement,
    State,
)
from archiver.policy import scope
from archiver.policy.cookies import domains_of, is_for
from archiver.policy.scope import is_guess

UPSERT = """
INSERT INTO pattern_tallies (pattern, visits, fruitful, streak, barren, listed) VALUES {rows}
ON CONFLICT (pattern) DO UPDATE SET visits = excluded.visits, fruitful = excluded.fruitful, streak = excluded.streak,
    barren = excluded.barren, listed = excluded.listed
"""
NEWEST = """
SELECT pattern, visits, fruitful, streak, barren, listed, released FROM pattern_tallies
ORDER BY released = 0, barren = 0, id DESC LIMIT ?
"""

ASKED_TWICE = "UPDATE urls SET requeued = requeued + 1 WHERE id = ?"


def save_tallies(db: Connection, settlements: Iterable[Settlement]) -> None:
    """Save the newest tally of each pattern in *settlements*."""
    latest = {tally.pattern: tally for each in settlements for tally in each.tallies}
    rows = [(t.pattern, t.visits, t.fruitful, t.streak, t.barren, t.listed) for t in latest.values()]
    db.many(UPSERT, rows)


def pattern_tallies(rows: Iterable[sqlite3.Row]) -> list[PatternTally]:
    """Return the tallies in rows of `NEWEST`, those that may be forgotten first at the beginning."""
    return [PatternTally(*row) for row in rows][::-1]


REFUSALS_KEPT = 1000  # for each rule and host, so that pages full of foreign links cannot fill the disk
LONGEST_CHAIN = 250  # redirects followed back to find a loop
COOKIE_WALL = (
    2  # times that a URL is asked again because redirects lead back to it, or it refreshes itself, with other cookies
)
PORTION = 2000  # links of one visit that are added in one transaction: some tenths of a second

Portion = tuple[Sequence[NewUrl], int]  # links, and the row of the document that names them
STORED = frozenset((Event.CAPTURE, Event.VARIANT))
UNASKED = frozenset((Event.FORBID, Event.HOLD, Event.DELAY))  # no request was made
PUT_OFF = frozenset((Event.HOLD, Event.DELAY))  # the next link to the URL may change its row

INSERT_CAPTURE = """
INSERT INTO captures (url, timestamp, status, mime, payload_digest, payload_length, warc, offset,
                      response_length, request_length, metadata_length, received, duration, truncated, revisit,
                      blocked, language)
VALUES {rows} ON CONFLICT DO NOTHING
"""
UPSERT_FILE = """
INSERT INTO warcs (name, committed, closed, digest, modified, machine) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET committed = max(warcs.committed, excluded.committed),
    closed = max(warcs.closed, excluded.closed), digest = excluded.digest, modified = excluded.modified
"""
UPDATE_URL = """
WITH new (id, state, status, failure, note, due, settled, visited, goes_by, asked_in, language) AS (VALUES {rows})
UPDATE OR ROLLBACK urls SET state = new.state,
    status = CASE new.asked_in WHEN '' THEN new.status ELSE urls.status END,
    failure = CASE new.asked_in WHEN '' THEN new.failure ELSE urls.failure END,
    note = CASE new.asked_in WHEN '' THEN new.note
           ELSE urls.note || CASE WHEN new.note = '' OR urls.note = '' THEN '' ELSE '; ' END || new.note END,
    language = new.language,
    tries_before = CASE new.language WHEN '' THEN 0 WHEN urls.language THEN tries_before ELSE tries + new.visited END,
    due = new.due, settled = new.settled, priority = coalesce(CAST(new.goes_by AS INTEGER), urls.priority),
    tries = CASE urls.state WHEN 'waiting' THEN tries ELSE 0 END + new.visited,
    requeued = requeued + CASE urls.state WHEN 'waiting' THEN 0 ELSE 1 END
FROM new WHERE urls.id = new.id AND urls.language = new.asked_in AND (urls.state = 'waiting' OR priority < 0)
"""  # a robots.txt is asked for again: only the WARC files show this
KEPT = """
WITH given (rule, host) AS (VALUES {rows}) SELECT rule, host, kept FROM given JOIN refusal_counts USING (rule, host)
"""
KNOWN_REFUSALS = "SELECT url FROM refusals WHERE url IN (SELECT value FROM json_each(?))"
INSERT_REFUSAL = "INSERT OR ROLLBACK INTO refusals (url, rule, via) VALUES {rows}"
COUNT_REFUSALS = """
INSERT INTO refusal_counts (rule, host, links, kept) VALUES {rows}
ON CONFLICT (rule, host) DO UPDATE SET links = refusal_counts.links + excluded.links,
    kept = refusal_counts.kept + excluded.kept
"""
LOOP = """
WITH RECURSIVE chain (id, via, hop, step) AS (
    SELECT id, via, hop, 1 FROM urls WHERE id = :start
    UNION ALL
    SELECT urls.id, urls.via, urls.hop, step + 1 FROM chain JOIN urls ON urls.id = chain.via
    WHERE chain.hop = 'R' AND step < :longest
)
SELECT target.id, target.host, (target.state = 'archived' OR target.language <> '') AND target.priority >= 0,
       target.state = 'archived', target.tries
FROM chain JOIN urls AS target ON target.id = chain.id WHERE target.url = :target LIMIT 1
"""
LAST_ASKED = "SELECT timestamp, status FROM captures WHERE url = ? AND language = '' ORDER BY timestamp DESC LIMIT ?"
ASK_AGAIN = """
UPDATE urls SET state = 'waiting', language = '', tries_before = 0, due = 0, requeued = requeued + 1 WHERE id = ?
"""  # its tries go on


def settle(
    db: Connection, settlements: Sequence[Settlement], files: Sequence[FileState], recent: RecentLinks
) -> tuple[Settled, list[NewUrl]]:
    """Write the batch. Return its changes, and the links that *recent* may remember after the commit."""
    settlements = _with_room(db, settlements)
    added, idle = url_queue.add_links(db, _news(settlements, recent))
    db.executemany(UPSERT_FILE, [(*_file(file), db.machine) for file in files])
    db.many(INSERT_CAPTURE, list(_captures(db, settlements)))
    rows = [_row(each) for each in settlements]
    for some in [rows] if len({row[0] for row in rows}) == len(rows) else [[row] for row in rows]:
        db.many(UPDATE_URL, some)  # several settlements of one URL are written one by one
    given_up = (each.claim.id for each in settlements if each.event is Event.FORBID and is_guess(each.claim.path))
    added.update(url_queue.named_meanwhile(db, given_up))
    db.executemany(
        "UPDATE hosts SET not_before = max(not_before, ?) WHERE id = ?",
        [(each.not_before, each.claim.host) for each in settlements if each.not_before],
    )
    views.add(db, settlements)
    later = {each.claim.url for each in settlements if each.event in PUT_OFF}
    for address in later:
        recent.drop(address)
    idle = [new for new in idle if new.url not in later]
    save_tallies(db, settlements)
    cookies.save(db, (cookie for each in settlements for cookie in each.cookies))
    refuse(db, settlements)
    again = _close_loops(db, settlements)
    added.update(again)
    resolved: set[int] = set()
    moved: dict[str, str] = {}
    for each, robots in hosts.robots_in_order(settlements):
        concerned, new = hosts.store_robots(db, each, robots, moved)
        resolved |= concerned
        added.update(new)
    return Settled(frozenset(added), sum(added.values()), frozenset(resolved), len(again)), idle


def portions(settlements: Sequence[Settlement]) -> tuple[list[Portion], list[Settlement]]:
    """Split very long lists of links off *settlements*; return the portions and the other settlements.

    Links may be added before the document that names them is settled; the result is the same.
    """
    early: list[Portion] = []
    rest: list[Settlement] = []
    for each in settlements:
        found = each.found
        if len(found) > PORTION and each.robots is None:  # a redirect of robots.txt is no link of the site
            found = tuple(sorted(found, key=lambda new: bool(new.held)))  # those are counted when the rest is settled
            last = min(len(found) - PORTION, sum(not new.held for new in found))
            early += [(found[start : min(start + PORTION, last)], each.claim.id) for start in range(0, last, PORTION)]
            rest.append(each._replace(found=found[last:]))
        else:
            rest.append(each)
    return early, rest


def _with_room(db: Connection, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
    """Return *settlements* with held URLs beyond the limit of their pattern turned into refused links."""
    notes = [new.held for each in settlements for new in each.found if new.held]
    if not notes:
        return settlements
    counts = Counter(retry.count_held(db, notes))
    bounded: list[Settlement] = []
    for each in settlements:
        found: list[NewUrl] = []
        refused = list(each.refused)
        for new in each.found:
            if new.held and counts[new.held] >= retry.MOST_HELD:
                refused.append(Refusal(new.url, new.held))
                continue
            counts[new.held] += bool(new.held)
            found.append(new)
        bounded.append(each._replace(found=tuple(found), refused=tuple(refused)))
    return bounded


def _file(file: FileState) -> tuple[str | int, ...]:
    return file.name, file.size, int(file.closed), file.digest, file.modified


def _news(settlements: Iterable[Settlement], recent: RecentLinks) -> Iterator[Found]:
    """Yield the links that may change something."""
    for each in settlements:
        found: Iterable[NewUrl] = each.found
        if each.robots is not None:  # a redirect leads to the rules then: see hosts.py
            found = [new for new in found if new.hop is not Hop.REDIRECT]
        yield from recent.select_new(found, each.claim.id)


def add_captures(db: Connection, settlements: Sequence[Settlement]) -> None:
    """Enter what was stored by visits whose hosts others have leased; these ask for the same URLs and decide."""
    db.many(INSERT_CAPTURE, list(_captures(db, settlements)))
    db.executemany(ASKED_TWICE, [(each.claim.id,) for each in settlements if each.capture is not None])


def _row(each: Settlement) -> tuple[str | int | float | None, ...]:
    state = LIFE[State.WAITING, each.event]
    visited = int(each.asked and each.event not in UNASKED)
    due = each.due if each.event is Event.RETRY else 0.0
    priority = each.priority if each.event is Event.DELAY else None
    asked_in = each.claim.language
    language = each.language if each.event is Event.VARIANT else asked_in if state is State.WAITING else ""
    end = each.settled, visited, priority, asked_in, language
    return each.claim.id, state.value, each.status, each.failure, each.note, due, *end


def _captures(db: Connection, settlements: Sequence[Settlement]) -> Iterator[tuple[object, ...]]:
    names = {each.capture.warc for each in settlements if each.capture is not None}
    files = {name: row for name in names for (row,) in db.rows("SELECT id FROM warcs WHERE name = ?", (name,))}
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
                files.get(capture.warc),
                capture.response.offset,
                capture.response.length,
                capture.request.length,
                capture.metadata.length,
                capture.received,
                each.duration,
                capture.truncated.value if capture.truncated else "",
                capture.revisit.value if capture.revisit else "",
                each.blocked,
                capture.language,
            )


def refuse(db: Connection, settlements: Iterable[Settlement]) -> None:
    """Count all links that scope refused, and keep a sample of them, each URL once."""
    kinds: list[tuple[str, str]] = []  # rule and host of every link
    once: dict[str, tuple[tuple[str, str], int]] = {}
    for each in settlements:
        via = each.claim.id
        for address, rule in each.refused:
            kind = rule, url.origin(address)
            kinds.append(kind)
            if address not in once:
                once[address] = kind, via
    links = Counter(kinds)
    if not links:
        return
    before = {(rule, host): kept for rule, host, kept in db.many(KEPT, list(links))}
    wanted = [address for address, (kind, _) in once.items() if before.get(kind, 0) < REFUSALS_KEPT]
    known = {address for (address,) in db.rows(KNOWN_REFUSALS, (json.dumps(sorted(wanted)),))}
    kept: Counter[tuple[str, str]] = Counter()
    sample: list[tuple[str, str, int]] = []
    for address in wanted:
        kind, via = once[address]
        if address not in known and before.get(kind, 0) + kept[kind] < REFUSALS_KEPT:
            kept[kind] += 1
            sample.append((address, kind[0], via))
    db.many(INSERT_REFUSAL, sorted(sample))
    db.many(COUNT_REFUSALS, [(*kind, number, kept[kind]) for kind, number in links.items()])


def _close_loops(db: Connection, settlements: Iterable[Settlement]) -> list[int]:
    """Name redirect loops; but queue a URL again if it gets other cookies now, as the page behind a cookie wall does.

    Return the hosts of the URLs that were queued, once for each URL.
    """
    again: list[int] = []
    for each in settlements:
        if not each.redirect:
            continue
        start = {"start": each.claim.id, "longest": LONGEST_CHAIN, "target": each.redirect}
        for row, host, may_be_asked, settled, tries in db.rows(LOOP, start):
            if may_be_asked and each.event in STORED and _gets_other_cookies(db, each, row, tries):
                db.execute(ASK_AGAIN, (row,))
                if settled:
                    again.append(host)
            elif row != each.claim.id:
                note = f"redirect loop: back to {each.redirect}"
                db.execute("UPDATE urls SET note = ? WHERE id = ?", (note, each.claim.id))
    return again


def _gets_other_cookies(db: Connection, each: Settlement, row: int, tries: int) -> bool:
    """True if the redirect target of *each*, in *row*, gets other cookies than when it was asked, and may be asked."""
    asked = db.rows(LAST_ASKED, (row, max(tries, 1)))
    refreshed = each.redirect == each.claim.url and not 300 <= each.status < 400
    if not asked or sum(refreshed or 300 <= status < 400 for _, status in asked) > COOKIE_WALL:
        return False
    known = cookies.of_domains(db, list(domains_of(url.host(each.redirect))))
    since = asked[0][0] / 1e6
    return any(cookie.changed >= since and is_for(cookie, each.redirect) for cookie in (*known, *each.cookies))


PLACE = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, referrer) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
IF_UNKNOWN = "ON CONFLICT DO NOTHING"
SAY_MORE = """
UPDATE urls SET hop = ?, path = ?, depth = ?, off_scope_hops = ?, priority = ?, referrer = ?
WHERE url = ? AND state = 'waiting' AND via IS NULL AND path <> ''
"""  # a row that nothing leads to was added by `_leader`
QUEUE_AGAIN = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, language = '', tries_before = 0, requeued = requeued + 1
WHERE url = ? AND (state <> 'waiting' OR language <> '')
"""  # a first try of a settled URL: it had been queued again
ASKED_AGAIN = """
UPDATE urls SET state = 'waiting', language = '', tries_before = 0, due = 0, requeued = requeued + 1
WHERE url = ? AND tries = ? AND (state = 'archived' OR language <> '') AND priority >= 0
"""  # a further try of one: a redirect led back to it with other cookies
NEXT_LANGUAGE = """
UPDATE urls SET language = :language, tries_before = tries
WHERE url = :url AND state = 'waiting' AND language NOT IN ('', :language)
"""  # only visits with an answer are in the WARC files
UNSAID = frozenset((Hop.LINK.value, Hop.REQUISITE.value))  # paths of visits whose records say nothing of them
LEAD = """
UPDATE urls SET via = (SELECT id FROM urls WHERE url = ?), seed = (SELECT id FROM urls WHERE url = ?)
WHERE url = ? AND via IS NULL
"""


INSERT_RESOURCE = """
INSERT INTO resources (uri, timestamp, mime, digest, warc, offset, length)
SELECT CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS TEXT), CAST(? AS TEXT), id, CAST(? AS INTEGER), CAST(? AS INTEGER)
FROM warcs WHERE name = ? ON CONFLICT DO NOTHING
"""


def add_resources(db: Connection, resources: Sequence[Resource]) -> None:
    """Add a row for each of *resources*."""
    if resources:
        db.executemany(
            INSERT_RESOURCE,
            [
                (each.uri, each.timestamp, each.mime, each.digest, each.span.offset, each.span.length, each.warc)
                for each in resources
            ],
        )


def record_visits(db: Connection, visits: Sequence[Claim]) -> None:
    """Add rows for the URLs of *visits* and for the URLs that led to them."""
    named = [(each, each.via) for each in visits if each.via is not None]
    keys = {url.origin(each.url) for each in visits} | {url.origin(via) for _, via in named}
    host_of = url_queue.hosts_of(db, keys)
    rows = [_visit_row(each, host_of[url.origin(each.url)]) for each in visits]
    db.executemany(f"{PLACE} {IF_UNKNOWN}", rows)
    said = (row for each, row in zip(visits, rows, strict=True) if each.via is not None or each.path not in UNSAID)
    db.executemany(SAY_MORE, [(*more, address) for address, _, *more in said])
    first = [each for each in visits if not each.language]
    db.executemany(QUEUE_AGAIN, [(each.url,) for each in first if each.tries == 0])
    db.executemany(ASKED_AGAIN, [(each.url, each.tries) for each in first if each.tries])
    variants = [{"url": each.url, "language": each.language} for each in visits if each.language]
    db.executemany(NEXT_LANGUAGE, variants)
    links.save_asks(db, ((each.url, each.ask) for each in visits))
    leaders = [_leader(each, via, host_of[url.origin(via)]) for each, via in named]
    db.executemany(f"{PLACE} {IF_UNKNOWN}", leaders)
    db.executemany(LEAD, [(each.via, each.seed, each.url) for each in visits if each.via or each.seed])
    for each in visits:
        if each.url == url.origin(each.url) + "/robots.txt":
            hosts.ask_robots(db, (host_of[url.origin(each.url)],))


def _visit_row(each: Claim, host: int) -> tuple[str | int, ...]:
    policy = policy_code(each)
    return each.url, host, each.hop.value, each.path, each.depth, each.off_scope_hops, each.priority, policy


def _leader(each: Claim, via: str, host: int) -> tuple[str | int, ...]:
    """Return a row for the document that named *each*, as far as its own row shows."""
    path = each.path[:-1]
    depth = max(0, each.depth - (each.hop is Hop.LINK))
    hop = path[-1:] if path[-1:] in set(Hop) else Hop.LINK.value
    return via, host, hop, path, depth, 0, scope.priority(path, depth), 0
