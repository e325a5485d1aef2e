"""Links of archived pages lead to their captures in `archiver replay`, and scripts are served to their end."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote, urljoin
from urllib.request import urlopen

import pytest

from fixtures.handmade_collections import Held, head
from fixtures.pywb_server import archiver_replay

pytestmark = [pytest.mark.replay, pytest.mark.slow]
SITE = "http://example.org/"
WORD = "été"


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", None])
def test_links_with_other_characters_than_ascii(tmp_path: Path, encoding: str | None) -> None:
    """Query and fragment stay apart, and the query is in the encoding of the page, as browsers send it."""
    path, query = quote(WORD), quote(WORD.encode(encoding or "windows-1252"))
    links = {  # with the URL to which each leads
        f"/a?q={WORD}": f"a?q={query}",
        f"/{WORD}/b?x=1&amp;y={WORD}#{WORD}": f"{path}/b?x=1&y={query}",
        f"{SITE}c?{WORD}#d": f"c?{query}",
        f"../d#e/@{WORD}": "d",
        "/e?q=&#233;t&#xe9;#f": f"e?q={query}",
        f"f?{WORD}": f"f?{query}",
        "/g?a=&#34;&amp;b=1": "g?a=%22&b=1",
        "/h?a=1&#38;b=2": "h?a=1&b=2",
    }
    page = "".join(f'<a href="{link}">link</a>' for link in links)
    media = f"text/html; charset={encoding}" if encoding else "text/html"
    held = Held(tmp_path / "c").add(SITE, page.encode(encoding or "windows-1252"), head(media=media))
    for target in links.values():
        held.add(SITE + target, f"reached {target}".encode())
    with archiver_replay(held.write()) as wayback:
        shown = wayback.get(SITE, "mp_").body.decode("latin-1" if encoding != "utf-8" else encoding)
        hrefs = [unescape(found) for found in re.findall(r'<a href="([^"]*)">link', shown)]
        reached = []
        for href in hrefs:
            there = urljoin(wayback.address(SITE, "mp_"), _sent(href, encoding))
            reached.append(wayback.get(there.partition("mp_/")[2].partition("#")[0], "mp_").body.decode())
    assert [body.rpartition("reached ")[2] for body in reached] == list(links.values())


def test_a_script_is_served_to_its_end(tmp_path: Path) -> None:
    """Also if the server said its length: what pywb puts around it makes it longer."""
    script = b"const a = 1\nf('the end')"
    answered = head("200 OK", "text/javascript", f"Content-Length: {len(script)}")
    held = Held(tmp_path / "c").add(f"{SITE}a.js", script, answered, mime="text/javascript")
    with archiver_replay(held.write()) as wayback:
        shown = wayback.get(f"{SITE}a.js", "js_")
    before, _, behind = shown.body.partition(script)
    assert before.count(b"{") - before.count(b"}") == behind.count(b"}") == 2, shown.body


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ('f("In Firefox, this works", "x = this; return this")', False),
        ("f('set location = here', ` eval (${a}) = this`, /, this|[/]location=/)", False),
        ("f() // = this\n/* location = */", False),
        ("setTimeout('location = 1')", True),
        ("""f("<a onclick='a();location=1'>")""", True),
        ("f(`${location = 1}`)", True),
        ("class A { location = 1 }", False),
        ("const location = 1", False),
    ],
)
def test_texts_of_scripts_stay_but_not_the_code_in_them(tmp_path: Path, script: str, *, changed: bool) -> None:
    answered = head(media="text/javascript")
    held = Held(tmp_path / "c").add(f"{SITE}a.js", script.encode(), answered, mime="text/javascript")
    held.add(SITE, f"<p>text<script>{script}</script>".encode())
    with archiver_replay(held.write()) as wayback:
        shown = wayback.get(f"{SITE}a.js", "js_").body.decode(), wayback.get(SITE, "mp_").body.decode()
    assert [script in each for each in shown] == [not changed] * 2, shown
    assert all("arguments)" not in each.partition("__archiver_")[2] for each in shown if "setTimeout" in each)


@pytest.mark.parametrize(
    ("kind", "text", "kept"),
    [
        ("module", 'import "./a.js"; f("here")', b'f("here")'),
        ("importmap", '{"imports": {"a": "/here.js"}}', b"here.js"),
    ],
)
def test_a_module_that_the_end_of_the_page_ends_is_kept(tmp_path: Path, kind: str, text: str, kept: bytes) -> None:
    page = f'<p>text</p><script type="{kind}">{text}'.encode()
    with archiver_replay(Held(tmp_path / "c").add(SITE, page).write()) as wayback:
        shown = wayback.get(SITE, "mp_").body
    assert kept in shown
    assert shown.rstrip().endswith(b"</script>")


def test_links_upwards_stay_as_they_are(tmp_path: Path) -> None:
    """Style sheets look at them: `a[href*="://"]` marks links to other sites. Too many steps would leave the host."""
    inside = ["../x.html", "../../x.css?y=../../../z#w", "b/../../x.html", "../"]
    outside = ["../../../x.html", "../../x/../../y/../../z"]
    page = "".join(f'<a href="{link}">link</a>' for link in inside + outside)
    held = Held(tmp_path / "c").add(f"{SITE}a/b/c.html", page.encode())
    with archiver_replay(held.write()) as wayback:
        shown = wayback.get(f"{SITE}a/b/c.html", "mp_").body.decode()
    hrefs = re.findall(r'<a href="([^"]*)">link', shown)
    assert hrefs[: len(inside)] == inside
    assert [href.partition("mp_/")[2] for href in hrefs[len(inside) :]] == [f"{SITE}x.html", f"{SITE}z"]


def test_headers_lead_to_captures(tmp_path: Path) -> None:
    """Also Refresh and Link, which pywb passes on; what would act on the replay itself has another name."""
    fields = ["Refresh: 3; URL='/a?b=1;c'", "Link: </x.css>; rel=stylesheet, <https://cdn.example/y.js>; rel=preload"]
    fields += ['Clear-Site-Data: "*"', 'Reporting-Endpoints: main="https://example.org/reports"']
    held = Held(tmp_path / "c").add(f"{SITE}p/", b"<p>text", head("200 OK", "text/html", *fields))
    held.add(f"{SITE}again", b"<p>text", head("200 OK", "text/html", "Refresh: 60"))
    with archiver_replay(held.write()) as wayback:
        shown, raw = wayback.get(f"{SITE}p/", "mp_").headers, wayback.get(f"{SITE}p/", "id_").headers
        again = wayback.get(f"{SITE}again", "mp_").headers
        with urlopen(wayback.address(f"{SITE}p/", "mp_")) as answer:
            links = [link.replace(wayback.root, "/") for link in answer.headers.get_all("Link")]
    assert shown["refresh"] == f"3;url=/c/mp_/{SITE}a?b=1;c"
    assert f"</c/mp_/{SITE}x.css>; rel=stylesheet, </c/mp_/https://cdn.example/y.js>; rel=preload" in links
    assert not {"clear-site-data", "reporting-endpoints"} & shown.keys()
    assert raw["refresh"] == "3; URL='/a?b=1;c'"
    assert again["refresh"] == "60"


def test_empty_elements_of_xhtml_end(tmp_path: Path) -> None:
    """pywb serves XHTML as HTML, in which a slash ends nothing: a script would contain the rest of the page."""
    begin = b'<html xmlns="http://www.w3.org/1999/xhtml"><script src="/a.js"/>'
    page = begin + b'<title/><br/><div class="b"/><p>text</p></html>'
    held = Held(tmp_path / "c").add(SITE, page, head(media="application/xhtml+xml"), mime="application/xhtml+xml")
    held.add(f"{SITE}html", page.replace(b"<script", b"<div><script"))
    with archiver_replay(held.write()) as wayback:
        shown, as_html = wayback.get(SITE, "mp_").body, wayback.get(f"{SITE}html", "mp_").body
    assert re.search(rb'/a\.js"></script><title></title><br/><div class="b"></div><p>text</p></html>', shown), shown
    assert b'<title/><br/><div class="b"/><p>text' in as_html


def _sent(href: str, encoding: str | None) -> str:
    """Return *href* as a browser sends it from a page in *encoding*."""
    address, mark, query = href.partition("#")[0].partition("?")
    return quote(address, safe="/:.%") + mark + quote(query, safe="=&%", encoding=encoding or "windows-1252")
