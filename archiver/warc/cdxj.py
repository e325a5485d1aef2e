"""CDXJ lines, by which pywb finds a capture: one writer, one lenient and one strict parser, and the lookup key.

A line is `SURT TIMESTAMP {json}`, and a file is sorted bytewise. Keys, fields and their order are those of
cdxj-indexer. An index lists responses, revisits, and resource and metadata records that hold no warc-fields.
docs/explanation/replay.md lists where we differ from cdxj-indexer. Pure. Source: CDXJ 0.1.0; pywb's lookups.
"""

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from archiver import url
from archiver.ask import METHOD, WEBSOCKET, WITH_BODY
from archiver.config.expressions import compiled
from archiver.model import Capture, Profile, Resource
from archiver.warc.post_keys import parts_of
from archiver.warc.reader import Record
from archiver.warc.records import ACCEPT_LANGUAGE, bare, parse_date

LANGUAGE = "__wb_accept_language="  # in those of language variants; pywb shows the newest capture of the plain key
REVISIT = "warc/revisit"  # the "media type" of a revisit: its payload is stored in another record
UNAUTHORIZED = "401"

LONGEST_LINE = 1 << 20  # bytes; eight times the longest URLs that browsers accept

# URLs whose key we can build ourselves: no escapes that may change where a path or a query is divided, no path segments
# to collapse, no session ids.
_SIGN = r"%(?:2[124789A-Da-d]|3[0-9A-Ca-cEe]|[4-6][0-9A-Fa-f]|7[0-9A-Ea-e])"  # the key has the character itself
_ESCAPE = rf"(?:%(?:2[03]|[89A-Fa-f][0-9A-Fa-f])|{_SIGN})"  # the key has a space, # and what is not ASCII escaped
_SEGMENT = rf"/(?:[A-Za-z0-9_~,:@!$&*+;='()-]|{_ESCAPE})(?:[A-Za-z0-9_~.,:@!$&*+;='()-]++|{_ESCAPE})*+"
_PLAIN = compiled(
    r"(?P<origin>(?:https?|metadata)://(?:[a-z0-9][a-z0-9.:-]{0,259}+|\[[0-9a-f:]{2,45}+\](?::[0-9]{1,5}+)?+))"
    rf"(?P<path>/|(?:{_SEGMENT})++)/?+"
    rf"(?:\?(?P<query>(?:[A-Za-z0-9_~./?:@!$&()*+,;='-]++|{_ESCAPE})*+))?+"
)
_ESCAPED_SIGN = re.compile(_SIGN)
# Origins whose key we can build ourselves, because the surt library is slow to load: a host name whose last label
# begins with a letter, or an IP address in the one spelling that a canonical URL has.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ORIGIN = re.compile(
    rf"(?P<scheme>https?|metadata)://(?:(?P<name>(?:[a-z0-9_-]+\.)*[a-z][a-z0-9_-]*|[1-9][0-9]{{0,2}}(?:\.{_BYTE}){{3}})"
    r"|\[(?P<six>[0-9a-f:]+)\])(?::(?P<port>[1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_DNS = compiled(r"dns:[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+")  # the key of such a URL is the URL itself
_WWW = re.compile(r"^www[0-9]*\.")
_SESSION = re.compile(r"sid=|sessionid|cftoken=")

_REQUIRED = ("url", "digest", "filename", "offset", "length")  # `mime` and `status` are absent if the record has none
_STRICT_TIMESTAMP = re.compile(r"[0-9]{14}(?:[0-9]{3}){0,2}")
_STRICT_NUMBER = re.compile(r"[0-9]{1,18}")
_TEXT = r'"([ !#-\[\]-~]*)"'  # without escapes
_USUAL_FIELDS = ("url", "mime", "status", "digest", "length", "offset", "filename")
_USUAL_LINE = re.compile(
    rf'([!-~]+) ([0-9]{{14}}) \{{"url": {_TEXT}, (?:"mime": {_TEXT}, )?(?:"status": {_TEXT}, )?"digest": {_TEXT}, '
    rf'"length": "([0-9]{{1,18}})", "offset": "([0-9]{{1,18}})", "filename": {_TEXT}\}}\n'
)


class IndexEntry(NamedTuple):
    """One line of an index, as read from any writer."""

    key: str
    timestamp: str  # 14 digits; more if its writer knew more
    url: str
    mime: str  # `REVISIT` for a revisit
    status: str
    digest: str  # "" if the line has none; some writers omit "sha1:"
    length: int  # of the record in its file; 0 if the line does not say
    offset: int
    filename: str
    language: str = ""  # of a language variant


class StrictLine(NamedTuple):
    """One line that has every required part in the right form; what it says may still be wrong."""

    key: str
    timestamp: str
    fields: dict[str, Any]


def parse_line(line: bytes) -> IndexEntry | None:
    """Return the entry in *line*, with defaults for optional fields; None for a header or a damaged line."""
    key, _, rest = line.strip().partition(b" ")
    timestamp, _, encoded = rest.partition(b" ")
    try:
        fields = json.loads(encoded)
        language = str(fields.get(ACCEPT_LANGUAGE, ""))
        return IndexEntry(
            key=key.decode(),
            timestamp=timestamp.decode("ascii"),
            url=_bare_url(str(fields["url"]), language),
            mime=str(fields.get("mime", "unk")),
            status=str(fields.get("status", "-")),
            digest=str(fields.get("digest", "")),
            length=int(fields.get("length") or 0),
            offset=int(fields["offset"]),
            filename=str(fields["filename"]),
            language=language,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def parse_strict_line(line: bytes) -> StrictLine | None:
    """Return the parts of *line*; None unless it is complete and well-formed, with its line end."""
    try:
        text = line.decode()
        if usual := _USUAL_LINE.fullmatch(text):
            key, timestamp, *values = usual.groups()
            named = zip(_USUAL_FIELDS, values, strict=True)
            return StrictLine(key, timestamp, {name: value for name, value in named if value is not None})
        key, timestamp, rest = text.split(" ", 2)
        fields = json.loads(rest)
    except (ValueError, RecursionError):
        return None
    if not line.endswith(b"\n") or not _STRICT_TIMESTAMP.fullmatch(timestamp) or not isinstance(fields, dict):
        return None
    if not all(isinstance(fields.get(name), str | int) for name in _REQUIRED):
        return None
    if not all(_STRICT_NUMBER.fullmatch(str(fields[name])) for name in ("offset", "length")):
        return None
    return StrictLine(key, timestamp, fields)


def is_plain(entry: IndexEntry) -> bool:
    """Return True if *entry* answers a GET without a language of its own, so that its key is that of its URL."""
    return METHOD not in entry.key and LANGUAGE not in entry.key


def is_revisit(entry: IndexEntry) -> bool:
    """Return True if the payload of *entry* is stored in another record."""
    return entry.mime == REVISIT


def timestamp14(microseconds: int) -> str:
    """Format *microseconds* since the epoch as 14 digits, in UTC."""
    return _second(microseconds // 1_000_000)


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d%H%M%S}"


_quoted = json.encoder.encode_basestring_ascii  # as json.dumps writes a text, which takes thrice as long for a line


class IndexedRecord(NamedTuple):
    """The fields of one record's index line; offset and length are those in its WARC file."""

    url: str
    timestamp: str
    mime: str
    status: str | None  # None for records without an HTTP status
    digest: str
    offset: int
    length: int
    key: str = ""  # if not that of `url`
    query: str | None = None  # of a request with a body
    method: str = ""
    language: str = ""  # of a language variant

    def in_language(self, language: str) -> "IndexedRecord":
        """Return the entry of a response in *language*, listed under a URL of its own; itself if *language* is ""."""
        return self._replace(url=variant_url(self.url, language), language=language) if language else self

    def with_request(self, method: str, query: str | None, looked_up: str) -> "IndexedRecord":
        """Return the entry of the response to a request with a body, listed under *looked_up*."""
        return self._replace(key=safe_key(looked_up), query=query, method=method.upper())

    def line(self, filename: str) -> bytes:
        """Return the index line, with its line end, of this record in the file *filename*."""
        fields: dict[str, str | None] = {"url": self.url}
        if self.status == UNAUTHORIZED:  # sorts after the page of the same second: pywb shows the first line
            fields["status"] = self.status
        if self.mime:
            fields["mime"] = self.mime
        if self.status is not None:
            fields["status"] = self.status
        fields["digest"] = self.digest or "-"
        fields["length"] = str(self.length)
        fields["offset"] = str(self.offset)
        if self.language:
            fields[ACCEPT_LANGUAGE] = self.language
        fields["filename"] = filename
        if self.method:
            fields |= {"requestBody": self.query, "method": self.method}
        key = self.key or safe_key(self.url)
        texts = [f'"{name}": {"null" if value is None else _quoted(value)}' for name, value in fields.items()]
        return f"{key} {self.timestamp} {{{', '.join(texts)}}}\n".encode("utf-8", "replace")


def is_shown(capture: Capture | Resource) -> bool:
    """Return True if an index lists *capture*."""
    ask = None if isinstance(capture, Resource) else capture.ask
    return ask is None or ask.method not in NEVER_LISTED | NOT_REPLAYED


def capture_line(capture: Capture | Resource, filename: str) -> bytes:
    """Return the index line of *capture*, with its line end; *filename* is the current name of its WARC."""
    status: str | None
    if isinstance(capture, Resource):
        address, mime, status = capture.uri, capture.mime, None
        digest, span = capture.digest, capture.span
    else:
        address, mime = capture.url, REVISIT if capture.revisit else capture.mime
        # The record of a 304 stores no HTTP head, so an indexer that reads the WARC finds no status either.
        status = None if capture.revisit is Profile.NOT_MODIFIED else str(capture.status or "-")
        digest, span = capture.payload_digest, capture.response
    entry = IndexedRecord(address, timestamp14(capture.timestamp), mime, status, digest, span.offset, span.length)
    if isinstance(capture, Resource):
        return entry.line(filename)
    if capture.ask is not None and capture.ask.method in WITH_BODY:
        entry = entry._replace(url=capture.ask.target).with_request(capture.ask.method, *parts_of(capture.ask))
    return entry.in_language(capture.language).line(filename)


def variant_url(address: str, language: str) -> str:
    """Return the URL under which the variant of *address* in *language* is listed."""
    return f"{address}{'&' if '?' in address else '?'}{LANGUAGE}{language}"


def _bare_url(listed: str, language: str) -> str:
    """Return the URL of a response in *language* that has the URL *listed* in an index."""
    address = listed[: -len(f"?{LANGUAGE}{language}")] if language else listed
    return address if not language or variant_url(address, language) == listed else listed


def lookup_key(address: str) -> str:
    """Return the key under which pywb looks *address* up. Plain URLs cost a thirtieth of a call of the surt library."""
    plain = _PLAIN.fullmatch(address)
    if plain is None:
        return address if _DNS.fullmatch(address) else url.surt(address)
    host, path, query = _host(plain["origin"]), _unescaped(plain["path"]), _unescaped(plain["query"] or "")
    if ("(" in path and ".aspx" in path) or (query and _SESSION.search(query)):
        return url.surt(address)
    if "&" in query:
        query = "&".join(map("=".join, sorted(part.split("=", 1) for part in query.split("&"))))
    return f"{host}{path}?{query}" if query else host + path


def _unescaped(text: str) -> str:
    """Return *text* in small letters, with the signs that a key does not escape as they are."""
    if "%" in text:
        text = _ESCAPED_SIGN.sub(lambda escape: chr(int(escape[0][1:], 16)), text)
    return text.lower()


@lru_cache(maxsize=16_384)
def _host(origin: str) -> str:
    plain = _ORIGIN.fullmatch(origin)
    if plain is None:
        return url.surt(origin + "/").removesuffix("/")
    port = plain["port"]
    ending = "" if port is None or port == _DEFAULT_PORTS.get(plain["scheme"]) else f":{port}"
    name = plain["name"]
    reversed_host = plain["six"] if name is None else ",".join(reversed(_WWW.sub("", name).split(".")))
    return f"{reversed_host}{ending})"


NEVER_LISTED = frozenset(("HEAD", "OPTIONS"))  # methods whose empty responses would hide those to GET
NOT_REPLAYED = frozenset(
    ("DELETE", "PATCH", WEBSOCKET)
)  # in files of ours: theirs would too, and cdxj-indexer lists them

_LISTED = frozenset(("response", "revisit", "resource", "metadata"))
_IN_HTTP = frozenset(("response", "revisit", "request"))
_NO_DIGIT = re.compile(r"[^0-9]+")
_SPACE = re.compile(r"[\s\x00-\x20]")
_USUAL_DATE = re.compile(r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z")
_LONGEST_DATE = 64  # characters; longer ones are not cached
_DAYS, _FRACTION = 3, 7  # numbers in a date without a time, and in one with a fraction of a second


def is_listed(record: Record, url: str) -> bool:
    """Return True if an index lists records with a header like that of *record*, whose `target_url` is *url*."""
    kind = record.first("WARC-Type")
    if kind not in _LISTED or url == "" or record_timestamp(record) == "":
        return False
    return kind in _IN_HTTP or record.first("Content-Type") != "application/warc-fields"


def is_http(record: Record, url: str) -> bool:
    """Return True if the block of *record*, whose `target_url` is *url*, is an HTTP message."""
    return record.type in _IN_HTTP and url.startswith(("http:", "https:"))


def target_url(record: Record) -> str:
    """Return the target URL as an index lists it; "" if the record has none."""
    return index_url(decode_field(record.first("WARC-Target-URI")))


def index_url(uri: str) -> str:
    """Return *uri* without the brackets and spaces that some writers leave in it."""
    return bare(uri).replace(" ", "%20") if "<" in uri or " " in uri else uri


def record_timestamp(record: Record) -> str:
    """Return the WARC-Date as 14 digits; "" if it is no valid date."""
    date = record.first("WARC-Date") or ""
    return _timestamp(date) if len(date) <= _LONGEST_DATE else _read_timestamp(date)


def _read_timestamp(date: str) -> str:
    if _USUAL_DATE.fullmatch(date):
        with suppress(ValueError):  # as the code below, but faster
            datetime.fromisoformat(date[:19])
            return date[:10].replace("-", "") + date[11:19].replace(":", "")
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


_timestamp = lru_cache(maxsize=256)(_read_timestamp)  # the records of a visit have the same date


def decode_field(value: str | None) -> str:
    """Return *value*, with bytes that are not UTF-8 read as Latin-1, as cdxj-indexer does."""
    value = value or ""
    if value.isascii():
        return value
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def safe_key(address: str) -> str:
    """Return the key of *address*, which can hold anything, as one word without spaces."""
    try:
        key = lookup_key(address)
    except Exception:  # noqa: BLE001  the surt library can raise anything; cdxj-indexer then uses the URL itself as the key
        key = address
    return _SPACE.sub(lambda found: f"%{ord(found[0]):02x}", key)
