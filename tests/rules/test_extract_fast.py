"""The fast readers of HTML and CSS give the same results as the thorough ones, or reject the document."""

import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from archiver.config.expressions import PYTHON_IS_RIGHT
from archiver.extract import Document, css, links, sitemap, xml_parser
from archiver.extract.html import markup, reader
from archiver.extract.html.elements import NAMES, Elements
from archiver.extract.html.markup import HARD, Scanner
from fixtures.growth import least_seconds

GOOD = """<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd">
<html lang=en><head><meta charset="utf-8"/><base href='/b/'><title>1 < 2 & <b></title>
<link rel="stylesheet" href="a.css?x=1&copy=2&amp;y=3"><style media=all>a{b:url(s.png)}<!-- p{} --></style>
<script type="x">if (a<b && c</d/) x("<a href=no>")</script><script>
<!-- document.write('<a href=no>') //--></script>
<!-- ---- --><!--[if lt IE 9]><script src="ie.js"></script><![endif]-->
</head><body class=c><h1 STYLE="background: URL('h.png')">x</h1>\r\n
<A HREF=/up CLASS=x>y</A><a href="#only" title='<a href=no>'>z</a><br/><IMG src="1.png" src="2.png" alt>
<img data-src="lazy.png"
  srcset="a.png 1x, b.png 2x"><form method=post><button formaction=f>x</button></form><form action="/s">
<iframe src=i srcdoc="&lt;a href=&#x69;n>">no <a href=no></iframe><textarea><a href=no></textarea>
<svg><use xlink:href="u.svg#a"/><feImage href='f.png'/></svg><noscript><img src=n.png></noscript>
<a id="odd"href='odd'class="x"/title=o / ><img/src=odd2/ ><br/ >
<a name=n title=">">x</a><a class=x href="#a" href="no2">x</a>
<a href="/two" href="#b">x</a><a href='#c' style=x>
<p @click="x" :href="y" data-x=1>&nbsp;<a href=?&eacute;&frac12=&#128;&unknown;&>é</a>
<template><base href=/no/><img src=t.png></template><noscript><base href=/no/></noscript><![if !IE]><b>y</b><![endif]>
<svg><path d=M0 fill="none" class=x stroke='url(s.svg#a)'/>
<linearGradient href="g.svg#b" id=g /><g mask=url(#m)></g></svg>
<math><mi href=m class=x>x</mi></math><my-el src="own.js" href=own></my-el><p src=p.png poster="/p.png" content=x>
<span itemprop=image content=i.png>x</span><li onclick="open('click')" cite=c longdesc='d e'><del cite=del></del>
<object data=o.swf codebase=/o/><param name=src value=/o.swf></object><applet code=A></applet><i data-x='["/j.png"]'>
<script type="application/ld+json">{"image": "/ld.png"}</script><script>window.__STATE__ = {"a": "/st.png"}</script>
<script type="text/template"><a href=tp></a><a href="{{x}}"></script><img usemap=a.html#x _src=k.png>
</body></html>
"""
NOT_GOOD = [
    "<a href=x",
    "<a href='x>",
    "<a href=x",
    "<a href=1 href",
    "<a href==x>",
    "<a@b href=x>",
    "<a href=x'y>",
    "<a href=`x>",
    "<a <b>",
    "<a \u212a=x>",
    "</>",
    "</a href=x>",
    "<!-- x",
    "<!--> <a href=x> -->",
    "<!-- --!> <a href=x>",
    "<![CDATA[ <a href=x> ]]>",
    "<script><!-- <script> </script> <a href=x> </script>",
    "<script/><a href=x></script>",
    "<style>a",
    "<title></title x>",
    "<xmp><a href=x></xmp>",
    "<plaintext><a href=x>",
    "<noframes><a href=x></noframes>",
    "\0<a href=x>",
]
PIECES = [*re.findall(r"<[^>]*>|[^<]+", GOOD), *NOT_GOOD, *"<>\"'/=&!-? \t\n\r\0\x01\x0c\u212aé", "--", "x"]
HTML5 = etree.LIBXML_VERSION >= (2, 14)  # before, it had a grammar of its own for odd markup

