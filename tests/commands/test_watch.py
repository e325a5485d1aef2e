"""The control room shows crawls that run, are stopped or are done, and gives orders: against real crawls."""

import json
import os
import shlex
import signal
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.collection.layout import Layout
from archiver.collection.live import Live, write_live
from archiver.model import ExitCode
from fixtures import handmade_crawls
from fixtures.command import archiver, ended, running, said
from fixtures.flag import Gate
from fixtures.ports import free_port
from fixtures.postgres import PostgresServer
from fixtures.rawserver import Answer, RawServer, Route
from fixtures.sites import ok, page
from fixtures.watching import PATIENCE, Watching, watching

PAGES = 40
QUICK = ("--rate", "0", "--robots", "ignore", "--probe", "off", "--min-free-disk", "0", "-qq")


def site(gate: Gate) -> dict[str, Route]:
    """Return pages, of which the last waits for *gate*."""
    names = [f"/item/{number}?page=1" for number in range(PAGES)]
    last = Answer((gate, *ok(page("Last", ["/late/1", "/late/2"])).pieces))  # type: ignore[misc]
    return {
        "/": ok(page("All the items", [*names, "/gone", "/gate"])),
        **{name: ok(page(name, [])) for name in names},
        "/gate": last,
        "/late/1": ok(page("late", [])),
        "/late/2": ok(page("late", [])),
    }


def until(ask: Any, wanted: Any) -> Any:
    """Return the first answer of *ask* that *wanted* accepts: the crawl writes it at some moment."""
    end = time.monotonic() + PATIENCE
    while not wanted(found := ask()):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def lines_until(stream: Iterator[tuple[str, str, Any]], url: str) -> tuple[list[str], str]:
    """Return the URLs of *stream* up to *url*, and the number of the last event."""
    found = list[str]()
    for kind, number, data in stream:
        if kind == "urls":
            assert data["dropped"] == 0
            found += [line["url"] for line in data["lines"]]
            if url in found:
                return found, number
    raise AssertionError(found)


def test_a_crawl_is_watched_from_its_start_to_its_end(tmp_path: Path) -> None:
    gate, end, port = Gate(), Gate(), free_port()  # the page ends with the crawl, which waits for *end*
    held = Answer((end, *ok(page("late", [])).pieces))  # type: ignore[misc]
    with RawServer({**site(gate), "/late/2": held}) as server:
        words = ("crawl", *QUICK, "-o", "c", "--watch", str(port), "--host-concurrency", "1", server.url())
        with running(*words, cwd=tmp_path) as crawl:
            token = said(crawl, "watch c at").partition("#token=")[2].strip()
            room = Watching(f"127.0.0.1:{port}", token).log_in()
            (row,) = room.crawls
            number = row["id"]
            assert row["name"] == "c"
            gate.arrived.wait()
            with room.stream(number) as stream:
                seen, last = lines_until(stream, server.url("/gone"))
            assert server.url("/item/0?page=1") in seen
            assert server.url("/gate") not in seen  # its answer is held back
            waiting = [each["url"] for each in room.rows(number, "queue")["rows"]]
            assert waiting == [server.url("/gate")]
            (host,) = room.rows(number, "hosts")["rows"]
            assert (host["key"], host["waiting"]) == (server.url(""), 1)
            details = until(
                lambda: room.get(f"/api/crawls/{number}").json,
                lambda found: found["live"] and found["live"]["waiting"] == found["live"]["active"] == 1,
            )
            said_so = until(
                lambda: room.get(f"/api/crawls/{number}").json["verdict"]["text"],
                lambda found: found != "still being read",
            )
            assert said_so == "the crawl is running"
            assert details["settings"]["host-concurrency"] == "1"
            with room.stream(number, after=last) as stream:
                gate.open()
                seen, _ = lines_until(stream, server.url("/late/1"))
                assert server.url("/gone") not in seen  # only what is newer
            end.open()
            code, err = ended(crawl)
            assert code == ExitCode.DONE, err
    with pytest.raises(OSError):  # the page has ended with the crawl
        room.get("/")
    with watching("c", cwd=tmp_path) as room:
        details = until(lambda: room.get(f"/api/crawls/{number}").json, lambda found: found["verdict"]["findings"])
        assert (details["state"], details["verdict"]["text"]) == ("done", "done")
        assert details["live"] is None
        assert details["counts"]["archived"] == PAGES + 5
        lines = room.get(f"/api/crawls/{number}/explain?url={server.url('/late/1')}").json["lines"]
        shown = archiver("explain", "c", server.url("/late/1"), cwd=tmp_path).stdout
        assert "\n".join(lines) == shown.rstrip("\n")
        problems = room.rows(number, "problems")
        assert problems["complete"]
        assert [(each["reason"], each["example"], each["via"]) for each in problems["rows"]] == [
            ("status 404", server.url("/gone"), server.url("/"))
        ]
        stored = until(
            lambda: [each["captures"] for each in room.rows(number, "files")["rows"]], lambda found: None not in found
        )
        assert sum(stored) == PAGES + 5
        assert room.get(f"/report/{number}").body.startswith(b"<!DOCTYPE html>")
        with room.stream(number) as stream:
            seen, _ = lines_until(stream, server.url("/late/2"))
            assert len(seen) == PAGES + 5


