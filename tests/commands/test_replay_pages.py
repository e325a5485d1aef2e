"""The start page of `archiver replay`: pages by title with their dates, of any archives, however large or hostile."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack, closing
from html import unescape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from archiver.tools.replay import page_list
from archiver.tools.replay.page_list import ListedPage, PageList, _ListMaker
from archiver.tools.replay.sources import FolderSource
from archiver.tools.replay.start_page import ROWS, StartPage
from fixtures.browser import Page
from fixtures.command import archiver
from fixtures.debian import NotToBeHad
from fixtures.devtools import chromium, needs_chromium
from fixtures.handmade_collections import Held, head, revisit
from fixtures.npm_packages import package
from fixtures.pywb_server import PATIENCE, archiver_replay

EVIL = "</a><script>alert(1)</script>\"'&\u202e\x1b[31m"
SITE = "http://example.org/"


def titled(title: str) -> bytes:
    return f"<!doctype html><meta charset=utf-8><title>{title}</title><p>some words".encode()


def small(folder: Path) -> Path:
    """Pages, and what is none: an error, an image, a redirect; a page with two captures and a revisit."""
    held = Held(folder).add(SITE, titled("Home")).add(f"{SITE}b", titled("Über uns"), stamp="20200101000000")
    held.add(f"{SITE}b", titled("Old"), stamp="20190101000000")
    held.add_record(
        revisit(f"{SITE}b", titled("Über uns"), f"{SITE}b"), f"{SITE}b", "warc/revisit", b"x", stamp="20210101000000"
    )
    held.add(f"{SITE}gone", titled("Not found"), head("404 Not Found"))
    held.add(f"{SITE}moved", b"", head("302 Found", "", "Location: /b"))
    held.add(f"{SITE}x.gif", b"GIF", mime="image/gif").add(f"{SITE}untitled", b"<p>nothing")
    return held.add("http://a.example/", titled(EVIL.replace("<", "&lt;"))).write()


def made(*directories: Path, seeds: tuple[str, ...] = (), folder: Path) -> PageList:
    """The list of the pages in *directories*."""
    folder.mkdir()
    with ExitStack() as stack:
        sources = [stack.enter_context(closing(FolderSource(each))) for each in directories]
        _ListMaker(sources, frozenset(seeds), folder).make(1)
    return PageList(folder)


def shown(
    pages: PageList, query: str = "", names: tuple[str, ...] = ("c",), seeds: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The start page."""

    def refused(*_: Any) -> Any:
        raise AssertionError("pywb is asked")

    environ = {"PATH_INFO": "/c/", "REQUEST_METHOD": "GET", "QUERY_STRING": query}
    return b"".join(StartPage(pages, "c", names, seeds).wrap(refused)(environ, lambda *_: None)).decode()


def titles(text: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'<a class="title" href="[^"]*">([^<]*)</a>', text)]


def test_titles_of_seeds(tmp_path: Path) -> None:
    """The title that the user gave goes before that of the page, and the filter finds it too."""
    given = {SITE: EVIL, f"{SITE}untitled": "Ours", f"{SITE}b": ""}
    pages = made(small(tmp_path / "c"), seeds=tuple(given), folder=tmp_path / "list")
    text = shown(pages, seeds=given)
    assert "<script" not in text
    assert titles(text)[:3] == ["</a><script>alert(1)</script>\"'&\\u202e\\x1b[31m", "Über uns", "Ours"]
    assert titles(shown(pages, "q=OURS", seeds=given)) == ["Ours"]


def test_pages_by_title_and_date(tmp_path: Path) -> None:
    pages = made(small(tmp_path / "c"), seeds=(f"{SITE}b", f"{SITE}moved"), folder=tmp_path / "list")
    totals = pages.totals()
    assert (totals.pages, totals.captures, totals.first[:4], totals.last[:4]) == (5, 7, "2019", "2021")
    assert pages.titled == 5
    found = {page.url: page for page in pages.every()}
    assert [(page.url, page.title) for page in found.values()][:2] == [(f"{SITE}b", "Über uns"), (f"{SITE}moved", "")]
    assert found[f"{SITE}b"].dates == ["20210101000000", "20200101000000", "20190101000000"]
    assert found[f"{SITE}untitled"].title == ""
    text = shown(pages)
    assert titles(text)[0] == "Über uns"
    assert re.findall("<h2>([^<]*)</h2>", text) == ["Seeds", "a.example", "example.org"]
    assert f'href="/c/20210101000000/{SITE}b"' in text
    assert "3 captures" in text
    assert titles(shown(pages, "q=%C3%9CBER+example")) == ["Über uns"]
    assert titles(shown(pages, "q=untitled")) == [f"{SITE}untitled"]
    assert "0 of 5 pages found." in shown(pages, "q=nothing")


