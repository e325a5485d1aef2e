"""Which payloads earlier crawls of the collection hold: of a revisit that names one of these nothing is lost.

Read back whole from their places, as by whoever writes a revisit.
"""

from collections.abc import Collection
from contextlib import closing

from archiver.archive.layout import Layout
from archiver.archive.originals import original_at
from archiver.earlier.rounds import rounds
from archiver.frontier.again import Held
from archiver.frontier.payloads import Payloads


def held_before(layout: Layout) -> Held:
    """A question: which of these digests are those of payloads that earlier crawls of *layout* hold?"""
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
