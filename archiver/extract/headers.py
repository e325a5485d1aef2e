"""Links in response headers: Location, Content-Location, Refresh, Link and SourceMap.

Values are the bytes of the wire decoded as latin-1. Non-ASCII bytes are percent-encoded as they are, as browsers do.
Content-Location is another name of the same document, so at most a link. Only developer tools fetch a source map, so it
is speculative. Report destinations (Report-To, NEL, Content-Security-Policy) name nothing to fetch.

The Link header is parsed by the algorithm of RFC 8288, appendix B. Names are in lower case, values without quotes and
escapes; the first of duplicate parameters counts. Parsing never raises and is linear; malformed parts are skipped up to
the next comma.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from archiver import url
from archiver.extract.collector import UrlJoiner
from archiver.extract.html import attribute_values
from archiver.extract.html.elements import MOST_AGENTS, REFUSE
from archiver.extract.html.tables import relation_hop
from archiver.model import Hop, Link

_APART = re.compile(r"[\s,]*+")
_TARGET = re.compile(r"<([^<>]*+)>")
_PARAMETER = re.compile(
    r"\s*+;[\s;]*+(?P<name>[^\s=;,\"<>]++)(?:\s*+=\s*+(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)(?:\"|\\?\Z)|(?P<bare>[^\s;,\"]*+)))?+",
    re.DOTALL,
)
_REST = re.compile(r"(?:[^\",]|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))*+,?+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def link_values(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each target in *value* as written, and its parameters."""
    position = 0
    while position < len(value):
        apart = _APART.match(value, position)
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
        rest = _REST.match(value, position)
        position = max(rest.end() if rest else 0, position + 1)


Fields = Iterable[tuple[str, str]]

_TOKEN = re.compile(r"[\w.-]{1,60}", re.ASCII)
_WITH_VALUE = frozenset(("max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"))
_MOST = 200  # links kept of one response
_MOST_READ = 10 * _MOST  # references resolved, including duplicates and invalid ones
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NAMING = frozenset(("content-location", "link", "location", "refresh", "sourcemap", "x-sourcemap"))
_ENDPOINTS = frozenset(  # endpoints for programs, and a dictionary, which we do not support
    ("authorization_endpoint", "compression-dictionary", "edit", "edit-media", "hub", "micropub", "token_endpoint")
)


def redirect(address: str, fields: Fields) -> Link | None:
    """Return the link that the first Location in *fields* leads to from *address*; None if it is invalid."""
    for name, value in fields:
        if name == "location":
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
        if len(links) >= _MOST:
            break
        target = joiner.join(_escaped(reference))
        if target:
            links.setdefault((target, hop), Link(target, hop, context))
    return tuple(links.values())


def nofollow(fields: Fields) -> tuple[str, ...]:
    """Return the user agents that X-Robots-Tag in *fields* tells not to follow links of this document."""
    agents: dict[str, None] = {}
    for name, value in fields:
        if name == "x-robots-tag" and len(agents) < MOST_AGENTS:
            agent = "*"
            for part in value.lower().split(",")[:_MOST]:
                subject, colon, rest = part.partition(":")
                addressed = colon and _TOKEN.fullmatch(subject.strip()) and subject.strip() not in _WITH_VALUE
                agent = subject.strip() if addressed else agent  # the directives that follow are for the same agent
                if (rest if addressed else part).strip() in REFUSE:
                    agents[f"X-Robots-Tag {agent}"] = None
    return tuple(agents)[:MOST_AGENTS]


def _references(address: str, fields: Fields) -> Iterator[tuple[str, Hop, str]]:
    mapped = False
    for name, value in fields:
        if name == "refresh":
            yield attribute_values.refresh_target(value) or "", Hop.LINK, "refresh"
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
    if hop is Hop.REQUISITE:  # a browser takes one of the set in place of the target
        for candidate in attribute_values.candidates(parameters.get("imagesrcset", "")):
            yield candidate, hop, "link/imagesrcset"


def _escaped(value: str) -> str:
    return _NOT_ASCII.sub(lambda run: "".join(f"%{byte:02X}" for byte in _bytes(run.group())), value)


def _bytes(run: str) -> bytes:
    try:
        return run.encode("latin-1")
    except UnicodeEncodeError:
        return run.encode("utf-8", "replace")
