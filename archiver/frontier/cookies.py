"""Cookies in the frontier: those that visits set, committed with the visit, and those that the user brought."""

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from archiver.frontier.connection import Connection, Reader
from archiver.model import Cookie

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
