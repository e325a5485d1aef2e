"""crawl.log: one line for each visit, in Heritrix's format, so that the tools of archives can read it.

Fields: log time, status, size, URL, hop path, via, media type, worker, start and duration, digest, source tag,
annotations. An unknown field is `-` (an unknown media type: `unknown`). No field holds a space, and commas only
separate annotations. The log is a convenience: the frontier and the WARCs are the record, and lines lost in a crash
are not rebuilt.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from archiver.config.event_settings import EventSettings
from archiver.storage import open_file, storage, sync_data, sync_folder

if TYPE_CHECKING:
    from archiver.collection.url_log import UrlLog

MAX_HOPS = 50  # letters shown of a hop path; the first ones of a longer path are only counted
WORKER = "#000"  # visits are tasks of one process, so there is no thread to name
_TYPE = re.compile(r"[^\s;,]+")


class LogLine(NamedTuple):
    """The fields of one line."""

    logged: float  # seconds since the epoch
    status: int  # HTTP status, or Heritrix's negative code
    size: int | None  # bytes of payload
    url: str
    path: str  # hops from the seed
    via: str | None
    mime: str
    started: float | None  # seconds since the epoch
    duration: float
    digest: str
    annotations: Sequence[str]
    source: str = ""  # the seed behind it: Heritrix's source tag

    def render(self) -> str:
        """Return the line, without its line end."""
        second, millis = _split_time(self.logged)
        logged = f"{_second(second, '%Y-%m-%dT%H:%M:%S')}.{millis:03}Z"
        start = "-"
        if self.started is not None:
            second, millis = _split_time(self.started)
            start = f"{_second(second, '%Y%m%d%H%M%S')}{millis:03}+{round(self.duration * 1000)}"
        return (
            f"{logged} {self.status:5} {'-' if self.size is None else self.size:>10} {_word(self.url)} "
            f"{_hops(self.path)} {_word(self.via or '-')} {_type(self.mime)} {WORKER} {start} {self.digest or '-'} "
            f"{_word(self.source or '-')} {_remarks(self.annotations)}"
        )


def _split_time(seconds: float) -> tuple[int, int]:
    """Split *seconds* since the epoch, rounded to microseconds, into whole seconds and milliseconds."""
    whole, part = divmod(seconds, 1)
    millis = round(part * 1e6) // 1000
    return (int(whole), millis) if millis < 1000 else (int(whole) + 1, 0)


@lru_cache(maxsize=64)
def _second(seconds: int, form: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def _hops(path: str) -> str:
    """Format a hop path: `LLE`, `-` for a seed, `12+LLR…` if it is too long."""
    if len(path) <= MAX_HOPS:
        return path or "-"
    return f"{len(path) - MAX_HOPS}+{path[-MAX_HOPS:]}"


@lru_cache(maxsize=64)
def _type(mime: str) -> str:
    """Return a media type without parameters."""
    found = _TYPE.search(mime[:200])
    return _word(found[0]) if found else "unknown"


def _remarks(annotations: Sequence[str]) -> str:
    if not annotations:
        return "-"
    return _word(",".join(each.replace(",", "%2C") if "," in each else each for each in annotations)) or "-"


def _word(text: str) -> str:
    if text.isprintable() and " " not in text:
        return text
    return "".join(char if char.isprintable() and char != " " else "%20" for char in text)


def _end_line(file: BinaryIO) -> None:
    """End the last line of *file*, which a crash or a full disk may have cut off."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


class CrawlLog:
    """The log file, open for appending, and the second log of `--log-to`, if there is one."""

    def __init__(self, path: Path, settings: EventSettings | None = None) -> None:
        self._path = path
        self._copy: UrlLog | None = None
        if settings is not None and settings.log_to:
            from archiver.collection import url_log  # noqa: PLC0415 - most crawls need none

            self._copy = url_log.UrlLog(settings)
        with storage(path):
            self._file = open_file(path, "a+b")
            _end_line(self._file)

    def write(self, lines: Sequence[LogLine]) -> None:
        """Append *lines*."""
        text = "".join(line.render() + "\n" for line in lines).encode()
        with storage(self._path, lambda: len(text)):
            self._file.write(text)
            self._file.flush()
        if self._copy is not None:
            self._copy.write(lines, self._file)

    def close(self) -> None:
        """Sync all lines to disk and close the file."""
        if self._copy is not None:
            self._copy.close()
        with storage(self._path):
            sync_data(self._file)
            self._file.close()
            sync_folder(self._path.parent)

    def abandon(self) -> None:
        """Close the file and ignore errors, because something failed already."""
        if self._copy is not None:
            self._copy.close()
        with suppress(OSError):
            self._file.close()
