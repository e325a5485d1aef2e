"""A second log of the URLs of a crawl, for other programs: `--log-to stderr|FILE`.

It has the lines of crawl.log, as JSON or as they are there, and is written with each batch. It is a convenience, and no
crawl ends because of it: if the disk is full or the pipe is not read, lines are left out and counted. Several processes
write one log; a lock on crawl.log keeps their lines whole. In a file, a write that failed is taken back.
"""

import json
import logging
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from archiver.collection.crawl_log import LogLine
from archiver.config.event_settings import STDERR, EventSettings
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import iso
from archiver.storage import open_file, words

PATIENCE = 2.0  # seconds that we wait for a reader of stderr, once; until it reads again, lines are left out
ATOMIC = 4096  # bytes that a pipe takes as a whole (PIPE_BUF of Linux)
JSON_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "at": "when the line was written: `2026-11-24T10:15:00.123Z`",
        "status": "HTTP status, or Heritrix's negative code",
        "size": "bytes of the payload; null: there is none",
        "url": "the URL, as it was requested",
        "hops": "hop path from the seed: letters of [records](records.md); empty for a seed",
        "via": "the URL on which it was found; null for a seed",
        "type": "media type as the server gave it; empty: none",
        "started": "when the request was sent; null: there was no answer",
        "seconds": "from there to the end of the answer",
        "digest": "payload digest, `sha256:…`; empty: none",
        "annotations": "a list of words, as in crawl.log: `duplicate:digest`, `retry`, `2t`, `err=…`",
        "seed": "the seed that led to it; empty: it is one",
    }
)

log = logging.getLogger(__name__)


def json_line(line: LogLine) -> str:
    """Return *line* as a JSON object in ASCII: whatever a server sends, it is one line and harmless in a terminal."""
    values = (
        iso(line.logged),
        line.status,
        line.size,
        line.url,
        line.path,
        line.via,
        line.mime,
        None if line.started is None else iso(line.started),
        round(line.duration, 3),
        line.digest,
        list(line.annotations),
        line.source,
    )
    return json.dumps(dict(zip(JSON_FIELDS, values, strict=True)))


def check_place(place: str) -> None:
    """Refuse a file that cannot be written, or that is no such log."""
    if place in ("", STDERR):
        return
    path = Path(place)
    try:
        if not path.exists() and not path.parent.is_dir():
            raise ConfigError(f"--log-to {place}: {path.parent} is no folder; make it first")
        with open_file(path, "ab+") as file:
            file.seek(0)
            if file.read(1) not in (b"", b"{", *(b"%d" % digit for digit in range(10))):
                raise ConfigError(f"--log-to {place}: it holds something else; name a new file")
    except (OSError, ArchiveError) as error:
        raise ConfigError(f"--log-to {place}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


class UrlLog:
    """The second log, which never raises an error."""

    def __init__(self, settings: EventSettings) -> None:
        self._name = settings.log_to
        self._render: Callable[[LogLine], str] = json_line if settings.log_format == "json" else LogLine.render
        self._file: BinaryIO | None = None
        self._lost = 0  # lines
        self._closed = False  # no one will ever read stderr again
        self._cut = False  # the last line on stderr is not whole
        self._stalled = False

    def write(self, lines: Sequence[LogLine], shared: BinaryIO) -> None:
        """Append *lines*, while no other process that has the file *shared* open writes."""
        if self._closed or not lines:
            return
        texts = [f"{self._render(line)}\n".encode() for line in lines]
        try:
            with _locked(shared):
                left = self._to_stderr(texts) if self._name == STDERR else self._to_file(texts)
        except (OSError, ArchiveError) as error:
            reason = words(error, Path(self._name)) if isinstance(error, OSError) else str(error)
            self._closed = isinstance(error, BrokenPipeError)
            if not self._lost:
                log.warning("--log-to %s cannot be written, and the crawl goes on without: %s", self._name, reason)
            left = len(lines)
        if self._lost and not left:
            log.warning("--log-to %s is written again; %d lines are missing", self._name, self._lost)
        self._lost = self._lost + left if left else 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _to_file(self, texts: Sequence[bytes]) -> int:
        """Append to the file all of it or nothing; return how many lines are left out."""
        if self._file is None:
            self._file = open_file(Path(self._name), "ab+", 0)
        number, content = self._file.fileno(), b"".join(texts)
        size = os.fstat(number).st_size
        if size and os.pread(number, 1, size - 1) != b"\n":  # a crash has cut the last line
            content = b"\n" + content
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(number, rest) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(number, size)
            raise
        return 0

    def _to_stderr(self, texts: Sequence[bytes]) -> int:
        """Write to stderr as long as someone reads it; return how many lines are left out."""
        sys.stderr.flush()
        number = sys.stderr.fileno()
        for place, text in enumerate(texts):
            rest = memoryview(b"\n" + text if self._cut else text)
            while rest:
                if not _takes_more(number, 0.0 if self._stalled else PATIENCE):
                    self._cut = self._cut or len(rest) < len(text)
                    self._stalled = True
                    return len(texts) - place
                rest = rest[os.write(number, rest[:ATOMIC]) :]
            self._cut = self._stalled = False
        return 0


def _takes_more(number: int, seconds: float) -> bool:
    """Wait until the open file *number* can be written, for so many *seconds* at most; return whether it can be."""
    if sys.platform == "win32":
        return True
    waiting = select.poll()
    waiting.register(number, select.POLLOUT)
    return bool(waiting.poll(seconds * 1000))


@contextmanager
def _locked(file: BinaryIO) -> Iterator[None]:
    """Keep other processes that have *file* open out of the block."""
    if sys.platform == "win32":  # where a crawl has one process
        yield
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
