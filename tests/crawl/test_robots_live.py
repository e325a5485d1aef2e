"""robots.txt as the real command keeps to it: what the server saw, and what the frontier and the WARCs tell of it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from archiver.warc.reader import Record, scan
from fixtures.command import archiver
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page, redirect
from fixtures.thread_delay import MOST_JITTER

DAY = 86_400


def rules(text: str) -> Answer:
    return ok(text, "text/plain")


def site(pages: int) -> dict[str, Route]:
    names = [f"/p{number}.html" for number in range(pages - 1)]
    return {"/": ok(page("Front", names)), **{name: ok(page(name)) for name in names}}


def turns(*answers: Sendable) -> Callable[[Row], Sendable]:
    """One answer after the other, the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    ran = archiver(*arguments, cwd=folder)
    assert ran.returncode == code, ran.stderr
    return ran.stderr


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "c/crawl.db")) as db, db:
        return list(db.execute(sql))


def notes(folder: Path) -> dict[object, tuple[object, object]]:
    return {url: (state, note) for url, state, note in rows(folder, "SELECT url, state, note FROM urls")}


def metadata(folder: Path, address: str) -> list[bytes]:
    """The metadata blocks of *address*, in the order of the files."""
    blocks = []
    for path in sorted((folder / "c/archive").iterdir()):
        with path.open("rb") as file:
            for record in scan(file):
                assert isinstance(record, Record)
                if record.type == "metadata" and record.first("WARC-Target-URI") == address:
                    blocks.append(b"".join(record.pieces()))
    return blocks


def aged(folder: Path, seconds: int) -> None:
    """As if all that has been learned of hosts had been learned so much earlier."""
    rows(folder, f"UPDATE hosts SET robots_at = robots_at - {seconds}")
    rows(folder, f"UPDATE urls SET settled = settled - {seconds}")


