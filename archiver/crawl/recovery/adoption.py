"""Settles the visits that recovery finds in WARC files, as they were settled when they happened.

A page that was stored as a revisit is judged by its payload. That is read back whole from the response to which the
revisit refers, also in earlier crawls of the collection.
"""

import logging
from collections.abc import AsyncIterator, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from heapq import heappop, heappush, heapreplace
from itertools import chain
from pathlib import Path

from archiver import url
from archiver.collection.earlier_crawls import MOST_ASKED, stored_links
from archiver.collection.layout import Layout, rounds
from archiver.collection.payload import hold_block, stored_answer
from archiver.collection.records import links_at, original_at
from archiver.crawl.reader_process import ReaderProcess
from archiver.crawl.recovery.foreign import foreign_visits
from archiver.crawl.recovery.scan import LoneRecord, ScannedVisit, UnclaimedBytes, survey
from archiver.crawl.visit import conclude
from archiver.crawl.visit_rules import VisitRules
from archiver.errors import ArchiveError
from archiver.extract.exchange import MAX_DOCUMENT, UNREAD, is_page, is_robots, read_links, with_page
from archiver.frontier.dedup import Payloads
from archiver.frontier.port import Frontier
from archiver.frontier.retry import StoredElsewhere
from archiver.model import Claim, Exchange, FileState, Hop, Links, Profile, Settlement
from archiver.policy import scope
from archiver.storage import is_bare, open_file, storage

BATCH = 64  # visits settled in one transaction …
MOST_LINKS = 20_000  # … or fewer, if their pages have so many links together
MOST_OPEN = 64  # files read at the same time: those of 32 crawlers
REMEMBERED = 1 << 16  # responses whose places we remember, some ten megabytes


log = logging.getLogger(__name__)


def held_before(layout: Layout) -> StoredElsewhere:
    """Return a function that selects, from given digests, those of payloads that earlier crawls of *layout* hold."""
    known: set[str] = set()

    def held(digests: Collection[str]) -> Collection[str]:
        for folder in rounds(layout):
            unknown = set(digests) - known
            with closing(Payloads(folder.database, at_rest=True)) as payloads:
                places = payloads.find(unknown) if unknown else []
            for place in places:
                if place.digest not in known and original_at(layout.archive, place.warc, place.offset) is not None:
                    known.add(place.digest)
        return known.intersection(digests)

    return held


class Originals:
    """The responses that revisits refer to: the latest ones we have seen, and those that *payloads* know."""

    def __init__(self, payloads: Sequence[Payloads]) -> None:
        self._payloads = payloads
        self._seen: dict[int, tuple[str, int]] = {}

    def remember(self, found: ScannedVisit) -> None:
        """Remember the place of the payload of *found*, if it has one."""
        if found.capture.revisit is None:
            self._seen[hash(found.capture.payload_digest)] = found.capture.warc, found.capture.response.offset
            if len(self._seen) > REMEMBERED:
                del self._seen[next(iter(self._seen))]

    def place(self, found: ScannedVisit) -> tuple[str, int] | None:
        """Return the file and the offset of a response with the payload of *found*, a revisit; None if unknown."""
        if found.notes is not None and found.notes.links_of is not None:
            return found.notes.links_of
        digest = found.capture.payload_digest
        if place := self._seen.get(hash(digest)):
            return place
        for payloads in self._payloads:
            for known in payloads.find((digest,)):
                return known.warc, known.offset
        return None

    def close(self) -> None:
        """Close the databases until the next question."""
        for payloads in self._payloads:
            payloads.close()


def payloads_before(layout: Layout) -> list[Payloads]:
    """Return what the earlier crawls in the collection of *layout* have stored."""
    return [Payloads(folder.database, at_rest=True) for folder in rounds(layout)[:MOST_ASKED]]


def whole(found: ScannedVisit, place: tuple[str, int] | None, folder: Path, spool: Path) -> Exchange | None:
    """Return the answer of *found*, a revisit, with the payload at *place* behind its head, as it came.

    None if that is missing, or too large to be a page. The caller closes its response.
    """
    if place is None or not is_bare(place[0]) or found.capture.payload_length > MAX_DOCUMENT:
        return None
    original = original_at(folder, *place)
    if original is None or original.digest != found.capture.payload_digest:
        return None
    own = found.exchange
    head = own.response.head(own.framing.head_length)
    with suppress(ArchiveError), stored_answer(folder / place[0], place[1], spool) as stored:
        body = _behind(stored.response.pieces(), stored.framing.head_length)
        pieces = chain((head,), body)
        block = hold_block(pieces, stored.response.length, spool)
        chunked = own.framing.chunked and stored.framing.chunked
        return replace(own, response=block, framing=replace(own.framing, chunked=chunked))
    return None


