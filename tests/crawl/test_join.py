"""Machines that crawl together: complete, each page once, joining and leaving, and settings in common."""

import os
import re
import signal
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from shutil import copytree, ignore_patterns
from subprocess import Popen
from time import monotonic, sleep

import psycopg
import pytest

from archiver import humanize
from archiver.frontier.address import shared_frontier
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver, ended, running, said
from fixtures.flag import Gate
from fixtures.postgres import DataFolder, PostgresServer, folder
from fixtures.rawserver import RawServer
from fixtures.several_hosts import PATIENCE, SeveralHosts, captures, crawlers, gated, several_hosts
from fixtures.site_with_login import PASSWORD, USER, MembersSite
from fixtures.sites import ok, page
from tests.commands.test_metrics_served import asked, port_of

pytestmark = pytest.mark.postgres
OPTIONS = ("--rate", "0", "--probe", "off", "--min-free-disk", "0")


@pytest.fixture(name="address")
def new_database(postgres_server: PostgresServer | None) -> str:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres_server.new_database()


def verified(*directories: Path) -> None:
    """No file of these machines is damaged or missing."""
    for directory in directories:
        ran = archiver("verify", directory.name, cwd=directory.parent)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def wait_for_crawlers(directory: Path, number: int) -> None:
    """Wait until *number* crawlers are alive."""
    end = monotonic() + PATIENCE
    alive = "SELECT count(*) FROM crawlers WHERE ended = 0 AND ends > extract(epoch FROM clock_timestamp())"
    while rows(directory, alive) != [(number,)]:
        assert monotonic() < end
        sleep(0.05)


@contextmanager
def two_at_work(folder: Path, address: str, hosts: SeveralHosts) -> Iterator[tuple[Popen[str], Popen[str], Gate, str]]:
    """Crawl *hosts* with two machines, in one/ and two/ below *folder*.

    Yields both processes, a gate that keeps the crawl from ending, and the URL of the page behind it.
    """
    gate = Gate()
    with gated(gate) as server:
        start = ("crawl", "-o", "one", *OPTIONS, "--frontier", address, server.url())
        with running(*start, cwd=folder) as first:
            gate.arrived.wait()
            with running("join", address, "-o", "two", "--name", "second", cwd=folder) as second:
                wait_for_crawlers(folder / "one", 2)
                ran = archiver("add", "one", *hosts.seeds, cwd=folder)
                assert ran.returncode == 0, ran.stderr
                assert hosts.reached.wait(PATIENCE)
                yield first, second, gate, server.url()


