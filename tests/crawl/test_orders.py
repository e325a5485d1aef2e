"""Orders for a crawl: it pauses and goes on, in one process or several, over kills and restarts."""

import asyncio
import json
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import ExitCode
from archiver.warc.resources import PLACE
from fixtures.archives import resources
from fixtures.command import archiver, ended, running, said
from fixtures.postgres import PostgresServer
from fixtures.rawserver import RawServer, Route
from fixtures.several_hosts import captures
from fixtures.sites import ok, page

PAGES = 1000
RATE = 40
HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 4))
COMMON = ("-o", "c", "--rate", str(RATE), "--host-concurrency", "4", "--robots", "ignore", "--probe", "off")
OPTIONS = (*COMMON, "--min-free-disk", "0")
linux = pytest.mark.skipif(sys.platform != "linux", reason="forks crawler processes")


def site(pages: int = PAGES) -> dict[str, Route]:
    """Return pages that the first one names."""
    names = [f"/{'ab'[number % 2]}/{number}" for number in range(pages)]
    return {"/": ok(page("Home", names)), **{name: ok(page(name, [])) for name in names}}


def did(command: str, *arguments: str, cwd: Path) -> str:
    """Run `archiver COMMAND c ARGUMENTS`, which must succeed; return what it prints."""
    ran = archiver(command, "c", *arguments, cwd=cwd)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return ran.stdout


@pytest.fixture(name="way", params=["alone", pytest.param("processes", marks=linux), "postgres"])
def way_of_crawling(request: pytest.FixtureRequest, postgres_server: PostgresServer | None) -> tuple[str, ...]:
    """Return options for one process, for two, and for two with a queue in PostgreSQL."""
    if request.param == "postgres":
        if postgres_server is None:
            pytest.skip("PostgreSQL is not installed")
        return ("--processes", "2", "--frontier", postgres_server.new_database())
    return ("--processes", "2") if request.param == "processes" else ()


def test_a_pause_holds_over_a_kill_until_go(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(site(), hosts=HOSTS) as server, ExitStack() as stack:
        seeds = [server.url("/", host) for host in HOSTS]
        process = stack.enter_context(running("crawl", *OPTIONS, *way, *seeds, cwd=tmp_path))
        server.log.holds(60).wait()
        assert did("pause", cwd=tmp_path) == "paused: no request starts; those under way end\n"
        asked = len(server.log)
        assert json.loads(did("status", "--json", cwd=tmp_path))["state"] == "paused"
        assert len(server.log) == asked  # a second of work, in which many would have come
        process.kill()
        process.communicate()
        assert json.loads(did("status", "--json", cwd=tmp_path))["paused"]
        again = stack.enter_context(running("resume", "c", cwd=tmp_path))
        said(again, "paused")
        assert len(server.log) == asked
        assert did("go", cwd=tmp_path) == "the crawl goes on\n"
        server.log.holds(asked + 20).wait()
        assert did("pause", cwd=tmp_path).startswith("paused")
        again.terminate()
        code, err = ended(again)
        assert code == ExitCode.STOPPED, err
    found = [json.loads(line) for line in did("orders", "--json", cwd=tmp_path).splitlines()]
    assert [each["verb"] for each in found] == ["pause", "go", "pause"]
    assert all(each["answer"] and each["answered"] and "@" in each["who"] for each in found)


def test_a_paused_crawl_that_has_nothing_left_waits_for_go(tmp_path: Path) -> None:
    with RawServer(site(3)) as server:
        ran = archiver("crawl", *OPTIONS, "--max-urls", "2", server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        assert did("pause", cwd=tmp_path) == "paused: the next run starts no request until archiver go\n"
        with running("resume", "c", "--max-urls", "0", cwd=tmp_path) as process:
            said(process, "paused")
            assert len(server.log) == 2
            did("go", cwd=tmp_path)
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert sum(captures(tmp_path / "c").values()) == 4
    stored = dict(resources(tmp_path / "c"))[f"{PLACE}orders.jsonl"]
    assert [json.loads(line)["verb"] for line in stored.splitlines()] == ["pause", "go"]


def test_an_order_that_no_crawler_took_up_is_taken_up_by_the_next_run(tmp_path: Path) -> None:
    async def give(verb: Verb) -> None:
        async with await SqliteFrontier.open(tmp_path / "c" / "crawl.db") as frontier:
            await frontier.give_order(NewOrder(verb, (), "somebody@here", 1.0), None)

    with RawServer(site(3)) as server:
        ran = archiver("crawl", *OPTIONS, "--max-urls", "2", server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        for verb in (Verb.PAUSE, Verb.GO):
            asyncio.run(give(verb))
        assert did("orders", cwd=tmp_path).count("not taken up yet") == 2
        ran = archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "not taken up yet" not in did("orders", cwd=tmp_path)


@pytest.mark.parametrize("command", ["pause", "go", "orders"])
def test_a_folder_without_a_crawl_is_refused_in_one_line(tmp_path: Path, command: str) -> None:
    ran = archiver(command, "nowhere", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert len(ran.stderr.splitlines()) == 1
    assert "Traceback" not in ran.stderr
