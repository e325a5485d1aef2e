"""`archiver get`: write a capture's payload, HTTP head or WARC record to stdout or a file, byte for byte."""

import codecs
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO, Literal

import click

from archiver import url
from archiver.cli.directory import check_is_directory, check_shows_captures
from archiver.cli.options import complete_urls, define_command, directory_argument, output_option
from archiver.cli.terminal import complain, say, try_write
from archiver.collection.dates import date_range
from archiver.collection.layout import Layout
from archiver.collection.lookup import Holdings
from archiver.config.seeds import seed
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable
from archiver.model import ExitCode
from archiver.storage import DRAFT, replace_file
from archiver.warc.cdxj import IndexEntry, is_revisit
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record

MAX_TARGET = 2000
_SCHEME = re.compile(r"\s*[a-z][a-z0-9+.-]*://|\s*(?:urn|dns):", re.IGNORECASE)

Part = Literal["payload", "raw", "headers", "record"]


@dataclass(frozen=True, slots=True)
class GetQuery:
    """The arguments of `archiver get`."""

    url: str
    at: str | None
    part: Part | None  # None: the payload
    output: Path | None


def get(directory: Path, query: GetQuery) -> ExitCode:
    """Write the capture that *query* names from the archive *directory*."""
    at = date_range(query.at, "--at") if query.at is not None else None
    address, exact = parse_url(query.url)
    with open_holdings(directory) as holdings, ExitStack() as stack:
        entry = holdings.closest(address, at)
        if entry is None:
            raise ConfigError(_missing(holdings, address))
        if exact and (url.canonical(entry.url) or entry.url) != address:
            say(f"archiver: there is no capture of {address}; printing {entry.url}")
        if sys.stderr.isatty():
            say(f"archiver: {entry.url} as of {iso_timestamp(entry.timestamp)}")
        notes: list[str] = []
        _check_is_here(directory, entry)
        try:
            _write(_pieces(holdings, entry, query.part or "payload", stack, notes), query.output)
        except DamagedRecord as error:
            raise ArchiveError(f"{entry.filename}: {error}") from None
    for note in notes:
        complain(f"{entry.url}: {note}")
    return ExitCode.DONE


def _check_is_here(directory: Path, entry: IndexEntry) -> None:
    """Refuse a capture in a WARC file that only a store has."""
    from archiver.collection.store import StoredFiles

    for file in () if directory.is_file() else StoredFiles(Layout(directory)).absent():
        if file.key == f"archive/{entry.filename}":
            command = f"archiver store fetch {quote(str(directory))} {quote(entry.filename)}"
            raise ConfigError(f"{directory}: {entry.filename} is in a store only; to bring it back: {command}")


def open_holdings(path: Path) -> AbstractContextManager[Holdings]:
    """Open the collection, WACZ package or WARC file at *path*."""
    if path.is_file():
        from archiver.tools.ingest.packages import open_view

        return open_view(path, lambda text: say(f"archiver: {text}"))
    check_shows_captures(path)
    check_is_directory(path)
    return Holdings.open(path)


def iso_timestamp(timestamp: str) -> str:
    """Return the *timestamp* of an index entry in ISO 8601."""
    if len(timestamp) < 14 or not timestamp.isdigit():
        return timestamp
    year, rest = timestamp[:4], [timestamp[at : at + 2] for at in range(4, 14, 2)]
    return f"{year}-{rest[0]}-{rest[1]}T{rest[2]}:{rest[3]}:{rest[4]}Z"


def parse_url(text: str) -> tuple[str, bool]:
    """Return the URL *text* in canonical form, and whether it has a scheme.

    The URI of a record that is not a page, such as `urn:…`, stays as it is.
    """
    if _SCHEME.match(text):
        return url.canonical(text) or text.strip(), True
    return f"https:{seed(text).partition(':')[2]}", False


