"""Add seeds, and queue URLs again when a person asks for it: settled ones, and those that a trap rule holds.

A URL that is queued again has no tries; its last answer stays until the next one. If robots.txt was the reason, or was
unreachable, it is fetched again first. Each transaction takes a bounded number of URLs, because a crawl may be running.
Everything here runs in the caller's transaction.

A held URL is suspected to be in a trap. Its row is whole, and its note is `RULE: PATTERN`; a pattern begins with the
scheme, so one column says both. Of one pattern at most `MOST_HELD` rows are kept; links beyond are counted with the
refusals, under the same words.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from shlex import quote
from typing import Any

from archiver import url
from archiver.errors import Failure
from archiver.frontier.connection import Connection, Reader
from archiver.frontier.gathered import INCOMPLETE
from archiver.frontier.port import Selection
from archiver.model import LIFE, Event, State
from archiver.policy.content_ids import PROVEN
from archiver.policy.dead_ends import MAZES
from archiver.policy.patterns.leaves import DISCOVERIES, ENDINGS
from archiver.policy.patterns.tallies import SITE

StoredElsewhere = Callable[[Collection[str]], Collection[str]]  # returns those payloads that are stored elsewhere

AT_ONCE = 1000  # URLs in one transaction: some hundredths of a second, for which a crawl may have to wait

MAY_QUEUE_AGAIN = tuple(state.value for state, event in LIFE if event is Event.AGAIN)
WITHOUT_ANSWER = (State.FAILED.value, State.EXCLUDED.value)

NEXT = """
SELECT urls.id FROM urls WHERE urls.id > ? AND urls.state IN (SELECT value FROM json_each(?)) {}
ORDER BY urls.id LIMIT ?
"""
QUEUE_AGAIN = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, requeued = requeued + 1
WHERE id IN (SELECT value FROM json_each(?)) AND state IN (SELECT value FROM json_each(?))
"""
QUEUE_SEED_AGAIN = """
UPDATE urls SET state = 'waiting', due = ?, tries = 0, requeued = requeued + 1
WHERE url = ? AND state <> 'waiting' AND priority >= 0 AND id NOT IN (SELECT url FROM seeds)
"""
LAST_BLOCKED = """
SELECT url FROM captures WHERE blocked <> '' AND id = (
    SELECT max(id) FROM captures AS one WHERE one.url = captures.url AND one.language = ''
)
AND status = (SELECT status FROM urls WHERE urls.id = captures.url)
"""
WITHOUT_PAYLOAD = """
SELECT urls.id, json_group_array(DISTINCT visit.payload_digest) FROM urls
CROSS JOIN captures AS visit ON visit.url = urls.id
WHERE urls.id > ? AND visit.revisit = 'identical-payload-digest' AND urls.state = 'archived' AND NOT EXISTS (
    SELECT 1 FROM captures AS stored
    WHERE substr(stored.payload_digest, -8) = substr(visit.payload_digest, -8) AND stored.revisit = ''
      AND stored.truncated = '' AND stored.payload_length > 0 AND stored.status / 100 <> 3
      AND stored.payload_digest = visit.payload_digest
)
GROUP BY urls.id ORDER BY urls.id LIMIT ?
"""
STATUS_IN = """(urls.status BETWEEN ? AND ? AND (
    urls.status > 0 OR (urls.failure = '' AND EXISTS (SELECT 1 FROM captures WHERE captures.url = urls.id))
))"""  # of the last answer; 0 also stands for no answer at all
HOSTS_HELD_BACK = """
SELECT DISTINCT hosts.id FROM urls JOIN hosts ON hosts.id = urls.host
WHERE urls.id IN (SELECT value FROM json_each(:rows))
  AND (hosts.robots = 'unreachable' OR urls.failure = :robots OR urls.url = hosts.key || '/robots.txt')
"""
FORGET_RULES = """
UPDATE hosts SET robots = 'unknown', robots_url = NULL, robots_next = NULL WHERE id IN (SELECT value FROM json_each(?))
"""
ASK_FIRST = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, priority = -1,
    requeued = requeued + CASE state WHEN 'waiting' THEN 0 ELSE 1 END
