"""Gathers the references of one document and makes links of them: each (URL, hop) once, in document order.

References are kept as they stand until the whole document is read, because a base may come late. What
cannot lead to an http(s) URL is dropped, and no more than `MOST_LINKS` are kept.
"""

import re

from archiver import url
from archiver.extract import charset
from archiver.model import Hop, Link, Links

MOST_LINKS = 50_000
LONGEST = 100  # characters of the place where a link stands
NOFOLLOW = " rel=nofollow"  # ends the context of a link whose element says so

_USELESS = ("#", "data:", "javascript:", "mailto:", "tel:")  # the common ones; any other scheme ends in `url.join`
_PLAIN = re.compile(
    r"(?:(?P<whole>https?://(?![^/]*xn--)(?:[a-z0-9][a-z0-9-]{0,30}\.){1,5}[a-z]{2,20}(?=/))|(?P<rooted>(?=/(?!/)))|(?=\w))"
    r"(?P<path>(?:[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+|/|%(?!2E)[0-9A-F]{2})*+"
    r"(?:\?(?:[\w~!$&()*+,;=@./?:-]++|%[0-9A-F]{2})*+)?)(?:#.*+)?",
    re.ASCII | re.DOTALL,
)
_FILLED_IN = re.compile(r"\{\{|\$\{|\{%|<%")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_NO_BASE = ("http", "https", "data", "javascript")  # with one of these, what cannot be joined is no base
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_IN_QUERY = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")


class Found:
    """The references of one document, as they come; `links` ends the gathering."""

    def __init__(self) -> None:
        self._references: dict[tuple[str, Hop], str] = {}
        self.full = False  # there were more than are kept
        self.in_template = False  # what comes is shown only after a script has filled it in

    def add(self, reference: str | None, hop: Hop, context: str) -> None:
        """Keep *reference* if it may name something to fetch."""
        if not reference or reference.startswith(_USELESS):
            return
        if ("{" in reference or "<" in reference) and (self.in_template or hop is Hop.LINK) and _blank(reference):
            return
        if len(self._references) >= MOST_LINKS:
            self.full = True
        else:
            known = self._references.setdefault((reference, hop), context)
            if known != context and known.endswith(NOFOLLOW):  # one that may be followed is enough
                self._references[reference, hop] = context

    @property
    def empty(self) -> bool:
        """Whether nothing was kept."""
        return not self._references

    def links(self, base: str, encoding: str, note: str = "", *, queries: str | None = None) -> Links:
        """The links, resolved against *base*, of a text in *encoding*, which is that of the *queries* in URLs too."""
        joiner = Joiner(base, queries or encoding)
        links: dict[tuple[str, Hop], Link] = {}
        for (reference, hop), context in self._references.items():
            target = joiner.join(reference)
            if target is not None:
                known = links.get((target, hop))
                if known is None or (known.context.endswith(NOFOLLOW) and not context.endswith(NOFOLLOW)):
                    links[target, hop] = Link(target, hop, context if len(context) <= LONGEST else _short(context))
        if self.full:
            note = f"{note}; " * bool(note) + f"more than {MOST_LINKS} links"
        return Links(tuple(links.values()), encoding, note)


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


class Joiner:
    """Resolves references against one base: exactly `url.join`, but faster for those that need no rewriting."""

    def __init__(self, base: str, encoding: str = "utf-8") -> None:
        self._base = base
        self._encoding = None if encoding.startswith(("utf-", "replacement")) else encoding
        canonical = url.canonical(base)
        self._origin = url.origin(canonical) if canonical else ""
        self._folder = canonical.partition("?")[0].rpartition("/")[0] + "/" if canonical else ""

    def join(self, reference: str) -> str | None:
        """The canonical URL that *reference* names; None where it names nothing to fetch, or nothing at all."""
        plain = _PLAIN.fullmatch(reference)
        if plain and self._origin and len(reference) < 2048 > len(self._folder):
            if whole := plain["whole"]:
                return f"{whole}{plain['path']}"
            return f"{self._folder if plain['rooted'] is None else self._origin}{plain['path']}"
        reference = reference.strip("\t\n\f\r ")
        if not reference or reference.startswith("#"):
            return None
        if self._encoding and not reference.isascii():
            reference = _with_query_in(self._encoding, reference)
        return url.join(self._base, reference)


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
