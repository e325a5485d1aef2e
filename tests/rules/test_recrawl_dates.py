"""The rules by which a recrawl leaves pages out: dates of sitemaps, and the history of a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract.sitemap import modified, modified_until
from archiver.policy.recrawl import (
    DAY,
    LONGEST,
    MOST_DATES,
    NEVER_OLD,
    PastVisit,
    SitemapDates,
    are_trusted,
    interval_of_change,
    is_due,
    is_older,
)

NOW = 1_000 * DAY


@pytest.mark.parametrize(
    ("ages", "trusted"),
    [
        ((), False),
        ((5.0,), False),  # one date tells no pages apart
        ((5.0, 5.0, 5.0), False),  # the moment at which a program ran
        ((5.0, 5.5, 5.9), False),  # a program that ran for some hours
        ((5.0, 7.0), True),
        ((0.0, 300.0), True),
        ((-0.9, 300.0), True),  # local time, ahead of UTC
        ((-1.1, 300.0), False),  # the future
    ],
)
def test_which_sitemaps_are_trusted(ages: tuple[float, ...], *, trusted: bool) -> None:
    assert are_trusted([NOW - age * DAY for age in ages], NOW) is trusted


def test_a_doubtful_sitemap_outweighs_another_one() -> None:
    dates = SitemapDates()
    old, older = NOW - 9 * DAY, NOW - 20 * DAY
    dates.add({"a": (old, old + DAY), "b": (older, older), "c": (older, older)}, NOW)
    dates.add({"a": (older, older), "d": (old, old)}, NOW)  # the latest date of a page counts
    dates.add({"c": (old, old), "e": (old, old)}, NOW)  # all the same
    known = {name: dates.modified(name) for name in "abcdef"}
    assert known == {"a": old + DAY, "b": older, "c": NEVER_OLD, "d": old, "e": NEVER_OLD, "f": NEVER_OLD}


def test_the_number_of_dates_is_bounded() -> None:
    dates = SitemapDates()
    dates.add({f"{number}": (float(number), float(number)) for number in range(MOST_DATES + 1)}, NOW * DAY)
    assert dates.modified("7") == 7
    assert dates.modified(str(MOST_DATES)) == NEVER_OLD


@pytest.mark.parametrize(
    ("written", "begins", "ends"),
    [
        ("1970-01-02", DAY, 2 * DAY),
        ("1970-01-02T00:00:00Z", DAY, DAY),
        ("1970-01", 0.0, 31 * DAY),
        ("1970", 0.0, 366 * DAY),
        ("never", None, None),
    ],
)
def test_a_date_may_mean_any_of_its_moments(written: str, begins: float | None, ends: float | None) -> None:
    assert modified(f"loc lastmod:{written}") == begins
    assert modified_until(f"loc lastmod:{written}") == ends


@pytest.mark.parametrize(("days", "older"), [(2.0, True), (1.0, False), (0.0, False), (-3.0, False)])
def test_a_page_is_a_day_older_than_its_capture(days: float, *, older: bool) -> None:
    assert is_older(NOW - days * DAY, NOW) is older
    assert not is_older(NEVER_OLD, NOW)


def history(*visits: tuple[float, str]) -> list[PastVisit]:
    """Visits so many days ago, newest first, and what each found."""
    return [PastVisit(NOW - age * DAY, (200, content)) for age, content in visits]


@pytest.mark.parametrize(
    ("visits", "due"),
    [
        ((), True),
        (((0.1, "a"),), True),  # one visit says nothing
        (((7, "b"), (14, "a")), True),  # changed within 7 days, and 7 days have passed
        (((7, "a"), (14, "a")), True),  # unchanged for 7 days, 7 have passed
        (((7, "a"), (21, "a")), True),
        (((7, "a"), (22, "a")), False),  # unchanged for 15 days, 7 have passed
        (((7, "c"), (14, "b"), (35, "a")), True),  # changed every 14 days
        (((7, "b"), (14, "b"), (35, "a")), False),  # changed once in 28 days
        (((LONGEST / DAY, "a"), (2000, "a")), True),
        (((LONGEST / DAY - 1, "a"), (2000, "a")), False),
        (((-3, "a"), (90, "a")), True),  # captured in the future: the clock was wrong
        (((7, "a"), (3, "a")), True),  # dates run backwards
    ],
)
def test_what_changed_often_is_asked_for_often(visits: tuple[tuple[float, str], ...], *, due: bool) -> None:
    assert is_due(history(*visits), NOW) is due


def test_a_changed_status_is_a_change() -> None:
    visits = [PastVisit(300.0, (200, "a")), PastVisit(200.0, (404, "a")), PastVisit(100.0, (200, "a"))]
    assert interval_of_change(visits) == 100.0
    assert interval_of_change(visits[:1]) == 0.0


HISTORIES = st.lists(st.tuples(st.floats(0, 900), st.sampled_from("ab")), max_size=9).map(
    lambda found: history(*sorted(found))
)


@given(HISTORIES, st.floats(0, 100), st.floats(0, 100))
def test_a_page_that_is_due_stays_due(visits: list[PastVisit], first: float, later: float) -> None:
    sooner = NOW + min(first, later) * DAY
    assert not is_due(visits, sooner) or is_due(visits, NOW + max(first, later) * DAY)


@given(HISTORIES)
def test_more_changes_never_make_it_wait_longer(visits: list[PastVisit]) -> None:
    restless = [PastVisit(visit.time, (200, str(number))) for number, visit in enumerate(visits)]
    assert interval_of_change(restless) <= interval_of_change(visits)
    assert not is_due(visits, NOW) or is_due(restless, NOW)


@given(st.integers(2, 30), st.floats(0.5, 90), st.lists(st.floats(-0.2, 0.2), min_size=31, max_size=31))
def test_what_changes_each_time_is_asked_for_each_time(count: int, pause: float, jitter: list[float]) -> None:
    """Crawls by a timer are never exactly as far apart as they were meant to be."""
    moments = [(number + 1 + jitter[number] - jitter[30]) * pause for number in range(count)]
    visits = history(*((age, str(number)) for number, age in enumerate(moments)))
    assert is_due(visits, NOW)


@given(HISTORIES)
def test_every_page_is_asked_for_again_some_day(visits: list[PastVisit]) -> None:
    assert is_due(visits, NOW + LONGEST + 900 * DAY)
