"""One request through a proxy: real ones, and ones that misbehave. The server sees the proxy's address alone."""

import asyncio
import socket
from pathlib import Path

import pytest

from archiver.errors import Failure, FetchError, ProxyError
from archiver.fetch.private_networks import AddressGuard
from archiver.model import Exchange
from archiver.url import canonical
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.ports import free_port
from fixtures.proxies import ScriptedProxy, microsocks, needs_microsocks, needs_tinyproxy, tinyproxy
from fixtures.rawserver import RawServer, keep, silence

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd :  kept\r\n\r\nhi"
PROXY = "127.0.0.77"  # the address by which proxies leave
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


async def fetched(folder: Path, proxy: str, *addresses: str, **settings: object) -> list[tuple[Exchange, bytes]]:
    async with fetching(folder, proxy=(proxy,), **settings) as fetcher:
        found = []
        for address in addresses:
            exchange = await fetcher.fetch(address, CountingGate())
            found.append((exchange, taken(exchange)))
        return found


def failure(folder: Path, proxy: str, address: str, **settings: object) -> FetchError:
    with pytest.raises(FetchError) as caught:
        asyncio.run(fetched(folder, proxy, address, **settings))
    return caught.value


@BOTH
@needs_tinyproxy
def test_through_an_http_proxy(tmp_path: Path, *, tls: bool) -> None:
    with tinyproxy(tmp_path, PROXY) as port, RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        proxy = f"http://127.0.0.1:{port}"
        first, second = server.url("/a?b"), server.url("/c", "localhost")
        found = asyncio.run(fetched(tmp_path, proxy, first, second))
    assert [exchange.peer.ip for exchange, _ in found] == ["127.0.0.1", None]
    for exchange, block in found:
        assert f"proxy:{proxy}" in exchange.notes
        assert (exchange.peer.tls is not None) == tls
        assert exchange.lookup is None
        if tls:
            assert block == ANSWER  # byte for byte; plain HTTP is the proxy's own message
    target = b"/a?b" if tls else first.encode()
    assert found[0][0].request.startswith(b"GET %b HTTP/1.1\r\nHost: 127.0.0.1:" % target)
    assert [row.target for row in server.log] == ["/a?b", "/c"]
    assert {row.client for row in server.log} == {PROXY}


@BOTH
@needs_microsocks
@pytest.mark.parametrize("kind", ["socks5", "socks5h"])
def test_through_socks(tmp_path: Path, kind: str, *, tls: bool) -> None:
    """Names are looked up by whom the kind says, and the address is known to the archive only then."""
    with microsocks(PROXY) as port, RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        named = server.url("/a", "localhost")
        found = asyncio.run(fetched(tmp_path, f"{kind}://127.0.0.1:{port}", named, server.url("/b"), named))
    assert [block for _, block in found] == [ANSWER] * 3
    assert [each.peer.ip for each, _ in found] == (["127.0.0.1"] * 3 if kind == "socks5" else [None, "127.0.0.1", None])
    assert [each.lookup is not None for each, _ in found] == [kind == "socks5", False, False]
    assert found[0][0].request.startswith(b"GET /a HTTP/1.1\r\n")
    assert {row.client for row in server.log} == {PROXY}
    assert len({row.connection for row in server.log}) == 2, "connections through a proxy are not kept"


def test_socks4_gets_an_address_of_ours(tmp_path: Path) -> None:
    with ScriptedProxy((b"\0\x5a\0\0\0\0\0\0", ANSWER)) as proxy:
        found = asyncio.run(fetched(tmp_path, f"socks4://ann@127.0.0.1:{proxy.port}", "http://localhost:81/x"))
    assert found[0][1] == ANSWER
    assert found[0][0].peer.ip == "127.0.0.1"
    assert proxy.heard[0] == b"\x04\x01\0\x51\x7f\0\0\x01ann\0"


@BOTH
@needs_tinyproxy
def test_the_login_of_an_http_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tls: bool) -> None:
    """It is sent, but it is in no request that the archive keeps."""
    monkeypatch.setenv("WAY_IN", "ann:hunter2")
    with (
        tinyproxy(tmp_path, PROXY, "BasicAuth ann hunter2") as port,
        RawServer(otherwise=keep(ANSWER), tls=tls) as server,
    ):
        url = server.url("/a")
        [(exchange, block)] = asyncio.run(fetched(tmp_path, f"http://env:WAY_IN@127.0.0.1:{port}", url))
        assert block.endswith(b"hi")
        assert b"roxy-" not in exchange.request
        assert "ann" not in str(exchange.notes)
        assert b"roxy-Auth" not in server.log[0].request
        error = failure(tmp_path, f"http://127.0.0.1:{port}", url)
        assert isinstance(error, ProxyError)
        assert error.refused
        assert "it refuses the login" in error.reason
        monkeypatch.setenv("WAY_IN", "ann:wrong")
        error = failure(tmp_path, f"http://env:WAY_IN@127.0.0.1:{port}", url)
        assert isinstance(error, ProxyError)
        assert error.refused
        assert "wrong" not in error.reason
        assert len(server.log) == 1


