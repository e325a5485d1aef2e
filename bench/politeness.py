"""Measure the load that a crawl puts on servers of known capacity: figures, and a plot as SVG.

    python bench/politeness.py --seconds 45 --plot docs/explanation/politeness.svg

One crawl without a configured rate visits three servers on loopback. One handles four requests at once and queues the
others. One answers 429 with Retry-After beyond ten a second. One dies and comes back. The servers count.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from time import monotonic

import svg  # bench/svg.py: this folder is first on the path

from archiver.config.option_types import Rate
from archiver.config.settings import Settings, with_values
from archiver.crawl.build import open_crawl

WORKERS, NEEDS = 4, 0.1  # requests at once, and seconds for each: 40 a second
FLIGHT = 0.05  # seconds that a request may have been in flight when the server answered with Retry-After
LIMIT, REST = 10, 2  # requests in a second, and seconds of Retry-After
DIES, DEAD = 0.3, 0.25  # start and length, as shares of the whole time
STEADY = 0.1  # of the whole time, after which the shares are counted
WIDTH, HEIGHT, MARGIN = 720, 120, 40  # of one panel, in pixels


@dataclass
class Books:
    """The counts of one server; times are seconds since the start of the crawl."""

    arrived: list[float] = field(default_factory=list)
    good: list[float] = field(default_factory=list)  # when each good answer was given …
    took: list[float] = field(default_factory=list)  # … and after how long
    refused: list[float] = field(default_factory=list)
    worked: float = 0.0  # busy seconds of its workers in all
    early: int = 0  # requests before Retry-After was over


@dataclass
class Site:
    """An endless site: each page links to the next ones and needs nothing else."""

    answer: "Callable[[Site], object]"
    began: float
    books: Books = field(default_factory=Books)
    port: int = 0
    server: asyncio.Server | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def now(self) -> float:
        """Return seconds since the start of the crawl."""
        return monotonic() - self.began

    async def open(self) -> None:
        """Listen, on the previous port if there was one."""
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    def die(self) -> None:
        """Stop listening and reset every connection."""
        if self.server is not None:
            self.server.close()
        for writer in self.writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                self.books.arrived.append(self.now())
                target = request.split(b" ")[1]
                if target == b"/robots.txt":
                    writer.write(_message("404 Not Found", b""))
                else:
                    writer.write(await self.answer(self, target))  # type: ignore[call-arg, misc]
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    def page(self, target: bytes, since: float) -> bytes:
        """Return a page and count it as answered now."""
        self.books.good.append(self.now())
        self.books.took.append(self.now() - since)
        number = int(target.strip(b"/") or 0)
        links = "".join(f'<a href="/{number * 4 + step}">{number}</a>' for step in range(1, 5))
        return _message("200 OK", f"<!DOCTYPE html><title>{number}</title>{links}".encode())


def _message(status: str, body: bytes, *fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: text/html", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join((*lines, "", "")).encode() + body


def workers() -> "Callable[[Site, bytes], object]":
    """Return a server with so many workers; other requests wait."""
    free = asyncio.Semaphore(WORKERS)

    async def answer(site: Site, target: bytes) -> bytes:
        since = site.now()
        async with free:
            begun = site.now()
            await asyncio.sleep(NEEDS)
            site.books.worked += site.now() - begun
        return site.page(target, since)

    return answer


def limited() -> "Callable[[Site, bytes], object]":
    """Return a server that allows so many requests a second and answers others with Retry-After."""
    taken: list[float] = []
    until = float("-inf")

    async def answer(site: Site, target: bytes) -> bytes:
        nonlocal until
        since = site.now()
        site.books.early += until - REST + FLIGHT < since < until
        await asyncio.sleep(0.02)
        taken[:] = [at for at in taken if at > since - 1]
        if len(taken) < LIMIT:
            taken.append(since)
            return site.page(target, since)
        until = site.now() + REST
        site.books.refused.append(site.now())
        return _message("429 Too Many Requests", b"later", f"Retry-After: {REST}")

    return answer


def plain() -> "Callable[[Site, bytes], object]":
    """Return a server that needs twenty milliseconds for each answer."""

    async def answer(site: Site, target: bytes) -> bytes:
        since = site.now()
        await asyncio.sleep(0.02)
        return site.page(target, since)

    return answer


async def measured(seconds: float) -> list[Site]:
    """Crawl the three servers for so long."""
    began = monotonic()
    sites = [Site(make(), began) for make in (workers, limited, plain)]  # type: ignore[arg-type]
    for site in sites:
        await site.open()
    with tempfile.TemporaryDirectory() as folder:
        values = {"rate": Rate(0), "host_concurrency": 16, "max_time": seconds, "traps": "off"}
        seeds = tuple(f"http://127.0.0.1:{site.port}/" for site in sites)
        async with open_crawl(Path(folder), with_values(Settings(), {**values, "seeds": seeds}), resume=False) as crawl:
            crawling = asyncio.create_task(crawl.run())
            await asyncio.sleep(seconds * DIES)
            sites[2].die()
            await asyncio.sleep(seconds * DEAD)
            await sites[2].open()
            await crawling
    for site in sites:
        site.die()
    return sites


def figures(sites: list[Site], seconds: float) -> list[str]:
    """Return a line for each server."""
    busy, limits, mortal = (site.books for site in sites)
    span = seconds * (1 - STEADY)

    def share(books: Books, most: float) -> str:
        return f"{sum(at > seconds * STEADY for at in books.good) / span / most:.0%} of what it can give"

    tail = sorted(busy.took)[int(0.95 * len(busy.took))]
    back = next((at for at in mortal.arrived if at > seconds * (DIES + DEAD)), float("nan"))
    return [
        f"workers: {share(busy, WORKERS / NEEDS)}, at work {busy.worked / WORKERS / seconds:.0%} of the time",
        f"         {NEEDS:g} s unloaded; mean {mean(busy.took):.3f}, median {median(busy.took):.3f}, 95 % {tail:.3f} s",
        f"limited: {share(limits, LIMIT)}",
        f"         {len(limits.refused)} refusals, {limits.early} requests before a rest was over",
        f"mortal: asked again {back - seconds * (DIES + DEAD):.1f} s after it was back",
    ]


def plot(sites: list[Site], seconds: float) -> str:
    """Plot the good answers of each second, a panel for each server, with its capacity as a line."""
    names = (f"{WORKERS} at once, {NEEDS:g} s each", f"429 beyond {LIMIT} a second", "dies and comes back")
    tops = (WORKERS / NEEDS, float(LIMIT), 0.0)
    panels, base = [], 0
    for number, (site, name, top) in enumerate(zip(sites, names, tops, strict=True)):
        each = Counter(int(at) for at in site.books.good)
        highest = max((*each.values(), top, 1.0)) * 1.15
        base = MARGIN + number * (HEIGHT + MARGIN) + HEIGHT

        def place(second: float, rate: float, base: float = base, highest: float = highest) -> tuple[float, float]:
            return MARGIN + second / seconds * WIDTH, base - rate / highest * HEIGHT

        panels.append(svg.curve([place(second + 0.5, each[second]) for second in range(int(seconds))]))
        panels.append(svg.straight(place(0, 0), place(seconds, 0)))
        panels.append(svg.text(MARGIN, base - HEIGHT - 6, f"{name}: answers in each second"))
        if top:
            panels.append(svg.straight(place(0, top), place(seconds, top), svg.COLOURS[1], dashed=True))
    last = base + 16
    panels.append(svg.text(MARGIN + WIDTH, last, f"{seconds:g} s", "end"))
    return svg.document(WIDTH + 2 * MARGIN, last + 10, *panels)


def main() -> None:
    """Measure, print, and draw if requested."""
    parser = argparse.ArgumentParser(description="What a crawl takes of servers whose capacity is known.")
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--plot", type=Path, help="write an SVG picture here")
    options = parser.parse_args()
    sites = asyncio.run(measured(options.seconds))
    print("\n".join(figures(sites, options.seconds)))
    if options.plot:
        options.plot.write_text(plot(sites, options.seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
