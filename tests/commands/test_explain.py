"""`archiver explain`: every URL of a crawl, with the rule that took or refused it."""

import json
import sqlite3
import time
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver import url
from archiver.cli import entry
from archiver.cli.explain.text import explanation_json, explanation_lines
from archiver.collection.named_urls import find_in_crawl
from archiver.config import toml
from archiver.config.host_rules import HOST_RULE
from archiver.frontier import totals
from archiver.frontier.database import schema_script
from archiver.model import ExitCode
from fixtures import handmade_crawls
from fixtures.archives import rows
from fixtures.crawl_in_process import settings
from fixtures.rawserver import NOT_FOUND, RawServer, Route, keep
from fixtures.site_of_rules import CALENDAR, FOREIGN, WANTED, Crawled, expected, run
from fixtures.sites import message, ok, page

Said = Callable[..., str]


def stands_in(written: dict[str, Any], rule: str) -> bool:
    """Whether *rule* says what the settings file does: a key that is there, with its value."""
    key, _, value = rule.partition(": ")
    name, _, number = key.partition("[")
    there = written[name]
    if not value or name == "allow-private":  # "seeds", and a host that is not named
        return True
    if name == "seed":
        table = there[int(number.removesuffix("]"))]
        seed, setting = value.split()
        key, _, wanted = setting.partition("=")
        return table["url"] == seed and wanted in ([table[key]] if isinstance(table[key], str) else table[key])
    if number:
        return bool(there[int(number.removesuffix("]"))] == value)
    if isinstance(there, list):  # names between commas
        return value.partition(": ")[0] in ",".join(there).split(",")
    return value.partition(": ")[0] == (str(there).lower() if isinstance(there, bool) else str(there))


def target(directory: Path, file: str, offset: int) -> str:
    """The URL of the response record that begins at *offset* of *file*."""
    with (directory / file).open("rb") as warc:
        warc.seek(offset)
        record = next(iter(ArchiveIterator(warc)))
        assert record.rec_type == "response"
        return str(record.rec_headers.get_header("WARC-Target-URI"))


def whole(crawled: Crawled, address: str) -> dict[str, Any]:
    """What is told of *address*, after everything was checked that has to be right of any URL of a crawl."""
    found = crawled.explained(address)
    told, text = explanation_json(found), "\n".join(explanation_lines(found))
    assert json.loads(json.dumps(told)) == told
    rule = told["refused"]["rule"] if told["refused"] else told["rule"]
    assert rule in text
    assert stands_in(tomllib.loads((crawled.directory / "crawl.toml").read_text()), rule), rule
    steps = [step["url"] for step in told["path"]]
    assert steps[-1] == address
    assert steps[0] in crawled.settings.seeds or steps[0].endswith("/robots.txt")
    assert all(step in text for step in steps)
    state, answered = told["state"], told["status"] != 0
    rules = explanation_json(crawled.explained(url.join(address, "/robots.txt") or ""))
    unasked = state == rules["state"] == "failed" and rules["url"] != address  # nobody was there to say what is allowed
    assert (told["tries"] > 0) is (state in {"archived", "failed"} and not unasked) or state == "waiting"
    assert bool(told["captures"]) is answered
    for capture in told["captures"]:
        assert target(crawled.directory, capture["file"], capture["offset"]) == address
        assert f"offset {capture['offset']}" in text
    assert (told["due"] is not None) is (state == "waiting")
    assert bool(told["waits_for"]) is (state == "waiting")
    assert all(reason in text for reason in told["waits_for"])
    assert (told["host"] is None) is (state == "refused" and answers_nobody(crawled, address))
    return told


def answers_nobody(crawled: Crawled, address: str) -> bool:
    """Whether the crawl has nothing to do with the host of *address*."""
    return not rows(crawled.directory, f"SELECT 1 FROM hosts WHERE key = '{url.origin(address)}'")


