"""`live.json`: the figures of a running crawl, which it replaces once a second for programs that watch it.

Nothing depends on the file, so it is written without a sync, and a power cut may leave it empty. It may come from
someone else with a collection, so a reader checks size, types and ranges, and cuts what is too long.
Counters cover all runs of a crawl on this machine: each run continues those that the run before it has left.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeVar

from archiver.collection.layout import Layout
from archiver.errors import ArchiveError
from archiver.storage import DRAFT, is_private, open_file, storage

VERSION = 1
EVERY = 1.0  # seconds between two versions of the file
STALE = 3.0  # seconds after which a crawl that has not replaced the file does not run
HANGS = 60.0  # seconds after which a process that holds the lock, but has not replaced the file, hangs
LARGEST = 1 << 20  # bytes
MOST_HOSTS = 200
MOST_WARNINGS = 20
MOST_WORDS = 50  # kinds of responses, results and reasons to wait
LONGEST_TEXT = 1000  # characters
LONGEST_WORD = 40
MOST = 1 << 53  # of any number: beyond it JSON readers disagree
ENDED = "ended"
STATES = frozenset(
    ("recovering", "crawling", "recording", "draining", "writing", "showing", "waiting", "offline", "paused", ENDED)
)  # those of a snapshot, and the end
BATCH_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
Words = Mapping[str, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostLine:
    """One host as it is now."""

    key: str  # https://example.org
    waiting: int
    active: int
    done: int
    wait: float = 0.0  # seconds until its next request may start
    why: str = ""  # what it waits for
    slowed: str = ""  # how it is slowed down and why, in words


@dataclass(frozen=True, slots=True)
class HostStates:
    """The number of leased hosts by what may be done with them; a slowed host is in another state too."""

    due: int = 0  # a request may start or is under way
    parked: int = 0  # it waits for its rate, a retry or a time that the server has named
    asleep: int = 0  # it does not answer, and waits for the next probe
    slowed: int = 0  # it gets fewer requests than configured
    held: int = 0  # nothing may start in this run: a limit, a login, or it refuses us


@dataclass(frozen=True, slots=True)
class LiveWarning:
    """A warning of the crawl."""

    at: float  # seconds since the epoch
    text: str


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts that only grow: of all runs of the crawl on this machine."""

    visits: int = 0
    received: int = 0  # bytes of all responses as they crossed the wire
    written_bytes: int = 0  # of WARC files, committed
    revisits: int = 0  # captures whose payload was stored before
    traps: int = 0  # URLs that a trap rule has held or delayed
    batches: int = 0
    batch_seconds: float = 0.0  # from the choice of its visits to its commit, of all batches together
    batch_counts: tuple[int, ...] = ()  # batches up to each of BATCH_BOUNDS, each counted once; the last: longer
    responses: Words = field(default_factory=dict)  # by class: 2xx
    results: Words = field(default_factory=dict)  # of visits: archived, failed, excluded, held, retried, …

    def __add__(self, other: "Tally") -> "Tally":
        pairs = zip(_filled(self.batch_counts), _filled(other.batch_counts), strict=True)
        return Tally(
            self.visits + other.visits,
            self.received + other.received,
            self.written_bytes + other.written_bytes,
            self.revisits + other.revisits,
            self.traps + other.traps,
            self.batches + other.batches,
            self.batch_seconds + other.batch_seconds,
            tuple(one + two for one, two in pairs),
            summed((self.responses, other.responses)),
            summed((self.results, other.results)),
        )

    def at_least(self, other: "Tally") -> "Tally":
        """Return these counts, but no visits, results, or bytes received or written below those of *other*."""
        return replace(
            self,
            visits=max(self.visits, other.visits),
            received=max(self.received, other.received),
            written_bytes=max(self.written_bytes, other.written_bytes),
            results={**self.results, **{w: max(n, self.results.get(w, 0)) for w, n in other.results.items()}},
        )


