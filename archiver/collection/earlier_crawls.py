"""The earlier crawls of a collection: the newest stored version of a URL, and conditional requests for a newer one.

Each earlier crawl has a folder, named after the second in which it began. A URL is requested conditionally if a whole
response with status 200 is stored, the record that holds its payload is in this collection and undamaged, and that
payload would be shown in the same way. Otherwise a 304 could lose something. A revisit is followed to that record; the
validators are those of the URL's own newest head. The lookups block; any thread may call them.

A validator is sent back byte for byte, or not at all. Values that could match more than the one stored version (`*`,
several tags, a control character) are not sent.
Source: RFC 9110 §8.8, §13.1, §15.4.5; RFC 9111 §4.3.4.
"""

import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.ask import METHOD
from archiver.collection.dates import date_range
from archiver.collection.layout import PRUNED, Layout, rounds
from archiver.collection.payload import stored_answer
from archiver.collection.records import original_at, record_at, revisit_of
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.captures import CaptureRow, EarlierDatabase, EarlierUrl
from archiver.frontier.port import InheritedThrottle
from archiver.http import content_codings, read_beginning
from archiver.humanize import count
from archiver.model import Claim, Cookie, Framing, Links, Profile, Revisit, State, Truncation
from archiver.storage import storage
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record
from archiver.warc.records import parse_date, referred

if TYPE_CHECKING:
    from archiver.extract.exchange import Read

SHOWN = 5  # dates in a message
MOST_ASKED = 32  # newest crawls that are searched; each costs an open file, and a query per URL
_LATEST = 253_402_214_400  # seconds since the epoch: the last day of the year 9999


@contextmanager
def database(folder: Layout) -> Iterator[EarlierDatabase]:
    """Open the database of the earlier crawl in *folder*."""
    with closing(EarlierDatabase(folder.database)) as past:
        yield past


def files_of(layout: Layout) -> frozenset[str]:
    """Return the names of all WARC files of earlier crawls; none of them is ever written again."""
    names: set[str] = set()
    for folder in rounds(layout):
        with database(folder) as past:
            names.update(past.files())
    return frozenset(names)


def stamp_for(layout: Layout, began: float, known: Iterable[Layout]) -> str:
    """Return the name of the folder for the crawl that *began* then; a later second if that name is taken.

    *known* are the earlier crawls, as `rounds` lists them.
    """
    second = int(began if 0 < began < _LATEST else time.time())
    taken = {folder.directory.name for folder in known}
    with storage(layout.earlier):
        taken |= {path.name.removesuffix(PRUNED) for path in layout.earlier.glob(f"*{PRUNED}")}
    while (stamp := f"{datetime.fromtimestamp(second, UTC):%Y%m%d%H%M%S}") in taken:
        second += 1
    return stamp


def stamp_of(folder: Layout) -> str:
    """Return when the crawl in *folder* began, as ISO 8601 in UTC."""
    return f"{datetime.strptime(folder.directory.name, '%Y%m%d%H%M%S').replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"


LONGEST = 1024  # bytes of a validator; real ones have some dozens, and a server may refuse a large head

SHOWN_BY = (  # headers that change how a payload is shown and read
    *("content-type", "content-disposition", "content-language", "content-location", "content-security-policy"),
    *("link", "refresh", "x-frame-options", "x-robots-tag"),
)

_TAG = re.compile(rb'(?:W/)?"[^"\x00-\x1f\x7f]*"|[^\s",*\x00-\x1f\x7f]+')  # quoted as in the standard, or a bare word
_NAMED = re.compile(rb"If-None-Match: ([^\r\n]*)\r\n")  # as `conditions` writes it
_DATE = re.compile(rb"[0-9A-Za-z,:+ -]+")

NAMES = frozenset(("if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"))


def conditions(framing: Framing) -> bytes:
    """Return header lines that ask for a newer version than the one with this head; b"" if it has no validator."""
    lines = b""
    if tag := _single(framing, "etag", _TAG):
        lines += b"If-None-Match: %b\r\n" % tag
    if date := _single(framing, "last-modified", _DATE):
        lines += b"If-Modified-Since: %b\r\n" % date
    return lines


