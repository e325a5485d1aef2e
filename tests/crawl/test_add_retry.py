"""`archiver retry` and `archiver add`, on a crawl that has stopped, and on one that runs and takes up what came."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from archiver.cli import add, retry, verify
from archiver.collection.orders.retry import RetryRequest
from archiver.collection.settings_file import read_settings
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.crawl import build
from archiver.crawl.recovery import rebuild
from archiver.crawl.stats import CrawlEnding
from archiver.errors import ConfigError
from archiver.frontier.port import Written
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import ExitCode
from archiver.policy.limits import ThrottleState
from fixtures.archives import rows, states
from fixtures.crawl_in_process import settings
from fixtures.flag import Flag, Gate
from fixtures.rawserver import NOT_FOUND, Answer, End, RawServer, Route, in_turn, keep, raising
from fixtures.sites import message, ok, page

FOREIGN = "127.0.0.2"
NOTHING: tuple[str, ...] = ()


def crawl(directory: Path, wanted: Settings, *, resume: bool = False) -> CrawlEnding:
    """Crawl to the end, as the command does."""

    async def act() -> CrawlEnding:
        text = "" if resume else toml.render(wanted)
        async with build.open_crawl(directory, wanted, resume=resume, text=text) as lifetime:
            return await lifetime.run()

    return asyncio.run(act())


def resumed(directory: Path) -> CrawlEnding:
    """Go on with the settings of crawl.toml."""
    values = read_settings(directory / "crawl.toml")
    return crawl(directory, with_values(Settings(), values), resume=True)


@asynccontextmanager
async def held(directory: Path, wanted: Settings, gate: Gate) -> AsyncIterator["asyncio.Task[CrawlEnding]"]:
    """A crawl that runs until *gate* is opened, and then to its end."""
    async with build.open_crawl(directory, wanted, resume=False, text=toml.render(wanted)) as lifetime:
        running = asyncio.create_task(lifetime.run())
        try:
            await gate.arrived.reached()
            yield running
            gate.open()
            await running
        finally:
            running.cancel()


def retried(directory: Path, *urls: str, host: tuple[str, ...] = (), **chosen: tuple[str, ...]) -> None:
    """`archiver retry`."""
    wish = RetryRequest(urls, host, chosen.get("status", ()), chosen.get("failure", ()))
    retry.retry(directory, wish)


def sound(directory: Path) -> None:
    """`archiver verify` finds nothing."""
    assert verify.verify([directory], as_json=True) is ExitCode.DONE


def test_failures_are_due_again_and_their_tries_begin_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    routes: dict[str, Route] = {
        "/": ok(page("Home", ["/dead", "/gone", "/busy", "/private", "/fine"])),
        "/dead": b"",
        "/gone": in_turn(keep(NOT_FOUND), ok("here again")),
        "/busy": in_turn(keep(message("503 Service Unavailable")), ok("free")),
        "/fine": ok("fine"),
        "/robots.txt": in_turn(ok("User-agent: *\nDisallow: /private", "text/plain"), ok("", "text/plain")),
    }
    with RawServer(routes) as server:
        crawl(tmp_path, settings(server.url(), retries=0))
        assert states(tmp_path) == {
            **{server.url(path): "archived" for path in ("/", "/gone", "/busy", "/fine", "/robots.txt")},
            server.url("/dead"): "failed",
            server.url("/private"): "excluded",
        }
        retried(tmp_path)
        assert capsys.readouterr().out.startswith("2 URLs queued again")
        retried(tmp_path, status=("404", "5xx"))
        assert capsys.readouterr().out.startswith("2 URLs queued again")
        retried(tmp_path, status=("404",))
        assert capsys.readouterr().out == "0 URLs queued again\n"
        routes |= {"/private": ok("open now"), "/dead": ok("alive")}
        assert resumed(tmp_path).code is ExitCode.DONE
    assert set(states(tmp_path).values()) == {"archived"}
    assert rows(tmp_path, "SELECT DISTINCT status FROM urls") == [(200,)]
    sound(tmp_path)


def test_what_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RawServer({"/": ok(page("Home", ["/a"])), "/a": keep(NOT_FOUND)}, hosts=("127.0.0.1", FOREIGN)) as server:
        closed = "http://127.0.0.3:9/"
        crawl(tmp_path, settings(server.url(), server.url("/", FOREIGN), closed, retries=0))
        for arguments, count in (
            ({"host": ("127.0.0.1",), "status": ("404",)}, "1 URL "),
            ({"status": ("404",)}, "1 URL "),  # the other host's; the first waits already
            ({"failure": ("timeout",)}, "0 URLs "),
            ({"failure": ("connect",)}, "1 URL "),
            ({"host": (f"http://127.0.0.1:{server.port}",)}, "0 URLs "),
        ):
            retried(tmp_path, **arguments)
            assert capsys.readouterr().out.startswith(count), arguments
        retried(tmp_path, server.url())
        assert capsys.readouterr().out.startswith("1 URL ")
        waiting = {url for url, state in states(tmp_path).items() if state == "waiting"}
        robots = f"{closed}robots.txt"  # nobody had it, so it is asked for first
        assert waiting == {server.url("/a"), server.url("/a", FOREIGN), closed, server.url(), robots}
        with pytest.raises(ConfigError, match="is not in the crawl"):
            retried(tmp_path, server.url("/never"))


def test_many_in_short_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archiver.frontier.retry.AT_ONCE", 7)
    with RawServer({"/": ok(page("Home", [f"/{number}" for number in range(40)]))}) as server:
        crawl(tmp_path, settings(server.url()))
        retried(tmp_path, status=("404",))
    assert list(states(tmp_path).values()).count("waiting") == 40
    assert rows(tmp_path, "SELECT waiting FROM hosts") == [(40,)]


def test_a_running_crawl_takes_up_what_is_due_again(tmp_path: Path) -> None:
    gate, came = Gate(), Flag()
    routes: dict[str, Route] = {
        "/": ok(page("Home", ["/gone", "/private"])),
        "/gone": in_turn(keep(NOT_FOUND), ok("here again")),
        "/private": raising(came, ok("open now")),
        f"//{FOREIGN}/": Answer((gate, NOT_FOUND, End.CLOSE)),
        f"//{FOREIGN}/robots.txt": keep(NOT_FOUND),
        "/robots.txt": in_turn(ok("User-agent: *\nDisallow: /private", "text/plain"), ok("", "text/plain")),
    }

    async def act(wanted: Settings) -> None:
        async with held(tmp_path, wanted, gate) as running:
            await settled(tmp_path, 3)
            await asyncio.to_thread(retried, tmp_path)
            await asyncio.to_thread(retried, tmp_path, status=("404",))
            await came.reached()
            assert not running.done()
        assert running.result().code is ExitCode.DONE

    with RawServer(routes, hosts=("127.0.0.1", FOREIGN)) as server:
        asyncio.run(act(settings(server.url("/", FOREIGN), server.url(), retries=0)))
        assert server.log.targets().count("/robots.txt") == 3
    assert rows(tmp_path, "SELECT status FROM urls WHERE url LIKE '%/gone'") == [(200,)]
    assert set(states(tmp_path).values()) == {"archived"}
    sound(tmp_path)


def test_a_running_crawl_takes_up_released_urls(tmp_path: Path) -> None:
    """What is held waits again, and its pattern has another budget, in the process that holds it too."""
    gate, came = Gate(), Flag()
    routes: dict[str, Route] = {
        "/": ok(page("Home", ["/item/0"])),
        **{f"/item/{n}": ok(page("Nothing", [f"/item/{n + 1}"])) for n in range(60)},
        f"//{FOREIGN}/": Answer((gate, NOT_FOUND, End.CLOSE)),
        f"//{FOREIGN}/robots.txt": keep(NOT_FOUND),
    }
    routes["/item/25"] = raising(came, routes["/item/25"])

    async def act(wanted: Settings) -> None:
        async with held(tmp_path, wanted, gate) as running:
            await found(tmp_path, "SELECT 1 FROM urls WHERE state = 'held'")
            assert not came.up
            await asyncio.to_thread(retry.retry, tmp_path, RetryRequest(held=True))
            await came.reached()
            assert not running.done()
        assert running.result().code is ExitCode.DONE

    with RawServer(routes, hosts=("127.0.0.1", FOREIGN)) as server:
        asyncio.run(act(settings(server.url("/", FOREIGN), server.url(), host_concurrency=1, trap_budget=20)))
        asked = server.log.targets()
    assert len(asked) == len({*asked}) + 2  # the home page and robots.txt of two hosts
    assert list(states(tmp_path).values()).count("held") == 1
    sound(tmp_path)


async def found(directory: Path, question: str) -> None:
    """Wait until *question* finds a row."""
    async with asyncio.timeout(300):
        while True:
            if rows(directory, question):
                return
            await asyncio.sleep(0.02)


async def settled(directory: Path, most: int) -> None:
    """Wait until so many URLs beside robots.txt are settled."""
    async with asyncio.timeout(300):
        while True:
            done = "SELECT count(*) FROM urls WHERE state <> 'waiting' AND priority >= 0"
            if int(str(rows(directory, done)[0][0])) >= most:
                return
            await asyncio.sleep(0.02)


def test_a_running_crawl_takes_up_further_seeds_and_its_scope_grows(tmp_path: Path) -> None:
    gate, came = Gate(), Flag()
    routes: dict[str, Route] = {
        "//127.0.0.1/": ok(page("Home", ["/slow"])),
        "//127.0.0.1/slow": Answer((gate, NOT_FOUND, End.CLOSE)),
        f"//{FOREIGN}/": ok(page("Added", ["/behind"])),
        f"//{FOREIGN}/behind": raising(came, ok("a page that only the new scope takes")),
    }

    async def act(server: RawServer) -> None:
        async with held(tmp_path, settings(server.url()), gate) as running:
            await asyncio.to_thread(add.add, tmp_path, [server.url("/", FOREIGN)], NOTHING)
            await came.reached()
            assert not running.done()
        assert running.result().code is ExitCode.DONE

    with RawServer(routes, hosts=("127.0.0.1", FOREIGN)) as server:
        asyncio.run(act(server))
        assert read_settings(tmp_path / "crawl.toml")["seeds"] == (server.url(), server.url("/", FOREIGN))
        assert states(tmp_path)[server.url("/behind", FOREIGN)] == "archived"
    sound(tmp_path)


def test_seeds_for_a_stopped_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is new, one that is a seed already, and one that was found as a requisite: its links count now."""
    routes: dict[str, Route] = {
        "//127.0.0.1/": ok(page("Home", styles=[f"//{FOREIGN}:PORT/"])),
        f"//{FOREIGN}/": ok(page("Frame", ["/behind"])),
        f"//{FOREIGN}/behind": ok("behind"),
    }
    with RawServer(hosts=("127.0.0.1", FOREIGN, "127.0.0.4")) as server:
        frame = server.url("/", FOREIGN)
        routes["//127.0.0.1/"] = ok(page("Home", images=[frame]))
        server.routes = routes
        crawl(tmp_path, settings(server.url()))
        assert frame in states(tmp_path)
        assert server.url("/behind", FOREIGN) not in states(tmp_path)
        add.add(tmp_path, [server.url(), frame, server.url("/", "127.0.0.4")], NOTHING)
        assert capsys.readouterr().out.startswith("2 seeds added; 1 known already")
        assert resumed(tmp_path).code is ExitCode.DONE
        assert states(tmp_path)[server.url("/behind", FOREIGN)] == "archived"
        assert server.url("/", "127.0.0.4") in states(tmp_path)
    sound(tmp_path)


