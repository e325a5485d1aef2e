"""By which character set text is to be read: the rules of the Encoding, HTML, XML and CSS standards.

A byte order mark goes before the header, the header before what the document says of itself. Names are
those of the Encoding standard; labels that it does not know are as good as none. Never raises.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import webencodings

from archiver.extract import legacy

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_BEGIN_MARKS = frozenset(mark[:1] for mark, _ in _MARKS)
_PRESCAN = 1024  # bytes in which the HTML standard looks for a meta element before it parses
_LATE = 1 << 16  # a later one makes a browser start again; how far we go for it
_PIECE = 1 << 16
_S = rb"[\t\n\f\r ]"
_TAG = re.compile(rb"(<!--)|<(meta)(?=[\t\n\f\r /])|</?[a-z][^\t\n\f\r >]*+|(<[!/?])", re.IGNORECASE)
_NAME = re.compile(rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)" + _S + rb"*+(=?)" + _S + rb"*+")
_VALUE = re.compile(rb"\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)(?=[\t\n\f\r >])|(?=>)")
_IN_CONTENT = re.compile(
    rb"charset" + _S + rb"*+=" + _S + rb"*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\"'\t\n\f\r ;][^\t\n\f\r ;]*+))",
    re.IGNORECASE,
)
_AT_ONCE = re.compile(  # a plain meta element, and nothing before it but what nearly all pages begin with
    _S
    + rb"*+(?:<!doctype[^<>]*+>"
    + _S
    + rb"*+)?+(?:<html(?:"
    + _S
    + rb"++[a-z:-]++=\"[^\"<>]*+\")*+>"
    + _S
    + rb"*+)?+"
    rb"(?:<head>" + _S + rb"*+)?+<meta" + _S + rb"++charset=\"([a-z0-9-]++)\"" + _S + rb"*+/?+>",
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(?:\"([^\"<>]*)\"|'([^'<>]*)')")
_CSS_CHARSET = re.compile(rb'@charset "([\x00-\x21\x23-\x7f]*)";')


def named(label: str | None) -> str | None:
    """The standard's name of the encoding that *label* means; None where it means none."""
    return _named(label) if label and len(label) < 64 else None


@lru_cache(maxsize=256)
def _named(label: str) -> str | None:
    found = webencodings.lookup(label)
    return str(found.name) if found else None


def text(body: bytes, encoding: str) -> str:
    """*body* as text without its byte order mark; what cannot be read becomes U+FFFD."""
    if body[:1] in _BEGIN_MARKS:
        for mark, name in _MARKS:
            if body.startswith(mark) and name == encoding:
                body = body[len(mark) :]
    if encoding in ("utf-8", "replacement"):
        return body.decode("utf-8", "replace")
    return legacy.decoded(body, encoding)


def pieces(body: bytes, encoding: str, most: int) -> Iterator[str]:
    """As `text`, of the first *most* bytes, and a piece at a time."""
    reader = legacy.reader(body, encoding)
    start = next((len(mark) for mark, name in _MARKS if body.startswith(mark) and name == encoding), 0)
    end = min(len(body), most)
    for position in range(start, end, _PIECE):
        yield reader(body[position : min(position + _PIECE, end)], False)
    yield reader(b"", True)


def encoded(run: str, encoding: str) -> bytes:
    """*run* in *encoding*, a name of the standard; UnicodeEncodeError where it has no such character."""
    return legacy.encoded(run, encoding)


def of_html(body: bytes, header: str | None) -> str:
    """The encoding of an HTML document; windows-1252 where nothing says."""
    return marked(body) or named(header) or _from_meta(body) or _from_xml(body) or "windows-1252"


def of_xml(body: bytes, header: str | None) -> str:
    """The encoding of an XML document; UTF-8 where nothing says."""
    return marked(body) or named(header) or _from_xml(body) or "utf-8"


def of_css(body: bytes, header: str | None, document: str | None = None) -> str:
    """The encoding of a style sheet; that of the *document* which names it, else UTF-8, where nothing says."""
    own = _CSS_CHARSET.match(body, 0, _PRESCAN)
    label = _ascii(named(own[1].decode("ascii"))) if own else None
    return marked(body) or named(header) or label or named(document) or "utf-8"


def of_text(body: bytes, header: str | None) -> str:
    """The encoding of plain text; UTF-8 where nothing says."""
    return marked(body) or named(header) or "utf-8"


def marked(body: bytes) -> str | None:
    """The encoding that a byte order mark tells."""
    if body[:1] not in _BEGIN_MARKS:
        return None
    return next((name for mark, name in _MARKS if body.startswith(mark)), None)


def _ascii(name: str | None) -> str | None:
    """What can be read byte by byte up to here is not UTF-16, whatever it says of itself."""
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _from_xml(body: bytes) -> str | None:
    if body.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if body.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    found = _XML_DECLARATION.match(body, 0, _PRESCAN)
    return _ascii(named((found[1] or found[2] or b"").decode("latin-1"))) if found else None


def _from_meta(body: bytes) -> str | None:
    """The HTML standard's prescan, and where it finds nothing, the same for a meta element that comes late."""
    early = _AT_ONCE.match(body, 0, _PRESCAN)
    if early and (found := _ascii(named(early[1].decode("ascii")))):
        return found
    for head in (body[:_PRESCAN], body[:_LATE]):
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
    """The attributes of the tag whose name ends at *position*, each once, and where they end; none in a torn tag."""
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
    """What a meta element says: its charset, or the one in its content if that stands for Content-Type."""
    if b"charset" in attributes:
        label = attributes[b"charset"]
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        found = _IN_CONTENT.search(attributes.get(b"content", b""))
        label = (found[1] or found[2] or found[3] or b"") if found else b""
    else:
        return None
    return _ascii(named(label.decode("latin-1")))
