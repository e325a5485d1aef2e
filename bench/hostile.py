"""Measure how much honest hosts still get while a crawl also visits hostile ones; one line per attack.

    python bench/hostile.py                     # all attacks
    python bench/hostile.py links broken-xml    # only these
    python bench/hostile.py --seconds 30 --list

One crawl of `HONEST` honest hosts runs for so many seconds, first alone and then with the hosts of the attack. All
are on loopback addresses, in a separate process. The servers count. The figure is the number of requests that the
honest hosts answered in the second half of that time, as a share of those without the attack.

To add an attack, write a class with `says`, `hosts`, `options` and `answer`, and add it to `ATTACKS`.
"""

import argparse
import asyncio
import gzip
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Protocol

import hostile_network
from hostile_network import VICTIM

HONEST = 8  # hosts
PAGES = 100_000  # of each honest host
TARGET = 0.8  # of their answers without the attack
SETTLING = 0.5  # of the time, after which answers are counted
TRIES = 2  # of an attack below the target: the crawl with and the one without it are both measured again
PORT_TRIES = 20  # a port that is free on one address may be in use on another


class Attack(Protocol):
    """One attack."""

    says: str  # a short description
    hosts: int  # number of hostile hosts
    options: tuple[str, ...]  # options of the crawl

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Answer the request for *target*; the caller closes the connection afterwards."""


def message(body: bytes, media_type: str = "text/html", *fields: str) -> bytes:
    """Return a whole answer with this *body*."""
    head = ["HTTP/1.1 200 OK", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(head).encode() + body


def number_of(target: str) -> int:
    """Return the number at the end of the path."""
    digits = "".join(filter(str.isdigit, target))
    return int(digits[-9:] or 0)


class Links:
    """Pages of 50,000 links, all of them new."""

    says = "pages of 50,000 links"
    hosts = 2
    options = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Send a page of links into a new folder."""
        body = b"".join(
            b"<a href=/d%s/%d>x</a>" % (target.strip("/").replace("/", "-").encode(), n) for n in range(50_000)
        )
        packed = gzip.compress(b"<!doctype html><title>x</title>" + body, 1)
        writer.write(message(packed, "text/html", "Content-Encoding: gzip"))


class Sitemaps:
    """A maze of sitemaps: each names a thousand further ones and 20,000 pages."""

    says = "sitemaps that name sitemaps without end"
    hosts = 2
    options = ()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Send a sitemap, or the robots.txt that names the first one."""
        host = writer.get_extra_info("sockname")
        base = f"http://{host[0]}:{host[1]}"
        if target == "/robots.txt":
            writer.write(message(f"Sitemap: {base}/s0.xml\n".encode(), "text/plain"))
            return
        number = number_of(target)
        maps = "".join(f"<sitemap><loc>{base}/s{number * 1000 + n}.xml</loc></sitemap>" for n in range(1, 1001))
        pages = "".join(f"<url><loc>{base}/p{number}/{n}</loc></url>" for n in range(20_000))
        body = f"<sitemapindex>{maps}{pages}</sitemapindex>" if target.endswith(".xml") else "<p>a page"
        media_type = "application/xml" if target.endswith(".xml") else "text/html"
        writer.write(message(gzip.compress(body.encode(), 1), media_type, "Content-Encoding: gzip"))


class BrokenXml:
    """Small answers that keep a careless parser busy for minutes."""

    says = "2 kB of torn tags (XML)"
    hosts = 2
    options = ()

    def __init__(self) -> None:
        self._body = gzip.compress(b"<opml>" + b"<a /" * 100_000 + b"<svg>")

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Send a page that links to further ones and needs 20 broken documents."""
        if target.endswith(".xml"):
            writer.write(message(self._body, "application/xml", "Content-Encoding: gzip"))
            return
        number = number_of(target)
        parts = "".join(f'<a href="/{number}x{n}.xml">x</a>' for n in range(20))
        writer.write(message(f'<!doctype html>{parts}<a href="/{number * 2 + 1}">x</a>'.encode()))


