"""Bad input: one clear line, exit code 2, no traceback, and nothing is created. By the real command."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

from archiver.frontier.database import VERSION
from archiver.model import ExitCode
from fixtures.command import COMMAND, environment
from fixtures.forks import Forks
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page

SEED = "http://127.0.0.1:9/"  # nobody listens there; no test here gets so far


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working directory with a few things in it."""
    (tmp_path / "list.txt").write_text("# seeds\nhttp://example.org/\n\nhtp://x\n")
    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    (tmp_path / "binary").write_bytes(b"http://example.org/\n\xff\xfe\n")
    for name in ("p.wacz", "p.warc.gz"):
        (tmp_path / name).write_bytes(b"PK\3\4")
    (tmp_path / "bad.toml").write_text("rate = 5\nmax-depht = 3\n")
    (tmp_path / "broken.toml").write_text("rate = 5\nmax-depth = [\n")
    (tmp_path / "latin.toml").write_bytes(b'operator = "\xe9"\n')
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    (tmp_path / "vacant").mkdir()
    (tmp_path / "lost/archive").mkdir(parents=True)
    (tmp_path / "lost/archive/one.warc.gz").touch()
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "crawl.toml").write_text(f'seeds = ["{SEED}"]\n')
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "crawl.toml").write_text(f'seeds = ["{SEED}"]\n')
    _database(newer, version=99)
    unset = tmp_path / "unset"
    unset.mkdir()
    _database(unset, version=1)
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "crawl.toml").write_text(f'seeds = ["{SEED}"]\nrate = "fast"\n')
    seedless = tmp_path / "seedless"
    seedless.mkdir()
    (seedless / "crawl.toml").write_text("rate = 5\n")
    named = tmp_path / "collections" / "example.org"
    named.mkdir(parents=True)
    (named / "crawl.toml").write_text(f'seeds = ["{SEED}"]\n')
    (tmp_path / "foreign" / "archive").mkdir(parents=True)
    (tmp_path / "foreign" / "archive" / "a.warc.gz").touch()
    return tmp_path


def _database(directory: Path, version: int) -> None:
    db = sqlite3.connect(directory / "crawl.db")
    db.execute(f"PRAGMA user_version = {version}")
    db.close()


def _all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


