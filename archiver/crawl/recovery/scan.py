"""Scans one WARC file: yields its whole visits in order, and the gaps between them.

A visit is whole if its response (or revisit), request and metadata records are. A revisit that has the notes of its
visit in its header needs no metadata record. Some records are complete alone: the warcinfo, each resource, and metadata
that concerns no other record. Everything else is a gap, including whole records that belong to no visit of ours.
The scan continues behind damage. It reads only the file it is given, and no bytes make it raise an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from archiver.ask import ASKED_BY_CLIENT, ASKED_BY_SCRIPT, named_headers
from archiver.collection.payload import hold_block
from archiver.fetch.spool import FileBlock, MemoryBlock
from archiver.http import Digester, read_beginning
from archiver.model import (
    NOWHERE,
    Block,
    Capture,
    Digests,
    Exchange,
    Framing,
    Peer,
    Profile,
    Resource,
    Span,
    Truncation,
)
from archiver.warc.members import DamagedRecord
from archiver.warc.post_keys import asked_of, asked_url, recorded_ask, recorded_url
from archiver.warc.reader import Record, scan
from archiver.warc.records import ACCEPT_LANGUAGE, VisitMetadata, parse_date, profile_of, says_all, target_of
from archiver.warc.resources import resource_of
from archiver.warc.warcinfo import Membership, block_of, membership

ALGORITHMS = frozenset(("sha1", "sha256"))

NO_VISIT = "records that belong to no visit"
CUT_SHORT = "the last visit was not whole"
ANSWERS = frozenset(("response", "revisit"))  # the types of record with which a visit begins


@dataclass(frozen=True, slots=True)
class ScannedVisit:
    """One visit. `notes` is None if its metadata record is damaged. Close it after use."""

    exchange: Exchange
    notes: VisitMetadata | None
    capture: Capture
    start: int
    end: int  # the offset behind its last record

    def close(self) -> None:
        """Close the response."""
        self.exchange.response.close()


@dataclass(frozen=True, slots=True)
class LoneRecord:
    """A record that is complete alone. `resource` is its index entry, None if it has none; such records are skipped."""

    resource: Resource | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class UnclaimedBytes:
    """Bytes that are not a whole visit."""

    start: int
    end: int
    why: str
    damaged: bool = True  # False: whole records, but no visit


def survey(
    file: BinaryIO, name: str, offset: int, spool: Path, *, lenient: bool = False, unfinished: bool = False
) -> Iterator[ScannedVisit | LoneRecord | UnclaimedBytes]:
    """Yield everything in *file*, the WARC *name*, from the record boundary *offset* on.

    *lenient*: a visit counts even if only its response is whole. *unfinished*: but not at the end of the file, because
    its writer was stopped before it had written the rest. Records that do not belong to the file are part of a gap.
    """
    end = offset
    why = ""
    ours = membership(file, offset, unfinished=unfinished)
    items = _Items(scan(file, offset))
    reader = _Visits(name, spool, items, ours, lenient=lenient, unfinished=unfinished)
    for item in items:
        unit: ScannedVisit | LoneRecord | None = None
        if isinstance(item, DamagedRecord):
            why = why or item.reason
        elif item not in ours:
            continue
        elif item.type in ANSWERS:
            unit = reader.visit(item)
        elif _is_single(item):
            unit = _single(item, name)
        if unit is None:
            continue
        if unit.start > end:
            yield UnclaimedBytes(end, unit.start, why or NO_VISIT, damaged=bool(why))
        if isinstance(unit, ScannedVisit) or unit.resource is not None:
            yield unit
        end, why = unit.end, ""
    size = file.seek(0, 2)
    if size > end:
        yield UnclaimedBytes(end, size, why or reader.why or NO_VISIT, damaged=bool(why) or reader.why == CUT_SHORT)


class _Items:
    """The items of a scan, which can be put back."""

    def __init__(self, items: Iterator[Record | DamagedRecord]) -> None:
        self._items = items
        self._back: list[Record | DamagedRecord] = []

    def __iter__(self) -> "_Items":
        return self

    def __next__(self) -> Record | DamagedRecord:
        return self._back.pop() if self._back else next(self._items)

    def back(self, item: Record | DamagedRecord) -> None:
        self._back.append(item)

    def goes_on(self, ours: Membership) -> bool:
        """Return True if another of *ours* follows, even behind damage."""
        passed: list[Record | DamagedRecord] = []
        follows = False
        for item in self:
            passed.append(item)
            if follows := isinstance(item, Record) and item in ours:
                break
        self._back += reversed(passed)
        return follows


class _Visits:
    """Assembles visits from their records."""

    def __init__(
        self, name: str, spool: Path, items: _Items, ours: Membership, *, lenient: bool, unfinished: bool
    ) -> None:
        self.why = ""  # the latest visit was not whole
        self._name = name
        self._spool = spool
        self._items = items
        self._ours = ours
        self._lenient = lenient
        self._unfinished = unfinished

    def visit(self, response: Record) -> ScannedVisit | None:
        """Return the visit that begins with *response*; None if it is not whole."""
        try:
            block = self._block(response)
        except DamagedRecord:
            return None  # the scan yields the damage next
        try:
            found = self._with_others(response, block)
        except BaseException:
            block.close()
            raise
        if found is None:
            block.close()
        return found

    def _with_others(self, response: Record, block: MemoryBlock | FileBlock) -> ScannedVisit | None:
        request, request_block = self._next("request")
        is_complete = says_all(response)
        goes_on = not is_complete and (request is not None or self._lenient)
        metadata, notes_block = self._next("metadata") if goes_on else (None, b"")
        if response.length is None or not ((request and (metadata or is_complete)) or self._may_lack()):
            self.why = CUT_SHORT
            return None
        try:
            notes = VisitMetadata.of_revisit(response)
            if metadata is not None:
                notes = VisitMetadata.parse(notes_block)
        except ValueError as error:
            self.why = f"what is said of the visit cannot be read: {error}"
            if not self._lenient:
                return None
            notes = None
        try:
            return _found(self._name, (response, block), (request, request_block), metadata, notes)
        except ValueError as error:
            self.why = f"its response record cannot be read: {error}"
            return None

    def _may_lack(self) -> bool:
        """Return True if a visit counts although its other records are not whole."""
        return self._lenient and (not self._unfinished or self._items.goes_on(self._ours))

    def _next(self, kind: str) -> tuple[Record | None, bytes]:
        """Return the next record and its block if it is whole, ours and of *kind*; otherwise leave it there."""
        item = next(self._items, None)
        if isinstance(item, Record) and item.type == kind and item in self._ours:
            block = block_of(item)
            return (None, b"") if block is None else (item, block)
        if item is not None:
            self._items.back(item)
        return None, b""

    def _block(self, record: Record) -> MemoryBlock | FileBlock:
        return hold_block(record.pieces(), record.size or 0, self._spool)


def _is_single(record: Record) -> bool:
    alone = record.type == "metadata" and record.first("WARC-Concurrent-To") is None
    return alone or record.type in ("warcinfo", "resource")


def _single(record: Record, name: str) -> LoneRecord | None:
    """Return *record*, which is complete alone; None if it is not whole."""
    resource = resource_of(record, name) if record.type == "resource" else None
    try:
        for _ in record.pieces():  # they may not fit into memory
            pass
    except DamagedRecord:
        return None
    return None if record.length is None else LoneRecord(resource, record.offset, record.offset + record.length)


def _found(
    name: str,
    answer: tuple[Record, MemoryBlock | FileBlock],
    question: tuple[Record | None, bytes],
    metadata: Record | None,
    notes: VisitMetadata | None,
) -> ScannedVisit:
    """Build a visit from its records. Raises `ValueError` if a field of the response is not one we write."""
    response, block = answer
    profile = profile_of(response)
    if profile is Profile.NOT_MODIFIED and not block.length:
        block = MemoryBlock(notes.unmodified if notes is not None else b"")
    _, framing = read_beginning(block.pieces())
    if notes is not None:
        framing = replace(framing, faults=notes.faults)
    truncated = response.first("WARC-Truncated") if profile is not Profile.IDENTICAL else None
    digests = _digests(response, block, framing, notes)
    exchange = Exchange(
        request=question[1],
        response=block,
        framing=framing,
        digests=digests,
        peer=Peer(response.first("WARC-IP-Address")),
        started=parse_date(response.first("WARC-Date") or ""),
        duration=notes.duration if notes is not None else 0.0,
        truncated=Truncation(truncated) if truncated else None,
        interim=notes.interim if notes is not None else b"",
        surplus=notes.surplus if notes is not None else b"",
        notes=notes.remarks if notes is not None else (),
        language=response.first(ACCEPT_LANGUAGE) or "",
    )
    address = target_of(response)
    if not address:
        raise ValueError("it has no WARC-Target-URI")
    ask = None
    if ASKED_BY_CLIENT in exchange.notes:
        ask = recorded_ask(address, question[1]).bare()
        address = recorded_url(ask)
    elif ASKED_BY_SCRIPT in exchange.notes:
        ask = asked_of(address, question[1], named_headers(exchange.notes))
        address = asked_url(ask) or address
    spans = _span(response), _span(question[0]), _span(metadata)
    capture = Capture.of(address, exchange, digests, name, spans)._replace(ask=ask)
    if profile is not None:
        received = notes.received if notes is not None else None
        capture = capture._replace(revisit=profile, received=capture.received if received is None else received)
    end = max(span.offset + span.length for span in spans)
    return ScannedVisit(exchange, notes, capture, response.offset, end)


def _span(record: Record | None) -> Span:
    return NOWHERE if record is None else Span(record.offset, record.length or 0)


def _digests(record: Record, block: Block, framing: Framing, notes: VisitMetadata | None) -> Digests:
    """Return the digests of block and payload; for a revisit the stated one, for its payload is elsewhere."""
    stated = record.first("WARC-Payload-Digest") or ""
    if record.type == "revisit":
        length = notes.payload_length if notes is not None else None
        return Digests(record.first("WARC-Block-Digest") or "", stated, length or 0)
    algorithm = stated.partition(":")[0]
    if algorithm not in ALGORITHMS:
        raise ValueError(f"{algorithm[:40]!r} is no digest of ours")
    digester = Digester(algorithm, framing)
    for piece in block.pieces():
        digester.feed(piece)
    return digester.digests()
