"""Links of one HTTP exchange: of its headers and of its body.

It is bounded and to be run off the event loop, since the time is linear in the size of the body. `read_links` returns
whatever the bytes are; the note says what kept it from reading on. No network, no disk.

The headers are Location, Content-Location, Refresh, Link and SourceMap, decoded as latin-1. Non-ASCII bytes are
percent-encoded as they are, as browsers do. Content-Location is another name of the same document, so at most a link.
Only developer tools fetch a source map, so it is speculative. Report destinations (NEL) name nothing to fetch.

The Link header is parsed by the algorithm of RFC 8288, appendix B. Names are in lower case, values without quotes and
escapes; the first of duplicate parameters counts. Parsing never raises and is linear; malformed parts are skipped up to
the next comma.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from archiver import extract, url
from archiver.config.expressions import compiled
from archiver.extract.body_faults import is_cut
from archiver.extract.html.tables import MOST_AGENTS, REFUSE, relation_hop
from archiver.extract.references import NOFOLLOW, REFRESH, UrlJoiner
from archiver.http import Dechunker, content_codings, read_head, transfer_codings
from archiver.http.body import unread_reason
from archiver.http.content_coding import decoded
from archiver.model import Claim, Exchange, Framing, Hop, Link, Links, Robots
from archiver.policy import referrer, robots
from archiver.policy.novelty import READ_ALL
from archiver.policy.scope import is_guess, redirects_in_a_row
from archiver.policy.speculative import is_sitemap

MAX_DOCUMENT = 32 << 20  # bytes of a body searched for links; real pages stay below 5 MB
LARGE = 1 << 20  # bytes; of larger responses the start is checked before the rest is loaded into memory
PROBE = 4 << 10
MAX_SITEMAP = 50_000_000  # the format's own limit

REDIRECTS = frozenset((301, 302, 303, 307, 308))  # browsers show the body of other 3xx (Fetch standard)
PAGES = frozenset(("text/html", "application/xhtml+xml"))
_OPAQUE = ("image/", "video/", "audio/", "font/")  # few of them are text: SVG and playlists

_HEAD_END = re.compile(rb"\r?\n\r?\n")

UNREAD = "the links were not read"  # prefix of the note of a stored document whose links are unknown
FAULT = f"{UNREAD}: a fault of archiver"

Read = Callable[[extract.Document], Links]


class LargeDocumentError(Exception):
    """The document, of *size* bytes, must be read in a separate process."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


log = logging.getLogger(__name__)


def is_robots(claim: Claim) -> bool:
    """True if the response holds (or redirects to) the robots.txt of a host."""
    if claim.url.endswith("/robots.txt") and claim.url == url.origin(claim.url) + "/robots.txt":
        return True
    return claim.path[:1] == Hop.PREREQUISITE and claim.path.strip("PR") == ""


def read_links(claim: Claim, exchange: Exchange, read: Read = extract.links) -> Links:
    """Return everything that the exchange names. Documents are read by *read*. Never raises.

    The only exception is `LargeDocumentError` from *read*.
    """
    if unread_reason(exchange.notes):
        return Links()
    try:
        return _read_links(claim, exchange, read)
    except LargeDocumentError:
        raise
    except Exception:  # a bug in a reader must not keep a page from being stored; its record gets the note
        log.exception("links of %s could not be read", claim.url)
        return Links(note=FAULT)