CASES = {
    "no URL": (["crawl"], "no URL"),
    "scheme": (["crawl", "htp://x"], "'htp://x': htp: is not supported; a seed starts with http:// or https://"),
    "no host": (["crawl", "http://"], "has no host"),
    "three slashes": (["crawl", "http:///x"], "has no host"),
    "mail": (["crawl", "mailto:me@example.org"], "mailto: is not supported"),
    "credentials": (["crawl", "http://me:secret@example.org/"], "credentials in URLs are not supported"),
    "second URL": (["crawl", SEED, "http://"], "has no host"),
    "escape sequence": (["crawl", "\x1b[31mhttp://x"], "\\x1b[31m"),
    "line break": (["crawl", "http://a\nhttp://b"], "give one URL at a time"),
    "file as seed": (["crawl", "list.txt"], "--seeds list.txt"),
    "list with a bad line": (["crawl", "--seeds", "list.txt"], "list.txt:4: 'htp://x'"),
    "list without URLs": (["crawl", "--seeds", "empty.txt"], "empty.txt: no URL found"),
    "list on stdin without URLs": (["crawl", "--seeds", "-"], "stdin: no URL found"),
    "list that is not there": (["crawl", "--seeds", "nothing.txt"], "nothing.txt: cannot be read: No such file"),
    "list that is a directory": (["crawl", "--seeds", "other"], "other: cannot be read: Is a directory"),
    "list that is no text": (["crawl", "--seeds", "binary"], "binary:2: not UTF-8"),
    "settings not there": (["crawl", SEED, "--config", "no.toml"], "no.toml: cannot be read: No such file"),
    "unknown key": (["crawl", SEED, "--config", "bad.toml"], "bad.toml:2: max-depht: unknown key; did you mean max"),
    "no TOML": (["crawl", SEED, "--config", "broken.toml"], "broken.toml:2: not TOML"),
    "TOML in latin-1": (["crawl", SEED, "--config", "latin.toml"], "latin.toml:1: not UTF-8"),
    "bad number": (["crawl", SEED, "--max-depth", "x"], "--max-depth: 'x' is not a whole number of 0 or more"),
    "bad rate": (
        ["crawl", SEED, "--rate", "fast"],
        "--rate: 'fast' is not a number of requests per second (5), or",
    ),
    "bad choice": (["crawl", SEED, "--scope", "world"], "--scope: 'world' is not one of host, domain, prefix, page"),
    "bad pattern": (["crawl", SEED, "--exclude", "("], "--exclude: '(' is not a regular expression (missing )"),
    "bad header": (["crawl", SEED, "--header", "x"], "--header: 'x' is not a header line"),
    "unknown option": (["crawl", SEED, "--max-dept", "3"], "--max-dept"),
    "option without value": (["crawl", SEED, "--rate"], "--rate"),
    "unknown command": (["craw", SEED], "craw"),
    "output is a file": (["crawl", SEED, "-o", "list.txt"], "list.txt is not a directory"),
    "output below a file": (["crawl", SEED, "-o", "list.txt/x"], "a part of its path is not a directory"),
    "output holds something else": (["crawl", SEED, "-o", "other"], "other is not empty and holds no crawl"),
    "output holds a crawl": (
        ["crawl", SEED, "-o", "begun"],
        "already holds a crawl; to continue it: archiver resume b",
    ),
    "output holds a newer crawl": (["crawl", SEED, "-o", "newer"], "already holds a crawl"),
    "resume nothing": (["resume", "vacant"], "vacant holds no crawl; to start one: archiver crawl URL -o vacant"),
    "resume something else": (["resume", "other"], "other holds no crawl"),
    "resume what is not there": (
        ["resume", "nowhere"],
        "nowhere does not exist; name the directory of a crawl, for example collections/example.org",
    ),
    "resume a file": (["resume", "list.txt"], "list.txt is not a directory"),
    "resume without DIR": (["resume"], "DIR"),
    "resume without settings": (["resume", "unset"], "crawl.toml is missing"),
    "resume with another schema": (
        ["resume", "newer"],
        f"schema version 99, and this archiver needs {VERSION}",
    ),
    "resume with bad settings": (["resume", "wrong"], "crawl.toml:2: rate: 'fast' is not"),
    "resume with a bad option": (["resume", "begun", "--rate", "x"], "--rate: 'x' is not"),
    "resume without seeds": (["resume", "seedless"], "crawl.toml: no seeds; add"),
    "status of nothing": (["status", "vacant"], "vacant holds no crawl"),
    "status without a database": (["status", "lost"], "if it was lost, run archiver rebuild lost"),
    "status of what is not there": (["status", "nowhere"], "nowhere does not exist"),
    "status of a name": (
        ["status", "example.org"],
        "example.org does not exist; did you mean collections/example.org?",
    ),
    "resume of a site": (["resume", "http://example.org/"], "does not exist; did you mean collections/example.org?"),
    "status of what has no crawl": (["status", "foreign"], "foreign holds an archive, but no crawl"),
    "ls of a part": (["ls", "foreign/archive"], "there is no archive/ in it; it is part of the collection foreign"),
    "explain what has no crawl": (["explain", "foreign", SEED], "foreign holds an archive, but no crawl"),
    "a longer name than a path may have": (["status", "x" * 300], "File name too long"),
    "a longer URL than a path may be": (["crawl", f"example.org/{'x' * 300} y"], "'y' after the URL is not a setting"),
    "export into a file": (["export", "foreign", "--to", "list.txt"], "--to list.txt is a file"),
    "status of another schema": (["status", "newer", "--json"], "schema version 99"),
    "index of nothing": (["index", "vacant"], "vacant holds no archive"),
    "index of what is not there": (["index", "nowhere"], "nowhere does not exist"),
    "replay of what is not there": (["replay", "nowhere"], "nowhere does not exist"),
    "replay of a broken package": (["replay", "p.wacz"], "p.wacz: it begins like a ZIP file, but cannot be read"),
    "pack of a WARC file": (["pack", "p.warc.gz"], "to import it into a collection: archiver import p.warc.gz"),
    "index of an empty folder": (["index", "vacant"], "name a collection, for example collections/example.org"),
    "pack of an empty folder": (["pack", "vacant"], "vacant holds no archive: it has no archive/ folder; name a"),
    "verify of an empty folder": (["verify", "vacant"], "vacant has no WARC files; name a collection, for example"),
    "config of an empty folder": (["config", "vacant"], "vacant holds no crawl: it has no crawl.toml"),
    "schedule without a period": (["schedule", "begun"], "Choose from: daily, weekly, monthly. Try"),
    "two URLs in one word": (
        ["crawl", "http://exa mple.org/"],
        "'mple.org/' after the URL is not a setting of a seed, which is KEY=VALUE, for example scope=prefix; give one",
    ),
    "pack of nothing": (["pack"], "Missing argument 'DIR'. Try 'archiver pack --help'."),
    "replay of nothing": (["replay", "vacant"], "holds no archive: it has no archive/ folder"),
    "replay at a bad port": (["replay", "vacant", "--port", "70000"], "70000"),
    "verify what is not there": (["verify", "nowhere"], "nowhere"),
    "verify without a path": (["verify"], "DIR|FILE"),
}


