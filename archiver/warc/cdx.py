"""Index lines as they were before CDXJ: fields in a fixed order, one blank between two. Pure.

` CDX N b a m s k r M S V g` is the header of the usual eleven: key, date, URL, media type, status, digest, redirect,
flags, length, offset, file. Ten have no length, nine no flags either; three more, which tell where the original of a
revisit lies, are left alone. How many there are says which they are, as in pywb. CDXJ lines may stand among them.
"""

from typing import NamedTuple

from archiver.warc import cdxj
from archiver.warc.cdxj import IndexEntry

HEADER = b" CDX "
_HEADERS = frozenset(("N b a m s k r V g", "N b a m s k r M V g", "N b a m s k r M S V g"))
_RESOLVED = 3  # fields about the original of a revisit


class _Order(NamedTuple):
    """Where the fields stand that are not at the same place in every kind."""

    length: int | None
    offset: int
    filename: int


_ORDERS = {9: _Order(None, 7, 8), 10: _Order(None, 8, 9), 11: _Order(8, 9, 10)}
_ORDERS |= {count + _RESOLVED: order for count, order in _ORDERS.items()}


def parse_line(line: bytes) -> IndexEntry | None:
    """The entry in *line*, which is one of CDX or of CDXJ; None where it is none: a header line, or damaged."""
    third = line.find(b" ", line.find(b" ") + 1) + 1
    if line.startswith(b"{", third):
        return cdxj.parse_line(line)
    every = [field.decode("utf-8", "replace") for field in line.rstrip().split(b" ", max(_ORDERS))]
    order = _ORDERS.get(len(every))
    if order is None or not _is_number(every[1]) or not _is_number(every[order.offset]):
        return None
    size = every[order.length] if order.length is not None else "-"
    return IndexEntry(
        key=every[0],
        timestamp=every[1],
        url=every[2],
        mime="unk" if every[3] == "-" else every[3],
        status=every[4],
        digest="" if every[5] == "-" else every[5],
        length=int(size) if _is_number(size) else 0,
        offset=int(every[order.offset]),
        filename=every[order.filename],
    )


def is_known(header: bytes) -> bool:
    """Whether the fields that *header* names stand where `parse_line` looks for them."""
    return header.decode("latin-1").removeprefix(HEADER.decode()).strip() in _HEADERS


def is_keyed_otherwise(entry: IndexEntry) -> bool:
    """Whether the key of *entry* is none that is looked up here: `example.org/` in place of `org,example)/`."""
    return entry.url.startswith(("http:", "https:")) and ")" not in entry.key.partition("/")[0]


def keyed(line: bytes) -> bytes:
    """*line* with the key that its URL has here; as it stands where it has none."""
    entry = parse_line(line)
    if entry is None or not is_keyed_otherwise(entry):
        return line
    return cdxj.lookup_key(entry.url).encode("utf-8", "replace") + line[line.index(b" ") :]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
