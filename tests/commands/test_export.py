"""`archiver export`: a folder that a browser opens from the disk, and that holds what was captured."""

import asyncio
import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote

import pytest

from archiver.cli.entry import run
from archiver.model import ExitCode
from archiver.tools.export import start_page
from archiver.tools.export.plan import ExportPlan, FileNames, PlannedFile
from archiver.tools.export.rewrite_links import ExportedSite
from archiver.tools.export.write import MARKER, ExportFolder
from fixtures import browser
from fixtures.crawl_in_process import crawl
from fixtures.devtools import needs_chromium
from fixtures.handmade_collections import Held, head, revisit
from fixtures.handmade_warc import record
from fixtures.rawserver import Answer, RawServer, Route
from fixtures.sites import PIXEL, message, ok

SHEET = b'@import "more.css?v=1"; h1 { color: rgb(1, 2, 3) } p { background: url("../pictures/bg.gif") }'
CHECK = b"""<script>addEventListener('load', () => {
    const wrong = [...document.images].filter(image => !image.naturalWidth).map(image => image.getAttribute('src'))
    const seen = document.querySelector('h1')
    if (getComputedStyle(seen).color !== 'rgb(1, 2, 3)') wrong.push('color')
    if (getComputedStyle(seen).fontStyle !== 'italic') wrong.push('style')
    if (seen.textContent !== 'Gr\\u00fc\\u00dfe') wrong.push(seen.textContent)
    if (frames.length && frames[0].length !== 0) wrong.push('frame')
    document.title = wrong.join() || 'Good'
})</script>"""
LINK = b'<link rel=stylesheet href="/styles/style.css" integrity="sha256-%b" crossorigin="anonymous">' % b64encode(
    hashlib.sha256(SHEET).digest()
)
POLICY = b"<meta http-equiv=Content-Security-Policy content=\"default-src 'self'; script-src 'self'\">"
HINT = b'<link rel=preconnect href="https://cdn.example/">'
HOME = (
    b"<!DOCTYPE html><meta charset=utf-8><title>Start</title>%b%b%b<h1>Gr\xc3\xbc\xc3\x9fe</h1>"
    b'<p><img src="/pictures/a?size=1"><img src="/none" srcset="/pictures/b.gif 1x, /pictures/c,d.gif 2x">'
    b'<iframe src="/frame"></iframe><svg><image href="/pictures/vector.svg"/></svg>'
    b'<a href="/moved">one</a><a href="/dir/">two</a><a href="/Dir/">three</a><a href="/latin?q=a%%26b#end">four</a>'
    b'<a href="http://elsewhere.example/">five</a><a href="/dir">six</a>%b'
) % (POLICY, HINT, LINK, CHECK)
MOVED = b'<base href="/styles/">%b<title>Moved</title><h1>Gr\xc3\xbc\xc3\x9fe</h1><img src="../pictures/b.gif">%b' % (
    b'<link rel=stylesheet href="style.css">',
    CHECK,
)
LATIN = LINK + "<title>Latin</title><h1>Grüße</h1><a href='/'>home</a>".encode("latin-1") + CHECK
WIDE = "<title>Wide</title><p>Grüße <a href='/dir/'>there</a>".encode("utf-16")
SITE: dict[str, Route] = {
    "/": ok(HOME),
    "/styles/style.css": ok(SHEET, "text/css"),
    "/styles/more.css?v=1": ok("h1 { font-style: italic }", "text/css"),
    **{f"/pictures/{name}": ok(PIXEL, "image/gif") for name in ("a?size=1", "b.gif", "c,d.gif", "bg.gif")},
    "/pictures/vector.svg": ok("<svg xmlns='http://www.w3.org/2000/svg'><image href='b.gif'/></svg>", "image/svg+xml"),
    "/frame": ok("<p>framed <a href='/wide'>wide</a>"),
    "/moved": Answer((message("301 Moved", location="/moved/to"),)),
    "/moved/to": ok(MOVED, "text/html; charset=utf-8"),
    "/dir": ok("<title>no slash</title>"),
    "/dir/": ok("<title>slash</title>"),
    "/Dir/": ok("<title>upper</title>"),
    "/latin?q=a%26b": ok(LATIN, "text/html; charset=iso-8859-1"),
    "/wide": ok(WIDE),
    "/gone": Answer((message("404 Not Found", b"gone"),)),
}


@pytest.fixture(name="exported", scope="module")
def exported_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, crawled and exported; the host's folder."""
    folder = tmp_path_factory.mktemp("exported")
    with RawServer(SITE) as server:
        assert crawl(folder / "c", server.url(), server.url("/gone")).code is ExitCode.DONE
        port = server.url().rpartition(":")[2].strip("/")
    assert run(["export", str(folder / "c"), "--to", str(folder / "out")]) == ExitCode.DONE
    return folder / "out" / f"127.0.0.1_{port}"


