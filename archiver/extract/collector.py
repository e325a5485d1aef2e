"""Gathers the references of one document and makes links of them: each (URL, hop) once, in document order.

References are kept as they stand until the whole document is read, because a base may come late. What
cannot lead to an http(s) URL is dropped, and no more than `MOST_LINKS` are kept.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import itemgetter

from archiver import url
from archiver.extract import charset
from archiver.model import Hop, Link, Links

MOST_LINKS = 50_000
LONGEST = 100  # characters of the place where a link stands
NOFOLLOW = " rel=nofollow"  # ends the context of a link whose element says so

USELESS = ("#", "data:", "javascript:", "mailto:", "tel:")  # the common ones; any other scheme ends in `url.join`
_BEGIN_USELESS = frozenset(word[0] for word in USELESS)
# What needs no rewriting below a folder: it does not begin with a slash, and no segment of it with a dot.
_BELOW = re.compile(
    r"(?!/)(?:[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+|/|%(?!2E)[0-9A-F]{2})*+"
    r"(?:\?(?:[\w~!$&()*+,;=@./?:-]++|%[0-9A-F]{2})*+)?",
    re.ASCII,
)
_REMEMBERED = 256  # characters of a reference and its base, of which the link is remembered
_ADDRESS = itemgetter(0)  # of a link
_FILLED_IN = re.compile(r"\{\{|\$\{|\{%|<%")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_NO_BASE = ("http", "https", "data", "javascript")  # with one of these, what cannot be joined is no base
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_IN_QUERY = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")


Reference = tuple[tuple[str, Hop], str]  # as it stands there, and how it leads on; and where it stood
Kept = tuple[Reference, ...]


class LinkCollector:
    """The references of one document, as they come; `links` ends the gathering."""

    def __init__(self) -> None:
        self._references: dict[tuple[str, Hop], str] = {}
        self.full = False  # there were more than are kept
        self.in_template = False  # what comes is shown only after a script has filled it in

    def add(self, reference: str | None, hop: Hop, context: str) -> None:
        """Keep *reference* if it may name something to fetch."""
        if not reference or (reference[0] in _BEGIN_USELESS and reference.startswith(USELESS)):
            return
        if ("{" in reference or "<" in reference) and (self.in_template or hop is Hop.LINK) and _blank(reference):
            return
        self.take((((reference, hop), context),))

    def take(self, kept: Iterable[Reference]) -> None:
        """Keep references that may name something, as `add` has them."""
        references = self._references
        for key, context in kept:
            if len(references) >= MOST_LINKS:
                self.full = True
                return
            known = references.setdefault(key, context)
            if known is not context and known != context and known.endswith(NOFOLLOW):
                references[key] = context

    @property
    def references(self) -> dict[tuple[str, Hop], str]:
        """All that was kept, in order: what stands there and how it leads on, and where it stood."""
        return self._references

    @property
    def empty(self) -> bool:
        """Whether nothing was kept."""
        return not self._references

    def links(self, base: str, encoding: str, note: str = "", *, queries: str | None = None) -> Links:
        """The links, resolved against *base*, of a text in *encoding*, which is that of the *queries* in URLs too."""
        links = UrlJoiner(base, queries or encoding).links(self._references)
        if len(set(map(_ADDRESS, links))) < len(links):
            links = _each_once(links)
        if self.full:
            note = f"{note}; " * bool(note) + f"more than {MOST_LINKS} links"
        return Links(tuple(links), encoding, note)


def _each_once(links: Iterable[Link]) -> list[Link]:
    """*links* without those to a URL that stood there before; one that may be followed goes before one that may not."""
    once: dict[tuple[str, Hop], Link] = {}
    for link in links:
        known = once.setdefault(link[:2], link)
        if known is not link and known.context.endswith(NOFOLLOW) and not link.context.endswith(NOFOLLOW):
            once[link[:2]] = link
    return list(once.values())


def _blank(reference: str) -> bool:
    """Whether *reference* has places in its path that are still to be filled in, by a script or a server."""
    return _FILLED_IN.search(reference.partition("?")[0]) is not None


def base_of(address: str, href: str | None) -> str:
    """Where the references of a document at *address* start, whose first base element has this *href*.

    By the HTML standard: the address itself, where the href cannot be parsed or is data or a script. A base of any
    other scheme holds, so that relative references lead to nothing that can be fetched.
    """
    if not href:
        return address
    base = url.join(address, href)
    if base is None and (scheme := _SCHEME.match(href.strip())) and scheme[1].lower() not in _NO_BASE:
        return href.strip()
    return base or address


def _short(context: str) -> str:
    """The beginning of *context*: names of elements may be as long as a document."""
    return context[:LONGEST] + NOFOLLOW * context.endswith(NOFOLLOW)


class UrlJoiner:
    """Resolves references against one base: exactly `url.join`, but faster for those that need no rewriting."""

    def __init__(self, base: str, encoding: str = "utf-8") -> None:
        self._base = base
        self._encoding = None if encoding.startswith(("utf-", "replacement")) else encoding
        canonical = url.canonical(base)
        self._root = f"{url.origin(canonical)}/" if canonical else ""
        self._folder = canonical.partition("?")[0].rpartition("/")[0] + "/" if canonical else ""
        self._above: dict[str, str] = {}  # the folders above, by the steps that lead there
        self._longest = _REMEMBERED - len(self._folder) if canonical else 0

    def links(self, references: Mapping[tuple[str, Hop], str]) -> list[Link]:
        """The links that *references* make, without those that name nothing to fetch, or nothing at all."""
        root, folder, longest, above = self._root, self._folder, self._longest, self._above
        links: list[Link] = []
        for (reference, hop), context in references.items():
            link = None
            if len(reference) < longest and len(context) <= LONGEST:
                first = reference[0]
                plain = reference.partition("#")[0] if "#" in reference else reference
                if first == "/":
                    link = _below(root, plain[1:], hop, context)
                elif first == ".":
                    end = plain.rfind("../") + 3 or 2
                    rest = plain[end:]
                    if rest[:1].isalnum():
                        link = _below(above.get(plain[:end]) or self._up(plain[:end]), rest, hop, context)
                elif ":" in plain:
                    link = self._absolute(plain, hop, context)
                elif first.isalnum():
                    link = _below(folder, plain, hop, context)
            if link is not None:
                links.append(link)
            elif target := self.join(reference):
                links.append(Link(target, hop, context if len(context) <= LONGEST else _short(context)))
        return links

    def _absolute(self, reference: str, hop: Hop, context: str) -> Link | None:
        """The link to *reference*, which holds a colon; None where that is not written plainly."""
        slash = reference.find("/", 8) + 1
        root = reference[:slash]
        if root == self._root:
            return _below(root, reference[slash:], hop, context)
        return _plainly_below(root, reference[slash:], hop, context) if url.is_root(root) else None

    def _up(self, steps: str) -> str:
        """The folder that lies so many *steps* above; "" where they are anything else."""
        if steps == "./":
            return self._folder
        if steps != "../" * (len(steps) // 3):
            return ""
        folder = self._folder
        for _ in range(len(steps) // 3):
            folder = folder[: folder.rindex("/", 0, -1) + 1] if len(folder) > len(self._root) else folder
        self._above[steps] = folder
        return folder

    def join(self, reference: str) -> str | None:
        """The canonical URL that *reference* names; None where it names nothing to fetch, or nothing at all."""
        reference = reference.strip("\t\n\f\r ")
        if not reference or reference.startswith("#"):
            return None
        if self._encoding and not reference.isascii():
            reference = _with_query_in(self._encoding, reference)
        return url.join(self._base, reference)


def _plainly_below(folder: str, rest: str, hop: Hop, context: str) -> Link | None:
    """The link to *rest*, below a *folder* that ends with a slash; None where that is not written plainly."""
    plain = _BELOW.fullmatch(rest) if folder else None
    return Link(folder + rest, hop, context) if plain else None


_below = lru_cache(maxsize=8192)(_plainly_below)  # on the site itself; those to others are seldom met again


def _with_query_in(encoding: str, reference: str) -> str:
    """*reference* with its query as a form in a page of this *encoding* would send it."""
    address, mark, query = reference.partition("#")[0].partition("?")
    return address + mark + _NOT_ASCII.sub(lambda run: _escaped(run.group(), encoding), query)


def _escaped(run: str, encoding: str) -> str:
    try:
        return "".join(chr(b) if b in _IN_QUERY else f"%{b:02X}" for b in charset.encoded(run, encoding))
    except UnicodeEncodeError:
        if len(run) == 1:
            return f"%26%23{ord(run)}%3B"
    return "".join(_escaped(char, encoding) for char in run)
