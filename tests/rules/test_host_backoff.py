from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from archiver.policy.retry import (
    FIRST_HOST_PAUSE,
    HOST_FAILURES,
    LONGEST_HOST_PAUSE,
    NO_BACKOFF,
    BackoffPolicy,
    BackoffVerdict,
    HostBackoff,
    HostFailures,
)

T = 1000.0


class Tracker:
    """The policy for hosts that are numbers."""

    def __init__(self, patience: float, *, stranger: float = 0.0) -> None:
        self._policy, self._stranger = BackoffPolicy(patience), stranger
        self._hosts = defaultdict[int, HostFailures](HostFailures)

    def recall(self, host: int, saved: HostBackoff) -> None:
        self._policy.recall(self._hosts[host], saved)

    def answered(self, host: int) -> bool:
        return self._policy.answered(self._hosts[host])

    def failed(self, host: int, now: float, *, known: bool = True) -> BackoffVerdict:
        return self._policy.failed(self._hosts[host], now, float("inf") if known else self._stranger)

    def state(self, host: int) -> HostBackoff:
        return self._hosts[host].backoff

    def asleep(self, host: int) -> bool:
        return self._hosts[host].backing_off


def felled(patience: float) -> Tracker:
    """Host 1 has failed often enough to sleep."""
    sleepers = Tracker(patience)
    assert [sleepers.failed(1, T) for _ in range(HOST_FAILURES)] == [BackoffVerdict.UP] * (HOST_FAILURES - 1) + [
        BackoffVerdict.BACKING_OFF
    ]
    return sleepers


def test_it_sleeps_after_enough_failures_in_a_row() -> None:
    sleepers = felled(3600)
    assert sleepers.asleep(1)
    assert sleepers.state(1) == HostBackoff(since=T, pause=FIRST_HOST_PAUSE, until=T + FIRST_HOST_PAUSE)
    assert not sleepers.asleep(2)


def test_an_answer_begins_the_count_again() -> None:
    sleepers = Tracker(3600)
    for _ in range(20):
        for _ in range(HOST_FAILURES - 1):
            assert sleepers.failed(1, T) is BackoffVerdict.UP
        assert not sleepers.answered(1)
    assert sleepers.state(1) == NO_BACKOFF


def test_an_answer_wakes_it() -> None:
    sleepers = felled(3600)
    assert sleepers.answered(1)
    assert not sleepers.asleep(1)
    assert not sleepers.answered(1)


@given(st.floats(1.0, 1e5), st.floats(0.0, 60.0))
def test_probes_come_less_and_less_often_and_the_last_when_the_patience_ends(patience: float, slow: float) -> None:
    """However long a probe takes to fail."""
    sleepers = felled(patience)
    probes = [sleepers.state(1).until]
    while sleepers.failed(1, probes[-1] + slow) is BackoffVerdict.BACKING_OFF:
        probes.append(sleepers.state(1).until)
        assert len(probes) < 1000
    assert probes[-1] + slow >= T + patience
    assert probes[-1] <= max(T + patience, probes[-2] + slow + LONGEST_HOST_PAUSE if len(probes) > 1 else 0) + 1e-6
    pauses = [after - before - slow for before, after in pairwise(probes[:-1])]
    assert all(after >= before - 1e-6 for before, after in pairwise(pauses))
    assert all(pause <= LONGEST_HOST_PAUSE + 1e-6 for pause in pauses)
    assert sleepers.failed(1, probes[-1] + slow + 1) is BackoffVerdict.GIVEN_UP


def test_without_a_limit_it_is_never_given_up() -> None:
    sleepers, now = felled(0), T
    for _ in range(200):
        now = sleepers.state(1).until
        assert sleepers.failed(1, now) is BackoffVerdict.BACKING_OFF


def test_one_that_never_answered_is_given_up_much_sooner() -> None:
    """After the same few requests, and a last look when its time is over."""
    sleepers = Tracker(3600, stranger=14)
    verdicts = [sleepers.failed(1, T, known=False) for _ in range(HOST_FAILURES)]
    assert verdicts == [BackoffVerdict.UP] * (HOST_FAILURES - 1) + [BackoffVerdict.BACKING_OFF]
    probes = [sleepers.state(1).until]
    while sleepers.failed(1, probes[-1], known=False) is BackoffVerdict.BACKING_OFF:
        probes.append(sleepers.state(1).until)
    assert probes == [T + FIRST_HOST_PAUSE, T + 14]


@given(st.floats(0.1, 1e4), st.floats(0.0, 1e4))
def test_one_that_never_answered_is_waited_for_no_longer_than_others(patience: float, stranger: float) -> None:
    sleepers, now = Tracker(patience, stranger=stranger), T
    while sleepers.failed(1, now, known=False) is not BackoffVerdict.GIVEN_UP:
        now = max(now, sleepers.state(1).until)
    assert now <= T + min(patience, stranger) + 1e-6


def test_what_the_run_before_has_left() -> None:
    sleepers = Tracker(100)
    sleepers.recall(1, HostBackoff(T - 90, 40.0, T + 5))
    sleepers.recall(2, NO_BACKOFF)
    assert sleepers.asleep(1)
    assert not sleepers.asleep(2)
    assert sleepers.failed(1, T + 5) is BackoffVerdict.BACKING_OFF
    assert sleepers.failed(1, T + 10) is BackoffVerdict.GIVEN_UP
