"""live.json: what is written is read back, and a file from someone else can do no harm."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.collection import live as live_json
from archiver.collection.layout import Layout
from archiver.collection.live import (
    BATCH_BOUNDS,
    HANGS,
    LARGEST,
    LONGEST_TEXT,
    MOST,
    MOST_HOSTS,
    MOST_WARNINGS,
    STALE,
    HostLine,
    HostStates,
    Live,
    LiveWarning,
    Pulse,
    Tally,
    current_live,
    last_live,
    live_text,
    parse_live,
    pulse,
    write_live,
)
from archiver.crawl.live.figures import host_states, longest_waits, of_snapshot, together
from archiver.crawl.live.tally import CommitTally
from archiver.crawl.stats import Snapshot
from archiver.errors import ArchiveError
from archiver.model import Capture, Claim, Event, FileState, Hop, Profile, Settlement, Span

DOCUMENT = Path(__file__).parents[2] / "docs/reference/live.md"
TALLY = Tally(5, 6, 7, 1, 2, 3, 0.25, tuple(range(len(BATCH_BOUNDS) + 1)), {"2xx": 4}, {"archived": 4, "failed": 1})
FULL = Live(
    pid=7,
    written=1000.0,
    state="crawling",
    elapsed=2.5,
    done=3,
    waiting=4,
    failed=5,
    excluded=6,
    held=7,
    active=8,
    received=9,
    rate=1.5,
    visits=10,
    unwritten=11,
    waiting_for="rate of http://a",
    hosts=(HostLine("http://a", 1, 2, 3, 0.5, "rate", "half as fast"),),
    host_states=HostStates(1, 2, 3, 4, 5),
    waits={"rate": 0.5},
    disk_free=12,
    spool_bytes=13,
    loop_lag=0.25,
    silent=0.125,
    rss=14,
    commit_lag=0.75,
    last_commit=999.0,
    network_lost=True,
    store_backlog_bytes=15,
    total=TALLY,
    warnings=(LiveWarning(998.0, "the disk is slow"),),
    name="one",
    machine="host",
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert last_live(layout) is None
    write_live(layout, FULL)
    assert last_live(layout) == current_live(layout, 1000.0 + STALE) == FULL
    assert current_live(layout, 1000.1 + STALE) is None
    write_live(layout, replace(FULL, state="ended"))
    assert current_live(layout, 1000.0) is None
    assert [path.name for path in tmp_path.iterdir()] == ["live.json"]


@pytest.mark.parametrize(
    ("live", "pid", "now", "expected"),
    [
        (FULL, 7, 1000.0, Pulse.RUNS),
        (FULL, 7, 1000.0 + HANGS, Pulse.RUNS),
        (FULL, 7, 1000.1 + HANGS, Pulse.HANGS),
        (FULL, 0, 1000.1 + HANGS, Pulse.HANGS),
        (FULL, 7, 10.0, Pulse.RUNS),  # a clock that was set back says nothing
        (replace(FULL, silent=HANGS + 0.1), 7, 1000.0, Pulse.HANGS),  # one of several processes
        (replace(FULL, state="paused"), 7, 1000.0, Pulse.RUNS),
        (replace(FULL, state="ended"), 7, 1000.1 + HANGS, Pulse.BUSY),  # it writes reports
        (replace(FULL, written=999.0), 7, 1000.1 + HANGS, Pulse.BUSY),  # of a run before, by a process with its number
        (FULL, 8, 1000.1 + HANGS, Pulse.BUSY),
        (None, 7, 1000.1 + HANGS, Pulse.BUSY),
    ],
)
def test_how_a_process_is_that_holds_the_lock(live: Live | None, pid: int, now: float, expected: Pulse) -> None:
    assert pulse(live, pid, 999.5, now) is expected


def test_the_page_names_every_field() -> None:
    named = set(re.findall(r"`([a-z_]+)`", DOCUMENT.read_text("utf-8")))
    document = json.loads(live_text(FULL))
    words = {*document, *document["hosts"][0], *document["hosts_total"], "at", "text", "name", "machine"}
    assert words | live_json.STATES <= named


def test_only_the_owner_reads_it_if_that_is_so_for_the_database(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.database.touch(0o600)
    write_live(layout, FULL)
    assert layout.live.stat().st_mode & 0o077 == 0
    layout.database.chmod(0o644)
    write_live(layout, FULL)
    assert layout.live.stat().st_mode & 0o777 == layout.database.stat().st_mode & 0o777


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    layout = Layout(tmp_path / "c")
    layout.directory.mkdir()
    layout.live.symlink_to(tmp_path / "mine")
    assert last_live(layout) is None
    layout.live.with_name("live.json.tmp").symlink_to(tmp_path / "mine")
    write_live(layout, FULL)
    assert (tmp_path / "mine").read_text() == "keep"
    assert last_live(layout) == FULL
    layout.live.unlink()
    layout.live.mkdir()
    with pytest.raises(ArchiveError, match=r"live\.json"):
        write_live(layout, FULL)


NUMBERS = st.one_of(st.integers(), st.floats(), st.just(10**400))
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=8,
)
FIELDS = sorted(json.loads(live_text(FULL)))


@given(st.dictionaries(st.sampled_from(FIELDS), JUNK))
def test_wrong_values_are_replaced(wrong: dict[str, Any]) -> None:
    document = {**json.loads(live_text(FULL)), **wrong, "version": 1, "state": "crawling"}
    found = parse_live(json.dumps(document).encode())
    assert len(found.total.batch_counts) == len(BATCH_BOUNDS) + 1
    told = parse_live(live_text(found).encode())
    assert parse_live(live_text(told).encode()) == told  # numbers are rounded once
    assert (told.pid, told.total.results, told.total.responses) == (
        found.pid,
        found.total.results,
        found.total.responses,
    )
    assert [host.key for host in told.hosts] == [host.key for host in found.hosts[:MOST_HOSTS]]
    for number in (found.pid, found.written, found.rate, found.total.received, *found.total.batch_counts):
        assert 0 <= number <= MOST


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"version": 2, "state": "crawling"}',
        b'{"version": 1, "state": "\\u001b[2J"}',
        b'{"version": 1, "state": ["crawling"]}',
        b"[" * 100_000,
        b'{"version": 1, "state": "crawling", "pid": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b'{"version": 1, "state": "crawling"' + b" " * LARGEST + b"}",
    ],
)
def test_what_is_no_live_json_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "live.json").write_bytes(content)
    assert last_live(Layout(tmp_path)) is None


def test_a_large_file_is_cut() -> None:
    document = json.loads(live_text(FULL))
    document["hosts"] = [{"key": "http://\ud800" + "x" * 2000}] * 1000
    document["warnings"] = [{"text": "t"}] * 100
    document["responses"] = {str(number): 1 for number in range(1000)}
    found = parse_live(json.dumps(document).encode())
    assert len(found.hosts) == MOST_HOSTS
    assert len(found.hosts[0].key.encode()) == LONGEST_TEXT
    assert len(found.warnings) == MOST_WARNINGS
    assert len(found.total.responses) == live_json.MOST_WORDS


def test_counters_add_up() -> None:
    assert TALLY + Tally() == TALLY
    twice = TALLY + TALLY
    assert (twice.visits, twice.batch_counts[-1], twice.results) == (10, 24, {"archived": 8, "failed": 2})
    raised = TALLY.at_least(Tally(visits=4, received=60, results={"archived": 9, "excluded": 1}))
    assert (raised.visits, raised.received) == (5, 60)
    assert raised.results == {"archived": 9, "failed": 1, "excluded": 1}


def test_several_crawlers_add_up() -> None:
    whole = Snapshot("waiting", 5.0, 30, 1, 2, 3, 4, 5, 6.0, held=9)
    other = replace(FULL, hosts=(HostLine("http://b", 1, 9, 3),), loop_lag=0.5, network_lost=False, waits={"rate": 2.0})
    found = together(whole, [FULL, other], [replace(FULL, spool_bytes=1000)], 0.125)
    assert (found.done, found.held, found.spool_bytes, found.loop_lag) == (30, 9, 26, 0.5)
    assert [host.key for host in found.hosts] == ["http://b", "http://a"]
    assert found.host_states == HostStates(2, 4, 6, 8, 10)
    assert found.total.visits == 15
    assert found.network_lost
    assert found.waits == {"rate": 2.0}
    assert together(whole, [], [], 0.125).loop_lag == 0.125
    assert of_snapshot(whole).rate == 6.0


def test_hosts_by_what_may_be_done_with_them() -> None:
    lines = [
        HostLine("http://a", 1, 1, 0, why="busy"),
        HostLine("http://b", 1, 0, 0, 2.0, "rate", slowed="half as fast"),
        HostLine("http://c", 1, 0, 0, 3.0, "rate"),
        HostLine("http://d", 1, 0, 0, 60.0, "asleep, next probe"),
        HostLine("http://e", 1, 0, 0, why="limit reached"),
        HostLine("http://f", 1, 0, 0, why="login"),
    ]
    assert host_states(lines) == HostStates(due=1, parked=2, asleep=1, slowed=1, held=2)
    assert longest_waits(lines) == {"rate": 3.0, "asleep, next probe": 60.0}


def test_what_is_committed_is_counted() -> None:
    claim = Claim(1, "http://a/", 1, Hop.LINK, "", 0, 0, 0)
    span = Span(0, 10)
    page = Capture("http://a/", 0, 200, "text/html", "sha256:x", 5, 100, "w", span, span, span)
    tally = CommitTally()
    settlements = [
        Settlement(claim, Event.CAPTURE, capture=page),
        Settlement(claim, Event.CAPTURE, capture=page._replace(status=404, revisit=Profile.IDENTICAL)),
        Settlement(claim, Event.RETRY, capture=page._replace(status=999)),
        Settlement(claim, Event.GIVE_UP),
        Settlement(claim, Event.HOLD),
    ]
    tally.committed(10.0, 10.02, settlements, [FileState("w", 300, closed=False)])
    tally.committed(11.0, 111.0, [], [FileState("w", 450, closed=True), FileState("v", 50, closed=False)])
    found = tally.frozen()
    assert (found.visits, found.received, found.written_bytes, found.revisits, found.traps) == (4, 300, 500, 1, 1)
    assert found.results == {"archived": 2, "retried": 1, "failed": 1}
    assert found.responses == {"2xx": 1, "4xx": 1, "other": 1}
    assert (found.batches, found.batch_counts[2], found.batch_counts[-1]) == (2, 1, 1)
    assert tally.last_commit == 111.0
