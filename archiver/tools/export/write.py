"""Write the files of a plan into a folder: rewrite the documents with references, copy all others.

The start page with links to the others is written last, so if it exists, all files do. Nothing is written outside the
folder.

An interrupted export can be repeated. Until the end the folder has a marker folder `.archiver-export` with a lock, the
file being written, and a journal. The digest of each file is in the journal before the file gets its name.
Unchanged files of the journal may be replaced or removed; all others stay as they are. Each file appears as a whole. At
the end everything is synced, and the marker folder is removed.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

from archiver.collection.lock import Lock
from archiver.collection.lookup import Holdings
from archiver.collection.payload import StoredResponse, read_answer
from archiver.errors import ArchiveError, ConfigError
from archiver.extract import Document, page_title
from archiver.extract.document import SNIFFED, kind_of
from archiver.extract.exchange import charset
from archiver.http import beginning
from archiver.http.content_coding import BOMB, Decoder, DecoderLimits, most_output
from archiver.model import Hop
from archiver.storage import sha256_of, storage
from archiver.tools.export.document import is_rewritten, rewrite_document
from archiver.tools.export.plan import ExportPlan, PlannedFile
from archiver.tools.export.rewrite_links import ExportedPage, ExportedSite
from archiver.tools.export.start_page import start_pages
from archiver.warc.members import DamagedRecord

MARKER = ".archiver-export"

_LINE = re.compile(rb"([0-9a-f]{64}) ([^\n]{1,4000})\n")
_LONGEST = 8192  # bytes of a line


def is_unfinished(folder: Path) -> bool:
    """Return whether an export to *folder* was started but not finished."""
    return (folder / MARKER).is_dir() and not (folder / MARKER).is_symlink()


class ExportFolder:
    """The folder during the export; use it with `with`. An unfinished export can be repeated."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marker = folder / MARKER
        self._draft = self._marker / "draft"
        self._written: set[str] = set()
        self._ready: set[str] = set()  # folders that lie inside and exist
        with storage(self._marker):
            self._marker.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._marker / "lock")
        try:
            self._inside = folder.resolve()
            self._earlier, cut = self._read()  # files in the journal, and whether its last line is incomplete
            with storage(self._marker):
                self._journal = (self._marker / "journal").open("ab")
            if cut:
                self._note(b"\n")
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def write(self, path: str, pieces: Iterable[bytes]) -> int:
        """Write *pieces* to *path*, with `/` between its parts, and return their size."""
        target = self._folder.joinpath(*path.split("/"))
        state = hashlib.sha256()
        size = 0
        with storage(target):
            with self._draft.open("wb") as output:
                for piece in pieces:
                    output.write(piece)
                    state.update(piece)
                    size += len(piece)
            digest = state.hexdigest()
            self._written.add(path)
            self._prepare(path.rpartition("/")[0], target)
            if self._has(target, path, digest):
                return size
            self._note(f"{digest} {path}\n".encode())
            self._draft.replace(target)
        return size

    def finish(self) -> None:
        """Remove files of an earlier export that are not in this one, and the marker; then everything is on disk."""
        for path, digests in self._earlier.items():
            if path not in self._written:
                self._remove(path, digests)
        with storage(self._folder):
            if hasattr(os, "sync"):  # one call; syncing each file would cost more than writing it
                os.sync()
            self._close()
            for name in ("draft", "journal", "lock"):
                (self._marker / name).unlink(missing_ok=True)
            self._marker.rmdir()  # last, because the export is unfinished until then

    def _prepare(self, folder: str, target: Path) -> None:
        """Create the *folder* of *target*. Raises `ConfigError` if it lies outside."""
        if folder not in self._ready:
            if not target.parent.resolve().is_relative_to(self._inside):
                raise ConfigError(f"{target.parent} leads out of {self._folder}; choose another folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            self._ready.add(folder)

    def _has(self, target: Path, path: str, digest: str) -> bool:
        """Return whether *target* is up to date. Raises `ConfigError` for a file that no export wrote."""
        if not os.path.lexists(target):
            return False
        found = _digest(target)
        if found != digest and found not in self._earlier.get(path, ()):
            raise ConfigError(f"{target} was not written by an export; remove it or choose another folder with --to")
        return found == digest

    def _close(self) -> None:
        if not self._journal.closed:
            with suppress(OSError):  # errors were reported already
                self._journal.close()
            self._lock.release()

    def _note(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()

    def _read(self) -> tuple[dict[str, set[str]], bool]:
        """Return the files in the journal, and whether its last line is incomplete."""
        earlier: dict[str, set[str]] = {}
        line = b"\n"
        journal = self._marker / "journal"
        with storage(journal):
            if journal.exists():
                with journal.open("rb") as file:
                    while piece := file.readline(_LONGEST):
                        line = piece
                        if found := _LINE.fullmatch(line):
                            earlier.setdefault(found[2].decode("utf-8", "replace"), set()).add(found[1].decode())
        return earlier, not line.endswith(b"\n")

    def _remove(self, path: str, digests: set[str]) -> None:
        """Remove the file at *path* if an export wrote it, and folders that become empty."""
        target = self._folder / path
        with storage(target):
            if not target.parent.resolve().is_relative_to(self._inside) or _digest(target) not in digests:
                return
            target.unlink()
            for folder in target.parents:
                if folder == self._folder or any(folder.iterdir()):
                    return
                folder.rmdir()


def _digest(path: Path) -> str:
    """Return the digest of the file at *path*; empty if it is not a regular file."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return sha256_of(file)


MOST_CHANGED = 32 << 20  # bytes; links in larger documents are not changed


@dataclass
class ExportCounts:
    """The counts of an export, and its problems."""

    files: int = 0
    size: int = 0  # bytes
    problems: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  # of pages, by URL


def write_export(
    holdings: Holdings, plan: ExportPlan, target: ExportFolder, site: ExportedSite, report: Callable[[int], None]
) -> ExportCounts:
    """Write the files of *plan* from *holdings* into *target*; *report* receives the number of files done."""
    counts = ExportCounts(problems=plan.problems)
    for number, file in enumerate(sorted(plan.files, key=lambda file: (file.warc, file.offset))):
        report(number)
        try:
            size = _write(holdings, file, target, site, plan, counts.titles)
            if size is not None:
                counts.size += size
                counts.files += 1
        except DamagedRecord as damage:
            plan.add_unread(file.url, file.warc, ArchiveError(f"{file.warc} {damage}"))
    plan.name_unread()
    return counts


def finish(
    target: ExportFolder, plan: ExportPlan, seeds: Mapping[str, str], site: ExportedSite, titles: Mapping[str, str]
) -> None:
    """Write the start page and finish the export. *seeds*: their own titles by URL; "" for one without."""
    for name, content in start_pages(plan, seeds, site, titles):
        target.write(name, [content])
    target.finish()


def _write(
    holdings: Holdings,
    file: PlannedFile,
    target: ExportFolder,
    site: ExportedSite,
    plan: ExportPlan,
    titles: dict[str, str],
) -> int | None:
    """Write one file, add its title to *titles*, and return its size; None if its record cannot be opened."""
    with ExitStack() as stack:
        try:
            record = stack.enter_context(holdings.record_at(file.warc, file.offset))
        except ArchiveError as error:
            plan.add_unread(file.url, file.warc, error)
            return None
        answer = read_answer(record)
        most = most_output(record.size or 0)
        decoded = answer.decoded(DecoderLimits(most))
        pieces = _limited(decoded, most)
        size = target.write(file.path, _rewrite_payload(file, answer, pieces, site, titles))
    for note in decoded.notes:
        plan.add_problem(f"{file.url}: {note}")
    if answer.truncated:
        plan.add_problem(f"{file.url}: it was truncated when it was captured ({answer.truncated})")
    return size


def _limited(decoded: Decoder, most: int) -> Iterator[bytes]:
    """Yield the first *most* bytes of *decoded*, and note it if there are more."""
    left = most
    for piece in decoded:
        yield piece[:left]
        left -= len(piece)
        if left < 0:
            decoded.notes.append(f"only the first {most} bytes{BOMB}")
            return


def _rewrite_payload(
    file: PlannedFile,
    answer: StoredResponse,
    pieces: Iterator[bytes],
    site: ExportedSite,
    titles: dict[str, str],
) -> Iterator[bytes]:
    """Yield the payload, with its references changed if it is a document."""
    begin = beginning(pieces, SNIFFED)
    document = Document(file.url, answer.framing.media_type, charset(answer.framing), begin, Hop.REQUISITE)
    kind = kind_of(document)
    if is_rewritten(kind, document.media_type):
        for piece in pieces:
            begin += piece
            if len(begin) > MOST_CHANGED:
                break
        else:
            if file.page:
                titles[file.url] = page_title.read_page_text(replace(document, body=begin), text=False).title
            page, refresh = ExportedPage(site, file.url, file.path), answer.framing.first("refresh") or ""
            yield rewrite_document(page, kind, begin, document.charset, refresh)
            return
    yield from chain((begin,), pieces)
