"""Titles, notes and collections of seeds: from the command line to reports, packages and start pages."""

import json
import shlex
import urllib.request
from pathlib import Path

import pytest
from lxml import html

from archiver.cli import entry
from archiver.collection.settings_file import read_settings
from archiver.config.seeds import SeedAbout, SeedSetting
from archiver.config.settings import Settings, with_values
from archiver.model import ExitCode
from fixtures.command import archiver
from fixtures.conditional_site import Page, served
from fixtures.packages import described, members, pages, valid
from fixtures.pywb_server import PATIENCE, archiver_replay
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page, redirect
from fixtures.watching import watching

OPTIONS = ("--scope", "page", "--rate", "0", "--min-free-disk", "0", "--probe", "off", "-qq")
EVIL = "<script>alert(1)</script>"


def site() -> dict[str, Route]:
    return {
        "/titled": ok(page("Of the page", ["/x"])),
        "/bare": ok(b"<p>no title"),
        "/same": ok(page("Same")),
        "/moved": redirect("/target"),
        "/target": ok(page("Target")),
    }


def crawled(folder: Path, server: RawServer) -> dict[str, str]:
    """Crawl described seeds; return their URLs by path."""
    seeds = {name: server.url(f"/{name}") for name in ("titled", "bare", "same", "moved", "gone", "plain")}
    lines = (
        f"{seeds['titled']} title='{EVIL}' note=\"It's <b>\" collection=blogs",
        f"{seeds['bare']} title='Given title' collection=blogs",
        f"{seeds['same']} title=Same",
        f"{seeds['moved']} title='Has moved' note='to another place'",
        f"{seeds['gone']} title='Gone & lost' collection='old ones'",
        seeds["plain"],
    )
    (folder / "seeds.txt").write_text("".join(f"{line}\n" for line in lines))
    ran = archiver("crawl", "--seeds", "seeds.txt", "-o", "c", "--redirects", "seeds", *OPTIONS, cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return seeds


def test_in_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RawServer(site()) as server:
        seeds = crawled(tmp_path, server)
    reports = tmp_path / "c/reports"
    head, *rows = [line.split("\t") for line in (reports / "seeds.tsv").read_text().splitlines()]
    assert head[-3:] == ["title", "note", "collection"]
    assert [row[-3:] for row in rows] == [
        [EVIL, "It's <b>", "blogs"],
        ["Given title", "", "blogs"],
        ["Same", "", ""],
        ["Has moved", "to another place", ""],
        ["Gone & lost", "", "old ones"],
        ["", "", ""],
    ]
    assert (reports / "seed-collections.tsv").read_text().splitlines() == [
        "collection\tseeds\tfailed\turls_found",
        "blogs\t2\t0\t0",
        "old ones\t1\t1\t0",
        "\t3\t1\t1",
    ]
    text = (reports / "report.html").read_text()
    assert EVIL not in text
    root = html.fromstring(text)
    inputs = [element.text_content() for element in root.findall(".//section[@id='inputs']//dd")]
    assert inputs[:2] == [f"{seeds['titled']} {EVIL}", f"{seeds['bare']} Given title"]
    assert seeds["plain"] in inputs
    assert not any("title=" in entry for entry in inputs)
    failed = [element.text_content() for element in root.findall(".//section[@id='failed-seeds']//li")]
    assert failed[0].startswith(f"{seeds['gone']} Gone & lost returned status 404")
    [line] = [line for line in (reports / "report.txt").read_text().splitlines() if line.startswith("seeds ")]
    assert line == f"seeds     {seeds['gone']} (Gone & lost) returned status 404"
    assert entry.run(["report", str(tmp_path / "c"), "--seed", seeds["bare"]]) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "Given title  blogs" in told
    assert "Gone & lost" not in told
    assert "note" not in told.partition("Seeds. ")[2].partition("\n")[2].partition("\n")[0]  # no seed shown has one


def test_without_texts_no_column_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RawServer(site()) as server:
        ran = archiver("crawl", server.url("/titled"), "-o", "c", *OPTIONS, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert entry.run(["report", str(tmp_path / "c")]) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "  seed  " in told
    assert "collection" not in told.replace("its description", "")
    root = html.fromstring((tmp_path / "c/reports/report.html").read_text())
    assert [cell.text for cell in root.findall(".//section[@id='seeds']//th")][-1] == "problem"
    assert root.find(".//section[@id='seed-collections']") is None


def test_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page keeps its own title. Pages that a seed has moved to have what was said about the seed."""
    monkeypatch.chdir(tmp_path)
    with RawServer(site()) as server:
        seeds = crawled(tmp_path, server)
        target = server.url("/target")
    assert entry.run(["pack", "c", "-o", "p.wacz"]) == ExitCode.DONE
    assert valid(tmp_path / "p.wacz")
    keys = ("title", "seedTitle", "note", "collection")
    assert {row["url"]: [row.get(key) for key in keys] for row in pages(tmp_path / "p.wacz")} == {
        seeds["titled"]: ["Of the page", EVIL, "It's <b>", "blogs"],
        seeds["bare"]: ["Given title", None, None, "blogs"],
        seeds["same"]: ["Same", None, None, None],
        target: ["Target", "Has moved", "to another place", None],
    }
    assert described(tmp_path / "p.wacz")["seeds"] == [
        {"url": seeds["titled"], "title": EVIL, "note": "It's <b>", "collection": "blogs"},
        {"url": seeds["bare"], "title": "Given title", "collection": "blogs"},
        {"url": seeds["same"], "title": "Same"},
        {"url": seeds["moved"], "title": "Has moved", "note": "to another place"},
        {"url": seeds["gone"], "title": "Gone & lost", "collection": "old ones"},
    ]
    assert entry.run(["pack", "c", "-o", "s.wacz", "--split", "1k"]) == ExitCode.DONE
    parts = sorted(tmp_path.glob("s-*.wacz")) or [tmp_path / "s.wacz"]
    assert all(map(valid, parts))
    assert ["seeds" in described(part) for part in parts] == [True, *[False] * (len(parts) - 1)]


def test_settings_that_cannot_be_read_leave_a_package_without_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with RawServer(site()) as server:
        crawled(tmp_path, server)
    (tmp_path / "c/crawl.toml").write_text("[[seed]]\nurl = 5\n")
    assert entry.run(["pack", "c", "-o", "p.wacz"]) == ExitCode.DONE
    assert "; the titles and notes that it has for seeds are left out\n" in capsys.readouterr().err
    assert valid(tmp_path / "p.wacz")
    assert "seeds" not in described(tmp_path / "p.wacz")
    assert entry.run(["export", "c", "--to", "e"]) == ExitCode.DONE
    assert "; its titles of seeds are not shown\n" in capsys.readouterr().err


def test_of_the_crawls_and_hosts_that_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with RawServer(served({"/": Page(page("Home")), "/b": Page(page("B"))})) as server:
        start, other = server.url("/"), server.url("/b")
        assert archiver("crawl", f"{start} title=First note=N", "-o", "c", *OPTIONS, cwd=tmp_path).returncode == 0
        settings = tmp_path / "c/crawl.toml"
        settings.write_text(settings.read_text().replace('"First"', '"Second"'))
        assert archiver("recrawl", "c", "--rate", "0", "-qq", cwd=tmp_path).returncode == 0
        settings.write_text(settings.read_text().replace('"Second"', '"Third"'))
        assert archiver("add", "c", f"{other} collection=c", cwd=tmp_path).returncode == 0
    titles = {}
    for name, options in {
        "all": (),
        "one": ("--crawl", "1"),
        "two": ("--crawl", "2"),
        "host": ("--host", "127.0.0.1"),
    }.items():
        assert entry.run(["pack", "c", "-o", f"{name}.wacz", *options]) == ExitCode.DONE
        assert valid(tmp_path / f"{name}.wacz")
        titles[name] = [each.get("title") for each in described(tmp_path / f"{name}.wacz")["seeds"]]
    assert titles == {"all": ["Third", None], "one": ["Second"], "two": ["Third", None], "host": ["Third", None]}


def test_of_other_hosts_nothing_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with RawServer(site(), hosts=("127.0.0.1", "127.0.0.2")) as server:
        here, there = server.url("/titled"), server.url("/titled", "127.0.0.2")
        lines = (f"{here} title=Here", f"{there} title=There")
        assert archiver("crawl", *lines, "-o", "c", *OPTIONS, cwd=tmp_path).returncode == ExitCode.DONE
    assert entry.run(["pack", "c", "-o", "p.wacz", "--host", "127.0.0.1"]) == ExitCode.DONE
    assert described(tmp_path / "p.wacz")["seeds"] == [{"url": here, "title": "Here"}]
    assert not any(b"There" in data for name, data in members(tmp_path / "p.wacz").items() if "archive/" not in name)


def test_on_the_start_page_of_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with RawServer(site()) as server:
        crawled(tmp_path, server)
    assert entry.run(["export", "c", "--to", "e"]) == ExitCode.DONE
    text = (tmp_path / "e/index.html").read_text()
    assert EVIL not in text
    titles = [link.text_content() for link in html.fromstring(text).findall(".//a[@class='title']")]
    assert titles[:4] == [EVIL, "Given title", "Same", "Has moved"]
    rows = json.loads((tmp_path / "e/index-pages.js").read_text().removeprefix("archive(").rstrip(")\n"))
    assert [row[1] for row in rows[:4]] == titles[:4]


def test_on_the_start_page_of_a_replay(tmp_path: Path) -> None:
    with RawServer(site()) as server:
        crawled(tmp_path, server)
    text = ""
    with archiver_replay(tmp_path / "c") as wayback:
        for _ in range(1000):  # the list of pages is made beside the server
            with urllib.request.urlopen(wayback.root, timeout=PATIENCE) as answer:
                text = answer.read().decode()
            if "Given title" in text:
                break
    assert EVIL not in text
    titles = [link.text_content() for link in html.fromstring(text).findall(".//a[@class='title']")]
    assert {EVIL, "Given title", "Same", "Has moved"} <= set(titles)


def test_titles_can_be_changed_after_the_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`add` on a finished crawl is enough: reports and packages read the settings."""
    with RawServer(site()) as server:
        crawled(tmp_path, server)
        seed = server.url("/bare")
    assert entry.run(["add", str(tmp_path / "c"), f"{seed} title='Better title'"]) == ExitCode.DONE
    capsys.readouterr()
    assert entry.run(["report", str(tmp_path / "c"), "--json"]) == ExitCode.DONE
    told = json.loads(capsys.readouterr().out)
    [about] = [each["about"] for each in told["seeds"] if each["url"] == seed]
    assert about == {"title": "Better title", "note": "", "collection": "blogs"}


def test_in_status_and_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RawServer(site()) as server:
        seeds = crawled(tmp_path, server)
    directory = str(tmp_path / "c")
    status = archiver("status", directory, cwd=tmp_path).stdout
    assert f"{seeds['gone']} (Gone & lost; collection old ones) returned status 404" in status
    told = {
        each["url"]: each.get("about")
        for each in json.loads(archiver("status", directory, "--json", cwd=tmp_path).stdout)["seeds"]
    }
    assert told[seeds["bare"]] == {"title": "Given title", "note": "", "collection": "blogs"}
    assert told[seeds["plain"]] is None
    capsys.readouterr()
    assert entry.run(["explain", directory, server.url("/target")]) == ExitCode.DONE
    assert f"seed        {seeds['moved']} (Has moved)\n" in capsys.readouterr().out
    assert entry.run(["explain", directory, server.url("/x"), "--json"]) == ExitCode.DONE
    [first, last] = json.loads(capsys.readouterr().out)["path"]
    assert first["about"] == {"title": EVIL, "note": "It's <b>", "collection": "blogs"}
    assert "about" not in last
    assert entry.run(["explain", directory, seeds["plain"]]) == ExitCode.DONE
    assert f"seed        {seeds['plain']}\n" in capsys.readouterr().out
    path = tmp_path / "c" / "crawl.toml"
    path.write_text("[[[")
    broken = archiver("status", directory, cwd=tmp_path)
    assert broken.returncode == ExitCode.DONE
    assert "the titles and collections of seeds are not shown" in broken.stderr
    assert len(broken.stderr.splitlines()) == 1


REFUSED = {
    "a header": ("header='X-Key: file:/etc/passwd'", "header cannot be given here, only title, note, collection"),
    "a scope": ("scope=any title=x", "scope cannot be given here, only title, note, collection"),
    "a long title": (f"title='{'x' * 301}'", "title: "),
    "a note of two lines": ("note='a\nb'", "note: "),
    "two titles": ("title=a title=b", "title"),
    "no quotes": ("title=Two words", "quote a text that has blanks"),
}


def test_the_order_add_takes_texts_and_no_settings(tmp_path: Path) -> None:
    with RawServer(site()) as server:
        seeds = crawled(tmp_path, server)
        with watching("c", cwd=tmp_path) as room:
            path = f"/api/crawls/{room.crawls[0]['id']}/orders"
            before = (tmp_path / "c" / "crawl.toml").read_text()
            for words, says in REFUSED.values():
                answer = room.post(
                    path, {"verb": "add", "arguments": [server.url("/new"), f"{seeds['plain']} {words}"]}
                )
                assert (answer.status, says in answer.json["error"]) == (409, True), answer.json
            twice = [f"{seeds['plain']} title=a", f"{seeds['plain']} title=b"]
            assert "different titles" in room.post(path, {"verb": "add", "arguments": twice}).json["error"]
            assert (tmp_path / "c" / "crawl.toml").read_text() == before
            new = f"{server.url('/new')} title='It'\"'\"'s new' collection=blogs"
            answer = room.post(
                path, {"verb": "add", "arguments": [new, server.url("/other"), f"{seeds['bare']} note=n"]}
            )
            assert answer.json["answer"].startswith("2 seeds added; 1 known already, 1 of them with a new note")
    assert shlex.split(answer.json["command"])[3:] == [new, server.url("/other"), f"{seeds['bare']} note=n"]
    told = {own.url: own.about for own in seed_settings(tmp_path / "c")}
    assert told[server.url("/new")] == SeedAbout("It's new", "", "blogs")
    assert told[seeds["bare"]] == SeedAbout("Given title", "n", "blogs")
    assert server.url("/other") not in told


def seed_settings(directory: Path) -> tuple[SeedSetting, ...]:
    return with_values(Settings(), read_settings(directory / "crawl.toml")).scope.seed
