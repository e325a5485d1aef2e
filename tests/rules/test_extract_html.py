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
    ("<object lazy=/x></object>", E, "object/@lazy"),
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


def test_a_page_in_utf_8_that_does_not_say_so_names_what_it_means_too() -> None:
    html = "<a href='/grüße?ü'><a href='//müller.example/'><a href=plain#ü>".encode()
    for stated in (None, "iso-8859-1"):
        urls = [(link.url, link.hop) for link in found(html, charset=stated)]
        assert ("http://e.org/gr%C3%83%C2%BC%C3%83%C5%B8e?%C3%BC", L) in urls  # as browsers do
        assert ("http://e.org/gr%C3%BC%C3%9Fe?%C3%BC", X) in urls
        assert ("http://xn--mller-kva.example/", X) in urls
        assert [link for link in urls if "plain" in link[0]] == [("http://e.org/dir/plain", L)]
    assert all(link.hop is not X for link in found(html, charset="utf-8"))
    latin = "<a href='/grüße'>".encode("latin-1")
    assert [link.url for link in found(latin, charset=None)] == ["http://e.org/gr%C3%BC%C3%9Fe"]


@pytest.mark.parametrize("before", ["<p>a", "<body><p>a", "<map name=m></map>", "<!doctype html><title>t</title><div>"])
def test_a_late_body_adds_its_background(before: str) -> None:
    urls = {(link.url, link.hop) for link in found(f"{before}<body background=/bg.gif><a href=/b>b</a>")}
    assert {("http://e.org/bg.gif", X), ("http://e.org/b", L)} == urls


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


@pytest.mark.parametrize("broken", ["", "<p <b>"])
@pytest.mark.parametrize(
    ("element", "sent"),
    [
        ('<a href="/x" data-method="delete">', True),
        ('<a class="b" data-method="post" rel="no" href="/x">', True),
        ("<a data-turbo-method=PUT href=/x>", True),
        ("<a DATA-METHOD=' post ' href=/x>", True),
        ('<a href="/x" data-method="get">', False),
        ('<a href="/x" data-methods="post">', False),
        ('<a href="/x" data-remote="true">', False),
        ('<a href="/x" title="data-method=post">', False),
    ],
)
def test_a_link_that_a_script_sends_by_another_method_is_none(element: str, broken: str, *, sent: bool) -> None:
    """As of Rails, Yii and Turbo: like a form that posts, it changes something, and a GET of it is often an error."""
    assert found(f"{broken}{element}") == (() if sent else (Link("http://e.org/x", L, "a/@href"),))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("/web/viewer.html?file=%2Fa%20b.pdf#page=2", ["/a%20b.pdf"]),
        ("/web/viewer.html?x=1&file=../c.pdf&y", ["/c.pdf"]),
        ("/web/viewer.html?file=", []),
        ("/web/viewer.html", []),
        ("/web/other.html?file=c.pdf", []),
    ],
)
def test_the_document_in_the_viewer_of_pdf_js(at: str, expected: list[str]) -> None:
    named = links(Document(f"http://e.org{at}", "text/html", "utf-8", b"<p>x</p>")).links
    assert [(link.url, link.hop) for link in named] == [(f"http://e.org{name}", E) for name in expected]


def test_a_long_tag_in_a_deep_page_is_read() -> None:
    """A page that libxml2 reads, with too many open elements, is read in pieces. They must not cut a tag."""
    image = f'<xmp></xmp><img src="data:image/png;base64,{"A" * 100_000}" srcset="/real.png 2x"><a href=/after>x</a>'
    page = f"{'<div>' * 3000}<a href=/before>x</a>{image}<a href=/end>x</a>"
    found = links(Document("http://e.org/", "text/html", "utf-8", page.encode())).links
    assert [link.url.removeprefix("http://e.org") for link in found] == ["/before", "/real.png", "/after", "/end"]


def test_modules_below_a_folder_of_an_import_map() -> None:
    page = (
        '<script type="importmap">{"imports": {"a/": "./js/", "a/b/": "/b/", "c/": 1, "d": "/d.js"}}</script>'
        '<script type="module">import x from "a/x.js"; import "a/b/y.mjs"; export {z} from "e/z.js"; '
        'import("a/b/w")</script>'
    )
    found = links(Document("http://h/p/q.html", "text/html", None, page.encode())).links
    assert {link.url for link in found} >= {"http://h/p/js/x.js", "http://h/b/y.mjs", "http://h/b/w"}
    assert not [link for link in found if "e/z" in link.url or "/a/" in link.url]
    for broken in ('{"imports": []}', "{", '{"imports": {"a/": {}}}', "[" * 50_000):
        page = f'<script type=importmap>{broken}</script><script type=module>import "a/x.js"</script>'
        assert links(Document("http://h/", "text/html", None, page.encode())).links == ()
