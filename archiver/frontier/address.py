"""The address of a frontier in PostgreSQL, in a file where crawl.db would be: crawl.postgresql.

So every command finds the frontier of a directory. The file never holds a password: libpq takes that from ~/.pgpass or
PGPASSWORD. A received collection can name any server, so an address counts only with a mark made with the user's key.
"""

import hmac
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from archiver.errors import ConfigError
from archiver.storage import replace_file, user_key

SUFFIX = ".postgresql"
SCHEMES = ("postgresql://", "postgres://")
LONGEST = 4096  # characters of an address


def file_of(database: Path) -> Path:
    """Return the file with the address of the frontier that would be in the file *database*."""
    return database.with_suffix(SUFFIX)


def address_of(database: Path) -> str:
    """Return the address of the frontier that would be in the file *database*; "" if it is that file."""
    path = file_of(database)
    try:
        with path.open(encoding="utf-8") as file:
            address, _, mark = file.read(2 * LONGEST).partition("\n")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    if not address.startswith(SCHEMES) or len(address) > LONGEST or not address.isprintable():
        raise ConfigError(
            f"{path} does not hold the address of a database, such as postgresql://crawl@db.example/crawl"
        )
    key = user_key(make=False)
    if not key or not hmac.compare_digest(_mark(key, address), mark.strip()):
        raise ConfigError(
            f"{path}: you have not named this database for this collection on this machine; if you trust it: "
            f"archiver resume {quote(str(database.parent))} --frontier ADDRESS"
        )
    return address


def _mark(key: bytes, address: str) -> str:
    return hmac.digest(key, f"frontier {address}".encode(), "sha256").hex()


def write_address(database: Path, address: str) -> None:
    """Let the frontier that would be in the file *database* be in PostgreSQL at *address*, unless that is ""."""
    if not address:
        return
    key = user_key(make=True)
    if not key:
        raise ConfigError("--frontier needs a key of yours in the folder ~/.local/state, which cannot be written")
    text = f"{address}\n{_mark(key, address)}\n".encode()

    def fill(file: BinaryIO) -> None:
        file.write(text)

    replace_file(file_of(database), fill, lambda: len(text))


def is_there(database: Path) -> bool:
    """Return True if there is a frontier in the file *database*, or an address in its place."""
    return database.exists() or file_of(database).exists()
