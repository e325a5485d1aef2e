"""Reads large documents in a separate process, so that a document that takes too long or breaks it cannot stop us.

The readers in `extract` are meant to be linear. This process is the defence against cases their authors did not think
of. The kernel ends it when it has used its processor time for one document, or too much memory. The crawl goes on: the
page is stored, and its links are noted as unread. Small documents are read at once in the caller's thread, for below
`NEAR` even a quadratic reader takes only seconds. Meanwhile a `Mark` names the documents of the batch. If this process
is killed then, the next run reads those documents in the separate process.

This module is also the program of that process: see `serve`.
"""

import json
import logging
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from archiver import extract
from archiver.crawl.hooks.pipes import limit_memory, receive, send
from archiver.errors import ArchiveError
from archiver.extract import Document
from archiver.extract.exchange import FAULT, UNREAD, LargeDocumentError
from archiver.model import Links
from archiver.storage import open_file

NEAR = 64 << 10  # bytes of a document that we read at once
SECONDS = 4.0  # of processor time for one document, whatever it is …
SECONDS_PER_MB = 1.0  # … and for each of its megabytes; most take a twentieth of this
PATIENCE = 20.0  # times as long by the clock: the machine may be busy with other things
START = 60.0  # seconds for the process to begin
ENDING = 10.0  # … and to end, once it has closed its pipes
MEMORY = 4 << 30  # bytes of address space
OUT_OF_MEMORY = 77  # the exit code of a process that needs more
_PROGRAM = """
import sys, json
sys.path[:], memory = json.loads(sys.argv[1])
from archiver.crawl.reader_process import serve
serve(memory)
"""
MARK = "reading-{}"  # the name of a mark; each writer has one
MOST_MARKS = 1000
_LONGEST_MARK = 1 << 20
_READY = b"r"

T = TypeVar("T")

log = logging.getLogger(__name__)


class Mark:
    """A file with the URLs of the documents being read, for the next run in case one of them kills this process.

    A batch is written at once: with each write, this thread gives the interpreter to others, and the wait for it costs
    many times as much as the write. It is not synced, because a document may stop a process but not the machine.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._length = 0  # bytes that are not blank
        with suppress(OSError):  # on a full disk there is none
            path.unlink(missing_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)

    def set(self, *addresses: str) -> None:
        """Note that the documents of these *addresses* are being read, and no others."""
        lines = "\n".join(addresses).encode("utf-8", "replace")[:_LONGEST_MARK]
        with suppress(OSError):
            os.pwrite(self._file, lines.ljust(self._length), 0)
        self._length = len(lines)

    def remove(self) -> None:
        """Remove the file, because nothing is read any more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._path.unlink(missing_ok=True)


def suspects(folder: Path) -> frozenset[str]:
    """Return the URLs of documents that were being read when an earlier process ended, by its marks in *folder*."""
    found: set[str] = set()
    for path in sorted(folder.glob(MARK.format("*")))[:MOST_MARKS]:
        with suppress(OSError, ArchiveError), open_file(path) as file:
            found.update(map(str.strip, file.read(_LONGEST_MARK).decode("utf-8", "replace").split("\n")))
    return frozenset(found - {""})


