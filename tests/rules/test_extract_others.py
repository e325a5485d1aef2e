import gzip
import zlib

import brotlicffi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.extract import Document, charset, css, links
from archiver.extract.exchange import from_fields, redirect
from archiver.extract.references import LONGEST_CONTEXT, NOFOLLOW
from archiver.http.content_coding import decoded
from archiver.model import Hop, Link

TEXT = b" ".join(b"%d" % (number * 7919 % 10007) for number in range(2000))
LIMIT = 1_000_000


@pytest.mark.parametrize(
    ("codings", "body"),
    [
        ((), TEXT),
        (("identity",), TEXT),
        (("gzip",), gzip.compress(TEXT, mtime=0)),
        (("X-GZIP ",), gzip.compress(TEXT, mtime=0)),
        (("gzip",), gzip.compress(TEXT[:100], mtime=0) + gzip.compress(TEXT[100:])),
        (("gzip",), gzip.compress(TEXT, mtime=0) + b"\0\0 what follows"),
        (("deflate",), zlib.compress(TEXT)),
        (("deflate",), zlib.compress(TEXT)[2:-4]),
        (("br",), brotlicffi.compress(TEXT)),
        (("br",), brotlicffi.compress(TEXT) + b"what follows"),
        (("gzip", "br"), brotlicffi.compress(gzip.compress(TEXT, mtime=0))),
        (("gzip",), b""),
    ],
)
def test_codings_are_decoded(codings: tuple[str, ...], body: bytes) -> None:
    assert decoded(body, codings, LIMIT) == (TEXT if body else b"", "")


@pytest.mark.parametrize(
    ("coding", "packed"),
    [("gzip", gzip.compress(TEXT, mtime=0)), ("deflate", zlib.compress(TEXT)), ("br", brotlicffi.compress(TEXT))],
)
def test_a_broken_body_is_decoded_up_to_the_fault(coding: str, packed: bytes) -> None:
    whole, _ = decoded(packed[:-12], (coding,), LIMIT)
    assert TEXT.startswith(whole)
    assert decoded(packed[:-12], (coding,), LIMIT)[1]
    broken, note = decoded(packed[: len(packed) // 2] + b"\xff" * 40, (coding,), LIMIT)
    assert note
    assert broken[:20] == TEXT[:20]
    assert decoded(b"<html> not packed", (coding,), LIMIT)[0] == b"<html> not packed"


@pytest.mark.parametrize("bomb", [(gzip.compress(bytes(10**7)), "gzip"), (brotlicffi.compress(bytes(10**7)), "br")])
def test_output_is_bounded(bomb: tuple[bytes, str]) -> None:
    body, note = decoded(bomb[0], (bomb[1],), 1000)
    assert len(body) == 1000
    assert "1000" in note


def test_unknown_codings_are_left_as_they_are() -> None:
    assert decoded(TEXT, ("dcz",), LIMIT) == (TEXT, "unknown content coding 'dcz'")
    assert decoded(TEXT, ("gzip",) * 99, LIMIT)[1]


@settings(deadline=None)
@given(st.binary(), st.lists(st.sampled_from(["gzip", "deflate", "br", "x"]), max_size=5), st.integers(0, 100))
def test_decoding_never_raises(body: bytes, codings: list[str], limit: int) -> None:
    assert len(decoded(body, codings, limit)[0]) <= limit
    assert len(decoded(b"\x1f\x8b\x08\0" + body, codings, limit)[0]) <= limit


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/x", "http://e.org/x"),
        ("x y", "http://e.org/d/x%20y"),
        ("//other.org", "http://other.org/"),
        ("https://E.org:443/x#frag", "https://e.org/x"),
        ("  /x  ", "http://e.org/x"),
        ("/\xc3\xa9?\xc3\xa9", "http://e.org/%C3%A9?%C3%A9"),
        ("/\xe9", "http://e.org/%E9"),
        ("?q", "http://e.org/d/p?q"),
        ("", None),
        ("#frag", None),
        ("mailto:a@b.c", None),
        ("http://", None),
    ],
)
def test_location(location: str, target: str | None) -> None:
    found = redirect("http://e.org/d/p", (("server", "x"), ("location", location)))
    assert found == (Link(target, Hop.REDIRECT, "location") if target else None)


def test_no_location_is_no_redirect() -> None:
    assert redirect("http://e.org/", (("refresh", "0;url=/x"),)) is None


def test_fields() -> None:
    fields = (
        ("refresh", "5; URL='/r'"),
        ("location", "/l"),
        (
            "link",
            '</s.css>; rel="preload stylesheet"; as=style, </n>; title="a, <b>"; rel=next, <//c.d>; rel=preconnect',
        ),
    )
    assert [(link.url, link.hop) for link in from_fields("http://e.org/", fields)] == [
        ("http://e.org/l", Hop.REDIRECT),
        ("http://e.org/r", Hop.LINK),
        ("http://e.org/s.css", Hop.REQUISITE),
        ("http://e.org/n", Hop.LINK),
    ]


