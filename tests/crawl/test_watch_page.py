"""The page of `archiver watch` in Chromium, on crawls at rest: what it shows, how, and to whom."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from archiver.collection.crawl_log import LogLine
from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.debian import NotToBeHad
from fixtures.devtools import needs_chromium
from fixtures.npm_packages import package
from fixtures.rawserver import RawServer, keep
from fixtures.sites import message, ok, page
from fixtures.watch_page import AXE, WatchPage, shown
from fixtures.watching import Watching, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]
VIEWS = ("stream", "hosts", "queue", "rules", "refusals", "problems", "urls", "files", "report", "orders")
ROWS = 60  # of a table in the document, at most
LINES, AT_ONCE = 10_000, 500  # of a log; the control room leaves out lines of a larger burst
OPTIONS = ("--rate", "0", "--robots", "ignore", "--probe", "off", "--exclude", "/secret/", "--trap-budget", "20")


def site(server: RawServer) -> None:
    """Give *server* pages, a page that is missing, one that fails, and more links than the crawl takes."""
    links = [f"/page/{number}/x" for number in range(700)]
    server.routes = {
        "/": ok(page("Home", ["/gone", "/broken", "/secret/1", *(f"/day/{number}" for number in range(40)), *links])),
        "/broken": keep(message("500 Internal Server Error", b"sorry", content_type="text/plain")),
    }
    server.otherwise = lambda row: ok(page("A page")) if "gone" not in row.target else keep(message("404 Not Found"))


@pytest.fixture(name="folder", scope="module")
def folder_with_crawls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two crawls: one that has reached a limit, and one that is done."""
    folder = tmp_path_factory.mktemp("crawls")
    with RawServer() as server:
        site(server)
        ran = archiver("crawl", server.url(), "-o", "big", *OPTIONS, "--max-urls", "60", cwd=folder)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        ran = archiver("crawl", server.url("/broken"), "-o", "small", *OPTIONS, "--retries", "0", cwd=folder)
        assert ran.returncode == ExitCode.NO_SEED, ran.stderr
    assert archiver("pause", "big", cwd=folder).returncode == ExitCode.DONE
    return folder


@pytest.fixture(name="room", scope="module")
def control_room(folder: Path) -> Iterator[Watching]:
    """The control room of the crawls."""
    with watching(".", cwd=folder) as room:
        yield room


def visit(room: Watching, profile: Path, steps: Callable[[WatchPage], Awaitable[None]]) -> None:
    """Open the page in a browser and take *steps*."""

    async def run() -> None:
        async with shown(room, profile) as seen:
            await steps(seen)

    asyncio.run(run())


def crawl(room: Watching, name: str) -> str:
    """Return the id of the crawl *name*."""
    return next(str(each["id"]) for each in room.crawls if each["name"] == name)


async def faults(seen: WatchPage) -> dict[str, object]:
    """Return what is wrong with the page as it is: in light and dark, on a phone, and in a usual window at 400 %."""
    found: dict[str, object] = {}
    for dark in (False, True):
        await seen.look(1280, 900, dark=dark)
        found["dark" if dark else "light"] = await seen.barriers()
    found["cut"] = await seen.cut()
    for width, height in ((320, 640), (320, 225)):
        await seen.look(width, height)
        found[f"{width}x{height} too wide"] = await seen.is_too_wide()
        found[f"{width}x{height} cut"] = await seen.cut()
    await seen.look(1280, 900)
    return {where: what for where, what in found.items() if what}


def test_each_view_can_be_used_by_everyone(room: Watching, tmp_path: Path) -> None:
    """axe-core finds nothing serious in light or dark, and in a narrow window everything can be read."""
    try:
        package(AXE)
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    number = crawl(room, "big")
    found: dict[str, object] = {}

    async def check(seen: WatchPage, name: str) -> None:
        found.update({f"{name}, {where}": what for where, what in (await faults(seen)).items()})

    async def steps(seen: WatchPage) -> None:
        await seen.sees("document.querySelectorAll('tbody tr').length === 2")
        await check(seen, "list")
        for view in VIEWS:
            await seen.view(number, view)
            await check(seen, view)
        await seen.view(number, "urls")
        await open_row(seen)
        await check(seen, "URL")
        await seen.press("Escape")
        await seen.press("?")
        await seen.sees("document.querySelector('dialog[open] kbd')")
        await check(seen, "keys")
        await seen.press("Escape")
        await seen.page.run("location.hash = '#/new'")
        await seen.fill("Seeds", "https://example.org/ title='Our site'")
        await seen.choose("Preview crawl.toml")
        await seen.sees("document.querySelector('.toml')")
        await check(seen, "new crawl")

    visit(room, tmp_path, steps)
    assert found == {}


