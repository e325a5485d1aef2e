"""How many requests at once a limit of open files allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.cli.runner import EACH, MOST_BESIDE, RESERVE, STANDING, fitting, needed
from archiver.collection.index import MERGE_WIDTH
from archiver.fetch.spool import SPARE


@pytest.mark.parametrize(
    ("limit", "concurrency", "fits"),
    [
        (None, 32, 32),
        (1 << 20, 1000, 1000),
        (1024, 32, 32),
        (RESERVE + EACH * 10, 32, 10),
        (RESERVE + EACH * 10 - 1, 32, 9),
        (RESERVE + EACH, 32, 1),
        (RESERVE, 32, 1),
        (20, 1, 1),
        (20_000, 10_000, 10_000),
        (RESERVE + 2 * MOST_BESIDE + 5000, 10_000, 5000),
    ],
)
def test_table(limit: int | None, concurrency: int, fits: int) -> None:
    assert fitting(limit, concurrency) == fits


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_what_fits_is_as_much_as_possible(limit: int, concurrency: int) -> None:
    fits = fitting(limit, concurrency)
    assert 1 <= fits <= concurrency
    assert fits == 1 or needed(fits) <= limit
    assert fits == concurrency or needed(fits + 1) > limit


def test_a_common_limit_is_enough_for_the_default() -> None:
    assert needed(32) <= 1024


def test_large_answers_leave_enough_to_the_archive() -> None:
    assert SPARE >= STANDING + MERGE_WIDTH + 1
