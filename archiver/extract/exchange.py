"""Reading: what an answer names, bounded, off the event loop: it needs as long as the body is large.

Whatever the bytes are, `read_links` returns; what kept it from reading on stands in the note. No network, no disk.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from archiver import extract, url
from archiver.http import Dechunker, body_limits, content_codings, read_head, transfer_codings
from archiver.model import Claim, Exchange, Framing, Hop, Link, Links, Robots
from archiver.policy import robots
from archiver.policy.page_text import READ_ALL
from archiver.policy.scope import is_guess
from archiver.policy.speculative import SITEMAPS

MAX_DOCUMENT = 32 << 20  # bytes of a body that are read for links; real pages stay below 5 MB
LARGE = 1 << 20  # bytes of a response that is not taken into memory before its beginning says that it can be read
PROBE = 4 << 10
PROBED = 1 << 20  # bytes, without its coding, of a body that nobody looks into: is the coding what the head says?
MAX_SITEMAP = 50_000_000  # the format's own limit

PAGES = frozenset(("text/html", "application/xhtml+xml"))
_SCRIPTS = (".js", ".mjs", ".json", ".md")  # a text of Docsify, too, is shown in the page
_OPAQUE = ("image/", "video/", "audio/", "font/")  # few of them are text: drawings and playlists

_BROKEN = re.compile(r"\b(?:broken \w+ data|data is cut|not \w+, as the header says|unknown content coding)")
_HEAD_END = re.compile(rb"\r?\n\r?\n")

CODING_FAULT = "content-coding"  # the word for a body that is not coded as its head says
UNREAD = "the links were not read"  # begins the note of a document that is stored, but names nothing that we know
FAULT = f"{UNREAD}: a fault of archiver"

Read = Callable[[extract.Document], Links]


class LargeDocumentError(Exception):
    """The document, of *size* bytes, is to be read where others do not wait for it."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


log = logging.getLogger(__name__)


def is_robots(claim: Claim) -> bool:
    """Whether the answer holds (or leads to) the rules of a host."""
    if claim.url.endswith("/robots.txt") and claim.url == url.origin(claim.url) + "/robots.txt":
        return True
    return claim.path[:1] == Hop.PREREQUISITE and claim.path.strip("PR") == ""


def read_links(claim: Claim, exchange: Exchange, read: Read = extract.links) -> Links:
    """Everything that the exchange names, documents by *read*. Whatever its bytes are, this returns.

    Unless *read* itself raises `LargeError`.
    """
    if body_limits.reason(exchange.notes):
        return Links()
    try:
        return _read_links(claim, exchange, read)
    except LargeDocumentError:
        raise
    except Exception:  # a fault of a reader must not keep a page from being stored: the note stands in its record
        log.exception("links of %s could not be read", claim.url)
        return Links(note=FAULT)


def _read_links(claim: Claim, exchange: Exchange, read: Read) -> Links:
    fields = exchange.framing.fields
    status = exchange.framing.status
    if 300 <= status < 400:
        link = extract.redirect(claim.url, fields)
        return Links((link,)) if link is not None else Links()
    moved_to_page = claim.path.endswith(Hop.REDIRECT) and exchange.framing.media_type in PAGES
    if is_robots(claim) and not moved_to_page:  # a page that stands in for robots.txt is still a page of the site
        return _sitemaps(claim, exchange)
    if not (200 <= status < 300 or status == 0):
        return Links()
    named = extract.from_fields(claim.url, (*fields, *_hints(exchange.interim)) if exchange.interim else fields)
    nofollow = extract.nofollow(fields)
    media_type = exchange.framing.media_type
    sitemap = claim.path.rstrip(Hop.REDIRECT).endswith(Hop.MANIFEST) or (  # one that has moved is one still
        is_guess(claim.path) and url.target(claim.url) in SITEMAPS
    )
    hop = Hop.MANIFEST if sitemap else claim.hop
    if exchange.response.length > LARGE or media_type.startswith(_OPAQUE):
        beginning = extract.Document(claim.url, media_type, None, payload(exchange, PROBE)[0], hop)
        if not extract.readable(beginning):
            return Links(tuple(named), nofollow=nofollow)
    body, note = payload(exchange, MAX_SITEMAP if sitemap else MAX_DOCUMENT)
    document = extract.Document(claim.url, media_type, charset(exchange.framing), body, hop, _page_of(claim))
    if (
        is_guess(claim.path) and not is_page(claim) and extract.is_page(document)
    ):  # what a site says where there is no such file
        return Links(note=note)
    told = read(document)
    found = told.links
    if named:
        found = tuple({(link.url, link.hop): link for link in (*named, *found)}.values())
    return Links(
        found,
        charset=told.charset,
        note="; ".join(filter(None, (note, told.note))),
        nofollow=(*nofollow, *told.nofollow),
        icon=told.icon,
        page=body[:READ_ALL] if body and is_page(claim) else None,
    )


