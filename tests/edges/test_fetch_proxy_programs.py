"""One request through squid and danted: what the server gets, what the archive keeps, and logins."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from email.utils import formatdate
from pathlib import Path

import pytest

from archiver.errors import Failure, FetchError, ProxyError
from archiver.model import Exchange
from fixtures.fetching import CountingGate, fetching, taken
from fixtures.ports import free_port
from fixtures.proxies import danted, needs_danted, needs_squid, needs_tinyproxy, squid, tinyproxy
from fixtures.rawserver import RawServer, keep

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd :  kept\r\n\r\nhi"
CACHED = b"HTTP/1.1 200 OK\r\nDate: %b\r\nContent-Length: 2\r\nX-Kept: 1\r\nCache-Control: max-age=99999\r\n\r\nhi"
PLAIN = CACHED % formatdate(usegmt=True).encode()
PROXY = "127.0.0.77"  # the address by which proxies leave
HttpProxy = Callable[..., AbstractContextManager[int]]
BOTH = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


async def fetched(folder: Path, proxy: str, *addresses: str) -> list[tuple[Exchange, bytes]]:
    async with fetching(folder, proxy=(proxy,)) as fetcher:
        found = []
        for address in addresses:
            exchange = await fetcher.fetch(address, CountingGate())
            found.append((exchange, taken(exchange)))
        return found


def failure(folder: Path, proxy: str, address: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        asyncio.run(fetched(folder, proxy, address))
    return caught.value


@BOTH
@needs_squid
def test_through_squid(tmp_path: Path, *, tls: bool) -> None:
    """For https, the archive has what the server sent, byte for byte; for http, what squid passed on, marked by it."""
    with squid(PROXY) as port, RawServer(otherwise=keep(ANSWER if tls else PLAIN), tls=tls) as server:
        first, second = server.url("/a?b"), server.url("/c", "localhost")
        found = asyncio.run(fetched(tmp_path, f"http://127.0.0.1:{port}", first, second, first))
    assert [exchange.peer.ip for exchange, _ in found] == ["127.0.0.1", None, "127.0.0.1"]
    assert {row.client for row in server.log} == {PROXY}
    if tls:
        assert [block for _, block in found] == [ANSWER] * 3
        assert [row.target for row in server.log] == ["/a?b", "/c", "/a?b"]
        return
    assert all(b"X-Kept: 1\r\n" in block and b"\r\nVia: " in block and block.endswith(b"hi") for _, block in found)
    assert [b"\r\nX-Cache: HIT" in block for _, block in found] == [False, False, True], "squid answers from its cache"
    assert [row.target for row in server.log] == ["/a?b", "/c"]


@BOTH
@needs_squid
@pytest.mark.parametrize("scheme", ["Basic", "Digest"])
def test_a_login_to_squid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, *, tls: bool) -> None:
    """The site gets no login, and the archive keeps none."""
    monkeypatch.setenv("WAY_IN", "ann:hunter2")
    with squid(PROXY, "ann", "hunter2", scheme) as port, RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        place = f"127.0.0.1:{port}"
        urls = [server.url(f"/{number}") for number in range(60)]  # squid takes a nonce fifty times
        for exchange, block in asyncio.run(fetched(tmp_path, f"http://env:WAY_IN@{place}", *urls)):
            assert block.endswith(b"hi")
            assert b"roxy-Auth" not in exchange.request
        assert not [row for row in server.log if b"roxy-Auth" in row.request]
        monkeypatch.setenv("WAY_IN", "ann:wrong")
        for proxy in (f"http://env:WAY_IN@{place}", f"http://{place}"):
            error = failure(tmp_path, proxy, server.url("/b"))
            assert isinstance(error, ProxyError)
            assert error.refused, error.reason
            assert "wrong" not in error.reason
        assert len(server.log) == 60


@BOTH
@needs_danted
@pytest.mark.parametrize("kind", ["socks4", "socks5", "socks5h"])
def test_through_danted(tmp_path: Path, kind: str, *, tls: bool) -> None:
    """Names are looked up by whom the kind says. The answer is the server's, byte for byte."""
    with danted(PROXY) as port, RawServer(otherwise=keep(ANSWER), tls=tls) as server:
        named = server.url("/a", "localhost")
        found = asyncio.run(fetched(tmp_path, f"{kind}://127.0.0.1:{port}", named, server.url("/b"), named))
    assert [block for _, block in found] == [ANSWER] * 3
    local = "127.0.0.1" if kind != "socks5h" else None
    assert [exchange.peer.ip for exchange, _ in found] == [local, "127.0.0.1", local]
    assert {row.client for row in server.log} == {PROXY}
    assert len({row.connection for row in server.log}) == 2


@needs_danted
def test_danted_says_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login, a version of SOCKS, or a site that cannot be reached."""
    monkeypatch.setenv("WORD", "hunter2")
    closed = f"http://127.0.0.1:{free_port()}/"
    with danted(PROXY, logins=True) as port, RawServer(otherwise=keep(ANSWER)) as server:
        for login in ("", "unknown-user:env:WORD@"):
            error = failure(tmp_path, f"socks5://{login}127.0.0.1:{port}", server.url())
            assert isinstance(error, ProxyError)
            assert error.refused, error.reason
            assert "hunter2" not in error.reason
        assert not len(server.log)
    for kind in ("socks4", "socks5"):
        with danted(PROXY) as port:
            error = failure(tmp_path, f"{kind}://127.0.0.1:{port}", closed)
        assert (error.failure, isinstance(error, ProxyError)) == (Failure.CONNECT, False), error.reason


@BOTH
@needs_squid
@needs_tinyproxy
@pytest.mark.parametrize("program", [squid, tinyproxy])
def test_a_site_that_an_http_proxy_cannot_reach(tmp_path: Path, program: HttpProxy, *, tls: bool) -> None:
    """Its error page is no capture of the site."""
    leaves_by = (tmp_path, PROXY) if program is tinyproxy else (PROXY,)
    with program(*leaves_by) as port:
        error = failure(tmp_path, f"http://127.0.0.1:{port}", f"http{'s' * tls}://127.0.0.1:{free_port()}/")
    assert (error.failure, isinstance(error, ProxyError)) == (Failure.CONNECT, False), error.reason
    assert f"proxy http://127.0.0.1:{port} answers 50" in error.reason


@needs_danted
@pytest.mark.parametrize(("kind", "other"), [("socks4", "socks5"), ("socks5", "socks4")])
def test_a_proxy_of_the_other_version(tmp_path: Path, kind: str, other: str) -> None:
    with danted(PROXY, f"socks_v{other[-1]}") as port, RawServer(otherwise=keep(ANSWER)) as server:
        [(_, block)] = asyncio.run(fetched(tmp_path, f"{other}://127.0.0.1:{port}", server.url()))
        assert block == ANSWER
        error = failure(tmp_path, f"{kind}://127.0.0.1:{port}", server.url())
    assert error.failure in (Failure.CONNECT, Failure.PROXY), error.reason