def _read_links(claim: Claim, exchange: Exchange, read: Read) -> Links:
    fields = exchange.framing.fields
    status = exchange.framing.status
    if 300 <= status < 400 and (status in REDIRECTS or is_robots(claim)) and (link := redirect(claim.url, fields)):
        return Links((link,))
    moved_to_page = claim.path.endswith(Hop.REDIRECT) and exchange.framing.media_type in PAGES
    if is_robots(claim) and not moved_to_page:  # a page sent in place of robots.txt is still a page of the site
        return _sitemaps(claim, exchange)
    if status == 400 and (escaped := url.percents_escaped(claim.url)):
        return Links((Link(escaped, Hop.SPECULATIVE, "path"),))
    if not _is_shown(status) and not (_starts(claim) and exchange.framing.media_type in PAGES):
        return Links()
    in_headers = from_fields(claim.url, (*fields, *_hints(exchange.interim)) if exchange.interim else fields)
    nofollow = nofollow_agents(fields)
    media_type = exchange.framing.media_type
    sitemap = claim.path.rstrip(Hop.REDIRECT).endswith(Hop.MANIFEST) or (  # also after a redirect
        is_guess(claim.path) and is_sitemap(claim.url)
    )
    hop = Hop.MANIFEST if sitemap else claim.hop
    if exchange.response.length > LARGE or media_type.startswith(_OPAQUE):
        beginning = extract.Document(claim.url, media_type, None, payload(exchange, PROBE)[0], hop)
        if not extract.readable(beginning):
            return Links(in_headers, nofollow=nofollow)
    body, note = payload(exchange, MAX_SITEMAP if sitemap else MAX_DOCUMENT)
    document = extract.Document(claim.url, media_type, charset(exchange.framing), body, hop, _page_of(claim))
    if (
        is_guess(claim.path) and not is_page(claim) and extract.is_page(document)
    ):  # the site's answer for a missing file
        return Links(note=note)
    in_body = read(document)
    found = in_body.links
    if in_headers:
        known = {(link.url, link.hop) for link in in_headers}
        found = (*in_headers, *(link for link in found if (link.url, link.hop) not in known))
    return Links(
        found,
        charset=in_body.charset,
        note="; ".join(filter(None, (note, in_body.note))),
        nofollow=(*nofollow, *in_body.nofollow),
        icon=in_body.icon,
        page=body[:READ_ALL] if body and is_page(claim) and _is_shown(status) else None,
        referrer_policy=in_body.referrer_policy if found else "",
        texts=in_body.texts,
    )


def with_page(claim: Claim, exchange: Exchange, links: Links) -> Links:
    """Return *links*, from the records of a visit, with the page as `read_links` would have set it."""
    status, media_type = exchange.framing.status, exchange.framing.media_type
    if links.page is not None or not is_page(claim) or is_robots(claim) or not _is_shown(status):
        return links
    if status in REDIRECTS and redirect(claim.url, exchange.framing.fields):
        return links
    if exchange.response.length > LARGE or media_type.startswith(_OPAQUE):
        beginning = extract.Document(claim.url, media_type, None, payload(exchange, PROBE)[0], claim.hop)
        if not extract.readable(beginning):
            return links
    return replace(links, page=payload(exchange, READ_ALL)[0] or None)


def _is_shown(status: int) -> bool:
    """Return True if browsers show the body, unless they follow its Location."""
    return status == 0 or (200 <= status < 400 and status != 304)


def _starts(claim: Claim) -> bool:
    """Return True if *claim* is a seed, or where one redirects to.

    The error page of a site may have its whole navigation, and nothing else may lead there. The links of other error
    pages are on good pages too; relative ones often lead to further error pages, without end.
    """
    return not claim.path.rstrip(Hop.REDIRECT)


def _hints(interim: bytes) -> tuple[tuple[str, str], ...]:
    """Return the Link headers of early hints: browsers load what these name before the response arrives."""
    heads = [read_head(head + b"\r\n\r\n") for head in _HEAD_END.split(interim) if head.strip()]
    return tuple(field for head in heads if head.status == 103 for field in head.fields if field[0] == "link")


def _sitemaps(claim: Claim, exchange: Exchange) -> Links:
    body, note = payload(exchange, robots.MAX_BODY)
    references = robots.sitemaps(Robots(exchange.framing.status, body))
    addresses = dict.fromkeys(filter(None, map(partial(url.join, claim.url), references)))
    return Links(tuple(Link(address, Hop.MANIFEST, "robots.txt/Sitemap") for address in addresses), note=note)


def robots_answer(claim: Claim, exchange: Exchange, links: Links) -> Robots:
    """Return the robots.txt that the exchange holds, or the URL that it redirects to."""
    status = exchange.framing.status
    if 300 <= status < 400:
        target = next((link.url for link in links.links if link.hop is Hop.REDIRECT), None)
        followed = target is not None and target != claim.url and redirects_in_a_row(claim.path) < robots.MAX_REDIRECTS
        return Robots(status, b"", redirect=target if followed else None)
    if is_cut(exchange):
        return Robots(robots.NO_RULES, b"")  # the missing part may hold the rule that matters
    if status == 0 or 200 <= status < 300:
        return Robots(status or 200, payload(exchange, robots.MAX_BODY)[0])
    return Robots(robots.NO_RULES if status == 429 else status, b"")  # a request to slow down is no permission


