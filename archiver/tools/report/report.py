"""The summary and the report of a crawl as values. Text, JSON and the HTML page are made from them, so they agree.

Everything is bounded: the first rows of each table with the number of rows left out, and cells cut to a length. The
report includes the crawl's inputs from crawl.toml: the seeds and the non-default settings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from archiver import humanize
from archiver.collection.named_crawl import NamedCrawl
from archiver.config.secret_settings import without_secrets
from archiver.config.seeds import SeedAbout, SeedSetting, descriptions
from archiver.config.settings import Settings, every_setting, key_of
from archiver.errors import ConfigError
from archiver.frontier import figures, totals
from archiver.frontier.connection import Reader
from archiver.frontier.totals import SeedAccount, Totals
from archiver.humanize import duration, iso, printable, volume
from archiver.policy.quotas import NO_QUOTAS, Quotas
from archiver.tools.report import actions, broken_pages, plots, verdict
from archiver.tools.report.actions import Headline, Problem
from archiver.tools.report.broken_pages import BrokenPage
from archiver.tools.report.crawl_part import WHOLE, CrawlPart
from archiver.tools.report.findings import PLAIN, FindingStyle, filled, finding_json, lines
from archiver.tools.report.plots import TimeSeries
from archiver.tools.report.seed_problems import seed_problem
from archiver.tools.report.tables import TEXT_WIDTH, WIDTH, ReportTable, aligned
from archiver.tools.report.verdict import NO_VERDICT, Verdict

MOST_FAILURES, MOST_FINDINGS = 20, 40  # in an event


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The work of the last run."""

    elapsed: float
    visits: int
    received: int
    began: float = 0.0  # before it looked at the files of earlier runs

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
    style: FindingStyle = PLAIN  # of the commands
    running: bool = False
    recording: bool = False  # clients have asked for the URLs, so there is no queue
    part: CrawlPart = WHOLE  # of the crawl, which this is about
    since: str = ""  # the date of the earlier crawl to compare with; "": the newest one
    compared: str = ""  # when that crawl began
    change_examples: dict[str, tuple[str, ...]] | None = None  # a few URLs for each of `changes`
    about: Mapping[str, SeedAbout] = field(default_factory=dict)  # descriptions of seeds, by URL
    problems: tuple[Problem, ...] = ()  # by reason; of a report

    @property
    def headline(self) -> Headline:
        """The result in one sentence."""
        return actions.headline(self.verdict, self.totals, self.seeds, running=self.running)


def read_summary(db: Reader, ending: str = "", run: FinishedRun | None = None, quotas: Quotas = NO_QUOTAS) -> Summary:
    """Read the summary of the crawl in *db*; *quotas* know which hosts a person has blocked."""
    seeds = tuple(totals.seeds(db))
    crawl_verdict = verdict.read_verdict(db, seeds, quotas)
    failures = tuple(totals.failures(db))
    return Summary(totals.totals(db), failures, seeds, ending, run, verdict=crawl_verdict)


def summary_of(crawl: NamedCrawl, db: Reader, ending: str = "", run: FinishedRun | None = None) -> Summary:
    """Read the summary of *crawl*, with the database *db*: also what its settings say, and what its files lack."""
    found = read_summary(db, ending, run, crawl.quotas(db))
    lost = crawl.lost(db, recovered=None if run is None else run.began)
    return replace(found, verdict=replace(found.verdict, lost=lost))


def work_left(summary: Summary) -> str:
    """Return what `archiver resume` would go on with; "" if nothing."""
    if (waiting := summary.totals.waiting - sum(each.urls for each in summary.verdict.blocked)) > 0:
        return f"{humanize.count(waiting, 'URL is', 'URLs are')} queued"
    views = summary.verdict.views.due
    return f"{humanize.count(views, 'page is', 'pages are')} to be shown in a browser" if views else ""


