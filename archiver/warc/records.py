"""Build the headers of WARC 1.1 records, and write and parse the metadata of a visit.

A capture is three records with the same date: response (or revisit), request, metadata, in this order, because
indexers join a request to the record right before it. The metadata record holds all that the frontier needs to know
of the visit, so a crawl can be restored from its WARCs alone. For a page that was not modified this is so little that
it fits into the header of the revisit, and there is no metadata record. Pure: dates and ids are arguments.
Source: WARC 1.1 (ISO 28500:2017) §5 and §6; WARC-Protocol and WARC-Cipher-Suite as the IIPC's drafts have them.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from archiver.model import Claim, Digests, Exchange, Hop, Link, Links, Profile, Revisit, Truncation
from archiver.warc.reader import Record

NewId = Callable[[], str]  # "<urn:uuid:…>"

RESPONSE_TYPE = "application/http;msgtype=response"
REQUEST_TYPE = "application/http;msgtype=request"
FIELDS_TYPE = "application/warc-fields"
PROFILES = "http://netpreserve.org/warc/1.1/revisit/"  # and a word of `Profile`

_PLAIN = bytes(range(0x20, 0x7F))  # printable ASCII
_SHOWN = _PLAIN.decode().replace("%", "")  # kept in a line; other bytes are escaped as %0D
_BYTES = re.compile(r"[0-9]{1,18}")
_PATH = "hopsFromSeed"  # in the metadata of each visit
ACCEPT_LANGUAGE = "acceptLanguage"  # in the response or revisit of a language variant
_LONGEST_FIELDS = 8 << 10  # bytes of metadata in the header of a revisit; longer metadata gets its own record


def warc_date(microseconds: int) -> str:
    """Format microseconds since the epoch as a WARC-Date in UTC with microseconds."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second(seconds)}.{rest:06}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def parse_date(text: str) -> int:
    """Parse a WARC-Date of any precision to microseconds since the epoch; ValueError if it is invalid."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond


def header(kind: str, fields: Iterable[tuple[str, str]], content_type: str, length: int) -> bytes:
    """Return the header of a record, with its empty line."""
    lines = [f"WARC/1.1\r\nWARC-Type: {kind}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + f"\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n").encode()


def warc_fields(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Return a block of type application/warc-fields. Control characters in values become spaces."""
    return _block([f"{name}: {value}" for name, value in pairs])


def _block(lines: list[str]) -> bytes:
    block = "\r\n".join([*lines, ""]).encode("utf-8", "replace")
    if len(block.translate(None, _PLAIN)) == 2 * len(lines):  # all other bytes are the line ends
        return block
    return "\r\n".join([*map(_one_line, lines), ""]).encode("utf-8", "replace")


def _one_line(line: str) -> str:
    return line if line.isprintable() else "".join(char if char.isprintable() else " " for char in line)


class RecordIds:
    """A generator of Record-IDs, random UUIDs (RFC 4122, version 4) made many at once.

    Call it from one thread at a time.
    """

    AT_ONCE = 128
    _FORM = b"<urn:uuid:00000000-0000-0000-0000-000000000000> "

    def __init__(self, chance: Callable[[int], bytes]) -> None:
        self._chance = chance
        self._made: list[str] = []

    def __call__(self) -> str:
        """Return the next ID."""
        if not self._made:
            self._made = self._make()
        return self._made.pop()

    def _make(self) -> list[str]:
        chance = bytearray(self._chance(16 * self.AT_ONCE))
        chance[6::16] = bytes(byte & 0x0F | 0x40 for byte in chance[6::16])  # the version
        chance[8::16] = bytes(byte & 0x3F | 0x80 for byte in chance[8::16])  # the variant
        digits = chance.hex().encode()
        made = bytearray(self._FORM * self.AT_ONCE)
        places = [place for place, char in enumerate(self._FORM) if char == ord("0")]
        for number, place in enumerate(places):
            made[place :: len(self._FORM)] = digits[number::32]
        return made.decode().split()


