"""`--seeds` with files that are no list of lines, and with a URL."""

from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import states
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

OPTIONS = ("--scope", "page", "-o", "c", "--rate", "0", "--min-free-disk", "0", "--probe", "off")


def sitemap(*urls: str) -> bytes:
    return "".join(("<urlset>", *(f"<url><loc>{url}</loc></url>" for url in urls), "</urlset>")).encode()


@pytest.mark.parametrize("way", ["file", "stdin", "url"])
def test_a_sitemap_names_the_seeds(tmp_path: Path, way: str) -> None:
    """Its pages are archived as if they were listed line by line; it is no page of the crawl itself."""
    with RawServer({"/a": ok(page("A", ("/c",))), "/b": ok(page("B"))}) as server:
        content = sitemap(server.url("/a"), server.url("/b"))
        server.routes = {**server.routes, "/map.xml": ok(content, "application/xml")}
        (tmp_path / "list").write_bytes(content)
        name = {"file": "list", "stdin": "-", "url": server.url("/map.xml")}[way]
        ran = archiver("crawl", "--seeds", name, *OPTIONS, cwd=tmp_path, stdin=content if way == "stdin" else b"")
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert f"archiver: {'stdin' if way == 'stdin' else name}: a sitemap or feed with 2 URLs" in ran.stderr
        pages = [target for target in server.log.targets() if target != "/robots.txt"]
        assert sorted(pages) == sorted(["/a", "/b", *(["/map.xml"] if way == "url" else [])])
        assert {url for url in states(tmp_path / "c") if "robots" not in url} == {server.url("/a"), server.url("/b")}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<urlset></urlset>", "list: no URL found; write one per line"),
        (b'{"a": 1}', "list: no URL found"),
        (b"\xff\xfe", "list:1: not UTF-8"),
    ],
)
def test_a_file_without_seeds_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "list").write_bytes(content)
    ran = archiver("crawl", "--seeds", "list", *OPTIONS, cwd=tmp_path)
    assert (ran.returncode, says in ran.stderr) == (ExitCode.USAGE, True), ran.stderr
    assert not (tmp_path / "c").exists()


def test_a_url_without_an_answer_is_refused(tmp_path: Path) -> None:
    with RawServer({}) as server:
        ran = archiver("crawl", "--seeds", server.url("/none"), *OPTIONS, cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert f"--seeds {server.url('/none')}: cannot be read: " in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