class ReaderProcess:
    """Reads documents, for one thread at a time; starts its process with the first large one.

    It refuses documents of more than *most* bytes with `LargeDocumentError`; 0: none. Documents of *suspected* URLs are
    read in the process, however small they are, because an earlier run may have ended while reading them. *texts*: read
    the texts of links too.
    """

    def __init__(
        self,
        *,
        most: int = 0,
        near: int = NEAR,
        seconds: float = SECONDS,
        mark: Mark | None = None,
        suspected: Collection[str] = (),
        texts: bool = False,
    ) -> None:
        self._most = most
        self._links = extract.links_with_texts if texts else extract.links
        self._mark = mark
        self._suspected = suspected
        self._near = near
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._possible = True

    def __call__(self, document: Document) -> Links:
        """Return the links of *document* within a bounded time, whatever it holds."""
        if len(document.body) <= self._near and document.url not in self._suspected:
            return self._links(document)
        if not extract.readable(document):
            return Links()
        if 0 < self._most < len(document.body):
            raise LargeDocumentError(len(document.body))
        process = self._running()
        if process is None:
            return self._links(document)
        links, why = self._asked(process, self._links, document)
        if why:
            log.warning("the links of %s are not read: %s", document.url, why)
            return Links(note=f"{UNREAD}: {why}")
        return Links(note=FAULT) if links is None else links

    def apply(self, read: Callable[[Document], T], document: Document) -> tuple[T | None, str]:
        """Return what *read*, a function of a module, makes of *document*; None and why, if it was given up.

        Small documents are read at once; *read* bounds by itself what it makes of those.
        """
        process = self._running() if len(document.body) > self._near else None
        return (read(document), "") if process is None else self._asked(process, read, document)

    def _asked(
        self, process: "subprocess.Popen[bytes]", read: Callable[[Document], T], document: Document
    ) -> tuple[T | None, str]:
        """Return what *read* makes of *document* in *process*; None on a fault of *read*, and if given up why."""
        seconds = self._seconds + SECONDS_PER_MB * len(document.body) / 1e6
        try:
            return _ask(process, (read, document, seconds), seconds), ""
        except (OSError, EOFError) as error:
            return None, self._given_up(process, seconds, timed_out=isinstance(error, TimeoutError))

    def _given_up(self, process: "subprocess.Popen[bytes]", seconds: float, *, timed_out: bool) -> str:
        """End *process*, which has not read a document, and return why it has not."""
        if not timed_out:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)
        process.kill()
        ended = process.wait()
        self._forget(process)
        if ended == OUT_OF_MEMORY:
            return f"it took more memory than {MEMORY / (1 << 30):.3g} GiB"
        if timed_out or -ended == signal.SIGPROF:
            return f"it took more than {seconds:.3g} s"
        return f"it ended the reading process ({ended})"

    @contextmanager
    def marking(self, addresses: Iterable[str]) -> Iterator[None]:
        """Name the documents of *addresses* in the mark while the block reads them."""
        if self._mark is not None:
            self._mark.set(*addresses)
        try:
            yield
        finally:
            if self._mark is not None:
                self._mark.set()

    def close(self) -> None:
        """End the process, and remove the mark. The process can be begun again."""
        if self._mark is not None:
            self._mark.remove()
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget(self._process)

    def _running(self) -> "subprocess.Popen[bytes] | None":
        """Return the process, started if need be; None if this machine permits none."""
        if self._possible and (self._process is None or self._process.poll() is not None):
            self._end()
            try:
                self._process = _begun()
            except OSError as error:
                log.warning("large documents are read without a process of their own: %s", error)
                self._possible = False
        return self._process

    def _forget(self, process: "subprocess.Popen[bytes]") -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process = None


def _begun() -> "subprocess.Popen[bytes]":
    """Start a process that waits for documents. Raises `OSError` if that fails."""
    given = json.dumps([[path or str(Path.cwd()) for path in sys.path], MEMORY])
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-c", _PROGRAM, given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,  # Ctrl+C is not meant for it
    )
    pipe = process.stdout
    if pipe is None or not select.select([pipe], [], [], START)[0] or pipe.read(1) != _READY:
        process.kill()
        process.communicate()
        raise OSError("it did not begin")
    return process


def _ask(process: "subprocess.Popen[bytes]", question: Any, seconds: float) -> Any:
    """Return the answer of *process*. Raises an error if it takes more than *seconds* of its time, or ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    send(process.stdin.fileno(), pickle.dumps(question, pickle.HIGHEST_PROTOCOL))
    if not select.select([process.stdout], [], [], PATIENCE * seconds)[0]:
        raise TimeoutError
    return pickle.loads(receive(process.stdout))  # noqa: S301 - from our own process


def serve(memory: int) -> None:
    """Read documents from standard input until it ends. The kernel ends this process at its limits."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process at once, also in the middle of C code
    extract.import_readers()
    limit_memory(memory)
    questions, answers = FileIO(0), FileIO(1, "w")
    with suppress(EOFError, BrokenPipeError):
        answers.write(_READY)
        while True:
            _answer(questions, answers)


def _answer(questions: FileIO, answers: FileIO) -> None:
    """Read one document. Without memory end the process at once: nothing in it can be relied on, and all is freed."""
    try:
        read, document, seconds = pickle.loads(receive(questions))  # noqa: S301 - from our own process
        signal.setitimer(signal.ITIMER_PROF, seconds)
        found = _read(read, document)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answer = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    send(answers.fileno(), answer)


def _read(read: Callable[[Document], T], document: Document) -> T | None:
    try:
        return read(document)
    except MemoryError:
        raise
    except Exception:  # a bug in a reader must not keep a page from being stored; the record says so
        log.exception("%s could not be read", document.url)
        return None
