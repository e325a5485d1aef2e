"""What pages have shown, against one set for each host, directory and pattern."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.shown import NUMBERS, News, Shown

THINGS = [hash(f"thing {number}") % NUMBERS for number in range(12)]
GROUPS = st.sampled_from(["a", "b", "c"])
PAGES = st.lists(st.tuples(st.lists(st.sampled_from(THINGS), max_size=4), st.sampled_from("hi"), GROUPS, GROUPS))


@settings(max_examples=60)
@given(PAGES)
def test_it_is_new_what_no_page_of_the_same_kind_has_shown(pages: list[tuple[list[int], str, str, str]]) -> None:
    shown, known = Shown(), defaultdict[str, set[int]](set)
    for things, host, folder, shape in pages:
        groups = host, f"{host}/{folder}/*", f"{host}/{shape}"
        expected = [bool(set(things) - known[group]) for group in groups]
        for group in groups:
            known[group].update(things)
        assert shown.news(things, *groups) == News(*expected)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(st.sampled_from(THINGS), max_size=4), GROUPS)))
def test_a_group_by_itself(pages: list[tuple[list[int], str]]) -> None:
    shown, known = Shown(), defaultdict[str, set[int]](set)
    for things, group in pages:
        assert shown.is_new(things, group) is bool(set(things) - known[group])
        known[group].update(things)


def test_what_does_not_fit_is_new_again() -> None:
    """Two things that lie in one place: the later one drives the other out."""
    shown, one, other = Shown(), 5, 5 + NUMBERS // 2
    for thing in (one, other, one, other):
        assert shown.news([thing], "h", "d", "p") == News(to_host=True, to_directory=True, to_pattern=True)
    assert shown.news([other], "h", "d", "p") == News(to_host=False, to_directory=False, to_pattern=False)