async def open_row(seen: WatchPage) -> str:
    """Go to the first row of a table with Tab and the arrows, open it with Enter, and return its URL."""
    for _ in range(60):
        await seen.press("Tab")
        if await seen.page.run("document.activeElement.matches('.scroller')"):
            break
    await seen.press("ArrowDown", "ArrowDown", "ArrowUp")
    await seen.sees("document.activeElement.matches('tbody [data-active] button')")
    url = str(await seen.page.run("document.activeElement.textContent"))
    await seen.press("Enter")
    await seen.sees("document.querySelector('dialog[open] .explained[aria-busy=false]')")
    assert await seen.text("dialog .address") == url
    return url


def test_keys_are_enough(room: Watching, tmp_path: Path) -> None:
    number = crawl(room, "big")

    async def steps(seen: WatchPage) -> None:
        await seen.sees("document.querySelectorAll('tbody a').length === 2")
        await seen.press("j")
        await seen.sees("document.activeElement.textContent === 'big'")
        await seen.press("j")
        await seen.sees("document.activeElement.textContent === 'small'")
        await seen.press("k", "Enter")
        await seen.sees("document.querySelector('h1').textContent === 'big'")
        await seen.sees("document.querySelectorAll('.t-stream tbody tr').length > 10")
        await seen.press("n")
        await seen.sees("document.querySelectorAll('.t-stream tbody tr').length === 0")
        await seen.press("a")
        await seen.sees("document.querySelectorAll('.t-stream tbody tr').length > 10")
        await seen.press("f")
        await seen.sees("document.activeElement.type === 'search'")
        await seen.press("j")  # a letter for the field
        assert await seen.page.run("document.activeElement.value") == "j"
        await seen.view(number, "urls")
        await open_row(seen)
        await seen.press("Escape")
        await seen.sees("document.querySelector('dialog[open]') === null")
        assert await seen.page.run("document.activeElement.matches('tbody [data-active] button')")
        await seen.press("End")
        await seen.press("j")
        await seen.sees("document.querySelector('h1').textContent === 'small'")

    visit(room, tmp_path, steps)


def test_without_scripts_there_is_the_plain_report(room: Watching, tmp_path: Path) -> None:
    async def steps(seen: WatchPage) -> None:
        await seen.page.call("Emulation.setScriptExecutionDisabled", value=True)
        await seen.page.go(f"http://{room.host}/")
        await seen.page.shown("/")
        assert "archiver report DIR --html" in await seen.text()
        field = await seen.page.call("DOM.getDocument", depth=-1)
        found = await seen.page.call("DOM.querySelector", nodeId=field["root"]["nodeId"], selector="input[name=token]")
        await seen.page.call("DOM.focus", nodeId=found["nodeId"])
        await seen.page.call("Input.insertText", text=room.token)
        await seen.press("Enter")
        await seen.page.shown("/report/")
        assert "big" in await seen.text()

    visit(room, tmp_path, steps)


def test_tables_stay_small_however_long_the_log_is(room: Watching, folder: Path, tmp_path: Path) -> None:
    number = crawl(room, "small")

    async def steps(seen: WatchPage) -> None:
        await seen.view(number, "stream")
        lines = [line(f"https://example.org/{each}", status=404 if each % 10 == 0 else 200) for each in range(LINES)]
        for start in range(0, LINES, AT_ONCE):
            with (folder / "small" / "logs" / "crawl.log").open("a") as log:
                log.write("".join(f"{each.render()}\n" for each in lines[start : start + AT_ONCE]))
            last = f"/{start + AT_ONCE - 1}"
            await seen.sees(f"document.querySelector('tbody tr:last-child .a-url')?.textContent.endsWith('{last}')")
            assert len(await seen.texts("tbody tr")) <= ROWS
        assert (await seen.text(".tail")).startswith("2,000 of 2,000 lines")
        assert 5 < len(await seen.texts("tbody tr")) <= ROWS
        await seen.fill("Pattern", "0$")
        await seen.sees("document.querySelector('.tail').textContent.startsWith('200 of 2,000')")
        await seen.fill("Pattern", "(")
        await seen.sees("document.querySelector('#pattern-fault').textContent !== ''")
        await seen.fill("Pattern", " ")
        await seen.press("a")
        await seen.view(crawl(room, "big"), "urls")
        await seen.page.run("document.querySelector('.view select').focus()")
        await seen.press("w")  # waiting
        await seen.sees("document.querySelector('.tail').textContent.startsWith('500 URLs so far')")
        for _ in range(3):
            await seen.page.run("document.querySelector('.scroller').scrollTop = 1e9")
            await seen.page.run("new Promise(requestAnimationFrame)")
        await seen.sees("/^6\\d\\d URLs\\./.test(document.querySelector('.tail').textContent)")
        assert 5 < len(await seen.texts("tbody tr")) <= ROWS

    visit(room, tmp_path, steps)


