"""A window of Chromium in which a person logs in, and the cookies that it holds.

Chromium encrypts the cookies on disk and writes session cookies late or never. So the window asks for them over the
DevTools protocol, on a pipe that no other process can reach. It has a new profile, which is deleted with it.
"""

import json
import os
import select
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from archiver.errors import ConfigError
from archiver.humanize import printable

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "brave-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--password-store=basic",
    "--use-mock-keychain",
)
IN, OUT = 3, 4  # descriptors of the pipe in the browser
INTERVAL = 0.5  # seconds between two questions for the cookies: the window may close at any time
MAX_MESSAGE = 64 << 20  # bytes of one answer
CLOSING_TIME = 10.0  # seconds to end in order
CLOSING_STEP = 0.05
MAX_ERROR = 2000  # bytes of what the browser printed last
ELSEWHERE = "; if this machine has no screen, log in on another one and bring its cookies with --load-cookies"


def find(command: str) -> list[str]:
    """Return the words that start the browser *command*; "": the first that is installed.

    Raises `ConfigError` if there is none.
    """
    words = shlex.split(command) if command else list(filter(None, map(shutil.which, NAMES)))[:1]
    if not words:
        raise ConfigError("no Chromium, Chrome, Edge or Brave is installed; name one with --browser")
    if shutil.which(words[0]) is None:
        raise ConfigError(f"--browser {command}: there is no such program")
    return words


class BrowserWindow:
    """A browser that shows *address*, until the end of the block."""

    def __init__(self, command: Sequence[str], address: str) -> None:
        self._command = (*command, *FLAGS)
        self._address = address
        self._number = 0
        self._received = bytearray()
        self._answers: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(prefix="archiver-login-", ignore_cleanup_errors=True)
        self._errors = (Path(self._profile.name) / "stderr").open("w+b")
        theirs_in, self._to = _pipe()
        self._from, theirs_out = _pipe()
        words = (*self._command, f"--user-data-dir={self._profile.name}", self._address)
        try:
            self._process = self._start(words, theirs_in, theirs_out)
        except OSError as error:
            self._close()
            raise ConfigError(f"--browser {words[0]}: cannot be started: {error.strerror}") from None
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return self

    def _start(self, words: tuple[str, ...], theirs_in: int, theirs_out: int) -> int:
        return os.posix_spawnp(
            words[0],
            words,
            {**os.environ, "TMPDIR": self._profile.name},  # for its sockets, so that they go too
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 2),
                (os.POSIX_SPAWN_DUP2, theirs_in, IN),  # last: the file of errors may have this number
                (os.POSIX_SPAWN_DUP2, theirs_out, OUT),
            ],
            setsid=True,  # Ctrl+C in the terminal is for archiver, which closes the window
        )

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with suppress(_GoneError):
            self._send("Browser.close")
            self._drain(time.monotonic() + CLOSING_TIME)
        deadline = time.monotonic() + CLOSING_TIME
        while not self._ended() and time.monotonic() < deadline:
            select.select([], [], [], CLOSING_STEP)
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        if not self._ended():
            os.waitpid(self._process, 0)
        self._close()

    def _close(self) -> None:
        for end in (self._to, self._from):
            os.close(end)
        self._errors.close()
        self._profile.cleanup()

    def _drain(self, deadline: float) -> None:
        """Read until the browser closes the pipe."""
        while select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))[0]:
            self._receive()

    def cookies(self, terminal: TextIO | None) -> Iterator[list[dict[str, Any]]]:
        """Yield the cookies twice a second, until the person closes the window or presses Enter in *terminal*.

        Each is a `Network.Cookie` of the protocol. Raises `ConfigError` if the browser does not run.
        """
        had_page = False
        while True:
            try:
                cookies, windows = self._send("Storage.getCookies"), self._send("Target.getTargets")
                found = self._answer(cookies)["cookies"]
                has_page = any(each["type"] == "page" for each in self._answer(windows)["targetInfos"])
            except _GoneError:
                if not had_page:
                    raise ConfigError(f"the browser did not start: {self._last_error()}{ELSEWHERE}") from None
                return
            yield found
            if had_page and not has_page:
                return
            had_page = has_page
            if terminal is not None and select.select([terminal], [], [], 0)[0]:
                if terminal.readline():
                    return
                terminal = None  # at its end there is no Enter to wait for
            select.select([terminal] if terminal is not None else [], [], [], INTERVAL)

    def _send(self, method: str) -> int:
        self._number += 1
        data = json.dumps({"id": self._number, "method": method}).encode() + b"\0"
        try:
            os.write(self._to, data)  # shorter than PIPE_BUF, so it is written whole
        except BrokenPipeError:
            raise _GoneError from None
        return self._number

    def _answer(self, number: int) -> dict[str, Any]:
        while number not in self._answers:
            self._receive()
        return self._answers.pop(number)

    def _receive(self) -> None:
        """Read what has come. Raises `_GoneError` at the end."""
        data = os.read(self._from, 1 << 16)
        if not data or len(self._received) > MAX_MESSAGE:
            raise _GoneError
        self._received += data
        *whole, rest = self._received.split(b"\0")
        self._received = rest
        for each in whole:
            message = json.loads(each)
            if "id" in message:
                self._answers[message["id"]] = message.get("result", {})

    def _ended(self) -> bool:
        """Return True if the process has ended; it is waited for once."""
        try:
            return os.waitpid(self._process, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read()[-MAX_ERROR:].decode("utf-8", "replace").strip().splitlines()
        return printable(lines[-1] if lines else "it printed nothing", MAX_ERROR)


class _GoneError(Exception):
    """The browser has closed the pipe."""


def _pipe() -> tuple[int, int]:
    """Return a pipe whose descriptors stand above those of the pipe in the browser."""
    import fcntl  # noqa: PLC0415 - not on Windows

    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]
