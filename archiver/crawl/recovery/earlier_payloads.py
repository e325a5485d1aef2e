"""Finds the payloads of revisits, also in earlier crawls of the collection.

Each payload is read back whole from its place, as it was before a revisit referred to it.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from archiver.collection.earlier_crawls import MOST_ASKED, rounds
from archiver.collection.layout import Layout
from archiver.collection.payload import hold_block, stored_answer
from archiver.collection.records import original_at
from archiver.crawl.recovery.scan import ScannedVisit
from archiver.errors import ArchiveError
from archiver.extract.exchange import MAX_DOCUMENT
from archiver.frontier.dedup import Payloads
from archiver.frontier.retry import Held
from archiver.model import Exchange
from archiver.storage import is_bare

REMEMBERED = 1 << 16  # responses whose places we remember, some ten megabytes


def held_before(layout: Layout) -> Held:
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
