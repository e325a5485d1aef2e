"""Which capture of each URL becomes a file, what it is called, and where redirects lead.

Of the captures of one URL with an answer (2xx) the newest, or the one closest to a date; where there is none, a
redirect (3xx) leads on. Memory grows with the number of URLs, some 600 bytes for each, not with their contents.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from sys import intern

from archiver import url
from archiver.collection.dates import DateRange
from archiver.collection.lookup import METHOD, Holdings, closer
from archiver.collection.payload import read_answer
from archiver.errors import ArchiveError
from archiver.extract import Document, is_page
from archiver.extract.sniff import SNIFFED
from archiver.http import beginning
from archiver.tools.export.filenames import FileNames
from archiver.warc.cdxj import IndexEntry, is_revisit
from archiver.warc.members import DamagedRecord

_ANY_TIME = DateRange("0" * 14, "9" * 14)
_EMPTY = frozenset(("204", "205"))
_MOST_TROUBLES = 1000  # that are kept to be told


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A capture that becomes a file."""

    url: str
    path: str  # below the folder, with `/` between its parts
    warc: str
    offset: int
    timestamp: str
    page: bool


@dataclass
class ExportPlan:
    """All that is to be written."""

    files: list[PlannedFile] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)  # what could not be had, and why

    def trouble(self, text: str) -> None:
        """Keep that something could not be had."""
        if len(self.troubles) < _MOST_TROUBLES:
            self.troubles.append(text)


def plan_export(holdings: Holdings, hosts: Iterable[str], at: DateRange | None) -> ExportPlan:
    """The plan for all of *holdings*, or for these *hosts*."""
    names, plan, seen = FileNames(), ExportPlan(), set[str]()
    chosen = [holdings.of_host(host) for host in sorted({host.lower() for host in hosts})] or [holdings.entries()]
    for entries in chosen:
        for _, group in groupby(entries, lambda entry: entry.key):
            for address, entry in _best(holdings, group, at or _ANY_TIME):
                if address in seen:
                    continue
                seen.add(address)
                try:
                    _take(holdings, address, entry, names, plan)
                except (ArchiveError, DamagedRecord) as error:
                    plan.trouble(f"{address}: {error}")
    return plan


def _best(holdings: Holdings, group: Iterable[IndexEntry], at: DateRange) -> Iterator[tuple[str, IndexEntry]]:
    """Each URL that has one key, and its capture: one whose payload is held goes before a revisit whose is not."""
    pages: dict[str, IndexEntry] = {}
    own: dict[str, IndexEntry] = {}
    moved: dict[str, IndexEntry] = {}
    for entry in group:
        address = None if METHOD in entry.key else url.canonical(entry.url)
        if address is None:
            continue
        if _has_payload(holdings, entry):
            pages[address] = closer(pages.get(address), entry, at)
            if not is_revisit(entry):
                own[address] = closer(own.get(address), entry, at)
        elif entry.status[:1] == "3" and not is_revisit(entry):
            moved[address] = closer(moved.get(address), entry, at)
    for address, entry in (moved | pages).items():
        lost = is_revisit(entry) and address in own and _original(holdings, entry) is None
        yield address, own[address] if lost else entry


def _original(holdings: Holdings, entry: IndexEntry) -> IndexEntry | None:
    try:
        return holdings.original(entry)
    except (ArchiveError, DamagedRecord):
        return None


def _has_payload(holdings: Holdings, entry: IndexEntry) -> bool:
    if is_revisit(entry):
        return entry.status in ("304", "-", "") or entry.status[:1] == "2"
    if entry.status == "-":
        try:
            with holdings.record(entry) as record:
                return record.type == "resource"
        except (ArchiveError, DamagedRecord):
            return False
    return entry.status[:1] == "2" and entry.status not in _EMPTY


def _take(holdings: Holdings, address: str, entry: IndexEntry, names: FileNames, plan: ExportPlan) -> None:
    if entry.status[:1] == "3" and not is_revisit(entry):
        target = holdings.location(entry)
        if target is not None and target != address:
            plan.redirects[address] = target
        return
    original = holdings.original(entry)
    if original is None:
        plan.trouble(f"{address}: its payload lies in another collection, for this one has a revisit only")
        return
    if is_revisit(entry) and original.status[:1] not in ("2", "-"):
        return
    media_type, page = _type(holdings, original)
    path = names.give(address, media_type)
    plan.files.append(PlannedFile(address, path, intern(original.filename), original.offset, entry.timestamp, page))


def _type(holdings: Holdings, entry: IndexEntry) -> tuple[str, bool]:
    """The media type by which the payload of *entry* is called, and whether it is a page."""
    if entry.mime not in ("unk", "", "application/octet-stream", "text/plain"):
        return entry.mime, entry.mime in ("text/html", "application/xhtml+xml")
    with holdings.record(entry) as record:
        begin = beginning(iter(read_answer(record).decoded()), SNIFFED)
    media_type = "" if entry.mime == "unk" else entry.mime
    page = is_page(Document(entry.url, media_type, None, begin))
    return ("text/html" if page else media_type), page
