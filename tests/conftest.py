"""Rules for every test: it leaves nothing behind, and it names the reason when it cannot run here."""

import asyncio
import gc
import multiprocessing.resource_tracker
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from archiver.config.profiles import from_environment
from archiver.frontier.address import write_address
from fixtures import command, postgres, suites
from fixtures.forks import Forks
from fixtures.postgres import PostgresServer

EXAMPLES = 200 if os.environ.get("ARCHIVER_LONG") else 50  # of a property, where its test does not say how many

hypothesis.settings.register_profile("patient", deadline=None, max_examples=EXAMPLES)  # only some tests measure time
hypothesis.settings.register_profile("brief", deadline=None, max_examples=15)  # for a second interpreter
hypothesis.settings.load_profile("patient")

for _ignored in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
    # Background jobs of a shell ignore them, and every process of the tests would inherit that.
    if signal.getsignal(_ignored) is signal.SIG_IGN:
        signal.signal(_ignored, signal.default_int_handler if _ignored == signal.SIGINT else signal.SIG_DFL)

GRACE = 20.0  # seconds at most for a thread or a child process that is about to end
KEPT_OPEN = ("/dev/urandom", "/dev/null")  # libraries open them once, for good


gc.disable()  # until all tests are collected: nothing that collection makes is garbage


def pytest_collection_finish() -> None:
    """Keep the collector away from what lives as long as the run; `nothing_left_behind` calls it often."""
    gc.enable()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need the cases of other projects if these are missing."""
    if item.get_closest_marker("suites") and suites.folder() is None:
        pytest.skip(suites.why_not())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put slow tests first in the share of each process, so that none of them is left at the end."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    light = [item for item in items if not item.get_closest_marker("slow")]
    ordered: list[pytest.Item] = []
    for number in range(processes):
        size = (len(items) - len(ordered)) // (processes - number)
        share = slow[number::processes]
        rest = max(0, size - len(share))
        ordered += [*share, *light[:rest]]
        light = light[rest:]
    items[:] = [*ordered, *light]


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the key of this user (collection/named_files.py) out of their home folder, in started processes too.

    Nor do their own defaults and environment variables have an effect on tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        for name in from_environment(os.environ).origins.values():
            patch.delenv(name)
        yield


@pytest.fixture(name="suites", scope="session")
def suites_folder() -> Path:
    """Return the folder with the cases of other projects, or skip the test."""
    folder = suites.folder()
    if folder is None:
        pytest.skip(suites.why_not())
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer | None]:
    """Run PostgreSQL, if it is installed."""
    if postgres.folder() is None:
        yield None
        return
    with postgres.running() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def crawl_folder(request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer | None) -> Path:
    """Return a folder for a frontier in crawl.db, and another for one in PostgreSQL."""
    if request.param == "postgres":
        if postgres_server is None:
            pytest.skip("PostgreSQL is not installed")
        write_address(tmp_path / "crawl.db", postgres_server.new_database())
    return tmp_path


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def new_crawl(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer | None
) -> Callable[[], Path]:
    """Return a function that makes a further folder for a frontier each time, with one engine for all of them."""
    in_postgres = request.param == "postgres"
    if in_postgres and postgres_server is None:
        pytest.skip("PostgreSQL is not installed")

    def made() -> Path:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        if in_postgres:
            assert postgres_server is not None
            write_address(folder / "crawl.db", postgres_server.new_database())
        return folder

    return made


@pytest.fixture(name="forks", scope="session")
def one_process_that_forks() -> Iterator[Forks]:
    """Start a process that forks for each run of the command."""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    with Forks() as forks:
        yield forks


@pytest.fixture(scope="session", autouse=True)
def command_in_forks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let `fixtures.command.archiver` fork if a test calls it: each run saves the start of an interpreter."""
    callers = [vars(module).get("archiver") for module in list(sys.modules.values()) if module is not command]
    if command.archiver not in callers or not hasattr(os, "fork"):
        yield
        return
    command.FORKS.append(request.getfixturevalue("forks"))
    yield
    command.FORKS.clear()


@dataclass(frozen=True)
class Belongings:
    """The threads, files and children of this process at one moment, with readable names."""

    threads: dict[int, str]
    files: dict[str, str]
    children: dict[int, str]

    @classmethod
    def now(cls) -> "Belongings":
        """Return the present ones; open files and children on Linux only."""
        threads = {thread.ident or 0: f"thread {thread.name!r}" for thread in threading.enumerate()}
        return cls(threads, _open_files(), _children())

    def beyond(self, before: "Belongings") -> list[str]:
        """Return the names of those that are not in *before*."""
        new = [name for ident, name in self.threads.items() if ident not in before.threads]
        new += [name for key, name in self.files.items() if key not in before.files]
        return new + [name for pid, name in self.children.items() if pid not in before.children]


def _open_files() -> dict[str, str]:
    """Return the open descriptors and their targets; the same number with a new target is another descriptor."""
    files: dict[str, str] = {}
    folder = Path("/proc/self/fd")
    for entry in folder.iterdir() if folder.is_dir() else ():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:  # the descriptor of this listing
            continue
        if target not in KEPT_OPEN:
            files[f"{entry.name} {target}"] = f"descriptor {entry.name}: {target}"
    return files


def _children() -> dict[int, str]:
    children: dict[int, str] = {}
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = listing.read_text().split()
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended
            continue
        for pid in map(int, pids):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            children[pid] = f"process {pid}: {command.strip()[:100] or 'ended, but never waited for'}"
    return children


@pytest.fixture(autouse=True, scope="session")
def opened_once() -> None:
    """Open what multiprocessing opens on first use and keeps, before the first test."""
    multiprocessing.resource_tracker.ensure_running()
    multiprocessing.get_context("spawn").Array("Q", 1, lock=False)


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that leaves a task, a thread, a socket, an open file or a child process.

    `asyncio.run` quietly cancels the tasks that are left when its coroutine returns, so they are listed before.
    A cancelled task is not counted as a leak.
    """
    forgotten: list[str] = []
    cancel_all = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

    def look_first(loop: asyncio.AbstractEventLoop) -> None:
        forgotten.extend(f"task {task!r}" for task in asyncio.all_tasks(loop) if not task.cancelling())
        cancel_all(loop)

    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", look_first)
    before = Belongings.now()
    yield
    left = Belongings.now().beyond(before)
    end, pause = time.monotonic() + GRACE, 0.02
    while left and time.monotonic() < end:
        gc.collect()
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
        left = Belongings.now().beyond(before)
    if left or forgotten:
        pytest.fail("left behind:\n  " + "\n  ".join(forgotten + left), pytrace=False)
