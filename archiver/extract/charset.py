"""Character encodings, by the rules of the Encoding, HTML, XML and CSS standards.

A byte order mark wins over the header, and the header over what the document says. Names are those of the Encoding
standard; unknown labels are ignored. Never raises.

Also the codecs of the Encoding standard where Python's codec of the same name differs: undefined single bytes are
controls, as in browsers; EUC-JP includes the vendors' additions to JIS X 0208; GBK is read as GB18030; and text in the
query of a URL is encoded as browsers do. Pure tables, each built once.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache

import webencodings

from archiver.config.expressions import compiled

_OPEN = "\ufffe"  # Python's mark for an undefined byte
_PATCHES = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "windows-1255": {0xCA: "\u05ba"}}
_FROM_JIS = str.maketrans("\u301c\u2016\u2212\xa2\xa3\xac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffec")
# The parts of index jis0208 that each encoding writes: Shift_JIS skips the duplicates.
_WRITTEN_PARTS = {"euc-jp": ((0, 8836),), "shift_jis": ((0, 8272), (10716, 11104))}
_TO_JAPANESE = str.maketrans({"\xa5": "\\", "\u203e": "~", "\u2212": "\uff0d"})  # as the standard encodes them
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
_FULL_WIDTH = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテト"
    "ナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)
_NOT_WRITTEN = re.compile("[\x0e\x0f\x1b\ufffd]")


def decoded(body: bytes, encoding: str) -> str:
    """Return *body* as text; bytes that cannot be decoded become U+FFFD."""
    if body.isascii() and _table(encoding):  # single-byte encodings share ASCII
        return body.decode("ascii")
    return text_decoder(body, encoding)(body, True)


def text_decoder(body: bytes, encoding: str) -> Callable[[bytes, bool], str]:
    """Return a function that decodes *body* piece by piece; its second argument marks the last piece."""
    table = _table(encoding)
    if table is not None:
        return lambda piece, _: codecs.charmap_decode(piece, "replace", table)[0]
    if encoding == "euc-jp":
        japanese = codecs.getincrementaldecoder(_japanese(body))("replace")
        return lambda piece, last: japanese.decode(piece, last).translate(_FROM_JIS)
    return codecs.getincrementaldecoder(_python_name(encoding))("replace").decode


def encoded_legacy(run: str, encoding: str) -> bytes:
    """Return *run* encoded as browsers do; UnicodeEncodeError if it has a character that the encoding lacks."""
    table = _table(encoding)
    if table is not None:
        return codecs.charmap_encode(run, "strict", codecs.charmap_build(table))[0]
    writer = _WRITERS.get(encoding)
    return writer(run) if writer else run.encode(_python_name(encoding))


@lru_cache(maxsize=50)  # there are fewer encodings
def _table(encoding: str) -> str | None:
    """Return the characters of all 256 bytes; None for a multi-byte encoding."""
    if encoding == "x-user-defined":
        return "".join(chr(byte if byte < 0x80 else 0xF700 + byte) for byte in range(256))
    name = _python_name(encoding)
    if not encoding.startswith(("windows-", "iso-8859-", "koi8-", "ibm", "macintosh", "x-mac")):
        return None
    chars = [bytes((byte,)).decode(name, "replace") for byte in range(256)]
    chars = [chr(byte) if char == "\ufffd" and 0x80 <= byte < 0xA0 else char for byte, char in enumerate(chars)]
    for byte, char in _PATCHES.get(encoding, {}).items():
        chars[byte] = char
    return "".join(_OPEN if char == "\ufffd" else char for char in chars)


def _python_name(encoding: str) -> str:
    if encoding in ("gbk", "gb18030"):
        return "gb18030"
    found = webencodings.lookup(encoding)
    return str(found.codec_info.name) if found and encoding != "replacement" else "utf-8"


def _japanese(body: bytes) -> str:
    """Return the Python codec for EUC-JP.

    JIS X 0213 includes the vendors' additions to JIS X 0208, but has other characters in place of JIS X 0212.
    """
    if b"\x8f" in body:
        return "euc_jp"
    return "euc_jis_2004"


def _euc_jp(run: str) -> bytes:
    pieces = bytearray()
    for char in run.translate(_TO_JAPANESE):
        if char < "\x80":
            pieces += char.encode()
        elif "\uff61" <= char <= "\uff9f":
            pieces += bytes((0x8E, ord(char) - 0xFF61 + 0xA1))
        else:
            pointer = _pointer(char, "euc-jp")
            pieces += bytes((pointer // 94 + 0xA1, pointer % 94 + 0xA1))
    return bytes(pieces)


def _pointer(char: str, encoding: str) -> int:
    """Return the position of *char* in index jis0208; UnicodeEncodeError if *encoding* cannot write it.

    JIS X 0213 has more characters (the euro sign, for one), which browsers do not write.
    """
    for first, end in _WRITTEN_PARTS[encoding]:
        pointer = _jis0208(first, end).get(char)
        if pointer is not None:
            return pointer
    raise UnicodeEncodeError(encoding, char, 0, 1, "no such character")


@cache
def _jis0208(first: int, end: int) -> dict[str, int]:
    """Return the pointers of the index from *first* to *end*: Windows' Shift_JIS contains the index as it is."""
    pointers: dict[str, int] = {}
    for pointer in range(first, end):
        with suppress(UnicodeDecodeError):  # an empty place
            pointers.setdefault(_shifted(pointer).decode("cp932"), pointer)  # the first of two duplicates counts
    return pointers


