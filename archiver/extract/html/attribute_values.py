"""URLs in attribute values: `data-*` attributes, meta, srcset, refresh, and the files of plug-ins.

Pages keep URLs to load later, styles, JSON and link targets in `data-*` attributes for their scripts. The name of the
attribute decides: one known to hold a picture is a requisite. Under any other name only a certain file name counts, as
a guess. srcset and refresh (a meta element or a Refresh header) follow the algorithms of the HTML standard. Linear;
never raises.

`object`, `applet`, `embed` and `param` name plug-in files by the rules of HTML 4 and Java. `codebase` is the folder of
the other attributes, unless ActiveX would install a control from it. No class inside an archive is fetched by itself.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract import css
from archiver.extract.html.tables import (
    DATA_LINKS,
    DATA_LINKS_ON_ANCHORS,
    DATA_LINKS_ON_ROWS,
    INCLUDED,
    LAZY,
    LAZY_FILE,
    LAZY_ON_OBJECTS,
    META_LINKS,
    META_REQUISITES,
    NEXT_PART,
    PARAMETERS,
)
from archiver.extract.references import NOFOLLOW, a_file, like_a_url, surely_a_url
from archiver.extract.script import inline, strings
from archiver.model import Hop
from archiver.policy import referrer

_TASK = re.compile(r"(action|icon)-uri=([^;\s]+)", re.IGNORECASE)
_GAP = re.compile(r"[\t\n\f\r ,]*+")
_URL = re.compile(r"[^\t\n\f\r ]++")
_DESCRIPTORS = compiled(r"(?:[^(,]|\([^)]*+\)?+)*+")
_DESCRIPTOR = compiled(r"(?:[^\t\n\f\r (]|\([^)]*+\)?+)++")
_WIDTH = re.compile(r"0*[1-9][0-9]*w")
_HEIGHT = re.compile(r"0*[1-9][0-9]*h")
_DENSITY = re.compile(r"(?:-(?:0+(?:\.0+)?|\.0+)|(?=[.0-9])[0-9]*(?:\.[0-9]+)?)(?:[eE][+-]?[0-9]+)?x")


def of_meta(name: str, content: str, item: Hop | None) -> Iterator[tuple[str, Hop]]:
    """Yield the URLs in the *content* of a meta element *name*; *item* is the hop of it as a property."""
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


def candidates(value: str) -> Iterator[str]:
    """Yield the URL of each image candidate of a srcset that a browser would keep, in order."""
    return (value[start:end] for start, end in candidate_spans(value))


def candidate_spans(value: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the URL of each such candidate in *value*."""
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
    """True if *descriptors* are valid: at most a density, or a width with at most a height."""
    kinds = ""
    for descriptor in descriptors:
        if _WIDTH.fullmatch(descriptor) or _HEIGHT.fullmatch(descriptor) or _DENSITY.fullmatch(descriptor):
            kinds += descriptor[-1]
        else:
            return False
    return kinds in ("", "x", "w", "wh", "hw")


UrlHops = Iterator[tuple[str, Hop]]

_LONGEST_NAME = 60
_MOST_LISTED = 500
_READ_ALREADY = frozenset(("src", "poster", "srcset", "href", "xlink:href"))  # already read for custom elements
_APART = tuple(re.compile(sign) for sign in (r"(?<!\s)\s*+[,|;]\s*+", r"\s++"))
_PART = re.compile(r"[/?][\w~%@][^\s{}<>\"'|\\^`]{0,2000}")  # the address of a further part of a list
_OF_DATA = re.compile(
    r"data-(?:[\w-]{0,30}-)?(?:geo-?json|json|[ct]sv|gpx|kml|pdf|ya?ml|markdown|config|dataset|animation-path|ur[li]|path)"
)
_DATA = re.compile(
    r"(?!/)[\w~%@/.+-]{1,500}\.(?:csv|(?:geo|topo)?json|gpx|kml|md|pdf|tsv|txt|xml|ya?ml)(?:\?[^\s#]{0,200})?",
    re.ASCII,
)
_DESCRIPTION = re.compile(  # of an interface, <redoc spec-url="…">, or of a scene
    r"[\w~%@/.:+-]{1,500}\.(?:ya?ml|splinecode)(?:\?[^\s#]{0,200})?"
)
_OF_FILE = re.compile(r"(?:[a-z0-9-]{1,40}-)?(?:src|image|model)")
_FILE = re.compile(r"(?:https?://)?[\w~%@/.+-]{1,500}\.[a-z0-9]{2,5}(?:\?[^\s#]{0,200})?", re.ASCII | re.IGNORECASE)
_STYLES = frozenset(("style", "background"))
_QUERY = re.compile(r"\?[\w-]{1,50}=[\w%./-]{1,200}", re.ASCII)
_KIND = re.compile(r"(?:\A|(?<=,))\s{0,4}(?:mp4|webm|og[gv]):(?!//)")  # data-jarallax-video="mp4:a.mp4,webm:a.webm"
_CHOICE = re.compile(r"\[\s*([^\[\],\s]{1,2000})\s*,")  # [small.png, (only screen)], [large.png, (large)]


