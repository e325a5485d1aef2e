"""The Referer field: the table of the Referrer Policy standard, and where policies come from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.policy.referrer import LONGEST, POLICIES, of_attribute, of_headers, of_meta, referer

PAGE, OPEN_PAGE = "https://e.org/a/b?q", "http://e.org/a/b?q"
HOME, OTHER, DOWN = "https://e.org/x", "https://other.org/x", "http://e.org/x"
ORIGIN, OPEN_ORIGIN = "https://e.org/", "http://e.org/"


@pytest.mark.parametrize(
    ("policy", "home", "other", "down", "open_home", "open_other"),
    [
        ("no-referrer", "", "", "", "", ""),
        ("no-referrer-when-downgrade", PAGE, PAGE, "", OPEN_PAGE, OPEN_PAGE),
        ("same-origin", PAGE, "", "", OPEN_PAGE, ""),
        ("origin", ORIGIN, ORIGIN, ORIGIN, OPEN_ORIGIN, OPEN_ORIGIN),
        ("strict-origin", ORIGIN, ORIGIN, "", OPEN_ORIGIN, OPEN_ORIGIN),
        ("origin-when-cross-origin", PAGE, ORIGIN, ORIGIN, OPEN_PAGE, OPEN_ORIGIN),
        ("strict-origin-when-cross-origin", PAGE, ORIGIN, "", OPEN_PAGE, OPEN_ORIGIN),
        ("", PAGE, ORIGIN, "", OPEN_PAGE, OPEN_ORIGIN),
        ("unsafe-url", PAGE, PAGE, PAGE, OPEN_PAGE, OPEN_PAGE),
    ],
)
def test_the_table_of_the_standard(
    policy: str, home: str, other: str, down: str, open_home: str, open_other: str
) -> None:
    assert [referer(PAGE, target, policy) for target in (HOME, OTHER, DOWN)] == [home, other, down]
    assert [referer(OPEN_PAGE, target, policy) for target in (DOWN, "http://other.org/")] == [open_home, open_other]


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:80/", "http://localhost/", "http://a.localhost/", "http://[::1]/"]
)
def test_this_machine_counts_as_secure(target: str) -> None:
    assert referer(PAGE, target) == ORIGIN


def test_a_long_url_is_cut_to_its_origin() -> None:
    longest = ORIGIN + "a" * (LONGEST - len(ORIGIN))
    assert referer(longest, HOME) == longest
    assert referer(longest + "a", HOME) == ORIGIN


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ""),
        (["origin"], "origin"),
        (["Origin , UNSAFE-URL"], "unsafe-url"),
        (["no-referrer, some-new-policy"], "no-referrer"),
        (["no-referrer", "origin,"], "origin"),
        (["never"], ""),
    ],
)
def test_header_fields(values: list[str], expected: str) -> None:
    assert of_headers(values) == expected


def test_attributes_and_meta_elements() -> None:
    assert (of_attribute(" Same-Origin "), of_attribute("never"), of_attribute("x")) == ("same-origin", "", "")
    assert (of_meta("never"), of_meta("Always"), of_meta("origin"), of_meta("x")) == (
        "no-referrer",
        "unsafe-url",
        "origin",
        "",
    )


@given(st.sampled_from(sorted(POLICIES)), st.sampled_from((PAGE, OPEN_PAGE)), st.sampled_from((HOME, OTHER, DOWN)))
def test_never_more_than_the_page_and_only_to_home_or_if_the_policy_says_so(
    policy: str, page: str, target: str
) -> None:
    got = referer(page, target, policy)
    assert got in ("", page, f"{url.origin(page)}/")
    if got == page:
        assert url.origin(page) == url.origin(target) or policy in ("unsafe-url", "no-referrer-when-downgrade")