@needs_tinyproxy
def test_the_login_is_not_relayed_to_a_site_that_keeps_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tinyproxy reads one request. Behind a chunked answer it relays what follows as it comes, with the login."""
    monkeypatch.setenv("WAY_IN", "ann:hunter2")
    said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n%bKeep-Alive: max=9\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    said %= b"Connection: keep-alive\r\nProxy-Connection: keep-alive\r\n"
    with tinyproxy(tmp_path, PROXY, "BasicAuth ann hunter2") as port, RawServer(otherwise=keep(said)) as server:
        urls = [server.url(f"/{number}") for number in range(3)]
        asyncio.run(fetched(tmp_path, f"http://env:WAY_IN@127.0.0.1:{port}", *urls))
    assert [row.target for row in server.log] == ["/0", "/1", "/2"]
    assert not [row for row in server.log if b"roxy-auth" in row.request.lower()]


@needs_microsocks
def test_the_login_of_a_socks_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "hunter2")
    with microsocks(PROXY, "ann", "hunter2") as port, RawServer(otherwise=keep(ANSWER)) as server:
        [(_, block)] = asyncio.run(fetched(tmp_path, f"socks5h://ann:env:WORD@127.0.0.1:{port}", server.url()))
        assert block == ANSWER
        for login in ("", "bob:env:WORD@"):
            error = failure(tmp_path, f"socks5h://{login}127.0.0.1:{port}", server.url())
            assert isinstance(error, ProxyError)
            assert error.refused, error.reason


SOCKS_OK = b"\x05\0\0\x01\0\0\0\0\0\0"
HEAD = b"HTTP/1.1 200 Connection established\r\n\r\n"


@pytest.mark.parametrize(
    ("kind", "pieces", "says"),
    [
        ("http", (), "closed the connection"),
        ("http", (b"HTTP/1.1 200 OK\r\n",), "not HTTP"),
        ("http", (b"garbage\r\n\r\n",), "not HTTP"),
        ("http", (b"SSH-2.0-x\r\n" * 3000,), "not HTTP"),
        ("http", (b"x" * 40_000,), "not HTTP"),
        ("socks5", (), "Connection closed unexpectedly"),
        ("socks5h", (b"HTTP/1.1 400 Bad Request\r\n\r\n",), "Unexpected SOCKS version"),
        ("socks5h", (b"\x05\0", b"\x05"), "Connection closed unexpectedly"),
        ("socks5h", (b"\x05\0", b"\x05\x07\0\x01"), "not supported"),
        ("socks5h", (b"\x05\0", b"\x05\x63\0\x01"), "Invalid reply code"),
        ("socks5h", (b"\x05\0", b"\x05\0\0\x09"), "Invalid address type"),
        ("socks4", (b"\x07" * 8,), "Unexpected reply version"),
    ],
)
def test_a_broken_proxy_is_to_blame_itself(tmp_path: Path, kind: str, pieces: tuple[bytes, ...], says: str) -> None:
    with ScriptedProxy(pieces) as proxy:
        error = failure(tmp_path, f"{kind}://127.0.0.1:{proxy.port}", "https://127.0.0.1:1/")
    assert isinstance(error, ProxyError)
    assert error.proxy == f"{kind}://127.0.0.1:{proxy.port}"
    assert says in error.reason
    assert not error.refused


@pytest.mark.parametrize("kind", ["http", "socks4", "socks5", "socks5h"])
@BOTH
def test_a_proxy_that_is_not_there(tmp_path: Path, kind: str, *, tls: bool) -> None:
    port = free_port()
    error = failure(tmp_path, f"{kind}://127.0.0.1:{port}", f"http{'s' * tls}://127.0.0.1:1/")
    assert isinstance(error, ProxyError)
    assert error.reason == f"proxy {kind}://127.0.0.1:{port}: Connection refused"


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/", "https://127.0.0.1:1/"])
@pytest.mark.parametrize("kind", ["http", "socks5h"])
def test_a_proxy_that_never_answers(tmp_path: Path, kind: str, address: str) -> None:
    with ScriptedProxy(hang=True) as proxy:
        error = failure(tmp_path, f"{kind}://127.0.0.1:{proxy.port}", address, timeout=0.3)
    assert isinstance(error, ProxyError)


@needs_tinyproxy
def test_a_site_that_does_not_answer_behind_a_good_proxy(tmp_path: Path) -> None:
    async def main() -> None:
        async with fetching(tmp_path, proxy=(f"http://127.0.0.1:{port}",), timeout=1.5) as fetcher:
            taken(await fetcher.fetch(server.url("/a"), CountingGate()))
            with pytest.raises(FetchError, match="no answer") as caught:
                await fetcher.fetch(server.url("/slow"), CountingGate())
            assert caught.value.failure is Failure.TIMEOUT

    with tinyproxy(tmp_path, PROXY) as port, RawServer({"/slow": silence()}, keep(ANSWER)) as server:
        asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "pieces"),
    [
        ("http", (b"HTTP/1.1 502 Bad Gateway\r\n\r\n",)),
        ("http", (b"HTTP/1.0 403 Filtered\r\nContent-Length: 5\r\n\r\nsorry",)),
        *(("socks5h", (b"\x05\0", b"\x05%c\0\x01" % code)) for code in (1, 2, 3, 4, 5, 6, 8)),
        ("socks5", (b"\x05\0", b"\x05\x04\0\x01")),
        ("socks4", (b"\0\x5b\0\0\0\0\0\0",)),
    ],
)
def test_what_a_proxy_says_of_a_site_is_the_site_s_failure(
    tmp_path: Path, kind: str, pieces: tuple[bytes, ...]
) -> None:
    with ScriptedProxy(pieces) as proxy:
        error = failure(tmp_path, f"{kind}://127.0.0.1:{proxy.port}", "https://127.0.0.1:1/")
    assert error.failure is Failure.CONNECT
    assert not isinstance(error, ProxyError)
    assert f"{kind}://127.0.0.1:{proxy.port}" in error.reason


@pytest.mark.parametrize("code", [0x5C, 0x5D])
def test_socks4_refuses_the_user(tmp_path: Path, code: int) -> None:
    with ScriptedProxy((b"\0%c\0\0\0\0\0\0" % code,)) as proxy:
        error = failure(tmp_path, f"socks4://ann@127.0.0.1:{proxy.port}", "https://127.0.0.1:1/")
    assert isinstance(error, ProxyError)
    assert error.refused


VIA = b"Via: 1.1 vm (squid/5.7)\r\n"
SQUID_ERROR = b"HTTP/1.1 503 Oh\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\nContent-Length: 0\r\n%b\r\n"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (SQUID_ERROR % VIA, "503 ERR_CONNECT_FAIL 111"),
        (SQUID_ERROR % b"", "503 ERR_CONNECT_FAIL 111"),
        (SQUID_ERROR % (b"Via: 1.1 theirs, 1.1 ours\r\n"), ""),
        (SQUID_ERROR % (VIA * 2), ""),
        ((SQUID_ERROR % VIA).replace(b"503", b"200"), ""),
        (b"HTTP/1.0 500 No\r\nServer: tinyproxy/1.11.1\r\nContent-Length: 0\r\n\r\n", "500"),
        (b"HTTP/1.1 500 No\r\nServer: tinyproxy/1.11.1\r\nVia: 1.1 a\r\nContent-Length: 0\r\n\r\n", ""),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", ""),
        (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", ""),
    ],
)
def test_an_error_page_of_the_proxy_is_not_the_site_s(tmp_path: Path, said: bytes, error: str) -> None:
    """It comes from a proxy that has answered before."""

    async def main() -> None:
        async with fetching(tmp_path, proxy=(f"http://127.0.0.1:{proxy.port}",)) as fetcher:
            taken(await fetcher.fetch("http://127.0.0.1:1/a", CountingGate()))
            if not error:
                assert taken(await fetcher.fetch("http://127.0.0.1:1/b", CountingGate())) == said
                return
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch("http://127.0.0.1:1/b", CountingGate())
            assert (caught.value.failure, isinstance(caught.value, ProxyError)) == (Failure.CONNECT, False)
            assert caught.value.reason == f"proxy http://127.0.0.1:{proxy.port} answers {error}"

    with ScriptedProxy((lambda data: said if b"/b " in data else ANSWER,)) as proxy:
        asyncio.run(main())


def test_bytes_right_behind_the_answer_to_connect_belong_to_the_site(tmp_path: Path) -> None:
    """Here they are no TLS, which the site's side of the tunnel is blamed for."""
    with ScriptedProxy((HEAD + b"not tls at all",), hang=True) as proxy:
        error = failure(tmp_path, f"http://127.0.0.1:{proxy.port}", "https://127.0.0.1:1/")
    assert error.failure is Failure.TLS