def test_orders_from_the_page_are_orders_of_the_crawl(tmp_path: Path) -> None:
    gate = Gate()
    with (
        RawServer(site(gate)) as server,
        running("crawl", *QUICK, "-o", "c", "--host-concurrency", "1", server.url(), cwd=tmp_path) as crawl,
    ):
        gate.arrived.wait()
        with watching("c", cwd=tmp_path) as room:
            number = room.crawls[0]["id"]
            path = f"/api/crawls/{number}"
            with room.stream(number) as stream:
                next(stream)
                found = room.post(f"{path}/orders", {"verb": "pause"})
                assert found.status == 200, found.body
                assert found.json["command"] == "archiver pause c"
                assert next(kind for kind, _, _ in stream if kind == "orders")
            gate.open()
            assert room.get(path).json["paused"]
            queued = until(lambda: room.rows(number, "queue")["rows"], lambda rows: len(rows) == 2)
            assert {each["url"] for each in queued} == {server.url("/late/1"), server.url("/late/2")}
            rule = {"verb": "exclude", "argument": "/late/2$"}
            preview = room.post(f"{path}/preview", rule).json
            assert (preview["matching"], preview["of"], preview["complete"]) == (1, 2, True)
            assert preview["examples"] == [server.url("/late/2")]
            order = {"verb": "exclude", "arguments": ["/late/2$"]}
            assert "1 waiting URL excluded" in room.post(f"{path}/orders", order).json["answer"]
            assert room.get(path).json["settings"]["exclude"] == "/late/2$"
            assert {"kind": "exclude", "text": "/late/2$", "hits": None} in room.rows(number, "rules")["rows"]
            assert [each["state"] for each in room.rows(number, "urls?search=/late/")["rows"]] == [
                "waiting",
                "excluded",
            ]
            wrong = room.post(f"{path}/orders", {"verb": "set", "arguments": ["rate=fast"]})
            assert wrong.status == 409
            assert "rate" in wrong.json["error"]
            assert room.post(f"{path}/orders", {"verb": "go"}).status == 200
            assert ended(crawl)[0] == ExitCode.DONE
            rows = room.rows(number, "orders")["rows"]
    assert [each["verb"] for each in rows] == ["go", "exclude", "pause"]
    listed = [json.loads(line) for line in archiver("orders", "c", "--json", cwd=tmp_path).stdout.splitlines()]
    assert [each["verb"] for each in listed] == ["pause", "exclude", "go"]


def test_the_end_of_the_control_room_does_not_touch_the_crawl(tmp_path: Path) -> None:
    gate, port = Gate(), free_port()
    with (
        RawServer(site(gate)) as server,
        running("crawl", *QUICK, "-o", "c", "--watch", str(port), server.url(), cwd=tmp_path) as crawl,
    ):
        said(crawl, "watch c at")
        gate.arrived.wait()
        found = [path for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == crawl.pid]
        rooms = [path.parent for path in found if b"--with-parent" in (path.parent / "cmdline").read_bytes()]
        assert len(rooms) == 1
        os.kill(int(rooms[0].name), signal.SIGKILL)
        gate.open()
        assert ended(crawl)[0] == ExitCode.DONE