def test_nothing_in_it_is_obeyed(tmp_path: Path) -> None:
    pages = made(small(tmp_path / "c"), folder=tmp_path / "list")
    evil = ListedPage(f"http://x/{EVIL}#\n", seed=False, captures=1, dates=[f"2020{EVIL}"], title=EVIL)
    with (tmp_path / "list" / "pages-1").open("ab") as file:
        file.write(evil.line())
    texts = [shown(pages, query, (EVIL,)) for query in ("", "q=" + "%3Cscript%3E", f"in=9&page=-1&q={'a' * 999}")]
    texts.append(StartPage(pages, "c", ("c",))._row(evil))
    for text in texts:
        assert "<script" not in text
        assert not set(text) & set("\u202e\x1b")
        for link in re.findall('href="([^"]*)"', text):
            assert link.startswith("/c/")
            assert "#" not in unescape(link)


def test_several_archives_are_one_list(tmp_path: Path) -> None:
    one = Held(tmp_path / "one").add(SITE, titled("Home, old"), stamp="20180101000000").write()
    two = small(tmp_path / "two")
    pages = made(one, two, folder=tmp_path / "list")
    assert pages.totals().sources == (1, 4)
    home = next(page for page in pages.every() if page.url == SITE)
    assert (home.captures, home.sources, home.dates[-1]) == (2, [0, 1], "20180101000000")
    text = shown(pages, "in=0", ("one", "two"))
    assert "1 of 4 pages found." in text
    assert '<option value="0" selected>one (1)</option><option value="1">two (4)</option>' in text


def test_a_large_list_is_shown_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(tmp_path / "c")
    for number in range(2 * ROWS + 5):
        held.add(f"{SITE}{number:04}", b"<title>Page</title>")
    pages = made(held.write(), folder=tmp_path / "list")
    assert len(titles(shown(pages))) == ROWS
    last = shown(pages, "page=3")
    assert len(titles(last)) == 5
    assert "Part 3 of 3" in last
    assert 'href="/c/?page=2">Previous' in last
    assert len(titles(shown(pages, "q=page&page=3"))) == 5
    assert titles(shown(pages, "page=99")) == []
    monkeypatch.setattr(page_list, "MOST_PAGES", 10)
    cut = made(tmp_path / "c", folder=tmp_path / "cut")
    assert (cut.totals().pages, cut.totals().cut) == (10, True)
    assert "There are more pages; pywb finds them by URL." in shown(cut)


def test_titles_follow(tmp_path: Path) -> None:
    made(small(tmp_path / "c"), folder=tmp_path / "list")
    titles_file = tmp_path / "list" / "titles-1"
    every = titles_file.read_bytes()
    titles_file.write_bytes(every[: every.index(b"\n") + 3])  # in the middle of the second one
    few = PageList(tmp_path / "list")
    assert "Titles are being read: 1 so far." in shown(few)
    assert len(titles(shown(few))) == 4
    titles_file.write_bytes(every)
    assert "Titles" not in shown(few)
    (tmp_path / "list" / "current.json").unlink()
    assert 'http-equiv="refresh"' in shown(PageList(tmp_path / "list"))


