"""A whole crawl whose frontier is in PostgreSQL: complete, continued after a kill, read and changed by commands."""

import os
import signal
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, states
from fixtures.command import archiver, running
from fixtures.postgres import PostgresServer
from fixtures.several_hosts import PATIENCE, SeveralHosts, captures, several_hosts

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
        ("postgresql://me@127.0.0.1:1/crawl", "refused"),
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
