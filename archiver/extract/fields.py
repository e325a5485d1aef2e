"""What the header of an answer names: Location, Refresh and Link fields.

Values come as the bytes of the wire read as latin-1; bytes that are not ASCII are escaped as they are, which
is what browsers send back.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from archiver.extract import refresh
from archiver.extract.elements import MOST_TOLD, REFUSE, relation_hop
from archiver.extract.found import Joiner
from archiver.model import Hop, Link

Fields = Iterable[tuple[str, str]]

_TOKEN = re.compile(r"[\w.-]{1,60}", re.ASCII)
_WITH_VALUE = frozenset(("max-image-preview", "max-snippet", "max-video-preview", "unavailable_after"))
_MOST = 200  # Link fields are repeated, but not without end
_MOST_READ = 10 * _MOST  # the same one again, or one that leads nowhere, is work as well
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ENTRY = re.compile(r"<([^<>]*+)>((?:[^\",<]|\"(?:[^\"\\]|\\.)*+\"?)*+)", re.DOTALL)
_RELATION = re.compile(r";\s*+rel\s*+=\s*+(?:\"([^\"]*+)\"?|([^\s;\",]++))", re.IGNORECASE)


def redirect(address: str, fields: Fields) -> Link | None:
    """Where the first Location in *fields* leads from *address*; None where it leads nowhere."""
    for name, value in fields:
        if name == "location":
            target = Joiner(address).join(_escaped(value))
            return Link(target, Hop.REDIRECT, "location") if target else None
    return None


def from_fields(address: str, fields: Fields) -> tuple[Link, ...]:
    """Everything that *fields* name: the redirect, a refresh, and Link fields by their relation; each once."""
    known = tuple(fields)
    joiner = Joiner(address)
    links: dict[tuple[str, Hop], Link] = {}
    first = redirect(address, known)
    if first:
        links[first.url, first.hop] = first
    for reference, hop, context in islice(_references(known), _MOST_READ):
        target = joiner.join(_escaped(reference))
        if target and len(links) < _MOST:
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


def _references(fields: Fields) -> Iterator[tuple[str, Hop, str]]:
    for name, value in fields:
        if name == "refresh":
            yield refresh.target(value) or "", Hop.LINK, "refresh"
        elif name == "link":
            for entry in _ENTRY.finditer(value):
                relation = _RELATION.search(entry[2])
                hop = relation_hop((relation[1] or relation[2] or "") if relation else "")
                if hop:
                    yield entry[1], hop, "link"


def _escaped(value: str) -> str:
    return _NOT_ASCII.sub(lambda run: "".join(f"%{byte:02X}" for byte in _bytes(run.group())), value)


def _bytes(run: str) -> bytes:
    try:
        return run.encode("latin-1")
    except UnicodeEncodeError:
        return run.encode("utf-8", "replace")
