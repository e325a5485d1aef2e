"""Logins in whole crawls, judged by what the site saw and by what is archived."""

import gzip
import signal
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.config.logins import LOGIN, Login
from archiver.crawl.stats import CrawlEnding
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.log import Row
from fixtures.rawserver import RawServer, Route, Sendable
from fixtures.site_with_login import MEMBERS, PASSWORD, PLEASE, USER, MembersSite
from fixtures.sites import ok, page


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", PASSWORD)


def login(server: RawServer, *words: str) -> Login:
    text = " ".join((server.url("/login"), f"user={USER}", "password=env:SITE_PASSWORD", *words))
    found: Login = LOGIN.parse(text)
    return found


def run(directory: Path, server: RawServer, *words: str, **values: Any) -> CrawlEnding:
    signs = words or (f"'logged-out={PLEASE}|/login'",)
    return crawl(directory, server.url(), login=(login(server, *signs),), **{"host_concurrency": 1, **values})


def archived(directory: Path) -> dict[str, list[bytes]]:
    """The bodies of all responses in the archive, by path."""
    found: dict[str, list[bytes]] = {}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "response":
                    target = "/" + record.rec_headers["WARC-Target-URI"].split("/", 3)[3]
                    found.setdefault(target, []).append(record.content_stream().read())
    return found


def check_members(directory: Path) -> None:
    """All pages for members are archived, and no page that asks for a login is."""
    bodies = archived(directory)
    assert set(MEMBERS) | {"/"} <= set(bodies)
    for target in ("/", *MEMBERS):
        assert len(bodies[target]) == 1
        assert f"Secret of {target}<".encode() in bodies[target][0]
    assert not any(PLEASE.encode() in body for found in bodies.values() for body in found)


def test_a_crawl_logs_in_first_and_takes_what_members_see(tmp_path: Path) -> None:
    site = MembersSite()
    with RawServer(site.routes) as server:
        assert run(tmp_path, server).code is ExitCode.DONE
        targets = [(row.method, row.target) for row in server.log]
    assert targets[:4] == [("GET", "/robots.txt"), ("GET", "/login"), ("POST", "/login"), ("GET", "/")]
    assert site.answers == Counter({"member": 2 + len(MEMBERS), "form": 1, "posted": 1, "in": 1})
    check_members(tmp_path)
    assert rows(tmp_path, "SELECT rule FROM refusals") == [("login: the link logs out (--include takes it)",)]
    assert rows(tmp_path, "SELECT name, private FROM cookies ORDER BY name") == [("csrf", 1), ("sid", 1)]


@pytest.mark.parametrize("by_redirect", [False, True], ids=["by text", "by redirect"])
@pytest.mark.parametrize("together", [1, 4])
def test_when_the_session_ends_the_crawl_logs_in_again(tmp_path: Path, *, by_redirect: bool, together: int) -> None:
    site = MembersSite(pages_in_session=6, by_redirect=by_redirect)
    with RawServer(site.routes) as server:
        assert run(tmp_path, server, f"'logged-out={PLEASE}|/login'", "attempts=5", host_concurrency=together).code is (
            ExitCode.DONE
        )
    check_members(tmp_path)
    assert site.answers["in"] == site.answers["posted"] == 3
    assert site.answers["refused"] <= 2 * together
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


def test_after_the_last_attempt_the_crawl_needs_a_person(tmp_path: Path) -> None:
    site = MembersSite(never_in=True)
    with RawServer(site.routes) as server:
        ending = run(tmp_path, server, f"'logged-out={PLEASE}'", "attempts=2", "success=url:/$")
        assert ending.code is ExitCode.LIMIT
        assert "needs a person (the session ended again after 2 logins)" in ending.reason
        assert site.answers["posted"] == 2
        assert rows(tmp_path, "SELECT url, state FROM urls WHERE priority >= 0") == [(server.url(), "waiting")]
        status = archiver("status", str(tmp_path), cwd=tmp_path).stdout
        assert "needs a person" in status
        assert "needs a login" in status
        site.never_in = False
        assert run(tmp_path, server, resume=True).code is ExitCode.DONE
    check_members(tmp_path)


def test_a_wrong_password_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "wrong")
    site = MembersSite()
    with RawServer(site.routes) as server:
        ending = run(tmp_path, server)
        assert (ending.code, site.answers["posted"]) == (ExitCode.LIMIT, 1)
        assert "asks for a password again" in ending.reason
        assert site.answers["member"] == 0
        monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
        assert run(tmp_path, server, resume=True).code is ExitCode.DONE
    check_members(tmp_path)


def test_a_resumed_crawl_uses_its_session_while_it_works(tmp_path: Path) -> None:
    site = MembersSite()
    with RawServer(site.routes) as server:
        assert run(tmp_path, server, max_urls=3).code is ExitCode.LIMIT
        assert run(tmp_path, server, resume=True, max_urls=6).code is ExitCode.LIMIT
        assert site.answers["posted"] == 1
        site.sessions.clear()
        assert run(tmp_path, server, resume=True).code is ExitCode.DONE
        assert site.answers["posted"] == 2
    check_members(tmp_path)


