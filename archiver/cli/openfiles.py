"""How many files and sockets a crawl may hold open, and what concurrency that allows.

The reserve is what may be open at once besides requests, at the worst; it is made of the bounds that hold elsewhere.
"""

import sys
from contextlib import suppress

from archiver.archive.index import MERGE_WIDTH
from archiver.crawl.commit import ROOM, ROOM_LARGE
from archiver.fetch.spool import IN_MEMORY

EACH = 3  # of a request: its socket, its spool file, and a connection that waits for the next one
STANDING = 32  # streams, event loop, lock, two database connections, two WARCs, crawl.log, and what libraries keep
RESERVE = STANDING + (MERGE_WIDTH + 1) + (ROOM // IN_MEMORY + ROOM_LARGE)  # the last: spooled, waiting for the archive
MOST = 1 << 20  # more would be of no use; some systems allow a thousand million


def needed(concurrency: int) -> int:
    """Open files that *concurrency* requests at once may need."""
    return RESERVE + EACH * concurrency


def fitting(limit: int | None, concurrency: int) -> int:
    """The concurrency up to *concurrency* for which *limit* open files are enough, but at least 1."""
    if limit is None:
        return concurrency
    return max(1, min(concurrency, (limit - RESERVE) // EACH))


def raised(concurrency: int) -> int | None:
    """The limit of this process, raised as far as it may be; None where there is none."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    bound = MOST if hard == resource.RLIM_INFINITY else hard
    for wanted in (min(bound, MOST), min(bound, needed(concurrency))):
        if wanted > soft:
            with suppress(OSError, ValueError):  # macOS has one more bound, which it does not tell
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return wanted
    return soft
