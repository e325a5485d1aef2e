"""Links of HTML, SVG and MathML elements, for both parsers. The tables are in `tables`.

Names are in lower case, without namespaces except for `xlink:href`.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from archiver.extract import css
from archiver.extract.html import attribute_values
from archiver.extract.html.tables import (
    LAZY_ON_IMAGES,
    MATHML,
    MOST_AGENTS,
    PRESENTATION,
    REFUSE,
    URLS,
    Attributes,
    item_hop,
    relation_hop,
)
from archiver.extract.references import REFRESH, LinkCollector, References, a_file, like_a_url, surely_a_url
from archiver.extract.script import generators, inline, javascript, markup, strings
from archiver.model import Hop
from archiver.policy import referrer

_LONGEST_DIRECTIVES = 500
_LONGEST_REMEMBERED = 8192  # characters of a cached script
_APART = re.compile(r"[\s,]+")
_PRODUCT = re.compile(r"[\w.-]{1,60}", re.ASCII)
_NO_URL_METHODS = ("post", "dialog")  # form methods without a URL to fetch

_WITH_POLICY = frozenset(("a", "area", "iframe", "img", "link", "script"))
_COMMON = frozenset(("alt", "class", "content", "height", "href", "id", "name", "rel", "src", "title", "type", "width"))
_PAINT = re.compile(r"[\t\n\f\r ]*+url\(", re.IGNORECASE)
_BLANK = re.compile(r"\S\s+\S")
_TEMPLATE = re.compile(r"template|handlebars|mustache|tmpl|underscore|jsrender|text/html\Z")


class Elements:
    """Collects the references of elements, and the document's base URL."""

    def __init__(self) -> None:
        self.found = LinkCollector()
        self.base: str | None = None  # href of the first base element
        self.early = 0  # number of references before the base element
        self.framed: list[str] = []  # documents in srcdoc attributes
        self.templates: list[str] = []  # templates in script elements
        self.tables: list[str] = []  # scripts that can be read only with all links of the page
        self.icon = False  # the page names an icon, even an empty one
        self.nofollow: dict[str, None] = {}  # meta elements that say not to follow links
        self.refreshes = False  # a meta element asks to load this page again
        self.referrer_policy = ""  # of the last meta element that sets one
        self.needs_context = False  # the meaning of the last tag depends on an earlier one
        self.menu_navigates = False  # options of the current menu are links
        self.form_posts = False  # the current form uses POST

    def start_any(self, tag: str, attributes: Attributes) -> None:
        """Process one start tag: its attributes on this element, and those with a meaning on any element."""
        if not attributes:
            self.menu_navigates = self.menu_navigates and tag != "select"
            return
        if "data-method" in attributes or "data-turbo-method" in attributes:
            attributes = attribute_values.without_sent_link(attributes)
        known = _ELEMENTS.get(tag)
        before = len(self.found.references)
        mark, policy = attribute_values.link_relations(tag, attributes["rel"]) if "rel" in attributes else ("", "")
        if known is None:
            self._unknown_element(tag, attributes, mark)
        else:
            for name, hop, context in known.urls:
                if name in attributes:
                    self.found.add(attributes[name], hop, context + mark)
            if known.more:
                known.more(self, attributes)
        if not attributes.keys() <= _COMMON:
            own = self._everywhere(tag, attributes, mark)
            policy = policy or own
        if "content" in attributes and tag != "meta":
            self._property(tag, attributes)
        if policy:
            self.found.set_policy(before, policy)

    def _everywhere(self, tag: str, attributes: Attributes, mark: str) -> str:
        """Process attributes that have a meaning on every element; return the referrer policy that they set."""
        for name, value in attributes.items():
            meaning = _ANYWHERE.get(name)
            if meaning:
                meaning(self, tag, name, value)
            elif name.startswith("on"):
                self.add_script_links(f"{tag}/@{name}", inline.handler(value))
            elif name.startswith("data-"):
                for reference, hop in attribute_values.data_urls(tag, name, value):
                    self.found.add(reference, hop, f"{tag}/@{name}" + mark * (hop is Hop.LINK))
        if not generators.ATTRIBUTES.isdisjoint(attributes):
            self._all(generators.by_attributes(attributes), generators.LOADED)
        return referrer.of_attribute(attributes.get("referrerpolicy", "")) if tag in _WITH_POLICY else ""

    def add_script_links(self, where: str, urls: inline.ScriptUrls) -> None:
        """Add the *urls* of an event handler or a script URL."""
        for reference, hop, _ in urls:
            self.found.add(reference, hop, where)

    def style(self, text: str, where: str = "style") -> None:
        """Process the text of a style element or attribute."""
        for reference, context in css.references(text):
            self.found.add(reference, Hop.REQUISITE, f"{where}/{context}" if where == "style" else where)

    def script(self, attributes: Attributes, text: str) -> None:
        """Process the text of a script element: code, data, a template, or the state of a framework."""
        kind = attributes.get("type", "").partition(";")[0].strip().lower()
        if attributes.get("src"):
            return
        if generators.needs_whole_page(name := attributes.get("id", ""), text):
            self.tables.append(text)
        if javascript.is_program(kind):
            self.found.add_all(
                _cached_script_references(text) if len(text) <= _LONGEST_REMEMBERED else _script_references(text)
            )
        elif kind == "application/ld+json":
            self._all(inline.linked_data(text), "script/ld+json")
        elif kind == "importmap":
            self._all(inline.import_map(text), "script/importmap")
        elif kind == "speculationrules":
            self._all(inline.speculation_rules(text), "script/speculationrules")
        elif kind.endswith("json"):
            for reference, hop, context in inline.data(text):
                self.found.add(reference, hop, context)
            self._all(generators.configured(name, text), generators.LOADED)
        elif _TEMPLATE.search(kind) and text:
            self.templates.append(text)

    def add_nofollow(self, name: str) -> None:
        """Note that a meta element *name* (`robots`, or a user agent) says not to follow links."""
        if _PRODUCT.fullmatch(name) and len(self.nofollow) < MOST_AGENTS:
            self.nofollow[f"meta {name}"] = None

    def candidates(self, value: str | None, context: str) -> None:
        """Add the candidates of a srcset."""
        if value:
            for reference in attribute_values.candidates(value):
                self.found.add(reference, Hop.REQUISITE, context)

    def _all(self, references: Iterator[tuple[str, Hop]], context: str) -> None:
        for reference, hop in references:
            self.found.add(reference, hop, context)

    def _unknown_element(self, tag: str, attributes: Attributes, mark: str) -> None:
        """Process an element that HTML does not define: a custom element, or one of another vocabulary."""
        own = "-" in tag
        for name in ("src", "poster"):
            value = attributes.get(name, "")
            if own and like_a_url(value):
                self.found.add(value, Hop.REQUISITE, f"{tag}/@{name}")
            elif a_file(value, near=True):
                self.found.add(value, Hop.SPECULATIVE, f"{tag}/@{name}")
        if own:
            self.candidates(attributes.get("srcset"), f"{tag}/@srcset")
            self._all(attribute_values.component_urls(attributes), f"{tag}/@*")
        for name in ("href", "xlink:href"):
            value = attributes.get(name, "")
            if value and (tag in MATHML or like_a_url(value)):
                self.found.add(value, Hop.LINK, f"{tag}/@{name}{mark}")

    def _property(self, tag: str, attributes: Attributes) -> None:
        """Process a property in microdata or RDFa whose value is in `content`."""
        hop, value = item_hop(attributes), attributes["content"]
        if (hop is Hop.REQUISITE and like_a_url(value)) or (hop is Hop.LINK and surely_a_url(value)):
            self.found.add(value, hop, f"{tag}/@content")


