"""Rewrite an ECMAScript module so that it runs in a replay. Pure.

pywb wraps a classic script in a block. A module cannot be wrapped, because `import` and `export` must be at its top
level. So the names that a replay replaces (`window`, `location` and others) are imported from a module of ours. The
specifiers of `import` and `export` become replay addresses; those of `import()` are changed by our module at run time.
`import.meta.url` becomes the URL of the original module. Strings, comments and regular expressions stay as they are.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from archiver import url
from archiver.config.expressions import compiled

NAMES = ("window", "globalThis", "self", "document", "location", "top", "parent", "frames", "opener")
IMPORT = "__archiver_import"  # our function that replaces import()
RESOLVE = "__archiver_resolve"  # our function that makes the replacement for import.meta.resolve
_W = r"[\w$\x80-\U0010ffff]"
_TOKEN = re.compile(
    rf"""
      (?P<skip>//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)
    | (?P<mark>[`{{}}()/])
    | (?P<word>(?<!{_W})(?:import|export|const|let|var|function|class|location)(?!{_W}))
    """,
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_SHEBANG = re.compile(r"#!.*\n?")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_BEFORE_REGEX = frozenset(("return", "typeof", "case", "in", "of", "delete", "void", "instanceof", "new", "do", "else"))
_BEFORE_REGEX |= {"throw", "await", "yield", "default", "extends"}
_CONTROLS = frozenset(("if", "while", "for", "with", "switch", "catch"))
_LAST_WORD = re.compile(rf"{_W}+\Z")
_WORD = re.compile(rf"{_W}+")
_PART = re.compile(
    rf"""(?P<gap>\s+|/\*.*?\*/|//[^\n]*)|(?P<word>{_W}+)|(?P<mark>[{{}}*,])|(?P<text>"[^"\\\n]*"|'[^'\\\n]*')""",
    re.DOTALL,
)
_META = re.compile(r"import\s*\.\s*meta\s*\.\s*(url|resolve)(?![\w$])")
_CALL = compiled(r"import(?:\s++|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+\(")
_METHOD = re.compile(r"[^()]{0,200}\)\s*\{")  # after the bracket: `import(name) {` is a method, not an import
_NEXT = re.compile(rf"\s*+(\*?\s*+{_W}+|[{{\[])")
_BRACKET = re.compile(r"[{}\[\]]")
_AFTER_COMMA = re.compile(rf",\s*({'|'.join(NAMES)})\s*(?=[=,;])")
_ANY_AFTER_COMMA = compiled(rf",\s*+({_W}++)[ \t]*+(?=[=,;\n\r]|\Z)")
_LEXICAL = frozenset(("const", "let", "class"))
_MOST_LEXICAL = 5000  # names of one script
_SETS_LOCATION = re.compile(r"(?<![.\w$\x80-\U0010ffff])location\s*=(?![=>])")
_LONGEST_PATTERN = 4096  # characters of a destructuring pattern
_MOST_PARTS = 50_000  # words and marks of one import
_MOST_IN_VAIN = 16 << 20  # characters read after slashes that began no regular expression: no real module gets near it
_WEB = ("http://", "https://", "/", "./", "../")

Edit = tuple[int, int, str]  # start, end, replacement


@dataclass(frozen=True, slots=True)
class ModuleContext:
    """The place of a module: its URL, the prefix of module addresses in the replay, and the address of our module."""

    base: str
    prefix: str
    ours: str
    worker: bool = False

    def address(self, specifier: str) -> str:
        """Return the replay address for *specifier*; bare names are left to the import map."""
        if not specifier.startswith(_WEB) or specifier.startswith(self.prefix):
            return specifier
        found = url.join(self.base, specifier)
        return specifier if found is None else self.prefix + found


@dataclass(slots=True)
class ParsedModule:
    """The places to change in a module's text."""

    text: str
    literals: list[tuple[int, int]] = field(default_factory=list)  # strings, comments, regular expressions: in order
    urls: list[tuple[int, int]] = field(default_factory=list)  # `import.meta.url`
    resolves: list[tuple[int, int]] = field(default_factory=list)  # `import.meta.resolve`
    calls: list[tuple[int, int]] = field(default_factory=list)  # `import(`
    specifiers: list[tuple[int, int]] = field(default_factory=list)  # without their quotes
    fields: set[int] = field(default_factory=set)  # where `location` is a field of a class
    declared: set[str] = field(default_factory=set)  # at the top level
    lexical: dict[str, None] = field(default_factory=dict)  # names there that may be those of `const`, `let` or `class`
    functions: dict[str, None] = field(default_factory=dict)  # names of plain functions there
    boundaries: list[int] = field(default_factory=list)  # where the top level ends, begins, ends …

    def is_literal(self, at: int) -> bool:
        """Return whether the character at *at* is in a string, comment or regular expression."""
        return self.literal_start(at) is not None

    def literal_start(self, at: int) -> int | None:
        """Return where the string, comment or regular expression around the character at *at* begins, if any."""
        found = bisect_right(self.literals, (at, len(self.text))) - 1
        return self.literals[found][0] if found >= 0 and at < self.literals[found][1] else None

    def is_top(self, at: int) -> bool:
        """Return whether *at* is outside of all brackets."""
        return bisect_right(self.boundaries, at) % 2 == 0


def rewrite_module(parsed: ParsedModule, context: ModuleContext, others: Iterable[Edit] = ()) -> str:
    """Return the rewritten module, with the edits in *others* too."""
    base, prefix = literal(context.base), literal(context.prefix)
    edits = [(start, end, base) for start, end in parsed.urls]
    edits += [(start, end, f"{RESOLVE}({base},import.meta)") for start, end in parsed.resolves]
    edits += [(start, end, f"{IMPORT}({prefix},{base},") for start, end in parsed.calls]
    edits += [(start, end, context.address(parsed.text[start:end])) for start, end in parsed.specifiers]
    if shebang := _SHEBANG.match(parsed.text):  # it may stand at the very beginning only
        return shebang[0] + head(parsed, context) + _applied(parsed.text, [(0, shebang.end(), ""), *edits, *others])
    return head(parsed, context) + _applied(parsed.text, [*edits, *others])


def head(parsed: ParsedModule, context: ModuleContext) -> str:
    """Return the code to insert before the module: imports of the names that it uses."""
    used = set(_WORD.findall(parsed.text)) - parsed.declared
    names = [name for name in NAMES if name in used]
    if context.worker:
        names = ["location"] if "location" in names else []
    wanted = [*names, *[IMPORT] * bool(parsed.calls), *[RESOLVE] * bool(parsed.resolves)]
    let = ""
    if context.worker and names:
        wanted.remove("location")
        let = f"let location=new URL({literal(context.base)});"
    elif "location" in names and any(not parsed.is_literal(at.start()) for at in _SETS_LOCATION.finditer(parsed.text)):
        wanted[wanted.index("location")] = "location as __archiver_location"  # an imported name cannot be set
        let = "let location=__archiver_location;"
    return (f"import {{{', '.join(wanted)}}} from {literal(context.ours)};" if wanted or context.worker else "") + let


def import_map(text: str, context: ModuleContext) -> str:
    """Return the import map *text* with replay addresses, or unchanged if it is invalid."""
    try:
        found = json.loads(text)
        imports, scopes = found.get("imports", {}), found.get("scopes", {})
        changed = {
            "imports": _addresses(imports, context),
            "scopes": {context.address(scope): _addresses(inside, context) for scope, inside in scopes.items()},
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return text
    return json.dumps({key: value for key, value in changed.items() if value}).replace("<", "\\u003c")


def _addresses(imports: dict[str, str | None], context: ModuleContext) -> dict[str, str | None]:
    return {context.address(name): to if to is None else context.address(to) for name, to in imports.items()}


def parse(text: str) -> ParsedModule:
    """Find what has to be changed in the module *text*, in one pass."""
    return _ModuleReader(text).read()


class _ModuleReader:
    """Reads a module's text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = ParsedModule(text)
        # `{` block, `f` body of a function, `k` of a class, `t` inside a template, `(`, `c` the bracket of if, while …
        self._open: list[str] = []
        self._class: int | None = None  # how much is open where the body of a class begins next
        self._comment = (-1, -1)  # the last one
        self._closed_control = -1  # where the bracket of an `if (…)` ended last
        self._functions = 0  # how many bodies are open
        self._in_vain = 0  # characters read for regular expressions that were none

    def read(self) -> ParsedModule:
        at = 0
        while match := _TOKEN.search(self._text, at):
            start, at = match.span()
            if match["skip"] is not None:
                self._found.literals.append((start, at))
                if self._text[start] == "/":
                    self._comment = (start, at)
            elif match["mark"] is not None:
                at = self._mark(match["mark"], start)
            else:
                at = self._word(match["word"], start, at)
        self._found.declared.update(self._after_commas(_AFTER_COMMA))
        if self._found.lexical:
            self._found.lexical |= dict.fromkeys(islice(self._after_commas(_ANY_AFTER_COMMA), _MOST_LEXICAL))
        return self._found

    def _after_commas(self, name: re.Pattern[str]) -> Iterator[str]:
        for comma in name.finditer(self._text):
            if self._found.is_top(comma.start()) and not self._found.is_literal(comma.start()):
                yield comma[1]

    def _mark(self, mark: str, start: int) -> int:
        if mark == "`":
            return self._template(start)
        if mark == "/":
            return self._slash(start)
        if mark == "{":
            self._push(self._kind(start), start)
        elif mark == "(":
            self._push("c" if self._word_before(start) in _CONTROLS else "(", start)
        elif self._open:
            closed = self._open.pop()
            self._functions -= closed == "f"
            if closed == "c":
                self._closed_control = start
            if not self._open:
                self._found.boundaries.append(start + 1)
            if closed == "t":
                return self._template(start)
        return start + 1

    def _slash(self, start: int) -> int:
        """Skip the regular expression that the slash at *start* begins, or else the slash."""
        if self._in_vain > _MOST_IN_VAIN or not self._may_be_regex(start):
            return start + 1
        if found := _REGEX.match(self._text, start):
            self._found.literals.append(found.span())
            return found.end()
        self._in_vain += (self._text.find("\n", start) + 1 or len(self._text)) - start
        return start + 1

    def _push(self, kind: str, start: int) -> None:
        if not self._open:
            self._found.boundaries.append(start)
        self._open.append(kind)
        self._functions += kind == "f"

    def _template(self, start: int) -> int:
        """Skip the text of a template that continues after *start*."""
        found = _TEMPLATE.match(self._text, start + 1)
        end = found.end() if found else start + 1
        self._found.literals.append((start, end))
        if self._text.startswith("${", end):
            self._push("t", end)
            return end + 2
        return end + 1

    def _word(self, word: str, start: int, end: int) -> int:
        before = self._before(start)
        if before >= 0 and self._text[before] == "." and self._text[max(before - 2, 0) : before + 1] != "...":
            return end  # the name of a member
        if word == "location":
            if self._open[-1:] == ["k"]:
                self._found.fields.add(start)
            return end
        if word == "class":
            self._class = len(self._open)
        if word == "import":
            return self._import(start, end)
        if word == "export":
            return end if self._open else self._static(end, of_export=True) or end
        if not self._open or (word == "var" and not self._functions):
            names = self._declaration(end)
            self._found.declared.update(names)
            if word in _LEXICAL or (word == "function" and self._is_lexical_function(start, end)):
                self._found.lexical |= dict.fromkeys(names)
            elif word == "function":
                self._found.functions |= dict.fromkeys(names)
        return end

    def _is_lexical_function(self, start: int, end: int) -> bool:
        """Return whether a function in a block is not visible outside of it, as plain ones are."""
        return self._text[end : end + 20].lstrip()[:1] == "*" or self._word_before(start) == "async"

    def _import(self, start: int, end: int) -> int:
        if meta := _META.match(self._text, start):
            (self._found.urls if meta[1] == "url" else self._found.resolves).append(meta.span())
            return meta.end()
        if call := _CALL.match(self._text, start):
            if _METHOD.match(self._text, call.end()):
                return end
            self._found.calls.append(call.span())
            self._push("(", call.end() - 1)
            return call.end()
        return end if self._open else self._static(end, of_export=False) or end

    def _static(self, at: int, *, of_export: bool) -> int | None:
        """Note the specifier of a static import; return its end, or None without one."""
        named: set[str] = set()
        depth, ready = 0, not of_export
        for count in range(_MOST_PARTS):
            part = _PART.match(self._text, at)
            if part is None:
                return None
            at = part.end()
            if part["gap"] is not None:
                continue
            if part["text"] is not None:
                if ready and not depth:
                    self._found.specifiers.append((part.start() + 1, at - 1))
                    self._found.literals.append(part.span())
                    self._found.declared |= set() if of_export else named
                    return at
                ready = False
                continue
            if of_export and not count and part[0] not in {"*", "{"} and not part["gap"]:
                return None
            if part[0] in {"import", "export"}:
                return None
            depth += (part[0] == "{") - (part[0] == "}")
            ready = part[0] == "from" and not depth
            named.add(part[0])
        return None

    def _declaration(self, at: int) -> list[str]:
        """Return the names declared after *at*: the first one, or all of a pattern."""
        found = _NEXT.match(self._text, at)
        if found is None:
            return []
        if found[1] not in {"{", "["}:
            return [found[1].lstrip("* \t\r\n")]
        depth, start = 0, found.start(1)
        for bracket in _BRACKET.finditer(self._text, start, start + _LONGEST_PATTERN):
            depth += 1 if bracket[0] in "{[" else -1
            if not depth:
                return _WORD.findall(self._text, start, bracket.start())
        return []

    def _before(self, at: int) -> int:
        """Return the position of the last code character before *at*; -1 if there is none."""
        at -= 1
        while at >= 0:
            if at == self._comment[1] - 1:
                at = self._comment[0] - 1
            elif self._text[at].isspace():
                at -= 1
            else:
                break
        return at

    def _word_before(self, at: int) -> str:
        end = self._before(at) + 1
        found = _LAST_WORD.search(self._text, max(end - 64, 0), end)
        return found[0] if found else ""

    def _kind(self, at: int) -> str:
        """Return the kind of block that the `{` at *at* begins."""
        if self._class == len(self._open):
            self._class = None
            return "k"
        before = self._before(at)
        if before >= 0 and self._text[before] == ")":
            return "{" if before == self._closed_control else "f"
        return "f" if self._text[max(before - 1, 0) : before + 1] == "=>" else "{"

    def _may_be_regex(self, at: int) -> bool:
        before = self._before(at)
        if before < 0:
            return True
        character = self._text[before]
        if character == ")":
            return before == self._closed_control
        if character in "]`\"'" or self._text[max(before - 1, 0) : before + 1] in {"++", "--"}:
            return False
        if _WORD.match(character):
            return self._word_before(at) in _BEFORE_REGEX
        return True


def literal(text: str) -> str:
    """Return *text* as a JavaScript string literal that is also safe in HTML."""
    return json.dumps(text).replace("<", "\\u003c")


def _applied(text: str, edits: Iterable[Edit]) -> str:
    return "".join(_pieces(text, sorted(edits)))


def _pieces(text: str, edits: list[Edit]) -> Iterator[str]:
    at = 0
    for start, end, instead in edits:
        if start >= at:
            yield text[at:start]
            yield instead
            at = end
    yield text[at:]
