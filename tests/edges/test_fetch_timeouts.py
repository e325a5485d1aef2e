"""Time limits of their own for look-up, connection, first byte and whole response, for all hosts and by host."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from archiver.config.host_rules import host_rule
from archiver.errors import Failure, FetchError
from archiver.fetch.connection import ConnectionPool
from archiver.fetch.dns import Lookups
from archiver.fetch.network import LONGEST_LOOK_UP
from archiver.fetch.private_networks import AddressGuard
from archiver.model import Truncation
from fixtures.badserver import ENDLESS
from fixtures.fetching import CountingGate, fetching, taken, timeouts
from fixtures.rawserver import Answer, End, RawServer, silence, trickle

HEAD = b"HTTP/1.1 200 OK\r\n"
FOREVER = 600.0


def failing(tmp_path: Path, url: str, **settings: Any) -> tuple[Failure, str]:
    """Return how the request for *url* fails."""

    async def main() -> None:
        async with fetching(tmp_path, timeout=FOREVER, **settings) as fetcher:
            await fetcher.fetch(url, CountingGate())

    with pytest.raises(FetchError) as caught:
        asyncio.run(main())
    return caught.value.failure, caught.value.reason


@pytest.mark.parametrize("name", ["first-byte-timeout", "max-response-time"])
@pytest.mark.parametrize("by_host", [False, True], ids=["all", "host"])
def test_a_response_that_does_not_begin_fails(tmp_path: Path, name: str, *, by_host: bool) -> None:
    rule = host_rule("127.0.0.1", [(name, 0.2)])
    given: dict[str, Any] = {"host": (rule,)} if by_host else {name.replace("-", "_"): 0.2}
    with RawServer({"/": silence()}) as server:
        assert failing(tmp_path, server.url("/"), **given) == (Failure.TIMEOUT, "no answer within 0.2 s")


def test_the_limit_for_the_first_byte_does_not_hold_for_later_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, timeout=0.2, first_byte_timeout=FOREVER) as fetcher:
            exchange = await fetcher.fetch(server.url("/"), CountingGate())
            assert (taken(exchange), exchange.truncated) == (raw, Truncation.TIME)

    raw = HEAD + b"Content-Length: 9\r\n\r\nhi"
    with RawServer({"/": Answer((raw,), End.HANG)}) as server:
        asyncio.run(main())


def test_a_response_is_cut_at_its_longest_time_whether_it_stalls_trickles_or_streams(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, timeout=FOREVER, max_response_time=1.5) as fetcher:
            for target in routes:
                exchange = await fetcher.fetch(server.url(target), CountingGate())
                assert (taken(exchange)[: len(HEAD)], exchange.truncated) == (HEAD, Truncation.TIME), target
                assert exchange.duration > 1.4, target

    routes = {
        "/stall": Answer((HEAD + b"Content-Length: 9\r\n\r\nhi",), End.HANG),
        "/trickle": trickle(HEAD + b"\r\n" + b"x" * 100_000, pause=0.01),
        "/stream": ENDLESS["endless-body"],
    }
    with RawServer(routes) as server:
        asyncio.run(main())


def test_a_response_within_its_longest_time_is_whole(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, max_response_time=FOREVER) as fetcher:
            exchange = await fetcher.fetch(server.url("/"), CountingGate())
            assert (taken(exchange), exchange.truncated) == (raw, None)

    raw = HEAD + b"Content-Length: 2\r\n\r\nhi"
    with RawServer({"/": Answer((raw,))}) as server:
        asyncio.run(main())


def test_a_tls_handshake_without_an_answer_ends_at_the_limit_for_connections(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts; no one answers
        address = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        reason = (Failure.TIMEOUT, "no connection within the time limit")
        assert failing(tmp_path, address, connect_timeout=0.2) == reason
        assert failing(tmp_path, address, host=(host_rule("127.*", [("connect-timeout", 0.2)]),)) == reason


class SilentNameServer(Lookups):
    """Look-ups that no name server answers."""

    async def getaddrinfo(self, host: str, port: int, **terms: Any) -> Any:
        """Never return."""
        await asyncio.Event().wait()


def test_a_look_up_without_an_answer_ends_at_its_own_limit() -> None:
    async def main() -> None:
        guard = AddressGuard(["127.0.0.1"], [])
        pool = ConnectionPool(timeouts(FOREVER, dns_timeout=0.1), guard, SilentNameServer(longest=FOREVER))
        try:
            for origin in ("http://slow.example", "https://slow.example"):
                with pytest.raises(FetchError) as caught:
                    await pool.connect(origin)
                assert (caught.value.failure, caught.value.reason) == (
                    Failure.DNS,
                    "no name server answers for slow.example",
                )
        finally:
            await pool.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "connect", "look_up"),
    [
        ({}, 60.0, None),
        ({"connect_timeout": 9.0}, 9.0, LONGEST_LOOK_UP),
        ({"dns_timeout": 3.0}, 60.0, 3.0),
        ({"dns_timeout": 30.0, "connect_timeout": 9.0}, 9.0, 30.0),
        ({"host": (host_rule("a.example", [("timeout", 7), ("dns-timeout", 2)]),)}, 7.0, 2.0),
        ({"host": (host_rule("b.example", [("connect-timeout", 7)]),)}, 60.0, None),
    ],
)
def test_a_look_up_counts_into_the_connection_unless_one_has_a_limit_of_its_own(
    given: dict[str, Any], connect: float, look_up: float | None
) -> None:
    limits = timeouts(60.0, **given)
    assert (limits.connect("http://a.example"), limits.look_up("http://a.example")) == (connect, look_up)
