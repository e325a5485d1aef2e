"""The people who may look and act: a file with a line for each, NAME:ROLE:HASH, that only its owner may read.

Passwords are kept as scrypt hashes. A line with the role `metrics` is no person: its secret is a random token, which a
program sends as a bearer token to read /metrics.
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from archiver.errors import ArchiveError, ConfigError
from archiver.storage import open_file, replace_file

COST, BLOCK, LANES = 1 << 14, 8, 5  # of scrypt: 16 MB, about a tenth of a second
LONGEST_FILE = 1 << 20
LONGEST_PASSWORD = 1000
SHORTEST_PASSWORD = 10
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,60}")
_LINE = re.compile(rf"({_NAME.pattern}):(watcher|operator|metrics):(scrypt|sha256)\$([A-Za-z0-9+/=$]+)")


class Role(StrEnum):
    """What someone may do."""

    WATCHER = "watcher"  # look
    OPERATOR = "operator"  # look and give orders
    METRICS = "metrics"  # read /metrics


@dataclass(frozen=True, slots=True)
class User:
    """A line of the file."""

    name: str
    role: Role
    salt: bytes
    digest: bytes

    def line(self) -> str:
        """Return the line."""
        if self.role is Role.METRICS:
            return f"{self.name}:{self.role}:sha256${_text(self.digest)}"
        return f"{self.name}:{self.role}:scrypt${_text(self.salt)}${_text(self.digest)}"

    def accepts(self, password: str) -> bool:
        """Return True if *password* is right. Takes a tenth of a second."""
        return hmac.compare_digest(_hashed(password, self.salt), self.digest)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _hashed(password: str, salt: bytes) -> bytes:
    given = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(given, salt=salt, n=COST, r=BLOCK, p=LANES, maxmem=64 << 20, dklen=32)


UNKNOWN = User(
    "", Role.WATCHER, b"no such user", bytes(32)
)  # so that an unknown name takes as long as a wrong password


def new_user(name: str, role: Role, password: str) -> User:
    """Return a new user. Raises `ConfigError` if the name or the password cannot be used."""
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"{name[:60]!r}: use at most 60 of A-Z a-z 0-9 . _ @ - for a name")
    if role is Role.METRICS:
        return User(name, role, b"", hashlib.sha256(password.encode()).digest())
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise ConfigError(f"a password has at least {SHORTEST_PASSWORD} characters, and at most {LONGEST_PASSWORD}")
    salt = secrets.token_bytes(16)
    return User(name, role, salt, _hashed(password, salt))


@dataclass(frozen=True, slots=True)
class Users:
    """All users of a file."""

    by_name: Mapping[str, User]

    def role(self, name: str, password: str) -> Role | None:
        """Return the role of the person *name*; None if there is none, or the *password* is wrong."""
        user = self.by_name.get(name[:100], UNKNOWN)
        right = len(password) <= LONGEST_PASSWORD and user.accepts(password)
        return user.role if right and user.role is not Role.METRICS and user is not UNKNOWN else None

    def may_read_metrics(self, token: str) -> bool:
        """Return True if *token* is that of a program."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        programs = [user for user in self.by_name.values() if user.role is Role.METRICS]
        return any(hmac.compare_digest(user.digest, digest) for user in programs)


def read_users(path: Path) -> Users:
    """Return the users in the file at *path*. Raises `ConfigError` if it cannot be used."""
    users = _parsed(path)
    if not any(user.role is not Role.METRICS for user in users.values()):
        raise ConfigError(f"--users {path}: no one is in it; add someone with --add-user NAME")
    return Users(users)


def _parsed(path: Path) -> dict[str, User]:
    try:
        with open_file(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(LONGEST_FILE + 1)
    except FileNotFoundError:
        hint = f"archiver watch --users {path} --add-user NAME makes it"
        raise ConfigError(f"--users {path}: there is no such file; {hint}") from None
    except OSError as error:
        raise ConfigError(f"--users {path}: cannot be read: {error.strerror or error}") from None
    except ArchiveError as error:
        raise ConfigError(f"--users {error}") from None
    if os.name != "nt" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"--users {path}: others can read or change it; first: chmod 600 {path}")
    if len(content) > LONGEST_FILE:
        raise ConfigError(f"--users {path}: longer than {LONGEST_FILE} bytes; this is no list of users")
    users = {}
    for number, text in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if not (line := text.strip()) or line.startswith("#"):
            continue
        user = _user(line)
        if user is None:
            raise ConfigError(f"--users {path}:{number}: write NAME:ROLE:HASH, as archiver watch --add-user does")
        users[user.name] = user
    return users


def _user(line: str) -> User | None:
    found = _LINE.fullmatch(line)
    if found is None or (found[2] == Role.METRICS) != (found[3] == "sha256"):
        return None
    try:
        *salt, digest = (base64.b64decode(part, validate=True) for part in found[4].split("$"))
    except ValueError:
        return None
    fits = len(digest) == 32 and len(salt) == (found[3] == "scrypt")
    return User(found[1], Role(found[2]), b"".join(salt), digest) if fits else None


def add_user(path: Path, user: User) -> None:
    """Add *user* to the file at *path*, in place of one of that name. Only the owner may read the file."""
    users = {**(_parsed(path) if path.exists() else {}), user.name: user}
    text = "".join(f"{each.line()}\n" for each in users.values()).encode()

    def fill(file: BinaryIO) -> None:
        file.write(text)

    replace_file(path, fill, private=True)
