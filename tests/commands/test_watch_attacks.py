"""The control room refuses what it should: a table of attacks, each against the real server."""

import asyncio
import json
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from archiver.model import ExitCode
from archiver.tools.watch.guard import HEADERS
from archiver.tools.watch.serve import WatchConnections
from fixtures import handmade_crawls
from fixtures.command import archiver
from fixtures.ports import free_port
from fixtures.watching import Reply, Watching, watching

PASSWORDS = {"ann": "correct horse battery", "bob": "staple of a watcher"}
ROLES = {"ann": "operator", "bob": "watcher"}
SECRET = "what no one may read"


class Rooms(NamedTuple):
    """Two servers over the same folder."""

    token: Watching  # logged in with its token
    users: Watching  # no one is logged in
    crawl: str  # the id of the crawl in the folder
    folder: Path

    def as_(self, name: str) -> Watching:
        """Return the server with users, as one of them."""
        return Watching(self.users.host, "").log_in(user=name, password=PASSWORDS[name])


def make_crawl(directory: Path) -> None:
    """Make a crawl that has ended, with a name of a host that is hostile to terminals and pages."""
    directory.mkdir()
    handmade_crawls.finished(directory, time.time())
    (directory / "crawl.toml").write_text('seeds = ["https://a.example/"]\n')


@pytest.fixture(name="rooms", scope="module")
def two_rooms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooms]:
    """The servers, for all tests of this file."""
    top = tmp_path_factory.mktemp("rooms")
    folder = top / "crawls"
    folder.mkdir()
    make_crawl(folder / "one")
    (top / "secret.txt").write_text(SECRET)
    make_crawl(top / "elsewhere")
    (folder / "link").symlink_to(top / "elsewhere")
    (folder / "inside").mkdir()
    (folder / "inside" / "crawl.db").symlink_to(top / "elsewhere" / "crawl.db")
    for name, role in ROLES.items():
        given = ("--users", "users", "--add-user", name, "--role", role)
        ran = archiver("watch", *given, cwd=top, stdin=PASSWORDS[name].encode())
        assert ran.returncode == ExitCode.DONE, ran.stderr
    with watching("crawls", cwd=top) as token, watching("crawls", "--users", "users", cwd=top) as users:
        yield Rooms(token, users, token.crawls[0]["id"], folder)


Attack = Callable[[Rooms], Reply]
ORDER = {"verb": "pause", "arguments": []}
SEEDS = {"seeds": ["http://a.example/"]}
FORM = "application/x-www-form-urlencoded"


def order(room: Watching, crawl: str, **headers: str) -> Reply:
    """Send an order as the page does, but for these *headers*."""
    return room.post(f"/api/crawls/{crawl}/orders", ORDER, **headers)


def fresh(rooms: Rooms) -> Watching:
    """Return the server with a token, without a session."""
    return Watching(rooms.token.host, rooms.token.token)


