"""What the elements of HTML and SVG name, whichever parser met them.

`Elements` is told each start tag with its attributes, in order, and knows which of them are links, which
are requisites of the page, and where the base is. Names are in lower case, without namespaces but for
`xlink:href`.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from archiver.extract import css, refresh, script, srcset
from archiver.extract.found import NOFOLLOW, Found
from archiver.model import Hop

Attributes = Mapping[str, str]

_URLS: dict[str, tuple[tuple[str, Hop], ...]] = {
    "a": (("href", Hop.LINK), ("xlink:href", Hop.LINK)),
    "area": (("href", Hop.LINK),),
    "amp-anim": (("src", Hop.REQUISITE),),
    "amp-audio": (("src", Hop.REQUISITE),),
    "amp-iframe": (("src", Hop.REQUISITE),),
    "amp-img": (("src", Hop.REQUISITE),),
    "amp-video": (("src", Hop.REQUISITE), ("poster", Hop.REQUISITE)),
    "audio": (("src", Hop.REQUISITE),),
    "bgsound": (("src", Hop.REQUISITE),),
    "blockquote": (("cite", Hop.LINK),),
    "del": (("cite", Hop.LINK),),
    "embed": (("src", Hop.REQUISITE),),
    "feimage": (("href", Hop.REQUISITE), ("xlink:href", Hop.REQUISITE)),
    "frame": (("src", Hop.REQUISITE), ("longdesc", Hop.LINK)),
    "html": (("manifest", Hop.REQUISITE),),
    "iframe": (("src", Hop.REQUISITE), ("longdesc", Hop.LINK)),
    "image": (("src", Hop.REQUISITE), ("href", Hop.REQUISITE), ("xlink:href", Hop.REQUISITE)),
    "img": (
        ("src", Hop.REQUISITE),
        ("lowsrc", Hop.REQUISITE),
        ("dynsrc", Hop.REQUISITE),
        ("longdesc", Hop.LINK),
    ),
    "input": (("src", Hop.REQUISITE),),
    "ins": (("cite", Hop.LINK),),
    "object": (("data", Hop.REQUISITE),),
    "q": (("cite", Hop.LINK),),
    "script": (("src", Hop.REQUISITE), ("href", Hop.REQUISITE), ("xlink:href", Hop.REQUISITE)),
    "source": (("src", Hop.REQUISITE),),
    "track": (("src", Hop.REQUISITE),),
    "use": (("href", Hop.REQUISITE), ("xlink:href", Hop.REQUISITE)),
    "video": (("src", Hop.REQUISITE), ("poster", Hop.REQUISITE)),
}

RELATIONS = {
    "stylesheet": Hop.REQUISITE,
    "icon": Hop.REQUISITE,
    "apple-touch-icon": Hop.REQUISITE,
    "apple-touch-icon-precomposed": Hop.REQUISITE,
    "apple-touch-startup-image": Hop.REQUISITE,
    "fluid-icon": Hop.REQUISITE,
    "mask-icon": Hop.REQUISITE,
    "image_src": Hop.REQUISITE,
    "manifest": Hop.REQUISITE,
    "preload": Hop.REQUISITE,
    "modulepreload": Hop.REQUISITE,
    "prefetch": Hop.REQUISITE,
    "import": Hop.REQUISITE,
    "prerender": Hop.LINK,
    # No document stands behind these: a host to greet, an endpoint for programs, a name for a vocabulary.
    "preconnect": None,
    "dns-prefetch": None,
    "pingback": None,
    "webmention": None,
    "edituri": None,
    "wlwmanifest": None,
    "profile": None,
    "expect": None,
    "shortlink": None,  # another address of the same page
}

_META_REQUISITES = frozenset(
    (
        *("og:image", "og:image:url", "og:image:secure_url", "image", "thumbnail", "thumbnailurl"),
        *("og:video", "og:video:url", "og:video:secure_url", "og:audio", "og:audio:url", "og:audio:secure_url"),
        *("twitter:image", "twitter:image:src", "twitter:image0", "twitter:image1", "twitter:player:stream"),
        *("msapplication-config", "msapplication-tileimage", "msapplication-square70x70logo"),
        *("msapplication-square150x150logo", "msapplication-square310x310logo", "msapplication-wide310x150logo"),
    )
)
_META_LINKS = frozenset(("og:url", "twitter:player", "al:web:url", "article:author", "article:publisher", "url"))
_NOT_FETCHED = ("post", "dialog")  # what a form does with these methods leaves no address behind
_PARAMETERS = frozenset(("src", "movie", "data", "filename", "url", "source"))

_COMMON = frozenset(("alt", "class", "content", "height", "href", "id", "name", "rel", "src", "title", "type", "width"))
_LAZY = re.compile(
    r"data-[\w-]*?(?:srcset|src|original|original-set|poster|bgset|bg|background|image|thumb|thumbnail|lazy|lazyload"
    r"|echo|-file)|data-(?:lazy|src|original)-[\w-]+"
)
REFUSE = frozenset(("nofollow", "none"))  # what a page says where its links are not to be followed
MOST_TOLD = 20  # products to which one document says so
_LONGEST_DIRECTIVES = 500
_APART = re.compile(r"[\s,]+")
_PRODUCT = re.compile(r"[\w.-]{1,60}", re.ASCII)
_NEVER_IN_URL = re.compile(r"[\s{}<>\"'|\\^`]")
_PATH = re.compile(r"/|\.[a-zA-Z]\w")
_FLASH_FILE = re.compile(r"[^\s&=?#]+\.(?:xml|swf|flv|f4v|mp[34]|m4[av]|jpe?g|png|gif|json|txt|css)", re.IGNORECASE)


class Elements:
    """The references of the elements that it is told of, and the document's base as it stands there."""

    def __init__(self) -> None:
        self.found = Found()
        self.base: str | None = None  # the first base element's href
        self.framed: list[str] = []  # documents that stand in an attribute (srcdoc)
        self.nofollow: dict[str, None] = {}  # where and to whom it says not to follow its links
        self.posting = False  # the form that was opened last sends by POST

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take in one start tag: what its attributes mean on this element."""
        known = _ELEMENTS.get(tag)
        if known is None or not attributes:
            return
        mark = NOFOLLOW if "rel" in attributes and "nofollow" in attributes["rel"].lower().split() else ""
        for name, hop, context in known.urls:
            if name in attributes:
                self.found.add(attributes[name], hop, context + mark)
        if known.more:
            known.more(self, attributes)

    def start_any(self, tag: str, attributes: Attributes) -> None:
        """As `start`, and what attributes mean on every element: styles, backgrounds, addresses kept for a script."""
        self.start(tag, attributes)
        for name, value in attributes.items():
            if name in _COMMON:
                continue
            if name == "style":
                self.style(value, "@style")
            elif name == "background":
                self.found.add(value, Hop.REQUISITE, f"{tag}/@background")
            elif name.startswith("data-") and _LAZY.fullmatch(name):
                if "set" in name[5:]:
                    self.candidates(value, f"{tag}/@{name}")
                elif _like_a_url(value):
                    self.found.add(value, Hop.REQUISITE, f"{tag}/@{name}")

    def tell(self, name: str) -> None:
        """A meta element of this *name* says not to follow links: `robots`, or the product it speaks to."""
        if _PRODUCT.fullmatch(name) and len(self.nofollow) < MOST_TOLD:
            self.nofollow[f"meta {name}"] = None

    def style(self, text: str, where: str = "style") -> None:
        """Take in the text of a style element, or of an attribute."""
        for reference, context in css.references(text):
            self.found.add(reference, Hop.REQUISITE, f"{where}/{context}")

    def script(self, attributes: Attributes, text: str) -> None:
        """Take in the text of a script element with these *attributes*."""
        if text and "src" not in attributes and script.is_inline(attributes.get("type", "")):
            for reference, context in script.references(text, inline=True):
                self.found.add(reference, Hop.SPECULATIVE, context)

    def candidates(self, value: str | None, context: str) -> None:
        """Take in a srcset."""
        if value:
            for reference in srcset.candidates(value):
                self.found.add(reference, Hop.REQUISITE, context)


def _srcset(elements: Elements, attributes: Attributes) -> None:
    elements.candidates(attributes.get("srcset"), "@srcset")


def _iframe(elements: Elements, attributes: Attributes) -> None:
    if attributes.get("srcdoc"):
        elements.framed.append(attributes["srcdoc"])


def _base(elements: Elements, attributes: Attributes) -> None:
    if elements.base is None:
        elements.base = attributes.get("href")


def _link(elements: Elements, attributes: Attributes) -> None:
    hop = relation_hop(attributes.get("rel", ""))
    if hop:
        elements.found.add(attributes.get("href"), hop, "link/@href")
        elements.candidates(attributes.get("imagesrcset"), "link/@imagesrcset")


def _meta(elements: Elements, attributes: Attributes) -> None:
    content = attributes.get("content")
    if not content:
        return
    if attributes.get("http-equiv", "").strip().lower() == "refresh":
        elements.found.add(refresh.target(content), Hop.LINK, "meta/@content")
    name = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
    name = name.strip().lower()
    if len(content) < _LONGEST_DIRECTIVES and not REFUSE.isdisjoint(_APART.split(content.lower())):
        elements.tell(name)
    if name in _META_REQUISITES:
        elements.found.add(content, Hop.REQUISITE, "meta/@content")
    elif name in _META_LINKS and content.lstrip().lower().startswith(("http:", "https:")):
        elements.found.add(content, Hop.LINK, "meta/@content")


def _form(elements: Elements, attributes: Attributes) -> None:
    elements.posting = attributes.get("method", "get").strip().lower() in _NOT_FETCHED
    if not elements.posting:
        elements.found.add(attributes.get("action"), Hop.LINK, "form/@action")


def _submit(elements: Elements, attributes: Attributes) -> None:
    method = attributes.get("formmethod", "post" if elements.posting else "get").strip().lower()
    if method not in _NOT_FETCHED:
        elements.found.add(attributes.get("formaction"), Hop.LINK, "@formaction")


def _parameter(elements: Elements, attributes: Attributes) -> None:
    name, value = attributes.get("name", "").strip().lower(), attributes.get("value", "")
    if name == "flashvars":
        _flash(elements, value)
    elif name in _PARAMETERS and _like_a_url(value):
        elements.found.add(value, Hop.REQUISITE, "param/@value")


def _embed(elements: Elements, attributes: Attributes) -> None:
    _flash(elements, attributes.get("flashvars", ""))


def _flash(elements: Elements, variables: str) -> None:
    """Files that a Flash film is told of by name: old sites hold whole galleries that way."""
    for pair in variables.split("&", 1000):
        value = unquote(pair.partition("=")[2])
        if _FLASH_FILE.fullmatch(value):
            elements.found.add(value, Hop.SPECULATIVE, "@flashvars")


_MORE: dict[str, Callable[[Elements, Attributes], None]] = {
    "amp-img": _srcset,
    "base": _base,
    "button": _submit,
    "embed": _embed,
    "form": _form,
    "iframe": _iframe,
    "img": _srcset,
    "input": _submit,
    "link": _link,
    "meta": _meta,
    "param": _parameter,
    "source": _srcset,
}


class _Known(NamedTuple):
    """All that is known of one element."""

    urls: tuple[tuple[str, Hop, str], ...]  # attribute, what it names, and both in words
    more: Callable[[Elements, Attributes], None] | None


_ELEMENTS = {
    tag: _Known(tuple((name, hop, f"{tag}/@{name}") for name, hop in _URLS.get(tag, ())), _MORE.get(tag))
    for tag in (*_URLS, *_MORE)
}
NAMES = frozenset(_ELEMENTS)  # the elements that are told apart


def relation_hop(relations: str) -> Hop | None:
    """How a link with these *relations* (as `rel` has them) leads on; None where no document stands behind it."""
    hops = [RELATIONS.get(relation, Hop.LINK) for relation in relations.lower().split()] or [Hop.LINK]
    return Hop.REQUISITE if Hop.REQUISITE in hops else next((hop for hop in hops if hop), None)


def _like_a_url(value: str) -> bool:
    bare = value.strip()
    return len(bare) < 2048 and bool(_PATH.search(bare)) and not _NEVER_IN_URL.search(bare)
