"""The signs of the formats that have a type of their own, or first bytes that no other has.

A type that says nothing (`loose`: none, `application/octet-stream`, `text/plain`) yields to such bytes; so does
that of a page, which servers give to whatever they do not know. Players and readers look at the bytes alone.
"""

import re
from typing import Literal

from archiver import url
from archiver.extract.document import Document
from archiver.model import Hop

_DECLARATION_WITHIN = 8192  # bytes
_WARNING = re.compile(  # what PHP and its kin say in the place where they are when something is wrong
    rb"(?:[^<]|</?(?:br|b|i|p|em|strong|pre|div|span|font|table|tr|t[dh]|hr|a|h[1-6])(?=[\s/>])[^<>]*+>)++",
    re.IGNORECASE,
)
Word = Literal["PDF", "PLAYLIST", "XML", "SITEMAP", "MANIFEST", "JSON_FEED", "JSON", "TEXT", "INDEX", "OTHER"]

_PDF = frozenset(("application/pdf", "application/x-pdf", "application/acrobat"))
_GZIP = frozenset(("application/gzip", "application/x-gzip"))
_JSON = frozenset(("application/json", "text/json", "application/x-json"))
_PLAYLISTS = frozenset(
    (
        *("application/vnd.apple.mpegurl", "application/x-mpegurl", "application/mpegurl", "vnd.apple.mpegurl"),
        *("audio/mpegurl", "audio/x-mpegurl", "video/mpegurl", "video/x-mpegurl", "audio/x-scpls", "audio/scpls"),
        *("application/pls+xml", "application/x-scpls"),
    )
)
_LISTS_OR_MEDIA = frozenset(  # the same types for the media themselves
    ("audio/x-pn-realaudio", "audio/vnd.rn-realaudio", "audio/x-pn-realaudio-plugin", "video/x-ms-asf")
)
_PLAYLIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:#EXTM3U|\[playlist\]|\[reference\])", re.IGNORECASE)
_ADDRESS = re.compile(rb"\s*+(?:#[^\r\n]*+\s*+)*+(?:https?|rtsp|pnm|mms|file)://", re.IGNORECASE)
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<")
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{")
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[")
_MANIFESTS = (".webmanifest", "/manifest.json")
_INDEXES = ("/pagefind-entry.json", "/page-data.json", "/search_index.json")
_LISTS_OF_STORIES = ("/index.json", "/stories.json")
_STORIES = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{\s*+\"v\"\s*+:\s*+\d{1,9}\s*+,\s*+\"(?:entries|stories)\"\s*+:\s*+\{")
_FEED = re.compile(rb"\"version\"\s{0,20}:\s{0,20}\"https?:\\?/\\?/jsonfeed\.org\\?/version")


def unwarned(body: bytes) -> bytes:
    """Return *body* from its XML declaration on if only a warning of the server's own program stands before it."""
    start = body.find(b"<?xml ", 0, _DECLARATION_WITHIN)
    return body[start:] if start > 0 and _WARNING.fullmatch(body, 0, start) else body


def word_of(document: Document, head: bytes, *, loose: bool, page: bool) -> Word | None:
    """The word for the grammar of *document*, which begins with *head*; None where there is no such sign."""
    media = document.media_type
    if head.startswith(b"%PDF-") and (loose or page or media in _PDF):
        return "PDF"
    if _PLAYLIST.match(head) and (loose or page or media in _PLAYLISTS or media.startswith(("audio/", "video/"))):
        return "PLAYLIST"
    if media in _PLAYLISTS or media in _LISTS_OR_MEDIA:
        if _MARKUP.match(head):
            return "XML"
        return "PLAYLIST" if media in _PLAYLISTS or _ADDRESS.match(head) else "OTHER"
    if head.startswith((b"\x1f\x8b", b"pagefind_dcd")) and (loose or media in _GZIP):
        if url.path(document.url).endswith(".pf_meta"):
            return "INDEX"
        return "SITEMAP" if url.path(document.url).lower().endswith(".xml.gz") else "OTHER"
    if media == "text/uri-list":
        return "TEXT"
    if document.hop is Hop.SPECULATIVE and not page and url.path(document.url).endswith(".md"):
        return "INDEX"
    return _json(document, head, loose=loose)


def _json(document: Document, head: bytes, *, loose: bool) -> Word | None:
    media = document.media_type
    if media == "application/manifest+json":
        return "MANIFEST"
    if media == "application/feed+json":
        return "JSON_FEED"
    if media in _JSON and _ARRAY.match(head):
        return "JSON"
    if not (loose or media in _JSON or media.endswith("+json")) or not _OBJECT.match(head):
        return None
    if document.hop is Hop.REQUISITE and url.path(document.url).lower().endswith(_MANIFESTS):
        return "MANIFEST"
    path = url.path(document.url)
    if path.endswith(_INDEXES) or (path.endswith(_LISTS_OF_STORIES) and _STORIES.match(head)):
        return "INDEX"
    if _FEED.search(head):
        return "JSON_FEED"
    return None if loose else "JSON"
