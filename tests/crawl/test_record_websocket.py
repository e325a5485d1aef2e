"""WebSocket connections through `archiver record --websockets pass`: the handshake is recorded, the rest is not."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError

from archiver.crawl.record.websocket import PassedOn
from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.browser import Page
from fixtures.command import archiver, ended
from fixtures.devtools import chromium, needs_chromium
from fixtures.flag import PATIENCE
from fixtures.rawserver import Answer, End, RawServer, keep
from fixtures.recording import RecordingProxy, authority_file, browser_flags, exchanges, recording
from fixtures.websocket_site import GREETING, WebSocketSite, websocket_site

SAID = (b"one", os.urandom(1_000_000))
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
SWITCH = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def handshake(server: RawServer | WebSocketSite, target: str, more: str = "") -> bytes:
    """Return the handshake of a client that has a tunnel."""
    return (
        f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: keep-alive, Upgrade\r\n"
        f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{more}\r\n"
    ).encode()


@asynccontextmanager
async def talking(proxy: RecordingProxy, site: WebSocketSite, target: str) -> AsyncIterator[ClientWebSocketResponse]:
    """Open a WebSocket connection through the proxy, as aiohttp's client does."""
    async with (
        ClientSession() as session,
        session.ws_connect(site.url(target), proxy=proxy.address, max_msg_size=0) as socket,
    ):
        yield socket


Act = Callable[[ClientWebSocketResponse], Awaitable[None]]


def talk(proxy: RecordingProxy, site: WebSocketSite, target: str, act: Act) -> None:
    """Let a client *act*."""

    async def run() -> None:
        async with talking(proxy, site, target) as socket:
            await act(socket)

    asyncio.run(run())


def speak_in_a_tunnel(proxy: RecordingProxy, site: WebSocketSite, target: str) -> None:
    """Say two words to /echo over a tunnel, with TLS if the site has it, in frames written by hand."""
    trusted = authority_file() if site.authority else None
    with closing(proxy.tunnel(f"127.0.0.1:{site.port}", trusted)) as client, client.makefile("rb") as answers:
        client.sendall(handshake(site, target))
        assert answers.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        while answers.readline() != b"\r\n":
            pass
        for message in SAID:
            client.sendall(b"\x82\xff" + len(message).to_bytes(8) + bytes(4) + message)  # masked with zeros
            assert answers.read(1) == b"\x82"
            length = answers.read(1)[0]
            length = length if length < 126 else int.from_bytes(answers.read(2 if length == 126 else 8))
            assert answers.read(length) == message


def speak_through_aiohttp(proxy: RecordingProxy, site: WebSocketSite, target: str) -> None:
    """Say the same as a client that asks for http: URLs without a tunnel."""

    async def speak(socket: ClientWebSocketResponse) -> None:
        for message in SAID:
            await socket.send_bytes(message)
            assert (await socket.receive_bytes()) == message

    talk(proxy, site, target, speak)


