"""pywb's application with our rewriters of pages and scripts, and with readers of our indexes and stores.

pywb calls `get_rewriter` for the class that rewrites a response. Its classes are only derived from. This is imported
only if pywb is installed.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from gevent import get_hub
from pywb.apps.frontendapp import FrontEndApp
from pywb.apps.rewriterapp import RewriterApp
from pywb.rewrite.default_rewriter import RewriterWithJSProxy
from pywb.rewrite.header_rewriter import DefaultHeaderRewriter
from pywb.rewrite.html_rewriter import HTMLRewriter
from pywb.rewrite.templateview import JinjaEnv
from pywb.rewrite.url_rewriter import UrlRewriter
from pywb.utils.loaders import BaseLoader, BlockLoader
from pywb.warcserver.index.cdxobject import CDXObject
from pywb.warcserver.index.indexsource import BaseIndexSource
from pywb.warcserver.warcserver import register_source

from archiver.collection.store import Store, StoreError
from archiver.extract import charset
from archiver.extract.html.attribute_values import refresh_target
from archiver.extract.references import ascii_form
from archiver.tools.replay.es_modules import ModuleContext, import_map
from archiver.tools.replay.script_rewriters import MODULE, WORKER, ModuleRewriter, ScriptRewriter, module_context
from archiver.tools.replay.sources import IN_STORE, ReplaySource

_WHOLE_DIGEST = re.compile(r"digest:(?:[A-Za-z0-9-]+:)?[A-Za-z0-9+/=_-]{32,}")
_OTHER_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_UPWARDS = re.compile(r"(?:[\w.~-]+/)*\.\./(?:[\w.~-]+/)*(?=[\w.~-]*(?:[?#]|\Z))", re.ASCII)  # a path in plain letters
_VOID = frozenset(  # elements without an end tag in HTML, and the one that pywb ends itself
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "head",
    )
)
_SCRIPTS = ("text/ecmascript", "application/ecmascript", "text/jscript", "text/x-javascript", "text/javascript1.5")


def _stays_inside(reference: str, base: str) -> bool:
    """Return whether *reference* goes up with `../`, but not out of the host of *base*: a browser resolves it itself.

    So style sheets that look at the attribute, as for marks at links to other sites, match as they did.
    """
    path = _UPWARDS.match(reference)
    if path is None:
        return False
    depth = urlsplit(base).path.count("/") - 1
    for segment in path[0].split("/")[:-1]:
        depth += -1 if segment == ".." else segment != "."
        if depth < 0:
            return False
    return True


class PageRewriter(HTMLRewriter):  # type: ignore[misc] # pywb has no types
    """Rewrites a page, with its modules and import maps."""

    url_rewriter: Any

    def __init__(self, url_rewriter: UrlRewriter, *arguments: Any, **others: Any) -> None:
        super().__init__(url_rewriter, *arguments, **others)
        self._page = url_rewriter
        self._modules = ModuleRewriter(url_rewriter)
        self._held: list[str] = []
        self._kind = ""

    def _rewrite_tag_attrs(self, tag: str, tag_attrs: Any, set_parsing_context: bool = True) -> Any:  # noqa: FBT001, FBT002 - pywb's
        kind = (self.get_attr(tag_attrs, "type") or "").strip().lower() if tag == "script" else ""
        if kind not in {"module", "importmap"}:
            return super()._rewrite_tag_attrs(tag, tag_attrs, set_parsing_context)
        if set_parsing_context and not self._wb_parse_context:
            self._kind = kind
        handlers = self.rewrite_tags["script"]
        self.rewrite_tags["script"] = dict.fromkeys(handlers, MODULE)
        urls, self.url_rewriter = self.url_rewriter, _Modules(self.url_rewriter, self._here().prefix)
        try:
            return super()._rewrite_tag_attrs(tag, tag_attrs, set_parsing_context)
        finally:
            self.rewrite_tags["script"], self.url_rewriter = handlers, urls

    def _rewrite_link_href(self, attr_value: str, tag_attrs: Any, rw_mod: str) -> Any:
        rels = (self.get_attr(tag_attrs, "rel") or "").lower().split()
        if "modulepreload" in rels and "worker" not in (self.get_attr(tag_attrs, "as") or ""):
            return _Modules(self.url_rewriter, self._here().prefix).rewrite(attr_value.strip())
        return super()._rewrite_link_href(attr_value, tag_attrs, rw_mod)

    def _rewrite_url(self, value: str, mod: str | None = None, force_abs: bool = False) -> Any:  # noqa: FBT001, FBT002 - pywb calls it so
        of_module = isinstance(self.url_rewriter, _Modules)
        if value and not (force_abs or of_module) and _stays_inside(value, self.url_rewriter.wburl.url):
            return value
        return super()._rewrite_url(self._ascii(value), mod, force_abs)

    def _ascii(self, value: str | None) -> str | None:
        """Return the URL *value* of an attribute in ASCII: beside another character, pywb escapes `?` and `#` too."""
        if not value or (value.isascii() and "&#" not in value) or _OTHER_SCHEME.match(value.lstrip()):
            return value
        encoding = charset.encoding_name(self.charset) or "windows-1252"
        text = value
        if encoding != "utf-8":
            with suppress(UnicodeEncodeError):
                text = charset.text(value.encode("latin-1"), encoding)
        if "&#" in text:
            if (whole := unescape(text)).isascii():
                return value
            text = whole.replace("&", "&amp;").translate({ord(mark): f"%{ord(mark):02X}" for mark in "\"'<>"})
        return ascii_form(text, encoding)

    def _set_parse_context(self, tag: str, tag_attrs: Any) -> None:
        if self._kind and tag == "script":
            self._wb_parse_context = "script"
        else:
            super()._set_parse_context(tag, tag_attrs)

    def parse_data(self, data: str) -> None:
        """Collect the text of a module until its end tag."""
        if self._kind:
            self._held.append(data)
        else:
            super().parse_data(data)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        """Write an empty element; in XHTML, which pywb serves as HTML, with an end tag, or it would not end."""
        if tag in _VOID or (self._page.rewrite_opts.get("cdx") or {}).get("mime") != "application/xhtml+xml":
            super().handle_startendtag(tag, attrs)
            return
        self._rewrite_tag_attrs(tag, attrs, set_parsing_context=False)
        self.out.write(f"></{tag}>")

    def handle_endtag(self, tag: str) -> None:
        """Write the module that ends here."""
        if self._kind and tag == "script":
            text, place = "".join(self._held), self._here()
            if text.strip():
                change = import_map if self._kind == "importmap" else self._modules.rewrite_text
                self.out.write(change(text, place))
            self._held, self._kind = [], ""
        super().handle_endtag(tag)

    def _here(self) -> ModuleContext:
        return module_context(self._page, self.url_rewriter)


class _Modules:
    """Rewrites all URLs to addresses of modules."""

    NO_REWRITE_URI_PREFIX = UrlRewriter.NO_REWRITE_URI_PREFIX

    def __init__(self, urls: UrlRewriter, prefix: str) -> None:
        self._place = ModuleContext(urls.wburl.url, prefix, "")

    def rewrite(self, address: str, _mod: str = MODULE, _force_abs: bool = False) -> str:  # noqa: FBT001, FBT002 - pywb's
        """Return the address in the replay."""
        if _OTHER_SCHEME.match(address):
            return address
        return self._place.address(address if address.startswith(("http:", "https:", "/")) else f"./{address}")


class _HeaderRewriter(DefaultHeaderRewriter):  # type: ignore[misc] # pywb has no types
    """Rewrites the fields of a response that lead a browser elsewhere, and renames those that would reach this site."""

    header_rules: ClassVar[dict[str, str]] = {
        **DefaultHeaderRewriter.header_rules,
        **dict.fromkeys(("clear-site-data", "nel", "report-to", "reporting-endpoints", "speculation-rules"), "prefix"),
        "service-worker-allowed": "prefix",  # pywb adds its own
    }

    def rewrite_header(self, name: str, value: str, rule: str | None) -> Any:
        """See pywb."""
        if name.lower() in _FIELDS_WITH_URLS and self.rwinfo.is_url_rw():
            return name, _FIELDS_WITH_URLS[name.lower()](value, self._address)
        return super().rewrite_header(name, value, rule)

    def _address(self, reference: str) -> str:
        text = reference.encode("latin-1", "replace").decode("utf-8", "replace")
        return str(self.rwinfo.url_rewriter.rewrite(ascii_form(text, "utf-8"), force_abs=True))


def _refresh(value: str, address: Callable[[str], str]) -> str:
    target = refresh_target(value)
    return f"{_DELAY_END.split(value, maxsplit=1)[0]};url={address(target)}" if target else value


def _links(value: str, address: Callable[[str], str]) -> str:
    return _BRACKETED.sub(lambda found: f"<{address(found[1].strip())}>", value)


_DELAY_END = re.compile("[;,]")
_BRACKETED = re.compile("<([^<>]*)>")
_FIELDS_WITH_URLS = {"refresh": _refresh, "link": _links}


class _RewriterChoice(RewriterWithJSProxy):  # type: ignore[misc] # pywb has no types
    """Chooses the class that rewrites a response."""

    rewrite_types: ClassVar[dict[str, str]] = {**RewriterWithJSProxy.rewrite_types, **dict.fromkeys(_SCRIPTS, "js")}

    def get_rewriter(self, rw_type: str, rwinfo: Any = None) -> Any:
        """Return the class for *rw_type*, the type of the response."""
        if rw_type == "header":
            return _HeaderRewriter
        if rw_type == "js" and rwinfo is not None:
            return ModuleRewriter if rwinfo.url_rewriter.wburl.mod in {MODULE, WORKER} else ScriptRewriter
        return PageRewriter if rw_type == "html" else super().get_rewriter(rw_type, rwinfo)


_TEMPLATES = str(Path(__file__).with_name("templates"))


class _Rewriting(RewriterApp):  # type: ignore[misc] # pywb has no types
    """pywb's rewriter with ours, and with the templates of its own package and of ours only."""

    def __init__(self, framed_replay: bool, config: Any = None, paths: Any = None) -> None:  # noqa: FBT001 - pywb's
        templates = JinjaEnv(paths=[_TEMPLATES], globals={"static_path": "static"}, extensions=["jinja2.ext.i18n"])
        templates.jinja_env.install_null_translations()
        super().__init__(framed_replay, jinja_env=templates, config=config, paths=paths)
        self.js_proxy_rw = _RewriterChoice(replay_mod=self.replay_mod)


