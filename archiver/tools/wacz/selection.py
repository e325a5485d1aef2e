"""Select the captures of some hosts, or of some crawls: a collection of its own, which is packed in place of the whole.

Records are copied byte for byte, with the warcinfo record of their file. A revisit needs the record that it refers to,
so that comes along from any host and any crawl, with its metadata. It is a page only if the revisit says that the page
was not modified since. Of some hosts, damaged records and logs are left out; the files of a crawl come whole. The
collection is on the disk of the package until that is written.
"""

import shutil
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Self

from archiver import url
from archiver.browser.page_info import page_of
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings, names
from archiver.collection.reindex import rebuild
from archiver.errors import ArchiveError, ConfigError
from archiver.model import Profile
from archiver.storage import DRAFT, storage
from archiver.tools.wacz.contents import PackContents, read_contents
from archiver.tools.wacz.pages import PageRow
from archiver.warc.cdxj import IndexEntry, is_revisit, timestamp14
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from archiver.warc.records import profile_of, referred, target_of
from archiver.warc.warcinfo import ForgedRecords

BELOW = "*."  # begins the pattern of a domain and all hosts below it
LOOKUP = "dns:"  # begins the URI of a look-up of a host
REMEMBERED = 100  # records to which one without a URL may belong: its neighbours
_PIECE = 1 << 20

Report = Callable[[int, int], None]  # gets the number of a file, and that of all


@dataclass(frozen=True, slots=True)
class HostSelection:
    """Hosts, and domains with all hosts below them."""

    hosts: frozenset[str]
    domains: frozenset[str]

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """Return the selection of the hosts and patterns *given*. Raises `ConfigError` if one is neither."""
        hosts, domains = set[str](), set[str]()
        for text in given:
            name = text.strip().removeprefix(BELOW)
            address = None if set(name) & set("/?#@*\\") else url.canonical(f"http://{name}/")
            if not name or address is None:
                raise ConfigError(f"--host {text!r} is not a host; write it like example.org or *.example.org")
            (domains if text.strip().startswith(BELOW) else hosts).add(url.authority(address))
        return cls(frozenset(hosts), frozenset(domains))

    def covers(self, address: str) -> bool:
        """Return True if the host of the URL *address* is selected."""
        found = names(address)
        return not self.hosts.isdisjoint(found) or any(
            f".{name}".endswith(f".{domain}") for name in found for domain in self.domains
        )

    def entries(self, holdings: Holdings) -> Iterator[IndexEntry]:
        """Yield the captures in *holdings* that are selected; twice if two patterns match."""
        of_hosts = map(holdings.of_host, sorted(self.hosts))
        return chain.from_iterable(chain(of_hosts, map(holdings.of_domain, sorted(self.domains))))

    def __str__(self) -> str:
        """Return what the user gave."""
        return " or ".join(sorted([*self.hosts, *(f"{BELOW}{domain}" for domain in self.domains)]))


@dataclass(frozen=True, slots=True)
class CaptureSelection:
    """The captures of some hosts, of some crawls, or of some hosts in some crawls."""

    hosts: HostSelection | None = None  # None: all
    files: frozenset[str] | None = None  # names of the WARC files of those crawls; None: all
    crawls: str = ""  # which, for messages

    def covers(self, file: str, address: str) -> bool:
        """Return True if records of *address* in the WARC file *file* are selected."""
        return self.has_file(file) and (self.hosts is None or self.hosts.covers(address))

    def has_file(self, file: str) -> bool:
        """Return True if records of the WARC file *file* may be selected."""
        return self.files is None or file in self.files

    def is_whole(self, file: str) -> bool:
        """Return True if all records of the WARC file *file* are selected."""
        return self.hosts is None and self.has_file(file)

    def entries(self, holdings: Holdings) -> Iterator[IndexEntry]:
        """Yield the captures in *holdings* that are selected; twice if two patterns match."""
        found = holdings.entries() if self.hosts is None else self.hosts.entries(holdings)
        return (entry for entry in found if self.has_file(entry.filename))

    def __str__(self) -> str:
        """Return what the user gave."""
        return " in ".join(filter(None, (str(self.hosts or ""), self.crawls)))


@dataclass(frozen=True, slots=True)
class ChosenContents:
    """What is packed of a collection."""

    contents: PackContents
    damage: tuple[str, ...]  # that is left out
    lists: Callable[[PageRow], bool]  # tells if a page is listed


@contextmanager
def selected(
    contents: PackContents, wanted: CaptureSelection, output: Path, report: Report
) -> Iterator[ChosenContents]:
    """Yield what *contents* has of the captures *wanted*, in a folder beside *output*."""
    originals = _originals(contents.directory, wanted)
    folder = output.with_name(f"{output.name}.chosen{DRAFT}")
    layout = Layout(folder)
    damage: list[str] = []
    try:
        with storage(folder):
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
            layout.archive.mkdir(parents=True)
        for number, warc in enumerate(contents.warcs, 1):
            report(number, len(contents.warcs))
            sieve = _Sieve(wanted, warc.path.name, originals.places[warc.path.name])
            _copy(warc.path, layout.archive / warc.path.name, sieve)
            damage += [f"{warc.path}: {each}" for each in sieve.damage]
        if not any(layout.archive.iterdir()):
            raise ConfigError(f"{contents.directory} holds no undamaged capture of {wanted}")
        rebuild(folder)
        yield ChosenContents(read_contents(folder), tuple(damage), _listing(wanted, originals))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class _Originals:
    """The records outside of a selection that its revisits refer to."""

    places: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))  # by WARC file
    unlisted: set[tuple[str, str]] = field(default_factory=set)  # URL and second of those that are no pages
    listed: set[tuple[str, str]] = field(default_factory=set)  # … and of pages that were not modified since

    def add(self, original: IndexEntry, *, page: bool) -> None:
        self.places[original.filename].add(original.offset)
        which = url.canonical(original.url) or original.url, original.timestamp[:_SECOND]
        (self.listed if page else self.unlisted).add(which)


