"""`archiver explain` and `archiver urls`: every URL of a crawl, with the rule that took or refused it."""

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archiver import build
from archiver.cli import explaining, wording
from archiver.cli.entry import run as carried_out
from archiver.cli.wording import Explanation
from archiver.config import toml
from archiver.config.settings import Settings
from archiver.frontier import account
from archiver.frontier.migrations import script
from archiver.model import ExitCode
from fixtures import crawls
from fixtures.archives import rows
from fixtures.command import ROOT
from fixtures.lifetimes import settings
from fixtures.rawserver import RawServer, Route, keep
from fixtures.sites import PIXEL, message, ok, page, redirect

FOREIGN = "127.0.0.2"
CALENDAR = "/calendar/"
WANTED = f"{FOREIGN}.*/wanted"
INSIDE = "http://10.0.0.1/inside"


def site(foreign: str) -> dict[str, Route]:
    """Something for every rule; *foreign* is the other host's address with its port."""
    links = [
        "/a",
        "/calendar/1",
        "/private/x",
        "/moved",
        "/endless/0",
        "/busy",
        "/dead",
        f"{foreign}/page",
        f"{foreign}/wanted",
    ]
    home = page("Home", [*links, f"{foreign}/closed/", INSIDE], images=["/i.gif", f"{foreign}/i.gif", "/gone.gif"])
    return {
        "/": ok(home),
        "/a": ok(page("A", ["/b"])),
        "/b": ok(page("B", ["/c"])),
        "/c": ok(page("C", ["/d"])),
        "/i.gif": ok(PIXEL, "image/gif"),
        "/moved": redirect(f"{foreign}/landing"),
        **{f"/endless/{step}": redirect(f"/endless/{step + 1}") for step in range(5)},
        "/busy": keep(message("503 Service Unavailable", b"later\n")),
        "/dead": b"",
        f"//{FOREIGN}/landing": ok(page("Landing")),
        f"//{FOREIGN}/wanted": ok(page("Wanted")),
        f"//{FOREIGN}/robots.txt": ok("User-agent: *\nDisallow: /closed\n", "text/plain"),
        "/robots.txt": ok("User-agent: *\nDisallow: /private\n", "text/plain"),
    }


@dataclass(frozen=True)
class Crawled:
    """A crawl that has ended, and what belongs to it."""

    directory: Path
    settings: Settings
    home: str  # without the slash at its end
    foreign: str

    def explained(self, address: str, *, running: bool = False) -> Explanation:
        """The explanation of *address*."""
        with account.opened(self.directory) as db:
            return explaining.explanation(db, address, self.settings, time.time(), running=running)


Said = Callable[..., str]


@pytest.fixture(name="said")
def command(capsys: pytest.CaptureFixture[str]) -> Said:
    """What `archiver ARGUMENTS` prints; carried out in this process, for its speed."""

    def run_it(*arguments: str) -> str:
        assert carried_out(arguments) == ExitCode.DONE
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run_it


def run(directory: Path, wanted: Settings) -> None:
    """Crawl to the end, as the command does."""

    async def act() -> None:
        async with build.opened(directory, wanted, resume=False, text=toml.render(wanted)) as lifetime:
            await lifetime.run()

    asyncio.run(act())


@pytest.fixture(name="crawled", scope="module")
def crawled_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    directory = tmp_path_factory.mktemp("explained") / "crawl"
    directory.mkdir()
    with RawServer(hosts=("127.0.0.1", FOREIGN)) as server:
        home, foreign = server.url(""), server.url("", FOREIGN)
        server.routes = site(foreign)
        values: dict[str, Any] = {"exclude": (CALENDAR,), "include": (WANTED, "/closed/", "/inside")}
        limits = {"max_depth": 3, "max_redirects": 2, "retries": 0, "allow_private": (FOREIGN,)}
        wanted = settings(f"{home}/", "http://127.0.0.3:9/", **values, **limits)
        run(directory, wanted)
        yield Crawled(directory, wanted, home, foreign)


