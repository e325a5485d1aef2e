"""What goes into which package, where a collection is packed into several: by the sizes that are known beforehand.

WARC files stay whole and in order. Pure.
"""

from collections.abc import Sequence

from archiver.wacz.stock import Warc

ROOM = 256 << 10  # bytes for what describes a package
ROOM_EACH = 2 << 10  # and for each WARC file in it
PAGES = 10  # a part of so many of a WARC file is left for its pages; most need a third of it


def shares(warcs: Sequence[Warc], limit: int, beside: int) -> list[tuple[Warc, ...]]:
    """The WARC files of each package; only where one alone is too large a package is larger than *limit* bytes.

    *beside* is what else goes into the first one.
    """
    found: list[list[Warc]] = [[]]
    taken = beside
    for warc in warcs:
        wanted = needed((warc,)) + warc.size // PAGES
        if found[-1] and ROOM + taken + wanted > limit:
            found.append([])
            taken = 0
        found[-1].append(warc)
        taken += wanted
    return [tuple(share) for share in found]


def needed(warcs: Sequence[Warc]) -> int:
    """Bytes for *warcs* and their index; of a line of the index less than half is left when it is compressed."""
    return sum(warc.size + warc.line_bytes // 2 + ROOM_EACH for warc in warcs)
