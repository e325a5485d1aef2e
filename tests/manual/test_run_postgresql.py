"""The page on running PostgreSQL: its commands, settings and lines work, and a restored copy loses nothing."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from archiver.model import ExitCode
from fixtures import postgres
from fixtures.archives import rows
from fixtures.command import ROOT, archiver
from fixtures.postgres import PostgresServer
from fixtures.several_hosts import SeveralHosts, captures, several_hosts

PAGE = (ROOT / "docs" / "how-to" / "run-postgresql-for-a-crawl.md").read_text("utf-8")
OPTIONS = ("-o", "DIR", "--rate", "0", "--probe", "off", "--min-free-disk", "0")

pytestmark = pytest.mark.postgres


@pytest.fixture(name="server", scope="module")
def one_server() -> Iterator[PostgresServer]:
    if postgres.folder() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.running() as server:
        yield server


def blocks(language: str) -> list[list[str]]:
    """Return the lines of each piece of the page in *language*."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return [text.splitlines() for text in found]


def test_settings_are_understood(server: PostgresServer) -> None:
    with psycopg.connect(server.address(), autocommit=True) as db:
        (lines,) = blocks("ini")
        for name, value in (line.split(" = ") for line in lines):
            db.execute(f"ALTER SYSTEM SET {name} = '{value.strip(chr(39))}'".encode())  # refuses what it does not know
        db.execute("ALTER SYSTEM RESET ALL")
        for name in re.findall(r"`(\w+) = '", PAGE):
            assert db.execute("SELECT 1 FROM pg_settings WHERE name = %s", (name,)).fetchone(), name


def test_the_line_that_lets_crawlers_in_is_understood(server: PostgresServer) -> None:
    (line,) = re.findall(r"^hostssl .*$", PAGE, re.MULTILINE)
    with psycopg.connect(server.address(), autocommit=True) as db:
        path = Path(str((db.execute("SHOW hba_file").fetchone() or ("",))[0]))
        before = path.read_text()
        path.write_text(line.replace("hostssl", "host") + f"\n{before}")  # this server has no certificate
        rule = (
            "SELECT type, database, user_name, auth_method, error FROM pg_hba_file_rules ORDER BY line_number LIMIT 1"
        )
        found = db.execute(rule).fetchone()
        path.write_text(before)
    assert found == ("host", ["crawl"], ["crawl"], "scram-sha-256", None)


def typed(line: str, folder: Path, server: PostgresServer) -> None:
    """Run one command of the page as the server's superuser."""
    line = line.replace("sudo -u postgres ", "").replace("@db.example/", f"@127.0.0.1:{server.port}/")
    place = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "tester"}
    words = line.replace("/backup/", f"{folder}/").split()
    if words[0] == "archiver":
        ran = archiver(*words[1:], "--max-urls", "0", cwd=folder)
    else:
        env = {**os.environ, **place, "PATH": f"{postgres.folder()}:{os.environ['PATH']}"}
        secret = "secret\nsecret\n"  # for createuser
        ran = subprocess.run(
            words,
            cwd=folder,
            env=env,
            input=secret,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
    assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"


def test_a_restored_copy_loses_nothing(server: PostgresServer, tmp_path: Path) -> None:
    """The database knows a third of the pages, the files of this machine two. No page is requested twice."""
    install, back_up, restore = blocks("sh")
    for line in install[1:]:  # the first installs it
        typed(line, tmp_path, server)
    address = f"postgresql://crawl@127.0.0.1:{server.port}/crawl"
    with several_hosts(hosts=3) as hosts:
        _crawl_to(30, tmp_path, hosts, "crawl", *OPTIONS, "--frontier", address, *hosts.seeds)
        for line in back_up:
            typed(line, tmp_path, server)
        assert (tmp_path / "base" / "PG_VERSION").exists()
        _crawl_to(60, tmp_path, hosts, "resume", "DIR")
        for line in restore:
            typed(line, tmp_path, server)
        assert captures(tmp_path / "DIR") == dict.fromkeys(hosts.pages, 1)
        assert set(hosts.asked().values()) == {1}
    assert rows(tmp_path / "DIR", "SELECT count(*) FROM warcs WHERE closed = 0") == [(0,)]
    ran = archiver("verify", "DIR", cwd=tmp_path)
    assert (ran.returncode, "0 warnings" in ran.stdout) == (0, True), ran.stdout + ran.stderr


def _crawl_to(pages: int, folder: Path, hosts: SeveralHosts, *words: str) -> None:
    ran = archiver(*words, "--max-urls", str(pages), cwd=folder)
    assert ran.returncode == ExitCode.LIMIT, ran.stderr
    assert hosts.asked().total() >= pages
