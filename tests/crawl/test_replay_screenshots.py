"""Archived pages look like the live ones: in pywb, and in replayweb_page.page from a WACZ file.

Sites are served on loopback, loaded live, crawled and packed. Then their server stops, and a browser loads the same
pages from the archive. Pictures of pages that differ stay in the test's own folder.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import pywb

from archiver.model import ExitCode
from fixtures import browser, replayweb_page
from fixtures.browser import Page
from fixtures.command import ROOT, archiver
from fixtures.debian import NotToBeHad, python_manual, sqlite_manual
from fixtures.devtools import needs_chromium
from fixtures.folder import serve_tree
from fixtures.hard_to_replay import BEYOND_PYWB, BEYOND_REPLAYWEB, HOSTS, INCOMPLETE, NEVER_KNOWN, PAGES, showcase
from fixtures.pywb_server import archiver_replay
from fixtures.rawserver import RawServer
from fixtures.replay_comparison import TOLERANCE, Look, Viewer, all_compared, compared, look, original
from fixtures.replayweb_page import hosted

pytestmark = [
    pytest.mark.browser,
    pytest.mark.replay,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    needs_chromium,
]
FONT = Path(pywb.__file__).parent / "static/fonts/font-awesome/fa-solid-900.woff2"
SEARCH = "/search.html?q=feurzeig"  # finds one page, and reads it to show the text around the word
PYTHON = ("/library/turtle.html", SEARCH, "/index.html")
SQLITE = ("/arch.html", "/atomiccommit.html", "/fasterthanfs.html", "/lang_select.html")


def test_the_manual_tells_people_to_host_it_as_the_tests_do() -> None:
    assert replayweb_page.PAGE in (ROOT / "docs" / "how-to" / "replay-and-share.md").read_text("utf-8")


def test_the_fixtures_look_as_live(tmp_path: Path) -> None:
    """Frames, fonts, scripts, charsets, codings and two hosts; a page that cannot be complete is reported."""
    with ExitStack() as up:
        server = up.enter_context(RawServer(hosts=HOSTS))
        server.routes = showcase(server.url, FONT)
        icon = server.url("/favicon.ico")  # which browsers and viewers request by themselves
        _archive(tmp_path, server.url(), icon, "--allow-private", HOSTS[1])
        pages = {server.url(target): server.url(end) for target, end in PAGES.items()}
        beyond = {"pywb": set(map(server.url, BEYOND_PYWB)), "replayweb": set(map(server.url, BEYOND_REPLAYWEB))}
        broken, never = server.url(INCOMPLETE), server.url(NEVER_KNOWN)

        async def run() -> None:
            async with browser.opened(tmp_path / "profile") as page:
                looks = await _looks(page, pages | {broken: broken}, [icon])
                whole = looks.pop(broken)
                up.close()
                async with _viewers(tmp_path) as viewers:
                    for name, viewer in viewers.items():
                        shown = {url: each for url, each in looks.items() if url not in beyond[name]}
                        assert await all_compared(page, viewer, shown, tmp_path / name) == []
                        seen = await compared(page, viewer, broken, whole, patience=0)
                        assert seen.differs > TOLERANCE
                        assert seen.failed == [f"404 {original(never)}"]
                        assert seen.outside == []
                    _say_what_is_missing(viewers)

        asyncio.run(run())


@pytest.mark.site
@pytest.mark.parametrize(
    ("python", "sqlite"),
    [(PYTHON[:2], SQLITE[:1]), pytest.param(PYTHON, SQLITE, marks=pytest.mark.long)],
    ids=["three pages", "seven pages"],
)
def test_two_manuals_look_as_live(tmp_path: Path, python: tuple[str, ...], sqlite: tuple[str, ...]) -> None:
    """Python's, built by Sphinx, with a search script; and SQLite's, written by hand, with many pictures."""
    try:
        roots = {python_manual(tmp_path / "python"): python, sqlite_manual(tmp_path / "sqlite"): sqlite}
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    with ExitStack() as up:
        pages: dict[str, str] = {}
        icons: list[str] = []
        for root, targets in roots.items():
            server = up.enter_context(serve_tree(root))
            pages |= {server.url(target): server.url(target) for target in targets}
            icons.append(server.url("/favicon.ico"))
        _archive(tmp_path, *pages, *icons, "--max-depth", "0")

        async def run() -> None:
            async with browser.opened(tmp_path / "profile") as page:
                looks = await _looks(page, pages, icons)
                up.close()
                async with _viewers(tmp_path) as viewers:
                    if "replayweb" in viewers:
                        listed = await replayweb_page.listed(page, viewers["replayweb"].root, len(looks))
                        assert {url: listed.get(url) for url in looks} == {
                            url: each.title for url, each in looks.items()
                        }
                    for name, viewer in viewers.items():
                        assert await all_compared(page, viewer, looks, tmp_path / name) == []
                    _say_what_is_missing(viewers)

        asyncio.run(run())


async def _looks(page: Page, pages: Mapping[str, str], icons: Iterable[str]) -> dict[str, Look]:
    """Load *pages* live. Requests that fail on one of them, and missing icons, may fail on each in replay.

    All pictures must differ, or they show nothing.
    """
    looks = {url: await look(page, url, end) for url, end in pages.items()}
    assert len({each.picture for each in looks.values()}) == len({each.end for each in looks.values()})
    failed = [each.failed for each in looks.values()] + [(await look(page, icon, icon)).failed for icon in icons]
    return {url: replace(each, failed=frozenset().union(*failed)) for url, each in looks.items()}


def _archive(folder: Path, *arguments: str) -> None:
    """Crawl into the collection `c` and pack it."""
    ran = archiver("crawl", *arguments, "-o", "c", "--rate", "0", "--host-concurrency", "8", cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    packed = archiver("pack", "c", "-o", "c.wacz", cwd=folder)
    assert packed.returncode == ExitCode.DONE, packed.stderr


@asynccontextmanager
async def _viewers(folder: Path) -> AsyncIterator[dict[str, Viewer]]:
    """Start pywb on the collection, and replayweb_page.page on the package if it is available."""
    async with AsyncExitStack() as up:
        wayback = up.enter_context(archiver_replay(folder / "c"))
        viewers = {"pywb": Viewer(wayback.root, wayback.address, f"{wayback.root}static/")}
        with suppress(NotToBeHad):
            host = await up.enter_async_context(hosted(folder / "c.wacz"))
            viewers["replayweb"] = Viewer(host.root, host.address, f"{host.root}replay/static/")
        yield viewers


def _say_what_is_missing(viewers: Mapping[str, Viewer]) -> None:
    """Skip with the reason if only pywb was tested."""
    if "replayweb" not in viewers:
        try:
            replayweb_page.files()
        except NotToBeHad as reason:
            pytest.skip(f"passed in pywb; replayweb_page.page: {reason}")
