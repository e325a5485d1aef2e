"""A running crawl on the screen: lines in a pipe, a panel on a terminal, and a screen that is gone."""

import asyncio
import io
from dataclasses import replace

import pytest
from rich.console import Console

from archiver.cli.progress import LivePanel, ProgressLines, display_for, follow, host_state, line, panel
from archiver.collection.live import HostLine
from archiver.crawl.stats import Snapshot

HOST = HostLine("https://example.org", waiting=4, active=1, done=7, wait=0.2, why="rate")
NOW = Snapshot(
    state="crawling",
    elapsed=12.3,
    done=7,
    waiting=4,
    failed=1,
    excluded=2,
    active=1,
    received=123_456,
    rate=3.21,
    hosts=(HOST,),
)
HOSTILE = "https://x/\x1b[2J\r\n[bold]\u202e"


def test_line() -> None:
    assert line(NOW) == "crawling 12.3 s · 7 done · 4 queued · 1 failed · 1 active · 3.2/s · 123.5 kB"
    writing = line(replace(NOW, state="writing", active=0, unwritten=12))
    assert writing == "writing 12.3 s · 7 done · 4 queued · 1 failed · 12 to write · 3.2/s · 123.5 kB"
    assert line(replace(NOW, waiting_for="robots.txt of http://x")).endswith(" · waiting for robots.txt of http://x")


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (HOST, "1 active, rate in 0.2 s"),
        (replace(HOST, wait=0.0), "1 active"),
        (replace(HOST, active=0, wait=61.0, why="retry-after"), "retry-after in 1:01"),
        (replace(HOST, active=0, wait=0.0, why="robots.txt"), "robots.txt"),
        (replace(HOST, active=0, wait=0.0, why=""), "ready"),
    ],
)
def test_what_a_host_waits_for(host: HostLine, words: str) -> None:
    assert host_state(host) == words


def test_lines_come_now_and_then() -> None:
    stream = io.StringIO()
    face = ProgressLines(stream, hosts=False)
    for half_second in range(100):
        face.show(replace(NOW, elapsed=half_second / 2))
    assert [text.split(" · ")[0] for text in stream.getvalue().splitlines()] == [
        "crawling 2.0 s",
        "crawling 12.0 s",
        "crawling 22.0 s",
        "crawling 32.0 s",
        "crawling 42.0 s",
    ]


def test_a_line_when_the_state_changes() -> None:
    stream = io.StringIO()
    face = ProgressLines(stream, hosts=True)
    face.show(replace(NOW, elapsed=0.1, state="recovering"))
    face.show(replace(NOW, elapsed=0.2))
    face.show(replace(NOW, elapsed=0.3))
    assert stream.getvalue().splitlines() == [
        "crawling 0.2 s · 7 done · 4 queued · 1 failed · 1 active · 3.2/s · 123.5 kB",
        "  https://example.org: 7 done, 4 queued, 1 active, rate in 0.2 s",
    ]


def test_a_slow_crawl_that_waits_between_requests_is_no_change() -> None:
    stream = io.StringIO()
    face = ProgressLines(stream, hosts=False)
    for state in ("crawling", "waiting", "crawling", "waiting"):
        face.show(replace(NOW, elapsed=1.0, state=state))
    assert stream.getvalue() == ""
    face.show(replace(NOW, elapsed=1.0, state="draining"))
    assert stream.getvalue().startswith("draining 1.0 s")


def test_which_display() -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    assert isinstance(display_for(screen, 0), LivePanel)
    assert isinstance(display_for(screen, 1), ProgressLines)
    assert display_for(io.StringIO(), -1) is None
    assert isinstance(display_for(io.StringIO(), 0), ProgressLines)


def test_nothing_hostile_reaches_the_screen() -> None:
    hostile = replace(NOW, hosts=(replace(HOST, key=HOSTILE),), waiting_for=HOSTILE)
    stream = io.StringIO()
    face = ProgressLines(stream, hosts=True)
    face.show(replace(hostile, elapsed=60))
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, width=200).print(panel(hostile, 200))
    for shown in (stream.getvalue(), screen.getvalue()):
        assert "\x1b[2J" not in shown
        assert "\r" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[2J\\x0d\\x0a[bold]" in shown


def test_panel() -> None:
    screen = io.StringIO()
    face = LivePanel(screen, Console(file=screen, force_terminal=True, width=120))
    face.show(NOW)
    face.show(replace(NOW, done=8))
    face.close(NOW)
    text = screen.getvalue()
    assert "7 done" in text
    assert "8 done" in text
    assert "https://example.org" in text
    assert "rate in 0.2 s" in text


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, text: str, /) -> int:
        raise OSError(5, "Input/output error", text)


def test_a_screen_that_is_gone_does_not_end_the_crawl() -> None:
    async def crawl() -> str:
        async with follow(lambda: replace(NOW, elapsed=60.0), ProgressLines(Gone(), hosts=True)):
            await asyncio.sleep(0)
            return "went on"

    assert asyncio.run(crawl()) == "went on"


def test_the_crawls_own_error_comes_through() -> None:
    async def crawl() -> None:
        async with follow(lambda: NOW, ProgressLines(io.StringIO(), hosts=False)):
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(crawl())


def test_it_is_shown_while_the_crawl_runs() -> None:
    seen = asyncio.Event()

    class Watching:
        period = 0.0
        closed = False

        def show(self, snapshot: Snapshot) -> None:
            assert snapshot is NOW
            seen.set()

        def close(self, snapshot: Snapshot) -> None:
            assert snapshot is NOW
            self.closed = True

    face = Watching()

    async def crawl() -> None:
        async with follow(lambda: NOW, face):
            await seen.wait()

    asyncio.run(crawl())
    assert face.closed


@pytest.mark.parametrize("width", [60, 80])
def test_the_panel_fits_and_cuts_no_number(width: int) -> None:
    host = replace(HOST, key=f"https://{'a' * 60}.example.org", done=54321, waiting=123456, slowed="slowed down (429)")
    busy = replace(
        NOW, elapsed=3723, done=654321, waiting=1234567, received=1 << 40, hosts=(host,), waiting_for="x" * 90
    )
    screen = io.StringIO()
    Console(file=screen, width=width).print(panel(busy, width))
    shown = screen.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert all(number in shown for number in ("54321", "123456", "654321 done", "1234567 queued", "3.2/s"))
    assert len(shown.splitlines()) == 5
