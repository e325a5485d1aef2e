"""One run of one client, measured from outside, and what several runs come to.

A client is a command in a folder of its own, pinned to the last core of the machine; servers and this program keep to
the first. Where there is one core, all share it. Processor time is what the system charged the process for; memory is
its peak, and its course, as the system tells them while it runs. Clients take turns, so that what else happens on the
machine falls on all of them; ratios are those of runs that stood beside each other.
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
EVERY = 0.1  # seconds between two looks at a client's memory
STATUS_KB = ("VmRSS:", "VmHWM:")


class Moment(NamedTuple):
    """A look at a client while it runs."""

    at: float  # seconds since it was started
    megabytes: float
    cpu: float  # seconds of CPU time so far


@dataclass(frozen=True)
class Run:
    """What one run took; `done` and `fault` are found out afterwards: what it fetched, and why it does not count."""

    cpu: float
    wall: float
    megabytes: float
    began: float  # by the clock on the wall
    course: Sequence[Moment] = field(default=(), repr=False)
    done: int = 0
    stored: float = 0.0  # megabytes
    fault: str = ""


ALLOWED = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset({0})


def settle_down() -> None:
    """Keep this program and the servers that it starts to the first core; the clients are then pinned to the last."""
    if len(ALLOWED) > 1 and shutil.which("taskset"):
        os.sched_setaffinity(0, {min(ALLOWED)})


def allow_files(count: int) -> int:
    """Raise the limit of open files, for what is started from here, towards *count*; what it is then."""
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
    """*command* on the core of the client, if this program keeps to that of the servers."""
    alone = len(ALLOWED) > 1 and os.sched_getaffinity(0) != ALLOWED
    return ["taskset", "-c", str(max(ALLOWED)), *command] if alone else list(command)


def environment() -> dict[str, str]:
    """In which this checkout's archiver is the one that is found, compiled once as an installed program is."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


Stop = Callable[[float], bool]
"""From the seconds since a client was started to whether it is to be told to end; asked ten times a second."""


def never(at: float) -> bool:
    """A client ends by itself."""
    return False


def measure(command: Sequence[str], folder: Path, *, good: Sequence[int] = (0,), stop: Stop = never) -> Run:
    """Run *command* in an empty *folder*; exit codes that are not *good* are faults, unless it was told to end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    said = folder.with_suffix(".log")
    course: list[Moment] = []
    peaks = [0.0]
    over, told = threading.Event(), threading.Event()
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
                if not told.is_set() and stop(at):
                    client.terminate()
                    told.set()

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            _, status, usage = os.wait4(client.pid, 0)
        except BaseException:  # somebody ended this program
            client.kill()
            raise
        finally:
            wall = time.monotonic() - began
            over.set()
            watching.join()
    client.returncode = os.waitstatus_to_exitcode(status)
    run = Run(usage.ru_utime + usage.ru_stime, wall, max(peaks) or usage.ru_maxrss / 1024, wall_clock, course)
    if client.returncode in good or told.is_set():
        return run
    words = said.read_text(errors="replace").strip().splitlines()[-5:]
    return replace(run, fault=f"exit code {client.returncode}: {' / '.join(words)}")


def _memory(pid: int) -> tuple[float, float]:
    """Megabytes that a process has in memory, and the most it ever had; nothing where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    told = dict(line.split()[:2] for line in lines if line.startswith(STATUS_KB))
    return int(told.get("VmRSS:", 0)) / 1024, int(told.get("VmHWM:", 0)) / 1024


def _cpu(pid: int) -> float:
    """Seconds of CPU time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_turn(clients: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """Let each client run, one after the other, so many times."""
    runs: dict[str, list[Run]] = {name: [] for name in clients}
    for number in range(rounds):
        for name, client in clients.items():
            run = client()
            runs[name].append(run)
            tell(f"round {number + 1}: {name}", run)
    return runs


def tell(name: str, run: Run) -> None:
    """A line for who waits."""
    words = run.fault or f"{run.done} URLs, {run.cpu:.2f} s CPU, {run.wall:.2f} s, {run.megabytes:.0f} MB"
    print(f"  {name}: {words}", file=sys.stderr, flush=True)


def middle(values: Sequence[float]) -> float:
    """Their median; not a number where there is none."""
    return statistics.median(values) if values else float("nan")


def spread(values: Sequence[float]) -> str:
    """The median, with the least and the most where there are several."""
    if len(values) < 2:
        return f"{middle(values):.5g}"
    return f"{middle(values):.5g} ({min(values):.5g} to {max(values):.5g})"


def ratios(runs: Mapping[str, Sequence[Run]], ours: str, peer: str, figure: Callable[[Run], float]) -> list[float]:
    """Our *figure* divided by the peer's, round by round, where both count."""
    pairs = zip(runs[ours], runs[peer], strict=True)
    return [figure(mine) / figure(theirs) for mine, theirs in pairs if not mine.fault and not theirs.fault]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in columns, which is a table of Markdown too."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    print(f"\n{title}\n")
    for line in lines:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")
    sys.stdout.flush()


def as_json(runs: Mapping[str, Sequence[Run]]) -> dict[str, list[dict[str, object]]]:
    """The runs for a file, without the course of their memory."""
    return {name: [asdict(replace(run, course=())) for run in each] for name, each in runs.items()}
