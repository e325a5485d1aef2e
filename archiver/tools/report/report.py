"""The whole report in one value, from which text, JSON and the page are made, so that they cannot disagree.

Everything in it is bounded: of each table the first rows, each cell cut to a length, and how many rows were left out.

What a crawl was asked for: its seeds, and the settings that are not the defaults. Read from crawl.toml.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.secrets import without_secrets
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.errors import ConfigError
from archiver.frontier import figures
from archiver.humanize import printable
from archiver.storage import open_file
from archiver.tools.report import plots, summary, verdict
from archiver.tools.report.plots import TimeSeries
from archiver.tools.report.summary import Summary, iso

MAX_SEEDS = 20  # named; the table of seeds has them all
_LONGEST = 16 * 1024 * 1024  # bytes of a settings file


@dataclass(frozen=True, slots=True)
class CrawlInputs:
    """What was asked for."""

    seeds: tuple[str, ...] = ()  # the first of them
    more_seeds: int = 0
    settings: tuple[tuple[str, str], ...] = ()  # (key, value), as crawl.toml has them, where they are not the default
    trouble: str = ""  # why nothing is known


def read_inputs(directory: Path) -> CrawlInputs:
    """What the crawl in *directory* was asked for."""
    path = Layout(directory).settings
    try:
        with open_file(path) as file:
            text = file.read(_LONGEST).decode()
        return _asked(without_secrets(with_values(Settings(), toml.parse(text, path.name))))
    except (OSError, UnicodeDecodeError):
        return CrawlInputs(trouble=f"{path.name} cannot be read")
    except ConfigError as error:
        return CrawlInputs(trouble=str(error))


def _asked(settings: Settings) -> CrawlInputs:
    defaults = Settings()
    differing: list[tuple[str, str]] = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        if value != getattr(getattr(defaults, part), entry.name):
            kind = entry.metadata["kind"]
            written = [kind.write(one) for one in value] if entry.metadata["many"] else [kind.write(value)]
            if entry.name == "dedup_from":  # nothing of this machine
                written = [Path(path).name for path in map(str, written)]
            differing.append((key_of(entry), ", ".join(map(str, written))))
    return CrawlInputs(settings.seeds[:MAX_SEEDS], max(0, len(settings.seeds) - MAX_SEEDS), tuple(differing))


ROWS = 1000  # of each table
WIDTH = 2000  # characters of a cell
TEXT_WIDTH = 100  # of one in words
SEEDS = 1000  # in JSON

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")

Cell = str | int | float
Row = tuple[object, ...]
Tables = dict[str, tuple[Row, Callable[[sqlite3.Connection, Summary], Iterable[Row]]]]  # name → names of columns, rows
Part = tuple[str, Row, Iterable[Row]]  # name, names of columns, and the rows of one crawl, to be read once

TITLES = {  # heading of a table, and what it shows
    "verdict": ("Verdict", "How complete the archive is, and which command to run next."),
    "seeds": ("Seeds", "Each seed: its state and status, the number of URLs found from it, and what went wrong."),
    "hosts": ("Hosts", "URLs by state, captures and bytes received per host, most captures first."),
    "status-codes": ("Response codes", "Captures per HTTP status. 0 is a response without a status line."),
    "media-types": (
        "Media types",
        "Captures and bytes by media type as the servers named it; empty where none is valid.",
    ),
    "failure-reasons": ("Failures by reason", "URLs that failed or were excluded, by reason."),
    "failures": ("Failures", "Each of these URLs, the reason, and the page that linked to it."),
    "broken-pages": ("Broken pages", "Pages that answered 4xx or 5xx, and up to 10 pages that link to each."),
    "missing-requisites": (
        "Missing requisites",
        "Images, styles, scripts and frames that an archived page needs and the archive lacks.",
    ),
    "truncated": ("Truncated captures", "Incomplete captures, with the reason from WARC-Truncated."),
    "slowest-hosts": ("Slowest hosts", "The 50 hosts with the slowest responses on average."),
    "revisits": ("Revisits", "Captures whose payload was not stored again, and the bytes that this saved."),
    "held": (
        "Held patterns",
        "URLs held as a suspected trap, by pattern. archiver retry DIR --held PATTERN fetches them.",
    ),
    "refusals": ("Refusals", "Links that the scope refused, by rule."),
    "changes": ("Changes", "What is new, changed, moved, gone or unchanged since the earlier crawls."),
}


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table, or the beginning of one."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int  # rows

    @property
    def title(self) -> str:
        """What a person reads above it."""
        return TITLES[self.name][0] if self.name in TITLES else self.name.replace("-", " ").capitalize()

    @property
    def note(self) -> str:
        """What it is about."""
        return TITLES[self.name][1] if self.name in TITLES else ""


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """A crawl, as a person wants to know it."""

    directory: str  # its name only: nothing of this machine
    written: float  # seconds since the epoch
    summary: Summary
    hosts: int
    asked: CrawlInputs
    course: TimeSeries
    tables: tuple[ReportTable, ...]


def gathered(
    directory: Path, db: sqlite3.Connection, found: Summary, tables: Iterable[ReportTable], now: float
) -> CrawlReport:
    """The report of the crawl in *directory*, whose *tables* are there already."""
    name = printable(directory.resolve().name, WIDTH)
    drawn = plots.gathered(db, found.totals)
    return CrawlReport(name, now, found, figures.host_count(db), read_inputs(directory), drawn, tuple(tables))


def tables(parts: Iterable[Part]) -> Iterator[ReportTable]:
    """The beginning of each table of *parts*."""
    for name, head, rows in parts:
        beginning = FirstRows(name, head)
        for _ in beginning.watched(rows):
            pass
        yield beginning.table()


class FirstRows:
    """Keeps the first rows of a table while all of them pass."""

    def __init__(self, name: str, head: Row) -> None:
        self._name = name
        self._head = head
        self._kept: list[tuple[Cell, ...]] = []
        self._passed = 0

    def watched(self, rows: Iterable[Row]) -> Iterator[Row]:
        """*rows*, unchanged."""
        for row in rows:
            if self._passed < ROWS:
                self._kept.append(tuple(map(_cell, row)))
            self._passed += 1
            yield row

    def table(self) -> ReportTable:
        """What was kept."""
        return ReportTable(self._name, tuple(map(str, self._head)), tuple(self._kept), self._passed - len(self._kept))


def _cell(value: object) -> Cell:
    return value if isinstance(value, int | float) else printable(str(value), WIDTH)


def is_number(cell: Cell) -> bool:
    """Whether *cell* may stand in a column of numbers; an empty one may."""
    return not isinstance(cell, str) or not cell or _NUMBER.fullmatch(cell) is not None


def as_json(whole: CrawlReport) -> dict[str, Any]:
    """The report as JSON has it."""
    told = summary.as_json(whole.summary)
    left_out = max(0, len(told["seeds"]) - SEEDS)
    drawn, span = whole.course, whole.course.span
    return {
        "directory": whole.directory,
        "written": iso(whole.written),
        **told,
        "seeds": told["seeds"][:SEEDS],
        "seeds_left_out": left_out,
        "hosts": whole.hosts,
        "settings": dict(whole.asked.settings),
        "course": {
            "begins": iso(span.begins),
            "seconds_of_a_slice": span.step,
            "slices": span.slices,
            "statuses": drawn.statuses,
            "received": drawn.received,
            "pauses": [{"slice": first, "slices": length} for first, length in drawn.pauses],
            "kinds": [each._asdict() for each in drawn.kinds],
            "hosts": [each._asdict() for each in drawn.hosts],
            "response_times": dict(drawn.speeds),
            "depths": dict(drawn.depths),
        },
        "tables": {
            table.name: {key: value for key, value in asdict(table).items() if key != "name"} for table in whole.tables
        },
    }


def lines(whole: CrawlReport, most: int = 20) -> Iterator[str]:
    """The report in words: of each table the first *most* rows."""
    yield from verdict.lines(whole.summary.verdict)
    yield from summary.facts(whole.summary)
    for key, value in whole.asked.settings:
        yield f"{'setting':<9} {key} = {printable(value)}"
    if whole.asked.trouble:
        yield f"{'settings':<9} {printable(whole.asked.trouble)}"
    for table in whole.tables:
        if table.rows and table.name != "verdict":  # told above, in whole lines
            yield from ("", f"{table.title}. {table.note}".strip())
            yield from _aligned(table, most)


def _aligned(table: ReportTable, most: int) -> Iterator[str]:
    shown = [tuple(printable(str(cell), TEXT_WIDTH) for cell in row) for row in table.rows[:most]]
    widths = [max(map(len, column)) for column in zip(table.head, *shown, strict=True)]
    numeric = [all(is_number(cell) for cell in column) for column in zip(*table.rows, strict=True)]
    for row in chain([table.head], shown):
        cells = zip(row, widths, numeric, strict=True)
        yield (
            "  "
            + "  ".join(f"{cell:>{width}}" if right else f"{cell:<{width}}" for cell, width, right in cells).rstrip()
        )
    more = len(table.rows) - len(shown) + table.left_out
    if more:
        yield f"  and {more} more"
