"""A stored response as what a revisit may name: read whole from its place, and only if every byte is what it was.

Reading costs less than storing the payload once more, and naming a record that is damaged would lose a payload.
"""

import re
from pathlib import Path
from typing import NamedTuple

from archiver.archive.stored import record_at
from archiver.errors import ArchiveError
from archiver.http import Digester, content_codings, read_beginning
from archiver.warc.reader import Record, Torn
from archiver.warc.records import parse_date, target_of

_ALGORITHMS = frozenset(("sha1", "sha256"))
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x20\x7f<>]+")  # what may stand in a field
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z")
_ID = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]+>")
_NOT_WHOLE = ("WARC-Truncated", "WARC-Segment-Number")


class Original(NamedTuple):
    """One response record that is sound."""

    url: str
    date: str  # character for character
    record_id: str
    digest: str  # of its payload
    length: int  # of its payload
    status: int
    codings: tuple[str, ...]


def original_at(folder: Path, name: str, offset: int) -> Original | None:
    """The response at *offset* of the WARC *name* in *folder*; None where there is none that is whole and sound."""
    try:
        with record_at(folder, name, offset) as record:
            return _original(record)
    except (ArchiveError, Torn, ValueError, OverflowError):  # of an offset that a foreign index names, too
        return None


def is_target(url: str) -> bool:
    """Whether *url* can stand in a field that names a record."""
    return _URI.fullmatch(url) is not None


def _original(record: Record) -> Original | None:
    url = target_of(record)
    date, record_id = record.first("WARC-Date") or "", record.first("WARC-Record-ID") or ""
    stated = record.first("WARC-Payload-Digest") or ""
    algorithm = stated.partition(":")[0]
    named = is_target(url) and _DATE.fullmatch(date) and _ID.fullmatch(record_id)
    if record.type != "response" or not named or algorithm not in _ALGORITHMS:
        return None
    if any(record.first(name) is not None for name in _NOT_WHOLE):
        return None
    parse_date(date)
    pieces = record.pieces()
    begin, framing = read_beginning(pieces)
    digester = Digester(algorithm, framing)
    digester.feed(begin)
    for piece in pieces:
        digester.feed(piece)
    found = digester.digests()
    if found.payload != stated:
        return None
    codings = content_codings(framing.fields)
    return Original(url, date, record_id, found.payload, found.payload_length, framing.status, codings)
