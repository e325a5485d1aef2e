"""The servers that other tests trust: they send what they were told to the byte, and log what they were asked."""

import asyncio
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from fixtures.badserver import BAD, ENDLESS, NO_ANSWER, late, routes
from fixtures.flag import Gate
from fixtures.folder import files, serve_tree
from fixtures.log import Log, Row
from fixtures.rawserver import Answer, End, Piece, RawServer, keep, trickle
from fixtures.sites import ok, tree


def request(target: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: x", *fields, "", ""]).encode()


def connect(server: RawServer, host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((host, server.port), timeout=300)


def take(sock: socket.socket, size: int = 1 << 30) -> bytes:
    """What comes until *size* bytes are there or the server closes."""
    got = bytearray()
    while len(got) < size and (piece := sock.recv(min(size - len(got), 65536))):
        got += piece
    return bytes(got)


@pytest.mark.parametrize("size", [0, 1])
def test_each_bad_answer_is_sent_to_the_byte(size: int) -> None:
    short = {name: bad for name, bad in BAD.items() if not size or len(bad.raw) < 500}
    with RawServer(routes(size)) as server:
        for name, bad in short.items():
            with connect(server) as sock:
                sock.sendall(request(f"/{name}"))
                if bad.end is End.RESET:
                    with pytest.raises(ConnectionResetError):
                        take(sock)
                else:
                    assert take(sock, len(bad.raw)) == bad.raw, name
                    if bad.end is End.CLOSE:
                        assert sock.recv(1) == b"", name
    assert server.log.targets() == [f"/{name}" for name in short]
    assert [row.sent for row in server.log] == [len(bad.raw) for bad in short.values()]


def test_blocks_are_parts_of_what_is_sent() -> None:
    assert all(bad.block in bad.raw for bad in BAD.values())


def test_a_connection_is_kept_and_pipelined_requests_are_answered_in_order() -> None:
    with RawServer({"/a": ok("A"), "/b": ok("B")}) as server, connect(server) as sock:
        sock.sendall(request("/a") + request("/b") + request("/c"))
        got = take(sock, sum(row.sent for row in server.log) or 1)
        while got.count(b"HTTP/1.1") < 3 or not got.endswith(b"not found\n"):
            got += sock.recv(4096)
        assert got.index(b"\r\n\r\nA") < got.index(b"\r\n\r\nB") < got.index(b"404")
    assert {row.connection for row in server.log} == {0}


def test_requests_are_logged_with_their_bytes_and_bodies() -> None:
    odd = b"POST /x?y=1 HTTP/1.1\r\nhOST:  x \r\nContent-Length: 3\r\n\r\nabc"
    with RawServer() as server, connect(server) as sock:
        for index in range(len(odd)):
            sock.sendall(odd[index : index + 1])
        assert take(sock, 12) == b"HTTP/1.1 404"
        row = server.log[0]
        assert (row.request, row.method, row.target) == (odd, "POST", "/x?y=1")


def test_several_hosts_share_a_port() -> None:
    hosts = ("127.0.0.1", "127.0.0.2")
    with RawServer({"/": b"one", "//127.0.0.2/": b"two"}, hosts=hosts) as server:
        answers = []
        for host in hosts:
            with connect(server, host) as sock:
                sock.sendall(request("/"))
                answers.append(take(sock))
    assert answers == [b"one", b"two"]
    assert [row.host for row in server.log] == list(hosts)
    assert [row.connection for row in server.log] == [0, 1]


def test_a_gate_holds_an_answer_in_the_middle() -> None:
    gate = Gate()
    with RawServer({"/": Answer((b"first", gate, b"second"), End.CLOSE)}) as server, connect(server) as sock:
        sock.sendall(request("/"))
        gate.arrived.wait()
        assert take(sock, 5) == b"first"
        assert server.log[0].ended is None
        gate.open()
        assert take(sock) == b"second"


def test_in_the_loop_of_the_test() -> None:
    gate = Gate()

    async def main() -> bytes:
        async with RawServer({"/": Answer((gate, b"done"), End.CLOSE)}) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request("/"))
            await server.log.holds(1).reached()
            await gate.arrived.reached()
            gate.open()
            got = await reader.read()
            writer.close()
            await writer.wait_closed()
            return got

    assert asyncio.run(main()) == b"done"


def test_a_route_may_decide_by_the_request() -> None:
    async def script(row: Row) -> AsyncIterator[Piece]:
        yield row.target.encode()
        yield End.CLOSE
        yield b"never sent"

    with RawServer({"/a": lambda row: Answer(script(row))}) as server, connect(server) as sock:
        sock.sendall(request("/a"))
        assert take(sock) == b"/a"


def test_a_fault_in_a_route_is_raised_when_the_server_stops() -> None:
    def route(row: Row) -> bytes:
        raise ZeroDivisionError(row.target)

    def ask() -> None:
        with RawServer({"/oops": route}) as server, connect(server) as sock:
            sock.sendall(request("/oops"))
            with pytest.raises(ConnectionResetError):
                take(sock)

    with pytest.raises(ZeroDivisionError, match="/oops"):
        ask()


def test_over_tls() -> None:
    with RawServer({"/": b"secret"}, tls=True) as server:
        context = ssl.create_default_context(cadata=server.authority.decode())
        with connect(server) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            sock.sendall(request("/"))
            assert take(sock) == b"secret"
    assert server.url("/a").startswith("https://127.0.0.1:")


@pytest.mark.parametrize("name", sorted(NO_ANSWER))
def test_no_answer(name: str) -> None:
    with RawServer({"/": NO_ANSWER[name]}) as server, connect(server) as sock:
        sock.sendall(request("/"))
        server.log.holds(1).wait()
        if name == "reset":
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        elif name == "closed":
            assert sock.recv(1) == b""
        else:
            sock.settimeout(0.05)
            with pytest.raises(TimeoutError):
                sock.recv(1)


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_endless_answers_end_with_their_client_or_their_server(name: str) -> None:
    with RawServer({"/": ENDLESS[name]}) as server:
        with connect(server) as sock:
            sock.sendall(request("/"))
            assert take(sock, 40) != b""
        with connect(server) as left:
            left.sendall(request("/"))
            take(left, 40)
    assert all(row.lost for row in server.log)


def test_a_surprise_on_an_idle_connection() -> None:
    with RawServer({"/": late(b"answer", b"surprise", pause=0.01)}) as server, connect(server) as sock:
        sock.sendall(request("/"))
        assert take(sock) == b"answersurprise"


def test_the_log_judges_rate_and_concurrency() -> None:
    log = Log()
    for number, (arrived, ended) in enumerate([(0.0, 0.5), (0.1, 0.2), (0.2, 0.9), (1.05, 1.2)]):
        row = log.arrive(number, "127.0.0.1" if number else "127.0.0.2", b"GET / HTTP/1.1\r\n\r\n")
        row.arrived, row.ended = arrived, ended
    assert [log.most_starts(window) for window in (0.05, 0.15, 0.25, 1.0, 1.06)] == [1, 2, 3, 3, 4]
    assert log.most_at_once() == 2
    assert log.most_at_once("127.0.0.2") == 1
    assert log.most_starts(2, "127.0.0.1") == 3
    assert Log().most_starts(1) == Log().most_at_once() == 0


def test_a_slow_answer_is_seen_as_running_until_its_last_byte() -> None:
    slow = trickle(b"x" * 8, pause=0.005, size=2)
    with RawServer({"/slow": slow}) as server:
        socks = [connect(server) for _ in range(5)]
        for sock in socks:
            sock.sendall(request("/slow"))
        for sock in socks:
            assert take(sock) == b"x" * 8
            sock.close()
    assert server.log.most_at_once() == 5
    assert all(row.ended and row.ended - row.arrived > 0.015 for row in server.log)


def test_a_tree_is_whole_and_the_same_on_each_run() -> None:
    site = tree(40)
    assert site.reachable == frozenset(site.routes) == tree(40).reachable
    assert len(site.reachable) == 40 + 5 + 3
    seen, waiting = {"/"}, ["/"]
    with RawServer(site.routes) as server, closing(HTTPConnection("127.0.0.1", server.port, timeout=300)) as client:
        while waiting:
            client.request("GET", waiting.pop())
            found = re.findall(
                r"""(?:href="|src="|url\(|@import ")([^")]+)""", client.getresponse().read().decode("latin-1")
            )
            new = {f"/{link.removeprefix('/')}" for link in found} - seen
            seen |= new
            waiting += new
    assert seen == site.reachable
    assert {row.connection for row in server.log} == {0}


@pytest.fixture(name="folder")
def folder_with_files(tmp_path: Path) -> Path:
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "index.html").write_text("start")
    (tmp_path / "sub dir" / "index.html").write_text("below")
    (tmp_path / "sub dir" / "größe.css").write_text("p {}")
    (tmp_path / "data.tar.gz").write_bytes(b"\x1f\x8b")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "begins", "ends"),
    [
        ("/", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", b"start"),
        ("/?x=1", b"HTTP/1.1 200", b"start"),
        ("/sub%20dir", b"HTTP/1.1 301 Moved Permanently", b"moved</p>\n"),
        ("/sub%20dir/", b"HTTP/1.1 200 OK", b"below"),
        ("/sub%20dir/gr%C3%B6%C3%9Fe.css", b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n", b"p {}"),
        ("/data.tar.gz", b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n", b"\x1f\x8b"),
        ("/absent", b"HTTP/1.1 404", b"not found\n"),
        ("/../etc/passwd", b"HTTP/1.1 404", b"not found\n"),
        ("/%00", b"HTTP/1.1 404", b"not found\n"),
    ],
)
def test_a_folder_is_served(folder: Path, target: str, begins: bytes, ends: bytes) -> None:
    with serve_tree(folder) as server, connect(server) as sock:
        sock.sendall(request(target))
        got = sock.recv(4096)
    assert got.startswith(begins)
    assert got.endswith(ends)


def test_files_of_a_folder_by_target(folder: Path) -> None:
    assert {target: path.name for target, path in files(folder).items()} == {
        "/": "index.html",
        "/index.html": "index.html",
        "/sub%20dir/": "index.html",
        "/sub%20dir/index.html": "index.html",
        "/sub%20dir/gr%C3%B6%C3%9Fe.css": "größe.css",
        "/data.tar.gz": "data.tar.gz",
    }


LEAKS = {
    "task": """
import asyncio
kept = []
async def main():
    kept.append(asyncio.get_running_loop().create_task(asyncio.sleep(60), name="forgotten"))
def test_leak():
    asyncio.run(main())
""",
    "thread": """
import threading
stop = threading.Event()
def test_leak():
    threading.Thread(target=stop.wait, name="forgotten", daemon=True).start()
""",
    "socket:": """
import socket
kept = []
def test_leak():
    kept.append(socket.create_server(("127.0.0.1", 0)))
""",
    "forgotten.txt": """
kept = []
def test_leak(tmp_path):
    kept.append((tmp_path / "forgotten.txt").open("w"))
""",
    "process": """
import subprocess
kept = []
def test_leak():
    kept.append(subprocess.Popen(["sleep", "6"]))
""",
}


@pytest.mark.parametrize("kind", sorted(LEAKS))
def test_a_leak_fails_its_test_and_is_named(kind: str, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    rules = (root / "tests" / "conftest.py").read_text()
    assert "GRACE = 20.0" in rules
    (tmp_path / "conftest.py").write_text(rules.replace("GRACE = 20.0", "GRACE = 0.5"))
    (tmp_path / "test_it.py").write_text(LEAKS[kind])
    options = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-q", "--rootdir", tmp_path, "-c", "/dev/null")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-o", f"pythonpath={root}", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "left behind:" in done.stdout
    assert kind in done.stdout.partition("left behind:")[2]


def test_keep_says_what_it_is_given() -> None:
    assert keep(b"x") == Answer((b"x",), End.KEEP)