def test_no_change_of_the_settings_is_lost(tmp_path: Path) -> None:
    """Twelve seeds at the same time, from threads that know nothing of each other, beside a crawl."""
    gate = Gate()

    async def act(wanted: Settings) -> None:
        async with held(tmp_path, wanted, gate):
            adding = (
                asyncio.to_thread(add.add, tmp_path, [f"http://127.0.0.1:9/{number}"], NOTHING) for number in range(12)
            )
            await asyncio.gather(*adding)
            gate.open()

    with RawServer({"/": Answer((gate, NOT_FOUND, End.CLOSE))}) as server:
        wanted = settings(server.url(), retries=0)
        asyncio.run(act(wanted))
    seeds = read_settings(tmp_path / "crawl.toml")["seeds"]
    assert sorted(seeds[1:]) == sorted(f"http://127.0.0.1:9/{number}" for number in range(12))
    known = {str(url) for (url,) in rows(tmp_path, "SELECT urls.url FROM seeds JOIN urls ON urls.id = seeds.url")}
    assert known == set(seeds)


def test_a_crawl_does_not_begin_with_settings_that_have_changed_since(tmp_path: Path) -> None:
    with RawServer({"/": ok("home")}) as server:
        wanted = settings(server.url())
        crawl(tmp_path, wanted)
        read = (tmp_path / "crawl.toml").read_text()
        add.add(tmp_path, [server.url("/new")], NOTHING)

        async def begin() -> None:
            async with build.open_crawl(tmp_path, wanted, resume=True, text=toml.render(wanted), read=read):
                raise AssertionError("it was opened")

        with pytest.raises(ConfigError, match="has just been changed by someone else"):
            asyncio.run(begin())
        assert read_settings(tmp_path / "crawl.toml")["seeds"] == (server.url(), server.url("/new"))


