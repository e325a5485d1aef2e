"""A crawl whose database is gone, or whose WARC files are damaged: named, made anew, and gone on with."""

import json
import random
import shutil
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import captured, rows, states, stored, warcs
from fixtures.command import ended, running
from fixtures.crawl_in_process import crawl
from fixtures.forks import Forks
from fixtures.handmade_warc import member, record
from fixtures.rawserver import RawServer
from fixtures.sites import UNNAMED, oddities, tree

SITE = tree(40)
ALL = SITE.reachable | UNNAMED | {"/robots.txt"}
OPTIONS = ("-o", "c", "--rate", "0", "--warc-size", "20000")
# What a crawl is, without the order in which rows were made.
URLS = """
SELECT urls.url, urls.state, urls.hop, urls.path, urls.depth, urls.off_scope_hops, urls.tries, urls.status,
       urls.failure, urls.note, via.url, seed.url, hosts.key
FROM urls JOIN hosts ON hosts.id = urls.host LEFT JOIN urls AS via ON via.id = urls.via
LEFT JOIN urls AS seed ON seed.id = urls.seed ORDER BY urls.url
"""
CAPTURES = """
SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, warcs.name, offset, response_length,
       request_length, metadata_length, received, round(duration, 3), truncated
FROM captures JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc ORDER BY warcs.name, offset
"""
OTHERS = (
    "SELECT urls.url, position FROM seeds JOIN urls ON urls.id = seeds.url ORDER BY position",
    "SELECT urls.url, robots.status, body FROM robots JOIN urls ON urls.id = robots.url ORDER BY urls.url",
    "SELECT key, waiting, robots, asked.url FROM hosts LEFT JOIN urls AS asked ON asked.id = robots_url ORDER BY key",
    "SELECT name, committed, closed, indexed, digest FROM warcs ORDER BY name",
    "SELECT rule, host, links, kept FROM refusal_counts ORDER BY rule, host",
)


def _account(directory: Path) -> list[object]:
    return [rows(directory, sql) for sql in (URLS, CAPTURES, *OTHERS)]


def _verified(folder: Path, forks: Forks) -> None:
    checked = forks.archiver("verify", "c", cwd=folder)
    assert checked.returncode == ExitCode.DONE, checked.stdout


def _complete(folder: Path, server: RawServer, forks: Forks) -> None:
    resumed = forks.archiver("resume", "c", cwd=folder)
    assert resumed.returncode == ExitCode.DONE, resumed.stderr
    _verified(folder, forks)
    assert [url for url, _ in captured(folder / "c")] == sorted(map(server.url, ALL))
    assert set(states(folder / "c").values()) == {"archived"}


def test_the_new_database_says_what_the_old_one_said(tmp_path: Path, forks: Forks) -> None:
    """Redirects, loops, errors and refusals included; the index comes out the same, byte for byte."""
    with RawServer(oddities().routes) as server:
        assert crawl(tmp_path / "c", server.url(), warc_size=9000, retries=0).code is ExitCode.DONE
        asked = len(server.log)
        before, index = _account(tmp_path / "c"), (tmp_path / "c/indexes/index.cdxj").read_bytes()
        shutil.rmtree(tmp_path / "c/indexes")
        rebuilt = forks.archiver("rebuild", "c", cwd=tmp_path)
        assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
        answered = [row for row in before[0] if row[1] == "archived"]  # type: ignore[attr-defined]
        after = _account(tmp_path / "c")
        assert [row for row in after[0] if row[1] == "archived"] == answered  # type: ignore[attr-defined]
        assert after[1:] == before[1:]
        assert (tmp_path / "c/indexes/index.cdxj").read_bytes() == index
        assert len(server.log) == asked
    _verified(tmp_path, forks)
    (kept,) = (tmp_path / "c/damaged").glob("crawl.db.1")
    assert json.loads(kept.with_name("crawl.db.1.json").read_text())["file"] == "crawl.db"


@pytest.mark.slow
def test_without_its_database_a_killed_crawl_goes_on_where_it_was(tmp_path: Path, forks: Forks) -> None:
    with RawServer(SITE.routes) as server:
        with running("crawl", server.url(), *OPTIONS, cwd=tmp_path) as process:
            server.log.holds(30).wait()
            process.kill()
            ended(process)
        asked = len(server.log)
        for path in (tmp_path / "c").glob("crawl.*"):
            path.unlink()  # the settings too, and the lock
        refused = forks.archiver("resume", "c", cwd=tmp_path)
        assert refused.returncode == ExitCode.USAGE
        rebuilt = forks.archiver("rebuild", "c", cwd=tmp_path)
        assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
        known = {each.url for each in stored(tmp_path / "c")}
        assert known
        _complete(tmp_path, server, forks)
        again = {server.url(row.target) for row in tuple(server.log)[asked:]}
        assert not again & known
        assert len(server.log) <= asked + len(ALL) - len(known)


