"""The tables of a report: their titles, their first rows, and how they look as text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from archiver.humanize import printable

ROWS = 1000  # per table
WIDTH = 2000  # characters per cell
TEXT_WIDTH = 100  # characters per cell in text

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")

Cell = str | int | float
Row = tuple[object, ...]
Part = tuple[str, Row, Iterable[Row]]  # name, column names, and rows to read once

TITLES = {  # title and note of each table
    "verdict": ("Verdict", "How complete the archive is, and which command to run next."),
    "seeds": (
        "Seeds",
        "Each seed: its state and status, the number of URLs found from it, what went wrong, and its description.",
    ),
    "seed-collections": (
        "Seeds by collection",
        "Seeds, failed seeds, and URLs found from them, by the collection that seeds were given.",
    ),
    "hosts": ("Hosts", "URLs by state, captures and bytes received per host, most captures first."),
    "status-codes": ("Response codes", "Captures per HTTP status. 0 is a response without a status line."),
    "media-types": (
        "Media types",
        "Captures and bytes by media type as the servers named it; empty where none is valid.",
    ),
    "failure-reasons": (
        "Failures by reason",
        "URLs without a usable response by reason, with an example, and the command that fetches or lists them.",
    ),
    "failures": ("Failures", "Each of these URLs, the reason, and the page that linked to it."),
    "broken-pages": (
        "Broken pages",
        "Pages that answered 4xx or 5xx or not at all, and up to 10 pages that link to each.",
    ),
    "missing-requisites": (
        "Missing requisites",
        "Images, styles, scripts and frames that archived pages need and the archive lacks.",
    ),
    "missing-in-replay": (
        "Missing in the replay",
        "URLs that pages asked for in a browser and the archive lacked, when archiver look was run last.",
    ),
    "written-off": (
        "Written off",
        "What was lost with a machine, and queued again by archiver forget: captures, and payloads of their revisits.",
    ),
    "truncated": ("Truncated captures", "Incomplete captures, with the reason from WARC-Truncated."),
    "slowest-hosts": ("Slowest hosts", "The 50 hosts with the slowest responses on average."),
    "revisits": ("Revisits", "Captures whose payload was not stored again, and the bytes that this saved."),
    "held": (
        "Held patterns",
        "URLs held as a suspected trap, by pattern. archiver retry DIR --held PATTERN fetches them.",
    ),
    "refusals": ("Refusals", "Links that the scope refused, by rule."),
    "changes": (
        "Changes",
        "What is new, changed, moved or gone since the earlier crawls. The file has unchanged URLs too.",
    ),
}


_OPTIONAL = {"seeds": ("title", "note", "collection")}  # columns for which the user need not give anything


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table, or its first rows."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int  # rows

    @property
    def shown(self) -> "ReportTable":
        """The table without columns for which the user gave nothing."""
        optional = _OPTIONAL.get(self.name, ())
        kept = [
            place
            for place, name in enumerate(self.head)
            if name not in optional or any(row[place] for row in self.rows)
        ]
        return self.with_columns(kept) if len(kept) < len(self.head) else self

    def with_columns(self, kept: Sequence[int]) -> "ReportTable":
        """Return the table with only the columns at the places *kept*."""
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return replace(self, head=tuple(self.head[place] for place in kept), rows=rows)

    @property
    def title(self) -> str:
        """The title above the table."""
        return TITLES[self.name][0] if self.name in TITLES else self.name.replace("-", " ").capitalize()

    @property
    def note(self) -> str:
        """The sentence that explains the table."""
        return TITLES[self.name][1] if self.name in TITLES else ""


def read_tables(parts: Iterable[Part]) -> Iterator[ReportTable]:
    """Yield the first rows of each table."""
    for name, head, rows in parts:
        first_rows = FirstRows(name, head)
        for _ in first_rows.watch(rows):
            pass
        yield first_rows.table()


_IN_FILES_ONLY = {"changes": (1, "unchanged")}  # rows that hide the others: the column, and its value


class FirstRows:
    """Keeps the first rows of a table while all rows pass. What has not changed is left out."""

    def __init__(self, name: str, head: Row) -> None:
        self._name = name
        self._head = head
        self._kept: list[tuple[Cell, ...]] = []
        self._passed = 0
        self._skip = _IN_FILES_ONLY.get(name)

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield *rows* unchanged."""
        for row in rows:
            if len(self._kept) < ROWS and (self._skip is None or row[self._skip[0]] != self._skip[1]):
                self._kept.append(tuple(map(_cell, row)))
            self._passed += 1
            yield row

    def table(self) -> ReportTable:
        """Return the rows kept."""
        return ReportTable(self._name, tuple(map(str, self._head)), tuple(self._kept), self._passed - len(self._kept))


def _cell(value: object) -> Cell:
    return value if isinstance(value, int | float) else printable(str(value), WIDTH)


def is_number(cell: Cell) -> bool:
    """Return whether *cell* may be in a column of numbers; an empty one may."""
    return not isinstance(cell, str) or not cell or _NUMBER.fullmatch(cell) is not None


def aligned(whole: ReportTable, most: int) -> Iterator[str]:
    """Yield the first *most* rows of the table *whole* as lines of text with aligned columns."""
    table = whole.shown
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
