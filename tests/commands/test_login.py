"""`archiver login` with real Chromium: a page logs in as a person would, and the crawl takes its session over."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import MozillaCookieJar
from pathlib import Path

import pytest

from archiver.browser.chromium import why_ended
from archiver.model import ExitCode
from fixtures import devtools
from fixtures.command import COMMAND, archiver, environment
from fixtures.devtools import needs_chromium
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, keep
from fixtures.site_with_login import MEMBERS, PASSWORD, PLEASE, USER, MembersSite
from fixtures.sites import message

HEADLESS = f"{devtools.command()} --headless --no-sandbox --disable-gpu --disable-quic"
PERSON = (  # fills in the form of the login page and sends it
    "<script>fetch('/login').then(answer => answer.text()).then(text => {"
    "const form = document.importNode(new DOMParser().parseFromString(text, 'text/html').forms[1], true);"
    f"document.body.append(form); form.elements.user.value = {USER!r};"
    f"form.elements.password.value = {PASSWORD!r}; form.elements.go.click() }})</script>"
)
WHILE_LOGGED_IN = f"'logged-out={PLEASE}|/login'"


def enters(_row: Row) -> Answer:
    return keep(message("200 OK", PERSON.encode(), content_type="text/html; charset=utf-8"))


@pytest.fixture
def profiles() -> Iterator[Path]:
    """A folder for temporary files; Chromium has sockets there, whose paths must be short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@contextmanager
def window(*arguments: str, cwd: Path, profiles: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start `archiver login` with a terminal to type into."""
    with subprocess.Popen(
        [*COMMAND, "login", *arguments, "--browser", HEADLESS],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), "TMPDIR": str(profiles)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def browsers(profiles: Path) -> list[int]:
    """Return the processes whose command line names a profile in *profiles*."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"--user-data-dir={profiles}".encode() in b"\0".join(words) and not any(
            b"--type=" in word for word in words
        ):
            found.append(int(path.parent.name))
    return found


def wait_until_entered(site: MembersSite, process: "subprocess.Popen[str]") -> None:
    """Wait until the browser has seen a page for members."""
    while not site.entered.wait(1):
        assert process.poll() is None, process.communicate()


def check_nothing_left(profiles: Path) -> None:
    assert browsers(profiles) == []
    assert list(profiles.iterdir()) == []


