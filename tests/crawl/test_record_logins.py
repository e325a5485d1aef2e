"""`archiver record --users`: a proxy that other machines reach asks for a login, which is stored nowhere."""

import asyncio
import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.cli.record.logins import LONGEST, RecordingLogins
from archiver.tools.watch.guard import FAILURES
from archiver.tools.watch.users import Role, add_user, new_user, read_users
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.recording import RecordingProxy, authority_file, exchanges, recording
from fixtures.sites import ok, page

PASSWORDS = {"ann": "correct horse: battery", "bob": "staple of a watcher"}


@pytest.fixture(name="users")
def a_file_of_users(tmp_path: Path) -> Path:
    """Ann may give orders, Bob may look."""
    path = tmp_path / "users"
    for name, role in (("ann", Role.OPERATOR), ("bob", Role.WATCHER)):
        add_user(path, new_user(name, role, PASSWORDS[name]))
    return path


@pytest.fixture(name="server", params=[False, True], ids=["plain", "TLS"])
def a_server(request: pytest.FixtureRequest) -> Iterator[RawServer]:
    """Serves one page."""
    with RawServer({"/": ok(page("Home"))}, tls=request.param) as server:
        yield server


def basic(name: str, password: str) -> str:
    """Return a Proxy-Authorization header."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def curl(proxy: RecordingProxy, url: str, *words: str) -> tuple[str, str]:
    """Return the status of the proxy's or the site's answer as curl sees it, and the body."""
    asked = ("curl", "-s", "-w", "%{http_connect} %{http_code}", "-x", proxy.address, "--cacert", str(authority_file()))
    text = subprocess.run([*asked, *words, url], capture_output=True, text=True, check=False).stdout
    body, _, status = text.rpartition("\n") if "\n" in text else (text[:-7], "", text[-7:])
    return status.strip(), body


def test_only_those_who_log_in_record(tmp_path: Path, users: Path, server: RawServer) -> None:
    (tmp_path / "server.pem").write_bytes(server.authority)
    trust = ("--ca-file", "server.pem") if server.tls else ()
    url, secure = server.url("/"), server.tls
    with recording(tmp_path / "c", "--listen", "0.0.0.0", "--users", "users", "-vv", *trust) as proxy:
        for words, connect, code in (
            ((), "407", "407"),
            (("-U", "ann:wrong password"), "407", "407"),
            (("-U", f"eve:{PASSWORDS['ann']}"), "407", "407"),
            (("-U", f"bob:{PASSWORDS['bob']}"), "403", "403"),
            (("-U", f"ann:{PASSWORDS['ann']}"), "200", "200"),
            (("-U", f"ann:{PASSWORDS['ann']}", "--proxy-anyauth"), "200", "200"),  # asks without a login first
        ):
            status, body = curl(proxy, url, *words)
            assert status.split()[0 if secure else 1] == (connect if secure else code), (words, status)
            assert ("Home" in body) == (code == "200")
        assert [row.target for row in server.log] == ["/", "/"]
        err = proxy.end()
    assert "clients must log in" in err
    assert err.count("127.0.0.1: a wrong name or password\n") == 2
    assert len(exchanges(tmp_path / "c")) == 2
    assert archiver("verify", "c", cwd=tmp_path).returncode == 0
    secrets = [basic("ann", PASSWORDS["ann"]).split()[1], PASSWORDS["ann"], "roxy-Authorization", "wrong password"]
    unpacked = b"".join(each.request + each.response for each in exchanges(tmp_path / "c"))
    files = [path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file()]
    for secret in secrets:
        assert secret not in err
        assert secret.encode() not in unpacked
        assert all(secret.encode() not in file for file in files)


def test_the_refusal_says_how_to_log_in(tmp_path: Path, users: Path) -> None:
    with recording(tmp_path / "c", "--users", "users") as proxy:
        asked = proxy.get("http://127.0.0.1:1234/")
        assert asked.startswith(b"HTTP/1.1 407 Proxy Authentication Required\r\n")
        assert b'\r\nProxy-Authenticate: Basic realm="archiver record", charset="UTF-8"\r\n' in asked
        login = basic("ann", PASSWORDS["ann"]).encode()
        twice = proxy.get("http://127.0.0.1:1234/", b"Proxy-Authorization: %b\r\n" % login * 2)
        assert twice.startswith(b"HTTP/1.1 407 ")
        private = proxy.get("http://10.0.0.1/", b"Proxy-Authorization: %b\r\n" % login)
        assert private.startswith(b"HTTP/1.1 403 ")  # who may record may still not reach the network behind it
        proxy.end()


def test_guessing_ends_soon(users: Path) -> None:
    async def ask() -> None:
        logins = RecordingLogins(read_users(users))
        for bad in ("", "Bearer x", "Basic", "Basic \0", "Basic ////", "Basic " + "x" * (LONGEST + 1), "Basic 8J"):
            refusal = await logins.refusal(bad, "192.0.2.1")
            assert refusal is not None
            assert (refusal.status, "send the name" in refusal.reason) == (407, True)
        right, known = basic("ann", PASSWORDS["ann"]), basic("ann", "another one")
        assert await logins.refusal(right, "192.0.2.1") is None
        for _ in range(FAILURES):
            refusal = await logins.refusal(known, "192.0.2.1")
            assert refusal is not None
            assert refusal.status == 407
        refusal = await logins.refusal(known, "192.0.2.1")
        assert refusal is not None
        assert refusal.status == 429
        assert await logins.refusal(right, "192.0.2.1") is None  # who is known is not locked out
        other = await logins.refusal(known, "192.0.2.2")
        assert other is not None
        assert other.status == 407

    asyncio.run(ask())
