"""How many requests at once a limit of open files allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.cli.runner import (
    BASE_FILES,
    FILES_PER_REQUEST,
    MAX_EXTRA,
    RESERVE,
    fitting_concurrency,
    open_files_needed,
)
from archiver.collection.index import MERGE_WIDTH
from archiver.fetch.spool import SPARE


@pytest.mark.parametrize(
    ("limit", "concurrency", "fits"),
    [
        (None, 32, 32),
        (1 << 20, 1000, 1000),
        (1024, 32, 32),
        (RESERVE + FILES_PER_REQUEST * 10, 32, 10),
        (RESERVE + FILES_PER_REQUEST * 10 - 1, 32, 9),
        (RESERVE + FILES_PER_REQUEST, 32, 1),
        (RESERVE, 32, 1),
        (20, 1, 1),
        (20_000, 10_000, 10_000),
        (RESERVE + 2 * MAX_EXTRA + 5000, 10_000, 5000),
    ],
)
def test_table(limit: int | None, concurrency: int, fits: int) -> None:
    assert fitting_concurrency(limit, concurrency) == fits


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_what_fits_is_as_much_as_possible(limit: int, concurrency: int) -> None:
    fits = fitting_concurrency(limit, concurrency)
    assert 1 <= fits <= concurrency
    assert fits == 1 or open_files_needed(fits) <= limit
    assert fits == concurrency or open_files_needed(fits + 1) > limit


def test_a_common_limit_is_enough_for_the_default() -> None:
    assert open_files_needed(32) <= 1024


def test_large_answers_leave_enough_to_the_archive() -> None:
    assert SPARE >= BASE_FILES + MERGE_WIDTH + 1
