"""Reads the visits in a WARC file that another program wrote, so that they can be settled like our own.

A visit is a whole response or revisit record for an http or https URL. Its request, next to it in either order, only
shows the method: what answers anything but a GET is left out, because its URL was not archived by it. So are parts of a
payload (206), answers 304, and robots.txt, which is asked again because its rules may have changed. The scan continues
behind damage, and no bytes make it raise an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from archiver import url
from archiver.collection.payload import hold_block
from archiver.crawl.recovery.scan import LoneRecord, ScannedVisit
from archiver.fetch.spool import FileBlock, MemoryBlock
from archiver.http import Digester, read_beginning
from archiver.model import NOWHERE, Capture, Digests, Exchange, Peer, Profile, Span, Truncation
from archiver.warc.cdxj import is_http, target_url
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from archiver.warc.records import parse_date, profile_of
from archiver.warc.warcinfo import ForgedRecords

ROBOTS = "/robots.txt"
NO_CAPTURE = frozenset((206, 304))  # statuses of answers that are no whole payload
LONGEST_METHOD = 32  # bytes of a request in which its method ends


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """What a request says of the response next to it."""

    id: str
    concurrent: str
    url: str
    get: bool


def foreign_visits(file: BinaryIO, name: str, offset: int, spool: Path) -> Iterator[ScannedVisit | LoneRecord]:
    """Yield the visits in *file*, the WARC *name* of another program, from the record boundary *offset* on."""
    before: _Neighbour | None = None
    held: tuple[ScannedVisit, Record] | None = None  # its request may follow
    forged = ForgedRecords(file)
    try:
        for item in scan(file, offset):
            if forged.is_forged(item) or isinstance(item, DamagedRecord):
                continue
            request = _request(item) if item.type == "request" else None
            if held is not None:
                visit, response = held
                held = None
                if request is None or request.get or not _belong(request, response):
                    yield visit
                else:
                    visit.close()
            visit_here = _visit(item, name, spool) if item.type in ("response", "revisit") else None
            if visit_here is not None:
                if before is not None and not before.get and _belong(before, item):
                    visit_here.close()
                else:
                    held = visit_here, item
            before = request
        if held is not None:
            visit, held = held[0], None
            yield visit
    finally:
        if held is not None:
            held[0].close()


def _request(record: Record) -> _Neighbour | None:
    """Return what the request *record* says; None if it is damaged or no HTTP message."""
    if not is_http(record, target_url(record)):
        return None
    begin = b""
    try:
        for piece in record.pieces():
            begin += piece[: LONGEST_METHOD - len(begin)]
    except DamagedRecord:
        return None
    method = begin.lstrip().partition(b" ")[0].upper()
    ids = record.first("WARC-Record-ID") or "", record.first("WARC-Concurrent-To") or ""
    return _Neighbour(*ids, target_url(record), method in (b"GET", b""))


def _belong(request: _Neighbour, response: Record) -> bool:
    """Return True if *request* is that of *response*: one names the other, and they are for the same URL."""
    own, named = response.first("WARC-Record-ID") or "", response.first("WARC-Concurrent-To") or ""
    joined = (named and named == request.id) or (own and own == request.concurrent)
    return bool(joined) and request.url == target_url(response)


def _visit(record: Record, name: str, spool: Path) -> ScannedVisit | None:
    """Return the visit of *record*; None if it is not whole, or no capture of its URL."""
    address = url.canonical(target) if is_http(record, target := target_url(record)) else None
    if address is None or url.path(address) == ROBOTS or record.inner:
        return None
    try:
        block = hold_block(record.pieces(), record.size or 0, spool)
    except DamagedRecord:
        return None
    try:
        found = _found(record, block, address, name)
    except BaseException:
        block.close()
        raise
    if found is None:
        block.close()
    return found


def _found(record: Record, block: MemoryBlock | FileBlock, address: str, name: str) -> ScannedVisit | None:
    profile = profile_of(record)
    _, framing = read_beginning(block.pieces())
    if record.length is None or framing.status in NO_CAPTURE or profile is Profile.NOT_MODIFIED:
        return None
    try:
        started = parse_date(record.first("WARC-Date") or "")
    except ValueError:
        return None
    digester = Digester("sha1", framing)
    for piece in block.pieces():
        digester.feed(piece)
    computed = digester.digests()
    stated = record.first("WARC-Payload-Digest") or ""  # the index and the database say what the record says
    own = Digests(computed.block, stated, 0 if profile is Profile.IDENTICAL else computed.payload_length)
    exchange = Exchange(
        request=b"",
        response=block,
        framing=framing,
        digests=own if profile is Profile.IDENTICAL else computed,
        peer=Peer(record.first("WARC-IP-Address")),
        started=started,
        duration=0.0,
        truncated=_truncation(record) if profile is None else None,
    )
    spans = Span(record.offset, record.length), NOWHERE, NOWHERE
    capture = Capture.of(address, exchange, own, name, spans)._replace(revisit=profile)
    return ScannedVisit(exchange, None, capture, record.offset, record.offset + record.length)


def _truncation(record: Record) -> Truncation | None:
    """Return why the block of *record* is incomplete; None if it says nothing."""
    word = record.first("WARC-Truncated")
    if not word:
        return None
    return Truncation(word) if word in set(Truncation) else Truncation.UNSPECIFIED
