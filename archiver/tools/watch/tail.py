"""The live stream of one crawl: the end of crawl.log and live.json, read once for any number of viewers.

A viewer that reads slowly, or not at all, loses lines and gets their number; nothing waits for it. What all viewers get
is encoded once. The number of an event names the file and the place in it, so a browser that connects again gets only
what is newer, also from a server that was started again.
"""

import asyncio
import json
import math
import os
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from archiver.collection.layout import Layout
from archiver.collection.live import current_live, live_text
from archiver.errors import ArchiveError
from archiver.humanize import printable
from archiver.storage import open_file
from archiver.tools.watch.threads import in_thread

KEPT = 500  # lines that a new viewer gets, and the most in one event
AT_ONCE = 2000  # lines that are shown of one look; a person cannot read more
BLOCK = 1 << 20  # bytes of crawl.log that are read at once
BACK = 512 << 10  # bytes before the end at which the first look begins
LONGEST_LINE = 64 << 10
LONGEST_TEXT = 4000  # characters of a field
LOOK = 0.25  # seconds between two looks at crawl.log
LOOKS_PER_LIVE = 4
LOOKS_PER_ORDERS = 12
WAITING = 512 << 10  # bytes that wait for one viewer
SILENCE = 15.0  # seconds after which a line without meaning shows that the connection lives
FIELDS = 12  # of a line of crawl.log
_EVENT = re.compile(r"([0-9a-f]{1,16})-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line of crawl.log as JSON, and where it ends."""

    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NewLines:
    """The result of one look at crawl.log."""

    lines: tuple[LoggedLine, ...] = ()
    dropped: int = 0  # lines that were skipped
    file: str = ""  # changes when the log is a new file


def line_json(line: bytes) -> str:
    """Return a line of crawl.log as a JSON object; "" if it is none."""
    words = line.decode("utf-8", "replace").split()
    if len(words) < FIELDS:
        return ""
    with suppress(ValueError, OverflowError):
        seconds = float(words[8].rpartition("+")[2]) / 1000 if "+" in words[8] else None
        return json.dumps(
            {
                "at": datetime.fromisoformat(words[0]).replace(tzinfo=UTC).timestamp(),
                "status": int(words[1]),
                "bytes": int(words[2]) if words[2] != "-" else None,
                "url": printable(words[3], LONGEST_TEXT),
                "hop": "" if words[4] == "-" else printable(words[4]),
                "via": "" if words[5] == "-" else printable(words[5], LONGEST_TEXT),
                "mime": printable(words[6]),
                "seconds": seconds,
                "note": "" if words[11] == "-" else printable(words[11], 1000),
            }
        )
    return ""


class LogTail:
    """Reads what is appended to a log file. Follows the name to a new file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._number = -1  # of the file
        self._place = 0
        self._rest = b""

    def look(self) -> NewLines:
        """Return the lines that were appended since the last call; with the first call, the last ones."""
        first = self._number == -1
        try:
            found = self._path.stat()
            if self._file is None or found.st_ino != self._number or found.st_size < self._place:
                self.close()
                self._file = open_file(self._path)
                self._number = os.fstat(self._file.fileno()).st_ino
                self._place = max(0, found.st_size - BACK) if first else 0
                self._rest = b""
                if self._place:
                    self._file.seek(self._place)
                    self._place += len(self._file.readline(LONGEST_LINE))  # the end of a line
            return self._read(self._file)
        except (OSError, ArchiveError):  # it is not there yet, or cannot be read
            return NewLines(file=self._name)

    @property
    def _name(self) -> str:
        return f"{max(self._number, 0):x}"

    def _read(self, file: BinaryIO) -> NewLines:
        dropped, kept = 0, deque[tuple[int, bytes]](maxlen=AT_ONCE)
        file.seek(self._place)
        while block := file.read(BLOCK):
            start = self._place - len(self._rest)
            self._place += len(block)
            lines = (self._rest + block).split(b"\n")
            self._rest = lines.pop()
            if len(self._rest) > LONGEST_LINE:
                self._rest = b""
            for line in lines:
                start += len(line) + 1
                dropped += len(kept) == AT_ONCE
                kept.append((start, line))
            if len(block) < BLOCK:
                break
        shown = [LoggedLine(end, text) for end, line in kept if len(line) < LONGEST_LINE and (text := line_json(line))]
        return NewLines(tuple(shown), dropped, self._name)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_live(layout: Layout, now: float) -> dict[str, Any] | None:
    """Return what the running crawl has written to live.json; None if no process runs it, or there is none."""
    found = current_live(layout, now)
    if found is None:
        return None
    clean = tidy(json.loads(live_text(found)))
    return clean if isinstance(clean, dict) else None


def tidy(value: Any, deepest: int = 6) -> Any:
    """Return the JSON *value* with printable texts of bounded length."""
    if isinstance(value, str):
        return value if len(value) < 200 and value.isprintable() else printable(value, LONGEST_TEXT)
    if isinstance(value, dict):
        return {tidy(str(key)): tidy(each, deepest - 1) for key, each in value.items()} if deepest else None
    if isinstance(value, list):
        return [tidy(each, deepest - 1) for each in value] if deepest else None
    if value is None or isinstance(value, bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else None


class Viewer:
    """The events that wait for one browser. Bounded: the oldest lines make room, and are counted."""

    def __init__(self) -> None:
        self._lines: deque[tuple[bytes, int]] = deque()  # an event without its end, and its lines
        self._size = 0
        self._dropped = 0
        self._others: dict[str, bytes] = {}  # the newest event of each other kind
        self._wake = asyncio.Event()
        self._closed = False

    def lines(self, event: bytes, count: int, dropped: int) -> None:
        """Add an event with *count* lines, before which *dropped* were left out."""
        self._lines.append((event, count))
        self._size += len(event)
        self._dropped += dropped
        while self._size > WAITING and len(self._lines) > 1:
            oldest, lost = self._lines.popleft()
            self._size -= len(oldest)
            self._dropped += lost
        self._wake.set()

    def other(self, kind: str, data: str) -> None:
        """Add an event of another *kind*, in place of one that still waits."""
        self._others[kind] = f"event: {kind}\ndata: {data}\n\n".encode()
        self._wake.set()

    def close(self) -> None:
        """End the stream after what waits."""
        self._closed = True
        self._wake.set()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield what to send, as it comes; an empty comment after each `SILENCE`."""
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    await self._wake.wait()
            except TimeoutError:
                yield b": \n\n"
                continue
            self._wake.clear()
            while self._others or self._lines:
                if self._others:
                    kind = next(iter(self._others))
                    yield self._others.pop(kind)
                if self._lines:
                    event, _ = self._lines.popleft()
                    self._size -= len(event)
                    dropped, self._dropped = self._dropped, 0
                    yield event + b"%d}\n\n" % dropped
            if self._closed:
                return


class Stream:
    """The stream of one crawl. It reads only while someone watches."""

    def __init__(self, layout: Layout | None, orders: Callable[[], object]) -> None:
        self._layout = layout  # None: the crawl has no directory here
        self._orders = orders  # returns a value that changes with each order and answer
        self._viewers: set[Viewer] = set()
        self._kept: deque[LoggedLine] = deque(maxlen=KEPT)
        self._file = ""
        self._task: asyncio.Task[None] | None = None
        self._last_live: str = ""

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return len(self._viewers)

    @contextmanager
    def viewer(self, after: str = "") -> Iterator[Viewer]:
        """Give a new viewer; *after*: the last event that it has seen."""
        one = Viewer()
        found = _EVENT.fullmatch(after)
        seen = int(found[2]) if found is not None and found[1] == self._file else 0
        if self._task is None:
            self._kept.clear()
            self._file, self._last_live = "", ""
            self._task = asyncio.create_task(self._run(found))
        else:
            self._send([one], [line for line in self._kept if line.end > seen], 0)
            if self._last_live:
                one.other("live", self._last_live)
        self._viewers.add(one)
        try:
            yield one
        finally:
            self._viewers.discard(one)
            if not self._viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    def changed(self) -> None:
        """Tell all viewers that there is a new order or answer."""
        for one in self._viewers:
            one.other("orders", '{"changed":true}')

    def close(self) -> None:
        """End the stream for all viewers."""
        for one in self._viewers:
            one.close()

    async def _run(self, seen: re.Match[str] | None) -> None:
        tail = LogTail(self._layout.log) if self._layout is not None else None
        look = 0
        known: object = None
        try:
            while True:
                if tail is not None:
                    found = await in_thread(tail.look)
                    before = seen is not None and not look and seen[1] == found.file
                    self._take(found, int(seen[2]) if before and seen is not None else 0, KEPT if not look else AT_ONCE)
                if look % LOOKS_PER_LIVE == 0:
                    await self._look_at_live()
                if look % LOOKS_PER_ORDERS == 0:
                    newest = await in_thread(self._orders)
                    if look and newest != known:
                        self.changed()
                    known = newest
                look += 1
                await asyncio.sleep(LOOK)
        finally:
            if tail is not None:
                tail.close()

    def _take(self, found: NewLines, seen: int, most: int) -> None:
        if found.file != self._file:
            self._kept.clear()
            self._file = found.file
        self._kept.extend(found.lines)
        fresh = [line for line in found.lines if line.end > seen]
        self._send(list(self._viewers), fresh[-most:], found.dropped)

    def _send(self, viewers: list[Viewer], lines: list[LoggedLine], dropped: int) -> None:
        for start in range(0, len(lines), KEPT):
            some = lines[start : start + KEPT]
            joined = ",".join(line.text for line in some)
            event = f'event: urls\nid: {self._file}-{some[-1].end}\ndata: {{"lines":[{joined}],"dropped":'.encode()
            for one in viewers:
                one.lines(event, len(some), dropped)
            dropped = 0

    async def _look_at_live(self) -> None:
        if self._layout is None:
            return
        found = await in_thread(read_live, self._layout, time.time())
        text = json.dumps(found) if found is not None else ""
        if text and text != self._last_live:
            for one in self._viewers:
                one.other("live", text)
        elif not text and self._last_live:
            for one in self._viewers:
                one.other("end", "{}")
        self._last_live = text
