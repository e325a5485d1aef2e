"""Which pages a crawl shows in a browser, and which URLs no replay asks for again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.policy.novelty import READ_ALL
from archiver.policy.views import (
    FEW,
    FIRST,
    FIRST_OF_HOST,
    SAMPLE,
    ViewNeed,
    ViewSample,
    VolatileUrls,
    need_of,
    text_length,
)
from fixtures.growth import growth

WORDS = b"<p>" + b"words that a reader sees " * 20 + b"</p>"
HOST = "http://example.org"


@pytest.mark.parametrize(
    ("page", "need"),
    [
        (b"", ViewNeed.NONE),
        (WORDS, ViewNeed.NONE),
        (b"<p>short", ViewNeed.NONE),
        (b"<script src=a.js></script>" + WORDS, ViewNeed.SCRIPTED),
        (b"<SCRIPT>1</SCRIPT>" + WORDS, ViewNeed.SCRIPTED),
        (b'<body onload="start()">' + WORDS, ViewNeed.SCRIPTED),
        (b"<script src=a.js></script><p>short", ViewNeed.EMPTY),
        (b"<head><title>" + WORDS + b"</title></head><script>1</script>", ViewNeed.EMPTY),
        (b"<script>" + WORDS + b"</script>", ViewNeed.EMPTY),
        (b"<script>1</script><!-- " + WORDS + b" -->", ViewNeed.EMPTY),
        (b"<style>" + b"p { color: red } " * 50 + b"</style><script>1</script>", ViewNeed.EMPTY),
        (b"<noscript>" + WORDS + b"</noscript><script>1</script>", ViewNeed.EMPTY),
        (b'<script>1</script><div id="root"></div>' + WORDS, ViewNeed.EMPTY),
        (b"<script>1</script><div class=x id=__next> </div>" + WORDS, ViewNeed.EMPTY),
        (b"<script>1</script><app-root></app-root>" + WORDS, ViewNeed.EMPTY),
        (b'<script>1</script><div id="root">' + WORDS + b"</div>", ViewNeed.SCRIPTED),
        (b"<script>1</script>" + WORDS + b'<img data-src="a.png">', ViewNeed.LAZY),
        (b"<script>1</script>" + WORDS + b'<a class="btn load-more">', ViewNeed.LAZY),
        (b"<script>1</script>" + WORDS + b"<video id=v></video>", ViewNeed.LAZY),
        (b"<script>new IntersectionObserver(see)</script>" + WORDS, ViewNeed.LAZY),
    ],
)
def test_need(page: bytes, need: ViewNeed) -> None:
    assert need_of(page) is need


PARTS = (b"<script>", b"</script>", b"<p>", b"<!--", b"-->", b"a b", b"<", b">", b"<head>", b'"')


@given(st.lists(st.sampled_from(PARTS)))
def test_text_is_never_more_than_the_page(parts: list[bytes]) -> None:
    page = b"".join(parts)
    assert 0 <= text_length(page, FEW) <= len(page)
    need_of(page)


@pytest.mark.parametrize(
    "piece",
    [
        b"<script",
        b"<head",
        b"<head><title>",
        b"<!--",
        b'<div id="app"',
        b"<body id=app ",
        b" data-",
        b"<noscript",
        b"<noscript>a",
        b"<video",
        b'class="lazi ',
        b"<app-root ",
        b"<svg></svg",
        b"<p>",
        b"a ",
    ],
)
def test_a_hostile_page_takes_no_longer_than_its_length(piece: bytes) -> None:
    small, large = (b"<script>1</script>" + piece * (size // len(piece)) for size in (READ_ALL // 4, READ_ALL))
    assert growth(lambda: need_of(small), lambda: need_of(large), enough=8, floor=0.002) < 8


def test_the_first_pages_of_a_pattern_are_shown() -> None:
    sample = ViewSample(every=False)
    taken = [sample.takes(HOST, "/N", ViewNeed.SCRIPTED) for _ in range(10)]
    assert taken == [True] * FIRST + [False] * (10 - FIRST)


def test_pages_that_scripts_fill_are_always_shown() -> None:
    sample = ViewSample(every=False)
    assert all(sample.takes(HOST, "/N", ViewNeed.EMPTY) for _ in range(200))


def test_pages_without_scripts_are_never_shown_but_on_wish() -> None:
    assert not any(ViewSample(every=False).takes(HOST, f"/{n}", ViewNeed.NONE) for n in range(200))
    assert all(ViewSample(every=True).takes(HOST, f"/{n}", ViewNeed.NONE) for n in range(200))


def test_after_views_that_bring_nothing_one_page_in_so_many_is_shown() -> None:
    """Also where each page has a pattern of its own."""
    sample = ViewSample(every=False)
    shown = 0
    for number in range(FIRST_OF_HOST + 10 * SAMPLE):
        if sample.takes(HOST, f"/{number}", ViewNeed.SCRIPTED):
            shown += 1
            assert not sample.ended(HOST, f"/{number}", brought=False)
    assert shown == FIRST_OF_HOST + 10
    assert sample.takes("http://other.example", "/a", ViewNeed.SCRIPTED)


def test_a_pattern_that_brings_something_is_shown_whole() -> None:
    sample = ViewSample(every=False)
    for _ in range(FIRST):
        assert sample.takes(HOST, "/N", ViewNeed.SCRIPTED)
    assert not sample.takes(HOST, "/N", ViewNeed.SCRIPTED)
    assert sample.ended(HOST, "/N", brought=True)  # those that were left out are shown now
    assert not sample.ended(HOST, "/N", brought=True)
    assert all(sample.takes(HOST, "/N", ViewNeed.SCRIPTED) for _ in range(200))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(list(ViewNeed)), st.booleans()), max_size=300))
def test_of_each_pattern_a_page_that_needs_it_is_shown(pages: list[tuple[str, ViewNeed, bool]]) -> None:
    """Whatever the order: the first page of a pattern, while its host brings something, and every empty one."""
    sample = ViewSample(every=False)
    for name, need, brings in pages:
        taken = sample.takes(HOST, name, need)
        assert taken or need is not ViewNeed.EMPTY
        assert not taken or need is not ViewNeed.NONE
        if taken:
            sample.ended(HOST, name, brought=brings)


def test_a_url_that_only_one_of_two_views_asks_for_is_volatile() -> None:
    volatile = VolatileUrls()
    assert not volatile.covers("http://a/ping?t=1")
    volatile.saw(["http://a/ping?t=1"], ["http://a/ping?t=2", "http://a/new.js"])
    assert volatile.covers("http://a/ping?t=3")
    assert not volatile.covers("http://a/new.js")  # another answer led to it
    assert not volatile.covers("http://a/other?t=3")