def contradicts(framing: Framing, asked: bytes) -> bool:
    """Return True if the tag of a response differs from the one in the request lines *asked*."""
    tag, named = _single(framing, "etag", _TAG), _NAMED.match(asked)
    return bool(tag) and named is not None and tag.removeprefix(b"W/") != named[1].removeprefix(b"W/")


def shown_alike(one: Framing, other: Framing) -> bool:
    """Return True if a payload is shown, and its links are read, in the same way with either head."""
    return one.status == other.status and all(one.all(name) == other.all(name) for name in SHOWN_BY)


def given_by_hand(headers: tuple[str, ...]) -> bool:
    """Return True if the user's own *headers* make requests conditional or ask for ranges; we add nothing to those."""
    return any(line.partition(":")[0].strip().lower() in NAMES for line in headers)


def _single(framing: Framing, name: str, form: re.Pattern[bytes]) -> bytes:
    values = framing.all(name)
    if len(values) != 1:
        return b""
    value = values[0].encode("latin-1", "replace")
    return value if len(value) <= LONGEST and form.fullmatch(value) else b""


OK, NOT_MODIFIED = 200, 304
ERRORS = 400  # the first error status
GONE = frozenset((404, 410))  # errors that mean the page no longer exists
CUT = frozenset((Truncation.DISCONNECT, Truncation.TIME))
MOST_CAPTURES = 8  # captures of one URL that are read per crawl; most URLs have one
MOST_COMPARED = 64 << 20  # bytes of a decoded payload; larger ones count as different

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A stored version of a URL, and the conditions that ask for a newer one."""

    conditions: bytes  # header lines
    original: Revisit  # the response that holds its payload …
    file: Path  # … and its place
    offset: int
    spool: Path
    head: Framing  # of the newest response with a body

    def links(self, claim: Claim, read: "Read") -> Links:
        """Return the links of the stored response, as if it had come now for *claim*; never raises."""
        return stored_links(self.file, self.offset, self.spool, claim, read)

    def contradicted(self, framing: Framing) -> bool:
        """Return True if a 304 with this head is about another version."""
        return contradicts(framing, self.conditions)


def stored_links(file: Path, offset: int, spool: Path, claim: Claim, read: "Read") -> Links:
    """Return the links of the response at *offset* of *file*, as if it had come now for *claim*; or a note why not."""
    from archiver.extract.exchange import UNREAD, read_links  # noqa: PLC0415 - slow to import; most readers ask only for dates

    try:
        with stored_answer(file, offset, spool) as exchange:
            return read_links(claim, exchange, read)
    except ArchiveError as error:
        log.warning("links of %s, which has not changed, cannot be read: %s", claim.url, error)
        return Links(note=f"{UNREAD}: not modified, and the stored answer cannot be read: {error}")


class _UnreadFileError(ArchiveError):
    """A record of a WARC file cannot be read."""

    def __init__(self, file: str, error: Exception) -> None:
        super().__init__(str(error))
        self.file = file


@contextmanager
def _reading(file: str) -> Iterator[None]:
    try:
        yield
    except (ArchiveError, DamagedRecord, ValueError) as error:
        raise _UnreadFileError(file, error) from error


class EarlierCrawls:
    """The earlier crawls of a collection, newest first, each with its open database; the caller closes these."""

    def __init__(self, layout: Layout, pasts: Sequence[EarlierDatabase]) -> None:
        self._layout = layout
        self._pasts = tuple(pasts)
        self._lock = threading.Lock()
        self._named: set[str] = set()  # files that cannot be read

    def newest(self, address: str) -> CaptureRow | None:
        """Return the newest capture of *address* that shows if the page exists; skip temporary server errors.

        An older whole capture ranks before a newer one that was cut off.
        """
        cut = None
        with self._lock:
            for taken in (taken for past in self._pasts for taken in past.captures(address, MOST_CAPTURES)):
                if taken.status in GONE:
                    return cut or taken
                if is_there(taken) and not self.is_cut(taken):
                    return taken
                cut = cut or (taken if is_there(taken) else None)
        return cut

    def has(self, address: str) -> bool:
        """Return True if *address* was archived, so that no trap rule holds it."""
        before = self.newest(address)
        return before is not None and is_there(before)

    def history(self, address: str) -> list[CaptureRow]:
        """Return the last capture of *address* in each crawl, newest first."""
        with self._lock:
            return [taken for past in self._pasts for taken in past.captures(address, 1)]

    def version(self, address: str, *, conditional: bool = True) -> StoredVersion | None:
        """Return the newest whole version of *address*; with *conditional* only one that can be asked about."""
        try:
            return self._version(address, conditional=conditional)
        except (ArchiveError, ValueError) as error:  # the archive is damaged here: the page is fetched and stored whole
            file = error.file if isinstance(error, _UnreadFileError) else str(error)
            if file not in self._named:
                self._named.add(file)
                log.warning("%s; what it held is requested without conditions, such as %s", error, address)
            return None

    def _version(self, address: str, *, conditional: bool) -> StoredVersion | None:
        newest, with_body = self._newest_version(address)
        if newest is None or with_body is None:
            return None
        with _reading(with_body.file), self._record(with_body) as record:
            head = _framing(record)
        lines = conditions(head)
        holding = self._holding(newest) if newest.revisit else with_body
        if (conditional and not lines) or holding is None:
            return None
        with _reading(holding.file):
            original = original_at(self._layout.archive, holding.file, holding.offset)
            if original is None:
                raise ArchiveError(f"{holding.file}: the record at offset {holding.offset} is not whole and sound")
        if not shown_alike(head, original.framing) or not (original.plain or holding == with_body):
            return None
        named = revisit_of(original, Profile.NOT_MODIFIED)
        place = self._layout.archive / holding.file, holding.offset, self._layout.spool
        return StoredVersion(lines, named, *place, head)

    def _newest_version(self, address: str) -> tuple[CaptureRow | None, CaptureRow | None]:
        """Return the newest whole capture of *address*, with 200 or 304, and the newest with 200."""
        newest = None
        for past in self._pasts:
            with self._lock:
                found, outcome = past.captures(address, MOST_CAPTURES), past.outcome(address)
            if outcome is not None and outcome.is_undecodable:
                continue  # a 304 would keep the damaged body
            for taken in found:
                if taken.truncated or taken.meant != OK:
                    continue
                newest = newest or taken
                if taken.status == OK:
                    return newest, taken
        return newest, None

    def _holding(self, taken: CaptureRow) -> CaptureRow | None:
        """Return the capture that stores the payload of the revisit *taken*."""
        with _reading(taken.file), self._record(taken) as record:
            named = referred(record)
            moment = parse_date(named.date) if named.url and named.date else None
        if moment is None:
            return None
        with self._lock:
            found = next((found for past in self._pasts if (found := past.capture(named.url, moment))), None)
        return found if found is not None and not found.truncated else None

    def _record(self, taken: CaptureRow) -> AbstractContextManager[Record]:
        return record_at(self._layout.archive, taken.file, taken.offset)

    def links_at(self, taken: CaptureRow, claim: Claim, read: "Read") -> Links:
        """Return the links of the stored response *taken*, as `stored_links` does."""
        return stored_links(self._layout.archive / taken.file, taken.offset, self._layout.spool, claim, read)

    def not_rediscovered(self, most: int) -> Iterator[list[EarlierUrl]]:
        """Yield, in portions, every URL whose newest response in any crawl was no error."""
        for age, past in enumerate(self._pasts):
            after = 0
            while True:
                with self._lock:
                    found = past.archived(after, most)
                    last = [each for each in found if METHOD not in each.url and not self._settled_since(each.url, age)]
                if not found:
                    break
                after = found[-1].row
                if last:
                    yield last

    def _settled_since(self, address: str, age: int) -> bool:
        words = (past.outcome(address) for past in self._pasts[:age])
        answers = (word.status for word in words if word is not None and word.state is State.ARCHIVED)
        return any(status < ERRORS or status in GONE for status in answers)

    def inherited_throttles(self, now: float) -> list[InheritedThrottle]:
        """Return the throttle of each host, as the newest crawl has learned it."""
        with self._lock:
            return self._pasts[0].throttles(now)

    def cookies(self, now: float) -> list[Cookie]:
        """Return the cookies that the newest crawl leaves to the next one."""
        with self._lock:
            return self._pasts[0].cookies(now)

    def same_content(self, one: CaptureRow, other: CaptureRow) -> bool:
        """Return True if both have the same payload without content codings; False if unknown.

        A server may compress a page again for each response, so that the stored bytes differ each time.
        """
        from archiver.extract.exchange import payload  # noqa: PLC0415 - slow to import

        try:
            places = [self._holding(taken) if taken.revisit else taken for taken in (one, other)]
            with ExitStack() as stack:
                answers = [
                    stack.enter_context(
                        stored_answer(self._layout.archive / place.file, place.offset, self._layout.spool)
                    )
                    for place in places
                    if place is not None and not place.truncated
                ]
                if len(answers) < len(places) or not any(content_codings(each.framing.fields) for each in answers):
                    return False  # without a coding, the digests have shown that they differ
                bodies = [payload(answer, MOST_COMPARED) for answer in answers]
                whole = all(not note and len(body) < MOST_COMPARED for body, note in bodies)
                return whole and bodies[0] == bodies[1]
        except (ArchiveError, DamagedRecord, ValueError):  # verify reports damage
            return False

    def is_cut(self, taken: CaptureRow) -> bool:
        """Return True if *taken* was cut off, or its chunked framing breaks; the next time more may come."""
        if taken.truncated != Truncation.UNSPECIFIED:
            return taken.truncated in CUT
        from archiver.extract.body_faults import chunks_break  # noqa: PLC0415 - slow to import

        try:
            with stored_answer(self._layout.archive / taken.file, taken.offset, self._layout.spool) as answer:
                return answer.framing.chunked and chunks_break(answer)
        except (ArchiveError, DamagedRecord, ValueError):  # verify reports damage
            return False

    def redirect(self, taken: CaptureRow) -> str:
        """Return the target of the redirect *taken*; "" if it has none. Raises `ArchiveError` if it cannot be read."""
        with _reading(taken.file), self._record(taken) as record:
            return _framing(record).first("location") or ""


def is_there(taken: CaptureRow) -> bool:
    """Return True if *taken* shows that the page exists; a 304 to an unconditional request shows nothing."""
    return taken.meant < ERRORS and taken.meant != NOT_MODIFIED


def _framing(record: Record) -> Framing:
    return read_beginning(record.pieces())[1]


def rounds_until(layout: Layout, when: str, before: str = "") -> list[Layout]:
    """Return the earlier crawls up to the one that began at *when*, newest first; all if *when* is empty.

    *when* is a date in any form of `dates`; *before*: count only crawls before the one with this stamp. Raises
    `ConfigError` if *when* does not name exactly one crawl.
    """
    known = [folder for folder in rounds(layout) if not before or folder.directory.name < before]
    if not when:
        return known
    span = date_range(when, "--since")
    named = [number for number, each in enumerate(known) if span.first <= each.directory.name <= span.last]
    if len(named) != 1:
        what = f"names {count(len(named), 'crawl')}" if named else "is the date of no earlier crawl of this collection"
        dates = ", ".join(map(stamp_of, [known[number] for number in named[:SHOWN]] or known[:SHOWN]))
        instead = f"write one of these dates: {dates}" if known else "there is none"
        raise ConfigError(f"--since {when!r} {what}; {instead}")
    return known[named[0] :]


@contextmanager
def open_earlier_crawls(layout: Layout, since: str = "", before: str = "") -> Iterator[EarlierCrawls | None]:
    """Open the earlier crawls in the collection of *layout*, as `rounds_until` finds them; None if there are none."""
    with ExitStack() as stack:
        pasts: list[EarlierDatabase] = []
        for folder in rounds_until(layout, since, before)[:MOST_ASKED]:
            pasts.append(EarlierDatabase(folder.database))
            stack.callback(pasts[-1].close)
        yield EarlierCrawls(layout, pasts) if pasts else None
