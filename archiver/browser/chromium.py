"""Start Chromium, with the DevTools protocol on a pipe that no other process can reach.

The browser has a new profile, which is deleted with it. With `network=False` it runs in a network namespace of its own
that has no interface, not even loopback: whatever a page does, no packet leaves.
"""

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from archiver.errors import ConfigError
from archiver.humanize import printable
from archiver.storage.temporary import temporary_folder

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
CLOSING_TIME = 10.0  # seconds to end in order
CLOSING_STEP = 0.05
MAX_ERROR = 2000  # characters of a message
MAX_PRINTED = 1 << 20  # bytes of what the browser printed that are looked at
USER = 1000  # in the namespace: not root, so that Chromium keeps its own sandbox
MEMORY = 2 << 30  # bytes of data of each process in the namespace; a page that wants more gets an error, or crashes
NAMESPACE = (
    *("unshare", "--user", "--net", f"--map-user={USER}", f"--map-group={USER}", "--"),
    *("prlimit", f"--data={MEMORY}", "--"),
)
_LOG_LINE = re.compile(
    r"\[[0-9:/.]*(?:VERBOSE[0-9]*|INFO|WARNING|ERROR|FATAL|DFATAL):(?P<source>[^\]]*)\] *(?P<text>.*)"
)
NO_SCREEN = "it finds no screen"
_AS_ROOT = (
    "it does not run as root; run archiver as another user, or add --no-sandbox to the command of --browser, which "
    "leaves this machine without that protection"
)
_NO_SANDBOX = (
    "this machine does not allow its sandbox; if you trust the pages, add --no-sandbox to the command of --browser"
)
_CAUSES = {  # of an end at the start, by words that Chromium logs
    "Running as root without --no-sandbox": _AS_ROOT,
    "No usable sandbox": _NO_SANDBOX,
    "Missing X server": NO_SCREEN,
    "Unable to open X display": NO_SCREEN,
    "The platform failed to initialize": NO_SCREEN,
}
NO_BUS = {"DBUS_SESSION_BUS_ADDRESS": "disabled:", "DBUS_SYSTEM_BUS_ADDRESS": "disabled:"}


def find(command: str) -> list[str]:
    """Return the words that start the browser *command*; "": the first that is installed.

    Raises `ConfigError` if there is none.
    """
    words = shlex.split(command) if command else list(filter(None, map(shutil.which, NAMES)))[:1]
    if not words:
        raise ConfigError(
            "no Chromium, Chrome, Edge or Brave is installed (on Debian and Ubuntu: apt install chromium)"
        )
    if shutil.which(words[0]) is None:
        raise ConfigError(f"--browser {command}: there is no such program")
    return words


def why_no_namespace() -> str:
    """Return why this user cannot start a program without a network; "" if that is possible."""
    for program in ("unshare", "prlimit"):
        if shutil.which(program) is None:
            return f"the program {program} (util-linux) is missing"
    ran = subprocess.run([*NAMESPACE, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - ours
    if ran.returncode == 0:
        return ""
    return printable(ran.stderr.decode("utf-8", "replace").strip() or f"exit code {ran.returncode}", MAX_ERROR)


class Chromium:
    """A browser that runs until `close`; `write_end` and `read_end` are our ends of its pipe.

    Raises `ConfigError` if it cannot be started.
    """

    def __init__(self, command: Sequence[str], *words: str, network: bool) -> None:
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(temporary_folder("browser"))
        self._errors = (self._folder / "stderr").open("w+b")
        theirs_in, self.write_end = _pipe()
        self.read_end, theirs_out = _pipe()
        data = self._folder / "profile"
        data.mkdir()
        prefix = () if network else NAMESPACE
        try:
            self._process = self._start(
                (*prefix, *command, *FLAGS, f"--user-data-dir={data}", *words), theirs_in, theirs_out, network=network
            )
        except OSError as error:
            self._release()
            raise ConfigError(f"--browser {command[0]}: cannot be started: {error.strerror}") from None
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    def _start(self, words: tuple[str, ...], theirs_in: int, theirs_out: int, *, network: bool) -> int:
        own = {"TMPDIR": str(self._folder)}  # for its sockets, so that they go too
        return os.posix_spawnp(
            words[0],
            words,
            {**os.environ, **own} if network else {**os.environ, **own, **NO_BUS, "HOME": str(self._folder)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, self._errors.fileno(), 2),
                (os.POSIX_SPAWN_DUP2, theirs_in, IN),  # last: the file of errors may have this number
                (os.POSIX_SPAWN_DUP2, theirs_out, OUT),
            ],
            setsid=True,  # Ctrl+C in the terminal is for archiver, which closes the browser
        )

    @property
    def group(self) -> int:
        """Its process group."""
        return self._process

    def close(self, ask: Callable[[float], None]) -> None:
        """End it: *ask* it to end until a time of `time.monotonic`, then kill it, and delete its profile."""
        deadline = time.monotonic() + CLOSING_TIME
        ask(deadline)
        while not self.ended() and time.monotonic() < deadline:
            select.select([], [], [], CLOSING_STEP)
        self.kill()

    def kill(self) -> None:
        """End it at once, and delete its profile."""
        with suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        if not self.ended():
            os.waitpid(self._process, 0)
        self._release()

    def ended(self) -> bool:
        """Return True if the process has ended; it is waited for once."""
        try:
            return os.waitpid(self._process, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def last_error(self) -> str:
        """Return why it has ended, as far as it printed that."""
        self._errors.seek(0)
        return why_ended(self._errors.read(MAX_PRINTED).decode("utf-8", "replace"))

    def _release(self) -> None:
        for end in (self.write_end, self.read_end):
            os.close(end)
        self._errors.close()
        self._stack.close()


def why_ended(printed: str) -> str:
    """Return why a browser has ended that *printed* this: a known cause, or its last line without what logs add."""
    for sign, cause in _CAUSES.items():
        if sign in printed:
            return cause
    logged = [(line, _LOG_LINE.fullmatch(line)) for line in map(str.strip, printed.splitlines()) if line]
    said = [line if log is None else log["text"] for line, log in logged if log is None or "dbus" not in log["source"]]
    return printable(next(filter(None, reversed(said)), "it printed nothing that explains it"), MAX_ERROR)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose descriptors stand above those of the pipe in the browser."""
    import fcntl  # noqa: PLC0415 - not on Windows

    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]
