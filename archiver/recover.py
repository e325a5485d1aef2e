"""Recovery: what a crash left behind the last commit becomes part of the archive, or is set aside.

The WARC is the write-ahead log. Each file that the database does not know as closed is read forward from its
committed length; every whole visit found there is settled as if it had just happened, from its own metadata record.
What is left is a torn visit: its bytes are kept under damaged/, with a note, and the file ends where wholeness ends.
Then it gets its final name. Every step can be cut by another crash and done again.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from archiver.archive.layout import OPEN, Layout, replace_file, storage, sync_data, sync_folder
from archiver.fetch.spool import FileBlock, MemoryBlock
from archiver.frontier.port import Frontier
from archiver.http import Digester, read_stored
from archiver.model import Block, Capture, Digests, Exchange, FileState, Framing, Peer, Settlement, Span, Truncation
from archiver.visit import Terms, conclude
from archiver.warc.reader import Record, Torn, read
from archiver.warc.records import VisitNotes, parse_date

BATCH = 64  # visits settled in one transaction
IN_MEMORY = 1 << 20  # bytes of a block; a larger one is spooled
HEAD = (1 << 20) + 16  # of a response, at most

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """One whole visit in a WARC file."""

    url: str
    exchange: Exchange
    notes: VisitNotes
    capture: Capture
    end: int  # the offset behind its last record


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery did."""

    adopted: int = 0  # visits that were on disk but not in the database
    cut: tuple[str, ...] = ()  # files that ended in a torn visit


async def recover(layout: Layout, frontier: Frontier, terms: Terms, now: float) -> Recovered:
    """Bring files and database together again; nothing to do after a clean end."""
    adopted, cut = 0, []
    for name, committed in await _unfinished(layout, frontier):
        path = _on_disk(layout.archive, name)
        if path is None:
            log.warning("%s is missing; its captures cannot be replayed", layout.archive / name)
            continue
        with storage(path):
            number, end = await _adopt(layout, path, name, committed, frontier, terms, now)
            adopted += number
            if path.stat().st_size > end:
                _set_aside(layout, path, name, end)
                cut.append(name)
            if path.stat().st_size == 0:
                path.unlink()
                continue
            if path.name != name:
                path.rename(path.with_name(name))
                sync_folder(path.parent)
        await frontier.settle((), (FileState(name, end, closed=True),))
    return Recovered(adopted, tuple(cut))


async def _unfinished(layout: Layout, frontier: Frontier) -> list[tuple[str, int]]:
    known = {row.name: row for row in await frontier.files()}
    files = [(row.name, row.committed) for row in known.values() if not row.closed]
    with storage(layout.archive):
        on_disk = sorted(path.name.removesuffix(OPEN) for path in layout.archive.glob(f"*.warc.gz{OPEN}"))
    return files + [(name, 0) for name in on_disk if name not in known]


def _on_disk(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / (name + OPEN), folder / name) if path.exists()), None)


async def _adopt(
    layout: Layout, path: Path, name: str, committed: int, frontier: Frontier, terms: Terms, now: float
) -> tuple[int, int]:
    """Settle every whole visit behind *committed*; how many, and where wholeness ends."""
    adopted, end = 0, committed
    batch: list[Settlement] = []
    with path.open("rb") as file:
        visits = Visits(file, name, committed, layout.spool)
        for found in visits:
            claims = await frontier.find((found.url,))
            claim = claims.get(found.url)
            end = found.end
            if claim is not None:
                settlement = conclude(terms, replace(claim, tries=found.notes.tries), found.exchange, found.notes.links, now)
                batch.append(replace(settlement, capture=found.capture))
                adopted += 1
            found.exchange.response.close()
            if len(batch) >= BATCH or claim is None:
                await frontier.settle(batch, (FileState(name, end, closed=False),))
                batch = []
        end = max(end, visits.end)
    await frontier.settle(batch, (FileState(name, end, closed=False),))
    return adopted, end


