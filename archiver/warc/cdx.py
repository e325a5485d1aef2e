"""Lines of the CDX formats before CDXJ: fields in a fixed order, with one space between two. Pure.

The usual eleven fields have the header ` CDX N b a m s k r M S V g`: key, date, URL, media type, status, digest,
redirect, flags, length, offset, file. Ten fields omit the length, nine the flags too. Three more may follow, which
locate the original of a revisit; we ignore them. As in pywb, the number of fields says which ones they are. CDXJ lines
may be mixed with CDX lines.
"""

from typing import NamedTuple

from archiver.warc import cdxj
from archiver.warc.cdxj import IndexEntry

HEADER = b" CDX "
_HEADERS = frozenset(("N b a m s k r V g", "N b a m s k r M V g", "N b a m s k r M S V g"))
_RESOLVED = 3  # fields about the original of a revisit


class _Order(NamedTuple):
    """Positions of the fields that differ between the formats."""

    length: int | None
    offset: int
    filename: int


_ORDERS = {9: _Order(None, 7, 8), 10: _Order(None, 8, 9), 11: _Order(8, 9, 10)}
_ORDERS |= {count + _RESOLVED: order for count, order in _ORDERS.items()}


def parse_line(line: bytes) -> IndexEntry | None:
    """Return the entry in *line*, CDX or CDXJ; None for a header or a damaged line."""
    third = line.find(b" ", line.find(b" ") + 1) + 1
    if line.startswith(b"{", third):
        return cdxj.parse_line(line)
    fields = [field.decode("utf-8", "replace") for field in line.rstrip().split(b" ", max(_ORDERS))]
    order = _ORDERS.get(len(fields))
    if order is None or not _is_number(fields[1]) or not _is_number(fields[order.offset]):
        return None
    size = fields[order.length] if order.length is not None else "-"
    return IndexEntry(
        key=fields[0],
        timestamp=fields[1],
        url=fields[2],
        mime="unk" if fields[3] == "-" else fields[3],
        status=fields[4],
        digest="" if fields[5] == "-" else fields[5],
        length=int(size) if _is_number(size) else 0,
        offset=int(fields[order.offset]),
        filename=fields[order.filename],
    )


def is_known(header: bytes) -> bool:
    """Return True if `parse_line` reads the fields that *header* names."""
    return header.decode("latin-1").removeprefix(HEADER.decode()).strip() in _HEADERS


def has_other_key(entry: IndexEntry) -> bool:
    """Return True if *entry* has a key like `example.org/`, which no lookup finds, in place of `org,example)/`."""
    return entry.url.startswith(("http:", "https:")) and ")" not in entry.key.partition("/")[0]


def with_our_key(line: bytes) -> bytes:
    """Return *line* with the lookup key of its URL if it has another key."""
    entry = parse_line(line)
    if entry is None or not has_other_key(entry):
        return line
    return cdxj.lookup_key(entry.url).encode("utf-8", "replace") + line[line.index(b" ") :]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
