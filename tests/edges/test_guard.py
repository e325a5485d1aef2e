"""The guard of connections, with name servers controlled by the test and real sockets behind the addresses."""

import asyncio
import select
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from archiver.errors import Failure, FetchError
from archiver.fetch.connection import ConnectionPool
from archiver.fetch.name_servers import Resolver
from archiver.fetch.private_networks import AddressGuard, ResolveResult
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.rawserver import RawServer, keep

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def results(host: str, port: int, *addresses: str) -> list[ResolveResult]:
    def family(address: str) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in address else socket.AF_INET

    return [
        ResolveResult(hostname=host, host=each, port=port, family=family(each), proto=0, flags=socket.AI_NUMERICHOST)
        for each in addresses
    ]


class Names(Resolver):
    """Answers for every name with the next of its results; the last one repeats."""

    def __init__(self, *turns: Sequence[str]) -> None:
        self.turns = list(turns)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        return results(host, port, *(self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]))

    async def close(self) -> None:
        pass


def chosen(guard: AddressGuard, host: str, *addresses: str) -> list[str]:
    """Return the *addresses* at which the guard allows *host*; "private" if it refuses the host."""
    try:
        return [each["host"] for each in guard.choose(host, results(host, 80, *addresses))]
    except FetchError as error:
        return [error.failure.value]


REFUSED = ["private"]


def test_only_public_addresses_of_an_answer_are_used() -> None:
    guard = AddressGuard([], [])
    assert chosen(guard, "a.example", "1.1.1.1", "10.0.0.1", "2600::1", "::1") == ["1.1.1.1", "2600::1"]
    assert chosen(guard, "a.example", "10.0.0.1", "fe80::1%eth0") == REFUSED
    assert chosen(guard, "a.example") == []


def test_a_seed_may_be_a_private_address_but_not_a_name_for_one() -> None:
    guard = AddressGuard([], ["http://wiki.intranet:8080/a", "http://10.0.0.5/", "http://db.localhost/"])
    assert chosen(guard, "wiki.intranet", "10.0.0.9") == REFUSED
    assert chosen(guard, "wiki.intranet", "10.0.0.5") == REFUSED
    assert chosen(guard, "db.localhost", "127.0.0.1", "::1") == ["127.0.0.1", "::1"]
    assert chosen(guard, "db.localhost", "10.0.0.5") == REFUSED
    assert chosen(guard, "other.localhost", "127.0.0.1") == REFUSED
    guard.check("10.0.0.5")
    with pytest.raises(
        FetchError, match=r"^10\.0\.0\.9 is a private address \(RFC 1918\); use --allow-private 10\.0\.0\.9"
    ):
        guard.check("10.0.0.9")
    with pytest.raises(FetchError, match=r"use --allow-private wiki\.intranet to allow it$"):
        guard.choose("wiki.intranet", results("wiki.intranet", 80, "10.0.0.9"))
    named = AddressGuard(["wiki.intranet"], ["http://wiki.intranet:8080/a"])
    assert chosen(named, "wiki.intranet.", "10.0.0.10") == ["10.0.0.10"]
    assert chosen(named, "www.wiki.intranet", "10.0.0.9") == REFUSED


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "fd20:ce::254"),
        *("100.100.100.200", "192.0.0.192", "168.63.129.16", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"),
    ],
)
def test_metadata_services_are_never_fetched(address: str) -> None:
    """Whatever a person allows: a cloud's keys do not belong in a web archive."""
    literal = f"[{address}]" if ":" in address else address
    plain = address.partition("%")[0]
    everything = ("0.0.0.0/0", "::/0", "keys.example", plain)
    guard = AddressGuard(everything, ["http://keys.example/", f"http://{literal.partition('%')[0]}/"])
    with pytest.raises(FetchError, match="which is never fetched"):
        guard.check(literal)
    assert chosen(guard, "keys.example", address) == REFUSED
    assert chosen(guard, "keys.example", address, "10.0.0.1") == ["10.0.0.1"]