@needs_chromium
def test_a_crawl_that_needs_a_person_goes_on_after_a_login_by_hand(
    tmp_path: Path, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "wrong")
    site = MembersSite()
    with RawServer({**site.routes, "/enter": enters}) as server:
        words = f"{server.url('/login')} user={USER} password=env:SITE_PASSWORD {WHILE_LOGGED_IN}"
        stopped = archiver("crawl", server.url(), "-o", "c", "--rate", "0", "--login", words, cwd=tmp_path)
        assert stopped.returncode == ExitCode.LIMIT, stopped.stderr
        assert "archiver login c" in stopped.stderr
        posted = site.answers["posted"]
        with window("c", server.url("/enter"), cwd=tmp_path, profiles=profiles) as process:
            wait_until_entered(site, process)
            out, err = process.communicate("\n", timeout=120)
        assert process.returncode == ExitCode.DONE, err
        assert re.search(r"^\d cookies? taken over; to continue: archiver resume c$", out.strip())
        check_nothing_left(profiles)
        assert site.answers["posted"] == posted + 1
        done = archiver("resume", "c", cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
    assert site.answers["posted"] == posted + 1, "the crawl has used the session of the browser"
    listed = archiver("urls", "c", "--state", "archived", cwd=tmp_path).stdout
    assert all(member in listed for member in MEMBERS)
    assert {(tmp_path / "c/crawl.db").stat().st_mode & 0o777} == {0o600}


@needs_chromium
def test_a_closed_window_ends_it_too_and_exports_for_a_new_crawl(tmp_path: Path, profiles: Path) -> None:
    site = MembersSite()
    with RawServer({**site.routes, "/enter": enters}) as server:
        with window(server.url("/enter"), "--export", "c.txt", cwd=tmp_path, profiles=profiles) as process:
            wait_until_entered(site, process)
            assert process.stderr is not None
            assert any("has 2 cookies of 127.0.0.1" in line for line in process.stderr)
            (browser,) = browsers(profiles)
            os.kill(browser, signal.SIGTERM)
            _, err = process.communicate(timeout=120)
        assert process.returncode == ExitCode.DONE, err
        check_nothing_left(profiles)
        jar = MozillaCookieJar(str(tmp_path / "c.txt"))
        jar.load(ignore_discard=True, ignore_expires=True)
        assert "sid" in {cookie.name for cookie in jar}
        assert (tmp_path / "c.txt").stat().st_mode & 0o777 == 0o600
        loaded = ("--load-cookies", "c.txt")
        done = archiver("crawl", server.url(), "-o", "c", "--rate", "0", *loaded, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
    assert site.answers["posted"] == 1
    assert site.answers["member"] >= len(MEMBERS)


@needs_chromium
def test_interrupted_it_takes_nothing_and_leaves_nothing(tmp_path: Path, profiles: Path) -> None:
    site = MembersSite()
    with (
        RawServer({**site.routes, "/enter": enters}) as server,
        window(server.url("/enter"), "--export", "c.txt", cwd=tmp_path, profiles=profiles) as process,
    ):
        wait_until_entered(site, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == ExitCode.STOPPED, err
    assert not (tmp_path / "c.txt").exists()
    check_nothing_left(profiles)


LOG = "[21:42:1126/134911.762601:{}] {}"
BUS = LOG.format("ERROR:dbus/bus.cc:405", "Failed to connect to the bus: no such file")


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("", "it printed nothing that explains it"),
        ("no screen\n\n", "no screen"),
        (LOG.format("ERROR:ozone_platform_x11.cc(244)", "Missing X server or $DISPLAY"), "it finds no screen"),
        (LOG.format("ERROR:ui/aura/env.cc:253", "The platform failed to initialize.  Exiting."), "it finds no screen"),
        (LOG.format("ERROR:zygote.cc(1)", "Running as root without --no-sandbox is not supported."), "as another user"),
        (LOG.format("FATAL:a/b.cc:1", "No usable sandbox! Update your kernel"), "does not allow its sandbox"),
        (LOG.format("FATAL:a/b.cc:1", "The disk is full"), "The disk is full"),
        ("[0100/000000.559807:FATAL:b.cc(2)] The disk is full", "The disk is full"),
        ("[WARNING:b.cc(2)] The disk is full", "The disk is full"),
        ("The disk is full\n" + BUS, "The disk is full"),
        (BUS, "it printed nothing that explains it"),
    ],
)
@pytest.mark.parametrize("after", ["", BUS])
def test_the_reason_of_a_browser_is_in_plain_words(printed: str, why: str, after: str) -> None:
    reason = why_ended(f"{printed}\n{after}\n")
    assert why in reason
    assert ".cc" not in reason


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "nowhere"),
        (("http://127.0.0.1:9/",), "archiver login http://127.0.0.1:9/ --export cookies.txt"),
        (("c", "--browser", "no-such-browser"), "--browser no-such-browser: there is no such program"),
        (("c", "--browser", "false"), "the browser did not start: it printed nothing that explains it"),
        (("c", "--browser", "sh -c 'echo no screen >&2'"), "the browser did not start: no screen"),
        (
            ("c", "--browser", "sh -c 'echo Missing X server >&2'"),
            "it finds no screen; log in on a machine that has one, and bring its cookies with --load-cookies",
        ),
        (
            ("c", "--browser", "sh -c 'echo \"[7:7:1126/134911.7:ERROR:x.cc(1)] The disk is full\" >&2'"),
            "the browser did not start: The disk is full",
        ),
        (("c", "ftp://example.org/"), "ftp: is not supported"),
        (("http://127.0.0.1:9/", "--export", "nowhere/c.txt"), "its folder does not exist"),
        (("empty",), "no seeds; give a URL: archiver login empty URL"),
    ],
)
def test_what_cannot_work_is_one_line(tmp_path: Path, forks: Forks, arguments: tuple[str, ...], said: str) -> None:
    with RawServer(MembersSite().routes) as server:
        forks.archiver("crawl", server.url(), "-o", "c", "--rate", "0", "--max-urls", "1", cwd=tmp_path)
    shutil.copytree(tmp_path / "c", tmp_path / "empty")
    settings = (tmp_path / "c/crawl.toml").read_text().splitlines()
    (tmp_path / "empty/crawl.toml").write_text("\n".join(line for line in settings if not line.startswith("seeds =")))
    done = forks.archiver("login", *arguments, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert said in done.stderr
    assert ("has one, and bring" in done.stderr) == ("has one, and bring" in said)
    assert len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr


def test_a_crawl_without_cookies_needs_no_login(tmp_path: Path, forks: Forks) -> None:
    with RawServer(MembersSite().routes) as server:
        off = ("--cookies", "off", "--max-urls", "1")
        forks.archiver("crawl", server.url(), "-o", "c", "--rate", "0", *off, cwd=tmp_path)
    done = forks.archiver("login", "c", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "archiver login has no effect with --cookies off" in done.stderr
