"""Pages of rows for the control room, read from the database of a crawl. Read only, and from indexes.

Every answer has at most `MOST` rows. Nothing here depends on the size of the queue: lists go along an index, and a list
for which there is no index looks at a bounded part of the table and says where the next call goes on. Tables of hosts
and of rules may be read whole.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, NamedTuple

from archiver.collection.named_crawl import NamedCrawl
from archiver.collection.store import StoredFiles
from archiver.config.live_settings import LIVE
from archiver.config.secret_settings import without_secrets
from archiver.config.settings import Settings, every_setting, key_of
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import retry
from archiver.frontier.connection import Reader
from archiver.frontier.orders import table
from archiver.frontier.totals import BLOCKS_US
from archiver.humanize import printable
from archiver.policy import limits
from archiver.policy.limits import ThrottleState
from archiver.policy.quotas import NO_QUOTAS, Allowance, Quotas

MOST = 500  # rows of an answer
LONGEST = 4000  # characters of a URL
SPAN = 20_000  # rows of urls that are looked at in one query
PATIENCE = 0.2  # seconds that a search looks for more
LATER = 200  # waiting URLs of a host, up to which we look if all of them wait for a retry

Json = dict[str, Any]

COUNTS = """
SELECT coalesce(sum(waiting), 0), coalesce(sum(archived), 0), coalesce(sum(failed), 0), coalesce(sum(excluded), 0),
       coalesce(sum(held), 0), coalesce(sum(received), 0), count(id) FROM hosts
"""
RULES = "SELECT state, count(*) FROM urls WHERE priority < 0 AND state <> 'waiting' GROUP BY state"
WARCS = "SELECT count(*), coalesce(sum(committed), 0) FROM warcs"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What the page asks of a list; "" for what it leaves out."""

    after: str = ""
    search: str = ""
    sort: str = ""
    host: str = ""
    state: str = ""


def counts(db: Reader) -> Json:
    """Return the URLs by state, and what is stored."""
    names = ("waiting", "archived", "failed", "excluded", "held", "received", "hosts")
    found = dict(zip(names, map(int, db.execute(COUNTS).fetchone()), strict=True))
    for state, rules in db.execute(RULES).fetchall():  # a robots.txt does not count as a URL of the site
        found[state] -= int(rules)
    warcs, stored = db.execute(WARCS).fetchone()
    return {**found, "warcs": int(warcs), "stored": int(stored)}


def shown(text: object, longest: int = LONGEST) -> str:
    """Return *text* as one printable line."""
    return printable(str(text), longest)


def settings_of(crawl: NamedCrawl, db: Reader) -> Json:
    """Return the settings that can be changed while a crawl runs, as text by key."""
    try:
        settings = without_secrets(crawl.settings(db))
    except ConfigError as error:
        return {"error": shown(error)}
    return {key: shown(", ".join(values)) for key, values in _written(settings) if key in LIVE}


def _written(settings: Settings) -> Iterator[tuple[str, list[str]]]:
    """Yield each setting as text."""
    for part, entry in every_setting():
        value, kind = getattr(getattr(settings, part), entry.name), entry.metadata["kind"]
        yield key_of(entry), [_text(kind.write(one)) for one in (value if entry.metadata["many"] else (value,))]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


SORTED = {
    "waiting": ("waiting", "DESC"),
    "done": ("archived", "DESC"),
    "failed": ("failed", "DESC"),
    "name": ("key", "ASC"),
}
HOSTS = f"""
SELECT id, key, waiting, archived, failed, not_before, robots, visited, received,
       paused * CASE blocked_since WHEN 0 THEN 2 ELSE 1 END, probe_interval, failing_since,
       CASE WHEN waiting BETWEEN 1 AND {LATER} AND waiting =
            (SELECT count(*) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0) THEN
            (SELECT min(due) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0) END,
       rate, rate_limit, concurrency, slow_reason
FROM hosts WHERE {{}} ORDER BY {{}} {{}}, id LIMIT ?
"""  # noqa: S608 - a constant


