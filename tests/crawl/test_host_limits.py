"""What one host may be asked for at most: not one URL more, the rest waits, and with a larger limit it goes on."""

import asyncio
import json
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from archiver.config import toml
from archiver.config.host_rules import HOST_RULE
from archiver.config.settings import Settings, with_values
from archiver.crawl.build import open_crawl
from archiver.crawl.recovery.rebuild import rebuilt
from archiver.model import ExitCode
from fixtures import crawl_in_process
from fixtures.archives import captured, rows, states
from fixtures.command import archiver
from fixtures.flag import Gate
from fixtures.rawserver import Answer, End, RawServer, Route, keep
from fixtures.sites import message, ok, page, redirect, tree

SITE = tree(30)
HOSTS = ("127.0.0.1", "127.0.0.2")
ALL = {*SITE.reachable, "/robots.txt"}
LINKS = [f"/p{number}" for number in range(20)]


crawl = partial(crawl_in_process.crawl, traps="off")  # the pages of these sites are all the same


def _visited(directory: Path) -> Counter[str]:
    """How many URLs of each host were captured, robots.txt aside, and each but once."""
    urls = [url for url, _ in captured(directory) if not url.endswith("/robots.txt")]
    assert len(urls) == len(set(urls))
    return Counter(url.split("/")[2].partition(":")[0] for url in urls)


