"""WARC 1.1 records as values: which fields each record type carries, and the bytes of a record's header.

A capture is three records that share one date: response (or revisit), request, metadata, in this order, because
indexers join a request to the record right before it. The metadata record holds all that the frontier needs
to know of the visit, so that a crawl can be made whole again from its WARCs alone. Of a page that was not modified
that is so little that it stands in the header of the revisit, and there is no metadata record.
Pure: dates and ids come in.
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
_SHOWN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")  # in a line as they are; others as %0D
_BYTES = re.compile(r"[0-9]{1,18}")
_PATH = "hopsFromSeed"  # stands in the notes of each visit
_LONGEST_FIELDS = 8 << 10  # bytes of notes in the header of a revisit; longer ones get a metadata record


def warc_date(microseconds: int) -> str:
    """A WARC-Date in UTC with microseconds, from microseconds since the epoch."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{_second(seconds)}.{rest:06}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def parse_date(text: str) -> int:
    """Microseconds since the epoch from a WARC-Date of any precision; ValueError where it is none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond


def header(kind: str, fields: Iterable[tuple[str, str]], content_type: str, length: int) -> bytes:
    """The header of a record, its empty line included."""
    lines = [f"WARC/1.1\r\nWARC-Type: {kind}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + f"\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n").encode()


def warc_fields(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A block of type application/warc-fields. Values keep to one line: control characters become spaces."""
    return _block([f"{name}: {value}" for name, value in pairs])


def _block(lines: list[str]) -> bytes:
    block = "\r\n".join([*lines, ""]).encode("utf-8", "replace")
    if len(block.translate(None, _PLAIN)) == 2 * len(lines):  # beside plain bytes there are the line ends, no more
        return block
    return "\r\n".join([*map(_one_line, lines), ""]).encode("utf-8", "replace")


def _one_line(line: str) -> str:
    return line if line.isprintable() else "".join(char if char.isprintable() else " " for char in line)


class RecordIds:
    """Record-IDs, each a random UUID (RFC 4122, version 4), made many at once: bytes of chance in, digit by digit out.

    Called by one thread at a time.
    """

    AT_ONCE = 128
    _FORM = b"<urn:uuid:00000000-0000-0000-0000-000000000000> "

    def __init__(self, chance: Callable[[int], bytes]) -> None:
        self._chance = chance
        self._made: list[str] = []

    def __call__(self) -> str:
        """The next one."""
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
    """What the headers of one capture's records say of their blocks, as they are stored."""

    response: Digests  # of a revisit: of the block as stored, and of the payload that it stands for
    response_length: int
    request: str  # digest
    metadata: str  # digest
    metadata_length: int
    revisit: Revisit | None = None
    notes: str = ""  # lines in the header of the revisit, in place of a metadata record


class CaptureHeaders(NamedTuple):
    """The headers of the records of one capture, their empty lines included; that of the metadata may be empty."""

    response: bytes
    request: bytes
    metadata: bytes


