"""Read the state of a crawl from crawl.db, for `status` and the reports, also while the crawl runs.

All numbers of one result come from one read transaction. Raises `ConfigError` if there is no crawl or the schema has
another version, and `ArchiveError` if the database cannot be read.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import database
from archiver.frontier.address import address_of, check_driver
from archiver.frontier.connection import Reader
from archiver.frontier.database import check_schema, connect_readonly
from archiver.frontier.gathered import (
    ANSWER_STATUS,
    IS_NO_SEED,
    SEED_OF,
    UNUSUAL,
    URL_FIGURES,
    count_answers,
    count_urls,
    find_unusual,
)
from archiver.frontier.gathered.redirects import lost_redirects

if TYPE_CHECKING:
    from archiver.policy.quotas import Quotas

NAME = "crawl.db"
_RECENT = 2000  # captures looked at for the recent rate
_MICRO = 1_000_000
_ALL = 1 << 62  # rows
_NO_INDEX = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)


@dataclass(frozen=True, slots=True)
class Totals:
    """URLs by state, and what was received for them."""

    waiting: int = 0
    archived: int = 0
    failed: int = 0
    excluded: int = 0
    captures: int = 0
    received: int = 0  # bytes of responses as they crossed the wire
    warcs: int = 0
    stored: int = 0  # bytes of committed WARC data
    refused: int = 0  # links that scope did not take
    first: float = 0.0  # seconds since the epoch: the first and the last capture
    last: float = 0.0
    revisits: int = 0  # captures whose payload was stored already
    spared: int = 0  # bytes of these payloads
    variants: int = 0  # captures in further languages
    held: int = 0  # URLs, as suspected traps


@dataclass(frozen=True, slots=True)
class HostAccount:
    """One host: its URLs, its answers, and the reason why it waits."""

    key: str
    waiting: int
    archived: int
    failed: int
    excluded: int
    captures: int
    received: int
    duration: float  # seconds, of all its answers together
    why: str  # a limit, asleep, retry-after, robots.txt, retry, or "" if it may be asked now or nothing waits
    until: float  # seconds since the epoch; 0 if unknown
    slowed: str = ""  # how it is slowed down and why, in words


@dataclass(frozen=True, slots=True)
class SeedAccount:
    """The outcome of one seed."""

    url: str
    state: str
    status: int
    failure: str
    note: str
    followed: int  # accepted URLs on all paths from it
    refused: str = ""  # where it redirected to, if the scope refused that
    rule: str = ""  # why it was refused
    lost: str = ""  # where its redirects end, if nothing usable is there
    why: str = ""  # why it is not usable


@dataclass(frozen=True, slots=True)
class FailedUrl:
    """One URL without an answer, or forbidden by robots.txt."""

    url: str
    reason: str
    note: str
    via: str


@contextmanager
def open_totals(place: Path | str) -> Iterator[Reader]:
    """Open the database of the directory *place*, or at the address *place*, in one read transaction."""
    with _read(place) as (db, started):
        if not started:
            raise ConfigError(f"{place}: {NAME} is empty, because its crawl has not started; run archiver resume")
        db.execute("BEGIN")
        yield db


def has_started(directory: Path) -> bool:
    """Return True if the database holds a crawl, False if it is empty. Another schema version is refused."""
    with _read(directory) as (_, started):
        return started


def needs_login(db: Reader) -> bool:
    """Return True if URLs wait until a person has logged in."""
    row = db.execute("SELECT EXISTS (SELECT 1 FROM hosts WHERE paused = 1 AND blocked_since = 0 AND waiting > 0)")
    return bool(row.fetchone()[0])


def without_crawl(directory: Path) -> str:
    """Return the message for a *directory* without a database, which may still hold an archive."""
    if any((directory / "archive").glob("*.warc*")):
        return (
            f"{directory} holds an archive, but no crawl: it has no {NAME}; archiver ls, get, replay, verify, pack and "
            f"export work without it; if it was lost, run archiver rebuild {quote(str(directory))}"
        )
    return f"{directory} holds no crawl: it has no {NAME}"


@contextmanager
def _read(place: Path | str) -> Iterator[tuple[Reader, bool]]:
    """Open the database of *place*; the second value is False if the database is empty."""
    path = Path(place) / NAME
    if address := place if isinstance(place, str) else address_of(path):
        check_driver(address)
        from archiver.frontier import postgres_reading  # noqa: PLC0415 - an extra, which only such a crawl needs

        with postgres_reading.reading(address) as (server, started):
            yield postgres_reading.PortionReader(server), started
        return
    if not path.is_file():
        raise ConfigError(without_crawl(path.parent))
    try:
        with closing(_connect(path)) as db:
            started = check_schema(db, path)
            try:
                yield db, started
            except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
                raise database.describe_bad_value(db, error, path) from error
    except sqlite3.Error as error:
        raise ArchiveError(f"{path}: cannot be read: {database.describe_error(error, path)}") from error
    except OSError as error:
        raise ArchiveError(f"{path}: cannot be read: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    """Open *path* so that reading leaves nothing behind.

    Without a write-ahead file no process has the database open, and it is complete. We then read it as it is, which
    works on read-only media too and makes no files. With one, we use the crawl's own files. If its index (-shm) is
    missing and cannot be made, because the disk is read-only or full, SQLite makes it in memory. A rollback journal
    exists only during the first transaction; until then the database is empty.
    """
    if path.with_name(f"{path.name}-journal").exists():
        return sqlite3.connect(":memory:", isolation_level=None)
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or not wal.stat().st_size:
        return connect_readonly(path, at_rest=True)
    db = connect_readonly(path)
    try:
        db.execute("PRAGMA schema_version")  # the first look at the index
    except sqlite3.OperationalError as error:
        db.close()
        if sys.platform == "win32" or database.primary_code(error) not in _NO_INDEX:
            raise
        db = connect_readonly(path, parameters="&vfs=unix-none")  # no locks: they need that index, and so would a crawl
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
    return db


def totals(db: Reader) -> Totals:
    """Return the totals of the crawl."""
    states = dict(db.execute(_STATES))
    for state, rules in db.execute(_RULES):  # a robots.txt does not count as a URL of the site
        states[state] -= rules
    captures, received, first, last, revisits, spared, variants = db.execute(_CAPTURES).fetchone()
    warcs, stored = db.execute("SELECT count(*), coalesce(sum(committed), 0) FROM warcs").fetchone()
    (refused,) = db.execute("SELECT coalesce(sum(links), 0) FROM refusal_counts").fetchone()
    return Totals(
        **{name: states.get(name) or 0 for name in ("waiting", "archived", "failed", "excluded", "held")},
        captures=captures,
        received=received,
        warcs=warcs,
        stored=stored,
        refused=refused,
        first=first / _MICRO,
        last=last / _MICRO,
        revisits=revisits,
        spared=spared,
        variants=variants,
    )


def recent_rate(db: Reader, now: float, window: float = 60.0) -> float:
    """Return the captures a second in the *window* seconds before *now*, from the newest captures alone."""
    since = int((now - window) * _MICRO)
    newest = "SELECT timestamp FROM captures ORDER BY id DESC LIMIT ?"
    count, oldest = db.execute(
        f"SELECT count(*), min(timestamp) FROM ({newest}) AS newest WHERE timestamp > ?",  # noqa: S608 - a constant above
        (_RECENT, since),
    ).fetchone()
    span = window if count < _RECENT else max(1.0, now - oldest / _MICRO)
    return float(count / span)


_STATES = """
SELECT 'waiting', sum(waiting) FROM hosts UNION ALL SELECT 'archived', sum(archived) FROM hosts
UNION ALL SELECT 'failed', sum(failed) FROM hosts UNION ALL SELECT 'excluded', sum(excluded) FROM hosts
UNION ALL SELECT 'held', sum(held) FROM hosts
"""
_RULES = "SELECT state, count(*) FROM urls WHERE priority < 0 AND state <> 'waiting' GROUP BY state"
_CAPTURES = """
SELECT count(*), coalesce(sum(received), 0), coalesce(min(timestamp), 0), coalesce(max(timestamp), 0),
       count(*) FILTER (WHERE revisit <> ''), coalesce(sum(payload_length) FILTER (WHERE revisit <> ''), 0),
       count(*) FILTER (WHERE language <> '')
