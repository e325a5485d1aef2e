"""Which records an index lists, and its line for each: of any writer's WARC, as cdxj-indexer makes it.

Listed are responses, revisits, and what resource and metadata records hold that is no warc-fields. What differs from
cdxj-indexer stands in docs/explanation/replay.md. Pure; never raises for what a record says.
"""

import json
import re
from dataclasses import dataclass, replace

from archiver.warc import cdxj
from archiver.warc.reader import Record
from archiver.warc.records import bare, parse_date

NEVER_LISTED = frozenset(("HEAD", "OPTIONS"))  # their empty answers would stand before those to GET

_LISTED = frozenset(("response", "revisit", "resource", "metadata"))
_IN_HTTP = frozenset(("response", "revisit", "request"))
_NO_DIGIT = re.compile(r"[^0-9]+")
_SPACE = re.compile(r"[\s\x00-\x20]")
_DAYS, _FRACTION = 3, 7  # numbers in a date: of one that names the day only, and of one with a part of a second


@dataclass(frozen=True, slots=True)
class Listed:
    """What an index says of one record; length and offset are those of its file."""

    url: str
    timestamp: str
    mime: str
    status: str | None  # None: it is no answer that has one
    digest: str
    offset: int
    length: int
    key: str = ""  # where it is another than that of `url`
    query: str | None = None  # of a request with a body
    method: str = ""

    def asked(self, method: str, query: str | None, looked_up: str) -> "Listed":
        """As the answer to a request with a body."""
        return replace(self, key=_key(looked_up), query=query, method=method.upper())

    def line(self, filename: str) -> bytes:
        """The line, with its end."""
        entry: dict[str, str | None] = {"url": self.url}
        if self.mime:
            entry["mime"] = self.mime
        if self.status is not None:
            entry["status"] = self.status
        entry |= {
            "digest": self.digest or "-",
            "length": str(self.length),
            "offset": str(self.offset),
            "filename": filename,
        }
        if self.method:
            entry |= {"requestBody": self.query, "method": self.method}
        key = self.key or _key(self.url)
        return f"{key} {self.timestamp} {json.dumps(entry)}\n".encode("utf-8", "replace")


def is_listed(record: Record) -> bool:
    """Whether an index lists a record with this header."""
    kind = record.first("WARC-Type")
    if kind not in _LISTED or target(record) == "" or timestamp(record) == "":
        return False
    return kind in _IN_HTTP or record.first("Content-Type") != "application/warc-fields"


def is_http(record: Record) -> bool:
    """Whether the block is an HTTP message."""
    return record.type in _IN_HTTP and target(record).startswith(("http:", "https:"))


def target(record: Record) -> str:
    """The URL, without the brackets and spaces that some writers leave in it; "" without one."""
    return indexed(text(record.first("WARC-Target-URI")))


def indexed(uri: str) -> str:
    """*uri* as an index has it: bare, and one word."""
    return bare(uri).replace(" ", "%20")


def timestamp(record: Record) -> str:
    """The 14 digits of the WARC-Date; "" where it is none."""
    date = record.first("WARC-Date") or ""
    numbers = _NO_DIGIT.split(date.strip()[:64])
    if numbers[-1] == "":
        numbers.pop()
    if len(numbers) < _DAYS:
        return ""
    try:
        if len(numbers) > _FRACTION:
            return cdxj.timestamp14(parse_date(date))  # in another time zone
        year, month, day, hour, minute, second = [*map(int, numbers[:6]), 0, 0, 0][:6]
        return cdxj.timestamp14(parse_date(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
    except (ValueError, OverflowError, OSError):
        return ""


def text(value: str | None) -> str:
    """*value*, in which bytes that are no UTF-8 are read as latin-1, as cdxj-indexer reads them."""
    value = value or ""
    if value.isascii():
        return value
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _key(address: str) -> str:
    """The key of *address*, which can hold anything; one word always."""
    try:
        key = cdxj.key(address)
    except Exception:  # noqa: BLE001  the library raises whatever it comes upon; the key is the URL itself, as there
        key = address
    return _SPACE.sub(lambda found: f"%{ord(found[0]):02x}", key)
