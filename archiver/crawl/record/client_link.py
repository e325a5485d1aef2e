"""The connection of a client to the proxy, in plain text at first and then with TLS.

A client may be slow, silent, gone or hostile. Every wait ends after a time that the caller gives, and no more than
`HIGH_WATER` bytes are kept unread. TLS runs over buffers in memory, because the first bytes of a tunnel
must be seen before it is known what they are.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, cast

HIGH_WATER = 256 << 10  # bytes that were received and not read; then the client has to wait
UNSENT = 1 << 20  # bytes that the system has not taken; then we wait
READ = 64 << 10
RESET = struct.pack("ii", 1, 0)  # lingers for no time: what was not sent is dropped


class ClientLink(asyncio.Protocol):
    """One connection, whose requests *serve* answers."""

    def __init__(self, serve: Callable[["ClientLink"], Coroutine[Any, Any, None]], group: asyncio.TaskGroup) -> None:
        """*group*: of the tasks that serve clients."""
        self._serve = serve
        self._group = group
        self._buffer = bytearray()
        self._ended = False  # the client sends no more
        self._lost = False
        self._paused = False
        self._full = False
        self._waiter: asyncio.Future[None] | None = None  # for something to read
        self._room: asyncio.Future[None] | None = None  # to write more
        self._tls: _TlsBuffers | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def address(self) -> str:
        """The network address of the client; "" if it has left."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if name else ""

    @property
    def lost(self) -> bool:
        """True if nothing reaches the client any more."""
        return self._lost or self._transport is None or self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(UNSENT)
        self._task = self._group.create_task(self._serve(self))

    def data_received(self, data: bytes) -> None:
        """Keep *data* until it is read."""
        if self._tls is None:
            self._buffer += data
        else:
            self._received(self._tls, data)
        if len(self._buffer) > HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """The client sends no more; it may still wait for an answer."""
        self._ended = True
        self._wake()
        return self._tls is None

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        del exc
        self._ended = self._lost = True
        self._wake()
        self._make_room()

    def pause_writing(self) -> None:
        """The client takes no more bytes for now."""
        self._full = True

    def resume_writing(self) -> None:
        """The client takes bytes again."""
        self._full = False
        self._make_room()

    async def peek(self, timeout: float) -> bytes:  # noqa: ASYNC109  a wait for one thing
        """Return what can be read, without taking it, within *timeout* seconds (then TimeoutError); b"" at the end."""
        if not self._buffer and not self._ended:
            await self._arrival(timeout)
        return bytes(self._buffer[:1])

    async def take(self, most: int, timeout: float) -> bytes:  # noqa: ASYNC109  as above
        """Return at most *most* bytes as soon as there are any; b"" at the end."""
        if not self._buffer and not self._ended:
            await self._arrival(timeout)
        data = bytes(self._buffer[:most])
        del self._buffer[:most]
        self._go_on()
        return data

    async def take_head(self, longest: int, timeout: float) -> bytes | None:  # noqa: ASYNC109  as above
        """Return a head with its empty line, b"" if the client has left, None if it is longer than *longest*."""
        end, looked = -1, 0
        async with asyncio.timeout(timeout):
            while (end := self._buffer.find(b"\r\n\r\n", looked)) < 0:
                if len(self._buffer) > longest:
                    return None
                if self._ended:
                    return b""
                looked = max(0, len(self._buffer) - 3)
                await self._arrival(timeout)
        if end + 4 > longest:
            return None
        head = bytes(self._buffer[: end + 4])
        del self._buffer[: end + 4]
        self._go_on()
        return head

    def give_back(self, data: bytes) -> None:
        """Put *data*, which was taken, before what comes next."""
        self._buffer[:0] = data

    def skip_empty_lines(self) -> None:
        """Skip the empty lines that some clients send before a request (RFC 9112 §2.2)."""
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]

    async def start_tls(self, context: ssl.SSLContext, timeout: float) -> None:  # noqa: ASYNC109  as above
        """Answer the handshake of the client. Raises `ssl.SSLError`, `OSError` or TimeoutError."""
        self._tls = tls = _TlsBuffers(context)
        data = bytes(self._buffer)
        self._buffer.clear()
        self._received(tls, data)
        async with asyncio.timeout(timeout):
            while not tls.shaken:
                if tls.fault is not None:
                    raise tls.fault
                if self._ended:
                    raise ConnectionResetError("the client left during the TLS handshake")
                await self._arrival(timeout)

    def write(self, data: bytes) -> None:
        """Send *data*, or nothing if the client has left."""
        if self.lost or self._transport is None:
            return
        if self._tls is None:
            self._transport.write(data)
        elif self._tls.shaken:
            try:
                self._transport.write(self._tls.sealed(data))
            except ssl.SSLError:  # the client has ended TLS, or broken it
                self.abort()

    async def has_room(self, timeout: float) -> bool:  # noqa: ASYNC109  as above
        """Wait until the client has taken nearly all; return False if it has left or needs longer than *timeout*."""
        if self._full and not self.lost:
            self._room = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout):
                    await self._room
            except TimeoutError:
                return False
            finally:
                self._room = None
        return not self.lost

    async def refuse(self, answer: bytes, seconds: float) -> None:
        """Send *answer*, and close when the client has sent the rest or so many *seconds* have passed."""
        self.write(answer)
        if not self.lost and self._transport is not None:
            if self._tls is None:
                self._transport.write_eof()
            else:
                self._transport.write(self._tls.farewell())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.lost and await self.take(READ, seconds):
                    pass
        self.close()

    def close(self) -> None:
        """Close the connection when all is sent."""
        if self._transport is not None and not self._transport.is_closing():
            if self._tls is not None and not self._lost:
                self._transport.write(self._tls.farewell())
            self._transport.close()

    def abort(self) -> None:
        """Reset the connection, so that the client sees an incomplete answer whatever ends it."""
        if self._transport is not None and not self._lost:
            if (place := self._transport.get_extra_info("socket")) is not None:
                place.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._transport.abort()

    def cancel(self) -> None:
        """Stop serving the connection."""
        if self._task is not None:
            self._task.cancel()

    async def _arrival(self, timeout: float) -> None:  # noqa: ASYNC109  as above
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                await self._waiter
        finally:
            self._waiter = None

    def _received(self, tls: "_TlsBuffers", data: bytes) -> None:
        self._buffer += tls.opened(data)
        answer = tls.to_send()
        if answer and self._transport is not None:
            self._transport.write(answer)
        self._ended = self._ended or tls.ended

    def _go_on(self) -> None:
        if self._paused and len(self._buffer) <= HIGH_WATER:
            self._paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)


class _TlsBuffers:
    """The server's side of TLS over two buffers."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.shaken = self.ended = False
        self.fault: OSError | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def opened(self, data: bytes) -> bytes:
        """Return what the client says with *data*."""
        self._incoming.write(data)
        plain = bytearray()
        try:
            if not self.shaken:
                self._object.do_handshake()
                self.shaken = True
            while piece := self._object.read(READ):
                plain += piece
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            self.fault, self.ended = error, True
        return bytes(plain)

    def sealed(self, data: bytes) -> bytes:
        """Return what is to be sent so that the client reads *data*."""
        view = memoryview(data)
        while view:
            view = view[self._object.write(view) :]
        return self.to_send()

    def farewell(self) -> bytes:
        """Return what ends the connection in order."""
        with suppress(ssl.SSLError, ValueError):  # the client has not said the same yet
            self._object.unwrap()
        return self.to_send()

    def to_send(self) -> bytes:
        """Return what TLS itself has to say."""
        return self._outgoing.read()
