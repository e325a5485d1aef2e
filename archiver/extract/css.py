"""What a style sheet loads: `url()` and `src()`, `@import` in all its forms, the strings of `image-set()`.

One pass by a regular expression that knows comments, strings, escapes and broken tokens as the CSS
Syntax standard has them, and steps over all the rest. It looks at tokens, not at grammar: what stands in
a rule that a browser would drop is found as well. URLs are resolved against the sheet, in UTF-8.
"""

import re
from collections.abc import Iterator

from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.found import Found
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20

_HEX_TAIL = r"(?:\r\n|[ \t\n\r\f])?"
_ESCAPE = rf"\\(?:[0-9a-fA-F]{{1,6}}{_HEX_TAIL}|[^\n\r\f0-9a-fA-F])"
_GAP = r"(?:[ \t\n\r\f]|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+"


def _word(word: str) -> str:
    """A pattern for *word* as CSS may spell it: in any case, and with escapes."""
    return "".join(
        rf"(?:{char}|\\{char}|\\0{{0,4}}(?:{ord(char):x}|{ord(char.upper()):x}){_HEX_TAIL})"
        if char.isalpha() and char not in "abcdef"
        else rf"(?:{re.escape(char)}|\\0{{0,4}}(?:{ord(char):x}|{ord(char.upper()):x}){_HEX_TAIL})"
        for char in word
    )


def _string(quote: str, name: str) -> str:
    """A string; its group `…_end` took part where it is closed. A line's end leaves it open, the text's end closes it."""
    return rf"{quote}(?P<{name}>(?:[^{quote}\\\n\r\f]|\\(?:\r\n|[\s\S]|\Z))*+)(?P<{name}_end>{quote}|\Z)?"


_SPACE = r"[ \t\n\r\f]*+"
_COMMENT = r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_BARE = rf"{_SPACE}(?P<bare>(?:[^\"'()\\\x00-\x20\x7f]|\x00|{_ESCAPE}|\\\Z)*+){_SPACE}(?:\)|\Z)"
_REMNANTS = r"(?P<bad>(?:[^)\\]|\\[\s\S]?)*+\)?)"
_START = r"(?<![\w\\-])(?<![^\x00-\x7f])"
_END = r"(?![\w\\-]|[^\x00-\x7f])"
_TOKEN = re.compile(
    r"(?=[/\"'us@()i\\-])(?:"
    rf"{_COMMENT}"
    rf"|{_string(chr(34), 'double')}|{_string(chr(39), 'single')}"
    rf"|{_START}(?P<url>{_word('url')}\((?:{_SPACE}(?=[\"'])|{_BARE}|{_REMNANTS}))"
    rf"|{_START}(?P<src>{_word('src')}\({_SPACE})"
    rf"|{_START}(?P<set>(?:-webkit-)?{_word('image-set')}\()"
    rf"|(?P<import>@{_word('import')}{_END}(?:[ \t\n\r\f]|{_COMMENT})*+)"
    rf"|@{_word('namespace')}{_END}[^;\"'(){{}}]*+"
    r"|(?P<open>\()|(?P<close>\))"
    rf"|\\(?:[0-9a-fA-F]{{1,6}}{_HEX_TAIL}|[\s\S])?(?:[\w-]|[^\x00-\x7f])*+)",
    re.IGNORECASE | re.ASCII,
)
_UNESCAPE = re.compile(rf"\\(?:([0-9a-fA-F]{{1,6}}){_HEX_TAIL}|(\r\n|[\n\r\f])|([\s\S])|\Z)")
_HINT = re.compile(r"url\(|@import|image-set\(|src\(|\\", re.IGNORECASE)


def read(document: Document) -> Links:
    """What the style sheet loads, all of it page requisites."""
    encoding = charset.of_css(document.body, document.charset)
    found = Found()
    for reference, context in references(charset.text(document.body[:MOST_BYTES], encoding)):
        found.add(reference, Hop.REQUISITE, context)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    return found.links(document.url, encoding, note, queries="utf-8")


def references(text: str) -> Iterator[tuple[str, str]]:
    """Each reference in *text* and what it stands in: `url()`, `@import` or `image-set()`."""
    if not _HINT.search(text):
        return
    depth = 0  # of parentheses inside image-set(; its own is 1
    expected, meaning = -1, ""  # a string that starts there is a reference
    importing = -1  # a url() that starts there is an import
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind is None:
            continue
        if kind in ("double_end", "single_end"):
            if token.start() == expected or depth == 1:
                string = _unescaped(token["double"] or token["single"] or "")
                # a backslash at the very end means nothing in a string, but stands for a character in a bare url
                string = string[:-1] if token.end() == len(text) and string.endswith("\ufffd") else string
                yield string, meaning if token.start() == expected else "image-set()"
        elif kind == "url":
            meaning = "@import" if token.start() == importing else "url()"
            if token["bare"] is not None:
                yield _unescaped(token["bare"]), meaning
            elif token["bad"] is None:
                expected, depth = token.end(), depth + bool(depth)
        elif kind == "import":
            expected = importing = token.end()
            meaning = "@import"
        elif kind == "src":
            expected, meaning, depth = token.end(), "url()", depth + bool(depth)
        elif kind in ("set", "open"):
            depth += kind == "set" or depth > 0
        elif kind == "close":
            depth = max(depth - 1, 0)


def _unescaped(value: str) -> str:
    return _UNESCAPE.sub(_unescape, value).replace("\0", "\ufffd") if "\\" in value or "\0" in value else value


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        code = int(escape[1], 16)
        return "\ufffd" if code == 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
    if escape[2]:
        return ""
    return escape[3] or ("\ufffd" if escape.end() == len(escape.string) else "")
