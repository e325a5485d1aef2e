"""The files under `reports/`: text, JSON, an HTML page, and one table per question.

Each file is replaced as a whole, so after a crash the previous one remains. Tables are written row by row, because they
may be long. Tabs and line breaks in names are escaped. `read_report` builds the same report without files.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from shlex import quote

from archiver import url
from archiver.collection.earlier_crawls import open_earlier_crawls, rounds_until, stamp_of
from archiver.collection.named_crawl import NamedCrawl
from archiver.frontier import figures, retry, totals
from archiver.frontier.connection import Reader
from archiver.humanize import iso, json_text, printable
from archiver.storage import open_file, replace_file, storage, sync_folder
from archiver.tools.report import actions, broken_pages, changes, crawl_part, heritrix, html, seed_problems
from archiver.tools.report.crawl_part import CrawlPart
from archiver.tools.report.findings import FindingStyle, filled
from archiver.tools.report.report import (
    CrawlInputs,
    CrawlReport,
    Summary,
    build_report,
    read_inputs,
    read_summary,
    report_json,
    report_lines,
    summary_json,
    summary_lines,
)
from archiver.tools.report.tables import FirstRows, Part, Row, read_tables

PAGE = "report.html"
IN_REPLAY = "missing-in-replay"
IN_REPLAY_COLUMNS = ("url", "method", "kind", "pages", "first_page", "volatile", "state")
WRITTEN_OFF = "written-off"
WRITTEN_OFF_COLUMNS = ("url", "lost", "file", "date", "status", "machine")
OF_COMMANDS = {IN_REPLAY: IN_REPLAY_COLUMNS, WRITTEN_OFF: WRITTEN_OFF_COLUMNS}  # tables that other commands write
SLOWEST = 50  # hosts

_WIDTH = 20_000  # characters per cell; longer than the longest URL
_LONGEST = 4000  # characters of a path

Tables = dict[str, tuple[Row, Callable[[Reader, Summary], Iterable[Row]]]]  # name → names of columns, rows


def write_reports(crawl: NamedCrawl, db: Reader, found: Summary, folder: Path, now: float) -> Summary:
    """Write all reports of *crawl*, with database *db*, to *folder*. Return *found* with the changes added."""
    with storage(folder):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    tables = []
    inputs = read_inputs(crawl, db)
    shown = _as_shown(found, crawl, inputs, db)
    with _open_tables(crawl, db, shown) as (parts, compared):
        for name, head, rows in parts:
            beginning = FirstRows(name, head)
            _write(folder / f"{name}.tsv", _table(head, beginning.watch(rows)))
            tables.append(beginning.table())
    shown = _with_changes(shown, compared, crawl)
    _write(folder / "summary.txt", (f"{line}\n" for line in summary_lines(shown, shown.style)))
    _write(folder / "summary.json", [json_text(summary_json(shown)), "\n"])
    report = build_report(crawl, db, shown, tables, inputs, now)
    _write(folder / "report.txt", (f"{line}\n" for line in report_lines(report)))
    _write(folder / "report.json", [as_json(report), "\n"])
    _write(folder / PAGE, html.render(report))
    for name, lines in heritrix.heritrix_reports(crawl.title, db, shown):
        _write(folder / name, lines)
    return replace(found, changes=shown.changes)


def read_report(crawl: NamedCrawl, db: Reader, found: Summary, now: float) -> CrawlReport:
    """Return the report of *crawl*, with database *db*, without writing files."""
    inputs = read_inputs(crawl, db)
    shown = _as_shown(found, crawl, inputs, db)
    with _open_tables(crawl, db, shown) as (parts, compared):
        tables = list(read_tables(parts))
    return build_report(crawl, db, _with_changes(shown, compared, crawl), tables, inputs, now)


def read_part(crawl: NamedCrawl, db: Reader, part: CrawlPart, since: str = "") -> tuple[Reader, Summary]:
    """Return the connection to *part* of *crawl*, with database *db*, and its summary.

    *since*: the date of the earlier crawl to compare with. Raises `ConfigError` if the crawl does not know one of them.
    """
    if crawl.home is not None:
        rounds_until(crawl.home, since, crawl.stamp)
    chosen = crawl_part.select(db, part)
    found = read_summary(chosen, quotas=crawl.quotas(db))
    return chosen, replace(found, part=part, since=since, verdict=replace(found.verdict, lost=crawl.lost(db)))


def as_json(report: CrawlReport) -> str:
    """Return *report* as formatted JSON."""
    return json_text(report_json(report))


@contextmanager
def _open_tables(
    crawl: NamedCrawl, db: Reader, found: Summary
) -> Iterator[tuple[Iterable[Part], changes.ChangeReport | None]]:
    """Yield all tables, and the comparison with earlier crawls (None if there are none).

    The comparison is complete when its table has been read.
    """
    found = replace(found, archive=None if crawl.home is None else crawl.home.archive)
    parts: list[Part] = [(name, head, rows(db, found)) for name, (head, rows) in TABLES.items()]
    with nullcontext() if crawl.home is None else open_earlier_crawls(crawl.home, found.since, crawl.stamp) as memory:
        compared = None if memory is None else changes.ChangeReport(db, memory, found.part)
        if compared is not None:
            parts.append(("changes", changes.COLUMNS, compared.rows()))
        for name, columns in OF_COMMANDS.items():
            if crawl.layout is not None and (path := crawl.layout.reports / f"{name}.tsv").exists():
                parts.append((name, columns, _written(path, len(columns), found.part)))
        yield parts, compared


def _with_changes(found: Summary, compared: changes.ChangeReport | None, crawl: NamedCrawl) -> Summary:
    if compared is None or crawl.home is None:
        return found
    return replace(
        found,
        changes={what.value: compared.counts[what] for what in changes.UrlChange},
        change_examples={what.value: tuple(compared.examples.get(what, ())) for what in changes.UrlChange},
        compared=stamp_of(rounds_until(crawl.home, found.since, crawl.stamp)[0]),
    )


def _as_shown(found: Summary, crawl: NamedCrawl, inputs: CrawlInputs, db: Reader) -> Summary:
    """Return *found* with problems, commands for *crawl* and descriptions of seeds, without this machine's paths."""
    titles = {address: about.title for address, about in inputs.about.items() if about.title}
    named = replace(found.verdict, titles=titles)
    plain = replace(_without_paths(found, crawl), verdict=named, about=inputs.about)
    problems, recording = tuple(actions.problems(db)), crawl.is_recording
    return replace(plain, style=_style(crawl, found, recording=recording), recording=recording, problems=problems)


