"""The answer to one request of a client: what the server sends, passed on while it is stored.

The client gets the end of an answer only when the answer is on disk. So an answer that looks complete is recorded, and
one that could not be recorded breaks off, or is a line that says why. A client that is too slow for the server is left
alone: it must not cost the record.
"""

import logging

from archiver.crawl.record.client_link import ClientLink
from archiver.http.head import BODYLESS
from archiver.http.request_head import head_for_client
from archiver.humanize import printable
from archiver.model import Exchange, Framing

SWITCHING = 101
STALLED = 30.0  # seconds in which a client must take a megabyte; servers wait for us about that long
SHOWN = 200  # characters of a URL
REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    413: "Content Too Large",
    414: "URI Too Long",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}

log = logging.getLogger(__name__)


def own_answer(status: int, text: str, *, bodyless: bool = False) -> bytes:
    """Return an answer of the proxy itself, which is one line; the connection ends with it."""
    body = f"archiver record: {printable(text, 1000)}\n".encode()
    challenge = 'Proxy-Authenticate: Basic realm="archiver record", charset="UTF-8"\r\n' if status == 407 else ""
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n{challenge}X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if bodyless else body)


class ClientAnswer:
    """One answer to the client on *link*."""

    def __init__(self, link: ClientLink, address: str, method: str, *, persistent: bool) -> None:
        """*persistent*: the client wants to send more requests."""
        self.heard = False  # the server has answered
        self._link = link
        self._address = address
        self._method = method
        self._persistent = persistent
        self._sent = False  # the client has got a part of it
        self._held = b""  # what the client gets when all is stored
        self._left = False  # the client gets no more
        self._changes = False

    def change_protocol(self) -> None:
        """If the server agrees to change the protocol, the client gets its answer as it is."""
        self._changes = True

    async def hear(self, framing: Framing, piece: bytes, last: bool) -> bool:  # noqa: FBT001  as `Hear` has it
        """Pass a *piece* on, unless it is the *last*; return False if the client has left.

        Nothing is passed on of what is no HTTP.
        """
        if not framing.status:
            return True
        if not self.heard:
            self.heard = True
            piece = self._begun(framing, piece)
        if last:
            self._held += piece
        else:
            await self._send(piece)
        return not (self._left or self._link.lost)

    async def repeat(self, exchange: Exchange) -> None:
        """Do the same with all of *exchange*, which was not heard."""
        before = b""
        for piece in exchange.response.pieces():
            if before:
                await self.hear(exchange.framing, before, False)
            before = piece
        await self.hear(exchange.framing, before, True)

    async def finish(self) -> bool:
        """Send the rest, for all is stored; return True if the client may send another request."""
        await self._send(self._held)
        if self._left or not self._persistent:
            self._link.close()
        return self._persistent and not self._left

    def fail(self, status: int, text: str) -> None:
        """Say that there is no answer, or break off the one that has begun."""
        if self._sent:
            self._link.abort()
        else:
            self._link.write(own_answer(status, text, bodyless=self._method == "HEAD"))
            self._link.close()

    def _begun(self, framing: Framing, piece: bytes) -> bytes:
        """Return the first *piece*, which holds the head, as the client gets it."""
        if self._changes and framing.status == SWITCHING and not framing.faults:
            return piece
        bodyless = self._method == "HEAD" or framing.status in BODYLESS
        stated = framing.first("content-length") is not None
        ends = bodyless or framing.chunked != stated  # with both, another reader may see another end
        self._persistent = self._persistent and ends and not framing.faults
        head = head_for_client(piece[: framing.head_length], keep=self._persistent)
        return head + piece[framing.head_length :]

    async def _send(self, data: bytes) -> None:
        if self._left or not data:
            return
        self._sent = True
        self._link.write(data)
        if not await self._link.has_room(STALLED):
            self._left = True
            if not self._link.lost:
                log.warning("%s: the client takes too long; the answer is recorded", self._address[:SHOWN])
            self._link.abort()