def test_a_public_name_cannot_move_to_a_private_address() -> None:
    guard = AddressGuard([], ["http://a.example/"])
    assert chosen(guard, "a.example", "1.1.1.1") == ["1.1.1.1"]
    assert chosen(guard, "a.example", "127.0.0.1") == REFUSED
    assert chosen(guard, "a.example", "127.0.0.1", "1.1.1.2") == ["1.1.1.2"]
    assert chosen(guard, "a.example") == []


def test_seeds_may_come_later() -> None:
    guard = AddressGuard([], [])
    assert chosen(guard, "10.0.0.1", "10.0.0.1") == REFUSED
    guard.add_seeds(["http://10.0.0.1/"])
    assert chosen(guard, "10.0.0.1", "10.0.0.1") == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("origin", "trusted"),
    [
        ("http://a.example", True),
        ("https://a.example", True),
        ("https://www.a.example", True),
        ("http://b.example:8080", True),
        ("https://www.c.example", True),
        ("https://c.example", True),
        ("http://c.example", False),
        ("http://a.example:8080", False),
        ("http://b.example", False),
        ("http://cdn.a.example", False),
        ("http://a.example.net", False),
    ],
)
def test_secrets_are_sent_only_to_seeds(origin: str, trusted: bool) -> None:  # noqa: FBT001  a table
    guard = AddressGuard([], ["http://a.example/x", "http://www.b.example:8080/"])
    guard.add_seeds(["https://www.c.example/"])
    assert guard.trusts(origin) == trusted


def test_other_hosts_get_no_secrets(tmp_path: Path) -> None:
    given = ("Cookie: a=b", "authorization: Basic eDp5", "X-Api-Key: 1", "Accept-Language: de")

    async def main() -> None:
        async with RawServer(otherwise=keep(ANSWER)) as server, fetching(tmp_path, header=given) as fetcher:
            taken(await fetcher.fetch(server.url(), CountingGate()))
            fetcher._guard.add_seeds([server.url()])
            taken(await fetcher.fetch(server.url(), CountingGate()))
        stranger, friend = ([line for line in given if line.encode() in row.request] for row in server.log)
        assert (stranger, friend) == (["Accept-Language: de"], list(given))

    asyncio.run(main())


def untouched(listener: socket.socket) -> bool:
    """Return True if no one has tried to connect."""
    return not select.select([listener], [], [], 0)[0]


