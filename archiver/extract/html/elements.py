"""What the elements of HTML, SVG and MathML link to, whichever parser met them. The tables are in `tables`.

Names are in lower case, without namespaces except for `xlink:href`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from archiver.extract import css
from archiver.extract.collector import NOFOLLOW, Kept, LinkCollector
from archiver.extract.html import attribute_values, plugins
from archiver.extract.html.tables import (
    LATE_ON_IMAGES,
    MATHML,
    META_LINKS,
    META_REQUISITES,
    PRESENTATION,
    URLS,
    item_hop,
    relation_hop,
)
from archiver.extract.script import embedded_json, generators, inline, javascript, markup, strings
from archiver.extract.url_guess import a_file, like_a_url, surely_a_url
from archiver.model import Hop

Attributes = Mapping[str, str]

REFUSE = frozenset(("nofollow", "none"))  # what a page says where its links are not to be followed
MOST_TOLD = 20  # products to which one document says so
_LONGEST_DIRECTIVES = 500
_LONGEST_REMEMBERED = 8192  # characters of a script
_APART = re.compile(r"[\s,]+")
_PRODUCT = re.compile(r"[\w.-]{1,60}", re.ASCII)
_NOT_FETCHED = ("post", "dialog")  # what a form does with these methods leaves no address behind

_COMMON = frozenset(("alt", "class", "content", "height", "href", "id", "name", "rel", "src", "title", "type", "width"))
_PAINT = re.compile(r"[\t\n\f\r ]*+url\(", re.IGNORECASE)
_BLANK = re.compile(r"\S\s+\S")
_TASK = re.compile(r"(action|icon)-uri=([^;\s]+)", re.IGNORECASE)
_TEMPLATE = re.compile(r"template|handlebars|mustache|tmpl|underscore|jsrender|text/html\Z")


class Elements:
    """The references of the elements that it is told of, and the document's base as it stands there."""

    def __init__(self) -> None:
        self.found = LinkCollector()
        self.base: str | None = None  # the first base element's href
        self.early = 0  # references that came before it, which are loaded while it is not known
        self.framed: list[str] = []  # documents that stand in an attribute (srcdoc)
        self.templates: list[str] = []  # markup in scripts that others will fill in
        self.tables: list[str] = []  # scripts with the pages of the site, which only the whole page explains
        self.icon = False  # it names the icon of its site, if only to say that there is none
        self.nofollow: dict[str, None] = {}  # where and to whom it says not to follow its links
        self.asks = False  # what the tag that came last says depends on one before it
        self.jumping = False  # a choice in the menu that was opened last leads to what it names
        self.posting = False  # the form that was opened last sends by POST

    def start_any(self, tag: str, attributes: Attributes) -> None:
        """Take in one start tag: what its attributes mean on this element, and what they mean on any."""
        if not attributes:
            self.jumping = self.jumping and tag != "select"
            return
        known = _ELEMENTS.get(tag)
        mark = NOFOLLOW if "rel" in attributes and "nofollow" in attributes["rel"].lower().split() else ""
        if known is None:
            self._unknown(tag, attributes, mark)
        else:
            for name, hop, context in known.urls:
                if name in attributes:
                    self.found.add(attributes[name], hop, context + mark)
            if known.more:
                known.more(self, attributes)
        if not attributes.keys() <= _COMMON:
            self._everywhere(tag, attributes, mark)
            if "data-root-path" in attributes:
                self._all(generators.rustdoc(attributes), generators.LOADED)
        if "content" in attributes and tag != "meta":
            self._described(tag, attributes)

    def _everywhere(self, tag: str, attributes: Attributes, mark: str) -> None:
        """What attributes mean on every element."""
        for name, value in attributes.items():
            meaning = _ANYWHERE.get(name)
            if meaning:
                meaning(self, tag, name, value)
            elif name.startswith("on"):
                self.handled(f"{tag}/@{name}", inline.handler(value))
            elif name.startswith("data-"):
                for reference, hop in attribute_values.kept(tag, name, value):
                    self.found.add(reference, hop, f"{tag}/@{name}" + mark * (hop is Hop.LINK))

    def handled(self, where: str, named: inline.Named) -> None:
        """Take in what an event handler or a script in place of an address *named*."""
        for reference, hop, _ in named:
            self.found.add(reference, hop, where)

    def style(self, text: str, where: str = "style") -> None:
        """Take in the text of a style element, or of an attribute."""
        for reference, context in css.references(text):
            self.found.add(reference, Hop.REQUISITE, f"{where}/{context}" if where == "style" else where)

    def script(self, attributes: Attributes, text: str) -> None:
        """Take in the text of a script element: data, markup to be filled in, or the state of a framework."""
        kind = attributes.get("type", "").partition(";")[0].strip().lower()
        if attributes.get("src"):
            return
        if generators.is_table(name := attributes.get("id", ""), text):
            self.tables.append(text)
        if javascript.is_program(kind):
            self.found.take(_remembered(text) if len(text) <= _LONGEST_REMEMBERED else _named_in(text))
        elif kind == "application/ld+json":
            self._all(embedded_json.linked_data(text), "script/ld+json")
        elif kind == "importmap":
            self._all(embedded_json.modules(text), "script/importmap")
        elif kind == "speculationrules":
            self._all(embedded_json.next_pages(text), "script/speculationrules")
        elif kind.endswith("json"):
            self._all(embedded_json.files(text), "script/json")
            self._all(generators.configured(name, text), generators.LOADED)
        elif _TEMPLATE.search(kind) and text:
            self.templates.append(text)

    def tell(self, name: str) -> None:
        """A meta element of this *name* says not to follow links: `robots`, or the product it speaks to."""
        if _PRODUCT.fullmatch(name) and len(self.nofollow) < MOST_TOLD:
            self.nofollow[f"meta {name}"] = None

    def candidates(self, value: str | None, context: str) -> None:
        """Take in a srcset."""
        if value:
            for reference in attribute_values.candidates(value):
                self.found.add(reference, Hop.REQUISITE, context)

    def _all(self, references: Iterator[tuple[str, Hop]], context: str) -> None:
        for reference, hop in references:
            self.found.add(reference, hop, context)

    def _unknown(self, tag: str, attributes: Attributes, mark: str) -> None:
        """What an element names that HTML gives no meaning: a script's own, or one of another vocabulary."""
        own = "-" in tag
        for name in ("src", "poster"):
            value = attributes.get(name, "")
            if own and like_a_url(value):
                self.found.add(value, Hop.REQUISITE, f"{tag}/@{name}")
            elif a_file(value, near=True):
                self.found.add(value, Hop.SPECULATIVE, f"{tag}/@{name}")
        if own:
            self.candidates(attributes.get("srcset"), f"{tag}/@srcset")
            self._all(attribute_values.of_component(attributes), f"{tag}/@*")
        for name in ("href", "xlink:href"):
            value = attributes.get(name, "")
            if value and (tag in MATHML or like_a_url(value)):
                self.found.add(value, Hop.LINK, f"{tag}/@{name}{mark}")

    def _described(self, tag: str, attributes: Attributes) -> None:
        """A property in microdata or RDFa whose value stands in `content`."""
        hop = item_hop(attributes)
        value = attributes["content"]
        if (hop is Hop.REQUISITE and like_a_url(value)) or (hop is Hop.LINK and surely_a_url(value)):
            self.found.add(value, hop, f"{tag}/@content")


