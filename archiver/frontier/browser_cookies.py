"""Read the cookies in a database of a browser: Firefox's cookies.sqlite, and Chromium's Cookies as far as possible."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from archiver.errors import ConfigError
from archiver.model import Cookie
from archiver.policy.cookie_files import MAX_COOKIES, brought, moment
from archiver.policy.set_cookie import SameSite

MAGIC = b"SQLite format 3\0"
_FIREFOX = """
SELECT host, path, CAST(name AS BLOB), CAST(value AS BLOB), expiry, isSecure, isHttpOnly, sameSite FROM moz_cookies
WHERE originAttributes = '' LIMIT ?
"""  # the others are of containers, private windows or parts of other sites
_CHROMIUM = """
SELECT host_key, path, CAST(name AS BLOB), CAST(value AS BLOB), expires_utc, is_secure, is_httponly, samesite,
       value = '' AND length(encrypted_value) > 0
FROM cookies LIMIT ?
"""
_SAME_SITE = {0: SameSite.NONE, 1: SameSite.LAX, 2: SameSite.STRICT}
_EPOCH_OF_CHROMIUM = 11_644_473_600.0  # seconds from 1601 to 1970


def read_database(path: Path, now: float) -> tuple[list[Cookie], int]:
    """Return the cookies in the database at *path*, and how many more have an encrypted value.

    Raises `ConfigError` with the reason if it cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=1)) as db:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            if "moz_cookies" in tables:
                return list(_firefox(db, now)), 0
            if "cookies" not in tables:
                raise ConfigError("a database without cookies; name Firefox's cookies.sqlite or a cookies.txt")
            rows = db.execute(_CHROMIUM, (MAX_COOKIES + 1,)).fetchall()
    except sqlite3.Error as error:
        busy = "locked" in str(error)
        raise ConfigError("the browser uses it; close the browser first" if busy else str(error)) from None
    encrypted = sum(row[-1] for row in rows)
    if rows and encrypted == len(rows):
        raise ConfigError(f"Chromium has encrypted all {encrypted} values; export them as cookies.txt by an extension")
    return [_chromium(row, now) for row in rows if not row[-1]], encrypted


def _firefox(db: sqlite3.Connection, now: float) -> Iterator[Cookie]:
    for host, path, name, value, expires, secure, http_only, same_site in db.execute(_FIREFOX, (MAX_COOKIES + 1,)):
        yield _cookie((host, path, name, value), moment(float(expires)), now, secure=bool(secure))._replace(
            http_only=bool(http_only), same_site=_same_site(same_site, secure=bool(secure))
        )


def _chromium(row: tuple[object, ...], now: float) -> Cookie:
    host, path, name, value, expires, secure, http_only, same_site, _ = row
    given = float(expires) if isinstance(expires, int) else 0.0
    until = given / 1e6 - _EPOCH_OF_CHROMIUM if given else math.inf
    return _cookie((host, path, name, value), until, now, secure=bool(secure))._replace(
        http_only=bool(http_only), same_site=_same_site(same_site, secure=bool(secure))
    )


def _cookie(texts: tuple[object, object, object, object], expires: float, now: float, *, secure: bool) -> Cookie:
    host, path, name, value = (text.decode("latin-1") if isinstance(text, bytes) else str(text) for text in texts)
    host_only = not host.startswith(".")
    return brought((host, path), (name, value), expires, now, host_only=host_only, secure=secure)


def _same_site(number: object, *, secure: bool) -> str:
    """Return the word for the *number* of a browser; None counts only with Secure."""
    word = _SAME_SITE.get(number, SameSite.DEFAULT) if isinstance(number, int) else SameSite.DEFAULT
    return SameSite.DEFAULT if word is SameSite.NONE and not secure else word
