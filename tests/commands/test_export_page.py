"""One page of an archive as one file: `archiver export --single-file URL` and `--pdf URL`."""

import asyncio
import re
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from archiver.cli.entry import run
from archiver.extract import Document, links
from archiver.model import ExitCode
from archiver.tools.export import one_page
from fixtures.crawl_in_process import crawl
from fixtures.devtools import needs_chromium, needs_namespace
from fixtures.rawserver import Answer, RawServer, Route
from fixtures.sites import PIXEL, message, ok
from tests.commands.test_export import SITE, asked_by

SCRIPTED = (
    b"<!doctype html><title>Scripted</title><p id=here></p><a href='/dir/'>slash</a>"
    b"<script>fetch('/words.txt').then(found => found.text()).then(text => "
    b"{ document.getElementById('here').innerHTML = `<a href='http://made.example/${text}'>${text}</a>` })</script>"
)
DRAWING = b"<svg xmlns='http://www.w3.org/2000/svg' width='4' height='4'/>"  # half of it is still two pixels wide
PAGES: dict[str, Route] = SITE | {
    **{f"/pictures/{name}": ok(DRAWING, "image/svg+xml") for name in ("b.gif", "c,d.gif")},
    "/scripted": ok(SCRIPTED),
    "/words.txt": ok("words", "text/plain; charset=utf-8"),
    "/loop": ok("<title>Loop</title><iframe src='/loop'></iframe><iframe src='/nest/0'></iframe><a href='#x'>x</a>"),
    **{f"/nest/{n}": ok(f"<p>{n}<iframe src='/nest/{n + 1}'></iframe>") for n in range(12)},
    "/parts": ok("<title>Parts</title><object data='/words.txt'></object><img src='/moved-picture'><img src='/gone'>"),
    "/moved-picture": Answer((message("302 Found", location="/pictures/b.gif"),)),
}