def alone_with(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.fetch.connection.SystemResolver", lambda _: names)


def test_refused_addresses_are_never_connected_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone_with(Names(["127.0.0.2", "::1", "127.0.0.1"]), monkeypatch)

    async def main() -> None:
        async with fetching(tmp_path, allow_private=("127.0.0.1",)) as fetcher:
            exchange = await fetcher.fetch(f"http://a.example:{server.port}/", CountingGate())
            assert (taken(exchange), exchange.peer.ip) == (ANSWER, "127.0.0.1")

    with RawServer(otherwise=keep(ANSWER)) as server, socket.create_server(("127.0.0.2", server.port)) as listener:
        asyncio.run(main())
        assert untouched(listener)


@pytest.mark.parametrize("address", ["127.0.0.2", "::ffff:127.0.0.2", "0.0.0.0"])
def test_a_name_that_changes_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    names = Names(["127.0.0.1"], [address])
    alone_with(names, monkeypatch)

    async def main() -> None:
        gate = CountingGate()
        async with fetching(tmp_path, allow_private=("127.0.0.1",)) as fetcher:
            url = f"http://a.example:{server.port}/"
            taken(await fetcher.fetch(url, gate))
            fetcher._pool._names.forget()  # as five minutes would do
            taken(await fetcher.fetch(url, gate))  # on the connection that is there
            fetcher._pool.distrust(f"http://a.example:{server.port}")  # this one is used no more
            for _ in range(2):
                with pytest.raises(FetchError, match=r"^a\.example resolves to a private address") as caught:
                    await fetcher.fetch(url, gate)
                assert caught.value.failure is Failure.PRIVATE
            assert (gate.passed, names.asked) == (2, 3)

    with RawServer(otherwise=keep(ANSWER)) as server, socket.create_server(("127.0.0.2", server.port)) as listener:
        asyncio.run(main())
        assert untouched(listener)
        assert len(server.log) == 2


def test_all_fetches_that_wait_for_a_refused_name_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone_with(Names(["127.0.0.1"]), monkeypatch)

    async def main() -> None:
        async with fetching(tmp_path, allow_private=()) as fetcher:
            visits = [fetcher.fetch(f"http://a.example/{number}", CountingGate()) for number in range(20)]
            came = await asyncio.gather(*visits, return_exceptions=True)
            assert {error.failure for error in came if isinstance(error, FetchError)} == {Failure.PRIVATE}
            assert len(came) == 20

    asyncio.run(main())


def _unguarded(lines: ConnectionPool) -> None:
    lines._names._resolver = Names(["127.0.0.1"])


def _late(lines: ConnectionPool) -> None:
    lines._guard.choose = lambda host, found: found  # type: ignore[method-assign]


@pytest.mark.parametrize("slip", [_unguarded, _late])
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_the_peer_address_of_a_connection_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slip: Callable[[ConnectionPool], None], *, tls: bool
) -> None:
    """Whatever happened before: no byte of a request is sent to a refused address."""
    alone_with(Names(["127.0.0.1"]), monkeypatch)

    async def main() -> None:
        async with fetching(tmp_path, allow_private=()) as fetcher:
            slip(fetcher._pool)
            gate = CountingGate()
            with pytest.raises(
                FetchError, match=r"^a\.example resolves to a private address: 127\.0\.0\.1 is a loopback"
            ):
                await fetcher.fetch(server.url(host="a.example"), gate)
            assert gate.passed == 0

    with RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        asyncio.run(main())
        assert len(server.log) == 0


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:{}/", "http://[::ffff:7f00:1]:{}/", "http://0.0.0.0:{}/", "https://[::ffff:0:0]:{}/"],
)
def test_an_address_in_the_url_is_refused_without_a_connection(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        async with fetching(tmp_path, allow_private=("localhost", "10.0.0.0/8")) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch(url.format(listener.getsockname()[1]), CountingGate())
            assert caught.value.failure is Failure.PRIVATE

    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(main())
        assert untouched(listener)


@pytest.mark.parametrize(("allowed", "sent"), [((), False), (("127.0.0.2",), False), (("127.0.0.1",), True)])
def test_a_certificate_that_does_not_verify_gets_no_secret(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    allowed: tuple[str, ...],
    sent: bool,  # noqa: FBT001  a table
) -> None:
    """The page is archived all the same, and the request record holds what was sent."""
    secrets = ("Cookie: a=b", "authorization: Basic eDp5", "X-Api-Key: 1")
    given = (*secrets, "Accept-Language: de")

    async def main() -> None:
        async with RawServer(otherwise=keep(ANSWER), tls=True) as server, fetching(tmp_path, header=given) as fetcher:
            fetcher._requests._guard = AddressGuard(["127.0.0.1"], [server.url()], allowed)
            exchanges = [await fetcher.fetch(server.url(), CountingGate()) for _ in range(2)]
        for row, exchange in zip(server.log, exchanges, strict=True):
            assert "tls-unverified" in exchange.notes
            assert row.request == exchange.request
            assert [line for line in secrets if line.encode() in row.request] == (list(secrets) if sent else [])
            assert b"Accept-Language: de" in row.request

    asyncio.run(main())
    told = [record.getMessage() for record in caplog.records if "certificate" in record.getMessage()]
    assert len(told) == (not sent)
    assert all("--insecure-secrets 127.0.0.1" in message for message in told)