def _behind(pieces: Iterator[bytes], skip: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[skip:]
        skip = max(0, skip - len(piece))


@dataclass(frozen=True, slots=True)
class Unread:
    """A WARC file whose visits, from *offset* on, are not in the frontier."""

    path: Path
    name: str  # its final name
    offset: int = 0
    began: int = 0  # microseconds since the epoch: none of its visits began earlier; 0: unknown
    lenient: bool = False  # read all that is whole, as `survey` does
    foreign: bool = False  # another program wrote it


Unit = ScannedVisit | LoneRecord


class VisitAdoption:
    """Settles the visits that are found in files."""

    def __init__(self, frontier: Frontier, rules: VisitRules, payloads: Sequence[Payloads]) -> None:
        self.adopted = 0
        self._originals = Originals(payloads)
        self._frontier = frontier
        self._rules = rules
        self._judges = rules.hooks is not None and rules.hooks.judges
        self._read = ReaderProcess(near=0, texts=self._judges)  # a document may have ended the last process

    async def read_all(self, files: Iterable[Unread], spool: Path) -> AsyncIterator[Unread]:
        """Settle every visit of *files*, which are in order of their beginning; yield each file when that is done."""
        batch: list[tuple[Unread, Unit]] = []
        with closing(_by_date(files, spool)) as units:
            try:
                for file, unit in units:
                    if unit is None or _is_full(batch, unit):
                        await self._settle(batch, spool)
                    if unit is None:
                        yield file
                    else:
                        batch.append((file, unit))
            finally:
                self._read.close()
                self._originals.close()
                for _, unit in batch:
                    if isinstance(unit, ScannedVisit):
                        unit.close()

    async def _settle(self, batch: list[tuple[Unread, Unit]], spool: Path) -> None:
        """Settle *batch*, and empty it."""
        if not batch:
            return
        visits = [(file, unit) for file, unit in batch if isinstance(unit, ScannedVisit)]
        resources = [unit.resource for _, unit in batch if isinstance(unit, LoneRecord) and unit.resource is not None]
        claims = await self._frontier.record_visits([self._claim(*each) for each in visits]) if visits else []
        domains = {name for claim in claims for name in self._rules.session.domains(url.origin(claim.url))}
        self._rules.session.restore(await self._frontier.cookies(sorted(domains)))
        for _, found in visits:
            self._originals.remember(found)
        settlements = [
            self._settlement(claim, found, file.path.parent, spool)
            for claim, (file, found) in zip(claims, visits, strict=True)
        ]
        ends = {file.name: unit.end for file, unit in batch}
        states = [FileState(name, end, closed=False) for name, end in ends.items()]
        await self._frontier.settle(settlements, states, resources=resources)
        self.adopted += len(visits)
        for _, found in visits:
            found.close()
        batch.clear()

    def _claim(self, file: Unread, found: ScannedVisit) -> Claim:
        """Return the claim of a visit. Nothing is known of a foreign one: out of scope it is taken for a requisite."""
        claim = _claim(found)
        if not file.foreign or self._rules.scope.contains(claim.url):
            return claim
        path = Hop.REQUISITE.value
        return replace(claim, hop=Hop.REQUISITE, path=path, depth=0, off_scope_hops=1, priority=scope.priority(path, 0))

    def _settlement(self, claim: Claim, found: ScannedVisit, folder: Path, spool: Path) -> Settlement:
        """Return the settlement as it was when the visit happened, with the same words and the same time."""
        then = _as_visited(claim, found)
        exchange = self._whole(then, found, folder, spool) or found.exchange
        now = exchange.started / 1e6 + exchange.duration
        try:
            links = self._links(then, found, exchange, folder, spool)
            cookies = self._rules.session.received(then, exchange)
            return conclude(self._rules, then, exchange, links, now)._replace(capture=found.capture, cookies=cookies)
        finally:
            if exchange is not found.exchange:
                exchange.response.close()

    def _whole(self, then: Claim, found: ScannedVisit, folder: Path, spool: Path) -> Exchange | None:
        """Return the answer that is stored as a revisit, with its payload; None if no links are to be read from it."""
        reads = found.notes is None or found.notes.links_of is not None or is_page(then)
        if found.capture.revisit is not Profile.IDENTICAL or not reads or is_robots(then):
            return None
        return whole(found, self._originals.place(found), folder, spool)

    def _links(self, then: Claim, found: ScannedVisit, exchange: Exchange, folder: Path, spool: Path) -> Links:
        """Return the links of the visit, from its notes or those of its original, or by reading the answer again."""
        if found.notes is None:
            read = read_links(then, exchange, self._read)
            return read if self._rules.hooks is None else self._rules.hooks.further(then, exchange, read)
        if found.notes.links_of is None:
            return self._with_page(then, exchange, found.notes.links)
        name, offset = found.notes.links_of
        original = original_at(folder, name, offset) if is_bare(name) else None
        if original is None or original.digest != found.capture.payload_digest:
            log.warning("links of %s, which had not changed, cannot be read: %s lacks its record", then.url, name)
            return Links(note=f"{UNREAD}: not modified, and the stored answer is not there")
        if found.capture.revisit is Profile.NOT_MODIFIED:
            return stored_links(folder / name, offset, spool, then, self._read)
        links = links_at(folder, name, offset)
        return read_links(then, exchange, self._read) if links is None else self._with_page(then, exchange, links)

    def _with_page(self, then: Claim, exchange: Exchange, links: Links) -> Links:
        """Return *links*, from the records of a visit, with the page, and with the texts that a hook judges by."""
        texts = read_links(then, exchange, self._read).texts if self._judges else {}
        return replace(with_page(then, exchange, links), texts=texts)


def _as_visited(claim: Claim, found: ScannedVisit) -> Claim:
    """Return *claim* as it was when the visit happened, if its notes say so."""
    if found.notes is None:
        return replace(claim, language=found.exchange.language)
    then = _claim(found)
    return replace(
        claim,
        hop=then.hop,
        path=then.path,
        depth=then.depth,
        off_scope_hops=then.off_scope_hops,
        tries=then.tries,
        language=then.language,
        referrer_policy=then.referrer_policy,
    )


def _by_date(files: Iterable[Unread], spool: Path) -> Generator[tuple[Unread, Unit | None]]:
    """Yield what *files* hold, the visits of each URL in the order in which they happened; None where a file ends.

    Several crawlers, and the two writers of each, have files open at the same time. Each file is read in its own order,
    next the one whose next visit began first. That is enough: a URL is visited again only after its last visit was
    settled, and what stands before that visit in its file began earlier still.
    """
    waiting = iter(files)
    following = next(waiting, None)
    opened: list[_OpenFile] = []  # a heap
    try:
        while following is not None or opened:
            first = opened[0] if opened else None
            if following is not None and len(opened) < MOST_OPEN and (first is None or following.began <= first.date):
                heappush(opened, _OpenFile(following, _units(following, spool)))
                following = next(waiting, None)
            elif first is not None:
                yield first.file, first.unit
                if first.unit is None:
                    heappop(opened)
                else:
                    first.go_on()
                    heapreplace(opened, first)
    finally:
        for each in opened:
            if isinstance(each.unit, ScannedVisit):
                each.unit.close()


class _OpenFile:
    """A file that is being read, and what comes next in it."""

    def __init__(self, file: Unread, units: Iterator[Unit]) -> None:
        self.file = file
        self.unit: Unit | None = None
        self.date = 0  # of the latest visit, in microseconds since the epoch
        self._units = units
        self.go_on()

    def go_on(self) -> None:
        """Read the next unit; None at the end."""
        with storage(self.file.path):
            self.unit = next(self._units, None)
        if isinstance(self.unit, ScannedVisit):
            self.date = self.unit.exchange.started

    def __lt__(self, other: "_OpenFile") -> bool:
        return self.date < other.date


def _units(file: Unread, spool: Path) -> Iterator[Unit]:
    with open_file(file.path) as source:
        if file.foreign:
            yield from foreign_visits(source, file.name, file.offset, spool)
            return
        for unit in survey(source, file.name, file.offset, spool, lenient=file.lenient):
            if not isinstance(unit, UnclaimedBytes):
                yield unit


def _is_full(batch: list[tuple[Unread, Unit]], following: Unit) -> bool:
    """Return True if *following* belongs to the next batch; two visits of one URL are two transitions of its state."""
    return (
        len(batch) >= BATCH
        or sum(_weight(unit) for _, unit in batch) > MOST_LINKS
        or (isinstance(following, ScannedVisit) and _names(batch, following.capture.url))
    )


def _names(batch: list[tuple[Unread, Unit]], url: str) -> bool:
    return any(isinstance(unit, ScannedVisit) and unit.capture.url == url for _, unit in batch)


def _weight(unit: Unit) -> int:
    """Return the number of links of a visit."""
    return len(unit.notes.links.links) if isinstance(unit, ScannedVisit) and unit.notes is not None else 0


def _claim(found: ScannedVisit) -> Claim:
    """Return the claim of a visit from its own records; without notes it is that of an ordinary link."""
    notes, address = found.notes, found.capture.url
    if notes is None:
        first = scope.priority("L", 1)
        return Claim(0, address, 0, Hop.LINK, Hop.LINK.value, 1, 0, 0, priority=first, language=found.exchange.language)
    priority, hops = scope.priority(notes.path, notes.depth), notes.off_scope_hops
    way = notes.hop, notes.path, notes.depth, hops, notes.tries, notes.via, notes.seed
    claim = Claim(0, address, 0, *way, priority, notes.referrer_policy, language=found.exchange.language)
    return replace(claim, ask=found.capture.ask)
