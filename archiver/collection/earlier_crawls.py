"""What earlier crawls have of a URL: its newest capture, the conditions to ask for it again, and its stored answer.

A page that came with 200 and is whole can be asked for again under conditions, if the record that holds its payload
lies in this collection, is read back whole, and would be shown as the page was: only then is nothing lost where it does
not come again. A revisit is followed to that record; conditions are those of the URL's own newest head. Blocks; may be
asked by any thread.

Which earlier crawls a collection has: a folder for each, named after the second in which it began.

The conditions of a request, made of the head that came with the earlier answer. Never raises; pure.

A validator is sent back exactly as it came, byte for byte, or not at all. What could mean more than the one version
that is stored (`*`, several tags, a control character) is not sent.
Source: RFC 9110 §8.8, §13.1, §15.4.5; RFC 9111 §4.3.4.
"""

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from archiver.collection.layout import Layout
from archiver.collection.payload import stored_answer
from archiver.collection.records import original_at, record_at, revisit_of
from archiver.errors import ArchiveError
from archiver.extract.exchange import UNREAD, Read, payload, read_links
from archiver.frontier.captures import CaptureRow
from archiver.frontier.earlier import EarlierDatabase, EarlierUrl
from archiver.frontier.port import InheritedThrottle
from archiver.http import content_codings, read_beginning
from archiver.model import Claim, Framing, Links, Profile, Revisit, State, Truncation
from archiver.storage import storage
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record
from archiver.warc.records import parse_date, referred

MOST_ASKED = 32  # of the newest crawls what they hold is asked for: each is an open file, and a question for each URL
STAMP = re.compile(r"[0-9]{14}")


def rounds(layout: Layout) -> list[Layout]:
    """The earlier crawls in the collection of *layout*, newest first."""
    if not layout.earlier.is_dir():
        return []
    with storage(layout.earlier):
        folders = [Layout(path) for path in layout.earlier.iterdir() if STAMP.fullmatch(path.name)]
    found = [folder for folder in folders if folder.database.is_file()]
    return sorted(found, key=lambda folder: folder.directory.name, reverse=True)


@contextmanager
def database(folder: Layout) -> Iterator[EarlierDatabase]:
    """The database of the earlier crawl in *folder*."""
    with closing(EarlierDatabase(folder.database)) as past:
        yield past


def files_of(layout: Layout) -> frozenset[str]:
    """The names of all WARC files that belong to earlier crawls; none of them is ever written again."""
    names: set[str] = set()
    for folder in rounds(layout):
        with database(folder) as past:
            names.update(past.files())
    return frozenset(names)


def stamp_of(folder: Layout) -> str:
    """When the crawl in *folder* began, in UTC, as ISO 8601 has it."""
    return f"{datetime.strptime(folder.directory.name, '%Y%m%d%H%M%S').replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"


LONGEST = 1024  # bytes; real ones have some dozens, and a server may refuse a large head

SHOWN_BY = (  # what a head says of how its payload is shown and read
    *("content-type", "content-disposition", "content-language", "content-location", "content-security-policy"),
    *("link", "refresh", "x-frame-options", "x-robots-tag"),
)

_TAG = re.compile(rb'(?:W/)?"[^"\x00-\x1f\x7f]*"|[^\s",*\x00-\x1f\x7f]+')  # quoted as it should be, or a bare word
_NAMED = re.compile(rb"If-None-Match: ([^\r\n]*)\r\n")  # as `conditions` writes it
_DATE = re.compile(rb"[0-9A-Za-z,:+ -]+")

NAMES = frozenset(("if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"))


def conditions(framing: Framing) -> bytes:
    """Field lines by which a server can say that the version with this head is still the newest; b"" for none."""
    lines = b""
    if tag := _single(framing, "etag", _TAG):
        lines += b"If-None-Match: %b\r\n" % tag
    if date := _single(framing, "last-modified", _DATE):
        lines += b"If-Modified-Since: %b\r\n" % date
    return lines


def contradicts(framing: Framing, asked: bytes) -> bool:
    """Whether an answer says by its tag that the newest version is another than the one named by *asked*."""
    tag, named = _single(framing, "etag", _TAG), _NAMED.match(asked)
    return bool(tag) and named is not None and tag.removeprefix(b"W/") != named[1].removeprefix(b"W/")