def test_machines_share_the_hosts_and_each_may_leave_and_come_back(tmp_path: Path, address: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with (
        several_hosts(hosts=6, after=100) as hosts,
        two_at_work(tmp_path, address, hosts) as (first, second, gate, last),
    ):
        second.send_signal(signal.SIGINT)
        _, err = second.communicate(timeout=PATIENCE)
        assert second.returncode == ExitCode.STOPPED, err
        assert "the crawl goes on, on other machines" in err
        with running("resume", "two", cwd=tmp_path) as again:
            wait_for_crawlers(one, 2)
            gate.open()
            for process in (first, again):
                _, err = process.communicate(timeout=PATIENCE)
                assert process.returncode == ExitCode.DONE, err
    assert captures(one) == dict.fromkeys({*hosts.pages, last}, 1)
    for directory in (one, two):
        assert any("~" in file.name for file in warcs(directory))  # both have crawled
    assert rows(one, "SELECT exit_code FROM runs") == [(ExitCode.DONE,)]
    verified(one, two)


def test_a_machine_that_is_killed_comes_back_while_the_others_go_on(tmp_path: Path, address: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with (
        several_hosts(hosts=6, after=100) as hosts,
        two_at_work(tmp_path, address, hosts) as (first, second, gate, last),
    ):
        for victim in (*crawlers(second.pid), second.pid):
            os.kill(victim, signal.SIGKILL)
        second.communicate(timeout=PATIENCE)
        with running("resume", "two", cwd=tmp_path) as again:
            gate.open()
            for process in (first, again):
                _, err = process.communicate(timeout=PATIENCE)
                assert process.returncode == ExitCode.DONE, err
    assert captures(one).keys() == {*hosts.pages, last}
    assert rows(one, "SELECT DISTINCT closed FROM warcs") == [(1,)]
    verified(one, two)


def test_each_machine_serves_its_own_metrics(tmp_path: Path, address: str) -> None:
    gate = Gate()
    with gated(gate) as server:
        start = ("crawl", "-o", "one", *OPTIONS, "--frontier", address, "--metrics", "0", server.url())
        with running(*start, cwd=tmp_path) as first:
            ports = [port_of(said(first, "metrics at"))]
            gate.arrived.wait()
            join = ("join", address, "-o", "two", "--name", "second", "--metrics", "0")
            with running(*join, cwd=tmp_path) as second:
                ports.append(port_of(said(second, "metrics at")))
                wait_for_crawlers(tmp_path / "one", 2)
                for port, machine in zip(ports, ("", "second"), strict=True):
                    status, text = asked(port)
                    assert status == 200
                    assert re.search(rf'archiver_crawler_info{{.*machine="[^"]*{machine}[^"]*"', text), text
                gate.open()
                for process in (first, second):
                    code, err = ended(process)
                    assert code == ExitCode.DONE, err


def test_settings_are_those_of_all_machines(tmp_path: Path, address: str) -> None:
    """A change counts for all, unless others crawl at the moment."""
    gate = Gate()
    with gated(gate) as server, several_hosts(hosts=1) as hosts:
        seeds = [server.url(), *hosts.seeds]
        ran = archiver(
            "crawl", "-o", "one", *OPTIONS, "--frontier", address, "--max-urls", "2", *seeds[1:], cwd=tmp_path
        )
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        ran = archiver("join", address, "-o", "two", "--name", "second", "--concurrency", "7", cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        gate_page = ("--max-urls", "0", "--max-depth", "9")
        ran = archiver("add", "one", server.url(), cwd=tmp_path)
        with running("resume", "one", *gate_page, cwd=tmp_path) as first:
            gate.arrived.wait()
            ran = archiver("resume", "two", "--max-depth", "3", cwd=tmp_path)
            assert ran.returncode == ExitCode.USAGE
            assert "crawlers on other machines run with other settings; stop them first" in ran.stderr
            with running("resume", "two", cwd=tmp_path) as second:
                wait_for_crawlers(tmp_path / "one", 2)
                gate.open()
                for process in (first, second):
                    _, err = process.communicate(timeout=PATIENCE)
                    assert process.returncode == ExitCode.DONE, err
    given = tomllib.loads((tmp_path / "two" / "crawl.toml").read_text())
    assert (given["max-urls"], given["max-depth"], given["concurrency"]) == (0, 9, 7)
    shared = shared_frontier(tmp_path / "two" / "crawl.db")
    assert shared is not None
    assert rows(tmp_path / "one", "SELECT revision FROM settings") == [(shared.revision,)]


def test_one_crawl_with_a_secret_gives_it_to_no_other_machine(tmp_path: Path, address: str) -> None:
    with several_hosts(hosts=1) as hosts:
        secret = ("--header", "X-Api-Key: hidden-word", "--insecure-secrets", "127.0.0.1")
        first = ("crawl", "-o", "one", *OPTIONS, *secret, "--frontier", address, "--max-urls", "2", *hosts.seeds)
        ran = archiver(*first, cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        assert "hidden-word" not in str(rows(tmp_path / "one", "SELECT text FROM settings")[0][0])
        ran = archiver("join", address, "-o", "two", "--name", "second", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "the crawl sends secrets that the database does not hold (X-Api-Key); copy crawl.toml" in ran.stderr
        assert not (tmp_path / "two").exists()
        more = ("--config", "one/crawl.toml")
        ran = archiver("join", address, "-o", "two", "--name", "second", *more, cwd=tmp_path)
    assert ran.returncode == ExitCode.LIMIT, ran.stderr


def test_who_cannot_join(tmp_path: Path, address: str, postgres_server: PostgresServer) -> None:
    gate = Gate()
    empty = postgres_server.new_database()
    with (
        gated(gate) as server,
        running("crawl", "-o", "one", *OPTIONS, "--frontier", address, server.url(), cwd=tmp_path) as first,
    ):
        gate.arrived.wait()
        for arguments, words in (
            ((address, "-o", "one"), "is in use by"),
            ((address, "-o", "two"), "choose another"),
            ((address, "-o", "two", "--name", "a/b"), "use at most 60 of A-Z a-z 0-9 . -"),
            ((empty, "-o", "three"), "holds no crawl that a further machine can join"),
            (("postgresql://me@nowhere.invalid/crawl", "-o", "three"), "nowhere.invalid"),
            (("sqlite:///x", "-o", "three"), "is not the address of a PostgreSQL database"),
            (("postgresql://me:hidden@127.0.0.1/x", "-o", "three"), "must not hold a password"),
        ):
            ran = archiver("join", *arguments, cwd=tmp_path)
            assert ran.returncode == ExitCode.USAGE, (arguments, ran.stderr)
            assert words in ran.stderr, (arguments, ran.stderr)
            assert len(ran.stderr.splitlines()) <= 2, ran.stderr
        assert not (tmp_path / "three").exists()
        gate.open()
        _, err = first.communicate(timeout=PATIENCE)
        assert first.returncode == ExitCode.DONE, err


def test_a_crawl_that_logs_in_runs_on_one_machine(
    tmp_path: Path, address: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PASSWORD", PASSWORD)
    site, gate = MembersSite(), Gate()
    with gated(gate) as slow, RawServer(site.routes) as server:
        login = ("--login", f"{server.url('/login')} user={USER} password=env:SITE_PASSWORD success=cookie:sid")
        start = ("crawl", "-o", "one", *OPTIONS, *login, "--frontier", address, server.url(), slow.url())
        with running(*start, cwd=tmp_path) as first:
            gate.arrived.wait()
            ran = archiver("join", address, "-o", "two", "--name", "second", cwd=tmp_path)
            assert (ran.returncode, ran.stderr.count("\n")) == (ExitCode.USAGE, 1)
            assert "holds a crawl that no further machine can join: with --login or on Windows it runs on" in ran.stderr
            assert not (tmp_path / "two").exists()
            copytree(tmp_path / "one", tmp_path / "copy", ignore=ignore_patterns("crawl.lock"))
            ran = archiver("resume", "copy", "--trust-settings", cwd=tmp_path)
            assert ran.returncode == ExitCode.STORAGE
            assert "or --browser or on Windows runs alone; stop them first" in ran.stderr.splitlines()[-1]
            gate.open()
            code, err = ended(first)
            assert code == ExitCode.DONE, err
        shared = postgres_server.new_database()
        ran = archiver("crawl", "-o", "three", *OPTIONS, "--frontier", shared, slow.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        ran = archiver("join", shared, "-o", "four", "--name", "second", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        ran = archiver("resume", "three", *login, cwd=tmp_path)
        assert (ran.returncode, ran.stderr.count("\n")) == (ExitCode.USAGE, 1)
        assert "--login: a crawl that logs in runs on one machine, and second crawled too; leave it out" in ran.stderr


@pytest.fixture(name="stopped_server")
def a_server_that_is_away() -> Iterator[DataFolder]:
    if folder() is None:
        pytest.skip("PostgreSQL is not installed")
    data = DataFolder()
    yield data
    data.delete()


def test_a_machine_that_starts_before_its_database_waits(tmp_path: Path, stopped_server: DataFolder) -> None:
    address = f"postgresql://tester@127.0.0.1:{stopped_server.port}/postgres"
    told = f"archiver: waiting up to 2 minutes for {address}: Connection refused; Ctrl+C stops\n"
    with several_hosts(hosts=1) as hosts:
        for command in (
            ("crawl", "-o", "one", *OPTIONS, "--frontier", address, *hosts.seeds),
            ("resume", "one"),
            ("resume", "one", "--frontier", address),
            ("join", address, "-o", "two", "--name", "second", "--min-free-disk", "0"),
        ):
            with running(*command, cwd=tmp_path) as process:
                assert said(process, "waiting") == told
                with stopped_server.started():
                    code, err = ended(process)
            assert code == ExitCode.DONE, err
    with running("resume", "one", cwd=tmp_path) as process:
        assert said(process, "waiting") == told
        process.send_signal(signal.SIGINT)
        code, err = ended(process)
        assert (code, err.strip()) == (ExitCode.STOPPED, "archiver: interrupted")


def test_each_machine_says_where_a_capture_is(tmp_path: Path, address: str) -> None:
    """One directory has the WARC files of its machine alone; what is said there is true of all, or says so."""
    with several_hosts(hosts=2, pages=5) as hosts:
        options = ("--frontier", address, *OPTIONS, "--max-urls", "4")
        ran = archiver("crawl", "-o", "one", *options, *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        ran = archiver("join", address, "-o", "two", "--name", "second", cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        seed = hosts.seeds[0]
    verified(tmp_path / "one", tmp_path / "two")
    name, shared = warcs(tmp_path / "one")[0].name, shared_frontier(tmp_path / "one/crawl.db")
    assert shared is not None
    for directory in ("one", "two"):
        told = archiver("explain", directory, seed, cwd=tmp_path)
        assert f"archive/{name} of {shared.machine}, offset" in told.stdout
        status = archiver("status", directory, cwd=tmp_path).stdout
        assert f"{shared.machine}: no crawler" in status
        assert "4 archived" in status
    listed = archiver("ls", "two", cwd=tmp_path)
    assert f"these are the captures of second only; {shared.machine} has others" in listed.stderr
    assert f"to list all: archiver index {address} -o whole, then archiver ls whole" in listed.stderr
    got = archiver("get", "two", seed, cwd=tmp_path)
    assert got.returncode == ExitCode.USAGE
    assert f"two holds no capture of {seed}; another machine may hold one: archiver explain two {seed}" in got.stderr
    ran = archiver("index", address, "-o", "whole", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    parts = [(tmp_path / each / "indexes/index.cdxj").read_bytes().splitlines() for each in ("one", "two")]
    assert (tmp_path / "whole/indexes/index.cdxj").read_bytes().splitlines() == sorted(parts[0] + parts[1])
    listed = archiver("ls", "whole", cwd=tmp_path)
    assert len(listed.stdout.splitlines()) == len(parts[0] + parts[1])
    assert "these are the captures of" not in listed.stderr
    server, _, database = address.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as db:
        db.execute(f'ALTER DATABASE "{database}" RENAME TO "{database}_away"'.encode())
    listed = archiver("ls", "two", cwd=tmp_path)
    assert (listed.returncode, len(listed.stdout.splitlines())) == (0, len(parts[1]))
    assert "these are the captures of second only; its database, which knows of others, cannot be read" in listed.stderr


def test_a_directory_may_be_moved(tmp_path: Path, address: str) -> None:
    """Its WARC files show that it is the same machine."""
    with several_hosts(hosts=1) as hosts:
        ran = archiver(
            "crawl", "-o", "one", *OPTIONS, "--frontier", address, "--max-urls", "3", *hosts.seeds, cwd=tmp_path
        )
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        (tmp_path / "one").rename(tmp_path / "moved")
        ran = archiver("join", address, "-o", "other", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "choose another" in ran.stderr
        ran = archiver("resume", "moved", "--max-urls", "0", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert captures(tmp_path / "moved") == dict.fromkeys(hosts.pages, 1)
    (named,) = rows(tmp_path / "moved", "SELECT directory FROM machines")
    assert str(named[0]).endswith(str(tmp_path / "moved"))
    verified(tmp_path / "moved")


CAPTURES_OF_SECOND = """
SELECT urls.url, warcs.name FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc
WHERE warcs.machine = 'second'
"""


def listed_losses(text: str) -> list[tuple[str, ...]]:
    """Return URL, what is lost, and file of each line in a list of losses."""
    head, *lines = (line.split("\t") for line in text.splitlines())
    assert head == ["url", "lost", "file", "date", "status", "machine"]
    assert all(line[5] == "second" for line in lines)
    return sorted(tuple(line[:3]) for line in lines)


def test_what_revisits_a_lost_record_is_lost_too(tmp_path: Path, address: str) -> None:
    """Lists of several machines follow each other, and the report has them."""
    same = ok(Random(1).randbytes(3000), "image/png")
    with RawServer({"/": ok(page("Home", ["/a", "/b"])), "/a": same, "/b": same}) as server:
        crawl = ("crawl", "-o", "one", *OPTIONS, "--warc-size", "1k", "--frontier", address, server.url())
        assert archiver(*crawl, cwd=tmp_path).returncode == ExitCode.DONE
    with_payload = "SELECT url, warc FROM captures WHERE status = 200 AND mime = 'image/png' AND revisit = ''"
    (stored,) = rows(tmp_path / "one", with_payload)
    urls = {row[0]: str(row[1]) for row in rows(tmp_path / "one", "SELECT id, url FROM urls")}
    other = {server.url("/a"), server.url("/b")} - {urls[stored[0]]}
    with psycopg.connect(address) as db:
        db.execute("INSERT INTO machines (name, directory, joined, seen) VALUES ('second', 'there:/two', 0, 0)")
        db.execute("UPDATE warcs SET machine = 'second' WHERE id = %s", (stored[1],))
    ran = archiver("forget", "second", "one", cwd=tmp_path)
    assert "second is written off; 2 URLs queued again" in ran.stdout, ran.stderr
    listed = (tmp_path / "one/reports/written-off.tsv").read_text()
    assert [line[:2] for line in listed_losses(listed)] == sorted([(urls[stored[0]], "capture"), (*other, "payload")])
    (first,) = rows(tmp_path / "one", "SELECT name FROM machines WHERE name <> 'second'")
    ran = archiver("forget", str(first[0]), "one", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    more = (tmp_path / "one/reports/written-off.tsv").read_text()
    assert more.startswith(listed)
    assert f"\t{first[0]}\n" in more.removeprefix(listed)
    assert "written-off" in archiver("report", "one", "--json", cwd=tmp_path).stdout


@pytest.mark.parametrize("store", [False, True])
def test_a_machine_that_never_comes_back_is_written_off(tmp_path: Path, address: str, *, store: bool) -> None:
    """Only what was on its disk alone is fetched again, and it cannot join any more."""
    one, two = tmp_path / "one", tmp_path / "two"
    stores = ("--store", f"file://{tmp_path}/store", "--warc-size", "1k") if store else ()
    gate = Gate()
    with gated(gate) as server, several_hosts(hosts=6, after=100) as hosts:
        start = ("crawl", "-o", "one", *OPTIONS, *stores, "--frontier", address, server.url())
        with running(*start, cwd=tmp_path) as first:
            gate.arrived.wait()
            trust = ("--trust-settings",) if store else ()
            with running("join", address, "-o", "two", "--name", "second", *trust, cwd=tmp_path) as second:
                wait_for_crawlers(one, 2)
                ran = archiver("add", "one", *hosts.seeds, cwd=tmp_path)
                assert ran.returncode == 0, ran.stderr
                assert hosts.reached.wait(PATIENCE)
                for victim in (*crawlers(second.pid), second.pid):
                    os.kill(victim, signal.SIGKILL)
                second.communicate(timeout=PATIENCE)
            if store:
                ran = archiver("store", "send", "two", cwd=tmp_path)
                assert ran.returncode == 0, ran.stderr
            kept = tmp_path / "kept"
            two.rename(kept)
            ran = archiver("forget", "second", address, cwd=tmp_path)
            assert ran.returncode == ExitCode.USAGE
            assert "second is alive; stop it, or say --force" in ran.stderr
            before = rows(one, "SELECT name FROM warcs WHERE machine = 'second' AND closed = 1")
            ran = archiver("forget", "second", address, "--force", "--dry-run", "-o", "lost.tsv", cwd=tmp_path)
            assert "would be queued again" in ran.stdout, ran.stderr
            listed = (tmp_path / "lost.tsv").read_text()
            assert archiver("forget", "second", "one", "--force", "--dry-run", cwd=tmp_path).returncode == 0
            assert not (one / "reports").exists()
            held = rows(one, CAPTURES_OF_SECOND)
            ran = archiver("forget", "second", "one", "--force", cwd=tmp_path)
            assert ran.returncode == 0, ran.stderr
            assert (one / "reports/written-off.tsv").read_text() == listed
            kept_files = {name for (name,) in before} if store else set()
            assert listed_losses(listed) == sorted(
                (url, "capture", file) for url, file in held if file not in kept_files
            )
            number = humanize.count(len(listed.splitlines()) - 1, "lost capture")
            assert f"{number} listed in one/reports/written-off.tsv" in ran.stderr
            assert "second is written off; " in ran.stdout
            left = rows(one, "SELECT name FROM warcs WHERE machine = 'second'")
            assert left == (before if store else [])
            gate.open()
            _, err = first.communicate(timeout=PATIENCE)
            assert first.returncode == ExitCode.DONE, err
        assert captures(one) == dict.fromkeys({*hosts.pages, server.url()}, 1)
        kept.rename(two)
        ran = archiver("resume", "two", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "second was written off by archiver forget" in ran.stderr
    verified(one)
