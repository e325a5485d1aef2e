"""Whose fault it is, said by the type: three families, and everything else is a bug.

`ConfigError` is the user's (exit 2), `FetchError` is the site's (a row in the frontier, never leaves
the visit), `ArchiveError` is our storage's (the crawl stops, exit 3). Any other exception is our own
bug: it is not caught, and it is loud.
"""

import errno
from enum import StrEnum

SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class ConfigError(Exception):
    """What the user asked for cannot be done; the message names the input and what would be right."""


class ArchiveError(Exception):
    """Our disk or our database failed; the message names the path."""


class ShortageError(ArchiveError):
    """This machine has run out of something that comes back: descriptors, buffers, memory. Nobody's URL is to blame."""


class Failure(StrEnum):
    """Why no answer came, in words that stand in the frontier, the reports and crawl.log."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    DISCONNECT = "disconnect"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    ROBOTS = "robots"
    TRAP = "trap"
    PRIVATE = "private"

    @property
    def heritrix_code(self) -> int:
        """The negative status that archives' tools know from Heritrix's crawl.log."""
        return _HERITRIX_CODES[self]


ROBOTS_PRECLUDED = -9998  # Heritrix's word for a URL that a robots.txt forbids
_HERITRIX_CODES = {
    Failure.DNS: -1,
    Failure.CONNECT: -2,
    Failure.TLS: -2,
    Failure.DISCONNECT: -3,
    Failure.TIMEOUT: -4,
    Failure.REFUSED: -7,
    Failure.ROBOTS: -61,
    Failure.TRAP: -5003,  # "blocked due to exceeding an established quota"
    Failure.PRIVATE: -5001,  # "blocked from fetch by user setting": nothing failed, and another setting takes it
}


class FetchError(Exception):
    """No byte of an answer came; `failure` says why in one word, the message says it in full."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure
        self.reason = reason
