"""The whole crawl in one value, and the same in words and as JSON."""

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from archiver import humanize
from archiver.frontier import totals as account
from archiver.frontier.totals import SeedAccount, Totals
from archiver.humanize import duration, printable, volume
from archiver.tools.report import verdict
from archiver.tools.report.changes import words
from archiver.tools.report.verdict import NO_VERDICT, PLAIN, FindingStyle, Verdict


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What the run that has just ended did."""

    elapsed: float
    visits: int
    received: int

    @property
    def rate(self) -> float:
        """Visits a second."""
        return self.visits / self.elapsed if self.elapsed > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What a person wants to know when a crawl has ended."""

    totals: Totals
    failures: tuple[tuple[str, int], ...]  # (reason, URLs)
    seeds: tuple[SeedAccount, ...]
    ending: str = ""  # why the run ended
    run: FinishedRun | None = None
    changes: dict[str, int] | None = None  # since the earlier crawls of the collection, by `changes.What`
    verdict: Verdict = NO_VERDICT


def gathered(db: sqlite3.Connection, ending: str = "", run: FinishedRun | None = None) -> Summary:
    """The summary of the crawl behind *db*."""
    seeds = tuple(account.seeds(db))
    judged = verdict.gathered(db, seeds)
    return Summary(account.totals(db), tuple(account.failures(db)), seeds, ending, run, verdict=judged)


def lines(summary: Summary, view: FindingStyle = PLAIN) -> Iterator[str]:
    """The summary in words, aligned, with every name made harmless; the verdict comes last."""
    yield from facts(summary)
    yield from verdict.lines(summary.verdict, view)


def facts(summary: Summary) -> Iterator[str]:
    """How it ended, and the numbers."""
    totals = summary.totals
    if summary.ending:
        yield _row("ended", printable(summary.ending))
    yield _row(
        "URLs",
        f"{totals.archived} archived, {totals.failed} failed, {totals.excluded} excluded, {totals.waiting} waiting"
        + (f", {totals.held} held" if totals.held else ""),
    )
    yield _row(
        "archive",
        f"{humanize.count(totals.captures, 'capture')} of {volume(totals.received)} "
        f"in {humanize.count(totals.warcs, 'WARC file')} of {volume(totals.stored)}",
    )
    if totals.revisits:
        yield _row("", f"not stored twice: {humanize.count(totals.revisits, 'payload')} of {volume(totals.spared)}")
    if summary.run:
        run = summary.run
        yield _row(
            "this run",
            f"{humanize.count(run.visits, 'visit')} in {duration(run.elapsed)}, "
            f"{run.rate:.1f}/s, {volume(run.received)}",
        )
    if summary.changes is not None:
        yield _row("changes", f"{words(summary.changes)}; reports/changes.tsv names them")


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as JSON has it."""
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
        "seeds": [{**asdict(seed), "trouble": verdict.seed_trouble(seed)} for seed in summary.seeds],
    }


def iso(seconds: float) -> str | None:
    """A time in UTC as ISO 8601 has it; None for no time."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _row(label: str, text: str) -> str:
    return f"{label:<9} {text}"
