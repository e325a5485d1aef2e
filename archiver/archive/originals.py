"""A stored response as what a revisit may name: read whole from its place, and only if every byte is what it was.

Reading costs less than storing the payload once more, and naming a record that is damaged would lose a payload.
"""

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from archiver.archive.stored import opened, record_at
from archiver.errors import ArchiveError
from archiver.http import Digester, content_codings, read_beginning
from archiver.model import Framing, Links, Profile, Revisit
from archiver.warc.reader import Record, Torn, read
from archiver.warc.records import VisitNotes, parse_date, target_of

LONGEST_NOTES = 8 << 20  # bytes of a metadata record

_ALGORITHMS = frozenset(("sha1", "sha256"))
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x20\x7f<>]+")  # what may stand in a field
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z")
_ID = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]+>")
_CHUNK_SIZE = re.compile(rb"\s*[0-9A-Fa-f]+\s*(?:;[^\n]*)?\n")  # what readers take for the beginning of a chunk
_NOT_WHOLE = ("WARC-Truncated", "WARC-Segment-Number")


class Original(NamedTuple):
    """One response record that is sound."""

    url: str
    date: str  # character for character
    record_id: str
    digest: str  # of its payload
    length: int  # of its payload
    framing: Framing
    like_chunks: bool  # not chunked, but a reader that is told so would believe it
    plain: bool  # well-formed, with nothing behind the payload: no reader finds another payload in it


def original_at(folder: Path, name: str, offset: int) -> Original | None:
    """The response at *offset* of the WARC *name* in *folder*; None where there is none that is whole and sound."""
    try:
        with record_at(folder, name, offset) as record:
            return _original(record)
    except (ArchiveError, Torn, ValueError, OverflowError):  # of an offset that a foreign index names, too
        return None


def links_at(folder: Path, name: str, offset: int) -> Links | None:
    """Return what the metadata record says that the response at *offset* of the WARC *name* links to; None without one.

    Its links stand there themselves: they are not those of another response.
    """
    with suppress(ArchiveError, OSError, Torn, ValueError, OverflowError), opened(folder, name)[1] as file:
        response, *others = islice(read(file, offset), 3)  # with request and metadata, which follow at once
        for record in others:
            named = record.first("WARC-Concurrent-To") == response.first("WARC-Record-ID")
            if named and record.type == "metadata" and (record.size or 0) <= LONGEST_NOTES:
                notes = VisitNotes.read(b"".join(record.pieces()))
                return notes.links if notes.links_of is None else None
    return None


def codings(framing: Framing) -> tuple[str, ...]:
    """How the head says that the body is coded: its content codings, and chunked.

    Replay joins the head of a revisit to the stored body: pywb undoes chunks only where that head names them, and
    lets a body pass that is not chunked though the head says so.
    """
    content = content_codings(framing.fields)
    return (*content, "chunked") if framing.chunked else content


def revisit_of(original: Original, profile: Profile = Profile.IDENTICAL) -> Revisit:
    """What a record says that stands for the payload of *original*."""
    return Revisit(profile, original.url, original.date, original.record_id, original.digest, original.length)


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
    like_chunks = not framing.chunked and _CHUNK_SIZE.match(begin, framing.head_length) is not None
    digester = Digester(algorithm, framing)
    digester.feed(begin)
    for piece in pieces:
        digester.feed(piece)
    found = digester.digests()
    if found.payload != stated:
        return None
    return Original(
        url,
        date,
        record_id,
        found.payload,
        found.payload_length,
        framing,
        like_chunks,
        plain=not (framing.faults or digester.irregular),
    )
