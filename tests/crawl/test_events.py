"""Events of real crawls: told at least once over kills, by one process, to receivers that this user has named."""

import gzip
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, ended, environment, running
from fixtures.flag import Flag, Gate
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, Route, Sendable, keep
from fixtures.site_with_login import PASSWORD, PLEASE, USER, MembersSite
from fixtures.sites import ok, page

COMMON = ("--rate", "0", "--robots", "ignore", "--probe", "off", "--min-free-disk", "0")
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
PROCESSES = [(), pytest.param(("--processes", "2"), marks=pytest.mark.skipif(sys.platform != "linux", reason="forks"))]
SITE: dict[str, Route] = {"/": ok(page("Home", ["/a", "/b"])), "/a": ok(page("A", [])), "/b": ok(page("B", []))}


def bodies(server: RawServer) -> list[dict[str, Any]]:
    """Return the events that arrived, in order."""
    return [json.loads(row.request.partition(b"\r\n\r\n")[2]) for row in server.log if row.method == "POST"]


@pytest.mark.parametrize("way", PROCESSES)
def test_a_kill_between_the_event_and_its_delivery_neither_loses_nor_invents_it(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    """The receiver has the request, and the kill comes before it answers."""
    arrived, late = Flag(), Gate()

    def hook(_row: Row) -> Sendable:
        first = not arrived.up
        arrived.raise_()
        return Answer((late, NO_CONTENT)) if first else keep(NO_CONTENT)

    site = {**SITE, "/b": Answer((late,))}
    with RawServer({**site, "/hook": hook}) as server, ExitStack() as stack:
        on = ("--on", "crawl-started,file-closed,crawl-ended", server.url("/hook"))
        process = stack.enter_context(running("crawl", server.url(), "-o", "c", *COMMON, *way, *on, cwd=tmp_path))
        arrived.wait()
        process.kill()
        ended(process)
        (first,) = bodies(server)
        assert first["event"] == "crawl-started"
        noted = "SELECT state, tries FROM events JOIN deliveries ON event = id WHERE kind = 'crawl-started'"
        assert rows(tmp_path / "c", noted) == [("waiting", 0)]
        late.open()
        server.routes = {**SITE, "/hook": keep(NO_CONTENT)}
        resumed = archiver("resume", "c", cwd=tmp_path)
        assert resumed.returncode == ExitCode.DONE, resumed.stderr
        told = bodies(server)
        assert told[1] == first
        later = told[2:]
        assert len({each["id"] for each in (first, *later)}) == 1 + len(later)
        assert [each["event"] for each in later if each["event"] != "file-closed"] == ["crawl-started", "crawl-ended"]
        assert later[-1]["event"] == "crawl-ended"
        files = sorted(each["data"]["name"] for each in later if each["event"] == "file-closed")
        assert files == sorted(path.name for path in (tmp_path / "c/archive").iterdir())
        assert rows(tmp_path / "c", "SELECT DISTINCT state FROM deliveries") == [("delivered",)]


@pytest.mark.parametrize("way", PROCESSES)
def test_the_end_of_a_crawl_says_what_the_report_says(tmp_path: Path, way: tuple[str, ...]) -> None:
    """The verdict with its reasons, and for what is missing the command that fetches or lists it."""
    site = {
        "/robots.txt": ok(b"User-agent: *\nDisallow: /private/\n", "text/plain"),
        "/": ok(page("All the pages", ["/private/a", "/gone", "/b"])),
        "/b": ok(page("B", [])),
    }
    with RawServer(site) as server:
        on = ("--robots", "obey", "--max-urls", "3", "--on", "crawl-ended", "cat > told")
        ran = archiver("crawl", server.url(), "-o", "c", *COMMON, *way, *on, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    data = json.loads((tmp_path / "told").read_text())["data"]
    assert (data["grade"], data["trouble"]) == ("attention", True)
    assert data["failures"] == {"robots": 1}
    assert {(each["topic"], each["command"]) for each in data["findings"]} == {
        ("pages", "archiver urls DIR --status 4xx,5xx --why"),
        ("robots", "archiver urls DIR --state excluded --why"),
    }
    report = json.loads(archiver("report", "c", "--json", cwd=tmp_path).stdout)
    named = [{**each, "command": each["command"].replace("DIR", "c")} for each in data["findings"]]
    assert named == report["verdict"]["findings"]
    assert {"grade": data["grade"], "text": data["headline"]} == report["headline"]


@pytest.mark.parametrize("way", PROCESSES)
def test_what_cannot_be_delivered_waits_and_neither_a_command_nor_a_secret_is_handed_on(
    tmp_path: Path, way: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "hook-secret")
    with RawServer({**SITE, "/my-secret-path": b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}) as server:
        on = (
            "--on",
            "all",
            server.url("/my-secret-path"),
            "--on",
            "crawl-ended",
            "cat > told; echo my-secret-word >&2",
        )
        secret = ("--on-secret", "env:HOOK", "--header", "Cookie: a=cookie-secret")
        ran = archiver("crawl", server.url(), "-o", "c", *COMMON, *way, *on, *secret, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert "archiver events c --send" in ran.stderr
        told = json.loads((tmp_path / "told").read_text())
        assert (told["event"], told["data"]["verdict"], told["data"]["archived"]) == ("crawl-ended", "done", 3)
        assert told["crawl"]["collection"] == "c"
        left = archiver("events", "c", "--undelivered", "--json", cwd=tmp_path)
        waiting = [json.loads(line) for line in left.stdout.splitlines()]
        assert {each["delivery"]["state"] for each in waiting} == {"waiting"}
        assert {each["delivery"]["receiver"] for each in waiting} == {server.url("").rstrip("/")}
        assert "secret" not in left.stdout
        assert "secret" not in archiver("events", "c", cwd=tmp_path).stdout.replace("my-secret-word", "")
        assert archiver("events", "c", "--send", cwd=tmp_path).returncode == ExitCode.FAULTS
        server.routes = {**SITE, "/my-secret-path": keep(NO_CONTENT)}
        sent = archiver("events", "c", "--send", cwd=tmp_path)
        assert (sent.returncode, sent.stdout) == (ExitCode.DONE, f"{len(waiting)} events delivered, 0 still waiting\n")
        tested = archiver("events", "c", "--test", cwd=tmp_path)
        assert tested.stdout.splitlines() == [
            f"{server.url('').rstrip('/')}: delivered, status 204",
            "cat: delivered, exit code 0: my-secret-word",
        ]
        assert bodies(server)[-1]["event"] == json.loads((tmp_path / "told").read_text())["event"] == "test"
        for row in server.log:
            if row.method == "POST":
                assert b"webhook-signature: v1," in row.request
                assert b"secret" not in row.request.partition(b"\r\n")[2]
    handed = [*(tmp_path / "c/archive").iterdir(), *(tmp_path / "c/reports").iterdir()]
    for path in handed:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        assert not any(word in content for word in (b"my-secret", b"hook-secret", b"env:HOOK")), path
    assert not any("my-secret-path" in str(row) for row in rows(tmp_path / "c", "SELECT * FROM events, deliveries"))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_what_two_crawlers_see_is_reported_once_while_they_work(tmp_path: Path) -> None:
    """The patterns of three hosts are held by the crawlers that have these hosts, and the supervisor reports them."""
    hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    gate, all_told, told = Gate(), Flag(), list[tuple[str, str]]()
    items = {f"/item/{number}": ok(page("Item", [f"/item/{number + 1}"])) for number in range(60)}

    def hook(row: Row) -> Sendable:
        event = json.loads(row.request.partition(b"\r\n\r\n")[2])
        told.append((event["id"], event["data"]["pattern"]))
        if len(told) == len(hosts):
            all_told.raise_()
        return keep(NO_CONTENT)

    late = Answer((gate, *ok(page("late", [])).pieces))  # type: ignore[misc]
    routes: dict[str, Route] = {"/": ok(page("Home", ["/item/0", "/late"])), "/late": late, **items}
    with RawServer({**routes, "/hook": hook}, hosts=hosts) as server:
        seeds = [server.url("/", host) for host in hosts]
        on = ("--on", "pattern-held", server.url("/hook"), "--trap-budget", "20", "--processes", "2")
        with running("crawl", *seeds, "-o", "c", *COMMON, *on, cwd=tmp_path) as process:
            all_told.wait()
            gate.open()
            code, err = ended(process)
    assert code == ExitCode.DONE, err
    assert {pattern for _, pattern in told} == {server.url("/item/N", host) for host in hosts}
    assert len(told) == len({name for name, _ in told}) == len(hosts)
    assert rows(tmp_path / "c", "SELECT DISTINCT state FROM deliveries") == [("delivered",)]


def test_a_receiver_with_a_certificate_of_our_own_authority_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer(SITE) as server, RawServer({"/hook": keep(NO_CONTENT)}, tls=True) as receiver:
        (tmp_path / "ca.pem").write_bytes(receiver.authority)
        on = ("--on", "crawl-ended", receiver.url("/hook"))
        ran = archiver("crawl", server.url(), "-o", "c", *COMMON, *on, cwd=tmp_path)
        assert "its certificate is invalid" in ran.stderr
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with running("events", "c", "--send", cwd=tmp_path) as process:  # a new interpreter reads the variable
            out, err = process.communicate()
        assert (process.returncode, out) == (ExitCode.DONE, "1 event delivered, 0 still waiting\n"), err
        assert [each["event"] for each in bodies(receiver)] == ["crawl-ended"]


def test_a_crawl_that_is_logged_out_for_good_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
    site = MembersSite(never_in=True)
    with RawServer(site.routes) as server:
        form = f"{server.url('/login')} user={USER} password=env:SITE_PASSWORD 'logged-out={PLEASE}' attempts=2"
        login = ("--login", f"{form} success=url:/$", "--insecure-secrets", "127.0.0.1")
        on = ("--on", "login-lost,crawl-ended", "cat >> told")
        ran = archiver("crawl", server.url(), "-o", "c", *COMMON, *login, *on, cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        lost, end = map(json.loads, (tmp_path / "told").read_text().splitlines())
        assert lost["event"] == "login-lost"
        assert lost["data"]["page"] == server.url("/login")
        assert "the session ended again after 2 logins" in lost["data"]["reason"]
        assert (end["event"], end["data"]["waiting"]) == ("crawl-ended", 1)
        assert PASSWORD not in (tmp_path / "told").read_text()


@pytest.mark.parametrize("on", [(), ("--on", "disk-low", "true")], ids=["no receiver", "nothing happened"])
def test_a_list_without_events_says_so(tmp_path: Path, forks: Forks, on: tuple[str, ...]) -> None:
    with RawServer(SITE) as server:
        ran = forks.archiver("crawl", server.url(), "-o", "c", *COMMON, *on, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    for option in ((), ("--json",), ("--undelivered",)):
        listed = forks.archiver("events", "c", *option, cwd=tmp_path)
        assert (listed.returncode, listed.stdout) == (ExitCode.DONE, "")
        assert len(listed.stderr.splitlines()) == 1
        assert (
            "no event is still to be delivered" if "--undelivered" in option else "c has no events"
        ) in listed.stderr
        assert ("--on" in listed.stderr) == (not on and "--undelivered" not in option)


def test_a_received_crawl_runs_and_sends_nothing(tmp_path: Path, forks: Forks) -> None:
    """It names commands and addresses, and its database has events for them."""
    with RawServer({**SITE, "/hook": keep(NO_CONTENT)}) as server:
        on = ("--on", "all", "touch ran; exit 75", "--on", "all", server.url("/missing"), "--log-to", "urls")
        assert forks.archiver("crawl", server.url(), "-o", "c", *COMMON, *on, cwd=tmp_path).returncode == ExitCode.DONE
        (tmp_path / "c/named-files.known").unlink()
        (tmp_path / "ran").unlink()
        size, seen = (tmp_path / "urls").stat().st_size, len(server.log)
        for command in (("resume", "c"), ("recrawl", "c"), ("events", "c", "--send"), ("events", "c", "--test")):
            refused = forks.archiver(*command, cwd=tmp_path)
            assert refused.returncode == ExitCode.USAGE, refused.stderr
            assert "on all touch ran; exit 75; on all" in refused.stderr
            assert f"log-to {tmp_path / 'urls'}" in refused.stderr
            assert "--trust-settings" in refused.stderr
            assert len(refused.stderr.splitlines()) == 1
        assert (len(server.log), (tmp_path / "urls").stat().st_size) == (seen, size)
        assert not (tmp_path / "ran").exists()
        mine = forks.archiver("resume", "c", "--on", "crawl-ended", "true", "--log-to", "urls", cwd=tmp_path)
        assert mine.returncode == ExitCode.DONE, mine.stderr
        assert not (tmp_path / "ran").exists()
        text = (tmp_path / "c/crawl.toml").read_text()
        (tmp_path / "c/crawl.toml").write_text(text.replace("crawl-ended true", "crawl-ended touch ran"))
        assert forks.archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.USAGE
        assert forks.archiver("resume", "c", "--trust-settings", cwd=tmp_path).returncode == ExitCode.DONE
        assert (tmp_path / "ran").exists()
        assert forks.archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE, "once trusted, it is named"


SEEN = """
import sys
from archiver.cli.entry import run
run(sys.argv[1:])
print(*sorted(sys.modules))
"""


def test_a_crawl_without_receivers_loads_no_module_and_writes_no_row(tmp_path: Path) -> None:
    """Only the two files that look whether there are any."""
    with RawServer(SITE) as server:
        command = [sys.executable, "-c", SEEN, "crawl", server.url(), "-o", "c", *COMMON]
        ran = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    ours = {name.removeprefix("archiver.") for name in ran.stdout.split() if name.startswith("archiver.")}
    assert "crawl.engine" in ours
    known = ("frontier.events", "crawl.events.", "fetch.webhook", "collection.url_log")
    assert {name for name in ours if name.startswith(known)} == set()
    assert rows(tmp_path / "c", "SELECT count(*) FROM events") == [(0,)]
    assert not (tmp_path / "c/named-files.known").exists()


@pytest.mark.parametrize("way", PROCESSES)
def test_a_crawl_logs_every_url_as_json_beside_crawl_log(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(SITE) as server:
        log = ("--log-format", "json", "--log-to", "stderr", "-qq")
        ran = archiver("crawl", server.url(), "-o", "c", *COMMON, *way, *log, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE
        closed, other = os.pipe()
        os.close(closed)
        command = [sys.executable, "-m", "archiver", "crawl", server.url(), "-o", "d", *COMMON, *way, *log]
        silent = subprocess.run(command, cwd=tmp_path, env=environment(), stderr=other, check=False)
        os.close(other)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    plain = [line.split() for line in (tmp_path / "c/logs/crawl.log").read_text().splitlines()]
    assert sorted((each["url"], each["status"], each["digest"]) for each in lines) == sorted(
        (words[3], int(words[1]), words[9]) for words in plain
    )
    assert len(lines) == 3
    assert silent.returncode == ExitCode.DONE
    assert len((tmp_path / "d/logs/crawl.log").read_text().splitlines()) == 3
