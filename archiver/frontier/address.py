"""The address of a frontier in PostgreSQL, in a file where crawl.db would be: crawl.postgresql.

So every command finds the frontier of a directory. The file never holds a password: libpq takes that from ~/.pgpass or
PGPASSWORD. A received collection can name any server, so an address counts only with a mark made with the user's key.
The file also has the name of this machine among those that crawl together, and the revision of the settings.
"""

import hmac
import re
import socket
from pathlib import Path
from shlex import quote
from typing import BinaryIO, NamedTuple

from archiver.errors import ConfigError
from archiver.storage import replace_file, user_key
from archiver.url import DATABASE_SCHEMES

SUFFIX = ".postgresql"
LONGEST = 4096  # characters of an address
LONGEST_MACHINE = 60  # characters of the name of a machine
MACHINE = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9.-]{{0,{LONGEST_MACHINE - 2}}}[A-Za-z0-9])?")
MOST_LINES = 4


def check_driver(address: str) -> None:
    """Refuse *address* if the driver of PostgreSQL cannot be used. It is an extra, and may need a library."""
    try:
        import psycopg  # noqa: F401, PLC0415 - only such a crawl needs it
    except ModuleNotFoundError:
        raise ConfigError(f"{address} needs the package psycopg: pip install 'warchiver[postgres]'") from None
    except ImportError:
        raise ConfigError(
            f"{address}: psycopg finds no libpq; install the package libpq5 of your system, or: "
            "pip install 'psycopg[binary]'"
        ) from None


def file_of(database: Path) -> Path:
    """Return the file with the address of the frontier that would be in the file *database*."""
    return database.with_suffix(SUFFIX)


class SharedFrontier(NamedTuple):
    """The database of a crawl in PostgreSQL, as one directory names it."""

    address: str
    machine: str  # the name of this directory among those that crawl together
    revision: int  # of the settings in the database that crawl.toml agrees with; 0: of none


def shared_frontier(database: Path) -> SharedFrontier | None:
    """Return the frontier in PostgreSQL that would be in the file *database*; None if it is that file."""
    path = file_of(database)
    lines = _lines(path)
    if not lines:
        return None
    address, mark, machine, revision = (*lines, *[""] * 4)[:4]
    if not address.startswith(DATABASE_SCHEMES) or len(address) > LONGEST or not address.isprintable():
        raise ConfigError(
            f"{path} does not hold the address of a database, such as postgresql://crawl@db.example/crawl"
        )
    key = user_key(make=False)
    if not key or not hmac.compare_digest(_mark(key, address, machine), mark):
        raise ConfigError(
            f"{path}: you have not named this database for this collection on this machine; if you trust it: "
            f"archiver resume {quote(str(database.parent))} --frontier ADDRESS"
        )
    return SharedFrontier(address, machine, int(revision) if revision.isdecimal() else 0)


def address_of(database: Path) -> str:
    """Return the address of the frontier that would be in the file *database*; "" if it is that file."""
    found = shared_frontier(database)
    return "" if found is None else found.address


def _lines(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(2 * LONGEST).splitlines()[:MOST_LINES] or [""]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _mark(key: bytes, address: str, machine: str) -> str:
    return hmac.digest(key, f"frontier {address} {machine}".encode(), "sha256").hex()


def write_address(database: Path, address: str, machine: str = "", revision: int = 0) -> None:
    """Let the frontier that would be in the file *database* be in PostgreSQL at *address*, unless that is "".

    Without a name of this *machine*, it keeps the one that the file gives it, or gets that of the host.
    """
    if not address:
        return
    key = user_key(make=True)
    if not key:
        raise ConfigError("--frontier needs a key of yours in the folder ~/.local/state, which cannot be written")
    name = machine or machine_of(database)
    text = f"{address}\n{_mark(key, address, name)}\n{name}\n{revision}\n".encode()

    def fill(file: BinaryIO) -> None:
        file.write(text)

    replace_file(file_of(database), fill, lambda: len(text))


def machine_of(database: Path) -> str:
    """Return the name that the directory with the file *database* has among others, or would get: that of the host."""
    known = _lines(file_of(database))[2:3]
    return next((each for each in known if MACHINE.fullmatch(each)), "") or host_name()


def host_name() -> str:
    """Return the name of this host, as it may be part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:LONGEST_MACHINE].strip(".-") or "localhost"


def is_there(database: Path) -> bool:
    """Return True if there is a frontier in the file *database*, or an address in its place."""
    return database.exists() or file_of(database).exists()