def test_what_is_due_again_survives_a_lost_database(tmp_path: Path) -> None:
    """Rebuilt from the files, the newest answer is the last word, and nothing counts as settled twice."""
    with RawServer({"/": in_turn(keep(NOT_FOUND), ok("here"))}) as server:
        wanted = settings(server.url())
        crawl(tmp_path, wanted)
        retried(tmp_path, server.url())
        resumed(tmp_path)
        asyncio.run(rebuild.rebuilt(tmp_path, wanted, lambda *_: None))
    assert rows(tmp_path, "SELECT state, status, requeued FROM urls WHERE priority > 0") == [("archived", 200, 1)]
    sound(tmp_path)


def test_nobody_waits_for_the_other(tmp_path: Path) -> None:
    """Whoever holds the database for a moment is waited for."""
    with RawServer({"/": keep(NOT_FOUND)}) as server:
        crawl(tmp_path, settings(server.url()))
    with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, db.execute, ["COMMIT"])
        timer.start()
        retried(tmp_path, status=("404",))
        timer.join()
    assert list(states(tmp_path).values()).count("waiting") == 1


def test_version_of_the_data(tmp_path: Path) -> None:
    """One's own writing is no news, another's is. Seeds are orders; the throttles of a batch are not."""

    async def act() -> Any:
        mine = await SqliteFrontier.open(tmp_path / "crawl.db")
        theirs = await SqliteFrontier.open(tmp_path / "crawl.db")
        try:
            first = await mine.written_by_others()
            await mine.add_seeds(["http://a.example/"])
            own = await mine.written_by_others()
            await theirs.add_seeds(["http://b.example/"])
            seeds, nothing = await mine.written_by_others(), await mine.written_by_others()
            await theirs.settle((), (), {1: ThrottleState(rate=1.0)})
            return first, own, seeds, nothing, await mine.written_by_others()
        finally:
            await mine.close()
            await theirs.close()

    nothing = Written(rows=False, orders=False, cookies=False)
    assert asyncio.run(act()) == (
        nothing,
        nothing,
        Written(rows=True, orders=True, cookies=False),
        nothing,
        Written(rows=True, orders=False, cookies=False),
    )
