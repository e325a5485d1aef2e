"""Signals in the hands of a person, by real signals to a real process: drain, cut, end at once."""

import asyncio
import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from archiver.cli.runner import StopSignals
from archiver.crawl.stats import Snapshot
from archiver.model import ExitCode
from fixtures.command import archiver, ended, environment, running

STAND_IN = '''
import asyncio, sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from archiver.cli.runner import run_crawl
from archiver.model import ExitCode
from archiver.crawl.stats import Counters, UrlCounts

@dataclass(frozen=True)
class Ending:
    code: ExitCode
    reason: str

class Crawl:
    """Ends when it is told to by the signal whose name is the first argument."""
    def __init__(self):
        self.end = asyncio.Event()
    async def run(self):
        tell("running")
        await self.end.wait()
        return Ending(ExitCode.STOPPED, "stopped")
    def snapshot(self):
        return Counters(0.0).snapshot(1.0, "crawling", UrlCounts())
    def drain(self):
        tell("drain")
        if sys.argv[1] in ("drain", "late"):
            self.end.set()
    def cut(self):
        tell("cut")
        if sys.argv[1] == "cut":
            self.end.set()

def tell(word):
    print(word, flush=True)

@asynccontextmanager
async def opened():
    if sys.argv[1] == "early":
        tell("opening")
        await asyncio.to_thread(sys.stdin.readline)
        sys.argv[1] = "drain"
    yield Crawl()
    tell("closed")

def told(outcome):
    if sys.argv[1] == "late":
        tell("reporting")
        sys.stdin.readline()
    tell(outcome.ended.reason)
    return outcome.ended.code

sys.exit(run_crawl(opened(), None, 30.0, told))
'''


@contextmanager
def crawling(ends_by: str, cwd: Path, *before: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that stands where a crawl does."""
    with subprocess.Popen(
        [*before, sys.executable, "-c", STAND_IN, ends_by],
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        yield process
        process.kill()


def _says(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_first_signal_drains(tmp_path: Path, number: signal.Signals) -> None:
    with crawling("drain", tmp_path) as process:
        assert _says(process) == "running"
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
        assert out.split() == ["drain", "closed", "stopped"]
        assert process.returncode == ExitCode.STOPPED
        assert err.count("\n") == 1
        assert "waiting up to 30 s for requests in flight" in err


def test_nohup_is_respected(tmp_path: Path) -> None:
    with crawling("drain", tmp_path, "nohup") as process:
        assert _says(process) == "running"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
        assert process.returncode == ExitCode.STOPPED
        assert "requests in flight; Ctrl+C again cuts them" in err
        assert "are cut" not in err


def test_second_signal_cuts(tmp_path: Path) -> None:
    with crawling("cut", tmp_path) as process:
        assert _says(process) == "running"
        process.send_signal(signal.SIGINT)
        assert _says(process) == "drain"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
        assert out.split() == ["cut", "closed", "stopped"]
        assert process.returncode == ExitCode.STOPPED
        assert err.count("\n") == 2


def test_third_signal_ends_at_once(tmp_path: Path) -> None:
    with crawling("never", tmp_path) as process:
        assert _says(process) == "running"
        process.send_signal(signal.SIGINT)
        assert _says(process) == "drain"
        process.send_signal(signal.SIGINT)
        assert _says(process) == "cut"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        assert out == ""
        assert process.returncode == ExitCode.STOPPED
        assert "archiver resume" in err.splitlines()[-1]


def test_signal_before_the_crawl_is_open_is_passed_on(tmp_path: Path) -> None:
    with crawling("early", tmp_path) as process:
        assert _says(process) == "opening"
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "stopping" in process.stderr.readline()
        out, _ = process.communicate("\n", timeout=300)
        assert out.split() == ["drain", "running", "closed", "stopped"]
        assert process.returncode == ExitCode.STOPPED


def test_signal_while_the_reports_are_written_is_patient(tmp_path: Path) -> None:
    with crawling("late", tmp_path) as process:
        assert _says(process) == "running"
        process.send_signal(signal.SIGINT)
        assert [_says(process) for _ in range(3)] == ["drain", "closed", "reporting"]
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        assert "writing its reports" in process.stderr.readline()
        out, _ = process.communicate("\n", timeout=300)
        assert out.split() == ["stopped"]
        assert process.returncode == ExitCode.STOPPED


class Recorded:
    """A crawl that only notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def run(self) -> object:
        raise NotImplementedError

    def snapshot(self) -> Snapshot:
        raise NotImplementedError

    def drain(self) -> None:
        self.told.append("drain")

    def cut(self) -> None:
        self.told.append("cut")


@pytest.mark.parametrize(("signals", "told"), [(0, []), (1, ["drain"]), (2, ["drain", "cut"])])
def test_early_signals(signals: int, told: list[str]) -> None:
    stop, crawl = StopSignals(30.0), Recorded()
    for _ in range(signals):
        stop.signalled()

    async def opened() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.stop(crawl), 0.01)

    asyncio.run(opened())
    assert crawl.told == told


def test_every_further_signal_ends_at_once() -> None:
    left: list[int] = []
    stop = StopSignals(30.0, left.append)
    for _ in range(4):
        stop.signalled()
    assert left == [ExitCode.STOPPED, ExitCode.STOPPED]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_what_is_no_crawl_yet_ends_in_order_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "seeds")
    with running("crawl", "--seeds", "seeds", cwd=tmp_path) as process:
        with (tmp_path / "seeds").open("wb", buffering=0) as pipe:
            pipe.write(b"\n" * 200_000)  # more than a pipe holds, so it is being read
            process.terminate()
        assert ended(process) == (ExitCode.STOPPED, "\narchiver: interrupted\n")  # a signal just before a read waits


def test_a_signal_while_the_program_is_loaded(tmp_path: Path) -> None:
    finder = "class F:\n def find_spec(self, name, *_):\n  if name == 'archiver.cli.entry': raise KeyboardInterrupt"
    program = f"import sys, archiver.cli\n{finder}\nsys.meta_path.insert(0, F())\narchiver.cli.main()"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (ExitCode.STOPPED, "", "archiver: interrupted\n")


RECORD = (
    b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\n"
    b"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: https://example.org/%d\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 4\r\n\r\ntext\r\n\r\n"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_removes_its_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    scratch, packed = tmp_path / "scratch", tmp_path / "some.warc.gz"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    packed.write_bytes(b"".join(gzip.compress(RECORD % (n, n), 1) for n in range(20_000)))
    archiver("import", str(packed), "-o", "collection", cwd=tmp_path)
    with running("verify", "collection", cwd=tmp_path) as process:
        # Not already at its lock file: Python ignores an interrupt that comes while it forgets the lock of a module.
        while not any(path.is_dir() for path in scratch.glob("*/*")):
            assert process.poll() is None
        process.send_signal(number)
        code, err = ended(process)
    assert code == ExitCode.STOPPED
    assert err.strip() == "archiver: interrupted"
    assert not any(scratch.iterdir())
