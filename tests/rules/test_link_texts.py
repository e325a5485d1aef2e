"""The texts of a page's links, as hooks get them: what a reader sees, bounded, for any bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import extract
from archiver.extract import Document
from archiver.extract.html.link_texts import LONGEST_TEXT, link_texts
from archiver.extract.references import MOST_LINKS
from archiver.model import Hop

HERE = "http://example.org/a/"


def texts(body: str | bytes, media_type: str = "text/html", charset: str | None = None) -> dict[str, str]:
    """Return the texts in *body*, by the hop and the path of their URLs."""
    document = Document(HERE, media_type, charset, body.encode() if isinstance(body, str) else body)
    return {f"{hop} {address.removeprefix(HERE)}": text for (address, hop), text in link_texts(document).items()}


READ = {
    "<a href=2>next\n\t <b>pa</b>ge</a>": {"L 2": "next page"},
    "<a href=2><div>one</div><div>two</div></a>": {"L 2": "one two"},
    "<a href=2>caf&eacute; &amp; more</a>": {"L 2": "café & more"},
    "<a href=2>print<script>no()</script><style>b{}</style></a> view": {"L 2": "print"},
    "<a href=2>one<p>two<a href=3>three</a>": {"L 2": "one two", "L 3": "three"},
    "<a href=2>never ends": {"L 2": "never ends"},
    "<a href=2><img src=i.png alt=' a  cat '></a>": {"L 2": "a cat", "E i.png": "a cat"},
    "<map><area href=2 alt='the north'></map>": {"L 2": "the north"},
    "<a href=2> </a><a href=2>first</a><a href=2>second</a>": {"L 2": "first"},
    "<a href=2></a><img src=i.png><a href=''>here</a><a href='#top'>top</a><a>none</a>": {},
    "<a href='javascript:x()'>js</a><a href='mailto:a@b.c'>mail</a>": {},
    "<base href='/b/'><a href=2>based</a>": {"L http://example.org/b/2": "based"},
    "<template><base href='/b/'></template><a href=2>kept</a>": {"L 2": "kept"},
}


@pytest.mark.parametrize("source", READ)
def test_texts_of_links(source: str) -> None:
    assert texts(source) == READ[source]


def test_only_pages_have_texts() -> None:
    source = "<a href='2'>next</a>"
    assert texts(source, "application/xhtml+xml") == {"L 2": "next"}
    assert texts(source, "text/css") == texts(source, "image/svg+xml") == {}


def test_texts_are_read_in_the_charset_of_the_page() -> None:
    source = "<a href='2?q=ä'>Größe</a>".encode("latin-1")
    assert texts(source, charset="iso-8859-1") == {"L 2?q=%E4": "Größe"}


def test_a_text_is_bounded() -> None:
    assert texts(f"<a href=2>{'word ' * 1000}</a>") == {"L 2": ("word " * 1000)[:LONGEST_TEXT].rstrip()}


def test_every_text_belongs_to_a_link_of_the_page() -> None:
    source = "".join(f"<p><a href='../x/{n}?a=1&amp;b={n}#f'>T{n}</a><img src=//h/{n}.png alt=P{n}>" for n in range(50))
    document = Document(HERE, "text/html", None, source.encode())
    found = extract.links_with_texts(document)
    assert [found.texts[link[:2]] for link in found.links] == [
        f"{'T' if n % 2 == 0 else 'P'}{n // 2}" for n in range(100)
    ]
    assert found.links == extract.links(document).links
    assert extract.links(document).texts == {}


def test_deep_and_many() -> None:
    assert texts("<b>" * 200_000 + "<a href=2>x</a>") == {}
    assert texts("<a href=1>" * 100_000 + "x") == {"L 1": "x"}
    many = Document(HERE, "text/html", None, b"".join(b"<a href=%d>x</a>" % n for n in range(90_000)))
    assert len(link_texts(many)) == MOST_LINKS


SOUP = st.lists(
    st.sampled_from(["<a href=", "<a ", "2>", "</a>", "<img alt='x' src=", "<base href=", "'", "<!--", "&", "é"])
)


@settings(max_examples=200, deadline=None)
@given(SOUP.map("".join) | st.text())
def test_any_text_gives_short_texts(source: str) -> None:
    document = Document(HERE, "text/html", None, source.encode("utf-8", "replace"))
    for (address, hop), text in link_texts(document).items():
        assert address.startswith("http")
        assert hop in (Hop.LINK, Hop.REQUISITE)
        assert 0 < len(text) <= LONGEST_TEXT
        assert text == " ".join(text.split())
