"""What pages have shown, against a plain count; and what does not fit."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.shown import OFTEN, Shown

THINGS = [hash(f"thing {number}") & ~OFTEN for number in range(12)]


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from(THINGS), max_size=9), max_size=30))
def test_how_often_a_thing_was_shown(pages: list[list[int]]) -> None:
    shown, counts = Shown(1 << 16), Counter[int]()
    for things in pages:
        found = shown.add_all(things)
        for thing, times in zip(things, found, strict=True):
            assert times == min(counts[thing], OFTEN)
            counts[thing] += 1
    assert all(shown.look(thing) == min(counts[thing], OFTEN) for thing in THINGS)


def test_what_does_not_fit_is_new_again() -> None:
    """Two things that lie in one place: the later one drives the other out."""
    shown, one, other = Shown(16), 5 << 4, (5 + 16) << 4
    assert [shown.times(thing) for thing in (one, other, one, other)] == [0, 0, 0, 0]
    assert shown.times(other) == 1