ATTACKS: dict[str, tuple[Attack, int]] = {
    "no session": (lambda it: fresh(it).get("/api/crawls"), 401),
    "a wrong token": (lambda it: fresh(it).post("/api/session", {"token": "x" * 32}), 403),
    "no token": (lambda it: fresh(it).post("/api/session", {}), 403),
    "a token that is no text": (lambda it: fresh(it).post("/api/session", {"token": [it.token.token]}), 403),
    "the token in the query": (lambda it: fresh(it).get(f"/api/crawls?token={it.token.token}"), 401),
    "the token as bearer": (lambda it: fresh(it).get("/api/crawls", Authorization=f"Bearer {it.token.token}"), 401),
    "a session of one's own": (lambda it: fresh(it).get("/api/crawls", Cookie=f"{cookie_name(it)}=mine"), 401),
    "a foreign name for our address": (lambda it: it.token.get("/api/crawls", Host="evil.example"), 421),
    "our address at a foreign port": (lambda it: it.token.get("/api/crawls", Host="127.0.0.1:1"), 421),
    "a foreign name for the page": (lambda it: fresh(it).get("/", Host=f"evil.example:{port_of(it)}"), 421),
    "a foreign origin": (lambda it: order(it.token, it.crawl, Origin="https://evil.example"), 403),
    "the origin of another port": (lambda it: order(it.token, it.crawl, Origin="http://127.0.0.1:1"), 403),
    "no origin": (lambda it: order(it.token, it.crawl, Origin=""), 403),
    "a hidden origin": (lambda it: order(it.token, it.crawl, Origin="null", Sec_Fetch_Site="same-origin"), 403),
    "a form": (lambda it: order(it.token, it.crawl, Content_Type=FORM), 415),
    "plain text": (lambda it: order(it.token, it.crawl, Content_Type="text/plain"), 415),
    "a page of another port that reads": (lambda it: it.token.get("/api/crawls", Sec_Fetch_Site="same-site"), 403),
    "a page of another site that reads": (lambda it: it.token.get("/report/", Sec_Fetch_Site="cross-site"), 403),
    "a path as an id": (lambda it: it.token.get("/api/crawls/..%2F..%2Felsewhere/hosts"), 404),
    "a path as a list": (lambda it: it.token.get(f"/api/crawls/{it.crawl}/..%2Fcrawl.db"), 404),
    "a path as a page": (lambda it: it.token.get("/static/..%2f..%2fapp.py"), 404),
    "a path above the pages": (lambda it: it.token.get("/static/../../../secret.txt"), 404),
    "an absolute path": (lambda it: it.token.get("/static//etc/passwd"), 404),
    "a watcher gives an order": (lambda it: order(it.as_("bob"), it.crawl), 403),
    "a watcher starts a crawl": (lambda it: it.as_("bob").post("/api/crawls", {"seeds": ["http://a.example"]}), 403),
    "a body that is huge": (lambda it: it.token.post("/api/session", {"token": "x" * (1 << 20)}), 413),
    "a body that nests": (lambda it: ask_raw(it, b"[" * 60_000), 400),
    "a body that is no JSON": (lambda it: ask_raw(it, b"{"), 400),
    "a list in place of an order": (lambda it: ask_raw(it, b"[]"), 400),
    "arguments that are no texts": (lambda it: ask_raw(it, b'{"verb":"set","arguments":[{}]}'), 400),
    "a head that is huge": (lambda it: it.token.get("/api/crawls", X="x" * 20_000), 400),
    "many heads": (lambda it: it.token.get("/api/crawls", **{f"X{n}": "x" for n in range(200)}), 400),
    "a query that is huge": (lambda it: it.token.get(f"/api/crawls?x={'x' * 20_000}"), 400),
    "a verb that is none": (lambda it: give(it, "run", "sh -c id"), 409),
    "a verb of a dunder": (lambda it: give(it, "__class__"), 409),
    "a setting that names a file": (lambda it: give(it, "set", "dedup-from=/etc"), 409),
    "a setting that runs a program": (lambda it: give(it, "set", "browser=/bin/sh"), 409),
    "a regex that never ends": (lambda it: give(it, "exclude", "(a"), 409),
    "a crawl with a proxy": (lambda it: start(it, proxy="http://evil.example"), 409),
    "a crawl with a file": (lambda it: start(it, **{"ca-file": "/etc/passwd"}), 409),
    "a crawl with a header in a setting": (lambda it: start(it, contact="a@b.example\r\nX: y"), 409),
    "a crawl with a program": (lambda it: start(it, browser="/bin/sh"), 409),
    "a crawl elsewhere": (lambda it: it.token.post("/api/crawls", {**SEEDS, "directory": "/tmp/x"}), 409),
    "a seed that is a file": (lambda it: it.token.post("/api/crawls", {"seeds": ["file:///etc/passwd"]}), 409),
    "a seed that is an option": (lambda it: it.token.post("/api/crawls", {"seeds": ["--config=/etc/passwd x"]}), 409),
    "a stream without a session": (lambda it: fresh(it).get(f"/api/crawls/{it.crawl}/stream"), 401),
    "a report without a session": (lambda it: fresh(it).get(f"/report/{it.crawl}"), 401),
    "a method that changes": (lambda it: it.token.ask("DELETE", "/api/session", Cookie=it.token.cookie), 405),
    "a method that is unknown": (lambda it: it.token.ask("BREW", "/api/crawls", Cookie=it.token.cookie), 400),
    "a preflight": (lambda it: it.token.ask("OPTIONS", "/api/crawls", Origin="https://evil.example"), 405),
    "a form in place of a login": (lambda it: fresh(it).ask("POST", "/report/", "token=x", Content_Type=FORM), 403),
}


