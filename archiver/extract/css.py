"""What a style sheet loads: `url()` and `src()`, `@import` in all its forms, the strings of `image-set()`.

One pass by a regular expression that knows comments, strings, escapes and broken tokens as the CSS
Syntax standard has them, and steps over all the rest. It looks at tokens, not at grammar: what stands in
a rule that a browser would drop is found as well (an `@import` that comes too late, say: archives outlive
browsers). `@namespace` and `@document` only compare URLs. URLs are resolved against the sheet, in UTF-8.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from archiver.extract import charset
from archiver.extract.collector import LinkCollector
from archiver.extract.document import Document
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20

_HEX_TAIL = r"(?:\r\n|[ \t\n\r\f])?"
_ESCAPE = rf"\\(?:[0-9a-fA-F]{{1,6}}{_HEX_TAIL}|[^\n\r\f0-9a-fA-F])"


def _word(word: str) -> str:
    """A pattern for *word* as CSS may spell it: in any case, and with escapes."""
    return "".join(
        rf"(?:{char}|\\{char}|\\0{{0,4}}(?:{ord(char):x}|{ord(char.upper()):x}){_HEX_TAIL})"
        if char.isalpha() and char not in "abcdef"
        else rf"(?:{re.escape(char)}|\\0{{0,4}}(?:{ord(char):x}|{ord(char.upper()):x}){_HEX_TAIL})"
        for char in word
    )


def _string(quote: str, name: str) -> str:
    """A string; its group `…_end` takes part where it is closed: by the quote or the end of all."""
    return rf"{quote}(?P<{name}>{_inside(quote)})(?P<{name}_end>{quote}|\Z)?"


def _inside(quote: str) -> str:
    plain = rf"[^{quote}\\\n\r\f]*+"
    return rf"{plain}(?:\\(?:\r\n|[\s\S]|\Z){plain})*+"


_SPACE = r"[ \t\n\r\f]*+"
_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"
_BARE_PLAIN = r"[^\"'()\\\x01-\x20\x7f]*+"
_BARE = rf"{_SPACE}(?P<bare>{_BARE_PLAIN}(?:(?:{_ESCAPE}|\\\Z){_BARE_PLAIN})*+){_SPACE}(?:\)|\Z)"
_REMNANTS = r"(?P<bad>[^)\\]*+(?:\\[\s\S]?[^)\\]*+)*+\)?)"
_START = r"(?<![\w\\-])(?<![^\x00-\x7f])"
_END = r"(?![\w\\-]|[^\x00-\x7f])"
_ESCAPED_WORD = rf"\\(?:[0-9a-fA-F]{{1,6}}{_HEX_TAIL}|[\s\S])?(?:[\w-]|[^\x00-\x7f])*+"
_TOKEN = re.compile(
    r"(?=[/\"'us@()i\\-])(?:"
    rf"{_COMMENT}"
    rf"|{_string(chr(34), 'double')}|{_string(chr(39), 'single')}"
    rf"|{_START}(?P<url>{_word('url')}\((?:{_SPACE}(?=[\"'])|{_BARE}|{_REMNANTS}))"
    rf"|{_START}(?P<src>{_word('src')}\({_SPACE})"
    rf"|{_START}(?P<set>(?:-webkit-)?{_word('image-set')}\()"
    rf"|(?P<import>@{_word('import')}{_END}(?:[ \t\n\r\f]|{_COMMENT})*+)"
    rf"|@{_word('namespace')}{_END}[^;\"'(){{}}]*+"
    rf"|@(?:-moz-)?{_word('document')}{_END}(?:[^;\"'{{}}]|\"{_inside(chr(34))}\"|'{_inside(chr(39))}')*+"
    r"|(?P<open>\()|(?P<close>\))"
    rf"|{_ESCAPED_WORD})",
    re.IGNORECASE | re.ASCII,
)
_UNESCAPE = re.compile(rf"\\(?:([0-9a-fA-F]{{1,6}}){_HEX_TAIL}|(\r\n|[\n\r\f])|([\s\S])|\Z)")
_HINTS = (b"url(", b"@import", b"src(")
_LOADER = re.compile(r"AlphaImageLoader\s{0,9}\(([^(){};]{0,2000})\)", re.IGNORECASE)
_LOADED = re.compile(r"\bsrc\s{0,9}=\s{0,9}\\?(?:\"([^\"\\]*+)|'([^'\\]*+)|([^\s,\"'\\]++))", re.IGNORECASE)
_ESCAPED_LETTER = re.compile(rb"\\(?:0*+(?:[4-7]|2d)|[g-z_-])")  # a name may be spelled with these

# What is passed over in one go, where no name is spelled with escapes and there is no image-set, in which any string
# is a URL. It ends before `@import`, `@namespace`, `@document`, and the parenthesis of `url(` or `src(`.
_DULL = re.compile(
    r"(?:[^/\"'(@\\]++"
    rf"|{_COMMENT}|/"
    rf"|\"{_inside(chr(34))}\"?+|'{_inside(chr(39))}'?+"
    r"|(?<!(?i:url))(?<!(?i:src))\("
    r"|@(?!(?i:import|namespace|(?:-moz-)?document))"
    rf"|{_ESCAPED_WORD}\(?+)*+",
    re.ASCII,  # letters count in three places only: a class of characters is slow where case does not count
)


def read_css(document: Document) -> Links:
    """What the style sheet loads, all of it page requisites."""
    encoding = charset.of_css(document.body, document.charset)
    found = LinkCollector()
    for reference, context in references(charset.text(document.body[:MOST_BYTES], encoding)):
        found.add(reference, Hop.REQUISITE, context)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, encoding, note, queries="utf-8")


def references(text: str) -> Iterator[tuple[str, str]]:
    """Each reference in *text* and what it stands in: `url()`, `@import`, `image-set()` or `AlphaImageLoader()`."""
    lower = text.encode("utf-8", "replace").lower()
    if b"image-set" in lower or (b"\\" in lower and _ESCAPED_LETTER.search(lower)):
        yield from _told(text, _TOKEN.finditer(text))
    elif any(hint in lower for hint in _HINTS):
        yield from _told(text, _leaping(text))
    if b"alphaimageloader" in lower:
        yield from _filters(text)


def placed(text: str) -> Iterator[tuple[int, int, str]]:
    """As `references`, for who writes: where each begins and ends in *text*, without its quotes, and what it means."""
    scan = _TokenScan(len(text))
    for token in _TOKEN.finditer(text):
        step = _STEPS.get(token.lastgroup or "")
        reference = step(scan, token) if step else None
        if reference:
            group = next(name for name in ("bare", "double", "single") if token[name] is not None)
            yield *token.span(group), reference[0]


def _filters(text: str) -> Iterator[tuple[str, str]]:
    """The pictures that old Internet Explorers load by a filter: not CSS, so it is looked for as it stands."""
    for loader in _LOADER.finditer(text):
        loaded = _LOADED.search(loader[1])
        if loaded:
            yield loaded[1] or loaded[2] or loaded[3] or "", "AlphaImageLoader()"


def _told(text: str, tokens: Iterable[re.Match[str]]) -> Iterator[tuple[str, str]]:
    scan = _TokenScan(len(text))
    for token in tokens:
        step = _STEPS.get(token.lastgroup or "")
        reference = step(scan, token) if step else None
        if reference:
            yield reference


def _leaping(text: str) -> Iterator[re.Match[str]]:
    """The tokens that count in a *text* that is spelled plainly, as `_DULL` has it."""
    position = 0
    while True:
        dull = _DULL.match(text, position)
        end = dull.end() if dull else position
        if end == len(text):
            return
        start = end if text[end] == "@" else max(end - 3, position)
        token = _TOKEN.match(text, start)
        position = end + 1
        while token:
            yield token
            position = token.end()
            token = _TOKEN.match(text, position) if token.lastgroup in _BEFORE_A_STRING else None


class _TokenScan:
    """What the tokens up to here say of those that follow."""

    def __init__(self, length: int) -> None:
        self.length = length  # of the whole text
        self.depth = 0  # of parentheses inside image-set(; its own is 1
        self.expected = -1  # a string that starts there is a reference
        self.meaning = ""  # of that string
        self.importing = -1  # a url() that starts there is an import

    def string(self, token: re.Match[str]) -> tuple[str, str] | None:
        """A closed string: a reference where one is expected, and directly inside image-set()."""
        expected = token.start() == self.expected
        if not expected and self.depth != 1:
            return None
        string = _unescaped(token["double"] or token["single"] or "")
        if token.end() == self.length:  # a backslash at the very end means nothing in a string
            string = string.removesuffix("\ufffd")
        return string, self.meaning if expected else "image-set()"

    def url(self, token: re.Match[str]) -> tuple[str, str] | None:
        """`url(` and what is in it, unless that is a string, or broken."""
        self.meaning = "@import" if token.start() == self.importing else "url()"
        if token["bare"] is not None:
            return _unescaped(token["bare"]), self.meaning
        if token["bad"] is None:
            self._inside(token)
        return None

    def src(self, token: re.Match[str]) -> None:
        """`src(`, which takes a string only."""
        self.meaning = "url()"
        self._inside(token)

    def at_import(self, token: re.Match[str]) -> None:
        """`@import` and the space behind it."""
        self.meaning = "@import"
        self.expected = self.importing = token.end()

    def parenthesis(self, token: re.Match[str]) -> None:
        """`image-set(`, or a parenthesis, which counts inside of it."""
        if token.lastgroup == "set":
            self.depth += 1
        elif self.depth:
            self.depth += 1 if token.lastgroup == "open" else -1

    def _inside(self, token: re.Match[str]) -> None:
        self.expected = token.end()
        self.depth += bool(self.depth)


_BEFORE_A_STRING = ("url", "src", "import")
_STEPS: dict[str, Callable[[_TokenScan, re.Match[str]], tuple[str, str] | None]] = {
    "double_end": _TokenScan.string,
    "single_end": _TokenScan.string,
    "url": _TokenScan.url,
    "src": _TokenScan.src,
    "import": _TokenScan.at_import,
    "set": _TokenScan.parenthesis,
    "open": _TokenScan.parenthesis,
    "close": _TokenScan.parenthesis,
}


def _unescaped(value: str) -> str:
    return _UNESCAPE.sub(_unescape, value).replace("\0", "\ufffd") if "\\" in value or "\0" in value else value


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        code = int(escape[1], 16)
        return "\ufffd" if code == 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
    if escape[2]:
        return ""
    return escape[3] or ("\ufffd" if escape.end() == len(escape.string) else "")
