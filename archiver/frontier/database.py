"""The SQLite database: its schema, connections to it, and checks of a database that came from somewhere else.

A collection may be received from a stranger. A trigger or a view in its database would run whenever we read or write,
so we compare the schema with our own before the first query. We also bound the length of every value and the time of
every query.

Each frontier operation is one function that runs in the thread of its aiosqlite connection. A statement takes some
microseconds; the way to that thread and back takes ten times as long, and a hundred times while other threads are busy.
"""

import logging
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from archiver import storage
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.connection import Connection, DatabaseLock, Values

if TYPE_CHECKING:
    import aiosqlite

P = ParamSpec("P")
T = TypeVar("T")
Schema = Mapping[tuple[str, str], str]  # the SQL of each object, by type and name

ASKED = "(SELECT ask FROM asks WHERE asks.url = urls.id)"  # what is sent for a URL, in a query of urls
APPLICATION_ID = 0x41524348  # "ARCH": tells our database from any other SQLite file
RUN_LOCK = "run"  # the advisory lock of the machines that crawl with a PostgreSQL database
VERSION = 24  # of schema.sql; development before the first release used 1 to 23
CHECKED_SIZE = 64 << 20  # bytes; a smaller database is checked whenever a crawl opens it: some tenths of a second
LARGEST = 256 << 20  # bytes of one value; the largest that we make are lists, which queries take as JSON
PROGRESS_STEPS = 100_000_000  # of SQLite's virtual machine in one query: about two seconds …
STEPS_PER_BYTE = 1000  # … and for each byte of the file; whole tables joined and sorted take less than a tenth
STEPS_BETWEEN_CHECKS = 1_000_000  # of the steps that a query has used
BUSY_TIMEOUT = 10.0  # seconds to wait for a transaction of the crawl

_PRIMARY_CODE = 0xFF  # the bits of an SQLite result code that name the primary error
_SHM_STEP = 32 << 10  # bytes by which SQLite extends the index of its write-ahead file (-shm)
_COMMENT = re.compile(r"--[^\n]*")
_SPACE = re.compile(r"\s+")
_MARKS = re.compile(r"\s*([(),;=<>+*/])\s*")
_OBJECTS = "SELECT type, name, coalesce(sql, '') FROM sqlite_master"
_MADE_BY_SQLITE = (  # for ANALYZE, and for the keys of tables
    re.compile(r"table sqlite_stat1 CREATE TABLE sqlite_stat1\(tbl,idx,stat\)"),
    re.compile(r"table sqlite_stat4 CREATE TABLE sqlite_stat4\(tbl,idx,neq,nlt,ndlt,sample\)"),
    re.compile(r"table sqlite_sequence CREATE TABLE sqlite_sequence\(name,seq\)"),
    re.compile(r"index sqlite_autoindex_\w+ "),
)

log = logging.getLogger(__name__)


def primary_code(error: sqlite3.Error) -> int:
    """Return the primary SQLite result code of *error*; SQLITE_OK for an error of Python's own module."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & _PRIMARY_CODE


def describe_error(error: sqlite3.Error, path: Path) -> str:
    """Return what *error* means for the database at *path*. SQLite does not say how much space a full disk lacks."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    match primary_code(error):
        case sqlite3.SQLITE_FULL:
            return storage.full(path)
        case sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_IOERR_SHMSIZE and storage.free(path) < _SHM_STEP:
            return storage.full(path, _SHM_STEP)
        case sqlite3.SQLITE_IOERR:
            return f"{error} ({error.sqlite_errorname})"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return describe_damage(str(error), path)
        case sqlite3.SQLITE_INTERRUPT:
            return describe_damage("a query took longer than the size of the file can explain", path)
    return str(error)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into `ArchiveError`, with the *path* of the database."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a bug of ours, not a fault of the disk
    except sqlite3.Error as error:
        raise ArchiveError(f"{path}: {describe_error(error, path)}") from error


def describe_damage(how: str, path: Path) -> str:
    """Return the message for a damaged database at *path*, with *how* it is damaged and what to do."""
    return f"it is damaged ({how}); archiver rebuild {quote(str(path.parent))} makes it again from the WARC files"


