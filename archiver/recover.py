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
from archiver.model import (
    Block,
    Capture,
    Claim,
    Digests,
    Exchange,
    FileState,
    Framing,
    Peer,
    Settlement,
    Span,
    Truncation,
)
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

    exchange: Exchange
    notes: VisitNotes
    capture: Capture
    end: int  # the offset behind its last record


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery did."""

    adopted: int = 0  # visits that were on disk but not in the database
    cut: tuple[str, ...] = ()  # files that ended in a torn visit


class Recovery:
    """Brings files and database together again; after a clean end there is nothing to do."""

    def __init__(self, layout: Layout, frontier: Frontier, terms: Terms, now: float) -> None:
        self._layout = layout
        self._frontier = frontier
        self._terms = terms
        self._now = now
        self._adopted = 0
        self._cut: list[str] = []

    async def run(self) -> Recovered:
        """Recover every file, and say what that came to."""
        self._layout.forget_drafts()
        for name, committed in await self._unfinished():
            path = self._on_disk(name)
            if path is None:
                log.warning("%s is missing; its captures cannot be replayed", self._layout.archive / name)
            else:
                await self._finish(path, name, committed)
        return Recovered(self._adopted, tuple(self._cut))

    async def _unfinished(self) -> list[tuple[str, int]]:
        known = {row.name: row for row in await self._frontier.files()}
        files = [(row.name, row.committed) for row in known.values() if not row.closed]
        with storage(self._layout.archive):
            on_disk = sorted(path.name.removesuffix(OPEN) for path in self._layout.archive.glob(f"*.warc.gz{OPEN}"))
        return files + [(name, 0) for name in on_disk if name not in known]

    def _on_disk(self, name: str) -> Path | None:
        folder = self._layout.archive
        return next((path for path in (folder / (name + OPEN), folder / name) if path.exists()), None)

    async def _finish(self, path: Path, name: str, committed: int) -> None:
        with storage(path):
            end = await self._adopt(path, name, committed)
            if _cut_at(end, path, name, self._layout):
                self._cut.append(name)
            if _named(path, name):
                await self._frontier.settle((), (FileState(name, end, closed=True),))

    async def _adopt(self, path: Path, name: str, committed: int) -> int:
        """Settle every whole visit behind *committed*; where wholeness ends."""
        end = committed
        batch: list[Settlement] = []
        with path.open("r+b") as file:
            sync_data(file)  # a killed process leaves bytes that are in no file yet, and a commit says that they are
            visits = Visits(file, name, committed, self._layout.spool)
            for found in visits:
                claim = await self._claim(found.capture.url)
                if claim is None:
                    log.warning("%s: a visit of %s that nobody waits for", path, found.capture.url)
                else:
                    batch.append(self._settlement(claim, found))
                found.exchange.response.close()
                if len(batch) >= BATCH:
                    await self._frontier.settle(batch, (FileState(name, found.end, closed=False),))
                    batch = []
                end = found.end
            end = max(end, visits.end)
        if end > committed:
            await self._frontier.settle(batch, (FileState(name, end, closed=False),))
        return end

    async def _claim(self, address: str) -> Claim | None:
        return (await self._frontier.find((address,))).get(address)

    def _settlement(self, claim: Claim, found: Found) -> Settlement:
        self._adopted += 1
        visited = replace(claim, tries=found.notes.tries)
        settlement = conclude(self._terms, visited, found.exchange, found.notes.links, self._now)
        return replace(settlement, capture=found.capture)


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
                    self.end = found.end
                    yield found
                else:
                    log.info("%s: a %s record where a visit should begin", self._name, record.type)
                    return
        except (Torn, ValueError) as torn:  # whatever it is, it is kept aside
            log.info("%s is whole up to %d only: %s", self._name, self.end, torn)

    def _visit(self, response: Record, records: Iterator[Record]) -> Found:
        """The visit that begins with *response*; `Torn` or ValueError where it is not whole."""
        block = self._block(response)
        try:
            request, request_block = _next(records, "request")
            metadata, notes_block = _next(records, "metadata")
            notes = VisitNotes.read(notes_block)
            framing = replace(read_stored(block.head(HEAD)), faults=notes.faults)
            truncated = response.first("WARC-Truncated")
            exchange = Exchange(
                request=request_block,
                response=block,
                framing=framing,
                digests=_digests(response, block, framing),
                peer=Peer(response.first("WARC-IP-Address")),
                started=parse_date(response.first("WARC-Date") or ""),
                took=notes.took,
                truncated=Truncation(truncated) if truncated else None,
                interim=notes.interim,
                surplus=notes.surplus,
                notes=notes.remarks,
            )
            capture = _capture(self._name, exchange, response, request, metadata)
        except BaseException:
            block.close()
            raise
        return Found(exchange, notes, capture, capture.metadata.offset + capture.metadata.length)

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


def _next(records: Iterator[Record], kind: str) -> tuple[Record, bytes]:
    """The next record and its block, which is small; ValueError where it is not a *kind*."""
    record = next(records, None)
    if record is None or record.type != kind:
        raise ValueError(f"{'nothing' if record is None else record.type} where a {kind} record should be")
    return record, b"".join(record.pieces())


def _capture(name: str, exchange: Exchange, response: Record, request: Record, metadata: Record) -> Capture:
    digests = exchange.digests or Digests("", "", 0)
    return Capture(
        url=response.first("WARC-Target-URI") or "",
        timestamp=exchange.started,
        status=exchange.framing.status,
        mime=exchange.framing.media_type,
        payload_digest=digests.payload,
        payload_length=digests.payload_length,
        received=exchange.response.length,
        warc=name,
        response=_span(response),
        request=_span(request),
        metadata=_span(metadata),
        truncated=exchange.truncated,
    )


def _span(record: Record) -> Span:
    return Span(record.offset, record.length or 0)


def _digests(record: Record, block: Block, framing: Framing) -> Digests:
    algorithm = (record.first("WARC-Payload-Digest") or "").partition(":")[0]
    digester = Digester(algorithm, framing)
    for piece in block.pieces():
        digester.feed(piece)
    return digester.digests()


def _cut_at(end: int, path: Path, name: str, layout: Layout) -> bool:
    """Keep what lies behind *end* under damaged/, for certain, before the file is cut there; False without any."""
    size = path.stat().st_size
    if size < end:
        log.warning("%s is shorter than it was: %d bytes of %d are there", path, size, end)
    if size <= end:
        return False
    if not layout.damaged.exists():
        layout.damaged.mkdir()
        sync_folder(layout.directory)
    kept = layout.damaged / f"{name}.{end}.tail"
    log.warning("%s ended in a torn visit; its last %d bytes are kept as %s", path, size - end, kept)

    def copy(target: BinaryIO) -> None:
        with path.open("rb") as source:
            source.seek(end)
            shutil.copyfileobj(source, target)

    replace_file(kept, copy)
    why = "the last visit was not whole when the crawl was cut off"
    note = json.dumps({"file": name, "offset": end, "bytes": size - end, "why": why}, indent=2) + "\n"
    replace_file(kept.with_name(kept.name + ".json"), lambda target: target.writelines((note.encode(),)))
    with path.open("r+b") as file:
        file.truncate(end)
        sync_data(file)
    return True


def _named(path: Path, name: str) -> bool:
    """Give *path* its final name; False where nothing of it was whole, so that it is gone."""
    if path.stat().st_size == 0:
        path.unlink()
    elif path.name != name:
        path.rename(path.with_name(name))
    sync_folder(path.parent)
    return path.with_name(name).exists()
