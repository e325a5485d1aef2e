"""What hosts teach: servers with a known capacity, and whatever else may come, on a clock of plain numbers."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.config.option_types import Rate
from archiver.policy.limits import LONGEST_GAP, UNTAUGHT, RateLimiter, Throttle, ThrottleState, slowed
from archiver.policy.schedule import Schedule
from fixtures.simulated_servers import Limited, Reply, Server, Workers, crawl

RATES = st.builds(Rate, st.integers(0, 60), st.sampled_from([0.5, 1.0, 60.0]))
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["page", "file", "429", "503", "timeout"]),
        st.floats(0.0, 30.0),  # seconds until it comes
        st.floats(0.0, 100.0),  # seconds that it took
    ),
    max_size=120,
)


@given(RATES, st.integers(1, 40), st.integers(0, 2), EVENTS)
def test_never_more_than_configured_and_never_nothing(
    rate: Rate, concurrency: int, first: int, events: list[tuple[str, float, float]]
) -> None:
    temper, now = Throttle(rate, concurrency, first=first), 1000.0
    most = rate.starts / rate.interval if rate.starts else float("inf")
    for what, pause, took in events:
        now += pause
        if what in {"page", "file"}:
            temper.answered(now - took, now, took, page=what == "page")
        else:
            temper.overloaded(now - took, now, what)
        assert 1 <= temper.width <= concurrency
        assert temper.rate == float("inf") or min(1 / LONGEST_GAP, most) <= temper.rate < most
        again = Throttle(rate, concurrency, temper.state, first=1)
        assert again.state == temper.state
        assert bool(temper.description) == bool(temper.state.why)


@given(RATES, st.builds(ThrottleState, st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e3), st.just("503")))
def test_a_lesson_never_lifts_what_is_configured_now(rate: Rate, lesson: ThrottleState) -> None:
    temper = Throttle(rate, 2, lesson, first=1)
    assert temper.width <= 2
    assert temper.rate == float("inf") or not rate.starts or temper.rate < rate.starts / rate.interval


@pytest.mark.parametrize(
    ("workers", "seconds", "concurrency", "spread"),
    [(4, 0.05, 16, 0.0), (4, 0.1, 16, 0.3), (1, 0.4, 2, 0.0), (1, 0.1, 8, 0.3), (20, 0.2, 64, 0.5), (3, 0.5, 6, 0.5)],
)
def test_a_server_with_a_known_capacity(workers: int, seconds: float, concurrency: int, spread: float) -> None:
    """Without a configured rate: four fifths of what it can give, and on the average not twice as slow as alone."""
    server = Workers(workers, seconds, spread=spread)
    found = crawl(Schedule(Rate(0), concurrency, first=1), {1: server}, 90)[1]
    assert found.good(0, 80) >= 0.8 * workers / seconds
    assert found.mean() < 2 * seconds
    assert found.most <= concurrency


@pytest.mark.parametrize(
    ("limit", "rest", "rate", "concurrency"),
    [(10, 2.0, Rate(0), 8), (10, 1.0, Rate(50), 4), (5, 5.0, Rate(20), 2), (2, 2.0, Rate(5), 2)],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_says_how_long_to_rest(
    limit: int, rest: float, rate: Rate, concurrency: int, status: int
) -> None:
    """Four fifths of its rate once that is known, and not one request before a rest is over."""
    server = Limited(limit, rest, status=status)
    found = crawl(Schedule(rate, concurrency, first=1), {1: server}, 300)[1]
    assert server.early == 0
    assert found.good(30, 300) >= 0.8 * limit
    assert found.status.count(status) < 0.05 * len(found.status)


def test_a_server_that_recovers() -> None:
    """Slow for a minute, and then as before: it is asked with all that is configured again."""
    quick, slow = Workers(8, 0.1), Workers(1, 0.4)
    schedule = Schedule(Rate(30), 8, first=1)
    found = crawl(schedule, {1: lambda now: (slow if 60 <= now < 120 else quick)(now)}, 400)[1]
    assert found.good(10, 60) >= 0.9 * 30
    assert found.good(70, 120) >= 0.8 * 2.5
    slow_then = [width for began, width in zip(found.began, found.width, strict=True) if 80 <= began < 120]
    assert max(slow_then) <= 3
    assert found.good(330, 400) >= 0.9 * 30


def test_what_is_slow_by_itself_is_not_slowed_down() -> None:
    """Files that come at once say nothing about pages that take a second; no more does one slow answer of many."""
    temper, now = Throttle(Rate(5), 2, first=1), 0.0
    for turn in range(400):
        now += 0.5
        took = 4.0 if turn % 12 == 0 else 1.0 if turn % 2 else 0.005
        temper.answered(now - took, now, took, page=bool(turn % 2))
    assert temper.state == UNTAUGHT
    assert temper.width == 2


def test_what_comes_together_counts_once() -> None:
    temper = Throttle(Rate(8), 8)
    for _ in range(8):
        temper.overloaded(9.0, 10.0, "503")
    assert temper.rate == pytest.approx(8 * 0.6)
    assert temper.description == "slowed down to 4.8/s: 503"


def test_silence_is_no_praise() -> None:
    """A rest, or a night without anything to ask for, is not taken for an hour of good answers."""
    temper = Throttle(Rate(8), 8)
    temper.overloaded(9.0, 10.0, "503", 3600.0)
    temper.answered(4000.0, 4000.1, 0.1, page=True)
    assert temper.rate == pytest.approx(8 * 0.6)


@pytest.mark.parametrize(
    ("lesson", "words"),
    [
        (UNTAUGHT, ""),
        (ThrottleState(1.23, 2.0, 0.0, "503"), "slowed down to 1.2/s: 503"),
        (ThrottleState(0.0123, 2.0, 0.0, "503"), "slowed down to 0.012/s: 503"),
        (ThrottleState(98.7, 2.0, 0.0, "slow answers"), "slowed down to 99/s: slow answers"),
        (ThrottleState(667.8, 2.0, 0.0, "slow answers"), "slowed down to 668/s: slow answers"),
        (ThrottleState(0.0, 0.0, 3.7, "slow answers"), "slowed down to 3 at once: slow answers"),
    ],
)
def test_words(lesson: ThrottleState, words: str) -> None:
    assert slowed(lesson) == words


@settings(max_examples=50)
@given(
    st.builds(Rate, st.integers(1, 100)),
    st.lists(st.tuples(st.floats(0, 0.5), st.none() | st.floats(0.02, 100)), max_size=80),
)
def test_a_pace_heeds_what_was_learned(rate: Rate, turns: list[tuple[float, float | None]]) -> None:
    """From the moment on at which it is told, and never faster than configured."""
    pace, now, learned, starts = RateLimiter(rate), 0.0, float("inf"), list[float]()
    for wait, lesson in turns:
        now += wait
        if lesson is not None:
            learned = lesson
            pace.limit_to(learned)
        while (earliest := pace.start(now)) > now:
            now = earliest
        if starts:
            assert now - starts[-1] >= 1 / learned - 1e-6
        starts.append(now)
    pairs = zip(starts, starts[rate.starts :], strict=False)
    assert all(beyond - first > rate.interval for first, beyond in pairs)
    assert all(after >= before for before, after in pairwise(starts))


def test_many_hosts_with_whatever_they_can_bear() -> None:
    """Each has its own story: a slow one, one that limits, and a dead one cost the others nothing."""

    def dead(now: float) -> Reply:
        return Reply(now + 30.0, 503)

    limited = Limited(5, 2.0)
    servers: dict[int, Server] = {1: Workers(4, 0.1), 2: limited, 3: dead, 4: Workers(1, 2.0)}
    found = crawl(Schedule(Rate(20), 4, first=1), servers, 120)
    assert found[1].good(10, 110) >= 0.9 * 20
    assert found[2].good(20, 110) >= 0.75 * 5
    assert limited.early == 0
    assert len(found[3].began) <= 20
    assert found[4].good(10, 110) >= 0.8 * 0.5