@pytest.mark.parametrize("limit", [1, 2, 11])
def test_urls_of_each_host(tmp_path: Path, limit: int) -> None:
    """Exactly so many of each, over all runs; robots.txt besides; and then to the end."""
    with RawServer(SITE.routes, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        ending = crawl(tmp_path, *seeds, max_urls_per_host=limit)
        assert ending.code is ExitCode.LIMIT
        waiting = rows(tmp_path, "SELECT count(*) FROM urls WHERE state = 'waiting'")[0][0]
        assert ending.reason == (f"--max-urls-per-host {limit} is reached by 2 hosts, for which {waiting} URLs wait")
        assert _visited(tmp_path) == dict.fromkeys(HOSTS, limit)
        asked = len(server.log)
        assert crawl(tmp_path, *seeds, max_urls_per_host=limit, resume=True) == ending
        assert len(server.log) == asked
        more = crawl(tmp_path, *seeds, max_urls_per_host=limit + 3, resume=True)
        assert more.code is ExitCode.LIMIT
        assert _visited(tmp_path) == dict.fromkeys(HOSTS, limit + 3)
        assert crawl(tmp_path, *seeds, resume=True).code is ExitCode.DONE
        assert Counter(server.log.targets()) == dict.fromkeys(ALL, 2)
    assert rows(tmp_path, "SELECT visited FROM hosts") == [(len(SITE.reachable),)] * 2


def test_each_host_has_the_limits_of_its_rule(tmp_path: Path) -> None:
    """Exactly so many URLs of each, over all runs; `urls` and `explain` name the limit and the rule."""
    rules = (HOST_RULE.parse(f"{HOSTS[0]} max-urls-per-host=3"), HOST_RULE.parse("* max-urls-per-host=7"))
    with RawServer(SITE.routes, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        run = partial(crawl, tmp_path / "c", *seeds, max_urls_per_host=1, host=rules)
        ending = run()
        assert ending.code is ExitCode.LIMIT
        assert _visited(tmp_path / "c") == {HOSTS[0]: 3, HOSTS[1]: 7}
        assert "--max-urls-per-host 3 is reached by 1 host," in ending.reason
        assert "--max-urls-per-host 7 is reached by 1 host," in ending.reason
        asked = len(server.log)
        assert run(resume=True) == ending
        assert len(server.log) == asked
        values = {**crawl_in_process.UNLIMITED, "seeds": seeds, "max_urls_per_host": 1, "host": rules}
        (tmp_path / "c/crawl.toml").write_text(toml.render(with_values(Settings(), values)))
        (waits,) = rows(tmp_path / "c", "SELECT min(url) FROM urls WHERE state = 'waiting'")[0]
        said = archiver("explain", "c", str(waits), cwd=tmp_path).stdout
        assert f"max-urls-per-host: 3 (host[0] {HOSTS[0]})" in said
        assert "its host has reached max-urls-per-host: 3" in said
        listed = archiver("urls", "c", "--state", "waiting", "--why", cwd=tmp_path).stdout.splitlines()
        assert {line.rpartition(": ")[2].split(";")[0] for line in listed} == {"3", "7"}
        shown = archiver("status", "c", cwd=tmp_path).stdout
        assert all(f"held back by max-urls-per-host: {limit}" in shown for limit in (3, 7))
        free = (HOST_RULE.parse("* max-urls-per-host=0"),)
        assert crawl(tmp_path / "c", *seeds, max_urls_per_host=1, host=free, resume=True).code is ExitCode.DONE
        assert Counter(server.log.targets()) == dict.fromkeys(ALL, 2)


def test_each_host_has_the_bytes_of_its_rule(tmp_path: Path) -> None:
    large = ok(b"x" * 5000, "application/octet-stream")
    routes: dict[str, Route] = {"/": ok(page("Start", LINKS)), **dict.fromkeys(LINKS, large)}
    rules = (HOST_RULE.parse(f"{HOSTS[1]} max-bytes-per-host=20k"),)
    with RawServer(routes, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        assert crawl(tmp_path, *seeds, host=rules, host_concurrency=1).code is ExitCode.LIMIT
        asked = Counter(row.name for row in server.log)
    assert asked[HOSTS[0]] == len(LINKS) + 2
    assert 4 <= asked[HOSTS[1]] - 2 <= 5


def test_a_host_at_its_limit_holds_no_other_up(tmp_path: Path) -> None:
    """Only the small one is done when the crawl ends, and a limit that is just enough is none."""
    with RawServer(tree(5).routes) as small, RawServer(SITE.routes) as large:
        enough = len(tree(5).reachable)
        ending = crawl(tmp_path, small.url(), large.url(), max_urls_per_host=enough)
        assert ending.code is ExitCode.LIMIT
        assert "is reached by 1 host," in ending.reason
        found = states(tmp_path)
        assert {state for url, state in found.items() if url.startswith(small.url(""))} == {"archived"}
        assert list(_visited(tmp_path).values()) == [2 * enough]
        for number in range(enough + 1, len(SITE.reachable), 5):
            assert (
                crawl(tmp_path, small.url(), large.url(), max_urls_per_host=number, resume=True).code is ExitCode.LIMIT
            )
        last = crawl(tmp_path, small.url(), large.url(), max_urls_per_host=len(SITE.reachable), resume=True)
        assert last.code is ExitCode.DONE


def test_bytes_of_each_host(tmp_path: Path) -> None:
    """What is under way may finish; then not one more request, in this run or another."""
    large = ok(b"x" * 5000, "application/octet-stream")
    routes: dict[str, Route] = {"/": ok(page("Start", LINKS)), **dict.fromkeys(LINKS, large)}
    with RawServer(routes) as server, RawServer(tree(5).routes) as other:
        seeds = (server.url(), other.url())
        ending = crawl(tmp_path, *seeds, max_bytes_per_host=20_000, host_concurrency=1)
        assert ending.code is ExitCode.LIMIT
        assert ending.reason.startswith("--max-bytes-per-host 20000 is reached by 1 host, for which 1")
        asked = len(server.log)
        assert 4 <= asked - len(("/robots.txt", "/")) <= 5
        assert crawl(tmp_path, *seeds, max_bytes_per_host=20_000, resume=True) == ending
        assert len(server.log) == asked
        assert crawl(tmp_path, *seeds, resume=True).code is ExitCode.DONE
        assert sorted(server.log.targets()) == sorted({"/robots.txt", "/", *LINKS})
    received = rows(tmp_path, "SELECT sum(received) FROM captures")
    assert rows(tmp_path, "SELECT sum(received) FROM hosts") == received


def test_the_screen_shows_what_is_held_back(tmp_path: Path) -> None:
    """And not as what the crawl waits for."""
    gate = Gate()
    slow = Answer((gate, message("200 OK", b"slow")), End.CLOSE)

    async def run() -> None:
        with RawServer({"/": ok(page("Start", LINKS))}) as server, RawServer({"/": slow}) as other:
            settings = crawl_in_process.settings(server.url(), other.url(), max_urls_per_host=1, traps="off")
            async with open_crawl(tmp_path, settings, resume=False) as lifetime, asyncio.timeout(300):
                ending = asyncio.create_task(lifetime.run())
                await gate.arrived.reached()
                shown: dict[str, str] = {}
                while "limit reached" not in shown.values():  # looked at as the screen looks at it
                    await asyncio.sleep(0.01)
                    shown = {line.key: line.why for line in lifetime.snapshot().hosts}
                assert shown[server.url("")] == "limit reached"
                gate.open()
                assert (await ending).code is ExitCode.LIMIT

    asyncio.run(run())


def test_what_robots_txt_forbids_costs_nothing(tmp_path: Path) -> None:
    forbidden = [f"/no/{number}" for number in range(20)]
    rules = message("200 OK", b"User-agent: *\nDisallow: /no/\n", content_type="text/plain")
    routes: dict[str, Route] = {"/robots.txt": rules, "/": ok(page("Start", [*forbidden, "/yes"])), "/yes": ok("yes")}
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), max_urls_per_host=2).code is ExitCode.DONE
        assert server.log.targets() == ["/robots.txt", "/", "/yes"]


def test_urls_that_nobody_asked_for_cost_nothing(tmp_path: Path) -> None:
    """Where robots.txt cannot be had all URLs of a host fail; none of them has to wait for a limit."""
    closed = {"/robots.txt": keep(message("500 Internal Server Error", b"no\n"))}
    with RawServer(closed) as server:
        seeds = [server.url(f"/{number}") for number in range(5)]
        assert crawl(tmp_path, *seeds, max_urls_per_host=2, robots_patience=1.0).code is ExitCode.NO_SEED
    assert set(states(tmp_path).values()) == {"archived", "failed"}
    assert rows(tmp_path, "SELECT visited FROM hosts") == [(0,)]


def test_a_url_that_is_tried_again_is_one(tmp_path: Path) -> None:
    answers = iter([keep(message("503 Service Unavailable", b"later\n"))])
    routes: dict[str, Route] = {
        "/": ok(page("Start", ["/busy"])),
        "/busy": lambda _: next(answers, ok("fine")),
    }
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), max_urls_per_host=3).code is ExitCode.DONE
        assert server.log.targets() == ["/robots.txt", "/", "/busy", "/busy"]
    assert rows(tmp_path, "SELECT visited FROM hosts") == [(2,)]


