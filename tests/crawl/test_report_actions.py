"""The report as a page that one acts on: its commands work, its parts agree with the whole, and a browser shows it."""

import asyncio
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from lxml import etree

from archiver.collection.named_crawl import NamedCrawl
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.browser import Page
from fixtures.command import archiver, as_anybody, ended, running
from fixtures.debian import NotToBeHad
from fixtures.devtools import chromium, needs_chromium
from fixtures.npm_packages import package
from fixtures.rawserver import Answer, RawServer, Route, keep
from fixtures.sites import PIXEL, message, ok, page, tree

OPTIONS = ("--rate", "0", "--retries", "0", "--probe=off", "--host-concurrency", "8", "--min-free-disk", "0", "-q")
HERE, THERE = "127.0.0.1", "127.0.0.2"
WIDTHS = (320, 800, 1280)


def fault(status: str) -> Answer:
    """An answer with an error, on a connection that stays open."""
    return keep(message(status, b"no\n", content_type="text/plain"))


def site(there: str) -> dict[str, Route]:
    """A home page that leads to every trouble; pages that link to the same broken page; another host."""
    several = [f"/p{number}" for number in range(14)]
    return {
        "/robots.txt": ok("User-agent: *\nDisallow: /private/", "text/plain"),
        "/": ok(page("Home", [*several, "/private/x", "/closed", "/500", there], ["/a.png", "/gone.png"])),
        **{name: ok(page(f"Page {name}", ["/dead", f"{there}nothing"])) for name in several},
        "/closed": b"",
        "/500": fault("500 Internal Server Error"),
        "/a.png": ok(PIXEL, "image/gif"),
    }


@dataclass(frozen=True)
class Troubled:
    """A crawl with troubles that was crawled again after a change, with its server."""

    folder: Path
    server: RawServer

    def output(self, *words: str) -> str:
        """Return what a command prints."""
        ran = archiver(*words, cwd=self.folder)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        return ran.stdout

    @property
    def page(self) -> Path:
        """The page of its newest crawl."""
        return self.folder / "collections" / "c" / "reports" / "report.html"

    def parsed(self) -> etree._Element:
        """Return the page, which is well-formed to the letter."""
        return etree.fromstring(self.page.read_bytes(), etree.XMLParser(resolve_entities=False, no_network=True))


