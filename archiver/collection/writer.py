"""Write batches of visits as WARC records, sync them, and return where each lies.

A file that has reached its size is sealed after the visit that filled it; a visit never spans two files. A sealed
file gets its final name only when the next batch comes, because then the database knows all its contents. So a crash
never leaves a file that looks finished and that the database does not know.
Invariant: a `WriteResult` names only bytes that are on disk.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from archiver.http import Digester, digest_of, digest_of_pieces, digests_of
from archiver.model import NOWHERE, Block, Capture, Claim, Digests, Exchange, FileState, Links, Resource, Revisit
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
from archiver.warc.resources import DNS_TYPE, Content, lookup_block, lookup_uri, mime_of, resource_header
from archiver.warc.writer import WarcFile


class PendingVisit(NamedTuple):
    """One visit, ready to be stored; with *revisit*, only the head of its response is stored.

    The head of a 304 is stored in the visit's metadata instead: see `VisitMetadata`.
    """

    claim: Claim
    exchange: Exchange
    links: Links
    revisit: Revisit | None = None
    digests: Digests | None = None  # if they are known already
    links_of: tuple[str, int] | None = None  # the file and offset of the stored response that *links* come from
    upload: Block | None = None  # the end of the request, if that is large


class NewResource(NamedTuple):
    """A record of no visit, ready to be stored."""

    uri: str
    timestamp: int  # microseconds since the epoch
    type: str
    block: bytes


class WriteResult(NamedTuple):
    """The places of a batch's captures, in order, and the files they are in."""

    captures: tuple[Capture, ...]
    files: tuple[FileState, ...]
    resources: tuple[Resource, ...] = ()  # records of no visit, such as the DNS lookups that led to them


@dataclass(frozen=True, slots=True)
class WarcIdentity:
    """The name and the warcinfo of every file of this crawl."""

    prefix: str
    host: str  # of the machine that crawls, for the file name
    size: int  # bytes; a file that has reached it is sealed
    algorithm: str
    info: tuple[tuple[str, str], ...]  # the fields of the warcinfo block
    private: bool = False  # requests hold secrets, so only the owner may read the files
    age: float = 0.0  # seconds; a file that is older is sealed too; 0: never

    def file_name(self, now: int, serial: int, kind: str = "") -> str:
        """Return the name of the file created at *now* (microseconds since the epoch)."""
        stamp = f"{datetime.fromtimestamp(now // 1_000_000, UTC):%Y%m%d%H%M%S}{now // 1000 % 1000:03}"
        return f"{self.prefix}-{stamp}-{serial:05}-{self.host}{kind}.warc.gz"

    def begin(self, file: WarcFile, now: int, file_id: str) -> None:
        """Write the warcinfo record, which begins each *file*."""
        block = warc_fields(self.info)
        fields = [
            ("WARC-Record-ID", file_id),
            ("WARC-Date", warc_date(now)),
            ("WARC-Filename", file.name),
            ("WARC-Block-Digest", digest_of(self.algorithm, block)),
        ]
        file.append(header("warcinfo", fields, FIELDS_TYPE, len(block)), (block,), len(block))


