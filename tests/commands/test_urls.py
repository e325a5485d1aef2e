"""`archiver urls`: lists of a crawl's URLs, by state and host, with reasons; also very long ones."""

import json
import os
import sqlite3
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from archiver.cli import entry
from archiver.config import toml
from archiver.model import ExitCode
from fixtures import handmade_crawls
from fixtures.command import ROOT
from fixtures.crawl_in_process import settings
from fixtures.site_of_rules import FOREIGN, Crawled, expected

Said = Callable[..., str]


Listed = Callable[..., list[str]]


@pytest.fixture(name="listed")
def lists(crawled: Crawled, said: Said) -> Listed:
    """What `archiver urls` says."""
    return lambda *options: said("urls", str(crawled.directory), *options).splitlines()


def test_lists(crawled: Crawled, listed: Listed) -> None:
    by_state: dict[str, set[str]] = {}
    for address, (state, _, _) in expected(crawled).items():
        by_state.setdefault(state, set()).add(address)
    every = set().union(*by_state.values())
    assert set(listed()) == every - by_state["refused"]
    assert set(listed("--state", "failed", "--state", "refused")) == by_state["failed"] | by_state["refused"]
    assert listed("--state", "waiting") == []
    assert len(listed("--limit", "2")) == 2
    there = listed("--host", f"{FOREIGN}:{crawled.foreign.rpartition(':')[2]}")
    assert there == sorted(address for address in every - by_state["refused"] if address.startswith(crawled.foreign))
    assert listed("--host", FOREIGN, "--state", "refused") == [f"{crawled.foreign}/page"]


def test_reasons_and_json(crawled: Crawled, listed: Listed) -> None:
    reasons = dict(line.split("\t") for line in listed("--why", "--state", "failed", "--state", "refused"))
    assert reasons[f"{crawled.home}/dead"].startswith("failed: disconnect")
    assert reasons[f"{crawled.home}/d"] == f"refused: max-depth: 3, linked from {crawled.home}/c"
    told = [json.loads(line) for line in listed("--json")]
    statuses = {one["url"]: one["status"] for one in told}
    assert statuses[f"{crawled.home}/busy"] == 503
    assert statuses[f"{crawled.home}/gone.gif"] == 404


def test_a_host_is_no_other_whose_name_begins_so(tmp_path: Path, said: Said) -> None:
    names = (
        "http://a.example",
        "http://a.example.org",
        "http://a.example-x.org",
        "http://a.example0",
        "http://a.exampl",
    )
    handmade_crawls.finished(tmp_path, time.time())
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        for name in names:
            db.execute("INSERT INTO hosts (key) VALUES (?)", (name,))
            for path in ("/", "/x", "/?"):
                db.execute(
                    "INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority) "
                    "VALUES (?, (SELECT id FROM hosts WHERE key = ?), 'L', 'L', 1, 0, 2)",
                    (f"{name}{path}", name),
                )
            db.execute("INSERT INTO refusals (url, rule, via) VALUES (?, 'scope: host', NULL)", (f"{name}/refused",))
    for name in names:
        listed = said("urls", str(tmp_path), "--host", name, "--state", "waiting", "--state", "refused").splitlines()
        assert listed == [f"{name}/", f"{name}/?", f"{name}/x", f"{name}/refused"]


def test_a_long_list_takes_no_memory_and_begins_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """30,000 URLs: the first is out before the last page of them was read, and none is kept."""
    handmade_crawls.finished(tmp_path, time.time())
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        db.executemany(
            "INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority) VALUES (?, 1, 'L', 'L', 1, 0, 2)",
            ((f"https://a.example/n/{number:05}",) for number in range(30_000)),
        )
    heard = _Ear()
    monkeypatch.setattr(sys, "stdout", heard)
    tracemalloc.start()
    try:
        assert entry.run(["urls", str(tmp_path), "--state", "waiting", "--why"]) == ExitCode.DONE
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert heard.lines >= 30_000
    assert heard.first < 100
    assert most < 5_000_000


class _Ear:
    """A standard output that counts; `first`: the lines that were written when it was first flushed."""

    def __init__(self) -> None:
        self.lines = 0
        self.first = 0

    def write(self, text: str) -> None:
        self.lines += text.count("\n")

    def flush(self) -> None:
        self.first = self.first or self.lines


def test_hostile_names_are_harmless_and_a_reader_may_leave(tmp_path: Path, said: Said) -> None:
    """Long lists are read in pages, of which the first is enough for `head`."""
    now = time.time()
    handmade_crawls.finished(tmp_path, now)
    (tmp_path / "crawl.toml").write_text(toml.render(settings("https://a.example/")))
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        db.executemany(
            "INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, note) "
            "VALUES (?, 1, 'L', 'L', 1, 0, 2, ?)",
            [(f"https://a.example/n/{number}", handmade_crawls.HOSTILE) for number in range(5000)],
        )
    every = said("urls", str(tmp_path), "--why").splitlines()
    assert len(every) == 5011
    assert all(line.replace("\t", "").isprintable() for line in every)
    by_name = said("urls", str(tmp_path), "--host", "a.example").splitlines()
    assert len(by_name) == 5006
    assert by_name == sorted(by_name)
    assert all(line.isprintable() for line in said("explain", str(tmp_path), "https://a.example/y").splitlines())
    parked = json.loads(said("explain", str(tmp_path), "https://parked.example/", "--json"))
    assert any("asked us to wait" in reason for reason in parked["waits_for"])
    command = f"cd {tmp_path} && PYTHONPATH={ROOT} {sys.executable} -m archiver urls . 2>err | head -1"
    assert os.waitstatus_to_exitcode(os.system(f"{command} >out")) == 0
    assert (tmp_path / "err").read_text() == ""
    assert (tmp_path / "out").read_text().count("\n") == 1