FROM captures
"""

BLOCKS_US = 1  # the host is paused because it blocks us; 2: because it needs a login

_HOSTS = """
WITH answered AS (
    SELECT urls.host, count(*) AS captures, sum(received) AS received, sum(duration) AS duration
    FROM captures JOIN urls ON urls.id = captures.url GROUP BY urls.host
), rules AS (
    SELECT host, count(*) FILTER (WHERE state = 'archived') AS archived,
           count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE state = 'excluded') AS excluded
    FROM urls WHERE priority < 0 GROUP BY host
)
SELECT key, waiting, hosts.archived - coalesce(rules.archived, 0), hosts.failed - coalesce(rules.failed, 0),
       hosts.excluded - coalesce(rules.excluded, 0), coalesce(captures, 0), coalesce(answered.received, 0),
       coalesce(duration, 0.0), not_before, robots,
       coalesce(CASE WHEN waiting = (SELECT count(*) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0)
       THEN (SELECT min(due) FROM urls WHERE host = hosts.id AND state = 'waiting' AND due > 0) END, 0.0),
       paused * CASE blocked_since WHEN 0 THEN 2 ELSE 1 END, visited, probe_interval, rate, rate_limit, concurrency,
       slow_reason
FROM hosts LEFT JOIN answered ON answered.host = hosts.id LEFT JOIN rules ON rules.host = hosts.id
ORDER BY waiting DESC, captures DESC, key LIMIT ?
"""


def hosts(db: Reader, now: float, limit: int = -1, *, quotas: "Quotas | None" = None) -> Iterator[HostAccount]:
    """Yield the hosts, those with most waiting URLs first, at most *limit* unless it is negative."""
    from archiver.policy import limits  # noqa: PLC0415 - slow to import; few ask for hosts
    from archiver.policy import quotas as policy  # noqa: PLC0415 - the same

    known = quotas or policy.NO_QUOTAS
    for row in db.execute(_HOSTS, (limit if limit >= 0 else _ALL,)):
        key, waiting, archived, failed, excluded, captures, received, duration, not_before, robots, due, *others = row
        paused, visited, pause, *state = others
        slowed = limits.slowed(limits.ThrottleState(*state)) if waiting else ""
        quota = known.of(key)
        ready = robots == "known" or quota.ignores_robots
        why, until = _wait(waiting=waiting, not_before=not_before, ready=ready, due=due, now=now)
        if why == "retry-after" and pause:
            why = "asleep, next probe"
        if waiting and (reached := quota.reached(visited, received)):
            why, until = f"held back by {reached}", 0.0
        if waiting and quota.block:
            why, until = f"blocked by a person: {quota.block}", 0.0
        if waiting and paused:
            why, until = "refuses us, paused" if paused == BLOCKS_US else "needs a login", 0.0
        yield HostAccount(key, waiting, archived, failed, excluded, captures, received, duration, why, until, slowed)


def _wait(*, waiting: int, not_before: float, ready: bool, due: float, now: float) -> tuple[str, float]:
    if not waiting:
        return "", 0.0
    if not_before > now:
        return "retry-after", not_before
    if due > now:
        return "retry", due
    return ("", 0.0) if ready else ("robots.txt", 0.0)


def seeds(db: Reader) -> list[SeedAccount]:
    """Return the outcome of each seed, in the order given."""
    count_urls(db)
    followed = dict(db.execute(_FOLLOWED))
    refused = {via: (url, rule) for url, rule, via in db.execute(_REFUSED_REDIRECTS)}
    lost, no = lost_redirects(db, followed), ("", "")
    rows = db.execute(
        "SELECT urls.id, urls.url, state, status, failure, note "
        "FROM seeds CROSS JOIN urls ON urls.id = seeds.url ORDER BY position"
    )
    return [
        SeedAccount(
            url, state, status, failure, note, followed.get(seed, 0), *refused.get(seed, no), *lost.get(seed, no)
        )
        for seed, url, state, status, failure, note in rows
    ]


_FOLLOWED = f"SELECT {SEED_OF}, sum(urls) FROM {URL_FIGURES} WHERE {IS_NO_SEED} GROUP BY 1"  # noqa: S608 - a constant
_REFUSED_REDIRECTS = """
SELECT refusals.url, rule, refusals.via FROM refusals JOIN seeds ON seeds.url = refusals.via
JOIN urls ON urls.id = seeds.url WHERE urls.status BETWEEN 300 AND 399 AND urls.status <> 304 ORDER BY refusals.url DESC
"""  # status 304 is not a redirect


_ANSWERED = f"SELECT {ANSWER_STATUS}, sum(captures) FROM temp.answer_figures GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608 - a constant


def statuses(db: Reader) -> list[tuple[int, int]]:
    """Return (status, captures), most frequent first. Status 0: an answer without a status line."""
    count_answers(db)
    return list(db.execute(_ANSWERED))


def media_types(db: Reader) -> list[tuple[str, int, int]]:
    """Return (media type, captures, bytes), most frequent first."""
    return list(
        db.execute("SELECT mime, count(*) AS n, sum(received) FROM captures GROUP BY mime ORDER BY n DESC, mime")
    )


_REASON = """
CASE WHEN urls.state = 'excluded' AND rtrim(urls.path, 'R') GLOB '*X' THEN 'speculative, ' ELSE '' END
|| CASE WHEN urls.failure <> '' THEN urls.failure WHEN urls.status > 0 THEN 'status ' || urls.status ELSE urls.state END
"""


def failures(db: Reader) -> list[tuple[str, int]]:
    """Return (reason, URLs) of the failed and excluded URLs, most frequent first."""
    find_unusual(db)
    return list(
        db.execute(
            f"SELECT {_REASON} AS reason, count(*) AS n FROM {UNUSUAL} "  # noqa: S608 - constants
            "WHERE unusual.state IN ('failed', 'excluded') GROUP BY reason ORDER BY n DESC, reason"
        )
    )


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """The URLs that failed, were excluded or answered with an error for one reason."""

    reason: str  # a word of errors.Failure, `answered 404`, `status 503`, `speculative, timeout`
    urls: int
    examples: tuple[tuple[str, str], ...]  # (URL, the page that named it first): the first and the last URL


_PROBLEM = f"CASE WHEN urls.state = 'archived' THEN 'answered ' || urls.status ELSE {_REASON} END"
_PROBLEMS = f"""
SELECT {_PROBLEM} AS reason, count(*) AS n, min(urls.id), max(urls.id) FROM {UNUSUAL}
WHERE (urls.state IN ('failed', 'excluded') OR urls.state = 'archived' AND urls.status >= 400) AND urls.priority >= 0
GROUP BY reason ORDER BY n DESC, reason LIMIT 200
"""  # noqa: S608 - constants
_EXAMPLE = """
SELECT urls.url, coalesce(above.url, '') FROM urls LEFT JOIN urls AS above ON above.id = urls.via WHERE urls.id = ?
"""


def problems(db: Reader) -> list[ProblemGroup]:
    """Return the URLs without a usable response by reason, most frequent first. robots.txt is left out."""
    find_unusual(db)
    return [
        ProblemGroup(reason, urls, tuple(db.execute(_EXAMPLE, (row,)).fetchone() for row in sorted({first, last})))
        for reason, urls, first, last in db.execute(_PROBLEMS).fetchall()
    ]


def lost(db: Reader) -> Iterator[FailedUrl]:
    """Yield the failed and excluded URLs in order of discovery, row by row because there may be many."""
    find_unusual(db)
    rows = db.execute(
        f"SELECT urls.url, {_REASON}, urls.note, coalesce(above.url, '') FROM {UNUSUAL} "  # noqa: S608 - constants
        "LEFT JOIN urls AS above ON above.id = urls.via WHERE unusual.state IN ('failed', 'excluded') "
        "ORDER BY unusual.id"
    )
    for row in rows:
        yield FailedUrl(*row)


def refusals(db: Reader) -> list[tuple[str, int]]:
    """Return (rule, links) that the scope refused, most frequent first."""
    return list(
        db.execute("SELECT rule, sum(links) AS n FROM refusal_counts GROUP BY rule ORDER BY n DESC, rule LIMIT 100")
    )
