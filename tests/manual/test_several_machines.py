"""The commands of the page on several machines, typed on machines that are folders here."""

import json
import re
import shlex
import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from archiver.model import ExitCode
from fixtures.command import ROOT, archiver, ended, running
from fixtures.flag import Gate
from fixtures.postgres import PostgresServer, wait_for
from fixtures.several_hosts import PATIENCE, gated, several_hosts

PAGE = (ROOT / "docs" / "how-to" / "several-machines.md").read_text("utf-8")
GENTLE = ("--rate", "1", "--probe", "off", "--min-free-disk", "0", "--warc-age", "1")
CAPTURES = "SELECT urls.url FROM captures JOIN urls ON urls.id = captures.url WHERE captures.status = 200"
WROTE = "SELECT DISTINCT machine FROM warcs"

pytestmark = pytest.mark.postgres


def command(name: str, address: str, folder: Path) -> list[str]:
    """Return the words of the command *name* of the page, with what exists here in place of its examples."""
    (line,) = re.findall(rf"^archiver ({name} .*)$", PAGE, re.MULTILINE)
    line = line.replace("postgresql://crawl@db.example/crawl", address)
    return shlex.split(
        line.replace("s3://my-archives", f"file://{folder}/store").replace("list.txt", f"{folder}/list.txt")
    )


def question(address: str, sql: str) -> list[str]:
    with psycopg.connect(address) as db:
        return [str(value) for (value,) in db.execute(sql.encode())]


def test_from_one_machine_to_two(tmp_path: Path, postgres_server: PostgresServer | None) -> None:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres_server.new_database()
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    gate = Gate()  # keeps the crawl from ending
    with several_hosts(hosts=6, pages=120, after=20) as hosts, gated(gate) as last, ExitStack() as stack:
        (tmp_path / "list.txt").write_text("\n".join((*hosts.seeds, last.url())))
        crawl = stack.enter_context(running(*command("crawl", address, tmp_path), *GENTLE, cwd=first))
        gate.arrived.wait()
        assert hosts.reached.wait(PATIENCE)
        join = [*command("join", address, tmp_path), "--name", "second"]
        joined = stack.enter_context(running(*join, cwd=second))
        wait_for(address, "SELECT 1 FROM warcs WHERE machine = 'second'")
        status = archiver(*command("status", address, tmp_path), cwd=tmp_path)
        joined.send_signal(signal.SIGINT)
        assert ended(joined)[0] == ExitCode.STOPPED
        again = stack.enter_context(running(*join, cwd=second))
        faster = archiver("set", address, "rate=0", cwd=tmp_path)
        assert faster.returncode == 0, faster.stderr
        gate.open()
        assert ended(crawl)[0] == ExitCode.DONE
        assert ended(again)[0] == ExitCode.DONE
        assert Counter(question(address, CAPTURES)) == dict.fromkeys({*hosts.pages, last.url()}, 1)
    assert status.returncode == 0, status.stderr
    assert "second" in status.stdout
    assert len(question(address, WROTE)) == 2
    for folder in (first, second):
        checked = archiver("store", "check", "example", "--read", cwd=folder)
        assert checked.returncode == 0, checked.stdout
    index = archiver(*command("index", address, tmp_path), cwd=tmp_path)
    assert index.returncode == 0, index.stderr
    lines = (tmp_path / "whole" / "indexes" / "index.cdxj").read_text().splitlines()
    assert {json.loads(line.split(" ", 2)[2])["url"] for line in lines} >= hosts.pages
