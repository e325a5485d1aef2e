"""A recording is a collection like any other, and a proxy that only its user can use."""

import asyncio
import gzip
import json
import os
import ssl
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from archiver.crawl.record.authority import MOST_CONTEXTS, Authority
from archiver.errors import ConfigError
from archiver.model import ExitCode
from fixtures.archives import states
from fixtures.browser import opened
from fixtures.command import ROOT, archiver, as_anybody, ended, environment, running
from fixtures.devtools import command, needs_chromium
from fixtures.mounts import mounted
from fixtures.proxies import needs_tinyproxy, tinyproxy
from fixtures.pywb_server import archiver_replay
from fixtures.rawserver import RawServer, Route
from fixtures.recording import (
    RecordingProxy,
    authority_file,
    body_of,
    browser_flags,
    exchanges,
    recording,
    rest_of,
)
from fixtures.sites import PIXEL, ok, page

HOW_TO = ROOT / "docs" / "how-to" / "record-with-a-browser.md"
SCRIPT = """<!doctype html><title>Start</title><img src="/picture.gif"><p id="said">nothing</p><script>
fetch("/api", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({q: 1})})
    .then(answer => answer.text()).then(text => { document.getElementById("said").textContent = text })
</script>"""
ROUTES: dict[str, Route] = {
    "/": ok(SCRIPT),
    "/picture.gif": ok(PIXEL, "image/gif"),
    "/api": ok("posted and answered", "text/plain"),
    "/large": ok(bytes(3_000_000), "application/octet-stream"),
}


@pytest.fixture(name="server")
def a_server() -> Iterator[RawServer]:
    """Serves the site."""
    with RawServer(ROUTES) as server:
        yield server


def post(proxy: RecordingProxy, url: str, body: bytes) -> bytes:
    """Return the answer to a POST of JSON."""
    host = url.partition("://")[2].partition("/")[0].encode()
    fields = b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n" % len(body)
    return proxy.ask(b"POST %b HTTP/1.1\r\nHost: %b\r\n%b\r\n%b" % (url.encode(), host, fields, body))


@pytest.fixture(name="recorded")
def a_recording(server: RawServer, tmp_path: Path) -> Path:
    """A recording of a page, and of what its script sends."""
    with recording(tmp_path / "c") as proxy:
        for target in ("/", "/picture.gif"):
            proxy.get(server.url(target))
        post(proxy, server.url("/api"), b'{"q":1}')
        proxy.end()
    return tmp_path / "c"


@pytest.mark.replay
def test_pywb_replays_a_page_and_what_its_script_posts(server: RawServer, recorded: Path) -> None:
    with archiver_replay(recorded) as wayback:
        assert wayback.get(server.url("/")).body == SCRIPT.encode()
        assert wayback.get(server.url("/picture.gif")).body == PIXEL
        address = wayback.address(server.url("/api"), "mp_")
        sent = ("curl", "-s", "-H", "Content-Type: application/json", "-d", '{"q":1}', address)
        assert subprocess.run(sent, capture_output=True, check=True).stdout == b"posted and answered"


def test_the_commands_that_look_know_a_recording(server: RawServer, recorded: Path) -> None:
    where = recorded.parent
    for words, shown in (
        (("status", "c"), "3 archived"),
        (("report", "c"), "1 page: 1 ok"),
        (("ls", "c"), server.url("/picture.gif")),
        (("urls", "c"), server.url("/api")),
        (("get", "c", server.url("/")), "<title>Start</title>"),
        (("explain", "c", server.url("/")), "archived"),
        (("verify", "c"), "0 faults, 0 warnings"),
        (("index", "c"), "lines in"),
        (("rebuild", "c"), "archiver record -o c"),
        (("verify", "c"), "0 faults, 0 warnings"),
        (("pack", "c", "-o", "c.wacz"), "share the package only with"),
        (("status", "c"), "3 archived"),
    ):
        ran = archiver(*words, cwd=where)
        assert (ran.returncode, shown in ran.stdout + ran.stderr) == (0, True), (words, ran)
        assert "archiver resume" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    "words", [("resume", "c"), ("recrawl", "c"), ("retry", "c"), ("add", "c", "http://x.test/"), ("pause", "c")]
)
def test_what_needs_a_queue_says_what_to_do_instead(recorded: Path, words: tuple[str, ...]) -> None:
    ran = archiver(*words, cwd=recorded.parent)
    assert ran.returncode == ExitCode.USAGE
    assert "c holds a recording, which has no queue; to record more: archiver record -o c" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_crawl_into_the_same_collection_sets_the_recording_aside(server: RawServer, recorded: Path) -> None:
    ran = archiver(
        *("crawl", "--since", "c", server.url("/"), "--rate", "0", "--probe", "off", "--min-free-disk", "0"),
        cwd=recorded.parent,
    )
    assert ran.returncode == 0, ran.stderr
    assert "recording = false" in (recorded / "crawl.toml").read_text()
    assert archiver("verify", "c", cwd=recorded.parent).returncode == 0
    refused = archiver("record", "-o", "c", cwd=recorded.parent)
    assert refused.returncode == ExitCode.USAGE
    assert "c holds a crawl, and a recording needs a collection of its own" in refused.stderr