def _style(crawl: NamedCrawl, found: Summary, *, recording: bool) -> FindingStyle:
    """Return how commands name *crawl*: by a path from the folder that holds it, or that holds `collections`."""
    if crawl.home is None:
        return FindingStyle(quote(printable(crawl.name, _LONGEST)), is_address=True, host=found.part.host)
    directory = crawl.home.directory.resolve()
    name = f"collections/{directory.name}" if directory.parent.name == "collections" else directory.name
    safe = f"./{name}" if name.startswith("-") else name
    return FindingStyle(quote(printable(safe, _LONGEST)), host=found.part.host, past=bool(crawl.stamp) or recording)


def _without_paths(found: Summary, crawl: NamedCrawl) -> Summary:
    """Return *found* without this machine's paths: the ending may name a file in the directory of *crawl*."""
    ending = found.ending
    directory = None if crawl.layout is None else crawl.layout.directory
    for path in () if directory is None else (directory.absolute(), directory.resolve()):
        ending = ending.replace(str(path), path.name)
    return replace(found, ending=ending)


def _write(path: Path, text: Iterable[str]) -> None:
    replace_file(path, lambda file: file.writelines(piece.encode() for piece in text))


def _written(path: Path, columns: int, part: CrawlPart) -> Iterator[Row]:
    """Yield the rows that a command wrote to *path*, if their URL belongs to *part*."""
    with suppress(FileNotFoundError), storage(path), open_file(path) as file:
        file.readline(_WIDTH)  # the names of the columns
        while line := file.readline(_WIDTH):
            row = tuple(line.decode("utf-8", "replace").rstrip("\n").split("\t")[:columns])
            if not part or ((address := url.canonical(row[0])) and part.has(address, "")):
                yield row


