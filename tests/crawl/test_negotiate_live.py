"""Negotiate and NTLM in whole crawls against pyspnego's acceptor, which logs connections in."""

import hashlib
import re
import signal
import ssl
import struct
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from spnego.channel_bindings import GssChannelBindings

from archiver.config.auth import AUTH
from archiver.config.logins import LOGIN
from archiver.config.option_types import Rate
from archiver.crawl.login.authentication import MOST_STEPS
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import COMMAND, archiver
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.negotiating_site import DOMAIN, PASSWORD, USER, NegotiatingSite, users
from fixtures.proxies import needs_tinyproxy, tinyproxy
from fixtures.rawserver import RawServer, Sendable, keep
from fixtures.site_with_login import MEMBERS, PLEASE, MembersSite
from fixtures.site_with_login import PASSWORD as FORM_PASSWORD
from fixtures.site_with_login import USER as FORM_USER
from fixtures.sites import ok, page
from fixtures.thread_delay import MOST_JITTER

CAPTURES = "SELECT urls.url, captures.status FROM captures JOIN urls ON urls.id = captures.url ORDER BY captures.id"
PAGES = [f"/{number}" for number in range(20)]


@pytest.fixture(autouse=True)
def _password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
    monkeypatch.setenv("OTHER_PASSWORD", "hunter2-is-wrong")
    users(tmp_path, monkeypatch)


def inside(row: Row) -> Sendable:
    return ok(page(f"In {row.target}", PAGES if row.target == "/" else []))


def rule(space: str, user: str = f"{DOMAIN}\\{USER}", secret: str = "SITE_PASSWORD") -> tuple[object, ...]:
    return (AUTH.parse(f"{space} {user}:env:{secret}"),)


