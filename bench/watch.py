"""Measure the control room: lists over a large queue, the live stream, and what viewers cost a crawl.

    python bench/watch.py --urls 10000000 --directory DIR --viewers 50

It makes DIRECTORY/crawl.db once (some minutes for ten million URLs, 2 GB). Then:

* lists: the first rows of each list over that queue, right after the start and again, and the server's peak memory;
* stream: lines are appended to crawl.log at a rate, for one viewer, for many, and for one more that never reads;
* cost: CPU time of a crawl for each URL without viewers, with one, and with many, in turn.
"""

import argparse
import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import archives
import frontier
import testsite
from clients import archiver
from measure import Run, in_turn, measure, middle, ratios, settle_down, spread, table
from serving import files

sys.path.insert(0, str(Path(__file__).parents[1]))

from archiver.collection.crawl_log import LogLine
from fixtures.watching import Watching

LISTS = ("", "/hosts", "/hosts?sort=name", "/queue", "/patterns", "/rules", "/refusals", "/problems", "/files")
LISTS += ("/urls", "/urls?state=waiting&search=news", "/orders")
TIMES = 5
LARGEST = 4 << 20  # bytes of an event
FLUSH = 0.1  # seconds between two batches of lines
_ADDRESS = re.compile(r"http://([^/]+)/#token=(\S+)")


@contextmanager
def serving(directory: Path) -> Iterator[tuple[Watching, int]]:
    """Run the control room over *directory*; yield a client and its process."""
    command = [sys.executable, "-m", "archiver", "watch", str(directory), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = _ADDRESS.match(process.stdout.readline())
            assert found is not None, process.stderr and process.stderr.read()
            yield Watching(found[1], found[2]).log_in(), process.pid
        finally:
            process.terminate()
            process.communicate()


def status(pid: int, key: str) -> float:
    """Return a figure of memory of a process in megabytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(key))) / 1024


def cpu(pid: int) -> float:
    """Return the seconds of CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def lists(directory: Path) -> None:
    """Measure the lists over the queue in *directory*."""
    rows = []
    with serving(directory) as (room, pid):
        at_start = status(pid, "VmRSS")
        number = room.crawls[0]["id"]
        for what in LISTS:
            times = []
            for _ in range(TIMES):
                began = time.monotonic()
                reply = room.get(f"/api/crawls/{number}{what}")
                times.append((time.monotonic() - began) * 1000)
                assert reply.status == 200, reply.body
            count = len(reply.json.get("rows", ()))
            rows.append((what or "(details)", f"{times[0]:.0f}", f"{middle(times[1:]):.0f}", str(count)))
            print(f"{what or 'details'}: {' '.join(f'{each:.0f}' for each in times)} ms", file=sys.stderr)
        deadline = time.monotonic() + 300
        while not room.get(f"/api/crawls/{number}").json["verdict"]["findings"] and time.monotonic() < deadline:
            time.sleep(1)
        rows.append(("memory at the start, at the end, peak, MB", f"{at_start:.0f}", *memory(pid)))
    table("lists", ("what", "first, ms", "again, ms (median)", "rows"), rows)


def memory(pid: int) -> tuple[str, str]:
    """Return current and highest memory in megabytes."""
    return f"{status(pid, 'VmRSS'):.0f}", f"{status(pid, 'VmHWM'):.0f}"


@dataclass
class Heard:
    """What viewers have received."""

    lines: int = 0
    dropped: int = 0
    delays: list[float] = field(default_factory=list)  # seconds from the log to the viewer
    urls: re.Pattern[bytes] = re.compile(rb'"at": ([0-9.]+), ')

    async def watch(self, room: Watching, number: str) -> None:
        """Read the stream as long as there is one."""
        name, port = room.host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port), limit=LARGEST)
        writer.write(request(room, number))
        try:
            while event := await reader.readuntil(b"\n\n"):
                now = time.time()
                if b"event: urls" in event:
                    found = self.urls.findall(event)
                    self.lines += len(found)
                    self.dropped += int(event.rpartition(b'"dropped":')[2].split(b"}")[0])
                    self.delays.append(now - float(found[-1]))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return
        finally:
            writer.close()


def request(room: Watching, number: str) -> bytes:
    """Return the request for a stream; HTTP/1.0 keeps the answer in one piece."""
    return f"GET /api/crawls/{number}/stream HTTP/1.0\r\nHost: {room.host}\r\nCookie: {room.cookie}\r\n\r\n".encode()


@contextmanager
def viewers(room: Watching, number: str, count: int) -> Iterator[Heard]:
    """Let *count* viewers read the stream in a thread."""
    heard, loop = Heard(), asyncio.new_event_loop()

    async def main() -> None:
        await asyncio.gather(*(heard.watch(room, number) for _ in range(count)), stop.wait())

    stop = asyncio.Event()
    task = loop.create_task(main())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.run_until_complete(loop.shutdown_asyncgens())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield heard
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