@dataclass(frozen=True, slots=True)
class Live:
    """A crawl at one moment, as live.json describes it."""

    pid: int
    written: float  # seconds since the epoch
    state: str  # one of STATES
    elapsed: float = 0.0  # seconds since this run began
    done: int = 0  # URLs of the whole crawl by state, earlier runs included
    waiting: int = 0
    failed: int = 0
    excluded: int = 0
    held: int = 0
    active: int = 0  # requests in flight
    received: int = 0  # bytes, in this run
    rate: float = 0.0  # visits a second, over the last ten seconds
    visits: int = 0  # in this run
    unwritten: int = 0  # answers that are not committed yet
    waiting_for: str = ""  # what the crawl waits for when nothing runs
    hosts: tuple[HostLine, ...] = ()  # busiest first, at most MOST_HOSTS
    host_states: HostStates = HostStates()
    waits: Mapping[str, float] = field(default_factory=dict)  # the longest wait of a host, by reason
    disk_free: int = 0  # bytes, on the fullest disk of the collection
    spool_bytes: int = 0  # of responses in spool files
    loop_lag: float = 0.0  # longest delay of the event loop in the last second
    silent: float = 0.0  # seconds since the last message of that crawler process which has been silent the longest
    rss: int = 0  # bytes of memory, of all processes of the crawl
    commit_lag: float = 0.0  # seconds for which answers have waited without a commit
    last_commit: float = 0.0  # seconds since the epoch; 0: none in this run
    network_lost: bool = False
    store_backlog_bytes: int = 0  # finished WARC files that the store lacks
    total: Tally = Tally()
    warnings: tuple[LiveWarning, ...] = ()  # the last ones, oldest first
    name: str = ""  # of the crawler, if it has one
    machine: str = ""

    def is_current(self, now: float) -> bool:
        """Return True if the crawl that has written this still runs at *now* (seconds since the epoch)."""
        return self.state != ENDED and abs(now - self.written) <= STALE

    def silence(self, now: float) -> float:
        """Return for how many seconds, at *now*, the crawl or one of its processes has reported nothing."""
        return max(now - self.written, self.silent)


class Pulse(Enum):
    """How a process is that has locked a collection."""

    BUSY = auto()  # it opens or ends a crawl, or does something else: it keeps no live.json at the moment
    RUNS = auto()
    HANGS = auto()


def pulse(live: Live | None, pid: int, since: float, now: float) -> Pulse:
    """Return how the process *pid* is at *now*, which has held the lock since *since*; *live*: what live.json says.

    A live.json of an earlier run says nothing about it. *pid* is 0 if it is not known.
    """
    if live is None or live.state == ENDED or live.written < since or pid not in (0, live.pid):
        return Pulse.BUSY
    return Pulse.HANGS if live.silence(now) > HANGS else Pulse.RUNS


def summed(all_words: Iterable[Words]) -> dict[str, int]:
    """Return the sums of counts by word."""
    found: dict[str, int] = {}
    for words in all_words:
        for word, count in words.items():
            found[word] = found.get(word, 0) + count
    return found


def write_live(layout: Layout, live: Live) -> None:
    """Replace live.json, without a sync; only the owner may read it if that is so for the database."""
    content = live_text(live).encode("utf-8", "replace")
    draft = layout.live.with_name(f"{layout.live.name}{DRAFT}")
    with storage(layout.live, lambda: len(content)):
        draft.unlink(missing_ok=True)
        private = is_private(layout.address if layout.address.exists() else layout.database)
        with open_file(draft, "wb", private=private) as file:
            file.write(content)
        draft.replace(layout.live)


_COUNTS = (
    *("pid", "done", "waiting", "failed", "excluded", "held", "active", "received", "visits", "unwritten"),
    *("disk_free", "spool_bytes", "rss", "store_backlog_bytes"),
)
_NUMBERS = ("written", "elapsed", "rate", "loop_lag", "silent", "commit_lag", "last_commit")
_TALLY = {
    "visits": "visits_total",
    "received": "received_total",
    **{name: name for name in ("written_bytes", "revisits", "traps", "batches")},
}  # fields of a tally, and their names in the file