@pytest.fixture(name="troubled", scope="module")
def crawled_three_times(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    folder = tmp_path_factory.mktemp("troubled")
    (folder / "collections").mkdir()
    routes: dict[str, Route] = {"/there/": ok(page("There", ["/there/a", "/there/gone"])), "/there/a": ok(page("A"))}
    with RawServer(routes, hosts=(HERE, THERE)) as server:
        there = server.url("/there/", THERE)
        routes.update(site(there))
        seeds = server.url(), there, server.url("/no-seed")
        ran = archiver("crawl", *seeds, "-o", "collections/c", *OPTIONS, cwd=folder)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        routes["/p1"] = ok(page("Changed once", ["/new"]))
        routes["/new"] = ok(page("New"))
        assert archiver("recrawl", "collections/c", cwd=folder).returncode == ExitCode.DONE
        del routes["/p2"]
        assert archiver("recrawl", "collections/c", cwd=folder).returncode == ExitCode.DONE
        yield Troubled(folder, server)


def text(element: etree._Element | None) -> str:
    assert element is not None
    return " ".join("".join(element.itertext()).split())


def test_what_to_act_on_comes_first(troubled: Troubled) -> None:
    root = troubled.parsed()
    headline = text(root.find(".//p[@class='headline']"))
    assert headline.startswith("! Finished, but 1 of 3 seeds failed, ")
    assert [each.get("id") for each in root.iterfind(".//main/section")][:6] == [
        *("failed-seeds", "changed", "verdict", "failure-reasons", "broken-pages", "figures"),
    ]
    assert f"{troubled.server.url('/no-seed')} returned status 404" in text(root.find(".//section[@id='failed-seeds']"))
    changed = {text(each.find("span")): text(each) for each in root.iterfind(".//ul[@class='changes']/li")}
    assert changed["gone"] == f"1 gone{troubled.server.url('/p2')}"
    assert changed["new"] == "0 new"
    broken = [text(each) for each in root.iterfind(".//ul[@class='broken']/li")]
    assert broken[0].startswith(f"404 {troubled.server.url('/dead')} linked from{troubled.server.url('/p0')}")
    assert "7 more" in broken[0]  # of ten
    assert any(each.startswith(f"disconnect {troubled.server.url('/closed')} linked from") for each in broken)


def test_every_command_of_the_page_works(troubled: Troubled) -> None:
    """As it is, in the folder that holds `collections`."""
    shown = [unescape("".join(each.itertext())) for each in troubled.parsed().iterfind(".//p[@class='command']/code")]
    assert len(shown) > 6
    assert any("--failure disconnect && archiver resume" in each for each in shown)
    for line in dict.fromkeys(shown):
        for command in line.split(" && "):
            name, *words = shlex.split(command)
            assert name == "archiver"
            ran = archiver(*words, cwd=troubled.folder)
            assert ran.returncode == ExitCode.DONE, f"{command}: {ran.stderr}"
            assert ran.stdout or words[0] == "resume", command
    told = troubled.output("report", "collections/c")
    assert told.startswith("result    Finished, but 1 of 3 seeds failed, ")
    assert f"archiver retry collections/c {troubled.server.url('/no-seed')} && archiver resume collections/c\n" in told


def test_hosts_and_seeds_are_parts_of_the_whole(troubled: Troubled) -> None:
    def counted(*words: str) -> dict[str, int]:
        told = json.loads(troubled.output("report", "collections/c", "--json", *words))
        names = ("archived", "failed", "excluded", "waiting", "held", "captures", "received", "refused")
        return {name: told["totals"][name] for name in names}

    port = troubled.server.port
    whole, parts = counted(), [counted("--host", f"{name}:{port}") for name in (HERE, THERE)]
    assert whole == {name: sum(part[name] for part in parts) for name in whole}
    assert all(part["captures"] for part in parts)
    seeds = [counted("--seed", troubled.server.url(path, host)) for path, host in SEEDS]
    states = ("archived", "failed", "excluded")
    assert {name: whole[name] for name in states} == {name: sum(seed[name] for seed in seeds) for name in states}
    told = json.loads(troubled.output("report", "collections/c", "--json", "--host", THERE))
    assert told["host"] == THERE
    assert {row[0] for row in told["tables"]["hosts"]["rows"]} == {troubled.server.url("", THERE)}
    nothing = next(each for each in told["broken_pages"] if each["url"].endswith("/there/nothing"))
    assert {link.partition(str(port))[0] for link in nothing["linked_from"]} == {f"http://{HERE}:"}  # of another host
    assert any(each["command"].endswith(f"--host {THERE}") for each in told["problems"])


SEEDS = (("/", HERE), ("/there/", THERE), ("/no-seed", HERE))


def test_compared_with_an_earlier_crawl(troubled: Troubled) -> None:
    status = json.loads(troubled.output("status", "collections/c", "--json"))
    newest, first = status["earlier"]
    since = {
        date: json.loads(troubled.output("report", "collections/c", "--json", "--since", date))
        for date in (newest, first)
    }
    changes = {date: told["changes"] for date, told in since.items()}
    assert (changes[newest]["new"], changes[newest]["changed"], changes[newest]["gone"]) == (0, 0, 1)
    assert (changes[first]["new"], changes[first]["changed"], changes[first]["gone"]) == (1, 1, 1)
    assert since[first]["change_examples"]["changed"] == [troubled.server.url("/p1")]
    assert since[first]["compared_with"] == first


def test_between_any_two_crawls(troubled: Troubled) -> None:
    """An earlier crawl is reported on as it was, and no command is offered, because each would act on the newest."""
    status = json.loads(troubled.output("status", "collections/c", "--json"))
    second, first = status["earlier"]
    told = json.loads(troubled.output("report", "collections/c", "--json", "--crawl", second, "--since", first))
    assert (told["changes"]["new"], told["changes"]["changed"], told["changes"]["gone"]) == (1, 1, 0)
    assert told["change_examples"]["new"] == [troubled.server.url("/new")]
    assert (told["compared_with"], told["directory"]) == (first, f"c, crawl of {second}")
    assert {each["command"] for each in (*told["problems"], *told["verdict"]["findings"])} == {""}
    assert told["broken_pages"][0]["url"] == troubled.server.url("/dead")
    assert len(told["broken_pages"][0]["linked_from"]) > 1  # from the WARC files of the collection
    numbered = json.loads(troubled.output("report", "collections/c", "--json", "--crawl", "2", "--since", "1"))
    default = json.loads(troubled.output("report", "collections/c", "--json", "--crawl", "2"))
    assert numbered["changes"] == default["changes"] == told["changes"]
    assert json.loads(troubled.output("report", "collections/c", "--json", "--crawl", "1"))["changes"] is None
    longest = json.loads(troubled.output("report", "collections/c", "--json", "--crawl", "3", "--since", "1"))
    assert longest == {**json.loads(troubled.output("report", "collections/c", "--json", "--since", "1"))} | {
        "written": longest["written"]
    }
    shown = troubled.output("report", "collections/c", "--crawl", "2", "--since", "1")
    assert f"1 new, 1 changed, 0 gone, {told['changes']['unchanged']} unchanged" in shown
    assert f" since {first};" in shown
    assert "archiver retry" not in shown
    root = etree.fromstring(
        troubled.output("report", "collections/c", "--html", "--crawl", "2", "--since", "1").encode()
    )
    assert f"Changed since {first.replace('T', ' ').replace('Z', ' UTC')}" in text(
        root.find(".//section[@id='changed']")
    )
    assert root.findall(".//p[@class='command']") == []
    (troubled.folder / "all").mkdir()
    troubled.output("report", "collections/c", "--crawl", "2", "--since", "1", "-o", "all")
    lines = (troubled.folder / "all" / "changes.tsv").read_text().splitlines()
    assert sum("\tnew\t" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "3"), "--since '3' is the number of no crawl of this collection; write one of these: 1 ("),
        (("--since", "2", "--crawl", "2"), "--since '2' is the number of no crawl"),
        (("--crawl", "4"), "--crawl '4' is the number of no crawl of this collection; write one of these: 1 ("),
        (("--crawl", "1999"), "--crawl '1999' is the date of no crawl of this collection; write one of these: 1 ("),
        (("--host", "nowhere.example"), "--host nowhere.example: not a host of this crawl; write it like example.org"),
        (("--seed", "http://nowhere.example/"), "--seed http://nowhere.example/: not a seed of this crawl; its seeds"),
        (("--seed", "nowhere"), "not a seed of this crawl"),
        (("--host", "x", "--seed", "http://x/"), "--host and --seed cannot be given together"),
        (("--since", "1999"), "--since '1999' is the date of no earlier crawl of this collection; write one of these"),
        (("--since", "last week"), "--since 'last week' is not a date; use 2026"),
    ],
)
def test_what_is_not_there(troubled: Troubled, words: tuple[str, ...], said: str) -> None:
    ran = archiver("report", "collections/c", *words, cwd=troubled.folder)
    assert ran.returncode == ExitCode.USAGE
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.browser
@needs_chromium
def test_a_browser_shows_it_to_everyone(troubled: Troubled, tmp_path: Path) -> None:
    """At each width, in light and dark, on paper, by keyboard, and in a frame that allows scripts only."""
    try:
        axe = (package("axe-core@4.14.1") / "axe.min.js").read_text("utf-8")
    except NotToBeHad as error:
        pytest.skip(str(error))
    routes = {f"/{policy}/report.html": sandboxed(troubled.page, policy) for policy in ("sandbox", "allow-scripts")}
    with RawServer(routes) as server:
        framed = [server.url(target) for target in routes]
        asyncio.run(_look(troubled.page.as_uri(), framed, axe, tmp_path / "profile"))