class BlockHeaders(NamedTuple):
    """Digests and lengths of the stored blocks of one capture, for its record headers."""

    response: Digests  # for a revisit: of the stored block, and of the payload stored elsewhere
    response_length: int
    request: str  # digest
    request_length: int
    metadata: str  # digest
    metadata_length: int
    revisit: Revisit | None = None
    notes: str = ""  # header lines of the revisit, in place of a metadata record


class CaptureHeaders(NamedTuple):
    """The headers of the records of one capture, with their empty lines; that of the metadata may be empty."""

    response: bytes
    request: bytes
    metadata: bytes


def capture_headers(
    address: str, exchange: Exchange, blocks: BlockHeaders, file_id: str, new_id: NewId
) -> CaptureHeaders:
    """Return the headers of response (or revisit), request and metadata; *file_id* is the ID of the file's warcinfo."""
    response_id = new_id()
    date = warc_date(exchange.started)
    common = f"WARC-Target-URI: {address}\r\nWARC-Date: {date}\r\nWARC-Warcinfo-ID: {file_id}\r\n"
    peer = exchange.peer
    came_from = "" if peer.ip is None else _ip_field(peer.ip)
    tls = f"WARC-Protocol: {peer.tls}\r\n" if peer.tls else ""
    cipher = f"WARC-Cipher-Suite: {peer.cipher}\r\n" if peer.cipher else ""
    revisit, payload, cut = blocks.revisit, blocks.response.payload, exchange.truncated
    variant = f"{ACCEPT_LANGUAGE}: {exchange.language}\r\n" if exchange.language else ""
    kind, refers = "response", ""
    if revisit is not None:
        kind, refers = "revisit", _refers(revisit)
        cut = Truncation.LENGTH if revisit.profile is Profile.IDENTICAL else cut
    digest = f"WARC-Payload-Digest: {payload}\r\n" if payload else ""
    truncated = f"WARC-Truncated: {cut.value}\r\n" if cut else ""
    response = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {response_id}\r\n{common}{came_from}"
        f"WARC-Protocol: {exchange.framing.protocol}\r\n{tls}{cipher}{refers}"
        f"WARC-Block-Digest: {blocks.response.block}\r\n{digest}{truncated}{variant}{blocks.notes}"
        f"Content-Type: {RESPONSE_TYPE}\r\nContent-Length: {blocks.response_length}\r\n\r\n"
    )
    request = (
        f"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: {new_id()}\r\nWARC-Concurrent-To: {response_id}\r\n"
        f"{common}{came_from}WARC-Block-Digest: {blocks.request}\r\n"
        f"Content-Type: {REQUEST_TYPE}\r\nContent-Length: {blocks.request_length}\r\n\r\n"
    )
    if blocks.notes:
        return CaptureHeaders(response.encode(), request.encode(), b"")
    metadata = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {new_id()}\r\nWARC-Concurrent-To: {response_id}\r\n"
        f"{common}WARC-Block-Digest: {blocks.metadata}\r\n"
        f"Content-Type: {FIELDS_TYPE}\r\nContent-Length: {blocks.metadata_length}\r\n\r\n"
    )
    return CaptureHeaders(response.encode(), request.encode(), metadata.encode())


def _refers(revisit: Revisit) -> str:
    """Return the header lines with the profile of *revisit* and the record that it refers to."""
    named = f"WARC-Refers-To: {revisit.record_id}\r\n" if revisit.record_id else ""
    return (
        f"WARC-Profile: {PROFILES}{revisit.profile.value}\r\n{named}"
        f"WARC-Refers-To-Target-URI: {revisit.url}\r\nWARC-Refers-To-Date: {revisit.date}\r\n"
    )


def bare(uri: str | None) -> str:
    """Return *uri* without the angle brackets of WARC 1.0; "" for None."""
    return uri[1:-1] if uri and uri.startswith("<") and uri.endswith(">") else uri or ""


def target_of(record: Record) -> str:
    """Return the target URL of *record*; "" if it has none."""
    return bare(record.first("WARC-Target-URI"))


class RevisitTarget(NamedTuple):
    """The capture that a revisit refers to; "" for missing fields."""

    url: str
    date: str


def referred(record: Record) -> RevisitTarget:
    """Return the capture whose payload the revisit *record* has."""
    return RevisitTarget(bare(record.first("WARC-Refers-To-Target-URI")), record.first("WARC-Refers-To-Date") or "")


