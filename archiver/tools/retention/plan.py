"""What `archiver prune` would delete: whole WARC files of earlier crawls that no file that stays refers to.

The collection is verified first, and one with faults is left alone. The same pass shows which file refers to which: by
the ID of a record, by URL and date, or, if a revisit names nothing that is there, by its payload digest. A file that
stays because another one refers to it may refer to further files, so these stay too.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote

from archiver.collection.earlier_crawls import stamp_of
from archiver.collection.imports import ImportedFile, imported_files
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import CollectedCrawl, NamedCrawl
from archiver.collection.store import StoredFiles
from archiver.errors import ConfigError
from archiver.frontier.captures import closed_files
from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import VerifyProgress

PRUNED = "archiver prune: crawl of "  # the source, in imports.json, of a file whose crawl was pruned

_NAMED = (
    """SELECT DISTINCT r.file, o.file FROM records AS r JOIN records AS o ON o.id = r.origin_id
       WHERE r.origin_id <> '' AND o.file <> r.file""",
    """SELECT DISTINCT r.file, o.file FROM records AS r JOIN records AS o ON o.id = r.concurrent
       WHERE r.concurrent <> '' AND o.file <> r.file""",
    """SELECT DISTINCT r.file, o.file FROM records AS r JOIN records AS o ON o.url = r.origin AND o.date = r.origin_date
       WHERE r.origin <> '' AND o.file <> r.file""",
    """WITH lost AS (
           SELECT r.file, r.digest FROM records AS r WHERE r.type = 'revisit' AND r.digest <> ''
           AND NOT EXISTS (SELECT 1 FROM records AS o WHERE o.url = r.origin AND o.date = r.origin_date)
           AND NOT EXISTS (SELECT 1 FROM records AS o WHERE o.id = r.origin_id AND r.origin_id <> '')
       )
       SELECT DISTINCT lost.file, o.file FROM records AS o JOIN lost ON lost.digest = o.digest
       WHERE o.type IN ('response', 'resource') AND o.file <> lost.file""",
)


@dataclass(slots=True)
class References:
    """Which WARC files refer to which, by name, and the records of each."""

    named: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    records: dict[str, int] = field(default_factory=dict)

    def read(self, inventory: sqlite3.Connection) -> None:
        """Read them from the *inventory* of `verify`."""
        names = dict(inventory.execute("SELECT id, name FROM files"))
        for query in _NAMED:
            for one, other in inventory.execute(query):
                self.named[names[one]].add(names[other])
        counts = inventory.execute("SELECT file, count(*) FROM records GROUP BY file")
        self.records = {names[file]: count for file, count in counts}


def unneeded(candidates: Collection[str], every: Collection[str], named: Mapping[str, Collection[str]]) -> set[str]:
    """Return those *candidates* that no file that stays refers to; *named*: what each of *every* file refers to."""
    left = set(candidates)
    waiting = [name for name in every if name not in left]
    while waiting:
        needed = left.intersection(named.get(waiting.pop(), ()))
        left -= needed
        waiting += needed
    return left


def _disowned(each: ImportedFile, old: Collection[CollectedCrawl]) -> ImportedFile:
    """Return *each* without its crawl, if that is one of *old*."""
    return replace(each, adopted=False) if each.adopted and any(each.name in crawl.files() for crawl in old) else each


@dataclass(frozen=True, slots=True)
class PrunedFile:
    """A WARC file of an earlier crawl."""

    name: str
    size: int
    crawl: str  # when its crawl began


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What is deleted, and what stays of earlier crawls."""

    crawls: tuple[CollectedCrawl, ...]
    deleted: tuple[PrunedFile, ...]
    needed: tuple[PrunedFile, ...]  # files of earlier crawls that stay, because others refer to them
    imports: tuple[ImportedFile, ...]  # imports.json afterwards, which has these too

    @property
    def size(self) -> int:
        """The bytes that are deleted."""
        return sum(each.size for each in self.deleted)


def check_prunable(layout: Layout, crawls: Collection[CollectedCrawl]) -> None:
    """Refuse a collection of which we do not see everything. Raises `ConfigError`."""
    where = layout.directory
    elsewhere = next((each for each in (layout, *(one.layout for one in crawls)) if each.address.exists()), None)
    if elsewhere is not None:
        raise ConfigError(
            f"{elsewhere.address}: this crawl has its queue in PostgreSQL, and perhaps files on other machines; prune "
            "works only where all files are"
        )
    if any(StoredFiles(layout).everywhere()):
        raise ConfigError(
            f"{where} was copied to a store, which would keep what is deleted here; prune works without a store only"
        )


def plan_for(
    layout: Layout, old: Collection[CollectedCrawl], when: str, progress: Callable[[VerifyProgress], None]
) -> PrunePlan:
    """Return what to do so that the crawls *old* are gone; *when*: the date now.

    Raises `ConfigError` if the collection has faults.
    """
    references = References()
    report = verify([layout.directory], progress, inspect=references.read)
    if not report.ok:
        raise ConfigError(
            f"{layout.directory} has faults, so nothing is deleted; to see them: archiver verify "
            f"{quote(str(layout.directory))}"
        )
    known = imported_files(layout)
    rows: dict[str, ImportedFile] = {}
    for crawl in old:
        with NamedCrawl.in_directory(crawl.layout.directory).read() as db:
            closed = {each.name: each for each in closed_files(db)}
        for name in sorted(crawl.files().difference(each.name for each in known if each.adopted)):
            if name not in closed:
                raise ConfigError(f"{layout.archive / name}: no checksum of it is known, so it cannot be pruned")
            row = closed[name]
            source, digest = f"{PRUNED}{stamp_of(crawl.layout)}", row.digest.partition(":")[2]
            counted = references.records.get(name, 0)
            rows[name] = ImportedFile(name, source, "", "", digest, row.size, counted, when, indexed=True)
    rows |= {each.name: each for each in known if each.source.startswith(PRUNED) and not each.package}
    gone = unneeded(rows, [path.name for path in layout.archive.iterdir()], references.named)
    others = tuple(_disowned(each, old) for each in known if each.name not in rows)
    kept = tuple(each for name, each in sorted(rows.items()) if name not in gone)
    files = {name: PrunedFile(name, each.bytes, each.source.removeprefix(PRUNED)) for name, each in rows.items()}
    deleted = tuple(files[name] for name in sorted(gone))
    return PrunePlan(tuple(old), deleted, tuple(files[each.name] for each in kept), (*others, *kept))