def sandboxed(path: Path, policy: str) -> Answer:
    """The page, sent as the control room sends it."""
    words = "sandbox" if policy == "sandbox" else f"sandbox {policy}"
    return keep(message("200 OK", path.read_bytes(), content_type="text/html", content_security_policy=words))


BARRIERS = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(each => each.id))"
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
CUT = """[...document.querySelectorAll('.wide, td, th, code')]
    .filter(each => each.clientWidth && each.scrollWidth > each.clientWidth + 1).length"""
COPY = """(async () => {
    const button = document.querySelector('.command button')
    const copied = new Promise(done => document.addEventListener('copy', () => done(getSelection() + '')))
    navigator.clipboard.writeText = async text => { window.written = text }
    button.focus(); button.click()
    await new Promise(done => setTimeout(done))
    return [window.written, button.textContent, document.activeElement === button]
})()"""


async def _look(address: str, framed: list[str], axe: str, profile: Path) -> None:
    async with chromium(profile) as devtools:
        session = await devtools.page()
        page = Page(devtools, session)

        async def media(scheme: str, kind: str = "screen") -> None:
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            await devtools.call("Emulation.setEmulatedMedia", session, media=kind, features=features)

        async def width(pixels: int) -> None:
            size = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            await devtools.call("Emulation.setDeviceMetricsOverride", session, **size)

        await page.go(address)
        await page.shown("report.html")
        await devtools.call("Page.setBypassCSP", session, enabled=True)
        await page.run(f"{axe}; 0")
        for scheme in ("light", "dark"):
            await media(scheme)
            for pixels in WIDTHS:
                await width(pixels)
                assert not await page.run(TOO_WIDE)
            assert await page.run(BARRIERS) == []
        command = await page.run("document.querySelector('.command code').textContent")
        assert await page.run(COPY) == [command, "Copied", True]
        await media("light", "print")
        await width(700)  # of A4 with margins
        assert await page.run(CUT) == 0
        assert not await page.run(TOO_WIDE)
        assert [each for each in page.asked if not each.url.startswith("file:")] == []
        assert page.errors == []
        await media("light")
        await devtools.call("Page.setBypassCSP", session, enabled=False)
        for target in framed:
            await page.go(target)
            frame = await page.shown("report.html")
            assert await page.within(frame, "document.querySelectorAll('.command code').length") > 4
            buttons = await page.within(frame, "document.querySelectorAll('.command button').length")
            assert bool(buttons) == ("allow-scripts" in target)


