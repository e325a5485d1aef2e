"""Seeds with settings of their own: from a list to what is crawled, told, written down, and read back."""

import asyncio
import json
from pathlib import Path

import pytest

from archiver.cli import add, entry
from archiver.collection.layout import Layout, rounds
from archiver.collection.settings_file import read_settings
from archiver.config import toml
from archiver.config.seeds import read_seed
from archiver.config.settings import Settings, with_values
from archiver.crawl import build
from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.command import archiver
from fixtures.crawl_in_process import settings
from fixtures.flag import Flag, Gate
from fixtures.log import Row
from fixtures.rawserver import NOT_FOUND, Answer, End, RawServer, Route, Sendable
from fixtures.sites import ok, page, redirect

FOREIGN = "127.0.0.2"


def site() -> dict[str, Route]:
    """A blog and news, of which each links to the other, and a chain of pages in both."""
    links = ["/blog/1", "/news/1", "/blog/tag/x", "/about"]
    chains = {
        f"/{part}/{number}": ok(page(f"{part} {number}", [f"/{part}/{number + 1}"]))
        for part in ("blog", "news")
        for number in range(1, 5)
    }
    return {"/blog/": ok(page("Blog", links)), "/news/": ok(page("News", links)), **chains}


def crawl(directory: Path, wanted: Settings, *, resume: bool = False) -> None:
    """Crawl to the end, as the command does."""

    async def act() -> None:
        async with build.open_crawl(directory, wanted, resume=resume, text=toml.render(wanted)) as lifetime:
            await lifetime.run()

    asyncio.run(act())


def own(directory: Path) -> list[str]:
    """The settings of seeds, as crawl.toml has them."""
    return [str(one) for one in read_settings(directory / "crawl.toml")["seed"]]


def refused(directory: Path) -> dict[str, str]:
    """Each link that was refused, and the rule."""
    return {str(url): str(rule) for url, rule in rows(directory, "SELECT url, rule FROM refusals")}


def test_a_list_with_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, listing = tmp_path / "c", tmp_path / "seeds.txt"
    with RawServer(site()) as server:
        blog, news = server.url("/blog/"), server.url("/news/")
        lines = [f"{blog} scope=prefix max-depth=2 exclude=/tag/", f"{news} scope=prefix"]
        listing.write_text("".join(f"{line}  # a comment\n" for line in lines))
        command = ("crawl", "--seeds", "seeds.txt", "-o", "c", "--rate", "0", "--probe", "off", "--max-depth", "3")
        assert archiver(*command, cwd=tmp_path).returncode == ExitCode.DONE
        reached = {url for url, state in states(directory).items() if state == "archived"}
        wanted = ["/robots.txt", "/blog/", "/blog/1", "/blog/2", "/news/", "/news/1", "/news/2", "/news/3"]
        assert reached == set(map(server.url, wanted))
        refusals = refused(directory)
        assert refusals == {
            server.url("/blog/3"): f"seed[0]: {blog} max-depth=2",
            server.url("/blog/tag/x"): f"seed[0]: {blog} exclude=/tag/",
            server.url("/about"): f"seed[0]: {blog} scope=prefix",
            server.url("/news/4"): "max-depth: 3",
        }
        assert own(directory) == lines
        for path, rule in (("/news/2", f"seed[1]: {news} scope=prefix"), ("/blog/", "seeds")):
            assert entry.run(["explain", str(directory), server.url(path), "--json"]) == ExitCode.DONE
            told = json.loads(capsys.readouterr().out)
            assert (told["decision"], told["rule"]) == ("taken", rule)
    before = (directory / "crawl.toml").read_bytes()
    (directory / "crawl.toml").unlink()
    (directory / "crawl.db").unlink()
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert (directory / "crawl.toml").read_bytes() == before
    assert refused(directory) == refusals
    assert {url for url, state in states(directory).items() if state == "archived"} == reached


def test_seeds_with_settings_for_a_crawl_that_runs(tmp_path: Path) -> None:
    gate, came = Gate(), Flag()

    def last(_: Row) -> Sendable:
        came.raise_()
        return ok("the last one")

    routes: dict[str, Route] = {
        "//127.0.0.1/": Answer((gate, NOT_FOUND, End.CLOSE)),
        f"//{FOREIGN}/x/": ok(page("Added", ["/other", "/x/tag/1", "/x/1"])),
        f"//{FOREIGN}/x/1": ok(page("One", ["/x/2"])),
        f"//{FOREIGN}/x/2": last,
        f"//{FOREIGN}/robots.txt": Answer((NOT_FOUND, End.CLOSE)),
    }

    async def act(wanted: Settings, line: str) -> None:
        async with build.open_crawl(tmp_path, wanted, resume=False, text=toml.render(wanted)) as lifetime:
            running = asyncio.create_task(lifetime.run())
            await gate.arrived.reached()
            await asyncio.to_thread(add.add, tmp_path, [line], ())
            await came.reached()
            assert not running.done()
            gate.open()
            assert (await running).code is ExitCode.DONE

    with RawServer(routes, hosts=("127.0.0.1", FOREIGN)) as server:
        line = f"{server.url('/x/', FOREIGN)} scope=prefix exclude=/tag/"
        asyncio.run(act(settings(server.url()), line))
        assert own(tmp_path) == [line]
        assert states(tmp_path)[server.url("/x/2", FOREIGN)] == "archived"
        assert refused(tmp_path) == {
            server.url("/other", FOREIGN): f"seed[0]: {server.url('/x/', FOREIGN)} scope=prefix",
            server.url("/x/tag/1", FOREIGN): f"seed[0]: {server.url('/x/', FOREIGN)} exclude=/tag/",
        }


