"""Elements and attributes of HTML, SVG and MathML that name URLs, and what a browser does with each.

REQUISITE: a browser loads it by itself to show the page, or a page keeps it for its script to load. LINK: a person
follows it. What is in neither table names nothing to fetch: `ping` only receives POST requests; `profile`, `itemid` and
`itemtype` are names; `attributionsrc` reports on the reader.
"""

import re
from collections.abc import Mapping

from archiver.model import Hop

Attributes = Mapping[str, str]  # of one element, by name

REFUSE = frozenset(("nofollow", "none"))  # directives not to follow the links of a page
MOST_AGENTS = 20  # user agents with nofollow in one document

_SVG_REFERENCE = "href xlink:href"

_REQUISITES = {
    **dict.fromkeys(
        (
            *("amp-anim", "amp-iframe", "amp-img", "amp-list", "amp-state", "bgsound", "fencedframe", "fig", "frame"),
            *("iframe", "ilayer", "layer", "mglyph", "model", "overlay", "portal", "source", "track", "v:fill"),
            *("v:image", "v:imagedata", "xml"),
        ),
        "src",
    ),
    **dict.fromkeys(
        (
            *("animation", "color-profile", "cursor", "feimage", "filter", "font-face-uri", "lineargradient"),
            *("mpath", "pattern", "radialgradient", "textpath", "tref", "use"),
        ),
        _SVG_REFERENCE,
    ),
    **dict.fromkeys(("audio", "image", "script"), f"src {_SVG_REFERENCE}"),
    "amp-audio": "src artwork",
    "amp-story": "poster-portrait-src poster-square-src poster-landscape-src publisher-logo-src background-audio",
    "amp-story-page": "background-audio",
    "amp-video": "src poster artwork",
    "amp-video-iframe": "src poster",
    "command": "icon",
    "embed": "src qtsrc",
    "html": "manifest",
    "img": "src lowsrc dynsrc",
    "input": "lowsrc dynsrc",
    "math": "altimg",
    "menuitem": "icon",
    "replay-web-page": "source",
    "video": f"src poster {_SVG_REFERENCE}",
    "redoc": "spec-url",
}
_LINKS = {
    "a": "href xlink:href src",  # src is an error, but its meaning is clear
    "annotation": "src",
    "annotation-xml": "src",
    "area": "href",
    "isindex": "action",
    "nuxt-link": "to",
    "router-link": "to",
}

