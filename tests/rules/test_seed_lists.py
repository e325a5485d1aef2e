"""URLs in files that people have, recognized by content."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.option_types import TEXT
from archiver.config.seeds import LONGEST_ABOUT, SeedAbout, described, read_seed
from archiver.extract import seed_lists
from archiver.extract.seed_lists import seeds_in
from fixtures.handmade_collections import Held

A, B = "http://example.org/a", "https://example.org/b?x=1&y=2"
SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    f"<url><loc>{A}</loc></url><url><loc>{B.replace('&', '&amp;')}</loc></url></urlset>"
)
ESCAPED = B.replace("&", "&amp;")
INDEX = "".join(
    ("<sitemapindex>", *(f"<sitemap><loc>{url}</loc></sitemap>" for url in (A, ESCAPED)), "</sitemapindex>")
)
RSS = f"<rss><channel><item><link>{A}</link></item><item><link>{ESCAPED}</link></item></channel></rss>"
ATOM = (
    '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">'
    f'<entry><link href="{A}"/></entry><entry><link href="{ESCAPED}"/></entry></feed>'
)
NETSCAPE = (
    "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE><DL><p>\n"
    f'<DT><A HREF="{A}" ADD_DATE="1">a</A>\n<DT><A HREF="javascript:x()">no</A>'
    f'<DT><A ADD_DATE=1 HREF="{ESCAPED}">b</A></DL>'
)
CHROME = json.dumps({"roots": {"bar": {"children": [{"type": "url", "url": A}, {"children": [{"url": B}]}]}}})
FIREFOX = json.dumps({"children": [{"uri": A, "title": "x"}, {"children": [{"uri": B}, {"uri": "place:sort=8"}]}]})
JSON_FEED = json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [{"url": A}, {"url": B}]})
CDXJ = "\n".join(
    f"org,example)/{name} 20260101000000 {json.dumps({'url': url, 'filename': 'x.warc.gz', 'offset': '0'})}"
    for name, url in (("a", A), ("b?x=1&y=2", B), ("a", A))
)
LINES = [f"org,example)/{name} 20260101000000 {url} text/html 200 X - - 1 2 f\n" for name, url in (("a", A), ("b", B))]
CDX = "".join((" CDX N b a m s k r M S V g\n", *LINES))
WAYBACK = "".join(line.replace("text/html 200", "warc/revisit -").replace(" - - 1 2 f", " 12") for line in LINES)


FOLDERS = f"""<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE><H1>Menu</H1><DL><p>
<DT><H3 ADD_DATE="1">News</H3>
<DL><p><DT><H3>Local &amp; near</H3><DD>about the folder
<DL><p><DT><A HREF="{A}" ICON="data:image/png;base64,a>b">Our &lt;blog&gt;</A><DD>What we
 write
<DT><A HREF="http://example.org/n">
   News\x07