TagResults = tuple[dict[tuple[str, str], str], str | None, list[str], list[str], bool, list[str]]


def read_tags(source: str, *, thorough: bool) -> TagResults:
    elements, hidden = Elements(), list[str]()
    (reader._parse_with_libxml2 if thorough else reader._parse)(source, elements, hidden)
    references = {(reference, hop.value): context for (reference, hop), context in elements.found._references.items()}
    return references, elements.base, elements.framed, elements.templates, elements.form_posts, hidden


def assert_same(source: str) -> None:
    fast, thorough = read_tags(source, thorough=False), read_tags(source, thorough=True)
    assert fast == thorough
    assert list(fast[0]) == list(thorough[0])


def test_well_formed_markup_needs_no_parser() -> None:
    assert Scanner(NAMES).tags(GOOD)
    references = read_tags(GOOD, thorough=False)[0]
    assert len(references) == 37
    assert ("no", "L") not in references
    assert ("a.css?x=1&copy=2&y=3", "E") in references
    assert ("?é&frac12=€&unknown;&", "L") in references


@pytest.mark.parametrize("source", NOT_GOOD)
def test_other_markup_goes_to_the_parser(source: str) -> None:
    assert Scanner(NAMES).tags(source) is None
    assert Scanner(NAMES).tags(GOOD + source) is None


@pytest.mark.skipif(not HTML5, reason="this libxml2 reads odd markup by other rules than HTML's")
@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_pieces_of_markup(pieces: list[str]) -> None:
    assert_same("".join(pieces))


@pytest.mark.skipif(not HTML5, reason="this libxml2 reads odd markup by other rules than HTML's")
@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(GOOD)), st.integers(0, 30), st.sampled_from(PIECES))
def test_a_page_with_one_mutation(place: int, lost: int, gained: str) -> None:
    assert_same(GOOD[:place] + gained + GOOD[place + lost :])


@pytest.mark.skipif(not HTML5, reason="this libxml2 reads odd markup by other rules than HTML's")
@pytest.mark.parametrize("reference", ["&#0;", "&#13;", "&#x1;", "&#129;", "&#xd800;", "&#x110000;", f"&#{'9' * 99};"])
@pytest.mark.parametrize("end", ["", "x"])
def test_unusual_character_references(reference: str, end: str) -> None:
    assert_same(f"<a href='x{reference}{end}'>")
    assert_same(f"<a href='x{reference.removesuffix(';')}{end}'>")


@pytest.mark.skipif(not HTML5, reason="this libxml2 reads odd markup by other rules than HTML's")
@pytest.mark.parametrize("before", [0, 1, 777, 1778, 2779])
def test_a_long_page_reaches_the_parser_in_pieces(before: int) -> None:
    assert_same("é" * before + GOOD * 30)


def test_pages_that_are_too_deep_are_read_in_pieces() -> None:
    references = read_tags("<b '=x>" * 6000 + "</i><a href=in>" * 6000 + "<a href=end>", thorough=True)[0]
    assert list(references) == [("in", "L"), ("end", "L")]


@pytest.mark.skipif(not HTML5, reason="this libxml2 reads odd markup by other rules than HTML's")
@pytest.mark.suites
def test_real_pages(suites: Path) -> None:
    pages = sorted((suites / "links/pages").rglob("*.html"))
    for page in pages:
        assert_same(page.read_bytes().decode("utf-8", "replace"))
        assert_same_in_pieces(page.read_bytes().decode("utf-8", "replace"))
    assert pages


