"""The index made again from the WARC files alone, without the database."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from archiver.archive.index import Index
from archiver.archive.layout import OPEN, Layout, storage
from archiver.http import read_stored
from archiver.http.head import MAX_HEAD
from archiver.model import Capture, Resource, Span
from archiver.warc.reader import Record, Torn, scan
from archiver.warc.records import parse_date, profile_of
from archiver.warc.resources import resource_of


def rebuild(directory: Path) -> int:
    """Write index.cdxj of the collection at *directory* from its WARCs; how many captures it holds."""
    layout = Layout(directory)
    index = Index(layout.indexes)
    with storage(layout.indexes):
        layout.indexes.mkdir(exist_ok=True)
        index.forget_runs()
    count = 0
    for path in sorted(layout.archive.glob("*.warc*")):
        with storage(path), path.open("rb") as file:
            for capture in captures(file, path.name.removesuffix(OPEN)):
                index.add((capture,))
                count += 1
        if not path.name.endswith(OPEN):
            index.close_file(path.name)
    index.finish(anew=True)
    index.forget_runs()
    return count


def captures(file: BinaryIO, name: str) -> Iterator[Capture | Resource]:
    """What an index lists of one WARC: every whole response to a GET, revisit and resource, with its place."""
    for record in scan(file):
        if isinstance(record, Record) and record.type == "resource":
            if (resource := resource_of(record, name)) is not None:
                yield resource
            continue
        if isinstance(record, Torn) or record.type not in ("response", "revisit"):
            continue
        head = bytearray()
        size = 0
        try:
            for piece in record.pieces():
                size += len(piece)
                if len(head) < MAX_HEAD:
                    head += piece[: MAX_HEAD - len(head)]
            found = _capture(record, bytes(head), size, name)
        except (Torn, ValueError):  # verify says what is wrong with it; an index can only leave it out
            continue
        if found is not None:
            yield found


def _capture(record: Record, head: bytes, size: int, name: str) -> Capture | None:
    address, date = record.first("WARC-Target-URI"), record.first("WARC-Date")
    if address is None or date is None or record.length is None:
        return None
    framing = read_stored(head)
    nowhere = Span(0, 0)
    return Capture(
        url=address.removeprefix("<").removesuffix(">"),  # some writers put brackets around it
        timestamp=parse_date(date),
        status=framing.status,
        mime=framing.media_type,
        payload_digest=record.first("WARC-Payload-Digest") or "-",
        payload_length=0,
        received=size,
        warc=name,
        response=Span(record.offset, record.length),
        request=nowhere,
        metadata=nowhere,
        revisit=profile_of(record),
    )
