"""Packages made to hurt who opens them: memory and work stay in proportion to what came, and one line says why."""

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from threading import Timer

import pytest

from archiver.model import ExitCode
from archiver.tools.ingest import wacz
from archiver.tools.ingest.sources import find_archives
from fixtures.packages import INFO, response

WARC = INFO + response("http://a.test/", b"<p>")
MOST = 300 << 20  # bytes that a command may take; reading a small package takes a hundred million
PROGRAM = """
import atexit, pathlib, runpy
atexit.register(lambda: pathlib.Path("status").write_text(pathlib.Path("/proc/self/status").read_text()))
runpy.run_module("archiver", run_name="__main__")
"""
PATIENCE = 240  # seconds: where work grows with the square of the input, it takes hours
MEMBERS = 40_000 if os.environ.get("ARCHIVER_LONG") else 15_000  # of a package


def _told(*command: str, cwd: Path) -> tuple[int, str, int]:
    """Exit code, what stderr says, and the most memory that the command took, in bytes."""
    with (cwd / "err").open("wb") as err, (cwd / "out").open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, *command], cwd=cwd, stderr=err, stdout=out)
        watch = Timer(PATIENCE, process.kill)
        watch.start()
        try:
            code = process.wait()
        finally:
            watch.cancel()
            watch.join()
    found = re.search(r"VmHWM:\s+(\d+) kB", (cwd / "status").read_text())
    return code, (cwd / "err").read_text(), int(found[1]) * 1024 if found else 0


def _package(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


@pytest.mark.parametrize("text", [b"[],", b"{},", b'{"a":0},', b'"",', b"0,"])
@pytest.mark.parametrize("command", [("ls",), ("import", "-o", "c")])
def test_a_small_package_takes_little_memory(tmp_path: Path, command: tuple[str, ...], text: bytes) -> None:
    """60 kB that unpack to 64 MiB of JSON, of which each three bytes would take sixty."""
    said = b'{"resources": [' + text * ((60 << 20) // len(text)) + b"0]}"
    path = _package(tmp_path / "x.wacz", ("archive/a.warc.gz", WARC), ("datapackage.json", said))
    assert path.stat().st_size < 400_000
    code, err, used = _told(command[0], path.name, *command[1:], cwd=tmp_path)
    assert used < MOST, f"{used >> 20} MiB"
    assert "Traceback" not in err
    assert code in (ExitCode.DONE, ExitCode.USAGE, ExitCode.FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["archive/%d.warc.gz", "archive/%d.txt", "pages/%d.jsonl"])
@pytest.mark.parametrize("command", [("ls",), ("import", "-o", "c")])
def test_very_many_members_come_to_an_end(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    members = [(name % number, b"") for number in range(MEMBERS)]
    path = _package(tmp_path / "x.wacz", ("archive/a.warc.gz", WARC), *members)
    code, err, _ = _told(command[0], path.name, *command[1:], cwd=tmp_path)
    assert code in (ExitCode.DONE, ExitCode.USAGE, ExitCode.FAULTS), err
    assert len(err) < 20_000


def test_a_list_that_names_one_package_very_often_names_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path / "x.wacz", ("archive/a.warc.gz", WARC))
    read: list[Path] = []

    def noted(path: Path) -> wacz.ReceivedPackage:
        read.append(path)
        return wacz.read_package(path)

    monkeypatch.setattr(import_module("archiver.tools.ingest.sources"), "read_package", noted)
    spelled = [{"path": "./" * (number % 5) + "x.wacz"} for number in range(200_000)]
    (tmp_path / "all.json").write_text(json.dumps({"profile": "multi-wacz-package", "resources": spelled}))
    assert len(find_archives([tmp_path / "all.json"])) == 1
    assert len(read) == 1


@pytest.mark.parametrize(("number", "name"), [(20_000, "{}.wacz"), (800_000, "x.wacz")])
def test_too_long_a_list_is_refused_in_one_line(tmp_path: Path, number: int, name: str) -> None:
    _package(tmp_path / "x.wacz", ("archive/a.warc.gz", WARC))
    names = [{"path": name.format(one)} for one in range(number)]
    text = json.dumps({"profile": "multi-wacz-package", "resources": names})
    (tmp_path / "all.json").write_text(text)
    code, err, used = _told("import", "all.json", "-o", "c", cwd=tmp_path)
    assert code == ExitCode.USAGE
    assert "all.json" in err
    assert len(err.strip().splitlines()) == 1
    assert used < MOST
