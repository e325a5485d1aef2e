"""An exchange holds exactly what crossed the wire in both directions, whatever the server sends."""

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from archiver import __version__
from archiver.errors import Failure, FetchError
from archiver.http import Digester, digest_of
from archiver.model import Exchange, Truncation
from fixtures import rawserver
from fixtures.badserver import BAD, Bad, Verdict, routes
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.rawserver import Answer, End, RawServer, keep, trickle

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
uvloop.new_event_loop().close()  # the first one opens a pipe for good


def run(main: Coroutine[Any, Any, None], loop: str = "asyncio") -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main)


def check(bad: Bad, exchange: Exchange, block: bytes, *, at_once: bool) -> None:
    before, _, after = bad.raw.partition(bad.block)
    if bad.exact:
        assert block == bad.block
        assert exchange.interim == before
        assert exchange.surplus == after if at_once else after.startswith(exchange.surplus)
    else:
        assert bad.block.startswith(block)
    if bad.verdict is Verdict.COMPLETE:
        assert exchange.truncated is None
    elif bad.verdict is Verdict.TRUNCATED:
        assert exchange.truncated is Truncation.DISCONNECT
    else:
        assert exchange.truncated or exchange.framing.faults


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("size", [0, 1], ids=["whole", "byte by byte"])
def test_each_bad_response_is_stored_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, loop: str, tls: bool, size: int
) -> None:
    if size:
        monkeypatch.setattr("archiver.fetch.exchange.SETTLE", 0.04)  # surplus trickles, from a slow thread
    short = {name: bad for name, bad in BAD.items() if not size or len(bad.raw) < 500}

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            for name, bad in short.items():
                try:
                    exchange = await fetcher.fetch(server.url(f"/{name}"), CountingGate())
                except FetchError:
                    assert not bad.exact, name  # a reset may swallow what was sent before it
                    continue
                block = taken(exchange)
                check(bad, exchange, block, at_once=not size)
                assert exchange.request == server.log.requests(f"/{name}")[-1], name
                assert exchange.duration >= 0

    with RawServer(routes(size), tls=tls) as server:
        run(main(), loop)
    assert len(server.log) == len(short), "no request was repeated"
    assert len({row.connection for row in server.log}) < len(short), "connections are kept where they can be"


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_one_connection_carries_many_exchanges_at_the_same_peer(tmp_path: Path, *, tls: bool) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path) as fetcher:
            for number in range(20):
                exchange = await fetcher.fetch(server.url(f"/{number}?a=%20b"), gate)
                assert taken(exchange) == body
                assert exchange.peer.ip == "127.0.0.1"
                if tls:
                    assert (exchange.peer.tls, exchange.notes) == ("tls/1.3", ("tls-unverified",))
                    assert str(exchange.peer.cipher).startswith("TLS_")
                else:
                    assert (exchange.peer.tls, exchange.peer.cipher, exchange.notes) == (None, None, ())
        assert gate.passed == 20

    with RawServer(otherwise=keep(body), tls=tls) as server:
        run(main())
    assert {row.connection for row in server.log} == {0}


def test_the_request_follows_the_settings(tmp_path: Path) -> None:
    async def main() -> None:
        settings = {"contact": "https://example.org/who", "header": ("X-A:  1", "accept: text/plain", "Host: evil")}
        async with fetching(tmp_path, **settings) as fetcher:
            taken(await fetcher.fetch(server.url("/a/b?c=d%2F&e"), CountingGate()))

    with RawServer() as server:
        run(main())
    agent = f"Mozilla/5.0 (compatible; +https://example.org/who; archiver/{__version__})"
    assert (
        server.log[0].request
        == (
            f"GET /a/b?c=d%2F&e HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUser-Agent: {agent}\r\n"
            "Accept-Encoding: gzip\r\nX-A: 1\r\naccept: text/plain\r\n\r\n"
        ).encode()
    )