@settings(deadline=None)
@given(st.text(), st.text())
def test_fields_never_raise(one: str, other: str) -> None:
    from_fields(one, (("location", other), ("refresh", one), ("link", other), ("link", f"<{one}>; rel={other}")))


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        ("a{b:url(x)}", [("x", "url()")]),
        ("a{b:url( 'x' )}/* url(no) */", [("x", "url()")]),
        (
            "@import 'x' screen; @import url(y) layer(a); @import/**/\"z\";",
            [("x", "@import"), ("y", "@import"), ("z", "@import")],
        ),
        ("@namespace url(no); @namespace p 'no';", []),
        ("a{content:'url(no)'} b{c:\"@import 'no'\"}", []),
        ("a{b:image-set('x' 1x, url(y) type('no') 2x)} c{d:'no'}", [("x", "image-set()"), ("y", "url()")]),
        (r"a{b:u\72 l(x)} @\69mport 'y';", [("x", "url()"), ("y", "@import")]),
        (r"a{b:url(x\29 y\)z)}", [("x)y)z", "url()")]),
        (r"a\url(no) my-url(no) \41 url(no)", []),
        ("@font-face{src:url(a.woff2)format('x'),url(b.ttf)}", [("a.woff2", "url()"), ("b.ttf", "url()")]),
        ("a{b:src('x')}", [("x", "url()")]),
        ("a{b:url(x y)} c{d:url(z)}", [("z", "url()")]),
        ("@import 'x' layer; @import url(y) layer(b.c) supports(d:e) print;", [("x", "@import"), ("y", "@import")]),
        ("a{} @import 'late';", [("late", "@import")]),
        (
            "@font-face{src:local('no'),local(no),url(a)format('no')tech(variations),url('b') format(no)}",
            [("a", "url()"), ("b", "url()")],
        ),
        ("@document url(no), url-prefix('no'), regexp('{no'){a{b:url(x)}}", [("x", "url()")]),
        ("@-moz-document url(no),domain(no) {a{b:url(x)}} c{d:url(y)}", [("x", "url()"), ("y", "url()")]),
        (":root{--x:url(a);--y:'no'} @property --z{initial-value:url(b)}", [("a", "url()"), ("b", "url()")]),
        (
            "a{behavior:url(x.htc);cursor:url(c.cur) 2 2,url('d'),auto}",
            [("x.htc", "url()"), ("c.cur", "url()"), ("d", "url()")],
        ),
        (
            "a{filter:progid:DXImageTransform.Microsoft.AlphaImageLoader(sizingMethod='scale', src='x.png')}",
            [("x.png", "AlphaImageLoader()")],
        ),
        ("a{-ms-filter:\"progid:DX.AlphaImageLoader( src = \\'x.png\\',a=b)\"}", [("x.png", "AlphaImageLoader()")]),
        (
            "a{filter:alphaimageloader(src=x.png)} img[src='no'] b{filter:alpha(src='no')}",
            [("x.png", "AlphaImageLoader()")],
        ),
    ],
)
def test_css(sheet: str, expected: list[tuple[str, str]]) -> None:
    assert list(css.references(sheet)) == expected


@pytest.mark.parametrize(
    "piece",
    [
        "/*",
        '"',
        "\\",
        "url(",
        'url("',
        "@import ",
        "image-set(",
        "(",
        "a",
        "\\75",
        "url(a\\",
        "/**/",
        "@document ",
        "AlphaImageLoader(",
    ],
)
def test_css_is_linear(piece: str) -> None:
    list(css.references("@import" + piece * 200_000))


def test_a_style_sheet_is_resolved_against_itself() -> None:
    found = links(
        Document(
            "http://e.org/css/a.css", "text/css", None, '@charset "latin1"; a{b:url(../i.png?\xe9)}'.encode("latin-1")
        )
    )
    assert found.links == (Link("http://e.org/i.png?%C3%A9", Hop.REQUISITE, "url()"),)
    assert found.charset == "windows-1252"


def sitemap(body: bytes, hop: Hop = Hop.MANIFEST) -> list[tuple[str, Hop]]:
    return [(link.url, link.hop) for link in links(Document("http://e.org/s", "", None, body, hop)).links]


