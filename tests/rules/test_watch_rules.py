"""Parts of the control room: the tail of a log, the queue of a viewer, suggested patterns, the file of users."""

import asyncio
import json
import random
import re
import sqlite3
import time
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.collection.crawl_log import LogLine
from archiver.collection.layout import Layout
from archiver.config.option_types import PATTERN, Pattern
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.errors import ConfigError
from archiver.frontier import totals
from archiver.frontier.database import schema_script
from archiver.policy.quotas import Quotas
from archiver.policy.url_forms import likeness
from archiver.tools.watch.guard import LIFE, Asking, Attempts, Guard, Origin, RefusedError
from archiver.tools.watch.patterns import ProblemScan, patterns, regex_of, suggestions
from archiver.tools.watch.reading import MOST, ListQuery, hosts, queue, urls
from archiver.tools.watch.starting import has_database
from archiver.tools.watch.tail import AT_ONCE, KEPT, WAITING, LogTail, Stream, Viewer, line_json, tidy
from archiver.tools.watch.users import Role, add_user, new_user, read_users
from fixtures import handmade_crawls

MOMENT = 1_795_000_000.25
LINE = LogLine(
    MOMENT, 200, 1234, "https://a.example/x y", "LLE", "https://a.example/", "text/html; charset=x", MOMENT - 1, 0.5,
    "sha1:X", ("a", "b,c"), "https://a.example/",
)  # fmt: skip


def test_a_line_of_the_log_is_read_as_it_was_written() -> None:
    assert json.loads(line_json(LINE.render().encode())) == {
        "at": MOMENT,
        "status": 200,
        "bytes": 1234,
        "url": "https://a.example/x%20y",
        "hop": "LLE",
        "via": "https://a.example/",
        "mime": "text/html",
        "seconds": 0.5,
        "note": "a,b%2Cc",
    }


@given(st.binary(max_size=300))
def test_a_line_that_is_none_is_left_out(line: bytes) -> None:
    found = line_json(line)
    assert found == "" or json.loads(found)


def written(path: Path, start: int, count: int) -> None:
    """Append lines to a log."""
    with path.open("ab") as file:
        for number in range(start, start + count):
            file.write(f"{LINE._replace(url=f'https://a.example/{number}').render()}\n".encode())


def test_a_tail_reads_what_is_appended_and_follows_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "crawl.log"
    with closing(LogTail(path)) as tail:
        assert tail.look().lines == ()  # there is none yet
        written(path, 0, 3)
        assert [json.loads(line.text)["url"][-1] for line in tail.look().lines] == ["0", "1", "2"]
        with path.open("ab") as file:
            file.write(LINE.render().encode()[:50])
        assert tail.look().lines == ()  # half a line
        with path.open("ab") as file:
            file.write(LINE.render().encode()[50:] + b"\n")
        assert len(tail.look().lines) == 1
        written(path, 0, AT_ONCE + 10)
        found = tail.look()
        assert (len(found.lines), found.dropped) == (AT_ONCE, 10)
        assert found.lines[-1].end == path.stat().st_size
        path.rename(tmp_path / "earlier.log")
        written(path, 5, 1)
        again = tail.look()
        assert again.file != found.file
        assert [json.loads(line.text)["url"][-1] for line in again.lines] == ["5"]
    path.unlink()
    path.symlink_to(tmp_path / "earlier.log")
    with closing(LogTail(path)) as tail:
        assert tail.look().lines == ()  # no link is followed


def test_a_tail_begins_near_the_end_of_a_large_log(tmp_path: Path) -> None:
    path = tmp_path / "crawl.log"
    written(path, 0, 10_000)
    with closing(LogTail(path)) as tail:
        found = tail.look()
        assert json.loads(found.lines[-1].text)["url"].endswith("/9999")
        assert len(found.lines) == AT_ONCE


def test_a_viewer_that_does_not_read_loses_lines_and_is_told_how_many() -> None:
    async def main() -> None:
        viewer = Viewer()
        event = b'event: urls\nid: 1-1\ndata: {"lines":[],"dropped":' + b" " * 1000
        count = 10 * WAITING // len(event)
        for _ in range(count):
            viewer.lines(event, 3, 0)
            viewer.other("live", "{}")
        viewer.close()
        found = [each async for each in viewer.events()]
        assert sum(map(len, found)) < WAITING + 2000
        assert sum(each.startswith(b"event: live") for each in found) == 1
        shown = [each for each in found if each.startswith(b"event: urls")]
        dropped = [int(each.rpartition(b":")[2].strip(b" }\n")) for each in shown]
        assert dropped[0] == 3 * (count - len(shown))
        assert set(dropped[1:]) <= {0}

    asyncio.run(main())


async def lines_of_first(viewer: Viewer) -> int:
    """Return the number of lines in the first event."""
    async with aclosing(viewer.events()) as found:
        return (await anext(found)).count(b'"url"')