def statuses(folder: Path, root: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for url, status in rows(folder, CAPTURES):
        found.setdefault("/" + str(url).removeprefix(root), []).append(int(str(status)))
    return found


@pytest.mark.parametrize("scheme", ["NTLM", "Negotiate"])
@pytest.mark.parametrize("user", [f"{DOMAIN}\\{USER}", USER])
def test_one_connection_is_logged_in_once(tmp_path: Path, scheme: str, user: str) -> None:
    site = NegotiatingSite(inside, [scheme])
    with RawServer({}, otherwise=site) as server:
        crawl(tmp_path / "c", server.url(), auth=rule(server.url(), user), robots="ignore", host_concurrency=1)
        found = statuses(tmp_path / "c", server.url())
    assert [word for _, _, word in site.answers] == ["asked", "token", "logged in", *["in"] * 20]
    assert {connection for connection, _, _ in site.answers} == {0}
    assert found.pop("/") == [401, 401, 200]
    assert found == {target: [200] for target in PAGES}


def test_each_new_connection_is_logged_in_again(tmp_path: Path) -> None:
    """The server closes each connection after its fifth answer."""
    counts: Counter[int] = Counter()

    def closing(row: Row) -> Sendable:
        counts[row.connection] += 1
        answer = inside(row)
        if counts[row.connection] < 5:
            return answer
        return b"".join(each for each in answer.pieces if isinstance(each, bytes))  # type: ignore[union-attr]

    site = NegotiatingSite(closing)
    with RawServer({}, otherwise=site) as server:
        crawl(tmp_path / "c", server.url(), auth=rule(server.url()), robots="ignore", host_concurrency=1)
        found = statuses(tmp_path / "c", server.url())
    assert all(each[-1] == 200 and each.count(200) == 1 for each in found.values())
    assert len(found) == 21
    words = Counter(word for _, _, word in site.answers)
    assert words == {"asked": 1, "token": 5, "logged in": 5, "in": 16}


def test_several_connections_at_once(tmp_path: Path) -> None:
    site = NegotiatingSite(inside, ["Negotiate", "NTLM"])
    with RawServer({}, otherwise=site) as server:
        crawl(tmp_path / "c", server.url(), auth=rule(server.url()), robots="ignore", host_concurrency=6)
        found = statuses(tmp_path / "c", server.url())
    assert all(each[-1] == 200 and each.count(200) == 1 for each in found.values())
    assert len(found) == 21
    words = Counter(word for _, _, word in site.answers)
    assert 0 < words["logged in"] <= words["token"] <= 6
    assert not words["wrong"]


def test_a_wrong_password_is_judged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = NegotiatingSite(inside)
    with RawServer({}, otherwise=site) as server:
        seeds = [server.url(), server.url("/a"), server.url("/b")]
        given = rule(server.url(), secret="OTHER_PASSWORD")
        crawl(tmp_path / "c", *seeds, auth=given, robots="ignore", host_concurrency=1)
        found = statuses(tmp_path / "c", server.url())
    assert Counter(word for _, _, word in site.answers)["wrong"] == 1
    assert sum(map(len, found.values())) == len(site.answers) == 5
    assert "the server refuses the user and password" in caplog.text


def test_a_server_without_end(tmp_path: Path) -> None:
    """It closes the connection with each token."""
    site = NegotiatingSite(inside)

    def cut(row: Row) -> Sendable:
        answer = site(row)
        return b"".join(each for each in answer.pieces if isinstance(each, bytes))  # type: ignore[union-attr]

    with RawServer({}, otherwise=cut) as server:
        crawl(tmp_path / "c", server.url(), auth=rule(server.url()), robots="ignore", host_concurrency=1)
        found = statuses(tmp_path / "c", server.url())
    assert found == {"/": [401] * (1 + MOST_STEPS)}


@pytest.mark.parametrize(
    ("kind", "target_info"),
    [(2, b""), (2, b"\x02"), (2, b"\x07\0\1\0a"), (2, b"\x02\0\xff\xffa"), (9, b"")],
)
def test_a_broken_token_ends_the_handshake(tmp_path: Path, kind: int, target_info: bytes) -> None:
    """The parser of the package raises errors of several types."""
    flags, place = 0xA2898205, 56
    head = struct.pack("<8sIHHI", b"NTLMSSP", kind, 0, 0, place) + struct.pack("<I8s8x", flags, b"12345678")
    token = head + struct.pack("<HHI8x", len(target_info), len(target_info), place) + target_info
    wants = b"HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM%s\r\nContent-Length: 0\r\n\r\n"

    def broken(row: Row) -> Sendable:
        return keep(wants % (b" " + b64encode(token) if b"\r\nauthorization: ntlm" in row.request.lower() else b""))

    with RawServer({}, otherwise=broken) as server:
        ending = crawl(tmp_path / "c", server.url(), auth=rule(server.url()), robots="ignore", host_concurrency=1)
        assert set(statuses(tmp_path / "c", server.url())["/"]) == {401}
    assert ending.code is ExitCode.NO_SEED


def test_urls_outside_of_the_space_never_use_a_connection_that_is_logged_in(tmp_path: Path) -> None:
    site = NegotiatingSite(lambda row: ok(page("In", [f"/in/{n}" for n in range(5)] + [f"/out/{n}" for n in range(5)])))
    with RawServer({}, otherwise=site) as server:
        given = rule(server.url("/in/"))
        crawl(tmp_path / "c", server.url("/in/"), auth=given, robots="ignore", host_concurrency=1, scope="host")
        found = statuses(tmp_path / "c", server.url())
    assert {found[f"/in/{n}"][-1] for n in range(5)} == {200}
    assert [found[f"/out/{n}"] for n in range(5)] == [[401]] * 5


def test_each_request_of_a_handshake_waits_for_its_turn(tmp_path: Path) -> None:
    site = NegotiatingSite(lambda _: ok(page("In", [])))
    with RawServer({}, otherwise=site) as server:
        given: dict[str, Any] = {"rate": Rate(1), "robots": "ignore"}
        crawl(tmp_path / "c", server.url(), auth=rule(server.url()), **given)
        ends = [row.ended for row in server.log]
        times = [row.arrived for row in server.log]
    assert [word for _, _, word in site.answers] == ["asked", "token", "logged in"]
    assert times[2] - times[0] >= 2 - MOST_JITTER
    assert all(end is not None and end <= start for end, start in zip(ends[:-1], times[1:], strict=True))


@pytest.mark.parametrize("scheme", ["NTLM", "Negotiate"])
def test_a_login_is_bound_to_the_certificate(tmp_path: Path, scheme: str) -> None:
    """Also to one that does not verify, if the user wants the password to go there."""
    site = NegotiatingSite(inside, [scheme])
    with RawServer({}, otherwise=site, tls=True) as server:
        certificate = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", server.port)))
        data = b"tls-server-end-point:" + hashlib.sha256(certificate).digest()
        site.bindings = GssChannelBindings(application_data=data)
        crawl(tmp_path / "a", server.url(), auth=rule(server.url()), robots="ignore")
        assert {word for _, _, word in site.answers} == {"asked"}
        site.answers.clear()
        given: dict[str, Any] = {"insecure_secrets": ("127.0.0.1",), "host_concurrency": 1}
        crawl(tmp_path / "b", server.url(), auth=rule(server.url()), robots="ignore", **given)
    assert [word for _, _, word in site.answers] == ["asked", "token", "logged in", *["in"] * 20]


def test_a_crawl_killed_within_a_handshake_begins_another_one(tmp_path: Path) -> None:
    """The server kills the crawl when its last token arrives."""
    killed: list[subprocess.Popen[bytes]] = []
    site = NegotiatingSite(inside)

    def killing(row: Row) -> Sendable:
        answer = site(row)
        if site.answers[-1][2] == "logged in" and killed[0].poll() is None:
            killed[0].kill()
            killed[0].wait()
        return answer

    with RawServer({}, otherwise=killing) as server:
        words = ("crawl", server.url(), "-o", "c", "--rate", "0", "--robots", "ignore", "--probe", "off")
        given = ("--auth", f"{server.url()} {DOMAIN}\\{USER}:env:SITE_PASSWORD")
        killed.append(subprocess.Popen([*COMMAND, *words, *given], cwd=tmp_path))
        assert killed[0].wait() == -signal.SIGKILL
        done = archiver("resume", "c", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        found = statuses(tmp_path / "c", server.url())
    assert set(found) == {"/", *PAGES}
    assert all(each[-1] == 200 and each.count(200) == 1 for each in found.values())
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE


@needs_tinyproxy
def test_a_proxy_that_may_share_its_connections_gets_no_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = NegotiatingSite(inside)
    with RawServer({}, otherwise=site) as server, tinyproxy(tmp_path, "127.0.0.77") as port:
        given: dict[str, Any] = {"proxy": (f"http://127.0.0.1:{port}",), "allow_private": ("127.0.0.0/8",)}
        crawl(tmp_path / "c", server.url(), auth=rule(server.url()), robots="ignore", **given)
        assert {word for _, _, word in site.answers} == {"asked"}
    assert "the proxy shares its connections" in caplog.text


def test_a_proxy_that_keeps_connections_apart_says_so(tmp_path: Path) -> None:
    """The server plays the proxy too: RFC 4559, section 6."""
    supported = "Proxy-Support: Session-Based-Authentication\r\n"
    site = NegotiatingSite(lambda row: ok(page("In", [])), more=f"{supported}Connection: keep-alive\r\n")
    with RawServer({}, otherwise=site) as server:
        given: dict[str, Any] = {"proxy": (server.url()[:-1],), "allow_private": ("127.0.0.0/8",)}
        crawl(tmp_path / "c", server.url(), auth=rule(server.url()), robots="ignore", **given)
        assert statuses(tmp_path / "c", server.url()) == {"/": [401, 401, 200]}


def test_a_form_is_posted_on_the_connection_that_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORM_PASSWORD", FORM_PASSWORD)
    members = MembersSite()
    site = NegotiatingSite(lambda row: members.routes[row.target](row))  # type: ignore[operator]
    with RawServer({}, otherwise=site) as server:
        root = server.url()
        login = LOGIN.parse(f"{root}login user={FORM_USER} password=env:FORM_PASSWORD 'logged-out={PLEASE}'")
        ended = crawl(tmp_path / "c", root, auth=rule(root), login=(login,), host_concurrency=1, robots="ignore")
        assert ended.code is ExitCode.DONE
        assert [row.method for row in server.log if row.target == "/login"].count("POST") == 1
        found = statuses(tmp_path / "c", root)
    assert members.answers["in"] == 1
    assert {found[target][-1] for target in ("/", *MEMBERS)} == {200}


@pytest.mark.parametrize(("user", "scheme"), [(USER, "Digest"), (f"{DOMAIN}\\{USER}", "NTLM")])
def test_the_scheme_that_fits_the_user_is_answered(tmp_path: Path, user: str, scheme: str) -> None:
    offers = ['Digest realm="r", nonce="n", qop="auth"', 'Basic realm="b"', "NTLM"]
    site = NegotiatingSite(inside, offers)
    with RawServer({}, otherwise=site) as server:
        crawl(tmp_path / "c", server.url(), auth=rule(server.url(), user), robots="ignore")
        assert server.log[1].request.partition(b"\r\nAuthorization: ")[2].startswith(scheme.encode())


def test_without_the_package_one_line_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "spnego", None)
    site = NegotiatingSite(inside, ["Negotiate", "NTLM"])
    with RawServer({}, otherwise=site) as server:
        seeds = (server.url(), server.url("/a"))
        crawl(tmp_path / "c", *seeds, auth=rule(server.url()), robots="ignore")
        text = f"{server.url()}: the server wants Negotiate or NTLM authentication, which needs a package: "
    messages = [record.message for record in caplog.records if "package" in record.message]
    assert messages == [f"{text}pip install 'warchiver[negotiate]'"]
    assert {word for _, _, word in site.answers} == {"asked"}


def test_tokens_are_in_request_records_alone_and_rebuild_settles_the_same(tmp_path: Path, forks: Forks) -> None:
    site = NegotiatingSite(inside)
    with RawServer({}, otherwise=site) as server:
        words = ("crawl", server.url(), "-o", "c", "--rate", "0", "-vv", "--robots", "ignore")
        given = ("--auth", f"{server.url()} {DOMAIN}\\{USER}:env:SITE_PASSWORD")
        done = forks.archiver(*words, *given, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        tokens = [found[1].decode() for row in server.log if (found := re.search(rb"NTLM ([\w+/=]+)", row.request))]
    assert len(tokens) >= 2
    logged = done.stderr + done.stdout
    files = [path for path in (tmp_path / "c").rglob("*") if path.is_file() and path not in warcs(tmp_path / "c")]
    logged += "".join(path.read_bytes().decode("latin-1") for path in files)
    assert not [token for token in tokens if token in logged]
    query = "SELECT url, state, status, tries FROM urls ORDER BY url"
    before = [tuple(row) for row in rows(tmp_path / "c", query)]
    assert forks.archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert [tuple(row) for row in rows(tmp_path / "c", query)] == before
    assert forks.archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