def _shifted(pointer: int) -> bytes:
    """Return the two bytes of Shift_JIS for a *pointer* into the index."""
    lead, trail = divmod(pointer, 188)
    return bytes((lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)))


def _iso_2022_jp(run: str) -> bytes:
    if _NOT_WRITTEN.search(run):
        raise UnicodeEncodeError("iso-2022-jp", run, 0, len(run), "no such character")
    run = _HALF_WIDTH.sub(lambda char: _FULL_WIDTH[ord(char[0]) - 0xFF61], run)
    pieces, state = bytearray(), b"\x1b(B"
    for char in run:
        if char in "\xa5\u203e":
            escape, piece = b"\x1b(J", _euc_jp(char)
        elif char < "\x80":
            stays = state == b"\x1b(J" and char not in "\\~"
            escape, piece = state if stays else b"\x1b(B", char.encode()
        else:
            escape, piece = b"\x1b$B", bytes(byte & 0x7F for byte in _euc_jp(char))
        pieces += piece if state == escape else escape + piece
        state = escape
    return bytes(pieces) if state == b"\x1b(B" else bytes(pieces) + b"\x1b(B"


def _shift_jis(run: str) -> bytes:
    pieces = bytearray()
    for char in run.translate(_TO_JAPANESE):
        if char <= "\x80":
            pieces += char.encode("latin-1")
        elif "\uff61" <= char <= "\uff9f":
            pieces.append(ord(char) - 0xFF61 + 0xA1)
        else:
            pieces += _shifted(_pointer(char, "shift_jis"))
    return bytes(pieces)


def _each(runs: dict[int, str]) -> dict[str, bytes]:
    """Return the bytes of each character in *runs*, which map the first code to consecutive characters."""
    return {char: (first + place).to_bytes(2) for first, run in runs.items() for place, char in enumerate(run)}


# Where browsers write other bytes than Python's codecs; every character was compared with Chromium.
_BIG5 = _each(
    {0xA145: "\u2027", 0xA14E: "\ufe51", 0xA1C2: "\xaf", 0xA1E3: "\uff5e", 0xA1F2: "\u2295\u2299", 0xA1FE: "\uff0f"}
    | {0xA240: "\uff3c\u2215\ufe68", 0xA244: "\uffe5", 0xA246: "\uffe0\uffe1", 0xA27E: "\u256d"}
    | {0xA2A1: "\u256e\u2570\u256f", 0xA3C0: "".join(map(chr, range(0x2400, 0x2420))), 0xA3E0: "\u2421\u20ac"}
    | {0xC6CF: "\u5ef4", 0xC6D3: "\u65e0", 0xC6D5: "\u7676", 0xC6D7: "\u96b6", 0xC6DF: "\u4edd"}
    | {0xFB48: "\u5605", 0xFBF9: "\u5ed0", 0xFC6C: "\u60a4", 0xFE52: "\u732a"}
)
_NOT_IN_BIG5 = frozenset("\xa2\xa3\xa5\u2022\u203e\u223c\u2609\u2641\uff64")
_GB18030 = _each(
    {0xA6D9: "\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16", 0xA6EC: "\ufe17\ufe18", 0xA6F3: "\ufe19"}
    | {0xA8BC: "\u1e3f", 0xFE59: "\u9fb4", 0xFE61: "\u9fb5", 0xFE66: "\u9fb6\u9fb7", 0xFE6D: "\u9fb8"}
    | {0xFE7E: "\u9fb9", 0xFE90: "\u9fba", 0xFEA0: "\u9fbb"}
) | {"\ue7c7": b"\x815\xf47"}


