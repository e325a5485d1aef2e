"""Who must not follow the links of a page, by meta elements, header fields and relations."""

import pytest

from archiver import extract
from archiver.extract.exchange import nofollow_agents
from archiver.model import Hop, Links

HERE = "http://example.org/"
BROKEN = "<p <b>"  # sends the document to the parser that mends


def read(body: str) -> Links:
    return extract.links(extract.Document(HERE, "text/html", None, body.encode(), Hop.LINK))


@pytest.mark.parametrize("before", ["", BROKEN])
@pytest.mark.parametrize(
    ("element", "told"),
    [
        ("<meta name=robots content=nofollow>", ("meta robots",)),
        ("<META NAME='Robots' CONTENT='NoIndex, NoFollow'>", ("meta robots",)),
        ("<meta name=robots content='noindex nofollow'>", ("meta robots",)),
        ("<meta name=archiver content=none>", ("meta archiver",)),
        ("<meta name=robots content=none><meta name=googlebot content=nofollow>", ("meta robots", "meta googlebot")),
        ("<meta name=robots content='noindex, follow'>", ()),
        ("<meta name=robots content='nofollowing'>", ()),
        ("<meta name=robots>", ()),
        ("<meta name='two words' content=nofollow>", ()),
        ("<iframe srcdoc='<meta name=robots content=nofollow>'></iframe>", ()),
    ],
)
def test_meta_elements(before: str, element: str, told: tuple[str, ...]) -> None:
    assert read(f"{before}{element}<a href=/a>a</a>").nofollow == told


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["nofollow"], ("X-Robots-Tag *",)),
        (["noindex, NOFOLLOW"], ("X-Robots-Tag *",)),
        (["none"], ("X-Robots-Tag *",)),
        (["archiver: nofollow"], ("X-Robots-Tag archiver",)),
        (["googlebot: noindex, nofollow, archiver: noindex"], ("X-Robots-Tag googlebot",)),
        (["noindex", "otherbot: none"], ("X-Robots-Tag otherbot",)),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow"], ("X-Robots-Tag *",)),
        (["max-snippet: 20, follow"], ()),
        (["nofollow"] * 50, ("X-Robots-Tag *",)),
        ([":,:,,", "", "no follow"], ()),
    ],
)
def test_header_fields(values: list[str], told: tuple[str, ...]) -> None:
    assert nofollow_agents([("x-robots-tag", value) for value in values]) == told


@pytest.mark.parametrize("before", ["", BROKEN])
@pytest.mark.parametrize(
    ("body", "context"),
    [
        ("<a rel=nofollow href=/a>", "a/@href rel=nofollow"),
        ("<a rel='UGC NoFollow' href=/a>", "a/@href rel=nofollow"),
        ("<area rel=nofollow href=/a>", "area/@href rel=nofollow"),
        ("<a rel=noopener href=/a>", "a/@href"),
        ("<a rel=nofollow href=/a><a href=/a>", "a/@href"),
        ("<a href=/a><a rel=nofollow href=/a>", "a/@href"),
        ("<a rel=nofollow href=/a><a href=http://example.org/a>", "a/@href"),
        ("<a href=/a><a rel=nofollow href=http://example.org/a>", "a/@href"),
    ],
)
def test_relations(before: str, body: str, context: str) -> None:
    assert [(link.url, link.context) for link in read(before + body).links] == [(HERE + "a", context)]
