"""The places inside aiohttp that `fetch/connection.py` relies on. If an upgrade changes one, these tests name it.

They run again in an interpreter in development mode, where aiohttp is stricter and warnings are errors.
"""

import asyncio
import inspect
import os
import subprocess
import sys
from pathlib import Path

import aiohappyeyeballs
import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import TCPConnector
from yarl import URL

from archiver.fetch.connection import ConnectionPool, RawProtocol
from archiver.fetch.private_networks import AddressGuard
from fixtures.fetching import CountingGate, fetching, taken, timeouts
from fixtures.rawserver import RawServer, keep

ROOT = Path(__file__).parents[2]
INSIDE = "PYTHONDEVMODE_SEAMS"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
GUARD = AddressGuard(["127.0.0.1"], [])
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


def parameters(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


def test_called_functions_accept_our_arguments() -> None:
    assert parameters(TCPConnector._get_ssl_context) == ["self", "req"], "the context of TLS is found in another way"
    wanted = {"method", "url", "loop", "ssl"}
    assert wanted <= set(parameters(ClientRequest.__init__)), f"ClientRequest no longer takes all of {wanted}"
    assert {"limit", "resolver"} <= {
        name for kind in TCPConnector.__mro__ for name in inspect.signature(kind).parameters
    }, "TCPConnector lost a setting"
    wanted = {"addr_infos", "local_addr_infos", "happy_eyeballs_delay", "loop"}
    assert wanted <= set(parameters(aiohappyeyeballs.start_connection))


@pytest.mark.parametrize("name", ["connection_made", "connection_lost", "data_received", "eof_received"])
def test_the_protocol_callbacks_have_these_names(name: str) -> None:
    assert parameters(getattr(ResponseHandler, name)) == parameters(getattr(RawProtocol, name))


def test_a_protocol_can_be_made_and_has_the_attributes_we_use() -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(1.0), GUARD)
        protocol = RawProtocol(asyncio.get_running_loop(), lines)
        assert protocol.transport is None, "a protocol no longer begins without a transport"
        assert protocol.should_close is False, "a new protocol wants to be closed"
        assert protocol._exception is None, "the place where an error would be kept has moved"
        protocol.force_close()
        assert protocol.should_close is True, "force_close() does not keep a connection out of the pool"
        await lines.close()

    asyncio.run(main())


@BOTH
def test_new_connections_use_our_protocol(*, tls: bool) -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(5.0), GUARD)
        wire = await lines.connect(server.url("/").rstrip("/"))
        protocol = wire._protocol
        assert isinstance(protocol, RawProtocol)
        assert protocol._parser is None, "a parser is at work inside the connection"
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


def test_a_closed_connector_makes_no_connections() -> None:
    async def main() -> None:
        lines = ConnectionPool(timeouts(1.0), GUARD)
        await lines.close()
        await lines.close()
        assert lines._connector.closed

    asyncio.run(main())


def test_a_failed_look_up_keeps_its_error() -> None:
    async def main() -> None:
        request = ClientRequest("GET", URL("http://nowhere.invalid/"), loop=asyncio.get_running_loop())
        error = aiohttp.ClientConnectorDNSError(request.connection_key, OSError(1, "why"))
        assert (error.host, error.os_error.strerror) == ("nowhere.invalid", "why")

    asyncio.run(main())


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