@pytest.mark.parametrize("size", [1 << 10, 300 << 10, 3 << 20])
@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_large_responses_are_hashed_as_they_arrive(tmp_path: Path, size: int, *, chunked: bool) -> None:
    payload = bytes(range(256)) * (size // 256)
    chunks = [payload[at : at + 70_000] for at in range(0, size, 70_000)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nT: 1\r\n\r\n"
    head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
    raw = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + (framed if chunked else payload)

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            exchange = await fetcher.fetch(server.url(), CountingGate())
            digests = exchange.digests
            first = exchange.response.head(100)
            assert b"".join(exchange.response.pieces()) == raw, "a block can be read more than once"
            assert taken(exchange) == raw
            assert first == raw[:100]
            if digests is None:
                digester = Digester("sha256", exchange.framing)
                digester.feed(raw)
                digests = digester.digests()
            assert digests.block == digest_of("sha256", raw)
            assert digests.payload == digest_of("sha256", payload)
            assert digests.payload_length == size
            assert (exchange.digests is None) == (size < 100_000)

    with RawServer({"/": trickle(raw, size=50_000)}) as server:
        run(main())
    assert list(tmp_path.iterdir()) == []


def test_ipv6(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            exchange = await fetcher.fetch(server.url(), CountingGate())
            taken(exchange)
            assert exchange.peer.ip == "::1"
            assert f"Host: [::1]:{server.port}\r\n".encode() in exchange.request

    with RawServer(hosts=("::1",)) as server:
        run(main())


def suite_replies(suites: Path) -> dict[str, tuple[bytes, str]]:
    folder = suites / "http-replies"
    rows = json.loads((folder / "index.json").read_text())
    replies = {row["file"]: ((folder / row["file"]).read_bytes(), row["expected"]) for row in rows}
    others = {path.name: (path.read_bytes(), "any") for path in (suites / "http" / "asis").iterdir()}
    assert replies
    assert others
    return {**replies, **others}


@pytest.mark.suites
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("size", [0, 1], ids=["whole", "byte by byte"])
def test_replies_of_other_test_suites(tmp_path: Path, suites: Path, *, tls: bool, size: int) -> None:
    replies = {name: row for name, row in suite_replies(suites).items() if not size or len(row[0]) < 3000}
    served = {f"/{name}": trickle(raw, size=size) if size else raw for name, (raw, _) in replies.items()}

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            for name, (raw, expected) in replies.items():
                exchange = await fetcher.fetch(server.url(f"/{name}"), CountingGate())
                block = taken(exchange)
                whole = exchange.interim + block + exchange.surplus
                assert whole == raw if not size else raw.startswith(whole), name
                assert exchange.request == server.log.requests(f"/{name}")[-1]
                if expected == "parsable":
                    assert exchange.truncated is None, name
                if expected == "truncated":
                    assert exchange.truncated, name
                if expected == "garbage":
                    assert exchange.truncated or exchange.framing.faults, name

    with RawServer(served, tls=tls) as server:
        run(main())
    assert len(server.log) == len(replies)


@pytest.mark.suites
def test_replies_of_other_test_suites_on_an_open_connection(tmp_path: Path, suites: Path) -> None:
    """Only responses that state their end are complete; the others are cut by time, with all that was received."""
    replies = {name: raw for name, (raw, _) in suite_replies(suites).items()}
    served = {f"/{name}": Answer((raw,), End.HANG) for name, raw in replies.items()}

    async def main() -> None:
        async with fetching(tmp_path, timeout=2) as fetcher, asyncio.TaskGroup() as group:
            for name, raw in replies.items():
                group.create_task(one(fetcher.fetch(server.url(f"/{name}"), CountingGate()), name, raw))

    async def one(fetch: Coroutine[Any, Any, Exchange], name: str, raw: bytes) -> None:
        exchange = await fetch
        block = taken(exchange)
        assert exchange.interim + block + exchange.surplus == raw, name

    with RawServer(served) as server:
        run(main())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("said", [True, False], ids=["close_notify", "nothing"])
@pytest.mark.parametrize("stated", [True, False], ids=["length", "no length"])
def test_tls_that_ends_without_close_notify(tmp_path: Path, loop: str, *, said: bool, stated: bool) -> None:
    """It matters only if nothing else ends the body: with a length it is complete (RFC 9112 §9.8)."""
    context, _ = rawserver._tls_context(("127.0.0.1",))
    length = b"Content-Length: 4\r\n" if stated else b""
    raw = b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + length + b"\r\nbody"

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(4096)
            secure.sendall(raw)
            if said:
                with suppress(OSError):
                    secure.unwrap()
            secure.shutdown(socket.SHUT_RDWR)

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.get_running_loop().run_in_executor(None, serve, listener)
            async with fetching(tmp_path) as fetcher:
                fetcher._pool._unverified[f"https://127.0.0.1:{listener.getsockname()[1]}"] = None
                exchange = await fetcher.fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/", CountingGate())
                await serving
                assert taken(exchange) == raw
                assert exchange.truncated is (None if said or stated else Truncation.DISCONNECT)

    run(main(), loop)


@pytest.mark.parametrize("end", [End.CLOSE, End.HANG])
def test_interim_responses_alone_are_no_response(tmp_path: Path, end: End) -> None:
    async def main() -> None:
        only = Answer((b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",), end)
        async with RawServer(otherwise=only) as server, fetching(tmp_path, timeout=1.5) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch(server.url(), CountingGate())
            assert caught.value.failure is (Failure.DISCONNECT if end is End.CLOSE else Failure.TIMEOUT)

    asyncio.run(main())
