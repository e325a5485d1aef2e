"""URLs in `object`, `applet`, `embed` and `param`: plug-in files, by the rules of HTML 4 and Java.

`codebase` is the folder of the other attributes, unless ActiveX would install a control from it. A class inside an
archive is not fetched by itself.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from archiver import url
from archiver.extract.html.tables import PARAMETERS
from archiver.extract.url_guess import a_file, like_a_url
from archiver.model import Hop

PluginUrls = Iterator[tuple[str, Hop, str]]  # reference, hop, attribute

_INSTALLER = re.compile(r"[^?#]*\.(?:cab|dll|exe|inf|ocx|xpi)(?:[?#].*)?", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_CLASS = re.compile(r"[\w$]+(?:[./][\w$]+)*")
_APART = re.compile(r"[\t\n\f\r ,]+")
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
    for archive in _APART.split(attributes.get("archive", ""), _MOST_ARCHIVES)[:_MOST_ARCHIVES]:
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
