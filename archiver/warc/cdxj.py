"""CDXJ lines, by which pywb finds a capture: one writer, one lenient and one strict parser, and the lookup key.

A line is `SURT TIMESTAMP {json}`, and a file is sorted bytewise. Keys, fields and their order are those of
cdxj-indexer. An index lists responses, revisits, and resource and metadata records that hold no warc-fields.
docs/explanation/replay.md lists where we differ from cdxj-indexer. Pure. Source: CDXJ 0.1.0; pywb's lookups.

A request with a body has a query appended to the URL of its key, so that each body has its own key. The query has the
values of a form or of JSON, or else the body in base64, cut at 4096 characters. It is exactly what cdxj-indexer writes
and replayweb.page looks up. Linear; never raises. Source: "CDX for non-GET requests".
"""

import base64
import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote_plus, urlencode

from archiver import url
from archiver.model import Capture, Profile, Resource
from archiver.warc.reader import Record
from archiver.warc.records import ACCEPT_LANGUAGE, bare, parse_date

METHOD = "__wb_method="  # in the keys of responses to other methods than GET
LANGUAGE = "__wb_accept_language="  # in those of language variants; pywb shows the newest capture of the plain key
REVISIT = "warc/revisit"  # the "media type" of a revisit: its payload is stored in another record
UNAUTHORIZED = "401"

LONGEST_LINE = 1 << 20  # bytes; eight times the longest URLs that browsers accept

