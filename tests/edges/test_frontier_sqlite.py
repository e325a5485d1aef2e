import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import settle
from archiver.frontier.connections import begin
from archiver.frontier.database import VERSION, SqliteConnection
from archiver.frontier.links import RecentLinks
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Capture, Claim, Event, FileState, Hop, NewUrl, Refusal, Robots, Settlement, Span
from archiver.policy.limits import ThrottleState
from fixtures.archives import database_rows
from fixtures.queued_urls import waiting

Act = Callable[[SqliteFrontier], Awaitable[Any]]


def on(path: Path, act: Act) -> Any:
    """What *act* returns, done on the frontier at *path*, which is opened for it and closed again."""

    async def acted() -> Any:
        frontier = await SqliteFrontier.open(path)
        try:
            return await act(frontier)
        finally:
            await frontier.close()

    return asyncio.run(acted())


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    return database_rows(path, sql)


async def claim(frontier: SqliteFrontier, address: str) -> Claim:
    return (await waiting(frontier, [address]))[address]


def link(address: str, depth: int = 1, priority: int = 2, hop: Hop = Hop.LINK) -> NewUrl:
    return NewUrl(address, hop, "L" * depth, depth, 0, priority)


@pytest.fixture(name="path")
def database(crawl_folder: Path) -> Path:
    return crawl_folder / "crawl.db"


@pytest.fixture(name="file")
def database_file(tmp_path: Path) -> Path:
    return tmp_path / "crawl.db"


SEED = "http://a.example/"


def test_a_batch_is_all_or_nothing(path: Path) -> None:
    """The statement that fails stands last; of what was written before it nothing is there."""

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        good = Settlement(seed, Event.CAPTURE, 200, found=(link("http://b.example/"),), not_before=9e9)
        nowhere = Capture(SEED, 1, 200, "", "", 0, 0, "unknown.warc.gz", Span(0, 1), Span(1, 1), Span(2, 1))
        bad = good._replace(capture=nowhere._replace(mime=None))  # type: ignore[arg-type]
        with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
            await frontier.settle([good, bad._replace(robots=Robots(200, None))], [FileState("w", 5, closed=False)])  # type: ignore[arg-type]

    on(path, act)
    assert rows(path, "SELECT url, state, tries FROM urls") == [(SEED, "waiting", 0)]
    assert rows(path, "SELECT key, waiting, not_before FROM hosts") == [("http://a.example", 1, 0.0)]
    assert rows(path, "SELECT * FROM warcs") == []


