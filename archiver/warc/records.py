"""WARC 1.1 records as values: which fields each record type carries, and the bytes of a record's header.

A capture is three records that share one date: response, request, metadata, in this order, because
indexers join a request to the record right before it. The metadata record holds all that the frontier needs
to know of the visit, so that a crawl can be made whole again from its WARCs alone. Pure: dates and ids come in.
Source: WARC 1.1 (ISO 28500:2017) §5 and §6; WARC-Protocol and WARC-Cipher-Suite as the IIPC's drafts have them.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address

from archiver.model import Claim, Digests, Exchange, Hop, Link, Links

Fields = list[tuple[str, str]]
NewId = Callable[[], str]  # "<urn:uuid:…>"

RESPONSE_TYPE = "application/http;msgtype=response"
REQUEST_TYPE = "application/http;msgtype=request"
FIELDS_TYPE = "application/warc-fields"


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
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in pairs).encode("utf-8", "replace")


def _one_line(value: str) -> str:
    return value if value.isprintable() else "".join(char if char.isprintable() else " " for char in value)


@dataclass(frozen=True, slots=True)
class BlockDigests:
    """The digests of the blocks of one capture."""

    response: Digests
    request: str
    metadata: str


@dataclass(frozen=True, slots=True)
class CaptureFields:
    """The fields of the three records of one capture."""

    response: Fields
    request: Fields
    metadata: Fields


def capture_fields(
    address: str, exchange: Exchange, digests: BlockDigests, file_id: str, new_id: NewId
) -> CaptureFields:
    """The fields of response, request and metadata; *file_id* is the Record-ID of the file's warcinfo."""
    response_id = new_id()
    common = [("WARC-Target-URI", address), ("WARC-Date", warc_date(exchange.started)), ("WARC-Warcinfo-ID", file_id)]
    peer: Fields = [] if exchange.peer.ip is None else [("WARC-IP-Address", str(ip_address(exchange.peer.ip)))]
    wire = [*peer, ("WARC-Protocol", exchange.framing.protocol)]
    if exchange.peer.tls:
        wire.append(("WARC-Protocol", exchange.peer.tls))
    if exchange.peer.cipher:
        wire.append(("WARC-Cipher-Suite", exchange.peer.cipher))
    response = [("WARC-Record-ID", response_id), *common, *wire]
    response += [("WARC-Block-Digest", digests.response.block), ("WARC-Payload-Digest", digests.response.payload)]
    if exchange.truncated:
        response.append(("WARC-Truncated", exchange.truncated.value))
    together = ("WARC-Concurrent-To", response_id)
    return CaptureFields(
        response=response,
        request=[("WARC-Record-ID", new_id()), together, *common, *peer, ("WARC-Block-Digest", digests.request)],
        metadata=[("WARC-Record-ID", new_id()), together, *common, ("WARC-Block-Digest", digests.metadata)],
    )


@dataclass(frozen=True, slots=True)
class VisitNotes:
    """What a metadata record says of a visit: all that cannot be read from response and request."""

    path: str
    hop: Hop
    depth: int
    strays: int
    tries: int
    took: float
    via: str | None
    seed: str
    links: Links
    faults: tuple[str, ...] = ()  # of the message
    remarks: tuple[str, ...] = ()  # on how it came
    interim: bytes = b""
    surplus: bytes = b""

    @classmethod
    def of(cls, claim: Claim, exchange: Exchange, links: Links) -> "VisitNotes":
        """The notes of a visit that just happened."""
        return cls(
            path=claim.path,
            hop=claim.hop,
            depth=claim.depth,
            strays=claim.strays,
            tries=claim.tries,
            took=exchange.took,
            via=claim.via,
            seed=claim.seed,
            links=links,
            faults=exchange.framing.faults,
            remarks=exchange.notes,
            interim=exchange.interim,
            surplus=exchange.surplus,
        )

    def block(self) -> bytes:
        """The metadata record's block. The first names are Heritrix's, so that its readers understand them."""
        pairs: Fields = []
        if self.via:
            pairs.append(("via", self.via))
        pairs += [("hopsFromSeed", self.path), ("fetchTimeMs", str(round(self.took * 1000)))]
        if self.seed:
            pairs.append(("seed", self.seed))
        if self.links.charset:
            pairs.append(("charsetForLinkExtraction", self.links.charset))
        if self.links.note:
            pairs.append(("linkExtractionNote", self.links.note))
        pairs += [("nofollow", said) for said in self.links.nofollow]
        pairs += [("hop", self.hop.value), ("depth", str(self.depth))]
        pairs += [("strays", str(self.strays)), ("tries", str(self.tries))]
        pairs += [("fault", fault) for fault in self.faults]
        pairs += [("remark", remark) for remark in self.remarks]
        pairs += [
            (name, b64encode(value).decode())
            for name, value in (("interimResponse", self.interim), ("surplusBytes", self.surplus))
            if value
        ]
        pairs += [("outlink", f"{link.url} {link.hop.value} {link.context or '-'}") for link in self.links.links]
        return warc_fields(pairs)

    @classmethod
    def read(cls, block: bytes) -> "VisitNotes":
        """The notes that stand in *block*; ValueError where it is not ours."""
        single: dict[str, str] = {}
        repeated: dict[str, list[str]] = {"fault": [], "remark": [], "nofollow": []}
        links: list[Link] = []
        for line in block.decode().split("\r\n"):
            name, _, value = line.partition(": ")
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
                strays=int(single["strays"]),
                tries=int(single["tries"]),
                took=int(single["fetchTimeMs"]) / 1000,
                via=single.get("via"),
                seed=single.get("seed", ""),
                links=Links(tuple(links), charset, note, tuple(repeated["nofollow"])),
                faults=tuple(repeated["fault"]),
                remarks=tuple(repeated["remark"]),
                interim=b64decode(single.get("interimResponse", "")),
                surplus=b64decode(single.get("surplusBytes", "")),
            )
        except KeyError as missing:
            raise ValueError(f"a metadata record without {missing}") from None
