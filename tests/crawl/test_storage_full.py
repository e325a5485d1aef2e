"""Really full disks, on each kind of file: a line with the path and what is missing, exit code 3, and it goes on."""

import os
import random
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from fixtures.archives import captured, rows
from fixtures.command import archiver, ended, running
from fixtures.mounts import mounted
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page

pytestmark = pytest.mark.slow

SMALL = [f"/{number}.bin" for number in range(60)]
LARGE = "/large.bin"  # goes through the spool
ROUTES: dict[str, Route] = {"/": ok(page("Start", [], [*SMALL, LARGE]))}
ROUTES |= {name: ok(random.Random(name).randbytes(10_000), "image/x") for name in SMALL}
ROUTES[LARGE] = ok(random.Random(LARGE).randbytes(2_000_000), "image/x")
NO_FLOOR = ("--min-free-disk", "0", "--probe", "off")

KINDS = {  # kind of file: the folder that has a small disk of its own, how small, the path in the line
    "archive": ("archive", "300k", r"c/archive/archiver-\S+\.warc\.gz\.open: the disk"),
    "spool": ("spool", "1m", r"c/spool: the response of \S+ cannot be spooled: the disk"),
    "indexes": ("indexes", "12k", r"c/indexes/\S+\.cdxj: the disk"),
    "log": ("logs", "8k", r"c/logs/crawl\.log: the disk"),
    "reports": ("reports", "132k", r"c/reports/\S+\.\w+: the disk"),
    "database": (".", "480k", r"c/crawl\.db: the disk"),
}
FOLDERS = ("archive", "spool", "indexes", "logs", "reports")
SIZE = r"(?:at least )?(\d+) bytes(?: \(.*?\))?"
MISSING = f" is full: {SIZE} more were to be written, {SIZE} are free; at least {SIZE} are missing"


@pytest.fixture(name="server", scope="module")
def a_server() -> Iterator[RawServer]:
    """Serves the site."""
    with RawServer(ROUTES) as server:
        yield server


def refused(folder: Path, named: str, *arguments: str) -> None:
    """`archiver ARGUMENTS` ends with 3 and one line, which names the path and what is missing there."""
    with running(*arguments, "-qq", cwd=folder) as process:
        code, err = ended(process)
    assert code == ExitCode.STORAGE, err
    *warnings, line = err.splitlines()
    assert all(warning.endswith("are kept under damaged/") for warning in warnings), err
    found = re.fullmatch(f"archiver: {named}{MISSING}", line)
    assert found, err
    wanted, free, missing = map(int, found.groups())
    assert missing == wanted - free > 0


def whole(directory: Path, server: RawServer) -> None:
    """Each URL was archived, once, and verify finds no fault."""
    urls = ["/", "/robots.txt", LARGE, *SMALL]
    assert [url for url, _ in captured(directory)] == sorted(map(server.url, urls))
    report = verify([directory])
    assert report.ok, report.findings


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk(tmp_path: Path, server: RawServer, kind: str) -> None:
    below, size, named = KINDS[kind]
    directory = tmp_path / "c"
    begun = archiver(
        "crawl",
        server.url(),
        "-o",
        "c",
        "--probe",
        "off",
        "--max-urls",
        "1",
        "--no-metadata-warc",
        *NO_FLOOR,
        cwd=tmp_path,
    )
    assert begun.returncode == ExitCode.LIMIT
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(directory / below, size))
        if below == ".":  # where all lies: what is not the database gets disks of its own
            for folder in FOLDERS:
                stack.enter_context(mounted(directory / folder, "20m"))
        refused(tmp_path, named, "resume", "c", "--max-urls", "0", "--rate", "0")
        committed = rows(directory, "SELECT url, warc, offset FROM captures")
        assert committed
        disk.resize("20m")
        again = archiver("resume", "c", "-qq", cwd=tmp_path)
        assert again.returncode == ExitCode.DONE, again.stderr
        assert set(committed) <= set(rows(directory, "SELECT url, warc, offset FROM captures"))
        whole(directory, server)


def test_a_disk_that_is_full_from_the_start(tmp_path: Path, server: RawServer) -> None:
    """Nothing can be begun; what a crash left can be looked at, and goes on when its torn end can be set aside."""
    folder = tmp_path / "disk"
    with mounted(folder, "20m"):
        with running(
            "crawl", server.url(), "-o", "c", "--probe", "off", "--rate", "15", *NO_FLOOR, cwd=folder
        ) as process:
            server.log.holds(len(server.log) + 20).wait()
            process.kill()
            ended(process)
        warc = min(folder.glob("c/archive/*.open"))  # on a busy machine there is one of the slow writer too
        with warc.open("ab") as file:
            file.write(bytes(30_000))
        (folder / "c/crawl.db-shm").unlink()
        filled = folder / "filled"
        fill(filled)
        refused(folder, r"new/crawl\.lock: the disk", "crawl", server.url(), "-o", "new", *NO_FLOOR)
        refused(folder, r"c/crawl\.db: the disk", "resume", "c")
        shown = archiver("status", "c", cwd=folder)
        assert (shown.returncode, shown.stderr) == (ExitCode.DONE, "")
        os.truncate(filled, filled.stat().st_size - 60_000)  # enough for the database, not for what is set aside
        refused(folder, r"c/damaged/\S+\.tail: the disk", "resume", "c")
        assert warc.read_bytes().endswith(bytes(30_000))
        filled.unlink()
        assert archiver("resume", "c", "-qq", cwd=folder).returncode == ExitCode.DONE
        whole(folder / "c", server)
        assert any(kept.read_bytes().endswith(bytes(30_000)) for kept in folder.glob("c/damaged/*.tail"))


def fill(path: Path) -> None:
    """Let *path* take all that is free."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