def append(log: Path, rate: int, seconds: float) -> int:
    """Append *rate* lines a second to *log*, as a crawl does with each batch; return how many."""
    written, began = 0, time.monotonic()
    with log.open("ab") as file:
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate) - written
            now = time.time()
            lines = (
                LogLine(
                    now, 200, 12_345, f"https://www.example.org/articles/{written + each}.html", "LL",
                    "https://www.example.org/", "text/html", now, 0.12, "sha1:" + "A" * 32, (),
                ).render()
                for each in range(due)
            )  # fmt: skip
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            written += due
            time.sleep(FLUSH)
    return written


def stream(directory: Path, given: argparse.Namespace) -> None:
    """Measure the stream with one viewer and with many, beside one that never reads."""
    log = directory / "logs/crawl.log"
    log.parent.mkdir(exist_ok=True)
    rows = []
    for count in (1, given.viewers):
        log.unlink(missing_ok=True)
        log.touch()
        with serving(directory) as (room, pid), socket.socket() as hung:
            number = room.crawls[0]["id"]
            name, port = room.host.split(":")
            hung.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            hung.connect((name, int(port)))
            hung.sendall(request(room, number))  # and reads nothing
            with viewers(room, number, count) as heard:
                time.sleep(1)
                before, began = cpu(pid), time.monotonic()
                written = append(log, given.lines, given.seconds)
                time.sleep(2)
                spent = (cpu(pid) - before) / (time.monotonic() - began)
                delays = sorted(heard.delays)
                rows.append(
                    (
                        str(count),
                        f"{written / given.seconds:.0f}",
                        f"{heard.lines / count / written:.1%}",
                        str(heard.dropped),
                        f"{delays[len(delays) // 2]:.2f}, {delays[int(len(delays) * 0.99)]:.2f}",
                        f"{spent:.1%}",
                        memory(pid)[1],
                    )
                )
    head = ("viewers", "lines/s", "received by each", "dropped", "delay, s: median, 99 %", "CPU of a core", "peak, MB")
    table(f"stream of {given.seconds:g} s, beside a viewer that never reads", head, rows)


class Watched:
    """Starts the control room over a crawl that has begun, with so many viewers."""

    def __init__(self, folder: Path, count: int, stack: ExitStack) -> None:
        self._folder, self._count, self._stack = folder, count, stack
        self._begun = False
        self.heard = Heard()

    def __call__(self, at: float) -> bool:
        """Start it when the crawl has its log; never stop the crawl."""
        if not self._begun and self._count and at > 0 and (self._folder / "out/logs/crawl.log").exists():
            self._begun = True
            room, _ = self._stack.enter_context(serving(self._folder / "out"))
            number = room.crawls[0]["id"]
            self.heard = self._stack.enter_context(viewers(room, number, self._count))
        return False


def cost(given: argparse.Namespace) -> None:
    """Measure a crawl without viewers, with one, and with many."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = testsite.make(folder / "www", given.pages)
        with files(folder / "www", folder / "nginx") as seed:

            def run(count: int) -> Run:
                with ExitStack() as stack:
                    watched = Watched(folder / "client", count, stack)
                    done = measure(archiver(seed), folder / "client", stop=watched)
                    time.sleep(1)
                    assert not count or watched.heard.lines, "no viewer saw a line"
                missing = len(set(paths)) - len(archives.fetched(folder / "client"))
                assert missing <= 0, f"{missing} URLs are missing; {done.fault}"
                return replace(done, done=len(paths))

            ways = {str(count): partial(run, count) for count in (0, 1, given.viewers)}
            runs = in_turn(ways, given.rounds)
    rows = [
        (
            name,
            f"{middle([one.cpu for one in each]) / len(paths) * 1e6:.0f}",
            f"{middle([len(paths) / one.wall for one in each]):.0f}",
            spread(ratios(runs, name, "0", lambda one: one.cpu)) if name != "0" else "",
        )
        for name, each in runs.items()
    ]
    table("what viewers cost a crawl", ("viewers", "CPU of the crawl, µs per URL", "URLs/s", "CPU, times"), rows)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--urls", type=int, default=10_000_000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--lines", type=int, default=1000, help="of the stream, a second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("lists", "stream", "cost"), help="one part")
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    if not (given.directory / "crawl.db").exists():
        frontier.make(given.directory / "crawl.db", given.urls)
    (given.directory / "crawl.toml").write_text(f"seeds = {json.dumps(['https://www.example.org/'])}\n")
    settle_down()
    if given.only in (None, "lists"):
        lists(given.directory)
    if given.only in (None, "stream"):
        stream(given.directory, given)
    if given.only in (None, "cost"):
        cost(given)


if __name__ == "__main__":
    main()