def _script_references(program: str) -> References:
    """Return the references in the text of a script element."""
    found = LinkCollector()
    for reference, hop, context in inline.program(program):
        found.add(reference, hop, context)
    add_markup_in_strings(found, program)
    return tuple(found.references.items())


_cached_script_references = lru_cache(maxsize=256)(_script_references)  # most scripts are on every page of a site


def add_markup_in_strings(found: LinkCollector, text: str) -> None:
    """Add to *found* the references of markup in the strings of a script."""
    for name, attributes in markup.tags(text):
        probe = Elements()
        probe.start_any(name, attributes)
        for (reference, hop), context in probe.found.references.items():
            if markup.is_sure(reference, hop):
                found.add(reference, Hop.SPECULATIVE, f"script/{context}")
    for reference in markup.style_urls(text):
        found.add(reference, Hop.SPECULATIVE, "script/url()")


def _styled(elements: Elements, tag: str, name: str, value: str) -> None:
    elements.style(value, f"{tag}/@{name}")


def _painted(elements: Elements, tag: str, name: str, value: str) -> None:
    if _PAINT.match(value):  # most values are colours
        elements.style(value, f"{tag}/@{name}")


def _background(elements: Elements, tag: str, name: str, value: str) -> None:
    elements.found.add(value, Hop.REQUISITE, f"{tag}/@{name}")


