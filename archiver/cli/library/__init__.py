"""The program as a library: start and resume crawls, and read archives. `import archiver` offers what is public here.

Nothing here prints or handles signals. Input that cannot be used raises `ConfigError`, an archive that cannot be read
or written raises `ArchiveError`.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import Field, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from archiver.cli import start
from archiver.cli.config.sources import GivenSettings
from archiver.cli.directory import check_is_directory, named_crawl
from archiver.cli.events.sending import reporting
from archiver.cli.get import open_holdings, parse_url
from archiver.cli.runner import RunningCrawl, RunResult, within_open_files
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings
from archiver.collection.payload import read_answer
from archiver.config import toml
from archiver.config.settings import every_setting
from archiver.crawl.crawler_process import event_loop
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import url_lookup
from archiver.frontier.connection import Reader
from archiver.frontier.url_lookup import UrlFilter
from archiver.model import ExitCode, State
from archiver.tools.report.report import summary_json, summary_of
from archiver.warc.cdxj import IndexEntry, is_revisit

POLL = 0.25  # seconds between two looks for new captures
AT_ONCE = 1000  # captures that one look takes


class Captured(NamedTuple):
    """An event: a capture whose records are on disk."""

    url: str
    time: float  # seconds since the epoch
    status: int
    mime: str
    length: int  # bytes of the payload
    revisit: bool


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """The end of a run: the same code as the command has, and why it ended."""

    code: ExitCode
    reason: str
    directory: Path

    @property
    def complete(self) -> bool:
        """True if no URL is left, but those of hosts that refuse us, which `reason` names."""
        return self.code in (ExitCode.DONE, ExitCode.NO_SEED, ExitCode.TROUBLE)


@dataclass(frozen=True, slots=True)
class ArchivedCapture:
    """A capture in an archive."""

    url: str
    timestamp: str  # 14 digits, UTC
    status: str  # "-" if it has none
    mime: str
    digest: str
    file: str  # name of the WARC file
    offset: int
    length: int  # bytes of the record in its file; 0: unknown
    revisit: bool
    entry: IndexEntry = field(repr=False, compare=False)


class ArchivedResponse(NamedTuple):
    """What a server sent: its head, and the payload without chunked and content coding."""

    head: bytes
    payload: bytes


class QueuedUrl(NamedTuple):
    """A URL of a crawl."""

    url: str
    state: str  # waiting, archived, failed, excluded, held
    status: int  # of the last answer; 0: none
    failure: str  # a word, "" if there is none
    via: str  # the URL that led here; "" for a seed


class CrawlRun:
    """A run of a crawl that has not begun yet. Run it once: with `run`, `run_async`, or as an async iterator."""

    def __init__(self, prepared: start.PreparedCrawl) -> None:
        self._prepared = prepared
        self._crawl: RunningCrawl | None = None
        self._stopped = False
        self._begun = False
        self.result: CrawlResult | None = None

    @property
    def directory(self) -> Path:
        """The directory of the archive."""
        return self._prepared.directory

    def run(self) -> CrawlResult:
        """Crawl until the end, and return how it ended. KeyboardInterrupt stops it gracefully first."""
        self._check_new()
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            return runner.run(self.run_async())

    async def run_async(self) -> CrawlResult:
        """Crawl until the end. If the task is cancelled, requests in flight finish before it ends."""
        self._check_new()
        self._begun = True
        prepared, settings = self._prepared, within_open_files(self._prepared.settings)
        began = time.time()
        with reporting(prepared.directory, settings), ExitStack() as stack:
            async with start.opening(stack, prepared.directory, settings, prepared.existing) as crawl:
                self._crawl = crawl
                if self._stopped:
                    crawl.drain()
                ended = await self._ended(crawl)
                last = crawl.snapshot()
            self._crawl = None
            outcome = RunResult(ended, last, began)
            code = await asyncio.to_thread(start.finish, prepared.directory, settings, start.SILENT, outcome)
        await asyncio.to_thread(start.send_to_store, prepared.directory, settings, code)
        self.result = CrawlResult(code, ended.reason, prepared.directory)
        return self.result

    def _check_new(self) -> None:
        if self._begun:
            raise ArchiveError("this run has begun already; archiver.open(DIR).resume() makes a further one")

    async def _ended(self, crawl: RunningCrawl) -> Any:
        running = asyncio.ensure_future(crawl.run())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            crawl.drain()
            await running
            raise

    def stop(self) -> None:
        """Start no new request; the run ends when those in flight have. Call it in the thread of the run."""
        self._stopped = True
        if self._crawl is not None:
            self._crawl.drain()

    async def __aiter__(self) -> AsyncIterator[Captured]:
        """Run, and yield each new capture, once, when its records are on disk. `result` is there at the end."""
        archive = OpenArchive(self.directory)
        last = await asyncio.to_thread(archive.last_event)
        running = asyncio.ensure_future(self.run_async())
        try:
            ended = False
            while not ended:
                ended = bool((await asyncio.wait((running,), timeout=POLL))[0])
                while found := await asyncio.to_thread(archive.events_after, last):
                    last = found[-1][0]
                    for _, event in found:
                        yield event
            await running
        finally:
            if not running.done():
                self.stop()
                await running


class OpenArchive:
    """An archive: a collection, or for reading also a WACZ package or a WARC file. Works while a crawl writes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def captures(self, url: str | None = None, *, prefix: str | None = None) -> Iterator[ArchivedCapture]:
        """Yield the captures of *url*, or of the URLs that begin with *prefix*, or all, by key and date."""
        with self._holdings() as holdings:
            if url is not None:
                address, exact = parse_url(url)
                found = holdings.of_url(address) if exact else holdings.of_key(address)
            else:
                found = holdings.entries() if prefix is None else holdings.of_prefix(prefix)
            yield from map(_capture, found)

    def read(self, capture: ArchivedCapture, *, limit: int = 1 << 30) -> ArchivedResponse:
        """Return what the server sent; of a revisit, with the payload of the capture that it refers to.

        Raises `ArchiveError` if that is missing, or if the payload is longer than *limit* bytes.
        """
        with self._holdings() as holdings:
            with holdings.record(capture.entry) as record:
                head = read_answer(record).head
            original = holdings.original(capture.entry)
            if original is None:
                raise ArchiveError(f"{self.path} holds only a revisit of {capture.url}, not its payload")
            with holdings.record(original) as record:
                answer = read_answer(record)
                head = head or answer.head
                payload = bytearray()
                for piece in answer.decoded():
                    payload += piece
                    if len(payload) > limit:
                        raise ArchiveError(f"the payload of {capture.url} is longer than {limit} bytes")
        return ArchivedResponse(head, bytes(payload))

    def urls(self, *states: str) -> Iterator[QueuedUrl]:
        """Yield the URLs of the crawl that are in one of *states*, or all, in order of discovery."""
        unknown = set(states).difference(State)
        if unknown:
            raise ConfigError(f"no such state: {', '.join(sorted(unknown))}; there are {', '.join(State)}")
        which = UrlFilter(tuple(map(State, states)) or tuple(State))
        with self._database() as db:
            for row in url_lookup.listed(db, which, None):
                yield QueuedUrl(row.url, row.state.value, row.status, row.failure, row.via)

    def statistics(self) -> Mapping[str, Any]:
        """Return how the crawl stands: the object that `archiver status --json` has as `crawl`."""
        crawl = named_crawl(self.path)
        with crawl.read() as db:
            return summary_json(summary_of(crawl, db))

    def resume(self, **settings: Any) -> CrawlRun:
        """Return a further run of the crawl; *settings* replace those that it has."""
        return CrawlRun(start.prepare_resume(self.path, _request(None, settings)))

    def last_event(self) -> int:
        """Return the number of the newest event, for `events_after`; 0 if there is none."""
        with self._if_there() as db:
            found = db and db.execute("SELECT max(id) FROM captures").fetchone()
        return int(found[0] or 0) if found else 0

    def events_after(self, number: int) -> list[tuple[int, Captured]]:
        """Return the next events after that with *number*, at most 1,000, each with its number."""
        with self._if_there() as db:
            rows = [] if db is None else list(db.execute(_EVENTS, (number, AT_ONCE)))
        return [
            (last, Captured(url, moment / 1e6, status, mime, length, bool(revisit)))
            for last, url, moment, status, mime, length, revisit in rows
        ]

    def _holdings(self) -> AbstractContextManager[Holdings]:
        return open_holdings(self.path)

    def _database(self) -> AbstractContextManager[Reader]:
        return named_crawl(self.path).read()

    @contextmanager
    def _if_there(self) -> Iterator[Reader | None]:
        """Open the database of the crawl, None before its first run has made it."""
        with ExitStack() as stack:
            db = None
            if Layout(self.path).has_frontier():
                with suppress(ConfigError):  # it is being made
                    db = stack.enter_context(self._database())
            yield db


