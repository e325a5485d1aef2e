"""The summary and the report of a crawl as values. Text, JSON and the HTML page are made from them, so they agree.

Everything is bounded: the first rows of each table with the number of rows left out, and cells cut to a length. The
report includes the crawl's inputs from crawl.toml: the seeds and the non-default settings.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from archiver import humanize
from archiver.collection.named_crawl import NamedCrawl
from archiver.config.secret_settings import without_secrets
from archiver.config.settings import Settings, every_setting, key_of
from archiver.errors import ConfigError
from archiver.frontier import figures, totals
from archiver.frontier.connection import Reader
from archiver.frontier.totals import SeedAccount, Totals
from archiver.humanize import duration, iso, printable, volume
from archiver.policy.quotas import NO_QUOTAS, Quotas
from archiver.tools.report import plots, verdict
from archiver.tools.report.plots import TimeSeries
from archiver.tools.report.verdict import NO_VERDICT, PLAIN, FindingStyle, Verdict


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The work of the last run."""

    elapsed: float
    visits: int
    received: int

    @property
    def rate(self) -> float:
        """Visits per second."""
        return self.visits / self.elapsed if self.elapsed > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """The main facts about a crawl."""

    totals: Totals
    failures: tuple[tuple[str, int], ...]  # (reason, URLs)
    seeds: tuple[SeedAccount, ...]
    ending: str = ""  # why the run ended
    run: FinishedRun | None = None
    changes: dict[str, int] | None = None  # compared with the earlier crawls, by `UrlChange`
    verdict: Verdict = NO_VERDICT
    archive: Path | None = None  # the folder of WARC files, if it is within reach


def read_summary(db: Reader, ending: str = "", run: FinishedRun | None = None, quotas: Quotas = NO_QUOTAS) -> Summary:
    """Read the summary of the crawl in *db*; *quotas* know which hosts a person has blocked."""
    seeds = tuple(totals.seeds(db))
    crawl_verdict = verdict.read_verdict(db, seeds, quotas)
    failures = tuple(totals.failures(db))
    return Summary(totals.totals(db), failures, seeds, ending, run, verdict=crawl_verdict)


def work_left(summary: Summary) -> str:
    """Return what `archiver resume` would go on with; "" if nothing."""
    if (waiting := summary.totals.waiting - sum(each.urls for each in summary.verdict.blocked)) > 0:
        return f"{waiting} URLs are queued"
    views = summary.verdict.views.due
    return f"{humanize.count(views, 'page is', 'pages are')} to be shown in a browser" if views else ""


def summary_lines(summary: Summary, style: FindingStyle = PLAIN) -> Iterator[str]:
    """Yield the summary as aligned text that is safe for a terminal; the verdict comes last."""
    yield from summary_facts(summary)
    yield from verdict.lines(summary.verdict, style)