# URLs whose key we can build ourselves: no escapes, no path segments to collapse, no session ids.
_SEGMENT = r"/[A-Za-z0-9_~-][A-Za-z0-9_~.,:@!$&*+;=-]*+"
_PLAIN = re.compile(
    r"(?P<origin>(?:https?|metadata)://(?:[a-z0-9][a-z0-9.:-]{0,259}+|\[[0-9a-f:]{2,45}+\](?::[0-9]{1,5}+)?+))"
    rf"(?P<path>/|(?:{_SEGMENT})++)/?+"
    r"(?:\?(?P<query>[A-Za-z0-9_~./?:@!$&()*+,;=-]++))?+"
)
# Origins whose key we can build ourselves, because the surt library is slow to load: a host name whose last label
# begins with a letter, or an IP address in the one spelling that a canonical URL has.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ORIGIN = re.compile(
    rf"(?P<scheme>https?|metadata)://(?:(?P<name>(?:[a-z0-9_-]+\.)*[a-z][a-z0-9_-]*|[1-9][0-9]{{0,2}}(?:\.{_BYTE}){{3}})"
    r"|\[(?P<six>[0-9a-f:]+)\])(?::(?P<port>[1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_DNS = re.compile(r"dns:[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+")  # the key of such a URL is the URL itself
_WWW = re.compile(r"^www[0-9]*\.")
_SESSION = re.compile(r"sid=|sessionid|cftoken=")

_REQUIRED = ("url", "digest", "filename", "offset", "length")  # `mime` and `status` are absent if the record has none
_STRICT_TIMESTAMP = re.compile(r"[0-9]{14}(?:[0-9]{3}){0,2}")
_STRICT_NUMBER = re.compile(r"[0-9]{1,18}")


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
        key, timestamp, rest = line.decode().split(" ", 2)
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
        return self._replace(key=_safe_key(looked_up), query=query, method=method.upper())

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
        key = self.key or _safe_key(self.url)
        return f"{key} {self.timestamp} {json.dumps(fields)}\n".encode("utf-8", "replace")


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
    return entry.in_language("" if isinstance(capture, Resource) else capture.language).line(filename)


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
    reversed_host = plain["six"] if name is None else ",".join(reversed(_WWW.sub("", name).split(".")))
    return f"{reversed_host}{ending})"


NEVER_LISTED = frozenset(("HEAD", "OPTIONS"))  # methods whose empty responses would hide those to GET

_LISTED = frozenset(("response", "revisit", "resource", "metadata"))
_IN_HTTP = frozenset(("response", "revisit", "request"))
_NO_DIGIT = re.compile(r"[^0-9]+")
_SPACE = re.compile(r"[\s\x00-\x20]")
_DAYS, _FRACTION = 3, 7  # numbers in a date without a time, and in one with a fraction of a second


def is_listed(record: Record) -> bool:
    """Return True if an index lists records with a header like that of *record*."""
    kind = record.first("WARC-Type")
    if kind not in _LISTED or target_url(record) == "" or record_timestamp(record) == "":
        return False
    return kind in _IN_HTTP or record.first("Content-Type") != "application/warc-fields"


def is_http(record: Record) -> bool:
    """Return True if the block of *record* is an HTTP message."""
    return record.type in _IN_HTTP and target_url(record).startswith(("http:", "https:"))


def target_url(record: Record) -> str:
    """Return the target URL as an index lists it; "" if the record has none."""
    return index_url(decode_field(record.first("WARC-Target-URI")))


def index_url(uri: str) -> str:
    """Return *uri* without the brackets and spaces that some writers leave in it."""
    return bare(uri).replace(" ", "%20")


def record_timestamp(record: Record) -> str:
    """Return the WARC-Date as 14 digits; "" if it is no valid date."""
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


def _safe_key(address: str) -> str:
    """Return the key of *address*, which can hold anything, as one word without spaces."""
    try:
        key = lookup_key(address)
    except Exception:  # noqa: BLE001  the surt library can raise anything; cdxj-indexer then uses the URL itself as the key
        key = address
    return _SPACE.sub(lambda found: f"%{ord(found[0]):02x}", key)


LONGEST_QUERY = 4096  # characters of a query
MAX_BODY = 4 << 20  # bytes of a body that are read; longer JSON gives no values
WITHOUT_LENGTH = 8192  # bytes that are read of a body without Content-Length

_NAME = re.compile(rb'[; \t]name="([^"\r\n]*)"', re.IGNORECASE)
_FILENAME = re.compile(rb"[; \t]filename\*?=", re.IGNORECASE)
_LENGTH = re.compile(r"[ \t]*[0-9]{1,18}[ \t]*")


def key_parts(method: str, url: str, content_type: str, length: str | None, body: bytes) -> tuple[str | None, str]:
    """Return the query made from *body*, and *url* with all that is appended for the lookup of the response.

    *length* is the request's Content-Length, None without one; if it is not a number, there is no query.
    """
    query: str | None = ""
    if method in ("POST", "PUT"):
        size = _size(length)
        query = None if size is None else _query(content_type, body[:size])[:LONGEST_QUERY]
    joined = f"{url}{'&' if '?' in url else '?'}{METHOD}{method}"
    return query, f"{joined}&{query}" if query else joined


def _size(length: str | None) -> int | None:
    if length is None:
        return WITHOUT_LENGTH
    return int(length) if _LENGTH.fullmatch(length) else None


def _query(content_type: str, body: bytes) -> str:
    if content_type.startswith("application/x-www-form-urlencoded"):
        try:
            return unquote_plus(body.decode())
        except UnicodeDecodeError:
            return _binary(body)
    if content_type.startswith("multipart/"):
        boundary = content_type.partition("boundary=")[2]
        return _multipart(body, boundary) if boundary else _binary(body)
    if content_type.startswith("application/json"):
        return _json(body) or ""
    if content_type.startswith("text/plain"):
        values = _json(body)
        return _binary(body) if values is None else values
    return _binary(body)


def _binary(body: bytes) -> str:
    return f"__wb_post_data={base64.b64encode(body[:LONGEST_QUERY]).decode()}"


def _multipart(body: bytes, boundary: str) -> str:
    """Return the fields of a multipart form as a query; a file's bytes are kept as they are."""
    mark = b"\r\n--" + boundary.partition(";")[0].strip(' \t"').encode("latin-1", "replace")
    values: list[tuple[str, str | bytes]] = []
    for part in (b"\r\n" + body).split(mark)[1:]:
        if part.startswith(b"--"):
            break
        head, end, value = part.partition(b"\r\n\r\n")
        name = _NAME.search(head) if end else None
        if name is not None:
            is_file = _FILENAME.search(head)
            values.append((name[1].decode("utf-8", "replace"), value if is_file else value.decode("utf-8", "replace")))
    return urlencode(values)


def _json(body: bytes) -> str | None:
    """Return names and values of JSON, or of JSON lines, as a query; None if *body* is not JSON."""
    try:
        try:
            documents = [json.loads(body)]
        except json.JSONDecodeError:
            if b"\n" not in body:
                return None
            documents = [json.loads(line) for line in body.split(b"\n")]
        values: dict[str, str] = {}
        repeated: dict[str, int] = {}
        for document in documents:
            _gather(document, "", values, repeated)
        return urlencode(values)
    except (ValueError, RecursionError):  # an unpaired surrogate, a number with too many digits, or too deep nesting
        return None


def _gather(value: Any, name: str, values: dict[str, str], repeated: dict[str, int]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _gather(inner, key, values, repeated)
    elif isinstance(value, list):
        for inner in value:
            _gather(inner, name, values, repeated)
    elif name:
        if name in values:
            repeated[name] = repeated.get(name, 1) + 1
            name = f"{name}.{repeated[name]}_"
        values[name] = str(value)