class Archive:
    """Appends visits to the WARC files of one writer. Its methods block; call them from one thread at a time."""

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
        self._opened = 0  # when the open file was begun, in microseconds since the epoch
        self._sealed: list[WarcFile] = []  # files without their final names

    def append(self, visits: Sequence[PendingVisit]) -> WriteResult:
        """Write each of *visits* whole; all of them are on disk when this returns.

        The database must hold all earlier results by now.
        """
        files = self.finish_old()
        result = self.extend(visits)
        return result._replace(files=(*files, *result.files))

    def finish_old(self) -> tuple[FileState, ...]:
        """Give sealed files their final names, and the open one too if it is too old.

        The database must hold all earlier results by now.
        """
        if self._file is not None and 0 < self._identity.age <= (self._now() - self._opened) / 1e6:
            self._seal(self._file)
        return tuple(self._name_sealed())

    def extend(self, visits: Sequence[PendingVisit]) -> WriteResult:
        """Write more visits of the same batch, which may refer to those before; then they are on disk too.

        No file gets its final name, because the latest result may not be in the database yet.
        """
        captures: list[Capture] = []
        resources: list[Resource] = []
        for visit in visits:
            file = self._open_file()
            if visit.exchange.lookup is not None:
                lookup = visit.exchange.lookup
                found = NewResource(lookup_uri(lookup), lookup.asked, DNS_TYPE, lookup_block(lookup))
                resources.append(self._store_resource(file, found))
            captures.append(self._store(file, visit))
            if file.size >= self._identity.size:
                self._seal(file)
        return WriteResult(tuple(captures), self._synced(), tuple(resources))

    def append_resources(self, resources: Sequence[NewResource]) -> WriteResult:
        """Write *resources* to one file; all of them are on disk when this returns.

        The database must hold all earlier results by now.
        """
        files = self.finish_old()
        file = self._open_file()
        stored = tuple(self._store_resource(file, each) for each in resources)
        if file.size >= self._identity.size:
            self._seal(file)
        return WriteResult((), (*files, *self._synced()), stored)

    def _synced(self) -> tuple[FileState, ...]:
        """Sync the open file; return the sizes of the files that are not named yet."""
        if self._file is not None:
            self._file.sync()
        written = self._sealed if self._file is None else [*self._sealed, self._file]
        return tuple(FileState(file.name, file.size, closed=False) for file in written)

    def digests(self, exchange: Exchange) -> Digests:
        """Return the digests of the response, by this archive's algorithm."""
        return exchange.digests or self._digests(exchange)

    def close(self) -> tuple[FileState, ...]:
        """Give every file its final name; the database must hold all results by now."""
        if self._file is not None:
            self._seal(self._file)
        return tuple(self._name_sealed())

    def abandon(self) -> None:
        """Close the open file as it is."""
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
            self._opened = now = self._now()
            self._file = WarcFile(
                self.folder, self._identity.file_name(now, self._serials()), private=self._identity.private
            )
            self._file_id = self._new_id()
            self._identity.begin(self._file, now, self._file_id)
        return self._file

    def _store(self, file: WarcFile, visit: PendingVisit) -> Capture:
        claim, exchange, links, revisit, _, links_of, upload = visit
        algorithm = self._identity.algorithm
        visit_metadata = VisitMetadata.of(claim, exchange, links, revisit, links_of)
        fields = visit_metadata.fields() if is_unmodified(revisit) else ""
        notes = b"" if fields else visit_metadata.block()
        block, length, digests = self._block(visit)
        request, metadata = digest_of_pieces(algorithm, _request(visit)), digest_of(algorithm, notes)
        sent = len(exchange.request) + (0 if upload is None else upload.length)
        blocks = BlockHeaders(digests, length, request, sent, metadata, len(notes), revisit, fields)
        headers = capture_headers(claim.target, exchange, blocks, self._file_id, self._new_id)
        spans = (
            file.append(headers.response, block, length),
            file.append(headers.request, _request(visit), sent),
            NOWHERE if fields else file.append(headers.metadata, (notes,), len(notes)),
        )
        capture = Capture.of(claim.url, exchange, digests, file.name, spans)
        return capture._replace(revisit=None if revisit is None else revisit.profile, ask=claim.ask)

    def _block(self, visit: PendingVisit) -> tuple[Iterable[bytes], int, Digests]:
        """Return the stored part of the response, its length and its digests."""
        exchange, revisit = visit.exchange, visit.revisit
        if revisit is None:
            digests = visit.digests or self.digests(exchange)
            return exchange.response.pieces(), exchange.response.length, digests
        head = b"" if is_unmodified(revisit) else exchange.response.head(exchange.framing.head_length)
        stored = digest_of(self._identity.algorithm, head)
        return (head,), len(head), Digests(stored, revisit.payload_digest, revisit.payload_length)

    def _store_resource(self, file: WarcFile, new: NewResource) -> Resource:
        content = Content(new.type, digest_of(self._identity.algorithm, new.block), len(new.block))
        head = resource_header(new.uri, new.timestamp, content, self._file_id, self._new_id())
        span = file.append(head, (new.block,), len(new.block))
        return Resource(new.uri, new.timestamp, mime_of(new.type), content.digest, file.name, span)

    def _digests(self, exchange: Exchange) -> Digests:
        pieces = exchange.response.pieces()
        first = next(pieces, b"")
        if len(first) == exchange.response.length:
            return digests_of(self._identity.algorithm, exchange.framing, first)
        digester = Digester(self._identity.algorithm, exchange.framing)
        for piece in chain((first,), pieces):
            digester.feed(piece)
        return digester.digests()


def _request(visit: PendingVisit) -> Iterator[bytes]:
    """Yield the request of *visit* in order."""
    yield visit.exchange.request
    if visit.upload is not None:
        yield from visit.upload.pieces()
