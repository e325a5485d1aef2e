"""Title and text of a page as a person reads them; bounded and linear for any bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.extract import Document
from archiver.extract.page_title import (
    MOST_TEXT,
    MOST_TITLE,
    PageText,
    parse_page,
    read_page_text,
    split_page,
)


def of(body: bytes | str, charset: str | None = None) -> PageText:
    data = body.encode() if isinstance(body, str) else body
    return read_page_text(Document("http://example.org/", "text/html", charset, data))


READ = {
    "": ("", ""),
    "no markup": ("", "no markup"),
    "<title>A &amp; B\n\t c </title><p>one<p>two": ("A & B c", "one two"),
    "<h1>One</h1>two<b>three</b>four<br>five": ("", "One twothreefour five"),
    "<table><tr><td>a<td>b<tr><td>c</table>": ("", "a b c"),
    "<title>first</title><title>second</title>": ("first", ""),
    "<svg><title>drawn</title><text>x</text></svg><title>real</title>": ("real", ""),
    "<title></title><title>late</title>": ("", ""),
    "<p>a<script>b</script><style>c</style><noscript>d</noscript><template>e</template>f": ("", "af"),
    "<!-- a --><p>b<!-- c": ("", "b"),
    "<title>never ends": ("never ends", ""),
    "<p>&lt;b&gt;&nbsp;&#x1F600;&#0;": ("", "<b> \U0001f600\ufffd"),
    "<head><title>t</title><meta name=x content=y></head><body>b": ("t", "b"),
}


@pytest.mark.parametrize("source", READ)
def test_title_and_text(source: str) -> None:
    assert of(source) == READ[source]


@pytest.mark.parametrize("name", ["windows-1251", "koi8-r", "utf-8", "utf-16le"])
def test_charsets(name: str) -> None:
    body = "<title>Привет</title>мир".encode({"utf-16le": "utf-16-le"}.get(name, name))
    assert of(body, name) == ("Привет", "мир")


LARGE = {
    "open": b"<b>" * 400_000,
    "closed wrongly": b"<b></i>" * 200_000,
    "words": b"a " * 700_000,
    "references": b"&amp;" * 300_000,
    "title": b"<title>" + b"x" * 1_000_000,
    "titles": b"<title>" * 200_000,
    "attributes": b"<a " + b"x=1 " * 300_000 + b">",
    "comments": b"<!--" * 300_000,
    "zeros": bytes(1_000_000),
    **{  # small enough to be split
        f"titled {piece.decode()}": b"<title>t</title>" + piece * (400_000 // len(piece))
        for piece in (
            b"<!--",
            b"<style>",
            b"<svg><math>",
            b"<a b='",
            b'<a b="x',
            b"<a ",
            b"<?",
            b"<title>",
            b"&#",
            b"- -",
        )
    },
}


@pytest.mark.parametrize("name", LARGE)
def test_large_pages_are_bounded(name: str) -> None:
    found = of(LARGE[name])
    assert len(found.title) <= MOST_TITLE
    assert len(found.text) <= MOST_TEXT


def test_an_incomplete_tag_is_no_text() -> None:
    """Also if the page is not read to its end."""
    assert "<" not in of(b"<div class=x>" * 20_000).text


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from([*READ, "<", ">", "</p>", "<title>", "</title>", "<svg>", "</svg>", "\0", "é"]), max_size=9
    )
)
def test_nothing_raises(parts: list[str]) -> None:
    found = of("".join(parts))
    assert " ".join(found.text.split()) == found.text
    assert " ".join(found.title.split()) == found.title


TEXT = st.lists(
    st.sampled_from(["word", "\u00e9", " ", "\n", "\u00a0", "&amp;", "&lt;b&gt;", "&nbsp;", "&#x1F600;", "1 > 0", "'"]),
    max_size=4,
).map("".join)
TAG = st.sampled_from(["", " class=x", " title='a > b'", ' alt="<b>it\'s</b>"', " hidden", ' data-x = "1"'])
NAMES = st.sampled_from(
    ["div", "section", "b", "em", "span", "x-y", "ul", "script", "style", "svg", "noscript", "B", "DIV"]
)


def element(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda name, tag, text: f"<{name}{tag}>{text}</{name}>", NAMES, TAG, inside)


WELL_FORMED = st.recursive(
    TEXT | st.sampled_from(["<!-- <p> -->", "<br/>", "<img src=x alt='y'>", "<script>1 > 0</script>"]),
    lambda inside: st.lists(element(inside) | inside, max_size=4).map("".join),
    max_leaves=12,
)


@settings(max_examples=300)
@given(TEXT, WELL_FORMED)
def test_a_page_that_is_split_reads_as_if_it_were_parsed(title: str, body: str) -> None:
    page = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><p>{body}</p></body></html>"
    for wanted in (True, False):
        found = split_page(page, wants_text=wanted)
        if found is not None:  # pages with unusual markup are parsed anyway
            parsed = parse_page(page.encode(), wants_text=wanted)
            assert [" ".join(each.split()) for each in found] == [" ".join(each.split()) for each in parsed]


SPLIT = {
    "<title>t</title><p class=a>x <b>y</b>z<br>w": PageText("t", " x yz w"),
    "<title>a&amp;b</title><script>if (1 < 2) x()</script>y": PageText("a&b", "y"),
    "<title>t</title><DIV>x</DIV><A HREF='x'>y</A>": PageText("t", " x y"),
    "<title>t</title><title>again</title>x": PageText("t", "x"),
    "x": None,
    "<title>t</title>a < b": None,
    "<title>t</title><SCRIPT>x</SCRIPT>": None,
    "<title>t</title><script>x<!-- <script> </script>": None,
    "<title>t</title><svg><svg></svg></svg>": None,
    "<title>t</title><textarea><p></textarea>": None,
    "<title>t</title><!-- never ends": PageText("t", ""),
    "<title>t</title><p x='": None,
    "<title>t<b></b></title>": None,
    "<svg><title>drawn</title></svg>x": None,
    "<title>t</title>\0": None,
}


@pytest.mark.parametrize("source", SPLIT)
def test_only_well_formed_pages_are_split(source: str) -> None:
    found = split_page(source, wants_text=True)
    assert found == SPLIT[source]
