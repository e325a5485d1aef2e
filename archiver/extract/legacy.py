"""The codecs of the Encoding standard, where Python's of the same name differ from it.

Single bytes that Python leaves open are controls, as browsers have them; EUC-JP has the characters that
vendors added to JIS X 0208; GBK is read as GB18030; and what a browser writes into the query of a URL is
written the same way. Names are those of the standard. Pure tables, each built once.
"""

import codecs
import re
from collections.abc import Callable
from functools import lru_cache

import webencodings

_OPEN = "\ufffe"  # what the library takes for "no such byte"
_PATCHES = {"koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"}, "windows-1255": {0xCA: "\u05ba"}}
_OURS_OF_JIS = {
    "\u301c": "\uff5e",
    "\u2016": "\u2225",
    "\u2212": "\uff0d",
    "\xa2": "\uffe0",
    "\xa3": "\uffe1",
    "\xac": "\uffe2",
}
_FROM_JIS = str.maketrans(_OURS_OF_JIS)
_TO_JIS = str.maketrans({ours: theirs for theirs, ours in _OURS_OF_JIS.items()})
_TO_JAPANESE = str.maketrans({"\xa5": "\\", "\u203e": "~", "\u2212": "\uff0d"})  # what the standard writes them as
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
_FULL_WIDTH = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテト"
    "ナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)
_NOT_WRITTEN = re.compile("[\x0e\x0f\x1b\ufffd]")


def decoded(body: bytes, encoding: str) -> str:
    """*body* as text; what cannot be read becomes U+FFFD."""
    if body.isascii() and _table(encoding):  # which have ASCII in common
        return body.decode("ascii")
    return reader(body, encoding)(body, True)


def reader(body: bytes, encoding: str) -> Callable[[bytes, bool], str]:
    """What reads *body* a piece at a time, and is told which is the last."""
    table = _table(encoding)
    if table is not None:
        return lambda piece, _: codecs.charmap_decode(piece, "replace", table)[0]
    if encoding == "euc-jp":
        japanese = codecs.getincrementaldecoder(_japanese(body))("replace")
        return lambda piece, last: japanese.decode(piece, last).translate(_FROM_JIS)
    return codecs.getincrementaldecoder(_python_name(encoding))("replace").decode


def encoded(run: str, encoding: str) -> bytes:
    """*run* as a browser writes it; UnicodeEncodeError where it has no such character."""
    table = _table(encoding)
    if table is not None:
        return codecs.charmap_encode(run, "strict", codecs.charmap_build(table))[0]
    writer = _WRITERS.get(encoding)
    return writer(run) if writer else run.encode(_python_name(encoding))


@lru_cache(maxsize=50)  # no more encodings than these
def _table(encoding: str) -> str | None:
    """The characters of the 256 bytes; None where the encoding is no matter of single bytes."""
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
    """JIS X 0213 has what vendors added to JIS X 0208, but other characters in place of JIS X 0212."""
    if b"\x8f" in body:
        return "euc_jp"
    return "euc_jis_2004"


def _euc_jp(run: str) -> bytes:
    run = run.translate(_TO_JAPANESE).translate(_TO_JIS)
    pieces = bytearray()
    for char in run:
        try:
            piece = char.encode("euc_jp")
        except UnicodeEncodeError:
            piece = char.encode("euc_jis_2004")
        if piece.startswith(b"\x8f") or len(piece) > 2:  # the standard reads the second plane, but never writes it
            raise UnicodeEncodeError("euc-jp", run, 0, len(run), "no such character")
        pieces += piece
    return bytes(pieces)


def _iso_2022_jp(run: str) -> bytes:
    if _NOT_WRITTEN.search(run):
        raise UnicodeEncodeError("iso-2022-jp", run, 0, len(run), "no such character")
    run = _HALF_WIDTH.sub(lambda char: _FULL_WIDTH[ord(char[0]) - 0xFF61], run)
    pieces, state = bytearray(), b"\x1b(B"
    for char in run:
        if char in "\xa5\u203e":
            wanted, piece = b"\x1b(J", _euc_jp(char)
        elif char < "\x80":
            stays = state == b"\x1b(J" and char not in "\\~"
            wanted, piece = state if stays else b"\x1b(B", char.encode()
        else:
            wanted, piece = b"\x1b$B", bytes(byte & 0x7F for byte in _euc_jp(char))
        pieces += piece if state == wanted else wanted + piece
        state = wanted
    return bytes(pieces) if state == b"\x1b(B" else bytes(pieces) + b"\x1b(B"


def _shift_jis(run: str) -> bytes:
    return run.translate(_TO_JAPANESE).encode("cp932")


def _big5(run: str) -> bytes:
    pieces = [char.encode("big5hkscs") for char in run]
    if any(len(piece) > 1 and piece[0] < 0xA1 for piece in pieces):  # Hong Kong's additions are read, never written
        raise UnicodeEncodeError("big5", run, 0, len(run), "no such character")
    return b"".join(pieces)


def _gb18030(run: str) -> bytes:
    if "\ue5e5" in run:
        raise UnicodeEncodeError("gb18030", run, 0, len(run), "no such character")
    return run.encode("gb18030")


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
