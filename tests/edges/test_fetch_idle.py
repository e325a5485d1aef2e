"""Idle connections, limited in number and time; short pauses that end together; large responses."""

import asyncio
import errno
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from archiver.clock import TOGETHER, SharedTimers
from archiver.config.settings import LimitSettings
from archiver.errors import ShortageError
from archiver.fetch import wire
from archiver.fetch.connection import ConnectionPool, RawProtocol, most_idle
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.wire import IDLE, MOST_IDLE, PLAIN_FOR_TLS, IdleConnections, Wire
from archiver.model import Peer
from fixtures.fetching import CountingGate, fetching, taken, timeouts
from fixtures.rawserver import RawServer, keep

uvloop.new_event_loop().close()  # which opens a pipe for signals, once and for good

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class Kept(Wire):
    """A substitute for a connection."""

    def __init__(self, tls: str | None = None) -> None:
        self.shut = False
        self.peer = Peer(None, tls)

    def close(self) -> None:
        self.shut = True


class Clock:
    """A real event loop with a time that the test sets."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now = 1000.0
        self.loop.time = lambda: self.now  # type: ignore[method-assign]

    def at(self, moment: float) -> None:
        """Advance the time to *moment* and run what is due."""
        self.now = 1000.0 + moment
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()


@pytest.fixture(name="clock")
def a_clock() -> Iterator[Clock]:
    clock = Clock()
    yield clock
    clock.loop.close()


def test_the_latest_connection_of_an_origin_is_used_first(clock: Clock) -> None:
    waiting = IdleConnections(clock.loop)
    first, second, other = Kept(), Kept(), Kept()
    for origin, kept in (("http://a", first), ("http://b", other), ("http://a", second)):
        waiting.put(origin, kept)
    assert waiting.take("http://c") is None
    assert [waiting.take("http://a"), waiting.take("http://a"), waiting.take("http://a")] == [second, first, None]
    assert len(waiting) == 1
    waiting.close()
    assert (first.shut, second.shut, other.shut, len(waiting)) == (False, False, True, 0)


def test_connections_that_are_idle_too_long_are_closed(clock: Clock) -> None:
    waiting = IdleConnections(clock.loop)
    early, late, busy = Kept(), Kept(), Kept()
    waiting.put("http://a", early)
    clock.at(5)
    waiting.put("http://a", late)
    waiting.put("http://b", busy)
    clock.at(14)
    assert waiting.take("http://b") is busy
    waiting.put("http://b", busy)
    clock.at(IDLE - 0.1)
    assert not early.shut
    clock.at(IDLE + 0.1)
    assert (early.shut, late.shut) == (True, False)
    clock.at(IDLE + 5.1)
    assert (late.shut, busy.shut) == (True, False)
    clock.at(IDLE + 14.1)
    assert (busy.shut, len(waiting)) == (True, 0)
    again = Kept()
    waiting.put("http://a", again)
    clock.at(3 * IDLE + 0.2)
    assert again.shut


def test_above_the_limit_the_longest_idle_connection_is_closed(clock: Clock) -> None:
    most = 3.0
    waiting = IdleConnections(clock.loop, lambda: most)
    kept = [Kept() for _ in range(6)]
    for number, each in enumerate(kept):
        waiting.put(f"http://{number % 2}", each)
    assert [each.shut for each in kept] == [True] * 3 + [False] * 3
    waiting.drop("http://1")
    assert [each.shut for each in kept[3:]] == [True, False, True]
    assert waiting.take("http://0") is kept[4]
    most = 1.0  # a person lets more requests run at once
    more = [Kept(), Kept()]
    waiting.put("http://1", more[0])
    waiting.put("http://1", more[1])
    assert [each.shut for each in more] == [True, False]
    waiting.close()


def test_connections_with_tls_count_for_several(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take far more memory, whichever are taken and put back meanwhile."""
    monkeypatch.setattr(wire, "MOST_IDLE", 2)
    waiting = IdleConnections(clock.loop)
    plain = [Kept() for _ in range(PLAIN_FOR_TLS)]
    for number, each in enumerate(plain):
        waiting.put(f"http://{number}", each)
    secure, other = Kept("tls/1.3"), Kept("tls/1.3")
    waiting.put("https://a", secure)
    assert not any(each.shut for each in plain)
    for _ in range(9):
        assert waiting.take("https://a") is secure
        waiting.put("https://a", secure)
    waiting.put("http://b", Kept())
    assert [each.shut for each in plain] == [True] + [False] * (PLAIN_FOR_TLS - 1)
    waiting.put("https://b", other)
    assert all(each.shut for each in plain)
    assert (secure.shut, other.shut, len(waiting)) == (True, False, 2)
    waiting.close()