class Heads:
    """Heads of 900 kB with fields that no browser would read."""

    says = "heads of 900 kB"
    hosts = 20
    options = ()

    def __init__(self) -> None:
        fields = "".join(f"X-{number}: {number}\r\n" for number in range(60_000))[:900_000]
        self._head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n".encode()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        """Send a page that links to further ones, behind such a head."""
        if target == "/":
            writer.write(message("".join(f'<a href="/{n}">x</a>' for n in range(1000)).encode()))
            return
        writer.write(self._head + b"\r\nContent-Length: 0\r\n\r\n")


ATTACKS: Mapping[str, type[Attack]] = {
    "links": Links,
    "sitemaps": Sitemaps,
    "broken-xml": BrokenXml,
    "heads": Heads,
    **hostile_network.ATTACKS,
}


def honest(number: int) -> bytes:
    """Return an ordinary page: some text, and links to the next pages."""
    links = "".join(f'<p><a href="/{n}">page {n}</a></p>' for n in range(number * 4 + 1, number * 4 + 5) if n < PAGES)
    text = "".join(f"<p>{number * 1000 + n} words that only this page has</p>" for n in range(200))
    return message(f"<!doctype html><title>{number}</title>{text}{links}".encode())


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def started(handlers: Mapping[str, Handler], tries: int = PORT_TRIES) -> tuple[int, list[asyncio.Server]]:
    """Start a server on each address; return the port, which is free on all of them, and the servers."""
    port, servers = 0, list[asyncio.Server]()
    try:
        for address, handler in handlers.items():
            servers.append(await asyncio.start_server(handler, address, port))
            port = servers[-1].sockets[0].getsockname()[1]
    except OSError:
        for server in servers:
            server.close()
        if not tries:
            raise
        return await started(handlers, tries - 1)
    return port, servers


class Servers:
    """All hosts of one crawl, on their own addresses."""

    def __init__(self, attack: Attack | None) -> None:
        self._attack = attack
        self.answered: list[float] = []  # when an honest host answered
        self.asked = 0  # requests to the hostile hosts
        self.flooded: list[float] = []  # when the victim, which no seed names, got a request

    async def run(self, pipe: Connection) -> None:
        """Serve until something arrives through *pipe*, then send the counts back."""
        addresses = [f"127.0.1.{n}" for n in range(1, HONEST + 1)]
        hostile = [f"127.0.2.{n}" for n in range(1, (self._attack.hosts if self._attack else 0) + 1)]
        handlers: dict[str, Handler] = {
            **dict.fromkeys(addresses, self._honest),
            **dict.fromkeys(hostile, self._hostile),
            VICTIM: self._victim,
        }
        port, servers = await started(handlers)
        pipe.send([f"http://{address}:{port}/" for address in (*addresses, *hostile)])
        await asyncio.to_thread(pipe.recv)
        for server in servers:
            server.close()
        pipe.send((self.answered, self.asked, most_in_a_second(self.flooded)))

    async def _honest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                target = request.split(b" ")[1].decode("latin-1")
                if target == "/robots.txt":
                    writer.write(message(b"", "text/plain"))
                else:
                    writer.write(honest(number_of(target)))
                    self.answered.append(monotonic())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _victim(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.flooded.append(monotonic())
                writer.write(message(b"GIF89a", "image/gif"))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _hostile(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._attack is not None
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                self.asked += 1
                await self._attack.answer(request.split(b" ")[1].decode("latin-1"), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def most_in_a_second(moments: Sequence[float]) -> int:
    """Return how many of *moments*, in order, are within any second."""
    return max((bisect_left(moments, at + 1) - place for place, at in enumerate(moments)), default=0)


def serve(name: str, pipe: Connection) -> None:
    """Run the servers in this process."""
    asyncio.run(Servers(ATTACKS[name]() if name else None).run(pipe))


def processor_time() -> float:
    """Return the CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(name: str, seconds: float) -> tuple[float, str]:
    """Return the honest hosts' answers per second under the attack *name* ("": none), and remarks."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(name, there))
    process.start()
    try:
        seeds: Sequence[str] = here.recv()
        options = ATTACKS[name].options if name else ()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "sitecustomize.py").write_text(hostile_network.LOOKUPS)
            began, worked = monotonic(), processor_time()
            command = [
                sys.executable,
                "-m",
                "archiver",
                "crawl",
                *seeds,
                "-o",
                f"{folder}/c",
                "--max-time",
                f"{seconds:g}",
            ]
            ran = subprocess.run(
                [*command, "--traps", "off", *options],
                capture_output=True,
                text=True,
                timeout=seconds * 10 + 60,
                cwd=Path(__file__).parents[1],
                check=False,
                env={**os.environ, "PYTHONPATH": folder},
            )
            took, worked = monotonic() - began, processor_time() - worked
        here.send("end")
        answered, asked, flooded = here.recv()
    finally:
        process.join(10)
        process.kill()
    start, end = began + seconds * SETTLING, began + seconds
    count = sum(start <= at < end for at in answered)
    victim = f"; at the victim at most {flooded} requests in a second" if flooded else ""
    ending = f"exit code {ran.returncode} after {took:.0f} s, {worked:.0f} s of processor time"
    return count / (end - start), f"{asked} hostile requests{victim}; {ending}"


def main() -> None:
    """Measure, and print a line for each attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", help=", ".join(ATTACKS))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--list", action="store_true", help="name the attacks, and do nothing")
    given = parser.parse_args()
    if unknown := set(given.attacks) - ATTACKS.keys():
        parser.error(f"no such attack: {', '.join(sorted(unknown))}; there are {', '.join(ATTACKS)}")
    if given.list:
        for name, attack in ATTACKS.items():
            print(f"{name:16} {attack.says}")
        return
    print(f"load {os.getloadavg()[0]:.1f}")
    alone, ending = measured("", given.seconds)
    print(f"{'no attack':16} {alone:6.1f} honest answers/s; {ending}", flush=True)
    for name in given.attacks or ATTACKS:
        for _ in range(TRIES):
            load = os.getloadavg()[0]
            rate, ending = measured(name, given.seconds)
            below = rate < TARGET * alone
            share = f"{rate / alone:4.0%}" if alone else "-"
            verdict = f"  below {TARGET:.0%}" if below else ""
            print(f"{name:16} {rate:6.1f} honest answers/s = {share}; {ending}; load {load:.1f}{verdict}", flush=True)
            if not below:
                break
            alone, ending = measured("", given.seconds)  # the machine may have become busier
            print(f"{'no attack':16} {alone:6.1f} honest answers/s; {ending}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