def test_files(exported: Path) -> None:
    """One for each answer, and what holds no reference is there to the byte."""
    assert len({str(path).lower() for path in exported.glob("[dD]ir/index*.html")}) == 2
    names = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    assert {"index.html", "moved/to.html", "dir.html", "latin@q=a&b.html", "wide.html", "frame.html"} <= names
    assert {"styles/style.css", "styles/more@v=1.css", "pictures/a@size=1.gif", "pictures/c,d.gif"} <= names
    assert len(names) == len(SITE) - 2  # one redirect, one fault
    assert (exported / "pictures/b.gif").read_bytes() == PIXEL
    assert not list(exported.parent.rglob("*.tmp"))


def test_what_stands_in_them(exported: Path) -> None:
    home = (exported / "index.html").read_bytes()
    for part in (
        b'href="moved/to.html"',
        b'href="latin@q=a%26b.html#end"',
        b'href="dir.html"',
        b'srcset="pictures/b.gif 1x, ',
    ):
        assert part in home
    assert (exported / "styles/style.css").read_bytes() == SHEET.replace(b"more.css?v=1", b"more@v=1.css")
    wide = (exported / "wide.html").read_bytes()
    assert wide == WIDE.replace("/dir/".encode("utf-16le"), _slash(exported).encode("utf-16le"))
    assert b'<meta charset="windows-1252">' in (exported / "latin@q=a&b.html").read_bytes()
    assert b'<base href="">' in (exported / "moved/to.html").read_bytes()


def _slash(exported: Path) -> str:
    page = next(path for path in exported.rglob("index*.html") if b"<title>slash<" in path.read_bytes())
    return str(page.relative_to(exported))


@pytest.mark.browser
@needs_chromium
def test_in_a_browser(exported: Path, tmp_path: Path) -> None:
    """Pages look as they did, with nothing asked of the network, and nothing missing but what never was there."""
    pages = ("index.html", "moved/to.html", "latin@q=a&b.html")
    asked = asyncio.run(asked_by([(exported / name).as_uri() for name in pages], tmp_path / "profile"))
    assert len({each.url for each in asked[0]}) == 8
    assert [each for some in asked for each in some if each.fault] == []
    assert [each.url for each in asked[0] if not each.url.startswith(exported.as_uri())] == []
    assert [each.url for some in asked for each in some if not each.url.startswith("file:")] == []


async def asked_by(addresses: Iterable[str], profile: Path) -> list[list[browser.Asked]]:
    """What each page asks for, when its script has found everything to be as it should."""
    found = []
    async with browser.opened(profile) as page:
        for address in addresses:
            await page.go(address)
            await page.shown(address)
            assert await page.run("document.title") == "Good"
            found.append([*page.asked])
    return found


def test_front(exported: Path) -> None:
    """It leads to the seed, and to each page."""
    front = (exported.parent / "index.html").read_text()
    ways = [unquote(way) for way in re.findall(r'href="([^"]*)"', front)]
    assert ways[0] == f"{exported.name}/index.html"
    assert f"{exported.name}/latin@q=a&b.html" in ways
    assert all((exported.parent / way).is_file() for way in ways)
    titles = re.findall(r'class="title" href="[^"]*">([^<]*)<', front)
    assert titles[0] == "Start"
    assert {"slash", "upper", "Latin", "Wide"} <= set(titles)
    assert "<h2>Seeds</h2>" in front
    assert re.search(r"<time>\d{4}-\d\d-\d\d</time>", front)


def test_a_long_list_of_pages_has_several_files(tmp_path: Path) -> None:
    """Whatever hosts are called; names that would break out are text, and the filter's list has all pages."""
    evil = "</a></script><script>alert(1)</script>"
    hosts = ("http://example.org/", "http://index-2.html/", "http://index-pages.js/")
    urls = [f"{host}{number}" for host in hosts for number in range(4)]
    files = [
        PlannedFile(each, FileNames().add(each, "text/html"), "w", 0, "20200101000000", page=True) for each in urls
    ]
    assert all(not file.path.startswith(("index-2.html/", "index-pages.js/")) for file in files)
    plan = ExportPlan(files)
    site = ExportedSite({file.url: file.path for file in files}, {}, True, False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_page, "ROWS", 5)
        written = dict(start_page.start_pages(plan, {urls[0]: evil}, site, dict.fromkeys(urls, evil)))
    assert [*written] == ["index-pages.js", "index-3.html", "index-2.html", "index.html"]
    data = json.loads(written["index-pages.js"].removeprefix(b"archive(").rstrip(b")\n"))
    assert [row[2] for row in data] == urls
    for name in ("index.html", "index-2.html", "index-3.html"):
        text = written[name].decode()
        assert text.count("<script") == 1
        assert "index-2.html" in text or name == "index-2.html"


