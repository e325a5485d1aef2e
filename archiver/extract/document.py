"""The input of every reader, a document, and its format by its media type and its first bytes.

Content codings are already removed from the body. Everything else may be wrong, and each reader must cope with that.

The first bytes decide if the type is missing or often wrong. This is as careful as the MIME Sniffing standard: plain
text stays plain text unless it starts as no text does. A format with a type of its own or with unique first bytes has a
sign here. These bytes win over a type that says nothing (`loose`: none, `application/octet-stream`, `text/plain`) and
over HTML types, which servers send for unknown files. Players and feed readers look only at the bytes, too.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract.script import applications, frameworks
from archiver.model import Hop


@dataclass(frozen=True, slots=True)
class Document:
    """A body in which links may be found. `url` is canonical and final: it is the base of relative references."""

    url: str
    media_type: str  # in lower case, without parameters; "" if the response does not say
    charset: str | None  # the parameter of Content-Type, as written
    body: bytes
    hop: Hop = Hop.LINK  # how the document was reached; a MANIFEST is read as a sitemap
    page: str = ""  # for a script or its data: the page that runs it, if known


class Kind(Enum):
    """The formats that have a reader, and OTHER."""

    HTML = auto()
    XML = auto()
    CSS = auto()
    SITEMAP = auto()
    SCRIPT = auto()
    TEXT = auto()
    PLAYLIST = auto()
    MANIFEST = auto()
    JSON_FEED = auto()
    JSON = auto()
    PDF = auto()
    OFFICE = auto()
    INDEX = auto()
    OTHER = auto()


_DECLARATION_WITHIN = 8192  # bytes
_WARNING = compiled(  # warnings that PHP and others print before the document
    rb"(?:[^<]|</?(?:br|b|i|p|em|strong|pre|div|span|font|table|tr|t[dh]|hr|a|h[1-6])(?=[\s/>])[^<>]*+>)++",
    re.IGNORECASE,
)

_PDF = frozenset(("application/pdf", "application/x-pdf", "application/acrobat"))
_OFFICE = (  # starts of media types
    *("application/epub+zip", "application/vnd.oasis.opendocument."),
    *("application/vnd.openxmlformats-officedocument.", "application/vnd.ms-word.", "application/vnd.ms-excel."),
    "application/vnd.ms-powerpoint.",
)
_OFFICE_SIGN = re.compile(  # the first member of a ZIP archive
    rb"PK\x03\x04[\s\S]{26}(?:mimetypeapplication/(?:epub\+zip|vnd\.oasis\.)|\[Content_Types\]\.xml|_rels/\.rels|docProps/)"
)
_ZIP = frozenset(("application/zip", "application/x-zip-compressed", "application/msword"))
_GZIP = frozenset(("application/gzip", "application/x-gzip"))
_JSON = frozenset(("application/json", "text/json", "application/x-json", "application/json+chapters"))
_PLAYLISTS = frozenset(
    (
        *("application/vnd.apple.mpegurl", "application/x-mpegurl", "application/mpegurl", "vnd.apple.mpegurl"),
        *("audio/mpegurl", "audio/x-mpegurl", "video/mpegurl", "video/x-mpegurl", "audio/x-scpls", "audio/scpls"),
        *("application/pls+xml", "application/x-scpls"),
    )
)
_LISTS_OR_MEDIA = frozenset(  # also used for the media themselves
    ("audio/x-pn-realaudio", "audio/vnd.rn-realaudio", "audio/x-pn-realaudio-plugin", "video/x-ms-asf")
)
_PLAYLIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:#EXTM3U|\[playlist\]|\[reference\]|WEBVTT)", re.IGNORECASE)
_ADDRESS = compiled(rb"\s*+(?:#[^\r\n]*+\s*+)*+(?:https?|rtsp|pnm|mms|file)://", re.IGNORECASE)
_MARKUP_SIGN = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<")
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{")
_STRUCTURE = re.compile(rb"(?:\xef\xbb\xbf)?\s*+[\[{\"]")
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[")
_MANIFESTS = (".webmanifest", "/manifest.json")
_INDEXES = ("/pagefind-entry.json", "/page-data.json", "/search_index.json")
_LISTS_OF_STORIES = ("/index.json", "/stories.json")
_OF_SEARCH = re.compile(rb"\s*+\{\s*+\"config\"\s*+:\s*+\{\s*+\"lang\"\s*+:\s*+\[")
_STORIES = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\{\s*+\"v\"\s*+:\s*+\d{1,9}\s*+,\s*+\"(?:entries|stories)\"\s*+:\s*+\{")
_PAYLOAD = re.compile(rb"[0-9a-f]{0,4}:(?:\"[^\"\\\n]{0,300}\"\n|I\[|HL\[)")
_OF_IIIF = b"iiif.io/api/image"
_FEED_SIGN = re.compile(rb"\"version\"\s{0,20}:\s{0,20}\"https?:\\?/\\?/jsonfeed\.org\\?/version")


def unwarned(body: bytes) -> bytes:
    """Return *body* without the server's warning before its XML declaration, if there is one."""
    start = body.find(b"<?xml ", 0, _DECLARATION_WITHIN)
    return body[start:] if start > 0 and _WARNING.fullmatch(body, 0, start) else body


