"""Errors of connections: which failure of ours each of them is, and its reason in words."""

import errno
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from archiver.errors import SHORTAGES, Failure, FetchError, ShortageError
from archiver.fetch.name_servers import NameServerError


class UnresolvedError(Exception):
    """The *host* has no address, because of *cause*."""

    def __init__(self, host: str, cause: OSError) -> None:
        super().__init__(host, cause)
        self.host = host
        self.cause = cause


_FAILURES: Mapping[type[Exception], Failure] = {
    UnresolvedError: Failure.DNS,
    ssl.SSLError: Failure.TLS,
    TimeoutError: Failure.TIMEOUT,
    ConnectionResetError: Failure.DISCONNECT,
    OSError: Failure.CONNECT,
    UnicodeError: Failure.DNS,  # an invalid label: empty, or longer than 63 bytes
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise `FetchError` for the errors in the table above. Anything else is a bug and passes through."""
    try:
        yield
    except tuple(_FAILURES) as error:
        if (shortage := _shortage(error)) is not None:
            raise ShortageError(f"no connection could be opened: {os.strerror(shortage)}") from error
        failure = next(ours for theirs, ours in _FAILURES.items() if isinstance(error, theirs))
        if isinstance(error, TimeoutError | ConnectionResetError) and error.errno:  # the system says so, not we
            failure = Failure.CONNECT
        raise FetchError(failure, _reason(failure, error)) from error


def _shortage(error: Exception) -> int | None:
    """Return the error number if this machine, not the site, is at fault: it has run out of a resource."""
    cause = error
    if isinstance(error, UnresolvedError):  # the resolver does not say why it failed
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as refused:
            cause = refused
    return cause.errno if isinstance(cause, OSError) and cause.errno in SHORTAGES else None


_OTHER_VERSIONS = ("TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")  # of TLS: both sides have none in common


def _reason(failure: Failure, error: Exception) -> str:
    if failure is Failure.TIMEOUT:
        return "no connection within the time limit"
    if failure is Failure.DNS:
        if isinstance(error, UnresolvedError):
            return unresolved(error.host, error.cause)
        return "host name does not resolve"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, ssl.SSLError) and error.reason in _OTHER_VERSIONS:
        return f"{error}; an old server may need --host 'HOST tls-min=1.0'"
    return str(error)


def unresolved(host: str, error: Exception) -> str:
    """Return in words why *host* has no address."""
    if isinstance(error, NameServerError):
        return f"host name {host} does not resolve ({error})"
    if isinstance(error, OSError) and error.errno == errno.ETIMEDOUT:
        return f"no name server answers for {host}"
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return str(error.strerror)
    return f"host name {host} does not resolve"
