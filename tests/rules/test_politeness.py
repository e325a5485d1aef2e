from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.option_types import Rate
from archiver.policy.limits import LEAST_SLACK, SLACK, RateLimiter

RATES = st.builds(Rate, st.integers(1, 200), st.sampled_from([0.1, 0.5, 1.0, 2.0, 60.0]))
WAITS = st.lists(st.one_of(st.just(0.0), st.floats(0, 0.01), st.floats(0, 3)), min_size=1, max_size=300)


def begin(pace: RateLimiter, rate: Rate, waits: list[float]) -> list[float]:
    """Starts as early as the pace allows, but each as late as somebody who was busy for *waits*."""
    now, starts = 1000.0, []
    for wait in waits:
        now += wait * rate.interval / rate.starts
        while (earliest := pace.start(now)) > now:
            now = earliest
        starts.append(now)
    return starts


@given(RATES, WAITS)
def test_no_window_holds_more_starts_than_the_rate(rate: Rate, waits: list[float]) -> None:
    starts = begin(RateLimiter(rate), rate, waits)
    slack = max(rate.interval * SLACK, LEAST_SLACK)
    for first, beyond in zip(starts, starts[rate.starts :], strict=False):
        assert beyond - first >= rate.interval + slack - 1e-6


@given(RATES, WAITS)
def test_starts_are_spread(rate: Rate, waits: list[float]) -> None:
    starts = begin(RateLimiter(rate), rate, waits)
    assert all(after - before >= 0.5 * rate.interval / rate.starts - 1e-6 for before, after in pairwise(starts))


@given(RATES)
def test_a_busy_machine_still_reaches_the_rate(rate: Rate) -> None:
    starts = begin(RateLimiter(rate), rate, [0.3] * (3 * rate.starts))
    slack = max(rate.interval * SLACK, LEAST_SLACK)
    late = 0.3 * rate.interval / rate.starts  # each of them; only the first of a window can cost anything
    assert starts[-1] - starts[0] <= 3 * (rate.interval + slack + late) + 1e-6


@given(st.builds(Rate, st.integers(0, 50)), st.floats(0.1, 300), WAITS)
def test_crawl_delay_holds_between_all_starts(rate: Rate, delay: float, waits: list[float]) -> None:
    pace = RateLimiter(rate)
    before = begin(pace, Rate(1), [0.0])
    pace.slow_down(delay)
    starts = before + begin(pace, Rate(1), waits)
    assert all(after - earlier >= delay - 1e-6 for earlier, after in pairwise(starts))


def test_crawl_delay_only_slows() -> None:
    pace = RateLimiter(Rate(1, 10))
    pace.slow_down(2)
    assert pace.gap == pytest.approx(10.2)


def test_without_limit() -> None:
    pace = RateLimiter(Rate(0))
    assert pace.gap == 0
    assert begin(pace, Rate(1), [0.0] * 100) == [1000.0] * 100
    assert pace.forgettable(1000.0)


def test_not_before() -> None:
    pace = RateLimiter(Rate(0), not_before=1005.0)
    assert pace.start(1000.0) == 1005.0
    assert pace.start(1005.0) == 1005.0


def test_asking_changes_nothing() -> None:
    pace = RateLimiter(Rate(1))
    assert pace.start(10.0) == 10.0
    for _ in range(3):
        assert pace.next(10.5) == pace.start(10.5) == pytest.approx(11.02)


@given(RATES, WAITS, WAITS)
def test_a_pace_is_forgotten_only_when_a_new_one_is_as_good(
    rate: Rate, before: list[float], after: list[float]
) -> None:
    pace = RateLimiter(rate)
    earlier = begin(pace, rate, before)
    end = earlier[-1] + (rate.interval + max(rate.interval * SLACK, LEAST_SLACK))  # rounded as in the limiter
    assert not pace.forgettable(end - 1e-3)
    assert pace.forgettable(end)
    fresh = RateLimiter(rate, not_before=end)
    starts = earlier + begin(fresh, rate, after)
    for first, beyond in zip(starts, starts[rate.starts :], strict=False):
        assert beyond - first >= rate.interval


@given(RATES, WAITS, WAITS)
def test_starts_of_a_group_whose_hosts_move_count_once(rate: Rate, own: list[float], others: list[float]) -> None:
    """Each of its many hosts brings the same starts; those of both groups count, and no later ones."""
    pace, other = RateLimiter(rate), RateLimiter(rate)
    begin(pace, rate, own)
    begin(other, rate, others)
    starts = *pace.starts, *other.starts
    latest = sorted(starts)[-rate.starts :]
    for _ in range(50):
        pace.inherit(other)
    assert pace.last_start == latest[-1]
    slack = max(rate.interval * SLACK, LEAST_SLACK)
    assert pace.next(0.0) <= latest[-1] + rate.interval + slack + 1e-6
    if len(latest) == rate.starts and len(set(starts)) == len(starts):
        assert pace.next(0.0) >= latest[0] + rate.interval + slack - 1e-6


@pytest.mark.parametrize("rate", [Rate(1), Rate(20), Rate(3, 10.0), Rate(0)])
def test_a_host_that_is_handed_over_often_is_asked_all_the_same(rate: Rate) -> None:
    """The starts of another crawler count once, however often its host comes back before a request starts."""
    once, often = RateLimiter(rate), RateLimiter(rate)
    once.fill(100.0)
    for _ in range(200):
        often.fill(100.0)
    assert often.next(100.0) == once.next(100.0)
    assert often.last_start == 100.0
    often.fill(50.0)  # what is older changes nothing
    assert often.next(100.0) == once.next(100.0)
    assert once.next(100.0 + rate.interval * 2) == 100.0 + rate.interval * 2
