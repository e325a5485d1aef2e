"""Plain text: only a text that is a list of URLs and nothing else names anything.

Every line that is neither empty nor a comment (`#`, as in text/uri-list) must be one absolute http(s) URL.
"""

import re
from collections.abc import Iterable, Iterator

from archiver.extract import charset
from archiver.extract.collector import LinkCollector
from archiver.extract.document import Document
from archiver.model import Hop, Links

MOST_BYTES = 32 << 20
_LONGEST = 1 << 14  # characters of a line
_URL = re.compile(r"https?://[^\s<>\"]++", re.IGNORECASE)
_BEGINNING = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s++|#[^\r\n]*+)*+https?://[^\s<>\"]++(?:[ \t]*+(?:[\r\n]|\Z))(?:\s++|#[^\r\n]*+|https?://[^\s<>\"]++(?=\s|\Z))*+"
    rb"(?:h(?:t(?:t(?:p(?:s?:?/?)?)?)?)?)?",
    re.IGNORECASE,
)


def begins_as_list(head: bytes) -> bool:
    """True if *head*, the start of a text, has only complete URLs on its lines."""
    return _BEGINNING.fullmatch(head) is not None


def read_text(document: Document) -> Links:
    """Return the URLs of the list; nothing if any line is not a URL."""
    encoding = charset.of_text(document.body, document.charset)
    found = LinkCollector()
    for line in lines(charset.pieces(document.body, encoding, MOST_BYTES)):
        address = line.strip()
        if not address or address.startswith("#"):
            continue
        if not _URL.fullmatch(address):
            return Links(charset=encoding)
        found.add(address, Hop.LINK, "line")
        if found.full:
            break
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, encoding, note, queries="utf-8")


def lines(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in *pieces*; a line too long for a URL is cut."""
    rest = ""
    for piece in pieces:
        *whole, last = piece.splitlines(keepends=True) or [""]
        for part in whole:
            yield rest + part
            rest = ""
        if len(rest) <= _LONGEST:
            rest += last
        if last[-1:] in ("\n", "\r"):
            yield rest
            rest = ""
    yield rest