@pytest.mark.parametrize(
    ("speak", "tls"), [(speak_through_aiohttp, False), (speak_in_a_tunnel, False), (speak_in_a_tunnel, True)]
)
def test_it_is_passed_on_and_its_handshake_is_recorded(
    tmp_path: Path,
    speak: Callable[[RecordingProxy, WebSocketSite, str], None],
    tls: bool,  # noqa: FBT001
) -> None:
    with websocket_site(tls=tls) as site:
        (tmp_path / "server.pem").write_bytes(site.authority)
        trust = ("--ca-file", "server.pem") if tls else ()
        with recording(tmp_path / "c", "--websockets", "pass", *trust) as proxy:
            speak(proxy, site, "/echo?room=1")
            assert site.closed.acquire(timeout=PATIENCE)
            assert site.said == list(SAID)
            err = proxy.end()
        url = site.url("/echo?room=1")
    assert f"{url}: a WebSocket connection is passed on; only its handshake is recorded" in err
    assert re.search(
        rf"1 WebSocket connection was passed on, and only the handshakes are recorded, not the 2(\.\d)? MB that "
        rf"followed: {re.escape(url)}",
        err,
    )
    [each] = exchanges(tmp_path / "c")
    assert (each.url, each.truncated) == (url, "unspecified")
    assert b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" in each.request
    assert each.request.startswith(b"GET /echo?room=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert each.response.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert each.response.endswith(b"\r\n\r\n")
    assert "remark: websocket" in each.notes
    check(tmp_path, url)


URLS = "SELECT url, state, status, note FROM urls ORDER BY url"


def check(folder: Path, url: str) -> None:
    """Check that the collection in c, with a handshake for *url*, is sound, and what its files say of it."""
    assert "0 faults, 0 warnings" in archiver("verify", "c", cwd=folder).stdout
    assert url.partition("?")[0] not in archiver("ls", "c", cwd=folder).stdout  # no replay shows it
    assert any(url in line and "unspecified" in line for line in table(folder, "truncated"))
    explained = archiver("explain", "c", f"{url}&__wb_method=WEBSOCKET", cwd=folder).stdout
    assert "only its handshake is recorded" in explained, explained
    assert "done; 1 WebSocket connection was passed on" in archiver("report", "c", cwd=folder).stdout
    before = rows(folder / "c", URLS)
    rebuilt = archiver("rebuild", "c", cwd=folder)
    assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
    assert rows(folder / "c", URLS) == before
    assert "0 faults, 0 warnings" in archiver("verify", "c", cwd=folder).stdout


def table(folder: Path, name: str) -> list[str]:
    """Return the lines of a report of the collection in c."""
    return (folder / "c/reports" / f"{name}.tsv").read_text().splitlines()


def test_what_the_server_says_at_once_is_not_lost(tmp_path: Path) -> None:
    async def hear(socket: ClientWebSocketResponse) -> None:
        assert await socket.receive_bytes() == GREETING
        assert (await socket.receive()).type is WSMsgType.CLOSE

    with websocket_site() as site, recording(tmp_path / "c", "--websockets", "pass") as proxy:
        talk(proxy, site, "/greet", hear)
        proxy.end()
    [each] = exchanges(tmp_path / "c")
    assert "surplus" not in each.notes
    assert "fault" not in each.notes


def test_bytes_behind_the_head_in_one_piece_are_passed_on(tmp_path: Path) -> None:
    extra = bytes(range(256)) * 400  # more than is kept of bytes that no one has asked for
    routes = {"/": keep(SWITCH + extra)}
    with RawServer(routes) as server, recording(tmp_path / "c", "--websockets", "pass") as proxy:
        client = proxy.tunnel(f"127.0.0.1:{server.port}")
        client.sendall(handshake(server, "/", "X-Odd:\t two  words \r\n"))
        got = b""
        while len(got) < len(SWITCH + extra):
            got += client.recv(1 << 16)
        assert got == SWITCH + extra
        client.close()
        proxy.end()
        [row] = server.log
    [each] = exchanges(tmp_path / "c")
    assert each.response == SWITCH
    assert each.request == row.request[: len(each.request)]
    assert (
        each.request
        == (
            f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\nX-Odd:\t two  words \r\n\r\n"
        ).encode()
    )


def test_a_page_at_the_same_url_is_still_replayed(tmp_path: Path) -> None:
    """The handshake is no answer to a GET of its URL."""
    with websocket_site() as site, recording(tmp_path / "c", "--websockets", "pass") as proxy:
        assert b"<title>Talk</title>" in proxy.get(site.url("/"))
        client = proxy.tunnel(f"127.0.0.1:{site.port}")
        client.sendall(handshake(site, "/"))
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")  # it ignores the wish
        client.close()
        proxy.end()
    assert set(states(tmp_path / "c")) == {site.url("/"), site.url("/?__wb_method=WEBSOCKET")}
    assert archiver("ls", "c", cwd=tmp_path).stdout.count(site.url("/")) == 1
    assert "0 faults, 0 warnings" in archiver("verify", "c", cwd=tmp_path).stdout


def test_what_is_refused(tmp_path: Path) -> None:
    routes = {
        "/odd": keep(b"HTTP/1.1 101 Fine\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),
        "/none": Answer((), End.CLOSE),
    }
    with websocket_site() as site, RawServer(routes) as server:
        with recording(tmp_path / "c", "--websockets", "pass") as proxy:
            with pytest.raises(WSServerHandshakeError, match="403"):
                talk(proxy, site, "/refuse", never)
            for target in ("/odd", "/none"):
                client = proxy.tunnel(f"127.0.0.1:{server.port}")
                client.sendall(handshake(server, target))
                assert not client.recv(1 << 16).lower().partition(b"\r\n\r\n")[0].count(b"upgrade: websocket")
                client.close()
            post = handshake(server, "/odd").replace(b"GET", b"POST")
            with closing(proxy.tunnel(f"127.0.0.1:{server.port}")) as client:
                client.sendall(post)
                assert client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")
            proxy.end()
        with recording(tmp_path / "d", "--websockets", "pass", private=False) as proxy:
            with pytest.raises(WSServerHandshakeError, match="403"):
                talk(proxy, site, "/echo", never)  # a private address
            proxy.end()
        with recording(tmp_path / "e") as proxy:
            with pytest.raises(WSServerHandshakeError, match="501"):
                talk(proxy, site, "/echo", never)
            assert "--websockets pass passes them on" in proxy.end()
        assert site.asked == []
    for name in "cde":
        assert "0 faults" in archiver("verify", name, cwd=tmp_path).stdout


async def never(_: ClientWebSocketResponse) -> None:
    """Fail: the handshake must not succeed."""
    raise AssertionError("the connection is open")


def test_a_server_whose_certificate_does_not_verify_gets_nothing(tmp_path: Path) -> None:
    with websocket_site(tls=True) as site, recording(tmp_path / "c", "--websockets", "pass") as proxy:
        with closing(proxy.tunnel(f"127.0.0.1:{site.port}", authority_file())) as client:
            client.sendall(handshake(site, "/echo"))
            assert client.recv(1 << 10).startswith(b"HTTP/1.1 502 ")
        assert "its certificate does not verify" in proxy.end()
        assert site.asked == []


def test_the_end_of_one_side_ends_the_other(tmp_path: Path) -> None:
    async def hear_the_end(socket: ClientWebSocketResponse) -> None:
        assert await socket.receive_str() == "word"
        assert (await socket.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR)

    with websocket_site() as site, recording(tmp_path / "c", "--websockets", "pass") as proxy:
        talk(proxy, site, "/cut", hear_the_end)
        assert site.closed.acquire(timeout=PATIENCE)
        for target in ("/echo", "/flood"):
            client = proxy.tunnel(f"127.0.0.1:{site.port}")
            client.sendall(handshake(site, target))
            assert client.recv(1 << 10).startswith(b"HTTP/1.1 101 ")
            client.close()
            assert site.closed.acquire(timeout=PATIENCE)
        proxy.end()
    assert len(exchanges(tmp_path / "c")) == 3


def test_one_that_is_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """Ctrl+C: the exchange is recorded already, so nothing is cut."""
    options = ("--websockets", "pass", "--drain-timeout", "100")
    with websocket_site() as site, recording(tmp_path / "c", *options) as proxy:
        clients = [proxy.tunnel(f"127.0.0.1:{site.port}") for _ in range(2)]
        for client, target in zip(clients, ("/echo", "/flood"), strict=True):
            client.sendall(handshake(site, target))
            assert client.recv(1 << 10).startswith(b"HTTP/1.1 101 ")
        proxy.signal()
        code, err = ended(proxy.process)
        assert code == ExitCode.DONE
        assert "were cut" not in err
        assert "2 WebSocket connections were passed on" in err
        for client in clients:
            assert site.closed.acquire(timeout=PATIENCE)
            client.close()


def test_a_slow_client_slows_the_server_down(tmp_path: Path) -> None:
    """The proxy keeps no more than its buffers, whatever the server says."""
    with websocket_site() as site, recording(tmp_path / "c", "--websockets", "pass") as proxy:
        client = proxy.tunnel(f"127.0.0.1:{site.port}")
        client.sendall(handshake(site, "/flood"))
        assert client.recv(1 << 10).startswith(b"HTTP/1.1 101 ")
        before = memory(proxy.process.pid)
        for _ in range(10):
            proxy.get(site.url("/"))  # the proxy serves others meanwhile
        assert memory(proxy.process.pid) - before < 32_000_000
        total = 0
        while total < 5_000_000:
            total += len(client.recv(1 << 16))
        client.close()
        proxy.end()


def memory(pid: int) -> int:
    """Return the bytes of memory that the process *pid* uses."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_after_a_kill_the_handshake_is_still_there(tmp_path: Path) -> None:
    with websocket_site() as site:
        with recording(tmp_path / "c", "--websockets", "pass") as proxy:
            client = proxy.tunnel(f"127.0.0.1:{site.port}")
            client.sendall(handshake(site, "/echo"))
            assert client.recv(1 << 10).startswith(b"HTTP/1.1 101 ")
            proxy.kill()
            client.close()
        with recording(tmp_path / "c") as proxy:
            proxy.end()
    assert [each.url for each in exchanges(tmp_path / "c")] == [site.url("/echo")]
    assert set(states(tmp_path / "c")) == {site.url("/echo?__wb_method=WEBSOCKET")}
    assert "0 faults" in archiver("verify", "c", cwd=tmp_path).stdout


@pytest.mark.browser
@pytest.mark.slow
@needs_chromium
def test_a_page_that_needs_one_works_in_a_browser(tmp_path: Path) -> None:
    with websocket_site(tls=True) as site:
        (tmp_path / "server.pem").write_bytes(site.authority)
        for words, shown in ((("--websockets", "pass"), "hello"), ((), "refused")):
            directory = tmp_path / f"c{shown}"
            with recording(directory, "--ca-file", "server.pem", *words) as proxy:
                assert asyncio.run(_shown(tmp_path / shown, site.url("/"), proxy)) == shown
                proxy.end()
            assert "0 faults" in archiver("verify", directory.name, cwd=tmp_path).stdout
    stored = [each.url for each in exchanges(tmp_path / "chello")]
    assert site.url("/echo") in stored
    assert site.url("/") in stored


SHOWN = """new Promise(seen => {
    const look = () => {
        const text = document.getElementById("said")?.textContent ?? "nothing"
        if (text !== "nothing") seen(text)
    }
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true })
    look()
})"""


async def _shown(profile: Path, url: str, proxy: RecordingProxy) -> str:
    """Return what the script of the page at *url* writes into it in a browser."""
    async with chromium(profile, flags=browser_flags(proxy)) as devtools:
        page = Page(devtools, await devtools.page())
        await page.go(url)
        async with asyncio.timeout(PATIENCE):
            return str(await page.run(SHOWN))


def test_no_more_names_are_kept_than_are_printed() -> None:
    passed = PassedOn()
    for number in range(100):
        passed.begin(f"https://example.org/{number}")
    assert (passed.connections, passed.open, len(passed.names)) == (100, 100, 10)
    assert passed.text.startswith("100 WebSocket connections were passed on")
    assert len(passed.text) < 1000
    assert PassedOn().text == ""
