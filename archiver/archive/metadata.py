"""A WARC of a crawl's own papers, each a resource record, and last a manifest: a metadata record of all its WARC files.

It is written under the name of a draft, which no reader takes for a WARC and which recovery removes, and is called
NAME.open only when all of it is on disk. From then on it is treated like every other file that is whole.
Invariant: there is all of it or nothing, whenever the process ends. Papers are streamed, however long they are.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from archiver.archive.layout import DRAFT, storage
from archiver.archive.warcfile import WarcFile
from archiver.archive.writer import WarcIdentity
from archiver.disk import opened
from archiver.errors import ArchiveError
from archiver.http import digest_of, digest_of_pieces
from archiver.model import FileState, Resource
from archiver.warc.records import FIELDS_TYPE, NewId, warc_fields
from archiver.warc.resources import PLACE, Content, manifest_header, mime_of, resource_header

KIND = "-meta"  # before the ending of the file's name
STEP = 1 << 20  # bytes read at once

_DRAFT_NAME = f"metadata{DRAFT}"


class Paper(NamedTuple):
    """A part of a file, or a text, that is stored under a URI of its own."""

    name: str  # `logs/crawl.log`: the end of the URI
    type: str
    source: Path | bytes
    start: int
    length: int

    def pieces(self) -> Iterator[bytes]:
        """Its bytes."""
        if isinstance(self.source, bytes):
            yield self.source[self.start : self.start + self.length]
            return
        with storage(self.source), opened(self.source) as file:
            file.seek(self.start)
            left = self.length
            while left:
                piece = file.read(min(STEP, left))
                if not piece:
                    raise ArchiveError(f"{self.source}: it was cut short while it was stored: {left} bytes are missing")
                left -= len(piece)
                yield piece


class MetadataWarc:
    """One such file: papers are added, then the manifest; then it is published, and named like any other."""

    def __init__(self, folder: Path, identity: WarcIdentity, serial: int, now: int, new_id: NewId) -> None:
        self.resources: list[Resource] = []
        self._draft = folder / _DRAFT_NAME
        self._algorithm = identity.algorithm
        self._now = now
        self._new_id = new_id
        self._id = new_id()
        with storage(self._draft):
            self._draft.unlink(missing_ok=True)
        self.file = WarcFile(folder, identity.file_name(now, serial, KIND), _DRAFT_NAME, private=identity.private)
        identity.begin(self.file, now, self._id)

    def add(self, paper: Paper) -> None:
        """Store *paper*. It is read twice, for its digest stands before it."""
        uri = PLACE + paper.name
        content = Content(paper.type, digest_of_pieces(self._algorithm, paper.pieces()), paper.length)
        head = resource_header(uri, self._now, content, self._id, self._new_id())
        span = self.file.append(head, paper.pieces(), paper.length)
        mime = mime_of(paper.type)
        self.resources.append(Resource(uri, self._now, mime, content.digest, self.file.name, span))

    def finish(self, manifest: Iterable[tuple[str, str]]) -> FileState:
        """Store the manifest, and publish the file; all of it is on disk when this returns."""
        block = warc_fields(manifest)
        content = Content(FIELDS_TYPE, digest_of(self._algorithm, block), len(block))
        head = manifest_header(f"{PLACE}manifest", self._now, content, self._id, self._new_id())
        self.file.append(head, (block,), len(block))
        self.file.seal()
        self.file.publish()
        return FileState(self.file.name, self.file.size, closed=False)

    def name(self) -> FileState:
        """Give it its final name; the database knows all that is in it by now."""
        file = self.file
        file.give_name()
        return FileState(file.name, file.size, closed=True, digest=file.digest, modified=file.modified)

    def discard(self) -> None:
        """Something failed before it was published: it takes no room any more."""
        self.file.abandon()
        with suppress(OSError):
            self._draft.unlink(missing_ok=True)
