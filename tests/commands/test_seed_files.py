"""`--seeds` with files that are no list of lines, and with a URL."""

from pathlib import Path

import pytest

from archiver.cli.config import seeds
from archiver.collection.settings_file import read_settings
from archiver.config.seeds import SeedAbout, descriptions
from archiver.errors import ConfigError
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


def test_a_list_with_very_many_patterns_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take minutes to read them, and again with each command."""
    monkeypatch.setattr(seeds, "MOST_PATTERNS", 10)
    path = tmp_path / "list"
    path.write_text("http://a.example/ exclude=12345\nhttp://b.example/ include=67890 title=Long\n")
    assert len(seeds.read_seeds((), (str(path),), ()).own) == 2
    path.write_text("http://a.example/ exclude=12345\nhttp://b.example/ include=678901\n")
    with pytest.raises(ConfigError, match=rf"^--seeds {path}: its patterns \(include, exclude\) have more than 10 "):
        seeds.read_seeds((), (str(path),), ())


def test_files_describe_their_seeds(tmp_path: Path) -> None:
    """Texts of lines and arguments come first; a file describes what is not described yet."""
    with RawServer({"/a": ok(page("A")), "/b": ok(page("B"))}) as server:
        a, b = server.url("/a"), server.url("/b")
        (tmp_path / "list.csv").write_text(f"url,title,collection\n{a},From the table,one\n{b},B,\n,no URL,\n")
        (tmp_path / "list.txt").write_text(f"{a} title='From the list'\n{a} note=N\n")
        (tmp_path / "feed").write_text(
            f"<rss><channel><item><title>Feed</title><link>{b}</link></item></channel></rss>"
        )
        lists = [f"--seeds={name}" for name in ("list.csv", "feed", "list.txt")]
        ran = archiver("crawl", f"{b} scope=page", *lists, *OPTIONS, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert descriptions(read_settings(tmp_path / "c/crawl.toml")["seed"]) == {
        a: SeedAbout("From the list", "N", "one"),
        b: SeedAbout("B"),
    }
    assert (
        "archiver: list.csv: a table with 2 URLs\narchiver: list.csv: skipped 1 line without a URL: line 4"
        in ran.stderr
    )
    assert "archiver: feed: a sitemap or feed with 1 URL\n" in ran.stderr


def test_two_titles_for_one_seed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("http://127.0.0.1:9/ title=A\nhttp://127.0.0.1:9/ title=B\n")
    (tmp_path / "two").write_text("http://127.0.0.1:9/ title=B\n")
    for arguments, says in (
        (["--seeds", "one"], "one:2: http://127.0.0.1:9/ has another title on line 1; delete one of the two"),
        (
            ["http://127.0.0.1:9/ title=A", "--seeds", "two"],
            "http://127.0.0.1:9/: the command line and two give different titles; keep one of them",
        ),
    ):
        ran = archiver("crawl", *arguments, *OPTIONS, cwd=tmp_path)
        assert (ran.returncode, ran.stderr.splitlines()[-1]) == (ExitCode.USAGE, f"archiver: {says}")
        assert not (tmp_path / "c").exists()


def test_more_texts_than_the_settings_file_can_hold(tmp_path: Path) -> None:
    """The crawl does not begin; nor are seeds added to one that has."""
    line = f"http://127.0.0.1:9/{{}} title='{'x' * 250}' note='{'y' * 1900}'\n"
    (tmp_path / "many").write_text("".join(line.format(number) for number in range(8000)))
    ran = archiver("crawl", "--seeds", "many", *OPTIONS, cwd=tmp_path)
    says = (
        "archiver: crawl.toml would have 18.0 MB and can have 16.8 MB; give fewer seeds, or leave out titles and notes"
    )
    assert (ran.returncode, ran.stderr) == (ExitCode.USAGE, f"{says}\n")
    assert not (tmp_path / "c").exists()
    with RawServer({"/": ok(page("A"))}) as server:
        assert archiver("crawl", server.url("/"), *OPTIONS, cwd=tmp_path).returncode == ExitCode.DONE
    before = (tmp_path / "c/crawl.toml").read_bytes()
    ran = archiver("add", "c", "--seeds", "many", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (ExitCode.USAGE, f"{says}\n")
    assert (tmp_path / "c/crawl.toml").read_bytes() == before
    assert len([url for url in states(tmp_path / "c") if "robots" not in url]) == 1


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
