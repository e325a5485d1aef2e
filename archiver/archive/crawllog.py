"""crawl.log: one line for each visit, field for field as Heritrix writes it, so that archives' tools read it.

Fields: log time, status, size, URL, hop path, via, media type, worker, start and duration, digest, source tag,
annotations. A field that is not known is `-`; no field holds a space. The log is a convenience: the frontier and
the WARCs are the record, and a line that a crash took is not made again.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from archiver.archive.layout import storage, sync_data, sync_folder


@dataclass(frozen=True, slots=True)
class LogLine:
    """What one line says."""

    logged: float  # seconds since the epoch
    status: int  # HTTP status, or Heritrix's negative code
    size: int | None  # bytes of payload
    url: str
    path: str
    via: str | None
    mime: str
    started: float | None  # seconds since the epoch
    took: float
    digest: str
    annotations: Sequence[str]

    def render(self) -> str:
        """The line, without its line end."""
        logged = datetime.fromtimestamp(self.logged, UTC)
        start = "-"
        if self.started is not None:
            moment = datetime.fromtimestamp(self.started, UTC)
            start = f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03}+{round(self.took * 1000)}"
        return " ".join(
            (
                f"{logged:%Y-%m-%dT%H:%M:%S}.{logged.microsecond // 1000:03}Z",
                f"{self.status:5}",
                f"{'-' if self.size is None else self.size:>10}",
                _word(self.url),
                self.path or "-",
                _word(self.via or "-"),
                self.mime or "unknown",
                "#000",
                start,
                self.digest or "-",
                "-",
                _word(",".join(self.annotations)) or "-",
            )
        )


def _word(text: str) -> str:
    return "".join(char if char.isprintable() and char != " " else "%20" for char in text)


def _end_line(file: BinaryIO) -> None:
    """A line that a crash or a full disk cut off must not run into the next one."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


class CrawlLog:
    """Appends lines to one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with storage(path):
            self._file = path.open("a+b")
            _end_line(self._file)

    def write(self, lines: Sequence[LogLine]) -> None:
        """Append *lines*."""
        text = "".join(line.render() + "\n" for line in lines).encode()
        with storage(self._path, lambda: len(text)):
            self._file.write(text)
            self._file.flush()

    def close(self) -> None:
        """No more lines; all of them are on disk when this returns."""
        with storage(self._path):
            sync_data(self._file)
            self._file.close()
            sync_folder(self._path.parent)

    def abandon(self) -> None:
        """Close without a word: something failed already."""
        with suppress(OSError):
            self._file.close()