def _named_in(program: str) -> Kept:
    """What the text of a script element names."""
    found = LinkCollector()
    for reference, hop, context in inline.program(program):
        found.add(reference, hop, context)
    written(found, program)
    return tuple(found.references.items())


_remembered = lru_cache(maxsize=256)(_named_in)  # most scripts stand on each page of a site


def written(found: LinkCollector, text: str) -> None:
    """Keep in *found* what markup in the strings of a script names."""
    for name, attributes in markup.tags(text):
        probe = Elements()
        probe.start_any(name, attributes)
        for (reference, hop), context in probe.found.references.items():
            if markup.is_sure(reference, hop):
                found.add(reference, Hop.SPECULATIVE, f"script/{context}")


def _styled(elements: Elements, tag: str, name: str, value: str) -> None:
    elements.style(value, f"{tag}/@{name}")


def _painted(elements: Elements, tag: str, name: str, value: str) -> None:
    if _PAINT.match(value):  # most are colours
        elements.style(value, f"{tag}/@{name}")


def _background(elements: Elements, tag: str, name: str, value: str) -> None:
    elements.found.add(value, Hop.REQUISITE, f"{tag}/@{name}")


def _reference(elements: Elements, tag: str, name: str, value: str) -> None:
    if not _BLANK.search(value[:1000]):  # in practice many hold a sentence
        elements.found.add(value, Hop.LINK, f"{tag}/@{name}")


