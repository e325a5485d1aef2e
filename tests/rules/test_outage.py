"""When the network counts as lost, when it is tried again, and whose fault a failure is: whole outages in a table."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.policy.retry import (
    LONGEST_DOUBT,
    LONGEST_NETWORK_PAUSE,
    NETWORK_FAILURES,
    NEVER,
    QUIET,
    SPAN,
    HostFailures,
    NetworkState,
)

A, B, C = 1, 2, 3
T = 1000.0  # an outage begins


class Network:
    """The state of the network, for hosts that are numbers."""

    def __init__(self) -> None:
        self._state = NetworkState()
        self._hosts = defaultdict[int, HostFailures](HostFailures)
        self.sign, self.probe = self._state.sign, self._state.probe

    @property
    def lost(self) -> bool:
        return self._state.lost

    @property
    def since(self) -> float:
        return self._state.since

    @property
    def next_start(self) -> float:
        return self._state.next_start

    def down(self, host: int) -> bool:
        return self._state.down(self._hosts[host])

    def recall(self, host: int, since: float) -> None:
        self._state.recall(self._hosts[host], since)

    def unreachable(self, host: int) -> None:
        self._state.unreachable(self._hosts[host])

    def answered(self, host: int, claim: int) -> None:
        self._state.answered(self._hosts[host], claim)

    def failed(self, host: int, began: float, now: float, *, known: bool, alone: bool) -> None:
        self._state.failed(self._hosts[host], began, now, known=known, alone=alone)

    def is_ours(self, host: int, claim: int, span: tuple[float, float], *, known: bool, others: bool) -> bool:
        return self._state.is_ours(self._hosts[host], claim, span, known=known, others=others)


def outage(*failures: tuple[int, float], known: bool = True, alone: bool = False, sign: float = T - 1) -> Network:
    """After a sign, and *failures* of hosts so many seconds after T, each of a visit that took no time."""
    rule = Network()
    rule.sign(sign)
    for host, after in failures:
        rule.failed(host, T + after, T + after, known=known, alone=alone)
    return rule


@pytest.mark.parametrize(
    ("failures", "known", "alone", "lost"),
    [
        ([(A, 0), (B, 2), (A, 4)], True, False, True),
        ([(A, 0), (B, 2), (A, 3.9)], True, False, False),  # over too soon to be sure
        ([(A, 0), (B, 9)], True, False, False),  # two are anybody's
        ([(A, 0), (A, 2), (A, 9)], True, False, False),  # others will tell whether it is this host alone
        ([(A, 0), (A, 2), (A, 9)], True, True, True),  # there are no others
        ([(A, 0), (A, 2), (A, 9)], False, True, False),  # a host that never answered is not there
        ([(A, 0), (B, 2), (C, 9)], False, False, False),
        ([(A, 0)] * 50 + [(B, 0)] * 50, True, False, False),
    ],
)
def test_when_it_is_lost(failures: list[tuple[int, float]], *, known: bool, alone: bool, lost: bool) -> None:
    assert outage(*failures, known=known, alone=alone).lost is lost


def test_one_known_host_is_enough() -> None:
    rule = Network()
    for host, after in ((A, 0), (B, 2), (A, 6)):
        rule.failed(host, T + after, T + after, known=host == B, alone=False)
    assert rule.lost
    assert rule.since == T


def test_failures_while_others_answer_count_for_nothing() -> None:
    rule = Network()
    for second in range(100):
        rule.sign(T + second + 0.5)
        rule.failed(A, T + second, T + second + 0.7, known=True, alone=True)
    assert not rule.lost
    assert rule.since == NEVER


def test_a_host_that_failed_while_others_answered_is_down_by_itself() -> None:
    """The crawl does not wait for it, not even when it is the last one; with another one it is an outage again."""
    rule = outage((A, 0))
    rule.sign(T + 1)
    for second in (2, 6, 10):
        rule.failed(A, T + second, T + second, known=True, alone=True)
    assert not rule.lost
    assert not rule.is_ours(A, 7, (T + 10, T + 10), known=True, others=False)
    rule.failed(B, T + 11, T + 11, known=True, alone=False)
    assert rule.lost


def test_a_host_that_was_down_by_itself_still_is_in_the_next_run() -> None:
    """Alone it is given up as it would have been; with another one that fails it is an outage, and then all is open."""
    rule = Network()
    rule.recall(A, T - 500)
    for second in range(0, 600, 20):
        rule.failed(A, T + second, T + second, known=True, alone=True)
        assert rule.down(A)
        assert not rule.lost
        assert not rule.is_ours(A, 7, (T + second, T + second), known=True, others=False)
    for second in (600, 604):
        rule.failed(B, T + second, T + second, known=True, alone=False)
    assert rule.lost
    rule.sign(T + 700)
    assert not rule.down(A)


def test_what_the_run_before_has_seen_is_no_sign_in_this_one() -> None:
    """Hosts of which nothing is told are lost with the network as ever."""
    rule = Network()
    rule.recall(A, T - 500)
    for second in (0, 2, 4):
        rule.failed(B, T + second, T + second, known=True, alone=True)
    assert not rule.down(B)
    assert rule.lost


def test_without_a_way_to_anywhere_no_host_is_down() -> None:
    """Also not one that was, as far as anybody can tell: it is waited for until there is a way again."""
    rule = Network()
    rule.recall(A, T - 500)
    for second in (0, 2, 4):
        rule.unreachable(A)
        rule.failed(A, T + second, T + second, known=True, alone=True)
        assert not rule.down(A)
    assert rule.lost


def test_a_host_that_answered_is_there() -> None:
    rule = outage((A, 0))
    rule.sign(T + 1)
    rule.answered(A, 7)
    for second in (2, 6, 10):
        rule.failed(A, T + second, T + second, known=True, alone=True)
    assert rule.lost


def test_an_outage_that_comes_again_at_once_is_one() -> None:
    """A connection was made, but nobody answered before the network was gone again."""
    rule = outage((A, 0), (A, 2), (A, 4), alone=True)
    rule.sign(T + 60)
    for second in (61, 63, 65):
        rule.failed(A, T + second, T + second, known=True, alone=True)
    assert rule.lost


def test_a_sign_early_in_a_long_visit_proves_nothing_for_its_end() -> None:
    rule = outage(sign=T + 1)
    for host in (A, B, C):
        rule.failed(host, T, T + 60, known=True, alone=False)
    assert rule.since == T + 60
    rule = outage(sign=T + 60 - QUIET)
    rule.failed(A, T, T + 60, known=True, alone=False)
    assert rule.since == NEVER


def test_probes_come_ever_less_often() -> None:
    rule = outage((A, 0), (B, 2), (A, 4))
    now, pauses = T + 4, []
    for _ in range(7):
        pauses.append(rule.next_start - now)
        now = rule.next_start
        rule.probe(now)
    assert pauses == [2, 4, 8, 16, LONGEST_NETWORK_PAUSE, LONGEST_NETWORK_PAUSE, LONGEST_NETWORK_PAUSE]


def test_a_probe_that_took_long_is_not_followed_at_once() -> None:
    rule = outage((A, 0), (B, 2), (A, 4))
    rule.probe(T + 6)
    rule.failed(B, T + 6, T + 66, known=True, alone=False)
    assert rule.next_start == T + 68


def test_any_sign_ends_it() -> None:
    rule = outage((A, 0), (B, 2), (A, 4))
    rule.sign(T + 600)
    assert not rule.lost
    assert rule.since == NEVER
    assert rule.next_start <= 0
    rule.failed(A, T + 601, T + 601, known=True, alone=False)
    assert not rule.lost


def test_while_it_is_lost_nothing_is_the_sites_fault() -> None:
    rule = outage((A, 0), (B, 2), (A, 4))
    assert rule.is_ours(A, 7, (T + 5, T + 6), known=False, others=False)


@pytest.mark.parametrize(
    ("known", "others", "sign", "ours"),
    [
        (True, False, -1.0, True),  # it was there, and nobody has been heard since
        (True, False, 0.5, False),  # somebody was heard meanwhile
        (False, False, -1.0, False),  # nobody has ever heard of it
        (False, True, -1.0, False),  # … nor has it been quiet for long
        (False, True, -9.0, True),  # quiet, and others will soon tell
    ],
)
def test_the_last_failure_of_a_url(*, known: bool, others: bool, sign: float, ours: bool) -> None:
    rule = outage(sign=T + sign)
    assert rule.is_ours(A, 7, (T, T + 1), known=known, others=others) is ours


def test_a_doubt_ends_with_the_first_sign() -> None:
    rule = outage(sign=T - 60)
    assert rule.is_ours(A, 7, (T, T + 1), known=True, others=True)
    assert rule.is_ours(A, 7, (T + 4, T + 5), known=True, others=True)
    rule.sign(T + 6)
    assert not rule.is_ours(A, 7, (T + 8, T + 9), known=True, others=True)


def test_a_doubt_about_a_host_that_nobody_knows_ends_by_itself() -> None:
    rule = outage(sign=T - 60)
    assert rule.is_ours(A, 7, (T, T + 1), known=False, others=True)
    assert rule.is_ours(A, 7, (T + 50, T + 51), known=False, others=True)
    assert not rule.is_ours(A, 7, (T + 60, T + 1 + LONGEST_DOUBT), known=False, others=True)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["sign", "failed", "ours", "probe"]),
        st.integers(1, 4),  # host, or URL
        st.floats(0, 20),  # seconds since the event before
        st.floats(0, 90),  # how long the visit took
        st.booleans(),
        st.booleans(),
    ),
    max_size=60,
)


@given(EVENTS)
def test_invariants(events: list[tuple[str, int, float, float, bool, bool]]) -> None:
    rule, now, sign, failed = Network(), T, -NEVER, list[float]()
    for what, which, later, took, known, flag in events:
        now += later
        if what == "sign":
            sign = now
            rule.sign(now)
            failed.clear()
            assert not rule.lost
        elif what == "failed":
            rule.failed(which, now - took, now, known=known, alone=flag)
            if sign < max(now - took, now - QUIET):
                failed.append(now)
        elif what == "ours":
            ours = rule.is_ours(which, which, (now - took, now), known=known, others=flag)
            assert ours or not rule.lost
            assert not ours or rule.lost or sign < now - took
        elif rule.lost:
            rule.probe(now)
        assert rule.since == min(failed, default=NEVER)
        if rule.lost:
            assert len(failed) >= NETWORK_FAILURES
            assert now - failed[0] >= SPAN
            assert rule.next_start <= now + LONGEST_NETWORK_PAUSE
        else:
            assert rule.next_start == -NEVER