def _signed_kind(document: Document, head: bytes, *, loose: bool, page: bool) -> Kind | None:
    """Return the kind of *document*, which starts with *head*, if it has a sign of its own; None otherwise."""
    media = document.media_type
    if head.startswith(b"%PDF-") and (loose or page or media in _PDF):
        return Kind.PDF
    if head.startswith(b"PK\x03\x04") and (
        media.startswith(_OFFICE) or ((loose or media in _ZIP) and _OFFICE_SIGN.match(head))
    ):
        return Kind.OFFICE
    if _PLAYLIST.match(head) and (
        loose or page or media in _PLAYLISTS or media.startswith(("audio/", "video/", "text/vtt"))
    ):
        return Kind.PLAYLIST
    if media in _PLAYLISTS or media in _LISTS_OR_MEDIA:
        if _MARKUP_SIGN.match(head):
            return Kind.XML
        return Kind.PLAYLIST if media in _PLAYLISTS or _ADDRESS.match(head) else Kind.OTHER
    if head.startswith((b"\x1f\x8b", b"pagefind_dcd")) and (loose or media in _GZIP):
        if url.path(document.url).endswith((".pf_meta", ".pf_fragment")):
            return Kind.INDEX
        return Kind.SITEMAP if url.path(document.url).lower().endswith(".xml.gz") else Kind.OTHER
    if media == "text/uri-list":
        return Kind.TEXT
    if document.hop is Hop.SPECULATIVE and not page and _is_text_of_scripts(url.path(document.url), head):
        return Kind.INDEX
    return _json(document, head, loose=loose)


def _is_text_of_scripts(path: str, head: bytes) -> bool:
    """True for a text of Docsify, and for a payload of Next.js."""
    return path.endswith((".md", frameworks.TREE)) or (path.endswith(".txt") and _PAYLOAD.match(head) is not None)


def _json(document: Document, head: bytes, *, loose: bool) -> Kind | None:
    media, address = document.media_type, document.url.partition("?")[0]
    if applications.is_data(address) and _STRUCTURE.match(head):
        return Kind.INDEX
    if media == "application/manifest+json":
        return Kind.MANIFEST
    if media == "application/feed+json":
        return Kind.JSON_FEED
    if media in _JSON and _ARRAY.match(head):
        return Kind.JSON
    if not (loose or media in _JSON or media.endswith("+json")) or not _OBJECT.match(head):
        return None
    if document.hop is Hop.REQUISITE and address.lower().endswith(_MANIFESTS):
        return Kind.MANIFEST
    if (
        address.endswith(_INDEXES)
        or (address.endswith(_LISTS_OF_STORIES) and _STORIES.match(head))
        or (address.endswith("/search.json") and _OF_SEARCH.match(head))
        or (frameworks.DOCC_DATA.match(url.path(document.url)) and frameworks.DOCC_SIGN.search(head))
        or (address.endswith("/info.json") and _OF_IIIF in head)
    ):
        return Kind.INDEX
    if _FEED_SIGN.search(head):
        return Kind.JSON_FEED
    return None if loose else Kind.JSON


