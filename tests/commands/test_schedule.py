"""`archiver schedule`: what it writes is what systemd, cron and launchd read, and crawls the collection again."""

import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import archiver, environment
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

OFTEN = ("daily", "weekly", "monthly")


@pytest.fixture(name="home")
def home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home folder and a command on PATH; return a collection in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    command = tmp_path / "bin" / "archiver"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m archiver "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{environment()['PATH']}")
    return tmp_path / "my site"


def crawled(collection: Path, server: RawServer) -> None:
    options = ("--rate", "0", "--min-free-disk", "0", "-q")
    ran = archiver("crawl", server.url(), "-o", str(collection), *options, cwd=collection.parent)
    assert ran.returncode == ExitCode.DONE, ran.stderr


def scheduled(collection: Path, *words: str) -> str:
    ran = archiver("schedule", str(collection), *words, cwd=collection.parent)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return ran.stdout


def ran_again(collection: Path, command: list[str], server: RawServer) -> None:
    before = len(server.log)
    subprocess.run(command, env=environment(), cwd="/", check=True, capture_output=True)
    assert len(server.log) > before
    assert len(list((collection / "crawls").iterdir())) == 1


@pytest.mark.parametrize("often", OFTEN)
def test_units_of_systemd(home: Path, often: str) -> None:
    with RawServer({"/": ok(page("Home"))}) as server:
        crawled(home, server)
        folder = home.parent / ".config" / "systemd" / "user"
        shown = scheduled(home, often, "--with", "systemd")
        assert not folder.exists()
        scheduled(home, often, "--with", "systemd", "--write")
        service, timer = folder / "archiver-my_site.service", folder / "archiver-my_site.timer"
        assert all(path.read_text() in shown for path in (service, timer))
        assert "enable --now archiver-my_site.timer" in shown
        if shutil.which("systemd-analyze"):
            analyzed = ["systemd-analyze", "verify", "--user", str(service), str(timer)]
            ran = subprocess.run(analyzed, capture_output=True, text=True, check=False)
            assert not [line for line in ran.stderr.splitlines() if "my_site" in line], ran.stderr
        line = next(line for line in service.read_text().splitlines() if line.startswith("ExecStart="))
        ran_again(home, shlex.split(line.partition("=")[2]), server)


@pytest.mark.parametrize("often", OFTEN)
def test_a_line_for_cron(home: Path, often: str) -> None:
    """The line is what the shell would give to crontab; it ends with the command as cron's shell reads it."""
    with RawServer({"/": ok(page("Home"))}) as server:
        crawled(home, server)
        shown = scheduled(home, often, "--with", "cron").splitlines()[0]
        crontab = home.parent / "bin" / "crontab"
        crontab.write_text('#!/bin/sh\n[ "$1" = -l ] && exit 1\ncat > "$HOME/table"\n')
        crontab.chmod(0o755)
        subprocess.run(["sh", "-c", shown], env=environment(), check=True)
        minute, hour, day, month, weekday, command = (home.parent / "table").read_text().strip().split(" ", 5)
        assert (minute, hour, month) == ("17", "3", "*")
        assert (day, weekday) == {"daily": ("*", "*"), "weekly": ("*", "1"), "monthly": ("1", "*")}[often]
        ran_again(home, ["sh", "-c", command], server)


def test_an_agent_of_launchd(home: Path) -> None:
    with RawServer({"/": ok(page("Home"))}) as server:
        crawled(home, server)
        scheduled(home, "weekly", "--with", "launchd", "--write")
        (path,) = (home.parent / "Library" / "LaunchAgents").iterdir()
        agent = plistlib.loads(path.read_bytes())
        assert agent["StartCalendarInterval"] == {"Weekday": 1, "Hour": 3, "Minute": 17}
        ran_again(home, agent["ProgramArguments"], server)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere", "weekly"), "nowhere does not exist"),
        ((".", "weekly"), "holds no crawl"),
        (("a%b", "weekly"), "a scheduled directory may not have any of"),
        (("c", "weekly", "--with", "cron", "--write"), "cron has no file of its own"),
        (("c", "hourly"), "hourly"),
    ],
)
def test_what_cannot_be_scheduled(home: Path, words: tuple[str, ...], says: str) -> None:
    with RawServer({"/": ok(page("Home"))}) as server:
        for name in ("c", "a%b"):
            crawled(home.parent / name, server)
    ran = archiver("schedule", *words, cwd=home.parent)
    assert (ran.returncode, says in ran.stderr) == (ExitCode.USAGE, True), ran.stderr