def _originals(directory: Path, wanted: CaptureSelection) -> _Originals:
    """Return the records outside of *wanted* that the revisits in it refer to."""
    found = _Originals()
    count = 0
    with Holdings.open(directory) as holdings:
        for entry in wanted.entries(holdings):
            count += 1
            for original, unmodified in _originals_of(holdings, entry) if is_revisit(entry) else ():
                if not wanted.covers(original.filename, original.url):
                    found.add(original, page=unmodified and original.url == entry.url)
    if not count:
        raise ConfigError(f"{directory} holds no capture of {wanted}")
    return found


def _originals_of(holdings: Holdings, revisit: IndexEntry) -> Iterator[tuple[IndexEntry, bool]]:
    """Yield the captures in which programs find the payload of *revisit*: by its digest, and by what it refers to.

    With each comes whether the server said that the payload was not modified.
    """
    with suppress(ArchiveError, DamagedRecord, OSError):
        with holdings.record(revisit) as record:
            named, unmodified = referred(record), profile_of(record) is Profile.NOT_MODIFIED
        if (best := holdings.original(revisit)) is not None:
            yield best, unmodified
        date = named.date.translate(_DIGITS_ONLY)[:_SECOND]
        address = url.canonical(named.url) or named.url
        for each in holdings.of_url(address):
            if date and each.timestamp[:_SECOND] == date:
                yield each, unmodified


def _listing(wanted: CaptureSelection, originals: _Originals) -> Callable[[PageRow], bool]:
    """Return a function that tells if a page of the package is listed."""
    hidden = originals.unlisted - originals.listed if wanted.files is not None else set()

    def lists(page: PageRow) -> bool:
        if wanted.hosts is not None and not wanted.hosts.covers(page.url):
            return False
        return not hidden or (url.canonical(page.url) or page.url, timestamp14(page.timestamp)) not in hidden

    return lists


_SECOND = 14  # digits
_DIGITS_ONLY = str.maketrans("", "", "-:TZ")


class _Sieve:
    """Finds the parts of one WARC file that are wanted."""

    def __init__(self, wanted: CaptureSelection, file: str, originals: Collection[int]) -> None:
        self.whole = wanted.is_whole(file)
        self._wanted = wanted
        self._file = file
        self._originals = originals
        self._noted: deque[str] = deque(maxlen=REMEMBERED)  # originals, whose metadata comes along
        self._ids: deque[str] = deque(maxlen=REMEMBERED)  # of records that were wanted, the last ones
        self.damage: list[DamagedRecord] = []

    def parts(self, file: BinaryIO) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each part of *file* that is wanted, and before them their warcinfo record."""
        info: tuple[int, int] | None = None
        for kind, start, end in self._members(file):
            if kind == "info":
                info = start, end
                continue
            if info is not None:
                yield info
                info = None
            yield start, end

    def _members(self, file: BinaryIO) -> Iterator[tuple[str, int, int]]:
        """Yield the kind ("info" or "wanted"), start and end of each record, or of each gzip member with several."""
        forged = ForgedRecords(file)
        start, kind, read = 0, "", False
        for item in scan(file):
            if forged.is_forged(item):
                continue
            if item.offset != start:
                if kind:
                    yield kind, start, item.offset
                start, kind, read = item.offset, "", False
            if isinstance(item, DamagedRecord):
                if self._wanted.has_file(self._file) and (kind or not read):  # else its header is of another host
                    self.damage.append(item)
                kind = ""
                continue
            read = True
            if self._takes(item):
                kind = "wanted"
            elif item.type == "warcinfo":
                kind = kind or "info"
        if kind:
            yield kind, start, file.seek(0, 2)

    def _takes(self, record: Record) -> bool:
        target, named = target_of(record), (*record.all("WARC-Concurrent-To"), *record.all("WARC-Refers-To"))
        if not target:
            return any(name in self._ids for name in named)
        if self._wanted.covers(self._file, _url_of(target)):
            self._ids.append(record.first("WARC-Record-ID") or "")
            return True
        if record.type == "metadata" and self._wanted.files is not None:
            return any(name in self._noted for name in named)
        if taken := record.type in ("response", "resource") and record.offset in self._originals:
            self._noted.append(record.first("WARC-Record-ID") or "")
        return taken


def _url_of(target: str) -> str:
    """Return the URL to which the record with the URI *target* belongs: mostly itself."""
    return f"http://{target.removeprefix(LOOKUP)}/" if target.startswith(LOOKUP) else page_of(target)


def _copy(path: Path, target: Path, sieve: _Sieve) -> None:
    """Copy the parts of the WARC file at *path* that *sieve* finds to *target*, if there are any."""
    with storage(path):
        scanned, source = path.open("rb"), path.open("rb")
    with scanned, source:
        parts = iter([(0, scanned.seek(0, 2))]) if sieve.whole else sieve.parts(scanned)
        first = next(parts, None)
        if first is None:
            return
        with storage(target), target.open("wb") as file:
            for start, end in chain((first,), parts):
                file.writelines(_pieces(path, source, start, end))


def _pieces(path: Path, file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of *file*, which is at *path*, from *start* to *end*."""
    file.seek(start)
    left = end - start
    while left:
        with storage(path):
            piece = file.read(min(_PIECE, left))
        if not piece:
            raise ArchiveError(
                f"{path}: it became shorter while it was packed; pack it again when nothing writes to it"
            )
        yield piece
        left -= len(piece)