@pytest.mark.parametrize("damage", ["deleted", "emptied", "overwritten", "cut"])
def test_a_lost_database_is_named_with_its_cure(tmp_path: Path, forks: Forks, damage: str) -> None:
    with RawServer(SITE.routes) as server:
        crawl(tmp_path / "c", server.url(), probe="on")
        forks.archiver("resume", "c", cwd=tmp_path)
        database = tmp_path / "c/crawl.db"
        whole = database.read_bytes()
        match damage:
            case "deleted":
                database.unlink()
            case "emptied":
                database.write_bytes(b"")
            case "overwritten":
                database.write_bytes(whole[:8192] + random.Random(1).randbytes(20_000) + whole[28_192:])
            case _:
                database.write_bytes(whole[: len(whole) // 2])
        (tmp_path / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\n')
        before = {path: path.read_bytes() for path in warcs(tmp_path / "c")}
        for command in ("resume", "verify"):
            told = forks.archiver(command, "c", cwd=tmp_path)
            assert told.returncode in (ExitCode.STORAGE, ExitCode.FAULTS), told.stderr
            assert "crawl.db" in told.stderr + told.stdout
            assert "archiver rebuild c" in told.stderr + told.stdout
            assert "Traceback" not in told.stderr
        assert forks.archiver("rebuild", "c", cwd=tmp_path).returncode == ExitCode.DONE
        asked = len(server.log)
        _complete(tmp_path, server, forks)
        assert len(server.log) == asked
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("damage", ["cut", "a little cut", "overwritten", "deleted"])
def test_a_damaged_warc_is_named_and_what_it_lost_is_fetched_again(tmp_path: Path, forks: Forks, damage: str) -> None:
    with RawServer(SITE.routes) as server:
        crawl(tmp_path / "c", server.url(), warc_size=20_000)
        (tmp_path / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\n')
        path = warcs(tmp_path / "c")[1]
        whole = path.read_bytes()
        match damage:
            case "cut":
                path.write_bytes(whole[: len(whole) // 2])
            case "a little cut":  # only the last metadata record is hit: its response is kept
                path.write_bytes(whole[:-20])
            case "overwritten":
                path.write_bytes(whole[:9000] + bytes(3000) + whole[12_000:])
            case _:
                path.unlink()
        told = forks.archiver("resume", "c", cwd=tmp_path)
        assert path.name in told.stderr
        assert "archiver rebuild c" in told.stderr
        checked = forks.archiver("verify", "c", cwd=tmp_path)
        assert checked.returncode == ExitCode.FAULTS
        assert path.name in checked.stdout
        asked = len(server.log)
        rebuilt = forks.archiver("rebuild", "c", cwd=tmp_path)
        assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
        known = {each.url for each in stored(tmp_path / "c")}
        _complete(tmp_path, server, forks)
        again = {server.url(row.target) for row in tuple(server.log)[asked:]}
        assert again == set(map(server.url, ALL)) - known
        if damage != "deleted":
            kept = b"".join(each.read_bytes() for each in (tmp_path / "c/damaged").glob(f"{path.name}.*[lt]"))
            left = {"cut": len(whole) // 2, "a little cut": len(whole) - 20, "overwritten": len(whole)}
            assert len(kept) + path.stat().st_size == left[damage]


def test_a_missing_index_is_named_and_made_anew(tmp_path: Path, forks: Forks) -> None:
    with RawServer(SITE.routes) as server:
        crawl(tmp_path / "c", server.url())
        (tmp_path / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\nmetadata-warc = false\n')
        index = tmp_path / "c/indexes/index.cdxj"
        whole = index.read_bytes()
        index.unlink()
        checked = forks.archiver("verify", "c", cwd=tmp_path)
        assert checked.returncode == ExitCode.FAULTS
        assert "archiver index c" in checked.stdout
        told = forks.archiver("resume", "c", cwd=tmp_path)
        assert told.returncode == ExitCode.DONE
        assert "c/indexes/index.cdxj" in told.stderr
        assert index.read_bytes() == whole
        index.unlink()
        assert forks.archiver("index", "c", cwd=tmp_path).returncode == ExitCode.DONE
        assert index.read_bytes() == whole


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing",), "nothing does not exist"),
        (("file",), "file is not a directory"),
        (("empty",), "it has no archive/ folder"),
        (("bare",), "crawl.toml is missing, and no WARC file holds the seeds"),
    ],
)
def test_what_cannot_be_rebuilt(tmp_path: Path, forks: Forks, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare/archive").mkdir(parents=True)
    told = forks.archiver("rebuild", *arguments, cwd=tmp_path)
    assert told.returncode == ExitCode.USAGE
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_files_of_others_are_left_alone(tmp_path: Path, forks: Forks) -> None:
    with RawServer(SITE.routes) as server:
        crawl(tmp_path / "c", server.url())
    (tmp_path / "c/crawl.toml").write_text('seeds = ["http://127.0.0.1/"]\n')
    other = tmp_path / "c/archive/other.warc.gz"
    content = member(record("warcinfo", b"software: other\r\n"))
    other.write_bytes(content)
    told = forks.archiver("rebuild", "c", cwd=tmp_path)
    assert told.returncode == ExitCode.DONE
    assert "other.warc.gz: not written by archiver" in told.stderr
    assert other.read_bytes() == content


def test_a_file_without_any_record_is_said_to_be_damaged(tmp_path: Path, forks: Forks) -> None:
    with RawServer(SITE.routes) as server:
        crawl(tmp_path / "c", server.url(), warc_size=20_000)
        (tmp_path / "c/crawl.toml").write_text(f'seeds = ["{server.url()}"]\nrate = 0\n')
    path = warcs(tmp_path / "c")[1]
    zeros = bytes(path.stat().st_size)
    path.write_bytes(zeros)
    told = forks.archiver("rebuild", "c", cwd=tmp_path)
    assert told.returncode == ExitCode.DONE, told.stderr
    assert f"{path.name}: no WARC record is in it, so it is damaged or was overwritten; left unchanged" in told.stderr
    assert "not written by archiver" not in told.stderr
    assert path.read_bytes() == zeros