def payload(exchange: Exchange, limit: int) -> tuple[bytes, str]:
    """Return the first *limit* bytes of the body without any coding, and what could not be decoded."""
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
    return decoded(bytes(body), codings, limit) if codings else (bytes(body), "")


def charset(framing: Framing) -> str | None:
    """Return the charset parameter of Content-Type, as written."""
    found = (charset_of(value) for value in framing.all("content-type"))
    return next((value for value in found if value is not None), "") or None


def charset_of(content_type: str) -> str | None:
    """Return the charset parameter of one *content_type* value; "" if it has no value."""
    for parameter in content_type.split(";")[1:]:
        name, _, text = parameter.partition("=")
        if name.strip().lower() == "charset":
            return text.strip().strip("\"'")
    return None


def is_page(claim: Claim) -> bool:
    """True if *claim* is a page that a person could open, after any redirects, and not a part of one.

    Among guesses only those with the name of a page count: for a missing file, sites send a page.
    """
    hops = claim.path.rstrip(Hop.REDIRECT)
    if hops[-1:] != Hop.SPECULATIVE:
        return hops[-1:] in {"", Hop.LINK}
    first = claim.url if hops == claim.path else claim.via or ""
    return url.may_be_page(claim.url) and (not first or url.may_be_page(first))


def _page_of(claim: Claim) -> str:
    """Return the page that uses *claim*, a script or its data: the URL that named it, or that of the script's page."""
    via = claim.via or ""
    if not via or not url.may_be_script(via):
        return via
    return claim.referrer if claim.referrer not in {"", via} else claim.seed