class Visits:
    """The whole visits of one file from *offset* on; afterwards `end` says where wholeness ends."""

    def __init__(self, file: BinaryIO, name: str, offset: int, spool: Path) -> None:
        self.end = offset
        self._file = file
        self._name = name
        self._offset = offset
        self._spool = spool

    def __iter__(self) -> Iterator[Found]:
        records = read(self._file, self._offset)
        try:
            for record in records:
                if record.type == "warcinfo":
                    for _ in record.pieces():
                        pass
                    self.end = record.offset + (record.length or 0)
                elif record.type == "response":
                    found = self._visit(record, records)
                    if found is None:
                        return
                    self.end = found.end
                    yield found
                else:
                    return  # not one of ours: whatever it is, it is kept aside
        except Torn as torn:
            log.info("%s is torn at %d: %s", self._name, torn.offset, torn)

    def _visit(self, response: Record, records: Iterator[Record]) -> Found | None:
        block = self._block(response)
        request, metadata = next(records, None), None
        request_block = b"".join(request.pieces()) if request is not None else b""
        metadata = next(records, None)
        notes_block = b"".join(metadata.pieces()) if metadata is not None else b""
        if request is None or metadata is None or (request.type, metadata.type) != ("request", "metadata"):
            block.close()
            return None
        notes = VisitNotes.read(notes_block)
        framing = read_stored(block.head(HEAD))
        truncated = response.first("WARC-Truncated")
        exchange = Exchange(
            request=request_block,
            response=block,
            framing=replace(framing, faults=notes.faults),
            digests=_digests(response, block, framing),
            peer=Peer(response.first("WARC-IP-Address")),
            started=parse_date(response.first("WARC-Date") or ""),
            took=notes.took,
            truncated=Truncation(truncated) if truncated else None,
        )
        return self._found(response, request, metadata, exchange, notes)

    def _found(self, response: Record, request: Record, metadata: Record, exchange: Exchange, notes: VisitNotes) -> Found:
        address = response.first("WARC-Target-URI") or ""
        spans = [Span(record.offset, record.length or 0) for record in (response, request, metadata)]
        digests = exchange.digests or Digests("", "", 0)
        capture = Capture(
            url=address,
            timestamp=exchange.started,
            status=exchange.framing.status,
            mime=exchange.framing.media_type,
            payload_digest=digests.payload,
            payload_length=digests.payload_length,
            received=exchange.response.length,
            warc=self._name,
            response=spans[0],
            request=spans[1],
            metadata=spans[2],
            truncated=exchange.truncated,
        )
        return Found(address, exchange, notes, capture, spans[2].offset + spans[2].length)

    def _block(self, record: Record) -> MemoryBlock | FileBlock:
        if (record.size or 0) <= IN_MEMORY:
            return MemoryBlock(b"".join(record.pieces()))
        file = tempfile.TemporaryFile(dir=self._spool)  # noqa: SIM115  closed by its block
        try:
            for piece in record.pieces():
                file.write(piece)
        except BaseException:
            file.close()
            raise
        return FileBlock(file, record.size or 0)


def _digests(record: Record, block: Block, framing: Framing) -> Digests:
    algorithm = (record.first("WARC-Payload-Digest") or "").partition(":")[0]
    digester = Digester(algorithm, framing)
    for piece in block.pieces():
        digester.feed(piece)
    return digester.digests()


def _set_aside(layout: Layout, path: Path, name: str, end: int) -> None:
    """Keep what lies behind *end* under damaged/, for certain, before the file is cut there."""
    layout.damaged.mkdir(exist_ok=True)
    size = path.stat().st_size
    kept = layout.damaged / f"{name}.{end}.tail"

    def copy(target: BinaryIO) -> None:
        with path.open("rb") as source:
            source.seek(end)
            shutil.copyfileobj(source, target)

    replace_file(kept, copy)
    note = {"file": name, "offset": end, "bytes": size - end, "why": "the last visit was not whole when the crawl was cut off"}
    replace_file(kept.with_name(kept.name + ".json"), lambda target: _write(target, json.dumps(note, indent=2)))
    with path.open("r+b") as file:
        file.truncate(end)
        sync_data(file)


def _write(target: BinaryIO, text: str) -> None:
    target.write(text.encode() + b"\n")
