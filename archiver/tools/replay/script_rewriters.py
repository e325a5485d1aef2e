"""pywb's rewriters of scripts, extended for modules and for names that classic scripts share.

pywb makes them for each response and for each script of a page, by the modifier in the request (`esm_` for a module,
`wkrm_` for a module worker). Its classes are only derived from. This is imported only if pywb is installed.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from pywb.rewrite.regex_rewriters import JSWombatProxyRewriter, JSWombatProxyRules, RegexRewriter
from pywb.rewrite.url_rewriter import UrlRewriter

from archiver.config.expressions import compiled
from archiver.tools.replay.es_modules import NAMES, Edit, ModuleContext, ParsedModule, literal, parse, rewrite_module

MODULE, WORKER = "esm_", "wkrm_"
_LARGEST = 64 << 20  # bytes of a script that are read at once; a larger module goes out as it is


def module_context(urls: UrlRewriter, base: UrlRewriter, mod: str = MODULE) -> ModuleContext:
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


def _beginning(stream: Any) -> bytes:
    """Return all of *stream*, or more than `_LARGEST` bytes of a larger one."""
    data = b""
    while len(data) <= _LARGEST and (piece := stream.read(1 << 20)):
        data += piece
    return data


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
            data = _beginning(stream)
            if len(data) <= _LARGEST:
                mark = b"\xef\xbb\xbf"  # a browser takes it for no part of the text, at the beginning only
                text = data.removeprefix(mark).decode("latin-1")  # each byte stays as it is
                context = module_context(self.url_rewriter, self.url_rewriter, self.url_rewriter.wburl.mod)
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
            if not (field or _is_arrow(match) or parsed.is_literal(start) or parsed.is_literal(end - 1)):
                yield start, end, self.replace(match)


_BASE = "____archiver_base__"  # the URL of a classic script
_MAY_DECLARE = compiled(
    rf"(?<![\w$.])(?:const|let|class|async\s++function|function\s*+\*|var\s++(?:{'|'.join(NAMES)})|"
    rf",\s*+(?:{'|'.join(NAMES)})\s*+[=,;])(?![\w$])"
)
_NO_NAME = compiled(  # a number, or a word that cannot be set
    r"[0-9].*|await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false"
    r"|finally|for|function|if|implements|import|in|instanceof|interface|let|new|null|package|private|protected|public"
    r"|return|static|super|switch|this|throw|true|try|typeof|var|void|while|with|yield|arguments|eval"
)
_MOST_READ = 16 << 20  # characters of a script whose names are looked for
_STRICT = compiled(  # at the beginning, behind a byte order mark and comments
    r"(?:\xef\xbb\xbf)?+(?:\s++|//[^\n]*+\n|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+"
    r"(?:\"use strict\"|'use strict')(?=[^\S\n]*+(?:[;\n]|//|/\*|\Z))"
)
_CODE_BEFORE = re.compile(r"[;{}()\"'`:=&|?]\s*\Z")  # before code in a string: its quotation mark, or other code
_BEFORE = 64  # characters that are searched for it
# pywb makes `location = CHECK.href = x` of `location = x`, and leaves x in the name that its block declares: then
# there is no `location.hash`. Where a statement begins, only a name that is not the browser's location is set.
_SETS = "__archiver_to(location, arguments, __value => {location = __value}).href = "
_SET = (
    "const __archiver_to=(at,given,set)=>{const to=self.__WB_check_loc&&self.__WB_check_loc(at,given);"
    'return to&&"href"in to?to:{set href(value){set(value)}}};'
)
_STATEMENT_BEFORE = re.compile(
    r"(?:[;})]|=>|\belse|\bdo|(?:&&|\|\||[?:])\s*\(|(?:\)|=>|\belse|\btry|\bfinally|\bdo|[;{}])\s*\{)\Z"
)
_OPERAND_BEFORE = re.compile(r"(?<!\bvar)(?<!\blet)(?<!\bconst)(?<=[\w$\"'`\]])\Z")  # with a line end after it
_DECLARED = re.compile(r"\b(?:const|let)\s+\Z")
_CLASS = compiled(r"\bclass\s*+[\w${]")
_DECLARES_LOCATION = compiled(
    r"\b(?:var|let|const)\s++location\b|[,(]\s*+location\s*+[;,)]|,\s*+location\s*+=|\blocation\s*+=>"
)
# The names that `window` had before the scripts of the page.
_FIRST = (
    "try{globalThis.__archiver_names||Object.defineProperty(globalThis,'__archiver_names',"
    "{value:Object.assign(new Set(Object.getOwnPropertyNames(globalThis)),{window:globalThis})})}catch{}"
)
# What other scripts of the page have put into `window` stays there until the end: `const $ = window.$`.
_SHARE = (
    "const __archiver_end=((rows,functions)=>{const names=globalThis.__archiver_names,own=names.window,late=[],"
    "add=([name,,get,set])=>{try{Object.defineProperty(own,name,{configurable:true,enumerable:functions.has(name),"
    "get,set})}catch{}};for(const row of rows)try{const[name,type]=row;"
    'try{if(functions.has(name)){type()==="function"&&row[2]()!==own[name]&&add(row);continue}'
    'if(type()!=="function"||name in own)continue}catch{}'
    "if(!names.has(name))Object.prototype.hasOwnProperty.call(own,name)?late.push(row):add(row)}catch{}"
    "return()=>late.forEach(add)})"
)
_END = "\n;__archiver_end();"
_ARGUMENTS = "let arguments;"  # in pywb's block; not allowed in strict code
_EVERYTHING = 'let globalThis = _____WB$wombat$assign$function_____("window");\n'


@dataclass(frozen=True, slots=True)
class _ClassicScript:
    """A classic script; *parsed*: None if it is too large to be read, or needs not be."""

    text: str
    parsed: ParsedModule | None
    strict: bool  # it begins with "use strict"

    def around(self, block: str) -> tuple[str, str]:
        """Return what to put around the script: *block*, the beginning of pywb's block, and its end.

        The block declares `window`, `location` and others again. What the script declares there itself is left out,
        because `var top` is a syntax error beside `let top`. The names of `const`, `let` and `class` stay in a block,
        and in strict code those of functions; so the code that is added makes them visible to other scripts, as they
        are on their site. The reader of scripts names too much; the code decides when it runs: before its declaration,
        a name of the block cannot be read. Names that `window` has of its own stay as they are, but for functions.
        """
        block = block.replace(_ARGUMENTS, _EVERYTHING if self.strict else f"{_EVERYTHING}{_ARGUMENTS}", 1)
        shared = ""
        if self.parsed is not None:
            for name in self.parsed.declared.intersection(NAMES):
                block = re.sub(rf"let {name} = [^;\n]*;", "", block, count=1)
            shared = _shared(self.parsed.lexical, self.parsed.functions if self.strict else ())
        return ('"use strict";' if self.strict else "") + _FIRST + block + shared, _END if shared else ""

    def is_run(self, match: re.Match[str]) -> bool:
        """Return whether what a rule of pywb has found is code, or in a string that is run as code.

        Other strings are text that a page shows: "In Firefox, this works".
        """
        if self.parsed is None or _is_arrow(match):
            return not _is_arrow(match)
        found, start = match[0].lstrip(), _start(match)
        if start in self.parsed.fields or _DECLARED.search(self.text, max(start - _BEFORE, 0), start):
            return False  # `location` of a class, or a new one that cannot be read yet: no assignment
        literal_start = self.parsed.literal_start(start)
        if literal_start is None or self.text[literal_start] == "/" or not found.startswith("location"):
            return literal_start is None
        return _CODE_BEFORE.search(self.text, max(literal_start, start - _BEFORE), start) is not None

    def begins_statement(self, at: int) -> bool:
        """Return whether the code at *at* surely begins a statement or an expression in brackets."""
        if self.parsed is None or self.parsed.is_literal(at):
            return False
        end = at
        while end > 0:
            if self.text[end - 1].isspace():
                end -= 1
            elif (start := self.parsed.literal_start(end - 1)) is not None and self.text.startswith(
                ("//", "/*"), start
            ):
                end = start
            else:
                break
        before = self.text[max(end - _BEFORE, 0) : end]
        ended = "\n" in self.text[end:at] and _OPERAND_BEFORE.search(before) is not None
        return not before or ended or _STATEMENT_BEFORE.search(before) is not None

    def has_arguments(self, match: re.Match[str]) -> bool:
        """Return whether `arguments` can be named where *match* is, and `location` be read."""
        if self.strict or _CLASS.search(self.text) is not None:  # the initial value of a field has no arguments
            return False
        is_declared = match.string[max(match.start() - 1, 0) : match.end()].lstrip().startswith(",")
        return not is_declared and (self.parsed is None or not self.parsed.is_literal(_start(match)))


def _is_arrow(match: re.Match[str]) -> bool:
    """Return whether what a rule of pywb takes for `location = ` begins a function: `location => 1`."""
    return match.string.startswith(">", match.end()) and match[0].rstrip().endswith("=")


def _start(match: re.Match[str]) -> int:
    return match.end() - len(match[0].lstrip())


def _classic_script(text: str, rules: re.Pattern[str]) -> _ClassicScript:
    strict = _STRICT.match(text) is not None
    reads = len(text) <= _MOST_READ and (strict or _MAY_DECLARE.search(text) or rules.search(text))
    return _ClassicScript(text, parse(text) if reads else None, strict)


def _shared(names: Iterable[str], functions: Iterable[str]) -> str:
    """Return code that makes *names* and *functions* visible outside of the block that it begins."""
    own, all_names = _possible(functions), _possible({**dict.fromkeys(names), **dict.fromkeys(functions)})
    rows = (f'["{name}",()=>typeof {name},()=>{name},__given=>{{{name}=__given}}]' for name in all_names)
    return f"{_SHARE}([{','.join(rows)}],new Set({json.dumps(own)}));" if all_names else ""


def _possible(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.isascii() and not _NO_NAME.fullmatch(name)]  # bytes of text may be no name


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

    def __call__(self, rwinfo: Any) -> Iterator[bytes]:
        """Return the rewritten script of a response. Reading the stream tells pywb that its length changes."""
        return self._whole(rwinfo.content_stream)

    def _whole(self, stream: Any) -> Iterator[bytes]:
        """Yield the rewritten script; its beginning depends on all of it."""
        try:
            begin, text, end = self._parts(_beginning(stream).decode("latin-1"))  # each byte stays as it is
            yield (begin + text).encode("latin-1", "replace")
            while piece := stream.read(1 << 16):
                yield self.rewrite(piece.decode("latin-1")).encode("latin-1", "replace")
            yield (end + self.final_read()).encode("latin-1")
        finally:
            stream.close()

    def rewrite_complete(self, string: str, **others: Any) -> str:
        """Return the rewritten script *string* of a page."""
        if others.get("inline_attr"):
            return str(super().rewrite_complete(string, **others))
        return "".join(self._parts(string)) + str(self.final_read())

    def rewrite(self, string: str) -> str:
        """Return *string*, the code of an attribute or a part of a script, with pywb's changes in its code."""
        return self._changed(_classic_script(string, self.regex))

    def _parts(self, text: str) -> tuple[str, str, str]:
        """Return the rewritten script *text*, between what is put around it."""
        text = re.sub(r"\A#!", "//", text)  # allowed at the very beginning only
        script = _classic_script(text, self.regex)
        begin, end = script.around(self.first_buff)
        keeps = _DECLARES_LOCATION.search(text) is None
        changed = self._changed(script, keeps_location=keeps)
        return begin + _SET * (keeps and _SETS[:14] in changed), changed, end

    def _changed(self, script: _ClassicScript, *, keeps_location: bool = False) -> str:
        def instead(match: re.Match[str]) -> str:
            if not script.is_run(match):
                return match[0]
            changed = str(self.replace(match))
            if keeps_location and changed.endswith(f"{_CHECK}.href = ") and script.begins_statement(_start(match)):
                changed = changed[: len(match[0]) - len(match[0].lstrip())] + _SETS
                return changed if script.has_arguments(match) else changed.replace("arguments", "[]")
            if _CHECK in changed and not script.has_arguments(match):
                return changed.replace(_CHECK, _CHECK_IN_MODULES)
            return changed

        return str(self.regex.sub(instead, script.text))
