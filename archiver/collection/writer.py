"""Visits become records: the archive takes batches of them, says where each lies, and syncs before it answers.

A file that has reached its size is sealed after the visit that filled it; a visit never spans two files. A sealed
file gets its final name only when the next batch comes, which is when the database knows all that is in it: a crash
leaves no file that looks finished but of which nobody knows.
Invariant: a receipt speaks only of bytes that are on disk.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from archiver.http import Digester, digest_of, digests_of
from archiver.model import NOWHERE, Capture, Claim, Digests, Exchange, FileState, Links, Lookup, Resource, Revisit
from archiver.warc.records import (
    FIELDS_TYPE,
    BlockHeaders,
    NewId,
    VisitMetadata,
    capture_headers,
    header,
    is_unmodified,
    warc_date,
    warc_fields,
)
from archiver.warc.resources import DNS_TYPE, Content, lookup_block, lookup_uri, resource_header
from archiver.warc.writer import WarcFile


class PendingVisit(NamedTuple):
    """One visit, ready to be stored; with *revisit* only the head of its answer is.

    Where that says that nothing has changed, it is kept in the notes of the visit: see `VisitNotes`.
    """

    claim: Claim
    exchange: Exchange
    links: Links
    revisit: Revisit | None = None
    digests: Digests | None = None  # where they are known already
    links_of: tuple[str, int] | None = None  # the file and offset of the stored answer whose *links* these are


class WriteResult(NamedTuple):
    """Where a batch lies, in the order in which it was handed in, and the files it touched."""

    captures: tuple[Capture, ...]
    files: tuple[FileState, ...]
    resources: tuple[Resource, ...] = ()  # look-ups that led to them


@dataclass(frozen=True, slots=True)
class WarcIdentity:
    """What every file of this crawl says of itself."""

    prefix: str
    host: str  # of the machine that crawls, for the file name
    size: int  # bytes after which a new file begins
    algorithm: str
    info: tuple[tuple[str, str], ...]  # the fields of the warcinfo block
    private: bool = False  # requests hold secrets, so only the owner may read the files

    def file_name(self, now: int, serial: int, kind: str = "") -> str:
        """The name of the file begun at *now* (microseconds since the epoch)."""
        stamp = f"{datetime.fromtimestamp(now // 1_000_000, UTC):%Y%m%d%H%M%S}{now // 1000 % 1000:03}"
        return f"{self.prefix}-{stamp}-{serial:05}-{self.host}{kind}.warc.gz"

    def begin(self, file: WarcFile, now: int, file_id: str) -> None:
        """Write the warcinfo record, which is the first of each *file*."""
        block = warc_fields(self.info)
        fields = [
            ("WARC-Record-ID", file_id),
            ("WARC-Date", warc_date(now)),
            ("WARC-Filename", file.name),
            ("WARC-Block-Digest", digest_of(self.algorithm, block)),
        ]
        file.append(header("warcinfo", fields, FIELDS_TYPE, len(block)), (block,), len(block))


class Archive:
    """Appends visits to the WARC files of one lane. Its methods block; each lane is called by one thread at a time."""

    def __init__(
        self, folder: Path, identity: WarcIdentity, serials: Callable[[], int], now: Callable[[], int], new_id: NewId
    ) -> None:
        self.folder = folder
        self._identity = identity
        self._serials = serials
        self._now = now
        self._new_id = new_id
        self._file: WarcFile | None = None
        self._file_id = ""
        self._sealed: list[WarcFile] = []  # without their final names

    def append(self, deposits: Sequence[PendingVisit]) -> WriteResult:
        """Store each of *deposits* whole; when this returns, all of them are on disk.

        What the receipts before this one say must be in the database by now.
        """
        files = self._name_sealed()
        receipt = self.extend(deposits)
        return receipt._replace(files=(*files, *receipt.files))

    def extend(self, deposits: Sequence[PendingVisit]) -> WriteResult:
        """Store further deposits of the same batch, which may refer to those before; then they are on disk too.

        No file gets its final name: what the latest receipt says may not be in the database yet.
        """
        captures: list[Capture] = []
        resources: list[Resource] = []
        for deposit in deposits:
            file = self._open_file()
            if deposit.exchange.lookup is not None:
                resources.append(self._store_lookup(file, deposit.exchange.lookup))
            captures.append(self._store(file, deposit))
            if file.size >= self._identity.size:
                self._seal(file)
        if self._file is not None:
            self._file.sync()
        written = self._sealed if self._file is None else [*self._sealed, self._file]
        return WriteResult(
            tuple(captures),
            tuple(FileState(file.name, file.size, closed=False) for file in written),
            tuple(resources),
        )

    def digests(self, exchange: Exchange) -> Digests:
        """The digests of the response, as this archive has them."""
        return exchange.digests or self._digests(exchange)

    def close(self) -> tuple[FileState, ...]:
        """Give every file its final name; all receipts must be in the database by now."""
        if self._file is not None:
            self._seal(self._file)
        return tuple(self._name_sealed())

    def abandon(self) -> None:
        """Leave the open file as it is."""
        if self._file is not None:
            self._file.abandon()
            self._file = None

    def _seal(self, file: WarcFile) -> None:
        file.seal()
        self._sealed.append(file)
        self._file = None

    def _name_sealed(self) -> list[FileState]:
        named = []
        while self._sealed:
            file = self._sealed[0]
            file.give_name()
            named.append(FileState(file.name, file.size, closed=True, digest=file.digest, modified=file.modified))
            del self._sealed[0]
        return named

    def _open_file(self) -> WarcFile:
        if self._file is None:
            now = self._now()
            self._file = WarcFile(
                self.folder, self._identity.file_name(now, self._serials()), private=self._identity.private
            )
            self._file_id = self._new_id()
            self._identity.begin(self._file, now, self._file_id)
        return self._file

    def _store(self, file: WarcFile, deposit: PendingVisit) -> Capture:
        claim, exchange, links, revisit, _, links_of = deposit
        algorithm = self._identity.algorithm
        told = VisitMetadata.of(claim, exchange, links, revisit, links_of)
        fields = told.fields() if is_unmodified(revisit) else ""
        notes = b"" if fields else told.block()
        block, length, digests = self._block(deposit)
        request, metadata = digest_of(algorithm, exchange.request), digest_of(algorithm, notes)
        blocks = BlockHeaders(digests, length, request, metadata, len(notes), revisit, fields)
        headers = capture_headers(claim.url, exchange, blocks, self._file_id, self._new_id)
        spans = (
            file.append(headers.response, block, length),
            file.append(headers.request, (exchange.request,), len(exchange.request)),
            NOWHERE if fields else file.append(headers.metadata, (notes,), len(notes)),
        )
        return Capture(
            url=claim.url,
            timestamp=exchange.started,
            status=exchange.framing.status,
            mime=exchange.framing.media_type,
            payload_digest=digests.payload,
            payload_length=digests.payload_length,
            received=exchange.response.length,
            warc=file.name,
            response=spans[0],
            request=spans[1],
            metadata=spans[2],
            truncated=exchange.truncated,
            revisit=None if revisit is None else revisit.profile,
        )

    def _block(self, deposit: PendingVisit) -> tuple[Iterable[bytes], int, Digests]:
        """What is stored of the response, its length, and its digests."""
        exchange, revisit = deposit.exchange, deposit.revisit
        if revisit is None:
            digests = deposit.digests or self.digests(exchange)
            return exchange.response.pieces(), exchange.response.length, digests
        head = b"" if is_unmodified(revisit) else exchange.response.head(exchange.framing.head_length)
        stored = digest_of(self._identity.algorithm, head)
        return (head,), len(head), Digests(stored, revisit.payload_digest, revisit.payload_length)

    def _store_lookup(self, file: WarcFile, lookup: Lookup) -> Resource:
        uri, block = lookup_uri(lookup), lookup_block(lookup)
        content = Content(DNS_TYPE, digest_of(self._identity.algorithm, block), len(block))
        head = resource_header(uri, lookup.asked, content, self._file_id, self._new_id())
        span = file.append(head, (block,), len(block))
        return Resource(uri, lookup.asked, DNS_TYPE, content.digest, file.name, span)

    def _digests(self, exchange: Exchange) -> Digests:
        pieces = exchange.response.pieces()
        first = next(pieces, b"")
        if len(first) == exchange.response.length:
            return digests_of(self._identity.algorithm, exchange.framing, first)
        digester = Digester(self._identity.algorithm, exchange.framing)
        for piece in chain((first,), pieces):
            digester.feed(piece)
        return digester.digests()