def _map(elements: Elements, tag: str, name: str, value: str) -> None:
    if "#" in value[1:]:  # a map in another document; without a mark it is a name
        elements.found.add(value, Hop.LINK, f"{tag}/@{name}")


_Meaning = Callable[[Elements, str, str, str], None]
_ANYWHERE: dict[str, _Meaning] = {
    "style": _styled,
    "background": _background,
    "cite": _reference,
    "longdesc": _reference,
    "usemap": _map,
    **dict.fromkeys(PRESENTATION, _painted),
}


def _anchor(tag: str, name: str) -> "_More":
    def more(elements: Elements, attributes: Attributes) -> None:
        href = attributes.get(name)
        if href and inline.is_script(href):
            elements.handled(f"{tag}/@{name}", inline.script_url(href))

    return more


def _image(elements: Elements, attributes: Attributes) -> None:
    elements.candidates(attributes.get("srcset"), "img/@srcset")
    for name in LATE_ON_IMAGES.intersection(attributes):
        if like_a_url(attributes[name]):
            elements.found.add(attributes[name], Hop.REQUISITE, f"img/@{name}")


def _other_image(tag: str) -> "_More":
    def more(elements: Elements, attributes: Attributes) -> None:
        elements.candidates(attributes.get("srcset"), f"{tag}/@srcset")

    return more


def _iframe(elements: Elements, attributes: Attributes) -> None:
    if attributes.get("srcdoc"):
        elements.framed.append(attributes["srcdoc"])
    _anchor("iframe", "src")(elements, attributes)


def _base(elements: Elements, attributes: Attributes) -> None:
    if elements.base is None and "href" in attributes:
        elements.base = attributes["href"]
        elements.early = len(elements.found.references)


def _link(elements: Elements, attributes: Attributes) -> None:
    relations = attributes.get("rel")
    if relations is None and ("itemprop" in attributes or "property" in attributes):
        hop = item_hop(attributes)
    else:
        hop = relation_hop(relations or "")
    if hop is Hop.REQUISITE and "icon" in (relations or "").lower().split():
        elements.icon = True
    if hop is Hop.REQUISITE and (relations or "").strip().lower() == "prefetch" and attributes.get("as") == "document":
        hop = Hop.LINK
    if hop:
        elements.found.add(attributes.get("href"), hop, "link/@href")
        elements.found.add(generators.whole_page(attributes.get("href", "")), hop, generators.LOADED)
        elements.candidates(attributes.get("imagesrcset"), "link/@imagesrcset")


def _meta(elements: Elements, attributes: Attributes) -> None:
    content = attributes.get("content")
    if not content:
        return
    if attributes.get("http-equiv", "").strip().lower() == "refresh":
        elements.found.add(attribute_values.target(content), Hop.LINK, "meta/@content")
    name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
    name = name.strip().lower()
    if len(content) < _LONGEST_DIRECTIVES and _refuses(content.lower()):
        elements.tell(name)
    for reference, hop in _content(name, content, item_hop(attributes) if "itemprop" in attributes else None):
        elements.found.add(reference, hop, "meta/@content")


def _refuses(directives: str) -> bool:
    return "no" in directives and not REFUSE.isdisjoint(_APART.split(directives))


