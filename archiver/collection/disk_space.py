"""The disk space that must stay free (--min-free-disk), so that a crawl stops cleanly before the disk is full.

Responses in the spool will be written again, to a WARC, so their bytes count as used already.
"""

from archiver.collection.layout import Layout
from archiver.fetch.spool import SpoolFolder
from archiver.storage import amount, free, storage

LOOK_EVERY = 1.0  # seconds; in one, a gigabit line brings an eighth of the default floor
LAST_RESERVE = 0.25  # of the floor; below it requests in flight are cut, because their responses may not fit


class DiskSpace:
    """Checks the free space of a collection's disks; a floor of 0 never runs short."""

    def __init__(self, layout: Layout, floor: int, spool: SpoolFolder | None = None) -> None:
        self._folders = (layout.directory, layout.archive)  # these may be on different disks
        self._floor = floor
        self._spool = spool

    def shortage(self, share: float = 1.0) -> str:
        """Return one line on where space runs below *share* of the floor, and by how much; "" if nowhere."""
        floor = int(self._floor * share)
        for folder in self._folders if floor else ():
            with storage(folder):
                available = free(folder)
            spooled = self._spool.held if self._spool else 0
            if available - spooled < floor:
                reserved = f", {amount(spooled)} of them for responses in the spool" if spooled else ""
                name, size = self._spool.largest if self._spool else ("", 0)
                largest = f"; the largest response under way is {name}, {amount(size)} so far" if name else ""
                return (
                    f"{folder}: {amount(available)} are free on its disk{reserved}, and --min-free-disk is "
                    f"{amount(floor)}: {amount(floor - available + spooled)} are missing{largest}"
                )
        return ""