class Application(FrontEndApp):  # type: ignore[misc] # pywb has no types
    """pywb's application with our rewriters."""

    REWRITER_APP_CLS = _Rewriting


class _Captures(BaseIndexSource):  # type: ignore[misc] # pywb has no types
    """An index for pywb that reads a `ReplaySource`."""

    def __init__(self, source: ReplaySource) -> None:
        self._source = source

    def load_index(self, params: Any) -> Iterator[CDXObject]:
        """Return the captures that pywb asks for; for a revisit, those with its digest."""
        if self._source.originals_only and not any(map(_WHOLE_DIGEST.fullmatch, params.get("filter", []))):
            return iter(())
        return map(CDXObject, self._source.lines(params["key"], params["end_key"]))

    @classmethod
    def init_from_config(cls, config: Any) -> Any:
        """Return an index if *config* is ours."""
        return cls(config["source"]) if "source" in config else None

    @classmethod
    def init_from_string(cls, _value: str) -> None:
        """Return None: ours have no name."""


class _StoreLoader(BaseLoader):  # type: ignore[misc] # pywb has no types
    """Reads parts of the files in stores for pywb, which itself knows only S3, and other settings for it."""

    def __init__(self, **others: Any) -> None:
        super().__init__(**others)
        self._stores: dict[str, Store] = {}

    def load(self, url: str, offset: int = 0, length: int = -1) -> "_StoredPart":
        """Return a part of the file at *url*."""
        address, _, key = url.removeprefix(f"{IN_STORE}://").partition("?")
        if address not in self._stores:
            self._stores[address] = Store(address)
        return _StoredPart(self._stores[address].read(key, offset, length))


class _StoredPart:
    """What a store sends, as a file. Other requests are answered while one waits for the store."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = self._next()  # now, so that a missing file is noticed

    def _next(self) -> bytes:
        try:
            return cast("bytes", get_hub().threadpool.apply(next, (self._pieces, b"")))
        except StoreError as error:
            raise OSError(str(error)) from error

    def read(self, size: int = -1) -> bytes:
        """Return the next *size* bytes, or fewer; all of them without a size."""
        found = bytearray()
        while self._held and (size < 0 or len(found) < size):
            taken = self._held if size < 0 else self._held[: size - len(found)]
            found += taken
            self._held = self._held[len(taken) :] or self._next()
        return bytes(found)

    def close(self) -> None:
        """End the answer of the store."""
        self._held, self._pieces = b"", iter(())


def application(config: Path, custom: dict[str, Any]) -> Application:
    """Return the application for *custom*; the file *config* keeps pywb from looking for another configuration."""
    register_source(_Captures)
    BlockLoader.loaders[IN_STORE] = _StoreLoader
    return Application(config_file=str(config), custom_config=custom)
