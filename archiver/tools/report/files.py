"""The files under `reports/`: text, JSON, an HTML page, one table per question, and Heritrix's report files.

Each file is replaced as a whole, so after a crash the previous one remains. Tables are written row by row, because they
may be long. Tabs and line breaks in names are escaped. `read_report` builds the same report without files.

The broken pages are those that answered 4xx or 5xx, each with the pages that link to it. crawl.db keeps only the first
link to a URL. The others are in the metadata records of the pages, so the first `PAGES_READ` pages are searched. Links
on other pages, or in records that cannot be read here, are missing from the table.

Heritrix's files have its columns, for tools that read them. It counts URIs by the thread that finished them; here the
numbers come from crawl.db. Spaces in names are escaped, because spaces separate the columns. Bytes are bytes received.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from archiver.collection.earlier_crawls import open_earlier_crawls
from archiver.collection.named_crawl import NamedCrawl
from archiver.collection.records import links_at, record_at
from archiver.errors import ROBOTS_PRECLUDED, ArchiveError, Failure
from archiver.frontier import figures, retry, totals
from archiver.frontier.connection import Reader
from archiver.frontier.figures import SeedFigures
from archiver.humanize import iso, printable
from archiver.model import Hop
from archiver.storage import open_file, replace_file, storage, sync_folder
from archiver.tools.report import changes, html, verdict
from archiver.tools.report.report import (
    CrawlReport,
    FirstRows,
    Part,
    Row,
    Summary,
    Tables,
    build_report,
    read_tables,
    report_json,
    report_lines,
    summary_json,
    summary_lines,
)
from archiver.warc.members import DamagedRecord
from archiver.warc.records import VisitMetadata

PAGE = "report.html"
BROKEN_PAGES_COLUMNS = ("url", "status", "linked_from")
IN_REPLAY = "missing-in-replay"
IN_REPLAY_COLUMNS = ("url", "method", "kind", "pages", "first_page", "volatile", "state")
WRITTEN_OFF = "written-off"
WRITTEN_OFF_COLUMNS = ("url", "lost", "file", "date", "status", "machine")
OF_COMMANDS = {IN_REPLAY: IN_REPLAY_COLUMNS, WRITTEN_OFF: WRITTEN_OFF_COLUMNS}  # tables that other commands write
PAGES_READ = 5000  # about a second
MAX_SEARCHED = 10_000  # broken pages for which more links are searched
LINKS_KEPT = 10  # per broken page
LARGEST = 8 << 20  # bytes of a metadata record
SLOWEST = 50  # hosts
RUNTIME_EXCEPTION = -5  # Heritrix's code for a failure that this version does not know

_WIDTH = 20_000  # characters per cell; longer than the longest URL
_UNCHANGED = b"\r\noutlinksOf: "  # of a page whose content did not change
_LINK = re.compile(rb"^outlink: (\S+) L ", re.MULTILINE)
_TARGET = re.compile(r"redirects to (\S+)")
_MOVED = (301, 302, 303, 307, 308)


def write_reports(crawl: NamedCrawl, db: Reader, found: Summary, folder: Path, now: float) -> Summary:
    """Write all reports of *crawl*, with database *db*, to *folder*. Return *found* with the changes added."""
    with storage(folder):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    tables = []
    with _open_tables(crawl, db, found) as (parts, compared):
        for name, head, rows in parts:
            beginning = FirstRows(name, head)
            _write(folder / f"{name}.tsv", _table(head, beginning.watch(rows)))
            tables.append(beginning.table())
    found = _with_changes(found, compared)
    shown = _without_paths(found, crawl)
    _write(folder / "summary.txt", (f"{line}\n" for line in summary_lines(shown)))
    _write(folder / "summary.json", [json.dumps(summary_json(shown), indent=2, ensure_ascii=False), "\n"])
    report = build_report(crawl, db, shown, tables, now)
    _write(folder / "report.txt", (f"{line}\n" for line in report_lines(report)))
    _write(folder / "report.json", [as_json(report), "\n"])
    _write(folder / PAGE, html.render(report))
    for name, lines in heritrix_reports(crawl.title, db, shown):
        _write(folder / name, lines)
    return found


def read_report(crawl: NamedCrawl, db: Reader, found: Summary, now: float) -> CrawlReport:
    """Return the report of *crawl*, with database *db*, without writing files."""
    with _open_tables(crawl, db, found) as (parts, compared):
        tables = list(read_tables(parts))
    return build_report(crawl, db, _without_paths(_with_changes(found, compared), crawl), tables, now)


def as_json(report: CrawlReport) -> str:
    """Return *report* as formatted JSON."""
    return json.dumps(report_json(report), indent=2, ensure_ascii=False)


@contextmanager
def _open_tables(
    crawl: NamedCrawl, db: Reader, found: Summary
) -> Iterator[tuple[Iterable[Part], changes.ChangeReport | None]]:
    """Yield all tables, and the comparison with earlier crawls (None if there are none).

    The comparison is complete when its table has been read.
    """
    found = replace(found, archive=None if crawl.layout is None else crawl.layout.archive)
    parts: list[Part] = [(name, head, rows(db, found)) for name, (head, rows) in TABLES.items()]
    with nullcontext() if crawl.layout is None else open_earlier_crawls(crawl.layout) as memory:
        compared = None if memory is None else changes.ChangeReport(db, memory)
        if compared is not None:
            parts.append(("changes", changes.COLUMNS, compared.rows()))
        for name, columns in OF_COMMANDS.items():
            if crawl.layout is not None and (path := crawl.layout.reports / f"{name}.tsv").exists():
                parts.append((name, columns, _written(path, len(columns))))
        yield parts, compared


def _with_changes(found: Summary, compared: changes.ChangeReport | None) -> Summary:
    if compared is None:
        return found
    return replace(found, changes={what.value: compared.counts[what] for what in changes.UrlChange})


def _without_paths(found: Summary, crawl: NamedCrawl) -> Summary:
    """Return *found* without this machine's paths: the ending may name a file in the directory of *crawl*."""
    ending = found.ending
    directory = None if crawl.layout is None else crawl.layout.directory
    for path in () if directory is None else (directory.absolute(), directory.resolve()):
        ending = ending.replace(str(path), path.name)
    return replace(found, ending=ending)