def shown_alike(one: Framing, other: Framing) -> bool:
    """Whether the payload of *one* is shown, and its links are read, in the same way with the head *other*."""
    return one.status == other.status and all(one.all(name) == other.all(name) for name in SHOWN_BY)


def given_by_hand(headers: tuple[str, ...]) -> bool:
    """Whether the user's own *headers* make requests conditional, or ask for parts: then nothing is added to them."""
    return any(line.partition(":")[0].strip().lower() in NAMES for line in headers)


def _single(framing: Framing, name: str, form: re.Pattern[bytes]) -> bytes:
    values = framing.all(name)
    if len(values) != 1:
        return b""
    value = values[0].encode("latin-1", "replace")
    return value if len(value) <= LONGEST and form.fullmatch(value) else b""


OK, NOT_MODIFIED = 200, 304
ERRORS = 400  # the first status that says that there is nothing …
GONE = frozenset((404, 410))  # … of which these mean it
CUT = frozenset((Truncation.DISCONNECT, Truncation.TIME))
MOST_CAPTURES = 8  # of one URL in one crawl that are looked at: as a rule it has one
MOST_COMPARED = 64 << 20  # bytes of a decoded payload; larger ones are compared as they came

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a URL that is stored, and how a request asks for a newer one."""

    conditions: bytes  # field lines
    original: Revisit  # the response that holds its payload …
    file: Path  # … and where it lies
    offset: int
    spool: Path

    def links(self, claim: Claim, read: Read) -> Links:
        """What the stored answer names, read as if it had come now for *claim*. Whatever is there, this returns."""
        return stored_links(self.file, self.offset, self.spool, claim, read)

    def contradicted(self, framing: Framing) -> bool:
        """Whether the answer "not modified" with this head speaks of another version."""
        return contradicts(framing, self.conditions)


def stored_links(file: Path, offset: int, spool: Path, claim: Claim, read: Read) -> Links:
    """What the response at *offset* of *file* names, read as if it had come now for *claim*; a note where it cannot."""
    try:
        with stored_answer(file, offset, spool) as exchange:
            return read_links(claim, exchange, read)
    except ArchiveError as error:
        log.warning("links of %s, which has not changed, cannot be read: %s", claim.url, error)
        return Links(note=f"{UNREAD}: not modified, and the stored answer cannot be read: {error}")


class EarlierCrawls:
    """Over the earlier crawls of a collection, newest first, each with its database; who opens these closes them."""

    def __init__(self, layout: Layout, pasts: Sequence[EarlierDatabase]) -> None:
        self._layout = layout
        self._pasts = tuple(pasts)
        self._turn = threading.Lock()

    def newest(self, address: str) -> CaptureRow | None:
        """The newest capture of *address* that says whether there is something: no passing trouble of the server.

        One that was cut off tells less than an older one that is whole.
        """
        cut = None
        with self._turn:
            for taken in (taken for past in self._pasts for taken in past.captures(address, MOST_CAPTURES)):
                if taken.status in GONE:
                    return cut or taken
                if is_there(taken) and not is_cut(taken):
                    return taken
                cut = cut or (taken if is_there(taken) else None)
        return cut

    def version(self, address: str) -> StoredVersion | None:
        """The newest whole version of *address*; None where it cannot be asked for under conditions."""
        try:
            return self._version(address)
        except (
            ArchiveError,
            DamagedRecord,
            ValueError,
        ) as error:  # of the archive: then it comes whole, and is stored so
            log.warning("%s is asked for without conditions: %s", address, error)
            return None

    def _version(self, address: str) -> StoredVersion | None:
        newest, told = self._newest_version(address)
        if newest is None or told is None:
            return None
        with self._record(told) as record:
            head = _framing(record)
        said = conditions(head)
        holding = self._holding(newest) if newest.revisit else told
        if not said or holding is None:
            return None
        original = original_at(self._layout.archive, holding.file, holding.offset)
        if original is None:
            raise ArchiveError(f"{holding.file}: the record at offset {holding.offset} is not whole and sound")
        if not shown_alike(head, original.framing) or not (original.plain or holding == told):
            return None
        named = revisit_of(original, Profile.NOT_MODIFIED)
        return StoredVersion(said, named, self._layout.archive / holding.file, holding.offset, self._layout.spool)

    def _newest_version(self, address: str) -> tuple[CaptureRow | None, CaptureRow | None]:
        """The newest whole capture of *address* that came with 200, or still held; and the one that came with 200."""
        newest = None
        for past in self._pasts:
            with self._turn:
                found = past.captures(address, MOST_CAPTURES)
            for taken in found:
                if taken.truncated or taken.meant != OK:
                    continue
                newest = newest or taken
                if taken.status == OK:
                    return newest, taken
        return newest, None

    def _holding(self, taken: CaptureRow) -> CaptureRow | None:
        """The capture that holds the payload for which the revisit *taken* stands."""
        with self._record(taken) as record:
            named = referred(record)
        if not named.url or not named.date:
            return None
        moment = parse_date(named.date)
        with self._turn:
            found = next((found for past in self._pasts if (found := past.capture(named.url, moment))), None)
        return found if found is not None and not found.truncated else None

    def _record(self, taken: CaptureRow) -> AbstractContextManager[Record]:
        return record_at(self._layout.archive, taken.file, taken.offset)

    def left(self, most: int) -> Iterator[list[EarlierUrl]]:
        """Every URL whose last word, in the newest crawl that has one, was an answer that is no error; in portions."""
        for age, past in enumerate(self._pasts):
            after = 0
            while True:
                with self._turn:
                    found = past.archived(after, most)
                    last = [each for each in found if not self._settled_since(each.url, age)]
                if not found:
                    break
                after = found[-1].row
                if last:
                    yield last

    def _settled_since(self, address: str, age: int) -> bool:
        words = (past.word(address) for past in self._pasts[:age])
        answers = (word.status for word in words if word is not None and word.state is State.ARCHIVED)
        return any(status < ERRORS or status in GONE for status in answers)

    def manners(self, now: float) -> list[InheritedThrottle]:
        """How hosts want to be asked, as the newest crawl has learned it."""
        with self._turn:
            return self._pasts[0].manners(now)

    def same_content(self, one: CaptureRow, other: CaptureRow) -> bool:
        """Whether both have the same payload when their content codings are undone; False where that cannot be told.

        A server may compress a page anew for each answer, so that no two of them are the same bytes.
        """
        places = [self._holding(taken) if taken.revisit else taken for taken in (one, other)]
        try:
            with ExitStack() as stack:
                answers = [
                    stack.enter_context(
                        stored_answer(self._layout.archive / place.file, place.offset, self._layout.spool)
                    )
                    for place in places
                    if place is not None and not place.truncated
                ]
                if len(answers) < len(places) or not any(content_codings(each.framing.fields) for each in answers):
                    return False  # without a coding the digests have said it
                bodies = [payload(answer, MOST_COMPARED) for answer in answers]
                whole = all(not note and len(body) < MOST_COMPARED for body, note in bodies)
                return whole and bodies[0] == bodies[1]
        except (ArchiveError, DamagedRecord, ValueError):  # verify names what is damaged
            return False

    def redirect(self, taken: CaptureRow) -> str:
        """Where *taken*, a redirect, leads; "" where it does not say."""
        with self._record(taken) as record:
            return _framing(record).first("location") or ""


def is_there(taken: CaptureRow) -> bool:
    """Whether *taken* says that something is there; a 304 that nobody had asked for says nothing."""
    return taken.meant < ERRORS and taken.meant != NOT_MODIFIED


def is_cut(taken: CaptureRow) -> bool:
    """Whether the connection ended before *taken* did: the next time more may come."""
    return taken.truncated in CUT


def _framing(record: Record) -> Framing:
    return read_beginning(record.pieces())[1]


@contextmanager
def remembered(layout: Layout) -> Iterator[EarlierCrawls | None]:
    """What the earlier crawls in the collection of *layout* hold; None where there are none."""
    with ExitStack() as stack:
        pasts: list[EarlierDatabase] = []
        for folder in rounds(layout)[:MOST_ASKED]:
            pasts.append(EarlierDatabase(folder.database))
            stack.callback(pasts[-1].close)
        yield EarlierCrawls(layout, pasts) if pasts else None