class _HostRow(NamedTuple):
    id: int
    key: str
    waiting: int
    archived: int
    failed: int
    not_before: float
    robots: str
    visited: int
    received: int
    paused: int
    probe: float
    failing: float
    due: float | None  # of the first of its URLs, if all of them wait for a retry; None: it has many, or none

    def why(self, quota: Allowance, now: float) -> tuple[str, float | None]:
        """Return what the host waits for, and until when if that is known."""
        if not self.waiting:
            return "", None
        if self.paused:
            return "refuses us, paused" if self.paused == BLOCKS_US else "needs a login", None
        if quota.block:
            return f"blocked by a person: {quota.block}", None
        if reached := quota.reached(self.visited, self.received):
            return f"held back by {reached}", None
        if self.not_before > now:
            return "asleep, next probe" if self.probe else "retry-after", self.not_before
        if self.due is not None and self.due > now:
            return "retry", self.due
        return "" if self.robots == "known" or quota.ignores_robots else "robots.txt", None


def hosts(db: Reader, asked: ListQuery, live: Json | None, now: float, *, quotas: Quotas = NO_QUOTAS) -> Json:
    """Return hosts with what each of them waits for; *live*: what the running crawl says."""
    column, way = SORTED.get(asked.sort, SORTED["waiting"])
    where, values = ["1 = 1"], list[object]()
    if asked.search:
        where.append("instr(key, ?) > 0")
        values.append(asked.search.lower())
    if len(last := _cursor(asked.after, 2)) == 2:
        sign = "<" if way == "DESC" else ">"
        where.append(f"({column} {sign} ? OR {column} = ? AND id > ?)")
        values += [last[0], last[0], last[1]]
    rows = db.execute(HOSTS.format(" AND ".join(where), column, way), (*values, MOST + 1)).fetchall()
    known = {str(each.get("key")): each for each in (live or {}).get("hosts") or () if isinstance(each, dict)}
    found = [_host(row, known.get(row[1], {}), quotas.of(row[1]), now) for row in rows[:MOST]]
    place = {"waiting": 2, "archived": 3, "failed": 4, "key": 1}[column]
    return {"rows": found, "next": _next(rows, lambda row: [row[place], row[0]])}


def _host(row: Sequence[Any], live: Json, quota: Allowance, now: float) -> Json:
    host, throttle = _HostRow(*row[:-4]), ThrottleState(*row[-4:])
    why, until = host.why(quota, now)
    return {
        "key": shown(host.key),
        "waiting": host.waiting,
        "active": live.get("active"),
        "done": host.archived,
        "failed": host.failed,
        "rate": throttle.rate or None,
        "until": until,
        "why": shown(why or live.get("why") or ""),
        "slowed": shown(limits.slowed(throttle)),
        "robots": "ignored" if quota.ignores_robots else host.robots,
        "blocked": bool(quota.block),
        "failing_since": host.failing or None,
    }


def _cursor(text: str, parts: int) -> list[Any]:
    """Return the parts of a cursor; an empty list if it is none of ours."""
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list) or len(found) != parts:
        return []
    good = all(isinstance(each, str | int) and (isinstance(each, str) or abs(each) < 1 << 62) for each in found)
    return found if good else []


def _next(rows: Sequence[Any], key: Any) -> str | None:
    return json.dumps(key(rows[MOST - 1])) if len(rows) > MOST else None


QUEUE = """
SELECT urls.id, urls.url, urls.priority, urls.depth, urls.due, coalesce(above.url, '')
FROM urls LEFT JOIN urls AS above ON above.id = urls.via
WHERE urls.host = (SELECT id FROM hosts WHERE key = ?) AND urls.state = 'waiting' AND (urls.priority, urls.id) > (?, ?)
ORDER BY urls.priority, urls.id LIMIT ?
"""
FIRST_HOST = "SELECT key FROM hosts ORDER BY waiting DESC, id LIMIT 1"