_SEPARATORS = re.compile(r"[\s,]*+")
_TARGET = re.compile(r"<([^<>]*+)>")
_PARAMETER = compiled(
    r"\s*+;[\s;]*+(?P<name>[^\s=;,\"<>]++)(?:\s*+=\s*+(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)(?:\"|\\?\Z)|(?P<bare>[^\s;,\"]*+)))?+",
    re.DOTALL,
)
_REST_OF_VALUE = compiled(r"(?:[^\",]|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))*+,?+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def link_values(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each target in *value* as written, and its parameters."""
    position = 0
    while position < len(value):
        apart = _SEPARATORS.match(value, position)
        position = apart.end() if apart else position
        target = _TARGET.match(value, position)
        if target:
            position = target.end()
            parameters: dict[str, str] = {}
            while parameter := _PARAMETER.match(value, position):
                position = parameter.end()
                text = parameter["bare"] or _ESCAPE.sub(r"\1", parameter["quoted"] or "")
                parameters.setdefault(parameter["name"].lower(), text)
            yield target[1], parameters
        rest = _REST_OF_VALUE.match(value, position)
        position = max(rest.end() if rest else 0, position + 1)


Fields = Iterable[tuple[str, str]]

_TOKEN = re.compile(r"[\w.-]{1,60}", re.ASCII)
_WITH_VALUE = frozenset(("max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"))
_MOST_LINKS = 200  # links kept of the headers of one response
_MOST_READ = 10 * _MOST_LINKS  # references resolved, including duplicates and invalid ones
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NAMING = frozenset(("content-location", "link", "location", "refresh", "sourcemap", "x-sourcemap"))
_ENDPOINTS = frozenset(  # endpoints for programs, and a dictionary, which we do not support
    ("authorization_endpoint", "compression-dictionary", "edit", "edit-media", "hub", "micropub", "token_endpoint")
)


def redirect(address: str, fields: Fields) -> Link | None:
    """Return the link that the first Location with a value leads to from *address*; None if it is invalid."""
    for name, value in fields:
        if name == "location" and value:
            target = UrlJoiner(address).join(_escaped(value))
            return Link(target, Hop.REDIRECT, "location") if target else None
    return None


def from_fields(address: str, fields: Fields) -> tuple[Link, ...]:
    """Return everything that *fields* name, links by their relation; each once."""
    known = tuple(field for field in fields if field[0] in _NAMING)
    if not known:
        return ()
    joiner = UrlJoiner(address)
    links: dict[tuple[str, Hop], Link] = {}
    first = redirect(address, known)
    if first:
        links[first.url, first.hop] = first
    for reference, hop, context in islice(_references(address, known), _MOST_READ):
        if len(links) >= _MOST_LINKS:
            break
        target = joiner.join(_escaped(reference))
        if target:
            links.setdefault((target, hop), Link(target, hop, context))
    return tuple(links.values())


def nofollow_agents(fields: Fields) -> tuple[str, ...]:
    """Return the user agents that X-Robots-Tag in *fields* tells not to follow links of this document."""
    agents: dict[str, None] = {}
    for name, value in fields:
        if name == "x-robots-tag" and len(agents) < MOST_AGENTS:
            agent = "*"
            for part in value.lower().split(",")[:_MOST_LINKS]:
                subject, colon, rest = part.partition(":")
                addressed = colon and _TOKEN.fullmatch(subject.strip()) and subject.strip() not in _WITH_VALUE
                agent = subject.strip() if addressed else agent  # the directives that follow are for the same agent
                if (rest if addressed else part).strip() in REFUSE:
                    agents[f"X-Robots-Tag {agent}"] = None
    return tuple(agents)[:MOST_AGENTS]


def nofollow_rule(token: str, links: Links) -> Callable[[Link], str]:
    """Return a function that returns the rule by which *token* may not follow a link of this document; "" if it may."""
    heard = {"robots", "*", token, robots.PRODUCT}
    page = next((f"nofollow: {said}" for said in links.nofollow if said.rpartition(" ")[2] in heard), "")

    def rule(link: Link) -> str:
        if link.hop is not Hop.LINK:
            return ""
        return page or ("nofollow: rel" if link.context.endswith(NOFOLLOW) else "")

    return rule


def referrer_policy(claim: Claim, framing: Framing, links: Links) -> str:
    """Return the referrer policy of links in the answer to *claim*; "" if nothing sets one.

    It is that of the document, else of its header. A redirect keeps the policy of the link that led to it.
    """
    kept = claim.referrer_policy if 300 <= framing.status < 400 else ""
    return links.referrer_policy or referrer.of_headers(framing.all("referrer-policy")) or kept


def _references(address: str, fields: Fields) -> Iterator[tuple[str, Hop, str]]:
    mapped = False
    for name, value in fields:
        if name == "refresh":
            from archiver.extract.html import attribute_values  # noqa: PLC0415 - slow to import, and rare

            target = attribute_values.refresh_target(value)
            yield address if target == "" else target or "", Hop.LINK, REFRESH
        elif name == "content-location":
            yield value, Hop.LINK, "content-location"
        elif name in ("sourcemap", "x-sourcemap") and not mapped:
            mapped = True
            yield value, Hop.SPECULATIVE, name
        elif name == "link":
            for target, parameters in link_values(value):
                yield from _link_references(address, target, parameters)


def _link_references(address: str, target: str, parameters: dict[str, str]) -> Iterator[tuple[str, Hop, str]]:
    """Yield the references of one link. A link whose anchor is another document does not concern this one."""
    anchor = parameters.get("anchor")
    if anchor and not anchor.startswith("#") and UrlJoiner(address).join(_escaped(anchor)) != url.canonical(address):
        return
    relations = parameters.get("rel", "").lower().split()
    left = [relation for relation in relations if relation not in _ENDPOINTS]
    hop = relation_hop(" ".join(left)) if left or not relations else None
    if hop:
        yield target, hop, "link"
    if hop is Hop.REQUISITE and "imagesrcset" in parameters:  # a browser takes one of the set in place of the target
        from archiver.extract.html import attribute_values  # noqa: PLC0415 - slow to import, and rare

        for candidate in attribute_values.candidates(parameters["imagesrcset"]):
            yield candidate, hop, "link/imagesrcset"


def _escaped(value: str) -> str:
    return _NOT_ASCII.sub(lambda run: "".join(f"%{byte:02X}" for byte in _bytes(run.group())), value)


def _bytes(run: str) -> bytes:
    try:
        return run.encode("latin-1")
    except UnicodeEncodeError:
        return run.encode("utf-8", "replace")