def test_every_url_names_its_rule_as_the_settings_have_it(crawled: Crawled) -> None:
    met = {
        str(address) for (address,) in rows(crawled.directory, "SELECT url FROM urls UNION SELECT url FROM refusals")
    }
    wanted = expected(crawled)
    assert met == set(wanted)
    for address, (state, decision, rule) in wanted.items():
        found, told = crawled.explained(address), whole(crawled, address)
        assert (found.state, told["known"]) == (state, True), address
        if found.refused is not None:
            assert (told["refused"]["rule"], decision) == (rule, "refused"), address
        else:
            assert (told["decision"], told["rule"]) == (decision, rule), address
        text = "\n".join(explanation_lines(found))
        assert rule in text, address
        assert all(line.isprintable() for line in text.splitlines()), address


def test_where_the_link_stands(crawled: Crawled, said: Said) -> None:
    """Element and attribute, from the archive itself; for what was refused too."""
    directory, refused = (
        str(crawled.directory),
        rows(crawled.directory, "SELECT url FROM refusals ORDER BY url LIMIT 1"),
    )
    assert "(in a/@href)\n" in said("explain", directory, f"{crawled.home}/c")
    for address in (f"{crawled.home}/c", str(refused[0][0])):
        assert json.loads(said("explain", directory, address, "--json"))["link_context"] == "a/@href"
    assert json.loads(said("explain", directory, f"{crawled.home}/", "--json"))["link_context"] == ""


def test_path_tries_and_captures(crawled: Crawled) -> None:
    told = explanation_json(crawled.explained(f"{crawled.home}/c"))
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
    dead = explanation_json(crawled.explained(f"{crawled.home}/dead"))
    assert (dead["tries"], dead["failure"], dead["captures"]) == (1, "disconnect", [])


def test_the_line_of_robots_txt(crawled: Crawled) -> None:
    told = explanation_json(crawled.explained(f"{crawled.home}/private/x"))
    assert "/private" in told["detail"]
    assert f"{crawled.home}/robots.txt" in told["detail"]
    never = explanation_json(crawled.explained(f"{crawled.home}/private/never-seen"))
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
        told = explanation_json(crawled.explained(address))
        assert (told["known"], told["state"]) == (False, "unknown")
        assert (told["decision"], told["rule"]) == (decision, rule), address
    assert "image" in crawled.explained(f"{crawled.foreign}/other").verdict.detail


def test_a_refusal_that_is_not_in_the_sample(crawled: Crawled) -> None:
    """That a rule refused more links than are kept is said of URLs that nobody knows."""
    with closing(sqlite3.connect(crawled.directory / "crawl.db")) as db, db:
        db.execute("UPDATE refusal_counts SET links = 5000 WHERE rule = 'max-depth: 3'")
    found = crawled.explained(f"{crawled.home}/somewhere/deep")
    assert explanation_json(found)["refused_on_host"] == {"max-depth: 3": 5000}
    assert "5000 links to this host were refused by max-depth: 3" in "\n".join(explanation_lines(found))


@pytest.mark.parametrize(
    ("spelling", "path"),
    [
        ("HTTP://127.0.0.1:{port}/x/../a#top", "/a"),
        ("127.0.0.1:{port}/a", "/a"),
        ("http://u:p@127.0.0.1:{port}/a", "/a"),
        (" http://127.1:{port}/%61#x", "/%61"),  # another URL for a server
        ("http://127.1:{port}/c?PHPSESSID=0123456789abcdef0123456789abcdef", "/c"),
        ("http://127.1:{port}/never?PHPSESSID=0123456789abcdef0123456789abcdef", "/never"),
    ],
)
def test_any_spelling_of_a_url(crawled: Crawled, spelling: str, path: str) -> None:
    port = crawled.home.rpartition(":")[2]
    with totals.open_totals(crawled.directory) as db:
        assert find_in_crawl(db, spelling.format(port=port), crawled.settings) == f"{crawled.home}{path}"