def expected(crawled: Crawled) -> dict[str, tuple[str, str, str]]:
    """URL to state, decision and rule; every URL that the crawl met."""
    home, foreign = crawled.home, crawled.foreign
    took, refused = "taken", "refused"
    host = "scope: host"
    return {
        f"{home}/": ("archived", took, "seeds"),
        "http://127.0.0.3:9/": ("failed", took, "seeds"),
        f"{home}/robots.txt": ("archived", took, "robots: obey"),
        f"{foreign}/robots.txt": ("archived", took, "robots: obey"),
        "http://127.0.0.3:9/robots.txt": ("failed", took, "robots: obey"),
        **{f"{home}{path}": ("archived", took, host) for path in ("/a", "/b", "/c", "/i.gif", "/gone.gif", "/moved")},
        **{f"{home}/endless/{step}": ("archived", took, host) for step in range(3)},
        f"{home}/busy": ("archived", took, host),
        f"{home}/dead": ("failed", took, host),
        INSIDE: ("excluded", refused, "allow-private: does not name it"),
        "http://10.0.0.1/robots.txt": ("excluded", refused, "allow-private: does not name it"),
        f"{home}/private/x": ("excluded", refused, "robots: obey"),
        f"{foreign}/closed/": ("excluded", refused, "robots: obey"),
        f"{foreign}/wanted": ("archived", took, f"include[0]: {WANTED}"),
        f"{foreign}/i.gif": ("archived", took, "page-requisites: true"),
        f"{foreign}/landing": ("archived", took, "redirects: follow"),
        f"{home}/calendar/1": ("refused", refused, f"exclude[0]: {CALENDAR}"),
        f"{home}/d": ("refused", refused, "max-depth: 3"),
        f"{home}/endless/3": ("refused", refused, "max-redirects: 2"),
        f"{foreign}/page": ("refused", refused, host),
    }


def test_every_url_names_its_rule_as_the_settings_have_it(crawled: Crawled) -> None:
    met = {str(url) for (url,) in rows(crawled.directory, "SELECT url FROM urls UNION SELECT url FROM refusals")}
    wanted = expected(crawled)
    assert met == set(wanted)
    for address, (state, decision, rule) in wanted.items():
        found = crawled.explained(address)
        told = wording.as_json(found)
        assert (found.state, told["known"]) == (state, True), address
        if found.refused is not None:
            assert (told["refused"]["rule"], decision) == (rule, "refused"), address
        else:
            assert (told["decision"], told["rule"]) == (decision, rule), address
        text = "\n".join(wording.lines(found))
        assert rule in text, address
        assert all(line.isprintable() for line in text.splitlines()), address


def test_path_tries_and_captures(crawled: Crawled) -> None:
    told = wording.as_json(crawled.explained(f"{crawled.home}/c"))
    assert [(step["url"].removeprefix(crawled.home), step["hop"]) for step in told["path"]] == [
        ("/", ""),
        ("/a", "L"),
        ("/b", "L"),
        ("/c", "L"),
    ]
    assert (told["hops"], told["depth"], told["tries"], told["status"]) == ("LLL", 3, 1, 200)
    (capture,) = told["captures"]
    file = crawled.directory / capture["file"]
    with file.open("rb") as warc:
        warc.seek(capture["offset"])
        assert warc.read(2) == b"\x1f\x8b"  # a member begins there
    assert capture["digest"].startswith("sha256:")
    dead = wording.as_json(crawled.explained(f"{crawled.home}/dead"))
    assert (dead["tries"], dead["failure"], dead["captures"]) == (1, "disconnect", [])


def test_the_line_of_robots_txt(crawled: Crawled) -> None:
    told = wording.as_json(crawled.explained(f"{crawled.home}/private/x"))
    assert "/private" in told["detail"]
    assert f"{crawled.home}/robots.txt" in told["detail"]
    never = wording.as_json(crawled.explained(f"{crawled.home}/private/never-seen"))
    assert (never["state"], never["decision"], never["rule"]) == ("unknown", "would be refused", "robots: obey")
    assert "/private" in never["detail"]


