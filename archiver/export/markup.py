"""References in HTML, XHTML and SVG changed in their places; every other character stays as it was. Pure.

The same elements and attributes as those in which a crawl finds links. Besides, what would keep files from working is
taken away: integrity sums and CORS modes (a changed file has another sum, and a file has no origin), security
policies, a base that leads elsewhere, and hints and pings that would only call on the live host.
"""

import re
from collections.abc import Callable, Iterator

from archiver.export import sheets
from archiver.export.links import Page
from archiver.export.tags import Attribute, Tag, tags
from archiver.extract import charset, late, refresh, srcset
from archiver.extract.found import base_of
from archiver.extract.markup import unescaped
from archiver.extract.plugins import of_param
from archiver.extract.vocabulary import LATE, LATE_ON_IMAGES, PRESENTATION, URLS, relation_hop
from archiver.model import Hop

_DEEPEST = 3  # documents in documents
_AWAY = frozenset(("integrity", "crossorigin", "ping"))
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
_LATE = 1 << 16  # bytes in which a document says its encoding
_DOCTYPE = re.compile(r"(?:[\t\n\f\r ]|<!--(?:[^-]|-(?!->))*+-->)*+<!doctype[^>]*+>", re.IGNORECASE)
_BASE = re.compile("<base", re.IGNORECASE)
_PERHAPS = frozenset(("src", "href", "xlink:href", "poster"))  # of elements that are nobody's, or a script's

Edit = tuple[int, int, str]  # from, to, and what stands there then
Meaning = Callable[[str], str]


def rewritten(text: str, page: Page, meaning: Meaning, *, xml: bool = False, depth: int = 0) -> str:
    """*text* with the references that *page* wants otherwise."""
    href = None if xml else _base(text)
    if href is not None:
        page = page.based(base_of(page.base, unescaped(meaning(text[slice(*href.value)])).strip()))
    rewriter = _Rewriter(text, page, meaning, depth)
    parts: list[str] = []
    kept = 0
    for start, end, new in (edit for tag in tags(text, xml=xml) for edit in sorted(rewriter.edits(tag))):
        if start >= kept:
            parts += (text[kept:start], new)
            kept = end
    return "".join((*parts, text[kept:])) if parts else text


def _base(text: str) -> Attribute | None:
    """Return the href of the first <base> of *text*. Tags are not kept: a hostile page has ten millions of them."""
    if _BASE.search(text) is None:
        return None
    bases = (tag for tag in tags(text, xml=False) if tag.name == "base" and "href" in tag.attributes)
    return next((tag.attributes["href"] for tag in bases), None)


def labelled(body: bytes, text: str, encoding: str, *, xml: bool) -> str:
    """*text* that says its *encoding* by itself, where only the answer's header had said it."""
    own = charset.of_xml(body, None) if xml else charset.of_html(body, None)
    silent = encoding == "windows-1252" and b"charset" not in body[:_LATE].lower()  # what is read without a word
    if body.isascii() or charset.marked(body) or (own == encoding and not silent):
        return text
    if encoding == "utf-8":
        return f"\ufeff{text}"
    if xml or encoding.startswith("utf-16"):
        return text
    doctype = _DOCTYPE.match(text)
    end = doctype.end() if doctype else 0
    return f'{text[:end]}<meta charset="{encoding}">{text[end:]}'