def _reference(elements: Elements, tag: str, name: str, value: str) -> None:
    if not _BLANK.search(value[:1000]):  # many contain a sentence
        elements.found.add(value, Hop.LINK, f"{tag}/@{name}")


def _map(elements: Elements, tag: str, name: str, value: str) -> None:
    if "#" in value[1:]:  # a map in another document; without "#" it is a name
        elements.found.add(value, Hop.LINK, f"{tag}/@{name}")


def _included(elements: Elements, tag: str, name: str, value: str) -> None:
    for reference, hop in attribute_values.included(value.strip()):
        elements.found.add(reference, hop, f"{tag}/@{name}")


_Meaning = Callable[[Elements, str, str, str], None]
_ANYWHERE: dict[str, _Meaning] = {
    "style": _styled,
    "background": _background,
    "cite": _reference,
    "longdesc": _reference,
    "usemap": _map,
    "hx-get": _reference,  # htmx loads it into the page on a click, or when a person scrolls to it
    "data-hx-get": _reference,
    "include-html": _included,
    "w3-include-html": _included,
    **dict.fromkeys(PRESENTATION, _painted),
}


def _anchor(tag: str, name: str, elements: Elements, attributes: Attributes) -> None:
    href = attributes.get(name)
    if href and inline.is_script_url(href):
        elements.add_script_links(f"{tag}/@{name}", inline.script_url(href))


def _image(elements: Elements, attributes: Attributes) -> None:
    elements.candidates(attributes.get("srcset"), "img/@srcset")
    for name in LAZY_ON_IMAGES.intersection(attributes):
        if like_a_url(attributes[name]):
            elements.found.add(attributes[name], Hop.REQUISITE, f"img/@{name}")


def _other_image(tag: str, elements: Elements, attributes: Attributes) -> None:
    elements.candidates(attributes.get("srcset"), f"{tag}/@srcset")


def _iframe(elements: Elements, attributes: Attributes) -> None:
    if attributes.get("srcdoc"):
        elements.framed.append(attributes["srcdoc"])
    _anchor("iframe", "src", elements, attributes)


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
        target = attribute_values.refresh_target(content)
        elements.refreshes |= target == ""
        elements.found.add(target, Hop.LINK, REFRESH)
    name = (attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or "").strip().lower()
    if name == "referrer":
        elements.referrer_policy = referrer.of_meta(content) or elements.referrer_policy
    if len(content) < _LONGEST_DIRECTIVES and _refuses(content.lower()):
        elements.add_nofollow(name)
    item = item_hop(attributes) if "itemprop" in attributes else None
    for reference, hop in attribute_values.of_meta(name, content, item):
        elements.found.add(reference, hop, "meta/@content")