def summary_facts(summary: Summary) -> Iterator[str]:
    """Yield the ending and the counts."""
    counts = summary.totals
    if summary.ending:
        yield _row("ended", printable(summary.ending))
    yield _row(
        "URLs",
        f"{counts.archived} archived, {counts.failed} failed, {counts.excluded} excluded, {counts.waiting} waiting"
        + (f", {counts.held} held" if counts.held else ""),
    )
    yield _row(
        "archive",
        f"{humanize.count(counts.captures, 'capture')} of {volume(counts.received)} "
        f"in {humanize.count(counts.warcs, 'WARC file')} of {volume(counts.stored)}",
    )
    if counts.revisits:
        yield _row("", f"deduplicated: {humanize.count(counts.revisits, 'payload')} of {volume(counts.spared)}")
    if counts.variants:
        yield _row("", f"in further languages: {humanize.count(counts.variants, 'capture')}")
    if summary.run:
        run = summary.run
        yield _row(
            "this run",
            f"{humanize.count(run.visits, 'visit')} in {duration(run.elapsed)}, "
            f"{run.rate:.1f}/s, {volume(run.received)}",
        )
    views = summary.verdict.views
    if views.shown or views.due:
        left = f", {views.due} still to show" if views.due else ""
        others = f", {views.left_out} left out" if views.left_out else ""
        found = f"; they led to {humanize.count(views.brought, 'further URL')}"
        yield _row("browser", f"{humanize.count(views.shown, 'page')} shown{left}{others}{found}")
    if summary.changes is not None:
        from archiver.tools.report.changes import format_counts  # noqa: PLC0415 - slow to import

        yield _row("changes", f"{format_counts(summary.changes)}; listed in reports/changes.tsv")


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return the summary as JSON data."""
    run = summary.run
    return {
        "ended": summary.ending,
        "verdict": verdict.as_json(summary.verdict),
        "totals": {
            **asdict(summary.totals),
            "first": iso(summary.totals.first),
            "last": iso(summary.totals.last),
        },
        "run": {**asdict(run), "rate": round(run.rate, 3)} if run else None,
        "changes": summary.changes,
        "failures": dict(summary.failures),
        "seeds": [{**asdict(seed), "problem": verdict.seed_problem(seed)} for seed in summary.seeds],
    }


def _row(label: str, text: str) -> str:
    return f"{label:<9} {text}"


MAX_SEEDS = 20  # shown; the table of seeds has all


@dataclass(frozen=True, slots=True)
class CrawlInputs:
    """The seeds and settings of a crawl."""

    seeds: tuple[str, ...] = ()  # the first of them
    more_seeds: int = 0
    settings: tuple[tuple[str, str], ...] = ()  # (key, value) as in crawl.toml, non-default only
    problem: str = ""  # why they are not known


def read_inputs(crawl: NamedCrawl, db: Reader) -> CrawlInputs:
    """Return the seeds and settings of *crawl*, with database *db*."""
    try:
        return _inputs(without_secrets(crawl.settings(db)))
    except ConfigError as error:
        path = None if crawl.layout is None else crawl.layout.settings
        return CrawlInputs(problem=str(error) if path is None else str(error).replace(str(path), path.name))


def _inputs(settings: Settings) -> CrawlInputs:
    defaults = Settings()
    changed: list[tuple[str, str]] = []
    for part, entry in every_setting():
        value = getattr(getattr(settings, part), entry.name)
        if value != getattr(getattr(defaults, part), entry.name):
            kind = entry.metadata["kind"]
            written = [kind.write(one) for one in value] if entry.metadata["many"] else [kind.write(value)]
            if entry.name == "dedup_from":  # without this machine's paths
                written = [Path(path).name for path in map(str, written)]
            changed.append((key_of(entry), ", ".join(map(str, written))))
    return CrawlInputs(settings.seeds[:MAX_SEEDS], max(0, len(settings.seeds) - MAX_SEEDS), tuple(changed))


ROWS = 1000  # per table
WIDTH = 2000  # characters per cell
TEXT_WIDTH = 100  # characters per cell in text
SEEDS = 1000  # in JSON

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")

Cell = str | int | float
Row = tuple[object, ...]
Tables = dict[str, tuple[Row, Callable[[Reader, Summary], Iterable[Row]]]]  # name → names of columns, rows
Part = tuple[str, Row, Iterable[Row]]  # name, column names, and rows to read once

TITLES = {  # title and note of each table
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
    "changes": ("Changes", "What is new, changed, moved, gone or unchanged since the earlier crawls."),
}


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table, or its first rows."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int  # rows

    @property
    def title(self) -> str:
        """The title above the table."""
        return TITLES[self.name][0] if self.name in TITLES else self.name.replace("-", " ").capitalize()

    @property
    def note(self) -> str:
        """The sentence that explains the table."""
        return TITLES[self.name][1] if self.name in TITLES else ""


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """The report of a crawl."""

    directory: str  # the name of the directory or the database, without this machine's path
    written: float  # seconds since the epoch
    summary: Summary
    hosts: int
    inputs: CrawlInputs
    time_series: TimeSeries
    tables: tuple[ReportTable, ...]


def build_report(
    crawl: NamedCrawl, db: Reader, found: Summary, tables: Iterable[ReportTable], now: float
) -> CrawlReport:
    """Return the report of *crawl*, with *tables* that were read already."""
    name = printable(crawl.title, WIDTH)
    series = plots.read_time_series(db, found.totals)
    return CrawlReport(name, now, found, figures.host_count(db), read_inputs(crawl, db), series, tuple(tables))


def read_tables(parts: Iterable[Part]) -> Iterator[ReportTable]:
    """Yield the first rows of each table."""
    for name, head, rows in parts:
        first_rows = FirstRows(name, head)
        for _ in first_rows.watch(rows):
            pass
        yield first_rows.table()


class FirstRows:
    """Keeps the first rows of a table while all rows pass."""

    def __init__(self, name: str, head: Row) -> None:
        self._name = name
        self._head = head
        self._kept: list[tuple[Cell, ...]] = []
        self._passed = 0

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield *rows* unchanged."""
        for row in rows:
            if self._passed < ROWS:
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


def report_json(report: CrawlReport) -> dict[str, Any]:
    """Return the report as JSON data."""
    summary = summary_json(report.summary)
    left_out = max(0, len(summary["seeds"]) - SEEDS)
    series, span = report.time_series, report.time_series.span
    return {
        "directory": report.directory,
        "written": iso(report.written),
        **summary,
        "seeds": summary["seeds"][:SEEDS],
        "seeds_left_out": left_out,
        "hosts": report.hosts,
        "settings": dict(report.inputs.settings),
        "time_series": {
            "start": iso(span.begins),
            "slice_seconds": span.step,
            "slices": span.slices,
            "statuses": series.statuses,
            "received": series.received,
            "pauses": [{"slice": first, "slices": length} for first, length in series.pauses],
            "media_types": [each._asdict() for each in series.kinds],
            "hosts": [each._asdict() for each in series.hosts],
            "response_times": dict(series.speeds),
            "depths": dict(series.depths),
        },
        "tables": {
            table.name: {key: value for key, value in asdict(table).items() if key != "name"} for table in report.tables
        },
    }


def report_lines(report: CrawlReport, most: int = 20) -> Iterator[str]:
    """Yield the report as text, with the first *most* rows of each table."""
    yield from verdict.lines(report.summary.verdict)
    yield from summary_facts(report.summary)
    for key, value in report.inputs.settings:
        yield f"{'setting':<9} {key} = {printable(value)}"
    if report.inputs.problem:
        yield f"{'settings':<9} {printable(report.inputs.problem)}"
    for table in report.tables:
        if table.rows and table.name != "verdict":  # already shown as complete lines
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
