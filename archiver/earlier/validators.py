"""The conditions of a request, made of the head that came with the earlier answer. Never raises; pure.

A validator is sent back exactly as it came, byte for byte, or not at all. What could mean more than the one version
that is stored (`*`, several tags, a control character) is not sent.
Source: RFC 9110 §8.8, §13.1, §15.4.5; RFC 9111 §4.3.4.
"""

import re

from archiver.model import Framing

LONGEST = 1024  # bytes; real ones have some dozens, and a server may refuse a large head

SHOWN_BY = (  # what a head says of how its payload is shown and read
    *("content-type", "content-disposition", "content-language", "content-location", "content-security-policy"),
    *("link", "refresh", "x-frame-options", "x-robots-tag"),
)

_TAG = re.compile(rb'(?:W/)?"[^"\x00-\x1f\x7f]*"|[^\s",*\x00-\x1f\x7f]+')  # quoted as it should be, or a bare word
_NAMED = re.compile(rb"If-None-Match: ([^\r\n]*)\r\n")  # as `conditions` writes it
_DATE = re.compile(rb"[0-9A-Za-z,:+ -]+")

NAMES = frozenset(("if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"))


def conditions(framing: Framing) -> bytes:
    """Field lines by which a server can say that the version with this head is still the newest; b"" for none."""
    lines = b""
    if tag := _single(framing, "etag", _TAG):
        lines += b"If-None-Match: %b\r\n" % tag
    if date := _single(framing, "last-modified", _DATE):
        lines += b"If-Modified-Since: %b\r\n" % date
    return lines


def contradicts(framing: Framing, asked: bytes) -> bool:
    """Whether an answer says by its tag that the newest version is another than the one named by *asked*."""
    tag, named = _single(framing, "etag", _TAG), _NAMED.match(asked)
    return bool(tag) and named is not None and tag.removeprefix(b"W/") != named[1].removeprefix(b"W/")


def shown_alike(one: Framing, other: Framing) -> bool:
    """Whether the payload of *one* is shown, and its links are read, in the same way with the head *other*."""
    return one.status == other.status and all(one.all(name) == other.all(name) for name in SHOWN_BY)


def given_by_hand(headers: tuple[str, ...]) -> bool:
    """Whether the user's own *headers* make requests conditional, or ask for parts: then nothing is added to them."""
    return any(line.partition(":")[0].strip().lower() in NAMES for line in headers)


def _single(framing: Framing, name: str, form: re.Pattern[bytes]) -> bytes:
    values = framing.all(name)
    if len(values) != 1:
        return b""
    value = values[0].encode("latin-1", "replace")
    return value if len(value) <= LONGEST and form.fullmatch(value) else b""
