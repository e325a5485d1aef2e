"""The crawls that are watched: found in folders, named by ids, and looked at while someone asks.

A folder is looked through again every few seconds, for crawls that are new. A link in it that leads out of it is not
followed: a folder may have been received. The state of a crawl comes from live.json while it runs, and otherwise from
its database, which is read again only when its files have changed.
"""

import asyncio
import hashlib
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TypeVar

from archiver import storage
from archiver.collection import safe_paths
from archiver.collection.layout import Layout
from archiver.collection.live import ENDED, Live, last_live
from archiver.collection.named_crawl import NamedCrawl
from archiver.config.live_settings import LIVE as LIVE_KEYS
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import outcomes, totals
from archiver.frontier.connection import Reader
from archiver.frontier.orders.table import is_paused
from archiver.humanize import printable
from archiver.tools.report import verdict
from archiver.tools.watch import reading
from archiver.tools.watch.patterns import ProblemScan, patterns
from archiver.tools.watch.reading import Json, shown
from archiver.tools.watch.tail import Stream, read_live
from archiver.tools.watch.threads import SlowAnswer, in_thread

MOST = 2000  # crawls
UNREADABLE = "unreadable"
READERS = 8  # queries of one crawl at once
FIND_AGAIN = 5.0  # seconds
SAMPLE = 5.0  # seconds between two points of the history
POINTS = 120

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(slots=True)
class History:
    """The last minutes of a crawl."""

    rates: deque[float] = field(default_factory=lambda: deque(maxlen=POINTS))
    stored: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=POINTS))  # when, bytes on the disk
    at: float = 0.0  # of the last live.json

    def add(self, live: Json | None) -> None:
        """Note what the running crawl says now."""
        if live is None:
            if self.rates:
                self.rates.append(0.0)
            return
        written = _number(live.get("written"))
        self.rates.append(round(_number(live.get("rate")), 3))
        self.stored.append((written, int(_number(live.get("written_bytes")))))
        self.at = written

    def seconds_left(self, free: float) -> float | None:
        """Return when the disk with *free* bytes is full at this rate; None if it is not known."""
        if len(self.stored) < 2:
            return None
        (first, before), (last, after) = self.stored[0], self.stored[-1]
        grown = after - before
        return round(free * (last - first) / grown) if grown > 0 and last > first else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


