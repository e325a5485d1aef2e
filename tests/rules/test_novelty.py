"""What pages have shown, against a plain count; and what does not fit."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.policy.novelty import OFTEN, Novelty, PageNovelty, SeenContent

THINGS = [hash(f"thing {number}") for number in range(12)]
BLOCKS = [b"block %d" % number for number in range(12)]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(THINGS), max_size=60))
def test_how_often_a_thing_was_shown(things: list[int]) -> None:
    shown, counts = SeenContent(1 << 16), Counter[int]()
    for thing in things:
        assert shown.times(thing) == min(counts[thing], OFTEN)
        counts[thing] += 1
    assert all(shown.look(thing) == min(counts[thing], OFTEN) for thing in THINGS)


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from(BLOCKS), max_size=40), max_size=30))
def test_the_blocks_that_were_not_shown(pages: list[list[bytes]]) -> None:
    shown, counts = SeenContent(1 << 16), Counter[bytes]()
    for page in pages:
        expected, expected_few = list[bytes](), list[bytes]()
        for block in page:
            if not counts[block]:
                expected.append(block)
            elif counts[block] < OFTEN:
                expected_few.append(block)
            counts[block] += 1
        assert shown.unseen(page, 7) == (expected, expected_few)
    assert shown.unseen(BLOCKS, 8)[0] == BLOCKS  # of another host


def test_what_does_not_fit_is_new_again() -> None:
    """Two things that lie in one place: the later one drives the other out."""
    shown, one, other = SeenContent(16), 5, 5 | 1 << 60
    assert [shown.times(thing) for thing in (one, other, one, other)] == [0, 0, 0, 0]
    assert shown.times(other) == 1


@pytest.mark.parametrize(
    ("first", "then", "worth"),
    [
        (b'{"items":[],"next":"/api/x?page=2"}', b'{"items":[],"next":"/api/x?page=3"}', PageNovelty.NUMBER),
        (b'{"items":["a"],"next":2}', b'{"items":["b"],"next":3}', PageNovelty.NEW),
        (b"[%s]" % b"5,7," * 20, b"[%s]" % b"6,9," * 20, PageNovelty.NUMBERS),
        (b'{"items":[]}', b'{"items":[]}', PageNovelty.COPY),
        (b"\x89PNG 1", b"\x89PNG 2", PageNovelty.NEW),
    ],
)
def test_data_with_known_words(first: bytes, then: bytes, worth: PageNovelty) -> None:
    novelty = Novelty()
    assert novelty.worth("http://host.test/api/x?page=1", "x", first, markup=False) is PageNovelty.NEW
    assert novelty.worth("http://host.test/api/x?page=2", "x", then, markup=False) is worth


@pytest.mark.parametrize(
    "time",
    ["%dms", "0.%03ds", "12.%03d ms", "1.%dsec", "0.%03d seconds", "%dmsec", "%d msecs", "%d\xb5s", "%d \u03bcs"],
)
def test_the_time_that_an_answer_took_is_no_news(time: str) -> None:
    """Programs write it with or without a space before the unit."""
    novelty = Novelty()

    def worth(number: int) -> PageNovelty:
        page = f"<h1>Trees</h1><p>Each list of trees is the same<p>Generated in {time % (417 * number % 1000)}"
        return novelty.worth(f"http://host.test/trees?order={number}", "x", page.encode(), markup=True)

    assert worth(1) is PageNovelty.NEW  # it stopped at the text
    worth(2)  # the first time
    assert {worth(number) for number in range(3, 40)} <= {PageNovelty.COPY, PageNovelty.NOTHING}


@pytest.mark.parametrize(
    "named",
    [
        '"wgArticleId":0,"wgBackendResponseTime":%d,"wgHostname":"a"',
        '"limitreport":{"cputime":"0.%d","walltime":"1.%d"}',
        "page.response_time = %d; page.last = 7",
        "'render-time': '%d.25'",
    ],
)
def test_a_named_time_of_the_answer_is_no_news(named: str) -> None:
    """Scripts of a page hold it among its other settings."""
    novelty = Novelty()

    def worth(number: int) -> PageNovelty:
        took = str(1000003 * number % 99991)
        page = f"<h1>Trees</h1><script>set({{{named.replace('%d', took)}}})</script><p>Each list of trees is the same"
        return novelty.worth(f"http://host.test/trees?order={'ab' * number}", "x", page.encode(), markup=True)

    worth(1)  # it stops at the text …
    worth(2)  # … so the script is new here
    assert {worth(number) for number in range(3, 40)} <= {PageNovelty.COPY, PageNovelty.NOTHING}


def test_other_named_numbers_are_news() -> None:
    novelty = Novelty()

    def worth(number: int) -> PageNovelty:
        shown = f'{{"responseTime":3,"distance":{417 * number},"overtime":{91 * number}}}'
        page = f"<h1>Runs</h1><script>show({shown})</script>"
        return novelty.worth(f"http://host.test/run?of={'ab' * number}", "x", page.encode(), markup=True)

    assert {worth(number) for number in range(20, 40)} <= {PageNovelty.NEW, PageNovelty.NUMBERS, PageNovelty.NUMBER}


@pytest.mark.parametrize("measured", ["%dmm", "%d kg", "9.%ds", "%dm"])
def test_what_was_measured_is_news(measured: str) -> None:
    novelty = Novelty()

    def worth(number: int) -> PageNovelty:
        rows = "".join(f"<tr><td>Row {row}<td>{measured % (10 * number + row)}" for row in range(8))
        return novelty.worth(f"http://host.test/of/{number}", "x", f"<h1>Results</h1>{rows}".encode(), markup=True)

    assert {worth(number) for number in range(20, 40)} <= {PageNovelty.NEW, PageNovelty.NUMBERS}


MENU = b'<ul><li class="tool"><a href="/wiki?page=%d&amp;do=%d" title="A"><svg><path d="M1 14c-2"/></svg></a></li></ul>'
FEW_LINK = b'<ul><li><div><a href="/wiki?page=%d">Other</a></div></li></ul>'  # the link of a few pages to one page


def _in_letters(number: int) -> bytes:
    return b"".join(b"abcdefghij"[digit : digit + 1] for digit in map(int, str(number)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"<main><h1>Page</h1>", b"</main>"),  # below the site's own heading
        (b"<main>", b"</main>"),
        (b"<div>", b"</div>"),  # in the part of the page that is read last
    ],
)
def test_a_text_below_many_menus_is_news(before: bytes, after: bytes) -> None:
    """As in DokuWiki, where the first heading is the name of the wiki and 6 kB of menus follow."""
    novelty = Novelty()
    worth = []
    for number in range(60):
        menu = b"".join(MENU % (number, tool) for tool in range(45))
        text = b"<p>It is about the %s of things.</p>" % _in_letters(number)
        page = b"<html><h1>The wiki</h1>%s%s%s%s%s%s</html>" % (
            menu, before, text, FEW_LINK % (number // 4), after, menu + menu,
        )  # fmt: skip
        worth.append(novelty.worth(f"http://host.test/wiki?page={number}", "wiki", page, markup=True, varied=True))
    assert worth == [PageNovelty.NEW] * 60
