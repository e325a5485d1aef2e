"""What a page keeps in `data-` attributes for its scripts: addresses to load late, styles, JSON, where a click leads.

The name of an attribute tells most: one that is known to hold a picture is a requisite. Under any other name only
what is surely a file counts, and that is a guess.
"""

import re
from collections.abc import Iterator, Mapping

from archiver.extract import css, srcset, state
from archiver.extract.guess import a_file, like_a_url, surely_a_url
from archiver.extract.vocabulary import LATE, LATE_FILE, LATE_LINKS, LATE_LINKS_ON_ANCHORS
from archiver.model import Hop

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
        return state.files(bare)
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
            yield from ((reference, Hop.REQUISITE) for reference in srcset.candidates(bare))
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