today</A>
</DL><p><DT><A HREF="{B.replace("&", "&amp;")}">Up</A></DL><p>
<DT><A HREF="http://example.org/top">Top</A></DL>"""
RSS_TITLED = (
    f"<rss><channel><title>All</title><link>http://example.org/</link><item><title>One &amp;amp; two</title><link>{A}"
    f"</link><source><title>Elsewhere</title></source></item><item><link>{B.replace('&', '&amp;')}</link></item>"
    "</channel></rss>"
)
ATOM_TITLED = (
    '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>All</title><entry>'
    f'<title type="html">One &lt;b&gt;&amp;amp;&lt;/b&gt; two</title><link href="{A}"/>'
    '<link rel="related" href="http://example.org/r"/></entry></feed>'
)
CHROME_TITLED = json.dumps(
    {"roots": {"bar": {"name": "News", "children": [{"name": "Local", "children": [{"name": "A\u0007b", "url": A}]}]}}}
)
FIREFOX_TITLED = json.dumps({"title": "", "children": [{"title": "News", "children": [{"uri": A, "title": "A b"}]}]})
CSV = f'Title,URL,description,collection\r\n"Our, ""blog""",{A},"two\r\nlines",blogs\r\n\r\n,{B},,\r\n'
TSV = f'url\ttitle\tnote\n{A}\t"Our" blog\t"a ""b"""\n{B}\t"unclosed\t\n'
JSON_LINES = "\n".join(
    (
        json.dumps({"url": A, "title": "Our blog", "note": "why", "collection": "blogs"}),
        "",
        "not JSON",
        json.dumps({"title": "no URL"}),
        json.dumps({"url": B, "description": "what"}),
    )
)


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (
            FOLDERS,
            {
                A: SeedAbout("Our <blog>", "What we write", "News / Local & near"),
                "http://example.org/n": SeedAbout("News today", "", "News / Local & near"),
                B: SeedAbout("Up", "", "News"),
                "http://example.org/top": SeedAbout("Top"),
            },
        ),
        (RSS_TITLED, {A: SeedAbout("One & two")}),
        (ATOM_TITLED, {A: SeedAbout("One & two")}),
        (CHROME_TITLED, {A: SeedAbout("A b", "", "News / Local")}),
        (FIREFOX_TITLED, {A: SeedAbout("A b", "", "News")}),
        (JSON_FEED.replace('{"url"', '{"title": "One", "url"', 1), {A: SeedAbout("One")}),
        (CSV, {A: SeedAbout('Our, "blog"', "two lines", "blogs")}),
        (CSV.replace(",", ";"), {A: SeedAbout('Our; "blog"', "two lines", "blogs")}),
        (TSV, {A: SeedAbout('"Our" blog', 'a "b"'), B: SeedAbout('"unclosed')}),
        (JSON_LINES, {A: SeedAbout("Our blog", "why", "blogs"), B: SeedAbout("", "what")}),
        (
            json.dumps([{"url": A, "title": "x" * 400, "note": None, "collection": 5}]),
            {A: SeedAbout("x" * 299 + "…")},
        ),
        (SITEMAP, {}),
    ],
)
def test_texts_beside_urls(text: str, about: dict[str, SeedAbout]) -> None:
    found = seeds_in(text.encode())
    assert found is not None
    assert found.about == about
    assert set(about) <= set(found.urls)
    for url, each in about.items():
        own = described(url, each)
        assert own is not None
        assert own == read_seed(str(own))[1]


@pytest.mark.parametrize(
    ("content", "urls", "notes"),
    [
        (JSON_LINES.encode(), [A, B], ("skipped 2 lines without a URL, the first is line 3",)),
        (f"url,title\n{A},x\nmailto:me@example.org,y\n".encode(), [A], ("skipped 1 line without a URL: line 3",)),
        (
            b"title;url\nM\xfcller;example.org/m\n;//example.org/n\n",
            ["http://example.org/m", "http://example.org/n"],
            ("it is not UTF-8; read as Windows-1252", "2 URLs without a scheme, taken as http://"),
        ),
        (f'url,note\n{A},"never closed\n{B},5" wide\n{A}2,"x"\n'.encode(), [A, B, f"{A}2"], ()),
        (
            f'url,note\n{A},"never closed{"x" * 200_000}\n{B},\n'.encode(),
            [B],
            ("skipped 1 line without a URL: line 2",),
        ),
        (
            "".join(("<rss>", *(f"<item><link>{A}{n}</link></item>" for n in range(50_001)), "</rss>")).encode(),
            [f"{A}{n}" for n in range(50_000)],
            ("not all of it was read: more than 50000 links",),
        ),
        (f'url\tnote\n{A}\t"never closed\n{B}\tx\n'.encode(), [A, B], ()),
        (f'url,note\n{A},"{"x" * 200_000}"\n{B},y\n'.encode(), [B], ("skipped 1 line without a URL: line 2",)),
    ],
)
def test_what_a_file_has_beside_urls_is_named(content: bytes, urls: list[str], notes: tuple[str, ...]) -> None:
    found = seeds_in(content)
    assert found is not None
    assert (found.urls, found.notes) == (urls, notes)


