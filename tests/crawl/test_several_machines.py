"""Faults at random on machines that crawl together: nothing is lost, and no site is asked faster than allowed."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver
from fixtures.machines import Faults
from fixtures.namespaces import networks
from fixtures.postgres import folder as programs
from fixtures.postgres import wait_for
from fixtures.rawserver import RawServer
from fixtures.s3_server import BUCKET, s3
from fixtures.several_hosts import binary_tree, captures
from fixtures.thread_delay import ThreadDelay

pytestmark = [
    pytest.mark.alone,
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc"),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed"),
]
HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 7))
RATE = 10  # requests a second to one host
AT_ONCE = 2  # requests to one host, by default
OPTIONS = ("--rate", str(RATE), "--probe", "off", "--min-free-disk", "0", "--warc-age", "2")
FAULTS = int(os.environ.get("ARCHIVER_FAULTS", "12"))
HOLDS_CAPTURES = "SELECT DISTINCT warcs.name FROM captures JOIN warcs ON warcs.id = captures.warc"
BETWEEN = 20  # requests between two faults
ROUTES = binary_tree((FAULTS + 4) * BETWEEN // len(HOSTS) + 10)
SEEDS = pytest.mark.parametrize("seed", [int(each) for each in os.environ.get("ARCHIVER_SEEDS", "1").split()])


@SEEDS
def test_nothing_is_lost_by_random_faults(tmp_path: Path, late: ThreadDelay, seed: int) -> None:
    with ExitStack() as stack:
        store = tmp_path / "store"
        faults = Faults(stack, tmp_path, seed, store.as_uri())
        endure(stack.enter_context(RawServer(ROUTES, hosts=HOSTS)), faults, tmp_path, late)
        assert files_with_captures(faults) <= {file.name for file in store.glob("archive/*")}


@SEEDS
def test_nothing_is_lost_by_random_faults_of_networks(
    tmp_path: Path, late: ThreadDelay, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    with ExitStack() as stack:
        found = stack.enter_context(networks())
        store = stack.enter_context(s3(monkeypatch, found.address("store")))
        faults = Faults(stack, tmp_path, seed, f"s3://{BUCKET}/x", found)
        hosts = found.addresses("sites", len(HOSTS))
        endure(stack.enter_context(RawServer(ROUTES, hosts=hosts)), faults, tmp_path, late, delayed=AT_ONCE)
        assert files_with_captures(faults) <= store.stored


def files_with_captures(faults: Faults) -> set[str]:
    """Return the names of the WARC files that hold captures, less those that a machine still has."""
    there = [machine.directory for machine in faults.machines if machine.directory.exists()]
    files = {file.name for directory in there for file in directory.glob("archive/*.warc.gz")}
    return {str(name) for (name,) in rows(there[0], HOLDS_CAPTURES)} - files


def endure(server: RawServer, faults: Faults, folder: Path, late: ThreadDelay, delayed: int = 0) -> None:
    """Crawl with three machines while one fault follows the other; check what is stored, and the rates.

    *delayed*: requests to one host that a link which was cut may deliver late, together with others.
    """
    first = faults.machine()
    seeds = [server.url("/", host) for host in server.hosts]
    shared = ("--frontier", faults.address_of(first), "--store", faults.store)
    first.start("crawl", "-o", first.name, *OPTIONS, *shared, *seeds)
    server.log.holds(len(HOSTS)).wait()
    for _ in range(2):
        faults.join()
    wait_for(faults.address, "SELECT 1 FROM machines HAVING count(*) = 3")
    for number in range(FAULTS):
        server.log.holds(len(HOSTS) + (number + 1) * BETWEEN).wait()
        faults.strike()
    faults.mend()
    ends = {machine.name: machine.wait() for machine in faults.machines}
    told = "\n".join((str(faults.done), *(machine.said for machine in faults.machines)))
    there = [machine for machine in faults.machines if machine.directory.exists()]
    for machine in there if set(ends.values()) != {ExitCode.DONE} else ():
        # A database that was away for long ends a crawl; resume goes on. It may have been away when a machine came.
        ran = archiver("resume", machine.name, cwd=folder)
        assert ran.returncode == ExitCode.DONE, (ends, told, ran.stderr)
    anywhere = there[0].directory
    assert captures(anywhere).keys() == {server.url(target, host) for host in server.hosts for target in ROUTES}, told
    assert rows(anywhere, "SELECT count(*) FROM urls WHERE state = 'waiting'") == [(0,)], told
    for machine in there:
        ran = archiver("verify", machine.name, cwd=folder)
        assert ran.returncode == 0, (ran.stdout, told)
    for host in server.hosts:
        assert server.log.most_starts(late.within(1.0), host) <= RATE + delayed, told
        assert server.log.most_at_once(host) <= 2, told
