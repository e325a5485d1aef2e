"""How many files and sockets a crawl may hold open, and what concurrency that allows.

The reserve is what may be open at once besides requests, at the worst; it is made of the bounds that hold elsewhere.
"""

import sys
from contextlib import suppress

from archiver.archive.index import MERGE_WIDTH
from archiver.crawl.commit import ROOM, ROOM_LARGE
from archiver.fetch.idle import MOST as MOST_IDLE
from archiver.fetch.spool import IN_MEMORY

EACH = 3  # of a request: its socket, its spool file, and a connection that waits for the next one …
MOST_BESIDE = MOST_IDLE  # … of which there are never more; nor of spool files but for as many large answers at once …
BESIDE = 2  # … whose files are refused before they take what the archive needs (`fetch.spool`)
STANDING = 32  # streams, event loop, lock, two database connections, two WARCs, crawl.log, and what libraries keep
RESERVE = STANDING + (MERGE_WIDTH + 1) + (ROOM // IN_MEMORY + ROOM_LARGE)  # the last: spooled, waiting for the archive
MOST = 1 << 20  # more would be of no use; some systems allow a thousand million


def needed(concurrency: int) -> int:
    """Open files that *concurrency* requests at once may need."""
    return RESERVE + concurrency + BESIDE * min(concurrency, MOST_BESIDE)


def fitting(limit: int | None, concurrency: int) -> int:
    """The concurrency up to *concurrency* for which *limit* open files are enough, but at least 1."""
    if limit is None:
        return concurrency
    left = limit - RESERVE
    return max(1, min(concurrency, max(min(left // EACH, MOST_BESIDE), left - BESIDE * MOST_BESIDE)))


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