@needs_tinyproxy
def test_an_invalid_certificate_behind_a_proxy_is_noted(tmp_path: Path) -> None:
    with tinyproxy(tmp_path, PROXY) as port, RawServer(otherwise=keep(ANSWER), tls=True) as server:
        [(exchange, _)] = asyncio.run(fetched(tmp_path, f"http://127.0.0.1:{port}", server.url()))
    assert "tls-unverified" in exchange.notes


@pytest.mark.parametrize("kind", ["http", "socks4", "socks5", "socks5h"])
@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.1", "[::1]", "169.254.169.254", "localhost", "a.localhost", "127.1", "0x7f000001", "2130706433"),
        *("[::ffff:10.0.0.1]", "[fd00::1]", "LOCALHOST.", "router", "nas.lan", "metadata.google.internal"),
    ],
)
def test_private_hosts_stay_refused_behind_a_proxy(tmp_path: Path, kind: str, host: str) -> None:
    with ScriptedProxy() as proxy:
        address = canonical(f"http://{host}/")
        assert address is not None
        error = failure(tmp_path, f"{kind}://127.0.0.1:{proxy.port}", address, allow_private=("10.9.9.9",))
        assert error.failure is Failure.PRIVATE
        assert proxy.heard == []


def test_a_name_that_we_resolve_to_a_private_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def inside(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.9", port))]

    monkeypatch.setattr(socket, "getaddrinfo", inside)
    with ScriptedProxy() as proxy:
        error = failure(tmp_path, f"socks5://127.0.0.1:{proxy.port}", "http://evil.example/", allow_private=())
        assert error.failure is Failure.PRIVATE
        assert "10.0.0.9" in error.reason
        assert proxy.heard == []


@pytest.mark.parametrize("proxy", ["", "socks5://127.0.0.1:1"])
def test_hidden_names_are_never_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *host, **_: asked.append(host))

    async def main() -> None:
        async with fetching(tmp_path, proxy=(proxy,) if proxy else ()) as fetcher:
            for call in (fetcher.fetch("http://abc.onion/", CountingGate()), fetcher.locate("http://abc.onion/")):
                with pytest.raises(FetchError, match=r"only a proxy that resolves names leads to \.onion") as caught:
                    await call
                assert caught.value.failure is Failure.PROXY

    asyncio.run(main())
    assert asked == []


