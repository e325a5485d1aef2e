"""`archiver replay`: a collection anywhere, at a free port, its seeds' addresses, and a clean end."""

import gzip
import json
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from archiver.cli.directory import first_seeds
from archiver.cli.entry import run
from archiver.frontier.address import write_address
from archiver.model import ExitCode
from archiver.tools.replay.server import collection_name
from fixtures import handmade_crawls
from fixtures.command import COMMAND, archiver, environment

PAGE = b"<title>kept</title><p>as it was</p>"
ODD = "odd [name] *{x} $HOME %41"


def _collection(directory: Path, url: str, name: str) -> None:
    """A pywb collection with one page in it, whose WARC file is still being written."""
    for folder in ("archive", "indexes"):
        (directory / folder).mkdir(parents=True)
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:0>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    member = gzip.compress(head.encode() + block + b"\r\n\r\n")
    (directory / "archive" / name).write_bytes(member)
    fields = {"url": url, "mime": "text/html", "status": "200", "digest": "sha1:X", "filename": name}
    line = f"org,example)/ 20200101000000 {json.dumps({**fields, 'length': str(len(member)), 'offset': '0'})}\n"
    (directory / "indexes" / "index.cdxj").write_text(line)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A collection with a crawl's database, in a directory whose name is a pattern to pywb."""
    directory = tmp_path / ODD
    _collection(directory, "http://example.org/", "a.warc.gz.open")
    with handmade_crawls.database(directory) as db:
        db.execute("INSERT INTO hosts (id, key) VALUES (1, 'http://example.org')")
        db.execute(
            "INSERT INTO urls (id, url, host, hop, path, depth, off_scope_hops, priority, seed)"
            " VALUES (1, 'http://example.org/', 1, 'L', '', 0, 0, 0, 1)"
        )
        db.execute("INSERT INTO seeds VALUES (1, 0)")
    return directory


def _change_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")


def _damage(path: Path) -> None:
    path.write_bytes(b"no database" * 500)


def _move_to_server(path: Path) -> None:
    path.unlink()
    write_address(path, "postgresql://127.0.0.1:1/none")


@pytest.mark.parametrize("change", [_change_version, _damage, _move_to_server])
def test_the_seeds_are_known_without_the_database(
    collection: Path, change: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive replays and can be exported without it, so a database that cannot be read is no reason to refuse."""
    (collection / "crawl.toml").write_text('seeds = ["http://example.org/"]\n')
    change(collection / "crawl.db")
    assert first_seeds(collection, 10) == ["http://example.org/"]
    assert ("the seeds are read from crawl.toml" in capsys.readouterr().err) is (change is not _move_to_server)
    assert run(["export", str(collection), "--to", str(collection.parent / "out")]) == ExitCode.DONE
    assert "<h2>Seeds</h2>" in (collection.parent / "out/index.html").read_text()
    (collection / "crawl.toml").write_text("seeds = 5\n")
    assert first_seeds(collection, 10) == []
    assert "crawl.toml" in capsys.readouterr().err


@pytest.mark.replay
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_and_ends(collection: Path, number: signal.Signals) -> None:
    before = sorted(collection.rglob("*"))
    with subprocess.Popen(
        [*COMMAND, "replay", ODD, "--port", "0"],
        cwd=collection.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            assert address.endswith("/http://example.org/")
            exact = address.replace("/http://example.org/", "/20200101000000id_/http://example.org/")
            with urllib.request.urlopen(exact, timeout=300) as answer:
                assert answer.read() == PAGE
            with urllib.request.urlopen(address, timeout=300) as answer:
                assert answer.status == 200
        finally:
            process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert process.returncode == ExitCode.DONE
    assert out == ""
    assert err.count("\n") == 1, err
    assert "press Ctrl+C to stop" in err
    assert sorted(collection.rglob("*")) == before


@pytest.mark.replay
def test_port_in_use(collection: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = archiver("replay", ODD, "--port", str(port), cwd=collection.parent)
    assert ran.returncode == ExitCode.USAGE
    assert f"port {port} cannot be used: Address already in use; choose another with --port" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_without_pywb(tmp_path: Path) -> None:
    """An interpreter that does not see pywb says which command installs it."""
    _collection(tmp_path / "c", "http://example.org/", "a.warc.gz")
    script = (
        "import sys; sys.dont_write_bytecode = True\n"
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *rest: None if name == 'pywb' else find(name, *rest)\n"
        "from archiver.cli.entry import run; sys.exit(run(['replay', 'c']))"
    )
    ran = subprocess.run(
        [COMMAND[0], "-c", script], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert ran.returncode == ExitCode.USAGE
    assert "pip install '.[replay]'" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("collections/example.org", "example.org"),
        ("a b/ž [x]", "_x_"),
        ("x/static", "archive"),
        ("/", "archive"),
        ("x/..y", "y"),
    ],
)
def test_collection_name(directory: str, name: str) -> None:
    assert collection_name(Path(directory)).strip("_") == name.strip("_")
