"""Title and text of a page as a person reads them; bounded and linear for any bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.extract import Document
from archiver.extract.page_title import MOST_TEXT, MOST_TITLE, PageText, read_page_text


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
