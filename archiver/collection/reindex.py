"""Build the index from WARC files of any writer, line for line like cdxj-indexer.

Each record is read once, and only an HTTP head or a bounded part of a request's body is kept in memory. A record that
is cut or damaged is left out; one that lacks only the line ends after it is listed. If several records share a gzip
member, only the first is listed. Records inside the body of a damaged record of ours are left out.
"""

import base64
import hashlib
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from archiver.ask import WEBSOCKET, WITH_BODY, opens_websocket
from archiver.collection.imports import imported_files
from archiver.collection.index import Index
from archiver.collection.layout import Layout
from archiver.collection.records import warc_files
from archiver.http import Dechunker, read_beginning
from archiver.http.head import LONGEST_HEAD, MAX_HEAD, read_stored
from archiver.model import Framing
from archiver.storage import OPEN, storage
from archiver.warc.cdxj import (
    NEVER_LISTED,
    NOT_REPLAYED,
    REVISIT,
    IndexedRecord,
    decode_field,
    is_http,
    is_listed,
    record_timestamp,
    target_url,
)
from archiver.warc.members import DamagedRecord
from archiver.warc.post_keys import MAX_BODY, key_parts
from archiver.warc.reader import Record, scan
from archiver.warc.records import ACCEPT_LANGUAGE, FIELDS_TYPE
from archiver.warc.resources import mime_of
from archiver.warc.warcinfo import ForgedRecords


class _Request(NamedTuple):
    """The parts of a request that the key of its response depends on."""

    method: str
    content_type: str
    length: str | None
    body: bytes


_GET = _Request("GET", "", None, b"")


class _RecordInFile(NamedTuple):
    """One record of a file, with what joins it to its neighbours."""

    kind: str
    url: str
    id: str | None
    concurrent: str | None
    offset: int
    inner: int
    listed: IndexedRecord | None = None  # its length is 0 if only the next record shows it
    request: _Request | None = None


def rebuild(directory: Path) -> int:
    """Write index.cdxj of the collection at *directory* from its WARCs, and return its number of lines."""
    layout = Layout(directory)
    index = Index(layout.indexes)
    with storage(layout.indexes):
        layout.indexes.mkdir(exist_ok=True)
        index.forget_runs()
    count = 0
    for path in warc_files(layout):
        count += add_file(index, path)
    index.finish(replace=True)
    index.forget_runs()
    return count


def add_file(index: Index, path: Path) -> int:
    """Add the lines of the WARC at *path* to *index*, and return their number."""
    with storage(path), path.open("rb") as file:
        count = index.add_lines(path.name.removesuffix(OPEN), lines(file, path.name))
    if not path.name.endswith(OPEN):
        index.close_file(path.name)
    return count


class KnownFile(Protocol):
    """A WARC file that the database lists."""

    @property
    def name(self) -> str:
        """Its final name."""


def add_others(index: Index, layout: Layout, files: Iterable[KnownFile], *, all_of_them: bool) -> None:
    """Add the lines of the WARCs that are not among *files*: imported ones, and those of earlier crawls.

    Without *all_of_them*, only those whose import was interrupted before it indexed them.
    """
    known = {file.name for file in files}
    waiting = {each.name for each in imported_files(layout) if not each.indexed}
    for path in warc_files(layout):
        if path.name.removesuffix(OPEN) not in known and (all_of_them or path.name in waiting):
            add_file(index, path)


def lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the lines of one WARC, which is called *name*, in the order of its records."""
    size = file.seek(0, 2)
    forged = ForgedRecords(file)
    hidden = NEVER_LISTED | NOT_REPLAYED if forged.ours else NEVER_LISTED
    for listed in _placed(_joined(_records(file, forged), hidden), size):
        yield listed.line(name)


def _records(file: BinaryIO, forged: ForgedRecords) -> Iterator[_RecordInFile]:
    for record in scan(file):
        if not forged.is_forged(record) and not isinstance(record, DamagedRecord):
            value = record.values.get
            kind = value("WARC-Type", "")
            if kind == "metadata" and value("Content-Type") == FIELDS_TYPE:  # a third of our records
                yield _RecordInFile(kind, "", None, None, record.offset, record.inner)
                continue
            url = target_url(record)
            listed = _listed(record, url) if is_listed(record, url) else None
            request = _request_of(record) if kind == "request" and is_http(record, url) else None
            ids = value("WARC-Record-ID"), value("WARC-Concurrent-To")
            yield _RecordInFile(kind, url, *ids, record.offset, record.inner, listed, request)


def _listed(record: Record, url: str) -> IndexedRecord | None:
    """Return the index entry of *record* for *url*; None if its block is incomplete, which verify reports."""
    try:
        framing, digest = _read(record, has_head=bool(record.size) and is_http(record, url))
    except DamagedRecord:
        return None
    answer = record.type in ("response", "revisit")
    mime = (framing.media_type if framing else "") if answer else mime_of(decode_field(record.first("Content-Type")))
    entry = IndexedRecord(
        url,
        record_timestamp(record),
        REVISIT if record.type == "revisit" else mime,
        str(framing.status or "-") if framing and answer else None,
        decode_field(record.first("WARC-Payload-Digest")) or digest,
        record.offset,
        _length(record),
    )
    if not answer or record.has_known_fields:
        return entry
    return entry.in_language(decode_field(record.first(ACCEPT_LANGUAGE)))


def _read(record: Record, *, has_head: bool) -> tuple[Framing | None, str]:
    """Return the HTTP head of *record* if it *has_head*, and the digest of the payload if the header lacks it.

    Raises `DamagedRecord` if the block is incomplete.
    """
    lacks_digest = record.type != "revisit" and not record.first("WARC-Payload-Digest")
    block = None if lacks_digest else record.take_block()
    if block is not None:  # as most are
        return read_stored(block[:LONGEST_HEAD]) if has_head else None, ""
    digest = hashlib.sha1(usedforsecurity=False)
    pieces = _block(record)
    begin, framing = read_beginning(pieces) if has_head else (b"", None)
    for piece in chain((begin[framing.head_length :],) if framing else (), pieces):
        if lacks_digest:
            digest.update(piece)
    return framing, f"sha1:{base64.b32encode(digest.digest()).decode()}" if lacks_digest else ""


def _block(record: Record) -> Iterator[bytes]:
    """Yield the block of *record*, even if the line ends after it are missing."""
    size = 0
    try:
        for piece in record.pieces():
            size += len(piece)
            yield piece
    except DamagedRecord:
        if size != record.size:
            raise


def _length(record: Record) -> int:
    """Return the length as cdxj-indexer does: a whole gzip member, or an uncompressed record without its line ends."""
    if not record.compressed:
        return record.header_length + (record.size or 0)
    return record.length or 0


def _request_of(record: Record) -> _Request | None:
    """Return the request in *record*; None if it is incomplete."""
    if (whole := record.take_block()) is None:
        block = bytearray()
        try:
            for piece in record.pieces():
                block += piece[: MAX_HEAD + MAX_BODY - len(block)]
        except DamagedRecord:
            return None
        whole = bytes(block)
    head, _, body = whole.partition(b"\r\n\r\n")
    if head.startswith(b"GET ") and not opens_websocket(head):
        return _GET
    first, *rest = head.split(b"\r\n")
    method = WEBSOCKET if opens_websocket(head) else first.decode("latin-1").strip().partition(" ")[0]
    if method.upper() not in WITH_BODY:
        return _Request(method, "", None, b"")
    fields: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    if fields.get("transfer-encoding") == "chunked":
        body = b"".join(Dechunker().feed(body))
    return _Request(method, fields.get("content-type", ""), fields.get("content-length"), body[:MAX_BODY])


def _joined(seen: Iterable[_RecordInFile], hidden: Collection[str]) -> Iterator[_RecordInFile]:
    """Yield each record; a response next to its request gets the key that the request gives it.

    *hidden*: the methods whose responses are not listed.
    """
    before: _RecordInFile | None = None
    for this in seen:
        if before is None or not _belong(before, this):
            if before is not None:
                yield before
            before = this
            continue
        yield _answering(before, this, hidden)
        yield _answering(this, before, hidden)
        before = None
    if before is not None:
        yield before


def _belong(first: _RecordInFile, second: _RecordInFile) -> bool:
    return (
        first.url == second.url
        and {first.kind, second.kind} == {"response", "request"}
        and second.concurrent == first.id
    )


def _answering(seen: _RecordInFile, other: _RecordInFile, hidden: Collection[str]) -> _RecordInFile:
    request = other.request
    if seen.listed is None or request is None:
        return seen
    if request.method in hidden:
        return seen._replace(listed=None)
    if request.method.upper() not in WITH_BODY:
        return seen
    query, looked_up = key_parts(request.method, seen.url, request.content_type, request.length, request.body)
    return seen._replace(listed=seen.listed.with_request(request.method, query, looked_up))


def _placed(seen: Iterable[_RecordInFile], size: int) -> Iterator[IndexedRecord]:
    """Yield the listed records with their lengths; one that shares a gzip member gets the length of the member."""
    pending: IndexedRecord | None = None
    for each in seen:
        if pending is not None and each.offset != pending.offset:
            yield pending._replace(length=each.offset - pending.offset)
            pending = None
        if each.listed is None or each.inner:
            continue
        if each.listed.length:
            yield each.listed
        else:
            pending = each.listed
    if pending is not None:
        yield pending._replace(length=size - pending.offset)