WHERE id IN (SELECT robots_url FROM hosts WHERE id IN (SELECT value FROM json_each(:hosts)))
   OR url IN (SELECT key || '/robots.txt' FROM hosts WHERE id IN (SELECT value FROM json_each(:hosts)))
"""


def named_hosts(keys: Iterator[tuple[int, str]], wanted: Sequence[str]) -> list[int]:
    """Return the rows of the hosts in *keys* (row, key) that *wanted* names: by name, name and port, or key."""
    asked = {text.lower().rstrip("/") for text in wanted}
    return [row for row, key in keys if not asked.isdisjoint(names_of(key))]


def names_of(key: str) -> tuple[str, str, str]:
    """Return the names by which a person may call the host *key* (`https://example.org:8443`)."""
    authority = key.partition("//")[2]
    name, colon, port = authority.rpartition(":")
    return key, authority, name if colon and port.isdigit() else authority


def selection_query(wanted: Selection, hosts: Sequence[int], after: int) -> tuple[str, list[object]]:
    """Return a query for the next rows behind *after* that *wanted* selects, and its values."""
    answered = wanted.urls or wanted.statuses or wanted.blocked or wanted.truncated
    states = MAY_QUEUE_AGAIN if answered else WITHOUT_ANSWER
    values: list[object] = [after, json.dumps(states)]
    conditions = []
    if wanted.urls:
        conditions.append("urls.url IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.urls))
    else:
        conditions.append("urls.priority >= 0")  # a robots.txt is queued with the URLs that need it
        if not wanted.failures:
            conditions.append("urls.failure NOT IN (?, ?)")  # left out on purpose; other commands fetch it
            values += [Failure.RULE.value, Failure.UNCHANGED.value]
    if wanted.hosts:
        conditions.append("urls.host IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(hosts)))
    if wanted.blocked:
        conditions.append(f"urls.id IN ({LAST_BLOCKED})")
    if wanted.truncated:
        conditions.append(INCOMPLETE)
    either = [STATUS_IN] * len(wanted.statuses)
    values += [bound for span in wanted.statuses for bound in span]
    if wanted.failures:
        either.append("urls.failure IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.failures))
    if either:
        conditions.append(f"({' OR '.join(either)})")
    return NEXT.format("".join(f"AND {each} " for each in conditions)), [*values, AT_ONCE]


def missing_payloads(found: Sequence[Sequence[Any]], stored: StoredElsewhere) -> list[int]:
    """Return the rows in *found* (row, digests of missing payloads) with a payload that is not *stored* elsewhere."""
    wanted = {int(row): set(json.loads(digests)) for row, digests in found}
    there = set(stored(set[str]().union(*wanted.values())))
    return [row for row, digests in wanted.items() if not digests <= there]


def queue_again(db: Connection, rows: Sequence[int]) -> int:
    """Queue the settled ones of *rows* again and return how many."""
    which = json.dumps(list(rows))
    held = db.rows(HOSTS_HELD_BACK, {"rows": which, "robots": Failure.ROBOTS.value})
    count = db.execute(QUEUE_AGAIN, (which, json.dumps(MAY_QUEUE_AGAIN))).rowcount
    hosts = json.dumps([row[0] for row in held])
    db.execute(ASK_FIRST, {"hosts": hosts})
    db.execute(FORGET_RULES, (hosts,))
    return count


def queue_seeds_again(db: Connection, seeds: Sequence[str], due: float) -> None:
    """Queue settled URLs that become seeds again: what they lead to belongs to the crawl now."""
    db.executemany(QUEUE_SEED_AGAIN, [(due, seed) for seed in seeds])


MOST_HELD = 20_000  # URLs of one pattern
ONE_IN = 4  # pages of a pattern that often brings news, and at least as many as prove a pattern

_PATTERNS = """
SELECT note, count(*), min(url), coalesce((SELECT sum(links) FROM refusal_counts WHERE rule = note), 0)
FROM urls INDEXED BY urls_held WHERE state = 'held' GROUP BY note ORDER BY 2 DESC, note
"""
_TALLIES = """
SELECT pattern, visits, fruitful FROM pattern_tallies WHERE pattern IN (SELECT value FROM json_each(?))
"""
_COUNT_HELD = "SELECT count(*) FROM urls INDEXED BY urls_held WHERE state = 'held' AND note = ?"
_NEXT_HELD = "SELECT id FROM urls INDEXED BY urls_held WHERE state = 'held' AND note = ? ORDER BY url LIMIT ?"
_RELEASE = """
UPDATE urls SET state = 'waiting', due = 0, tries = 0, failure = '', note = '', settled = NULL, requeued = requeued + 1
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'held'
"""
_ALLOW = """
INSERT INTO pattern_tallies (pattern, visits, fruitful, streak, released) VALUES (?, 0, 0, 0, ?)
ON CONFLICT (pattern) DO UPDATE
SET released = max(pattern_tallies.released, pattern_tallies.barren - pattern_tallies.listed) + excluded.released
"""  # of barren pages beyond those that lists answer for, so many may come


@dataclass(frozen=True, slots=True)
class HeldPattern:
    """One held pattern of URLs, with its counts."""

    pattern: str  # http://example.org/calendar/N/N
    rule: str  # trap-budget: 1100
    urls: int
    example: str
    beyond: int = 0  # more links, which were counted but not kept
    visited: int = 0  # pages of the pattern that were fetched, and …
    fruitful: int = 0  # … those that brought something new

    @property
    def often_brought_news(self) -> bool:
        """True if so many of its pages brought something new that the others may be real too."""
        return self.fruitful >= PROVEN and self.fruitful * ONE_IN >= self.visited


def held_patterns(db: Reader) -> list[HeldPattern]:
    """Return the held patterns, first those that often brought news, and then those with most URLs."""
    found = [(*note_parts(note), urls, example, beyond) for note, urls, example, beyond in db.execute(_PATTERNS)]
    tallies = db.execute(_TALLIES, (json.dumps([pattern for pattern, *_ in found]),)) if found else ()
    counts = {pattern: (visits, fruitful) for pattern, visits, fruitful in tallies}
    held = [HeldPattern(*each, *counts.get(each[0], (0, 0))) for each in found]
    return sorted(held, key=lambda each: not each.often_brought_news)


def retry_command(held: HeldPattern | None = None) -> str:
    """Return the command that queues the URLs of *held*, or of all patterns; DIR is the directory."""
    if held is None or not (held.pattern.isprintable() and " " not in held.pattern):
        return "archiver retry DIR --held"
    return f"archiver retry DIR --held {quote(held.pattern)}"


def held_note(rule: str, pattern: str) -> str:
    """Return the note of a URL of *pattern* that *rule* holds."""
    return f"{rule}: {pattern}"


def note_parts(text: str) -> tuple[str, str]:
    """Return the pattern and the rule of a note."""
    rule, colon, rest = text.partition(": http")
    return (f"http{rest}", rule) if colon else ("", text)


def chosen_patterns(held: Sequence[HeldPattern], wanted: Sequence[str]) -> list[HeldPattern]:
    """Return those of *held* that *wanted* names: by a pattern, a part of it with `*`, a rule, or a URL."""
    return [each for each in held if not wanted or any(_names_pattern(text, each) for text in wanted)]


def _names_pattern(text: str, held: HeldPattern) -> bool:
    known = {held.pattern, held.rule, held.rule.partition(":")[0], held.example}
    return text in known or ("*" in text and fnmatchcase(held.pattern, text))


def count_held(db: Connection, notes: Sequence[str]) -> dict[str, int]:
    """Return the number of URLs that each of *notes* holds already."""
    return {text: int(db.row(_COUNT_HELD, (text,))[0]) for text in dict.fromkeys(notes)}


def release_held(db: Connection, held: HeldPattern, allowed: int) -> int:
    """Queue the next URLs of *held*. Return their number. *allowed*: the additional barren pages, or 0."""
    if allowed:
        db.execute(_ALLOW, (held.pattern, allowed))
    rows = [int(row[0]) for row in db.rows(_NEXT_HELD, (held_note(held.rule, held.pattern), AT_ONCE))]
    db.execute(_RELEASE, (f"[{','.join(map(str, rows))}]",))
    return len(rows)


_PATTERN_KINDS = ("", ENDINGS, DISCOVERIES, MAZES)  # names of tallies of patterns begin with one of these and the host
OF_HOST = """
SELECT pattern, visits, fruitful, streak, barren, listed, released FROM pattern_tallies
WHERE (pattern >= ? AND pattern < ?) OR (pattern >= ? AND pattern < ?)
    OR (pattern >= ? AND pattern < ?) OR (pattern >= ? AND pattern < ?) OR (pattern >= ? AND pattern < ?)