# As most pages are written: what is taken from these tags is their address alone, or nothing.
COMMON = [
    *('<a href="n.html">', '<a class="x" href="/n?a&amp;b" title="t" rel="next">', '<a rel="nofollow" href="n.html">'),
    *('<a href="#top" id="t">', "<a href=\"javascript:open('/w')\">", "<a href=\"&#106;avascript:open('/w')\">"),
    *(
        '<a href="mailto:x">',
        '<a href="{{x}}">',
        '<a href="&#123;{x}}">',
        '<a href="">',
        '<a href="a b" data-src="d.png">',
    ),
    *(
        '<img src="i.png" alt="a > b">',
        '<img src="i.png" alt="" />',
        '<img class="c" src="/i?&amp;#x26;" loading="lazy">',
    ),
    *(
        '<href="no">',
        '< href="no">',
        '<a href="no"',
        '<a href="n"title="x">',
        '<p class="x" id="y">',
        '<li style="url(x)">',
    ),
    *(
        "<title>x</title>",
        "<title>x",
        "<title-x>",
        "<script-x>",
        "<script>",
        "</script>",
        "</SCRIPT >",
        "<base href=/b/>",
    ),
    *("<form method=post>", "<button formaction=f>", '<body background="b">', "<body data-id=1>", "<iframe srcdoc=x>"),
    *(
        '<a href="?a&amp;b">',
        '<a href="&#35;x">',
        '<a href="x&#60;%y%>">',
        '<time datetime="2026">',
        '<p data-srcset="7">',
        '<a href="x" data-method="post">',
        '<a data-turbo-method="get" href="y">',
    ),
    *('<body class="x" data-id="7">', '<p data-src="i.png">', '<p data-id="7" data-link="/x">', '<i data-x="[7">'),
    *('<meta name="description" content="Of no note">', '<meta name="keywords" content="a, nofollow">'),
    *("<meta name=robots content=nofollow>", "</iframe>", "<STYLE>", "a{b:url(s)}", "</style>", "<!-- <a href=c> -->"),
]


def read_by_pieces(source: str) -> tuple[TagResults, dict[str, None]] | None:
    try:
        elements, hidden = reader._read_well_formed(source)
    except reader.NotWellFormedError:
        return None
    references = {(reference, hop.value): context for (reference, hop), context in elements.found.references.items()}
    seen = references, elements.base, elements.framed, elements.templates, elements.form_posts, hidden
    return seen, elements.nofollow


def assert_same_in_pieces(source: str) -> None:
    found = read_by_pieces(source)
    if found is not None:
        whole = read_tags(source, thorough=False)
        assert found[0] == whole
        assert list(found[0][0]) == list(whole[0])
        assert read_by_pieces(source) == found  # now from memory
        elements = Elements()
        reader._parse(source, elements, [])
        assert found[1] == elements.nofollow


def test_well_formed_markup_is_read_in_pieces() -> None:
    assert read_by_pieces("".join(COMMON[:3])) == ((
        {("n.html", "L"): "a/@href", ("/n?a&b", "L"): "a/@href"}, None, [], [], False, []), {})  # fmt: skip
    for source in (GOOD, "".join(COMMON)):
        assert read_by_pieces(source) is None  # each has a quoted bracket, or what is torn
    assert read_by_pieces(GOOD.replace('title=">"', "").replace("title='<a href=no>'", ""))
    assert_same_in_pieces(GOOD.replace('title=">"', "").replace("title='<a href=no>'", ""))


def test_skipped_elements_have_no_urls() -> None:
    assert NAMES.union(HARD, reader.ONCE).isdisjoint(markup.PLAIN)


@given(
    st.sampled_from(["description", "title", "keywords", "image", "robots"]),
    st.lists(st.sampled_from([*"nNo /h.;x", "none", "follow", "&#110;", "&nbsp;", "http://e.org/i.png"])).map("".join),
)
def test_skipped_descriptions_have_no_urls(name: str, content: str) -> None:
    assert_same_in_pieces(f'<meta name="{name}" content="{content}"><meta property="og:{name}" content="{content}" />')