@pytest.mark.parametrize(
    ("rows", "text", "kept"), [(10_005, "x", 10_000), (5000, "ü" * 2000, (4 << 20) // 4000)], ids=["many", "long"]
)
def test_texts_are_limited_and_urls_are_not(rows: int, text: str, kept: int) -> None:
    found = seeds_in("".join(("url,note\n", *(f"{A}{number},{text}\n" for number in range(rows)))).encode())
    assert found is not None
    assert (len(found.urls), len(found.about)) == (rows, kept)
    limits = "of a file, those of 10000 URLs with 4 MiB are kept"
    assert found.notes == (f"the titles and notes of {rows - kept} URLs are left out: {limits}",)


def test_folders_nested_without_end() -> None:
    """Names of deep folders are left out; their bookmarks are taken, and the folders close again."""
    deep = 100_000
    folders = "<DL><H3>f</H3>" * deep
    text = f'<!DOCTYPE NETSCAPE-Bookmark-file-1>{folders}<A HREF="{A}">a</A>{"</DL>" * deep}<A HREF="{B}">b</A>'
    found = seeds_in(text.encode())
    assert found is not None
    folder = " / ".join(["f"] * (seed_lists.DEEPEST_FOLDER - 1))
    assert found.about == {A: SeedAbout("a", "", folder), B: SeedAbout("b")}


@pytest.mark.parametrize("text", ["# title, url\n" + A, f"{A}?x=1,url\n", "titles,urls\n", f"url {A}\n"])
def test_a_line_of_a_list_is_no_header(text: str) -> None:
    assert seeds_in(text.encode()) is None


def kind_and_urls(content: bytes) -> tuple[str, list[str]]:
    found = seeds_in(content)
    assert found is not None
    return found.kind, found.urls


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sitemap or feed", SITEMAP),
        ("sitemap or feed", INDEX),
        ("sitemap or feed", RSS),
        ("sitemap or feed", ATOM),
        ("sitemap or feed", "\ufeff  " + SITEMAP),
        ("bookmarks file", NETSCAPE),
        ("JSON file", CHROME),
        ("JSON file", FIREFOX),
        ("CDXJ index", CDXJ),
        ("CDX index", CDX),
        ("CDX index", WAYBACK),
        ("table", CSV),
        ("table", TSV),
        ("JSON file", JSON_LINES),
    ],
)
def test_each_kind_names_its_urls(kind: str, text: str) -> None:
    for content in (text.encode(), gzip.compress(text.encode())):
        assert kind_and_urls(content) == (kind, [A, B])


def test_a_feed_in_json() -> None:
    found = seeds_in(JSON_FEED.encode())
    assert found is not None
    assert [url for url in found.urls if "example" in url] == [A, B]


def test_a_warc_file(tmp_path: Path) -> None:
    """Responses and revisits count, requests and metadata do not."""
    Held(tmp_path / "c").add(A, b"page").add(B, b"other").write()
    (path,) = (tmp_path / "c" / "archive").iterdir()
    assert kind_and_urls(path.read_bytes()) == ("WARC file", [A, B])
    assert seeds_in(path.read_bytes()[:-20]) is not None  # damaged at the end


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        f"{A}\n{B}\n",
        f"# list\n{A} scope=prefix\n",
        "example.org\n",
        "org,example)/a 20260101\n",
        "<p>a page</p>",
    ],
)
def test_a_list_of_lines_is_none_of_these(text: str) -> None:
    assert seeds_in(text.encode()) is None


@given(
    st.binary(max_size=200)
    | st.sampled_from([SITEMAP, NETSCAPE, CHROME, CDXJ, CDX, RSS_TITLED, FOLDERS, CSV, JSON_LINES]).map(str.encode)
    | st.text(max_size=200).map(lambda text: f"url,title,note\n{A},{text}\n{text}".encode("utf-8", "replace"))
    | st.text(max_size=200).map(lambda text: json.dumps({"url": A, "name": text, "note": text}).encode()),
    st.integers(0, 200),
)
def test_nothing_is_raised_and_all_are_urls(content: bytes, cut: int) -> None:
    for given_content in (
        content,
        content[:cut],
        gzip.compress(content)[:cut],
        b"\x1f\x8b" + content,
        b"WARC/" + content,
    ):
        found = seeds_in(given_content)
        assert found is None or all(url.lower().startswith(("http://", "https://")) for url in found.urls)
        for about in () if found is None else found.about.values():
            for key, most in LONGEST_ABOUT.items():
                assert len(TEXT.parse(getattr(about, key))) <= most


def test_nesting_and_bombs_come_to_an_end() -> None:
    assert kind_and_urls(b"[" * 1_000_000) == ("JSON file", [])
    for beginning in (b"<a ", b'<a "', b"<a '", b"<a \"'"):
        content = b"<!DOCTYPE NETSCAPE-Bookmark-file-1>" + beginning * 500_000
        assert kind_and_urls(content) == ("bookmarks file", [])
    assert seeds_in(gzip.compress(b"\0" * (300 << 20), 1)) is None