LIMIT 1000
"""

SEEDS = "SELECT urls.url FROM seeds CROSS JOIN urls ON urls.id = seeds.url ORDER BY position"
QUEUE_SEED = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, due)
VALUES (?, (SELECT id FROM hosts WHERE key = ?), 'L', '', 0, 0, 1, ?)
ON CONFLICT DO NOTHING
"""
BEGIN_PATH = """
UPDATE urls SET hop = 'L', path = '', depth = 0, off_scope_hops = 0, priority = 1, via = NULL
WHERE url = ? AND state = 'waiting' AND priority >= 0
      AND ((hop, path, depth, off_scope_hops, priority) <> ('L', '', 0, 0, 1) OR via IS NOT NULL)
"""  # unchanged rows are not written, so a resume syncs nothing
HEAD_ITSELF = "UPDATE urls SET seed = id WHERE url = ? AND path = '' AND (seed IS NULL OR seed <> id)"
COUNT_SEEDS = "SELECT count(url) FROM seeds"
INSERT_SEED = """
INSERT INTO seeds (url, position) VALUES ((SELECT id FROM urls WHERE url = ?), ?) ON CONFLICT DO NOTHING
"""


def of_host(host: str) -> tuple[str, ...]:
    """Return the values for `OF_HOST`: the bounds of the names of tallies of *host* and its patterns."""
    patterns = ((f"{kind}{host}/", f"{kind}{host}0") for kind in _PATTERN_KINDS)  # 0 follows /
    return (f"{SITE}{host}", f"{SITE}{host}!", *chain.from_iterable(patterns))


def add_seeds(db: Connection, seeds: Sequence[str], due: float) -> int:
    """Queue *seeds* and return how many were new. *due*: not before this time, and settled URLs again too."""
    if due:
        queue_seeds_again(db, seeds, due)
    keys = sorted({url.origin(seed) for seed in seeds})
    db.executemany("INSERT INTO hosts (key) VALUES (?) ON CONFLICT DO NOTHING", [(key,) for key in keys])
    db.executemany(QUEUE_SEED, [(seed, url.origin(seed), due) for seed in seeds])
    db.executemany(BEGIN_PATH, [(seed,) for seed in seeds])
    db.executemany(HEAD_ITSELF, [(seed,) for seed in seeds])
    (before,) = db.row(COUNT_SEEDS)
    db.executemany(INSERT_SEED, [(seed, before + number) for number, seed in enumerate(seeds)])
    (after,) = db.row(COUNT_SEEDS)
    return int(after - before)
