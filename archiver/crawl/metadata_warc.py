"""At the end of a run, stores the settings, seeds, orders, log and reports of the crawl in a WARC of their own.

Each is a resource record. The last record is a manifest: a metadata record that lists all WARC files of the crawl. All
of it is derived from the directory, so if a run is cut off the next one that ends stores its part. Each byte of
crawl.log is stored once: the URI of a part says where it begins and ends, and in which log.

The file is written under the name of a draft. No reader takes that for a WARC, and recovery removes it. When all of it
is on disk it becomes NAME.open, and from then on it is treated like any other whole file. So there is all of it or
nothing, whenever the process ends. The parts are streamed, however long they are.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from archiver.collection.index import Index
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.writer import WarcIdentity
from archiver.config.secret_settings import has_secrets, may_hold_secret, without_secrets
from archiver.config.settings import Settings
from archiver.config.toml import render
from archiver.crawl.events import note_events
from archiver.crawl.rules import identity_of, next_serial
from archiver.errors import ArchiveError
from archiver.frontier.orders.table import Order
from archiver.frontier.port import FileRow, Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.http import digest_of, digest_of_pieces
from archiver.model import FileState, Resource
from archiver.storage import DRAFT, open_file, storage
from archiver.warc.records import FIELDS_TYPE, NewId, RecordIds, warc_fields
from archiver.warc.resources import PLACE, Content, manifest_header, mime_of, resource_header
from archiver.warc.warcinfo import read_warcinfo
from archiver.warc.writer import WarcFile

KIND = "-meta"  # before the ending of the file's name
VIEWS = "-views"
STEP = 1 << 20  # bytes read at once

_DRAFT_NAME = f"metadata{DRAFT}"


class MetadataPart(NamedTuple):
    """A part of a file, or a text, that is stored under a URI of its own."""

    name: str  # `logs/crawl.log`: the end of the URI; or a whole one, which begins with `urn:`
    type: str
    source: Path | bytes
    start: int
    length: int

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes."""
        if isinstance(self.source, bytes):
            yield self.source[self.start : self.start + self.length]
            return
        with storage(self.source), open_file(self.source) as file:
            file.seek(self.start)
            left = self.length
            while left:
                piece = file.read(min(STEP, left))
                if not piece:
                    raise ArchiveError(f"{self.source}: it was cut short while it was stored: {left} bytes are missing")
                left -= len(piece)
                yield piece


class MetadataWarc:
    """A metadata WARC: add the parts, then `finish` it with the manifest, then `name` it."""

    def __init__(
        self, folder: Path, identity: WarcIdentity, serial: int, now: int, new_id: NewId, kind: str = KIND
    ) -> None:
        self.resources: list[Resource] = []
        self._draft = folder / _DRAFT_NAME
        self._algorithm = identity.algorithm
        self._now = now
        self._new_id = new_id
        self._id = new_id()
        with storage(self._draft):
            self._draft.unlink(missing_ok=True)
        self.file = WarcFile(folder, identity.file_name(now, serial, kind), _DRAFT_NAME, private=identity.private)
        identity.begin(self.file, now, self._id)

    def add(self, part: MetadataPart) -> None:
        """Store *part*. It is read twice, because its digest comes before it."""
        uri = part.name if part.name.startswith("urn:") else PLACE + part.name
        content = Content(part.type, digest_of_pieces(self._algorithm, part.pieces()), part.length)
        head = resource_header(uri, self._now, content, self._id, self._new_id())
        span = self.file.append(head, part.pieces(), part.length)
        mime = mime_of(part.type)
        self.resources.append(Resource(uri, self._now, mime, content.digest, self.file.name, span))

    def finish(self, manifest: Iterable[tuple[str, str]] | None) -> FileState:
        """Store the manifest, if there is one, and publish the file. When this returns all of it is on disk."""
        if manifest is not None:
            block = warc_fields(manifest)
            content = Content(FIELDS_TYPE, digest_of(self._algorithm, block), len(block))
            head = manifest_header(f"{PLACE}manifest", self._now, content, self._id, self._new_id())
            self.file.append(head, (block,), len(block))
        self.file.seal()
        self.file.publish()
        return FileState(self.file.name, self.file.size, closed=False)

    def name(self) -> FileState:
        """Give the file its final name; by now the database knows everything in it."""
        file = self.file
        file.give_name()
        return FileState(file.name, file.size, closed=True, digest=file.digest, modified=file.modified)

    def discard(self) -> None:
        """Delete the draft after a failure."""
        self.file.abandon()
        with suppress(OSError):
            self._draft.unlink(missing_ok=True)


LARGEST = 256 << 20  # bytes of a report; the manifest names longer ones, which can be written again from crawl.db

LOG = "logs/crawl.log"
SETTINGS = "crawl.toml"
ORDERS = "orders.jsonl"

_TEXT = "text/plain; charset=utf-8"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".tsv": "text/tab-separated-values; charset=utf-8",
    ".txt": _TEXT,
}
_PART = re.compile(r"begun=([0-9]{0,17})&from=[0-9]+&to=([0-9]{1,18})")
_LOGGED = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.([0-9]{3})Z ")


