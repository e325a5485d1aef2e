"""`archiver look` after a crawl of several machines: one of them refuses, and the index of all is looked at."""

from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.command import archiver
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.postgres import PostgresServer
from fixtures.rawserver import NOT_FOUND, RawServer, keep
from fixtures.sites import ok

pytestmark = [*SLOW_IN_BROWSER, pytest.mark.postgres]
OPTIONS = ("--rate", "0", "--probe", "off", "--min-free-disk", "0", "--speculative", "off")
SCRIPTED = "<!doctype html><title>Page</title><script>fetch('/' + 'api').then(() => fetch('/' + 'late'))</script>"


def test_pages_of_all_machines_are_looked_at(tmp_path: Path, postgres_server: PostgresServer | None) -> None:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres_server.new_database()
    routes = {"/": ok(SCRIPTED), "/api": ok("{}", "application/json"), "/late": ok("{}", "application/json")}

    def run(*words: str, code: ExitCode = ExitCode.DONE) -> str:
        ran = archiver(*words, cwd=tmp_path)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def gathered() -> None:
        run("index", address, "-o", "whole")
        for path in (*warcs(tmp_path / "one"), *warcs(tmp_path / "two")):
            there = tmp_path / "whole/archive" / path.name
            there.unlink(missing_ok=True)
            there.hardlink_to(path)

    with RawServer(dict(routes), otherwise=keep(NOT_FOUND)) as site, RawServer({"/": ok("<p>x")}) as other:
        run("crawl", site.url(), "-o", "one", "--frontier", address, *OPTIONS)
        assert "missing" in run("look", "one", code=ExitCode.FAULTS)
        run("add", address, other.url())
        run("join", address, "-o", "two", "--name", "second", "--min-free-disk", "0")
        said = run("look", "one", code=ExitCode.USAGE)
        assert "one holds only what this machine has captured; second has other captures" in said
        assert f"archiver index {address} -o whole" in said
        gathered()
        for number in (1, 0):  # the second round of `look` misses what the first answer asks for
            said = run("look", "whole", "--crawl", address, "--fetch", code=ExitCode.FAULTS)
            assert f"1 URL queued; to continue: archiver join {address}" in said
            run("join", address, "-o", "two", "--name", "second", "--min-free-disk", "0")
            gathered()
            assert number or "complete   2 pages" in run("look", "whole", "--crawl", address)
    assert "--crawl is for a directory" in run("look", "one", "--crawl", address, code=ExitCode.USAGE)
    assert "--crawl: " in run("look", "whole", "--crawl", "db.example", code=ExitCode.USAGE)
