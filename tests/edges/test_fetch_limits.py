"""Time, size and failure: nothing lasts forever, received data is kept, and nothing is left open."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from archiver.config.fetch_settings import FetchSettings
from archiver.config.settings import Settings, SettingsByHost
from archiver.errors import ArchiveError, Failure, FetchError
from archiver.fetch.client import Fetcher
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.spool import SpoolFolder, Spooling
from archiver.fetch.tls import iana_cipher
from archiver.fetch.wire import HIGH_WATER, Wire
from archiver.http.auth import ConnectionLogin
from archiver.http.framer import LONGEST_HEAD
from archiver.model import Truncation
from fixtures import rawserver
from fixtures.badserver import ENDLESS, NO_ANSWER
from fixtures.fetching import LOOPBACK, CountingGate, fetching, taken
from fixtures.flag import Gate
from fixtures.rawserver import Answer, End, Piece, RawServer, keep, silence, trickle

HEAD = b"HTTP/1.1 200 OK\r\n"


async def failure(fetcher: Fetcher, url: str) -> tuple[Failure, str]:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(url, CountingGate())
    return caught.value.failure, caught.value.reason


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_silence_before_the_first_byte_is_a_failure_and_after_it_a_cut(tmp_path: Path, *, tls: bool) -> None:
    async def main() -> None:
        async with fetching(tmp_path, timeout=1.5) as fetcher:
            assert await failure(fetcher, server.url("/silence")) == (Failure.TIMEOUT, "no answer within 1.5 s")
            for target, raw in stalled.items():
                exchange = await fetcher.fetch(server.url(target), CountingGate())
                assert (taken(exchange), exchange.truncated) == (raw, Truncation.TIME), target

    stalled = {"/head": HEAD, "/body": HEAD + b"Content-Length: 9\r\n\r\nhi", "/until-close": HEAD + b"\r\nhi"}
    routes = {target: Answer((raw,), End.HANG) for target, raw in stalled.items()}
    with RawServer({"/silence": silence(), **routes}, tls=tls) as server:
        asyncio.run(main())
    assert all(row.lost for row in server.log), "each connection was closed by the client"


@pytest.mark.parametrize("chunked", [False, True], ids=["stated", "chunked"])
def test_a_large_response_is_read_no_faster_than_its_host_may_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, chunked: bool
) -> None:
    """Only what one read returns may come early."""
    monkeypatch.setattr("archiver.fetch.exchange.EARLY", 0.0)
    size, bandwidth, one_read = 4 << 20, 8 << 20, 2 * HIGH_WATER
    raw = HEAD + b"Content-Length: %d\r\n\r\n%b" % (size, bytes(size))
    if chunked:
        raw = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%b\r\n0\r\n\r\n" % (size, bytes(size))

    async def main() -> None:
        async with fetching(tmp_path, host_bandwidth=bandwidth) as fetcher:
            exchange = await fetcher.fetch(server.url("/"), CountingGate())
            assert exchange.duration >= (size - one_read) / bandwidth
            assert taken(exchange) == raw

    with RawServer({"/": keep(raw)}) as server:
        asyncio.run(main())


def test_a_trickle_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.fetch.exchange.SLOW_GRACE", 0.2)

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            for target in ("/head", "/body"):
                exchange = await fetcher.fetch(server.url(target), CountingGate())
                block = taken(exchange)
                assert (exchange.truncated, endless[target].startswith(block)) == (Truncation.TIME, True)
                assert exchange.duration > 0.2

    endless = {"/head": HEAD + b"A: " + b"x" * 1000, "/body": HEAD + b"\r\n" + b"x" * 1000}
    with RawServer({target: trickle(raw, pause=0.02) for target, raw in endless.items()}) as server:
        asyncio.run(main())


def test_endless_responses_are_cut_by_size(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, max_response_size=3_000_000) as fetcher:
            for name, size in (("endless-body", 3_000_000), ("endless-head", LONGEST_HEAD)):
                exchange = await fetcher.fetch(server.url(f"/{name}"), CountingGate())
                assert (len(taken(exchange)), exchange.truncated) == (size, Truncation.LENGTH)

    with RawServer({f"/{name}": route for name, route in ENDLESS.items()}) as server:
        asyncio.run(main())


@pytest.mark.parametrize("size", [10, 100, 300 << 10])
@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("kind", ["sized", "chunked", "until the end", "cut head"])
def test_a_size_limit_below_at_and_above_the_response(tmp_path: Path, size: int, over: int, kind: str) -> None:
    head, body = HEAD + b"Content-Length: %d\r\n\r\n" % size, b"x" * size
    if kind == "chunked":
        head, body = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size, b"x" * size + b"\r\n0\r\n\r\n"
    elif kind == "until the end":
        head = HEAD + b"\r\n"
    elif kind == "cut head":
        head, body = HEAD + b"A: ", b"x" * size
    raw = head + body
    limit = len(raw) - over

    async def main() -> None:
        async with fetching(tmp_path, max_response_size=limit) as fetcher:
            exchange = await fetcher.fetch(server.url(), CountingGate())
            assert taken(exchange) == raw[:limit]
            whole = Truncation.DISCONNECT if kind == "cut head" else None
            assert exchange.truncated == (Truncation.LENGTH if over > 0 else whole)

    with RawServer({"/": raw}) as server:
        asyncio.run(main())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://nowhere.invalid/", Failure.DNS),
        ("https://nowhere.invalid/", Failure.DNS),
        ("http://a..b/", Failure.DNS),
        ("http://./", Failure.DNS),
        (f"http://{'a' * 64}.com/", Failure.DNS),
        (f"https://{'a.' * 200}com/", Failure.DNS),
        ("http://127.0.0.1:1/", Failure.CONNECT),
        ("https://127.0.0.1:1/", Failure.CONNECT),
        ("http://127.0.0.1:0/", Failure.CONNECT),
        ("http://[::1]:1/", Failure.CONNECT),
        ("http://224.0.0.1:1/", Failure.CONNECT),
        ("http://10.0.0.1:1/", Failure.PRIVATE),
    ],
)
def test_unreachable_hosts_fail_with_a_reason(tmp_path: Path, url: str, kind: Failure) -> None:
    async def main() -> None:
        async with fetching(tmp_path, allow_private=(*LOOPBACK, "224.0.0.1")) as fetcher:
            said, reason = await failure(fetcher, url)
            assert said is kind
            assert reason
            if kind is Failure.DNS:
                assert "does not resolve" in reason

    asyncio.run(main())


def test_a_refused_connection_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            assert await failure(fetcher, "http://127.0.0.1:1/") == (Failure.CONNECT, "Connection refused")

    asyncio.run(main())


def test_no_response_at_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, timeout=1.5) as fetcher:
            said = [(await failure(fetcher, server.url(f"/{name}")))[0] for name in NO_ANSWER]
            assert dict(zip(NO_ANSWER, said, strict=True)) == {
                "closed": Failure.DISCONNECT,
                "reset": Failure.DISCONNECT,
                "silence": Failure.TIMEOUT,
            }

    with RawServer({f"/{name}": route for name, route in NO_ANSWER.items()}) as server:
        asyncio.run(main())
    assert len(server.log) == len(NO_ANSWER)


@pytest.mark.parametrize("greeting", [b"220 mail.example ESMTP\r\n" * 100, b""], ids=["speaks", "closes"])
def test_a_port_that_does_not_speak_tls(tmp_path: Path, greeting: bytes) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server, fetching(tmp_path) as fetcher:
            said, reason = await failure(fetcher, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            assert said in (Failure.TLS, Failure.CONNECT, Failure.DISCONNECT)
            assert reason

    asyncio.run(main())


@pytest.mark.parametrize(
    ("openssl", "iana"),
    [
        ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
        ("DHE-RSA-AES256-SHA256", "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256"),
        ("AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"),
        ("SOMETHING-NEW", "SOMETHING-NEW"),
    ],
)
def test_cipher_names(openssl: str, iana: str) -> None:
    assert iana_cipher(openssl) == iana


def test_tls_1_2_is_used_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = rawserver._tls_context

    def older(hosts: tuple[str, ...]) -> tuple[ssl.SSLContext, bytes]:
        context, authority = make(hosts)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
        return context, authority

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            exchange = await fetcher.fetch(server.url(), CountingGate())
            taken(exchange)
            assert exchange.peer.tls == "tls/1.2"
            assert str(exchange.peer.cipher).endswith("SA_WITH_AES_128_GCM_SHA256")

    monkeypatch.setattr(rawserver, "_tls_context", older)
    with RawServer(tls=True) as server:
        asyncio.run(main())


@asynccontextmanager
async def stuck_fetcher(folder: Path) -> AsyncIterator[tuple[Fetcher, threading.Event]]:
    """Return a fetcher whose only spool thread is busy until the event is set."""
    free = threading.Event()
    with ThreadPoolExecutor(1) as writer:
        fetcher = Fetcher(
            SettingsByHost(Settings(fetch=FetchSettings(timeout=5))),
            AddressGuard(["127.0.0.1"], []),
            Spooling(SpoolFolder(folder), "sha256", writer),
        )
        writer.submit(free.wait)
        try:
            yield fetcher, free
        finally:
            free.set()
            await fetcher.close()


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_server_waits_while_the_spool_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tls: bool) -> None:
    """Memory holds at most the spool's own buffer, a full wire and one more read."""
    paused = asyncio.Event()
    most = 0
    received = Wire.received

    def watch(wire: Wire, data: bytes) -> None:
        nonlocal most
        received(wire, data)
        most = max(most, wire._held)
        if wire._paused:
            paused.set()

    monkeypatch.setattr(Wire, "received", watch)
    size = 64 << 20

    async def main() -> None:
        async with stuck_fetcher(tmp_path) as (fetcher, free):
            fetch = asyncio.create_task(fetcher.fetch(server.url(), CountingGate()))
            await paused.wait()
            sent = server.log[0].sent
            assert sent < size // 2
            free.set()
            exchange = await fetch
            assert exchange.response.length == len(HEAD) + 2 + size
            exchange.response.close()
        assert most <= HIGH_WATER + (256 << 10)

    pieces: list[Piece] = [HEAD + b"\r\n", *([b"x" * (1 << 20)] * 64)]
    with RawServer({"/": Answer(tuple(pieces), End.CLOSE)}, tls=tls) as server:
        asyncio.run(main())


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("spooling", [False, True], ids=["reading", "spooling"])
def test_a_cancelled_fetch_leaves_nothing_open(tmp_path: Path, *, spooling: bool, tls: bool) -> None:
    """The fixture for all tests looks for open files, sockets and tasks; here the server checks too."""
    at = Gate()

    async def main() -> None:
        async with stuck_fetcher(tmp_path) as (fetcher, free):
            if not spooling:
                free.set()
            fetch = asyncio.create_task(fetcher.fetch(server.url(), CountingGate()))
            await at.arrived.reached()
            for _ in range(50):
                await asyncio.sleep(0)
            fetch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fetch
            free.set()
            assert taken(await fetcher.fetch(server.url("/next"), CountingGate())).endswith(b"hi")

    endless = Answer((HEAD + b"\r\n", b"x" * 400_000, at), End.HANG)
    with RawServer({"/": endless, "/next": keep(HEAD + b"Content-Length: 2\r\n\r\nhi")}, tls=tls) as server:
        asyncio.run(main())
    assert [(row.target, row.lost) for row in server.log] == [("/", True), ("/next", False)]
    assert list(tmp_path.iterdir()) == []


def test_a_spool_that_cannot_be_written_is_an_archive_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path / "missing") as fetcher:
            with pytest.raises(ArchiveError, match="missing"):
                await fetcher.fetch(server.url(), CountingGate())

    with RawServer({"/": HEAD + b"\r\n" + b"x" * 400_000}) as server:
        asyncio.run(main())


def test_a_gate_that_does_not_open_sends_nothing(tmp_path: Path) -> None:
    async def closed(*, verified: bool, login: ConnectionLogin) -> bytes:
        raise LookupError(verified)

    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            with pytest.raises(LookupError):
                await fetcher.fetch(server.url("/a"), closed)
            taken(await fetcher.fetch(server.url("/b"), CountingGate()))

    with RawServer() as server:
        asyncio.run(main())
    assert server.log.targets() == ["/b"]
