"""What the header of an answer names: Location, Content-Location, Refresh, Link and SourceMap fields.

Values come as the bytes of the wire read as latin-1; bytes that are not ASCII are escaped as they are, which
is what browsers send back. Content-Location is another name of the same document, so a link at most. A source
map is asked for by a developer's tools alone, so it is speculative. Where reports go (Report-To, NEL,
Content-Security-Policy) there is nothing to fetch.

The Link header field, by the parsing algorithm of RFC 8288 (appendix B): each target with its parameters.

Of a parameter that comes twice the first counts; names are in lower case, values without quotes and escapes.
Never raises, and takes time linear in the value: what is malformed is passed over up to the next comma.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from archiver import url
from archiver.extract.collector import UrlJoiner
from archiver.extract.html import attribute_values
from archiver.extract.html.elements import MOST_TOLD, REFUSE
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


def entries(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each target in *value* as it stands there, and its parameters."""
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
_MOST = 200  # Link fields are repeated, but not without end
_MOST_READ = 10 * _MOST  # the same one again, or one that leads nowhere, is work as well
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NAMING = frozenset(("content-location", "link", "location", "refresh", "sourcemap", "x-sourcemap"))
_ENDPOINTS = frozenset(  # for programs that write, and a dictionary, which no answer to us is packed with
    ("authorization_endpoint", "compression-dictionary", "edit", "edit-media", "hub", "micropub", "token_endpoint")
)


def redirect(address: str, fields: Fields) -> Link | None:
    """Where the first Location in *fields* leads from *address*; None where it leads nowhere."""
    for name, value in fields:
        if name == "location":
            target = UrlJoiner(address).join(_escaped(value))
            return Link(target, Hop.REDIRECT, "location") if target else None
    return None


def from_fields(address: str, fields: Fields) -> tuple[Link, ...]:
    """Everything that *fields* name, links by their relation; each once."""
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
    """Whom X-Robots-Tag in *fields* tells not to follow the links of this document."""
    told: dict[str, None] = {}
    for name, value in fields:
        if name == "x-robots-tag" and len(told) < MOST_TOLD:
            who = "*"
            for part in value.lower().split(",")[:_MOST]:
                subject, colon, rest = part.partition(":")
                addressed = colon and _TOKEN.fullmatch(subject.strip()) and subject.strip() not in _WITH_VALUE
                who = subject.strip() if addressed else who  # and what follows is said to this one too
                if (rest if addressed else part).strip() in REFUSE:
                    told[f"X-Robots-Tag {who}"] = None
    return tuple(told)[:MOST_TOLD]


def _references(address: str, fields: Fields) -> Iterator[tuple[str, Hop, str]]:
    mapped = False
    for name, value in fields:
        if name == "refresh":
            yield attribute_values.target(value) or "", Hop.LINK, "refresh"
        elif name == "content-location":
            yield value, Hop.LINK, "content-location"
        elif name in ("sourcemap", "x-sourcemap") and not mapped:
            mapped = True
            yield value, Hop.SPECULATIVE, name
        elif name == "link":
            for target, parameters in entries(value):
                yield from _linked(address, target, parameters)


def _linked(address: str, target: str, parameters: dict[str, str]) -> Iterator[tuple[str, Hop, str]]:
    """What one link leads to; a link whose anchor is another document says nothing of this one."""
    anchor = parameters.get("anchor")
    if anchor and not anchor.startswith("#") and UrlJoiner(address).join(_escaped(anchor)) != url.canonical(address):
        return
    relations = parameters.get("rel", "").lower().split()
    left = [relation for relation in relations if relation not in _ENDPOINTS]
    hop = relation_hop(" ".join(left)) if left or not relations else None
    if hop:
        yield target, hop, "link"
    if hop is Hop.REQUISITE:  # what a browser takes of a set, it takes in place of the target
        for candidate in attribute_values.candidates(parameters.get("imagesrcset", "")):
            yield candidate, hop, "link/imagesrcset"


def _escaped(value: str) -> str:
    return _NOT_ASCII.sub(lambda run: "".join(f"%{byte:02X}" for byte in _bytes(run.group())), value)


def _bytes(run: str) -> bytes:
    try:
        return run.encode("latin-1")
    except UnicodeEncodeError:
        return run.encode("utf-8", "replace")