@pytest.mark.parametrize(("arguments", "words"), CASES.values(), ids=CASES)
def test_bad_input(here: Path, forks: Forks, arguments: list[str], words: str) -> None:
    before = _all(here)
    ran = forks.archiver(*arguments, cwd=here)
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert words in ran.stderr
    assert ran.stderr.startswith("archiver: ")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.rstrip("\n").isprintable()
    assert ran.stdout == ""
    assert _all(here) == before


def test_database_that_is_none(here: Path, forks: Forks) -> None:
    (here / "begun" / "crawl.db").write_bytes(b"this is no database" * 100)
    for command in ("resume", "status"):
        ran = forks.archiver(command, "begun", cwd=here)
        assert ran.returncode == ExitCode.STORAGE
        assert ran.stderr.count("\n") == 1
        assert "crawl.db: cannot be read" in ran.stderr


def test_lost_database(here: Path, forks: Forks) -> None:
    (here / "begun" / "archive").mkdir()
    (here / "begun" / "archive" / "a.warc.gz").write_bytes(b"")
    ran = forks.archiver("resume", "begun", cwd=here)
    assert ran.returncode == ExitCode.STORAGE
    assert "crawl.db is missing, but there are WARC files" in ran.stderr


def test_empty_database_is_a_crawl_that_has_not_started(here: Path, forks: Forks) -> None:
    (here / "begun" / "crawl.db").touch()
    ran = forks.archiver("status", "begun", cwd=here)
    assert ran.returncode == ExitCode.USAGE
    assert "has not started" in ran.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in ("crawl", "resume"))])
def test_help_goes_to_stdout(tmp_path: Path, forks: Forks, arguments: list[str]) -> None:
    ran = forks.archiver(*arguments, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE
    assert ran.stdout
    assert ran.stderr == ""


def test_closed_streams_and_terminals_that_are_not_utf8(here: Path) -> None:
    for command in ("status unset 2>&-", "--help >&-", "crawl žluť:x 2>&- >&-"):
        line = f"{COMMAND[0]} -m archiver {command}"
        ran = subprocess.run(line, shell=True, cwd=here, capture_output=True, env=environment(), check=False)
        assert ran.returncode in {ExitCode.DONE, ExitCode.USAGE, ExitCode.STORAGE}, command
    ascii_only = {**environment(), "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run([*COMMAND, "crawl", "ž:x"], cwd=here, capture_output=True, env=ascii_only, check=False)
    assert ran.returncode == ExitCode.USAGE
    assert b"\\u017e:x" in ran.stderr


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
def test_a_crawl_without_open_streams(here: Path, closed: str) -> None:
    with RawServer({"/": ok(page("Home"))}) as server:
        line = f"{COMMAND[0]} -m archiver crawl {server.url()} -o closed --rate 0 {closed}"
        ran = subprocess.run(line, shell=True, cwd=here, capture_output=True, env=environment(), check=False)
    assert (ran.returncode, b"Assertion" in ran.stderr) == (ExitCode.DONE, False)


def test_seeds_from_a_closed_stdin(here: Path) -> None:
    line = f"{COMMAND[0]} -m archiver crawl --seeds - -o new <&-"
    ran = subprocess.run(line, shell=True, cwd=here, capture_output=True, env=environment(), check=False)
    assert (ran.returncode, ran.stderr) == (ExitCode.USAGE, b"archiver: stdin: no URL found; write one per line\n")


def test_no_command_shows_help(tmp_path: Path, forks: Forks) -> None:
    ran = forks.archiver(cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert "Commands:" in ran.stderr
    assert ran.stdout == ""