def test_urls_never_seen_are_judged_as_the_crawl_would(crawled: Crawled) -> None:
    for address, decision, rule in (
        (f"{crawled.home}/new", "would be taken", "scope: host"),
        (f"{crawled.home}/calendar/2", "would be refused", f"exclude[0]: {CALENDAR}"),
        (f"{crawled.foreign}/wanted/too", "would be taken", f"include[0]: {WANTED}"),
        (f"{crawled.foreign}/other", "would be refused", "scope: host"),
        ("https://example.org/", "would be refused", "scope: host"),
    ):
        told = wording.as_json(crawled.explained(address))
        assert (told["known"], told["state"]) == (False, "unknown")
        assert (told["decision"], told["rule"]) == (decision, rule), address
    assert "image" in crawled.explained(f"{crawled.foreign}/other").verdict.detail


def test_a_refusal_that_is_not_in_the_sample(crawled: Crawled) -> None:
    """That a rule refused more links than are kept is said of URLs that nobody knows."""
    with closing(sqlite3.connect(crawled.directory / "crawl.db")) as db, db:
        db.execute("UPDATE refusal_counts SET links = 5000 WHERE rule = 'max-depth: 3'")
    found = crawled.explained(f"{crawled.home}/somewhere/deep")
    assert wording.as_json(found)["refused_on_host"] == {"max-depth: 3": 5000}
    assert "5000 links to this host were refused by max-depth: 3" in "\n".join(wording.lines(found))


@pytest.mark.parametrize(
    "spelling", ["HTTP://127.0.0.1:{port}/x/../a#top", "127.0.0.1:{port}/a", "http://u:p@127.0.0.1:{port}/a"]
)
def test_any_spelling_of_a_url(crawled: Crawled, spelling: str) -> None:
    port = crawled.home.rpartition(":")[2]
    assert explaining.meant(spelling.format(port=port)) == f"{crawled.home}/a"


