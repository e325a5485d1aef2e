"""URLs in files that people have: sitemaps, feeds, bookmarks, indexes and WARC files, recognized by content. Pure.

A list of lines is none of these; `config.seeds` reads it.
"""

import html
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from archiver.extract.document import Document
from archiver.extract.xml import read_xml
from archiver.http import content_coding
from archiver.model import Hop
from archiver.warc import cdxj
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan

HTTP = ("http://", "https://")
MOST_UNPACKED = 256 << 20  # bytes of a gzip file
_BASE = "http://list.invalid/"  # of relative references, which such a file should not have
_NETSCAPE = re.compile(rb"\s*+<!DOCTYPE\s++NETSCAPE-Bookmark-file", re.IGNORECASE)
_ANCHOR = re.compile(  # stops at the next "<" outside of quotes, so many beginnings take no more time than one
    rb"<a\s(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*?\bhref\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')", re.IGNORECASE
)
_XML = re.compile(rb"\s*+<(?:\?xml\b|(?:[\w.-]++:)?(?:urlset|sitemapindex|rss|feed|RDF)\b)", re.IGNORECASE)
_CDXJ = re.compile(rb"[^ \n]++ \d{4,17} \{")
_CDX = re.compile(rb"(?: CDX(?: \w)++[ \r]*+\n|[^ \n]++ \d{14} https?://[^ \n]++ [^ \n]++ (?:\d{3}|-) )")
_RECORD_TYPES = frozenset(("response", "resource", "revisit"))


class ListedSeeds(NamedTuple):
    """The URLs in a file, as they are written there, and what kind of file it is."""

    kind: str
    urls: list[str]


def seeds_in(content: bytes) -> ListedSeeds | None:
    """Return the URLs in *content*, each once; None if it is a list of lines, or of no known kind."""
    if content.startswith((b"\x1f\x8b", b"WARC/")):
        if _is_warc(content):
            return ListedSeeds("WARC file", _once(_warc(content)))
        content, _ = content_coding.decoded(content, ("gzip",), MOST_UNPACKED)
    content = content.removeprefix(b"\xef\xbb\xbf")
    for kind, sign, read in _KINDS:
        if sign(content):
            return ListedSeeds(kind, _once(read(content)))
    return None


def _once(urls: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(url for url in urls if url.lower().startswith(HTTP)))


def _is_warc(content: bytes) -> bool:
    return isinstance(next(scan(io.BytesIO(content)), None), Record)


def _warc(content: bytes) -> Iterator[str]:
    for record in scan(io.BytesIO(content)):
        if not isinstance(record, DamagedRecord) and (record.first("WARC-Type") or "").lower() in _RECORD_TYPES:
            yield (record.first("WARC-Target-URI") or "").strip("<> ")


def _xml(content: bytes) -> Iterator[str]:
    """Yield the pages of a sitemap, the sitemaps of an index, and the articles of a feed, but no pictures."""
    found = read_xml(Document(_BASE, "application/xml", None, content, Hop.MANIFEST))
    return (link.url for link in found.links if link.hop in (Hop.LINK, Hop.MANIFEST))


def _bookmarks(content: bytes) -> Iterator[str]:
    for found in _ANCHOR.finditer(content):
        yield html.unescape((found[1] or found[2] or b"").decode("utf-8", "replace")).strip()


def _json(content: bytes) -> Iterator[str]:
    """Yield the bookmarks that Chrome and Firefox write as JSON, and the articles of a JSON feed."""
    try:
        waiting: list[Any] = [json.loads(content)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from (value[key] for key in ("url", "uri") if isinstance(value.get(key), str))
            waiting += reversed([each for each in value.values() if isinstance(each, dict | list)])
        elif isinstance(value, list):
            waiting += reversed(value)


def _cdxj(content: bytes) -> Iterator[str]:
    for line in content.splitlines():
        entry = cdxj.parse_line(line)
        if entry is not None:
            yield entry.url


def _cdx(content: bytes) -> Iterator[str]:
    """Yield the original URLs of CDX lines; the third field, if there is no line that names the fields."""
    place = 2
    for line in content.splitlines():
        if line.startswith(b" CDX "):
            names = line.split()[1:]
            place = names.index(b"a") if b"a" in names else 2
            continue
        fields = line.split(b" ")
        if len(fields) > place:
            yield fields[place].decode("utf-8", "replace")


_Kind = tuple[str, Callable[[bytes], object], Callable[[bytes], Iterator[str]]]
_KINDS: tuple[_Kind, ...] = (
    ("bookmarks file", _NETSCAPE.match, _bookmarks),
    ("sitemap or feed", _XML.match, _xml),
    ("JSON file", lambda content: content.lstrip()[:1] in {b"{", b"["}, _json),
    ("CDXJ index", _CDXJ.match, _cdxj),
    ("CDX index", _CDX.match, _cdx),
)