def test_an_error_is_asked_about_again_until_there_are_rules(tmp_path: Path) -> None:
    error, forbids = keep(message("500 Internal Server Error")), rules("User-agent: *\nDisallow: /p1")
    with RawServer({**site(3), "/robots.txt": turns(error, error, forbids)}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0")
        assert server.log.targets() == ["/robots.txt"] * 3 + ["/", "/p0.html"]
        asked = [row.arrived for row in server.log][:3]
        assert asked[1] - asked[0] >= 2 - MOST_JITTER
        assert asked[2] - asked[1] >= 4 - MOST_JITTER
        assert notes(tmp_path)[server.url("/p1.html")] == ("excluded", "robots.txt forbids it: Disallow: /p1")
    run(tmp_path, "verify", "c")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (keep(message("500 Internal Server Error")), "answered 500"),
        (keep(message("429 Too Many Requests")), "answered 429 or 503, or was cut short,"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\n", "answered 429 or 503, or was cut short,"),
    ],
    ids=["500", "429", "cut"],
)
def test_an_error_that_stays_closes_the_host_and_says_so(tmp_path: Path, answer: Route, said: str) -> None:
    with RawServer({**site(3), "/robots.txt": answer}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--robots-patience=3", code=6)
        assert server.log.targets() == ["/robots.txt"] * 2
        state, note = notes(tmp_path)[server.url()]
        assert state == "failed"
        assert f"robots.txt {said} until --robots-patience was over" in str(note)


def test_rules_of_yesterday_are_asked_for_again_and_hold_until_then(tmp_path: Path) -> None:
    old, new = rules("User-agent: *\nDisallow: /p0"), rules("User-agent: *\nDisallow: /p2")
    moved = redirect("/rules.txt")
    with RawServer({**site(4), "/robots.txt": turns(old, moved), "/rules.txt": new}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--max-urls=1", code=5)
        aged(tmp_path, DAY - 60)
        run(tmp_path, "resume", "c", "--max-urls=2", code=5)
        assert server.log.targets() == ["/robots.txt", "/", "/p1.html"]
        aged(tmp_path, 61)
        run(tmp_path, "resume", "c", "--max-urls=0", "--host-concurrency=1")
        assert server.log.targets()[3] == "/robots.txt"
        assert "/rules.txt" in server.log.targets()
        assert notes(tmp_path)[server.url("/p0.html")][0] == "excluded"
        assert len(metadata(tmp_path, server.url("/robots.txt"))) == 2
        before = rows(tmp_path, "SELECT url, state, status, tries, requeued FROM urls WHERE priority < 0 ORDER BY url")
        bodies = "SELECT body FROM hosts JOIN robots ON robots.url = hosts.robots_url WHERE robots = 'known'"
        assert rows(tmp_path, bodies) == [(b"User-agent: *\nDisallow: /p2",)]
        run(tmp_path, "verify", "c")
        run(tmp_path, "rebuild", "c")
        after = rows(tmp_path, "SELECT url, state, status, tries, requeued FROM urls WHERE priority < 0 ORDER BY url")
        assert after == before
        assert rows(tmp_path, bodies) == [(b"User-agent: *\nDisallow: /p2",)]
        run(tmp_path, "verify", "c")


def test_rules_of_yesterday_hold_while_there_are_no_newer_ones(tmp_path: Path) -> None:
    answers = turns(rules("User-agent: *\nDisallow: /p0"), keep(message("503 Service Unavailable")))
    with RawServer({**site(3), "/robots.txt": answers}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--max-urls=1", code=5)
        aged(tmp_path, DAY)
        run(tmp_path, "resume", "c", "--max-urls=0", "--robots-patience=1")
        assert sorted(server.log.targets()) == ["/", "/p1.html", "/robots.txt", "/robots.txt"]
        assert notes(tmp_path)[server.url("/p0.html")][0] == "excluded"


def test_a_host_that_was_closed_is_asked_again_by_a_later_run(tmp_path: Path) -> None:
    answers = turns(keep(message("500 Internal Server Error")), rules(""))
    with RawServer({**site(3), "/robots.txt": answers}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--robots-patience=1", code=6)
        rows(tmp_path, "UPDATE urls SET state = 'waiting', tries = 0 WHERE priority >= 0")
        run(tmp_path, "resume", "c")
        assert sorted(server.log.targets()) == sorted([*site(3), "/robots.txt", "/robots.txt"])


def test_observe_notes_what_would_have_been_refused(tmp_path: Path) -> None:
    with RawServer({**site(3), "/robots.txt": rules("User-agent: *\nDisallow: /p1")}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--robots=observe")
        assert server.log.targets()[0] == "/robots.txt"
        assert set(server.log.targets()) == {"/robots.txt", *site(3)}
        found = notes(tmp_path)
        assert found[server.url("/p1.html")] == ("archived", "robots.txt would have forbidden it")
        assert found[server.url("/p0.html")] == ("archived", "")
        (line,) = [line for line in (tmp_path / "c/logs/crawl.log").read_text().splitlines() if "/p1.html" in line]
        assert line.endswith("robotExcluded")
        assert [b"remark: robotExcluded" in block for block in metadata(tmp_path, server.url("/p1.html"))] == [True]


def test_observe_does_not_wait_for_a_robots_txt_that_fails(tmp_path: Path) -> None:
    with RawServer({**site(3), "/robots.txt": keep(message("500 Internal Server Error"))}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--robots=observe")
        assert sorted(server.log.targets()) == sorted([*site(3), "/robots.txt"])


def nofollow_site() -> dict[str, Route]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: %b\r\nContent-Length: %d\r\n\r\n%b"
    body = b"<a href=/c.html>c</a><img src=/c.png>"
    return {
        "/": ok("<a href=/a.html>a</a> <a href=/b.html>b</a> <a rel='ugc NoFollow' href=/r.html>r</a>"),
        "/a.html": ok("<meta name=ROBOTS content='noindex, NoFollow'><a href=/d.html>d</a><img src=/d.png>"),
        "/b.html": keep(head % (b"otherbot: none, archiver: nofollow", len(body), body)),
    }


def test_nofollow_is_a_setting(tmp_path: Path) -> None:
    with RawServer(nofollow_site()) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--nofollow=obey")
        assert set(server.log.targets()) == {"/robots.txt", *nofollow_site(), "/c.png", "/d.png"}
        refused = {
            ("/c.html", "nofollow: X-Robots-Tag archiver"),
            ("/d.html", "nofollow: meta robots"),
            ("/r.html", "nofollow: rel"),
        }
        found = rows(tmp_path, "SELECT url, rule FROM refusals")
        assert set(found) == {(server.url(path), rule) for path, rule in refused}
        assert sorted(rows(tmp_path, "SELECT rule, links FROM refusal_counts")) == sorted(
            (rule, 1) for _, rule in refused
        )
        run(tmp_path, "rebuild", "c")
        assert set(rows(tmp_path, "SELECT url, rule FROM refusals")) == set(found)


def test_nofollow_is_ignored_unless_it_is_asked_for(tmp_path: Path) -> None:
    with RawServer(nofollow_site()) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0")
        assert set(server.log.targets()) >= {"/c.html", "/d.html", "/r.html"}


def test_a_crawl_delay_is_capped(tmp_path: Path) -> None:
    with RawServer({**site(3), "/robots.txt": rules("User-agent: *\nCrawl-delay: 1000")}) as server:
        run(tmp_path, "crawl", server.url(), "-o", "c", "--probe=off", "--rate=0", "--crawl-delay-cap=1")
        times = [row.arrived for row in server.log]
        assert len(times) == 4
        assert all(after - before >= 1 - MOST_JITTER for before, after in pairwise(times[1:]))


def test_a_group_for_the_product_counts_under_any_name(tmp_path: Path) -> None:
    with RawServer({**site(3), "/robots.txt": rules("User-agent: archiver\nDisallow: /p1")}) as server:
        run(
            tmp_path,
            "crawl",
            server.url(),
            "-o",
            "c",
            "--probe=off",
            "--rate=0",
            "--user-agent=Mozilla/5.0 (X11) Other/1",
        )
        assert set(server.log.targets()) == {"/robots.txt", "/", "/p0.html"}


def test_a_file_of_wildcards_does_not_hold_up_other_hosts(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "127.0.0.2")
    hostile = "User-agent: *\n" + "".join(f"Disallow: /*{n}*a*b*c*{n}$\n" for n in range(20_000))
    with RawServer({**site(6), f"//{hosts[0]}/robots.txt": rules(hostile)}, hosts=hosts) as server:
        run(tmp_path, "crawl", *(server.url("/", host) for host in hosts), "-o", "c", "--probe=off", "--rate=0")
        assert {row.target for row in server.log if row.host == hosts[0]} == {"/robots.txt", *site(6)}
