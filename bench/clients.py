"""The measured clients: the command of each, and a check that it is installed.

Clients that are other projects' Python programs run in the interpreter that BENCH_PYTHON names, by default this one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OURS = "archiver"
PEERS = Path(__file__).parent / "peers"
UNLIMITED = ("--rate", "0", "--min-free-disk", "0", "-q")
AT_ONCE = 16  # connections, if a client can have several
SLOTS = 4  # places for visits of ours for each connection


@dataclass(frozen=True)
class Client:
    """A crawler that starts from a seed with so many connections and leaves WARC files in its working directory."""

    name: str
    needs: str  # what to install for it
    here: Callable[[], bool]
    command: Callable[[str, int], Sequence[str]]
    good: Sequence[int] = (0,)  # exit codes


def others() -> str:
    """Return the interpreter of the other Python programs."""
    return os.environ.get("BENCH_PYTHON", sys.executable)


@cache
def has(*modules: str) -> bool:
    """Return True if that interpreter can import all of these."""
    command = [others(), "-c", f"import {', '.join(modules)}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def archiver(*seeds: str, at_once: int = AT_ONCE, options: Sequence[str] = ()) -> list[str]:
    """Return our own command in this interpreter, as fast as the server allows."""
    places = SLOTS * at_once  # a visit keeps its place until it is committed, long after its connection is free
    concurrency = ("--host-concurrency", str(at_once), "--concurrency", str(places))
    return [sys.executable, "-m", "archiver", "crawl", *seeds, "-o", "out", *UNLIMITED, *concurrency, *options]


def wget(seed: str, at_once: int) -> list[str]:
    """Return the command of wget, which has one connection."""
    archive = ("--warc-file=out", "--warc-cdx", "--delete-after", "--no-directories")
    return ["wget", "-q", "-r", "-l", "inf", "-p", *archive, seed]


def scrapy(seed: str, at_once: int) -> list[str]:
    """Return the command of a short Scrapy spider that follows all links, with a WARC pipeline and a JOBDIR."""
    return [others(), str(PEERS / "spider.py"), seed, str(at_once)]


def httrack(seed: str, at_once: int) -> list[str]:
    """Return the command of HTTrack, which writes files and its own cache, no WARC."""
    limits = ("--max-rate=0", "--connection-per-second=0", "--disable-security-limits")
    return ["httrack", seed, "-O", "out", "-q", "-r99", "--near", f"--sockets={at_once}", *limits]


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "wget",
            "apt-get install wget",
            lambda: shutil.which("wget") is not None,
            wget,
            good=(0, 8),  # 8: a URL was answered with an error, as robots.txt is
        ),
        Client("scrapy", "pip install scrapy warcio", lambda: has("scrapy", "warcio"), scrapy),
        Client("httrack", "apt-get install httrack", lambda: shutil.which("httrack") is not None, httrack),
        Client(OURS, "", lambda: True, lambda seed, at_once: archiver(seed, at_once=at_once)),
    )
}


def chosen(names: Sequence[str]) -> list[Client]:
    """Return the installed clients of these names, ours last; name the others on standard error."""
    found = []
    for name in (*names, OURS):
        client = CLIENTS[name]
        if client.here():
            found.append(client)
        else:
            print(f"{name} is left out; it needs: {client.needs}", file=sys.stderr)
    return found
