"""The files under `reports/`: everything as text, as JSON and as one page, a table for each question, and Heritrix's.

Each is replaced whole, so a crash leaves the last one. Tables are written row by row: there may be many rows.
A tab or a line break in a name is escaped, so that a row stays a row. `gathered` makes the same report without a file.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from archiver.archive.layout import Layout, replace_file, storage, sync_folder
from archiver.earlier import remembered
from archiver.frontier import account, figures, held
from archiver.report import broken, changes, heritrix, page, summary, verdict, whole
from archiver.report.summary import Summary, iso
from archiver.report.whole import Beginning, Part, Row, Tables, Whole
from archiver.stats import printable

PAGE = "report.html"
SLOWEST = 50  # hosts
_WIDTH = 20_000  # characters of a cell: the longest URL is shorter


def write(directory: Path, db: sqlite3.Connection, found: Summary, now: float) -> Summary:
    """Write every report of the crawl in *directory*, whose database is *db*; what was *found*, and what changed."""
    folder = Layout(directory).reports
    with storage(folder):
        folder.mkdir(exist_ok=True)
        sync_folder(directory)
    tables = []
    with _every(directory, db, found) as (parts, compared):
        for name, head, rows in parts:
            beginning = Beginning(name, head)
            _put(folder / f"{name}.tsv", _table(head, beginning.watched(rows)))
            tables.append(beginning.table())
    found = _with_changes(found, compared)
    shown = _impersonal(found, directory)
    _put(folder / "summary.txt", (f"{line}\n" for line in summary.lines(shown)))
    _put(folder / "summary.json", [json.dumps(summary.as_json(shown), indent=2, ensure_ascii=False), "\n"])
    report = whole.gathered(directory, db, shown, tables, now)
    _put(folder / "report.txt", (f"{line}\n" for line in whole.lines(report)))
    _put(folder / "report.json", [as_json(report), "\n"])
    _put(folder / PAGE, page.pieces(report))
    for name, lines in heritrix.reports(directory.absolute().name, db, shown):
        _put(folder / name, lines)
    return found


def gathered(directory: Path, db: sqlite3.Connection, found: Summary, now: float) -> Whole:
    """The report of the crawl in *directory*, whose database is *db*; nothing is written."""
    with _every(directory, db, found) as (parts, compared):
        tables = list(whole.tables(parts))
    return whole.gathered(directory, db, _impersonal(_with_changes(found, compared), directory), tables, now)


def as_json(report: Whole) -> str:
    """*report* as a file of JSON has it."""
    return json.dumps(whole.as_json(report), indent=2, ensure_ascii=False)


@contextmanager
def _every(
    directory: Path, db: sqlite3.Connection, found: Summary
) -> Iterator[tuple[Iterable[Part], changes.Changes | None]]:
    """Every table, and the comparison with earlier crawls, which is known when its table was read; None without any."""
    parts: list[Part] = [(name, head, rows(db, found)) for name, (head, rows) in TABLES.items()]
    with remembered(Layout(directory)) as memory:
        compared = None if memory is None else changes.Changes(db, memory)
        if compared is not None:
            parts.append(("changes", changes.HEAD, compared.rows()))
        yield parts, compared


def _with_changes(found: Summary, compared: changes.Changes | None) -> Summary:
    if compared is None:
        return found
    return replace(found, changes={what.value: compared.counts[what] for what in changes.What})


def _impersonal(found: Summary, directory: Path) -> Summary:
    """Return *found* without the paths of this machine: why a run ended may name a file in *directory*."""
    ending = found.ending
    for path in (directory.absolute(), directory.resolve()):
        ending = ending.replace(str(path), path.name)
    return replace(found, ending=ending)


def _put(path: Path, text: Iterable[str]) -> None:
    replace_file(path, lambda file: file.writelines(piece.encode() for piece in text))


def _hosts(db: sqlite3.Connection, _found: Summary) -> Iterator[Row]:
    for host in figures.hosts(db):
        revisits = host.identical + host.unmodified
        yield (
            *(host.key, host.archived, host.failed, host.excluded, host.waiting, host.captures, host.received),
            revisits,
        )


def _slowest(db: sqlite3.Connection, _found: Summary) -> Iterator[Row]:
    for host in figures.slowest_hosts(db, SLOWEST):
        yield host.key, f"{host.took / host.captures:.3f}", host.captures, f"{host.took:.1f}"


def _truncated(db: sqlite3.Connection, _found: Summary) -> Iterator[Row]:
    for cut in figures.truncated(db):
        yield cut.url, cut.status, cut.received, cut.why, iso(cut.timestamp / figures.MICRO)


def _lost(db: sqlite3.Connection, _found: Summary) -> Iterator[Row]:
    for url in account.lost(db):
        yield url.url, url.reason, url.note, url.via


def _seeds(_db: sqlite3.Connection, found: Summary) -> Iterator[Row]:
    for seed in found.seeds:
        yield seed.url, seed.state, seed.status or "", seed.followed, verdict.seed_trouble(seed)


def _verdict(_db: sqlite3.Connection, found: Summary) -> Iterator[Row]:
    for finding in found.verdict.findings:
        yield finding.about, finding.words, finding.command


def _broken(db: sqlite3.Connection, _found: Summary) -> Iterator[Row]:
    (path,) = db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    yield from broken.rows(db, Path(path).parent)


def _held(db: sqlite3.Connection, _found: Summary) -> Iterator[Row]:
    for each in held.held_patterns(db):
        yield each.pattern, each.rule, each.urls, each.beyond, each.example


TABLES: Tables = {
    "verdict": (("about", "what", "go_on_with"), _verdict),
    "seeds": (("seed", "state", "status", "urls_behind", "trouble"), _seeds),
    "hosts": (("host", "archived", "failed", "excluded", "waiting", "captures", "bytes", "revisits"), _hosts),
    "status-codes": (("status", "captures"), lambda db, _found: account.statuses(db)),
    "media-types": (("media_type", "captures", "bytes"), lambda db, _found: figures.media_types(db)),
    "failure-reasons": (("reason", "urls"), lambda _db, found: found.failures),
    "failures": (("url", "reason", "note", "via"), _lost),
    "broken-pages": (broken.HEAD, _broken),
    "missing-requisites": (("url", "reason", "page"), lambda db, _found: figures.missing_requisites(db)),
    "truncated": (("url", "status", "bytes", "ended_by", "date"), _truncated),
    "slowest-hosts": (("host", "seconds_per_answer", "captures", "seconds"), _slowest),
    "revisits": (("why", "captures", "received_bytes", "saved_bytes"), lambda db, _found: figures.revisits(db)),
    "held": (("pattern", "rule", "urls", "further_links", "example"), _held),
    "refusals": (("rule", "links"), lambda db, _found: account.refusals(db)),
}


def _table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    for row in chain([head], rows):
        yield "\t".join(printable(str(cell), _WIDTH) for cell in row) + "\n"