@pytest.mark.replay
def test_the_start_page_of_a_replay(tmp_path: Path) -> None:
    """Beside pywb, whose own search is there too; the list grows with the index, and other names get nothing."""
    directory = small(tmp_path / "c")
    package_file = tmp_path / "c.wacz"
    assert archiver("pack", "c", "-o", str(package_file), cwd=tmp_path).returncode == 0
    before = sorted(directory.rglob("*"))

    def when(words: str, root: str) -> str:
        text = ""
        for _ in range(1000):
            with urllib.request.urlopen(root, timeout=PATIENCE) as answer:
                text = answer.read().decode()
            if words in text:
                return str(text)
        raise AssertionError(f"never said: {words}; but {text}")

    for place in (directory, package_file):
        with archiver_replay(place) as wayback:
            text = when("Über uns", wayback.root)
            assert {"Home", "Über uns"} <= set(titles(text))
            link = re.findall('class="title" href="([^"]*)">Home', text)[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{wayback.port}{link}", timeout=PATIENCE) as answer:
                assert answer.status == 200
            with urllib.request.urlopen(f"{wayback.root}{wayback.collection}/?pywb-search", timeout=PATIENCE) as answer:
                assert b"<form" in answer.read()
            long = "&".join(f"f{number}=1" for number in range(100))
            assert "Home" in when("Home", f"{wayback.root}?{long}")
            with pytest.raises(urllib.error.HTTPError, match="404"):  # pywb answers, which has no such capture
                urllib.request.urlopen(f"{wayback.root}{wayback.collection}/{SITE}none?{long}", timeout=PATIENCE)
            with pytest.raises(urllib.error.HTTPError, match="421"):
                urllib.request.urlopen(urllib.request.Request(wayback.root, headers={"Host": "evil.example"}))
            if place is directory:
                assert sorted(directory.rglob("*")) == before
                line = (directory / "indexes" / "index.cdxj").read_text().splitlines()[0]
                (directory / "indexes" / "new.cdxj").write_text(
                    line.replace("http://a.example/", f"{SITE}added") + "\n"
                )
                assert "added" in when("added", f"{wayback.root}?q=added")


@pytest.mark.browser
@needs_chromium
@pytest.mark.replay
def test_a_page_that_is_missing_leads_to_those_that_are_there(tmp_path: Path) -> None:
    held = Held(tmp_path / "c")
    held.add("http://example.org/", b"<title>Home</title>")
    with archiver_replay(held.write()) as wayback:
        for mode in ("", "mp_"):
            missing = wayback.get("http://example.org/missing", mode)
            assert missing.status == 404
            assert b'<a href="/" target="_top">All archived pages</a>' in missing.body


def test_everyone_can_use_it(tmp_path: Path) -> None:
    """At 320 pixels, in light and dark, with nothing that axe-core finds."""
    try:
        axe = (package("axe-core@4.14.1") / "axe.min.js").read_text("utf-8")
    except NotToBeHad as error:
        pytest.skip(str(error))
    pages = made(small(tmp_path / "c"), small(tmp_path / "d"), folder=tmp_path / "list")
    (tmp_path / "start.html").write_text(shown(pages, "", ("c", "d")))
    assert archiver("export", "c", "--to", "site", cwd=tmp_path).returncode == 0
    addresses = [(tmp_path / name).as_uri() for name in ("start.html", "site/index.html")]
    asyncio.run(_look(addresses, axe, tmp_path / "profile"))


FILTER = """new Promise(shown => {
    const field = document.querySelector('input'), found = document.querySelector('#found')
    new MutationObserver(() => found.querySelector('li') && shown()).observe(found, { childList: true, subtree: true })
    field.value = 'HOME example'
    field.dispatchEvent(new Event('input'))
})"""


async def _look(addresses: list[str], axe: str, profile: Path) -> None:
    async with chromium(profile) as devtools:
        session = await devtools.page()
        page = Page(devtools, session)
        await devtools.call(
            "Emulation.setDeviceMetricsOverride", session, width=320, height=900, deviceScaleFactor=1, mobile=False
        )
        for address in addresses:
            await page.go(address)
            await page.shown(address)
            await page.run(f"{axe}; 0")
            for scheme in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                await devtools.call("Emulation.setEmulatedMedia", session, features=features)
                assert await page.run("document.documentElement.scrollWidth <= innerWidth")
                found = await page.run("axe.run(document).then(found => found.violations.map(each => each.id))")
                assert found == []
            assert page.errors == []
        await page.run(FILTER)
        assert (
            await page.run("document.querySelector('#found').innerText")
            == "1 of 4 found\nHome\nhttp://example.org/\n2020-09-13"
        )
