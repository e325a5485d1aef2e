"""Lists of pages while they grow: compressed, in nameless files that are gone with the process, beside the package.

A package can have one member written at a time, and the pages are found while the WARC files are.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from isal import isal_zlib

from archiver.wacz.pages import REMEMBERED, Page

PAGES, EXTRA = "pages/pages.jsonl", "pages/extraPages.jsonl"
_PIECE = 1 << 16


class _List:
    """One list."""

    def __init__(self, folder: Path, name: str, *, text: bool) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".archiver-")  # noqa: SIM115 - closed by `Rows`
        self._packer = isal_zlib.compressobj(1)
        self.packed = 0  # bytes; what a package makes of them, compressed harder, is smaller
        self.size = 0
        self.rows = 0
        header = {"format": "json-pages-1.0", "id": name, **({"hasText": True} if text else {})}
        self._write(json.dumps(header).encode() + b"\n")

    def add(self, row: bytes) -> None:
        self.rows += 1
        self._write(row)

    def _write(self, line: bytes) -> None:
        self.size += len(line)
        self._put(self._packer.compress(line))

    def _put(self, data: bytes) -> None:
        self.packed += len(data)
        self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """All lines; nothing can be added any more."""
        self._put(self._packer.flush())
        self._file.seek(0)
        opener = isal_zlib.decompressobj()
        while data := self._file.read(_PIECE):
            while data:
                yield opener.decompress(data, _PIECE)
                data = opener.unconsumed_tail
        yield opener.flush()

    def close(self) -> None:
        with suppress(OSError):  # what could not be written then is not wanted any more
            self._file.close()


class Rows:
    """The lists of one package: seeds, and all other pages. Beyond *budget* bytes pages are listed without text."""

    def __init__(self, folder: Path, budget: int | None, *, text: bool) -> None:
        self.seeds = _List(folder, "pages", text=text)
        self.others = _List(folder, "extra-pages", text=text)
        self.without_text = 0  # pages for whose text there was no room
        self._budget = budget
        self._opened: dict[str, list[int]] = {}  # seeds by URL: the first and the last time

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seeds.close()
        self.others.close()

    def add(self, page: Page) -> None:
        """Take *page*."""
        row = page.row()
        if self._budget is not None and page.text:
            taken = self.seeds.packed + self.others.packed
            if taken + len(row) > self._budget:
                row = page.row(text=False)
                self.without_text += 1
        (self.seeds if page.seed else self.others).add(row)
        if page.seed and (page.url in self._opened or len(self._opened) < REMEMBERED):
            times = self._opened.setdefault(page.url, [page.timestamp, page.timestamp])
            times[:] = min(times[0], page.timestamp), max(times[1], page.timestamp)

    def main(self) -> tuple[str, int] | None:
        """The seed that was captured first, and when it was captured last."""
        if not self._opened:
            return None
        address, times = min(self._opened.items(), key=lambda seed: (seed[1][0], seed[0]))
        return address, times[1]
