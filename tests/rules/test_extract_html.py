import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import url
from archiver.extract import Document, links
from archiver.extract.references import MOST_LINKS, UrlJoiner
from archiver.model import Hop, Link

PAGE = "http://e.org/dir/page.html"
L, E, X = Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE


def found(html: str | bytes, media_type: str = "text/html", charset: str | None = "utf-8") -> tuple[Link, ...]:
    body = html.encode() if isinstance(html, str) else html
    return links(Document(PAGE, media_type, charset, body)).links


ONE_EACH = [
    ("<a href=/x>", L, "a/@href"),
    ("<map><area href=/x></map>", L, "area/@href"),
    ("<link rel=stylesheet href=/x>", E, "link/@href"),
    ("<link rel='shortcut icon' href=/x>", E, "link/@href"),
    ("<link rel=next href=/x>", L, "link/@href"),
    ("<link rel='alternate stylesheet' href=/x>", E, "link/@href"),
    ("<link rel=canonical href=/x>", L, "link/@href"),
    ("<link rel=manifest href=/x>", E, "link/@href"),
    ("<link rel=preload as=image imagesrcset='/x 2x'>", E, "link/@imagesrcset"),
    ("<script src=/x></script>", E, "script/@src"),
    ("<img src=/x>", E, "img/@src"),
    ("<img srcset='/x 2x'>", E, "img/@srcset"),
    ("<img data-src=/x>", E, "img/@data-src"),
    ("<img data-srcset='/x 2x'>", E, "img/@data-srcset"),
    ("<div data-bg=/x>", E, "div/@data-bg"),
    ("<iframe src=/x></iframe>", E, "iframe/@src"),
    ("<iframe srcdoc='<img src=/x>'></iframe>", E, "img/@src"),
    ("<frameset><frame src=/x></frameset>", E, "frame/@src"),
    ("<frameset></frameset><noframes><a href=/x></noframes>", L, "a/@href"),
    ("<noscript><img src=/x></noscript>", E, "img/@src"),
    ("<template><img src=/x></template>", E, "img/@src"),
    ("<picture><source srcset=/x></picture>", E, "source/@srcset"),
    ("<video src=/x>", E, "video/@src"),
    ("<video poster=/x>", E, "video/@poster"),
    ("<audio src=/x>", E, "audio/@src"),
    ("<video><track src=/x></video>", E, "track/@src"),
    ("<embed src=/x>", E, "embed/@src"),
    ("<object data=/x></object>", E, "object/@data"),
    ("<object><param name=movie value=/x></object>", E, "param/@value"),
    ("<embed flashvars='a=1&xmlPath=/x.xml'>", X, "embed/@flashvars"),
    ("<input type=image src=/x>", E, "input/@src"),
    ("<form action=/x>", L, "form/@action"),
    ("<form method=GET action=/x>", L, "form/@action"),
    ("<form method=post><button formmethod=get formaction=/x>", L, "button/@formaction"),
    ("<body background=/x>", E, "body/@background"),
    ("<p style='background:url(/x)'>", E, "p/@style"),
    ("<style>@import '/x';</style>", E, "style/@import"),
    ("<svg><style><![CDATA[a{fill:url(/x)}]]></style></svg>", E, "style/url()"),
    ("<svg><use href=/x#part></svg>", E, "use/@href"),
    ("<svg><image xlink:href=/x></svg>", E, "image/@xlink:href"),
    ("<svg><a xlink:href=/x>", L, "a/@xlink:href"),
    ("<!--[if lt IE 9]><script src=/x></script><![endif]-->", E, "script/@src"),
    ("<meta http-equiv=refresh content='0;url=/x'>", L, "refresh"),
    ("<meta property=og:image content=/x>", E, "meta/@content"),
    ("<META NAME=twitter:image CONTENT=/x>", E, "meta/@content"),
    ("<A\nHREF = '/x'>", L, "a/@href"),
    ("<a href=/x#&amp;y>", L, "a/@href"),
]


@pytest.mark.parametrize(("html", "hop", "context"), ONE_EACH)
def test_each_place(html: str, hop: Hop, context: str) -> None:
    target = "http://e.org/x.xml" if "x.xml" in html else "http://e.org/x"
    assert found(html) == (Link(target, hop, context),)