def _write(path: Path, text: Iterable[str]) -> None:
    replace_file(path, lambda file: file.writelines(piece.encode() for piece in text))


def _written(path: Path, columns: int) -> Iterator[Row]:
    """Yield the rows that a command wrote to *path*."""
    with suppress(FileNotFoundError), storage(path), open_file(path) as file:
        file.readline(_WIDTH)  # the names of the columns
        while line := file.readline(_WIDTH):
            yield tuple(line.decode("utf-8", "replace").rstrip("\n").split("\t")[:columns])


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
    for url in totals.lost(db):
        yield url.url, url.reason, url.note, url.via


def _seeds(_db: Reader, found: Summary) -> Iterator[Row]:
    for seed in found.seeds:
        yield seed.url, seed.state, seed.status or "", seed.followed, verdict.seed_problem(seed)


def _verdict(_db: Reader, found: Summary) -> Iterator[Row]:
    for finding in found.verdict.findings:
        yield finding.topic, finding.message, finding.command


def _broken(db: Reader, found: Summary) -> Iterator[Row]:
    yield from broken_page_rows(db, found.archive)


def _held(db: Reader, _found: Summary) -> Iterator[Row]:
    for each in retry.held_patterns(db):
        yield each.pattern, each.rule, each.urls, each.beyond, each.example


