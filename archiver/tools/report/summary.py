"""The summary of a crawl as one value, as text and as JSON."""

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from archiver import humanize
from archiver.frontier import totals
from archiver.frontier.totals import SeedAccount, Totals
from archiver.humanize import duration, printable, volume
from archiver.tools.report import verdict
from archiver.tools.report.changes import format_counts
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


def read_summary(db: sqlite3.Connection, ending: str = "", run: FinishedRun | None = None) -> Summary:
    """Read the summary of the crawl in *db*."""
    seeds = tuple(totals.seeds(db))
    crawl_verdict = verdict.read_verdict(db, seeds)
    failures = tuple(totals.failures(db))
    return Summary(totals.totals(db), failures, seeds, ending, run, verdict=crawl_verdict)


def lines(summary: Summary, style: FindingStyle = PLAIN) -> Iterator[str]:
    """Yield the summary as aligned text that is safe for a terminal; the verdict comes last."""
    yield from facts(summary)
    yield from verdict.lines(summary.verdict, style)


def facts(summary: Summary) -> Iterator[str]:
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
    if summary.run:
        run = summary.run
        yield _row(
            "this run",
            f"{humanize.count(run.visits, 'visit')} in {duration(run.elapsed)}, "
            f"{run.rate:.1f}/s, {volume(run.received)}",
        )
    if summary.changes is not None:
        yield _row("changes", f"{format_counts(summary.changes)}; listed in reports/changes.tsv")


def as_json(summary: Summary) -> dict[str, Any]:
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


def iso(seconds: float) -> str | None:
    """Format a time as ISO 8601 in UTC; None for 0."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _row(label: str, text: str) -> str:
    return f"{label:<9} {text}"