@pytest.mark.parametrize(
    "html",
    [
        "<a href='#x'>",
        "<a href=''>",
        "<a href=' \n'>",
        "<a href='javascript:void(0)'>",
        "<a href=' JavaScript:x()'>",
        "<a href=mailto:a@b.c>",
        "<a href=ftp://e.org/x>",
        "<img src=data:image/gif;base64,R0lGOD>",
        "<form method=post action=/x>",
        "<form method=post action=/x><button formaction=/x>",
        "<form method=dialog action=/x>",
        "<link rel=preconnect href=//cdn.example>",
        "<link rel='dns-prefetch pingback' href=//cdn.example>",
        "<script>location='/x' + y; document.write('<a href=/x' + y + '>')</script>",
        "<textarea><a href=/x></textarea><title><a href=/x></title>",
        "<!-- <a href=/x> -->",
        "<a title='<a href=/x>'>",
        "<base href=/x>",
        '<div data-src=\'{"a": "/x"}\' data-image=true>',
        "<a href=http://[::1>",
    ],
)
def test_no_link(html: str) -> None:
    assert found(html) == ()


def test_each_link_once_in_document_order() -> None:
    html = "<img src=b><a href=a><a href=./a#frag><img src=a><a href=b>"
    assert [(link.url[-1], link.hop) for link in found(html)] == [("b", E), ("a", L), ("a", E), ("b", L)]


def test_a_late_base_also_applies_to_srcdoc() -> None:
    inner = '<a href=d><iframe srcdoc="<base href=e/><a href=f>">'
    html = f"<a href=a><base href=/b/><base href=/c/><iframe srcdoc='{inner}'>"
    assert [link.url for link in found(html)] == ["http://e.org/b/a", "http://e.org/b/d", "http://e.org/b/e/f"]


def test_character_sets() -> None:
    assert found("<a href='ü?ü'>".encode("cp1252"), charset=None)[0].url == "http://e.org/dir/%C3%BC?%FC"
    assert found("<meta charset=shift_jis><a href='?表'>".encode("cp932"), charset=None)[0].url.endswith("?%95\\")
    assert found("\ufeff<a href='?ü'>".encode("utf-16-le"), charset="latin1")[0].url.endswith("?%C3%BC")
    assert found("<a href='ü'>", charset="no-such-charset")[0].url.endswith("/%C3%83%C2%BC")  # read as windows-1252
    assert found("<a href='?Я'>".encode("cp1251"), charset="cp1251")[0].url.endswith("?%DF")
    assert found("<a href='?&eacute;Я'>".encode("cp1251"), charset="cp1251")[0].url.endswith("?%26%23233%3B%DF")


@pytest.mark.parametrize(
    ("media_type", "body", "read"),
    [
        ("text/html", "<a href=/x>", True),
        ("", "  <!-- c --><p><a href=/x>", True),
        ("", "just text <a href=/x>", False),
        ("text/plain", "<!DOCTYPE html><a href=/x>", True),
        ("text/plain", "<p><a href=/x>", False),
        ("application/json", "<!DOCTYPE html><a href=/x>", False),
        ("text/javascript", "'<a href=/x>'", False),
        ("text/html", "%PDF-1.4 <a href=/x>", False),
        ("application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'><title/><a href='/x'/></html>", True),
        ("image/svg+xml", "<svg xmlns:q='http://www.w3.org/1999/xlink'><a q:href='/x'/></svg>", True),
    ],
)
def test_which_documents_are_read(media_type: str, body: str, read: bool) -> None:  # noqa: FBT001 - a column
    assert bool(found(body, media_type)) is read


@pytest.mark.parametrize(
    "piece",
    [
        b"<",
        b"<a ",
        b'<a b="',
        b"<div>",
        b"<!--",
        b"<!--[if x]>",
        b"<style>",
        b"<p><b>",
        b"&amp",
        b"\0",
        b"<iframe srcdoc=x>",
    ],
)
def test_hostile_repetition_is_linear(piece: bytes) -> None:
    links(Document(PAGE, "text/html", None, piece * 200_000))