TABLES: Tables = {
    "verdict": (("topic", "message", "next_command"), _verdict),
    "seeds": (("seed", "state", "status", "urls_found", "problem"), _seeds),
    "hosts": (("host", "archived", "failed", "excluded", "waiting", "captures", "bytes", "revisits"), _hosts),
    "status-codes": (("status", "captures"), lambda db, _found: totals.statuses(db)),
    "media-types": (("media_type", "captures", "bytes"), lambda db, _found: figures.media_types(db)),
    "failure-reasons": (("reason", "urls"), lambda _db, found: found.failures),
    "failures": (("url", "reason", "note", "via"), _lost),
    "broken-pages": (BROKEN_PAGES_COLUMNS, _broken),
    "missing-requisites": (("url", "reason", "page"), lambda db, _found: figures.missing_requisites(db)),
    "truncated": (("url", "status", "bytes", "reason", "date"), _truncated),
    "slowest-hosts": (("host", "mean_seconds", "captures", "total_seconds"), _slowest),
    "revisits": (("profile", "captures", "received_bytes", "saved_bytes"), lambda db, _found: figures.revisits(db)),
    "held": (("pattern", "rule", "urls", "further_links", "example"), _held),
    "refusals": (("rule", "links"), lambda db, _found: totals.refusals(db)),
}


def _table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    for row in chain([head], rows):
        yield "\t".join(printable(str(cell), _WIDTH) for cell in row) + "\n"


def broken_page_rows(db: Reader, archive: Path | None) -> Iterator[tuple[str, int, str]]:
    """Yield (URL, status, linking page), in order of discovery; *archive*: the WARC files, if they are within reach."""
    found = figures.broken_pages(db)
    statuses: dict[str, int] = {}
    linked: dict[str, list[str]] = {}
    for url, status, via in found:
        statuses[url], linked[url] = status, [via]
        if len(linked) == MAX_SEARCHED:
            break
    if linked and archive is not None:
        _find_links(db, archive, linked)
    for url, pages in linked.items():
        for page in pages:
            yield url, statuses[url], page
    yield from found


def _find_links(db: Reader, folder: Path, linked: dict[str, list[str]]) -> None:
    """Add the linking pages to *linked*."""
    for page, name, offset in figures.pages_stored(db, PAGES_READ):
        for target in _targets(folder, name, offset):
            pages = linked.get(target)
            if pages is not None and len(pages) < LINKS_KEPT and page not in pages:
                pages.append(page)


def _targets(folder: Path, name: str, offset: int) -> Iterator[str]:
    """Yield the links in the metadata record at *offset* of the WARC *name*; none if it cannot be read."""
    with suppress(ArchiveError, DamagedRecord, OSError, ValueError), record_at(folder, name, offset) as record:
        if record.type == "metadata" and (record.size or 0) <= LARGEST:
            block = b"".join(record.pieces())
            yield from (found[1].decode() for found in _LINK.finditer(block))
            links_of = VisitMetadata.parse(block).links_of if _UNCHANGED in block else None
            links = links_at(folder, *links_of) if links_of is not None else None
            yield from (address for address, hop, _ in (links.links if links is not None else ()) if hop is Hop.LINK)


def heritrix_reports(name: str, db: Reader, found: Summary) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the name and the text of each file for the crawl called *name*."""
    yield "hosts-report.txt", _heritrix_hosts(db)
    yield "responsecode-report.txt", _heritrix_codes(db)
    yield "mimetype-report.txt", _heritrix_types(db)
    yield "seeds-report.txt", _heritrix_seeds(db)
    yield "crawl-report.txt", _heritrix_crawl(name, db, found)


def _escape(text: str) -> str:
    return re.sub(r"\s+", "%20", printable(text, _WIDTH).strip()) or "unknown"


def _heritrix_hosts(db: Reader) -> Iterator[str]:
    yield (
        "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] "
        "[#dup-by-hash-bytes] [#not-modified-urls] [#not-modified-bytes]\n"
    )
    for host in figures.named_hosts(db):
        repeated = (host.identical, host.identical_bytes, host.unmodified, host.unmodified_bytes)
        novel = host.captures - host.identical - host.unmodified
        novel_bytes = host.received - host.identical_bytes - host.unmodified_bytes
        counts = (host.robots, host.waiting, novel, novel_bytes, *repeated)
        yield f"{host.captures} {host.received} {_escape(host.key)} {' '.join(map(str, counts))} \n"


def _heritrix_codes(db: Reader) -> Iterator[str]:
    yield "[#urls] [rescode]\n"
    counts = Counter[int]()
    for state, failure, status, urls in figures.endings(db):
        counts[heritrix_code(state, failure, status)] += urls
    for status, urls in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"{urls} {status}\n"


def heritrix_code(state: str, failure: str, status: int) -> int:
    """Return Heritrix's status for the result of a URL."""
    if state == "waiting":
        return 0
    if state == "excluded" and failure == Failure.ROBOTS:
        return ROBOTS_PRECLUDED
    if failure and state != "archived":
        with suppress(ValueError):
            return Failure(failure).heritrix_code
        return RUNTIME_EXCEPTION
    return status