def _content(name: str, content: str, item: Hop | None) -> Iterator[tuple[str, Hop]]:
    """What the *content* of a meta element of this *name* leads to; *item* says what it is as a property."""
    if name in META_REQUISITES or item is Hop.REQUISITE:
        if surely_a_url(content) or like_a_url(content) or a_file(content, near=True):
            yield content, Hop.REQUISITE
    elif name in META_LINKS or item is Hop.LINK:
        if content.lstrip().lower().startswith(("http:", "https:")):
            yield content, Hop.LINK
    elif name == "msapplication-task":
        for what, reference in _TASK.findall(content[:4096]):
            yield reference, Hop.LINK if what.lower() == "action" else Hop.REQUISITE
    elif a_file(content):
        yield content, Hop.SPECULATIVE


def _form(elements: Elements, attributes: Attributes) -> None:
    elements.posting = attributes.get("method", "get").strip().lower() in _NOT_FETCHED
    if not elements.posting:
        elements.found.add(attributes.get("action"), Hop.LINK, "form/@action")


def _button(elements: Elements, attributes: Attributes) -> None:
    _submit(elements, "button", attributes)


def _input(elements: Elements, attributes: Attributes) -> None:
    if attributes.get("type", "image").strip().lower() == "image":
        elements.found.add(attributes.get("src"), Hop.REQUISITE, "input/@src")
    _submit(elements, "input", attributes)


def _submit(elements: Elements, tag: str, attributes: Attributes) -> None:
    method = attributes.get("formmethod", "post" if elements.posting else "get").strip().lower()
    if method not in _NOT_FETCHED:
        elements.found.add(attributes.get("formaction"), Hop.LINK, f"{tag}/@formaction")


def _select(elements: Elements, attributes: Attributes) -> None:
    elements.jumping = inline.navigates(attributes.get("onchange", ""))


def _option(elements: Elements, attributes: Attributes) -> None:
    value = attributes.get("value", "").strip()
    if like_a_url(value):
        elements.asks = True
    if elements.jumping and like_a_url(value):
        elements.found.add(value, Hop.LINK, "option/@value")
    elif strings.is_page(value):
        elements.found.add(value, Hop.SPECULATIVE, "option/@value")


def _animation(tag: str) -> "_More":
    """An SVG animation that changes what is shown by changing a reference."""

    def more(elements: Elements, attributes: Attributes) -> None:
        target = attributes.get("attributename") or attributes.get("attributeName") or ""
        if target.strip().lower() in ("href", "xlink:href"):
            for name in ("from", "to", "values"):
                for reference in attributes.get(name, "").split(";", 1000):
                    elements.found.add(reference.strip(), Hop.REQUISITE, f"{tag}/@{name}")

    return more


def _plugin(tag: str, named: Callable[[Attributes], plugins.Named]) -> "_More":
    def more(elements: Elements, attributes: Attributes) -> None:
        for reference, hop, name in named(attributes):
            elements.found.add(reference, hop, f"{tag}/@{name}")

    return more


_More = Callable[[Elements, Attributes], None]
_MORE: dict[str, _More] = {
    "a": _anchor("a", "href"),
    "amp-img": _other_image("amp-img"),
    "animate": _animation("animate"),
    "applet": _plugin("applet", plugins.of_applet),
    "area": _anchor("area", "href"),
    "base": _base,
    "button": _button,
    "embed": _plugin("embed", plugins.of_embed),
    "form": _form,
    "frame": _anchor("frame", "src"),
    "iframe": _iframe,
    "img": _image,
    "input": _input,
    "link": _link,
    "meta": _meta,
    "object": _plugin("object", plugins.of_object),
    "param": _plugin("param", plugins.of_param),
    "option": _option,
    "select": _select,
    "set": _animation("set"),
    "source": _other_image("source"),
}


class _Known(NamedTuple):
    """All that is known of one element."""

    urls: tuple[tuple[str, Hop, str], ...]  # attribute, what it names, and both in words
    more: _More | None


_ELEMENTS = {
    tag: _Known(tuple((name, hop, f"{tag}/@{name}") for name, hop in URLS.get(tag, ())), _MORE.get(tag))
    for tag in (*URLS, *_MORE)
}
NAMES = frozenset((*_ELEMENTS, "blockquote", "del", "ins", "q"))  # the elements that are told apart
