"""Settings that can be changed while a crawl runs, and rates that change."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from archiver.config.host_rules import HostRule
from archiver.config.live_settings import LIVE, LIVE_FOR_HOSTS, live_values, with_exclude, with_live_values
from archiver.config.option_types import Rate
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.policy.limits import GroupLimits, RateLimiter
from archiver.policy.schedule import Schedule


def test_every_live_key_is_a_setting() -> None:
    assert {key_of(entry) for _, entry in every_setting()} >= LIVE | LIVE_FOR_HOSTS


def test_values_replace_those_before() -> None:
    before = with_values(Settings(), {"exclude": ("/a/", "/b/"), "max_depth": 3})
    after = with_live_values(before, ["exclude=/c/", "exclude=x=y", "max-depth=none", "rate=1/10"])
    assert (after.scope.exclude, after.scope.max_depth) == (("/c/", "x=y"), None)
    assert after.politeness.rate == Rate(1, 10.0)
    assert live_values(["exclude="], before) == {"exclude": ()}


def test_a_list_is_left_out_and_taken_back() -> None:
    before = with_values(Settings(), {"without": ("forums,wikis", "blogs")})
    assert with_exclude(before, "--without=shops", undo=False).scope.without == ("forums", "wikis", "blogs", "shops")
    assert with_exclude(before, "--without=wikis", undo=False).scope.without == ("forums", "blogs", "wikis")
    assert with_exclude(before, "--without=wikis", undo=True).scope.without == ("forums", "blogs")
    assert with_exclude(before, "--without", undo=False).scope.exclude == ("--without",)


def test_a_rule_for_hosts_goes_before_the_others() -> None:
    old = HostRule("a.example", (("rate", Rate(1)), ("retries", 7)))
    other = HostRule("*.example", (("rate", Rate(3)),))
    before = with_values(Settings(), {"host": (old, other)})
    rules = with_live_values(before, ["host=a.example rate=2"]).politeness.host
    assert rules == (
        HostRule("a.example", (("rate", Rate(2)),)),
        HostRule("a.example", (("retries", 7),)),
        other,
    )


RATES = st.builds(Rate, st.integers(1, 20), st.sampled_from((0.5, 1.0, 10.0)))


@given(st.lists(st.tuples(RATES, st.lists(st.floats(0.0, 3.0), min_size=1, max_size=30)), min_size=2, max_size=5))
def test_a_changed_rate_holds_from_the_next_start_on(phases: list[tuple[Rate, list[float]]]) -> None:
    limiter, now = RateLimiter(Rate(50)), 0.0
    for rate, waits in phases:
        limiter.take(rate)
        starts, before = [], limiter.last_start
        for wait in waits:
            now = max(now + wait, limiter.next(now + wait))
            limiter.count(now)
            starts.append(now)
        most = max(bisect_left(starts, start + rate.interval) - place for place, start in enumerate(starts))
        assert most <= rate.starts
        assert starts[0] - before >= rate.interval / rate.starts / 3  # not together with the latest one


def test_a_schedule_that_is_retuned_keeps_what_it_has_started() -> None:
    fast, slow = GroupLimits(Rate(100), 4), GroupLimits(Rate(1), 2)
    schedule = Schedule(Rate(100), 4)
    schedule.lease(1, "http://a.example", 0.0, limits=fast)
    assert schedule.admit(1, 10.0) == 10.0
    schedule.retune(0)
    schedule.regroup(1, slow)
    assert 10.4 < schedule.admit(1, 10.01) < 11.1
    schedule.lease(2, "http://b.example", 0.0, limits=slow)
    assert schedule.host(1).group.throttle.width <= 2
    schedule.retune(0)
    schedule.regroup(1, fast)
    assert schedule.admit(1, 11.2) == 11.2
    assert schedule.host(1).group.throttle.width <= 4
