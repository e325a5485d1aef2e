"""The WARC files in `archive/`, and single records of them, at places that an index or the database names.

A revisit may refer only to a response that was just read whole and whose bytes match its digest. Reading it costs less
than storing the payload again, and a reference to a damaged record would lose the payload.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePath
from typing import BinaryIO, NamedTuple

from archiver.collection.layout import Layout
from archiver.errors import ArchiveError
from archiver.http import Digester, content_codings, read_beginning
from archiver.model import Framing, Links, Profile, Revisit
from archiver.storage import OPEN, is_bare, open_file, storage
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, read_records
from archiver.warc.records import ACCEPT_LANGUAGE, VisitMetadata, parse_date, target_of

WARC_ENDINGS = (".warc", ".warc.gz")
DEEPEST = 8  # levels of folders in an archive
ARCHIVE_ENDINGS = (".wacz", ".arc", ".arc.gz", ".warc.zst", *WARC_ENDINGS)  # of files that can be imported


def warc_files(layout: Layout) -> list[Path]:
    """Return all WARC files of a collection by name, open and imported ones too; none if it has no archive."""
    if not layout.archive.is_dir():
        return []
    with storage(layout.archive):
        return sorted(path for path in layout.archive.iterdir() if is_warc(path.name) and path.is_file())


def maybe_ours(layout: Layout) -> list[Path]:
    """Return the WARC files that this program may have written; it compresses all of its own."""
    return [path for path in warc_files(layout) if path.name.removesuffix(OPEN).endswith(".gz")]


@contextmanager
def record_at(folder: Path, name: str, offset: int) -> Iterator[Record]:
    """Give the record at *offset* of the WARC *name* in *folder*, whether the file has its final name or not.

    Read its block inside the context. Raises `ArchiveError` if there is no such file or no record begins there;
    reading a damaged block raises `DamagedRecord`.
    """
    path, found = open_warc(folder, name)
    with storage(path), found as file:
        try:
            record = next(read_records(file, offset), None)
        except DamagedRecord as torn:
            raise ArchiveError(f"{path}: {torn}") from None
        if record is None:
            raise ArchiveError(f"{path}: it ends before offset {offset}, where a record should begin")
        yield record


def open_warc(folder: Path, name: str) -> tuple[Path, BinaryIO]:
    """Open the WARC *name* in *folder*, whether it has its final name or not; raises `ArchiveError`."""
    name = name.removesuffix(OPEN)
    for path in _names(folder, name):
        with storage(path), suppress(FileNotFoundError):
            return path, open_file(path)
    raise ArchiveError(f"{folder / name} is missing")


def is_stored(folder: Path, name: str) -> bool:
    """Return True if there is a WARC *name* in *folder*, whether it has its final name or not."""
    name = name.removesuffix(OPEN)
    return bool(name) and any(path.is_file() for path in _names(folder, name))


@lru_cache(maxsize=64)  # an export asks for each record
def is_below(name: str) -> bool:
    """Return True if *name* is a path to a file in a folder or below it."""
    path = PurePath(name)
    outside = path.is_absolute() or path.drive or ".." in path.parts
    return not outside and 0 < len(path.parts) <= DEEPEST and all(is_bare(part) for part in path.parts)


def _names(folder: Path, name: str) -> tuple[Path, ...]:
    """Return the paths to try, in order; the file may get its final name at this moment.

    Names come from indexes and databases. One that leads out of *folder* has no paths.
    """
    if not is_below(name):
        return ()
    return folder / name, folder / (name + OPEN), folder / name


def is_warc(name: str) -> bool:
    """Return True if *name* is that of a WARC file, finished or not."""
    return name.removesuffix(OPEN).endswith(WARC_ENDINGS)


LARGEST_METADATA = 8 << 20  # bytes of a metadata record

_ALGORITHMS = frozenset(("sha1", "sha256"))
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x20\x7f<>]+")  # safe in a record header
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z")
_ID = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]+>")
_CHUNK_SIZE = re.compile(rb"\s*[0-9A-Fa-f]+\s*(?:;[^\n]*)?\n")  # readers take this for the beginning of a chunk
_NO_ORIGINAL = ("WARC-Truncated", "WARC-Segment-Number", ACCEPT_LANGUAGE)  # pywb would not find one of a variant


class RevisitOriginal(NamedTuple):
    """An undamaged response record."""

    url: str
    date: str  # character for character
    record_id: str
    digest: str  # of its payload
    length: int  # of its payload
    framing: Framing
    like_chunks: bool  # not chunked, but a reader that expects chunks would find some
    plain: bool  # well-formed, with no bytes after the payload, so every reader finds the same payload


def original_at(folder: Path, name: str, offset: int) -> RevisitOriginal | None:
    """Return the response at *offset* of the WARC *name* in *folder*; None if it is missing, cut or damaged."""
    try:
        with record_at(folder, name, offset) as record:
            return _original(record)
    except (ArchiveError, DamagedRecord, ValueError, OverflowError):  # another archive's index may name any offset
        return None


def links_at(folder: Path, name: str, offset: int) -> Links | None:
    """Return the links that are stored for the response at *offset* of the WARC *name*.

    None if there is no metadata record, or if it refers to the links of another response.
    """
    with suppress(ArchiveError, OSError, DamagedRecord, ValueError, OverflowError), open_warc(folder, name)[1] as file:
        response, *others = islice(read_records(file, offset), 3)  # request and metadata follow immediately
        for record in others:
            named = record.first("WARC-Concurrent-To") == response.first("WARC-Record-ID")
            if named and record.type == "metadata" and (record.size or 0) <= LARGEST_METADATA:
                notes = VisitMetadata.parse(b"".join(record.pieces()))
                return notes.links if notes.links_of is None else None
    return None


def codings(framing: Framing) -> tuple[str, ...]:
    """Return the codings of the body that the head names: content codings and chunked.

    Replay joins the head of a revisit to the stored body. pywb decodes chunks only if that head names them, and passes
    on a body that is not chunked even if the head says so.
    """
    content = content_codings(framing.fields)
    return (*content, "chunked") if framing.chunked else content


def revisit_of(original: RevisitOriginal, profile: Profile = Profile.IDENTICAL) -> Revisit:
    """Return the reference for a revisit that has the payload of *original*."""
    return Revisit(profile, original.url, original.date, original.record_id, original.digest, original.length)


def is_target(url: str) -> bool:
    """Return True if *url* is safe in a header that refers to a record."""
    return _URI.fullmatch(url) is not None


def _original(record: Record) -> RevisitOriginal | None:
    url = target_of(record)
    date, record_id = record.first("WARC-Date") or "", record.first("WARC-Record-ID") or ""
    stated = record.first("WARC-Payload-Digest") or ""
    algorithm = stated.partition(":")[0]
    named = is_target(url) and _DATE.fullmatch(date) and _ID.fullmatch(record_id)
    if record.type != "response" or not named or algorithm not in _ALGORITHMS:
        return None
    if any(record.first(name) is not None for name in _NO_ORIGINAL):
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
    return RevisitOriginal(
        url,
        date,
        record_id,
        found.payload,
        found.payload_length,
        framing,
        like_chunks,
        plain=not (framing.faults or digester.irregular),
    )