def live_text(live: Live) -> str:
    """Return *live* as live.json holds it."""
    total = live.total
    document = {
        "version": VERSION,
        "state": live.state,
        **{name: getattr(live, name) for name in _COUNTS},
        **{name: round(getattr(live, name), 4) for name in _NUMBERS},
        "waiting_for": live.waiting_for[:LONGEST_TEXT],
        "hosts": [_host_entry(each) for each in live.hosts[:MOST_HOSTS]],
        "hosts_total": {name: getattr(live.host_states, name) for name in HostStates.__slots__},
        "waits": {word: round(min(seconds, MOST), 3) for word, seconds in live.waits.items()},
        "network_lost": int(live.network_lost),
        **{name: getattr(total, field_name) for field_name, name in _TALLY.items()},
        "batch_seconds": round(total.batch_seconds, 4),
        "batch_counts": list(total.batch_counts),
        "responses": dict(total.responses),
        "results": dict(total.results),
        "warnings": [{"at": each.at, "text": each.text[:LONGEST_TEXT]} for each in live.warnings[-MOST_WARNINGS:]],
        "crawler": {"name": live.name, "machine": live.machine},
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def _host_entry(host: HostLine) -> dict[str, Any]:
    return {
        "key": host.key[:LONGEST_TEXT],
        "waiting": host.waiting,
        "active": host.active,
        "done": host.done,
        "wait": round(min(host.wait, MOST), 3),
        "why": host.why,
        "slowed": host.slowed[:LONGEST_TEXT],
    }


def last_live(layout: Layout) -> Live | None:
    """Return what live.json says, however old it is; None if there is none that can be read."""
    with suppress(ArchiveError, OSError, ValueError, RecursionError):
        with open_file(layout.live) as file:
            content = file.read(LARGEST + 1)
        if len(content) <= LARGEST:
            return parse_live(content)
    return None


def current_live(layout: Layout, now: float) -> Live | None:
    """Return the crawl that runs in the collection at *now* (seconds since the epoch); None if there is none."""
    live = last_live(layout)
    return live if live is not None and live.is_current(now) else None


def parse_live(content: bytes) -> Live:
    """Return the content of a live.json; raises `ValueError` if it is none. Wrong values become 0 or empty."""
    document = json.loads(content)
    whole = _Reader(document if isinstance(document, dict) else {})
    if whole.document.get("version") != VERSION or whole.text("state") not in STATES:
        raise ValueError("it is no live.json")
    states, crawler = _Reader(whole.part("hosts_total")), _Reader(whole.part("crawler"))
    named: dict[str, Any] = {name: whole.count(name) for name in _COUNTS}
    named |= {name: whole.number(name) for name in _NUMBERS}
    return Live(
        **named,
        state=whole.text("state"),
        waiting_for=whole.text("waiting_for"),
        hosts=whole.several("hosts", MOST_HOSTS, _host),
        host_states=HostStates(*(states.count(name) for name in HostStates.__slots__)),
        waits=whole.words("waits", _number),
        network_lost=bool(whole.count("network_lost")),
        total=_tally(whole),
        warnings=whole.several("warnings", MOST_WARNINGS, lambda one: LiveWarning(one.number("at"), one.text("text"))),
        name=crawler.text("name"),
        machine=crawler.text("machine"),
    )


def _tally(whole: "_Reader") -> Tally:
    named: dict[str, Any] = {name: whole.count(key) for name, key in _TALLY.items()}
    counts = whole.document.get("batch_counts")
    return Tally(
        **named,
        batch_seconds=whole.number("batch_seconds"),
        batch_counts=_filled([_count(each) for each in counts] if isinstance(counts, list) else ()),
        responses=whole.words("responses", _count),
        results=whole.words("results", _count),
    )


def _host(one: "_Reader") -> HostLine:
    counts = one.count("waiting"), one.count("active"), one.count("done")
    return HostLine(one.text("key"), *counts, one.number("wait"), one.text("why"), one.text("slowed"))


def _filled(counts: Sequence[int]) -> tuple[int, ...]:
    """Return *counts* with an entry for each bound, and one more."""
    return (*counts, *(0 for _ in range(len(BATCH_BOUNDS) + 1)))[: len(BATCH_BOUNDS) + 1]


def _number(value: Any) -> float:
    """Return *value* if it is a number that is not negative, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value <= MOST and math.isfinite(value) else 0.0


def _count(value: Any) -> int:
    return int(_number(value))


class _Reader:
    """A part of the document, whose values may have any type."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def count(self, name: str) -> int:
        return _count(self.document.get(name))

    def number(self, name: str) -> float:
        return _number(self.document.get(name))

    def text(self, name: str) -> str:
        value = self.document.get(name)
        return value[:LONGEST_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""

    def part(self, name: str) -> Mapping[str, Any]:
        value = self.document.get(name)
        return value if isinstance(value, dict) else {}

    def words(self, name: str, parsed: Callable[[Any], T]) -> dict[str, T]:
        """Return numbers by word."""
        pairs = [*self.part(name).items()][:MOST_WORDS]
        return {word[:LONGEST_WORD]: parsed(value) for word, value in pairs}

    def several(self, name: str, most: int, made: Callable[["_Reader"], T]) -> tuple[T, ...]:
        """Return what *made* makes of at most *most* parts."""
        value = self.document.get(name)
        parts = value[:most] if isinstance(value, list) else []
        return tuple(made(_Reader(part)) for part in parts if isinstance(part, dict))
