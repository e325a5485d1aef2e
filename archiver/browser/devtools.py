"""The DevTools protocol over the pipe of a browser: commands, and events by session.

A session is one target: a page, a frame of another origin, or a worker. A message is JSON and ends with a zero byte.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from archiver.browser.chromium import Chromium

MAX_MESSAGE = 256 << 20  # bytes; a screenshot or the form data of a request is the largest


class PageEvent(NamedTuple):
    """An event of a session; ROOT: of the browser."""

    session: str
    name: str
    params: dict[str, Any]


ROOT = ""
Events = asyncio.Queue[PageEvent | None]  # None: the browser has gone


class DevToolsError(Exception):
    """The browser refused a command, or the target has gone."""


class BrowserGoneError(DevToolsError):
    """The browser has ended."""


class DevTools:
    """The connection to one browser."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.WriteTransport) -> None:
        self._reader = reader
        self._transport = transport
        self._number = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._listeners: dict[str, Events] = {}
        self._gone = False

    def listen(self, session: str, events: Events) -> None:
        """Put the events of *session* into *events* from now on."""
        self._listeners[session] = events

    def stop_listening(self, events: Events) -> None:
        """Drop what would be put into *events*."""
        self._listeners = {name: other for name, other in self._listeners.items() if other is not events}

    async def call(self, method: str, session: str = ROOT, **params: Any) -> dict[str, Any]:
        """Send a command and return its result. Raises `DevToolsError`."""
        answer = self.send(method, session, **params)
        try:
            reply = await answer
        finally:
            answer.cancel()
        if "error" in reply:
            raise DevToolsError(f"{method}: {reply['error'].get('message', '')}")
        result: dict[str, Any] = reply.get("result", {})
        return result

    def send(self, method: str, session: str = ROOT, **params: Any) -> "asyncio.Future[Any]":
        """Send a command; its reply need not be waited for."""
        if self._gone:
            raise BrowserGoneError("the browser has ended")
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        self._transport.write(json.dumps(message).encode() + b"\0")
        return answer

    async def read(self) -> None:
        """Read messages until the browser ends."""
        try:
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    answer = self._answers.pop(message["id"], None)
                    if answer is not None and not answer.done():
                        answer.set_result(message)
                elif events := self._listeners.get(message.get("sessionId", ROOT)):
                    events.put_nowait(PageEvent(message.get("sessionId", ROOT), message["method"], message["params"]))
        except (EOFError, OSError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self._end()

    def _end(self) -> None:
        """Fail what waits for an answer: none will come, also where only we have stopped reading."""
        self._gone = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(BrowserGoneError("the browser has ended"))
                answer.exception()  # not all of them are waited for
        for events in set(self._listeners.values()):
            events.put_nowait(None)


@asynccontextmanager
async def connected(browser: Chromium) -> AsyncIterator[DevTools]:
    """Speak with *browser* until the end of the block, which ends the browser too."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(MAX_MESSAGE)
    source, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(browser.read_end), "rb", 0)
    )
    sink, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(os.dup(browser.write_end), "wb", 0))
    devtools = DevTools(reader, sink)
    reading = asyncio.create_task(devtools.read())
    try:
        try:
            await devtools.call("Browser.getVersion")
        except BrowserGoneError:
            raise BrowserGoneError(f"the browser did not start: {browser.last_error()}") from None
        yield devtools
    finally:  # at once: its profile is deleted with it, and a browser that is just starting would not listen
        reading.cancel()
        source.close()
        if not sink.is_closing():
            sink.abort()
        await asyncio.to_thread(browser.kill)