def _heritrix_types(db: Reader) -> Iterator[str]:
    yield "[#urls] [#bytes] [mime-types]\n"
    for mime, captures, received in figures.media_types(db):
        yield f"{captures} {received} {_escape(mime)}\n"


def _heritrix_seeds(db: Reader) -> Iterator[str]:
    """Yield the seeds in Heritrix's order: those not crawled first, then by descending status."""
    yield "[code] [status] [seed] [redirect]\n"
    coded = [(heritrix_code(seed.state, seed.failure, seed.status), seed) for seed in figures.seeds(db)]
    for status, seed in sorted(coded, key=lambda pair: (pair[0] > 0, -pair[0])):
        moved = _redirect_target(seed) if status in _MOVED else ""
        yield f"{status} {'CRAWLED' if status > 0 else 'NOTCRAWLED'} {_escape(seed.url)}{' ' if moved else ''}{moved}\n"


def _redirect_target(seed: SeedFigures) -> str:
    """Return the target of a seed's redirect; the note has those that were known or not followed."""
    noted = _TARGET.search(seed.note)
    target = seed.moved or (noted[1].rstrip(",;") if noted else "")
    return _escape(target) if target else ""


def _heritrix_crawl(name: str, db: Reader, found: Summary) -> Iterator[str]:
    counted = found.totals
    seconds = counted.last - counted.first
    revisits = {profile: (captures, received) for profile, captures, received, _ in figures.revisits(db)}
    same, kept = revisits.get("identical-payload-digest", (0, 0)), revisits.get("server-not-modified", (0, 0))
    crawled = sum(heritrix_code(seed.state, seed.failure, seed.status) > 0 for seed in figures.seeds(db))
    lines = (
        f"crawl name: {_escape(name)}",
        f"crawl status: {'Finished - Ended by operator' if counted.waiting else 'Finished'}",
        f"duration: {_format_duration(seconds)}",
        "",
        f"seeds crawled: {crawled}",
        f"seeds uncrawled: {len(found.seeds) - crawled}",
        "",
        f"hosts visited: {sum(1 for host in figures.named_hosts(db) if host.captures)}",
        "",
        f"URIs processed: {counted.archived + counted.failed + counted.excluded + counted.held}",
        f"URI successes: {counted.archived}",
        f"URI failures: {counted.failed}",
        f"URI disregards: {counted.excluded + counted.held}",
        "",
        f"novel URIs: {counted.captures - same[0] - kept[0]}",
        f"duplicate-by-hash URIs: {same[0]}",
        f"not-modified URIs: {kept[0]}",
        "",
        f"total crawled bytes: {_size(counted.received)} ",
        f"novel crawled bytes: {_size(counted.received - same[1] - kept[1])}",
        f"duplicate-by-hash crawled bytes: {_size(same[1])} ",
        f"not-modified crawled bytes: {_size(kept[1])} ",
        "",
        f"URIs/sec: {counted.captures / seconds if seconds else 0:.2f}",
        f"KB/sec: {int(counted.received / 1024 / seconds) if seconds else 0}",
    )
    yield from (f"{line}\n" for line in lines)


def _format_duration(seconds: float) -> str:
    """Format *seconds* as `1d2h3m4s5ms`, from the largest unit needed."""
    left = round(seconds * 1000)
    parts: list[str] = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, left = divmod(left, size)
        if count or parts or unit == "ms":
            parts.append(f"{count}{unit}")
    return "".join(parts)


def _size(count: int) -> str:
    """Format *count* as `1299 (1.3 KiB)`."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{count} ({f'{amount:.0f}' if unit == 'B' else f'{amount:.1f}'} {unit})"