def test_seeds_with_settings_for_a_crawl_that_has_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RawServer(site()) as server:
        blog, news = server.url("/blog/"), server.url("/news/")
        crawl(tmp_path / "c", settings(blog, seed=(read_seed(f"{blog} scope=page")[1],)))
        assert entry.run(["add", str(tmp_path / "c"), f"{blog} scope=prefix", f"{news} scope=page"]) == ExitCode.DONE
        said = capsys.readouterr().out
        assert "1 seed added; 1 known already, 1 of them with new settings from the next archiver resume on" in said
        assert own(tmp_path / "c") == [f"{blog} scope=prefix", f"{news} scope=page"]
        assert entry.run(["add", str(tmp_path / "c"), f"{news} scope=page"]) == ExitCode.DONE
        assert capsys.readouterr().out == "0 seeds added; 1 known already\n"
        crawl(tmp_path / "c", with_values(Settings(), read_settings(tmp_path / "c/crawl.toml")), resume=True)
        assert states(tmp_path / "c")[server.url("/blog/4")] == "archived"
        assert server.url("/news/2") not in states(tmp_path / "c")


def test_added_texts_leave_settings_and_added_settings_leave_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "c"

    def added(*lines: str) -> str:
        assert entry.run(["add", str(directory), *lines]) == ExitCode.DONE
        return capsys.readouterr().out

    with RawServer(site()) as server:
        blog, news = server.url("/blog/"), server.url("/news/")
        crawl(directory, settings(blog, seed=(read_seed(f"{blog} scope=page title=Blog")[1],)))
        assert added(f"{blog} title='Our blog' note=why") == (
            "0 seeds added; 1 known already, 1 of them with a new title and note\n"
        )
        assert own(directory) == [f"{blog} scope=page title='Our blog' note=why"]
        assert added(f"{blog} scope=page", f"{news} scope=page title=News").startswith("1 seed added; 1 known already;")
        assert own(directory) == [f"{blog} scope=page title='Our blog' note=why", f"{news} scope=page title=News"]
        said = added(f"{blog} scope=page max-depth=1 collection=c", f"{news} scope=page title=News")
        assert said == (
            "0 seeds added; 2 known already, 1 of them with new settings from the next archiver resume on, "
            "1 of them with a new collection\n"
        )
        kept = [
            f"{blog} scope=page max-depth=1 title='Our blog' note=why collection=c",
            f"{news} scope=page title=News",
        ]
        assert own(directory) == kept
        for command in ("resume", "recrawl"):
            ran = archiver(command, "c", "--rate", "0", "--probe", "off", cwd=tmp_path)
            assert (ran.returncode, own(directory)) == (ExitCode.DONE, kept), ran.stderr
        assert [own(earlier.directory) for earlier in rounds(Layout(directory))] == [kept]


def test_a_seed_that_has_moved_has_its_settings_in_a_later_run_too(tmp_path: Path) -> None:
    routes: dict[str, Route] = {
        f"//{FOREIGN}/": ok(page("Moved", ["/1"])),
        f"//{FOREIGN}/1": ok(page("One", ["/2"])),
    }
    with RawServer(hosts=("127.0.0.1", FOREIGN)) as server:
        there = server.url("", FOREIGN)
        routes["//127.0.0.1/"] = redirect(f"{there}/")
        server.routes = routes
        line = f"{server.url()} max-depth=1"
        values = {"redirects": "seeds", "seed": (read_seed(line)[1],), "allow_private": (FOREIGN,)}
        crawl(tmp_path, settings(server.url(), max_urls=2, host_concurrency=1, **values))
        assert states(tmp_path)[f"{there}/1"] == "waiting"
        crawl(tmp_path, settings(server.url(), **values), resume=True)
        assert states(tmp_path)[f"{there}/1"] == "archived"
        assert refused(tmp_path) == {f"{there}/2": f"seed[0]: {server.url()} max-depth=1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{seed} max-depth=x\n", "seeds.txt:1: max-depth: 'x' is not a whole number of 0 or more"),
        ("# a\n{seed}\n{seed} max-dept=3\n", "seeds.txt:3: 'max-dept=3' after the URL is not a setting of a seed; did"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "seeds.txt").write_text(text.format(seed="http://127.0.0.1:9/"))
    arguments = ["crawl", "--seeds", str(tmp_path / "seeds.txt"), "-o", str(tmp_path / "c")]
    assert entry.run(arguments) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "c").exists()


def test_other_settings_for_one_host_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = "http://127.0.0.1:9/", "http://127.0.0.1:9/other"
    words = f"seed: {two} and {one} have the same host and other settings for it"
    assert entry.run(["crawl", f"{one} rate=1", f"{two} rate=2", "-o", str(tmp_path / "c")]) == ExitCode.USAGE
    assert words in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
    own = tuple(read_seed(text)[1] for text in (f"{one} rate=1", f"{two} rate=2"))
    (tmp_path / "crawl.toml").write_text(toml.render(with_values(Settings(), {"seed": own})))
    assert entry.run(["resume", str(tmp_path)]) == ExitCode.USAGE
    assert f"{tmp_path}/crawl.toml: {words}" in capsys.readouterr().err
    (tmp_path / "crawl.toml").write_text(toml.render(with_values(Settings(), {"seeds": (one,), "seed": own[:1]})))
    crawl(tmp_path, with_values(Settings(), {"seeds": (one,), "seed": own[:1], "retries": 0}))
    assert entry.run(["add", str(tmp_path), f"{two} rate=2"]) == ExitCode.USAGE
    assert words in capsys.readouterr().err
