"""SIGKILL at chosen system calls of a real process: what was whole is kept and not asked for again, the rest made good.

strace kills the process as it enters the call, so each crash window between two steps on disk can be hit exactly.
"""

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from archiver.model import ExitCode
from fixtures.archives import captured, rows, states, stored, warcs
from fixtures.command import archiver, ended, running
from fixtures.rawserver import RawServer
from fixtures.sites import UNNAMED, tree

SITE = tree(40)
ALL = SITE.reachable | UNNAMED | {"/robots.txt"}
OPTIONS = ("-o", "c", "--rate", "0", "--host-concurrency", "1", "--warc-size", "20000")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which places the kill"),
]


@dataclass(frozen=True)
class CrashState:
    """What a killed process left."""

    files: dict[str, bytes]  # WARC files by final name
    orphans: frozenset[str]  # URLs of whole visits of which the database does not know
    asked: int  # requests so far


def _kill(folder: Path, server: RawServer, call: str, when: int, name: str) -> CrashState:
    """Crawl until the process enters system call *call* for the *when*-th time (on file *name*, if one is given)."""
    which = ["-P", str(folder / "c" / name)] if name else []
    inject = f"inject={call}:signal=SIGKILL:when={when}"
    strace = ("strace", "-f", "-qq", "-o", str(folder / "trace"), *which, "-e", f"trace={call}", "-e", inject)
    with running("crawl", server.url(), *OPTIONS, cwd=folder, before=strace) as process:
        code, err = ended(process)
    directory = folder / "c"
    assert code in (-signal.SIGKILL, 128 + signal.SIGKILL), err
    files = {path.name.removesuffix(".open"): path.read_bytes() for path in warcs(directory)}
    known = rows(directory, "SELECT 1 FROM sqlite_master WHERE name = 'warcs'")
    found = rows(directory, "SELECT name, committed FROM warcs") if known else []
    committed = {str(name): int(str(size)) for name, size in found}
    orphans = {url for path in warcs(directory) for url in _whole(path, committed.get(_name(path), 0))}
    return CrashState(files, frozenset(orphans), len(server.log))


def _name(path: Path) -> str:
    return path.name.removesuffix(".open")


def _whole(path: Path, offset: int) -> list[str]:
    """The URLs of the whole visits in *path* from *offset* on, as warcio sees them."""
    urls: list[str] = []
    with path.open("rb") as file:
        file.seek(offset)
        try:
            for record in ArchiveIterator(file, no_record_parse=True):
                record.raw_stream.read()
                if record.rec_type == "metadata":
                    urls.append(record.rec_headers.get_header("WARC-Target-URI"))
            whole = True
        except (ArchiveLoadFailed, EOFError, AttributeError):  # however warcio says that a member is torn
            whole = False
    return urls if whole or not urls else urls[:-1]


def _check(folder: Path, server: RawServer, crashed: CrashState) -> None:
    directory = folder / "c"
    resumed = archiver("resume", "c", cwd=folder)
    assert resumed.returncode == ExitCode.DONE, resumed.stderr
    checked = archiver("verify", "c", cwd=folder)
    assert checked.returncode == ExitCode.DONE, checked.stdout
    assert [url for url, _ in captured(directory)] == sorted(map(server.url, ALL))
    assert set(states(directory).values()) == {"archived"}
    again = {server.url(row.target) for row in tuple(server.log)[crashed.asked :]}
    assert not again & crashed.orphans
    for name, before in crashed.files.items():
        path = directory / "archive" / name
        kept = path.read_bytes() if path.exists() else b""
        tails = [tail.read_bytes() for tail in directory.glob(f"damaged/{name}.*.tail")]
        assert b"".join([kept, *tails]) == before
    assert not list(directory.rglob("*.tmp"))
    assert not list(directory.rglob("*.open"))


@pytest.mark.parametrize("when", [180, 220, 270])
def test_kill_in_the_middle_of_a_commit(tmp_path: Path, when: int) -> None:
    """The visits that are synced are orphans then. Every other step is in `test_failpoints.py`."""
    with RawServer(SITE.routes) as server:
        crashed = _kill(tmp_path, server, "pwrite64", when, "crawl.db-wal")
        _check(tmp_path, server, crashed)


def test_kill_before_there_is_a_schema(tmp_path: Path) -> None:
    strace = ("strace", "-f", "-qq", "-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=SIGKILL:when=3")
    with RawServer(SITE.routes) as server:
        with running("crawl", server.url(), *OPTIONS, cwd=tmp_path, before=strace) as process:
            ended(process)
        assert not server.log
        _check(tmp_path, server, CrashState({}, frozenset(), 0))


def test_kill_twice_and_in_recovery(tmp_path: Path) -> None:
    """A crash while a crash is repaired changes nothing."""
    with RawServer(SITE.routes) as server:
        crashed = _kill(tmp_path, server, "pwrite64", 230, "crawl.db-wal")
        for call in ("fdatasync", "rename", "ftruncate", "pwrite64"):
            strace = ("strace", "-f", "-qq", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when=1")
            with running("resume", "c", cwd=tmp_path, before=strace) as process:
                ended(process)
        assert crashed.files
        _check(tmp_path, server, CrashState({}, crashed.orphans, crashed.asked))


@pytest.mark.parametrize("count", [1, 30])
def test_kill_by_requests_seen(tmp_path: Path, count: int) -> None:
    with RawServer(SITE.routes) as server:
        with running("crawl", server.url(), *OPTIONS, cwd=tmp_path) as process:
            server.log.holds(count).wait()
            process.kill()
            ended(process)
        files = {_name(path): path.read_bytes() for path in warcs(tmp_path / "c")}
        _check(tmp_path, server, CrashState(files, frozenset(), len(server.log)))
        assert len(stored(tmp_path / "c")) == len(ALL)