def test_a_frontier_goes_on_after_a_failed_batch(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
            await frontier.settle([Settlement(seed, Event.CAPTURE, robots=Robots(200, None))], [])  # type: ignore[arg-type]
        await frontier.settle([Settlement(seed, Event.CAPTURE, 200)], [])
        assert (await frontier.counts()).archived == 1

    on(path, act)


def test_what_was_not_committed_is_not_there(path: Path) -> None:
    """As if the process had been killed inside a transaction: its connection is gone without a word."""

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        await frontier._on_writer(begin)
        seed = await claim(frontier, SEED)
        found = Settlement(seed, Event.CAPTURE, found=(link("http://b.example/"),))
        await frontier._on_writer(settle.settle, [found], [], RecentLinks())

    on(path, act)
    assert rows(path, "SELECT url, state FROM urls") == [(SEED, "waiting")]


@pytest.mark.parametrize("version", [-1, 0, 7, VERSION + 1])
def test_another_schema_version_is_refused(file: Path, version: int) -> None:
    on(file, lambda frontier: frontier.counts())
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = file.read_bytes()
    newer = "a newer archiver made it, so update this one, or " if version > VERSION else ""
    with pytest.raises(ConfigError, match=f"schema version {version}, .* needs {VERSION}; {newer}archiver rebuild "):
        on(file, lambda frontier: frontier.counts())
    assert file.read_bytes() == before


def test_somebody_elses_database_is_refused_and_left_alone(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE theirs (x)")
    before = file.read_bytes()
    with pytest.raises(ConfigError, match="not one of archiver's"):
        on(file, lambda frontier: frontier.counts())
    assert file.read_bytes() == before


def test_what_is_no_database_is_an_error_of_storage(file: Path) -> None:
    file.write_bytes(b"this is no database, but long enough to be looked at as one" * 100)
    with pytest.raises(ArchiveError, match=r"crawl\.db: "):
        on(file, lambda frontier: frontier.counts())


def test_a_damaged_database_is_an_error_of_storage(file: Path) -> None:
    async def grow(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([f"http://a.example/{n}" for n in range(2000)])

    on(file, grow)
    data = bytearray(file.read_bytes())
    for page in range(4096 * 3, len(data), 4096):
        data[page : page + 200] = b"\xff" * 200
    file.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"crawl\.db: "):
        on(file, lambda frontier: frontier.counts())


def test_a_folder_in_the_place_of_the_file(file: Path) -> None:
    file.mkdir()
    with pytest.raises(ArchiveError, match=r"crawl\.db: "):
        on(file, lambda frontier: frontier.counts())


def test_a_second_settlement_changes_nothing(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        await frontier.settle([Settlement(seed, Event.CAPTURE, 200, settled=5.0)], [])
        await frontier.settle([Settlement(seed, Event.RETRY, 503, due=99.0, settled=6.0)], [])
        await frontier.settle([Settlement(seed, Event.GIVE_UP, failure="dns", settled=7.0)], [])

    on(path, act)
    assert rows(path, "SELECT state, status, tries, due, failure, settled FROM urls") == [
        ("archived", 200, 1, 0.0, "", 5.0)
    ]
    assert rows(path, "SELECT waiting FROM hosts") == [(0,)]


def test_a_waiting_url_is_led_to_by_the_shortest_way(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED, "http://b.example/"])
        one, other = await claim(frontier, SEED), await claim(frontier, "http://b.example/")
        await frontier.settle([Settlement(one, Event.RETRY, found=(link("http://c.example/", 5, 6),))], [])
        await frontier.settle(
            [Settlement(other, Event.RETRY, found=(link("http://c.example/", 7, 0, Hop.REQUISITE),))], []
        )
        far = await claim(frontier, "http://c.example/")
        assert (far.depth, far.priority, far.via, far.seed, far.hop) == (5, 0, SEED, SEED, Hop.LINK)
        await frontier.settle([Settlement(other, Event.RETRY, found=(link("http://c.example/", 2, 3),))], [])
        near = await claim(frontier, "http://c.example/")
        assert (near.depth, near.priority, near.via, near.seed, near.path) == (2, 0, other.url, other.url, "LL")
        await frontier.settle([Settlement(near, Event.CAPTURE)], [])
        await frontier.settle([Settlement(other, Event.RETRY, found=(link("http://c.example/", 1, 2),))], [])

    on(path, act)
    assert rows(path, "SELECT depth FROM urls WHERE url = 'http://c.example/'") == [(2,)]


def test_refusals_are_counted_whole_and_kept_in_part(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "REFUSALS_KEPT", 10)

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        again = Refusal("https://x.example/again", "scope: host")
        many = tuple(Refusal(f"https://x.example/{n}", "scope: host") for n in range(50))
        others = (Refusal("https://x.example/y", "exclude[0]: y"), Refusal("http://y.example/", "scope: host"))
        for _ in range(20):
            await frontier.settle([Settlement(seed, Event.RETRY, refused=(again, again))], [])
        await frontier.settle([Settlement(seed, Event.RETRY, refused=(*many, *others))], [])
        await frontier.settle([Settlement(seed, Event.RETRY, refused=many[::-1])], [])

    on(path, act)
    counts = "SELECT rule, host, links, kept FROM refusal_counts ORDER BY host DESC, rule"
    assert rows(path, counts) == [
        ("exclude[0]: y", "https://x.example", 1, 1),
        ("scope: host", "https://x.example", 140, 10),
        ("scope: host", "http://y.example", 1, 1),
    ]
    kept = [row[0] for row in rows(path, "SELECT url FROM refusals WHERE rule = 'scope: host' ORDER BY url")]
    assert len(kept) == 11
    assert "https://x.example/again" in kept


def test_redirect_loops_are_named(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        addresses = [SEED, *(f"{SEED}{n}" for n in range(3))]
        for here, there in zip(addresses, [*addresses[1:], addresses[1]], strict=True):
            new = NewUrl(there, Hop.REDIRECT, "R", 0, 0, 1)
            visit = Settlement(await claim(frontier, here), Event.CAPTURE, 302, found=(new,), redirect=there)
            await frontier.settle([visit], [])

    on(path, act)
    notes = [row[0] for row in rows(path, "SELECT note FROM urls ORDER BY id")]
    assert notes == ["", "", "", f"redirect loop: back to {SEED}0"]


# --- robots.txt ----------------------------------------------------------------------------------------------------


async def asked(frontier: SqliteFrontier, key: str = "http://a.example") -> Claim:
    """The claim for robots.txt of a host, alone in its window."""
    host = next(row for row in await frontier.due_hosts(1.0, 9, ()) if row.key == key)
    (row,) = await frontier.ask_robots_of((host.id,))
    assert row.robots is None
    window = await frontier.window(host.id, 1.0, 9, prerequisites=True)
    assert [found.url for found in window.claims] == [f"{key}/robots.txt"]
    return window.claims[0]


@pytest.mark.parametrize("status", [0, 200, 404, 503])
def test_an_answer_for_robots_txt_is_kept(path: Path, status: int) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        robots = await asked(frontier)
        event = Event.CAPTURE if status else Event.GIVE_UP
        settled = await frontier.settle([Settlement(robots, event, robots=Robots(status, b"body"))], [])
        assert settled.resolved == {robots.host}
        assert settled.added == 1  # it waited meanwhile, as nobody could know who counts what is settled

    on(path, act)
    row = on(path, lambda frontier: frontier.host(1))
    assert row.robots == Robots(status, b"body")


@pytest.mark.parametrize("status", [200, 404])
def test_rules_hold_until_newer_ones_are_in(path: Path, status: int) -> None:
    """Also where the newer ones lie elsewhere, and where there are none to be had."""

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        first = await asked(frontier)
        await frontier.settle([Settlement(first, Event.CAPTURE, robots=Robots(status, b"old"), settled=5)], [])
        assert (await frontier.host(first.host)).asked == 5

        async def again() -> Claim:
            (row,) = await frontier.ask_robots_of((first.host,))
            assert (row.robots, row.asked) == (Robots(status, b"old"), float("inf"))
            window = await frontier.window(first.host, 1.0, 9, prerequisites=True)
            return window.claims[0]

        second = await again()
        assert (second.url, second.tries) == (first.url, 0)
        gone = Settlement(second, Event.CAPTURE, robots=Robots(503, b""), settled=6)
        assert (await frontier.settle([gone], [])).resolved == {first.host}
        row = await frontier.host(first.host)
        assert (row.robots, row.asked) == (Robots(status, b"old"), 6)

        moved = Robots(302, b"", redirect="http://b.example/rules")
        await frontier.settle([Settlement(await again(), Event.CAPTURE, robots=moved, settled=7)], [])
        row = await frontier.host(first.host)
        assert (row.robots, row.asked) == (Robots(status, b"old"), float("inf"))
        there = next(row for row in await frontier.due_hosts(9.0, 9, ()) if row.key == "http://b.example")
        way = (await frontier.window(there.id, 9.0, 9, prerequisites=True)).claims[0]
        await frontier.settle([Settlement(way, Event.CAPTURE, robots=Robots(200, b"new"), settled=8)], [])
        row = await frontier.host(first.host)
        assert (row.robots, row.asked) == (Robots(200, b"new"), 8)

    on(path, act)


def test_a_host_that_could_not_be_asked_has_no_rules_meanwhile(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        first = await asked(frontier)
        await frontier.settle([Settlement(first, Event.GIVE_UP, robots=Robots(0, b"connect: no"))], [])
        assert (await asked(frontier)).url == first.url

    on(path, act)


@pytest.mark.parametrize(("settled", "hosts"), [(86_000.0, 0), (87_000.0, 1)])
def test_a_robots_txt_of_yesterday_does_not_answer_for_another_host(path: Path, settled: float, hosts: int) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED, "http://b.example/"])
        first, other = await asked(frontier), await asked(frontier, "http://b.example")
        await frontier.settle([Settlement(first, Event.CAPTURE, robots=Robots(200, b"a"), settled=1)], [])
        moved = Robots(302, b"", redirect=first.url)
        await frontier.settle([Settlement(other, Event.CAPTURE, robots=moved, settled=settled)], [])
        window = await frontier.window(first.host, settled, 9, prerequisites=True)
        assert [claim.url for claim in window.claims] == [first.url] * hosts
        assert (await frontier.host(other.host)).robots == (None if hosts else Robots(200, b"a"))

    on(path, act)


def test_robots_txt_moves_to_other_hosts_and_answers_for_all_who_ask(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED, "http://b.example/"])
        one, other = await asked(frontier), await asked(frontier, "http://b.example")
        there = "http://c.example/rules"
        moved = Robots(301, b"", redirect=there)
        found = NewUrl(there, Hop.REDIRECT, "PR", 0, 0, -1)
        settled = await frontier.settle([Settlement(one, Event.CAPTURE, 301, robots=moved, found=(found,))], [])
        assert settled.added == 1 + 2  # where it leads, and the two that were asked for
        assert settled.resolved == {one.host}
        settled = await frontier.settle([Settlement(other, Event.CAPTURE, 301, robots=moved)], [])
        assert settled.added == 0
        target = await claim(frontier, there)
        assert (target.path, target.priority) == ("PR", -1)
        assert settled.hosts == {target.host}
        assert (await frontier.host(one.host)).robots is None
        settled = await frontier.settle([Settlement(target, Event.CAPTURE, robots=Robots(200, b"rules"))], [])
        assert settled.resolved == {one.host, other.host}
        for host in (one.host, other.host):
            assert (await frontier.host(host)).robots == Robots(200, b"rules")
        assert (await frontier.host(target.host)).robots is None

    on(path, act)


def test_robots_txt_that_leads_to_a_page_of_the_crawl_leaves_the_page_alone(path: Path) -> None:
    """Many sites send every unknown address to their front page."""

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        robots = await asked(frontier)
        found = NewUrl(SEED, Hop.REDIRECT, "PR", 0, 0, -1)
        moved = Settlement(robots, Event.CAPTURE, 302, robots=Robots(302, b"", redirect=SEED), found=(found,))
        assert (await frontier.settle([moved], [])).resolved == {robots.host}
        assert (await frontier.host(robots.host)).robots == Robots(302, b"")
        page = await claim(frontier, SEED)
        assert (page.path, page.priority) == ("", 1)

    on(path, act)


def test_robots_txt_that_leads_in_a_circle(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        here, there = await asked(frontier), "http://a.example/elsewhere"
        await frontier.settle([Settlement(here, Event.CAPTURE, 302, robots=Robots(302, b"", redirect=there))], [])
        back = await claim(frontier, there)
        await frontier.settle([Settlement(back, Event.CAPTURE, 302, robots=Robots(302, b"", redirect=here.url))], [])
        assert (await frontier.host(here.host)).robots == Robots(302, b"")

    on(path, act)


def test_seeds_given_again_do_not_hold_up_robots_txt(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        seeds = [SEED, "http://a.example/robots.txt"]
        await frontier.add_seeds(seeds)
        robots = await asked(frontier)
        assert await frontier.add_seeds(seeds) == 0
        window = await frontier.window(robots.host, 1.0, 9, prerequisites=True)
        assert window.claims == (robots,)

    on(path, act)


SCANS = re.compile(r"SCAN (urls|robots|via|begun|target)\b")


def test_nothing_that_is_done_all_the_time_or_at_the_start_looks_at_every_row(file: Path) -> None:
    said: list[str] = []

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        for connection in (frontier._writer, frontier._reader):
            await connection.run(SqliteConnection.set_trace_callback, said.append)  # type: ignore[arg-type]
        for prerequisites in (False, True):
            await frontier.window(1, 5.0, 9, prerequisites=prerequisites)
        await frontier.next_due(5.0)
        await frontier.due_hosts(5.0, 9, [2])
        robots = await asked(frontier)
        found = (link("http://b.example/"), link(SEED), NewUrl("http://c.example/", Hop.REDIRECT, "R", 0, 0, 1))
        refused = (Refusal("http://x.example/", "scope: host"),)
        batch = [
            Settlement(robots, Event.CAPTURE, robots=Robots(200, b"")),
            Settlement(seed, Event.RETRY, not_before=3.0, found=found, refused=refused, redirect="http://c.example/"),
        ]
        await frontier.settle(batch, [FileState("w", 5, closed=False)], {1: ThrottleState(1.0, 2.0, 3.0, "503")})
        await frontier.record_visits([seed])
        await frontier.captures("w", 0, 9)
        await frontier.sitemaps(0, 9)
        await frontier.counts()
        await frontier.seed_redirects()
        await frontier.seeds()
        await frontier.pattern_tallies(9)
        await frontier.files()
        await frontier.add_seeds([SEED])
        await frontier.correct_waits(1.0, 9.0)
        await frontier.has_answered(1)
        done = [sql for sql in said if re.match(r"\s*(SELECT|INSERT|UPDATE|WITH)\b", sql)]
        for sql in done:
            plan = [str(row[3]) for row in await frontier._rows(f"EXPLAIN QUERY PLAN {sql}")]
            assert not [step for step in plan if SCANS.match(step)], (sql, plan)
            if "sum(waiting)" not in sql and "SET not_before = 1.0 + 9.0" not in sql:  # once for a start
                assert not [step for step in plan if re.match(r"SCAN hosts\b(?! USING INDEX)", step)], (sql, plan)
            if "min(due)" in sql:
                assert any(re.search("USING.* INDEX urls_(later|next)", step) for step in plan), (sql, plan)
        for written in ("INTO urls", "INTO refusals", "INTO warcs", "json_each", "robots_next", "min(due)", "chain"):
            assert any(written in sql for sql in done), written

    on(file, act)


def test_a_guess_becomes_what_a_page_names_it_as(path: Path) -> None:
    """A certain way is nearer than any guess, goes sooner, and takes back what was given up as a guess."""
    image, gone = f"{SEED}a.png", f"{SEED}gone.png"

    def guessed(address: str, hops: str = "X") -> NewUrl:
        return NewUrl(address, Hop.SPECULATIVE, hops, 0, 0, 1 << 20)

    def shown(address: str) -> NewUrl:
        return NewUrl(address, Hop.REQUISITE, "LLE", 2, 0, 0)

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        await frontier.settle([Settlement(seed, Event.RETRY, found=(guessed(image), guessed(gone)))], [])
        given_up = Settlement(await claim(frontier, gone), Event.FORBID, failure="timeout", note="speculative")
        await frontier.settle([given_up], [])
        await frontier.settle([Settlement(seed, Event.RETRY, found=(guessed(gone, "LX"),))], [])
        assert (await frontier.counts()).excluded == 1
        settled = await frontier.settle([Settlement(seed, Event.RETRY, found=(shown(image), shown(gone)))], [])
        assert settled.added == 1
        assert settled.hosts == {seed.host}
        for address in (image, gone):
            now = await claim(frontier, address)
            assert (now.hop, now.path, now.depth, now.priority, now.tries) == (Hop.REQUISITE, "LLE", 2, 0, 0)
        await frontier.settle([Settlement(seed, Event.RETRY, found=(guessed(image),))], [])
        assert (await claim(frontier, image)).path == "LLE"

    on(path, act)
    assert rows(path, "SELECT waiting FROM hosts") == [(3,)]


def test_of_two_ways_in_one_batch_the_certain_one_holds(path: Path) -> None:
    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        guess = NewUrl(f"{SEED}a.png", Hop.SPECULATIVE, "X", 0, 0, 1 << 20)
        shown = NewUrl(f"{SEED}a.png", Hop.REQUISITE, "LE", 1, 0, 0)
        await frontier.settle([Settlement(seed, Event.RETRY, found=(guess, shown))], [])
        now = await claim(frontier, guess.url)
        assert (now.hop, now.path, now.priority) == (Hop.REQUISITE, "LE", 0)

    on(path, act)


def test_what_a_page_names_while_it_is_asked_for_as_a_guess_is_not_given_up(path: Path) -> None:
    image, style = f"{SEED}a.png", f"{SEED}a.css"

    async def act(frontier: SqliteFrontier) -> None:
        await frontier.add_seeds([SEED])
        seed = await claim(frontier, SEED)
        found = tuple(NewUrl(address, Hop.SPECULATIVE, "X", 0, 0, 1 << 20) for address in (image, style))
        await frontier.settle([Settlement(seed, Event.RETRY, found=found)], [])
        asked_for, styled = await claim(frontier, image), await claim(frontier, style)
        shown = tuple(NewUrl(address, Hop.REQUISITE, "LE", 1, 0, 0) for address in (image, style))
        await frontier.settle([Settlement(styled, Event.CAPTURE, 200)], [])
        await frontier.settle([Settlement(seed, Event.RETRY, found=shown)], [])
        settled = await frontier.settle([Settlement(asked_for, Event.FORBID, failure="timeout")], [])
        assert settled.added == 1
        now = await claim(frontier, image)
        assert (now.path, now.tries) == ("LE", 0)

    on(path, act)
    assert rows(path, "SELECT state, path FROM urls WHERE url LIKE '%.css'") == [("archived", "LE")]
