"""Whatever happens to `archiver pack`, a file with the name of a package is one, and it can be packed again."""

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from archiver.cli.entry import run
from archiver.crawl.reader_process import ReaderProcess
from archiver.model import ExitCode
from archiver.tools.wacz.contents import read_contents
from archiver.tools.wacz.pack import PackOptions, pack
from fixtures.command import ROOT, archiver, environment
from fixtures.forks import Forks
from fixtures.packages import collection, described, members, notes, response, valid
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page
from fixtures.steps import PACKING

SITE = "http://example.org"
PARTS = ["c-001.wacz", "c-002.wacz"]
SPLIT = ("--split", "700k")


@pytest.fixture(name="place", scope="module")
def two_large_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a collection lies that makes two packages."""
    folder = tmp_path_factory.mktemp("packs")
    files = []
    for number in (1, 2):
        film = response(f"{SITE}/f{number}", Random(number).randbytes(300_000), number=number, head="video/mp4")
        shown = response(f"{SITE}/p{number}", b"<title>a</title>", number=10 + number)
        files.append([film, shown, notes("L", 10 + number)])
    collection(folder / "c", *files)
    return folder


def named(folder: Path) -> list[str]:
    """What looks finished."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".tmp" and path.name != "c")


@pytest.mark.parametrize("step", [step.name for step in PACKING])
def test_a_kill(step: str, place: Path, forks: Forks) -> None:
    before = {path: path.read_bytes() for path in (place / "c").rglob("*") if path.is_file()}
    if "named" in step:
        (place / "c.json").write_text("of packages that are replaced")
    ran = forks.run("pack", "c", *SPLIT, "--force", cwd=place, step=step)
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
    for name in named(place):
        if name == "c.json":
            assert [row["name"] for row in json.loads((place / name).read_text())["resources"]] == PARTS
        else:
            assert described(place / name)["resources"]
    ran = forks.run("pack", "c", *SPLIT, "--force", cwd=place)
    assert ran.code == ExitCode.DONE, ran.said
    assert named(place) == [*PARTS, "c.json"]
    assert [path.name for path in place.iterdir() if path.suffix == ".tmp"] == []
    assert [len(members(place / name)) for name in PARTS] == [6, 6]
    assert {path: path.read_bytes() for path in (place / "c").rglob("*") if path.is_file()} == before
    for name in named(place):
        (place / name).unlink()


def test_what_was_killed_leaves_no_valid_package(place: Path, forks: Forks) -> None:
    forks.run("pack", "c", cwd=place, step="package-to-finish")
    assert named(place) == []
    assert (place / "c.wacz.tmp").exists()
    assert forks.run("pack", "c", cwd=place).code == ExitCode.DONE
    assert valid(place / "c.wacz")
    (place / "c.wacz").unlink()


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
@pytest.mark.parametrize("most", [0, 100, 200_000, 600_000])
def test_no_room(most: int, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(place)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        code = run(("pack", "c"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert code == ExitCode.STORAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("archiver: c.wacz: a file may not grow beyond ")
    assert [path.name for path in place.iterdir()] == ["c"]


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the system's figure is that of Linux")
def test_memory_does_not_grow_with_records(tmp_path: Path) -> None:
    """The script that measures it, with one record of 80 MB; an empty package takes 45 MB."""
    command = [sys.executable, "bench/packing.py", "--size", "1M", "--large", "80M", "--directory", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    row = [cell.strip() for cell in ran.stdout.splitlines()[-1].strip("|").split("|")]
    assert row[0] == "0.08 GB"
    assert int(row[1]) > 10
    assert int(row[5].removesuffix(" MB")) < 75


def test_an_interruption_leaves_nothing(place: Path, tmp_path: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    wish = PackOptions(tmp_path / "c.wacz", "archiver/0", "2026-01-02T03:04:05Z", "A title")
    with pytest.raises(KeyboardInterrupt):
        pack(wish, read_contents(place / "c"), ReaderProcess(), interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_package_without_lost_captures_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of a package is made from its files, so nothing else would tell."""
    monkeypatch.chdir(tmp_path)
    with RawServer({"/": ok(page("A"))}) as server:
        assert archiver("crawl", "-q", server.url("/"), "-o", "c", cwd=tmp_path).returncode == ExitCode.DONE
    next((tmp_path / "c/archive").glob("*-00*.warc.gz")).write_bytes(b"")
    capfd.readouterr()
    assert run(["pack", "c"]) == ExitCode.DONE
    assert "not complete: 1 WARC file with " in capfd.readouterr().err
