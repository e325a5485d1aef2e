"""pywb's rewriters, extended for modules: `<script type="module">`, import maps, module workers and imports.

pywb calls `get_rewriter` for the class that rewrites a response, by the modifier in the request (`esm_` for a module,
`wkrm_` for a module worker). Its classes are only derived from. This is imported only if pywb is installed.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from gevent import get_hub
from pywb.apps.frontendapp import FrontEndApp
from pywb.apps.rewriterapp import RewriterApp
from pywb.rewrite.default_rewriter import RewriterWithJSProxy
from pywb.rewrite.html_rewriter import HTMLRewriter
from pywb.rewrite.regex_rewriters import JSWombatProxyRewriter, JSWombatProxyRules, RegexRewriter
from pywb.rewrite.templateview import JinjaEnv
from pywb.rewrite.url_rewriter import UrlRewriter
from pywb.utils.loaders import BaseLoader, BlockLoader
from pywb.warcserver.index.cdxobject import CDXObject
from pywb.warcserver.index.indexsource import BaseIndexSource
from pywb.warcserver.warcserver import register_source

from archiver.collection.store import Store, StoreError
from archiver.tools.replay.es_modules import (
    Edit,
    ModuleContext,
    ParsedModule,
    import_map,
    literal,
    parse,
    rewrite_module,
)
from archiver.tools.replay.sources import IN_STORE, ReplaySource

MODULE, WORKER = "esm_", "wkrm_"
_WHOLE_DIGEST = re.compile(r"digest:(?:[A-Za-z0-9-]+:)?[A-Za-z0-9+/=_-]{32,}")
_OTHER_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_LARGEST = 64 << 20  # bytes of a module that is rewritten; a larger one goes out as it is
_SCRIPTS = ("text/ecmascript", "application/ecmascript", "text/jscript", "text/x-javascript", "text/javascript1.5")


def _context(urls: UrlRewriter, base: UrlRewriter, mod: str = MODULE) -> ModuleContext:
    """Return the context of the module at *urls*; its references are relative to *base*."""
    wburl = urls.wburl
    stamp = wburl.timestamp
    if mod != wburl.mod:  # named by a page, which says for its scripts when it was captured
        stamp = (urls.rewrite_opts.get("cdx") or {}).get("timestamp", stamp)
    prefix = urls.rel_prefix + f"{stamp}{MODULE}/"
    ours = "archiver_modules.js"
    if mod == WORKER:
        ours = f"archiver_worker.js?{urlencode({'prefix': urls.full_prefix, 'url': wburl.url})}"
    return ModuleContext(base.wburl.url, prefix, urls.pywb_static_prefix + ours, worker=mod == WORKER)


_CHECK = "((self.__WB_check_loc && self.__WB_check_loc(location, arguments)) || {})"
_CHECK_IN_MODULES = "((()=>{try{return globalThis.__WB_check_loc(location,[])}catch{}})()||{})"


class _Rules(JSWombatProxyRules):  # type: ignore[misc] # pywb has no types
    """pywb's rules for scripts, adapted to modules.

    In a module `arguments` is not allowed everywhere, `self` is a common local name, and a `location` that is being
    declared cannot be read.
    """

    def compile_rules(self, rules: Any) -> Any:
        """See pywb."""
        for number, (pattern, change, count) in enumerate(rules):
            rules[number] = (pattern, partial(_in_modules, change), count)
        return super().compile_rules(rules)


def _in_modules(change: Any, text: str, rewriter: Any) -> str:
    return str(change(text, rewriter)).replace(_CHECK, _CHECK_IN_MODULES)


class ModuleRewriter(RegexRewriter):  # type: ignore[misc] # pywb has no types
    """Rewrites a whole module."""

    rules_factory = _Rules()

    def __call__(self, rwinfo: Any) -> Iterator[bytes]:
        """Yield the rewritten module of a response."""
        return self._whole(rwinfo.content_stream)

    def rewrite_text(self, text: str, context: ModuleContext) -> str:
        """Return the rewritten module *text*."""
        parsed = parse(text)
        return rewrite_module(parsed, context, self._other_edits(parsed))

    def _whole(self, stream: Any) -> Iterator[bytes]:
        try:
            data = b""
            while len(data) <= _LARGEST and (piece := stream.read(1 << 20)):
                data += piece
            if len(data) <= _LARGEST:
                mark = b"\xef\xbb\xbf"  # a browser takes it for no part of the text, at the beginning only
                text = data.removeprefix(mark).decode("latin-1")  # each byte stays as it is
                context = _context(self.url_rewriter, self.url_rewriter, self.url_rewriter.wburl.mod)
                yield self.rewrite_text(text, context).encode("latin-1", "replace")
                return
            yield data
            while piece := stream.read(1 << 16):
                yield piece
        finally:
            stream.close()

    def _other_edits(self, parsed: ParsedModule) -> Iterator[Edit]:
        """Yield the changes of pywb's own rules outside of strings and comments."""
        for match in self.regex.finditer(parsed.text):
            start, end = match.span()
            field = start + match[0].find("location") in parsed.fields  # of a class, and no assignment
            if not (field or parsed.is_literal(start) or parsed.is_literal(end - 1)):
                yield start, end, self.replace(match)


_BASE = "____archiver_base__"  # the URL of a classic script


class ScriptRewriter(JSWombatProxyRewriter):  # type: ignore[misc] # pywb has no types
    """Rewrites a classic script, which may import modules."""

    def __init__(self, rewriter: UrlRewriter, extra_rules: Any = None) -> None:
        # No quotation marks and no slashes there: what looks like an import may be in a string or a regular expression.
        of_file = rewriter.wburl.mod == "js_"  # else: as written in a page
        wombat = f"____wb_rewrite_import__({_BASE if of_file else 'document.baseURI'},"
        rule = (r"(?<![\w$.\"'`])import\s*\((?!\?|[^()]{0,200}\)\s*\{)", lambda _text, _rewriter: wombat, 0)
        super().__init__(rewriter, extra_rules=[*(extra_rules or []), rule])
        if of_file:
            self.first_buff += f"const {_BASE} = {literal(rewriter.wburl.url)};"


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
        return _context(self._page, self.url_rewriter)


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


class _RewriterChoice(RewriterWithJSProxy):  # type: ignore[misc] # pywb has no types
    """Chooses the class that rewrites a response."""

    rewrite_types: ClassVar[dict[str, str]] = {**RewriterWithJSProxy.rewrite_types, **dict.fromkeys(_SCRIPTS, "js")}

    def get_rewriter(self, rw_type: str, rwinfo: Any = None) -> Any:
        """Return the class for *rw_type*, the type of the response."""
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
