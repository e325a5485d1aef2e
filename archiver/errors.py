"""Exceptions by whose fault it is: three families, and everything else is a bug.

`ConfigError` is the user's fault (exit 2), `FetchError` the site's (it becomes a row in the frontier and never leaves
the visit), `ArchiveError` our storage's (the crawl stops, exit 3). Any other exception is our own bug and is not
caught.
"""

import errno
from enum import StrEnum

SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class ConfigError(Exception):
    """The user's request is impossible; the message names the input and how to correct it."""


class ArchiveError(Exception):
    """Our disk or our database failed; the message names the path."""


class ShortageError(ArchiveError):
    """This machine has temporarily run out of descriptors, buffers or memory. No URL is to blame."""


class Failure(StrEnum):
    """The reasons why no response came, in the words of the frontier, the reports and crawl.log."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    DISCONNECT = "disconnect"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    ROBOTS = "robots"
    TRAP = "trap"
    PRIVATE = "private"
    PROXY = "proxy"
    RULE = "rule"
    UNCHANGED = "unchanged"  # not a failure: a recrawl takes the page as it is stored

    @property
    def heritrix_code(self) -> int:
        """The negative status of Heritrix's crawl.log, which the tools of archives know."""
        return _HERITRIX_CODES[self]


ROBOTS_PRECLUDED = -9998  # Heritrix's status for a URL that a robots.txt forbids
_HERITRIX_CODES = {
    Failure.DNS: -1,
    Failure.CONNECT: -2,
    Failure.TLS: -2,
    Failure.DISCONNECT: -3,
    Failure.TIMEOUT: -4,
    Failure.REFUSED: -7,
    Failure.ROBOTS: -61,
    Failure.TRAP: -5003,  # "blocked due to exceeding an established quota"
    Failure.PROXY: -2,
    Failure.RULE: -5000,  # "out of scope upon reexamination"
    Failure.UNCHANGED: -5001,
    Failure.PRIVATE: -5001,  # "blocked from fetch by user setting": nothing failed, and another setting allows it
}


class FetchError(Exception):
    """No byte of a response came; `failure` is the reason in one word, the message has the details."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure
        self.reason = reason


class ProxyError(FetchError):
    """A proxy failed, so no site is to blame. *refused*: it refuses our login, which only the user can correct."""

    def __init__(self, proxy: str, reason: str, *, refused: bool = False) -> None:
        super().__init__(Failure.PROXY, f"proxy {proxy}: {reason}")
        self.proxy = proxy
        self.refused = refused


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that ended the crawl: storage errors first, because others follow from them."""
    storage, _ = group.split(ArchiveError)
    error: BaseException = storage or group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
