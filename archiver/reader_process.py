"""Reads large documents in a process of their own, which a document that takes too long, or breaks it, cannot outlive.

The readers of `extract` are made to be linear. This is the defence against what their authors did not think of: the
kernel ends the process when it has used its processor time for one document, or too much memory, and the crawl goes
on with the page stored and its links noted as unread. Small documents are read at once, by the caller's thread: what
is smaller than `NEAR` costs seconds even if a reader takes quadratic time.

This module is also the program of that process: see `serve`.
"""

import json
import logging
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import IO

from archiver import extract
from archiver.extract import Document
from archiver.model import Links
from archiver.reading import FAULT, UNREAD, LargeError

NEAR = 64 << 10  # bytes of a document that is read at once
SECONDS = 4.0  # of processor time for one document, whatever it is …
SECONDS_PER_MB = 1.0  # … and for each of its megabytes; most take a twentieth of this
PATIENCE = 20.0  # times as long by the clock: the machine may be busy with other things
START = 60.0  # seconds for the process to begin
MEMORY = 4 << 30  # bytes of address space
_PROGRAM = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from archiver.reader_process import serve; serve()"
_READY = b"r"
_LENGTH = struct.Struct(">Q")

log = logging.getLogger(__name__)


class ReaderProcess:
    """Reads documents; begins its process with the first large one. To be used by one thread at a time.

    It refuses those of more than *most* bytes with `LargeError`; 0: none.
    """

    def __init__(self, *, most: int = 0, near: int = NEAR, seconds: float = SECONDS) -> None:
        self._most = most
        self._near = near
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._possible = True

    def __call__(self, document: Document) -> Links:
        """What *document* names. Returns within a bounded time, whatever it holds."""
        if len(document.body) <= self._near or not extract.readable(document):
            return extract.links(document)
        if 0 < self._most < len(document.body):
            raise LargeError(len(document.body))
        process = self._running()
        if process is None:
            return extract.links(document)
        seconds = self._seconds + SECONDS_PER_MB * len(document.body) / 1e6
        try:
            return _ask(process, document, seconds)
        except (OSError, EOFError, TimeoutError):
            process.kill()
            ended = process.wait()
            self._forget(process)
            timed_out = -ended in (signal.SIGPROF, signal.SIGKILL)
            why = f"it took more than {seconds:.3g} s" if timed_out else f"it ended the reading process ({ended})"
            log.warning("the links of %s are not read: %s", document.url, why)
            return Links(note=f"{UNREAD}: {why}")

    def close(self) -> None:
        """End the process. It can be begun again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget(self._process)

    def _running(self) -> "subprocess.Popen[bytes] | None":
        """The process, begun if need be; None where this machine allows none."""
        if self._possible and (self._process is None or self._process.poll() is not None):
            self.close()
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
    """A new process that waits for documents; OSError where it cannot be had."""
    paths = json.dumps([path or str(Path.cwd()) for path in sys.path])
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-c", _PROGRAM, paths],
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


def _ask(process: "subprocess.Popen[bytes]", document: Document, seconds: float) -> Links:
    """What *process* reads; an error where it has not read it in so many *seconds* of its time, or has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    _send(process.stdin.fileno(), pickle.dumps((document, seconds), pickle.HIGHEST_PROTOCOL))
    if not select.select([process.stdout], [], [], PATIENCE * seconds)[0]:
        raise TimeoutError
    answer = pickle.loads(_message(process.stdout))  # noqa: S301 - from our own process
    assert isinstance(answer, Links)
    return answer


def _send(pipe: int, message: bytes) -> None:
    for piece in (_LENGTH.pack(len(message)), message):
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(pipe, rest) :]


def _message(pipe: IO[bytes] | FileIO) -> bytes:
    return _whole(pipe, _LENGTH.unpack(_whole(pipe, _LENGTH.size))[0])


def _whole(pipe: IO[bytes] | FileIO, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = pipe.read(min(size - len(found), 1 << 20))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def serve() -> None:
    """Read documents from standard input until it ends. The kernel ends this process at its limits."""
    import resource  # noqa: PLC0415 - Unix alone has it, and this process alone needs it

    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process at once, also in the middle of C code
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY if most < 0 else min(MEMORY, most), most))
    questions, answers = FileIO(0), FileIO(1, "w")
    with suppress(EOFError, BrokenPipeError):
        answers.write(_READY)
        while True:
            document, seconds = pickle.loads(_message(questions))  # noqa: S301 - from our own process
            signal.setitimer(signal.ITIMER_PROF, seconds)
            links = _read(document)
            signal.setitimer(signal.ITIMER_PROF, 0)
            answer = pickle.dumps(links, pickle.HIGHEST_PROTOCOL)
            _send(answers.fileno(), answer)


def _read(document: Document) -> Links:
    try:
        return extract.links(document)
    except MemoryError:
        return Links(note=f"{UNREAD}: it took more memory than {MEMORY >> 30} GiB")
    except Exception:  # a fault of a reader must not keep a page from being stored: the note stands in its record
        log.exception("links of %s could not be read", document.url)
        return Links(note=FAULT)
