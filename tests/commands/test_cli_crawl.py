"""`archiver crawl` and `archiver resume` as a person uses them: exit codes, what is said, what lies there."""

import json
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import COMMAND, archiver, environment
from fixtures.rawserver import RawServer, Route
from fixtures.sites import Site, ok, page, tree

SITE: Site = tree(12, images=2)
FAST = ("--rate", "0", "--retries", "0", "--probe", "off")


@pytest.fixture
def server() -> Iterator[RawServer]:
    """A small site."""
    with RawServer(SITE.routes) as running:
        yield running


def _status(directory: str, cwd: Path) -> dict[str, int]:
    totals: dict[str, int] = json.loads(archiver("status", directory, "--json", cwd=cwd).stdout)["totals"]
    return totals


def test_whole_crawl(server: RawServer, tmp_path: Path) -> None:
    ran = archiver("crawl", server.url(), *FAST, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert ran.stdout == ""
    name = f"collections/127.0.0.1_{server.port}"  # another port may be another site
    directory = tmp_path / name
    assert set(server.log.targets()) == SITE.reachable | {"/robots.txt"}
    assert f"archiving into {name}" in ran.stderr
    assert f"archiver replay {name}" in ran.stderr
    assert f"archiver verify {name}" in ran.stderr
    settings = tomllib.loads((directory / "crawl.toml").read_text())
    assert settings["seeds"] == [server.url()]
    assert settings["rate"] == 0
    summary = json.loads((directory / "reports" / "summary.json").read_text())
    assert summary["totals"]["captures"] == len(SITE.reachable) + 1
    assert summary["totals"]["waiting"] == 0
    assert not list(directory.glob("crawl.db-*"))
    assert archiver("verify", str(directory), cwd=tmp_path).returncode == ExitCode.DONE
    again = archiver("crawl", server.url(), cwd=tmp_path)
    assert again.returncode == ExitCode.USAGE
    assert f"already holds a crawl; to continue it: archiver resume {name}" in again.stderr
    assert f"to crawl the site again: archiver recrawl {name}" in again.stderr
    assert "to use another directory: -o DIR" in again.stderr
    indexed = (directory / "indexes" / "index.cdxj").read_bytes()
    assert archiver("index", str(directory), cwd=tmp_path).returncode == ExitCode.DONE
    assert (directory / "indexes" / "index.cdxj").read_bytes() == indexed


def test_seeds_of_many_origins_each_once(server: RawServer, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"# two\n{server.url('/p1.html')}\n{server.url('/#top')}\n")
    ran = archiver(
        *("crawl", server.url(), "--seeds", "list.txt", "--seeds", "-", "-o", "out", "--scope", "page", *FAST, "-q"),
        cwd=tmp_path,
        stdin=server.url("/p2.html").removeprefix("http://").encode(),
    )
    assert ran.returncode == ExitCode.DONE, ran.stderr
    seeds = tomllib.loads((tmp_path / "out" / "crawl.toml").read_text())["seeds"]
    assert seeds == [server.url(), server.url("/p1.html"), server.url("/p2.html")]
    assert ran.stderr.startswith("archiver: stdin: 1 URL without a scheme, taken as http://\n")


def test_options_go_before_the_file_and_resume_writes_them_back(server: RawServer, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(
        f'seeds = ["{server.url()}"]\nrate = 0\nprobe = "off"\nmax-urls = 1\noperator = "me"\n'
    )
    ran = archiver("crawl", "--config", "my.toml", "--max-urls", "3", "-o", "out", "-q", cwd=tmp_path)
    assert ran.returncode == ExitCode.LIMIT, ran.stderr
    assert "archiver resume out" in ran.stderr
    before = tomllib.loads((tmp_path / "out" / "crawl.toml").read_text())
    assert (before["max-urls"], before["operator"]) == (3, "me")
    ran = archiver("resume", "out", "--max-urls", "0", "-q", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert tomllib.loads((tmp_path / "out" / "crawl.toml").read_text()) == {**before, "max-urls": 0}
    assert sorted(server.log.targets()) == sorted(SITE.reachable | {"/robots.txt"})


def test_no_seed(tmp_path: Path) -> None:
    ran = archiver("crawl", "http://127.0.0.1:9/", "http://none.invalid/", "-o", "out", *FAST, cwd=tmp_path)
    assert ran.returncode == ExitCode.NO_SEED
    assert "Traceback" not in ran.stderr
    assert "http://127.0.0.1:9/ failed: " in ran.stderr
    assert "http://none.invalid/ failed: " in ran.stderr
    assert (tmp_path / "out" / "reports" / "failures.tsv").read_text().count("\n") > 2


@pytest.mark.parametrize(("voice", "lines"), [(["-q"], True), (["-qq"], False)])
def test_quiet(server: RawServer, tmp_path: Path, voice: list[str], lines: bool) -> None:  # noqa: FBT001
    ran = archiver("crawl", server.url(), "-o", "out", *FAST, "--max-depth", "0", *voice, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE
    assert ran.stdout == ""
    assert ran.stderr.startswith("ended     done\n") if lines else ran.stderr == ""


def test_stopped_and_gone_on_with(server: RawServer, tmp_path: Path) -> None:
    with subprocess.Popen(
        [
            *COMMAND,
            "crawl",
            server.url(),
            "-o",
            "out",
            "--rate",
            "1/5",
            "--probe",
            "off",
        ],  # it lasts as long as the commands below take
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        server.log.holds(2).wait()
        assert json.loads(archiver("status", "out", "--json", cwd=tmp_path).stdout)["running"]["pid"] == process.pid
        busy = archiver("resume", "out", cwd=tmp_path)
        assert busy.returncode == ExitCode.USAGE
        assert f"process {process.pid} on " in busy.stderr
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == ExitCode.STOPPED, err
    assert "stopping" in err
    assert "archiver resume out" in err
    assert _status("out", tmp_path)["waiting"] > 0
    ran = archiver("resume", "out", "--rate", "0", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert sorted(server.log.targets()) == sorted(SITE.reachable | {"/robots.txt"})
    assert archiver("resume", "out", cwd=tmp_path).returncode == ExitCode.DONE


def test_crash_before_the_database_was_made(server: RawServer, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\nprobe = "off"\n')
    ran = archiver("resume", "out", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert set(server.log.targets()) == SITE.reachable | {"/robots.txt"}


def test_directory_that_cannot_be_written(server: RawServer, tmp_path: Path) -> None:
    ran = archiver("crawl", server.url(), "-o", "/proc/nowhere/x", cwd=tmp_path)
    assert ran.returncode == ExitCode.STORAGE
    assert ran.stderr.count("\n") == 1
    assert "/proc/nowhere" in ran.stderr


@pytest.mark.parametrize("option", ["-v", "-vv"])
def test_verbose(option: str, tmp_path: Path) -> None:
    """With -v, a line for each URL; with -vv, debug lines too, but only those of archiver."""
    routes: dict[str, Route] = {"/": ok(page("Home", ["/gone", "/dead"])), "/dead": b""}
    with RawServer(routes) as server:
        ran = archiver("crawl", server.url(), option, "--retries", "0", "--probe", "off", cwd=tmp_path)
        lines = ran.stderr.splitlines()
        said = [line.removeprefix("archiver.crawl.batch_writer: ") for line in lines]
        assert [line for line in said if re.fullmatch(rf"200 text/html [0-9]+ B {server.url()}", line)]
        assert [line for line in said if re.fullmatch(rf"404 \S* ?[0-9]+ B {server.url('/gone')}", line)]
        assert f"disconnect {server.url('/dead')}" in said
        assert ("hops L via" in ran.stderr) == (option == "-vv")
        assert not re.search(r"\b(aiosqlite|asyncio|SELECT|INSERT|BEGIN)\b", ran.stderr)