def queue(db: Reader, asked: ListQuery) -> Json:
    """Return the waiting URLs of a host in the order in which they go; without a host, of the one with most."""
    first = db.execute(FIRST_HOST).fetchone()
    host = asked.host or (first[0] if first else "")
    last = _cursor(asked.after, 2)
    priority, number = last if last and all(isinstance(each, int) for each in last) else (-(1 << 31), 0)
    rows = db.execute(QUEUE, (host, priority, number, MOST + 1)).fetchall()
    found = [
        {"url": shown(url), "priority": priority, "depth": depth, "due": due or None, "via": shown(via)}
        for _, url, priority, depth, due, via in rows[:MOST]
    ]
    return {"host": shown(host), "rows": found, "next": _next(rows, lambda row: [row[2], row[0]])}


URLS = """
SELECT id, url, state, status, failure, note FROM urls
WHERE id > ? AND id <= ? {} ORDER BY id LIMIT ?
"""
STATES = ("waiting", "archived", "failed", "excluded", "held")
LAST = "SELECT coalesce(max(id), 0) FROM urls"


def urls(db: Reader, asked: ListQuery) -> Json:
    """Return URLs in the order of discovery. A search that takes long ends early, and says where to go on."""
    condition, values = "", list[object]()
    if asked.state in STATES:
        condition += " AND state = ?"
        values.append(asked.state)
    if asked.search:
        condition += " AND instr(url, ?) > 0"
        values.append(asked.search)
    cursor = _cursor(asked.after, 1)
    after = cursor[0] if cursor and isinstance(cursor[0], int) else 0
    (last,) = db.execute(LAST).fetchone()
    found, end = list[Json](), time.monotonic() + PATIENCE
    while after < last and len(found) < MOST and time.monotonic() < end:
        wanted = MOST - len(found)
        rows = db.execute(URLS.format(condition), (after, after + SPAN, *values, wanted)).fetchall()
        found += [_url(row) for row in rows]
        after = rows[-1][0] if len(rows) == wanted else after + SPAN
    return {"rows": found, "next": json.dumps([after]) if after < last else None}


def _url(row: Sequence[Any]) -> Json:
    _, url, state, status, failure, note = row
    reason = note if failure and note.startswith(failure) else ": ".join(filter(None, (failure, note)))
    return {"url": shown(url), "state": state, "status": status, "note": shown(reason, 1000)}


REFUSED = "SELECT rule, sum(links) AS n FROM refusal_counts GROUP BY rule ORDER BY n DESC, rule LIMIT ?"
SAMPLE = "SELECT rule, url FROM refusals LIMIT ?"
BLOCKED = """
SELECT key, blocked_since, slow_reason FROM hosts WHERE paused = 1 ORDER BY waiting DESC, id LIMIT ?
"""
HELD = 200  # patterns


def refusals(crawl: NamedCrawl, db: Reader) -> Json:
    """Return the rules that refuse links, what is held as a suspected trap, and hosts that get no request."""
    examples = dict(reversed(db.execute(SAMPLE, (SPAN,)).fetchall()))
    rows = [
        {"rule": shown(rule, 1000), "count": int(links), "example": shown(examples.get(rule, ""))}
        for rule, links in db.execute(REFUSED, (MOST,)).fetchall()
    ]
    held = [
        {
            "pattern": shown(each.pattern),
            "count": each.urls + each.beyond,
            "example": shown(each.example),
            "rule": shown(each.rule),
            "command": shown(retry.retry_command(each).replace(" DIR ", f" {quote(crawl.name)} ")),
        }
        for _, each in zip(range(HELD), retry.held_patterns(db), strict=False)
    ]
    blocked = [
        {"host": shown(key), "since": since or None, "why": "it refuses us" if since else "it needs a login"}
        for key, since, _ in db.execute(BLOCKED, (MOST,)).fetchall()
    ]
    return {"rows": rows, "held": held, "blocked": [*_blocked_by_people(crawl, db), *blocked], "next": None}


