"""A running crawl that is changed from the page of `archiver watch`, in Chromium."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.command import ended, running
from fixtures.debian import NotToBeHad, python_manual
from fixtures.devtools import needs_chromium
from fixtures.flag import Gate
from fixtures.folder import serve_tree
from fixtures.rawserver import Answer, RawServer
from fixtures.sites import message, ok, page
from fixtures.watch_page import WatchPage, shown
from fixtures.watching import Watching, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]
PAGES, AT_ONCE = 60, 1
OPTIONS = (
    "-o",
    "c",
    "--rate",
    "0",
    "--host-concurrency",
    str(AT_ONCE),
    "--robots",
    "ignore",
    "--probe",
    "off",
    "--timeout",
    "600",
)
NOT_RUNNING = "document.querySelector('main').textContent.includes('This crawl is not running')"


def site(gate: Gate) -> RawServer:
    """Return a server that answers its pages when the *gate* is open."""
    names = [f"/{'ab'[number % 2]}/{number}" for number in range(PAGES)]
    later = Answer((gate, message("200 OK", page("A page").encode(), content_type="text/html")))
    return RawServer({"/": ok(page("Home", names))}, later)


def visit(room: Watching, profile: Path, steps: Callable[[WatchPage], Awaitable[None]]) -> None:
    """Open the page in a browser and take *steps*."""

    async def run() -> None:
        async with shown(room, profile) as seen:
            await steps(seen)

    asyncio.run(run())


async def answer(seen: WatchPage, words: str) -> None:
    """Wait for the answer of the crawl to the latest order."""
    await seen.sees(f"document.querySelector('.answer .came b')?.textContent.includes({words!r})")


def test_what_the_preview_shows_is_excluded_and_comes_back(tmp_path: Path) -> None:
    gate = Gate()
    with site(gate) as server, running("crawl", *OPTIONS, server.url(), cwd=tmp_path) as process:
        server.log.holds(1 + AT_ONCE).wait()
        before = states(tmp_path / "c")
        matching = {url for url, state in before.items() if "/a/" in url and state == "waiting"}

        async def steps(seen: WatchPage) -> None:
            await seen.sees("document.querySelector('.views')")
            [number] = [each["id"] for each in room.crawls]
            await seen.view(number, "urls")
            await seen.fill("Text in the URL", "/a/10")
            await seen.sees("document.querySelectorAll('tbody tr').length === 1")
            await seen.page.run("document.querySelector('.scroller').focus()")
            await seen.press("ArrowDown")
            await seen.sees("document.activeElement.matches('tbody button')")
            await seen.press("Enter")
            await seen.sees("document.querySelectorAll('.choices input').length > 1")
            await seen.fill("Regular expression", "/a/")
            assert await seen.page.run("document.querySelector('dialog .danger').disabled")  # not before it is shown
            await seen.choose("Preview")
            found = await seen.sees("document.querySelector('[data-matching]')?.dataset.matching")
            assert int(found) == len(matching)
            assert set(await seen.texts(".examples li")) <= matching
            await seen.choose("Exclude")
            await answer(seen, f"{len(matching)} waiting URLs excluded")
            assert "archiver exclude c /a/" in await seen.text(".answer")
            now = states(tmp_path / "c")
            assert {url for url in now if now[url] == "excluded"} == matching
            await seen.view(number, "rules")
            await seen.sees(
                "[...document.querySelectorAll('.t-rules .a-url')].some(cell => cell.textContent === '/a/')"
            )
            await seen.choose("Undo")
            await answer(seen, f"{len(matching)} URLs wait again")
            assert states(tmp_path / "c") == before
            await seen.choose("Pause")
            await answer(seen, "paused")
            gate.open()
            await seen.view(number, "orders")
            await seen.sees("document.querySelectorAll('tbody tr').length === 3")
            assert [text.split()[0] for text in await seen.texts("tbody .a-url")] == ["pause", "exclude", "exclude"]
            assert len(server.log) == 1 + AT_ONCE
            await seen.choose("Go on")
            await answer(seen, "goes on")
            await seen.sees(NOT_RUNNING)

        with watching("c", cwd=tmp_path) as room:
            visit(room, tmp_path / "profile", steps)
        code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert set(states(tmp_path / "c").values()) == {"archived"}


def test_a_crawl_is_killed_and_resumed_under_the_open_page(tmp_path: Path) -> None:
    gate = Gate()
    with site(gate) as server, running("crawl", *OPTIONS, server.url(), cwd=tmp_path) as process:
        server.log.holds(1 + AT_ONCE).wait()

        async def steps(seen: WatchPage) -> None:
            await seen.sees("document.querySelectorAll('.t-stream tbody tr').length > 0")
            await seen.sees("document.querySelector('.badge.go')")
            process.kill()
            process.wait()
            await seen.sees(NOT_RUNNING)
            assert await seen.text(".badge") == "stopped"
            with running("resume", "c", cwd=tmp_path) as again:
                await seen.sees(f"!({NOT_RUNNING})")
                gate.open()
                await seen.sees(f"document.querySelector('.cards b').textContent === '{PAGES + 1}'")
                await seen.sees("document.querySelectorAll('.t-stream tbody tr').length > 10")
                code, err = await asyncio.to_thread(ended, again)
                assert code == ExitCode.DONE, err
            await seen.sees(NOT_RUNNING)
            assert (await seen.text(".tail")).startswith(f"{PAGES + 1} of {PAGES + 1} lines")

        with watching("c", cwd=tmp_path) as room:
            visit(room, tmp_path / "profile", steps)


@pytest.mark.site
@pytest.mark.timeout(1200)
def test_a_manual_is_crawled_from_the_form_to_the_verdict(tmp_path: Path) -> None:
    """Python's manual: started, slowed, paused, continued and judged from the page."""
    try:
        manual = python_manual(tmp_path / "manual")
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    folder = tmp_path / "collections"
    folder.mkdir()

    async def steps(seen: WatchPage) -> None:
        await seen.choose("New crawl")
        await seen.fill("Seeds", server.url())
        await seen.fill("Requests per second", "20")
        await seen.fill("Contact", "me@example.org")
        await seen.choose("Preview crawl.toml")
        await seen.choose("Start the crawl")
        await seen.sees("document.querySelectorAll('.t-stream tbody tr').length > 5")
        await seen.choose("Pause")
        await answer(seen, "paused")
        asked = len(server.log)
        [found] = room.crawls
        await seen.view(found["id"], "rules")
        await seen.fill("Value", "0")
        await seen.choose("Set")
        await answer(seen, "in force")
        assert len(server.log) == asked
        await seen.choose("Go on")
        await answer(seen, "goes on")
        await seen.view(found["id"], "report")
        await seen.sees(NOT_RUNNING)
        await seen.sees("document.querySelector('.verdict').textContent.includes('done')")
        await seen.view(found["id"], "urls")
        await seen.sees("document.querySelector('.tail').textContent.startsWith('500 URLs so far')")

    with serve_tree(manual) as server, watching(str(folder), cwd=tmp_path) as room:
        visit(room, tmp_path / "profile", steps)
    [directory] = folder.iterdir()
    assert set(states(directory).values()) == {"archived"}
    assert len(rows(directory, "SELECT id FROM urls")) > 400
