"""Archives are copied to an object store, checked there, and nothing is lost by what stores and networks do."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from archiver.collection import store as stores
from archiver.collection.layout import Layout
from archiver.collection.store import StoredFiles, unsent
from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.command import archiver, running
from fixtures.s3_server import BUCKET, FAULTS, s3
from fixtures.several_hosts import PATIENCE, several_hosts

OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--warc-size", "10k")


def keys(directory: Path) -> set[str]:
    """Return what a store of *directory* must hold."""
    return {f"archive/{path.name}" for path in warcs(directory)} | {"indexes/index.cdxj", "logs/crawl.log"}


def test_a_folder_as_store(tmp_path: Path) -> None:
    with several_hosts(hosts=2) as hosts:
        ran = archiver("crawl", *OPTIONS, "--store", f"file://{tmp_path}/s", *hosts.seeds, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert len(warcs(tmp_path / "c")) > 3
    for key in keys(tmp_path / "c"):
        assert (tmp_path / "s" / key).read_bytes() == (tmp_path / "c" / key).read_bytes()
    checked = archiver("store", "check", "c", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    assert "0 missing or different, 0 not sent" in checked.stdout


def test_check_names_what_is_wrong_and_send_mends_it(tmp_path: Path) -> None:
    with several_hosts(hosts=2) as hosts:
        archiver("crawl", *OPTIONS, "--store", f"file://{tmp_path}/s", *hosts.seeds, cwd=tmp_path)
    first, second, third = sorted((tmp_path / "s" / "archive").iterdir())[:3]
    first.unlink()
    second.write_bytes(second.read_bytes() + b"x")
    third.write_bytes(third.read_bytes()[:-1] + b"?")
    checked = archiver("store", "check", "c", cwd=tmp_path)
    assert checked.returncode == ExitCode.FAULTS
    assert f"{first.name} is missing" in checked.stdout
    assert f"{second.name} has {second.stat().st_size} bytes instead of" in checked.stdout
    assert f"{third.name} holds other bytes" in checked.stdout
    assert "archiver store send c" in checked.stderr
    assert archiver("store", "send", "c", cwd=tmp_path).returncode == 0
    assert archiver("store", "check", "c", "--read", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_an_upload_that_fails_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(stores, "FIRST_PAUSE", 0.01)
    with s3(monkeypatch) as faults, several_hosts(hosts=2) as hosts:
        faults.left = [fault] * 4
        ran = archiver("crawl", *OPTIONS, "--store", f"s3://{BUCKET}/a/b", *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert not unsent(Layout(tmp_path / "c"), f"s3://{BUCKET}/a/b", others=True)
        assert not faults.left
        assert archiver("store", "check", "c", "--read", cwd=tmp_path).returncode == 0
        assert StoredFiles(Layout(tmp_path / "c")).read(f"s3://{BUCKET}/a/b").keys() == keys(tmp_path / "c")
    found = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert b"secret-word" not in found


def test_a_large_file_goes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum proves it, so nothing is read back."""
    (tmp_path / "c" / "archive").mkdir(parents=True)
    (tmp_path / "c" / "archive" / "large.warc.gz").write_bytes(os.urandom(2 * stores.PIECE + 1234))
    place = f"s3://{BUCKET}/p"
    with s3(monkeypatch) as faults:
        for what in ("send", "check"):
            ran = archiver("store", what, "c", "--store", place, cwd=tmp_path)
            assert ran.returncode == 0, ran.stderr
        assert "GET" not in faults.methods
        assert archiver("store", "check", "c", "--store", place, "--read", cwd=tmp_path).returncode == 0
        assert "GET" in faults.methods
    (stored,) = StoredFiles(Layout(tmp_path / "c")).read(place).values()
    assert stored.tag.strip('"').endswith("-3")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://no-such-bucket/x", "cannot be written to"),
        ("ftp://example.org/", "is not s3://BUCKET/PREFIX"),
        ("s3://user:password@bucket/x", "is not s3://BUCKET/PREFIX"),
    ],
)
def test_a_store_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, words: str) -> None:
    with s3(monkeypatch):
        ran = archiver("crawl", *OPTIONS, "--store", address, "http://127.0.0.1:9/", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert words in ran.stderr
    assert "password" not in ran.stderr
    assert not (tmp_path / "c").exists()


def test_files_are_finished_by_age(tmp_path: Path) -> None:
    """A slow crawl has finished files in the store before it ends."""
    with several_hosts(hosts=1, pages=12) as hosts:
        slow = ("--store", f"file://{tmp_path}/s", "--warc-age", "1", "--rate", "2", "--warc-size", "1G")
        ran = archiver("crawl", *OPTIONS, *slow, *hosts.seeds, cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert len(warcs(tmp_path / "c")) > 3


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_killed_crawl_sends_the_rest_later(tmp_path: Path) -> None:
    with several_hosts(hosts=2, pages=60, after=80) as hosts:
        options = ("--store", f"file://{tmp_path}/s", "--rate", "40")
        with running("crawl", *OPTIONS, *options, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate(timeout=PATIENCE)
        with (tmp_path / "c" / "stored.jsonl").open("ab") as notes:
            notes.write(b'{"key": "archive/torn')
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
    assert archiver("store", "check", "c", "--read", cwd=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "s" / "archive").iterdir()} == {p.name for p in warcs(tmp_path / "c")}


def test_a_received_collection_names_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with several_hosts(hosts=1) as hosts:
        archiver("crawl", *OPTIONS, "--max-urls", "3", *hosts.seeds, cwd=tmp_path)
        toml = tmp_path / "c" / "crawl.toml"
        theirs = f"store = {json.dumps(f'file://{tmp_path}/theirs')}"
        toml.write_text(re.sub("^#? ?store = .*", theirs, toml.read_text(), flags=re.MULTILINE))
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE
        assert "you have not named the store" in ran.stderr
        assert not (tmp_path / "theirs").exists()