@pytest.fixture(name="site", scope="module")
def crawled_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A collection of PAGES, and the address of its site, which is gone."""
    folder = tmp_path_factory.mktemp("page") / "c"
    with RawServer(PAGES) as server:
        seeds = [server.url(f"/{name}") for name in ("", "gone", "scripted", "words.txt", "loop", "parts")]
        assert crawl(folder, *seeds).code is ExitCode.DONE
        return folder, server.url().rstrip("/")


def exported(site: tuple[Path, str], folder: Path, path: str, *more: str, option: str = "--single-file") -> bytes:
    target = folder / f"page{len([*folder.iterdir()])}.html"
    assert run(["export", str(site[0]), option, site[1] + path, "--to", str(target), *more]) == ExitCode.DONE
    return target.read_bytes()


@pytest.mark.browser
@needs_chromium
def test_a_single_file_needs_nothing_else(site: tuple[Path, str], tmp_path: Path) -> None:
    """Its own script finds pictures, styles and frame as they were."""
    for path in ("/", "/moved/to", "/latin?q=a%26b"):
        exported(site, tmp_path, path)
    asked = asyncio.run(asked_by([each.as_uri() for each in sorted(tmp_path.glob("*.html"))], tmp_path / "profile"))
    assert [each.url for some in asked for each in some if not each.url.startswith(("data:", "file:"))] == []
    assert [len([each for each in some if each.url.startswith("file:")]) for some in asked] == [1, 1, 1]


def test_references(site: tuple[Path, str], tmp_path: Path) -> None:
    home = site[1]
    page = exported(site, tmp_path, "/").decode()
    for link in (f'href="{home}/moved"', f'href="{home}/latin?q=a%26b#end"', 'href="http://elsewhere.example/"'):
        assert link in page
    picture = f"data:image/svg+xml;base64,{b64encode(DRAWING).decode()}"
    assert f'srcset="{picture} 1x, {picture} 2x"' in page
    sheet = re.search(r'href="data:text/css;base64,([^"]+)"', page)
    assert sheet is not None
    text = b64decode(sheet[1]).decode()
    assert f"url(data:image/gif;base64,{b64encode(PIXEL).decode()})" in text.replace("\\", "").replace('"', "")
    assert "data:text/css;base64," in text
    assert exported(site, tmp_path, "/", "--missing", "nothing").decode().count("about:blank") > 3


def test_what_is_not_in_the_file_is_said(
    site: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = exported(site, tmp_path, "/parts").decode()
    said = capsys.readouterr().err
    assert "data:text/plain;charset=utf-8;base64," in page
    assert page.count("data:image/svg+xml;base64,") == 1
    assert f"{site[1]}/gone: not archived" in said
    exported(site, tmp_path, "/loop")
    said = capsys.readouterr().err
    assert f"more than {one_page.DEEPEST} documents in each other" in said


def frames(content: bytes, depth: int = 0) -> dict[str, int]:
    """Return each NAME in a `<p>NAME` of *content* or the documents embedded in it, with its least depth."""
    found = {name.decode(): depth for name in re.findall(rb"<p>(\w+)", content)}
    for inner in re.findall(rb"iframe src=['\"]data:text/html[^,]*,([^'\"]*)", content):
        for name, least in frames(b64decode(inner), depth + 1).items():
            found[name] = min(found.get(name, least), least)
    return found


def test_what_is_nested_too_deep_is_there_where_it_is_nested_less(tmp_path: Path) -> None:
    """The frames come deep first, and less deep again; the last ones name each other."""
    chain = {f"/{n}": ok(f"<p>n{n}<iframe src='/{n + 1}'></iframe>") for n in range(12)}
    pair = {"/a": ok("<p>a<iframe src='/b'></iframe>"), "/b": ok("<p>b<iframe src='/a'></iframe>")}
    whole = "".join(f"<iframe src='/{name}'></iframe>" for name in ("0", "4", "a", "b"))
    with RawServer({"/": ok(f"<title>Home</title>{whole}"), "/12": ok("<p>n12"), **chain, **pair}) as server:
        assert crawl(tmp_path / "c", server.url()).code is ExitCode.DONE
        site = tmp_path / "c", server.url().rstrip("/")
    content = exported(site, tmp_path, "/")
    found = frames(content)
    assert {name: depth for name, depth in found.items() if name[0] == "n"} == {
        **{f"n{n}": n + 1 for n in range(4)},
        **{f"n{n}": n - 3 for n in range(4, 12)},
    }
    assert (found["a"], found["b"]) == (1, 1)
    outer = re.findall(rb"iframe src=['\"]data:text/html[^,]*,([^'\"]*)", content)
    assert frames(b64decode(outer[-1])) == {"b": 0, "a": 1}


def test_one_picture_many_times_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(one_page, "MOST", 10_000)
    routes: dict[str, Route] = {
        "/": ok("<title>Many</title>" + "<img src=/a.gif>" * 1000),
        "/a.gif": ok(PIXEL, "image/gif"),
    }
    with RawServer(routes) as server:
        assert crawl(tmp_path / "c", server.url()).code is ExitCode.DONE
        site = tmp_path / "c", server.url().rstrip("/")
    content = exported(site, tmp_path, "/")
    assert 8_000 < sum(map(len, re.findall(rb'data:[^\s>"]+', content))) <= 10_000
    assert "/a.gif: the file has 0 MiB" in capsys.readouterr().err


def test_sizes_are_bounded(
    site: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(one_page, "LARGEST", 400)
    assert "data:image" in exported(site, tmp_path, "/parts").decode()
    assert run(["export", str(site[0]), "--single-file", f"{site[1]}/", "--to", str(tmp_path / "a")]) != ExitCode.DONE
    assert "larger than" in capsys.readouterr().err
    monkeypatch.setattr(one_page, "LARGEST", 1 << 20)
    monkeypatch.setattr(one_page, "MOST", 0)
    exported(site, tmp_path, "/parts")
    assert "the file has 0 MiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--single-file", "HOME/never"), "holds no page"),
        (("--single-file", "HOME/moved"), "it redirects to HOME/moved/to"),
        (("--single-file", "HOME/pictures/b.gif"), "is no page, but image/svg+xml; to save it: archiver get"),
        (("--single-file", "HOME/", "--pdf", "HOME/"), "give one of them"),
        (("--single-file", "HOME/", "--host", "a.example"), "--host is for a whole export"),
        (("--single-file", "HOME/", "--browser", "x"), "--browser is for --pdf URL"),
        (("--browser", "x"), "--browser is for --pdf URL"),
        (("--pdf", "HOME/", "--browser", "no-such-browser"), "there is no such program"),
    ],
)
def test_refused(
    site: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    given = [word.replace("HOME", site[1]) for word in words]
    assert run(["export", str(site[0]), *given, "--to", str(tmp_path / "page")]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert said.replace("HOME", site[1]) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page").exists()


def test_a_file_that_exists_stays(site: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page").write_text("mine")
    assert run(["export", str(site[0]), "--single-file", site[1], "--to", str(tmp_path / "page")]) == ExitCode.USAGE
    assert "exists; give a new file" in capsys.readouterr().err
    assert (tmp_path / "page").read_text() == "mine"


@pytest.mark.browser
@needs_chromium
@needs_namespace
def test_a_pdf_has_what_scripts_show(site: tuple[Path, str], tmp_path: Path) -> None:
    content = exported(site, tmp_path, "/scripted", option="--pdf")
    assert content.startswith(b"%PDF-")
    found = links(Document(site[1] + "/scripted", "application/pdf", None, content))
    assert {link.url for link in found.links} >= {f"{site[1]}/dir/", "http://made.example/words"}