def data_urls(tag: str, name: str, value: str) -> UrlHops:
    """Return the URLs in the attribute *name* of an element."""
    bare = value.strip()
    if not bare or len(name) > _LONGEST_NAME:
        return iter(())
    if bare.startswith(("{", "[{", '["')):
        return inline.settings_files(bare)
    if "url(" in bare:
        return ((reference, Hop.REQUISITE) for reference, _ in css.references(bare))
    if name in (DATA_LINKS_ON_ANCHORS if tag == "a" else DATA_LINKS):
        return _clicked(bare)
    if name in DATA_LINKS_ON_ROWS and tag in {"td", "tr"}:
        return iter(((bare, Hop.SPECULATIVE),) if strings.is_page(bare) or strings.is_path(bare) else ())
    if INCLUDED.fullmatch(name):
        return included(bare)
    if name == "data-responsive":  # of lightGallery: img/a-375.jpg 375, img/a-800.jpg 800
        files = (choice.strip().partition(" ")[0] for choice in bare.split(",", _MOST_LISTED))
        return ((file, Hop.REQUISITE) for file in files if a_file(file, near=True))
    if name == "data-main" and tag == "script":  # RequireJS, which adds the extension
        return iter(((bare if bare.endswith(".js") else f"{bare}.js", Hop.SPECULATIVE),))
    if bare[0] in "/?" and NEXT_PART.fullmatch(name) and _PART.fullmatch(bare):
        return iter(((bare, Hop.SPECULATIVE),))
    return _files(name, bare)


def _clicked(bare: str) -> UrlHops:
    """Yield the target of a click in an attribute that only a script reads."""
    if surely_a_url(bare) or strings.is_page(bare) or _QUERY.fullmatch(bare):
        yield bare, Hop.LINK
    elif "/" in bare and strings.is_path(strings.from_root(bare)):
        yield bare, Hop.SPECULATIVE


def included(bare: str) -> UrlHops:
    """Yield the page, or the part of one, that a script puts into an element."""
    if strings.is_page(bare) or (bare[:1] == "/" and strings.is_path(bare, data=True)) or a_file(bare):
        yield bare, Hop.SPECULATIVE


def component_urls(attributes: Mapping[str, str]) -> UrlHops:
    """Yield the files that a custom element names: the scripts of an Astro island (`component-url`), and guesses."""
    for name, value in attributes.items():
        if name.startswith("data-") or name in _READ_ALREADY:
            continue
        of_url = name.endswith("url") and (a_file(value, near=True) or _DESCRIPTION.fullmatch(value))
        if of_url or (_OF_FILE.fullmatch(name) and _FILE.fullmatch(value)):  # ios-src="chair.usdz"
            yield value, Hop.REQUISITE
        elif "url(" in value and name not in _STYLES:  # gltf-model="url(chair.glb)"
            yield from ((reference, Hop.SPECULATIVE) for reference, _ in css.references(value))
        elif a_file(value):
            yield value, Hop.SPECULATIVE


def _file_list(bare: str) -> list[str]:
    """Return the files of a list separated by commas, bars, semicolons or spaces; none if any item is no file."""
    for apart in _APART:
        if apart.search(bare):
            files = [file for file in apart.split(bare, _MOST_LISTED)[:_MOST_LISTED] if file]
            if len(files) > 1 and all(a_file(file, near=True) for file in files):
                return files
    return []


def _files(name: str, bare: str) -> UrlHops:
    if LAZY.fullmatch(name):
        if "set" in name[5:]:
            yield from ((reference, Hop.REQUISITE) for reference in candidates(bare))
        elif bare.startswith("["):
            yield from ((file, Hop.REQUISITE) for file in _CHOICE.findall(bare) if a_file(file, near=True))
        elif files := _file_list(bare):
            yield from ((file, Hop.REQUISITE) for file in files)
        elif like_a_url(bare) or a_file(bare, near=True):
            yield bare, Hop.REQUISITE
    elif (
        LAZY_FILE.fullmatch(name)
        and (files := _file_list(_KIND.sub("", bare)) or [_KIND.sub("", bare)])
        and a_file(files[0], near=True)
    ):
        yield from ((file, Hop.REQUISITE) for file in files)
    elif a_file(bare) or (_OF_DATA.fullmatch(name) and _DATA.fullmatch(bare)):
        yield bare, Hop.SPECULATIVE


_DELAY = re.compile(r"[\t\n\f\r ]*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]|\Z)[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+")
_PREFIX = re.compile(r"url[\t\n\f\r ]*+=[\t\n\f\r ]*+", re.IGNORECASE)
_DROPPED = {ord(char): None for char in "\t\n\r"}


def refresh_target(content: str) -> str | None:
    """Return the reference in the refresh *content*; "" is the page itself, None means no refresh."""
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


PluginUrls = Iterator[tuple[str, Hop, str]]  # reference, hop, attribute