class _Rewriter:
    """Says what is to be changed in each tag of one document."""

    def __init__(self, text: str, page: Page, meaning: Meaning, depth: int) -> None:
        self._text = text
        self._page = page
        self._meaning = meaning
        self._depth = depth

    def edits(self, tag: Tag) -> Iterator[Edit]:
        """What is to be changed in *tag*, and in the text of a style."""
        for name, attribute in tag.attributes.items():
            if name in _AWAY:
                yield (*attribute.whole, "")
            elif attribute.value[0] < attribute.value[1]:
                new = self._attribute(tag, name, attribute)
                if new is not None:
                    yield (*attribute.value, new if attribute.quoted else f'"{new}"')
        if tag.name == "style":
            sheet = self._text[slice(*tag.text)]
            changed = sheets.rewritten(sheet, self._page, self._meaning)
            if changed != sheet:
                yield (*tag.text, changed)

    def _attribute(self, tag: Tag, name: str, attribute: Attribute) -> str | None:
        """What is to stand in an attribute, as it is written there; None where it stays."""
        if name == "style" or (name in PRESENTATION and "url(" in self._raw(attribute)):
            return self._composed(attribute, self._styled)
        if name in _SETS or (LATE.fullmatch(name) and "set" in name[5:]):
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
        return None if new is None else _escaped(new)

    def _reference(self, tag: Tag, name: str, value: str) -> str | None:
        """What is to stand in place of the reference that an attribute holds."""
        named = URLS.get(tag.name)
        if name in _EVERYWHERE or name in _MORE.get(tag.name, ()) or any(name == one for one, _ in named or ()):
            return self._page.replacement(value, loaded=self._is_loaded(tag, name))
        if name.startswith("data-"):
            kept = [reference for reference, _ in late.kept(tag.name, name, value)]
            return self._page.replacement(value, held=True) if kept == [value.strip()] else None
        if tag.name == "param" and name == "value":
            known = {key: self._value(tag.attributes[key]) for key in tag.attributes}
            held = any(reference == value for reference, _, _ in of_param(known))
            return self._page.replacement(value, held=True) if held else None
        if (name in _PERHAPS and named is None and tag.name not in _MORE) or (
            tag.name == "img" and name in LATE_ON_IMAGES
        ):
            return self._page.replacement(value, held=True)
        return None

    def _content(self, tag: Tag, value: str) -> str | None:
        """What is to stand in the content of a meta element."""
        said = tag.attributes.get("http-equiv")
        meant = self._value(said).strip().lower() if said else ""
        if meant in _POLICIES:
            return ""
        target = refresh.target(value) if meant == "refresh" else None
        new = self._page.replacement(target) if target else None
        return None if new is None else f"{value.strip().partition(';')[0].partition(',')[0]};url={_escaped(new)}"

    def _is_loaded(self, tag: Tag, name: str) -> bool:
        """Whether a browser fetches what the attribute *name* of *tag* refers to without being asked."""
        if tag.name == "link":
            return relation_hop(self._relations(tag)) is Hop.REQUISITE
        return name not in _FOLLOWED and (name, Hop.LINK) not in URLS.get(tag.name, ())

    def _is_hint(self, tag: Tag) -> bool:
        return not _HINTS.isdisjoint(self._relations(tag).lower().split())

    def _relations(self, tag: Tag) -> str:
        rel = tag.attributes.get("rel")
        return self._value(rel) if rel is not None else ""

    def _raw(self, attribute: Attribute) -> str:
        return self._text[slice(*attribute.value)]

    def _value(self, attribute: Attribute) -> str:
        """What an attribute says."""
        value = self._meaning(self._raw(attribute))
        return unescaped(value) if "&" in value else value

    def _composed(self, attribute: Attribute, change: Callable[[str, Meaning], str]) -> str | None:
        """A value changed in places: where nothing in it is escaped, every other character stays as it is."""
        raw = self._raw(attribute)
        plain = "&" not in raw
        value = raw if plain else self._value(attribute)
        changed = change(value, self._meaning if plain else str)
        if changed == value:
            return None
        return _quoted(changed.replace("&", "&amp;")) if plain else _escaped(changed)

    def _styled(self, value: str, meaning: Meaning) -> str:
        return sheets.rewritten(value, self._page, meaning)

    def _framed(self, value: str, meaning: Meaning) -> str:
        return rewritten(value, self._page, meaning, depth=self._depth + 1)

    def _candidates(self, value: str, meaning: Meaning) -> str:
        parts: list[str] = []
        kept = 0
        for start, end in srcset.placed(value):
            new = self._page.replacement(meaning(value[start:end]), loaded=True)
            if new is not None:
                parts += (value[kept:start], new.replace(",", "%2C"))
                kept = end
        return "".join((*parts, value[kept:]))


def _quoted(value: str) -> str:
    return value.replace('"', "&quot;").replace("'", "&#39;")


def _escaped(value: str) -> str:
    """*value* as it may stand in any attribute, of a document in any encoding."""
    text = _quoted(value.replace("&", "&amp;").replace("<", "&lt;"))
    return text if text.isascii() else text.encode("ascii", "xmlcharrefreplace").decode()
