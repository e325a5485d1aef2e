"""Heritrix's report files, with its columns and names, for tools that read them.

Heritrix counts URIs by the thread that finished them; here the numbers come from crawl.db. Spaces in names are escaped,
because spaces separate the columns. Bytes are bytes received.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from archiver.errors import ROBOTS_PRECLUDED, Failure
from archiver.frontier import figures
from archiver.frontier.connection import Reader
from archiver.frontier.figures import SeedFigures
from archiver.frontier.gathered.redirects import MOVED
from archiver.humanize import printable
from archiver.tools.report.report import Summary

RUNTIME_EXCEPTION = -5  # Heritrix's code for a failure that this version does not know
LONGEST_NAME = 20_000  # characters; longer than the longest URL

_TARGET = re.compile(rf"{MOVED}(\S+)")
_MOVED = (301, 302, 303, 307, 308)


def heritrix_reports(name: str, db: Reader, found: Summary) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the name and the text of each file for the crawl called *name*."""
    yield "hosts-report.txt", _heritrix_hosts(db)
    yield "responsecode-report.txt", _heritrix_codes(db)
    yield "mimetype-report.txt", _heritrix_types(db)
    yield "seeds-report.txt", _heritrix_seeds(db)
    yield "crawl-report.txt", _heritrix_crawl(name, db, found)


def _escape(text: str) -> str:
    return re.sub(r"\s+", "%20", printable(text, LONGEST_NAME).strip()) or "unknown"


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
