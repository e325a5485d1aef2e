"""`archiver get`: a capture's payload, its head or its record, to stdout or into a file, byte for byte."""

import codecs
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal

from archiver import url
from archiver.cli import directory as place
from archiver.cli.terminal import complain, say, written
from archiver.collection.dates import date_range
from archiver.collection.lookup import Holdings
from archiver.collection.payload import read_answer
from archiver.config.seeds import seed
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable
from archiver.model import ExitCode
from archiver.storage import DRAFT, replace_file
from archiver.warc.cdxj import IndexEntry, is_revisit
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record

LONGEST_TARGET = 2000
_SCHEME = re.compile(r"\s*[a-z][a-z0-9+.-]*://|\s*(?:urn|dns):", re.IGNORECASE)

Part = Literal["payload", "raw", "headers", "record"]


@dataclass(frozen=True, slots=True)
class GetQuery:
    """Which part of which capture, and where to."""

    address: str
    at: str | None
    part: Part
    output: Path | None


def get(directory: Path, wish: GetQuery) -> ExitCode:
    """Print what *wish* names from the collection in *directory*."""
    at = date_range(wish.at, "--at") if wish.at is not None else None
    address, exact = spelled(wish.address)
    with open_holdings(directory) as holdings, ExitStack() as stack:
        entry = holdings.closest(address, at)
        if entry is None:
            raise ConfigError(_missing(holdings, address))
        if exact and (url.canonical(entry.url) or entry.url) != address:
            say(f"archiver: {address} is not held, but {entry.url} is, and is printed")
        if sys.stderr.isatty():
            say(f"archiver: {entry.url} as of {readable(entry.timestamp)}")
        notes: list[str] = []
        try:
            _write(_pieces(holdings, entry, wish.part, stack, notes), wish.output)
        except DamagedRecord as torn:
            raise ArchiveError(f"{entry.filename}: {torn}") from None
    for note in notes:
        complain(f"{entry.url}: {note}")
    return ExitCode.DONE


def open_holdings(path: Path) -> AbstractContextManager[Holdings]:
    """What *path* holds: a collection, a package, or a WARC file."""
    if path.is_file():
        from archiver.tools.ingest.view import viewed  # noqa: PLC0415 - most read a directory

        return viewed(path, lambda text: say(f"archiver: {text}"))
    place.check_is_directory(path)
    return Holdings.opened(path)


def readable(timestamp: str) -> str:
    """A *timestamp* of an index as people and programs read it."""
    if len(timestamp) < 14 or not timestamp.isdigit():
        return timestamp
    year, rest = timestamp[:4], [timestamp[at : at + 2] for at in range(4, 14, 2)]
    return f"{year}-{rest[0]}-{rest[1]}T{rest[2]}:{rest[3]}:{rest[4]}Z"


def spelled(text: str) -> tuple[str, bool]:
    """The URL that *text* means, in its one spelling, and whether it says its scheme.

    That of a record which is no page, as `urn:…`, stays as it is.
    """
    if _SCHEME.match(text):
        return url.canonical(text) or text.strip(), True
    return f"https:{seed(text).partition(':')[2]}", False


def _missing(holdings: Holdings, address: str) -> str:
    near = holdings.near(address)
    hint = f"; near it: {' '.join(near)}" if near else ""
    return f"{holdings.directory} holds no capture of {address}{hint}"


def _pieces(holdings: Holdings, entry: IndexEntry, part: Part, stack: ExitStack, notes: list[str]) -> Iterator[bytes]:
    if part == "record":
        yield from _whole(stack.enter_context(holdings.record(entry)))
        return
    if part == "raw":
        if is_revisit(entry):
            notes.append("it is a revisit: its head is stored with it, its payload lies with an earlier capture")
        yield from stack.enter_context(holdings.record(entry)).pieces()
        return
    if part == "headers":
        head = read_answer(stack.enter_context(holdings.record(entry))).head
        original = None if head else holdings.original(entry)
        yield read_answer(stack.enter_context(holdings.record(original))).head if original else head
        return
    original = holdings.original(entry)
    if original is None:
        raise ArchiveError(
            f"{holdings.directory} holds {entry.url} as a revisit only, and not the capture that has its payload; "
            "it lies in another collection"
        )
    answer = read_answer(stack.enter_context(holdings.record(original)))
    decoded, empty = answer.decoded(), True
    for piece in decoded:
        empty = empty and not piece
        yield piece
    notes += decoded.notes
    if empty and (target := answer.framing.first("location")):
        notes.append(f"it has no payload; it redirects to {printable(target, LONGEST_TARGET)}")
    if answer.truncated:
        notes.append(f"it was cut when it was captured ({answer.truncated})")


def _whole(record: Record) -> Iterator[bytes]:
    yield record.header
    yield from record.pieces()
    yield b"\r\n\r\n"


def _write(pieces: Iterable[bytes], output: Path | None) -> None:
    """Write *pieces* to *output*, or to stdout until nobody reads any more."""
    if output is not None and str(output) != "-":
        if output.is_dir():
            raise ConfigError(f"{output} is a directory; name a file with -o")
        try:
            replace_file(output, lambda file: file.writelines(pieces))
        finally:
            output.with_name(output.name + DRAFT).unlink(missing_ok=True)
        return
    stream: BinaryIO = sys.stdout.buffer
    for piece in _harmless(pieces) if sys.stdout.isatty() else pieces:
        if not written(stream.write, piece):
            return
    written(stream.flush)


def _harmless(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Text for a terminal, with nothing in it that the terminal would obey."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in chain(pieces, (b"",)):
        text = decoder.decode(piece, not piece).replace("\r\n", "\n")
        yield "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text).encode()