def test_robots_txt_may_forbid_the_login(tmp_path: Path) -> None:
    site = MembersSite()
    rules: Route = ok("User-agent: *\nDisallow: /login\n", "text/plain")
    with RawServer({**site.routes, "/robots.txt": rules}) as server:
        ending = run(tmp_path, server)
        assert ending.code is ExitCode.LIMIT
        assert "robots.txt forbids it" in ending.reason
        assert server.log.targets() == ["/robots.txt"]


@pytest.mark.parametrize(
    ("sign", "reason"),
    [
        ("success=cookie:sid", ""),
        ("success=cookie:other", "set no cookie other"),
        ("'success=Secret of /<'", ""),
        ("'success=Welcome'", "does not have 'Welcome'"),
        ("success=url:/$", ""),
        ("success=url:/home", "it led to"),
    ],
)
def test_signs_of_success(tmp_path: Path, sign: str, reason: str) -> None:
    with RawServer(MembersSite().routes) as server:
        ending = run(tmp_path, server, sign)
    assert ending.code is (ExitCode.LIMIT if reason else ExitCode.DONE)
    assert reason in ending.reason


def test_a_password_for_a_field_that_the_form_lacks_is_not_sent(tmp_path: Path) -> None:
    form = "<form method=post><input name=user><input type=password name=pw></form>"
    with RawServer({"/login": ok(form), "/": ok("front")}) as server:
        ending = run(tmp_path, server, "attempts=1")
        assert [row.target for row in server.log].count("/login") == 1
    assert ending.code is ExitCode.LIMIT
    assert "its form has no field password, but user, pw" in ending.reason


def test_a_script_may_add_the_field_of_the_password(tmp_path: Path) -> None:
    form = "<form method=post><input name=user><input type=password name=pw></form>"
    with RawServer({"/login": ok(form + "welcome"), "/": ok("front")}) as server:
        assert run(tmp_path, server, "success=welcome").code is ExitCode.DONE


def test_the_form_may_be_on_another_host_of_the_site(tmp_path: Path) -> None:
    """No URL of that host is queued, so it is leased for the login alone."""
    site = MembersSite()
    with RawServer(site.routes) as server:
        seed = server.url("/", "127.0.0.1")
        with RawServer({"/": ok(page("Front"))}) as front:
            one = login(server, "success=cookie:sid")
            assert crawl(tmp_path, front.url(), login=(one,), allow_private=("127.0.0.0/8",)).code is ExitCode.DONE
            assert front.log.targets() == ["/robots.txt", "/"]
        assert [row.target for row in server.log] == ["/robots.txt", "/login", "/login", "/"]
    assert seed


def test_the_password_is_nowhere_but_in_the_private_record(tmp_path: Path) -> None:
    with RawServer(MembersSite().routes) as server:
        one = login(server, f"'logged-out={PLEASE}'")
        done = archiver("crawl", server.url(), "-o", "c", "--rate", "0", "--login", str(one), cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
    packed = archiver("pack", "c", cwd=tmp_path)
    assert packed.returncode == ExitCode.DONE, packed.stderr
    forms = [word.encode() for word in (PASSWORD, "hunter2-the-secret")]
    assert not any(word.decode() in done.stderr + done.stdout + packed.stderr for word in forms)
    holding = []
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            plain = gzip.decompress(data) if path.suffix == ".gz" else data
            holding += [path] if any(word in plain for word in forms) else []
    (private,) = holding
    assert private.parent == tmp_path / "c/private"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    with private.open("rb") as file:
        records = [
            (
                each.rec_type,
                each.http_headers.get_statuscode()
                if each.rec_type == "response"
                else each.http_headers and each.http_headers.protocol,
            )
            for each in ArchiveIterator(file)
        ]
    kinds = [kind for kind, _ in records]
    assert kinds == ["warcinfo", *["response", "request", "metadata"] * 3]


def test_a_login_need_not_be_stored(tmp_path: Path) -> None:
    with RawServer(MembersSite().routes) as server:
        assert run(tmp_path, server, "store-login=no", f"'logged-out={PLEASE}'").code is ExitCode.DONE
    assert not (tmp_path / "private").exists()


def test_a_missing_password_is_said_before_anything_happens(tmp_path: Path) -> None:
    words = "http://127.0.0.1:9/login user=me password=env:NOT_SET_AT_ALL"
    done = archiver("crawl", "http://127.0.0.1:9/", "-o", "c", "--login", words, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "NOT_SET_AT_ALL is not set" in done.stderr


def test_a_killed_crawl_goes_on_with_its_session(tmp_path: Path) -> None:
    site = MembersSite()
    killed: list[subprocess.Popen[bytes]] = []

    def killing(row: Row) -> Sendable:
        if killed[0].poll() is None:
            killed[0].kill()
            killed[0].wait()
        answer: Sendable = site.routes["/"](row)  # type: ignore[operator]
        return answer

    with RawServer({**site.routes, MEMBERS[7]: killing}) as server:
        words = ["crawl", server.url(), "-o", "c", "--rate", "0", "--host-concurrency", "1"]
        words += ["--login", str(login(server, f"'logged-out={PLEASE}'"))]
        killed.append(subprocess.Popen([sys.executable, "-m", "archiver", *words], cwd=tmp_path))
        assert killed[0].wait() == -signal.SIGKILL
        done = archiver("resume", "c", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
    assert site.answers["posted"] == 1
    check_members(tmp_path / "c")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (*warcs(tmp_path / "c"), tmp_path / "c/crawl.db")}
    assert modes == {0o600}
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