PAGE = ("http://e.org/a?b&c", Hop.LINK)


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset><url><loc>http://e.org/a?b&amp;c</loc></url></urlset>",
        b"<?xml version='1.0'?><s:urlset xmlns:s='x'><s:url><s:loc> <![CDATA[http://e.org/a?b&c]]> </s:loc></s:url>",
        b"\n<urlset><url><loc>/a?b&amp;c</loc></url><url><loc>http://e.org/a?b&amp;c</wrong></url>",
        gzip.compress(b"<urlset><url><loc>http://e.org/a?b&amp;c</loc></url></urlset>", mtime=0),
        "\ufeff<urlset><url><loc>http://e.org/a?b&amp;c</loc></url></urlset>".encode("utf-16-le"),
        b"\xef\xbb\xbfhttp://e.org/a?b&c\r\nnot a url\n",
        b"<rss><channel><item><link>http://e.org/a?b&amp;c</link></item></channel></rss>",
        b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/a?b&amp;c'/></entry></feed>",
        b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/hostname'>]><urlset><loc>http://e.org/a?b&amp;c</loc><loc>&e;</loc></urlset>",
        b"<!doctype html><a href='/a?b&amp;c'>",
    ],
)
def test_sitemaps(body: bytes) -> None:
    assert sitemap(body) == [PAGE]


def test_nested_sitemaps() -> None:
    index = b"<sitemapindex><sitemap><loc>http://e.org/1.xml</loc></sitemap></sitemapindex>"
    assert sitemap(index) == sitemap(index, Hop.LINK) == [("http://e.org/1.xml", Hop.MANIFEST)]


def test_entities_do_not_grow() -> None:
    entities = b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    body = (
        b"<!DOCTYPE l [<!ENTITY a0 'http://x.y/'>"
        + entities
        + b"]><urlset><loc>&a11;</loc><link href='&a11;'/></urlset>"
    )
    assert len(sitemap(body)) <= 1


def test_other_vocabularies_are_searched_for_absolute_urls() -> None:
    body = b"<?xml-stylesheet href='s.css'?><x xmlns='http://no.org/'><y z='http://a.org/'>see http://no.org/</y><y>http://b.org/</y></x>"
    found = links(Document("http://e.org/x", "application/xml", None, body)).links
    assert [link.url for link in found] == ["http://e.org/s.css", "http://a.org/", "http://b.org/"]


@settings(deadline=None)
@given(st.binary(), st.text())
def test_any_bytes_have_an_encoding(body: bytes, label: str) -> None:
    for encoding in (charset.of_html(body, label), charset.of_xml(body, label), charset.of_css(body, label)):
        charset.text(body, encoding)


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        (
            "text/xml",
            "<urlset><url><loc>http://e.org/?a&b</loc></url><url><loc>http://e.org/?c&amp;d</loc></url></urlset>",
            ["http://e.org/?a&b", "http://e.org/?c&d"],
        ),
        (
            "text/xml",
            "<urlset><url x=1><loc><![CDATA[http://e.org/?a&b&amp;]]></loc><loc>http://e.org/?c&#38;d</loc></url></urlset>",
            ["http://e.org/?a&b&amp;", "http://e.org/?c&d"],
        ),
        ("application/rss+xml", "<rss><a x=1/><link>/?a&amp;b</link></rss>", ["http://e.org/?a&b"]),
        (
            "image/svg+xml",
            "<svg><a x=1/><a href='/?a&amp;b'/><!-- & --><style>a{b:url('/?c&amp;d')}</style></svg>",
            ["http://e.org/?a&b", "http://e.org/?c&d"],
        ),
    ],
)
def test_links_after_a_fault_in_xml_are_found(media_type: str, body: str, expected: list[str]) -> None:
    found = links(Document("http://e.org/", media_type, None, body.encode())).links
    assert [link.url for link in found] == expected


def test_the_context_of_a_link_is_short() -> None:
    name = f"x-{'a' * 5000}"
    page = f"<{name} src=/a.png></{name}><{name} href=/b rel=nofollow></{name}>"
    found = links(Document("http://e.org/", "text/html", None, page.encode())).links
    assert [(link.url[12:], len(link.context), link.context.endswith(NOFOLLOW)) for link in found] == [
        ("/a.png", LONGEST_CONTEXT, False),
        ("/b", LONGEST_CONTEXT + len(NOFOLLOW), True),
    ]


def test_the_markers_of_leaflet() -> None:
    sheet = "a {background: url(images/marker-icon.png)} b {background: url(marker-icon.png)}"
    found = links(Document("http://e.org/l/a.css", "text/css", None, sheet.encode(), Hop.REQUISITE)).links
    assert {(link.url.removeprefix("http://e.org/l/"), link.hop) for link in found} == {
        ("images/marker-icon.png", Hop.REQUISITE),
        ("images/marker-shadow.png", Hop.SPECULATIVE),
        ("images/marker-icon-2x.png", Hop.SPECULATIVE),
        ("marker-icon.png", Hop.REQUISITE),
    }
