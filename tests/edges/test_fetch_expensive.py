"""Responses that cost far more CPU time than their size justifies wait, and quick ones do not."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.fetch.exchange import FEW, STEP, WAKING, FramerSteps, SharedCpu
from archiver.http import Framer
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.log import Row
from fixtures.rawserver import Answer, End, Piece, RawServer, Sendable, trickle

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
QUICK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Held:
    """A substitute for a wire that counts calls."""

    paused = resumed = 0

    def pause(self) -> None:
        self.paused += 1

    def resume(self) -> None:
        self.resumed += 1


def test_costly_responses_share_one_wait() -> None:
    """However many there are, together they get no more time than one alone."""

    async def main() -> None:
        crowd, wires, loop = SharedCpu(), [Held() for _ in range(10)], asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(crowd.wait(wire, 0.001) for wire in wires))  # type: ignore[arg-type]
        assert loop.time() - began >= 10 * 0.001 * 20.0 - 0.01
        assert {(wire.paused, wire.resumed) for wire in wires} == {(1, 1)}

    asyncio.run(main())


@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"1;a=b\r\nx\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n"])
def test_chunks_are_processed_in_short_steps(chunk: bytes) -> None:
    body = chunk * (200_000 // len(chunk)) + b"0\r\n\r\n"
    framer = Framer()
    pieces = list(FramerSteps(framer).feed(CHUNKED + body + b"more"))
    assert b"".join(pieces) == CHUNKED + body
    assert max(map(len, pieces)) <= STEP
    assert framer.done
    assert framer.surplus == b"more"


def test_a_plain_body_is_processed_as_it_arrives() -> None:
    framer = Framer()
    steps = FramerSteps(framer)
    first = list(steps.feed(PLAIN % 1_000_000))
    assert [len(piece) for piece in steps.feed(b"x" * 500_000)] == [500_000]
    assert first
    assert steps.spent == 0


def test_many_tiny_pieces_count_as_costly() -> None:
    framer = Framer()
    steps = FramerSteps(framer)
    costs = []
    for byte in CHUNKED + b"40\r\n" + b"x" * 50:
        list(steps.feed(bytes((byte,))))
        costs.append(steps.spent)
    assert costs[:FEW] == [0.0] * FEW
    assert min(costs[FEW:]) >= WAKING


@pytest.mark.parametrize("kind", ["chunks", "segments"])
def test_quick_responses_pass_costly_ones(tmp_path: Path, kind: str) -> None:
    """A hundred quick responses while a dozen endless ones arrive byte by byte; none of these stops either."""

    def pieces() -> Iterator[Piece]:
        yield CHUNKED
        while True:
            yield b"1\r\nx\r\n" * 10_000
            yield 0.0

    def endless(row: Row) -> Sendable:
        if kind == "segments":
            return trickle(PLAIN % 10_000_000 + b"x" * 50_000, pause=0.0005, end=End.HANG)
        return Answer(pieces(), End.CLOSE)

    async def main() -> None:
        with RawServer({"/quick": QUICK}, otherwise=endless) as server:
            async with fetching(tmp_path, timeout=60.0) as fetcher:
                costly = [asyncio.create_task(fetcher.fetch(server.url(f"/{n}"), CountingGate())) for n in range(12)]
                for _ in range(100):
                    assert taken(await fetcher.fetch(server.url("/quick"), CountingGate())) == QUICK
                came = [progress.received for progress in fetcher._progress.values()]
                assert len(came) == len(costly)
                assert min(came) > 0
                for task in costly:
                    task.cancel()
                await asyncio.gather(*costly, return_exceptions=True)

    asyncio.run(main())


def test_a_body_in_tiny_chunks_is_stored_unchanged(tmp_path: Path) -> None:
    raw = CHUNKED + b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n"

    async def main() -> None:
        with RawServer(otherwise=Answer((raw,), End.KEEP)) as server:
            async with fetching(tmp_path) as fetcher:
                exchange: Any = await fetcher.fetch(server.url(), CountingGate())
                assert exchange.truncated is None
                assert taken(exchange) == raw

    asyncio.run(main())
