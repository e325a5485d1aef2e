"""The address of a frontier in PostgreSQL, in a file where crawl.db would be: crawl.postgresql.

So every command finds the frontier of a directory. The file never holds a password: libpq takes that from ~/.pgpass or
PGPASSWORD.
"""

from pathlib import Path
from typing import BinaryIO

from archiver.errors import ConfigError
from archiver.storage import replace_file

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
            address = file.read(LONGEST + 1).strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    if not address.startswith(SCHEMES) or len(address) > LONGEST or not address.isprintable():
        raise ConfigError(
            f"{path} does not hold the address of a database, such as postgresql://crawl@db.example/crawl"
        )
    return address


def write_address(database: Path, address: str) -> None:
    """Let the frontier that would be in the file *database* be in PostgreSQL at *address*."""
    text = f"{address}\n".encode()

    def fill(file: BinaryIO) -> None:
        file.write(text)

    replace_file(file_of(database), fill, lambda: len(text))


def is_there(database: Path) -> bool:
    """Return True if there is a frontier in the file *database*, or an address in its place."""
    return database.exists() or file_of(database).exists()
