"""The pool of connections and their protocol, over HTTP and HTTPS.

The tests run again in an interpreter in development mode, where asyncio is stricter and warnings are errors.
"""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.errors import Failure, FetchError
from archiver.fetch.connection import ConnectionPool, RawProtocol
from archiver.fetch.private_networks import AddressGuard
from fixtures.fetching import CountingGate, fetching, taken, timeouts
from fixtures.rawserver import RawServer, keep

ROOT = Path(__file__).parents[2]
INSIDE = "PYTHONDEVMODE_POOL"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
GUARD = AddressGuard(["127.0.0.1"], [])
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


def test_a_protocol_closes_its_transport_once() -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(5.0), GUARD)
        wire = await lines.connect(server.url("/").rstrip("/"))
        protocol = wire._protocol
        ended = protocol.closed()
        wire.give_back(reusable=False)
        assert protocol.transport is None
        protocol.close()
        protocol.abort()
        await asyncio.wait_for(ended, 60)
        await lines.close()

    with RawServer() as server:
        asyncio.run(main())


@BOTH
def test_new_connections_use_our_protocol(*, tls: bool) -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(5.0), GUARD)
        wire = await lines.connect(server.url("/").rstrip("/"))
        protocol = wire._protocol
        assert isinstance(protocol, RawProtocol)
        assert len(lines.alive) == 1
        wire.send(REQUEST)
        got = b""
        while len(got) < len(ANSWER):
            got += await wire.read(5)
        assert got == ANSWER, "data_received is not called with the bytes of the message"
        wire.give_back(reusable=True)
        again = await lines.connect(server.url("/").rstrip("/"))
        assert again._protocol is protocol, "what is given back is not lent again"
        assert again.reused
        again.give_back(reusable=False)
        third = await lines.connect(server.url("/").rstrip("/"))
        assert third._protocol is not protocol, "what cannot be used again is lent"
        third.give_back(reusable=False)
        await lines.close()
        assert not lines.alive, "a connection outlives the connector"

    with RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        asyncio.run(main())
    assert server.log[0].request == REQUEST


@BOTH
def test_connections_that_got_bytes_while_idle_are_not_reused(*, tls: bool) -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(5.0), GUARD)
        wire = await lines.connect(origin := server.url("/").rstrip("/"))
        protocol = wire._protocol
        wire.give_back(reusable=True)
        protocol.data_received(b"surprise")
        again = await lines.connect(origin)
        assert again._protocol is not protocol, "a poisoned connection is lent again"
        assert not lines.trusts(origin)
        again.give_back(reusable=False)
        await lines.close()

    with RawServer(tls=tls) as server:
        asyncio.run(main())


def test_a_pool_can_be_closed_twice() -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(1.0), GUARD)
        await lines.close()
        await lines.close()

    asyncio.run(main())


def test_a_name_without_an_address_is_a_failed_look_up() -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(60.0), GUARD)
        with pytest.raises(FetchError, match=r"host name nowhere\.invalid does not resolve") as raised:
            await lines.connect("http://nowhere.invalid")
        assert raised.value.failure is Failure.DNS
        await lines.close()

    asyncio.run(main())


def test_origins_without_a_name_lead_to_their_address_and_port() -> None:
    async def main() -> None:
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
            lines = ConnectionPool(timeouts(60.0), AddressGuard(["[::1]"], []))
            wire = await lines.connect(f"http://[::1]:{listener.getsockname()[1]}")
            assert wire.peer.ip == "::1"
            wire.give_back(reusable=False)
            await lines.close()

    asyncio.run(main())


def test_a_crawl_imports_no_http_library() -> None:
    """The import of aiohttp took a quarter of the time of all imports."""
    seen = "import sys, archiver.cli.start, archiver.crawl.build; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not {"aiohttp", "yarl", "http.client", "urllib3"} & set(ran.stdout.split())


@BOTH
def test_a_complete_fetch(tmp_path: Path, *, tls: bool) -> None:
    async def main() -> None:
        async with fetching(tmp_path) as fetcher:
            for _ in range(3):
                assert taken(await fetcher.fetch(server.url(), CountingGate())) == ANSWER

    with RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        asyncio.run(main())


@pytest.mark.skipif(INSIDE in os.environ, reason="this is the interpreter in development mode")
def test_all_tests_of_this_file_in_development_mode() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        cwd=ROOT,
        env={**os.environ, INSIDE: "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
