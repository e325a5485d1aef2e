"""Links in office files and e-books: ZIP archives of XML, as Office Open XML, OpenDocument and EPUB define them.

Only absolute http(s) addresses lead out of such a file: the targets of relationships (ECMA-376 part 2 §6.5.3), fields
named HYPERLINK (part 1 §17.16.5.25), `xlink:href` (OpenDocument 1.3 part 3), and `href` and `src` in pages of a book
(EPUB 3.3). Names of namespaces stand in other attributes. The files before Office 2007 are not read. Decompression is
bounded.
"""

import html
import io
import re
import zipfile
import zlib
from collections.abc import Iterator

from archiver.config.expressions import compiled
from archiver.extract.document import Document
from archiver.extract.references import LinkCollector
from archiver.model import Hop, Links

MOST_UNPACKED = 64 << 20  # bytes of all members
MOST_MEMBERS = 5000  # that are read
_PARTS = (".rels", ".xml", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".svg")
_TARGET = compiled(
    rb"(?<![\w:.-])(?P<name>Target|(?:xlink:)?href|src)\s*+=\s*+(?:\"(?P<double>https?://[^\"<]*+)\"|'(?P<single>https?://[^'<]*+)')"
    rb"|\bHYPERLINK\s++(?:\"|&quot;)(?P<field>https?://[^\"<&\s]*+(?:&amp;[^\"<&\s]*+)*+)",
    re.IGNORECASE,
)
_LONGEST = 1 << 14  # bytes of an address
_PROBLEMS = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, ValueError, EOFError, OSError)


def read_office(document: Document) -> Links:
    """Return the addresses in the web that the file names. A broken file has those before the fault, and a note."""
    found = LinkCollector()
    note = ""
    try:
        with zipfile.ZipFile(io.BytesIO(document.body)) as archive:
            left = MOST_UNPACKED
            for number, member in enumerate(_parts(archive)):
                content = _content(archive, member, left) if number < MOST_MEMBERS and left > 0 else None
                if content is None:
                    note = note or "not all parts were read"
                    continue
                left -= len(content)
                _search(content, found)
    except _PROBLEMS:
        note = "a broken or encrypted ZIP archive: its links were not read"
    return found.links(document.url, "utf-8", note)


def _parts(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    return (member for member in archive.infolist() if member.filename.lower().endswith(_PARTS))


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes | None:
    """Return the content of *member*; None if it is longer than *most* or cannot be read."""
    try:
        with archive.open(member) as file:
            content = file.read(most + 1)
    except _PROBLEMS:
        return None
    return content if len(content) <= most else None


def _search(content: bytes, found: LinkCollector) -> None:
    for match in _TARGET.finditer(content):
        address = match["double"] or match["single"] or match["field"]
        if len(address) <= _LONGEST:
            name = "HYPERLINK" if match["name"] is None else match["name"].decode().lower()
            found.add(html.unescape(address.decode("utf-8", "replace")).strip(), Hop.LINK, name)
