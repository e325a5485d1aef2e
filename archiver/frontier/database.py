"""One connection to the database, in the thread that aiosqlite gives it, where whole pieces of work are done at once.

A statement costs some microseconds, going to the thread and back costs ten times as much, and while other threads are
busy a hundred times. So a verb of the frontier is one function that is called there, however many statements it has.

The schema's history: a list of steps, each in its own transaction, so that a crash between two is harmless.

A database is brought up to date, and looked through, when a crawl opens it.

Connections that only read, to be used by one thread at a time, whichever it is; and which schema is read there.

Why SQLite failed, told to the person who can act.

A database may come from somebody else: it holds the tables, indexes and triggers of its version, and nothing more.

A trigger or a view of a stranger would run whenever we read or write. So the schema is compared with our own before the
first query. No value may be longer than what a crawl ever stores, and no query may take longer than the size of the
file explains.
"""

import logging
import sqlite3
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from archiver import storage
from archiver.errors import ArchiveError, ConfigError

if TYPE_CHECKING:
    import aiosqlite
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from typing import Any, Concatenate, ParamSpec, TypeVar

import aiosqlite

from archiver.storage import regular

PRIMARY = 0xFF  # of an SQLite result code: the rest says more of it
SHARED = 32 << 10  # bytes by which SQLite makes the index of its write-ahead file (-shm) longer


def words(error: sqlite3.Error, path: Path) -> str:
    """What *error* means for the database at *path*; a full disk in figures, though SQLite does not say its wish."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # an error of Python's own module has none
    match code & PRIMARY:
        case sqlite3.SQLITE_FULL:
            return storage.full(path)
        case sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_IOERR_SHMSIZE and storage.free(path) < SHARED:
            return storage.full(path, SHARED)
        case sqlite3.SQLITE_IOERR:
            return f"{error} ({error.sqlite_errorname})"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(str(error), path)
        case sqlite3.SQLITE_INTERRUPT:
            return damaged("a query took longer than the size of the file can explain", path)
    return str(error)


def damaged(how: str, path: Path) -> str:
    """That the database at *path* is damaged, *how*, and what to do."""
    return f"it is damaged ({how}); archiver rebuild {quote(str(path.parent))} makes it anew from the WARC files"


CHECKED = 64 << 20  # bytes of a database that is looked through whenever it is opened: some tenths of a second
APPLICATION_ID = 0x41524348  # "ARCH": tells our database from any other SQLite file

STEPS: tuple[str, ...] = (
    "schema.sql",
    "files.sql",
    "politeness.sql",
    "scale.sql",
    "revisits.sql",
    "verdict.sql",
    "held.sql",
)
VERSION = len(STEPS)

log = logging.getLogger(__name__)


def script(version: int) -> str:
    """The SQL that brings a database from *version* - 1 to *version*, in one transaction."""
    body = files("archiver.frontier").joinpath(STEPS[version - 1]).read_text("utf-8")
    marks = f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {version};"
    return f"BEGIN IMMEDIATE;\n{body}\n{marks}\nCOMMIT;"


async def _one(db: "aiosqlite.Connection", sql: str) -> sqlite3.Row:
    (row,) = await db.execute_fetchall(sql)
    return row


async def _size(db: "aiosqlite.Connection") -> int:
    return int((await _one(db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))[0])


async def prepare(path: Path, db: "aiosqlite.Connection") -> None:
    """Bring the database to the newest schema; refuse one that is not ours, or that a newer program wrote."""
    application = int((await _one(db, "PRAGMA application_id"))[0])
    version = int((await _one(db, "PRAGMA user_version"))[0])
    tables = int((await _one(db, "SELECT count(*) FROM sqlite_master"))[0])
    if tables and application != APPLICATION_ID:
        raise ConfigError(f"{path} is an SQLite database, but not one of archiver's crawls")
    if version > VERSION:
        raise ConfigError(
            f"{path} has schema version {version}, this archiver knows up to {VERSION}; use a newer archiver"
        )
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "busy_timeout = 10000",
        "cache_size = -65536",
        "temp_store = MEMORY",
        "foreign_keys = OFF",  # some builds check them by default, but one step drops a table and makes it again
    ):
        await db.execute(f"PRAGMA {pragma}")
    if tables and version < VERSION and await _size(db) > CHECKED:
        log.warning("%s is brought to schema version %d, once; that takes some time", path, VERSION)
    for step in range(version + 1, VERSION + 1):
        await db.executescript(script(step))


async def check(path: Path, db: "aiosqlite.Connection") -> None:
    """Name a damaged database before anything is built on it; of a large one SQLite itself does, when it meets it."""
    if await _size(db) <= CHECKED:
        said = (await _one(db, "PRAGMA quick_check(1)"))[0]
        if said != "ok":
            raise ArchiveError(f"{path}: {damaged(str(said), path)}")


LARGEST = 256 << 20  # bytes of one value; the largest that we make are lists, which queries take as JSON
PROGRESS_STEPS = 100_000_000  # of SQLite's virtual machine in one query: about two seconds …
STEPS_PER_BYTE = 1000  # … and for each byte of the file; whole tables joined and sorted take less than a tenth
STEPS_AT_ONCE = 1_000_000  # between two looks at what a query has used

_COMMENT = re.compile(r"--[^\n]*")
_SPACE = re.compile(r"\s+")
_MARKS = re.compile(r"\s*([(),;=<>+*/])\s*")
_OBJECTS = "SELECT type, name, coalesce(sql, '') FROM sqlite_master"
_OF_SQLITE = (  # what SQLite makes by itself: for ANALYZE, and for keys that are declared in tables
    re.compile(r"table sqlite_stat1 CREATE TABLE sqlite_stat1\(tbl,idx,stat\)"),
    re.compile(r"table sqlite_stat4 CREATE TABLE sqlite_stat4\(tbl,idx,neq,nlt,ndlt,sample\)"),
    re.compile(r"table sqlite_sequence CREATE TABLE sqlite_sequence\(name,seq\)"),
    re.compile(r"index sqlite_autoindex_\w+ "),
)

Schema = Mapping[tuple[str, str], str]  # the SQL of each object, by type and name


class Bounded(sqlite3.Connection):
    """A connection that gives up a query which takes longer than the size of its file can explain.

    Pages of a hostile file can refer to each other so that a scan of 40 kB has more rows than anyone can count.
    """

    _left = PROGRESS_STEPS
    _path: Path | None = None

    def bound(self, path: Path) -> None:
        """Bound each query from now on by the size of the database at *path*."""
        self._path = path
        self.set_progress_handler(self._goes_too_far, STEPS_AT_ONCE)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Run a query, with steps of its own."""
        self._left = PROGRESS_STEPS
        return super().execute(*arguments)

    def _goes_too_far(self) -> bool:
        """Return True if the query must end. SQLite asks after each `STEPS_AT_ONCE`."""
        self._left -= STEPS_AT_ONCE
        return self._left < 0 and -self._left > STEPS_PER_BYTE * self._size()

    def _size(self) -> int:
        assert self._path is not None
        try:
            return sum(each.stat().st_size for each in (self._path, self._path.with_name(f"{self._path.name}-wal")))
        except OSError:
            return self._path.stat().st_size if self._path.exists() else 0


