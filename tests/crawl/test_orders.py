"""Orders for a crawl: it pauses and goes on, in one process or several, over kills and restarts."""

import asyncio
import json
import signal
import sys
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest

from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import ExitCode
from archiver.warc.resources import PLACE
from fixtures.archives import resources, rows
from fixtures.command import archiver, ended, running, said
from fixtures.flag import Gate
from fixtures.forks import Forks
from fixtures.log import Row
from fixtures.postgres import PostgresServer
from fixtures.rawserver import Answer, RawServer, Route, keep
from fixtures.several_hosts import captures
from fixtures.sites import message, ok, page
from fixtures.thread_delay import MOST_JITTER

PAGES = 1000
RATE = 40
UNDER_WAY = 4  # requests to one host at most
HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 4))
COMMON = ("-o", "c", "--rate", str(RATE), "--host-concurrency", str(UNDER_WAY), "--robots", "ignore", "--probe", "off")
OPTIONS = (*COMMON, "--min-free-disk", "0")
linux = pytest.mark.skipif(sys.platform != "linux", reason="forks crawler processes")


def site(pages: int = PAGES) -> dict[str, Route]:
    """Return pages that the first one names."""
    names = [f"/{'ab'[number % 2]}/{number}" for number in range(pages)]
    return {"/": ok(page("Home", names)), **{name: ok(page(name, [])) for name in names}}


UNANSWERED = "the running crawl has not answered yet; archiver orders shows its answer\n"


def did(command: str, *arguments: str, cwd: Path) -> str:
    """Run `archiver COMMAND c ARGUMENTS`, which must succeed; return what it prints, or the answer that came later."""
    ran = archiver(command, "c", *arguments, cwd=cwd)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return answer(cwd) if ran.stdout == UNANSWERED else ran.stdout


def answer(folder: Path) -> str:
    """Return the answer to the last order. On a busy machine it can come after the command has given up."""
    for _ in range(600):
        last = json.loads(did("orders", "--json", cwd=folder).splitlines()[-1])
        if last["answered"]:
            return f"{last['answer']}\n"
        time.sleep(0.1)
    raise TimeoutError


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
        assert did("orders", cwd=tmp_path).count("not done yet") == 2
        ran = archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert "not done yet" not in did("orders", cwd=tmp_path)