def test_the_other_scheme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a scheme it is the one that is there; with the wrong one that is said, and nothing is guessed."""
    handmade_crawls.finished(tmp_path, time.time())
    (tmp_path / "crawl.toml").write_text(toml.render(settings("https://a.example/")))
    explain = ["explain", str(tmp_path), "--json"]
    assert entry.run([*explain, "a.example#top"]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert json.loads(out)["url"] == "https://a.example/"
    assert err == "archiver: a.example#top has no scheme; taken as https://a.example/\n"
    assert entry.run([*explain, "http://a.example/"]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert json.loads(out)["state"] == "unknown"
    assert err == "archiver: http://a.example/ is not in the crawl, but https://a.example/ is\n"
    assert entry.run(["retry", str(tmp_path), "http://a.example/"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert "it has https://a.example/" in err
    assert err.count("\n") == 1
    assert entry.run(["retry", str(tmp_path), "a.example/#top"]) == ExitCode.DONE
    assert capsys.readouterr().out.startswith("1 URL queued again")


def test_what_the_crawl_has_learned_and_where_it_may_not_go(crawled: Crawled) -> None:
    private = "allow-private: does not name it"
    for address, decision, rule, detail in (
        (f"{crawled.home}/n/77", "would be held", f"pattern-budget: 2: {crawled.home}/n/N", ""),
        ("http://192.168.1.1/wanted/inside", "would be refused", private, "192.168.1.1 is a private address"),
        ("http://localhost/inside", "would be refused", private, "127.0.0.1 is a loopback address"),
        ("http://db.localhost:81/inside", "would be refused", private, "use --allow-private db.localhost to allow it"),
        ("http://[::1]/inside", "would be refused", private, "::1 is a loopback address"),
        ("http://93.184.216.34/inside", "would be taken", "include[2]: /inside", ""),
        (f"http://{FOREIGN}/inside", "would be taken", "include[2]: /inside", ""),  # the settings name it
        (f"{crawled.apart}/own/new", "would be taken", f"seed[0]: {crawled.apart}/own/ scope=prefix", ""),
        (f"{crawled.apart}/tag/", "would be refused", f"seed[0]: {crawled.apart}/own/ exclude=/tag/", ""),
    ):
        told = explanation_json(crawled.explained(address))
        assert (told["known"], told["decision"], told["rule"]) == (False, decision, rule), address
        assert detail in told["detail"]


def test_what_waits(tmp_path: Path) -> None:
    """A crawl that reached its limit: pages that wait, and a host that asked for patience."""
    home = page("Home", [f"/{number}" for number in range(4)])
    busy = keep(message("429 Too Many Requests", b"later\n", retry_after="5000"))
    routes: dict[str, Route] = {"/": ok(home), f"//{FOREIGN}/": busy, f"//{FOREIGN}/robots.txt": keep(NOT_FOUND)}
    with RawServer(routes, hosts=("127.0.0.1", FOREIGN)) as server:
        wanted = settings(server.url(), server.url("/", FOREIGN), max_urls=2, host_concurrency=1, barren_pages=6)
        run(tmp_path, wanted)
        crawled = Crawled(tmp_path, wanted, server.url(""), server.url("", FOREIGN), "")
    every = [str(address) for (address,) in rows(tmp_path, "SELECT url FROM urls")]
    told = {address: whole(crawled, address) for address in every}
    waiting = {address for address, one in told.items() if one["state"] == "waiting"}
    assert waiting == {server.url("/", FOREIGN), *(server.url(f"/{number}") for number in range(4))}
    parked = told[server.url("/", FOREIGN)]
    assert any("its host asked us to wait, until" in reason for reason in parked["waits_for"])
    assert parked["due"] == parked["host"]["not_before"] > explanation_json(crawled.explained(server.url()))["settled"]
    assert (parked["tries"], parked["status"]) == (1, 429)
    last = told[server.url("/3")]
    assert last["waits_for"] == [
        "now",
        "3 other URLs of its host first",
        "the crawl is not running; to continue: archiver resume",
    ]
    assert last["tries"] == 0
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        for name in (server.url("/N"), f"site {server.url('')}"):
            columns = "(pattern, visits, fruitful, streak, barren)"
            db.execute("DELETE FROM pattern_tallies WHERE pattern = ?", (name,))
            db.execute(f"INSERT INTO pattern_tallies {columns} VALUES (?, 1200, 1, 1190, 1199)", (name,))
    held = explanation_json(crawled.explained(server.url("/3")))
    assert (held["decision"], held["rule"]) == ("taken", "scope: host")
    assert held["detail"] == f"but it will be held by trap-budget: 1100: {server.url('/N')}"


def test_the_command(crawled: Crawled, said: Said) -> None:
    told = json.loads(said("explain", str(crawled.directory), f"{crawled.home}/a", "--json"))
    assert (told["state"], told["rule"], told["running"]) == ("archived", "scope: host", False)
    words = said("explain", str(crawled.directory), f"{crawled.home}/a")
    labels = [line.split()[0] for line in words.splitlines() if not line.startswith(" ")]
    assert labels == ["url", "state", "rule", "path", "tries", "captures", "host"]


def test_the_settings_that_rules_set_for_the_host(tmp_path: Path, said: Said) -> None:
    """Each with its rule, and without secrets; robots.txt is judged as the crawl does on this host."""
    texts = (
        f"{FOREIGN} rate=30/60 header='Cookie: id=hunter2' header='X-A: b' conditional=false",
        "127.* rate=0 robots=observe",
    )
    forbidding = ok("User-agent: *\nDisallow: /x", "text/plain")
    with RawServer({"/robots.txt": forbidding}, hosts=("127.0.0.1", FOREIGN)) as server:
        seeds = [server.url("/", host) for host in ("127.0.0.1", FOREIGN)]
        run(tmp_path, settings(*seeds, host=tuple(map(HOST_RULE.parse, texts)), probe="off"))
        address = server.url("/x", FOREIGN)
    told = json.loads(said("explain", str(tmp_path), address, "--json"))
    first, second = f"host[0] {FOREIGN}", "host[1] 127.*"
    assert told["host_settings"] == {
        "rate": {"value": "30/60", "rule": first},
        "robots": {"value": "observe", "rule": second},
        "header": {"value": ["Cookie: [left out: a secret]", "X-A: b"], "rule": first},
        "conditional": {"value": False, "rule": first},
    }
    assert (told["decision"], told["host"]["configured"]) == ("would be taken", "rate: 30/60")
    words = said("explain", str(tmp_path), address)
    assert f"settings  rate: 30/60 ({first})\n          robots: observe ({second})\n" in words
    assert f"          conditional: false ({first})\n" in words
    assert "hunter2" not in words
    assert json.loads(said("explain", str(tmp_path), seeds[0], "--json"))["host"]["configured"] == "rate: 0 (no limit)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "nowhere", "http://a.example/"), "does not exist"),
        (("explain", "{crawl}", "ftp://a.example/"), "is not supported"),
        (("explain", "{crawl}", "http://"), "no host"),
        (("explain", "{crawl}"), "Missing argument"),
        (("explain", "{crawl}/archive", "http://a.example/"), "holds no crawl"),
        (("urls", "{crawl}", "--host", "nobody.example"), "not a host of this crawl"),
        (("urls", "{crawl}", "--state", "done"), "waiting"),
        (("retry", "{crawl}", "--status", "9000"), "5xx"),
        (("retry", "{crawl}", "--failure", "bad"), "timeout"),
        (("retry", "{crawl}", "--host", "nobody.example"), "not a host of this crawl"),
        (("retry", "{crawl}", "http://never.example/"), "is not in the crawl"),
        (("add", "{crawl}"), "no URL"),
        (("add", "{crawl}", "ftp://a.example/"), "is not supported"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    crawled: Crawled, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (crawled.directory / "crawl.toml").read_bytes()
    assert entry.run([text.format(crawl=crawled.directory) for text in arguments]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1
    assert (crawled.directory / "crawl.toml").read_bytes() == before


def test_reading_a_database_changes_nothing_on_disk(tmp_path: Path, said: Said) -> None:
    with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None)) as db:
        db.executescript(schema_script())
        db.execute("INSERT INTO hosts (key) VALUES ('https://a.example')")
        db.execute(
            "INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority) "
            "VALUES ('https://a.example/', 1, 'L', '', 0, 0, 1)"
        )
    before = (tmp_path / "crawl.db").read_bytes()
    (tmp_path / "crawl.toml").write_text(toml.render(settings("https://a.example/")))
    told = json.loads(said("explain", str(tmp_path), "https://a.example/", "--json"))
    assert (told["state"], told["rule"]) == ("waiting", "seeds")
    assert said("urls", str(tmp_path)) == "https://a.example/\n"
    assert (tmp_path / "crawl.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl.db", "crawl.toml"]