def guard(db: sqlite3.Connection, path: Path) -> None:
    """Bound values and queries of the database *db* at *path*, and let nothing in its schema have effects."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    if isinstance(db, Bounded):
        db.bound(path)
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    db.execute("PRAGMA trusted_schema = 0")
    db.execute("PRAGMA cell_size_check = 1")


def check_schema(db: sqlite3.Connection, path: Path) -> None:
    """Refuse the database *db* at *path* if its schema is not one that this program makes, and bound its values."""
    guard(db, path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        return  # refused by its number
    found = _objects(db)
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if found and application != APPLICATION_ID and not any(name == "urls" for _, name, _ in found):
        raise ConfigError(f"{path} is an SQLite database, but not one of archiver's crawls")
    if said := _foreign(found, schema(version) if version > 0 else {}):
        raise ArchiveError(f"{path}: {damaged(said, path)}")


def check_like(db: sqlite3.Connection, path: Path, expected: Schema) -> None:
    """Refuse the database *db* at *path*, with sqlite3.DatabaseError, if it has not exactly the *expected* schema."""
    guard(db, path)
    found = _objects(db)
    said = _foreign(found, expected)
    if missing := expected.keys() - {(kind, name) for kind, name, _ in found}:
        said = said or f"it has no {' '.join(min(missing))}"
    if said:
        raise sqlite3.DatabaseError(said)


def _objects(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return every object of the schema but those that SQLite makes by itself, each as type, name and SQL.

    A name proves nothing: SQLite takes any trigger that a file calls `sqlite_…`.
    """
    found = [(str(kind), str(name), str(sql)) for kind, name, sql in db.execute(_OBJECTS)]
    return [each for each in found if not any(known.fullmatch(" ".join(each)) for known in _OF_SQLITE)]


