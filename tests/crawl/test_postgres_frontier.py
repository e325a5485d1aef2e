"""A whole crawl whose frontier is in PostgreSQL: complete, continued after a kill, read and changed by commands."""

import asyncio
import csv
import os
import signal
from pathlib import Path

import pytest

from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.crawl.recrawl import set_aside
from archiver.frontier.address import address_of, write_address
from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.command import archiver, running
from fixtures.conditional_site import Page, fields, served
from fixtures.postgres import PostgresServer
from fixtures.rawserver import RawServer, Route
from fixtures.several_hosts import PATIENCE, SeveralHosts, captures, several_hosts
from fixtures.sites import page

pytestmark = pytest.mark.postgres
OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0")


@pytest.fixture(name="address")
def new_database(postgres_server: PostgresServer | None) -> str:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres_server.new_database()


def complete(folder: Path, hosts: SeveralHosts) -> None:
    """Each page is captured once, and what the database says is what the files hold."""
    assert captures(folder / "c") == dict.fromkeys(hosts.pages, 1)
    ran = archiver("verify", "c", cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not (folder / "c" / "crawl.db").exists()


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_crawl_in_postgresql_is_complete(tmp_path: Path, address: str, processes: str) -> None:
    with several_hosts() as hosts:
        ran = archiver("crawl", *OPTIONS, "--frontier", address, "--processes", processes, *hosts.seeds, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    complete(tmp_path, hosts)


def test_commands_read_and_change_it(tmp_path: Path, address: str) -> None:
    with several_hosts() as hosts:
        seed = hosts.seeds[0]
        ran = archiver("crawl", *OPTIONS, "--frontier", address, "--max-urls", "3", *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        for command in (("status",), ("report",), ("urls",), ("explain",)):
            more = (seed,) if command == ("explain",) else ()
            ran = archiver(*command, "c", *more, cwd=tmp_path)
            assert ran.returncode == 0, (command, ran.stderr)
            assert ran.stdout
        ran = archiver("add", "c", f"{seed}further", cwd=tmp_path)
        assert "1 seed added" in ran.stdout + ran.stderr
        ran = archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
        assert ran.returncode in {ExitCode.DONE, ExitCode.TROUBLE}, ran.stderr
    assert set(states(tmp_path / "c").values()) <= {"archived", "excluded"}


def test_a_killed_crawl_goes_on(tmp_path: Path, address: str) -> None:
    with several_hosts(after=20) as hosts:
        with running("crawl", *OPTIONS, "--frontier", address, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate(timeout=PATIENCE)
        ran = archiver("resume", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert captures(tmp_path / "c").keys() == hosts.pages
    ran = archiver("verify", "c", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("postgresql://me:hidden@127.0.0.1/crawl", "must not hold a password; put it into ~/.pgpass or PGPASSWORD"),
        ("postgresql://me@127.0.0.1/crawl?passfile=/tmp/hidden", "is not the address of a PostgreSQL database"),
        ("mysql://127.0.0.1/crawl", "is not the address of a PostgreSQL database (postgresql://HOST/NAME"),
        ("postgresql://me@nowhere.invalid/crawl", "nowhere.invalid"),
    ],
)
def test_an_address_that_cannot_be_used(tmp_path: Path, given: str, words: str) -> None:
    ran = archiver("crawl", "-o", "c", "--frontier", given, "http://127.0.0.1:1/", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert words in ran.stderr
    assert "hidden@" not in ran.stderr
    assert not (tmp_path / "c").exists()


def test_a_database_holds_one_crawl(tmp_path: Path, address: str) -> None:
    with several_hosts() as hosts:
        first = ("crawl", *OPTIONS, "--frontier", address, "--max-urls", "1", hosts.seeds[0])
        archiver(*first, cwd=tmp_path)
        ran = archiver("crawl", "-o", "d", "--frontier", address, hosts.seeds[0], cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert "it holds a crawl already; name an empty database" in ran.stderr


def test_a_received_collection_names_no_server(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the key of another user, the address counts only if this user names it."""
    with several_hosts() as hosts:
        ran = archiver("crawl", *OPTIONS, "--frontier", address, "--max-urls", "1", hosts.seeds[0], cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        (tmp_path / "state").mkdir()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        ran = archiver("status", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "if you trust it: archiver resume c --frontier ADDRESS" in ran.stderr
        ran = archiver("resume", "c", "--frontier", address, "--max-urls", "0", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert rows(tmp_path / "c", "SELECT count(*) FROM urls WHERE state = 'waiting'") == [(0,)]


@pytest.mark.parametrize("earlier", ["postgresql", "crawl.db"])
def test_a_rebuild_fills_an_empty_database(
    tmp_path: Path, address: str, postgres_server: PostgresServer, earlier: str
) -> None:
    """With what the earlier database said, and the crawl goes on there."""
    was = postgres_server.new_database()
    frontier = ("--frontier", was) if earlier == "postgresql" else ()
    with several_hosts() as hosts:
        ran = archiver("crawl", *OPTIONS, *frontier, "--max-urls", "20", *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        before = account(tmp_path)
        ran = archiver("rebuild", "c", "--frontier", address, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert account(tmp_path) == before
        assert address_of(tmp_path / "c" / "crawl.db") == address
        ran = archiver("resume", "c", "--max-urls", "0", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    complete(tmp_path, hosts)


def test_machines_add_their_files_to_a_rebuilt_database(
    tmp_path: Path, address: str, postgres_server: PostgresServer
) -> None:
    was = postgres_server.new_database()
    with several_hosts(hosts=2) as hosts:
        here, there = hosts.seeds
        for words in (
            ("crawl", *OPTIONS, "--frontier", was, here),
            ("add", was, there),
            ("join", was, "-o", "d", "--name", "second", "--min-free-disk", "0"),
            ("rebuild", "c", "--frontier", address),
            ("resume", "d", "--frontier", address),
            ("resume", "c"),
            ("verify", "c", "d"),
        ):
            ran = archiver(*words, cwd=tmp_path)
            assert ran.returncode == ExitCode.DONE, (words, ran.stdout, ran.stderr)
        assert {url: times for url, times in hosts.asked().items() if url in hosts.pages} == dict.fromkeys(
            hosts.pages, 1
        )
    assert captures(tmp_path / "c") == captures(tmp_path / "d") == dict.fromkeys(hosts.pages, 1)


@pytest.mark.parametrize("earlier", ["postgresql", "crawl.db"])
def test_a_recrawl_reads_the_earlier_database(
    tmp_path: Path, address: str, postgres_server: PostgresServer, earlier: str
) -> None:
    """It asks under the conditions of what is stored, and the report says what has changed."""
    frontier = ("--frontier", postgres_server.new_database()) if earlier == "postgresql" else ()
    site: dict[str, Page | Route] = {
        "/": Page(page("Home", ["/same", "/changed"]), etag='"h"'),
        "/same": Page(page("Same"), etag='"s-1"'),
        "/changed": Page(page("One"), etag='"c-1"'),
    }
    with RawServer(served(site)) as server:
        ran = archiver("crawl", *OPTIONS, *frontier, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        if frontier:
            ran = archiver("recrawl", "c", cwd=tmp_path)
            assert (ran.returncode, "it holds a crawl already" in ran.stderr) == (ExitCode.USAGE, True)
        before = len(server.log)
        server.routes = served({**site, "/changed": Page(page("Two"), etag='"c-2"')})
        ran = archiver("recrawl", "c", "--frontier", address, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        asked = {row.target: fields(row).get("if-none-match") for row in list(server.log)[before:]}
        assert changed(tmp_path, server) == {"/": "unchanged", "/same": "unchanged", "/changed": "changed"}
        ran = archiver("recrawl", "c", "--frontier", postgres_server.new_database(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert changed(tmp_path, server) == dict.fromkeys(site, "unchanged")
    assert asked == {"/robots.txt": None, "/": '"h"', "/same": '"s-1"', "/changed": '"c-1"'}
    revisits = "SELECT count(*) FROM captures WHERE revisit = 'server-not-modified'"
    assert rows(tmp_path / "c", revisits) == [(3,)]
    kept = sorted(path.name for path in (tmp_path / "c" / "crawls").glob("*/crawl.*") if path.suffix != ".toml")
    assert kept == sorted((f"crawl.{'postgresql' if frontier else 'db'}", "crawl.postgresql"))
    ran = archiver("verify", "c", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("postgresql://x@127.0.0.1:1/x\nno mark\n", ExitCode.USAGE, "you have not named its database on this machine"),
        ("", ExitCode.STORAGE, "it is the database of an earlier crawl"),
    ],
)
def test_an_earlier_database_that_cannot_be_read(tmp_path: Path, words: str, code: ExitCode, told: str) -> None:
    with several_hosts(hosts=1, pages=3) as hosts:
        archiver("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path)
    earlier = tmp_path / "c" / "crawls" / "20260101000000"
    earlier.mkdir(parents=True)
    if words:
        (earlier / "crawl.postgresql").write_text(words)
    else:
        write_address(earlier / "crawl.db", "postgresql://x@127.0.0.1:1/x")
    for command in ("report", "resume"):
        ran = archiver(command, "c", cwd=tmp_path)
        assert ran.returncode == code
        assert told in ran.stderr
        assert f"move {earlier.relative_to(tmp_path)} away to do without it" in ran.stderr


def changed(folder: Path, server: RawServer) -> dict[str, str]:
    """Return the targets that the report compares with the earlier crawl, and its words."""
    with (folder / "c" / "reports" / "changes.tsv").open(newline="") as file:
        return {row["url"].removeprefix(server.url("")): row["change"] for row in csv.DictReader(file, delimiter="\t")}


def test_a_recrawl_that_was_cut_off_before_the_address_was_written(
    tmp_path: Path, address: str, postgres_server: PostgresServer
) -> None:
    with several_hosts(hosts=1) as hosts:
        was = postgres_server.new_database()
        archiver("crawl", *OPTIONS, "--frontier", was, *hosts.seeds, cwd=tmp_path)
        text = (tmp_path / "c" / "crawl.toml").read_text()
        newer = text.replace(was, address)
        asyncio.run(set_aside(tmp_path / "c", with_values(Settings(), toml.parse(text, "crawl.toml")), newer, text))
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "archiver resume c --frontier ADDRESS" in ran.stderr
        ran = archiver("resume", "c", "--frontier", address, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert captures(tmp_path / "c").keys() <= hosts.pages


def account(folder: Path) -> list[object]:
    """Return what the database says, without the order in which rows were made."""
    queries = (
        "SELECT url, state, hop, path, depth, tries, status FROM urls ORDER BY url",
        "SELECT payload_digest, timestamp, status, mime FROM captures ORDER BY timestamp, payload_digest",
        "SELECT name, committed, closed, indexed, digest FROM warcs WHERE name NOT LIKE '%meta%' ORDER BY name",
        "SELECT count(*) FROM seeds",
    )
    return [rows(folder / "c", each) for each in queries]


def test_a_rebuild_needs_an_empty_database(tmp_path: Path, address: str) -> None:
    with several_hosts() as hosts:
        archiver("crawl", *OPTIONS, "--frontier", address, "--max-urls", "1", hosts.seeds[0], cwd=tmp_path)
    for words, told in (
        (("rebuild", "c"), "name an empty database in which it is made again: archiver rebuild c --frontier ADDRESS"),
        (("rebuild", "c", "--frontier", address), "it holds a crawl already; name an empty database"),
    ):
        ran = archiver(*words, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert told in ran.stderr