def test_depth_and_number_of_attributes_cost_no_extra_time() -> None:
    attributes = b"".join(b"x%d=1 " % number for number in range(100_000))
    assert len(found(b"<div>" * 100_000 + b"<a " + attributes + b"href=/x>")) == 1


def test_number_of_links_is_bounded() -> None:
    body = b"".join(b"<a href=%d>" % number for number in range(MOST_LINKS + 10))
    many = links(Document(PAGE, "text/html", None, body))
    assert len(many.links) == MOST_LINKS
    assert str(MOST_LINKS) in many.note


_TYPES = st.sampled_from(
    ["", "text/html", "text/css", "text/xml", "text/plain", "application/xhtml+xml", "image/svg+xml"]
)
_TOKENS = st.sampled_from(
    [
        "<",
        ">",
        "/",
        "=",
        '"',
        "'",
        "<a",
        "href=",
        "<base",
        "href=",
        "url(",
        "@import",
        "<style>",
        "</style>",
        "<!--[if",
        "x]>",
        "-->",
        "http://a.b/",
        "\\",
        ";",
        "{",
        "(",
        ")",
        "<?xml",
        "?>",
        "<!DOCTYPE",
        "<!ENTITY",
        "<svg>",
        "<urlset>",
        "<loc>",
        "</loc>",
        "srcset=",
        ",",
        "1x",
        "&amp;",
        "&#x;",
        "é",
        "\x00",
        "\ufffe",
        "charset=",
        "<meta",
    ]
)


@settings(deadline=None)
@given(
    st.binary() | st.lists(_TOKENS).map(lambda parts: "".join(parts).encode()),
    _TYPES,
    st.sampled_from(Hop),
    st.text() | st.none(),
)
def test_any_bytes_give_links(body: bytes, media_type: str, hop: Hop, charset: str | None) -> None:
    for link in links(Document(PAGE, media_type, charset, body, hop)).links:
        assert link.url.startswith(("http://", "https://"))
        assert url.canonical(link.url) == link.url


_PARTS = st.sampled_from(
    [
        "a",
        "b.",
        ".",
        "..",
        "/",
        "//",
        "%2e",
        "%2E",
        "%41",
        "%zz",
        "%C3%A9",
        "?",
        "#",
        "&",
        "'",
        ";",
        ":",
        "@",
        "~",
        "|",
        "^",
        "`",
        "http://",
        "https://",
        "HTTP://",
        "e.org",
        "E.org",
        "xn--a",
        "1.2.3.4",
        "0x7f.1",
        "a--b.com",
        "-a.com",
        ":80",
        ":8080",
        "é",
        "\t",
        "\n",
        "\\",
        "+",
        "*",
        "(",
        ")",
        "!",
        "$",
        ",",
        "=",
        "[",
        "]",
        "{",
        "}",
        "_",
        "www.example.com/",
        "a.b.c.d.e.f.gh",
    ]
)


@settings(deadline=None)
@given(
    st.sampled_from(
        [PAGE, "http://e.org/", "https://e.org:8443/a/b?c/d", "http://e.org/a//", "not a base", "about:blank"]
    ),
    st.lists(_PARTS, max_size=8).map("".join) | st.text(max_size=20),
)
def test_fast_joining_equals_url_join(base: str, reference: str) -> None:
    expected = (
        None
        if not reference.strip("\t\n\f\r ") or reference.strip("\t\n\f\r ").startswith("#")
        else url.join(base, reference)
    )
    joiner = UrlJoiner(base)
    assert joiner.join(reference) == expected
    if reference:
        for _ in range(2):  # the second time from memory
            found = joiner.links({(reference, Hop.LINK): "a/@href"})
            assert found == ([Link(expected, Hop.LINK, "a/@href")] if expected else [])


def test_a_refresh_without_a_reference_is_a_link_to_the_page_itself() -> None:
    html = "<meta http-equiv=refresh content=5><base href=/other/>"
    assert found(html) == (Link("http://e.org/dir/page.html", L, "refresh"),)
