"""Attacks on the network side of a crawl, for `hostile.py`: hosts that are slow, costly to read, silent, or in the way.

Names below `.test` are looked up by `LOOKUPS`, which `hostile.py` puts in place of the system's look-up: those below
`mute…test` get no answer for half a minute, all others lead to `VICTIM`, a server that belongs to nobody in the crawl.
"""

import asyncio

VICTIM = "127.0.3.1"
LOOKUPS = f"""
import socket, time
system = socket.getaddrinfo
def getaddrinfo(host, port, *rest, **terms):
    name = host.decode() if isinstance(host, bytes) else str(host)
    if not name.endswith(".test"):
        return system(host, port, *rest, **terms)
    if "mute" in name:
        time.sleep(30)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("{VICTIM}", port))]
socket.getaddrinfo = getaddrinfo
"""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


def links(count: int) -> bytes:
    """A page of so many links."""
    body = b"<!doctype html>" + b"".join(b'<a href="/%d">x</a>' % n for n in range(count))
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def images(addresses: list[str]) -> bytes:
    """A page that shows the images at *addresses*."""
    body = b"<!doctype html>" + "".join(f'<img src="{address}">' for address in addresses).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Drip:
    """Hosts whose every answer drips."""

    says = "40 hosts that drip 33 bytes a second"
    hosts = 40
    options = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Quick rules and a quick front page; all else takes for ever."""
        if target in ("/", "/robots.txt"):
            writer.write(links(100) if target == "/" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(HEAD)
        for _ in range(3600):
            writer.write(b"x" * 33)
            await writer.drain()
            await asyncio.sleep(1)


class Silence:
    """Hosts that take a connection and never say anything."""

    says = "40 hosts that never answer"
    hosts = 40
    options = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Nothing."""
        del target, writer
        await asyncio.sleep(3600)


class Chunks:
    """Hosts whose endless answers come in chunks of one byte each."""

    says = "20 hosts that send chunks of one byte"
    hosts = 20
    options = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Chunks, as fast as they are taken, up to 20 MB a second for all."""
        if target in ("/", "/robots.txt"):
            writer.write(links(100) if target == "/" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(CHUNKED)
        for _ in range(10_000):
            writer.write(b"1\r\nx\r\n" * 1000)
            await writer.drain()
            await asyncio.sleep(0.006)


class Segments:
    """Hosts that send each byte in a segment of its own."""

    says = "20 hosts that send segments of one byte, 100 a second"
    hosts = 20
    options = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """A long body, byte by byte."""
        if target in ("/", "/robots.txt"):
            writer.write(links(100) if target == "/" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(HEAD)
        for _ in range(100_000):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)


class MuteNames:
    """A page of images on names whose name servers are silent."""

    says = "300 names of 300 domains, whose name servers are silent"
    hosts = 1
    options = ("--allow-private", "127.0.0.0/8")

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """The page, whatever is asked for."""
        if target == "/robots.txt":
            writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(images([f"http://www.mute{n}.test/x.gif" for n in range(300)]))


class Flood:
    """A page of images on wildcard names, which all lead to a server of somebody else."""

    says = "1,500 images on wildcard names of one address"
    hosts = 1
    options = ("--allow-private", "127.0.0.0/8")

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """The page: half of the names are of one domain, half of many."""
        if target == "/robots.txt":
            writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        port = writer.get_extra_info("sockname")[1]
        names = [f"i{n}.victim.test" if n % 2 else f"www.victim{n}.test" for n in range(1500)]
        writer.write(images([f"http://{name}:{port}/x.gif" for name in names]))


ATTACKS = {
    "drip": Drip,
    "silence": Silence,
    "chunks": Chunks,
    "segments": Segments,
    "mute-names": MuteNames,
    "flood": Flood,
}