def _hosts(db: Reader, _found: Summary) -> Iterator[Row]:
    for host in figures.hosts(db):
        revisits = host.identical + host.unmodified
        yield (
            *(host.key, host.archived, host.failed, host.excluded, host.waiting, host.captures, host.received),
            revisits,
        )


def _slowest(db: Reader, _found: Summary) -> Iterator[Row]:
    for host in figures.slowest_hosts(db, SLOWEST):
        yield host.key, f"{host.duration / host.captures:.3f}", host.captures, f"{host.duration:.1f}"


def _truncated(db: Reader, _found: Summary) -> Iterator[Row]:
    for cut in figures.truncated(db):
        yield cut.url, cut.status, cut.received, cut.why, iso(cut.timestamp / figures.MICRO)


def _lost(db: Reader, _found: Summary) -> Iterator[Row]:
    for each in totals.lost(db):
        yield each.url, each.reason, each.note, each.via


def _verdict(_db: Reader, found: Summary) -> Iterator[Row]:
    for finding in found.verdict.findings:
        yield finding.topic, finding.message, filled(finding.command, found.style)


def _broken(db: Reader, found: Summary) -> Iterator[Row]:
    yield from broken_pages.broken_page_rows(db, found.archive)


def _held(db: Reader, _found: Summary) -> Iterator[Row]:
    for each in retry.held_patterns(db):
        yield each.pattern, each.rule, each.urls, each.beyond, each.example


TABLES: Tables = {
    "verdict": (("topic", "message", "next_command"), _verdict),
    "seeds": (seed_problems.SEED_COLUMNS, lambda _db, found: seed_problems.seed_rows(found.seeds, found.about)),
    "seed-collections": (
        seed_problems.COLLECTION_COLUMNS,
        lambda _db, found: seed_problems.collection_rows(found.seeds, found.about),
    ),
    "failure-reasons": (actions.COLUMNS, lambda _db, found: actions.problem_rows(found.problems, found.style)),
    "broken-pages": (broken_pages.COLUMNS, _broken),
    "missing-requisites": (("url", "reason", "page"), lambda db, _found: figures.missing_requisites(db)),
    "failures": (("url", "reason", "note", "via"), _lost),
    "held": (("pattern", "rule", "urls", "further_links", "example"), _held),
    "truncated": (("url", "status", "bytes", "reason", "date"), _truncated),
    "hosts": (("host", "archived", "failed", "excluded", "waiting", "captures", "bytes", "revisits"), _hosts),
    "slowest-hosts": (("host", "mean_seconds", "captures", "total_seconds"), _slowest),
    "status-codes": (("status", "captures"), lambda db, _found: totals.statuses(db)),
    "media-types": (("media_type", "captures", "bytes"), lambda db, _found: figures.media_types(db)),
    "revisits": (("profile", "captures", "received_bytes", "saved_bytes"), lambda db, _found: figures.revisits(db)),
    "refusals": (("rule", "links"), lambda db, _found: totals.refusals(db)),
}


def _table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    for row in chain([head], rows):
        cells = list(map(str, row))
        if not "".join(cells).isprintable() or max(map(len, cells)) > _WIDTH:
            cells = [printable(cell, _WIDTH) for cell in cells]
        yield "\t".join(cells) + "\n"
