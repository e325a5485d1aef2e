"""The files under `reports/`: the summary as text and JSON, and a table for each question, tab-separated.

Each is replaced whole, so a crash leaves the last one. Tables are written row by row: there may be many rows.
A tab or a line break in a name is escaped, so that a row stays a row.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import nlargest
from itertools import chain
from pathlib import Path

from archiver.archive.layout import Layout, replace_file, storage, sync_folder
from archiver.earlier import remembered
from archiver.frontier import account, tallies
from archiver.report import changes, summary
from archiver.report.summary import Summary
from archiver.stats import printable

SLOWEST = 50  # hosts
_WIDTH = 20_000  # characters of a cell: the longest URL is shorter

Row = tuple[object, ...]


def write(directory: Path, db: sqlite3.Connection, found: Summary, now: float) -> Summary:
    """Write every report of the crawl in *directory*, whose database is *db*; what was *found*, and what changed."""
    folder = Layout(directory).reports
    with storage(folder):
        folder.mkdir(exist_ok=True)
        sync_folder(directory)
    found = replace(found, changes=_changes(Layout(directory), db))
    _put(folder / "summary.txt", (f"{line}\n" for line in summary.lines(found)))
    _put(folder / "summary.json", [json.dumps(summary.as_json(found), indent=2, ensure_ascii=False), "\n"])
    for name, (head, rows) in TABLES.items():
        _put(folder / f"{name}.tsv", _table(head, rows(db, now)))
    return found


def _changes(layout: Layout, db: sqlite3.Connection) -> dict[str, int] | None:
    """Write what has changed since earlier crawls, and count it; None where there was none."""
    with remembered(layout) as memory:
        if memory is None:
            return None
        compared = changes.Changes(db, memory)
        _put(layout.reports / "changes.tsv", _table(changes.HEAD, compared.rows()))
        return {what.value: compared.counts[what] for what in changes.What}


def _put(path: Path, text: Iterable[str]) -> None:
    replace_file(path, lambda file: file.writelines(piece.encode() for piece in text))


def _hosts(db: sqlite3.Connection, now: float) -> Iterator[Row]:
    for host in account.hosts(db, now):
        yield host.key, host.archived, host.failed, host.excluded, host.waiting, host.captures, host.received


def _slowest(db: sqlite3.Connection, now: float) -> Iterator[Row]:
    answered = ((host.took / host.captures, host) for host in account.hosts(db, now) if host.captures)
    for mean, host in nlargest(SLOWEST, answered, key=lambda pair: pair[0]):
        yield host.key, f"{mean:.3f}", host.captures, f"{host.took:.1f}"


def _lost(db: sqlite3.Connection, now: float) -> Iterator[Row]:
    del now
    for url in account.lost(db):
        yield url.url, url.reason, url.note, url.via


def _seeds(db: sqlite3.Connection, now: float) -> Iterator[Row]:
    del now
    for seed in account.seeds(db):
        yield seed.url, seed.state, seed.status or "", seed.followed, summary.seed_trouble(seed)


TABLES: dict[str, tuple[Row, Callable[[sqlite3.Connection, float], Iterable[Row]]]] = {
    "seeds": (("seed", "state", "status", "urls_behind", "trouble"), _seeds),
    "hosts": (("host", "archived", "failed", "excluded", "waiting", "captures", "bytes"), _hosts),
    "slowest-hosts": (("host", "seconds_per_answer", "captures", "seconds"), _slowest),
    "status-codes": (("status", "captures"), lambda db, _now: account.statuses(db)),
    "media-types": (("media_type", "captures", "bytes"), lambda db, _now: account.media_types(db)),
    "failures": (("url", "reason", "note", "via"), _lost),
    "failure-reasons": (("reason", "urls"), lambda db, _now: account.failures(db)),
    "traps": (("rule", "links_refused", "urls_held_back", "example"), lambda db, _now: tallies.held_back(db)),
    "refusals": (("rule", "links"), lambda db, _now: account.refusals(db)),
}


def _table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    for row in chain([head], rows):
        yield "\t".join(printable(str(cell), _WIDTH) for cell in row) + "\n"
