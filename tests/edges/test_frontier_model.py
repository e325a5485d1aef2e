"""The frontier against its specification, which is a plain dict: the same verbs on both, in any order."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from archiver import url
from archiver.frontier import retry
from archiver.frontier.retry import HeldPattern, held_patterns
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import LIFE, Capture, Claim, Event, FileState, Hop, NewUrl, Settlement, Span, State
from fixtures.queued_urls import waiting

NEVER = float("inf")
UNASKED = {Event.FORBID, Event.HOLD, Event.DELAY}
EVENTS = (
    *(Event.RETRY, Event.CAPTURE, Event.RETRY, Event.GIVE_UP, Event.RETRY, Event.FORBID),
    *(Event.HOLD, Event.DELAY, Event.HOLD, Event.DELAY),
)
NAMES = [f"http://h{host}.example/{page}" for host in range(3) for page in range(4)]

CHOSEN = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(EVENTS)), min_size=1, max_size=3)
FOUND = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 4), st.integers(0, 2), st.integers(0, 4), st.booleans()),
    min_size=2,
    max_size=6,
)
Found = tuple[str, int, int, int, bool]
RULE = "trap-budget: 5"


def pattern_of(name: str) -> str:
    """Return what a rule would call the pattern of *name*."""
    return f"{url.origin(name)}/N"


@dataclass
class Row:
    """What the specification knows of one URL."""

    id: int
    state: State
    depth: int
    off_scope_hops: int
    priority: int
    due: float = 0.0
    tries: int = 0


class FrontierMachine(RuleBasedStateMachine):
    """`known` is the specification."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.known: dict[str, Row] = {}
        self.seeds: set[str] = set()
        self.not_before: dict[str, float] = defaultdict(float)
        self.hosts: dict[str, int] = {}
        self.received = 0
        self.captures: list[Capture] = []
        self.now = 1000.0
        self.folder = folder
        self.runner = asyncio.Runner()
        self.frontier = self.runner.run(SqliteFrontier.open(self.folder / "crawl.db"))
        self.add_seeds(NAMES[::5])

    def teardown(self) -> None:
        self.runner.run(self.frontier.close())
        self.runner.close()

    @rule(seeds=st.lists(st.sampled_from(NAMES), max_size=3))
    def add_seeds(self, seeds: list[str]) -> None:
        new = set(seeds) - self.seeds
        assert self.runner.run(self.frontier.add_seeds(seeds)) == len(new)
        self.seeds |= new
        for seed in dict.fromkeys(seeds):
            row = self.known.setdefault(seed, Row(len(self.known) + 1, State.WAITING, 0, 0, 1))
            if row.state is State.WAITING:
                row.depth = row.off_scope_hops = 0
                row.priority = 1

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.frontier.close())
        self.frontier = self.runner.run(SqliteFrontier.open(self.folder / "crawl.db"))

    @rule(seconds=st.integers(1, 4))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule(chosen=CHOSEN, found=FOUND)
    def settle_two(self, chosen: list[tuple[int, Event]], found: list[Found]) -> None:
        """Most of a crawl is settling, and so it should be here."""
        self.settle(chosen, found, 0.0)
        self.settle(chosen[::-1], found[::-1], 0.0)

    @rule(chosen=CHOSEN, found=FOUND, not_before=st.sampled_from([0.0, 3.0]))
    def settle(self, chosen: list[tuple[int, Event]], found: list[Found], not_before: float) -> None:
        """A batch; what is settled already may come again, as after a crash, and changes nothing but what it found."""
        batch = []
        links = tuple(
            NewUrl(
                name,
                Hop.LINK,
                "L",
                depth,
                off_scope_hops,
                priority,
                held=retry.held_note(RULE, pattern_of(name)) if holds else "",
            )
            for name, depth, off_scope_hops, priority, holds in found
        )
        names = [name for name, row in self.known.items() if row.state is State.WAITING]
        names += [name for name in list(self.known)[:2] if self.known[name].state is not State.HELD]
        for name, event in {names[number % len(names)]: event for number, event in chosen if names}.items():
            row = self.known[name]
            claim = Claim(
                self.row_of(name), name, self.host_id(name), Hop.LINK, "", row.depth, row.off_scope_hops, row.tries
            )
            capture = None
            if event is Event.CAPTURE and row.state is State.WAITING:
                place = 10 * len(self.captures)
                capture = Capture(
                    name, 1, 200, "text/html", "d", 7, 9, "w", Span(place, 4), Span(place + 4, 3), Span(place + 7, 3)
                )
                self.captures.append(capture)
                self.received += 9
            due = self.now + 2
            until = self.now + not_before if not_before else 0.0
            settlement = Settlement(claim, event, 200, due=due, not_before=until, found=links, capture=capture)
            batch.append(settlement._replace(priority=row.priority + 5, note=retry.held_note(RULE, pattern_of(name))))
        if not batch:
            return
        size = 10 * len(self.captures)
        settled = self.runner.run(self.frontier.settle(batch, [FileState("w", size, closed=False)]))
        new = self.learn(links)
        for each in batch:
            row = self.known[each.claim.url]
            if row.state is State.WAITING:
                row.state = LIFE[State.WAITING, each.event]
                row.due = each.due if each.event is Event.RETRY else 0.0
                row.tries += each.event not in UNASKED
                if each.event is Event.DELAY:
                    row.priority = each.priority
            if not_before:
                key = url.origin(each.claim.url)
                self.not_before[key] = max(self.not_before[key], each.not_before)
        assert settled.added == len(new)
        assert settled.hosts == {self.host_id(name) for name in new}

    def learn(self, links: tuple[NewUrl, ...]) -> list[str]:
        """Put *links* into the specification, by the shortest way; which of them wait from now on."""
        best: dict[str, tuple[int, int, int, bool]] = {}
        for link in links:
            depth, off_scope_hops, priority, holds = best.get(link.url, (99, 99, 99, True))
            depth, off_scope_hops = min((depth, off_scope_hops), (link.depth, link.off_scope_hops))
            best[link.url] = depth, off_scope_hops, min(priority, link.priority), holds and bool(link.held)
        new = []
        for name, (depth, off_scope_hops, priority, holds) in best.items():
            row = self.known.get(name)
            if row is None:
                state = State.HELD if holds else State.WAITING
                self.known[name] = Row(len(self.known) + 1, state, depth, off_scope_hops, priority)
            if not holds and (row is None or row.state is State.HELD):  # a link that no rule holds releases the URL
                new.append(name)
            if row is not None and row.state is State.HELD and not holds:
                row.state, row.due, row.tries = State.WAITING, 0.0, 0
            if row is not None and row.state is State.WAITING:
                row.depth, row.off_scope_hops = min((row.depth, row.off_scope_hops), (depth, off_scope_hops))
                row.priority = min(row.priority, priority)
        return new

    @rule(host=st.integers(0, 2), other_process=st.booleans())
    def release(self, host: int, *, other_process: bool) -> None:
        """As `archiver retry --held` does: all URLs of one pattern wait."""
        pattern = f"http://h{host}.example/N"
        there = {each.pattern: each for each in self.runner.run(self.frontier._read(held_patterns))}
        mine = [row for name, row in self.known.items() if row.state is State.HELD and pattern_of(name) == pattern]
        assert (pattern in there) == bool(mine)
        if not mine:
            return
        assert there[pattern].urls == len(mine)
        assert self.runner.run(self.released(there[pattern], other_process=other_process)) == len(mine)
        for row in mine:
            row.state, row.due, row.tries = State.WAITING, 0.0, 0

    async def released(self, pattern: HeldPattern, *, other_process: bool) -> int:
        if not other_process:
            return await self.frontier.release(pattern, 5)
        other = await SqliteFrontier.open(self.folder / "crawl.db")
        try:
            return await other.release(pattern, 5)
        finally:
            await other.close()

    def row_of(self, name: str) -> int:
        """Return its number in the database; PostgreSQL leaves numbers out."""
        ((row,),) = self.runner.run(self.frontier._rows("SELECT id FROM urls WHERE url = ?", (name,)))
        return int(row)

    def host_id(self, name: str) -> int:
        key = url.origin(name)
        if key not in self.hosts:
            for number in range(1, 10):
                self.hosts.setdefault(self.runner.run(self.key_of(number)), number)
        return self.hosts[key]

    async def key_of(self, number: int) -> str:
        try:
            return (await self.frontier.host(number)).key
        except IndexError:
            return f"none {number}"

    @invariant()
    def counts(self) -> None:
        counts = self.runner.run(self.frontier.counts())
        states = Counter(row.state for row in self.known.values())
        told = (counts.waiting, counts.archived, counts.failed, counts.excluded, counts.held)
        assert told == tuple(states[s] for s in State)
        assert counts.visited == sum(row.tries > 0 for row in self.known.values())
        assert counts.received == self.received
        assert counts.good_seeds == sum(self.known[seed].state is State.ARCHIVED for seed in self.seeds)

    @invariant()
    def windows(self) -> None:
        self.hosts = {key: number for key, number in self.hosts.items() if not key.startswith("none")}
        for key in {url.origin(name) for name in self.known}:
            mine = {name: row for name, row in self.known.items() if url.origin(name) == key}
            waits = {name: row for name, row in mine.items() if row.state is State.WAITING}
            ready = sorted((r.priority, r.id, n) for n, r in waits.items() if r.due <= self.now)
            window = self.runner.run(self.frontier.window(self.host_id(key + "/"), self.now, 4, prerequisites=False))
            assert [claim.url for claim in window.claims] == [name for _, _, name in ready[:4]]
            for claim in window.claims:
                row = self.known[claim.url]
                assert (claim.id, claim.depth, claim.off_scope_hops, claim.tries) == (
                    self.row_of(claim.url),
                    row.depth,
                    row.off_scope_hops,
                    row.tries,
                )
            assert window.later == min((r.due for r in waits.values() if r.due > self.now), default=NEVER)
            assert window.waiting == len(waits)
            assert window.visited == sum(row.tries > 0 for row in mine.values())
            assert window.received == 9 * sum(url.origin(capture.url) == key for capture in self.captures)

    @invariant()
    def due_hosts(self) -> None:
        ready = {url.origin(n) for n, r in self.known.items() if r.state is State.WAITING and r.due <= self.now}
        expected = {key for key in ready if self.not_before[key] <= self.now}
        rows = self.runner.run(self.frontier.due_hosts(self.now, 9, ()))
        assert {row.key for row in rows} == expected
        assert [row.not_before for row in rows] == sorted(row.not_before for row in rows)
        if rows:
            others = self.runner.run(self.frontier.due_hosts(self.now, 9, [rows[0].id]))
            assert others == rows[1:]
        waits = {url.origin(n) for n, r in self.known.items() if r.state is State.WAITING}
        times = [r.due for r in self.known.values() if r.state is State.WAITING]
        times += [self.not_before[key] for key in waits]
        assert self.runner.run(self.frontier.next_due(self.now)) == min(
            (t for t in times if t > self.now), default=NEVER
        )

    @invariant()
    def what_waits_is_found(self) -> None:
        found = self.runner.run(waiting(self.frontier, [*NAMES, "http://unknown.example/"]))
        assert set(found) == {name for name, row in self.known.items() if row.state is State.WAITING}
        assert self.runner.run(self.frontier.captures("w", -1, 999)) == self.captures


def test_any_order_of_verbs(new_crawl: Callable[[], Path], request: pytest.FixtureRequest) -> None:
    examples = 10 if request.node.get_closest_marker("postgres") else 60
    patient = settings(max_examples=examples, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(lambda: FrontierMachine(new_crawl()), settings=patient)  # type: ignore[arg-type]