def with_page(claim: Claim, exchange: Exchange, links: Links) -> Links:
    """Return *links*, which the records of a visit name, with the page as `read_links` would have given it."""
    status, media_type = exchange.framing.status, exchange.framing.media_type
    if links.page is not None or not is_page(claim) or is_robots(claim) or not (200 <= status < 300 or status == 0):
        return links
    if exchange.response.length > LARGE or media_type.startswith(_OPAQUE):
        beginning = extract.Document(claim.url, media_type, None, payload(exchange, PROBE)[0], claim.hop)
        if not extract.readable(beginning):
            return links
    return replace(links, page=payload(exchange, READ_ALL)[0] or None)


def _hints(interim: bytes) -> tuple[tuple[str, str], ...]:
    """The Link fields of early hints: a browser loads what they name before the answer itself has come."""
    heads = [read_head(head + b"\r\n\r\n") for head in _HEAD_END.split(interim) if head.strip()]
    return tuple(field for head in heads if head.status == 103 for field in head.fields if field[0] == "link")


def _sitemaps(claim: Claim, exchange: Exchange) -> Links:
    body, note = payload(exchange, robots.MAX_BODY)
    named = robots.sitemaps(Robots(exchange.framing.status, body))
    addresses = dict.fromkeys(filter(None, map(partial(url.join, claim.url), named)))
    return Links(tuple(Link(address, Hop.MANIFEST, "robots.txt/Sitemap") for address in addresses), note=note)


def payload(exchange: Exchange, limit: int) -> tuple[bytes, str]:
    """The first *limit* bytes of the body, without any coding, and what could not be undone."""
    skip, fields = exchange.framing.head_length, exchange.framing.fields
    codings = [*content_codings(fields), *transfer_codings(fields)]
    if not codings and not exchange.framing.chunked and exchange.response.length <= limit:
        return b"".join(exchange.response.pieces())[skip:], ""
    dechunker = Dechunker() if exchange.framing.chunked else None
    body = bytearray()
    for whole in exchange.response.pieces():
        piece, skip = whole[skip:], max(0, skip - len(whole))
        for part in dechunker.feed(piece) if dechunker is not None else (piece,):
            body += part
        if len(body) > limit:
            break
    if dechunker is not None:
        body += b"".join(dechunker.finish())
    del body[limit:]
    return extract.decoded(bytes(body), codings, limit) if codings else (bytes(body), "")


def with_coding_fault(exchange: Exchange, links: Links) -> Exchange:
    """*exchange*, with a fault word where its content coding breaks; *links* were read from it."""
    codings = {*content_codings(exchange.framing.fields)} - {"identity"}
    if exchange.truncated is not None or not codings or exchange.response.length <= exchange.framing.head_length:
        return exchange
    note = links.note
    if not (note or links.links or links.page):  # it was not looked into, or has nothing
        note = payload(exchange, PROBED)[1]
    if not _BROKEN.search(note):
        return exchange
    return replace(exchange, framing=replace(exchange.framing, faults=(*exchange.framing.faults, CODING_FAULT)))


def charset(framing: Framing) -> str | None:
    """The parameter of Content-Type, as it stands there."""
    found = (charset_of(value) for value in framing.all("content-type"))
    return next((value for value in found if value is not None), "") or None


def charset_of(content_type: str) -> str | None:
    """The same of one *content_type*; "" where it has no value."""
    for parameter in content_type.split(";")[1:]:
        name, _, text = parameter.partition("=")
        if name.strip().lower() == "charset":
            return text.strip().strip("\"'")
    return None


def is_page(claim: Claim) -> bool:
    """Whether *claim* is one that a person could open, however often it has moved, and not a part of one.

    Of guesses those whose name is a page's: a page in the place of a file is what a site says where there is none.
    """
    led = claim.path.rstrip(Hop.REDIRECT)
    if led[-1:] != Hop.SPECULATIVE:
        return led[-1:] in {"", Hop.LINK}
    first = claim.url if led == claim.path else claim.via or ""
    return url.may_be_page(claim.url) and (not first or url.may_be_page(first))


def _page_of(claim: Claim) -> str:
    """The page that runs *claim*, if that is a script, or uses it: what named it, or where its path began."""
    via = claim.via or ""
    return claim.seed if via and url.path(via).lower().endswith(_SCRIPTS) else via
