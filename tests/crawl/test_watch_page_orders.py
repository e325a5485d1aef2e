"""Every order that the page of `archiver watch` can give, in Chromium, against a crawl that runs or is stopped."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import states
from fixtures.command import archiver, ended, running
from fixtures.devtools import needs_chromium
from fixtures.flag import Gate
from fixtures.ports import free_port
from fixtures.rawserver import Answer, RawServer, Route, keep
from fixtures.sites import message, ok, page
from fixtures.watch_page import WatchPage, shown
from fixtures.watching import Watching, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow, needs_chromium]
QUICK = ("--rate", "0", "--host-concurrency", "1", "--robots", "ignore", "--probe", "off", "--min-free-disk", "0")
OPTIONS = ("-o", "c", *QUICK, "--scope", "prefix", "--retries", "0", "--timeout", "3600", "--drain-timeout", "3600")
REPLAY = "http://127.0.0.1:8080/c/2026/"
PASSWORD = "correct horse battery"


@contextmanager
def held_crawl(folder: Path) -> Iterator[tuple[RawServer, Gate]]:
    """A crawl that has its first page and a page that is missing, and waits for an answer until the gate is open."""
    gate = Gate()
    names = [
        "gone",
        "gate",
        *(f"{folder}/{number}" for folder in ("day", "item") for number in range(5)),
        "/other/page",
    ]
    late = Answer((gate, *ok(page("late", [])).pieces))  # type: ignore[misc]
    home, gone = ok(page("Home", names)), keep(message("404 Not Found"))
    routes: dict[str, Route] = {"/site/": home, "/site/gone": gone, "/site/gate": late}
    with RawServer(routes, ok(page("A page"))) as server:
        with running("crawl", *OPTIONS, server.url("/site/"), cwd=folder) as process:
            gate.arrived.wait()
            yield server, gate
            gate.open()
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err


@asynccontextmanager
async def answered(seen: WatchPage, words: str) -> AsyncIterator[None]:
    """Give an order in the block; afterwards its answer, which says *words*, is on the page."""
    if await seen.page.run("document.querySelector('.answer.given') !== null"):
        await seen.choose("Dismiss")
    yield
    await seen.sees(f"document.querySelector('.answer .came b')?.textContent.includes({json.dumps(words)})")
    assert await seen.page.run("document.querySelector('.answer .came.bad') === null")


async def open_url(seen: WatchPage, crawl: str, url: str) -> None:
    """Open the dialog of one URL."""
    await seen.view(crawl, "urls")
    await seen.fill("Text in the URL", url)
    await seen.sees("document.querySelectorAll('tbody tr').length > 0 && !document.querySelector('[aria-busy=true]')")
    await seen.sees(f"document.querySelector('tbody .a-url')?.textContent === {json.dumps(url)}")
    await seen.page.run("document.querySelector('tbody .a-url button').click()")
    await seen.sees("document.querySelector('dialog[open] .explained[aria-busy=false]')")


async def pick(seen: WatchPage, label: str, value: str) -> None:
    """Choose *value* in the list *label*."""
    await seen.sees(f"[...document.querySelectorAll('option')].some(each => each.value === {json.dumps(value)})")
    await seen.page.run(
        "(([list, value]) => { list.value = value; list.dispatchEvent(new Event('change', { bubbles: true })) })"
        f"([[...document.querySelectorAll('label')].find(each => each.textContent.startsWith({json.dumps(label)}))"
        f".querySelector('select'), {json.dumps(value)}])"
    )


async def change_rules(seen: WatchPage, crawl: str, server: RawServer, folder: Path) -> None:
    """Include what the scope leaves out, and exclude like one URL; both only after a preview."""
    await seen.view(crawl, "rules")
    await pick(seen, "Kind", "include")
    await seen.fill("Regular expression", "/other/")
    await seen.choose("Preview")
    assert await seen.sees("document.querySelector('[data-matching]')?.dataset.matching") == "1"
    assert await seen.texts(".examples li") == [server.url("/other/page")]
    async with answered(seen, "1 URL"):
        await seen.choose("Include")
    assert states(folder)[server.url("/other/page")] == "waiting"
    async with answered(seen, "5 waiting URLs excluded"):
        await open_url(seen, crawl, server.url("/site/day/3"))
        assert await seen.page.run("document.querySelector('dialog a').href") == REPLAY + server.url("/site/day/3")
        assert await seen.texts(".choices label span") == ["this host", "this folder", "this pattern"]
        await seen.page.run("document.querySelectorAll('.choices input')[1].click()")
        await seen.choose("Preview")
        assert await seen.sees("document.querySelector('dialog [data-matching]')?.dataset.matching") == "5"
        await seen.choose("Exclude")
    assert sum(state == "excluded" for state in states(folder).values()) == 5


async def change_hosts(seen: WatchPage, crawl: str, server: RawServer) -> None:
    """Put a URL first; block its host after a preview, unblock it, and slow it down."""
    async with answered(seen, "1 waiting URL put first"):
        await open_url(seen, crawl, server.url("/site/item/4"))
        await seen.choose("Fetch first")
    async with answered(seen, "blocked: 1 host with 7 waiting URLs"):
        await open_url(seen, crawl, server.url("/other/page"))
        await seen.choose("Block this host…")
        await seen.sees("document.querySelectorAll('dialog .preview').length === 2")
        await seen.page.run("[...document.querySelectorAll('dialog .preview button')].at(-2).click()")
        assert await seen.sees("document.querySelector('dialog [data-matching]')?.dataset.matching") == "7"
        await seen.choose("Block the host")
    await seen.view(crawl, "refusals")
    async with answered(seen, "no longer blocked: 1 host with 7 waiting URLs"):
        await seen.choose("Unblock")
    async with answered(seen, "in force"):
        await open_url(seen, crawl, server.url("/other/page"))
        await seen.choose("Slow this host…")
        await pick(seen, "Requests per second", "1/10")
        await seen.choose("Slow the host")


def test_rules_and_hosts_are_changed_from_the_page(tmp_path: Path) -> None:
    """Include, exclude like this, first, block, unblock, slow, note and stop: each as its command does it."""

    async def steps(room: Watching, server: RawServer) -> None:
        crawl = str(room.crawls[0]["id"])
        async with shown(room, tmp_path / "profile") as seen:
            await change_rules(seen, crawl, server, tmp_path / "c")
            await change_hosts(seen, crawl, server)
            assert room.rows(crawl, "queue")["rows"][0]["url"] == server.url("/site/item/4")
            assert "rate=1/10" in room.get(f"/api/crawls/{crawl}").json["settings"]["host"]
            async with answered(seen, "noted"):
                await seen.choose("Note…")
                await seen.fill("Note", "slow on <b>purpose</b>")
                await seen.choose("Add the note")
            await seen.view(crawl, "orders")
            await seen.sees("document.querySelector('tbody .a-url')?.textContent === 'note slow on <b>purpose</b>'")
            async with answered(seen, "stopping"):
                await seen.choose("Stop…")
                await seen.choose("Stop the crawl")

    with held_crawl(tmp_path) as (server, _), watching("c", "--replay", REPLAY, cwd=tmp_path) as room:
        asyncio.run(steps(room, server))
    listed = [json.loads(line) for line in archiver("orders", "c", "--json", cwd=tmp_path).stdout.splitlines()]
    verbs = ["include", "exclude", "first", "block", "unblock", "set", "note", "stop"]
    assert [each["verb"] for each in listed] == verbs
    assert all(each["answered"] for each in listed)


async def add_described(seen: WatchPage, crawl: str, server: RawServer) -> None:
    """Add a seed with a title and a collection, in a window of any width."""
    async with answered(seen, "1 seed added"):
        await seen.choose("Add seeds…")
        await seen.fill("URLs, one a line", server.url("/site/titled"))
        await seen.fill("Title", 'It\'s "new"')
        await seen.fill("Collection", "blogs & news")
        for width in (320, 1280):
            await seen.look(width, 900)
            assert not await seen.is_too_wide()
            assert await seen.barriers() == []
        await seen.choose("Add the seeds")
    await open_url(seen, crawl, server.url("/site/titled"))
    assert '(It\'s "new"; collection blogs & news)' in await seen.text("dialog .explained")
    await seen.choose("Close")


def test_urls_are_added_and_tried_again_and_the_crawl_is_stopped(tmp_path: Path) -> None:
    async def steps(room: Watching, server: RawServer) -> None:
        crawl = str(room.crawls[0]["id"])
        async with shown(room, tmp_path / "profile") as seen:
            await seen.choose("Add seeds…")
            await seen.fill("URLs, one a line", "gopher://127.0.0.1/")
            await seen.choose("Add the seeds")
            await seen.sees("document.querySelector('.answer .came.bad')?.textContent.includes('gopher')")
            seen.page.errors.clear()  # it was refused, as it should be
            await seen.choose("Dismiss")
            await seen.choose("Add seeds…")
            await seen.fill("URLs, one a line", f"{server.url('/site/new')}\n\n {server.url('/site/newer')} ")
            async with answered(seen, "2 seeds added"):
                await seen.choose("Add the seeds")
            assert states(tmp_path / "c")[server.url("/site/newer")] == "waiting"
            await add_described(seen, crawl, server)

            await seen.view(crawl, "problems")
            await seen.sees("document.querySelector('tbody .a-reason')?.textContent === 'status 404'")
            async with answered(seen, "1 URL queued again"):
                await seen.choose("Retry…")
                await seen.choose("Retry them")
            assert f"--host={server.url('').rstrip('/')}" in await seen.text(".answer .same")
            assert states(tmp_path / "c")[server.url("/site/gone")] == "waiting"
            async with answered(seen, "0 URLs queued again"):
                await seen.choose("Retry all that failed…")
                await seen.choose("Retry them")
            async with answered(seen, "1 URL queued again"):
                await open_url(seen, crawl, server.url("/site/"))
                await seen.choose("Retry")

            await seen.choose("Stop…")
            await seen.choose("Cancel")
            await seen.sees("document.querySelector('dialog[open]') === null")
            assert await seen.page.run("document.activeElement.textContent") == "Stop…"  # the focus comes back
            async with answered(seen, "those under way end"):
                await seen.choose("Stop…")
                await seen.choose("Stop the crawl")
            await seen.sees("document.querySelector('.badge').textContent === 'stopping'")
            async with answered(seen, "requests under way are cut"):
                await seen.choose("Stop…")
                await seen.sees("document.querySelector('dialog[open] input[type=checkbox]')")
                await seen.page.run("document.querySelector('dialog[open] input[type=checkbox]').click()")
                await seen.choose("Stop at once")
            await seen.sees("document.querySelector('main').textContent.includes('This crawl is not running')")
            await seen.sees("document.querySelector('.controls button:disabled')?.textContent === 'Stop…'")

    with held_crawl(tmp_path) as (server, _), watching("c", cwd=tmp_path) as room:
        asyncio.run(steps(room, server))
    assert states(tmp_path / "c")[server.url("/site/gate")] == "waiting"


def test_what_is_held_as_a_trap_is_released_from_the_page(tmp_path: Path) -> None:
    items = {f"/item/{number}": ok(page("Item", [f"/item/{number + 1}"])) for number in range(60)}

    async def steps(room: Watching, server: RawServer) -> None:
        crawl = str(room.crawls[0]["id"])
        async with shown(room, tmp_path / "profile") as seen:
            await seen.view(crawl, "refusals")
            await seen.sees("document.querySelector('tbody .a-act button')")
            assert await seen.text("tbody .a-url") == server.url("/item/N")
            assert await seen.text("tbody .a-count") == "1"
            async with answered(seen, "1 URL released"):
                await seen.choose("Release…")
                await seen.sees("document.querySelector('dialog[open]')?.textContent.includes('1 URL like')")
                await seen.choose("Release them")
            await seen.sees("document.querySelector('.view').textContent.includes('Nothing is held.')")

    with RawServer({"/": ok(page("Home", ["/item/0"])), **items}) as server:
        options = ("-o", "c", *QUICK, "--trap-budget", "20")
        ran = archiver("crawl", *options, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        before = len(server.log)
        (held,) = (url for url, state in states(tmp_path / "c").items() if state == "held")
        with watching("c", cwd=tmp_path) as room:
            asyncio.run(steps(room, server))
        assert states(tmp_path / "c")[held] == "waiting"
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        assert server.url(server.log.targets()[before]) == held


CHANGES = """[...document.querySelectorAll('main button, dialog[open] button')].map(each => each.textContent.trim())
    .filter(each => !/^(Reload|Close|Copy|Dismiss|Keys|Show.*|Freeze|Follow.*)$/.test(each) && !each.includes('//'))"""


def test_a_person_who_may_only_look_sees_what_an_operator_changes(tmp_path: Path) -> None:
    for name, role in (("ann", "operator"), ("bob", "watcher")):
        given = ("--users", "users", "--add-user", name, "--role", role)
        assert archiver("watch", *given, cwd=tmp_path, stdin=PASSWORD.encode()).returncode == ExitCode.DONE

    async def sign_in(seen: WatchPage, name: str) -> None:
        await seen.fill("User", name)
        await seen.fill("Password", PASSWORD)
        await seen.choose("Sign in")
        await seen.sees("document.querySelector('.views')")

    async def steps(room: Watching, server: RawServer) -> None:
        async with shown(room, tmp_path / "ann") as ann, shown(room, tmp_path / "bob") as bob:
            await sign_in(bob, "bob")
            assert "you can look, but not change" in await bob.text(".top")
            crawl = str(room.log_in(user="bob", password=PASSWORD).crawls[0]["id"])
            for view in ("stream", "hosts", "queue", "rules", "refusals", "problems", "urls", "files", "orders"):
                await bob.view(crawl, view)
                assert not [text for text in await bob.page.run(CHANGES) if text.endswith("…") or "Add" in text], view
                assert await bob.page.run("document.querySelector('.controls')") is None
            await open_url(bob, crawl, server.url("/site/day/1"))
            assert await bob.page.run("document.querySelector('dialog .choices')") is None
            assert await bob.texts("dialog .buttons button") == []
            await bob.press("Escape")
            await bob.view(crawl, "orders")
            bob.page.errors.clear()  # the first look, without a session
            await sign_in(ann, "ann")
            await ann.choose("Stop…")
            async with answered(ann, "stopping"):
                await ann.choose("Stop the crawl")
            ann.page.errors.clear()
            await bob.sees("document.querySelector('tbody .a-who')?.textContent === 'ann@watch'")
            await bob.sees("document.querySelector('.badge').textContent === 'stopping'")

    with held_crawl(tmp_path) as (server, _), watching("c", "--users", "users", cwd=tmp_path) as room:
        asyncio.run(steps(room, server))


def test_a_session_that_has_ended_begins_again_at_the_same_place(tmp_path: Path) -> None:
    """The control room is started again while the page is open: its token is another, and it knows no session."""
    with RawServer({"/": ok(page("Home", []))}) as server:
        ran = archiver("crawl", "-o", "c", *QUICK, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    port = free_port()

    async def steps(stack: ExitStack) -> None:
        first = stack.enter_context(watching("c", cwd=tmp_path, port=port))
        crawl = str(first.crawls[0]["id"])
        async with shown(first, tmp_path / "profile") as seen:
            await seen.view(crawl, "urls")
            await asyncio.to_thread(stack.close)
            await seen.sees("document.querySelector('.banner.bad')")
            again = stack.enter_context(watching("c", cwd=tmp_path, port=port))
            await seen.sees("document.querySelector('h1').textContent === 'Sign in'")
            await seen.fill("Token", "wrong")
            await seen.choose("Sign in")
            await seen.sees("document.querySelector('[role=alert]')?.textContent === 'wrong token'")
            await seen.fill("Token", again.token)
            await seen.choose("Sign in")
            await seen.sees("document.querySelector('.views a[aria-current]')?.textContent === 'URLs'")
            await seen.sees("document.querySelector('tbody .a-url')")
            seen.page.errors.clear()  # what was refused meanwhile

    with ExitStack() as stack:
        asyncio.run(steps(stack))
