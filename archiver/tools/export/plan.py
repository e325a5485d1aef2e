"""Choose the capture for each URL, name its file, and follow redirects.

Of the captures of one URL with a 2xx response, the newest is chosen, or the one closest to a date. If there is none, a
redirect (3xx) leads on. Memory grows with the number of URLs, by some 600 bytes each, not with their content.
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
_MAX_PROBLEMS = 1000  # problems kept for the report


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
    """All files to write."""

    files: list[PlannedFile] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # what could not be exported, and why

    def add_problem(self, text: str) -> None:
        """Add a problem."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(text)


def plan_export(holdings: Holdings, hosts: Iterable[str], at: DateRange | None) -> ExportPlan:
    """Return the plan for all of *holdings*, or for *hosts* only."""
    names, plan, seen = FileNames(), ExportPlan(), set[str]()
    chosen = [holdings.of_host(host) for host in sorted({host.lower() for host in hosts})] or [holdings.entries()]
    for entries in chosen:
        for _, group in groupby(entries, lambda entry: entry.key):
            for address, entry in _best(holdings, group, at or _ANY_TIME):
                if address in seen:
                    continue
                seen.add(address)
                try:
                    _add(holdings, address, entry, names, plan)
                except (ArchiveError, DamagedRecord) as error:
                    plan.add_problem(f"{address}: {error}")
    return plan


def _best(holdings: Holdings, group: Iterable[IndexEntry], at: DateRange) -> Iterator[tuple[str, IndexEntry]]:
    """Yield each URL of one key with its capture. Captures with their own payload come before revisits without it."""
    pages: dict[str, IndexEntry] = {}
    own: dict[str, IndexEntry] = {}
    redirects: dict[str, IndexEntry] = {}
    for entry in group:
        address = None if METHOD in entry.key else url.canonical(entry.url)
        if address is None:
            continue
        if _has_payload(holdings, entry):
            pages[address] = closer(pages.get(address), entry, at)
            if not is_revisit(entry):
                own[address] = closer(own.get(address), entry, at)
        elif entry.status[:1] == "3" and not is_revisit(entry):
            redirects[address] = closer(redirects.get(address), entry, at)
    for address, entry in (redirects | pages).items():
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


def _add(holdings: Holdings, address: str, entry: IndexEntry, names: FileNames, plan: ExportPlan) -> None:
    if entry.status[:1] == "3" and not is_revisit(entry):
        target = holdings.location(entry)
        if target is not None and target != address:
            plan.redirects[address] = target
        return
    original = holdings.original(entry)
    if original is None:
        plan.add_problem(f"{address}: its payload is in another collection; this one has only a revisit")
        return
    if is_revisit(entry) and original.status[:1] not in ("2", "-"):
        return
    media_type, page = _type(holdings, original)
    path = names.add(address, media_type)
    plan.files.append(PlannedFile(address, path, intern(original.filename), original.offset, entry.timestamp, page))


def _type(holdings: Holdings, entry: IndexEntry) -> tuple[str, bool]:
    """Return the media type of the payload of *entry*, and whether it is a page."""
    if entry.mime not in ("unk", "", "application/octet-stream", "text/plain"):
        return entry.mime, entry.mime in ("text/html", "application/xhtml+xml")
    with holdings.record(entry) as record:
        begin = beginning(iter(read_answer(record).decoded()), SNIFFED)
    media_type = "" if entry.mime == "unk" else entry.mime
    page = is_page(Document(entry.url, media_type, None, begin))
    return ("text/html" if page else media_type), page