def capture_headers(
    address: str, exchange: Exchange, blocks: BlockHeaders, file_id: str, new_id: NewId
) -> CaptureHeaders:
    """The headers of response (or revisit), request and metadata; *file_id*: the Record-ID of the file's warcinfo."""
    response_id = new_id()
    date = warc_date(exchange.started)
    common = f"WARC-Target-URI: {address}\r\nWARC-Date: {date}\r\nWARC-Warcinfo-ID: {file_id}\r\n"
    peer = exchange.peer
    came_from = "" if peer.ip is None else _ip_field(peer.ip)
    tls = f"WARC-Protocol: {peer.tls}\r\n" if peer.tls else ""
    cipher = f"WARC-Cipher-Suite: {peer.cipher}\r\n" if peer.cipher else ""
    revisit, payload = blocks.revisit, blocks.response.payload
    cut = exchange.truncated
    kind, refers = "response", ""
    if revisit is not None:
        kind, refers = "revisit", _refers(revisit)
        cut = Truncation.LENGTH if revisit.profile is Profile.IDENTICAL else cut
    digest = f"WARC-Payload-Digest: {payload}\r\n" if payload else ""
    truncated = f"WARC-Truncated: {cut.value}\r\n" if cut else ""
    response = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {response_id}\r\n{common}{came_from}"
        f"WARC-Protocol: {exchange.framing.protocol}\r\n{tls}{cipher}{refers}"
        f"WARC-Block-Digest: {blocks.response.block}\r\n{digest}{truncated}{blocks.notes}"
        f"Content-Type: {RESPONSE_TYPE}\r\nContent-Length: {blocks.response_length}\r\n\r\n"
    )
    request = (
        f"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: {new_id()}\r\nWARC-Concurrent-To: {response_id}\r\n"
        f"{common}{came_from}WARC-Block-Digest: {blocks.request}\r\n"
        f"Content-Type: {REQUEST_TYPE}\r\nContent-Length: {len(exchange.request)}\r\n\r\n"
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
    """The fields that name the record whose payload *revisit* stands for, and why it does."""
    named = f"WARC-Refers-To: {revisit.record_id}\r\n" if revisit.record_id else ""
    return (
        f"WARC-Profile: {PROFILES}{revisit.profile.value}\r\n{named}"
        f"WARC-Refers-To-Target-URI: {revisit.url}\r\nWARC-Refers-To-Date: {revisit.date}\r\n"
    )


def bare(uri: str | None) -> str:
    """*uri* without the angle brackets in which WARC 1.0 had it written; "" without one."""
    return uri[1:-1] if uri and uri.startswith("<") and uri.endswith(">") else uri or ""


def target_of(record: Record) -> str:
    """The URL of which *record* tells; "" where it does not say."""
    return bare(record.first("WARC-Target-URI"))


class RevisitTarget(NamedTuple):
    """The capture that a revisit refers to; "" for what it does not say."""

    url: str
    date: str


def referred(record: Record) -> RevisitTarget:
    """Whose payload *record*, a revisit, stands for."""
    return RevisitTarget(bare(record.first("WARC-Refers-To-Target-URI")), record.first("WARC-Refers-To-Date") or "")


def profile_of(record: Record) -> Profile | None:
    """The profile of *record*, if that is a revisit; one that is not known, or named as elsewhere, by its last word."""
    if record.type != "revisit":
        return None
    word = (record.first("WARC-Profile") or "").rpartition("/")[2]
    return Profile.NOT_MODIFIED if word == Profile.NOT_MODIFIED else Profile.IDENTICAL


@lru_cache(maxsize=1024)
def _ip_field(ip: str) -> str:
    return f"WARC-IP-Address: {ip_address(ip)}\r\n"


class VisitMetadata(NamedTuple):
    """What a metadata record says of a visit: all that cannot be read from response and request."""

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
    remarks: tuple[str, ...] = ()  # on how it came
    interim: bytes = b""
    surplus: bytes = b""
    payload_length: int | None = None  # of a revisit: bytes of the payload that it stands for
    received: int | None = None  # of a revisit: bytes of the response as they crossed the wire
    unmodified: bytes = b""  # the head by which a server said so; a revisit record with it would replay as a bare 304
    links_of: tuple[str, int] | None = None  # the file and offset of the stored answer that has the links instead

    @classmethod
    def of(
        cls,
        claim: Claim,
        exchange: Exchange,
        links: Links,
        revisit: Revisit | None = None,
        links_of: tuple[str, int] | None = None,
    ) -> "VisitMetadata":
        """The notes of a visit that just happened; with *links_of*, its *links* are those of a stored answer."""
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
        )

    def fields(self) -> str:
        """The same as `block`, as lines in the header of a revisit, without what `of_revisit` knows without them.

        "" where that has no place for them: nearly all visits without links need less.
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
        """The metadata record's block. The first names are Heritrix's, so that its readers understand them."""
        lines = [f"via: {self.via}"] if self.via else []
        lines += [f"hopsFromSeed: {self.path}", f"fetchTimeMs: {round(self.duration * 1000)}"]
        if self.seed:
            lines.append(f"seed: {self.seed}")
        if self.links.charset:
            lines.append(f"charsetForLinkExtraction: {self.links.charset}")
        if self.links.note:
            lines.append(f"linkExtractionNote: {self.links.note}")
        lines += [f"nofollow: {said}" for said in self.links.nofollow]
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
        lines += [
            f"{name}: {b64encode(value).decode()}"
            for name, value in (
                ("interimResponse", self.interim),
                ("surplusBytes", self.surplus),
            )
            if value
        ]
        if self.unmodified:
            lines.append(f"notModifiedHead: {quote_from_bytes(self.unmodified, _SHOWN)}")
        # Most of a page's lines are these; `_value_` is what `value` returns after a call.
        lines += [f"outlink: {address} {hop._value_} {place or '-'}" for address, hop, place in self.links.links]
        return _block(lines)

    @classmethod
    def read(cls, block: bytes) -> "VisitMetadata":
        """Return the notes in *block*; ValueError if it is not ours."""
        return cls._of(line.partition(": ")[::2] for line in block.decode().split("\r\n"))

    @classmethod
    def of_revisit(cls, record: Record) -> "VisitMetadata | None":
        """Return the notes in the header of *record*, None if it has none; ValueError if they are not ours."""
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
                links=Links(tuple(links), charset, note, tuple(repeated["nofollow"])),
                faults=tuple(repeated["fault"]),
                remarks=tuple(repeated["remark"]),
                interim=b64decode(single.get("interimResponse", "")),
                surplus=b64decode(single.get("surplusBytes", "")),
                payload_length=_number(single.get("payloadLength")),
                received=_number(single.get("receivedLength")),
                unmodified=unquote_to_bytes(single.get("notModifiedHead", ""))
                or b64decode(single.get("notModifiedResponse", "")),  # as earlier versions have it
                links_of=_place(single.get("outlinksOf")),
            )
        except KeyError as missing:
            raise ValueError(f"notes of a visit without {missing}") from None


def _last_hop(path: str) -> Hop:
    """Return the hop at the end of *path*; that of a seed is a link."""
    return Hop(path[-1:] or Hop.LINK)


def says_all(record: Record) -> bool:
    """Return True if *record* is a revisit with the notes of its visit in its header, and without a metadata record."""
    return record.type == "revisit" and record.first(_PATH) is not None


def is_unmodified(revisit: Revisit | None) -> bool:
    """Whether *revisit* is what a server says has not changed: its record has an empty block."""
    return revisit is not None and revisit.profile is Profile.NOT_MODIFIED


def _place(text: str | None) -> tuple[str, int] | None:
    """A file and an offset in it, if *text* names them."""
    name, _, offset = (text or "").rpartition(" ")
    return (name, _number(offset) or 0) if name else None


def _number(text: str | None) -> int | None:
    """A number of bytes, if *text* is one; ValueError where it is none that a file can have."""
    if text is None:
        return None
    if not _BYTES.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no number of bytes")
    return int(text)
