"""Show a running crawl: a live panel on a terminal, a plain line now and then in a pipe, or nothing.

Displays take snapshots and change nothing. If the screen is gone (a closed terminal, a broken pipe), the display ends
and the crawl goes on. Names from the network are made safe for a terminal first.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from archiver.collection.live import HostLine
from archiver.crawl.stats import Snapshot
from archiver.humanize import duration, printable, volume

if TYPE_CHECKING:
    from rich.console import Console, Group

FIRST_LINE = 2.0  # seconds; then a user wants to see that something happens
LINE_EVERY = 10.0  # seconds; six lines a minute do not flood a log
PANEL_PERIOD = 0.25  # seconds between two snapshots
SHARE = 0.02  # of the time at most; a snapshot looks at all hosts
LINES_PERIOD = 0.5  # seconds between two snapshots, to notice a change of state
HOST_WIDTH = 48
SEPARATOR = " · "


class Display(Protocol):
    """One way to show a crawl."""

    period: float  # seconds between two snapshots

    def show(self, snapshot: Snapshot) -> None:
        """Show the current state of the crawl."""

    def close(self, snapshot: Snapshot) -> None:
        """Show the last state, or clear the display."""


@asynccontextmanager
async def follow(snapshot: Callable[[], Snapshot], display: Display | None) -> AsyncIterator[None]:
    """Show on *display*, if there is one, what *snapshot* returns, while the block runs."""
    if display is None:
        yield
        return
    try:
        async with beside(_show(snapshot, display)):
            yield
    finally:
        with suppress(OSError, ValueError):  # the screen is gone; a closed file raises ValueError
            display.close(snapshot())


@asynccontextmanager
async def beside(showing: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run *showing*, which shows progress, while the block runs; then it is cancelled."""
    task = asyncio.create_task(showing, name="progress")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _show(snapshot: Callable[[], Snapshot], display: Display) -> None:
    with suppress(OSError, ValueError):
        while True:
            began = time.monotonic()
            display.show(snapshot())
            await asyncio.sleep(max(display.period, (time.monotonic() - began) / SHARE))


def display_for(stream: TextIO, verbosity: int) -> Display | None:
    """Return the display for *stream*: none if *verbosity* is negative; if it is positive, lines with a line per host.

    A panel would overwrite the lines of the log.
    """
    if verbosity < 0:
        return None
    if stream.isatty() and verbosity == 0:
        return LivePanel(stream)
    return ProgressLines(stream, hosts=verbosity > 0)


class ProgressLines:
    """Prints a line after `FIRST_LINE` seconds, then every `LINE_EVERY` seconds, and when the state changes."""

    period = LINES_PERIOD

    def __init__(self, stream: TextIO, *, hosts: bool) -> None:
        self._stream = stream
        self._hosts = hosts
        self._due = FIRST_LINE
        self._state = ""

    def show(self, snapshot: Snapshot) -> None:
        """Print a line if one is due."""
        slow = snapshot.state in {"waiting", "showing"}  # a slow crawl alternates between these and "crawling"
        state = "crawling" if slow else snapshot.state
        changed = self._state not in {"", state}
        self._state = state
        if not changed and snapshot.elapsed < self._due:
            return
        self._due = snapshot.elapsed + LINE_EVERY
        self._write(snapshot)

    def close(self, snapshot: Snapshot) -> None:
        """Print nothing: the summary follows."""

    def _write(self, snapshot: Snapshot) -> None:
        lines = [line(snapshot)]
        if self._hosts:
            lines += [f"  {host_line(host)}" for host in snapshot.hosts]
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()


def line(snapshot: Snapshot) -> str:
    """Return the state of the crawl in one line."""
    return SEPARATOR.join([*_figures(snapshot), *_waiting_for(snapshot)])


def _figures(snapshot: Snapshot) -> list[str]:
    return [
        f"{snapshot.state} {duration(snapshot.elapsed)}",
        f"{snapshot.done} done",
        f"{snapshot.waiting} queued",
        f"{snapshot.failed} failed",
        f"{snapshot.unwritten} to write" if snapshot.state == "writing" else f"{snapshot.active} active",
        f"{snapshot.rate:.1f}/s",
        volume(snapshot.received),
    ]


def _waiting_for(snapshot: Snapshot) -> list[str]:
    return [f"waiting for {printable(snapshot.waiting_for, 100)}"] if snapshot.waiting_for else []


def host_line(host: HostLine) -> str:
    """Return a host in one line: its counts, and what it waits for."""
    return f"{printable(host.key, HOST_WIDTH)}: {host.done} done, {host.waiting} queued, {host_state(host)}"


def host_state(host: HostLine) -> str:
    """Return what a host does now, or what it waits for and how long."""
    active = f"{host.active} active" if host.active else ""
    pause = f" in {duration(host.wait)}" if host.wait > 0 else ""
    wait = f"{host.why}{pause}" if host.why and (pause or not active) else f"next{pause}" if pause else ""
    return ", ".join(filter(None, (active, wait, host.slowed))) or "ready"


class LivePanel:
    """Draws a live panel and redraws it in place."""

    period = PANEL_PERIOD

    def __init__(self, stream: TextIO, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            console=console or Console(file=stream, highlight=False, markup=False),
            auto_refresh=False,
            transient=True,
        )
        self._started = False

    def show(self, snapshot: Snapshot) -> None:
        """Draw the panel."""
        if not self._started:
            self._live.start()
            self._started = True
        self._live.update(panel(snapshot, self._live.console.width), refresh=True)

    def close(self, snapshot: Snapshot) -> None:
        """Remove the panel; the summary follows."""
        del snapshot
        if self._started:
            self._live.stop()


def panel(snapshot: Snapshot, width: int) -> "Group":
    """Return the panel for *width* columns: the crawl in a line, or two if it is long, and a row for each active host.

    Long names and reasons are cut to fit, but never a number.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text  # plain text: nothing in a name is markup

    figures = [""]
    for part in _figures(snapshot):
        joined = f"{figures[-1]}{SEPARATOR}{part}".removeprefix(SEPARATOR)
        figures[-1:] = [joined] if len(joined) <= width else [figures[-1], part]
    head = [Text(text, "bold", no_wrap=True, overflow="ellipsis") for text in (*figures, *_waiting_for(snapshot))]
    done, queued = (max((len(f"{n}") for n in all_), default=0) for all_ in _counts(snapshot))
    left = max(0, width - max(done, 4) - max(queued, 6) - 8)  # 8: two spaces after each column
    hosts = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    hosts.add_column("host", no_wrap=True, overflow="ellipsis", max_width=left // 2)
    hosts.add_column("done", justify="right", no_wrap=True)
    hosts.add_column("queued", justify="right", no_wrap=True)
    hosts.add_column("now", no_wrap=True, overflow="ellipsis", max_width=left - left // 2)
    for host in snapshot.hosts:
        words = Text(host_state(host), style="" if host.active else "dim")
        hosts.add_row(Text(printable(host.key, HOST_WIDTH)), f"{host.done}", f"{host.waiting}", words)
    return Group(*head, *([hosts] if snapshot.hosts else []))


def _counts(snapshot: Snapshot) -> tuple[list[int], list[int]]:
    return [host.done for host in snapshot.hosts], [host.waiting for host in snapshot.hosts]
