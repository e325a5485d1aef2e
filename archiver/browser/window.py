"""A window of Chromium in which a person logs in, and the cookies that it holds.

Chromium encrypts the cookies on disk and writes session cookies late or never. So the window asks for them over the
DevTools protocol.
"""

import json
import os
import select
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TextIO

from archiver.browser.chromium import NO_SCREEN, Chromium
from archiver.errors import ConfigError

INTERVAL = 0.5  # seconds between two questions for the cookies: the window may close at any time
MAX_MESSAGE = 64 << 20  # bytes of one answer
ELSEWHERE = "; log in on a machine that has one, and bring its cookies with --load-cookies"


class BrowserWindow:
    """A browser that shows *address*, until the end of the block."""

    def __init__(self, command: Sequence[str], address: str) -> None:
        self._command = command
        self._address = address
        self._number = 0
        self._received = bytearray()
        self._answers: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        self._browser = Chromium(self._command, self._address, network=True)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._browser.close(self._ask_to_end)

    def _ask_to_end(self, deadline: float) -> None:
        """Ask the browser to end, and read until it closes the pipe."""
        try:
            self._send("Browser.close")
            while select.select([self._browser.read_end], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._receive()
        except _GoneError:
            return

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
                    why = self._browser.last_error()
                    raise ConfigError(f"the browser did not start: {why}{ELSEWHERE * (why == NO_SCREEN)}") from None
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
            os.write(self._browser.write_end, data)  # shorter than PIPE_BUF, so it is written whole
        except BrokenPipeError:
            raise _GoneError from None
        return self._number

    def _answer(self, number: int) -> dict[str, Any]:
        while number not in self._answers:
            self._receive()
        return self._answers.pop(number)

    def _receive(self) -> None:
        """Read what has come. Raises `_GoneError` at the end."""
        data = os.read(self._browser.read_end, 1 << 16)
        if not data or len(self._received) > MAX_MESSAGE:
            raise _GoneError
        self._received += data
        *whole, rest = self._received.split(b"\0")
        self._received = rest
        for each in whole:
            message = json.loads(each)
            if "id" in message:
                self._answers[message["id"]] = message.get("result", {})


class _GoneError(Exception):
    """The browser has closed the pipe."""