_EVENTS = """
SELECT captures.id, urls.url, captures.timestamp, captures.status, captures.mime, payload_length, revisit
FROM captures JOIN urls ON urls.id = captures.url WHERE captures.id > ? ORDER BY captures.id LIMIT ?
"""


def _capture(entry: IndexEntry) -> ArchivedCapture:
    return ArchivedCapture(
        entry.url,
        entry.timestamp[:14],
        entry.status,
        entry.mime,
        entry.digest,
        entry.filename,
        entry.offset,
        entry.length,
        is_revisit(entry),
        entry,
    )


def archive(*urls: str, directory: str | os.PathLike[str] | None = None, **settings: Any) -> CrawlRun:
    """Return a crawl of *urls* into *directory*, which must be new; nothing is requested before it runs.

    *settings* have the names of the options, with `_` for `-`: `max_depth=3`, `rate="30/60"`, `exclude=["/calendar/"]`,
    `contact="me@example.org"`. `profile="gentle"` names a profile, `config="FILE"` a settings file. The user's own
    defaults and environment variables have no effect.
    """
    where = None if directory is None else Path(directory)
    return CrawlRun(start.prepare_crawl(_request(where, settings, urls)))


def open(path: str | os.PathLike[str]) -> OpenArchive:  # noqa: A001 - as gzip.open: always used as archiver.open
    """Return the archive at *path*."""
    if not Path(path).is_file():
        check_is_directory(Path(path))
    return OpenArchive(Path(path))


def _request(directory: Path | None, given: Mapping[str, Any], urls: tuple[str, ...] = ()) -> start.CrawlRequest:
    values = {name: value for name, value in given.items() if name not in {"profile", "config"}}
    known = {entry.name: entry for _, entry in every_setting() if entry.metadata["option"]}
    if unknown := next((name for name in values if name not in known), ""):
        raise ConfigError(f"{unknown}: no such setting; docs/reference/settings.md names them all")
    parsed = {name: _value(known[name], value) for name, value in values.items()}
    if parsed.get("processes", 1) != 1:
        raise ConfigError("processes: a crawl of the library runs in this process; use the command for several")
    config = given.get("config")
    of_user = GivenSettings(parsed, None if config is None else Path(config), given.get("profile"))
    return start.CrawlRequest(urls, (), directory, of_user, start.SILENT, own_defaults=False)


def _value(entry: Field[Any], value: Any) -> Any:
    """Return *value*, in the form that crawl.toml has or as text, as that of a setting."""
    if not entry.metadata["many"]:
        return toml.value_of(entry, value)
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{entry.name}: not a list; write {entry.name}=[…]")
    return toml.value_of(entry, list(value))
