"""What a page tells beyond its URL: blocks, and what is left of one without links, dates and the URL's own words."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.policy.novelty import READ
from archiver.policy.page_blocks import (
    MOST_BLOCKS,
    NO_TEXT,
    OPENING,
    PARTS,
    block_text,
    blocks,
    heading,
    is_link,
    opening,
    others,
    own_words,
)
from fixtures.growth import growth

HERE = "http://example.org/obs.php?station=12&year=2024&q=red+chairs%2Fgreen"
SOUP = st.lists(
    st.sampled_from(
        [*"ab1 .\n<>é&", "<p>", "</p>", "<a href=x>", "</A>", "<!-- b -->", "<!--", "<svg>", "<tr", "12 June"]
    )
).map(lambda pieces: "".join(pieces).encode())


@pytest.mark.parametrize(
    ("block", "words", "numbers"),
    [
        ("Some words", "some words", ""),
        ("No results for <b>red</b> chairs, green", "no results for", ""),
        ("<a href='/x'>a link</a> and text", "and text", ""),
        (" class='x'>The rest of a tag", "the rest of a tag", ""),
        ("Monday, 14 June 2027", "", ""),
        ("3rd of May, 2027, Tuesday", "", ""),
        ("2027-06-14T12:33:21 and 14.6.2027", "and", ""),
        ("Last updated on October 07, 2026.", "last updated on", ""),
        ("1 EUR = 1.0934 USD", "# eur # usd", "1 1 0934"),
        ("<td>Jan</td><td>3.2</td><td>81</td>", "", "3 2 81"),
        ("07:12 07:19 07:31", "", "07 07 19 07 31"),
        ("1 2 3 4 5 6 7", "", ""),
        ("31 29 30 31 1 2 3 4", "", ""),
        ("Station 12, 2024", "station", ""),
        ("token 0123456789abcdef0123", "token", ""),
        ("token abcdefghijklmnop", "token abcdefghijklmnop", ""),
        (f"token {'ab' * 20}", "token", ""),
        ("Red chairs", "", ""),
        ("<script>var x = 1</script>", "var x #", "1"),
        ("<style>a { b: c }</style><svg><text>no</text></svg>", "", ""),
        ("caf\xe9 &eacute;t&#233;", "café t", ""),
        ("Queries took 195.635ms", "queries took # ms", "195 635"),
        ("Page made in 29ms, 1.25sec and 0.003s", "page made in # ms # sec and # s", "29 1 25 0 003"),
        ("the 1980s, an mp3 and 4d", "the 1980s an mp3 and 4d", ""),
    ],
)
def test_what_a_block_tells(block: str, words: str, numbers: str) -> None:
    found = block_text(block.encode(), own_words(HERE))
    assert (found.words.decode(), b" ".join(found.numbers).decode()) == (words.replace("station", "").strip(), numbers)


def test_the_words_of_a_url() -> None:
    assert {b"obs", b"php", b"station", b"12", b"2024", b"red", b"chairs", b"green"} <= own_words(HERE)
    assert b"7" in own_words("http://example.org/part007x")


def test_blocks_end_where_paragraphs_rows_and_items_do() -> None:
    page = b"<ul><li>one item<li>another</ul><table><tr><td>3</td><td>9</td></tr></table><p>bigger<br>small</p>"
    told = [block_text(block, frozenset()) for block in blocks(page)]
    assert [each.words for each in told if each.words] == [b"one item", b"another", b"bigger", b"small"]
    assert [each.numbers for each in told if each.numbers] == [(b"3", b"9")]
    assert len(blocks(b"<P>IN CAPITALS<P>AS ONCE" * 9)) > 16


def test_of_a_large_page_parts_are_read() -> None:
    large = b"<li>menu</li>" * 2000 + b"<h1>Heading</h1><p>Text</p>" + b"<p>and more</p>" * 2000 + b"<p>the end</p>"
    start = heading(large)
    first, opened = opening(large, start)
    rest = others(large, start, opened)
    assert first[:2] == [b"Heading", b"and more"]
    assert rest[0] == b"and more"
    assert rest[-1] == b"the end<"
    assert sum(map(len, first)) <= OPENING
    assert sum(map(len, rest)) <= PARTS
    assert len(blocks(b"<p>abcdef" * 9 * MOST_BLOCKS)) == MOST_BLOCKS


@pytest.mark.parametrize("text", [b"x", b"<b>x</b>", b"<P>Some words</P>"])
def test_a_large_page_without_blocks_is_read_too(text: bytes) -> None:
    page = text * READ
    first, opened = opening(page, 0)
    assert (first, opened) == ([], 0)
    assert others(page, 0, opened)


@pytest.mark.parametrize("length", range(1, 60))
def test_no_block_is_lost_between_the_opening_and_the_rest(length: int) -> None:
    paragraphs = [b"number %d %b" % (number, b"x" * length) for number in range(5000)]
    page = b"<h1>Title</h1>" + b"".join(b"<p>%b</p>" % each for each in paragraphs)
    first, opened = opening(page, 0)
    found = first[1:] + others(page, 0, opened)
    below = PARTS // 2 // (length + 22)  # paragraphs, with their tags, in the part below the heading
    assert found[:below] == paragraphs[:below]


@pytest.mark.parametrize(
    ("page", "at"),
    [
        (b"<p><main><h1>A", 9),
        (b"<h1>Site</h1><main><h1>A", 19),
        (b"<h1>Site</h1><main><p>", 13),
        (b"<p><article><main>", 12),
        (b"<p>a<article>", 4),
        (b"<H1>A", 0),
        (b"<p>a", 0),
        (b"x" * (32 << 10) + b"<h1>", 0),
    ],
)
def test_where_the_heading_is(page: bytes, at: int) -> None:
    assert heading(page) == at


@pytest.mark.parametrize(
    ("block", "link"),
    [
        (b'<a href="/x">some words</a>', True),
        (b'>\n <a href="/x"><b>some</b> words</a>\n', True),
        (b'<a href="/x">some</a> words', False),
        (b'some <a href="/x">words</a>', False),
        (b'<a href="/x">some</a> more <a href="/y">words</a>', False),
        (b"<abbr>some words</abbr>", False),
    ],
)
def test_a_block_that_is_one_link(block: bytes, *, link: bool) -> None:
    assert is_link(block) is link
    assert not link or block_text(block, frozenset()) == NO_TEXT


@given(SOUP)
def test_any_bytes_are_read(page: bytes) -> None:
    for block in blocks(page):
        found = block_text(block, own_words(HERE))
        assert b"<" not in found.words


@pytest.mark.parametrize("piece", [b"1 ", b"<a ", b"<!-", b"12 of ", b"<", b"1-", b"june ", b"<svg>", b"3, ", b"1:11"])
def test_a_block_costs_what_it_is_long(piece: bytes) -> None:
    def run(size: int) -> None:
        for _ in range(20):
            block_text(piece * (size // len(piece)), frozenset(), size)

    assert growth(partial(run, 500), partial(run, 4000), enough=40, floor=0.0005) < 40
    assert len(blocks(piece * READ)) <= MOST_BLOCKS