URL = "http://example.org/"


def test_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By date and host; a page goes before a redirect and a fault; a revisit has its original's payload."""
    held = Held(tmp_path / "c")
    held.add(URL, b"old", stamp="20200101000000").add(URL, b"new", stamp="20220101000000")
    held.add(URL, b"fault", head("500 Oh"), "20230101000000").add(
        URL, b"", head("302 Moved", "", "Location: /x"), "20240101000000"
    )
    held.add_record(revisit("http://b.example/again", b"new", URL), "http://b.example/again", "warc/revisit", b"new")
    held.add_record(
        revisit("http://b.example/lost", b"x", "http://c.example/"), "http://b.example/lost", "warc/revisit", b"x"
    )
    held.add("http://b.example/two", b"two").add_record(
        revisit("http://b.example/two", b"y", "http://c.example/"),
        "http://b.example/two",
        "warc/revisit",
        b"y",
        stamp="20250101000000",
    )
    made = record("resource", b"<p>no head", ("WARC-Target-URI", "http://b.example/res"), ("Content-Type", "text/html"))
    held.add_record(made, "http://b.example/res", "text/html", b"<p>no head")
    directory = str(held.write())
    assert run(["export", directory, "--to", str(tmp_path / "all")]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'all' / 'index.html'}\n"
    assert "http://b.example/lost: its payload is in another collection" in err
    assert (tmp_path / "all/example.org/index.html").read_bytes() == b"new"
    assert (tmp_path / "all/b.example/again.html").read_bytes() == b"new"
    assert (tmp_path / "all/b.example/two.html").read_bytes() == b"two"
    assert (tmp_path / "all/b.example/res.html").read_bytes() == b"<p>no head"
    package = str(tmp_path / "c.wacz")
    assert run(["pack", directory, "-o", package]) == ExitCode.DONE
    assert run(["export", package, "--to", str(tmp_path / "packed")]) == ExitCode.DONE
    assert {path.name: path.read_bytes() for path in (tmp_path / "packed").rglob("*.html")} == {
        path.name: path.read_bytes() for path in (tmp_path / "all").rglob("*.html")
    }
    assert (
        run(["export", directory, "--to", str(tmp_path / "at"), "--at", "2019", "--host", "example.org"])
        == ExitCode.DONE
    )
    assert (tmp_path / "at/example.org/index.html").read_bytes() == b"old"
    assert not (tmp_path / "at/b.example").exists()


