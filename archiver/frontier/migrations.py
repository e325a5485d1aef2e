"""The schema's history: a list of steps, each in its own transaction, so that a crash between two is harmless.

A database is brought up to date, and looked through, when a crawl opens it.
"""

import logging
import sqlite3
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import trouble

if TYPE_CHECKING:
    import aiosqlite

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
            raise ArchiveError(f"{path}: {trouble.damaged(str(said), path)}")
