"""A slow server: it serves a folder or made pages after a delay.

    python bench/slowserver.py 8080 --root FOLDER --delay 0.1     the files of a site
    python bench/slowserver.py 8080 --pages 10                    made pages: /, /1 … /9
    python bench/slowserver.py 8080 --pages 0 --large 5000000000  pages without end, and one large file

From --large-after seconds after the first request, the pages name the large file as a picture, so that it is
requested at once. It is sent at --line bytes per second and does not compress. No host has a robots.txt.
/most-connections answers with the most connections open at once since the last request for it.
"""

import argparse
import asyncio
import random
from pathlib import Path
from time import monotonic

TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "jpg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
}
LARGE, MOST = "/large.bin", "/most-connections"
BLOCK = 1 << 20
FEW = 10  # links of a made page


class Site:
    """The site: a map from paths to whole answers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = 0.0  # at the first request
        self.open = self.most = 0  # connections
        root: Path | None = options.root
        self.files = {f"/{path.relative_to(root)}": path for path in root.rglob("*.*")} if root else {}
        if "/index.html" in self.files:
            self.files["/"] = self.files["/index.html"]
        words = ["".join(random.Random(seed).choices("aeioudlmnrst", k=6)) for seed in range(2000)]
        self.filler: bytes = (" ".join(words) * (1 + options.size // 14000)).encode()

    def answer(self, path: str) -> bytes:
        """Return the answer for *path*, head and body."""
        if file := self.files.get(path):
            return _message("200 OK", TYPES[file.suffix[1:]], file.read_bytes())
        name = path[1:] or "0"
        pages = self.options.pages
        if not name.isdigit() or (pages and int(name) >= pages) or self.options.root:
            return _message("404 Not Found", "text/plain", b"not found\n")
        return _message("200 OK", "text/html", self.page(int(name)))

    def page(self, number: int) -> bytes:
        """Return a page that links to the next ones, filled up with words."""
        children = range(number * FEW + 1, (number + 1) * FEW + 1)
        pages = self.options.pages or children.stop
        links = "".join(f'<a href="/{each}">{each}</a>\n' for each in children if each < pages)
        if self.options.large and monotonic() - self.began > self.options.large_after:
            links += f'<img src="{LARGE}">\n'
        head = f"<!DOCTYPE html>\n<title>{number}</title>\n{links}<p>{number} ".encode()
        start = number * 7919 % 9973
        size: int = self.options.size
        return head + self.filler[start : start + size - len(head)]

    def most_connections(self) -> bytes:
        """Return the most connections at once, and start counting again."""
        most, self.most = self.most, self.open
        return _message("200 OK", "text/plain", str(most).encode())

    def delay(self, path: str) -> float:
        """Return the seconds until the answer to *path* starts."""
        return float(self.options.robots_delay if path == "/robots.txt" else self.options.delay)


def _message(status: str, media_type: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    """One connection: one request at a time, as clients send them."""

    transport: asyncio.Transport

    def __init__(self, site: Site) -> None:
        self.site, self.buffer = site, b""
        self.ready = asyncio.Event()
        self.ready.set()
        self.sending: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.site.open += 1
        self.site.most = max(self.site.most, self.site.open)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            loop = asyncio.get_running_loop()
            self.site.began = self.site.began or monotonic()
            if path == MOST:
                self.transport.write(self.site.most_connections())
            elif path == LARGE:
                self.sending = loop.create_task(self.send_large())
            elif delay := self.site.delay(path):
                loop.call_later(delay, self.send, path)
            else:
                self.send(path)

    def send(self, path: str) -> None:
        """Send an answer if the client is still there."""
        if not self.transport.is_closing():
            self.transport.write(self.site.answer(path))

    async def send_large(self) -> None:
        """Send the large file block by block, no faster than the line."""
        size, block = self.site.options.large, random.Random(1).randbytes(BLOCK)
        fields = f"Content-Type: application/octet-stream\r\nContent-Length: {size}"
        self.transport.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode())
        began, sent = monotonic(), 0
        while sent < size and not self.transport.is_closing():
            await self.ready.wait()
            await asyncio.sleep(max(0, sent / self.site.options.line - (monotonic() - began)))
            self.transport.write(block[: size - sent])
            sent += len(block)

    def pause_writing(self) -> None:
        self.ready.clear()

    def resume_writing(self) -> None:
        self.ready.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.site.open -= 1
        self.ready.set()


async def main() -> None:
    """Serve until killed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("port", type=int)
    arguments.add_argument("--address", default="127.0.0.1", help="to listen at (%(default)s); 0.0.0.0: at all")
    arguments.add_argument("--root", type=Path, help="a folder of files")
    arguments.add_argument("--pages", type=int, default=0, help="made pages on each host; 0: without end")
    arguments.add_argument("--size", type=int, default=2000, help="bytes of a made page (%(default)s)")
    arguments.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    arguments.add_argument("--robots-delay", type=float, default=0.0, help="seconds before that to /robots.txt")
    arguments.add_argument("--large", type=int, default=0, help="bytes of the large file; 0: there is none")
    arguments.add_argument("--large-after", type=float, default=0.0, help="seconds until it is named")
    arguments.add_argument("--line", type=float, default=1e8, help="bytes of it in a second (%(default)g)")
    site = Site(arguments.parse_args())
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(site), site.options.address, site.options.port, backlog=20000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