def _refuses(directives: str) -> bool:
    return "no" in directives and not REFUSE.isdisjoint(_APART.split(directives))


def _form(elements: Elements, attributes: Attributes) -> None:
    elements.form_posts = attributes.get("method", "get").strip().lower() in _NO_URL_METHODS
    if not elements.form_posts:
        elements.found.add(attributes.get("action"), Hop.LINK, "form/@action")


def _input(elements: Elements, attributes: Attributes) -> None:
    if attributes.get("type", "image").strip().lower() == "image":
        elements.found.add(attributes.get("src"), Hop.REQUISITE, "input/@src")
    _submit("input", elements, attributes)


def _submit(tag: str, elements: Elements, attributes: Attributes) -> None:
    method = attributes.get("formmethod", "post" if elements.form_posts else "get").strip().lower()
    if method not in _NO_URL_METHODS:
        elements.found.add(attributes.get("formaction"), Hop.LINK, f"{tag}/@formaction")


def _select(elements: Elements, attributes: Attributes) -> None:
    elements.menu_navigates = inline.navigates(attributes.get("onchange", ""))


def _option(elements: Elements, attributes: Attributes) -> None:
    value = attributes.get("value", "").strip()
    if like_a_url(value):
        elements.needs_context = True
    if elements.menu_navigates and like_a_url(value):
        elements.found.add(value, Hop.LINK, "option/@value")
    elif strings.is_page(value) or (value.endswith("/") and strings.is_path(value)):  # "/de/" of a menu of languages
        elements.found.add(value, Hop.SPECULATIVE, "option/@value")


def _animation(tag: str, elements: Elements, attributes: Attributes) -> None:
    """Process an SVG animation that changes a reference."""
    target = attributes.get("attributename") or attributes.get("attributeName") or ""
    if target.strip().lower() in ("href", "xlink:href"):
        for name in ("from", "to", "values"):
            for reference in attributes.get(name, "").split(";", 1000):
                elements.found.add(reference.strip(), Hop.REQUISITE, f"{tag}/@{name}")


def _plugin(
    tag: str, read: Callable[[Attributes], attribute_values.PluginUrls], elements: Elements, attributes: Attributes
) -> None:
    for reference, hop, name in read(attributes):
        elements.found.add(reference, hop, f"{tag}/@{name}")


_More = Callable[[Elements, Attributes], None]
_MORE: dict[str, _More] = {
    "a": partial(_anchor, "a", "href"),
    "amp-img": partial(_other_image, "amp-img"),
    "animate": partial(_animation, "animate"),
    "applet": partial(_plugin, "applet", attribute_values.applet_urls),
    "area": partial(_anchor, "area", "href"),
    "base": _base,
    "button": partial(_submit, "button"),
    "embed": partial(_plugin, "embed", attribute_values.embed_urls),
    "form": _form,
    "frame": partial(_anchor, "frame", "src"),
    "iframe": _iframe,
    "img": _image,
    "input": _input,
    "link": _link,
    "meta": _meta,
    "object": partial(_plugin, "object", attribute_values.object_urls),
    "param": partial(_plugin, "param", attribute_values.param_urls),
    "option": _option,
    "select": _select,
    "set": partial(_animation, "set"),
    "source": partial(_other_image, "source"),
}


class _Element(NamedTuple):
    """The known meaning of one element."""

    urls: tuple[tuple[str, Hop, str], ...]  # attribute, hop, context
    more: _More | None


_ELEMENTS = {
    tag: _Element(tuple((name, hop, f"{tag}/@{name}") for name, hop in URLS.get(tag, ())), _MORE.get(tag))
    for tag in (*URLS, *_MORE)
}
NAMES = frozenset((*_ELEMENTS, "blockquote", "del", "ins", "q"))  # the elements with a meaning of their own