SNIFFED = 1024  # bytes of a document that show its format
_UNKNOWN = frozenset(("", "*/*", "unknown/unknown", "application/unknown", "application/octet-stream"))
_XML_TYPES = frozenset(
    (
        *("application/xml", "text/xml", "application/xhtml+xml", "image/svg+xml", "text/xsl", "application/xslt"),
        *("text/x-opml", "application/x-rss", "application/smil", "application/x-asx", "application/x-ms-asx"),
        *("video/x-ms-asx", "audio/x-ms-wax", "video/x-ms-wvx"),
    )
)
SCRIPT_TYPES = frozenset(
    (
        *("text/javascript", "application/javascript", "application/x-javascript", "text/x-javascript"),
        *("application/ecmascript", "application/x-ecmascript", "text/ecmascript", "text/x-ecmascript"),
        *(f"text/javascript1.{version}" for version in range(6)),
        *("text/jscript", "text/livescript"),
    )
)
_HTML_TYPES = frozenset(("text/html", "application/vnd.wap.xhtml+xml", "application/x-httpd-php"))
_BINARY = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"RIFF", b"OggS", b"wOF", b"ID3")
_XML_ROOT = re.compile(
    rb"<(?:svg|mpd|asx|smil|opml|xbel|playlist|browserconfig|opensearchdescription|image_properties|xsl:stylesheet)[\s>]"
    rb"|<image\s[^<>]{0,300}schemas\.microsoft\.com/deepzoom/",
    re.IGNORECASE,
)
_LEAD = compiled(rb"(?:\xef\xbb\xbf)?(?:[\t\n\f\r ]|<!--(?:[^-]|-(?!->))*+-->)*+")
_DOCTYPE = b"<!doctype html"  # most pages start with this, and no other document sent as HTML does
_SURELY_HTML = re.compile(rb"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_URLS_ONLY = compiled(  # the start of a text that has only complete URLs on its lines
    rb"(?:\xef\xbb\xbf)?(?:\s++|#[^\r\n]*+)*+https?://[^\s<>\"]++(?:[ \t]*+(?:[\r\n]|\Z))(?:\s++|#[^\r\n]*+|https?://[^\s<>\"]++(?=\s|\Z))*+"
    rb"(?:h(?:t(?:t(?:p(?:s?:?/?)?)?)?)?)?",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    rb"<!doctype\s+html|<(?:html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|frameset|base|link)[\s/>]",
    re.IGNORECASE,
)
_FEED = compiled(
    rb"(?:<\?xml[^>]*+>)?(?:\s|<!--(?:[^-]|-(?!->))*+-->)*+"
    rb"<(?:[\w-]++:)?(?:rss|feed|rdf|urlset|sitemapindex)[\s>]",
    re.IGNORECASE,
)


def kind_of(document: Document) -> Kind:
    """Return the format of *document*."""
    media = document.media_type
    head = document.body[:SNIFFED]
    if media in _HTML_TYPES and head[: len(_DOCTYPE)].lower() == _DOCTYPE:
        return Kind.HTML
    xml = _is_xml(media)
    if xml or media in _HTML_TYPES or document.hop is Hop.MANIFEST:
        head = unwarned(document.body)[:SNIFFED]
    if document.hop is Hop.MANIFEST:
        return Kind.HTML if _surely_html(head) else Kind.SITEMAP
    kind = _signed_kind(document, head, loose=media in _UNKNOWN or media == "text/plain", page=media in _HTML_TYPES)
    if kind:
        return kind
    if media in _HTML_TYPES:
        return _kind_of_page(head)
    if xml:
        return Kind.XML
    if media == "text/css":
        return Kind.CSS
    if media in SCRIPT_TYPES:
        return Kind.HTML if _surely_html(head) else Kind.SCRIPT
    if media == "text/plain":
        return _kind_of_plain_text(document, head)
    return _kind_of_unknown(document, head) if media in _UNKNOWN or "/" not in media else Kind.OTHER


def _is_xml(media: str) -> bool:
    return media in _XML_TYPES or media.endswith("+xml")


def _kind_of_page(head: bytes) -> Kind:
    if head.startswith(_BINARY):
        return Kind.OTHER
    return Kind.XML if _FEED.match(head, _start(head)) else Kind.HTML


def _kind_of_plain_text(document: Document, head: bytes) -> Kind:
    if _surely_html(head):
        return Kind.HTML
    return Kind.TEXT if _URLS_ONLY.fullmatch(head) else _kind_by_name(document)


def _kind_of_unknown(document: Document, head: bytes) -> Kind:
    start = _start(head)
    if _MARKUP.match(head, start):
        return Kind.HTML
    if head.startswith(b"<?xml", start) or _FEED.match(head, start) or _XML_ROOT.match(head, start):
        return Kind.XML
    return _kind_by_name(document)


def _kind_by_name(document: Document) -> Kind:
    """Return the kind of a requisite or guess by the extension in its URL."""
    if document.hop is Hop.REQUISITE or document.hop is Hop.SPECULATIVE:
        name = url.path(document.url).lower()
        if name.endswith(".css"):
            return Kind.CSS
        if name.endswith((".js", ".mjs")):
            return Kind.SCRIPT
        if name.endswith((".json", ".gltf")):
            return Kind.JSON
        if name.endswith((".mpd", ".dzi")):
            return Kind.XML
    return Kind.OTHER


def _surely_html(head: bytes) -> bool:
    return _SURELY_HTML.match(head, _start(head)) is not None


def _start(head: bytes) -> int:
    """Return the position after leading white space and comments."""
    found = _LEAD.match(head)
    return found.end() if found else 0
