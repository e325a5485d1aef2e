"""Network attacks on a crawl, for `hostile.py`: hosts that are slow, costly to read, silent, or victims of others.

`LOOKUPS` resolves names below `.test`; `hostile.py` puts it in place of the system's resolver. Names below
`mute…test` get no answer for half a minute. All others lead to `VICTIM`, a server that is not part of the crawl.
"""

import asyncio

VICTIM = "127.0.3.1"
LOOKUPS = f"""
import socket, time
system = socket.getaddrinfo
def getaddrinfo(host, port, *rest, **options):
    name = host.decode() if isinstance(host, bytes) else str(host)
    if not name.endswith(".test"):
        return system(host, port, *rest, **options)
    if "mute" in name:
        time.sleep(30)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("{VICTIM}", port))]
socket.getaddrinfo = getaddrinfo
"""

NO_RULES = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"  # for robots.txt
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


def page(*elements: str) -> bytes:
    """Return a page of *elements*."""
    body = "".join(("<!doctype html>", *elements)).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Attack:
    """A host without robots.txt and with a quick front page of a hundred links. `answer_page` sends everything else."""

    says = ""
    hosts = 20
    options: tuple[str, ...] = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Answer the request for *target*."""
        if target == "/robots.txt":
            writer.write(NO_RULES)
        elif target == "/":
            writer.write(self.front(writer))
        else:
            await self.answer_page(writer)

    def front(self, writer: asyncio.StreamWriter) -> bytes:
        """Return the answer to `/`."""
        del writer
        return page(*(f'<a href="/{n}">x</a>' for n in range(100)))

    async def answer_page(self, writer: asyncio.StreamWriter) -> None:
        """Answer any other page like the front page."""
        writer.write(self.front(writer))


class Stream(Attack):
    """Sends `head`, then `piece` up to `count` times, with `pause` seconds between them."""

    head = HEAD
    piece = b"x"
    count = 3600
    pause = 1.0

    async def answer_page(self, writer: asyncio.StreamWriter) -> None:
        """Send the stream as fast as the client reads it."""
        writer.write(self.head)
        for _ in range(self.count):
            writer.write(self.piece)
            await writer.drain()
            await asyncio.sleep(self.pause)


class Drip(Stream):
    """Hosts whose every answer drips."""

    says = "40 hosts that drip 33 bytes a second"
    hosts = 40
    piece = b"x" * 33


class Chunks(Stream):
    """Hosts with endless answers in chunks of one byte, up to 20 MB a second from all of them."""

    says = "20 hosts that send chunks of one byte"
    head = CHUNKED
    piece = b"1\r\nx\r\n" * 1000
    count = 10_000
    pause = 0.006


class Segments(Stream):
    """Hosts that send each byte in its own segment."""

    says = "20 hosts that send segments of one byte, 100 a second"
    count = 100_000
    pause = 0.01


class Silence(Attack):
    """Hosts that accept a connection and never send anything."""

    says = "40 hosts that never answer"
    hosts = 40

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Send nothing."""
        del target, writer
        await asyncio.sleep(3600)


class MuteNames(Attack):
    """A page of images on names whose name servers are silent."""

    says = "300 names of 300 domains, whose name servers are silent"
    hosts = 1
    options = ("--allow-private", "127.0.0.0/8")

    def front(self, writer: asyncio.StreamWriter) -> bytes:
        """Return the page of images."""
        del writer
        return page(*(f'<img src="http://www.mute{n}.test/x.gif">' for n in range(300)))


class Flood(Attack):
    """A page of images on wildcard names that all lead to a stranger's server."""

    says = "1,500 images on wildcard names of one address"
    hosts = 1
    options = ("--allow-private", "127.0.0.0/8")

    def front(self, writer: asyncio.StreamWriter) -> bytes:
        """Return the page of images: half of the names are of one domain, half of many."""
        port = writer.get_extra_info("sockname")[1]
        names = (f"i{n}.victim.test" if n % 2 else f"www.victim{n}.test" for n in range(1500))
        return page(*(f'<img src="http://{name}:{port}/x.gif">' for name in names))


ATTACKS: dict[str, type[Attack]] = {
    "drip": Drip,
    "silence": Silence,
    "chunks": Chunks,
    "segments": Segments,
    "mute-names": MuteNames,
    "flood": Flood,
}
