"""Persistent connections are reused while they can be trusted, and no URL gets a response meant for another."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.errors import Failure, FetchError
from archiver.fetch.client import Fetcher
from archiver.http import Dechunker
from archiver.http.auth import ConnectionLogin
from archiver.model import Exchange
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.flag import Gate
from fixtures.log import Row
from fixtures.rawserver import Answer, End, RawServer, Route, Sendable, keep

POISON = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 6\r\n\r\nPOISON"
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


def ok(body: bytes, *fields: bytes) -> bytes:
    head = [b"HTTP/1.1 200 OK", *fields, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*head, b"", body])


def body(exchange: Exchange) -> bytes:
    framed = taken(exchange)[exchange.framing.head_length :]
    return b"".join(Dechunker().feed(framed)) if exchange.framing.chunked else framed


@BOTH
@pytest.mark.parametrize("noticed", [False, True], ids=["in the socket", "noticed by the loop"])
@pytest.mark.parametrize("poison", [POISON, ok(b"POISON"), b"x"], ids=["408", "200", "junk"])
def test_bytes_on_an_idle_connection_are_no_response(
    tmp_path: Path, poison: bytes, *, tls: bool, noticed: bool
) -> None:
    before, after = Gate(), Gate()

    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path) as fetcher:
            assert body(await fetcher.fetch(server.url("/a"), gate)) == b"a"
            before.open()
            if noticed:
                await after.arrived.reached()
            else:
                after.arrived.wait()  # blocks this very loop
            assert body(await fetcher.fetch(server.url("/b"), gate)) == b"b"
        assert gate.passed == 2

    poisoned = Answer((ok(b"a"), before, poison, after), End.HANG)
    with RawServer({"/a": poisoned, "/b": keep(ok(b"b"))}, tls=tls) as server:
        asyncio.run(main())
    assert server.log.targets() == ["/a", "/b"]
    assert [row.connection for row in server.log] == [0, 1]


@BOTH
def test_bytes_while_the_gate_is_closed_are_no_response(tmp_path: Path, *, tls: bool) -> None:
    before, after = Gate(), Gate()

    async def slow_gate(*, verified: bool, login: ConnectionLogin) -> bytes:
        before.open()
        await after.arrived.reached()
        return b"X-Verified: yes\r\n" if verified else b""

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            assert body(await fetcher.fetch(server.url("/a"), CountingGate())) == b"a"
            assert body(await fetcher.fetch(server.url("/b"), slow_gate)) == b"b"

    poisoned = Answer((ok(b"a"), before, ok(b"POISON"), after), End.HANG)
    with RawServer({"/a": poisoned, "/b": keep(ok(b"b"))}, tls=tls) as server:
        asyncio.run(main())
    assert server.log.targets() == ["/a", "/b"]


@BOTH
@pytest.mark.parametrize(
    "first",
    [POISON, ok(b"POISON") + ok(b"b"), b"POISON", POISON + ok(b"b")],
    ids=["408", "another answer before", "junk", "408 before"],
)
def test_a_doubtful_response_on_a_used_connection_is_requested_again(
    tmp_path: Path, first: bytes, *, tls: bool
) -> None:
    """The surprise arrives while the next request is already on its way."""

    def b(row: Row) -> Sendable:
        return keep(first if row.connection == 0 else ok(b"b"))

    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path, timeout=1.0) as fetcher:
            assert body(await fetcher.fetch(server.url("/a"), gate)) == b"a"
            exchange = await fetcher.fetch(server.url("/b"), gate)
            assert (body(exchange), exchange.surplus) == (b"b", b"")
        assert gate.passed == 3

    with RawServer({"/a": keep(ok(b"a")), "/b": b}, tls=tls) as server:
        if first == b"POISON":
            server.routes = {"/a": keep(ok(b"a")), "/b": lambda row: first if row.connection == 0 else ok(b"b")}
        asyncio.run(main())
    assert [(row.target, row.connection) for row in server.log] == [("/a", 0), ("/b", 0), ("/b", 1)]


def test_on_a_new_connection_no_response_is_doubtful(tmp_path: Path) -> None:
    served: dict[str, Route] = {"/late": keep(POISON), "/two": keep(ok(b"two") + ok(b"b")), "/bare": b"bare"}

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            exchange = await fetcher.fetch(server.url("/late"), CountingGate())
            assert (exchange.framing.status, body(exchange)) == (408, b"POISON")
        async with fetching(tmp_path) as fetcher:
            exchange = await fetcher.fetch(server.url("/two"), CountingGate())
            assert (body(exchange), exchange.surplus) == (b"two", ok(b"b"))
            assert body(await fetcher.fetch(server.url("/bare"), CountingGate())) == b"bare"

    with RawServer(served) as server:
        asyncio.run(main())
    assert server.log.targets() == ["/late", "/two", "/bare"]


def test_surplus_in_a_packet_of_its_own_is_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.fetch.exchange.SETTLE", 0.3)

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            exchange = await fetcher.fetch(server.url(), CountingGate())
            assert (taken(exchange), exchange.surplus) == (ok(b"a"), b"more")

    with RawServer({"/": Answer((ok(b"a"), b"more"), End.KEEP)}) as server:
        asyncio.run(main())


@BOTH
@pytest.mark.parametrize("end", [End.CLOSE, End.RESET])
def test_a_closed_connection_is_replaced_once(tmp_path: Path, end: End, *, tls: bool) -> None:
    """The server closes it just as the request arrives."""

    def b(row: Row) -> Sendable:
        return Answer((), end) if row.connection < 3 else keep(ok(b"b"))

    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path) as fetcher:
            first = [fetcher.fetch(server.url("/a"), gate) for _ in range(3)]
            assert [body(exchange) for exchange in await asyncio.gather(*first)] == [b"a"] * 3
            assert body(await fetcher.fetch(server.url("/b"), gate)) == b"b"
        assert gate.passed == 5, "the gate is asked for each request"

    with RawServer({"/a": keep(ok(b"a")), "/b": b}, tls=tls) as server:
        asyncio.run(main())
    assert server.log.targets() == ["/a", "/a", "/a", "/b", "/b"]
    assert server.log[4].connection == 3, "idle ones beside a dead one are not tried"


def test_a_distrusted_host_gets_one_exchange_per_connection(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            for target in ("/plain", "/blank", "/plain", "/odd", "/plain", "/plain"):
                taken(await fetcher.fetch(server.url(target), CountingGate()))

    served = {"/plain": keep(ok(b"a")), "/blank": keep(ok(b"a") + b"\r\n"), "/odd": keep(ok(b"a") + b"b")}
    with RawServer(served) as server:
        asyncio.run(main())
    assert [row.connection for row in server.log] == [0, 0, 1, 1, 2, 3]


def test_a_server_that_always_closes_gets_one_request(tmp_path: Path) -> None:
    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch(server.url(), gate)
            assert caught.value.failure is Failure.DISCONNECT
        assert gate.passed == 1

    with RawServer({"/": b""}) as server:
        asyncio.run(main())
    assert len(server.log) == 1


def test_a_connection_that_dies_before_the_request_is_replaced(tmp_path: Path) -> None:
    """Servers close idle connections, and the gate may take long."""
    closing = asyncio.Event()
    opened: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        if len(opened) == 1:
            closing.set()
        else:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ok(b"hi", b"Connection: close"))
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        passed = CountingGate()

        async def gate(*, verified: bool, login: ConnectionLogin) -> bytes:
            await closing.wait()
            await opened[0].wait_closed()
            for _ in range(5):  # turns of the loop, for the end to be noticed on this side
                await asyncio.sleep(0)
            return await passed(verified=verified, login=login)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, fetching(tmp_path) as fetcher:
            port = server.sockets[0].getsockname()[1]
            assert body(await fetcher.fetch(f"http://127.0.0.1:{port}/", gate)) == b"hi"
        assert passed.passed == 2

    asyncio.run(main())


def test_bytes_sent_before_the_request_are_read(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-Open\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, fetching(tmp_path) as fetcher:
            port = server.sockets[0].getsockname()[1]
            for _ in range(20):
                exchange = await fetcher.fetch(f"http://127.0.0.1:{port}/", CountingGate())
                assert taken(exchange) == b"SSH-2.0-Open\r\n"
                assert exchange.framing.faults == ("no-status-line",)

    asyncio.run(main())


def misbehaving(seed: int) -> Callable[[Row], Sendable]:
    """A server whose responses contain the target, and whose behaviour changes from response to response."""
    dice = random.Random(seed)

    def answer(row: Row) -> Sendable:
        own = row.target.encode()
        whole = ok(own)
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nT: 1\r\n\r\n" % (
            len(own),
            own,
        )
        stranger = ok(b"POISON")
        if dice.random() < 0.5:
            return keep(dice.choice((whole, chunked)))
        choices: list[Sendable] = [
            keep(b"HTTP/1.1 103 Hints\r\n\r\n" + whole),
            keep(whole + stranger),
            keep(whole + b"\r\n"),
            Answer((chunked, POISON), End.KEEP),
            Answer((whole, b"junk"), End.KEEP),
            Answer((whole, 0.05, POISON), End.CLOSE),
            Answer((whole, 0.001), End.CLOSE),
            Answer((whole, 0.003), End.RESET),
            Answer((), End.CLOSE),
            Answer((), End.RESET),
            Answer((whole[:-1],), End.CLOSE),
            Answer(tuple(whole[at : at + 1] for at in range(len(whole))), End.KEEP),
            ok(own, b"Connection: close"),
            b"HTTP/1.1 200 OK\r\n\r\n" + own,
            own,
        ]
        return dice.choice(choices)

    return answer


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_no_url_gets_the_response_of_another(tmp_path: Path, seed: int, *, tls: bool) -> None:
    answered = failed = 0

    async def worker(fetcher: Fetcher, number: int) -> None:
        nonlocal answered, failed
        for turn in range(60):
            target = f"/{number}/{turn}"
            try:
                exchange = await fetcher.fetch(server.url(target, hosts[turn % len(hosts)]), CountingGate())
            except FetchError:
                failed += 1
                continue
            answered += 1
            got = body(exchange)
            assert got == target.encode() or (exchange.truncated and target.encode().startswith(got))

    async def main() -> None:
        async with fetching(tmp_path) as fetcher, asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(worker(fetcher, number))

    hosts = tuple(f"127.0.0.{number}" for number in range(1, 11))  # one that was caught is not trusted any more
    with RawServer(otherwise=misbehaving(seed), tls=tls, hosts=hosts) as server:
        asyncio.run(main())
    assert answered > 300
    assert failed > 0
    assert len({row.connection for row in server.log}) < len(server.log)