class WatchedCrawl:
    """One crawl, and everything about it that is kept between requests."""

    def __init__(self, named: NamedCrawl) -> None:
        self.named = named
        self.id = hashlib.blake2s(_place(named).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
        self.history = History()
        self.problems = ProblemScan()
        self.captures: dict[int, int] = {}  # in WARC files that are closed
        self.stream = Stream(named.layout, self._newest_order)
        self.lock = asyncio.Lock()  # of `problems`
        self._readers = asyncio.Semaphore(READERS)
        self.patterns = SlowAnswer(lambda: self._read(lambda db: patterns(db, random.Random())))  # noqa: S311
        self.verdict = SlowAnswer(lambda: self._read(self._verdict))
        self._row: tuple[object, Json] = (None, {})

    def _read(self, ask: Callable[[Reader], T]) -> T:
        with self.named.read() as db:
            return ask(db)

    async def read(self, ask: Callable[[Reader], T]) -> T:
        """Return *ask* of the database, in a thread."""
        async with self._readers:
            return await in_thread(self._read, ask)

    def live(self) -> Json | None:
        """Return what the running crawl says; None if none runs."""
        layout = self.named.layout
        return None if layout is None else read_live(layout, time.time())

    def _newest_order(self) -> object:
        try:
            return self._read(reading.newest_order)
        except (ArchiveError, ConfigError):
            return None

    def _verdict(self, db: Reader) -> Json:
        found = verdict.read_verdict(db, totals.seeds(db))
        changeable = not self.named.is_recording
        rows = [
            {
                "name": each.topic,
                "text": shown(each.message),
                "command": self._command(each.command) if changeable else "",
            }
            for each in found.findings
        ]
        return {"trouble": found.trouble, "findings": rows}

    def _command(self, text: str) -> str:
        return shown(" ".join(quote(self.named.name) if word == "DIR" else word for word in text.split(" ")))

    async def details(self) -> Json:
        """Return everything about the crawl but its lists."""
        live = await in_thread(self.live)
        found = await self.read(self._details)
        ending = found.pop("ending")
        known = await self.verdict.get()
        unknown = {"text": "still being read", "trouble": False, "findings": []}
        name = self.named.layout.directory if self.named.layout is not None else self.named.address
        return {
            "id": self.id,
            "name": shown(self.named.title, 200),
            "directory": shown(name),
            "live": live,
            "state": self._state(live, found["running"], found["paused"], found["counts"]),
            **found,
            "verdict": unknown if known is None else {**known, "text": ending},
            "live_keys": sorted(LIVE_KEYS),
        }

    def _details(self, db: Reader) -> Json:
        running = self.named.holder(db) is not None  # read first: a run that has ended by now is in the database
        recording, ended = self.named.is_recording, verdict.ending(outcomes.last(db))
        return {
            "counts": reading.counts(db),
            "running": running,
            "ending": f"the {'recording' if recording else 'crawl'} is running" if running else shown(ended),
            "paused": is_paused(db),
            "recording": recording,
            "settings": reading.settings_of(self.named, db),
        }

    @staticmethod
    def _state(live: Json | None, running: bool, paused: bool, counts: Json) -> str:  # noqa: FBT001
        if live is not None:
            return shown(live.get("state", ""), 40)
        if running:
            return "paused" if paused else "running"
        return "stopped" if counts.get("waiting") else "done"

    def summary(self) -> Json:
        """Return the row of the crawl in the list of all. Reads the database only if it has changed and none runs."""
        live = self.live()
        layout = self.named.layout
        free = storage.free(layout.directory) if layout is not None else None
        found: Json = {"id": self.id, "name": shown(self.named.title, 200)}
        if live is not None:
            hosts = live.get("hosts_total")
            total = hosts if isinstance(hosts, dict) else {}
            warnings = live.get("warnings")
            last = warnings[-1] if isinstance(warnings, list) and warnings else {}
            found |= {key: live.get(key) for key in ("state", "rate", "done", "waiting", "failed", "held", "written")}
            found |= {"bytes": live.get("received"), "slowed": total.get("slowed", 0), "asleep": total.get("asleep", 0)}
            found["warning"] = str(last.get("text", "")) if isinstance(last, dict) else ""
        else:
            found |= self._at_rest()
        found |= {"disk_free": free, "disk_left_seconds": None, "history": list(self.history.rates)}
        if live is not None and free is not None:
            found["disk_left_seconds"] = self.history.seconds_left(free)
        return found

    def figures(self) -> Live | None:
        """Return the figures for /metrics; of a crawl that does not run, the last ones; None if there are none."""
        if self.named.layout is not None and (live := last_live(self.named.layout)) is not None:
            return live
        row = self._at_rest()
        if row["state"] == UNREADABLE:
            return None
        done, waiting, failed, held = (int(row[key]) for key in ("done", "waiting", "failed", "held"))
        return Live(0, 0.0, ENDED, done=done, waiting=waiting, failed=failed, held=held)

    def _at_rest(self) -> Json:
        layout = self.named.layout
        stamp = None if layout is None else _stamp(layout)
        if stamp is None or self._row[0] != stamp:
            try:
                self._row = (stamp, self._read(self._from_database))
            except (ArchiveError, ConfigError) as error:
                self._row = (stamp, {**NO_ROW, "state": UNREADABLE, "warning": shown(error)})
        return self._row[1]

    def _from_database(self, db: Reader) -> Json:
        counts = reading.counts(db)
        state = self._state(None, self.named.holder(db) is not None, is_paused(db), counts)
        run = outcomes.last(db)
        ending = verdict.ending(run) if run is not None else ""
        return {
            **NO_ROW,
            **{key: counts[key] for key in ("waiting", "failed", "held")},
            "done": counts["archived"],
            "state": state,
            "bytes": counts["received"],
            "warning": shown(ending) if state != "running" else "",
        }

    def close(self) -> None:
        """End all streams and background work."""
        self.stream.close()
        for one in (self.patterns, self.verdict):
            one.close()


NO_ROW: Json = {
    "state": "stopped",
    "rate": 0.0,
    "done": 0,
    "waiting": 0,
    "failed": 0,
    "held": 0,
    "bytes": 0,
    "slowed": 0,
    "asleep": 0,
    "warning": "",
    "written": None,
}


def _place(named: NamedCrawl) -> str:
    return named.address if named.layout is None else str(named.layout.directory.absolute())


def _stamp(layout: Layout) -> tuple[object, ...]:
    """Return a value that changes when a crawl starts, ends or writes."""
    found: list[object] = []
    for path in (layout.lock, *layout.database_files()[:2]):
        try:
            there = path.stat()
            found += [there.st_mtime_ns, there.st_size]
        except OSError:
            found.append(None)
    return tuple(found)


class Crawls:
    """All crawls that one server shows."""

    def __init__(self, crawls: Iterable[NamedCrawl], folders: Iterable[Path]) -> None:
        self._named = [WatchedCrawl(each) for each in crawls]
        self.folders = tuple(folders)
        self._found: dict[Path, WatchedCrawl] = {}
        self._refused: set[Path] = set()
        self._looked = float("-inf")
        self._lock = asyncio.Lock()

    @property
    def many(self) -> bool:
        """True if the page begins with a list."""
        return bool(self.folders) or len(self._named) > 1

    async def all(self) -> list[WatchedCrawl]:
        """Return all crawls, those of folders by name."""
        async with self._lock:
            if self.folders and time.monotonic() - self._looked > FIND_AGAIN:
                await self.find()
        return [*self._named, *self._found.values()]

    async def find(self) -> None:
        """Look through the folders for crawls."""
        places = await in_thread(lambda: list(self._places()))
        for gone in set(self._found) - set(places):
            self._found.pop(gone).close()
        new = {place: self._found.get(place) or WatchedCrawl(NamedCrawl.in_directory(place)) for place in places}
        self._found = new
        self._looked = time.monotonic()

    def _places(self) -> Iterator[Path]:
        for folder in self.folders:
            try:
                inside = sorted(folder.iterdir())
            except OSError as error:
                log.warning("%s cannot be read: %s", folder, error.strerror or error)
                continue
            for path in inside:
                if len(self._found) < MOST and self._is_crawl(path, folder):
                    yield path

    def _is_crawl(self, path: Path, folder: Path) -> bool:
        """Return True if *path* is a crawl in *folder* that can be shown. Says once why one is not."""
        if path in self._found:
            return path.is_dir()
        if path in self._refused or not path.is_dir() or not _holds_crawl(path):
            return False
        try:
            _check_inside(path, folder)
            safe_paths.check_files(path)
            NamedCrawl.in_directory(path)
        except (ArchiveError, ConfigError, OSError) as error:
            self._refused.add(path)
            log.warning("not shown: %s", printable(str(error), 1000))
            return False
        return True

    async def get(self, number: str) -> WatchedCrawl | None:
        """Return the crawl with the id *number*."""
        return next((each for each in await self.all() if each.id == number), None)

    async def sample(self) -> None:
        """Note the rates of running crawls, for ever."""
        while True:
            for each in await self.all():
                each.history.add(await in_thread(each.live))
            await asyncio.sleep(SAMPLE)

    def close(self) -> None:
        """End all streams."""
        for each in (*self._named, *self._found.values()):
            each.close()


def _check_inside(path: Path, folder: Path) -> None:
    """Refuse a *path* in *folder* that is a link to elsewhere."""
    if path.is_symlink() and path.resolve().parent != folder.resolve():
        raise ConfigError(f"{path} is a link out of the folder; to show it, name {path.resolve()}")


def _holds_crawl(path: Path) -> bool:
    layout = Layout(path)
    return layout.has_frontier() or layout.settings.exists()


def places(named: Iterable[Path | str], *, may_be_new: bool = False) -> Crawls:
    """Return the crawls at the places *named*: a directory, a folder of them, or an address. Raises `ConfigError`.

    *may_be_new*: a directory is that of a crawl which has just been started.
    """
    crawls, folders = list[NamedCrawl](), list[Path]()
    for place in named:
        if isinstance(place, str):
            crawls.append(NamedCrawl.at_address(place))
        elif not place.exists():
            raise ConfigError(f"{place} does not exist")
        elif not place.is_dir():
            raise ConfigError(f"{place} is not a directory")
        elif may_be_new or _holds_crawl(place):
            safe_paths.check_files(place)
            crawls.append(NamedCrawl.in_directory(place))
        else:
            try:
                next(place.iterdir(), None)
            except OSError as error:
                raise ConfigError(f"{place} cannot be read: {error.strerror or error}") from None
            folders.append(place)
    return Crawls(crawls, folders)
