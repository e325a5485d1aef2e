"""The whole crawl in one value, and the same in words and as JSON."""

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from archiver.frontier import account
from archiver.frontier.account import SeedAccount, Totals
from archiver.model import OUTSIDE
from archiver.report.changes import words
from archiver.stats import duration, printable, volume

MAX_REASONS = 8  # kinds of failure named on the screen; the files have them all
MAX_SEEDS = 20  # seeds in trouble named on the screen
_GOOD = range(200, 400)


@dataclass(frozen=True, slots=True)
class Run:
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
    run: Run | None = None
    changes: dict[str, int] | None = None  # since the earlier crawls of the collection, by `changes.What`


def gathered(db: sqlite3.Connection, ending: str = "", run: Run | None = None) -> Summary:
    """The summary of the crawl behind *db*."""
    return Summary(account.totals(db), tuple(account.failures(db)), tuple(account.seeds(db)), ending, run)


def lines(summary: Summary) -> Iterator[str]:
    """The summary in words, aligned, with every name made harmless."""
    totals = summary.totals
    if summary.ending:
        yield _row("ended", printable(summary.ending))
    yield _row(
        "URLs",
        f"{totals.archived} archived, {totals.failed} failed, {totals.excluded} excluded, {totals.waiting} waiting",
    )
    yield _row(
        "archive",
        f"{_count(totals.captures, 'capture')} of {volume(totals.received)} in {_count(totals.warcs, 'WARC file')} "
        f"of {volume(totals.stored)}",
    )
    if totals.revisits:
        yield _row("", f"not stored twice: {_count(totals.revisits, 'payload')} of {volume(totals.spared)}")
    if summary.run:
        run = summary.run
        yield _row(
            "this run",
            f"{_count(run.visits, 'visit')} in {duration(run.elapsed)}, {run.rate:.1f}/s, {volume(run.received)}",
        )
    if summary.changes is not None:
        yield _row("changes", f"{words(summary.changes)}; reports/changes.tsv names them")
    if summary.failures:
        named = [f"{printable(reason)} {count}" for reason, count in summary.failures[:MAX_REASONS]]
        more = len(summary.failures) - MAX_REASONS
        yield _row("failures", ", ".join(named) + (f" and {more} more reasons" if more > 0 else ""))
    troubled = [(seed, trouble) for seed in summary.seeds if (trouble := seed_trouble(seed))]
    for number, (seed, trouble) in enumerate(troubled[:MAX_SEEDS]):
        yield _row("" if number else "seeds", f"{printable(seed.url)} {trouble}")
    if len(troubled) > MAX_SEEDS:
        yield _row("", f"and {len(troubled) - MAX_SEEDS} more")


def seed_trouble(seed: SeedAccount) -> str:
    """What a person should know about a seed that did not bring what was hoped; empty where it did."""
    if seed.state == "failed":
        return f"failed: {_why(seed)}"
    if seed.state == "excluded":
        return f"is excluded: {_why(seed)}"
    if seed.refused:
        return f"redirects out of scope, to {printable(seed.refused)} ({printable(seed.rule)})"
    if seed.state == "archived" and seed.note.endswith(OUTSIDE):
        return f"{printable(seed.note)}; its links are not followed"
    if seed.state == "archived" and seed.status not in _GOOD:
        return f"answered with status {seed.status}"
    return ""


def _why(seed: SeedAccount) -> str:
    reason = seed.failure or (f"status {seed.status}" if seed.status else "")
    told = reason and seed.note.startswith(reason)  # a note may begin with the reason's own word
    return printable(seed.note if told else ", ".join(filter(None, (reason, seed.note))))


def as_json(summary: Summary) -> dict[str, Any]:
    """The summary as JSON has it."""
    run = summary.run
    return {
        "ended": summary.ending,
        "totals": {
            **asdict(summary.totals),
            "first": iso(summary.totals.first),
            "last": iso(summary.totals.last),
        },
        "run": {**asdict(run), "rate": round(run.rate, 3)} if run else None,
        "changes": summary.changes,
        "failures": dict(summary.failures),
        "seeds": [{**asdict(seed), "trouble": seed_trouble(seed)} for seed in summary.seeds],
    }


def iso(seconds: float) -> str | None:
    """A time in UTC as ISO 8601 has it; None for no time."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _row(label: str, text: str) -> str:
    return f"{label:<9} {text}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