@pytest.mark.parametrize(
    ("files", "concurrency", "slow", "most"),
    [
        (100, 8, 256, 25),
        (1024, 32, 256, 256),
        (4096, 32, 256, 1760),
        (4096, 1000, 256, 1024),
        (20_000, 10_000, 256, 7696),
        (20_000, 10_000, 10_000, 2952),
        (12_233, 10_000, 256, MOST_IDLE),
        (math.inf, 10_000, 256, math.inf),
    ],
)
def test_more_connections_may_be_idle_if_files_are_left(files: float, concurrency: int, slow: int, most: float) -> None:
    """What requests need, and the archive, stays free."""
    assert most_idle(LimitSettings(concurrency=concurrency, slow_concurrency=slow), files) == most


def test_pauses_are_never_too_short_and_end_together(clock: Clock) -> None:
    pauses = SharedTimers(clock.loop)
    waiters = [clock.loop.create_future() for _ in range(4)]
    for number, waiter in enumerate(waiters):
        clock.now = 1000.0 + number * TOGETHER / 4
        pauses.wake(waiter, 1.0)
    waiters[1].set_result(None)  # something was heard
    waiters[2].cancel()
    clock.at(0.9999)
    assert not waiters[0].done()
    clock.at(1 + TOGETHER)
    assert waiters[0].done()
    assert waiters[3].done()
    last = clock.loop.create_future()
    pauses.wake(last, 1.0)
    clock.at(1.9)
    assert not last.done()
    clock.at(2.1 + TOGETHER)
    assert last.done()
    pauses.close()


def test_idle_connections_give_their_descriptors_to_active_ones() -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(5.0), AddressGuard(["127.0.0.1"], []))
        connect = lines._connect_directly
        (await lines.connect(server.url("/").rstrip("/"))).give_back(reusable=True)

        async def limited(origin: str) -> tuple[RawProtocol, Callable[[], None]]:
            if lines.alive:
                raise OSError(errno.EMFILE, "as if this process could open no more")
            return await connect(origin)

        lines._connect_directly = limited  # type: ignore[method-assign]
        wire = await lines.connect(f"http://127.0.0.1:{other.port}")
        with pytest.raises(ShortageError):
            await lines.connect(server.url("/").rstrip("/"))
        wire.give_back(reusable=False)
        await lines.close()

    with RawServer() as server, RawServer() as other:
        asyncio.run(main())


def test_a_large_response_lets_small_ones_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.fetch.exchange.GIVE_WAY", 1e9)
    monkeypatch.setattr("archiver.fetch.exchange.LOOK", 1.0)

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            taken(await fetcher.fetch(server.url("/small"), CountingGate()))
            held = asyncio.create_task(fetcher.fetch(server.url("/large"), CountingGate()))
            for _ in range(20):
                taken(await fetcher.fetch(server.url("/small"), CountingGate()))
            assert not held.done()
            assert len(taken(await held)) > len(large)

    large = b"x" * (1 << 20)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(large)
    with RawServer({"/large": keep(head + large), "/small": keep(ANSWER)}) as server:
        asyncio.run(main())


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_connection_aborted_while_it_is_made_does_not_block_closing(factory: Callable[[], Any]) -> None:
    """uvloop never reports such a connection as lost to its protocol."""

    async def leave() -> None:
        lines = ConnectionPool(timeouts(5.0), AddressGuard(["127.0.0.1"], []))
        waiting = asyncio.create_task(lines.connect(server.url("").rstrip("/")))

        class Left(RawProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                waiting.cancel()

        lines._new_protocol = partial(Left, lines)  # type: ignore[assignment]
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(300):
            await lines.close()

    with RawServer({"/": keep(ANSWER)}) as server, asyncio.Runner(loop_factory=factory) as runner:
        runner.run(leave())
