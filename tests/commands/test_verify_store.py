"""`archiver verify DIR --store STORE`: the objects of a store are checked like files, without a copy here."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.command import archiver
from fixtures.s3_server import BUCKET, s3
from fixtures.several_hosts import several_hosts

OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--warc-size", "10k")


def crawl_to(store: str, folder: Path) -> None:
    with several_hosts(hosts=2) as hosts:
        ran = archiver("crawl", *OPTIONS, "--store", store, *hosts.seeds, cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr


def verified(store: str, folder: Path) -> tuple[int, dict[str, set[str]]]:
    """The exit code, and the codes of the findings for each object."""
    ran = archiver("verify", "c", "--store", store, "--json", cwd=folder)
    codes: dict[str, set[str]] = {}
    for finding in json.loads(ran.stdout)["findings"]:
        codes.setdefault(finding["file"], set()).add(finding["code"])
    return ran.returncode, codes


def test_whole_files_in_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is that of the files here, and a file that is not sent yet is read here."""
    store = f"s3://{BUCKET}/a/b"
    with s3(monkeypatch):
        crawl_to(store, tmp_path)
        here = archiver("verify", "c", cwd=tmp_path)
        paths = warcs(tmp_path / "c")
        notes = tmp_path / "c/stored.jsonl"
        unsent = paths[-1].name
        notes.write_text("".join(line for line in notes.read_text().splitlines(keepends=True) if unsent not in line))
        for path in paths[:-1]:
            path.unlink()
        there = archiver("verify", "c", "--store", store, cwd=tmp_path)
    assert (here.returncode, there.returncode) == (0, 0), there.stdout
    assert there.stdout == here.stdout
    assert "0 faults" in there.stdout


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "codes"),
    [
        (_cut, {"gzip-cut", "warc-length", "file-changed"}),
        (_change, {"gzip-broken", "file-changed"}),
        (_lengthen, {"not-gzip", "warc-length", "file-changed"}),
        (_empty, {"unreadable"}),
        (Path.unlink, {"unreadable"}),
    ],
)
def test_faults(tmp_path: Path, damage: Callable[[Path], None], codes: set[str]) -> None:
    store = f"file://{tmp_path}/store"
    crawl_to(store, tmp_path)
    paths = warcs(tmp_path / "c")
    for path in paths:
        path.unlink()
    wrong = tmp_path / "store/archive" / paths[1].name
    damage(wrong)
    status, found = verified(store, tmp_path)
    assert status == ExitCode.FAULTS
    assert codes <= found.pop(f"{store}/archive/{wrong.name}")
    assert {Path(name).parent.as_posix() for name in found} <= {"c", "c/indexes"}  # what the database and index lack


def test_files_that_are_in_the_store_only(tmp_path: Path) -> None:
    """They are not missing, and the index keeps their lines; a file that no store has is missing."""
    store = f"file://{tmp_path}/store"
    crawl_to(store, tmp_path)
    paths = warcs(tmp_path / "c")
    for path in paths[:2]:
        path.unlink()
    ran = archiver("verify", "c", cwd=tmp_path)
    told = "2 WARC files are in a store only; to check there: archiver verify c --store STORE"
    assert (ran.returncode, told in ran.stdout) == (0, True), ran.stdout
    assert "0 faults, 0 warnings, 1 note" in ran.stdout
    index = (tmp_path / "c/indexes/index.cdxj").read_bytes()
    ran = archiver("index", "c", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (ExitCode.USAGE, 1)
    assert "c: 2 WARC files are in a store only; to bring them back: archiver store fetch c" in ran.stderr
    assert (tmp_path / "c/indexes/index.cdxj").read_bytes() == index
    (tmp_path / "c/stored.jsonl").unlink()
    ran = archiver("verify", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.FAULTS
    assert f"warc-missing: archive/{paths[0].name} is missing" in ran.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("c", "--store", "file:///elsewhere"), "c: its stored.jsonl names no WARC file in file:///elsewhere"),
        (("c", "--store", "ftp://x"), "--store: "),
        (("c/stored.jsonl", "--store", "file:///elsewhere"), "is not a directory"),
    ],
)
def test_refused(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    (tmp_path / "c/archive").mkdir(parents=True)
    (tmp_path / "c/stored.jsonl").write_text("")
    ran = archiver("verify", *words, cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert told in ran.stderr
    assert ran.stderr.count("\n") == 1