def cookie_name(rooms: Rooms) -> str:
    return rooms.token.cookie.partition("=")[0]


def port_of(rooms: Rooms) -> str:
    return rooms.token.host.rpartition(":")[2]


def ask_raw(rooms: Rooms, body: bytes) -> Reply:
    """Send *body* as an order."""
    room = rooms.token
    given = {"Origin": f"http://{room.host}", "Content_Type": "application/json", "Cookie": room.cookie}
    return room.ask("POST", f"/api/crawls/{rooms.crawl}/orders", body, **given)


def give(rooms: Rooms, verb: str, *arguments: str) -> Reply:
    """Give the order *verb*."""
    return rooms.token.post(f"/api/crawls/{rooms.crawl}/orders", {"verb": verb, "arguments": arguments})


def start(rooms: Rooms, **settings: str) -> Reply:
    """Start a crawl with *settings*."""
    return rooms.token.post("/api/crawls", {**SEEDS, "settings": settings})


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused(rooms: Rooms, name: str) -> None:
    attack, status = ATTACKS[name]
    before = sorted(rooms.folder.iterdir())
    reply = attack(rooms)
    assert reply.status == status, reply.body
    assert SECRET.encode() not in reply.body
    assert "set-cookie" not in reply.headers
    assert "access-control-allow-origin" not in reply.headers
    assert sorted(rooms.folder.iterdir()) == before
    if reply.headers["content-type"].startswith("application/json"):
        assert set(reply.json) == {"error"}
        assert "\n" not in reply.json["error"]
    assert rooms.token.rows(rooms.crawl, "orders")["rows"] == []


def test_each_answer_has_the_headers_that_protect_it(rooms: Rooms) -> None:
    paths = ["/", "/api/session", "/api/crawls", "/none", f"/report/{rooms.crawl}", "/static/none.js"]
    for reply in map(rooms.token.get, paths):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] in {"no-store", "no-cache"}
        assert reply.headers["server"] == "archiver"
    report = rooms.token.get(f"/report/{rooms.crawl}")
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in report.headers["content-security-policy"]


def asked_raw(room: Watching, request: bytes) -> bytes:
    """Send the bytes *request*, and return all that comes until the server closes the connection."""
    name, _, port = room.host.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=60) as link, link.makefile("rb") as file:
        link.sendall(request)
        return file.read()