def summary_lines(summary: Summary, style: FindingStyle = PLAIN) -> Iterator[str]:
    """Yield the summary as aligned text that is safe for a terminal; the verdict comes last."""
    yield from summary_facts(summary)
    yield from lines(summary.verdict.findings, style)


def summary_facts(summary: Summary) -> Iterator[str]:
    """Yield the ending and the counts."""
    counts = summary.totals
    if summary.ending:
        yield _row("ended", printable(summary.ending))
    queue = "" if summary.recording else f", {counts.excluded} excluded, {counts.waiting} waiting"
    held = f", {counts.held} held" if counts.held else ""
    yield _row("URLs", f"{counts.archived} archived, {counts.failed} failed{queue}{held}")
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

        since = f" since {summary.compared}" if summary.since else ""
        yield _row("changes", f"{format_counts(summary.changes)}{since}; listed in reports/changes.tsv")


def summary_json(summary: Summary, most_seeds: int | None = None) -> dict[str, Any]:
    """Return the summary as JSON data, with the first *most_seeds* seeds (None: all)."""
    run = summary.run
    return {
        "ended": summary.ending,
        "headline": {"grade": summary.headline.grade.value, "text": summary.headline.text},
        "verdict": verdict.as_json(summary.verdict, summary.style),
        "totals": {
            **asdict(summary.totals),
            "first": iso(summary.totals.first),
            "last": iso(summary.totals.last),
        },
        "run": {**asdict(run), "rate": round(run.rate, 3)} if run else None,
        "changes": summary.changes,
        "compared_with": summary.compared or None,
        "change_examples": summary.change_examples,
        "failures": dict(summary.failures),
        "seeds": [_seed_json(seed, summary.about.get(seed.url)) for seed in summary.seeds[:most_seeds]],
    }


def _seed_json(seed: SeedAccount, about: SeedAbout | None) -> dict[str, Any]:
    """Return the outcome of *seed*; `about` is its description, if it has one, because `note` is that of its URL."""
    own = {name: getattr(seed, name) for name in _SEED_FIELDS}  # asdict would copy each value of thousands of seeds
    return {**own, "problem": seed_problem(seed), **({} if about is None else {"about": asdict(about)})}


_SEED_FIELDS = tuple(each.name for each in fields(SeedAccount))


def ended_json(db: Reader, quotas: Quotas = NO_QUOTAS) -> dict[str, Any]:
    """Return the result of the crawl in *db*, whose run has ended, as JSON data of limited size for an event."""
    summary = read_summary(db, quotas=quotas)
    findings = summary.verdict.findings
    return {
        "grade": summary.headline.grade.value,
        "headline": summary.headline.text,
        "trouble": summary.verdict.trouble,
        "failures": dict(summary.failures[:MOST_FAILURES]),
        "findings": [finding_json(each, summary.style) for each in findings[:MOST_FINDINGS]],
    }


def _row(label: str, text: str) -> str:
    return f"{label:<9} {text}"


MAX_SEEDS = 20  # shown; the table of seeds has all
SEEDS = 1000  # in JSON
LINKS = 3  # to each broken page in text


@dataclass(frozen=True, slots=True)
class CrawlInputs:
    """The seeds and settings of a crawl."""

    seeds: tuple[str, ...] = ()  # the first of them
    more_seeds: int = 0
    settings: tuple[tuple[str, str], ...] = ()  # (key, value) as in crawl.toml, non-default only
    problem: str = ""  # why they are not known
    about: Mapping[str, SeedAbout] = field(default_factory=dict)  # descriptions of all seeds, by URL


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
            if entry.name == "seed":  # the descriptions are shown with the seeds
                value = tuple(SeedSetting(one.url, one.effective) for one in value if one.effective)
            written = [kind.write(one) for one in value] if entry.metadata["many"] else [kind.write(value)]
            if entry.name == "dedup_from":  # without this machine's paths
                written = [Path(path).name for path in map(str, written)]
            if written:
                changed.append((key_of(entry), ", ".join(map(str, written))))
    more = max(0, len(settings.seeds) - MAX_SEEDS)
    return CrawlInputs(settings.seeds[:MAX_SEEDS], more, tuple(changed), about=descriptions(settings.scope.seed))


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

    def table(self, name: str) -> ReportTable | None:
        """Return the table *name*, or None."""
        return next((table for table in self.tables if table.name == name), None)

    @property
    def broken_pages(self) -> list[BrokenPage]:
        """The broken pages that the table has."""
        table = self.table("broken-pages")
        return broken_pages.grouped(table.rows) if table else []

    @property
    def title(self) -> str:
        """The name of the crawl, and of the part of it."""
        part = printable(self.summary.part.title, WIDTH)
        return f"{self.directory}, {part}" if part else self.directory