URLS: dict[str, tuple[tuple[str, Hop], ...]] = {
    tag: (
        *((name, Hop.REQUISITE) for name in _REQUISITES.get(tag, "").split()),
        *((name, Hop.LINK) for name in _LINKS.get(tag, "").split()),
    )
    for tag in sorted({*_REQUISITES, *_LINKS})
}
MATHML = frozenset(
    (
        *("math", "maction", "menclose", "merror", "mfenced", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover"),
        *("mpadded", "mphantom", "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup"),
        *("mtable", "mtd", "mtext", "mtr", "munder", "munderover", "semantics"),
    )
)
PRESENTATION = frozenset(  # attributes of SVG that contain CSS
    (
        *("fill", "stroke", "filter", "mask", "clip-path", "cursor"),
        *("marker", "marker-start", "marker-mid", "marker-end"),
    )
)

RELATIONS = {
    **dict.fromkeys(
        (
            *("stylesheet", "stylesheet/less", "icon", "apple-touch-icon", "apple-touch-icon-precomposed"),
            *("apple-touch-startup-image", "fluid-icon", "mask-icon", "image_src", "video_src", "audio_src"),
            *("thumbnail", "manifest", "preload", "modulepreload", "prefetch", "subresource"),
            *("compression-dictionary", "serviceworker", "import"),
        ),
        Hop.REQUISITE,
    ),
    "prerender": Hop.LINK,
    "sitemap": Hop.MANIFEST,
    # These name no document: a host to connect to, an endpoint for programs, the name of a vocabulary.
    **dict.fromkeys(
        (
            *("preconnect", "dns-prefetch", "pingback", "webmention", "edituri", "wlwmanifest", "hub"),
            *("authorization_endpoint", "token_endpoint", "indieauth-metadata", "micropub", "microsub"),
            *("openid.server", "openid.delegate", "openid2.provider", "openid2.local_id", "payment-method-manifest"),
            *("monetization", "profile", "expect"),
        )
    ),
    "shortlink": None,  # another URL of the same page
}

META_REQUISITES = frozenset(
    (
        *("og:image", "og:image:url", "og:image:secure_url", "og:logo", "vk:image", "image", "image_src", "thumbnail"),
        *("og:video", "og:video:url", "og:video:secure_url", "og:audio", "og:audio:url", "og:audio:secure_url"),
        *("twitter:image", "twitter:image:src", "twitter:image0", "twitter:image1", "twitter:image2", "twitter:image3"),
        *("twitter:player:stream", "parsely-image-url", "sailthru.image.full", "sailthru.image.thumb"),
        *("msapplication-config", "msapplication-tileimage", "msapplication-square70x70logo"),
        *("msapplication-square150x150logo", "msapplication-square310x310logo", "msapplication-wide310x150logo"),
    )
)
META_LINKS = frozenset(
    (
        *("og:url", "og:see_also", "twitter:player", "twitter:url", "al:web:url", "article:author"),
        *("article:publisher", "msapplication-starturl", "parsely-link", "url"),
        *("citation_pdf_url", "citation_fulltext_html_url", "citation_abstract_html_url", "citation_public_url"),
        *("bepress_citation_pdf_url", "eprints.document_url", "dc.identifier"),
    )
)
# Properties of schema.org in microdata, RDFa and JSON-LD. `sameAs` and `@id` identify a thing,
# and are not links.
ITEM_FILES = frozenset(
    (
        *("image", "images", "logo", "photo", "photos", "thumbnail", "thumbnailurl", "contenturl", "screenshot"),
        *("primaryimageofpage", "audio", "video", "icon"),
    )
)
ITEM_PAGES = frozenset(
    (
        *("url", "item", "embedurl", "mainentityofpage", "relatedlink", "significantlink", "discussionurl"),
        *("downloadurl", "publishingprinciples", "archivedat", "menu", "hasmenu"),
    )
)
PARAMETERS = frozenset(
    (
        *("src", "movie", "data", "filename", "url", "source", "qtsrc", "image", "file", "flv", "video", "audio"),
        *("thumb", "thumbnail", "poster", "previewimage", "playlist", "skin", "archive", "cache_archive", "uri"),
    )
)

# Lazy-load attributes: scripts load these URLs when they come into view.
LAZY = re.compile(
    r"data-(?:[\w-]*?(?:src|srcset|original|original-set|poster|bgset|bg|background|images?|imgs?|pictures?|thumbs?|thumbnails?"
    r"|lazy|lazyload|echo|fallback|-file|_image|interchange)(?:[-_]?ur[li])?"
    r"|(?:lazy|src|srcset|original|bg|background|image|img)-[\w-]+)"
)
LAZY_FILE = re.compile(  # these may also hold other values
    r"data-[\w-]*?(?:file|full|large|hires|hi-res|retina|at2x|rjs|[123]x|cover|avatar|logo|icon|photo|zoom|sprite|svg"
    r"|stylesheet|mp4|webm|og[gva]|mp3|video|audio|sound|track|media|download|background-\w+|before|after|hover|rollover"
    r"|desktop|tablet|mobile|pano(?:rama)?|model|gl(?:b|tf)|lottie|doc(?:ument)?)(?:[-_]?ur[li])?"
)
LAZY_ON_IMAGES = frozenset(("lazy-src", "lazysrc", "lazy", "lazyload", "original", "ng-src", "loadlate", "real-src"))
LAZY_ON_IMAGES |= {"_src", "file", "zoomfile", "hisrc", "longsrc", "src2x", "data", "rel:animated_src"}
LAZY_ON_OBJECTS = frozenset(("lazy", "lazyload", "lazy-src"))  # some of those on images
NEXT_PART = re.compile(  # of a list, which the page loads when a person comes to its end
    r"data-(?:[\w-]*-)?(?:next|load-?more|more)(?:-?page)?(?:-?(?:ur[li]|href|link|path))?"
)
DATA_LINKS = frozenset(("data-href", "data-link", "data-permalink"))  # targets of clicks
DATA_LINKS_ON_ANCHORS = DATA_LINKS | {"data-url", "data-redirect-url"}
DATA_LINKS_ON_ROWS = frozenset(("data-url", "data-row-href", "data-row-url", "data-target-url", "data-location"))
INCLUDED = re.compile(  # a script puts what is there into the element
    r"data-(?:include(?:-?html|-path)?|w3-include-html|partial|fragment|load|remote|iframe)"
)


def relation_hop(relations: str) -> Hop | None:
    """Return the hop of a link with these *relations* (a `rel` value); None if it names no document."""
    words = relations.lower().split()
    hops = [_word_hop(word) for word in words if word != "prefetch"]
    if Hop.REQUISITE in hops:
        return Hop.REQUISITE
    fallback = RELATIONS["prefetch"] if "prefetch" in words else None if words else Hop.LINK
    return next((hop for hop in hops if hop), fallback)


def _word_hop(word: str) -> Hop | None:
    return None if word.startswith("schema.") else RELATIONS.get(word, Hop.LINK)


def item_hop(attributes: Mapping[str, str]) -> Hop | None:
    """Return the hop of a property named in `itemprop` or `property`; None if it is no URL."""
    for written in (attributes.get("itemprop") or attributes.get("property") or "").lower().split():
        name = written.rpartition("/")[2].rpartition(":")[2]
        if name in ITEM_FILES:
            return Hop.REQUISITE
        if name in ITEM_PAGES:
            return Hop.LINK
    return None
