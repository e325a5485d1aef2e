"""URLs in style sheets: `url()` and `src()`, all forms of `@import`, and the strings of `image-set()`.

One pass by a regular expression that knows comments, strings, escapes and broken tokens as in the CSS Syntax standard,
and skips everything else. It reads tokens, not grammar, so it also finds URLs in rules that a browser would drop (a
late `@import`, for example): archives outlive browsers. `@namespace` and `@document` only compare URLs. URLs are
resolved against the style sheet, in UTF-8.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from archiver.config.expressions import compiled
from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.references import LinkCollector
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20

# Leaflet's script puts the addresses of a marker's shadow and of its larger picture together from the first.
_MARKER, _OTHER_MARKERS = "images/marker-icon.png", ("marker-shadow.png", "marker-icon-2x.png")
_HEX_TAIL = r"(?:\r\n|[ \t\n\r\f])?"
_ESCAPE = rf"\\(?:[0-9a-fA-F]{{1,6}}{_HEX_TAIL}|[^\n\r\f0-9a-fA-F])"


def _word(word: str) -> str:
    """Return a pattern for *word* as CSS may spell it: in any case, and with escapes."""
    return "".join(
        rf"(?:{char}|\\{char}|\\0{{0,4}}(?:{ord(char):x}|{ord(char.upper()):x}){_HEX_TAIL})"
        if char.isalpha() and char not in "abcdef"
        else rf"(?:{re.escape(char)}|\\0{{0,4}}(?:{ord(char):x}|{ord(char.upper()):x}){_HEX_TAIL})"
        for char in word
    )


def _string(quote: str, name: str) -> str:
    """Return a pattern for a string; group `…_end` matches if the quote or the end of the text closes it."""
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
_TOKEN = compiled(
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
_ESCAPED_LETTER = re.compile(rb"\\(?:0*+(?:[4-7]|2d)|[g-z_-])")  # escapes that may be part of a name

# Text to skip at once, if no name is spelled with escapes and there is no image-set, in which any string
# is a URL. It ends before `@import`, `@namespace`, `@document`, and the parenthesis of `url(` or `src(`.
_SKIPPED = compiled(
    r"(?:[^/\"'(@\\]++"
    rf"|{_COMMENT}|/"
    rf"|\"{_inside(chr(34))}\"?+|'{_inside(chr(39))}'?+"
    r"|(?<!(?i:url))(?<!(?i:src))\("
    r"|@(?!(?i:import|namespace|(?:-moz-)?document))"
    rf"|{_ESCAPED_WORD}\(?+)*+",
    re.ASCII,  # case-insensitive in three places only, as IGNORECASE makes character classes slow
)


def read_css(document: Document) -> Links:
    """Return what the style sheet loads, all as page requisites."""
    encoding = charset.of_css(document.body, document.charset)
    found = LinkCollector()
    for reference, context in references(charset.text(document.body[:MOST_BYTES], encoding)):
        found.add(reference, Hop.REQUISITE, context)
        if reference.endswith(_MARKER):
            for other in _OTHER_MARKERS:
                found.add(f"{reference.removesuffix(_MARKER)}images/{other}", Hop.SPECULATIVE, context)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, encoding, note, queries="utf-8")


def references(text: str) -> Iterator[tuple[str, str]]:
    """Yield each reference in *text* and its kind: `url()`, `@import`, `image-set()` or `AlphaImageLoader()`."""
    lower = text.encode("utf-8", "replace").lower()
    if b"image-set" in lower or (b"\\" in lower and _ESCAPED_LETTER.search(lower)):
        yield from _scan(text, _TOKEN.finditer(text))
    elif any(hint in lower for hint in _HINTS):
        yield from _scan(text, _plain_tokens(text))
    if b"alphaimageloader" in lower:
        yield from _filters(text)


def reference_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end (without quotes) and kind of each reference in *text*, for rewriting."""
    scan = _TokenScan(len(text))
    for token in _TOKEN.finditer(text):
        step = _STEPS.get(token.lastgroup or "")
        reference = step(scan, token) if step else None
        if reference:
            group = next(name for name in ("bare", "double", "single") if token[name] is not None)
            yield *token.span(group), reference[0]


def _filters(text: str) -> Iterator[tuple[str, str]]:
    """Yield the images that old versions of Internet Explorer load by a filter; this is not CSS."""
    for loader in _LOADER.finditer(text):
        loaded = _LOADED.search(loader[1])
        if loaded:
            yield loaded[1] or loaded[2] or loaded[3] or "", "AlphaImageLoader()"


def _scan(text: str, tokens: Iterable[re.Match[str]]) -> Iterator[tuple[str, str]]:
    scan = _TokenScan(len(text))
    for token in tokens:
        step = _STEPS.get(token.lastgroup or "")
        reference = step(scan, token) if step else None
        if reference:
            yield reference


def _plain_tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the relevant tokens of a *text* without escaped names and image-set; see `_SKIPPED`."""
    position = 0
    while True:
        dull = _SKIPPED.match(text, position)
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
    """State that earlier tokens set for later ones."""

    def __init__(self, length: int) -> None:
        self.length = length  # of the text
        self.depth = 0  # of parentheses inside image-set(, including its own
        self.expected = -1  # a string at this position is a reference
        self.meaning = ""  # kind of that reference
        self.importing = -1  # a url() at this position is an import

    def string(self, token: re.Match[str]) -> tuple[str, str] | None:
        """Process a closed string: a reference if one is expected, or directly inside image-set()."""
        expected = token.start() == self.expected
        if not expected and self.depth != 1:
            return None
        string = _unescaped(token["double"] or token["single"] or "")
        if token.end() == self.length:  # a final backslash in a string is ignored
            string = string.removesuffix("\ufffd")
        return string, self.meaning if expected else "image-set()"

    def url(self, token: re.Match[str]) -> tuple[str, str] | None:
        """Process `url(` and its content, unless that is a string, or broken."""
        self.meaning = "@import" if token.start() == self.importing else "url()"
        if token["bare"] is not None:
            return _unescaped(token["bare"]), self.meaning
        if token["bad"] is None:
            self._inside(token)
        return None

    def src(self, token: re.Match[str]) -> None:
        """Process `src(`, which takes only a string."""
        self.meaning = "url()"
        self._inside(token)

    def at_import(self, token: re.Match[str]) -> None:
        """Process `@import` and the space after it."""
        self.meaning = "@import"
        self.expected = self.importing = token.end()

    def parenthesis(self, token: re.Match[str]) -> None:
        """Process `image-set(`, or a parenthesis inside it."""
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
