"""Stores each payload once: answers whose payload is already stored become revisit records.

A revisit refers only to what is on disk: committed captures, and captures of its own batch that were synced before it
is written. It never refers to another revisit, nor to a truncated answer. The referred record is read back first, every
byte of it. Each writer has its own `DedupWriter`, and neither knows what the other is writing.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from archiver.ask import METHOD
from archiver.collection.dedup_sources import OtherIndex, indexes_of
from archiver.collection.layout import Layout
from archiver.collection.records import (
    RevisitOriginal,
    codings,
    is_stored,
    is_target,
    links_at,
    original_at,
    revisit_of,
)
from archiver.collection.writer import Archive, PendingVisit, WriteResult
from archiver.config.settings import DedupSettings
from archiver.extract.exchange import is_robots
from archiver.frontier.dedup import ExternalIndex, Payloads, gather
from archiver.model import Claim, Digests, Exchange, FileState, Profile, Revisit
from archiver.storage import DRAFT
from archiver.warc.cdxj import IndexEntry

REMEMBERED = 2048  # originals that were read and found intact, so that further duplicates need no reading
FEW_LINKS = 4  # they take no more space than a reference to the record that has them
LAST_CHUNK = b"\r\n0\r\n\r\n"  # with no trailers, which belong to this answer alone


class DedupKey(NamedTuple):
    """The properties that a stored answer and its revisit must share."""

    digest: str
    length: int
    status: int
    codings: tuple[str, ...]


class Known(NamedTuple):
    """The revisit for a stored payload, and the place of that payload if it is in this archive."""

    revisit: Revisit
    place: tuple[str, int] | None = None  # the file and the offset


class ExternalArchives:
    """Payloads in other archives, of which we have indexes and perhaps the WARC files."""

    def __init__(self, lines: ExternalIndex, folders: Sequence[Sequence[Path]]) -> None:
        self._lines = lines
        self._folders = folders  # of the WARC files that each index names

    def find(self, wanted: Collection[DedupKey]) -> Mapping[DedupKey, Revisit]:
        """Return the revisits for those of *wanted* that are stored there."""
        found: dict[DedupKey, Revisit] = {}
        by_digest = _by_digest(wanted)
        for line in self._lines.find(by_digest):
            for each in by_digest[line.digest]:
                if each not in found and (named := self._revisit(line.entry, self._folders[line.source], each)):
                    found[each] = named
        return found

    def close(self) -> None:
        """Close the index."""
        self._lines.close()

    def _revisit(self, entry: IndexEntry, folders: Sequence[Path], each: DedupKey) -> Revisit | None:
        name = PurePosixPath(entry.filename).name
        for folder in folders:
            if is_stored(folder, name):
                original = original_at(folder, name, entry.offset)
                return revisit_of(original) if original is not None and fits(original, each) else None
        date = _warc_date(entry.timestamp)  # in whole seconds: only the record itself has more
        if entry.status != str(each.status) or not date or not is_target(entry.url):
            return None
        return Revisit(Profile.IDENTICAL, entry.url, date, "", each.digest, each.length)


class DedupWriter:
    """An archive that stores each payload once. Like `Archive`, for one thread at a time."""

    def __init__(
        self, archive: Archive, payloads: Sequence[Payloads], smallest: int, earlier: ExternalArchives | None = None
    ) -> None:
        self._archive = archive
        self._payloads = payloads  # of this crawl, and of earlier ones into the same archive
        self._smallest = max(1, smallest)
        self._earlier = earlier
        self._known: dict[DedupKey, Known] = {}

    def append(self, deposits: Sequence[PendingVisit]) -> WriteResult:
        """Do the same as `Archive.append`: first the new payloads of the batch, then their duplicates."""
        self._forget()
        hashed = [self._hashed(deposit) for deposit in deposits]
        likes = [key_of(each.exchange, each.digests, self._smallest) if each.digests else None for each in hashed]
        self._look_up({each for each in likes if each is not None})
        first: dict[int, PendingVisit] = {}
        later: dict[int, tuple[DedupKey, int]] = {}
        new: dict[DedupKey, int] = {}
        for number, (deposit, each) in enumerate(zip(hashed, likes, strict=True)):
            twin = None if each is None else _twin(each, new)
            if each is None or not (each in self._known or twin is not None) or has_trailers(deposit.exchange):
                first[number] = deposit
                if each is not None:
                    new.setdefault(each, number)
            elif each in self._known:
                first[number] = self._as_revisit(deposit, self._known[each])
            elif twin is not None:
                later[number] = each, twin
        receipt = self._archive.append(tuple(first.values()))
        if not later:
            return receipt
        captures = dict(zip(first, receipt.captures, strict=True))
        for each, twin in set(later.values()):
            stored = captures[twin]
            self._read(each, stored.warc, stored.response.offset)
        more = self._archive.extend(
            [
                self._as_revisit(hashed[number], self._known[each]) if each in self._known else hashed[number]
                for number, (each, _) in later.items()
            ]
        )
        captures.update(zip(later, more.captures, strict=True))
        return WriteResult(
            tuple(captures[number] for number in range(len(deposits))),
            (*receipt.files, *more.files),
            (*receipt.resources, *more.resources),
        )

    def finish_old(self) -> tuple[FileState, ...]:
        """Give files their final names that are sealed or too old; the database must hold all earlier results."""
        return self._archive.finish_old()

    def close(self) -> tuple[FileState, ...]:
        """Do the same as `Archive.close`."""
        self._end()
        return self._archive.close()

    def abandon(self) -> None:
        """Do the same as `Archive.abandon`."""
        self._end()
        self._archive.abandon()

    def _end(self) -> None:
        for payloads in self._payloads:
            payloads.close()
        if self._earlier is not None:
            self._earlier.close()

    def _hashed(self, deposit: PendingVisit) -> PendingVisit:
        """Add the digests to *deposit*, if it may become a revisit."""
        if deposit.revisit is not None or not may_refer(deposit.claim, deposit.exchange, self._smallest):
            return deposit
        return deposit._replace(digests=self._archive.digests(deposit.exchange))

    def _look_up(self, wanted: set[DedupKey]) -> None:
        """Find those of *wanted* that are stored."""
        for payloads in self._payloads:
            if not (unknown := wanted - self._known.keys()):
                return
            by_digest = _by_digest(unknown)
            for place in payloads.find(by_digest):
                for each in by_digest[place.digest] if METHOD not in place.url else ():
                    if each not in self._known and each[:3] == place[:3]:
                        self._read(each, place.warc, place.offset)
        if self._earlier is not None and (unknown := wanted - self._known.keys()):
            self._known.update((each, Known(revisit)) for each, revisit in self._earlier.find(unknown).items())

    def _read(self, each: DedupKey, warc: str, offset: int) -> None:
        """Remember the record at that place, if it is intact and matches *each*."""
        original = original_at(self._archive.folder, warc, offset)
        if original is not None and fits(original, each):
            self._known[each] = Known(revisit_of(original), (warc, offset))

    def _as_revisit(self, deposit: PendingVisit, known: Known) -> PendingVisit:
        """Return *deposit* as a revisit. A page that has the links of its original does not repeat them."""
        revisit, place = known
        deposit = deposit._replace(revisit=revisit)
        links = deposit.links
        if place is None or revisit.url != deposit.claim.url or len(links.links) <= FEW_LINKS:
            return deposit
        stored = links_at(self._archive.folder, *place)
        if stored is None or stored != replace(links, icon=False, page=None):
            return deposit
        return deposit._replace(links_of=place)

    def _forget(self) -> None:
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


def may_refer(claim: Claim, exchange: Exchange, smallest: int) -> bool:
    """Return True if the answer could be a revisit, as far as we know before its payload is hashed.

    A robots.txt is stored whole, because recovery reads it; a redirect, because pywb shows one without its payload.
    """
    framing = exchange.framing
    return (
        exchange.response.length - framing.head_length >= smallest
        and (200 <= framing.status < 300 or framing.status >= 400)
        and exchange.truncated is None
        and not framing.faults
        and not is_robots(claim)
        and claim.ask is None  # a replay would look for the original under the URL of the record
    )


def key_of(exchange: Exchange, digests: Digests, smallest: int) -> DedupKey | None:
    """Return the key for a stored answer; None if the payload is too small."""
    if digests.payload_length < smallest:
        return None
    framing = exchange.framing
    return DedupKey(digests.payload, digests.payload_length, framing.status, codings(framing))


def key_of_original(original: RevisitOriginal) -> DedupKey:
    """Return the key of answers that may be revisits of *original*."""
    return DedupKey(original.digest, original.length, original.framing.status, codings(original.framing))


def fits(original: RevisitOriginal, each: DedupKey) -> bool:
    """Return True if *each* can be replayed as its own head followed by the body of *original*."""
    if not original.plain:
        return False
    known = key_of_original(original)
    return known == each or (known == _unchunked(each) and not original.like_chunks)


def has_trailers(exchange: Exchange) -> bool:
    """Return True if trailers may follow the payload, which a revisit would lose."""
    if not exchange.framing.chunked:
        return False
    end = b""
    for piece in exchange.response.pieces():
        end = (end + piece[-len(LAST_CHUNK) :])[-len(LAST_CHUNK) :]
    return end != LAST_CHUNK


def _unchunked(each: DedupKey) -> DedupKey:
    return each._replace(codings=tuple(coding for coding in each.codings if coding != "chunked"))


def _twin(each: DedupKey, new: Mapping[DedupKey, int]) -> int | None:
    """Return the number of the visit in *new*, of the same batch, that *each* may be a revisit of."""
    if each in new or "chunked" not in each.codings:
        return new.get(each)
    return new.get(_unchunked(each))


def _by_digest(likes: Collection[DedupKey]) -> dict[str, list[DedupKey]]:
    found: dict[str, list[DedupKey]] = {}
    for each in likes:
        found.setdefault(each.digest, []).append(each)
    return found


def _warc_date(timestamp: str) -> str:
    """Return the *timestamp* of an index line as a WARC-Date, to the second; "" if it is no valid date."""
    try:
        date = datetime.strptime(timestamp[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return ""
    return f"{date:%Y-%m-%dT%H:%M:%SZ}" if re.fullmatch(r"[0-9]{14,20}", timestamp) else ""


def gathered(layout: Layout, settings: DedupSettings) -> tuple[OtherIndex, ...]:
    """Return the other archives whose payloads count as stored, and index them."""
    if settings.dedup == "off":
        return ()
    others = indexes_of(settings.dedup_from, layout.directory)
    if others:
        draft = layout.scratch.with_name(f"{layout.scratch.name}{DRAFT}")
        gather(layout.scratch, draft, [one.cdxj for one in others])
    return others