def profile_of(record: Record) -> Profile | None:
    """Return the profile of a revisit by the last word of its URI, `IDENTICAL` if unknown; None for other records."""
    if record.type != "revisit":
        return None
    word = (record.first("WARC-Profile") or "").rpartition("/")[2]
    return Profile.NOT_MODIFIED if word == Profile.NOT_MODIFIED else Profile.IDENTICAL


@lru_cache(maxsize=1 << 14)  # a host is visited again when thousands of others were
def _ip_field(ip: str) -> str:
    return f"WARC-IP-Address: {ip_address(ip)}\r\n"


class VisitMetadata(NamedTuple):
    """The metadata of a visit: all that response and request do not show."""

    path: str
    hop: Hop
    depth: int
    off_scope_hops: int
    tries: int
    duration: float
    via: str | None
    seed: str
    links: Links
    faults: tuple[str, ...] = ()  # of the message
    remarks: tuple[str, ...] = ()  # on the exchange
    interim: bytes = b""
    surplus: bytes = b""
    payload_length: int | None = None  # for a revisit: bytes of the payload
    received: int | None = None  # for a revisit: bytes of the response on the wire
    unmodified: bytes = b""  # the head of a 304; a revisit record with it would replay as an empty 304
    links_of: tuple[str, int] | None = None  # the file and offset of the stored response that has the links instead
    referrer_policy: str = ""  # of the link that led here

    @classmethod
    def of(
        cls,
        claim: Claim,
        exchange: Exchange,
        links: Links,
        revisit: Revisit | None = None,
        links_of: tuple[str, int] | None = None,
    ) -> "VisitMetadata":
        """Return the metadata of a new visit; with *links_of*, its *links* come from a stored response."""
        return cls(
            path=claim.path,
            hop=claim.hop,
            depth=claim.depth,
            off_scope_hops=claim.off_scope_hops,
            tries=claim.tries,
            duration=exchange.duration,
            via=claim.via,
            seed=claim.seed,
            links=links if links_of is None else Links(),
            faults=exchange.framing.faults,
            remarks=exchange.notes,
            interim=exchange.interim,
            surplus=exchange.surplus,
            payload_length=None if revisit is None else revisit.payload_length,
            received=None if revisit is None else exchange.response.length,
            unmodified=exchange.response.head(exchange.framing.head_length) if is_unmodified(revisit) else b"",
            links_of=links_of,
            referrer_policy=claim.referrer_policy,
        )

    def fields(self) -> str:
        """Return the fields of `block` as header lines of a revisit, without those that `of_revisit` can infer.

        Return "" if they are too long or have links; nearly all visits without links fit.
        """
        known = {
            f"hop: {_last_hop(self.path).value}",
            "offScopeHops: 0",
            "tries: 0",
            f"receivedLength: {len(self.unmodified)}",
        }
        block = self.block()
        if len(block) > _LONGEST_FIELDS or self.links != Links():
            return ""
        return "".join(f"{line}\r\n" for line in block.decode().split("\r\n")[:-1] if line not in known)

    def block(self) -> bytes:
        """Return the metadata record's block. The first names are Heritrix's, so its tools can read them."""
        lines = [f"via: {self.via}"] if self.via else []
        lines += [f"hopsFromSeed: {self.path}", f"fetchTimeMs: {round(self.duration * 1000)}"]
        optional = (
            ("seed", self.seed),
            ("charsetForLinkExtraction", self.links.charset),
            ("linkExtractionNote", self.links.note),
            ("referrerPolicy", self.referrer_policy),
            ("referrerPolicyOfLinks", self.links.referrer_policy),
        )
        lines += [f"{name}: {value}" for name, value in optional if value]
        lines += [f"nofollow: {rule}" for rule in self.links.nofollow]
        lines += [
            f"hop: {self.hop.value}",
            f"depth: {self.depth}",
            f"offScopeHops: {self.off_scope_hops}",
            f"tries: {self.tries}",
        ]
        if self.received is not None:
            lines += [f"payloadLength: {self.payload_length}", f"receivedLength: {self.received}"]
        if self.links_of is not None:
            lines.append(f"outlinksOf: {self.links_of[0]} {self.links_of[1]}")
        lines += [f"fault: {fault}" for fault in self.faults]
        lines += [f"remark: {remark}" for remark in self.remarks]
        encoded = (("interimResponse", self.interim), ("surplusBytes", self.surplus))
        lines += [f"{name}: {b64encode(value).decode()}" for name, value in encoded if value]
        if self.unmodified:
            lines.append(f"notModifiedHead: {quote_from_bytes(self.unmodified, _SHOWN)}")
        # Most of a page's lines are these; `_value_` is what `value` returns after a call.
        lines += [f"outlink: {address} {hop._value_} {place or '-'}" for address, hop, place in self.links.links]
        return _block(lines)

    @classmethod
    def parse(cls, block: bytes) -> "VisitMetadata":
        """Parse *block*; ValueError if it is not ours."""
        return cls._of(line.partition(": ")[::2] for line in block.decode().split("\r\n"))

    @classmethod
    def of_revisit(cls, record: Record) -> "VisitMetadata | None":
        """Return the metadata in the header of *record*, None if it has none; ValueError if it is not ours."""
        if not says_all(record):
            return None
        path = record.first(_PATH) or ""
        known = [("hop", _last_hop(path).value), ("offScopeHops", "0"), ("tries", "0")]
        notes = cls._of([*known, *record.fields])
        return notes if notes.received is not None else notes._replace(received=len(notes.unmodified))

    @classmethod
    def _of(cls, fields: Iterable[tuple[str, str]]) -> "VisitMetadata":
        single: dict[str, str] = {}
        repeated: dict[str, list[str]] = {"fault": [], "remark": [], "nofollow": []}
        links: list[Link] = []
        for name, value in fields:
            if name == "outlink":
                address, hop, context = value.split(" ", 2)
                links.append(Link(address, Hop(hop), "" if context == "-" else context))
            elif name in repeated:
                repeated[name].append(value)
            else:
                single[name] = value
        charset, note = single.get("charsetForLinkExtraction", ""), single.get("linkExtractionNote", "")
        policy = single.get("referrerPolicyOfLinks", "")
        try:
            return cls(
                path=single["hopsFromSeed"],
                hop=Hop(single["hop"]),
                depth=int(single["depth"]),
                off_scope_hops=int(single["offScopeHops"]),
                tries=int(single["tries"]),
                duration=int(single["fetchTimeMs"]) / 1000,
                via=single.get("via"),
                seed=single.get("seed", ""),
                links=Links(tuple(links), charset, note, tuple(repeated["nofollow"]), referrer_policy=policy),
                faults=tuple(repeated["fault"]),
                remarks=tuple(repeated["remark"]),
                interim=b64decode(single.get("interimResponse", "")),
                surplus=b64decode(single.get("surplusBytes", "")),
                payload_length=_number(single.get("payloadLength")),
                received=_number(single.get("receivedLength")),
                unmodified=unquote_to_bytes(single.get("notModifiedHead", "")),
                links_of=_place(single.get("outlinksOf")),
                referrer_policy=single.get("referrerPolicy", ""),
            )
        except KeyError as missing:
            raise ValueError(f"notes of a visit without {missing}") from None


def _last_hop(path: str) -> Hop:
    """Return the hop at the end of *path*; that of a seed is a link."""
    return Hop(path[-1:] or Hop.LINK)


def says_all(record: Record) -> bool:
    """Return True if *record* is a revisit with the metadata of its visit in its header."""
    return record.type == "revisit" and record.first(_PATH) is not None


def is_unmodified(revisit: Revisit | None) -> bool:
    """Return True if *revisit* is for a 304; its record has an empty block."""
    return revisit is not None and revisit.profile is Profile.NOT_MODIFIED


def _place(text: str | None) -> tuple[str, int] | None:
    """Return the file and offset that *text* names; None if it names none."""
    name, _, offset = (text or "").rpartition(" ")
    return (name, _number(offset) or 0) if name else None


def _number(text: str | None) -> int | None:
    """Parse *text* as a number of bytes; None for None, ValueError if it is invalid."""
    if text is None:
        return None
    if not _BYTES.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a number of bytes")
    return int(text)