async def stored(directory: Path, settings: Settings) -> str:
    """Store the metadata of the crawl in *directory*; return the name of the file, "" if there is nothing new.

    Raises `ConfigError` if another process works there.
    """
    layout = Layout(directory)
    with Lock(layout.lock):
        async with await SqliteFrontier.open(layout.database) as frontier:
            note_events(frontier, settings, directory)
            text = _settings_text(layout.settings, settings)
            log, orders = await _log(layout, frontier), _orders(await frontier.orders())
            known = [await frontier.latest_resource(PLACE + name) for name in (SETTINGS, ORDERS)]
            digests = [digest_of(settings.warc.digest, each) if each else "" for each in (text, orders)]
            if log is None and [each.digest if each else "" for each in known] == digests:
                return ""
            seeds = "".join(f"{seed}\n" for seed in await frontier.seeds()).encode()
            parts = [
                MetadataPart(SETTINGS, "application/toml", text, 0, len(text)),
                MetadataPart("seeds.txt", _TEXT, seeds, 0, len(seeds)),
                *([MetadataPart(ORDERS, "application/jsonl", orders, 0, len(orders))] if orders else ()),
                *([log] if log is not None else ()),
            ]
            reports, too_long = _reports(layout)
            manifest = [*_manifest(layout, await frontier.files()), *too_long]
            return await _written(layout, settings, frontier, [*parts, *reports], manifest)


async def store_views(directory: Path, settings: Settings, records: Sequence[tuple[str, str, Path]]) -> str:
    """Store records of views in the collection in *directory*; return the name of the WARC file.

    *records*: for each its URI, its type, and the file with its bytes.

    Raises `ConfigError` if another process works there.
    """
    layout = Layout(directory)
    parts = [MetadataPart(uri, mime, path, 0, path.stat().st_size) for uri, mime, path in records]
    with Lock(layout.lock):
        async with await SqliteFrontier.open(layout.database) as frontier:
            return await _written(layout, settings, frontier, parts, None)


async def _written(
    layout: Layout,
    settings: Settings,
    frontier: Frontier,
    parts: Sequence[MetadataPart],
    manifest: Sequence[tuple[str, str]] | None,
) -> str:
    """Write the file, enter it in the database, name it, index it, and return its name."""
    now = time.time_ns() // 1000
    kind = KIND if manifest is not None else VIEWS
    warc = MetadataWarc(layout.archive, identity_of(settings), next_serial(layout), now, RecordIds(os.urandom), kind)
    try:
        for part in parts:
            warc.add(part)
        state = warc.finish(manifest)
    except BaseException:
        warc.discard()
        raise
    await frontier.settle((), (state,), resources=warc.resources)
    await frontier.settle((), (warc.name(),))
    index = Index(layout.indexes)
    index.add(warc.resources)
    index.close_file(warc.file.name)
    await asyncio.to_thread(index.merge_in, (warc.file.name,))
    await frontier.mark_indexed()
    return warc.file.name


def _settings_text(path: Path, settings: Settings) -> bytes:
    """Return crawl.toml; without secrets if it may hold any, and from *settings* if it is gone. Others will read it."""
    bare = render(without_secrets(settings)).encode()
    with storage(path):
        if not path.exists():
            return bare
        with open_file(path) as file:
            text = file.read()
    hides = has_secrets(settings) or without_secrets(settings) != settings
    return bare if hides or may_hold_secret(text.decode(errors="replace")) else text


def _orders(given: Sequence[Order]) -> bytes:
    """Return what people have told the crawl to do, one JSON object a line; times are in seconds since the epoch."""
    return b"".join(json.dumps(asdict(each)).encode() + b"\n" for each in given)


async def _log(layout: Layout, frontier: Frontier) -> MetadataPart | None:
    """Return the part of crawl.log that is not stored yet; None if there is nothing new."""
    if not layout.log.exists():
        return None
    with storage(layout.log), open_file(layout.log) as file:
        first = _LOGGED.match(file.read(32))
        size = file.seek(0, os.SEEK_END)
    begun = b"".join(first.groups()).decode() if first else ""
    start = 0
    latest = await frontier.latest_resource(f"{PLACE}{LOG}?")
    part = _PART.search(latest.uri) if latest is not None else None
    if part is not None and part[1] == begun and int(part[2]) <= size:  # else it is another log
        start = int(part[2])
    if start == size:
        return None
    return MetadataPart(f"{LOG}?begun={begun}&from={start}&to={size}", _TEXT, layout.log, start, size - start)


def _reports(layout: Layout) -> tuple[list[MetadataPart], list[tuple[str, str]]]:
    """Return the files under reports/, and those that are too long, as lines of the manifest."""
    found, too_long = [], []
    with storage(layout.reports):
        paths = sorted(layout.reports.iterdir()) if layout.reports.is_dir() else []
        for path in paths:
            if path.is_symlink() or not path.is_file() or path.name.endswith(DRAFT):
                continue
            size = path.stat().st_size
            if size > LARGEST:
                too_long.append(("left-out", f"reports/{path.name} {size}"))
                continue
            media_type = _TYPES.get(path.suffix, "application/octet-stream")
            found.append(MetadataPart(f"reports/{quote(path.name)}", media_type, path, 0, size))
    return found, too_long


def _manifest(layout: Layout, files: list[FileRow]) -> Iterator[tuple[str, str]]:
    """Yield a line for each finished WARC file: name, size, digest, and the id of its warcinfo record."""
    for file in files:
        if file.closed:
            yield (
                "warc",
                f"{file.name} {file.committed} {file.digest or '-'} {_warcinfo_id(layout.archive / file.name)}",
            )


def _warcinfo_id(path: Path) -> str:
    try:
        with open_file(path) as file:
            info = read_warcinfo(file)
    except OSError:  # verify reports missing files
        return "-"
    return "-" if info is None else info.record_id or "-"