def test_what_only_headers_say(tmp_path: Path) -> None:
    """A refresh becomes an element, and a file without another extension has that of its name for a download."""
    held = Held(tmp_path / "c").add(f"{URL}to", b"<title>to</title>")
    held.add(f"{URL}a/from", "<!doctype html><p>Grüße".encode(), head("200 OK", "text/html", "Refresh: 3, URL='/to#x'"))
    held.add(f"{URL}away", b"<p>away", head("200 OK", "text/html", "Refresh: 0; https://elsewhere.example/"))
    held.add(f"{URL}self", b"<p>self", head("200 OK", "text/html", "Refresh: 60"))
    names = {
        "get1": ("application/octet-stream", 'attachment; filename="report 1.csv"', "get1.csv"),
        "get2": (
            "application/x-unknown",
            "attachment; filename*=UTF-8''r%C3%A9sum%C3%A9.docx; filename=r",
            "get2.docx",
        ),
        "get3": ("application/octet-stream", "attachment; filename=page.html", "get3.bin"),
        "get4.zip": ("application/octet-stream", "attachment; filename=a.exe", "get4.zip"),
        "get5": ("application/pdf", "inline; filename=a.exe", "get5.pdf"),
    }
    for name, (media, disposition, _) in names.items():
        answered = head("200 OK", media, f"Content-Disposition: {disposition}")
        held.add(f"{URL}{name}", b"\x01", answered, mime=media)
    assert run(["export", str(held.write()), "--to", str(tmp_path / "e")]) == ExitCode.DONE
    folder = tmp_path / "e" / "example.org"
    refresh = '<meta http-equiv="refresh" content="3;url=../to.html#x">'
    assert (folder / "a/from.html").read_bytes() == f"<!doctype html>{refresh}<p>Grüße".encode()
    assert (folder / "away.html").read_bytes() == b"<p>away"
    assert (folder / "self.html").read_bytes() == b"<p>self"
    assert {path.name for path in folder.glob("get*")} == {expected for _, _, expected in names.values()}


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that is there is replaced."""
    directory = str(Held(tmp_path / "c").add(URL, b"x", head("404 No")).write())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for to, words in (("full", "exists and is not empty"), ("new", "holds no page to export")):
        assert run(["export", directory, "--to", str(tmp_path / to)]) == ExitCode.USAGE
        assert words in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(bytes(path.stat().st_size))])
def test_a_warc_that_is_lost_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object]
) -> None:
    """A page for each of its URLs would hide what else is wrong."""
    held = Held(tmp_path / "c")
    pages = [f"http://e.org/{number}" for number in range(30)]
    for address in pages:
        held.add(address, b"<p>page")
    directory = held.write()
    (warc,) = (directory / "archive").iterdir()
    damage(warc)
    assert run(["export", str(directory), "--to", str(tmp_path / "out")]) == ExitCode.STORAGE
    first, *others = capsys.readouterr().err.splitlines()
    assert warc.name in first
    assert "; 30 URLs of this file are not exported, such as http://e.org/" in first
    assert len(others) == 2  # nothing was exported, and why


def test_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export goes on where another was stopped; what a person put there stays, and is never replaced."""
    held = Held(tmp_path / "c").add("http://e.org/", b"<p>home").add("http://e.org/a", b"<p>a")
    export = ["export", str(held.add("http://e.org/b", b"<p>b").write()), "--to", str(tmp_path / "out")]
    host = tmp_path / "out" / "e.org"
    with ExportFolder(tmp_path / "out") as target:
        for name in ("index", "a", "old/old", "old/mine"):
            target.write(f"e.org/{name}.html", [b"<p>", name.encode()])
        assert run(export) == ExitCode.USAGE
        assert "is working in it" in capsys.readouterr().err
    with (tmp_path / "out" / MARKER / "journal").open("ab") as journal:
        journal.write(b"0" * 30)  # as a line that was cut
    (host / "b.html").write_bytes(b"mine")
    (host / "old" / "mine.html").write_bytes(b"mine too")
    (host / "notes.txt").write_bytes(b"mine as well")
    assert run(export) == ExitCode.USAGE
    assert f"{host / 'b.html'} was not written by an export" in capsys.readouterr().err
    assert (host / "b.html").read_bytes() == b"mine"
    (host / "b.html").unlink()
    assert run(export) == ExitCode.DONE
    assert {path.relative_to(host).as_posix(): path.read_bytes() for path in host.rglob("*") if path.is_file()} == {
        "index.html": b"<p>home",
        "a.html": b"<p>a",
        "b.html": b"<p>b",
        "notes.txt": b"mine as well",
        "old/mine.html": b"mine too",
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["e.org", "index-pages.js", "index.html"]


def test_hostile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bombs end, damaged records are passed over and told, and no name leads outside."""
    held = Held(tmp_path / "c")
    for path in ("..%2f..%2fout", "%2e%2e/%2e%2e/out", "..\\..\\out", "con", "a%00b", "x" * 5000, "/" * 300 + "deep"):
        held.add(f"http://e.org/{path}", b"<p>x")
    held.add("http://../../etc/passwd", b"x").add("file:///etc/passwd", b"x")
    bomb, answer = gzip.compress(bytes(16 << 20)), head("200 OK", "text/x", "Content-Encoding: gzip")
    held.add(
        "http://e.org/bomb",
        bomb,
        answer,
        mime="text/x",
    )
    held.add("http://e.org/~last", b"<p>damaged")
    held.parts[-1] = held.parts[-1][:-9]
    directory = held.write()
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert run(["export", str(directory), "--to", str(tmp_path / "out")]) == ExitCode.DONE
    err = capsys.readouterr().err
    most = 500 * len(answer + bomb)
    assert f"http://e.org/bomb: only the first {most} bytes, the rest is a bomb" in err
    assert [path.stat().st_size for path in (tmp_path / "out").rglob("bomb*")] == [most]
    assert "http://e.org/~last: hand.warc.gz at offset" in err
    new = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(path.is_relative_to(tmp_path / "out") for path in new)
    assert len(new) == 10
    assert not list((tmp_path / "out").rglob("*.tmp"))
    next((directory / "archive").iterdir()).write_bytes(b"")
    assert run(["export", str(directory), "--to", str(tmp_path / "none")]) == ExitCode.STORAGE
    assert "c: none of the captures could be read" in capsys.readouterr().err
