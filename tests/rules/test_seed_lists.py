"""URLs in files that people have, recognized by content."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ],
)
def test_each_kind_names_its_urls(kind: str, text: str) -> None:
    for content in (text.encode(), gzip.compress(text.encode())):
        assert seeds_in(content) == (kind, [A, B])


def test_a_feed_in_json() -> None:
    found = seeds_in(JSON_FEED.encode())
    assert found is not None
    assert [url for url in found.urls if "example" in url] == [A, B]


def test_a_warc_file(tmp_path: Path) -> None:
    """Responses and revisits count, requests and metadata do not."""
    Held(tmp_path / "c").add(A, b"page").add(B, b"other").write()
    (path,) = (tmp_path / "c" / "archive").iterdir()
    assert seeds_in(path.read_bytes()) == ("WARC file", [A, B])
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
    st.binary(max_size=200) | st.sampled_from([SITEMAP, NETSCAPE, CHROME, CDXJ, CDX]).map(str.encode),
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


def test_nesting_and_bombs_come_to_an_end() -> None:
    assert seeds_in(b"[" * 1_000_000) == ("JSON file", [])
    for beginning in (b"<a ", b'<a "', b"<a '", b"<a \"'"):
        assert seeds_in(b"<!DOCTYPE NETSCAPE-Bookmark-file-1>" + beginning * 500_000) == ("bookmarks file", [])
    assert seeds_in(gzip.compress(b"\0" * (300 << 20), 1)) is None
