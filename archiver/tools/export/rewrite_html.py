"""Rewrite references in HTML, XHTML and SVG in place; every other character stays as it is. Pure.

The elements and attributes are those in which a crawl finds links. What would prevent files from working is removed:
integrity hashes and CORS modes (a changed file has another hash, and files have no origin), security policies, a base
that leads elsewhere, and hints and pings that would only contact the live host.

Start tags and their attributes are found as browsers find them in markup of any quality, with the tokenizer of the HTML
standard; in XML with CDATA sections and without raw text. Nothing is repaired: what a browser drops is skipped. Linear
time.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from archiver.config.expressions import compiled
from archiver.extract.html import attribute_values
from archiver.extract.html.attribute_values import param_urls
from archiver.extract.html.markup import unescaped
from archiver.extract.html.tables import LAZY, LAZY_ON_IMAGES, PRESENTATION, URLS, relation_hop
from archiver.extract.references import base_of
from archiver.model import Hop
from archiver.tools.export import rewrite_links
from archiver.tools.export.rewrite_links import ExportedPage

_S = r"[\t\n\f\r ]"
_OPEN = re.compile(r"<(?:(!--)|(!\[CDATA\[)|/([a-zA-Z][^\t\n\f\r />]*+)|([!?/])|([a-zA-Z][^\t\n\f\r />]*+))")
_ATTRIBUTE = compiled(
    r"([\t\n\f\r /]*+)(?:(>)|([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rf"(?:{_S}*+={_S}*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)|(?=>)))?+)"
)
_COMMENT_END = re.compile(r"--!?>")
_RAW = ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
_ENDS = {name: re.compile(f"</{name}(?=[\t\n\f\r />])", re.IGNORECASE) for name in _RAW}
_FOREIGN = ("svg", "math")
# Text and the tags that a rewriter need not see: with no attribute, or only with these in their usual form.
_PLAIN = (
    "class",
    "id",
    "title",
    "lang",
    "dir",
    "role",
    "alt",
    "width",
    "height",
    "name",
    "target",
    "colspan",
    "rowspan",
    "rel",
    "type",
    "hreflang",
    "loading",
    "decoding",
)
_BESIDE = rf"(?: (?:{'|'.join(_PLAIN)})=\"[^\"<>]*+\")*+"
_DULL = rf"(?:[^<]++|<(?:/(?!svg|math)|(?!{'|'.join((*_RAW, *_FOREIGN, 'plaintext'))}))[a-z][a-z0-9]*+{_BESIDE}>)*+"
# What follows them: a link or an image in its usual form, of which one attribute matters.
_USUAL = rf"(?:<(?:(a){_BESIDE} href|img{_BESIDE} src)=\"([^\"<>]++)\"{_BESIDE} ?/?>)?+"
_AHEAD = compiled(_DULL + _USUAL, re.IGNORECASE | re.ASCII)


class HtmlAttribute(NamedTuple):
    """One attribute: the place of its value, and of the whole attribute with the space before it."""

    value: tuple[int, int]  # empty without a value
    whole: tuple[int, int]
    quoted: bool


class HtmlTag(NamedTuple):
    """One start tag; names are in lower case, and the first of two equal attributes counts."""

    name: str
    attributes: dict[str, HtmlAttribute]
    text: tuple[int, int]  # the text of a style or script


class UsualReference(NamedTuple):
    """The place of the value in a link or an image of the usual form, and whether browsers load its target at once."""

    start: int
    end: int
    loaded: bool


def tags(text: str, *, xml: bool, dull: bool = True) -> Iterator[HtmlTag | UsualReference]:
    """Yield every start tag in *text*, in order.

    Without *dull*, tags and attributes that stay may be left out, and of usual links and images only their reference is
    given.
    """
    position = foreign = 0
    while True:
        usual, position = (None, position) if dull else _ahead(text, position)
        if usual is not None:
            yield usual
            continue
        opening = _OPEN.search(text, position)
        if opening is None:
            return
        comment, cdata, closing, _, name = opening.groups()
        if name is None:
            if closing is not None and closing.lower() in _FOREIGN:
                foreign = max(foreign - 1, 0)
            position = _behind(text, opening, comment, cdata if xml or foreign else None)
            if position < 0:
                return
            continue
        name = name.lower()
        attributes, end, empty = _attributes(text, opening.end())
        if end < 0 or name == "plaintext":
            return
        position, inside = end, (end, end)
        if name in _FOREIGN and not empty:
            foreign += 1
        if name in _ENDS and not (empty and (xml or foreign)) and (not xml or name in ("style", "script")):
            close = _ENDS[name].search(text, end)
            inside = (end, close.start() if close else len(text))
            position = inside[1]
        yield HtmlTag(name, attributes, inside)


def _ahead(text: str, position: int) -> tuple[UsualReference | None, int]:
    """Return the link or image in its usual form behind what stays from *position* on, if there is one, and its end."""
    found = _AHEAD.match(text, position)
    if found is None or found[2] is None:
        return None, found.end() if found else position
    return UsualReference(*found.span(2), found[1] is None), found.end()


def _behind(text: str, opening: re.Match[str], comment: str | None, cdata: str | None) -> int:
    """Return the end of something that is not a start tag; -1 if it has none."""
    start = opening.end()
    if comment is not None:
        if text.startswith((">", "->"), start):  # an empty one
            return text.index(">", start) + 1
        found = _COMMENT_END.search(text, start)
        return found.end() if found else -1
    end, mark = (text.find("]]>", start), 3) if cdata is not None else (text.find(">", start), 1)
    return end + mark if end >= 0 else -1


def _attributes(text: str, position: int) -> tuple[dict[str, HtmlAttribute], int, bool]:
    """Return the attributes of the tag whose name ends at *position*, its end (-1: none), and whether it is empty."""
    attributes: dict[str, HtmlAttribute] = {}
    while found := _ATTRIBUTE.match(text, position):
        gap, end, name = found.group(1, 2, 3)
        if end is not None:
            return attributes, found.end(), gap.endswith("/")
        position = found.end()
        group = next((number for number in (4, 5, 6) if found[number] is not None), 0)
        place = found.span(group) if group else (position, position)
        attributes.setdefault(name.lower(), HtmlAttribute(place, found.span(), group in (4, 5)))
    return {}, -1, False


_DEEPEST = 3  # levels of nested documents
_REMOVED = frozenset(("integrity", "crossorigin", "ping"))
_HINTS = frozenset(("preconnect", "dns-prefetch"))
_POLICIES = frozenset(("content-security-policy", "content-security-policy-report-only"))
_SETS = frozenset(("srcset", "imagesrcset"))
_EVERYWHERE = frozenset(("background", "cite", "longdesc"))
_MORE = {
    "link": ("href",),
    "form": ("action",),
    "button": ("formaction",),
    "input": ("src", "formaction"),
    "object": ("data",),
}
_FOLLOWED = frozenset(("action", "formaction", "cite", "longdesc"))
_BASE = re.compile("<base", re.IGNORECASE)
_PERHAPS = frozenset(("src", "href", "xlink:href", "poster"))  # on unknown elements, or those that scripts use

_USUAL_REFERENCES = {("a", "href"): False, ("img", "src"): True}  # and whether a browser loads their targets by itself

_LONGEST = 40  # characters of the names of elements and attributes that are judged by name

Edit = tuple[int, int, str]  # start, end, replacement
Meaning = Callable[[str], str]


def rewrite_html(text: str, page: ExportedPage, meaning: Meaning, *, xml: bool = False, depth: int = 0) -> str:
    """Return *text* with the references of *page* changed."""
    href = None if xml else _base(text)
    if href is not None:
        page = page.based(base_of(page.base, unescaped(meaning(text[slice(*href.value)])).strip()))
    rewriter = _TagRewriter(text, page, meaning, depth)
    parts: list[str] = []
    kept = 0
    for tag in tags(text, xml=xml, dull=False):
        if isinstance(tag, UsualReference):
            if (changed := rewriter.usual(tag)) is not None and tag.start >= kept:
                parts += (text[kept : tag.start], changed)
                kept = tag.end
            continue
        for start, end, new in rewriter.edits(tag):
            if start >= kept:
                parts += (text[kept:start], new)
                kept = end
    return "".join((*parts, text[kept:])) if parts else text


def _base(text: str) -> HtmlAttribute | None:
    """Return the href of the first <base> of *text*. Tags are not kept: a hostile page has ten million of them."""
    if _BASE.search(text) is None:
        return None
    whole = (tag for tag in tags(text, xml=False) if isinstance(tag, HtmlTag))
    return next((tag.attributes["href"] for tag in whole if tag.name == "base" and "href" in tag.attributes), None)


class _TagRewriter:
    """Finds the changes for each tag of one document."""

    def __init__(self, text: str, page: ExportedPage, meaning: Meaning, depth: int) -> None:
        self._text = text
        self._page = page
        self._meaning = meaning
        self._depth = depth

    def usual(self, reference: UsualReference) -> str | None:
        """Return what replaces *reference*; None if it stays."""
        start, end, loaded = reference
        new = self._page.replacement(self._decoded(self._text[start:end]), loaded=loaded)
        return None if new is None else escaped(new)

    def edits(self, tag: HtmlTag) -> list[Edit]:
        """Return the changes in *tag*, and in the text of a style, in their order."""
        found: list[Edit] = []
        for name, attribute in tag.attributes.items():
            if not _matters(tag.name[:_LONGEST], name[:_LONGEST]):
                continue
            if name in _REMOVED:
                found.append((*attribute.whole, ""))
            elif attribute.value[0] < attribute.value[1]:
                new = self._attribute(tag, name, attribute)
                if new is not None:
                    found.append((*attribute.value, new if attribute.quoted else f'"{new}"'))
        if tag.name == "style":
            sheet = self._text[slice(*tag.text)]
            changed = rewrite_links.rewrite_css(sheet, self._page, self._meaning)
            if changed != sheet:
                found.append((*tag.text, changed))
        return sorted(found) if len(found) > 1 else found

    def _attribute(self, tag: HtmlTag, name: str, attribute: HtmlAttribute) -> str | None:
        """Return the new value of an attribute, escaped; None if it stays."""
        if (loaded := _USUAL_REFERENCES.get((tag.name, name))) is not None:  # as the code below, but at once
            new = self._page.replacement(self._value(attribute), loaded=loaded)
            return None if new is None else escaped(new)
        if name == "style" or (name in PRESENTATION and "url(" in self._raw(attribute)):
            return self._composed(attribute, self._styled)
        if name in _SETS or (LAZY.fullmatch(name) and "set" in name[5:]):
            return self._composed(attribute, self._candidates)
        if name == "srcdoc" and tag.name == "iframe" and self._depth < _DEEPEST:
            return self._composed(attribute, self._framed)
        value = self._value(attribute)
        if name == "content":
            return self._content(tag, value) if tag.name == "meta" else None
        if tag.name == "base":
            return "" if name == "href" else None
        if tag.name == "link" and name == "href" and self._is_hint(tag):
            return ""
        new = self._reference(tag, name, value)
        if new == rewrite_links.NOWHERE and tag.name == "object":
            return ""  # what is inside is shown instead
        return None if new is None else escaped(new)

    def _reference(self, tag: HtmlTag, name: str, value: str) -> str | None:
        """Return the replacement for the reference in an attribute."""
        if _is_url(tag.name[:_LONGEST], name[:_LONGEST]):
            return self._page.replacement(value, loaded=self._is_loaded(tag, name))
        if name.startswith("data-"):
            kept = [reference for reference, _ in attribute_values.data_urls(tag.name, name, value)]
            return self._page.replacement(value, optional=True) if kept == [value.strip()] else None
        if tag.name == "param" and name == "value":
            known = {key: self._value(tag.attributes[key]) for key in tag.attributes}
            known_url = any(reference == value for reference, _, _ in param_urls(known))
            return self._page.replacement(value, optional=True) if known_url else None
        if (name in _PERHAPS and tag.name not in URLS and tag.name not in _MORE) or (
            tag.name in {"img", "object"} and name in LAZY_ON_IMAGES
        ):
            return self._page.replacement(value, optional=True)
        return None

    def _content(self, tag: HtmlTag, value: str) -> str | None:
        """Return the new content of a meta element."""
        http_equiv = tag.attributes.get("http-equiv")
        directive = self._value(http_equiv).strip().lower() if http_equiv else ""
        if directive in _POLICIES:
            return ""
        target = attribute_values.refresh_target(value) if directive == "refresh" else None
        new = self._page.replacement(target) if target else None
        return None if new is None else f"{value.strip().partition(';')[0].partition(',')[0]};url={escaped(new)}"

    def _is_loaded(self, tag: HtmlTag, name: str) -> bool:
        """Return whether a browser loads the target of attribute *name* of *tag* by itself."""
        if tag.name == "link":
            return relation_hop(self._relations(tag)) is Hop.REQUISITE
        return _is_loaded(tag.name[:_LONGEST], name[:_LONGEST])

    def _is_hint(self, tag: HtmlTag) -> bool:
        return not _HINTS.isdisjoint(self._relations(tag).lower().split())

    def _relations(self, tag: HtmlTag) -> str:
        rel = tag.attributes.get("rel")
        return self._value(rel) if rel is not None else ""

    def _raw(self, attribute: HtmlAttribute) -> str:
        return self._text[slice(*attribute.value)]

    def _value(self, attribute: HtmlAttribute) -> str:
        """Return the decoded value of an attribute."""
        return self._decoded(self._raw(attribute))

    def _decoded(self, raw: str) -> str:
        value = raw if raw.isascii() else self._meaning(raw)
        return unescaped(value) if "&" in value else value

    def _composed(self, attribute: HtmlAttribute, change: Callable[[str, Meaning], str]) -> str | None:
        """Change parts of a value; if nothing in it is escaped, every other character stays as it is."""
        raw = self._raw(attribute)
        plain = "&" not in raw
        value = raw if plain else self._value(attribute)
        changed = change(value, self._meaning if plain else str)
        if changed == value:
            return None
        return _quoted(changed.replace("&", "&amp;")) if plain else escaped(changed)

    def _styled(self, value: str, meaning: Meaning) -> str:
        return rewrite_links.rewrite_css(value, self._page, meaning)

    def _framed(self, value: str, meaning: Meaning) -> str:
        return rewrite_html(value, self._page, meaning, depth=self._depth + 1)

    def _candidates(self, value: str, meaning: Meaning) -> str:
        parts: list[str] = []
        kept = 0
        for start, end in attribute_values.candidate_spans(value):
            new = self._page.replacement(meaning(value[start:end]), loaded=True)
            if new is not None:
                parts += (value[kept:start], new if new.startswith("data:") else new.replace(",", "%2C"))
                kept = end
        return "".join((*parts, value[kept:]))


@lru_cache(maxsize=4096)
def _matters(tag: str, name: str) -> bool:
    """Return False if no value of the attribute *name* of *tag* would be changed."""
    named = (one for one, _ in URLS.get(tag, ()))
    known = {"style", "srcdoc", "content", "value", "href", *_REMOVED, *PRESENTATION, *_SETS, *_EVERYWHERE, *_PERHAPS}
    known |= {*LAZY_ON_IMAGES, *_MORE.get(tag, ()), *named}
    return name in known or name.startswith("data-") or LAZY.fullmatch(name) is not None or len(name) == _LONGEST


@lru_cache(maxsize=4096)
def _is_url(tag: str, name: str) -> bool:
    """Return True if the attribute *name* of *tag* is always a URL."""
    return name in _EVERYWHERE or name in _MORE.get(tag, ()) or any(name == one for one, _ in URLS.get(tag, ()))


@lru_cache(maxsize=4096)
def _is_loaded(tag: str, name: str) -> bool:
    """Return True if a browser loads the target of the attribute *name* of *tag*, which is no link element, itself."""
    return name not in _FOLLOWED and (name, Hop.LINK) not in URLS.get(tag, ())


def _quoted(value: str) -> str:
    return value.replace('"', "&quot;").replace("'", "&#39;")


def escaped(value: str) -> str:
    """Return *value* escaped for any attribute, in any encoding."""
    text = _quoted(value.replace("&", "&amp;").replace("<", "&lt;"))
    return text if text.isascii() else text.encode("ascii", "xmlcharrefreplace").decode()
