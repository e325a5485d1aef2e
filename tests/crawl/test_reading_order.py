"""docs/reading-order.md: what to read before a change, and the files that one URL passes through.

A crawl of two pages runs under a profiler, from the first link that a page yields to the moment at which that link is
settled. The files entered in between must be listed. The list may only get shorter.
"""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from archiver.crawl import commit
from archiver.crawl.live import publish
from archiver.crawl.orders import low_disk
from archiver.model import ExitCode
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "archiver"
DOCUMENT = ROOT / "docs" / "reading-order.md"

MAX_FILES = 20
MAX_LINES = 5000
FOUND = "LinkCollector."  # the link is found …
SETTLED = "settle"  # … and settled by the second of these calls: the first one settles the page that named it
SETTLING = "frontier/settle.py"


class Trace:
    """The files of the package that are entered between finding a link and settling it, and the changes of file."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.changes = 0
        self._lock = threading.Lock()
        self._settled = -1  # before the link is found
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note one call or return; `sys.setprofile` and `threading.setprofile` take it."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(PACKAGE)):
            return
        name = Path(code.co_filename).relative_to(PACKAGE).as_posix()
        with self._lock:
            if self._settled < 0 and code.co_qualname.startswith(FOUND):
                self._settled = 0
            if not 0 <= self._settled < 2:
                return
            if event == "call":
                self.files.add(name)
                self.changes += name != self._last
                self._last = name
            elif code.co_qualname == SETTLED and name == SETTLING:
                self._settled += 1


@contextmanager
def profiled(trace: Trace) -> Iterator[None]:
    before = sys.getprofile()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


def listed(heading: str) -> list[str]:
    """The files that stand in the section *heading* of the document."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"`archiver/([\w/]+\.\w+)`", section)


def test_the_files_to_read_are_few() -> None:
    files = listed("Read these")
    lines = sum(len((PACKAGE / name).read_text(encoding="utf-8").splitlines()) for name in files)
    assert len(files) == len(set(files)) <= MAX_FILES
    assert lines <= MAX_LINES


def test_every_file_on_the_way_of_a_url_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_disk, "LOOK_EVERY", 600.0)  # on a slow machine a look at the disk falls between two steps
    monkeypatch.setattr(publish, "EVERY", 600.0)
    monkeypatch.setattr(commit, "DEAR", 600.0)  # the slow writer would begin a file of its own
    pages = {"/": ok(page("One", ["/two"])), "/two": ok(page("Two", body="<p>text</p>"))}
    with RawServer(pages) as server:
        crawl(tmp_path / "first", server.url())  # so that no import is traced
        trace = Trace()
        with profiled(trace):
            ending = crawl(tmp_path / "second", server.url())
    assert ending.code is ExitCode.DONE
    assert {"crawl/engine.py", "fetch/client.py", SETTLING} <= trace.files
    assert sorted(trace.files - set(listed("The way of one URL"))) == []
    assert all((PACKAGE / name).exists() for name in listed("The way of one URL"))
    print(f"{len(trace.files)} files, {trace.changes} changes of file")
