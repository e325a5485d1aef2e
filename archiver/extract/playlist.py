"""What playlists name: HLS (RFC 8216 and its second edition), M3U, PLS, RAM and the lists of Windows Media.

HLS is what a browser plays a video from, so all that it names is a requisite: variants, renditions, segments,
keys, maps. Of a live stream these are the segments that are there now. A hint at a part that is still to come
and a server for programs name nothing to fetch. What the older lists name is a requisite where the list was
one itself (a page plays it), else a link.
"""

import re
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, urlsplit

from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.found import Found
from archiver.extract.text import lines
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20
_ATTRIBUTE = re.compile(r"\s*+([A-Z0-9-]++)\s*+=\s*+(?:\"([^\"\r\n]*+)\"?|([^,\"\s]*+))[^,\"]*+,?+")
_ADDRESSES = frozenset(("URI", "X-ASSET-URI", "X-ASSET-LIST"))
_NOT_FETCHED = frozenset(("EXT-X-PRELOAD-HINT", "EXT-X-CONTENT-STEERING"))
_VARIABLE = re.compile(r"\{\$([a-zA-Z0-9_-]++)\}")
_FILE = re.compile(r"\s*+(?:file|ref)\d{1,9}\s*+=\s*+(\S.*+)", re.IGNORECASE | re.DOTALL)
_MOST_VARIABLES = 1000
_LONGEST = 1 << 14  # characters of an address, its variables replaced


def read(document: Document) -> Links:
    """The media and the further lists that the playlist names."""
    encoding = charset.of_text(document.body, document.charset)
    written = [line.strip() for line in lines(charset.pieces(document.body, encoding, MOST_BYTES))]
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    found = Found()
    if any(line.startswith("#EXT-X-") for line in written):
        for reference, context in _streamed(written, document.url):
            found.add(reference, Hop.REQUISITE, context)
    else:
        hop = Hop.REQUISITE if document.hop is Hop.REQUISITE else Hop.LINK
        ini = any(line.startswith("[") for line in written[:10])
        for reference in _named_by_number(written) if ini else _one_a_line(written):
            found.add(reference, hop, "playlist")
    return found.links(document.url, encoding, note, queries="utf-8")


def _streamed(written: list[str], address: str) -> Iterator[tuple[str, str]]:
    """The references of an HLS playlist, and the tags they stand in."""
    variables: dict[str, str] = {}

    def replaced(value: str) -> str:
        return _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), value)[:_LONGEST] if "{$" in value else value

    for line in written:
        if not line.startswith("#"):
            if line:
                yield replaced(line), "playlist"
            continue
        name, _, rest = line[1:].partition(":")
        if not name.startswith("EXT-X-") or name in _NOT_FETCHED:
            continue
        attributes = [(key, quoted or bare) for key, quoted, bare in _ATTRIBUTE.findall(rest)]
        if name == "EXT-X-DEFINE" and len(variables) < _MOST_VARIABLES:
            variables |= _defined(dict(attributes), replaced, address)
        for key, value in attributes:
            if key in _ADDRESSES:
                yield replaced(value), name


def _defined(attributes: dict[str, str], replaced: Callable[[str], str], address: str) -> dict[str, str]:
    if "QUERYPARAM" in attributes:
        given = dict(parse_qsl(urlsplit(address).query, max_num_fields=None))
        wanted = attributes["QUERYPARAM"]
        return {wanted: given[wanted]} if wanted in given else {}
    return {attributes["NAME"]: replaced(attributes.get("VALUE", ""))} if attributes.get("NAME") else {}


def _one_a_line(written: list[str]) -> Iterator[str]:
    """M3U and RAM."""
    for line in written:
        if line.lower() == "--stop--":  # RealPlayer reads no further
            return
        if not line.startswith(("#", "<")):
            yield line


def _named_by_number(written: list[str]) -> Iterator[str]:
    """PLS, and the references of Windows Media: `File1=…`, `Ref1=…`."""
    for line in written:
        named = _FILE.fullmatch(line)
        if named:
            yield named[1]