def _big5(run: str) -> bytes:
    pieces = bytearray()
    for char in run:
        piece = _BIG5.get(char) or char.encode("big5hkscs")
        # Hong Kong's additions are decoded, never encoded.
        if char in _NOT_IN_BIG5 or (len(piece) > 1 and piece[0] < 0xA1):
            raise UnicodeEncodeError("big5", run, 0, len(run), "no such character")
        pieces += piece
    return bytes(pieces)


def _gb18030(run: str) -> bytes:
    if "\ue5e5" in run:
        raise UnicodeEncodeError("gb18030", run, 0, len(run), "no such character")
    return b"".join(_GB18030.get(char) or char.encode("gb18030") for char in run)


def _gbk(run: str) -> bytes:
    pieces = [b"\x80" if char == "\u20ac" else _gb18030(char) for char in run]
    if any(len(piece) > 2 for piece in pieces):
        raise UnicodeEncodeError("gbk", run, 0, len(run), "no such character")
    return b"".join(pieces)


_WRITERS = {
    "euc-jp": _euc_jp,
    "iso-2022-jp": _iso_2022_jp,
    "shift_jis": _shift_jis,
    "big5": _big5,
    "gb18030": _gb18030,
    "gbk": _gbk,
}

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_BEGIN_MARKS = frozenset(mark[:1] for mark, _ in _MARKS)
_PRESCAN = 1024  # bytes that the HTML standard searches for a meta element before parsing
_LONG_PRESCAN = 1 << 16  # bytes we search for a later one, which makes a browser start over
_PIECE = 1 << 16
_S = r"[\t\n\f\r ]"
_TAG = re.compile(rb"(<!--)|<(meta)(?=[\t\n\f\r /])|</?[a-z][^\t\n\f\r >]*+|(<[!/?])", re.IGNORECASE)
_NAME = re.compile(rf"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+){_S}*+(=?){_S}*+".encode())
_VALUE = re.compile(rb"\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)(?=[\t\n\f\r >])|(?=>)")
_IN_CONTENT = re.compile(
    rf"charset{_S}*+={_S}*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*+))".encode(), re.IGNORECASE
)
_AT_ONCE = compiled(  # a plain meta element after the usual start of a page
    rf"{_S}*+(?:<!doctype[^<>]*+>{_S}*+)?+(?:<html(?:{_S}++[a-z:-]++=\"[^\"<>]*+\")*+>{_S}*+)?+"
    rf"(?:<head>{_S}*+)?+<meta{_S}++charset=\"([a-z0-9-]++)\"{_S}*+/?+>".encode(),
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(?:\"([^\"<>]*)\"|'([^'<>]*)')")
_CSS_CHARSET = re.compile(rb'@charset "([\x00-\x21\x23-\x7f]*)";')


def encoding_name(label: str | None) -> str | None:
    """Return the standard's name for the encoding *label*; None if it is unknown."""
    return _named(label) if label and len(label) < 64 else None


@lru_cache(maxsize=256)
def _named(label: str) -> str | None:
    found = webencodings.lookup(label)
    return str(found.name) if found else None


def text(body: bytes, encoding: str) -> str:
    """Return *body* as text without its byte order mark; bytes that cannot be decoded become U+FFFD."""
    if body[:1] in _BEGIN_MARKS:
        for mark, name in _MARKS:
            if body.startswith(mark) and name == encoding:
                body = body[len(mark) :]
    if encoding in ("utf-8", "replacement"):
        return body.decode("utf-8", "replace")
    return decoded(body, encoding)


def pieces(body: bytes, encoding: str, most: int) -> Iterator[str]:
    """Yield the first *most* bytes of *body* as text, piece by piece, like `text`."""
    reader = text_decoder(body, encoding)
    start = next((len(mark) for mark, name in _MARKS if body.startswith(mark) and name == encoding), 0)
    end = min(len(body), most)
    for position in range(start, end, _PIECE):
        yield reader(body[position : min(position + _PIECE, end)], False)
    yield reader(b"", True)


def encoded(run: str, encoding: str) -> bytes:
    """Return *run* in *encoding*, a name of the standard; UnicodeEncodeError if a character is missing in it."""
    return encoded_legacy(run, encoding)


def of_html(body: bytes, header: str | None) -> str:
    """Return the encoding of an HTML document, by default windows-1252."""
    return marked(body) or encoding_name(header) or _from_meta(body) or _from_xml(body) or "windows-1252"


def looks_like_utf8(body: bytes) -> bool:
    """Return True if *body*, which may be cut off, has other characters than ASCII, and all of them are UTF-8."""
    if body.isascii():
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def of_xml(body: bytes, header: str | None) -> str:
    """Return the encoding of an XML document, by default UTF-8."""
    return marked(body) or encoding_name(header) or _from_xml(body) or "utf-8"


def of_css(body: bytes, header: str | None, document: str | None = None) -> str:
    """Return the encoding of a style sheet, by default that of the *document* that names it, else UTF-8."""
    own = _CSS_CHARSET.match(body, 0, _PRESCAN)
    label = _ascii(encoding_name(own[1].decode("ascii"))) if own else None
    return marked(body) or encoding_name(header) or label or encoding_name(document) or "utf-8"


def of_text(body: bytes, header: str | None) -> str:
    """Return the encoding of plain text, by default UTF-8."""
    return marked(body) or encoding_name(header) or "utf-8"


def marked(body: bytes) -> str | None:
    """Return the encoding given by a byte order mark."""
    if body[:1] not in _BEGIN_MARKS:
        return None
    return next((name for mark, name in _MARKS if body.startswith(mark)), None)


def _ascii(name: str | None) -> str | None:
    """Correct a declared encoding: text whose declaration is readable as ASCII is not UTF-16."""
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _from_xml(body: bytes) -> str | None:
    if body.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if body.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    found = _XML_DECLARATION.match(body, 0, _PRESCAN)
    return _ascii(encoding_name((found[1] or found[2] or b"").decode("latin-1"))) if found else None


def _from_meta(body: bytes) -> str | None:
    """Run the HTML standard's prescan; if it finds nothing, search further for a late meta element."""
    early = _AT_ONCE.match(body, 0, _PRESCAN)
    if early and (found := _ascii(encoding_name(early[1].decode("ascii")))):
        return found
    for head in (body[:_PRESCAN], body[:_LONG_PRESCAN]):
        if b"charset" in head.lower() and (found := _prescan(head)):
            return found
        if len(head) < _PRESCAN:
            break
    return None


def _prescan(head: bytes) -> str | None:
    position = 0
    while tag := _TAG.search(head, position):
        if tag[1]:
            end = head.find(b"-->", tag.start() + 2)
            position = end + 3 if end >= 0 else len(head)
        elif tag[3]:
            end = head.find(b">", tag.end())
            position = end + 1 if end >= 0 else len(head)
        else:
            attributes, position = _attributes(head, tag.end())
            if tag[2] and (found := _declared(attributes)):
                return found
    return None


def _attributes(head: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """Return the attributes of the tag whose name ends at *position*, and their end; none for a torn tag."""
    attributes: dict[bytes, bytes] = {}
    while name := _NAME.match(head, position):
        position = name.end()
        value = b""
        if name[2]:
            found = _VALUE.match(head, position)
            if found is None:
                return {}, len(head)
            position = found.end()
            value = found[1] or found[2] or found[3] or b""
        attributes.setdefault(name[1].lower(), value)
    torn = b">" not in head[position : position + 1] and head[position:].strip(b"\t\n\f\r /") == b""
    return ({}, len(head)) if torn else (attributes, position)


def _declared(attributes: dict[bytes, bytes]) -> str | None:
    """Return the encoding declared by a meta element: its charset, or that in a Content-Type content."""
    if b"charset" in attributes:
        label = attributes[b"charset"]
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        found = _IN_CONTENT.search(attributes.get(b"content", b""))
        label = (found[1] or found[2] or found[3] or b"") if found else b""
    else:
        return None
    return _ascii(encoding_name(label.decode("latin-1")))