def describe_bad_value(db: sqlite3.Connection, error: Exception, path: Path) -> ArchiveError:
    """Return the error for values in *db* that no crawl stores, which caused *error*."""
    log.debug("cannot read a value in %s", path, exc_info=error)
    try:
        (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as worse:
        result = str(worse)
    how = f"values that no crawl stores: {error}" if result == "ok" else str(result)
    return ArchiveError(f"{path}: {describe_damage(how[:200], path)}")


class BoundedConnection(sqlite3.Connection):
    """A connection that gives up a query which takes longer than the size of its file can explain.

    Pages of a hostile file can refer to each other so that a scan of 40 kB has more rows than anyone can count.
    """

    _steps_left = PROGRESS_STEPS
    _path: Path | None = None

    def bound(self, path: Path) -> None:
        """Bound each query from now on by the size of the database at *path*."""
        self._path = path
        self.set_progress_handler(self._takes_too_long, STEPS_BETWEEN_CHECKS)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Run a query with its own number of steps."""
        self._steps_left = PROGRESS_STEPS
        return super().execute(*arguments)

    def _takes_too_long(self) -> bool:
        """Return True if the query must end. SQLite calls this after each `STEPS_BETWEEN_CHECKS`."""
        self._steps_left -= STEPS_BETWEEN_CHECKS
        return self._steps_left < 0 and -self._steps_left > STEPS_PER_BYTE * self._size()

    def _size(self) -> int:
        assert self._path is not None
        try:
            return sum(each.stat().st_size for each in (self._path, self._path.with_name(f"{self._path.name}-wal")))
        except OSError:
            return self._path.stat().st_size if self._path.exists() else 0


class SqliteConnection(BoundedConnection, Connection):
    """A connection to SQLite."""

    _clock: Callable[[], float] = time.monotonic

    def use_clock(self, clock: Callable[[], float]) -> None:
        """Let leases end by *clock*."""
        self._clock = clock

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Return all rows that *sql* finds."""
        return self.execute(sql, values).fetchall()

    def begin(self) -> None:
        """Begin a transaction that keeps all others from writing."""
        self.execute("BEGIN IMMEDIATE")

    @contextmanager
    def unsynced_transaction(self) -> Iterator[None]:
        """Do the same as `transaction` without waiting for the disk; a power cut may undo it."""
        self.execute("PRAGMA synchronous = NORMAL")
        try:
            with self.transaction():
                yield
        finally:
            self.execute("PRAGMA synchronous = FULL")

    def now(self) -> float:
        """Return the time by which leases end."""
        return self._clock()

    def writes_of_others(self) -> int:
        """Return a number that changes when another connection has written."""
        return int(self.row("PRAGMA data_version")[0])

    def hold(self, lock: DatabaseLock) -> bool:
        """Return True: the lock of the directory keeps others out."""
        return bool(lock)

    def let_go(self, lock: DatabaseLock) -> None:
        """Do nothing."""

    def others_hold(self, lock: DatabaseLock) -> bool:
        """Return False."""
        return not lock

    def erase_deleted(self) -> None:
        """Overwrite what is deleted from now on."""
        self.execute("PRAGMA secure_delete = ON")


def connect(path: Path) -> "aiosqlite.Connection":
    """Return a connection to the database at *path*, an async context manager."""
    import aiosqlite  # noqa: PLC0415 - slow to import; commands that only read do not need it

    return aiosqlite.connect(path, isolation_level=None, factory=SqliteConnection)


async def run_in_thread(
    db: "aiosqlite.Connection",
    act: Callable[Concatenate[SqliteConnection, P], T],
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Call *act* with the sqlite3 connection in the thread of *db*. aiosqlite has no public way to do that."""
    result: T = await db._execute(act, db._conn, *arguments, **named)  # type: ignore[no-untyped-call]  # noqa: SLF001
    return result


def connect_readonly(path: Path, *, at_rest: bool = False, parameters: str = "") -> sqlite3.Connection:
    """Return a read-only connection to the database at *path*, for one thread at a time.

    *at_rest*: no process writes the database, so SQLite makes no files beside it.
    """
    storage.regular(path)
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}{parameters}"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, factory=BoundedConnection
    )


async def prepare(db: "aiosqlite.Connection") -> None:
    """Configure the connection *db* and create the tables if the database is empty."""
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        f"busy_timeout = {int(BUSY_TIMEOUT * 1000)}",
        "cache_size = -65536",
        "temp_store = MEMORY",
        "foreign_keys = OFF",  # some builds check them by default; each row would cost look-ups
    ):
        await db.execute(f"PRAGMA {pragma}")
    if not await _pragma(db, "user_version"):
        await db.executescript(schema_script())


async def check_integrity(path: Path, db: "aiosqlite.Connection") -> None:
    """Raise `ArchiveError` if the database is damaged. In a large one SQLite itself finds damage, when it reads it."""
    if await _pragma(db, "page_count") * await _pragma(db, "page_size") <= CHECKED_SIZE:
        result = await _pragma(db, "quick_check(1)")
        if result != "ok":
            raise ArchiveError(f"{path}: {describe_damage(str(result), path)}")


async def _pragma(db: "aiosqlite.Connection", name: str) -> Any:
    ((value,),) = await db.execute_fetchall(f"PRAGMA {name}")
    return value


def guard(db: sqlite3.Connection, path: Path) -> None:
    """Bound the values and queries of the database *db* at *path*, and give its schema no side effects."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    if isinstance(db, BoundedConnection):
        db.bound(path)
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    db.execute("PRAGMA trusted_schema = 0")
    db.execute("PRAGMA cell_size_check = 1")


def check_schema(db: sqlite3.Connection, path: Path) -> bool:
    """Refuse the database *db* at *path* if its schema is not ours, and guard it. Return False if it is empty."""
    guard(db, path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    found = _objects(db)
    if not found and not version:
        return False
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if found and application != APPLICATION_ID and not any(name == "urls" for _, name, _ in found):
        raise ConfigError(f"{path} is an SQLite database, but not one of archiver's crawls")
    if version != VERSION:
        newer = "a newer archiver made it, so update this one, or " if version > VERSION else ""
        raise ConfigError(
            f"{path} has schema version {version}, and this archiver needs {VERSION}; "
            f"{newer}archiver rebuild {quote(str(path.parent))} makes the database again from the WARC files"
        )
    if difference := _difference(found, schema()):
        raise ArchiveError(f"{path}: {describe_damage(difference, path)}")
    return True


def check_exact_schema(db: sqlite3.Connection, path: Path, expected: Schema) -> None:
    """Raise sqlite3.DatabaseError if the database *db* at *path* does not have the *expected* schema, and guard it."""
    guard(db, path)
    if difference := _difference(_objects(db), expected):
        raise sqlite3.DatabaseError(difference)


def _objects(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return type, name and SQL of each object in the schema, without the objects that SQLite makes by itself.

    A name proves nothing: SQLite accepts any trigger that a file calls `sqlite_…`.
    """
    found = [(str(kind), str(name), str(sql)) for kind, name, sql in db.execute(_OBJECTS)]
    return [each for each in found if not any(known.fullmatch(" ".join(each)) for known in _MADE_BY_SQLITE)]


def _difference(found: Iterable[tuple[str, str, str]], expected: Schema) -> str:
    """Return the first difference between the objects *found* and those *expected*, or ""."""
    missing = set(expected)
    for kind, name, sql in found:
        if expected.get((kind, name)) != _normalize(sql):
            return f"its {kind[:20]} {name[:60]!r} is not one that archiver makes"
        missing.discard((kind, name))
    return f"it has no {' '.join(min(missing))}" if missing else ""


def schema_script() -> str:
    """Return the SQL that makes the tables of an empty database, in one transaction."""
    body = files("archiver.frontier").joinpath("schema.sql").read_text("utf-8")
    pragmas = f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {VERSION};"
    return f"BEGIN IMMEDIATE;\n{body}\n{pragmas}\nCOMMIT;"


@cache
def schema() -> Schema:
    """Return every object of our schema."""
    return schema_of(schema_script())


def schema_of(*scripts: str) -> Schema:
    """Return every object of the schema that *scripts* make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for each in scripts:
            db.executescript(each)
        return {(kind, name): _normalize(sql) for kind, name, sql in _objects(db)}


def _normalize(sql: object) -> str:
    """Return *sql* without comments and with uniform white space."""
    return _MARKS.sub(r"\1", _SPACE.sub(" ", _COMMENT.sub("", str(sql)))).strip()
