"""Links in PDF files: the targets of URI actions.

The file's own tables are often broken and take unbounded time, so they are not used. Instead, the bytes of the file and
of its compressed object streams are searched for strings after `/URI`. This also finds links of earlier revisions;
links of encrypted files are not found. One pass, linear in the size; decompression is bounded.
"""

import re
import zlib
from collections.abc import Iterator

from archiver.config.expressions import compiled
from archiver.extract.document import Document
from archiver.extract.references import LinkCollector
from archiver.model import Hop, Links

MOST_BYTES = 64 << 20
MOST_UNPACKED = 64 << 20  # bytes decompressed of all object streams
_ONE_STREAM = 8 << 20  # bytes decompressed of one; most hold a hundred objects
_S = r"[\x00\t\n\f\r ]"
_TEXT = r"\(([^()\\]*+(?:(?:\\[\s\S]|\([^()\\]*+\))[^()\\]*+)*+)\)"  # balanced parentheses, one level deep
_ACTION = compiled(
    rf"/(?P<key>URI|Base){_S}*+"
    rf"(?:{_TEXT}|<(?P<hex>[0-9a-fA-F\x00\t\n\f\r ]*+)>|(?P<object>\d{{1,10}}){_S}++\d{{1,5}}{_S}++R)".encode()
)
_STRING_OBJECT = compiled(rf"(?<!\d)(?P<object>\d{{1,10}}){_S}++\d{{1,5}}{_S}++obj{_S}*+{_TEXT}".encode())
_STREAM = re.compile(rb"stream\r?\n")
_OBJECTS = re.compile(rf"/Type{_S}*+/ObjStm".encode())
_ENCRYPTED = re.compile(rf"/Encrypt{_S}*+(?:\d{{1,10}}{_S}++\d{{1,5}}{_S}++R|<<)".encode())
_CHUNK = 1 << 14
_HEADER = 400  # bytes before a stream that contain its dictionary
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(\r\n|[\r\n])|([\s\S]))")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_LONGEST = 1 << 14  # bytes of an address


def read_pdf(document: Document) -> Links:
    """Return the links of the PDF, resolved against its own base if it has one."""
    body = document.body[:MOST_BYTES]
    if _ENCRYPTED.search(body):
        return Links(note="an encrypted PDF: its links were not read")
    found = LinkCollector()
    base = ""
    referred: set[bytes] = set()
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    for part in (body, *_unpacked(body)):
        for action in _ACTION.finditer(part):
            if action["object"]:
                referred.add(action["object"])
                continue
            target = _string(action[2]) if action["hex"] is None else _from_hex(action["hex"])
            if action["key"] == b"Base":
                base = base or _address(target)
            else:
                found.add(_address(target), Hop.LINK, "URI")
    for string in _STRING_OBJECT.finditer(body) if referred else ():
        if string["object"] in referred:
            found.add(_address(_string(string[2])), Hop.LINK, "URI")
    links = found.links(document.url, "utf-8", note)
    return found.links(base, "utf-8", note) if base.startswith(("http://", "https://")) else links


def _unpacked(body: bytes) -> Iterator[bytes]:
    """Yield the contents of the object streams."""
    left = MOST_UNPACKED
    for start in _STREAM.finditer(body):
        if left > 0 and _OBJECTS.search(body, max(0, start.start() - _HEADER), start.start()):
            content, cost = _inflated(body, start.end(), min(left, _ONE_STREAM))
            left -= cost
            yield content


def _inflated(body: bytes, position: int, limit: int) -> tuple[bytes, int]:
    """Return the data compressed at *position*, and its cost in bytes: the larger of input and output."""
    content = bytearray()
    engine = zlib.decompressobj()
    start = position
    while not engine.eof and position < len(body) and max(len(content), position - start) < limit:
        try:
            content += engine.decompress(engine.unconsumed_tail or body[position : position + _CHUNK], limit)
        except zlib.error:
            break
        position += 0 if engine.unconsumed_tail else _CHUNK
    return bytes(content), max(len(content), position - start)


def _string(written: bytes) -> bytes:
    return _ESCAPE.sub(_unescape, written) if b"\\" in written else written


def _unescape(escape: re.Match[bytes]) -> bytes:
    if escape[1]:
        return bytes((int(escape[1], 8) & 0xFF,))
    return b"" if escape[2] else _ESCAPED.get(escape[3], escape[3])


def _from_hex(digits: bytes) -> bytes:
    digits = bytes(digit for digit in digits if digit > 0x20)
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))


def _address(target: bytes) -> str:
    """Decode the bytes by their byte order mark, else as UTF-8 if valid, else as latin-1."""
    if len(target) > _LONGEST:
        return ""
    if target.startswith((b"\xfe\xff", b"\xff\xfe")):
        return target.decode("utf-16", "replace").strip()
    try:
        return target.decode("utf-8").strip()
    except UnicodeDecodeError:
        return target.decode("latin-1").strip()