def test_one_reader_serves_all_viewers(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    path = layout.log
    written(path, 0, KEPT + 20)

    async def main() -> None:
        stream = Stream(layout, lambda: 0)
        with stream.viewer() as first, stream.viewer() as second:
            one, two = first.events(), second.events()
            got, other = await anext(one), await anext(two)
            assert got == other
            assert got.count(b'"url"') == KEPT  # the last ones
            number = got.split(b"id: ")[1].split(b"\n")[0].decode()
            written(path, 9000, 1)
            assert b"/9000" in await anext(one)
            with stream.viewer(number) as third:
                assert await lines_of_first(third) == 1
            await one.aclose()
            await two.aclose()
        assert stream.viewers == 0
        with stream.viewer(number) as fourth:  # the reader begins again
            assert await lines_of_first(fourth) == 1
        await asyncio.sleep(0)

    asyncio.run(main())


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
    )
)
def test_what_is_sent_is_printable_json(value: object) -> None:
    text = json.dumps(tidy(value), allow_nan=False, ensure_ascii=False)
    assert text.isprintable()


ADDRESSES = (
    "https://a.example/",
    "https://a.example/calendar/2026/11/24",
    "https://a.example/News/N/H",
    "https://a.example/x.html?a=1&b=2",
    "https://a.example/s/0123abcd4567efab/p?id=7",
    "https://a.example/a%20b/c+d(e)?q=[x]",
    "https://a.example/git?p=x.git;a=Tree;h=0a1b",
    "https://a.example/w?title=A&action=history",
    "https://a.example:8443/" + "long/" * 200 + "7",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_suggested_pattern_matches_what_it_was_made_of(address: str) -> None:
    found = {each["label"]: each["regex"] for each in suggestions(address)["rows"]}
    assert "this host" in found
    for regex in (*found.values(), regex_of(likeness(address).pattern)):
        pattern = Pattern("exclude", PATTERN.parse(regex))
        assert pattern.found_in(address), regex
        assert not pattern.found_in("https://b.example/other")


def test_a_pattern_of_one_action_does_not_match_another() -> None:
    pattern = Pattern("exclude", PATTERN.parse(regex_of("https://a.example/w?action=edit&title")))
    assert pattern.found_in("https://a.example/w?title=A;action=Edit")
    assert not pattern.found_in("https://a.example/w?title=A&action=editor")
    assert not pattern.found_in("https://a.example/w?title=A&action=history")


def test_a_suggestion_needs_a_url() -> None:
    with pytest.raises(ConfigError, match="not a URL"):
        suggestions("no url")


def test_a_users_file_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "users"
    add_user(path, new_user("ann", Role.OPERATOR, "correct horse"))
    add_user(path, new_user("bob", Role.WATCHER, "battery staple"))
    add_user(path, new_user("ann", Role.WATCHER, "another one!"))
    users = read_users(path)
    assert users.role("ann", "another one!") is Role.WATCHER
    assert users.role("ann", "correct horse") is None
    assert users.role("nobody-here", "correct horse") is None
    assert not users.may_read_metrics("battery staple")


@pytest.mark.parametrize(
    "text", ["", "ann:boss:scrypt$AAAA$AAAA", "ann:operator:scrypt$AAAA$AAAA", "ann:operator:sha256$AAAA", "\0"]
)
def test_a_users_file_that_is_wrong_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"users"):
        read_users(path)


def test_the_names_of_a_server() -> None:
    near = Origin.of(tls=False, names=("127.0.0.1", "localhost"), port=8085, behind="")
    assert near.knows("LOCALHOST:8085")
    assert not near.knows("localhost")
    assert not near.knows("localhost:8085.evil.example")
    assert near.is_own("http://localhost:8085", "localhost:8085")
    assert not near.is_own("http://127.0.0.1:8085", "localhost:8085")
    assert not near.is_own("https://localhost:8085", "localhost:8085")
    proxied = Origin.of(tls=False, names=("127.0.0.1",), port=8085, behind="https://Watch.example/")
    assert proxied.knows("watch.example")
    assert proxied.knows("127.0.0.1:8085")  # what a proxy may send
    assert proxied.is_own("https://watch.example", "127.0.0.1:8085")
    assert not proxied.is_own("http://127.0.0.1:8085", "127.0.0.1:8085")
    assert Origin.of(tls=True, names=("w.example",), port=443, behind="").knows("w.example")


def test_failures_are_counted_for_each_address_and_for_all() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(10):
        attempts.check("a")
        attempts.failed("a")
    with pytest.raises(RefusedError) as refused:
        attempts.check("a")
    assert refused.value.status == 429
    attempts.check("b")
    for number in range(200):
        attempts.failed(f"x{number}")
    with pytest.raises(RefusedError):
        attempts.check("b")
    now[0] = 601.0
    attempts.check("a")


