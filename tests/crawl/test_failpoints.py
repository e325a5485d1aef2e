"""A kill at each named step, and again at the same step of the repair: afterwards nothing is lost and nothing is twice.

Each run is a child forked by one process that has imported everything, which is cheap enough for the whole table.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.command import ROOT, environment
from fixtures.failpoints import Step
from fixtures.forks import Forks, Ran
from fixtures.hashed_site import HOSTS, HashedSite, hashed_site
from fixtures.kill_checks import KillChecks
from fixtures.rawserver import RawServer
from fixtures.steps import COMMIT, END, INDEX, METADATA, REBUILDING, RECOVERY, ROTATION, START, STEPS

OPTIONS = ("-o", "c", "--rate", "0", "--host-concurrency", "2", "--warc-size", "6000", "--min-free-disk", "0", "-qq")
CUT = "transaction-to-end"  # at its fifth passing: in two files, visits of which the database does not know

pytestmark = pytest.mark.slow


class Case:
    """One crawl that is killed and resumed."""

    def __init__(self, folder: Path, server: RawServer, site: HashedSite, forks: Forks) -> None:
        self.folder = folder
        self.directory = folder / "c"
        self.checks = KillChecks(self.directory, server, site.digests, self._run)
        self._site = site
        self._forks = forks

    def crawl(self, step: str = "", passing: int = 0) -> Ran:
        begin = ("crawl", *self._site.seeds, *OPTIONS)
        return self._forks.run(*begin, cwd=self.folder, step=step, passing=passing)

    def go_on(self, step: str = "") -> Ran:
        """Resume, or begin once more where nothing had begun."""
        if not (self.directory / "crawl.toml").exists():
            return self.crawl(step)
        return self._forks.run("resume", "c", "-qq", cwd=self.folder, step=step)

    def rebuild(self, step: str = "") -> Ran:
        return self._forks.run("rebuild", "c", cwd=self.folder, step=step)

    def crash(self) -> None:
        """A crawl that was cut off: committed visits, whole visits that are not committed, a torn one, a draft."""
        killed(self.crawl(CUT, passing=5), CUT)
        path = max((self.directory / "archive").glob("*.open"), key=lambda path: path.name)
        with path.open("r+b") as file:
            begun = file.read(150)  # of another record
            file.seek(0, os.SEEK_END)
            file.write(begun)
        (self.directory / "indexes" / "index.cdxj.tmp").write_bytes(begun)
        self.checks.look()

    def _run(self, *arguments: str) -> tuple[int, str]:
        ran = self._forks.run(*arguments, cwd=self.folder)
        return ran.code, ran.said


def killed(ran: Ran, step: str) -> None:
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said


def done(ran: Ran) -> None:
    assert ran.code == ExitCode.DONE, ran.said


@pytest.fixture(name="case")
def one_case(tmp_path: Path, forks: Forks) -> Iterator[Case]:
    with RawServer(hosts=HOSTS) as server:
        site = hashed_site(12, server.url, large=12_000, probed=True)
        server.routes = site.routes
        yield Case(tmp_path, server, site, forks)


def each(steps: tuple[Step, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("step", [step.name for step in steps])


def test_names_are_unique_and_resolve() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS)
    for step in STEPS:
        assert callable(step.resolved()[2])


@each((*START, *COMMIT, *ROTATION, *INDEX, *END, *METADATA))
def test_of_a_crawl(case: Case, step: str) -> None:
    killed(case.crawl(step), step)
    case.checks.look()
    done(case.go_on())
    case.checks.finish()


def killed_twice(case: Case, run: Callable[[str], Ran], step: str) -> None:
    """*run* is killed at the step, and the next one there too if it comes there again."""
    killed(run(step), step)
    case.checks.look()
    again = run(step)
    if again.code:
        killed(again, step)
        case.checks.look()


@each(RECOVERY)
def test_of_recovery(case: Case, step: str) -> None:
    case.crash()
    killed_twice(case, case.go_on, step)
    done(case.go_on())
    case.checks.finish()


@each(REBUILDING)
def test_of_rebuilding(case: Case, step: str) -> None:
    case.crash()
    killed_twice(case, case.rebuild, step)
    done(case.rebuild())
    case.checks.look()
    done(case.go_on())
    case.checks.finish()


def test_as_a_command(tmp_path: Path) -> None:
    failpoints = (sys.executable, "-m", "fixtures.failpoints")
    with RawServer(hosts=HOSTS) as server:
        ran = subprocess.run(
            [*failpoints, "folders-made", "--", "crawl", server.url(), *OPTIONS],
            cwd=tmp_path,
            env=environment(),
            check=False,
        )
        assert ran.returncode == -signal.SIGKILL
        assert not server.log
    assert (tmp_path / "c" / "archive").exists()
    told = subprocess.run([*failpoints, "nowhere"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "folders-made" in told.stderr
