"""Settings of single hosts in whole crawls, judged by what the servers saw and what is archived."""

import asyncio
import gzip
import re
from pathlib import Path

from archiver.cli import add
from archiver.config import toml
from archiver.config.host_rules import HOST_RULE
from archiver.config.option_types import Rate
from archiver.config.settings import Settings
from archiver.crawl import build
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl, settings
from fixtures.flag import Flag, Gate
from fixtures.forks import Forks
from fixtures.log import Log, Row
from fixtures.rawserver import NOT_FOUND, Answer, End, RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page

TRUNCATED = "SELECT urls.url, truncated FROM captures JOIN urls ON urls.id = captures.url"
HOSTS = ("127.0.0.1", "127.0.0.2")


def requests(log: Log, host: str) -> list[bytes]:
    return [row.request for row in log if row.name == host]


def test_each_host_gets_the_headers_of_its_rule(tmp_path: Path) -> None:
    site: dict[str, Route] = {"/": ok(page("Front", ["/two"])), "/two": ok(page("Two"))}
    rules = tuple(
        HOST_RULE.parse(text)
        for text in ("127.0.0.2 user-agent=Reader header='X-For: two'", "127.0.0.* header='X-For: all' header='X-B: c'")
    )
    with RawServer(site, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        assert crawl(tmp_path, *seeds, host=rules, contact="https://me.example/").code is ExitCode.DONE
        one, two = (requests(server.log, host) for host in HOSTS)
    assert len(one) == len(two) == 3
    assert all(b"X-For: all\r\nX-B: c\r\n" in request and b"archiver/" in request for request in one)
    assert all(b"X-For: two\r\n" in request and b"User-Agent: Reader\r\n" in request for request in two)
    assert not any(b"X-B" in request for request in two)


def test_a_response_is_cut_by_the_limit_of_its_host(tmp_path: Path) -> None:
    with RawServer({"/": ok("x" * 50_000, "text/plain")}, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        rules = (HOST_RULE.parse("127.0.0.2 max-response-size=10k"),)
        crawl(tmp_path, *seeds, host=rules, robots="ignore", dedup="off")
    received = {(url, truncated) for url, truncated in rows(tmp_path, TRUNCATED)}
    assert received == {(seeds[0], ""), (seeds[1], "length")}


def _site() -> dict[str, Route]:
    text = "User-agent: *\nDisallow: /private\nCrawl-delay: 3600"
    return {
        "/robots.txt": ok(text, "text/plain"),
        "/": ok(page("Front", ["/private", "/two"])),
        "/private": ok(page("Private")),
        "/two": ok("<meta name=robots content=nofollow><a href=/three.html>3</a>"),
        "/three.html": ok(page("Three")),
    }


def test_each_host_is_asked_by_its_own_rules_for_robots(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    rules = ("127.0.0.2 robots=ignore", "127.0.0.3 robots=observe nofollow=obey", "* crawl-delay-cap=0.01")
    with RawServer(_site(), hosts=hosts) as server:
        seeds = [server.url("/", host) for host in hosts]
        crawl(tmp_path, *seeds, host=tuple(map(HOST_RULE.parse, rules)), probe="off", rate=Rate(0))
        seen = {host: {row.target for row in server.log if row.name == host} for host in hosts}
    every = set(_site())
    assert seen == {
        hosts[0]: every - {"/private"},
        hosts[1]: every - {"/robots.txt"},
        hosts[2]: every - {"/three.html"},
    }
    assert rows(tmp_path, "SELECT url, note FROM urls WHERE note LIKE '%robots.txt%' ORDER BY url") == [
        (server.url("/private", hosts[0]), "robots.txt forbids it: Disallow: /private"),
        (server.url("/private", hosts[2]), "robots.txt would have forbidden it"),
    ]


def test_a_rebuild_judges_by_the_rules_of_each_host(tmp_path: Path, forks: Forks) -> None:
    """Secret headers of a rule are in no record but that of the request, and have to be given again."""
    with RawServer(_site(), hosts=HOSTS) as server:
        rule = (
            "127.0.0.2 nofollow=obey crawl-delay-cap=0.01 robots=observe header='Cookie: id=hunter2' header='X-A: b c'"
        )
        given = ("--host", rule, "--host", "127.0.0.2 header='Cookie: x=hunter2'", "--rate", "0", "--robots", "ignore")
        seeds = [server.url("/", host) for host in HOSTS]
        done = forks.archiver("crawl", *seeds, "-o", "c", *given, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
    kept = "SELECT url, state, note FROM urls ORDER BY url"
    refused = "SELECT url, rule FROM refusals ORDER BY url"
    before = [rows(tmp_path / "c", sql) for sql in (kept, refused)]
    assert (server.url("/three.html", HOSTS[1]), "nofollow: meta robots") in before[1]
    assert "hunter2" in (tmp_path / "c/crawl.toml").read_text()
    (tmp_path / "c/crawl.toml").unlink()
    done = forks.archiver("rebuild", "c", cwd=tmp_path)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "secrets and files of single hosts are not in the WARC files; add them" in done.stderr
    settings = (tmp_path / "c/crawl.toml").read_text()
    assert 'header = ["X-A: b c"]' in settings
    assert "hunter2" not in settings
    assert [rows(tmp_path / "c", sql) for sql in (kept, refused)] == before


def test_each_host_is_retried_as_often_as_its_rule_says(tmp_path: Path) -> None:
    broken: Route = keep(message("503 Service Unavailable", b"", retry_after="0"))
    with RawServer({"/": broken}, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        rules = (HOST_RULE.parse("127.0.0.2 retries=0"),)
        crawl(tmp_path, *seeds, host=rules, retries=1, robots="ignore", probe="off")
        assert [len(requests(server.log, host)) for host in HOSTS] == [2, 1]


def test_a_host_is_asked_without_conditions_if_its_rule_says_so(tmp_path: Path, forks: Forks) -> None:
    site = {"/": ok(page("Front", body="<p>as ever</p>" * 200), etag='"one"')}
    with RawServer(site, hosts=HOSTS) as server:
        seeds = [server.url("/", host) for host in HOSTS]
        given = ("-o", "c", "--host", "127.0.0.2 conditional=false", "--robots", "ignore", "--probe", "off")
        for arguments in (("crawl", *seeds, *given), ("crawl", "--since", "c")):
            done = forks.archiver(*arguments, cwd=tmp_path)
            assert done.returncode == ExitCode.DONE, done.stderr
        one, two = (requests(server.log, host) for host in HOSTS)
    assert [b'If-None-Match: "one"' in request for request in one] == [False, True]
    assert [b"If-None-Match" in request for request in two] == [False, False]


def test_a_seed_brings_the_settings_of_its_host(tmp_path: Path, forks: Forks) -> None:
    """From a list, in crawl.toml as a table, changed there for a later run; and what is written has no secret."""
    site: dict[str, Route] = {"/": ok(page("Front", ["/two"])), "/two": ok(page("Two"))}
    with RawServer(site, hosts=HOSTS) as server:
        one, two = (server.url("/", host) for host in HOSTS)
        (tmp_path / "seeds.txt").write_text(
            f"{one}\n{two} max-depth=0 robots=ignore header='X-A: b c' header='Cookie: id=hunter2'  # the other\n"
        )
        given = ("--seeds", "seeds.txt", "-o", "c", "--rate", "0", "--probe", "off", "--host", "* header='X-A: all'")
        done = forks.archiver("crawl", *given, cwd=tmp_path)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert [row.target for row in server.log if row.name == HOSTS[1]] == ["/"]
        first = requests(server.log, HOSTS[1])
        assert all(b"X-A: b c\r\nCookie: id=hunter2\r\n" in request for request in first)
        assert {b"X-A: all\r\n" in request for request in requests(server.log, HOSTS[0])} == {True}
        written = tmp_path / "c/crawl.toml"
        table = f'[[seed]]\nurl = "{two}"\nmax-depth = 0\nrobots = "ignore"\nheader = ['
        assert table in written.read_text()
        written.write_text(written.read_text().replace("max-depth = 0\n", 'user-agent = "Reader"\n'))
        assert forks.archiver("retry", "c", two, cwd=tmp_path).returncode == ExitCode.DONE
        assert forks.archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        later = requests(server.log, HOSTS[1])[len(first) :]
    assert len(later) == 2
    assert all(b"User-Agent: Reader\r\n" in request for request in later)
    for path in (path for path in (tmp_path / "c").rglob("*") if path.is_file() and path.name != "crawl.toml"):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        kinds = {head for head, _, rest in map(_parted, data.split(b"WARC/1.1\r\n")) if b"hunter2" in rest}
        assert kinds <= {b"request"}, path


def _parted(record: bytes) -> tuple[bytes, bytes, bytes]:
    """The type of a WARC record, or b"", and all of it."""
    found = re.search(rb"^WARC-Type: (\w+)\r\n", record, re.MULTILINE)
    return (found[1] if found else b"", b"", record)


def test_a_seed_with_settings_of_its_host_joins_a_crawl_that_runs(tmp_path: Path) -> None:
    gate, came = Gate(), Flag()

    def last(_: Row) -> Sendable:
        came.raise_()
        return ok(page("Two"))

    routes: dict[str, Route] = {
        f"//{HOSTS[0]}/": Answer((gate, NOT_FOUND, End.CLOSE)),
        f"//{HOSTS[1]}/": ok(page("Front", ["/two"])),
        f"//{HOSTS[1]}/two": last,
    }

    async def act(wanted: Settings, line: str) -> None:
        async with build.open_crawl(tmp_path, wanted, resume=False, text=toml.render(wanted)) as lifetime:
            running = asyncio.create_task(lifetime.run())
            await gate.arrived.reached()
            await asyncio.to_thread(add.add, tmp_path, [line], ())
            await came.reached()
            gate.open()
            assert (await running).code is ExitCode.DONE

    with RawServer(routes, hosts=HOSTS) as server:
        line = f"{server.url('/', HOSTS[1])} header='X-A: b c' robots=ignore"
        asyncio.run(act(settings(server.url()), line))
        asked = {row.target: row.request for row in server.log if row.name == HOSTS[1]}
    assert set(asked) >= {"/", "/two"}
    assert "/robots.txt" not in asked
    assert all(b"X-A: b c\r\n" in request for request in asked.values())