def test_a_robots_txt_that_others_wait_for_is_asked_all_the_same(tmp_path: Path) -> None:
    """The host that has spent its URLs has the rules of another one too."""
    rules = message("200 OK", b"User-agent: *\nDisallow: /no\n", content_type="text/plain")
    with RawServer({"/": ok(page("Start", LINKS)), "/rules": keep(rules)}) as server:
        assert crawl(tmp_path, server.url(), max_urls_per_host=1).code is ExitCode.LIMIT
        moved = redirect(server.url("/rules"))
        with RawServer({"/robots.txt": moved, "/no": ok("no"), "/yes": ok("yes")}) as other:
            seeds = [server.url(), other.url("/no"), other.url("/yes")]
            assert crawl(tmp_path, *seeds, max_urls_per_host=1, resume=True).code is ExitCode.LIMIT
        assert server.log.targets() == ["/robots.txt", "/", "/rules"]
        assert other.log.targets() == ["/robots.txt", "/yes"]


def test_it_is_told(tmp_path: Path) -> None:
    """By the command, `status`, `explain` and `urls`; and resume takes a larger limit."""
    with RawServer({"/": ok(page("Start", LINKS)), **dict.fromkeys(LINKS, ok("page"))}) as server:
        ran = archiver(
            "crawl",
            server.url(),
            "-o",
            "c",
            "--rate=0",
            "--traps=off",
            "--probe=off",
            "--max-urls-per-host=3",
            cwd=tmp_path,
        )
        assert ran.returncode == ExitCode.LIMIT
        assert "--max-urls-per-host 3 is reached by 1 host, for which 18 URLs wait" in ran.stderr
        status = archiver("status", "c", cwd=tmp_path).stdout
        assert "18 waiting, 3 archived, held back by max-urls-per-host: 3" in status
        told = json.loads(archiver("explain", "c", server.url("/p9"), "--json", cwd=tmp_path).stdout)
        assert told["waits_for"][0] == "a larger limit: its host has reached max-urls-per-host: 3"
        assert told["reason"] == "its host has reached max-urls-per-host: 3"
        listed = archiver("urls", "c", "--state", "waiting", "--why", cwd=tmp_path).stdout.splitlines()
        assert len(listed) == 18
        assert all(line.endswith("waiting: its host has reached max-urls-per-host: 3") for line in listed)
        again = archiver("resume", "c", "--max-urls-per-host=0", cwd=tmp_path)
        assert again.returncode == ExitCode.DONE, again.stderr
    assert set(states(tmp_path / "c").values()) == {"archived"}


def test_a_database_made_anew_knows_what_was_spent(tmp_path: Path) -> None:
    with RawServer(SITE.routes) as server:
        ending = crawl(tmp_path, server.url(), max_urls_per_host=7)
        before = rows(tmp_path, "SELECT visited, received FROM hosts")
        settings = crawl_in_process.settings(server.url(), max_urls_per_host=7, traps="off")
        assert asyncio.run(rebuilt(tmp_path, settings, lambda *_: None)).visits == 8
        assert rows(tmp_path, "SELECT visited, received FROM hosts") == before
        assert crawl(tmp_path, server.url(), max_urls_per_host=7, resume=True) == ending
    assert list(_visited(tmp_path).values()) == [7]
