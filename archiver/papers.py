"""At the end of a run: the settings, the seeds, the log and the reports go into a WARC of their own, with a manifest.

What is in it is derived from what lies in the directory: a run that was cut off leaves its part to the next one that
ends. Of crawl.log each byte is stored once: the URI of a part says where it began and ended, and in which log.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

from archiver.archive.index import Index
from archiver.archive.layout import DRAFT, Layout, storage
from archiver.archive.lock import Lock
from archiver.archive.metadata import MetadataWarc, Paper
from archiver.config.secrets import has_secrets, may_tell, without_secrets
from archiver.config.settings import Settings
from archiver.config.toml import render
from archiver.disk import opened
from archiver.frontier.port import FileRow, Frontier
from archiver.frontier.sqlite import SqliteFrontier
from archiver.http import digest_of
from archiver.identity import identity_of, next_serial
from archiver.warc.reader import Torn, read
from archiver.warc.records import RecordIds
from archiver.warc.resources import PLACE

LARGEST = 256 << 20  # bytes of a report; a longer one is named in the manifest, and can be made again from crawl.db

LOG = "logs/crawl.log"
SETTINGS = "crawl.toml"

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
    """Store the papers of the crawl in *directory*; the name of the file, "" where there is nothing new.

    Raises `ConfigError` where another process works there.
    """
    layout = Layout(directory)
    async with AsyncExitStack() as stack:
        lock = Lock(layout.lock)
        stack.callback(lock.release)
        frontier = await SqliteFrontier.open(layout.database)
        stack.push_async_callback(frontier.close)
        text = _in_force(layout.settings, settings)
        log = await _log(layout, frontier)
        known = await frontier.latest_resource(PLACE + SETTINGS)
        if log is None and known is not None and known.digest == digest_of(settings.warc.digest, text):
            return ""
        seeds = "".join(f"{seed}\n" for seed in await frontier.seeds()).encode()
        papers = [
            Paper(SETTINGS, "application/toml", text, 0, len(text)),
            Paper("seeds.txt", _TEXT, seeds, 0, len(seeds)),
            *([log] if log is not None else ()),
        ]
        reports, too_long = _reports(layout)
        manifest = [*_manifest(layout, await frontier.files()), *too_long]
        return await _written(layout, settings, frontier, [*papers, *reports], manifest)


async def _written(
    layout: Layout, settings: Settings, frontier: Frontier, papers: list[Paper], manifest: list[tuple[str, str]]
) -> str:
    """The name of the file: whole on disk, then known to the database, then named, then in the index."""
    now = time.time_ns() // 1000
    warc = MetadataWarc(layout.archive, identity_of(settings), next_serial(layout), now, RecordIds(os.urandom))
    try:
        for paper in papers:
            warc.add(paper)
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


def _in_force(path: Path, settings: Settings) -> bytes:
    """Return what crawl.toml says, or would say if it is gone or may tell a secret: this one is handed on."""
    bare = render(without_secrets(settings)).encode()
    with storage(path):
        if not path.exists():
            return bare
        with opened(path) as file:
            text = file.read()
    return bare if has_secrets(settings) or may_tell(text.decode(errors="replace")) else text


async def _log(layout: Layout, frontier: Frontier) -> Paper | None:
    """What crawl.log holds that is not stored yet; None where there is nothing."""
    if not layout.log.exists():
        return None
    with storage(layout.log), opened(layout.log) as file:
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
    return Paper(f"{LOG}?begun={begun}&from={start}&to={size}", _TEXT, layout.log, start, size - start)


def _reports(layout: Layout) -> tuple[list[Paper], list[tuple[str, str]]]:
    """The files under reports/; and those that are too long, as lines of the manifest."""
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
            found.append(Paper(f"reports/{quote(path.name)}", media_type, path, 0, size))
    return found, too_long


def _manifest(layout: Layout, files: list[FileRow]) -> Iterator[tuple[str, str]]:
    """A line for each finished WARC file: name, size, sum of its bytes, and the id of its warcinfo record."""
    for file in files:
        if file.closed:
            yield "warc", f"{file.name} {file.committed} {file.digest or '-'} {_warcinfo(layout.archive / file.name)}"


def _warcinfo(path: Path) -> str:
    try:
        with opened(path) as file:
            first = next(read(file), None)
    except (OSError, Torn):  # verify names what is missing or damaged
        return "-"
    return "-" if first is None or first.type != "warcinfo" else first.first("WARC-Record-ID") or "-"
