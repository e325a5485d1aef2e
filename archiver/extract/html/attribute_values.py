"""What a page keeps in `data-` attributes for its scripts: addresses to load late, styles, JSON, where a click leads.

The name of an attribute tells most: one that is known to hold a picture is a requisite. Under any other name only
what is surely a file counts, and that is a guess.

The candidates of a srcset attribute, by the HTML standard's own algorithm. Linear, never raises.

Where a refresh leads: the content of a meta element or of a Refresh field, by the HTML standard's algorithm.
"""

import re
from collections.abc import Iterator, Mapping

from archiver.extract import css
from archiver.extract.html.tables import LATE, LATE_FILE, LATE_LINKS, LATE_LINKS_ON_ANCHORS
from archiver.extract.script import embedded_json
from archiver.extract.url_guess import a_file, like_a_url, surely_a_url
from archiver.model import Hop

_GAP = re.compile(r"[\t\n\f\r ,]*+")
_URL = re.compile(r"[^\t\n\f\r ]++")
_DESCRIPTORS = re.compile(r"(?:[^(,]|\([^)]*+\)?+)*+")
_DESCRIPTOR = re.compile(r"(?:[^\t\n\f\r (]|\([^)]*+\)?+)++")
_WIDTH = re.compile(r"0*[1-9][0-9]*w")
_HEIGHT = re.compile(r"0*[1-9][0-9]*h")
_DENSITY = re.compile(r"(?:-(?:0+(?:\.0+)?|\.0+)|(?=[.0-9])[0-9]*(?:\.[0-9]+)?)(?:[eE][+-]?[0-9]+)?x")


def candidates(value: str) -> Iterator[str]:
    """The URL of each image candidate that a browser would keep, in order."""
    return (value[start:end] for start, end in placed(value))


def placed(value: str) -> Iterator[tuple[int, int]]:
    """Where the URL of each such candidate begins and ends in *value*."""
    position = 0
    while True:
        position = _match_end(_GAP, value, position)
        found = _URL.match(value, position)
        if found is None:
            return
        start, position = found.span()
        size = len(found.group().rstrip(","))
        if size < position - start:
            valid = True
        else:
            end = _match_end(_DESCRIPTORS, value, position)
            valid = _valid(_DESCRIPTOR.findall(value, position, end))
            position = end
        if valid:
            yield start, start + size


def _match_end(pattern: re.Pattern[str], value: str, position: int) -> int:
    found = pattern.match(value, position)
    return found.end() if found else position


def _valid(descriptors: list[str]) -> bool:
    """Whether these make a candidate: at most a density, or a width with at most a height."""
    kinds = ""
    for descriptor in descriptors:
        if _WIDTH.fullmatch(descriptor) or _HEIGHT.fullmatch(descriptor) or _DENSITY.fullmatch(descriptor):
            kinds += descriptor[-1]
        else:
            return False
    return kinds in ("", "x", "w", "wh", "hw")


Kept = Iterator[tuple[str, Hop]]

_LONGEST_NAME = 60
_MOST_LISTED = 500
_READ_ALREADY = frozenset(("src", "poster", "srcset", "href", "xlink:href"))  # of custom elements
_APART = tuple(re.compile(sign) for sign in (r"\s*[,|;]\s*", r"\s+"))
_CHOICE = re.compile(r"\[\s*([^\[\],\s]{1,2000})\s*,")  # [small.png, (only screen)], [large.png, (large)]


def kept(tag: str, name: str, value: str) -> Kept:
    """What the attribute *name* of an element holds."""
    bare = value.strip()
    if not bare or len(name) > _LONGEST_NAME:
        return iter(())
    if bare.startswith(("{", "[{", '["')):
        return embedded_json.files(bare)
    if "url(" in bare:
        return ((reference, Hop.REQUISITE) for reference, _ in css.references(bare))
    if name in (LATE_LINKS_ON_ANCHORS if tag == "a" else LATE_LINKS):
        return iter(((bare, Hop.LINK),) if surely_a_url(bare) else ())
    if name == "data-main" and tag == "script":  # of RequireJS, which adds the extension
        return iter(((bare if bare.endswith(".js") else f"{bare}.js", Hop.SPECULATIVE),))
    return _files(name, bare)


def of_component(attributes: Mapping[str, str]) -> Kept:
    """Yield the files that a custom element names: the scripts of an island of Astro (`component-url`), and guesses."""
    for name, value in attributes.items():
        if name.startswith("data-") or name in _READ_ALREADY:
            continue
        if name.endswith("-url") and a_file(value, near=True):
            yield value, Hop.REQUISITE
        elif a_file(value):
            yield value, Hop.SPECULATIVE


def _listed(bare: str) -> list[str]:
    """The files of a list with commas, bars, semicolons or spaces between them; none where any is no file."""
    for apart in _APART:
        if apart.search(bare):
            files = [file for file in apart.split(bare, _MOST_LISTED)[:_MOST_LISTED] if file]
            if len(files) > 1 and all(a_file(file, near=True) for file in files):
                return files
    return []


def _files(name: str, bare: str) -> Kept:
    if LATE.fullmatch(name):
        if "set" in name[5:]:
            yield from ((reference, Hop.REQUISITE) for reference in candidates(bare))
        elif bare.startswith("["):
            yield from ((file, Hop.REQUISITE) for file in _CHOICE.findall(bare) if a_file(file, near=True))
        elif files := _listed(bare):
            yield from ((file, Hop.REQUISITE) for file in files)
        elif like_a_url(bare) or a_file(bare, near=True):
            yield bare, Hop.REQUISITE
    elif LATE_FILE.fullmatch(name) and (files := _listed(bare) or [bare]) and a_file(files[0], near=True):
        yield from ((file, Hop.REQUISITE) for file in files)
    elif a_file(bare):
        yield bare, Hop.SPECULATIVE


_DELAY = re.compile(r"[\t\n\f\r ]*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]|\Z)[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+")
_PREFIX = re.compile(r"url[\t\n\f\r ]*+=[\t\n\f\r ]*+", re.IGNORECASE)
_DROPPED = {ord(char): None for char in "\t\n\r"}


def target(content: str) -> str | None:
    """The reference that *content* leads to; "" is the page itself, None says that it is no refresh."""
    delay = _DELAY.match(content)
    if delay is None:
        return None
    rest = content[delay.end() :]
    prefix = _PREFIX.match(rest)
    if prefix:
        rest = rest[prefix.end() :]
    if rest[:1] in ('"', "'"):
        rest = rest[1:].partition(rest[0])[0]
    return rest.translate(_DROPPED).strip()
