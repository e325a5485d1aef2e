"""Measure one run of one client from outside, and summarize several runs.

A client is a command in its own folder, pinned to the last core of the machine. Servers and this program keep to the
first core. With one core, all share it. CPU time is what the system charged the process for. Memory is its peak and
its course while it runs. Clients take turns, so that other load on the machine falls on all of them. Ratios compare
runs of the same round.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
EVERY = 0.1  # seconds between two samples of a client's memory
STATUS_KB = ("VmRSS:", "VmHWM:")


class Moment(NamedTuple):
    """A sample of a running client."""

    at: float  # seconds since its start
    megabytes: float
    cpu: float  # seconds of CPU time so far


@dataclass(frozen=True)
class Run:
    """A run; `done` and `fault` are set later: what it fetched, and why it does not count."""

    cpu: float
    wall: float
    megabytes: float
    began: float  # wall clock time
    course: Sequence[Moment] = field(default=(), repr=False)
    done: int = 0
    stored: float = 0.0  # megabytes
    fault: str = ""


ALLOWED = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset({0})


def settle_down() -> None:
    """Pin this program and the servers that it starts to the first core, so that clients get the last."""
    if len(ALLOWED) > 1 and shutil.which("taskset"):
        os.sched_setaffinity(0, {min(ALLOWED)})


def allow_files(count: int) -> int:
    """Raise the limit of open files for child processes towards *count*, and return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in ((count, max(count, hard)), (min(count, hard), hard)):  # only root may raise the hard one
        if soft < count:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, wanted)
            except (OSError, ValueError):
                continue
            return wanted[0]
    return soft


def pinned(command: Sequence[str]) -> list[str]:
    """Return *command* pinned to the client's core, if this program is pinned to the servers'."""
    alone = len(ALLOWED) > 1 and os.sched_getaffinity(0) != ALLOWED
    return ["taskset", "-c", str(max(ALLOWED)), *command] if alone else list(command)


def environment() -> dict[str, str]:
    """Return an environment in which this checkout's archiver is found and its bytecode is cached."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


Stop = Callable[[float], bool]
"""Gets the seconds since the start of a client and returns True to stop it; called ten times a second."""


def never(at: float) -> bool:
    """Return False: the client ends by itself."""
    return False


def measure(command: Sequence[str], folder: Path, *, good: Sequence[int] = (0,), stop: Stop = never) -> Run:
    """Run *command* in an empty *folder*; other exit codes than *good* are faults, unless it was stopped on purpose."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    said = folder.with_suffix(".log")
    course: list[Moment] = []
    peaks = [0.0]
    over, stopped = threading.Event(), threading.Event()
    began, wall_clock = time.monotonic(), time.time()
    with said.open("wb") as log:
        client = subprocess.Popen(pinned(command), cwd=folder, stdout=log, stderr=log, env=environment())

        def watch() -> None:
            while not over.wait(EVERY):
                at = time.monotonic() - began
                now, highest = _memory(client.pid)
                if now:  # else it has ended
                    course.append(Moment(at, now, _cpu(client.pid)))
                peaks.append(highest)
                if not stopped.is_set() and stop(at):
                    client.terminate()
                    stopped.set()

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            _, status, usage = os.wait4(client.pid, 0)
        except BaseException:  # this program was interrupted
            client.kill()
            raise
        finally:
            wall = time.monotonic() - began
            over.set()
            watching.join()
    client.returncode = os.waitstatus_to_exitcode(status)
    run = Run(usage.ru_utime + usage.ru_stime, wall, max(peaks) or usage.ru_maxrss / 1024, wall_clock, course)
    if client.returncode in good or stopped.is_set():
        return run
    words = said.read_text(errors="replace").strip().splitlines()[-5:]
    return replace(run, fault=f"exit code {client.returncode}: {' / '.join(words)}")


def _memory(pid: int) -> tuple[float, float]:
    """Return the current and the peak memory of a process in megabytes, or nothing if unknown."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    values = dict(line.split()[:2] for line in lines if line.startswith(STATUS_KB))
    return int(values.get("VmRSS:", 0)) / 1024, int(values.get("VmHWM:", 0)) / 1024


def _cpu(pid: int) -> float:
    """Return the seconds of CPU time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_turn(clients: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """Run the clients one after another, so many times."""
    runs: dict[str, list[Run]] = {name: [] for name in clients}
    for number in range(rounds):
        for name, client in clients.items():
            run = client()
            runs[name].append(run)
            print_run(f"round {number + 1}: {name}", run)
    return runs


def print_run(name: str, run: Run) -> None:
    """Print a progress line."""
    words = run.fault or f"{run.done} URLs, {run.cpu:.2f} s CPU, {run.wall:.2f} s, {run.megabytes:.0f} MB"
    print(f"  {name}: {words}", file=sys.stderr, flush=True)


def middle(values: Sequence[float]) -> float:
    """Return the median, or NaN if there are no values."""
    return statistics.median(values) if values else float("nan")


def spread(values: Sequence[float]) -> str:
    """Return the median, with minimum and maximum if there are several values."""
    if len(values) < 2:
        return f"{middle(values):.5g}"
    return f"{middle(values):.5g} ({min(values):.5g} to {max(values):.5g})"


def ratios(runs: Mapping[str, Sequence[Run]], ours: str, peer: str, figure: Callable[[Run], float]) -> list[float]:
    """Return our *figure* divided by the peer's, for each round in which both count."""
    pairs = zip(runs[ours], runs[peer], strict=True)
    return [figure(mine) / figure(theirs) for mine, theirs in pairs if not mine.fault and not theirs.fault]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in columns, which is also a Markdown table."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    print(f"\n{title}\n")
    for line in lines:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")
    sys.stdout.flush()


def as_json(runs: Mapping[str, Sequence[Run]]) -> dict[str, list[dict[str, object]]]:
    """Return the runs as JSON, without the course of their memory."""
    return {name: [asdict(replace(run, course=())) for run in each] for name, each in runs.items()}
