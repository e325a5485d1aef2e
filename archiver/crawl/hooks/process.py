"""The processes that run hooks, from the outside: they are started, asked, and ended when they do not answer in time.

One process is asked by one thread at a time. A thread that finds none idle starts one, so there are as many as threads
ask at once: two writers, and one for the event loop.
"""

import json
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from archiver.crawl.hooks.pipes import receive, send
from archiver.crawl.hooks.worker import LARGEST, OUT_OF_MEMORY, HookProgram

START = 60.0  # seconds for the process to begin and to import the file
GRACE = 5.0  # seconds that an answer may be late: the alarm in the process has to go off first
ENDING = 10.0  # … and to end, once its pipes are closed
_PROGRAM = """
import sys, json
sys.path[:] = json.loads(sys.argv[1])
from archiver.crawl.hooks.worker import serve
serve()
"""


class HookProcessError(Exception):
    """The process has ended, or was ended; the message says why."""


class HookProcess:
    """One process that runs *program*."""

    def __init__(self, program: HookProgram) -> None:
        """Start the process. Raises `HookProcessError` if it does not begin."""
        self._program = program
        path = json.dumps([each or str(Path.cwd()) for each in sys.path])
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-c", _PROGRAM, path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl+C is not meant for it
            )
        except OSError as error:
            raise HookProcessError(f"no process can be started: {error.strerror}") from None
        begun = self._exchanged(program, START)
        if fault := begun.get("fault"):
            self.end()
            raise HookProcessError(str(fault))
        self.functions = frozenset(map(str, begun["functions"]))

    def ask(self, kind: str, question: tuple[Any, ...], functions: int = 1) -> dict[str, Any]:
        """Return the answer to a *question* for which so many *functions* are called one after the other."""
        return self._exchanged((kind, question), functions * self._program.seconds + GRACE)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _exchanged(self, message: object, seconds: float) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            send(stdin.fileno(), pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
            if not select.select([stdout], [], [], seconds)[0]:
                raise TimeoutError
            found = json.loads(receive(stdout, LARGEST))
        except (OSError, EOFError, ValueError) as error:
            raise HookProcessError(self._why(timed_out=isinstance(error, TimeoutError))) from None
        assert isinstance(found, dict)
        return found

    def _why(self, *, timed_out: bool) -> str:
        """End the process, and return why it gave no answer."""
        if not timed_out:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING)
        self.end()
        code = self._process.returncode
        if timed_out:
            return f"it took more than {self._program.seconds:g} s, and nothing could interrupt it"
        if code == OUT_OF_MEMORY:
            return f"it took more memory than {self._program.memory / (1 << 30):.3g} GiB"
        return f"it ended its process ({f'exit code {code}' if code >= 0 else f'signal {-code}'})"


class HookProcesses:
    """The processes of one crawler."""

    def __init__(self, program: HookProgram) -> None:
        """Start the first one. Raises `HookProcessError` if it does not begin."""
        self._program = program
        self._lock = threading.Lock()
        self._closed = False
        first = HookProcess(program)
        self.functions = first.functions
        self._idle = [first]
        self._all = {first}

    @contextmanager
    def one(self) -> Iterator[HookProcess]:
        """Yield a process for this thread; it is not used again after a `HookProcessError`."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is None:
            process = HookProcess(self._program)
            with self._lock:
                self._all.add(process)
        try:
            yield process
        except HookProcessError:
            with self._lock:
                self._all.discard(process)
            raise
        with self._lock:
            self._idle.append(process)

    def close(self) -> None:
        """End all processes; no thread asks any more."""
        with self._lock:
            for each in self._all:
                each.end()
            self._all.clear()
            self._idle.clear()


def limited(
    seconds: float, path: str = "", text: bytes = b"", extractors: tuple[tuple[str, str], ...] = ()
) -> HookProgram:
    """Return the program of the file *text* at *path* and of *extractors*."""
    return HookProgram(path, text, extractors, seconds, MEMORY)


MEMORY = 2 << 30  # bytes of address space