def test_the_command(crawled: Crawled, said: Said) -> None:
    told = json.loads(said("explain", str(crawled.directory), f"{crawled.home}/a", "--json"))
    assert (told["state"], told["rule"], told["running"]) == ("archived", "scope: host", False)
    words = said("explain", str(crawled.directory), f"{crawled.home}/a")
    labels = [line.split()[0] for line in words.splitlines() if not line.startswith(" ")]
    assert labels == ["url", "state", "rule", "path", "tries", "captures", "host"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "nowhere", "http://a.example/"), "does not exist"),
        (("explain", "{crawl}", "ftp://a.example/"), "is not crawled"),
        (("explain", "{crawl}", "http://"), "no host"),
        (("explain", "{crawl}"), "Missing argument"),
        (("explain", "{crawl}/archive", "http://a.example/"), "holds no crawl"),
        (("urls", "{crawl}", "--host", "nobody.example"), "knows no such host"),
        (("urls", "{crawl}", "--state", "done"), "waiting"),
        (("retry", "{crawl}", "--status", "9000"), "5xx"),
        (("retry", "{crawl}", "--failure", "bad"), "timeout"),
        (("retry", "{crawl}", "--host", "nobody.example"), "knows no such host"),
        (("retry", "{crawl}", "http://never.example/"), "is not in the crawl"),
        (("add", "{crawl}"), "no URL"),
        (("add", "{crawl}", "ftp://a.example/"), "is not crawled"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    crawled: Crawled, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (crawled.directory / "crawl.toml").read_bytes()
    assert carried_out([text.format(crawl=crawled.directory) for text in arguments]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1
    assert (crawled.directory / "crawl.toml").read_bytes() == before


Listed = Callable[..., list[str]]


@pytest.fixture(name="listed")
def lists(crawled: Crawled, said: Said) -> Listed:
    """What `archiver urls` says."""
    return lambda *options: said("urls", str(crawled.directory), *options).splitlines()


def test_lists(crawled: Crawled, listed: Listed) -> None:
    by_state: dict[str, set[str]] = {}
    for address, (state, _, _) in expected(crawled).items():
        by_state.setdefault(state, set()).add(address)
    every = set().union(*by_state.values())
    assert set(listed()) == every - by_state["refused"]
    assert set(listed("--state", "failed", "--state", "refused")) == by_state["failed"] | by_state["refused"]
    assert listed("--state", "waiting") == []
    assert len(listed("--limit", "2")) == 2
    there = listed("--host", f"{FOREIGN}:{crawled.foreign.rpartition(':')[2]}")
    assert there == sorted(address for address in every - by_state["refused"] if address.startswith(crawled.foreign))
    assert listed("--host", FOREIGN, "--state", "refused") == [f"{crawled.foreign}/page"]


def test_reasons_and_json(crawled: Crawled, listed: Listed) -> None:
    reasons = dict(line.split("\t") for line in listed("--why", "--state", "failed", "--state", "refused"))
    assert reasons[f"{crawled.home}/dead"].startswith("failed: disconnect")
    assert reasons[f"{crawled.home}/d"] == f"refused: max-depth: 3, as a link of {crawled.home}/c"
    told = [json.loads(line) for line in listed("--json")]
    statuses = {one["url"]: one["status"] for one in told}
    assert statuses[f"{crawled.home}/busy"] == 503
    assert statuses[f"{crawled.home}/gone.gif"] == 404


def test_hostile_names_are_harmless_and_a_reader_may_leave(tmp_path: Path, said: Said) -> None:
    """Long lists are read in pages, of which the first is enough for `head`."""
    now = time.time()
    crawls.finished(tmp_path, now)
    (tmp_path / "crawl.toml").write_text(toml.render(settings("https://a.example/")))
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        db.executemany(
            "INSERT INTO urls (url, host, hop, path, depth, strays, priority, note) "
            "VALUES (?, 1, 'L', 'L', 1, 0, 2, ?)",
            [(f"https://a.example/n/{number}", crawls.HOSTILE) for number in range(5000)],
        )
    every = said("urls", str(tmp_path), "--why").splitlines()
    assert len(every) == 5010
    assert all(line.replace("\t", "").isprintable() for line in every)
    by_name = said("urls", str(tmp_path), "--host", "a.example").splitlines()
    assert len(by_name) == 5005
    assert by_name == sorted(by_name)
    assert all(line.isprintable() for line in said("explain", str(tmp_path), "https://a.example/y").splitlines())
    parked = json.loads(said("explain", str(tmp_path), "https://parked.example/", "--json"))
    assert any("asked for patience" in reason for reason in parked["waits_for"])
    command = f"cd {tmp_path} && PYTHONPATH={ROOT} {sys.executable} -m archiver urls . 2>err | head -1"
    assert os.waitstatus_to_exitcode(os.system(f"{command} >out")) == 0
    assert (tmp_path / "err").read_text() == ""
    assert (tmp_path / "out").read_text().count("\n") == 1


def test_a_database_of_an_older_version_is_read(tmp_path: Path, said: Said) -> None:
    with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None)) as db:
        db.executescript(script(1))
        db.execute("INSERT INTO hosts (key) VALUES ('https://a.example')")
        db.execute(
            "INSERT INTO urls (url, host, hop, path, depth, strays, priority) "
            "VALUES ('https://a.example/', 1, 'L', '', 0, 0, 1)"
        )
    before = (tmp_path / "crawl.db").read_bytes()
    (tmp_path / "crawl.toml").write_text(toml.render(settings("https://a.example/")))
    told = json.loads(said("explain", str(tmp_path), "https://a.example/", "--json"))
    assert (told["state"], told["rule"]) == ("waiting", "seeds")
    assert said("urls", str(tmp_path)) == "https://a.example/\n"
    assert (tmp_path / "crawl.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.db", "crawl.toml"]