def test_a_session_ends_when_it_is_not_used() -> None:
    now = [1000.0]

    async def run() -> None:
        guard = Guard(Origin("http", frozenset(("w.example",))), None, lambda: now[0])
        number = await guard.log_in({"token": guard.token}, "127.0.0.1", "")
        asking = Asking("GET", "/api/crawls", "w.example", session=number)
        for _ in range(3):  # each request makes it last
            now[0] += LIFE
            assert guard.session(asking).role is Role.OPERATOR
        now[0] += LIFE + 1
        for ask in (guard.session, guard.operator):
            with pytest.raises(RefusedError) as refused:
                ask(asking)
            assert refused.value.status == 401
        again = await guard.log_in({"token": guard.token}, "127.0.0.1", number)
        assert guard.session(Asking("GET", "/", "w.example", session=again)).used == now[0]

    asyncio.run(run())


@pytest.fixture(name="large", scope="module")
def database_of_many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with more rows than an answer has."""
    directory = tmp_path_factory.mktemp("large")
    with handmade_crawls.database(directory) as db:
        assert schema_script()
        db.executemany(
            "INSERT INTO hosts (id, key) VALUES (?, ?)", [(n, f"https://h{n:04}.example") for n in range(1, 1202)]
        )
        db.executemany(
            "INSERT INTO urls (id, url, host, state, hop, path, depth, off_scope_hops, priority, status, failure) "
            "VALUES (?, ?, ?, ?, 'L', 'L', 1, 0, ?, ?, ?)",
            [
                (
                    n,
                    f"https://h0001.example/day/{n}?x={n}",
                    1 + (n > 1300) * (n - 1300),
                    "waiting" if n <= 1300 else "failed",
                    n % 3,
                    0,
                    "" if n <= 1300 else "dns",
                )
                for n in range(1, 2501)
            ],
        )
    return directory


def test_lists_are_pages_that_go_on_where_the_last_one_ended(large: Path) -> None:
    with totals.open_totals(large) as db:
        for sort, first in (
            ("waiting", "https://h0001.example"),
            ("failed", "https://h0002.example"),
            ("name", "https://h0001.example"),
        ):
            found, after = list[str](), ""
            while True:
                answer = hosts(db, ListQuery(sort=sort, after=after), None, time.time())
                found += [row["key"] for row in answer["rows"]]
                assert len(answer["rows"]) <= MOST
                if answer["next"] is None:
                    break
                after = answer["next"]
            assert len(found) == len(set(found)) == 1201
            assert found[0] == first
        for robots, shown in (("obey", ("robots.txt", "unknown")), ("ignore", ("", "ignored"))):
            quotas = Quotas(SettingsByHost(with_values(Settings(), {"robots": robots})))
            (row,) = hosts(db, ListQuery(search="h0001."), None, time.time(), quotas=quotas)["rows"]
            assert (row["why"], row["robots"]) == shown
        queued, after = list[int](), ""
        while after is not None:
            answer = queue(db, ListQuery(host="https://h0001.example", after=after))
            queued += [row["priority"] for row in answer["rows"]]
            after = answer["next"]
        assert queued == sorted(queued)
        assert len(queued) == 1300
        seen, after = 0, ""
        while after is not None:
            answer = urls(db, ListQuery(state="failed", search="?x=2", after=after))
            seen, after = seen + len(answer["rows"]), answer["next"]
        assert seen == 501
        for wrong in ("[", "[1]", "[null, null]", '[1e999, "x"]', "x" * 100_000, '["a", {}]'):
            assert queue(db, ListQuery(after=wrong))["rows"][0]["priority"] == 0


def test_patterns_and_problems_say_what_they_rest_on(large: Path) -> None:
    with totals.open_totals(large) as db:
        found = patterns(db, random.Random(1))
        assert (found["sampled"], found["of"]) == (1300, 1300)
        (row,) = found["rows"]
        assert (row["pattern"], row["count"]) == ("https://h0001.example/day/N?x", 1300)
        assert re.search(row["regex"], row["example"])
        scan = ProblemScan()
        first = scan.problems(db, "", time.time())
        assert first["complete"]
        assert (len(first["rows"]), first["next"]) == (MOST, "500")
        assert len(scan.problems(db, "1000", time.time())["rows"]) == 200


def test_a_crawl_that_starts_is_shown_when_its_tables_are_there(tmp_path: Path) -> None:
    """SQLite makes an empty file first; a page that asked for it then was told that the crawl has not started."""
    assert not has_database(tmp_path)
    with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        assert not has_database(tmp_path)
        db.execute("BEGIN IMMEDIATE")
        assert not has_database(tmp_path)
        db.execute("ROLLBACK")
        db.executescript(schema_script())
        assert has_database(tmp_path)