def line(url: str, status: int = 200, mime: str = "text/html", note: str = "") -> LogLine:
    """Return a line of the log."""
    return LogLine(1.8e9, status, 1000, url, "L", None, mime, None, 0.0, "", (note,) if note else ())


HOSTILE = (
    "https://h.example/<img src=x onerror=document.title='mine'><b class=mine>bold</b>",
    "https://h.example/\u202egnp.exe\u2067\u2066rtl",
    "https://h.example/" + "z\u0338\u0317\u0332\u0321\u0489" * 300,
    "https://h.example/\x00\x07\x1b[31mred\x7f\x9b2J",
    "https://h.example/" + "long" * 500_000,
    "https://\u0645\u062b\u0627\u0644.example/\u0635\u0641\u062d\u0629",
)
OTHERS = """[...document.querySelectorAll("tbody tr:not(:has(.mine)) *, .views *, h1, .tail")]
    .map(each => JSON.stringify(each.getBoundingClientRect())).join()"""
MARK = """document.querySelectorAll("tbody tr").forEach(row => {
    const hostile = row.textContent.includes("h.example") || /[\\u0600-\\u06ff]/.test(row.textContent)
    if (hostile) row.querySelectorAll(".cell").forEach(cell => cell.classList.add("mine"))
})"""
PLAIN = "document.querySelectorAll('.mine').forEach(cell => { (cell.querySelector('bdi') ?? cell).textContent = 'x' })"


def test_hostile_names_change_nothing_outside_their_cell(folder: Path, tmp_path: Path) -> None:
    """The log and the database of a crawl that somebody sent hold markup, marks of direction and very long names."""
    number_of: dict[str, str] = {}
    bad = tmp_path / "crawls" / "bad"
    bad.parent.mkdir()
    assert archiver("crawl", "http://127.0.0.1:9/", "-o", str(bad), *OPTIONS, "--retries", "0", cwd=tmp_path).returncode
    with closing(sqlite3.connect(bad / "crawl.db", isolation_level=None)) as db:
        [(host, seed)] = db.execute("SELECT host, id FROM urls WHERE priority >= 0 LIMIT 1").fetchall()
        for place, url in enumerate(("https://ok.example/1", *HOSTILE, "https://ok.example/2")):
            db.execute(
                "INSERT INTO urls (url, host, state, hop, path, depth, off_scope_hops, priority, via, seed, due,"
                " status, failure, note) VALUES (?, ?, 'failed', 'L', 'L', 1, 0, ?, ?, ?, 0, 0, 'timeout', ?)",
                (url[:3000], host, place, seed, seed, url[:3000]),
            )
        db.execute("UPDATE hosts SET key = 'https://<b class=mine>h.example' WHERE id = ?", (host,))
    with (bad / "logs" / "crawl.log").open("ab") as log:
        for url in ("https://ok.example/1", *HOSTILE, "https://ok.example/2"):
            text = (
                line("https://ok.example/", mime=f"text/<b>{'x' * 300}")
                .render()
                .replace("https://ok.example/", url.replace("\n", ""))
            )
            log.write(f"{text}\n".encode())

    async def steps(seen: WatchPage) -> None:
        for view in ("stream", "urls", "problems", "hosts"):
            await seen.view(number_of["bad"], view)
            await seen.sees("document.querySelector('tbody tr')")
            assert await seen.page.run("document.querySelectorAll('.mine, main img').length") == 0
            await seen.page.run(MARK)
            before = await seen.page.run(OTHERS)
            await seen.page.run(PLAIN)
            assert await seen.page.run(OTHERS) == before, view
        assert await seen.page.run("document.title") != "mine"

    with watching(".", cwd=bad.parent) as room:
        number_of["bad"] = crawl(room, "bad")
        visit(room, tmp_path / "profile", steps)
