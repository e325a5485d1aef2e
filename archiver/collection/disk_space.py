"""The room that must stay free on the disk, so that a crawl stops in order before the disk is full.

Responses that lie in the spool will be written once more, into a WARC: their bytes count as used already.
"""

from collections.abc import Callable

from archiver import storage as disk
from archiver.collection.layout import Layout
from archiver.storage import storage

LOOK_EVERY = 1.0  # seconds: what a gigabit brings in one is an eighth of the default floor
LAST_RESERVE = 0.25  # of the floor: below it requests in flight are cut, for what they bring could not be stored


class DiskSpace:
    """Watches the disk of a collection; a floor of 0 is always kept."""

    def __init__(
        self,
        layout: Layout,
        floor: int,
        spooled: Callable[[], int] = lambda: 0,
        largest: Callable[[], tuple[str, int]] = lambda: ("", 0),
    ) -> None:
        self._folders = (layout.directory, layout.archive)  # which may lie on different disks
        self._floor = floor
        self._spooled = spooled
        self._largest = largest  # URL and bytes of the largest response in the spool

    def shortage(self, share: float = 1.0) -> str:
        """Where room is missing to that *share* of the floor, and how much, in one line; "" where none is."""
        floor = int(self._floor * share)
        for folder in self._folders if floor else ():
            with storage(folder):
                free = disk.free(folder)
            spooled = self._spooled()
            if free - spooled < floor:
                spoken_for = f", {disk.amount(spooled)} of them for responses in the spool" if spooled else ""
                name, size = self._largest()
                largest = f"; the largest response under way is {name}, {disk.amount(size)} so far" if name else ""
                return (
                    f"{folder}: {disk.amount(free)} are free on its disk{spoken_for}, and --min-free-disk is "
                    f"{disk.amount(floor)}: {disk.amount(floor - free + spooled)} are missing{largest}"
                )
        return ""
