"""Rebuilds a lost or damaged database: recovery from offset 0, over every WARC file that this program wrote.

Files of earlier crawls belong to their databases below DIR/crawls and are skipped. What is damaged in a file is moved
to damaged/. Every other visit is settled again, so that the crawl continues where it was. URLs that no WARC mentions
(because they never answered, or robots.txt forbids them) are queued again.
"""

import logging
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.collection.earlier_crawls import files_of
from archiver.collection.imports import imported_names
from archiver.collection.layout import Layout
from archiver.collection.records import maybe_ours
from archiver.config.settings import is_left_out
from archiver.config.toml import toml_value
from archiver.crawl.recovery.earlier_payloads import payloads_before
from archiver.crawl.recovery.recover import VisitAdoption, finished, mended, ours, publish
from archiver.crawl.visit import VisitRules
from archiver.frontier.port import Frontier
from archiver.storage import OPEN, open_file, storage
from archiver.warc.warcinfo import read_warcinfo

ReportProgress = Callable[[int, int, int], None]  # files done, files in all, visits so far

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """The result of a rebuild."""

    visits: int
    files: int
    mended: tuple[str, ...]  # files from which something was taken out
    foreign: tuple[str, ...]  # files of other programs, left as they are


class Rebuild:
    """Fills a new frontier from the WARC files of a collection."""

    def __init__(
        self, layout: Layout, frontier: Frontier, terms: VisitRules, report: ReportProgress = lambda *_: None
    ) -> None:
        self._layout = layout
        self._frontier = frontier
        self._terms = terms
        self._report = report

    async def run(self) -> RebuildResult:
        """Read every file. Afterwards each has its final name, and the frontier knows it as closed."""
        adoption = VisitAdoption(self._frontier, self._terms, payloads_before(self._layout))
        cut, foreign = [], []
        paths = own_files(self._layout)
        for number, path in enumerate(paths):
            self._report(number, len(paths), adoption.adopted)
            name = path.name.removesuffix(OPEN)
            with storage(path):
                if not path.name.endswith(OPEN) and not ours(path):
                    foreign.append(name)
                    continue
                if mended(path, name, 0, self._layout, lenient=True):
                    cut.append(name)
                await adoption.read(path, name, 0, self._layout.spool, lenient=True)
                if publish(path, name):
                    await self._frontier.settle((), (finished(path.with_name(name), name),))
        self._report(len(paths), len(paths), adoption.adopted)
        return RebuildResult(adoption.adopted, len(paths) - len(foreign), tuple(cut), tuple(foreign))


def own_files(layout: Layout) -> list[Path]:
    """Return the WARC files that neither belong to an earlier crawl of the collection nor were imported."""
    others = files_of(layout) | imported_names(layout)
    return [path for path in maybe_ours(layout) if path.name.removesuffix(OPEN) not in others]


def settings_text(paths: Iterable[Path]) -> str:
    """Return a crawl.toml from the warcinfo record of the newest of *paths* that has settings; "" if none has."""
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with storage(path), open_file(path) as file:
            info = read_warcinfo(file)
        fields = () if info is None else info.fields
        values = _settings(value for name, value in fields if name == "setting")
        seeds = [value for name, value in fields if name == "seed"]
        if headers := values.pop("header", None):
            values["header"] = [header for header in headers if not is_left_out(header)]
            if len(values["header"]) < len(headers):
                log.warning("secret headers are not in the WARC files; give them again with --header")
        if values and seeds:
            return "".join(f"{key} = {toml_value(value)}\n" for key, value in {"seeds": seeds, **values}.items())
    return ""


def _settings(lines: Iterable[str]) -> dict[str, Any]:
    """Return the values in TOML *lines*; each value of a setting with several has a line of its own."""
    values: dict[str, Any] = {}
    for line in lines:
        try:
            given = tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            log.warning("a setting in the WARC files cannot be read; its default applies: %s", line)
            continue
        for key, value in given.items():
            values[key] = [*values.get(key, ()), *value] if isinstance(value, list) else value
    return values
