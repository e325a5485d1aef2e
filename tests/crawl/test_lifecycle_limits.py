"""Limits end a crawl early, in order; with a higher limit it goes on to the same end."""

from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import captured, rows, states
from fixtures.command import archiver
from fixtures.crawl_in_process import crawl
from fixtures.flag import Gate
from fixtures.rawserver import Answer, End, RawServer, Route
from fixtures.sites import PIXEL, message, ok, page, tree

SITE = tree(30)


def _visited(directory: Path) -> int:
    return len([url for url, _ in captured(directory) if not url.endswith("/robots.txt")])


@pytest.mark.parametrize("limit", [1, 2, 10, 37])
def test_max_urls(tmp_path: Path, limit: int) -> None:
    """Exactly so many, and then not one more until the limit is raised."""
    with RawServer(SITE.routes) as server:
        assert crawl(tmp_path, server.url(), traps="off", max_urls=limit).code is ExitCode.LIMIT
        assert _visited(tmp_path) == limit
        again = crawl(tmp_path, server.url(), traps="off", max_urls=limit, resume=True)
        assert again.code is ExitCode.LIMIT
        assert again.reason == f"--max-urls {limit} is reached"
        assert _visited(tmp_path) == limit
        assert crawl(tmp_path, server.url(), traps="off", max_urls=1000, resume=True).code is ExitCode.DONE
        assert sorted(server.log.targets()) == sorted({*SITE.reachable, "/robots.txt"})


def test_a_limit_that_is_just_enough_is_no_limit(tmp_path: Path) -> None:
    with RawServer(SITE.routes) as server:
        assert crawl(tmp_path, server.url(), traps="off", max_urls=len(SITE.reachable)).code is ExitCode.DONE


def test_what_robots_txt_forbids_is_not_counted(tmp_path: Path) -> None:
    links = [f"/no/{number}" for number in range(20)]
    rules = message("200 OK", b"User-agent: *\nDisallow: /no/\n", content_type="text/plain")
    routes: dict[str, Route] = {"/robots.txt": rules, "/": ok(page("Start", [*links, "/yes"])), "/yes": ok("yes")}
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), traps="off", max_urls=2).code is ExitCode.DONE
        assert server.log.targets() == ["/robots.txt", "/", "/yes"]


def test_what_lies_inside_is_not_counted(tmp_path: Path) -> None:
    """Addresses of a private network, which a page of the site names, are never gone to."""
    inside = [f"http://127.0.0.9/{number}.gif" for number in range(5)]
    with RawServer({"/": ok(page("Start", ["/yes"], inside)), "/yes": ok("yes")}) as server:
        assert crawl(tmp_path, server.url(), traps="off", robots="ignore", max_urls=3).code is ExitCode.DONE
        assert server.log.targets() == ["/", "/yes"]
    assert rows(tmp_path, "SELECT count(*) FROM urls WHERE failure = 'private'") == [(5,)]


def test_max_bytes(tmp_path: Path) -> None:
    with RawServer(SITE.routes) as server:
        ending = crawl(tmp_path, server.url(), traps="off", max_bytes=3000, host_concurrency=1)
        assert ending.code is ExitCode.LIMIT
        assert ending.reason == "--max-bytes 3000 is reached"
        assert 0 < _visited(tmp_path) < len(SITE.reachable)
        assert crawl(tmp_path, server.url(), traps="off", resume=True).code is ExitCode.DONE
        assert sorted(server.log.targets()) == sorted({*SITE.reachable, "/robots.txt"})


def test_max_time(tmp_path: Path) -> None:
    """What is in flight has the drain timeout to finish, and is cut then."""
    gate = Gate()
    slow = Answer((gate, message("200 OK", b"slow")), End.CLOSE)
    routes = {"/": ok(page("Start", ["/slow", "/fast"])), "/slow": slow, "/fast": ok("fast")}
    with RawServer(routes) as server:
        ending = crawl(tmp_path, server.url(), traps="off", max_time=0.5, drain_timeout=0.5)
        assert ending.code is ExitCode.LIMIT
        assert ending.reason == "--max-time 0.5 is reached"
        assert rows(tmp_path, "SELECT state FROM urls WHERE url LIKE '%/slow'") == [("waiting",)]
        gate.open()
        assert crawl(tmp_path, server.url(), resume=True).code is ExitCode.DONE
    assert set(states(tmp_path).values()) == {"archived"}


def test_small_files_and_large_answers(tmp_path: Path) -> None:
    """Files rotate at their size; what is large goes to a file of its own, whole."""
    large = bytes(range(256)) * (40 << 10)
    pictures = [f"/{number}.bin" for number in range(3)]
    routes = {"/": ok(page("Start", [f"/p{n}" for n in range(40)], pictures)), **dict.fromkeys(pictures, ok(large))}
    routes |= {f"/p{number}": ok(page(f"{number}") + "x" * 300, "text/html") for number in range(40)}
    routes["/pixel.gif"] = ok(PIXEL)
    with RawServer(routes) as server:
        ran = archiver(
            *("crawl", server.url(), "-o", "c", "--rate=0", "--warc-size=20000", "--digest=sha1", "--traps=off"),
            *("--no-metadata-warc", "--dedup=off", "--probe=off"),
            cwd=tmp_path,
        )
        assert ran.returncode == ExitCode.DONE, ran.stderr
    checked = archiver("verify", "c", cwd=tmp_path)
    assert checked.returncode == ExitCode.DONE, checked.stdout
    files = sorted((tmp_path / "c" / "archive").iterdir())
    assert len(files) > 5
    lines = (tmp_path / "c" / "indexes" / "index.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    assert len(lines) == len(set(lines)) == 45