_INSTALLER = re.compile(r"[^?#]*\.(?:cab|dll|exe|inf|ocx|xpi)(?:[?#].*)?", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_CLASS = re.compile(r"[\w$]+(?:[./][\w$]+)*")
_BETWEEN_ARCHIVES = re.compile(r"[\t\n\f\r ,]+")
_MOST_ARCHIVES = 100
_FLASH_FILE = re.compile(r"[^\s&=?#]+\.(?:xml|swf|flv|f4v|mp[34]|m4[av]|jpe?g|png|gif|json|txt|css)", re.IGNORECASE)


def object_urls(attributes: Mapping[str, str]) -> PluginUrls:
    """Yield the data of an object, and what it runs."""
    class_id = attributes.get("classid", "").strip()
    control = class_id.lower().startswith("clsid:")
    folder = "" if control else _folder(attributes)
    if "data" in attributes:  # browsers today ignore `codebase`; those with plug-ins used it
        yield attributes["data"], Hop.REQUISITE, "data"
        if (within := _within(folder, attributes["data"])) != attributes["data"].strip():
            yield within, Hop.SPECULATIVE, "data"
    for name in LAZY_ON_OBJECTS.intersection(attributes):
        if like_a_url(attributes[name]):
            yield attributes[name], Hop.REQUISITE, name
    yield from _archives(folder, attributes)
    runs = re.sub(r"^(?:java|python):", "", class_id)
    if not control and like_a_url(runs):
        yield _within(folder, runs), Hop.REQUISITE, "classid"


def applet_urls(attributes: Mapping[str, str]) -> PluginUrls:
    """Yield the archives of an applet, or else its class, and its saved state."""
    folder = _folder(attributes)
    yield from _archives(folder, attributes)
    for name in ("object", "src"):
        if attributes.get(name):
            yield _within(folder, attributes[name]), Hop.REQUISITE, name
    code = attributes.get("code", "").strip()
    if code and not attributes.get("archive"):
        yield _within(folder, _class_file(code)), Hop.REQUISITE, "code"


def embed_urls(attributes: Mapping[str, str]) -> PluginUrls:
    """Yield the files in a Flash film's variables, and the archives of an applet."""
    yield from ((file, Hop.SPECULATIVE, "flashvars") for file in _flash(attributes.get("flashvars", "")))
    yield from _archives(_folder(attributes), attributes)


def param_urls(attributes: Mapping[str, str]) -> PluginUrls:
    """Yield the value of a parameter if its name says that it is a URL."""
    name, value = attributes.get("name", "").strip().lower(), attributes.get("value", "")
    if name == "flashvars":
        yield from ((file, Hop.SPECULATIVE, "value") for file in _flash(value))
        return
    is_reference = attributes.get("valuetype", "").strip().lower() == "ref"
    if is_reference or (name in PARAMETERS and (like_a_url(value) or a_file(value, near=True))):
        yield value, Hop.REQUISITE, "value"


def _flash(variables: str) -> Iterator[str]:
    """Yield file names in the variables of a Flash film: old sites list whole galleries there."""
    for pair in variables.split("&", 1000):
        value = unquote(pair.partition("=")[2])
        if _FLASH_FILE.fullmatch(value):
            yield value


def _archives(folder: str, attributes: Mapping[str, str]) -> PluginUrls:
    for archive in _BETWEEN_ARCHIVES.split(attributes.get("archive", ""), _MOST_ARCHIVES)[:_MOST_ARCHIVES]:
        if archive:
            yield _within(folder, archive), Hop.REQUISITE, "archive"


def _class_file(code: str) -> str:
    """Return the file of a class: `org.example.Clock`, with or without extension, is `org/example/Clock.class`."""
    name = code.removesuffix(".class")
    return f"{name.replace('.', '/')}.class" if _CLASS.fullmatch(name) else code


def _folder(attributes: Mapping[str, str]) -> str:
    codebase = attributes.get("codebase", "").strip()
    if not codebase or len(codebase) > url.MAX_LENGTH or _INSTALLER.fullmatch(codebase):
        return ""
    return codebase if codebase.endswith("/") else f"{codebase}/"


def _within(folder: str, reference: str) -> str:
    """Return *reference* relative to the page if *folder* is its base."""
    reference = reference.strip()
    if not folder or not reference or _SCHEME.match(reference):
        return reference
    if folder.lower().startswith(("http:", "https:")):
        return url.join(folder, reference) or ""
    return reference if reference.startswith("/") else folder + reference


_LEADING = frozenset(("a", "area", "form"))  # elements in which rel=noreferrer counts


def link_relations(tag: str, relations: str) -> tuple[str, str]:
    """Return the mark and the referrer policy that the *relations* of a link mean; "" if none."""
    words = relations.lower().split()
    policy = referrer.NO_REFERRER if "noreferrer" in words and tag in _LEADING else ""
    return NOFOLLOW if "nofollow" in words else "", policy


_SENDING = frozenset(("delete", "patch", "post", "put"))


def without_sent_link(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return *attributes* without the href that a script sends by POST or DELETE, as Rails, Yii and Turbo do."""
    methods = (attributes.get(name, "").strip().lower() for name in ("data-method", "data-turbo-method"))
    sent = not _SENDING.isdisjoint(methods)
    return {name: value for name, value in attributes.items() if not sent or name != "href"}