def _foreign(found: Iterable[tuple[str, str, str]], expected: Schema) -> str:
    """Return what is wrong with the first of the objects *found* that is not *expected*; "": nothing."""
    for kind, name, sql in found:
        if expected.get((kind, name)) != _plain(sql):
            return f"its {kind[:20]} {name[:60]!r} is not one that archiver makes"
    return ""


def explained(db: sqlite3.Connection, error: Exception, path: Path) -> ArchiveError:
    """Return why what stands in *db* could not be shown: *error* came of values that no crawl stores."""
    log.debug("what %s holds cannot be shown", path, exc_info=error)
    try:
        (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as worse:
        said = str(worse)
    how = f"values that no crawl stores: {error}" if said == "ok" else str(said)
    return ArchiveError(f"{path}: {damaged(how[:200], path)}")


@cache
def schema(version: int) -> Schema:
    """Return every object of the schema of this *version*."""
    return schema_of(*(script(step) for step in range(1, version + 1)))


def schema_of(*scripts: str) -> Schema:
    """Return every object of the schema that *scripts* make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for each in scripts:
            db.executescript(each)
        return {(kind, name): _plain(sql) for kind, name, sql in _objects(db)}


def _plain(sql: object) -> str:
    """Return *sql* without what does not matter: comments and space."""
    return _MARKS.sub(r"\1", _SPACE.sub(" ", _COMMENT.sub("", str(sql)))).strip()


P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 64  # rows in one statement


class Connection(Bounded):
    """To be used in its own thread alone."""

    def rows(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Everything that *sql* finds."""
        return self.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> Any:
        """The first row that *sql* finds; None where it finds nothing."""
        return self.execute(sql, values).fetchone()

    def many(self, sql: str, values: Sequence[tuple[object, ...]]) -> list[Any]:
        """Do *sql* with the rows of *values*, which stand where it says {rows}; everything that it finds.

        Up to `AT_ONCE` of them stand in one statement: a row costs half of what it does in a statement of its own.
        Statements have a few lengths only, so that they are compiled once.
        """
        found: list[Any] = []
        done, size = 0, AT_ONCE
        row = f"({', '.join('?' * len(values[0]))})" if values else ""
        while left := len(values) - done:
            while size > left:
                size //= 2
            some = values[done : done + size]
            found += self.execute(sql.replace("{rows}", ", ".join([row] * size)), tuple(chain.from_iterable(some)))
            done += size
        return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done meanwhile, durable when this is left, or nothing of it."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise


def connect(path: Path) -> aiosqlite.Connection:
    """A connection to the database at *path*, to be entered."""
    return aiosqlite.connect(path, isolation_level=None, factory=Connection)


async def inside(
    db: aiosqlite.Connection, act: Callable[Concatenate[Connection, P], T], *arguments: P.args, **named: P.kwargs
) -> T:
    """What *act* returns, called with the connection itself in the thread of *db*; aiosqlite has no public way."""
    result: T = await db._execute(act, db._conn, *arguments, **named)  # type: ignore[no-untyped-call]  # noqa: SLF001
    return result


WAYS_SINCE = 3  # schema version: each host has the way in which it is asked
COUNTED_SINCE = 4  # … and the numbers of its URLs
REVISITS_SINCE = 5  # a capture may be a revisit
VERDICT_SINCE = 6  # it is known how runs ended, and which hosts refuse us
HELD_SINCE = 7  # a URL may be held as a suspected trap

_BUSY = 10.0  # seconds to wait for a moment of the crawl's own transactions


def connected(path: Path, *, at_rest: bool = False, more: str = "") -> sqlite3.Connection:
    """A connection to the database at *path*; *at_rest*: nobody writes it, so nothing is made beside it."""
    regular(path)
    where = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}{more}"
    return sqlite3.connect(
        where, uri=True, timeout=_BUSY, isolation_level=None, check_same_thread=False, factory=Bounded
    )


def version_of(db: sqlite3.Connection) -> int:
    """The version of the schema of *db*; 0 while there is none."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])
