"""What a running crawl looks like from outside: one frozen snapshot, and how numbers and names are written for people.

The snapshot feeds the progress line and nothing else reads counters. Pure: the time comes in as an argument.
Names come from the network, so `printable` stands between every one of them and a terminal.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Phase = Literal["recovering", "crawling", "draining", "writing", "waiting", "offline"]
Why = Literal[
    "rate",
    "retry-after",
    "our own work",
    "robots.txt",
    "retry",
    "asleep, next probe",
    "limit reached",
    "refuses us",
    "busy",
    "",
]

WINDOW = 10.0  # seconds: long enough to be steady at 1 URL/s, short enough to show a host that stalls
BUSIEST = 8  # hosts in a snapshot: what fits on a terminal of 24 lines


@dataclass(frozen=True, slots=True)
class HostLine:
    """One host as it stands now."""

    key: str  # https://example.org
    waiting: int
    active: int
    done: int
    wait: float = 0.0  # seconds until its next request may start
    why: Why = ""  # what it waits for
    slowed: str = ""  # how it is held back, and why, in words


@dataclass(frozen=True, slots=True)
class Tally:
    """URLs of the whole crawl by what became of them, earlier runs included."""

    done: int = 0
    waiting: int = 0
    failed: int = 0
    excluded: int = 0
    active: int = 0  # requests in flight


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A crawl at one moment."""

    state: Phase
    elapsed: float  # seconds since this run began
    done: int
    waiting: int
    failed: int
    excluded: int
    active: int  # requests in flight
    received: int  # bytes, in this run
    rate: float  # visits a second, over the last `WINDOW` seconds
    hosts: tuple[HostLine, ...] = ()  # busiest first
    waiting_for: str = ""  # what the crawl waits for when nothing runs
    visits: int = 0  # in this run
    unwritten: int = 0  # answers that have come, and are not committed yet


class Counters:
    """The visits and bytes of one run, in memory that does not grow with them."""

    def __init__(self, now: float) -> None:
        self._started = now
        self._visits = 0
        self._received = 0
        self._seconds: deque[tuple[int, int]] = deque()  # (second of the clock, visits in it), oldest first

    def visited(self, now: float, received: int) -> None:
        """One visit ended, with *received* bytes."""
        self._visits += 1
        self._received += received
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + 1)
        else:
            self._seconds.append((second, 1))
        self._forget(now)

    def rate(self, now: float) -> float:
        """Visits a second over the last `WINDOW` seconds, or since the start where that is later."""
        self._forget(now)
        span = min(WINDOW, max(1.0, now - self._started))
        return sum(visits for _, visits in self._seconds) / span

    def snapshot(self, now: float, state: Phase, tally: Tally, hosts: Iterable[HostLine] = ()) -> Snapshot:
        """The crawl at *now*; of *hosts* only the busiest are kept."""
        lines = tuple(hosts)
        busiest = sorted(lines, key=lambda line: (-line.active, -line.waiting, line.key))[:BUSIEST]
        return Snapshot(
            state=state,
            elapsed=max(0.0, now - self._started),
            done=tally.done,
            waiting=tally.waiting,
            failed=tally.failed,
            excluded=tally.excluded,
            active=tally.active,
            received=self._received,
            rate=self.rate(now),
            hosts=tuple(busiest),
            waiting_for="" if tally.active else waited_for(lines),
            visits=self._visits,
        )

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= now - WINDOW:
            self._seconds.popleft()


def waited_for(hosts: Iterable[HostLine]) -> str:
    """What a crawl waits for that does nothing now: the host whose turn comes first."""
    ours = (line for line in hosts if line.waiting and line.why not in {"limit reached", "refuses us"})
    first = min(ours, key=lambda line: line.wait, default=None)
    if first is None:
        return ""
    reason = f"{first.why} of {first.key}" if first.why else first.key
    return f"{reason}, {duration(first.wait)}" if first.wait > 0 else reason


def printable(text: str, width: int = 200) -> str:
    """*text* on one line of at most *width* characters, with nothing in it that a terminal would obey."""
    shown = text[:width]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else _escaped(char) for char in shown)
    return shown if len(text) <= width and len(shown) <= width else f"{shown[: width - 1]}…"


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def volume(count: int) -> str:
    """A number of bytes as people say it: `512 B`, `3.1 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def second(seconds: float) -> str:
    """A moment, in *seconds* since the epoch, as ISO 8601 has it, to the second."""
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"


def duration(seconds: float) -> str:
    """A length of time as people say it: `4.2 s`, `3:07`, `2:00:00`, `3 d 4:00:00`."""
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}:{rest:02}"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours}:{minutes:02}:{rest:02}" if days else f"{hours}:{minutes:02}:{rest:02}"