def build_report(
    crawl: NamedCrawl, db: Reader, found: Summary, tables: Iterable[ReportTable], inputs: CrawlInputs, now: float
) -> CrawlReport:
    """Return the report of *crawl*, with *tables* and *inputs* that were read already."""
    name = printable(crawl.title, WIDTH)
    series = plots.read_time_series(db, found.totals)
    return CrawlReport(name, now, found, figures.host_count(db), inputs, series, tuple(tables))


def report_json(report: CrawlReport) -> dict[str, Any]:
    """Return the report as JSON data."""
    left_out = max(0, len(report.summary.seeds) - SEEDS)
    series, span = report.time_series, report.time_series.span
    return {
        "directory": report.directory,
        "host": report.summary.part.host or None,
        "seed": report.summary.part.seed or None,
        "written": iso(report.written),
        **summary_json(report.summary, SEEDS),
        "seeds_left_out": left_out,
        "hosts": report.hosts,
        "settings": dict(report.inputs.settings),
        "failed_seeds": [seed.url for seed in actions.failed_seeds(report.summary.seeds)][:SEEDS],
        "problems": [
            asdict(each) | {"command": filled(each.command, report.summary.style)} for each in report.summary.problems
        ],
        "broken_pages": [asdict(each) for each in report.broken_pages],
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
            table.name: {"head": table.head, "rows": table.rows, "left_out": table.left_out} for table in report.tables
        },
    }


def report_lines(report: CrawlReport, most: int = 20, style: FindingStyle | None = None) -> Iterator[str]:
    """Yield the report as text, with the first *most* rows of each table, and commands as in *style*."""
    summary = report.summary
    shown = summary.style if style is None else style
    if summary.part:
        yield f"{'part':<9} {printable(summary.part.title, WIDTH)}"
    yield f"{'result':<9} {printable(summary.headline.text, WIDTH)}"
    yield from lines(summary.verdict.findings, shown)
    yield from summary_facts(summary)
    for key, value in report.inputs.settings:
        yield f"{'setting':<9} {key} = {printable(value)}"
    if report.inputs.problem:
        yield f"{'settings':<9} {printable(report.inputs.problem)}"
    for change, examples in (summary.change_examples or {}).items():
        for number, address in enumerate(examples if change != "unchanged" else ()):
            yield f"{'' if number else change:<9} {printable(address, TEXT_WIDTH)}"
    for table in report.tables:
        if not table.rows or table.name == "verdict":  # already shown as complete lines
            continue
        yield from ("", f"{table.title}. {table.note}".strip())
        if table.name == "failure-reasons":
            yield from actions.problem_lines(summary.problems[:most], shown)
        elif table.name == "broken-pages":
            yield from _broken_lines(report.broken_pages, most)
        else:
            yield from aligned(table, most)


def _broken_lines(pages: Sequence[BrokenPage], most: int) -> Iterator[str]:
    for page in pages[:most]:
        yield f"  {page.problem:>7}  {printable(page.url, WIDTH)}"
        for link in page.linked_from[:LINKS]:
            yield f"           linked from {printable(link, WIDTH)}"
        if more := len(page.linked_from[LINKS:]):
            yield f"           and from {more} more"
    if len(pages) > most:
        yield f"  and {len(pages) - most} more"
