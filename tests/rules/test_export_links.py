"""What exporting changes in documents, and that it changes nothing else."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.config.expressions import PYTHON_IS_RIGHT
from archiver.tools.export import document, rewrite_html, rewrite_links
from archiver.tools.export.rewrite_links import ExportedPage, ExportedSite, relative, view

HERE = "http://e.org/dir/page"
FILES = {
    HERE: "e.org/dir/page.html",
    "http://e.org/": "e.org/index.html",
    "http://e.org/a": "e.org/a.html",
    "http://e.org/a?x=1&y=2": "e.org/a@x=1&y=2.html",
    "http://e.org/dir/b": "e.org/dir/b.html",
    "http://e.org/s.css": "e.org/s.css",
    "http://e.org/i.png": "e.org/i.png",
    "http://e.org/dir/caf%C3%A9?%E9": "e.org/dir/café@_ (1),'2'.html",
    "https://f.org/x": "f.org/x.html",
}
MOVED = {"http://e.org/old": "http://e.org/older", "http://e.org/older": "http://f.org/x"}
MOVED |= {"http://e.org/round": "http://e.org/round2", "http://e.org/round2": "http://e.org/round"}
SITE = ExportedSite(FILES, MOVED, live=True, loads=True)
PAGE = ExportedPage(SITE, HERE, FILES[HERE])


def changed(text: str, page: ExportedPage = PAGE, *, xml: bool = False) -> str:
    return rewrite_html.rewrite_html(text, page, str, xml=xml)


@pytest.mark.parametrize(
    ("reference", "new"),
    [
        ("/a", "../a.html"),
        ("  ../a \n", "../a.html"),
        ("/a#part two", "../a.html#part%20two"),
        ("/a?x=1&y=2", "../a@x=1%26y=2.html"),
        ("b", "b.html"),
        ("https://e.org/a", "../a.html"),
        ("//www.e.org/a", "../a.html"),
        ("http://f.org/x", "../../f.org/x.html"),
        ("/dir/caf%c3%a9?%e9", "caf%C3%A9@_%20%281%29%2C%272%27.html"),
        ("/old", "../../f.org/x.html"),
        ("/round", "http://e.org/round"),
        ("/none?q#f", "http://e.org/none?q#f"),
        ("//cdn.org/x", "http://cdn.org/x"),
        ("http://cdn.org/x", None),
        ("#part", None),
        ("", None),
        ("page#part", "#part"),
        ("page", "page.html"),
        ("javascript:x()", None),
        ("mailto:a@e.org", None),
        ("data:,x", None),
    ],
)
def test_reference(reference: str, new: str | None) -> None:
    assert PAGE.replacement(reference) == new


def test_nowhere() -> None:
    """Without the live web."""
    page = ExportedPage(ExportedSite(FILES, {}, live=False, loads=False), HERE, FILES[HERE])
    assert page.replacement("http://cdn.org/x") == "about:blank"
    assert page.replacement("/a") == "../a.html"
    assert page.replacement("#x") is None


def test_nothing_is_loaded_that_was_not_captured() -> None:
    """Links lead on to the live web, and a browser calls on nobody by itself."""
    page = ExportedPage(ExportedSite(FILES, {}, live=True, loads=False), HERE, FILES[HERE])
    kept = (
        "<a href='//x.org/'><form action='//x.org/'><q cite='//x.org/'><link rel=canonical href='//x.org/'>"
        "<meta http-equiv=refresh content='5;url=//x.org/'>"
    )
    assert changed(kept, page).replace('"', "'") == kept.replace("//x", "http://x")
    loaded = (
        "<img src='//x.org/' srcset='//x.org/ 2x'><link rel='icon' href='//x.org/'><p style='filter: url(//x.org/)'>"
        "<style>@import '//x.org/'</style><iframe src='//x.org/'></iframe>"
        "<input src='//x.org/'><script src='//x.org/'></script><svg><use href='//x.org/'/></svg>"
        "<body background='//x.org/'>"
    )
    assert changed(loaded, page) == loaded.replace("//x.org/", "about:blank")
    assert changed(loaded) == loaded.replace("//x.org/", "http://x.org/")
    instead = (
        "<object data='//x.org/'><img src='/i.png'></object>"  # a browser shows the image if the object is missing
    )
    assert changed(instead, page) == "<object data=''><img src='../i.png'></object>"
    assert changed(instead) == "<object data='http://x.org/'><img src='../i.png'></object>"


@pytest.mark.parametrize(
    ("start", "file", "way"),
    [
        ("a/b.html", "a/b.html", "b.html"),
        ("a/b/c", "a/b c/d (1)é", "../b%20c/d%20%281%29%C3%A9"),
        ("a/b.html", "a/c.html", "c.html"),
        ("index.html", "a/b.html", "a/b.html"),
        ("a/b/c", "a/d", "../d"),
        ("a/b/c", "d/b/c", "../../d/b/c"),
    ],
)
def test_relative(start: str, file: str, way: str) -> None:
    assert relative(start, file) == way


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<A HREF = "/a"  class=x>', '<A HREF = "../a.html"  class=x>'),
        ("<a href=/a>", '<a href="../a.html">'),
        ("<a href='/a?x=1&amp;y=2'>", "<a href='../a@x=1%26y=2.html'>"),
        ('<a href="/n?a=1&amp;b=2">', '<a href="http://e.org/n?a=1&amp;b=2">'),
        ("<a href=/n?o='1'>", '<a href="http://e.org/n?o=%271%27">'),
        ('<a title="href=/a">/a</a>', None),
        ('<a href="/a" href="/b">', '<a href="../a.html" href="/b">'),
        ("<!-- <a href=/a> --><a href=/a>", '<!-- <a href=/a> --><a href="../a.html">'),
        ("<!--><a href=/a>", '<!--><a href="../a.html">'),
        ("<script>'<a href=/a>'</script >", None),
        ("<textarea><a href=/a></textarea><title><a href=/a></title>", None),
        ("<a href=/a", None),
        ('<a href="/a>', None),
        ("</a href=/a><?x href=/a><!x href=/a>", None),
        (
            "<img src=/i.png srcset='/i.png 1x, /i.png, i2.png 3x'>",
            "<img src=\"../i.png\" srcset='../i.png 1x, ../i.png, http://e.org/dir/i2.png 3x'>",
        ),
        (
            '<link rel=stylesheet href="/s.css" integrity="sha256-x" crossorigin>',
            '<link rel=stylesheet href="../s.css">',
        ),
        ('<script src="/a" crossorigin="anonymous" async></script>', '<script src="../a.html" async></script>'),
        (
            '<link rel="preconnect" href="//cdn.org"><link rel=dns-prefetch href=//x.org>',
            '<link rel="preconnect" href=""><link rel=dns-prefetch href="">',
        ),
        ('<a ping="/p" href="#x">', '<a href="#x">'),
        (
            '<base href="/"><svg><use href="#x"/><a xlink:href="#y"/><path fill="url(#z)" style="mask: url(#z)"/>',
            (
                '<base href=""><svg><use href="#x"/><a xlink:href="../index.html#y"/>'
                '<path fill="url(#z)" style="mask: url(#z)"/>'
            ),
        ),
        (
            '<base href="/" target=_top><a href="a"><a href="#x">',
            '<base href="" target=_top><a href="../a.html"><a href="../index.html#x">',
        ),
        ('<a href="a"><base href="http://e.org/">', '<a href="../a.html"><base href="">'),
        (
            '<meta http-equiv="Content-Security-Policy" content="default-src \'self\'">',
            '<meta http-equiv="Content-Security-Policy" content="">',
        ),
        ("<meta http-equiv=refresh content=\"5; URL='/a'\">", '<meta http-equiv=refresh content="5;url=../a.html">'),
        ('<meta http-equiv=refresh content="5">', None),
        ('<meta name=x content="/a">', None),
        (
            '<p style="background: url(/i.png) /* url(/i.png) */">',
            '<p style="background: url(../i.png) /* url(/i.png) */">',
        ),
        ("<p style='background: url(&quot;/i.png&quot;)'>", "<p style='background: url(&quot;../i.png&quot;)'>"),
        (
            "<style>@import '/s.css'; p { content: '/s.css' }</style>",
            "<style>@import '../s.css'; p { content: '/s.css' }</style>",
        ),
        ('<iframe srcdoc="<a href=/a>">', '<iframe srcdoc="<a href=&quot;../a.html&quot;>">'),
        (
            "<iframe srcdoc=\"&lt;img src='/i.png' alt='&amp;amp;'>\">",
            '<iframe srcdoc="&lt;img src=&#39;../i.png&#39; alt=&#39;&amp;amp;&#39;>">',
        ),
        (
            "<svg><image xlink:href='/i.png'/><style/><a href=/a></svg>",
            "<svg><image xlink:href='../i.png'/><style/><a href=\"../a.html\"></svg>",
        ),
        ('<rect fill="url(#g)" mask="url(/i.png#m)">', '<rect fill="url(#g)" mask="url(../i.png#m)">'),
        ('<img data-src="/i.png" data-x="/none.png">', '<img data-src="../i.png" data-x="/none.png">'),
        ('<form action="/a"><button formaction="b">', '<form action="../a.html"><button formaction="b.html">'),
        (
            '<object data="/a"><param name=movie value="/i.png"><embed src=/a>',
            '<object data="../a.html"><param name=movie value="../i.png"><embed src="../a.html">',
        ),
        (
            '<body background=/i.png><video poster=/i.png src="/none.mp4">',
            '<body background="../i.png"><video poster="../i.png" src="http://e.org/none.mp4">',
        ),
        ('<my-card src="/i.png" href="/none">', '<my-card src="../i.png" href="/none">'),
        ("<a href='caf\u00e9?\ufffd'>", "<a href='http://e.org/dir/caf%C3%A9?%EF%BF%BD'>"),
    ],
)
def test_markup(before: str, after: str | None) -> None:
    assert changed(before) == (before if after is None else after)


def test_xml() -> None:
    """With sections in which nothing is markup, and without texts that only HTML has."""
    source = "<?xml-x href='/a'?><svg><![CDATA[<a href='/a'>]]><title><a xlink:href='/a'/></title></svg>"
    assert changed(source, xml=True) == source.replace("xlink:href='/a'", "xlink:href='../a.html'")
    style = "<svg><style><![CDATA[ p { background: url(/i.png) } ]]></style></svg>"
    assert changed(style, xml=True) == style.replace("/i.png", "../i.png")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a { b: url(/i.png) url( '/i.png' ) }", "a { b: url(../i.png) url( '../i.png' ) }"),
        ('@import "/s.css" screen; @import url(/s.css);', '@import "../s.css" screen; @import url(../s.css);'),
        ("a { b: image-set('/i.png' 1x) }", "a { b: image-set('../i.png' 1x) }"),
        ("a { b: url(/none\\(1\\).png) }", "a { b: url(http://e.org/none\\(1\\).png) }"),
        ("a { b: url(#x) url(data:,y) '/i.png' } /* url(/i.png) */", None),
        ("@namespace url(/a);", None),
    ],
)
def test_sheet(before: str, after: str | None) -> None:
    assert rewrite_links.rewrite_css(before, PAGE, str) == (before if after is None else after)


NAMES = (
    "utf-8",
    "utf-16le",
    "utf-16be",
    "windows-1252",
    "shift_jis",
    "euc-jp",
    "gb18030",
    "big5",
    "iso-2022-jp",
    "koi8-u",
)


@given(body=st.binary(max_size=60), encoding=st.sampled_from(NAMES))
@settings(max_examples=60)
def test_bytes_stay(body: bytes, encoding: str) -> None:
    """Any bytes, in any encoding, are themselves again; or they are not touched."""
    seen = view(body, encoding)
    if seen is not None:
        assert seen.back(seen.text) == body
        seen.meaning(seen.text[3:7])


pieces = st.sampled_from(
    [
        "<a href='/a'>",
        "<",
        ">",
        "'",
        '"',
        "=",
        "<!--",
        "-->",
        "<style>",
        "</style>",
        "url(/a",
        ")",
        "<script ",
        "&amp;",
        "é",
        "<svg>",
        "/>",
        "<![CDATA[",
        "]]>",
        " srcdoc='",
        "srcset=/a,",
    ]
)


@given(parts=st.lists(pieces, max_size=30), xml=st.booleans())
@settings(max_examples=60)
def test_any_markup(parts: list[str], *, xml: bool) -> None:
    """Nothing raises, and without anything to change nothing is changed."""
    text = "".join(parts)
    changed(text, xml=xml)
    assert changed(text.replace("/a", "#"), xml=xml).count("<") >= text.count("<") or "srcdoc" in text


@pytest.mark.parametrize(
    ("body", "encoding", "start"),
    [
        ("<p>ü".encode(), "utf-8", "\ufeff<p>"),
        ("<p>ü".encode("latin-1"), "windows-1251", '<meta charset="windows-1251"><p>'),
        (b" <!-- x --><!doctype html><p>\xe9", "koi8-u", ' <!-- x --><!doctype html><meta charset="koi8-u"><p>'),
        (b"<meta charset=koi8-u>\xe9", "koi8-u", "<meta charset=koi8-u>"),
        (b"<p>plain", "koi8-u", "<p>plain"),
        (b"<p><Script src=a.js></script>", "koi8-u", '<meta charset="koi8-u"><p>'),  # scripts may be in its encoding
        (b"<p><script src=a.js></script>", "utf-8", "\ufeff<p>"),
        (b"<meta charset=utf-8><script src=a.js></script>", "utf-8", "<meta charset=utf-8>"),
        ("<p>ü".encode("utf-16-be"), "utf-16be", "\ufeff<p>"),
        ("<p>u".encode("utf-16-le"), "utf-16le", "\ufeff<p>"),
        ("\ufeff<p>ü".encode(), "utf-8", "\ufeff<p>"),
    ],
)
def test_labelled(body: bytes, encoding: str, start: str) -> None:
    """From a disk there is no header that tells the encoding."""
    seen = view(body, encoding)
    assert seen is not None
    assert document.html_with_charset(body, seen.text, encoding, xml=False).startswith(start)


def test_sheet_labelled() -> None:
    assert document.css_with_charset(b"\xc3\xa9", "é", "utf-8") == "\ufeffé"
    assert document.css_with_charset(b"\xe9", "é", "koi8-u") == '@charset "koi8-u";é'
    assert document.css_with_charset(b"e", "e", "koi8-u") == "e"


@pytest.mark.skipif(not PYTHON_IS_RIGHT, reason="the library regex remembers each iteration of a possessive group")
@pytest.mark.parametrize("text", ["<p>" * 25_000, "<base href=x>" + "<p a>" * 15_000, "<a name=x>" * 8_000])
def test_memory_does_not_grow_with_the_number_of_tags(text: str) -> None:
    """A page of 32 MB may have ten million of them."""
    tracemalloc.start()
    try:
        rewrite_html.rewrite_html(text, PAGE, str)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text)
    finally:
        tracemalloc.stop()


PIECES = [
    *(
        "<p>",
        "</p>",
        "<P CLASS='x'>",
        '<div class="a" id="b">',
        '<td width="1" onclick="x">',
        "<a href=/a>",
        '<a name="x" href="/a">',
        '<A rel="x" HREF="/a&amp;b" type="y">',
        '<a href="/a" href="/s.css"/>',
        '<a href="" title="x">',
        '<a href="/a" data-src="/s.css" >',
        '<a title="x"  href="/a" />',
    ),
    *(
        "<title>",
        "</title>",
        "<style>",
        "</style>",
        "a{b:url(/i.png)}",
        "<script>",
        "</script>",
        "<svg>",
        "</svg>",
        "<svg/>",
    ),
    *(
        "<math>",
        "</math x>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<!-->",
        "<plaintext>",
        "<",
        ">",
        "</",
        "x",
        " ",
        '"',
        "/>",
    ),
    *(
        '<img alt="<p>" src="/i.png">',
        '<img title="a>b" src=/i.png>',
        '<img alt="x" src="/i.png" loading="lazy" />',
        '<img src="/a" srcset="/i.png 2x">',
        '<base target="x">',
        '<object class="a" data="/a">',
    ),
    *(
        '<link rel="preconnect" href="/a">',
        '<p style="b:url(/i.png)">',
        "<textarea>",
        "</textarea>",
        '<x-y data-src="/a">',
    ),
    *(
        '<p fill="url(/i.png)">',
        '<p lang="x" data="/a" ping="/a">',
        '<circle cx="1"/>',
        "\u212a",
        "<p\u212a>",
        "<\u017fvg>",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.booleans())
def test_tags_are_left_out_only_if_nothing_in_them_changes(pieces: list[str], xml: bool) -> None:  # noqa: FBT001
    text = "".join(pieces)
    quick = changed(text, xml=xml)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrite_html, "_ahead", lambda _text, position: (None, position))
        patch.setattr(rewrite_html, "_matters", lambda _tag, _name: True)
        patch.setattr(rewrite_html, "_USUAL_REFERENCES", {})
        assert quick == changed(text, xml=xml)