@pytest.mark.parametrize("command", ["pause", "go", "orders"])
def test_a_folder_without_a_crawl_is_refused_in_one_line(tmp_path: Path, command: str) -> None:
    ran = archiver(command, "nowhere", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert len(ran.stderr.splitlines()) == 1
    assert "Traceback" not in ran.stderr


def endless(row: Row) -> Answer:
    """Return a page that names two more, so that a crawl at full speed never comes to its end."""
    return ok(page(row.target, [f"{row.target.rstrip('/')}/{name}" for name in ("left", "right")]))


def test_a_lowered_rate_holds_from_the_answer_on(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(otherwise=endless, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        full_speed = ("--rate", "0", "--traps", "off")
        with running("crawl", *OPTIONS, *full_speed, *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(100).wait()
            assert did("set", "rate=4", cwd=tmp_path) == "in force\n"
            since, asked = time.monotonic(), len(server.log)
            server.log.holds(asked + 45).wait()
            process.terminate()
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        for host in HOSTS:
            times = [row.arrived for row in server.log if row.host == host and row.arrived >= since]
            times = times[UNDER_WAY:]  # so many were sent before, and may have been read by the server since
            # of five requests, the last is sent a second after the first; the server may read either one late
            assert times[-1] - times[0] >= (len(times) - 1) // 4 - 2 * MOST_JITTER, times
    assert tomllib.loads((tmp_path / "c" / "crawl.toml").read_text())["rate"] == 4


def test_limits_are_changed_while_the_crawl_is_paused(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(site(), hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(20).wait()
            did("pause", cwd=tmp_path)
            did("set", "global-rate=2", "bandwidth=1M", "concurrency=2", cwd=tmp_path)
            most = len(server.log) + 5
            did("set", f"max-urls={most}", "global-rate=0", "bandwidth=0", "rate=0", cwd=tmp_path)
            did("go", cwd=tmp_path)
            code, err = ended(process)
        assert code == ExitCode.LIMIT, err
        assert f"--max-urls {most} is reached" in err
        assert len(server.log) == most


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "no setting: give one or more as KEY=VALUE"),
        ("rate", "rate: write KEY=VALUE"),
        ("rate=fast", "rate: 'fast' is not a number of requests"),
        ("raet=2", "'raet' is not a setting; did you mean rate?"),
        ("user-agent=me", "user-agent is read when a crawl starts"),
        ("exclude=(", "exclude: '(' is not a regular expression"),
        ("host=example.org user-agent=me", "host: user-agent is read when a crawl starts"),
        ("max-depth=1 max-depth=2", "max-depth: given twice"),
        ("concurrency=0", "concurrency: '0' is not"),
    ],
)
def test_a_setting_that_is_wrong_changes_nothing(crawled: Path, given: str, says: str) -> None:
    words = [given] if given.startswith("host=") else given.split()
    before = (crawled / "c" / "crawl.toml").read_bytes()
    ran = archiver("set", "c", *words, cwd=crawled)
    assert ran.returncode == ExitCode.USAGE
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert (crawled / "c" / "crawl.toml").read_bytes() == before
    assert did("orders", cwd=crawled) == ""


@pytest.fixture(name="crawled", scope="module")
def a_crawl_that_is_done(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Path:
    """Return the folder of a crawl with a few pages."""
    folder = tmp_path_factory.mktemp("crawled")
    with RawServer(site(3)) as server:
        ran = forks.archiver("crawl", *OPTIONS, server.url(), cwd=folder, timeout=300)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return folder


@linux
def test_paused_crawlers_end_when_a_supervisor_is_killed_that_has_not_read_their_messages(tmp_path: Path) -> None:
    with RawServer(site(), hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, "--processes", "2", *seeds, cwd=tmp_path) as process:
            server.log.holds(20).wait()
            process.send_signal(signal.SIGSTOP)
            did("pause", cwd=tmp_path)  # meanwhile crawlers send several messages, which make the end an error
            process.kill()
            process.communicate(timeout=60)  # until the last crawler has closed the pipes
    assert json.loads(did("status", "--json", cwd=tmp_path))["state"] == "stopped"


def test_excluded_is_what_the_preview_says_and_undo_is_exact(tmp_path: Path, way: tuple[str, ...]) -> None:
    routes = site(200)
    routes["/b/199"] = ok(page("late", ["/a/late"]))
    queue = "SELECT id, url, state, due, tries, priority, failure, note FROM urls ORDER BY id"
    with RawServer(routes, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(60).wait()
            did("pause", cwd=tmp_path)
            wait_until_settled(tmp_path, len(server.log))
            before = rows(tmp_path / "c", queue)
            waits = {row[1] for row in before if row[2] == "waiting"}
            wanted = {text for text in waits if "/a/" in str(text)}
            shown = did("exclude", "/a/", "--dry-run", cwd=tmp_path)
            assert shown.startswith(f"{len(wanted)} of {len(waits)} waiting URLs would be excluded")
            assert rows(tmp_path / "c", queue) == before
            assert did("exclude", "/a/", cwd=tmp_path) == f"{len(wanted)} waiting URLs excluded\n"
            assert excluded(tmp_path) == wanted
            assert did("retry", cwd=tmp_path).startswith("0 URLs queued again")
            assert did("exclude", "/a/", "--undo", cwd=tmp_path) == f"{len(wanted)} URLs wait again\n"
            assert rows(tmp_path / "c", queue) == before
            did("exclude", "/a/", cwd=tmp_path)
            did("go", cwd=tmp_path)
            code, err = ended(process)
    assert code == ExitCode.DONE, err
    assert excluded(tmp_path) == wanted  # and no link of a page that was fetched since has come in
    assert not wanted & {server.url(row.target, row.host) for row in server.log}
    assert "rule" in did("urls", "--state", "excluded", "--why", cwd=tmp_path)
    for place in ("status", "report"):
        assert f"{len(wanted)} URLs were excluded from the queue by /a/" in did(place, cwd=tmp_path)
    assert "archiver exclude c /a/ --undo && archiver resume c" in err


WIKI = tuple(f"/w?title=P{number}&action={what}" for number in range(100) for what in ("edit", "history"))


def test_forms_of_a_wiki_are_named_and_left_out_by_a_list(tmp_path: Path, way: tuple[str, ...]) -> None:
    names = [f"/w?title=P{number}" for number in range(100)]
    routes = {"/": ok(page("Home", [*names, *WIKI])), **{name: ok(page(name, [])) for name in (*names, *WIKI)}}
    with RawServer(routes, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(6).wait()
            did("pause", cwd=tmp_path)
            wait_until_settled(tmp_path, len(server.log))
            waits = rows(tmp_path / "c", "SELECT url FROM urls WHERE state = 'waiting'")
            wanted = {text for (text,) in waits if "action=" in str(text)}
            told = did("status", cwd=tmp_path)
            assert f"about {len(wanted) / len(waits):.0%} of the waiting URLs are on the exclude list wikis" in told
            assert "archiver exclude c --without=wikis   # leave them out\n" in told
            shown = did("exclude", "--without=wikis", "--dry-run", cwd=tmp_path)
            assert shown.startswith(f"{len(wanted)} of ")
            assert did("exclude", "--without=wikis", cwd=tmp_path) == f"{len(wanted)} waiting URLs excluded\n"
            assert excluded(tmp_path) == wanted
            assert did("exclude", "--without=wikis", "--undo", cwd=tmp_path) == f"{len(wanted)} URLs wait again\n"
            did("exclude", "--without", "wikis", cwd=tmp_path)
            did("go", cwd=tmp_path)
            code, err = ended(process)
    assert code == ExitCode.DONE, err
    assert excluded(tmp_path) == wanted
    assert not wanted & {server.url(row.target, row.host) for row in server.log}
    assert f"{len(wanted)} URLs were excluded from the queue by --without=wikis" in err
    assert "archiver exclude c --without=wikis --undo && archiver resume c" in err
    assert tomllib.loads((tmp_path / "c" / "crawl.toml").read_text())["without"] == ["wikis"]


def excluded(folder: Path) -> set[object]:
    """Return the URLs that are excluded."""
    return {text for (text,) in rows(folder / "c", "SELECT url FROM urls WHERE state = 'excluded'")}


def wait_until_settled(folder: Path, asked: int) -> None:
    """Wait until the answers to so many requests are committed."""
    for _ in range(600):
        if rows(folder / "c", "SELECT count(*) FROM urls WHERE state <> 'waiting'") == [(asked,)]:
            return
        time.sleep(0.1)
    raise TimeoutError


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("(",), "REGEX: '(' is not a regular expression"),
        (("/a/", "--undo"), "/a/ is not a rule of this crawl"),
        (("/a/", "--undo", "--dry-run"), "--dry-run cannot be used with --undo"),
        ((), "nothing to exclude: give a regular expression, or --without with an exclude list"),
        (("--without", "nowhere"), "--without=nowhere: there is no such list; write one of trackers, "),
        (("--without", "wikis", "--undo"), "--without=wikis is not a rule of this crawl"),
    ],
)
def test_a_bad_rule_changes_nothing(crawled: Path, words: tuple[str, ...], says: str) -> None:
    ran = archiver("exclude", "c", *words, cwd=crawled)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (ExitCode.USAGE, 1)
    assert says in ran.stderr
    assert did("orders", cwd=crawled) == ""


def test_urls_that_are_put_first_are_fetched_first(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(site(200), hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(60).wait()
            did("pause", cwd=tmp_path)
            wait_until_settled(tmp_path, len(server.log))
            asked = len(server.log)
            wanted = rows(tmp_path / "c", "SELECT url FROM urls WHERE state = 'waiting' AND url LIKE '%/b/1_9'")
            assert did("first", "/b/1.9$", cwd=tmp_path) == f"{len(wanted)} waiting URLs put first\n"
            did("go", cwd=tmp_path)
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        for host in HOSTS:
            came = [server.url(row.target, host) for row in list(server.log)[asked:] if row.host == host]
            first = {text for (text,) in wanted if str(text).startswith(server.url("/", host))}
            assert first
            assert set(came[: len(first)]) == first


def test_a_crawl_is_stopped_from_another_terminal_and_goes_on_later(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer(otherwise=endless, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        with running("crawl", *OPTIONS, "--traps", "off", *way, *seeds, cwd=tmp_path) as process:
            server.log.holds(60).wait()
            assert did("stop", cwd=tmp_path) == "stopping: no request starts; those under way end\n"
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert "stopped by " in err
        assert json.loads(did("status", "--json", cwd=tmp_path))["state"] == "stopped"
        assert len(rows(tmp_path / "c", "SELECT id FROM urls WHERE state = 'archived'")) == len(server.log)
        assert did("stop", cwd=tmp_path) == "the crawl does not run, so nothing is stopped\n"
        most = len(server.log) + 40
        ran = archiver("resume", "c", "--max-urls", str(most), cwd=tmp_path)  # the order was for the first run
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        assert len(server.log) == most
    assert [json.loads(line)["verb"] for line in did("orders", "--json", cwd=tmp_path).splitlines()] == ["stop"] * 2


def test_stop_returns_when_the_directory_is_free_for_the_next_run(tmp_path: Path, way: tuple[str, ...]) -> None:
    """A request under way delays the end of the run, and then the delivery of an event, which locks it again."""
    late, told = Gate(), Gate()
    site = {
        "/": ok(page("Home", ["/late"])),
        "/late": Answer((late, *ok(page("late", [])).pieces)),  # type: ignore[misc]
        "/hook": Answer((told, b"HTTP/1.1 204 No Content\r\n\r\n")),
    }
    with RawServer(site) as server:
        on = ("--on", "crawl-ended", server.url("/hook"))
        with running("crawl", *OPTIONS, *way, *on, server.url(), cwd=tmp_path) as process:
            late.arrived.wait()
            with running("stop", "c", cwd=tmp_path) as stopping:
                assert stopping.stdout is not None
                assert stopping.stdout.readline() == "stopping: no request starts; those under way end\n"
                late.open()
                told.arrived.wait()
                assert stopping.poll() is None
                told.open()
                assert ended(stopping) == (ExitCode.DONE, "")
            ran = archiver("resume", "c", cwd=tmp_path)
            assert ran.returncode == ExitCode.DONE, ran.stderr
            code, err = ended(process)
    assert code == ExitCode.STOPPED, err


def test_a_second_order_to_stop_cuts_what_is_under_way(tmp_path: Path, way: tuple[str, ...]) -> None:
    gate = Gate()
    never = Answer((gate, *ok(page("late", [])).pieces))  # type: ignore[misc]
    with RawServer({"/": ok(page("Home", ["/late"])), "/late": never}) as server:
        words = ("crawl", *OPTIONS, *way, "--drain-timeout", "3600", "--timeout", "3600", server.url())
        with running(*words, cwd=tmp_path) as process:
            gate.arrived.wait()
            assert did("stop", "--no-wait", cwd=tmp_path) == "stopping: no request starts; those under way end\n"
            assert did("note", "it hangs", cwd=tmp_path) == "noted\n"
            assert did("stop", "--now", cwd=tmp_path) == "stopping: requests under way are cut\n"
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        gate.open()
    assert rows(tmp_path / "c", "SELECT state FROM urls WHERE url LIKE '%/late'") == [("waiting",)]


def test_a_paused_crawl_is_stopped_and_stays_paused(tmp_path: Path) -> None:
    with RawServer(site()) as server, running("crawl", *OPTIONS, server.url(), cwd=tmp_path) as process:
        server.log.holds(10).wait()
        did("pause", cwd=tmp_path)
        did("stop", cwd=tmp_path)
        code, err = ended(process)
    assert code == ExitCode.STOPPED, err
    assert json.loads(did("status", "--json", cwd=tmp_path))["paused"]


def test_an_order_to_stop_that_no_crawler_took_up_stops_no_later_run(tmp_path: Path) -> None:
    async def give() -> None:
        async with await SqliteFrontier.open(tmp_path / "c" / "crawl.db") as frontier:
            await frontier.give_order(NewOrder(Verb.STOP, (), "somebody@here", 1.0), None)

    with RawServer(site(3)) as server:
        ran = archiver("crawl", *OPTIONS, "--max-urls", "2", server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        asyncio.run(give())
        ran = archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert did("orders", cwd=tmp_path).endswith("stop: the run had ended already\n")


def test_what_is_added_and_tried_again_is_listed_with_the_orders(tmp_path: Path) -> None:
    routes = {**site(3), "/a/0": keep(message("404 Not Found")), "/new": ok("new"), "/other": ok("other")}
    (tmp_path / "lists").mkdir()
    with RawServer(routes) as server:
        ran = archiver("crawl", *OPTIONS, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        (tmp_path / "lists" / "more.txt").write_text(f"{server.url('/other')}\n")
        did("retry", "--status", "404", "--host", f"127.0.0.1:{server.port}", cwd=tmp_path)
        did("retry", server.url("/b/1").replace("//", "//user:secret@"), cwd=tmp_path)
        did("retry", "--held", cwd=tmp_path)
        did("add", server.url("/new"), "--seeds", "lists/more.txt", cwd=tmp_path)
        wrong = archiver("retry", "c", server.url("/unknown"), cwd=tmp_path)
        assert wrong.returncode == ExitCode.USAGE
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    found = [json.loads(line) for line in did("orders", "--json", cwd=tmp_path).splitlines()]
    assert [(each["verb"], each["arguments"], each["answer"]) for each in found] == [
        ("retry", [f"--host=127.0.0.1:{server.port}", "--status=404"], "1 URL queued again"),
        ("retry", [server.url("/b/1")], "1 URL queued again"),
        ("retry", ["--held"], "0 URLs released"),
        ("add", ["--seeds=more.txt", server.url("/new")], "2 seeds added"),
    ]
    assert "secret" not in json.dumps(found)
