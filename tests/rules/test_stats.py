"""Counters, snapshots, and how numbers and names are written for people."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.collection.live import HostLine
from archiver.crawl.stats import BUSIEST, WINDOW, Counters, UrlCounts, waited_for
from archiver.humanize import count, duration, json_text, plural, printable, volume


def test_rate_is_of_the_window() -> None:
    counters = Counters(100.0)
    for tenth in range(1000):
        counters.visited(100.0 + tenth / 10, 5)
    assert counters.rate(200.0) == pytest.approx(10, rel=0.1)
    assert counters.rate(200.0 + WINDOW) == 0
    assert counters.snapshot(200.0, "crawling", UrlCounts()).visits == 1000
    assert counters.snapshot(200.0, "crawling", UrlCounts()).received == 5000


def test_rate_at_the_start_is_not_divided_by_nothing() -> None:
    counters = Counters(100.0)
    assert counters.rate(100.0) == 0
    counters.visited(100.0, 1)
    assert counters.rate(100.0) == 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda parts: st.lists(parts) | st.dictionaries(st.text() | st.integers(), parts),
    )
)
def test_json_text_says_the_same_as_the_library(value: Any) -> None:
    assert json.loads(json_text(value)) == json.loads(json.dumps(value))


def test_json_text_has_a_line_for_each_part() -> None:
    text = json_text({"seeds": [{"url": "http://a/", "hops": [1, 2]}, {"url": "http://b/"}], "none": [], "3": (1, "é")})
    assert text.splitlines() == [
        "{",
        '  "seeds": [',
        "    {",
        '      "url": "http://a/",',
        '      "hops": [1, 2]',
        "    },",
        '    {"url": "http://b/"}',
        "  ],",
        '  "none": [],',
        '  "3": [1, "é"]',
        "}",
    ]


@given(st.lists(st.floats(0, 1e6), max_size=200))
def test_memory_is_bounded_by_the_window(times: list[float]) -> None:
    counters = Counters(0.0)
    for now in sorted(times):
        counters.visited(now, 1)
        assert len(counters._seconds) <= WINDOW + 1
        assert 0 <= counters.rate(now) <= len(times)


def test_snapshot_keeps_the_busiest() -> None:
    hosts = [HostLine(f"http://h{n:02}", waiting=n, active=n == 3, done=0) for n in range(20)]
    snapshot = Counters(0.0).snapshot(5.0, "draining", UrlCounts(done=1, active=1), hosts)
    assert snapshot.elapsed == 5
    assert len(snapshot.hosts) == BUSIEST
    assert [host.key for host in snapshot.hosts[:2]] == ["http://h03", "http://h19"]
    assert snapshot.waiting_for == ""


def test_what_is_waited_for() -> None:
    hosts = [
        HostLine("http://a", waiting=3, active=0, done=0, wait=60, why="retry-after"),
        HostLine("http://b", waiting=1, active=0, done=0, wait=2.5, why="retry"),
        HostLine("http://c", waiting=0, active=0, done=9),
    ]
    assert Counters(0.0).snapshot(1.0, "waiting", UrlCounts(), hosts).waiting_for == "retry of http://b, 2.5 s"
    assert waited_for(hosts[2:]) == ""
    assert waited_for([HostLine("http://d", waiting=1, active=0, done=0)]) == "http://d"
    silent = HostLine("http://s", waiting=1, active=0, done=0, wait=5, why="asleep, next probe")
    assert waited_for([silent]) == "next probe of http://s, 5.0 s"
    assert waited_for([HostLine("http://e", waiting=1, active=0, done=0, why="limit reached")]) == ""


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (3_100_000, "3.1 MB"),
        (2 * 10**9, "2.0 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_volume(size: int, words: str) -> None:
    assert volume(size) == words


def test_counts_have_singular_and_plural_nouns() -> None:
    assert [count(number, "page") for number in (0, 1, 2)] == ["0 pages", "1 page", "2 pages"]
    assert [count(number, "URL waits", "URLs wait") for number in (1, 2)] == ["1 URL waits", "2 URLs wait"]
    assert plural(1, "host") == "host"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0.0 s"), (4.21, "4.2 s"), (60, "1:00"), (187, "3:07"), (7200, "2:00:00"), (273_600, "3 d 4:00:00")],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(st.text(), st.integers(2, 50))
def test_printable_is_one_harmless_line(text: str, width: int) -> None:
    shown = printable(text, width)
    assert shown.isprintable()
    assert len(shown) <= width


def test_printable_leaves_plain_names_alone() -> None:
    assert printable("https://example.org/Žluť?a=b c") == "https://example.org/Žluť?a=b c"
    assert printable("\x1b[2J\x9b\u202e") == "\\x1b[2J\\x9b\\u202e"