def test_a_second_process_does_not_record_into_the_same_collection(tmp_path: Path) -> None:
    with recording(tmp_path / "c"):
        ran = archiver("record", "-o", "c", "--port", "0", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert "c is in use by" in ran.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "-o is missing"),
        (("-o", "c", "--listen", "0.0.0.0"), "--listen 0.0.0.0: other machines can reach it, so name who may record"),
        (("-o", "c", "--listen", "example.org"), "--listen example.org: write an IP address of this machine"),
        (("-o", "c", "--users", "none"), "--users none: there is no such file"),
        (("-o", "c", "--ca", "c/ca"), "--ca c/ca: it is inside the collection"),
        (("-o", "c", "--port", "{taken}"), "Address already in use; choose another with --port, or 0 for"),
        (("-o", "c", "--max-request-size", "much"), "--max-request-size: "),
        (("-o", "file"), "file is not a directory"),
    ],
)
def test_a_wrong_option_gets_a_line_and_nothing_is_written(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    (tmp_path / "file").touch()
    with RawServer({}) as taken:
        ran = archiver("record", *(word.format(taken=taken.port) for word in words), cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (ExitCode.USAGE, 1), ran.stderr
    assert reason in ran.stderr
    assert not (tmp_path / "c").exists()


def test_the_key_stays_with_its_user(tmp_path: Path) -> None:
    folder = tmp_path / "ca"
    first, second = Authority(folder), Authority(folder)
    assert first.pem == second.pem == (folder / "ca.pem").read_text()
    assert stat.S_IMODE((folder / "authority.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "PRIVATE" not in (folder / "ca.pem").read_text()
    (folder / "authority.pem").chmod(0o644)
    with pytest.raises(ConfigError, match="others may read this key"):
        Authority(folder)
    (folder / "authority.pem").write_text("no key")
    (folder / "authority.pem").chmod(0o600)
    with pytest.raises(ConfigError, match="no key with its certificate"):
        Authority(folder)


@pytest.mark.parametrize("host", ["example.org", "xn--bcher-kva.example", "a_b.example", "127.0.0.1", "[::1]"])
def test_the_certificate_of_a_host_is_for_that_host_alone(tmp_path: Path, host: str) -> None:
    authority = Authority(tmp_path / "ca")
    _shake_hands(authority, host, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake_hands(authority, host, "other.example")


def _shake_hands(authority: Authority, host: str, expected: str) -> None:
    trusting = ssl.create_default_context(cadata=authority.pem)
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    one, other, back, forth = (ssl.MemoryBIO() for _ in range(4))
    server = authority.context(host).wrap_bio(one, other, server_side=True)
    client = trusting.wrap_bio(back, forth, server_hostname=expected.strip("[]"))
    for _ in range(4):
        for side, sent, received in ((client, forth, one), (server, other, back)):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
            received.write(sent.read())
    assert client.version() == "TLSv1.3"


def test_few_certificates_are_kept(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    kept = authority.context("0.example")
    assert authority.context("0.example") is kept
    for number in range(MOST_CONTEXTS):
        authority.context(f"{number + 1}.example")
    assert authority.context("0.example") is not kept


def test_the_certificate_is_printed(tmp_path: Path) -> None:
    ran = archiver("record", "--print-ca", cwd=tmp_path)
    assert ran.stdout == authority_file().read_text()
    assert f"the certificate is also in {authority_file()}" in ran.stderr


def test_an_authority_that_cannot_be_written_gets_a_line(tmp_path: Path) -> None:
    (tmp_path / "ca").mkdir(mode=0o500)
    with running("record", "-o", "c", "--ca", "ca", cwd=tmp_path, before=as_anybody()) as process:
        code, said = ended(process)
    assert (code, said.count("\n")) == (ExitCode.STORAGE, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "size", "target"), [("archive", "64k", "/random"), ("spool", "100k", "/random"), ("logs", "4k", "/")]
)
def test_a_full_disk_is_seen_by_the_client(tmp_path: Path, folder: str, size: str, target: str) -> None:
    random = {"/random": ok(os.urandom(1_000_000), "application/octet-stream"), "/": ok(page("Start"))}
    directory = tmp_path / "c"
    with RawServer(random) as server, mounted(directory / folder, size) as disk, recording(directory) as proxy:
        seen, whole = b"", 0
        for number in range(200):
            seen = proxy.get(server.url(target), b"X-N: %d\r\n" % number)
            whole = whole or (1_000_000 if target == "/random" else len(body_of(seen)))
            if not seen.startswith(b"HTTP/1.1 200 ") or len(body_of(seen)) < whole:
                break
        if seen.startswith(b"HTTP/1.1 503 "):
            assert b"is not recorded: " in seen
            assert b"is full: " in seen
        else:
            assert len(body_of(seen)) < whole  # the answer had begun: it breaks off
        if folder != "spool":  # which holds only what is under way
            code, err = ended(proxy.process)
            assert code == ExitCode.STORAGE, err
            assert "is full: " in err
        else:
            assert proxy.get(server.url("/")).startswith(b"HTTP/1.1 200 ")
            proxy.end()
        disk.resize("20m")
        with recording(directory) as again:
            assert again.get(server.url("/")).startswith(b"HTTP/1.1 200 ")
            again.end()
        assert archiver("verify", "c", cwd=tmp_path).returncode == 0


@pytest.mark.browser
@needs_chromium
def test_a_browser_is_recorded_and_replayed(tmp_path: Path) -> None:
    with RawServer(ROUTES, tls=True) as server:
        (tmp_path / "server.pem").write_bytes(server.authority)
        with recording(tmp_path / "c", "--ca-file", "server.pem") as proxy:
            shown = _browse(tmp_path, server.url("/"), proxy)
            proxy.end()
        assert "posted and answered" in shown
        asked = {(row.method, row.target) for row in server.log}
    stored = {each.request.split(b" HTTP/")[0].decode() for each in exchanges(tmp_path / "c")}
    assert {("GET", "/"), ("GET", "/picture.gif"), ("POST", "/api")} <= asked
    assert {f"{method} {target}" for method, target in asked} <= stored
    assert archiver("verify", "c", cwd=tmp_path).returncode == 0
    assert asyncio.run(_replayed(tmp_path, server.url("/"))) == "posted and answered"


async def _replayed(folder: Path, url: str) -> str:
    """Return what the script of the page at *url* has written into it, in a replay."""
    with archiver_replay(folder / "c") as wayback:
        async with opened(folder / "replay") as page:
            await page.go(wayback.address(url))
            frame = await page.shown(f"mp_/{url}")
            return str(await page.within(frame, "document.getElementById('said').textContent"))


def _browse(folder: Path, url: str, proxy: RecordingProxy) -> str:
    """Return the page at *url* as Chromium shows it through *proxy*, whose authority it trusts."""
    name = command()
    assert name is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    flags += browser_flags(proxy)
    words = [name, *flags, "--virtual-time-budget=10000", "--dump-dom", url]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, check=True).stdout


def test_a_client_that_leaves_in_a_handshake_does_no_harm(server: RawServer, tmp_path: Path) -> None:
    with recording(tmp_path / "c") as proxy:
        for begun in (b"\x16", b"\x16\x03\x01\x00\x05hello", b""):
            with closing(proxy.tunnel("127.0.0.1:443")) as client:
                client.sendall(begun)
                client.shutdown(1)
                rest_of(client)
        assert proxy.get(server.url("/picture.gif")).endswith(PIXEL)
        proxy.end()
    assert set(states(tmp_path / "c")) == {server.url("/picture.gif")}


def test_an_early_signal_ends_it_in_order(tmp_path: Path) -> None:
    with running("record", "-o", "c", "--port", "0", "--min-free-disk", "0", cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(2)
        assert ended(process)[0] == ExitCode.DONE


def test_the_client_of_the_how_to_page_is_recorded(tmp_path: Path) -> None:
    line = next(line for line in HOW_TO.read_text().splitlines() if line.startswith("curl "))
    (tmp_path / "ca.pem").write_text(archiver("record", "--print-ca", cwd=tmp_path).stdout)
    with RawServer(ROUTES, tls=True) as site:
        (tmp_path / "server.pem").write_bytes(site.authority)
        with recording(tmp_path / "visit", "--ca-file", "server.pem") as proxy:
            words = line.replace("http://127.0.0.1:8088", proxy.address).replace("https://example.org/", site.url("/"))
            asked = subprocess.run(words.split(), cwd=tmp_path, capture_output=True, check=True)
            assert asked.stdout == SCRIPT.encode()
            proxy.end()
    assert [each.url for each in exchanges(tmp_path / "visit")] == [site.url("/")]


def test_what_a_form_sends_is_in_the_records_and_the_index_alone(server: RawServer, tmp_path: Path) -> None:
    with recording(tmp_path / "c") as proxy:
        for word in (b"first", b"hunter2"):
            assert post(proxy, server.url("/api?a"), b'{"password":"%b"}' % word).startswith(b"HTTP/1.1 404 ")
        proxy.kill()
    with recording(tmp_path / "c") as proxy:
        proxy.end()
    assert states(tmp_path / "c") == {server.url("/api?a&__wb_method=POST"): "archived"}
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "c" / "indexes").stat().st_mode) == 0o700
    found = {path for path in (tmp_path / "c").rglob("*") if path.is_file() and b"hunter2" in content(path)}
    assert {path.parent.name for path in found} == {"archive", "indexes"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.parent.name == "archive"} == {0o600}


def content(path: Path) -> bytes:
    """Return what is in the file at *path*."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "OPTIONS"])
def test_no_replay_shows_what_no_page_shows(server: RawServer, tmp_path: Path, method: str) -> None:
    url, host = server.url("/picture.gif"), f"127.0.0.1:{server.port}"
    with recording(tmp_path / "c") as proxy:
        answer = proxy.ask(f"{method} {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert answer.endswith(PIXEL)
        proxy.end()
    for _ in range(2):
        assert url not in (tmp_path / "c" / "indexes" / "index.cdxj").read_text()
        assert "0 faults, 0 warnings" in archiver("verify", "c", cwd=tmp_path).stdout
        archiver("index", "c", cwd=tmp_path)


@needs_tinyproxy
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_recording_may_go_through_another_proxy(tmp_path: Path, *, tls: bool) -> None:
    with (
        tinyproxy(tmp_path, "127.0.0.77") as port,
        RawServer(ROUTES, tls=tls) as server,
        recording(tmp_path / "c", "--proxy", f"http://127.0.0.1:{port}", "--insecure-secrets", "127.0.0.1") as proxy,
    ):
        ran = subprocess.run(
            ["curl", "-s", "-x", proxy.address, "--cacert", str(authority_file()), server.url("/large")],
            capture_output=True,
            check=True,
        )
        assert ran.stdout == bytes(3_000_000)
        assert {row.client for row in server.log} == {"127.0.0.77"}
        proxy.end()
    assert f"remark: proxy:http://127.0.0.1:{port}" in exchanges(tmp_path / "c")[0].notes


def test_without_the_extra_there_is_one_line(tmp_path: Path) -> None:
    call = "import sys; sys.modules['cryptography'] = None\nfrom archiver.cli import entry; entry.main()"
    words = [sys.executable, "-c", call, "record", "-o", "c"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False)
    assert ran.returncode == ExitCode.USAGE
    assert ran.stderr == (
        "archiver: archiver record reads TLS with the package cryptography: pip install 'warchiver[record]'\n"
    )


def test_pages_are_told_from_what_belongs_to_them(tmp_path: Path) -> None:
    asked = (
        ("/", b""),  # HTML, and the client does not say what it is for
        ("/picture.gif", b""),
        ("/?frame", b"Sec-Fetch-Dest: iframe\r\n"),
        ("/?shown", b"Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"),
    )
    with RawServer({**ROUTES, "/?frame": ROUTES["/"], "/?shown": ROUTES["/picture.gif"]}) as site:
        with recording(tmp_path / "c") as proxy:
            for target, fields in asked:
                proxy.get(site.url(target), fields)
            proxy.end()
        assert archiver("pack", "c", "-o", "c.wacz", cwd=tmp_path).returncode == 0
        with zipfile.ZipFile(tmp_path / "c.wacz") as package:
            rows = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()[1:]]
        assert [row["url"] for row in rows] == [site.url("/"), site.url("/?shown")]
