"""Look captures up in a collection, and read the records that the index names.

One key of the index covers http and https, and a host with and without www; here the exact URL ranks before the
others. As in pywb, the original of a revisit is a capture with the same key and digest, or else the capture that its
record refers to by URL and date.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain, islice, takewhile
from math import inf
from operator import eq
from pathlib import Path
from shlex import quote

from archiver import url
from archiver.ask import METHOD
from archiver.collection import index_search, safe_paths
from archiver.collection.dates import DateRange, date_range
from archiver.collection.index_search import IndexLines
from archiver.collection.layout import NAME_A_COLLECTION, Layout
from archiver.collection.payload import read_answer
from archiver.collection.records import is_below, record_at
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.captures import CapturePlace, sample
from archiver.frontier.totals import open_totals
from archiver.humanize import count, printable
from archiver.model import Profile
from archiver.storage import OPEN
from archiver.warc import cdx, cdxj
from archiver.warc.cdxj import IndexEntry, is_plain, is_revisit
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record
from archiver.warc.records import parse_date, profile_of, referred, target_of

HIGHEST = "99999999999999"
_ALL = DateRange("0" * 14, HIGHEST)
_MOST_NEAR = 2000  # lines searched for URLs similar to a missing one
_NEAR = 3
PROBES = 20  # captures of crawl.db that are looked up in the index when it is opened
SHOWN = 5  # collections in a folder
MOST_PATH = 1000  # characters of a path
_OF_FOLDERS = ("index.html", "index.htm", "index.xhtml", "index.php", "default.html", "default.htm")
_ARC = (".arc", ".arc.gz")
SECOND = 14  # digits
MOST_TIED = 1000  # captures of one second whose records are read

Records = Callable[[str, int], AbstractContextManager[Record]]  # opens the record at an offset of a WARC


class Closest:
    """The capture closest to a date; of those equally close, the newest.

    An index has whole seconds. The records have the exact dates of captures in one second; where records have whole
    seconds too, the one that was written last is the newest.
    """

    def __init__(self, open_record: Callable[[IndexEntry], AbstractContextManager[Record]], at: DateRange) -> None:
        self._open_record = open_record
        self._at = at
        self._rank = (-inf, "")
        self._tied: list[IndexEntry] = []

    def add(self, entry: IndexEntry) -> None:
        """Compare *entry* with those seen before."""
        second = entry.timestamp[:SECOND]
        rank = -self._at.distance(second), second
        if rank > self._rank or not self._tied:
            self._rank, self._tied = rank, [entry]
        elif rank == self._rank and len(self._tied) < MOST_TIED:
            self._tied.append(entry)

    def best(self) -> IndexEntry | None:
        """Return the closest capture; None if there was none."""
        if len(self._tied) < 2:
            return next(iter(self._tied), None)
        return max(self._tied, key=self._order)

    def _order(self, entry: IndexEntry) -> tuple[int, bool, str, int]:
        return self._fraction(entry), not is_revisit(entry), entry.filename, entry.offset

    def _fraction(self, entry: IndexEntry) -> int:
        """Return the microseconds of the date in the record of *entry*; -1 if it cannot be read."""
        try:
            with self._open_record(entry) as record:
                date = parse_date(record.first("WARC-Date") or "")
            return date % 1_000_000 if cdxj.timestamp14(date) == entry.timestamp[:SECOND] else -1
        except (ArchiveError, DamagedRecord, ValueError, OverflowError, OSError):
            return -1


class Holdings:
    """One collection with its index open."""

    def __init__(self, directory: Path, index: IndexLines, records: Records) -> None:
        self.directory = directory
        self._index = index
        self._records = records

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator["Holdings"]:
        """Open the collection in *directory* as it is now."""
        layout = Layout(directory)
        safe_paths.check_files(directory)
        if not layout.archive.is_dir():
            if parts := sorted(each.name for each in directory.iterdir() if Layout(each).archive.is_dir()):
                raise ConfigError(_choice(directory, parts))
            whole = directory.parent if Layout(directory.parent).archive.is_dir() else None
            instead = f"; it is part of the collection {whole}" if whole else NAME_A_COLLECTION
            raise ConfigError(f"{directory} holds no archive: there is no {layout.archive.name}/ in it{instead}")
        if not layout.indexes.is_dir():
            raise ConfigError(f"{directory} holds no index; {_build_advice(directory)}")
        known = _some_captures(layout)  # read first, as a crawl may write meanwhile
        with index_search.open_index_files(layout.indexes) as index:
            if not len(index) and any(layout.archive.iterdir()):
                raise ConfigError(f"{layout.indexes} holds no index; {_build_advice(directory)}")
            index.check_ends()
            holdings = cls(directory, index, partial(record_of, layout.archive))
            holdings._refuse_incomplete(known)
            yield holdings

    @classmethod
    @contextmanager
    def of_index(cls, place: Path, indexes: Path, records: Records) -> Iterator["Holdings"]:
        """Open the index files in *indexes*, which list the archive at *place*; *records* opens its records."""
        with index_search.open_index_files(indexes) as index:
            yield cls(place, index, records)

    def entries(self) -> Iterator[IndexEntry]:
        """Yield every capture, by key and date."""
        return _once(self._index.since(b""))

    def of_host(self, host: str) -> Iterator[IndexEntry]:
        """Yield every capture of *host*, which may have a port, by key and date."""
        key = cdxj.lookup_key(f"http://{host}/").removesuffix("/").removesuffix(")")
        ends = (")",) if ":" in host.rpartition("]")[2] else (")", ":")
        found = chain.from_iterable(self._index.beginning((key + end).encode()) for end in ends)
        return (entry for entry in _once(found) if host in names(entry.url))

    def of_domain(self, domain: str) -> Iterator[IndexEntry]:
        """Yield every capture of *domain* and of all hosts below it, by key and date."""
        key = cdxj.lookup_key(f"http://{domain}/").removesuffix("/").removesuffix(")")
        found = chain.from_iterable(self._index.beginning((key + end).encode()) for end in (")", ",", ":"))
        return (entry for entry in _once(found) if any(f".{name}".endswith(f".{domain}") for name in names(entry.url)))

    def of_prefix(self, prefix: str) -> Iterator[IndexEntry]:
        """Yield every capture whose URL begins with *prefix*; without a scheme, it covers http and https."""
        bare = prefix.partition("://")[2] if "://" in prefix else prefix
        host, slash, path = bare.partition("/")
        if slash:
            folder = path.partition("?")[0].partition(";")[0].rpartition("/")[0]
            key = cdxj.lookup_key(url.canonical(f"http://{host}/{folder}") or f"http://{host}/").rstrip("/")
            found = _once(self._index.beginning(key.encode()))
        else:
            found = self.entries()
        return (entry for entry in found if _begins(entry.url, prefix))

    def beginning(self, key: str) -> Iterator[IndexEntry]:
        """Yield every capture whose key begins with *key*."""
        return _once(self._index.beginning(key.encode()))

    def of_url(self, address: str) -> Iterator[IndexEntry]:
        """Yield every capture of exactly *address*, by date. Percent escapes count as equal in capitals and not."""
        wanted = url.in_capitals(address)
        return (entry for entry in self.of_key(address) if url.in_capitals(_canonical(entry.url)) == wanted)

    def of_key(self, address: str) -> Iterator[IndexEntry]:
        """Yield every capture with the key of *address*, by date; then other methods than GET, and languages."""
        key = cdxj.lookup_key(address.encode("utf-8", "replace").decode())
        others = (f"{key}{'&' if '?' in key else '?'}{name}" for name in (METHOD, cdxj.LANGUAGE))
        further = (_once(self._index.beginning(other.encode())) for other in others)
        return chain(self._under(key), *further)

    def _under(self, key: str) -> Iterator[IndexEntry]:
        return _once(self._index.beginning(f"{key} ".encode()))

    def closest(self, address: str, at: DateRange | None = None) -> IndexEntry | None:
        """Return the capture of *address* closest to *at*, or without *at* the newest; None if there is none.

        If no capture has exactly this URL, return one that pywb would show for it. Responses to GET in the
        crawl's language rank first.
        """
        ranked = [self.closest_of((), at) for _ in range(4)]
        for entry in self.of_key(address):
            ranked[2 * (not is_plain(entry)) + (_canonical(entry.url) != address)].add(entry)
        return next((best for one in ranked if (best := one.best()) is not None), None)

    def closest_asked(self, looked_up: str, at: DateRange) -> IndexEntry | None:
        """Return the response to a POST that is looked up as *looked_up*, closest to *at*; None if there is none."""
        return self.closest_of(self._under(cdxj.safe_key(looked_up)), at).best()

    def closest_of(self, entries: Iterable[IndexEntry] = (), at: DateRange | None = None) -> "Closest":
        """Return the `Closest` of *entries*, to which more can be added; without *at* it finds the newest."""
        found = Closest(self.record, at or _ALL)
        for entry in entries:
            found.add(entry)
        return found

    def near(self, address: str) -> list[str]:
        """Return a few stored URLs that look most like *address*, which is not stored."""
        key = cdxj.lookup_key(address).partition("?")[0]
        names: dict[str, None] = {}
        for start in (key, key.rstrip("/").rpartition("/")[0] + "/"):
            for entry in islice(_once(self._index.beginning(start.encode())), _MOST_NEAR):
                names[entry.url] = None
            if len(names) >= _NEAR:
                break
        ranked = dict.fromkeys((*self._pages_of(address), *sorted(names, key=lambda name: -_alike(name, address))))
        return [*ranked][:_NEAR]

    def _pages_of(self, address: str) -> Iterator[str]:
        """Yield the stored index pages of the folder *address*."""
        page, sign, query = address.partition("?")
        if not sign and not query:
            folder = page.removesuffix("/") + "/"
            yield from (folder + name for name in _OF_FOLDERS if any(self.of_url(folder + name)))

    def record(self, entry: IndexEntry) -> AbstractContextManager[Record]:
        """Open the record of *entry*."""
        return self.record_at(entry.filename, entry.offset)

    def record_at(self, name: str, offset: int) -> AbstractContextManager[Record]:
        """Open the record at a place that the index names."""
        return self._records(name, offset)

    def original(self, entry: IndexEntry) -> IndexEntry | None:
        """Return the capture that stores the payload of *entry*, for most itself; None if that is missing."""
        if not is_revisit(entry):
            return entry
        found = _same_payload(self._under(entry.key), entry)
        if found is not None:
            return found
        with self.record(entry) as record:
            named, not_modified = referred(record), profile_of(record) is Profile.NOT_MODIFIED
        at = _parsed_date(named.date)
        of_key = self.of_key(_canonical(named.url or entry.url))
        others = [one for one in of_key if not is_revisit(one) and is_plain(one)]
        same = [one for one in others if _digest(one.digest) == _digest(entry.digest)]
        by_date = at is not None and (
            not_modified or not entry.digest.strip("-")
        )  # the revisit has no digest that identifies the payload
        return self.closest_of(same or (others if by_date else ()), at).best()

    def location(self, entry: IndexEntry) -> str | None:
        """Return the target of the redirect *entry*; None if it has none."""
        with self.record(entry) as record:
            reference = read_answer(record).framing.first("location")
        return url.join(entry.url, _utf8(reference)) if reference else None

    def _refuse_incomplete(self, known: Iterable[CapturePlace]) -> None:
        """Raise `ArchiveError` if the index lacks one of the captures *known*, although its record can be read."""
        for capture in known:
            if not self._lists(capture) and self._can_read(capture):
                raise ArchiveError(
                    f"the index of {self.directory} is not complete: it lacks {capture.url}, of which crawl.db knows a "
                    f"capture; rebuild it: archiver index {quote(str(self.directory))}"
                )

    def _lists(self, capture: CapturePlace) -> bool:
        found = self._under(cdxj.lookup_key(capture.url))
        return any((entry.filename.removesuffix(OPEN), entry.offset) == capture[1:] for entry in found)

    def _can_read(self, capture: CapturePlace) -> bool:
        try:
            with self.record_at(capture.warc, capture.offset) as record:
                deque(record.pieces(), maxlen=0)
                return target_of(record) == capture.url
        except (ArchiveError, DamagedRecord, OSError):
            return False  # `verify` says what is wrong with it


def _some_captures(layout: Layout) -> list[CapturePlace]:
    """Return some captures that crawl.db knows; none if it cannot be read, which other commands report."""
    if not layout.database.is_file():
        return []
    try:
        with open_totals(layout.directory) as db:
            return sample(db, PROBES, cdxj.lookup_key)
    except (ArchiveError, ConfigError):
        return []


def _build_advice(directory: Path) -> str:
    return f"build it with: archiver index {quote(str(directory))}"


def record_of(archive: Path, name: str, offset: int) -> AbstractContextManager[Record]:
    """Open the record at a place that any index names; nothing outside *archive* is read."""
    if not (is_below(name) and 0 <= offset < 1 << 63):
        raise ArchiveError(f"{archive}: its index names an impossible place: offset {offset} of {name[:200]!r}")
    if name.lower().endswith(_ARC):
        path = archive / name
        raise ArchiveError(f"{path} is an ARC file; convert it: archiver import {quote(str(path))} -o DIR")
    return record_at(archive, name, offset)


def _once(found: Iterable[bytes]) -> Iterator[IndexEntry]:
    """Yield each entry of sorted *found* once; two files may hold it while a crawl merges them."""
    last: set[tuple[str, int]] = set()
    when = ("", "")
    for line in found:
        entry = cdx.parse_line(line)
        if entry is None:
            continue
        if (entry.key, entry.timestamp) != when:
            last.clear()
            when = (entry.key, entry.timestamp)
        place = (entry.filename.removesuffix(OPEN), entry.offset)
        if place not in last:
            last.add(place)
            yield entry


def _same_payload(entries: Iterable[IndexEntry], revisit: IndexEntry) -> IndexEntry | None:
    """Return the latest capture before *revisit* with its digest, or else the first after it."""
    digest, best = _digest(revisit.digest), None
    for entry in entries if digest else ():
        if is_revisit(entry) or _digest(entry.digest) != digest:
            continue
        if best is not None and entry.timestamp > revisit.timestamp:
            break
        best = entry
    return best


def _alike(one: str, other: str) -> int:
    """Count the common characters at the beginnings and ends of two URLs, without their schemes."""
    one, other = one.partition("://")[2], other.partition("://")[2]
    return sum(_same(one, other)) + sum(_same(reversed(one), reversed(other)))


def _same(one: Iterable[str], other: Iterable[str]) -> Iterator[bool]:
    return takewhile(bool, map(eq, one, other))


def _choice(directory: Path, parts: list[str]) -> str:
    """Return the message for a *directory* with collections as its *parts*."""
    shown = " ".join(quote(printable(str(directory / each), MOST_PATH)) for each in parts[:SHOWN])
    more = " …" if len(parts) > SHOWN else ""
    return f"{directory} holds no archive, but {count(len(parts), 'collection')}; name one of them: {shown}{more}"


def _digest(written: str) -> str:
    """Normalize a digest for comparison: some indexers omit `sha1:`, and some writers name SHA-256 `sha-256`."""
    name, colon, value = written.partition(":")
    name = name.lower().replace("-", "")
    return value if name == "sha1" else f"{name}:{value}" if colon else written


def _parsed_date(date: str) -> DateRange | None:
    try:
        return date_range(date, "WARC-Refers-To-Date")
    except ConfigError:
        return None


def _canonical(address: str) -> str:
    return url.canonical(address) or address


def names(address: str) -> tuple[str, ...]:
    """Return the host of *address* with and without its port."""
    found = url.canonical(address)
    return (url.host(found), url.authority(found)) if found else ()


def _begins(address: str, prefix: str) -> bool:
    return (address if "://" in prefix else address.partition("://")[2]).startswith(prefix)


def _utf8(value: str) -> str:
    """Decode the *value* of a header as UTF-8 if possible."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
