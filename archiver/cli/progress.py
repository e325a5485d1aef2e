"""A running crawl on the screen: a live panel on a terminal, a plain line now and then in a pipe, or nothing.

It only looks: it takes a snapshot when it wants one. A screen that is gone (a closed terminal, a broken pipe)
ends the showing, never the crawl. Every name shown is made harmless first.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TextIO

from archiver.crawl.stats import HostLine, Snapshot
from archiver.humanize import duration, printable, volume

if TYPE_CHECKING:
    from rich.console import Console, Group

FIRST_LINE = 2.0  # seconds after which a person wants to see that something happens
LINE_EVERY = 10.0  # seconds: six lines a minute fill no log
PANEL_EVERY = 0.25  # seconds
LINES_LOOK = 0.5  # seconds between looks for a change of state that is worth a line
HOST_WIDTH = 48


class Display(Protocol):
    """One way to show a crawl."""

    period: float  # seconds between two looks

    def show(self, snapshot: Snapshot) -> None:
        """Show the crawl as it is now."""

    def close(self, snapshot: Snapshot) -> None:
        """Show it for the last time and leave the screen tidy."""


@asynccontextmanager
async def followed(look: Callable[[], Snapshot], face: Display | None) -> AsyncIterator[None]:
    """Show what *look* returns on *face* while the block runs; without a face, nothing."""
    if face is None:
        yield
        return
    showing = asyncio.create_task(_show(look, face), name="progress")
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing
        with suppress(OSError, ValueError):  # the screen is gone; ValueError is Python's word for a closed file
            face.close(look())


async def _show(look: Callable[[], Snapshot], face: Display) -> None:
    with suppress(OSError, ValueError):
        while True:
            face.show(look())
            await asyncio.sleep(face.period)


def face_for(stream: TextIO, verbosity: int) -> Display | None:
    """The face that fits *stream* and what the user asked for: -1 and less show nothing, 1 and more show hosts."""
    if verbosity < 0:
        return None
    if stream.isatty():
        return LivePanel(stream)
    return ProgressLines(stream, hosts=verbosity > 0)


class ProgressLines:
    """A line first after `FIRST_LINE`, then every `LINE_EVERY` seconds, and when the state changes."""

    period = LINES_LOOK

    def __init__(self, stream: TextIO, *, hosts: bool) -> None:
        self._stream = stream
        self._hosts = hosts
        self._due = FIRST_LINE
        self._state = ""

    def show(self, snapshot: Snapshot) -> None:
        """Write a line if one is due."""
        state = "crawling" if snapshot.state == "waiting" else snapshot.state  # a slow crawl goes to and fro
        changed = self._state not in {"", state}
        self._state = state
        if not changed and snapshot.elapsed < self._due:
            return
        self._due = snapshot.elapsed + LINE_EVERY
        self._write(snapshot)

    def close(self, snapshot: Snapshot) -> None:
        """Nothing: the summary that follows says it all."""

    def _write(self, snapshot: Snapshot) -> None:
        lines = [line(snapshot)]
        if self._hosts:
            lines += [f"  {host_words(host)}" for host in snapshot.hosts]
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()


def line(snapshot: Snapshot) -> str:
    """The crawl in one line."""
    parts = [
        f"{snapshot.state} {duration(snapshot.elapsed)}",
        f"{snapshot.done} done",
        f"{snapshot.waiting} waiting",
        f"{snapshot.failed} failed",
        f"{snapshot.unwritten} left to write" if snapshot.state == "writing" else f"{snapshot.active} active",
        f"{snapshot.rate:.1f}/s",
        volume(snapshot.received),
    ]
    if snapshot.waiting_for:
        parts.append(f"waiting for {printable(snapshot.waiting_for, 100)}")
    return " · ".join(parts)


def host_words(host: HostLine) -> str:
    """A host in one line: its numbers, and what it waits for."""
    return f"{printable(host.key, HOST_WIDTH)}: {host.done} done, {host.waiting} waiting, {pause_words(host)}"


def pause_words(host: HostLine) -> str:
    """What a host does now, or what it waits for and how long."""
    active = f"{host.active} active" if host.active else ""
    pause = f" in {duration(host.wait)}" if host.wait > 0 else ""
    wait = f"{host.why}{pause}" if host.why and (pause or not active) else f"next{pause}" if pause else ""
    return ", ".join(filter(None, (active, wait, host.slowed))) or "ready"


class LivePanel:
    """A live panel that is drawn again in its place."""

    period = PANEL_EVERY

    def __init__(self, stream: TextIO, console: "Console | None" = None) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow to import, and needed on a terminal only
        from rich.live import Live  # noqa: PLC0415

        self._live = Live(
            console=console or Console(file=stream, highlight=False, markup=False),
            auto_refresh=False,
            transient=True,
        )
        self._begun = False

    def show(self, snapshot: Snapshot) -> None:
        """Draw the panel."""
        if not self._begun:
            self._live.start()
            self._begun = True
        self._live.update(picture(snapshot), refresh=True)

    def close(self, snapshot: Snapshot) -> None:
        """Take the panel away; the summary comes in its place."""
        del snapshot
        if self._begun:
            self._live.stop()


def picture(snapshot: Snapshot) -> "Group":
    """The panel's content: the crawl in a line, a row for each busy host, and what is waited for."""
    from rich.console import Group  # noqa: PLC0415 - slow to import, and needed on a terminal only
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - plain text: nothing in a name is markup

    hosts = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    hosts.add_column("host", no_wrap=True, overflow="ellipsis")
    hosts.add_column("done", justify="right", no_wrap=True)
    hosts.add_column("waiting", justify="right", no_wrap=True)
    hosts.add_column("now", no_wrap=True)
    for host in snapshot.hosts:
        words = Text(pause_words(host), style="" if host.active else "dim")
        hosts.add_row(Text(printable(host.key, HOST_WIDTH)), f"{host.done}", f"{host.waiting}", words)
    return Group(Text(line(snapshot), style="bold"), *([hosts] if snapshot.hosts else []))