def _missing(holdings: Holdings, address: str) -> str:
    near = holdings.near(address)
    hint = f"; similar: {' '.join(near)}" if near else ""
    if Layout(holdings.directory).address.exists():
        hint += f"; another machine may hold one: archiver explain {quote(str(holdings.directory))} {quote(address)}"
    return f"{holdings.directory} holds no capture of {address}{hint}"


def _pieces(holdings: Holdings, entry: IndexEntry, part: Part, stack: ExitStack, notes: list[str]) -> Iterator[bytes]:
    from archiver.collection.payload import read_answer

    if part == "record":
        yield from _whole_record(stack.enter_context(holdings.record(entry)))
        return
    if part == "raw":
        if is_revisit(entry):
            notes.append("this is a revisit: it holds the HTTP head; the payload is stored with an earlier capture")
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
            f"{holdings.directory} holds only a revisit of {entry.url}; the capture with its payload is in another "
            "collection"
        )
    answer = read_answer(stack.enter_context(holdings.record(original)))
    decoded, empty = answer.decoded(), True
    for piece in decoded:
        empty = empty and not piece
        yield piece
    notes += decoded.notes
    if empty and (target := answer.framing.first("location")):
        notes.append(f"the payload is empty; redirects to {printable(target, MAX_TARGET)}")
    if answer.truncated:
        notes.append(f"truncated during the crawl ({answer.truncated})")


def _whole_record(record: Record) -> Iterator[bytes]:
    yield record.header
    yield from record.pieces()
    yield b"\r\n\r\n"


def _write(pieces: Iterable[bytes], output: Path | None) -> None:
    """Write *pieces* to *output*, or to stdout until the reader closes it."""
    if output is not None and str(output) != "-":
        if output.is_dir():
            raise ConfigError(f"-o {output} is a directory; give the name of a file")
        try:
            replace_file(output, lambda file: file.writelines(pieces))
        finally:
            output.with_name(output.name + DRAFT).unlink(missing_ok=True)
        return
    stream: BinaryIO = sys.stdout.buffer
    for piece in _without_controls(pieces) if sys.stdout.isatty() else pieces:
        if not try_write(stream.write, piece):
            return
    try_write(stream.flush)


def _without_controls(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield *pieces* as text without control characters, which a terminal might obey."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in chain(pieces, (b"",)):
        text = decoder.decode(piece, not piece).replace("\r\n", "\n")
        yield "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text).encode()


def _run(directory: Path, **chosen: Any) -> int:
    return get(directory, GetQuery(**chosen))


COMMAND = define_command(
    "get",
    _run,
    """Print a capture.

    Prints what the server sent for URL, without chunked and content coding, as a browser sees it: the newest capture,
    or the one closest to --at. If there is no capture of URL itself, the one with http for https or with www is
    printed. Changes nothing; works while the crawl runs. DIR is any pywb collection, or a WACZ or WARC file.
    """,
    [
        directory_argument(),
        click.Argument(["url"], metavar="URL", shell_complete=complete_urls),
        click.Option(
            ["--at"],
            metavar="DATE",
            help="Print the capture closest to DATE, in UTC: 2026, 20261121103000, 2026-11-21, 2026-11-21T10:30Z.",
        ),
        click.Option(["--raw", "part"], flag_value="raw", help="Print the stored response: HTTP head and body."),
        click.Option(["--headers", "part"], flag_value="headers", help="Print only the status line and headers."),
        click.Option(["--record", "part"], flag_value="record", help="Print the whole WARC record, uncompressed."),
        output_option("FILE", "Write to FILE, which appears when it is complete. Default: stdout."),
    ],
    ("archiver get collections/example.org https://example.org/ -o page.html", "save the newest capture of a page"),
    ("archiver get collections/example.org example.org/a.pdf --at 2026-11 -o a.pdf", "save it as it was in that month"),
    ("archiver get collections/example.org https://example.org/ --headers", "print the headers of the response"),
)