OWN = b"Host: HOST\r\nConnection: close\r\n"
NOT_HTTP = {
    "no HTTP": (b"\x16\x03\x01 hello\r\n\r\n", 400),
    "no version": (b"GET /\r\n\r\n", 421),
    "a version that does not exist": (b"GET / HTTP/11\r\n" + OWN + b"\r\n", 400),
    "markup as a method": (b"<script>alert(1)</script> / HTTP/1.1\r\n" + OWN + b"\r\n", 400),
    "a field without a colon": (b"GET / HTTP/1.1\r\n" + OWN + b"no field\r\n\r\n", 400),
    "a field that is too long": (b"GET / HTTP/1.1\r\n" + OWN + b"X: " + b"x" * 20_000 + b"\r\n\r\n", 400),
    "too many fields": (b"GET / HTTP/1.1\r\n" + OWN + b"X: x\r\n" * 200 + b"\r\n", 400),
    "two lengths": (b"POST / HTTP/1.1\r\n" + OWN + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400),
    "a length and chunks": (
        b"POST / HTTP/1.1\r\n" + OWN + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    "no name": (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
    "another name": (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
    "an expectation": (b"POST /api/session HTTP/1.1\r\n" + OWN + b"Expect: everything\r\n\r\n", 417),
    "a path that does not exist": (b"GET /none HTTP/1.1\r\n" + OWN + b"\r\n", 404),
    "a path with a bad escape": (b"GET /%zz%00 HTTP/1.1\r\n" + OWN + b"\r\n", 404),
    "a method that is not allowed": (b"PUT /api/crawls HTTP/1.1\r\n" + OWN + b"Content-Length: 0\r\n\r\n", 405),
    "a proxy's request": (b"CONNECT evil.example:443 HTTP/1.1\r\n" + OWN + b"\r\n", 404),
}


@pytest.mark.parametrize("name", NOT_HTTP)
def test_what_the_server_refuses_by_itself_has_the_headers_too(rooms: Rooms, name: str) -> None:
    request, status = NOT_HTTP[name]
    reply = asked_raw(rooms.token, request.replace(b"HOST", rooms.token.host.encode()))
    head, _, body = reply.partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert first.split()[1] == str(status), reply
    found = {key.lower(): value for key, _, value in (field.partition(": ") for field in fields)}
    assert {key.lower(): found.get(key.lower()) for key in HEADERS} == {key.lower(): HEADERS[key] for key in HEADERS}
    assert found["content-type"].startswith("text/plain" if status == 417 else "application/json")
    assert status == 417 or set(json.loads(body)) == {"error"}
    assert b"script" not in body


def test_the_cookie_is_for_this_page_alone(rooms: Rooms) -> None:
    reply = fresh(rooms).post("/api/session", {"token": rooms.token.token})
    assert reply.status == 204
    parts = {part.strip().lower() for part in reply.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert rooms.token.token not in reply.headers["set-cookie"]


def test_a_session_is_made_by_the_server_and_ends(rooms: Rooms) -> None:
    room = fresh(rooms)
    room.cookie = f"{cookie_name(rooms)}=chosen-by-someone-else"
    room.log_in(token=rooms.token.token)
    assert "chosen" not in room.cookie
    first = room.cookie
    room.log_in(token=rooms.token.token)
    assert room.cookie != first
    assert room.ask("GET", "/api/session", Cookie=first).status == 401  # the old one has ended
    assert room.post("/api/session/end", {}).status == 204
    assert room.get("/api/session").status == 401


def test_a_session_ends_with_the_server(rooms: Rooms) -> None:
    with watching("crawls", cwd=rooms.folder.parent) as other:
        name = other.cookie.partition("=")[0]
        value = rooms.token.cookie.partition("=")[2]
        assert other.ask("GET", "/api/session", Cookie=f"{name}={value}").status == 401
        assert Watching(other.host, "").post("/api/session", {"token": rooms.token.token}).status == 403


def test_roles(rooms: Rooms) -> None:
    watcher, operator = rooms.as_("bob"), rooms.as_("ann")
    assert watcher.get("/api/session").json["role"] == "watcher"
    assert operator.get("/api/session").json["role"] == "operator"
    assert watcher.rows(rooms.crawl, "hosts")["rows"]
    assert operator.post("/api/crawls/preview", SEEDS).status == 200
    assert rooms.users.token == ""


def test_passwords_cannot_be_guessed_for_long(rooms: Rooms) -> None:
    with watching("crawls", "--users", "users", cwd=rooms.folder.parent) as room:
        found = [room.post("/api/session", {"user": "ann", "password": f"wrong {n}"}).status for n in range(12)]
        assert found == [403] * 10 + [429] * 2
        assert room.post("/api/session", {"user": "ann", "password": PASSWORDS["ann"]}).status == 429


def test_links_out_of_the_folder_are_not_followed(rooms: Rooms) -> None:
    assert [each["name"] for each in rooms.token.crawls] == ["one"]


def test_names_from_the_network_are_printable(rooms: Rooms) -> None:
    found = json.dumps(rooms.token.rows(rooms.crawl, "urls"), ensure_ascii=False)
    assert "red" in found
    assert found.isprintable()


def test_metrics_are_open_on_this_machine_only(rooms: Rooms, tmp_path: Path) -> None:
    ran = archiver("watch", "--users", str(tmp_path / "u"), "--add-user", "prom", "--role", "metrics", cwd=tmp_path)
    secret = ran.stdout.strip()
    add = ("watch", "--users", "u", "--add-user", "ann")
    assert archiver(*add, cwd=tmp_path, stdin=PASSWORDS["ann"].encode()).returncode == ExitCode.DONE
    open_to_all = fresh(rooms).get("/metrics", Accept="application/openmetrics-text")
    assert f'archiver_urls{{crawl="{rooms.crawl}",state="waiting"}} 4.0' in open_to_all.body.decode()
    assert open_to_all.headers["content-type"].startswith("application/openmetrics-text")
    behind = ("--users", str(tmp_path / "u"), "--behind-proxy", "https://watch.example")
    with watching("crawls", *behind, cwd=rooms.folder.parent, port=free_port()) as room:
        assert room.ask("GET", "/metrics").status == 401
        assert room.ask("GET", "/metrics", Authorization="Bearer wrong").status == 401
        assert room.ask("GET", "/metrics", Authorization=f"Bearer {PASSWORDS['ann']}").status == 401
        assert room.ask("GET", "/metrics", Authorization=f"Bearer {secret}").status == 200
        logged = {"user": "prom", "password": secret}
        origin = {"Origin": "https://watch.example"}
        assert room.post("/api/session", logged, **origin).status == 403  # a program cannot log in
        given = {"user": "ann", "password": PASSWORDS["ann"]}
        assert room.post("/api/session", given).status == 403  # http is not the origin of the page
        reply = room.post("/api/session", given, **origin, Host="watch.example")
        assert reply.status == 204
        assert "secure" in reply.headers["set-cookie"].lower()


def test_the_file_of_users_is_private_and_holds_no_password(rooms: Rooms) -> None:
    path = rooms.folder.parent / "users"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert not [password for password in PASSWORDS.values() if password in text]
    assert "ann:operator:scrypt$" in text


def test_slow_and_many_connections_are_closed() -> None:
    async def main() -> None:
        connections = WatchConnections(most=3, head_time=0.05)
        app = web.Application()

        async def answer(request: web.Request) -> web.Response:
            connections.heard(request)
            return web.Response(text="ok")

        app.router.add_get("/", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        assert runner.server is not None
        connections.serve(runner.server)
        server = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
        place: tuple[str, int] = server.sockets[0].getsockname()
        try:
            slow_reader, slow = await asyncio.open_connection(*place)
            slow.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            reader, writer = await asyncio.open_connection(*place)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            assert await slow_reader.read() == b""  # closed by the server
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # the one that spoke is still served
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            several = [await asyncio.open_connection(*place) for _ in range(4)]
            for _, each in (*several[-1:],):
                each.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await several[-1][0].read() == b""  # one too many
            for _, each in ((slow_reader, slow), (reader, writer), *several):
                each.close()
        finally:
            server.close()
            await runner.cleanup()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("file",), "file is not a directory"),
        (("crawls", "--listen", "0.0.0.0"), "other machines can reach it"),
        (("crawls", "--listen", "no.such.name.invalid", "--users", "users"), "not an address of this machine"),
        (("crawls", "--users", "missing"), "there is no such file"),
        (("crawls", "--users", "open"), "others can read or change it"),
        (("crawls", "--users", "bad"), "bad:1: write NAME:ROLE:HASH"),
        (("crawls", "--cert", "cert.pem"), "--cert and --key are used together"),
        (("crawls", "--cert", "file", "--key", "file"), "cannot be used"),
        (("crawls", "--behind-proxy", "watch.example", "--users", "users"), "write the address of the page"),
        (("crawls", "--port", "TAKEN"), "cannot be used: Address already in use; choose another with --port"),
        ((), "no crawl: name one"),
        (("--add-user", "x"), "--add-user needs --users FILE"),
        (("--add-user", "a:b", "--users", "users"), "for a name"),
        (("--add-user", "carl", "--users", "users"), "a password has at least"),
    ],
)
def test_bad_input_is_one_line(rooms: Rooms, arguments: tuple[str, ...], words: str) -> None:
    top = rooms.folder.parent
    (top / "file").write_text("")
    for name, mode, text in (("open", 0o644, "x"), ("bad", 0o600, "x\n")):
        (top / name).write_text(text)
        (top / name).chmod(mode)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = archiver("watch", *(port if each == "TAKEN" else each for each in arguments), cwd=top, stdin=b"short\n")
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1