def _zeros(content: bytes) -> bytes:
    return bytes(len(content))


def _one_byte_changed(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def fullest(directory: Path) -> tuple[Path, int]:
    """The WARC file with the most bytes of a crawl, and its captures; a busy machine writes a second one."""
    query = "SELECT name, (SELECT count(*) FROM captures WHERE warc = warcs.id) FROM warcs ORDER BY committed DESC"
    name, captures = rows(directory, query)[0]
    return directory / "archive" / str(name), int(str(captures))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "missing": lambda _: b"",
    "cut": lambda content: content[:-100],
    "overwritten": _zeros,
    "changed": _one_byte_changed,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_captures_that_the_archive_has_lost_are_no_complete_crawl(tmp_path: Path, damage: str) -> None:
    """The database knows what was archived, not that a file has gone since; the command brings it back."""
    with RawServer(tree(8).routes) as server:
        assert archiver("crawl", server.url(), "-o", "o", "--rate", "0", "-q", cwd=tmp_path).returncode == ExitCode.DONE
        whole = {row[0] for row in rows(tmp_path / "o", "SELECT url FROM urls WHERE priority >= 0")}
        warc, captures = fullest(tmp_path / "o")
        left = DAMAGES[damage](warc.read_bytes())
        warc.unlink()
        if left:
            warc.write_bytes(left)
        ran = archiver("resume", "o", "-q", "--strict", cwd=tmp_path)
        assert ran.returncode == ExitCode.TROUBLE
        assert archiver("resume", "o", "-q", "--no-strict", cwd=tmp_path).returncode == ExitCode.FAULTS
        said = " ".join(ran.stderr.split())
        lost = f"1 WARC file with {captures} captures is missing or damaged, such as {warc.name}"
        command = "archiver rebuild o && archiver resume o"
        assert f"archive {lost} {command}" in said
        if damage != "changed":  # these two read no file to its end
            told = json.loads(archiver("report", "o", "--json", cwd=tmp_path).stdout)
            text = f"Finished, but {lost.split(',', maxsplit=1)[0]}."
            assert told["headline"] == {"grade": "attention", "text": text}
            assert command in " ".join(archiver("status", "o", cwd=tmp_path).stdout.split())
        for words in command.split(" && "):
            assert archiver(*words.split()[1:], cwd=tmp_path).returncode == ExitCode.DONE
    assert {row[0] for row in rows(tmp_path / "o", "SELECT url FROM urls WHERE state = 'archived'")} >= whole


@pytest.mark.parametrize("touched", [False, True])
def test_captures_in_a_file_that_may_not_be_read_are_no_complete_crawl(tmp_path: Path, *, touched: bool) -> None:
    with RawServer(tree(4).routes) as server:
        assert archiver("crawl", server.url(), "-o", "o", "--rate", "0", "-q", cwd=tmp_path).returncode == ExitCode.DONE
        warc, captures = fullest(tmp_path / "o")
        was = warc.stat()
        warc.chmod(0)
        if touched:
            os.utime(warc, ns=(was.st_atime_ns, was.st_mtime_ns + 10**9))
        with running("resume", "o", "-q", cwd=tmp_path, before=as_anybody()) as process:
            code, said = ended(process)
        assert code == ExitCode.FAULTS, said
        lost = f"1 WARC file with {captures} captures cannot be read, such as {warc.name}"
        assert f"{lost} archiver verify o" in " ".join(said.split())
        assert f"{warc.name} cannot be read: Permission denied; let this user read it" in said
        assert "archiver rebuild" not in said  # it would fetch again what is not lost
        warc.chmod(0o644)
        assert archiver("resume", "o", "-q", cwd=tmp_path).returncode == ExitCode.DONE


# Other systems do not say how much of a file was read, and the result is the same with a second reading.
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what a process reads")
def test_a_file_that_recovery_has_read_is_not_read_again(tmp_path: Path) -> None:
    random = ok(os.urandom(4 << 20), "application/octet-stream")
    with RawServer({"/": ok(page("Home", ["/large"])), "/large": random}) as server:
        assert archiver("crawl", server.url(), "-o", "o", "--rate", "0", "-q", cwd=tmp_path).returncode == ExitCode.DONE
    warc, _ = fullest(tmp_path / "o")
    warc.write_bytes(_one_byte_changed(warc.read_bytes()))
    crawl = NamedCrawl.in_directory(tmp_path / "o")
    with crawl.read() as db:
        before = _bytes_read()
        for since, most in ((time.time() + 60, 1 << 20), (time.time() - 60, 1 << 30)):
            before = _bytes_read()
            lost = crawl.lost(db, recovered=since)
            assert lost.names == (warc.name,)
            assert _bytes_read() - before < most
    assert _bytes_read() - before > 4 << 20  # a file that has changed since recovery is read


def _bytes_read() -> int:
    """The bytes that this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])
