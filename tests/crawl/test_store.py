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


def test_files_are_fetched_back(tmp_path: Path) -> None:
    """Only what is not here, byte for byte; what differs in the store is named and not taken."""
    with several_hosts(hosts=2) as hosts:
        archiver("crawl", *OPTIONS, "--store", f"file://{tmp_path}/s", *hosts.seeds, cwd=tmp_path)
    files = {path.name: path.read_bytes() for path in warcs(tmp_path / "c")}
    first, second, third, *_ = sorted(files)
    for name in (first, second, third):
        (tmp_path / "c/archive" / name).unlink()
    ran = archiver("store", "fetch", "c", second, cwd=tmp_path)
    assert (ran.returncode, ran.stdout.count("1 file fetched")) == (0, 1), ran.stderr
    assert {path.name for path in warcs(tmp_path / "c")} == files.keys() - {first, third}
    (tmp_path / "s/archive" / third).write_bytes(files[third][:-1] + b"?")
    ran = archiver("store", "fetch", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.FAULTS
    assert f"archive/{third} differs from what was sent" in ran.stderr
    (tmp_path / "s/archive" / third).write_bytes(files[third])
    assert archiver("store", "fetch", "c", cwd=tmp_path).returncode == 0
    assert {path.name: path.read_bytes() for path in warcs(tmp_path / "c")} == files
    assert archiver("verify", "c", cwd=tmp_path).returncode == 0
    assert not unsent(Layout(tmp_path / "c"), f"file://{tmp_path}/s", others=False)
    for words in (("fetch", "c", "other.warc.gz"), ("fetch", "c", "../c/crawl.toml"), ("send", "c", second)):
        assert archiver("store", *words, cwd=tmp_path).returncode == ExitCode.USAGE


def test_files_that_only_a_store_has_are_not_missing(tmp_path: Path) -> None:
    """Each command reads them there, or says how to get them; and the crawl goes on without a second request."""
    with several_hosts(hosts=2) as hosts:
        place = ("--store", f"file://{tmp_path}/s", "--no-keep-local", "--no-metadata-warc")
        ran = archiver("crawl", *OPTIONS, *place, *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert re.search(r"^deleted   \d+ WARC files .* archiver store fetch c$", ran.stdout + ran.stderr, re.MULTILINE)
        assert not warcs(tmp_path / "c")
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert "missing" not in ran.stdout + ran.stderr
        asked = hosts.asked()
        assert {asked[url] for url in hosts.pages} == {1}
        page = next(iter(hosts.pages))
    for command in (("get", "c", page), ("pack", "c"), ("export", "c", "--to", "e"), ("index", "c"), ("rebuild", "c")):
        ran = archiver(*command, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE, (command, ran.stdout, ran.stderr)
        assert "archiver store fetch c" in ran.stderr
    assert archiver("verify", "c", cwd=tmp_path).returncode == 0
    assert archiver("verify", "c", "--store", f"file://{tmp_path}/s", cwd=tmp_path).returncode == 0
    assert archiver("store", "fetch", "c", cwd=tmp_path).returncode == 0
    assert archiver("verify", "c", cwd=tmp_path).returncode == 0
    assert archiver("get", "c", page, cwd=tmp_path).returncode == 0


def test_a_file_that_the_store_has_lost_stays(tmp_path: Path) -> None:
    with several_hosts(hosts=2) as hosts:
        archiver("crawl", *OPTIONS, "--store", f"file://{tmp_path}/s", *hosts.seeds, cwd=tmp_path)
        lost, other, *_ = sorted(path.name for path in warcs(tmp_path / "c"))
        (tmp_path / "s/archive" / lost).unlink()
        (tmp_path / "s/archive" / other).write_bytes(b"something else")
        ran = archiver("resume", "c", "--no-keep-local", "--no-metadata-warc", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert {path.name for path in warcs(tmp_path / "c")} == {lost, other}


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


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_a_stopped_crawl_says_what_is_not_stored(tmp_path: Path) -> None:
    """So does `status`, until the files are sent."""
    with several_hosts(hosts=2, pages=60, after=80) as hosts:
        options = ("--store", f"file://{tmp_path}/s", "--rate", "40")
        with running("crawl", *OPTIONS, *options, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == ExitCode.STOPPED, errors
    place = f"file://{tmp_path}/s"
    left = len(unsent(Layout(tmp_path / "c"), place, others=True))
    stored = len(StoredFiles(Layout(tmp_path / "c")).read(place))
    assert left >= 2  # index and log are sent at the end only
    assert f"in {place}" in out
    assert f"{left} files are not stored yet; send the rest: archiver store send c" in errors
    shown = archiver("status", "c", cwd=tmp_path).stdout
    assert f"in {place}, {left} not sent yet" in shown
    assert "archiver store send c" in shown
    told = json.loads(archiver("status", "c", "--json", cwd=tmp_path).stdout)["store"]
    assert told == {"address": place, "stored": stored, "unsent": left}
    assert archiver("store", "send", "c", cwd=tmp_path).returncode == 0
    shown = archiver("status", "c", cwd=tmp_path).stdout
    assert f"in {place}, 0 not sent yet" in shown
    assert "archiver store send" not in shown


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
