"""CDXJ lines: the index by which pywb finds a capture. Same keys, fields and order as cdxj-indexer writes.

A line is `SURT TIMESTAMP {json}`; a file is sorted bytewise. Source: CDXJ 0.1.0; pywb's look-ups. Pure.

Which records an index lists, and its line for each: of any writer's WARC, as cdxj-indexer makes it.

Listed are responses, revisits, and what resource and metadata records hold that is no warc-fields. What differs from
cdxj-indexer stands in docs/reference/index.md. Pure; never raises for what a record says.
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from archiver import url
from archiver.model import Capture, Profile, Resource
from archiver.warc.reader import Record
from archiver.warc.records import bare, parse_date

REVISIT = "warc/revisit"  # in place of a media type: the payload is to be looked for elsewhere

LONGEST_LINE = 1 << 20  # bytes; the longest URLs that browsers take are an eighth of it

# URLs whose key is plain to see: nothing in them is escaped, collapsed, or the id of a session.
_SEGMENT = r"/[A-Za-z0-9_~-][A-Za-z0-9_~.,:@!$&*+;=-]*+"
_PLAIN = re.compile(
    r"(?P<origin>(?:https?|metadata)://(?:[a-z0-9][a-z0-9.:-]{0,259}+|\[[0-9a-f:]{2,45}+\](?::[0-9]{1,5}+)?+))"
    rf"(?P<path>/|(?:{_SEGMENT})++)/?+"
    r"(?:\?(?P<query>[A-Za-z0-9_~./?:@!$&()*+,;=-]++))?+"
)
# Origins whose part of the key is plain to see too, so that the library, which takes long to load, is seldom needed:
# a name whose last label begins with a letter, or an IP address in the one spelling that a canonical URL has.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ORIGIN = re.compile(
    rf"(?P<scheme>https?|metadata)://(?:(?P<name>(?:[a-z0-9_-]+\.)*[a-z][a-z0-9_-]*|[1-9][0-9]{{0,2}}(?:\.{_BYTE}){{3}})"
    r"|\[(?P<six>[0-9a-f:]+)\])(?::(?P<port>[1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_LOOKUP = re.compile(r"dns:[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+")  # whose key is itself
_WWW = re.compile(r"^www[0-9]*\.")
_SESSION = re.compile(r"sid=|sessionid|cftoken=")
_quoted = json.JSONEncoder().encode


class IndexEntry(NamedTuple):
    """One line of an index, whoever wrote it."""

    key: str
    timestamp: str  # 14 digits; more where its writer knew more
    url: str
    mime: str  # `REVISIT` for a revisit
    status: str
    digest: str  # "" where the line has none; some writers leave "sha1:" out
    length: int  # of the record in its file; 0 where the line does not say
    offset: int
    filename: str


def read_line(line: bytes) -> IndexEntry | None:
    """The entry in *line*; None where it is none: a header line, or damaged."""
    key, _, rest = line.strip().partition(b" ")
    timestamp, _, text = rest.partition(b" ")
    try:
        said = json.loads(text)
        return IndexEntry(
            key=key.decode(),
            timestamp=timestamp.decode("ascii"),
            url=str(said["url"]),
            mime=str(said.get("mime", "unk")),
            status=str(said.get("status", "-")),
            digest=str(said.get("digest", "")),
            length=int(said.get("length") or 0),
            offset=int(said["offset"]),
            filename=str(said["filename"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def is_revisit(entry: IndexEntry) -> bool:
    """Whether the record of *entry* stands for a payload that lies elsewhere."""
    return entry.mime == REVISIT


def iso_date(timestamp: str) -> str:
    """The second that the *timestamp* of a line names, as a WARC-Date has it; "" where it names none."""
    try:
        moment = datetime.strptime(timestamp[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if re.fullmatch(r"[0-9]{14,20}", timestamp) else ""


def timestamp14(microseconds: int) -> str:
    """The 14 digits of *microseconds* since the epoch, in UTC."""
    return _second(microseconds // 1_000_000)


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d%H%M%S}"


def line(capture: Capture | Resource, filename: str) -> str:
    """The index line of *capture*, which lies in the file that is called *filename* now."""
    if isinstance(capture, Resource):
        return (
            f'{lookup_key(capture.uri)} {timestamp14(capture.timestamp)} {{"url": {_quoted(capture.uri)}, '
            f'"mime": {_quoted(capture.mime)}, "digest": {_quoted(capture.digest)}, "length": "{capture.span.length}", '
            f'"offset": "{capture.span.offset}", "filename": {_quoted(filename)}}}'
        )
    named = REVISIT if capture.revisit else capture.mime
    mime = f'"mime": {_quoted(named)}, ' if named else ""  # nobody invents one
    unmodified = capture.revisit is Profile.NOT_MODIFIED  # its record has no head, so that nobody else finds a status
    status = "" if unmodified else f'"status": "{capture.status or "-"}", '
    return (
        f'{lookup_key(capture.url)} {timestamp14(capture.timestamp)} {{"url": {_quoted(capture.url)}, '
        f"{mime}{status}"
        f'"digest": {_quoted(capture.payload_digest)}, "length": "{capture.response.length}", '
        f'"offset": "{capture.response.offset}", "filename": {_quoted(filename)}}}'
    )


def lookup_key(address: str) -> str:
    """The key under which pywb looks *address* up. A plain URL costs a thirtieth of what the library's steps do."""
    plain = _PLAIN.fullmatch(address)
    if plain is None:
        return address if _LOOKUP.fullmatch(address) else url.surt(address)
    host = _host(plain["origin"])
    query = plain["query"]
    if query is None:
        return host + plain["path"].lower()
    query = query.lower()
    if _SESSION.search(query):
        return url.surt(address)
    if "&" in query:
        query = "&".join(map("=".join, sorted(part.split("=", 1) for part in query.split("&"))))
    return f"{host}{plain['path'].lower()}?{query}"


@lru_cache(maxsize=16_384)
def _host(origin: str) -> str:
    plain = _ORIGIN.fullmatch(origin)
    if plain is None:
        return url.surt(origin + "/").removesuffix("/")
    port = plain["port"]
    ending = "" if port is None or port == _DEFAULT_PORTS.get(plain["scheme"]) else f":{port}"
    name = plain["name"]
    turned = plain["six"] if name is None else ",".join(reversed(_WWW.sub("", name).split(".")))
    return f"{turned}{ending})"


NEVER_LISTED = frozenset(("HEAD", "OPTIONS"))  # their empty answers would stand before those to GET

_LISTED = frozenset(("response", "revisit", "resource", "metadata"))
_IN_HTTP = frozenset(("response", "revisit", "request"))
_NO_DIGIT = re.compile(r"[^0-9]+")
_SPACE = re.compile(r"[\s\x00-\x20]")
_DAYS, _FRACTION = 3, 7  # numbers in a date: of one that names the day only, and of one with a part of a second


@dataclass(frozen=True, slots=True)
class ListedRecord:
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

    def asked(self, method: str, query: str | None, looked_up: str) -> "ListedRecord":
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
            return timestamp14(parse_date(date))  # in another time zone
        year, month, day, hour, minute, second = [*map(int, numbers[:6]), 0, 0, 0][:6]
        return timestamp14(parse_date(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
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
        key = lookup_key(address)
    except Exception:  # noqa: BLE001  the library raises whatever it comes upon; the key is the URL itself, as there
        key = address
    return _SPACE.sub(lambda found: f"%{ord(found[0]):02x}", key)
