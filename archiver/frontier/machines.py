"""The machines whose crawlers share one frontier: how they begin and end a run together, and their settings.

Each has a directory with WARC files of its own. The first that comes begins a run, further ones join it, and the last
that leaves ends it. Locks of the database tell them apart; a machine that dies loses its locks. So do all machines when
the server is started again: no run begins while a crawler of another machine is alive by its lease. Settings stand in
the database with a revision, so that all crawl by the same ones. Only a database that machines can share has such
locks.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from archiver.errors import ConfigError
from archiver.frontier import hosts, retry
from archiver.frontier.connection import Connection, DatabaseLock, Reader
from archiver.frontier.database import APPLICATION_ID, RUN_LOCK
from archiver.frontier.port import LEASE, SharedSettings

ALONE = DatabaseLock(RUN_LOCK)  # kept by a run that no other machine may join, and while a run begins or ends
TOGETHER = DatabaseLock(RUN_LOCK, shared=True)

UPSERT = """
INSERT INTO machines (name, directory, joined, seen) VALUES (:name, :directory, :now, :now)
ON CONFLICT (name) DO UPDATE SET directory = excluded.directory, joined = excluded.joined, seen = excluded.seen
"""
LOSSES = """
SELECT count(*), count(DISTINCT url) FROM captures
WHERE warc IN (SELECT id FROM warcs WHERE name IN (SELECT value FROM json_each(?)))
"""
LOST_URLS = """
SELECT DISTINCT urls.id, urls.priority FROM captures JOIN urls ON urls.id = captures.url
WHERE warc IN (SELECT id FROM warcs WHERE name IN (SELECT value FROM json_each(?))) ORDER BY urls.id
"""
LOST_CAPTURES = """
SELECT urls.url, warcs.name, captures.timestamp, captures.status FROM captures
JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
WHERE warcs.name IN (SELECT value FROM json_each(?)) ORDER BY urls.id, captures.timestamp
"""
# Their own records are there, but all those with their payload are in lost files.
LOST_PAYLOADS = """
SELECT urls.url, warcs.name, visit.timestamp, visit.status FROM urls
JOIN captures AS visit ON visit.url = urls.id JOIN warcs ON warcs.id = visit.warc
WHERE visit.revisit = 'identical-payload-digest' AND urls.state = 'archived' AND NOT EXISTS (
    SELECT 1 FROM captures AS stored
    WHERE substr(stored.payload_digest, -8) = substr(visit.payload_digest, -8) AND stored.revisit = ''
      AND stored.truncated = '' AND stored.payload_length > 0 AND stored.status / 100 <> 3
      AND stored.payload_digest = visit.payload_digest
      AND stored.warc NOT IN (SELECT id FROM warcs WHERE name IN (SELECT value FROM json_each(:files)))
) AND NOT EXISTS (
    SELECT 1 FROM captures AS lost WHERE lost.url = urls.id
      AND lost.warc IN (SELECT id FROM warcs WHERE name IN (SELECT value FROM json_each(:files)))
) ORDER BY urls.id, visit.timestamp
"""
TAKE_OUT = (
    "DELETE FROM captures WHERE warc IN (SELECT id FROM warcs WHERE name IN (SELECT value FROM json_each(?)))",
    "DELETE FROM resources WHERE warc IN (SELECT id FROM warcs WHERE name IN (SELECT value FROM json_each(?)))",
    "DELETE FROM warcs WHERE name IN (SELECT value FROM json_each(?))",
)
HOSTS_OF_RULES = "SELECT DISTINCT host FROM urls WHERE id IN (SELECT value FROM json_each(?)) ORDER BY host"
END_LEASES = """
UPDATE leases SET crawler = NULL, last_start = (SELECT ends FROM crawlers WHERE crawlers.id = leases.crawler)
WHERE crawler IN (SELECT id FROM crawlers WHERE name = :machine OR name LIKE :crawlers)
"""  # a request may have started until the lease ended
END_CRAWLERS = "UPDATE crawlers SET ended = 1 WHERE name = :machine OR name LIKE :crawlers"
PUT_SETTINGS = """
INSERT INTO settings (id, revision, text, secrets) VALUES (1, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, text = excluded.text, secrets = excluded.secrets
"""
OTHERS_LEASE = """
SELECT 1 FROM crawlers WHERE ended = 0 AND ends > :now AND name <> :machine AND name NOT LIKE :crawlers LIMIT 1
"""
CRAWLERS = "SELECT DISTINCT name FROM crawlers WHERE ended = 0 AND name LIKE ? ORDER BY name"

MOST = 10_000  # machines and crawlers that are read
_NOW = "extract(epoch FROM clock_timestamp())::float8"
HELD_BY_OTHERS = f"""
SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = {APPLICATION_ID} AND objsubid = 2
        AND objid::bigint = (hashtext(?)::bigint & 4294967295) AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
"""  # noqa: S608 - a constant
_ALIVE = f"""
SELECT crawlers.name, {_NOW} - (ends - ?), count(leases.politeness_group) FROM crawlers
LEFT JOIN leases ON leases.crawler = crawlers.id WHERE ended = 0 AND ends > {_NOW}
GROUP BY crawlers.id, crawlers.name, ends ORDER BY crawlers.id LIMIT ?
"""  # noqa: S608 - constants
_MACHINES = f"SELECT name, directory, {_NOW} - seen FROM machines ORDER BY joined, name LIMIT ?"  # noqa: S608 - a constant
_ALL_NAMES = "SELECT name FROM machines UNION SELECT machine FROM warcs WHERE machine <> '' ORDER BY 1 LIMIT ?"
_FILES = "SELECT machine, count(*), coalesce(sum(committed), 0) FROM warcs GROUP BY machine"


def enter(db: Connection, directory: str, files: Collection[str], begin: Callable[[Connection], None]) -> float | None:
    """Join the run of the other machines, or *begin* one; return when it began, or None if one begins at the moment.

    *directory*: of this machine, with its host. *files*: the WARC files in it. If it was moved, or the host has another
    name, they show that it is the same one. Raises `ConfigError` if its name belongs to another machine.
    """
    known = db.row("SELECT directory, forgotten FROM machines WHERE name = ?", (db.machine,))
    if known is not None and known[0] != directory and not _wrote(db, files):
        raise ConfigError(f"--name {db.machine}: this is the name of {known[0]}; choose another")
    if known is not None and known[1] is not None:
        raise ConfigError(
            f"{db.machine} was written off by archiver forget, and its URLs are fetched again; join from a new "
            "directory with another --name, and bring the WARC files of this one with archiver import"
        )
    if not db.hold(DatabaseLock(f"machine {db.machine}")):
        return None  # it was killed, and the server has not noticed yet
    if db.hold(ALONE):
        if not _others_lease(db):
            with db.transaction():
                begin(db)
        db.hold(TOGETHER)
        db.let_go(ALONE)
    elif not db.hold(TOGETHER):
        return None
    with db.transaction():
        db.execute(UPSERT, {"name": db.machine, "directory": directory, "now": db.now()})
    return float(db.row("SELECT max(started) FROM runs")[0])


def _wrote(db: Connection, files: Collection[str]) -> bool:
    """Return True if this machine wrote one of *files*."""
    return any(name in files for (name,) in db.rows("SELECT name FROM warcs WHERE machine = ?", (db.machine,)))


def leave(db: Connection, end: Callable[[Connection], None]) -> bool:
    """End the run by *end* if no other machine is in it; return True if others go on."""
    note_alive(db)
    db.let_go(TOGETHER)
    if not db.hold(ALONE):
        return True
    with db.transaction():
        end(db)
    db.let_go(ALONE)
    return False


def others_run(db: Connection) -> bool:
    """Return True if another machine crawls."""
    return db.others_hold(TOGETHER)


def _others_lease(db: Connection) -> bool:
    """Return True if crawlers of other machines are alive by their leases.

    After a restart of the server all locks are gone for a moment, but these crawlers go on.
    """
    return db.row(OTHERS_LEASE, {**_names(db.machine), "now": db.now()}) is not None


def note_alive(db: Connection) -> None:
    """Note that this machine is alive."""
    with db.unsynced_transaction():
        db.execute("UPDATE machines SET seen = ? WHERE name = ?", (db.now(), db.machine))


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A WARC file of one machine."""

    name: str
    size: int  # committed bytes
    closed: bool
    digest: str  # sha256:HEX of a closed file; "" if it is not known


class Losses(NamedTuple):
    """The records that were in lost files."""

    captures: int
    urls: int  # with such a capture, which are due again


class LostCapture(NamedTuple):
    """A capture that must be fetched again."""

    url: str
    lost: str  # "capture": its record is in a lost file; "payload": it is a revisit of such a record
    file: str  # with its record
    timestamp: int  # microseconds since the epoch
    status: int


def _names(machine: str) -> dict[str, str]:
    """Return the name of *machine* and the pattern of those of its crawlers."""
    return {"machine": machine, "crawlers": f"{machine}~%"}


def files_of(db: Reader, machine: str) -> list[WrittenFile]:
    """Return the WARC files of *machine*."""
    rows = db.execute("SELECT name, committed, closed, digest FROM warcs WHERE machine = ? ORDER BY id", (machine,))
    return [WrittenFile(name, size, bool(closed), digest) for name, size, closed, digest in rows]


def losses(db: Reader, files: Sequence[str]) -> Losses:
    """Return the number of records in *files*."""
    return Losses(*db.execute(LOSSES, (json.dumps(list(files)),)).fetchone())


def lost_captures(db: Reader, files: Sequence[str]) -> Iterator[LostCapture]:
    """Yield the captures whose record or payload is in *files*."""
    which = json.dumps(list(files))
    for url, file, timestamp, status in db.execute(LOST_CAPTURES, (which,)):
        yield LostCapture(url, "capture", file, timestamp, status)
    for url, file, timestamp, status in db.execute(LOST_PAYLOADS, {"files": which}):
        yield LostCapture(url, "payload", file, timestamp, status)


def forget(db: Connection, machine: str, files: Sequence[str]) -> Losses:
    """Write *machine* off: end its leases, take out what its lost *files* held, and queue these URLs again."""
    lost, names = losses(db, files), _names(machine)
    which = json.dumps(list(files))
    db.execute(END_LEASES, names)
    db.execute(END_CRAWLERS, names)
    urls = [(int(row), priority) for row, priority in db.rows(LOST_URLS, (which,))]
    for statement in TAKE_OUT:
        db.execute(statement, (which,))
    pages = [row for row, priority in urls if priority >= 0]
    for start in range(0, len(pages), retry.AT_ONCE):
        retry.queue_again(db, pages[start : start + retry.AT_ONCE])
    rules = json.dumps([row for row, priority in urls if priority < 0])
    hosts.ask_robots(db, [int(row) for (row,) in db.rows(HOSTS_OF_RULES, (rules,))])
    db.execute("UPDATE machines SET forgotten = ? WHERE name = ?", (db.now(), machine))
    return lost


def crawlers(db: Connection) -> list[str]:
    """Return the names of the crawlers of this machine that have not left."""
    return [str(row[0]) for row in db.rows(CRAWLERS, (f"{db.machine}~%",))] if db.machine else []


def settings(db: Connection) -> SharedSettings:
    """Return the settings that all machines have in common."""
    return SharedSettings(*(db.row("SELECT revision, text, secrets FROM settings") or (0, "")))


def put_settings(db: Connection, text: str, expected: int, secrets: str | None = None) -> int:
    """Replace the settings, which must have the revision *expected*, by *text*; return their new revision.

    *secrets*: names of headers that each machine must have itself; None: as before. Raises `ConfigError` if another
    machine has changed the settings.
    """
    known = settings(db)
    if known.revision != expected:
        raise ConfigError("the settings have just been changed on another machine; try again")
    db.execute(PUT_SETTINGS, (expected + 1, text, known.secrets if secrets is None else secrets))
    return expected + 1


@dataclass(frozen=True, slots=True)
class CrawlerAccount:
    """A living crawler."""

    name: str
    silent: float  # seconds since it has renewed its leases
    groups: int  # politeness groups that it has leased; most are one host


@dataclass(frozen=True, slots=True)
class MachineAccount:
    """A directory in which crawlers of the crawl run, or did."""

    name: str
    directory: str  # host:/path
    silent: float  # seconds since it was last known to be alive
    warcs: int  # files that its crawlers have written
    stored: int  # committed bytes in them
    crawlers: tuple[CrawlerAccount, ...]


def is_running(db: Reader) -> bool:
    """Return True if any process crawls with the database *db*."""
    return bool(db.execute(HELD_BY_OTHERS, (RUN_LOCK,)).fetchone()[0])


def settings_text(db: Reader) -> str:
    """Return the text of crawl.toml that the database *db* holds for all machines."""
    row = db.execute("SELECT text FROM settings").fetchone()
    if row is None:
        raise ConfigError("the database holds no settings of its crawl; archiver resume DIR brings them")
    return str(row[0])


def names(db: Reader) -> list[str]:
    """Return the names of all machines: those that crawled together, and those that wrote WARC files alone."""
    return [str(name) for (name,) in db.execute(_ALL_NAMES, (MOST,))]


def accounts(db: Reader) -> list[MachineAccount]:
    """Return the machines of the crawl, in the order in which they joined."""
    crawlers = defaultdict[str, list[CrawlerAccount]](list)
    for row in db.execute(_ALIVE, (LEASE, MOST)):
        crawlers[row[0].partition("~")[0]].append(CrawlerAccount(*row))
    files = {name: (count, size) for name, count, size in db.execute(_FILES)}
    return [
        MachineAccount(name, directory, silent, *files.get(name, (0, 0)), tuple(crawlers[name]))
        for name, directory, silent in db.execute(_MACHINES, (MOST,))
    ]