@given(
    st.sampled_from(["id", "src", "srcset", "setting", "href", "file", "x"]),
    st.lists(st.sampled_from([*"7a /.,:-#&;", "/i.png", "{", "[", "url(", "&#47;", '["/i.png"]'])).map("".join),
)
def test_skipped_data_attributes_have_no_urls(name: str, value: str) -> None:
    assert_same_in_pieces(f'<p data-{name}="{value}"><a href="x" data-{name}="{value}"><body data-{name}="{value}">')


def test_text_that_differs_on_each_page_is_skipped() -> None:
    assert not reader._pieces(
        '<meta name="description" content="Not one &amp; no other"><body class="x" data-id="7"><p data-x="y">'
    )


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(COMMON) | st.sampled_from(PIECES), max_size=20))
def test_a_page_read_in_pieces_gives_the_same_links(parts: list[str]) -> None:
    assert_same_in_pieces("".join(parts))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(COMMON), max_size=6), st.integers(0, 200), st.integers(0, 4), st.sampled_from(PIECES))
def test_pieces_with_one_mutation(parts: list[str], place: int, lost: int, gained: str) -> None:
    source = "".join(parts)
    assert_same_in_pieces(source[:place] + gained + source[place + lost :])


@pytest.mark.parametrize(
    "piece", ["<a ", '<a href="', "<title>", "<script>", "</script x>", "<!--", "<!-- -", "<p class="]
)
def test_splitting_is_linear(piece: str) -> None:
    for source in (piece * 100_000, f'<a href="{piece * 100_000}'):
        assert least_seconds(partial(read_by_pieces, source[: reader.LONGEST_FAST]), 2) < 2


def test_cached_pieces_mean_the_same_on_other_pages() -> None:
    """Pieces cached from one page give the right links on a page elsewhere."""
    body = b'<a href="../x"><a href="/y"><a href="z"><a href="http://o.example/v"><img src="i.png"><a href="?q">'
    for _ in range(2):
        for folder, above in (("a/b/", "a/"), ("c/", ""), ("", "")):
            page = f"http://e.org/{folder}p"
            expected = [f"http://e.org/{above}x", "http://e.org/y", f"http://e.org/{folder}z", "http://o.example/v"]
            found = [link.url for link in links(Document(page, "text/html", None, body)).links]
            assert found == [*expected, f"http://e.org/{folder}i.png", f"{page}?q"]


@pytest.mark.alone
@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a ",
        "<a b",
        "<a b=",
        "<a b='",
        "<p b=1 ",
        "<!--",
        "<!-- -",
        "<script><",
        "<script><!--",
        "-->",
        "<?",
        "</a",
    ],
)
def test_giving_up_is_linear(piece: str) -> None:
    scanner = Scanner(NAMES)
    for source in (piece * 200_000, "<p " + "x=1 " * 200_000, f"<a {piece * 200_000}>"):
        assert least_seconds(partial(scanner.tags, source), 2) < 2


def test_collected_tags_are_bounded() -> None:
    scanner = Scanner(NAMES)
    assert scanner.tags("<a b>" * 1_000_000) == []
    assert scanner.tags("<input b>" * 10_000)
    assert scanner.tags("<input b>" * 100_000) is None
    if PYTHON_IS_RIGHT:  # the library regex remembers each iteration, and needs more memory than it allows itself
        assert scanner.tags(f"<input {'b=c ' * 2_000_000}>") is None


CSS = r"""@charset "x"; @import 'a.css'; @import/**/url(b.css); @namespace url(no); /* url(no) ' */
a{b:url( "c.png" );c:'url(no)';d:"\f101";e:URL(d.png) src("e") my-url(no)} .sm\:url(no){f:rgb(1,2,3)}
@font-face{src:url(data:font/woff2;base64,AAAA)} b{c:url(bad bad)} \:url(no) @importx 'no' url(f\)g)
"""
CSS_PIECES = [*re.findall(r"\w+|\W", CSS), "url(", "URL(", "src(", "@import", "@namespace", "/*", "*/"]
CSS_PIECES += ["\\", "\\:", "\\31 ", "\\a ", "\\e9", "\0", "\r\n", "\f", "é", "-", "u", "@"]