def _parent(path: Path) -> int:
    try:
        return int(path.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_a_folder_with_200_crawls(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    handmade_crawls.finished(tmp_path, time.time())
    content = (tmp_path / "crawl.db").read_bytes()
    for number in range(200):
        (folder / f"c{number:03}").mkdir()
        (folder / f"c{number:03}" / "crawl.db").write_bytes(content)
    (folder / "c007" / "crawl.db").write_bytes(b"no database")
    with watching("many", cwd=tmp_path) as room:
        rows = room.crawls
        assert [row["name"] for row in rows] == [f"c{number:03}" for number in range(200)]
        assert [row["name"] for row in rows if row["state"] != "stopped"] == ["c007"]
        assert rows[7]["state"] == "unreadable"
        assert "c007" in rows[7]["warning"]
        assert len({row["id"] for row in rows}) == 200
        assert room.rows(rows[199]["id"], "hosts")["rows"]

        def crawling() -> list[Any]:
            live = Live(pid=1, written=time.time(), state="crawling", rate=12.5, waiting=7)
            write_live(Layout(folder / "c003"), live)
            return [row for row in room.crawls if row["state"] == "crawling"]

        (found,) = until(crawling, bool)
        assert (found["name"], found["rate"], found["waiting"]) == ("c003", 12.5, 7)


def test_a_crawl_starts_from_the_page(tmp_path: Path) -> None:
    gate = Gate()
    (tmp_path / "crawls").mkdir()
    with RawServer(site(gate)) as server:
        gate.open()
        given = {"seeds": [server.url()], "settings": {"rate": "0", "contact": "me@example.org", "max-urls": 5}}
        with watching("crawls", cwd=tmp_path) as room:
            preview = room.post("/api/crawls/preview", given).json
            assert preview["directory"].endswith(f"/crawls/127.0.0.1_{server.port}")
            assert preview["toml"].splitlines()[:2] == [f'seeds = ["{server.url()}"]', "rate = 0"]
            assert not list((tmp_path / "crawls").iterdir())
            first, second = room.post("/api/crawls", given), room.post("/api/crawls", given)
            assert (first.status, second.status) == (200, 200), (first.body, second.body)
            numbers = {reply.json["id"] for reply in (first, second)}
            assert numbers == {row["id"] for row in room.crawls}
            rows = until(lambda: room.crawls, lambda rows: all(row["done"] == 5 and not row["written"] for row in rows))
        assert {row["name"] for row in rows} == {f"127.0.0.1_{server.port}", f"127.0.0.1_{server.port}-2"}
        name = f"crawls/127.0.0.1_{server.port}"
        until(lambda: archiver("status", name, "--json", cwd=tmp_path).stdout, lambda text: '"stopped"' in text)
        assert (tmp_path / name / "crawl.toml").read_text().count('contact = "me@example.org"') == 1


def test_seeds_of_a_new_crawl_have_titles_notes_and_collections(tmp_path: Path) -> None:
    """They are written as in a list of seeds, with comments, and can have no settings: those may name files."""
    (tmp_path / "crawls").mkdir()
    with RawServer({"/": ok(page("Home", []))}) as server, watching("crawls", cwd=tmp_path) as room:
        about = {"title": 'Our "new" site', "note": "asked for by the library", "collection": "own sites"}
        first = f"""{server.url()} title='Our "new" site' note='asked for by the library' collection='own sites'"""
        given = {"seeds": ["# ours", first, f"{server.url('/other')}  # no title"], "settings": {"max-urls": 1}}
        preview = room.post("/api/crawls/preview", given).json
        read = tomllib.loads(preview["toml"])
        assert read == {
            "seeds": [server.url(), server.url("/other")],
            "max-urls": 1,
            "seed": [{"url": server.url(), **about}],
        }
        assert shlex.split(preview["command"])[2:] == [first, server.url("/other"), "--max-urls=1"]
        started = room.post("/api/crawls", given)
        assert started.status == 200, started.body
        until(lambda: room.crawls[0], lambda row: row["done"] and not row["written"])
        written = tomllib.loads((Path(preview["directory"]) / "crawl.toml").read_text())
        assert {key: written[key] for key in read} == read
        for wrong, says in (
            (f"{server.url()} header='X: env:HOME'", "header cannot be given here"),
            (f"{server.url()} title=two words", "quote a text that has blanks"),
            ("# ours", "no seed"),
        ):
            refused = room.post("/api/crawls/preview", {"seeds": [wrong], "settings": {}})
            assert refused.status == 409
            assert says in refused.json["error"], refused.json


@pytest.mark.postgres
def test_a_crawl_in_postgresql(tmp_path: Path, postgres_server: PostgresServer | None) -> None:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    gate, address = Gate(), postgres_server.new_database()
    with (
        RawServer(site(gate)) as server,
        running("crawl", *QUICK, "-o", "c", "--frontier", address, server.url(), cwd=tmp_path) as crawl,
    ):
        gate.arrived.wait()
        with watching(address, cwd=tmp_path) as room:
            (row,) = room.crawls
            assert row["state"] == "running"
            for what in ("hosts", "queue", "patterns", "rules", "refusals", "problems", "files", "urls", "orders"):
                assert "rows" in room.rows(row["id"], what), what
            assert room.rows(row["id"], "urls?search=/item/&state=archived")["rows"]
            assert room.get(f"/report/{row['id']}").status == 200
            assert room.get(f"/api/crawls/{row['id']}").json["counts"]["archived"] > PAGES
            gate.open()
            assert ended(crawl)[0] == ExitCode.DONE