@pytest.mark.parametrize("kind", ["http", "socks5h"])
def test_names_that_the_proxy_resolves_are_never_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    look_up = socket.getaddrinfo

    def only_addresses(host: str, *rest: object, **terms: object) -> object:
        assert host == "127.0.0.1", host
        return look_up(host, *rest, **terms)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", only_addresses)
    pieces = (ANSWER,) if kind == "http" else (b"\x05\0", SOCKS_OK, ANSWER)
    with ScriptedProxy(pieces) as proxy:

        async def main() -> None:
            async with fetching(tmp_path, proxy=(f"{kind}://127.0.0.1:{proxy.port}",)) as fetcher:
                assert await fetcher.locate("http://abc.onion/") == ""
                assert taken(await fetcher.fetch("http://abc.onion/x", CountingGate())) == ANSWER

        asyncio.run(main())
    assert b"abc.onion" in b"".join(proxy.heard)


def test_the_guard_of_the_seeds_holds_behind_a_proxy() -> None:
    guard = AddressGuard([], ["http://localhost:8000/"])
    guard.check_name("localhost")
    with pytest.raises(FetchError):
        guard.check_name("other.localhost")


def test_the_next_address_is_tried_if_the_proxy_cannot_reach_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("198.41.0.4", port)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("199.9.14.201", port)),
        ]

    heard: list[bytes] = []

    def answer(data: bytes) -> bytes:
        heard.append(data)
        return b"\x05\x04\0\x01" if b"\xc6\x29\0\x04" in data else SOCKS_OK

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with ScriptedProxy((b"\x05\0", answer, ANSWER)) as proxy:
        [(exchange, block)] = asyncio.run(fetched(tmp_path, f"socks5://127.0.0.1:{proxy.port}", "http://two.example/"))
    assert block == ANSWER
    assert exchange.peer.ip == "199.9.14.201"
    assert exchange.lookup is not None
    assert exchange.lookup.addresses == ("198.41.0.4", "199.9.14.201")
    assert [data[4:8] for data in heard] == [b"\xc6\x29\0\x04", b"\xc7\x09\x0e\xc9"]


def test_socks4_knows_no_ipv6(tmp_path: Path) -> None:
    with ScriptedProxy() as proxy:
        error = failure(tmp_path, f"socks4://127.0.0.1:{proxy.port}", "http://[::1]:81/")
        assert (error.failure, proxy.heard) == (Failure.CONNECT, [])


@pytest.mark.parametrize("kind", ["socks4", "socks5"])
def test_a_name_that_we_cannot_resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with ScriptedProxy() as proxy:
        error = failure(tmp_path, f"{kind}://127.0.0.1:{proxy.port}", "http://nowhere.example/")
        assert (error.failure, proxy.heard) == (Failure.DNS, [])
        assert error.reason == "host name nowhere.example does not resolve"