def css_references(text: str, *, thorough: bool) -> list[tuple[str, str]]:
    return list(css._scan(text, css._TOKEN.finditer(text)) if thorough else css.references(text))


def test_a_style_sheet() -> None:
    expected = ["a.css", "b.css", "c.png", "d.png", "e", "data:font/woff2;base64,AAAA", "f)g"]
    assert [reference for reference, _ in css.references(CSS)] == expected
    assert css_references(CSS, thorough=True) == css_references(CSS, thorough=False)


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(CSS_PIECES), max_size=60))
def test_pieces_of_style_sheets(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert css_references(text, thorough=True) == css_references(text, thorough=False)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(CSS)), st.integers(0, 20), st.sampled_from([*CSS_PIECES, "\\75rl(x)", "image-set('y')"]))
def test_a_style_sheet_with_one_mutation(place: int, lost: int, gained: str) -> None:
    text = CSS[:place] + gained + CSS[place + lost :]
    assert css_references(text, thorough=True) == css_references(text, thorough=False)


SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:x='y'>
<url><loc>http://e.org/a?b&amp;c</loc><lastmod>2024-01-01</lastmod></url>
 <url> <priority>0.5</priority><loc> http://e.org/d\te </loc><loc></loc></url><url></url></urlset>
"""
INDEX = "<sitemapindex><sitemap><loc>http://e.org/s.xml</loc></sitemap>\n</sitemapindex>"
SITEMAP_PIECES = [
    *re.findall(r"<[^>]*>|[^<]+", SITEMAP + INDEX),
    *"<>&;\"'/=? \r\0\x0b\ud800\ufffe",
    "&#65;",
    "&lt;",
    "x:loc",
]
SITEMAP_PIECES += [
    "<!-- http://e.org/no -->",
    "<![CDATA[http://e.org/f]]>",
    "<url>http://e.org/g",
    "<loc",
    "<!DOCTYPE a>",
    "]]>",
]


def assert_same_entries(text: str) -> None:
    fast = sitemap.written_plainly(text)
    if fast is not None:
        thorough, _ = xml_parser.parse_xml(lambda: iter((text,)), sitemap.SitemapEntries)
        assert fast.links("http://e.org/", "utf-8") == thorough.links("http://e.org/", "utf-8", "")


def test_a_sitemap_needs_no_parser() -> None:
    for text, count in ((SITEMAP, 2), (INDEX, 1)):
        found = sitemap.written_plainly(text)
        assert found
        assert len(found.links("http://e.org/", "utf-8").links) == count
        assert_same_entries(text)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(SITEMAP_PIECES), max_size=30))
def test_pieces_of_sitemaps(pieces: list[str]) -> None:
    assert_same_entries("".join(pieces))
    assert_same_entries(f"<urlset><url>{''.join(pieces)}</url></urlset>")


@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from((SITEMAP, INDEX)), st.integers(0, len(SITEMAP)), st.integers(0, 9), st.sampled_from(SITEMAP_PIECES)
)
def test_a_sitemap_with_one_mutation(text: str, place: int, lost: int, gained: str) -> None:
    assert_same_entries(text[:place] + gained + text[place + lost :])


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ('[if IE 8]><html class="no-js lt-ie9" lang="en" > <![endif]', ['<html class="no-js lt-ie9" lang="en" > ']),
        ("[if lt IE 9]><script src=ie.js></script><![endif]", ["<script src=ie.js></script>"]),
        ("[if gt IE 8]><!", []),
        ("[if !IE]> ", []),
        ("[if IE]><a href=x", ["<a href=x"]),
        ("no condition<![endif]", []),
    ],
)
def test_the_end_of_a_condition_leaves_its_markup_well_formed(comment: str, expected: list[str]) -> None:
    assert markup.conditional(comment) == expected
    for part in expected:
        assert (Scanner(NAMES).tags(part) is not None) == part.rstrip().endswith(">")
