"""Cookies in the frontier: those that visits set, committed with the visit, and those that the user brought.

The user may bring a database of a browser: Firefox's cookies.sqlite, and Chromium's Cookies as far as possible.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from archiver.errors import ConfigError
from archiver.frontier.connection import Connection, Reader
from archiver.model import Cookie
from archiver.policy.cookie_files import MAX_COOKIES, brought, moment
from archiver.policy.set_cookie import SameSite

UPSERT = """
INSERT INTO cookies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (domain, path, name, host_only) DO UPDATE SET
    value = excluded.value, secure = excluded.secure, http_only = excluded.http_only, same_site = excluded.same_site,
    expires = excluded.expires, private = excluded.private, changed = excluded.changed
"""
DELETE = "DELETE FROM cookies WHERE domain = ? AND path = ? AND name = ? AND host_only = ?"
KEEP = """
INSERT INTO cookies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
TO_INHERIT = "SELECT * FROM cookies WHERE expires > ? OR private = 1"
OF_DOMAINS = "SELECT * FROM cookies WHERE domain IN (SELECT value FROM json_each(?))"
MATCHING = """
SELECT * FROM cookies
WHERE :domain = '' OR domain = :domain OR substr(domain, length(domain) - length(:domain)) = '.' || :domain
ORDER BY domain, path, name, host_only
"""
CLEAR = """
DELETE FROM cookies
WHERE :domain = '' OR domain = :domain OR substr(domain, length(domain) - length(:domain)) = '.' || :domain
"""


def save(db: Connection, cookies: Iterable[Cookie]) -> None:
    """Write *cookies*; those without time left are deleted."""
    for cookie in cookies:
        if cookie.expires <= cookie.created:
            db.execute(DELETE, (cookie.domain, cookie.path, cookie.name, int(cookie.host_only)))
        else:
            db.execute(UPSERT, _row(cookie))


def bring(db: Connection, loaded: Iterable[Cookie], earlier: Iterable[Cookie]) -> None:
    """Write the cookies that the user *loaded*, and before the first capture those of the *earlier* crawl too."""
    if db.row("SELECT 1 FROM captures LIMIT 1") is None:
        db.executemany(KEEP, [_row(cookie) for cookie in earlier])
    save(db, loaded)


def of_domains(db: Connection, domains: Sequence[str]) -> list[Cookie]:
    """Return the cookies of *domains* (host names)."""
    return [cookie_of(row) for row in db.rows(OF_DOMAINS, (json.dumps(domains),))]


def matching(db: Reader, domain: str = "") -> list[Cookie]:
    """Return all cookies of *domain* and its subdomains, or of all domains, in the order of their names."""
    return [cookie_of(row) for row in db.execute(MATCHING, {"domain": domain})]


def any_private(db: Reader) -> bool:
    """Return True if the user has brought a cookie."""
    return db.execute("SELECT 1 FROM cookies WHERE private = 1 LIMIT 1").fetchone() is not None


def clear(db: Connection, domain: str = "") -> int:
    """Delete the cookies of *domain* and its subdomains, or of all domains; return how many."""
    db.erase_deleted()  # their values are not left in free pages
    return db.execute(CLEAR, {"domain": domain}).rowcount


def text_of(cookies: Iterable[Cookie]) -> bytes:
    """Return *cookies* as JSON, one in a line."""
    return b"".join(json.dumps(_row(cookie)).encode() + b"\n" for cookie in cookies)


def cookies_of(text: bytes) -> list[Cookie]:
    """Return the cookies in *text*, which `text_of` made. Raises `ValueError` for anything else."""
    rows = [json.loads(line) for line in text.splitlines()]
    if not all(isinstance(row, list) and list(map(_kind, row)) in _KINDS for row in rows):
        raise ValueError("not the text of cookies")
    return [cookie_of(row) for row in rows]


def _kind(value: object) -> str:
    return "number" if isinstance(value, int | float) else type(value).__name__


_NUMBER, _TEXT = "number", "str"
_BEFORE = [_TEXT, _TEXT, _TEXT, _NUMBER, _TEXT, _NUMBER, _NUMBER, _TEXT, _NUMBER]
_KINDS = [[*_BEFORE, expires, _NUMBER, _NUMBER] for expires in (_NUMBER, "NoneType")]


def _row(cookie: Cookie) -> tuple[object, ...]:
    return (
        cookie.domain,
        cookie.path,
        cookie.name,
        int(cookie.host_only),
        cookie.value,
        int(cookie.secure),
        int(cookie.http_only),
        cookie.same_site,
        cookie.created,
        None if math.isinf(cookie.expires) else cookie.expires,
        int(cookie.private),
        cookie.changed,
    )


def cookie_of(row: sqlite3.Row | list[Any]) -> Cookie:
    """Return the cookie in *row*, which has all columns in the order of the schema."""
    domain, path, name, host_only, value, secure, http_only, same_site, created, expires, private, changed = row
    return Cookie(
        domain,
        path,
        name,
        value,
        bool(host_only),
        bool(secure),
        bool(http_only),
        same_site,
        created,
        math.inf if expires is None else expires,
        bool(private),
        changed,
    )


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