def _blocked_by_people(crawl: NamedCrawl, db: Reader) -> list[Json]:
    """Return the patterns of hosts that people have blocked, and since when as far as an order says so."""
    try:
        written = dict(_written(without_secrets(crawl.settings(db))))
    except ConfigError:  # its settings cannot be read
        return []
    given = {
        each.arguments[0]: each.given for each in table.orders(db, MOST) if each.verb == "block" and each.arguments
    }
    return [
        {
            "host": shown(pattern),
            "pattern": shown(pattern),
            "since": given.get(pattern),
            "why": f"blocked by a person: {shown(pattern)}",
        }
        for pattern in written.get("block", [])[:MOST]
    ]


RULE_KEYS = ("scope", "scope-surt", "include", "exclude", "exclude-ext", "without", "max-depth", "max-hops", "host")


def rules(crawl: NamedCrawl, db: Reader) -> Json:
    """Return the rules of the settings, with the number of links that each of them has refused."""
    hits = {str(rule): int(links) for rule, links in db.execute(REFUSED, (10_000,)).fetchall()}
    found = list[Json]()
    for key, values in _written(without_secrets(crawl.settings(db))):
        many = key in ("scope-surt", "include", "exclude", "exclude-ext", "without", "host")
        if key not in RULE_KEYS:
            continue
        for number, value in enumerate(values):
            names = (f"{key}[{number}]: {value}", f"{key}: {value}") if many else (f"{key}: {value}",)
            refused = next((hits[name] for name in names if name in hits), None)
            found.append({"kind": key, "text": shown(value), "hits": refused})
    return {"rows": found[:MOST], "next": None}


FILES = "SELECT id, name, committed, closed, machine FROM warcs WHERE id < ? ORDER BY id DESC LIMIT ?"
CAPTURES = "SELECT count(*) FROM captures WHERE warc = ?"


def files(crawl: NamedCrawl, db: Reader, asked: ListQuery, counted: dict[int, int]) -> Json:
    """Return the WARC files, newest first; *counted* keeps the captures of files that are closed."""
    cursor = _cursor(asked.after, 1)
    before = cursor[0] if cursor and isinstance(cursor[0], int) else 1 << 62
    stored = set[str]()
    if crawl.layout is not None:
        try:
            stored = {each.key.removeprefix("archive/") for each in StoredFiles(crawl.layout).everywhere()}
        except ArchiveError:  # the list cannot be read
            stored = set()
    rows = db.execute(FILES, (before, MOST + 1)).fetchall()
    found = list[Json]()
    end = time.monotonic() + PATIENCE
    for number, name, size, closed, machine in rows[:MOST]:
        captures = counted.get(number)
        if captures is None and time.monotonic() < end:
            captures = int(db.execute(CAPTURES, (number,)).fetchone()[0])
            if closed:
                counted[number] = captures
        one = {"name": shown(name), "bytes": size, "captures": captures, "open": not closed}
        found.append({**one, "stored": name in stored, "machine": shown(machine)})
    return {"rows": found, "next": _next(rows, lambda row: [row[0]])}


def orders(db: Reader) -> Json:
    """Return the latest orders, newest first."""
    found = [
        {
            "id": each.id,
            "given": each.given,
            "who": shown(each.who),
            "verb": shown(each.verb),
            "arguments": [shown(one) for one in each.arguments[:100]],
            "answer": shown(each.answer, 10_000),
            "answered": each.answered,
        }
        for each in reversed(table.orders(db, MOST))
    ]
    return {"rows": found}


def newest_order(db: Reader) -> object:
    """Return a value that changes when an order is given or answered."""
    return db.execute("SELECT count(*), max(id), max(answered), sum(length(answer)) FROM orders").fetchone()
