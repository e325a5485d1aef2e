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
from fixtures.postgres import folder, wait_for
from fixtures.rawserver import RawServer, Route
from fixtures.several_hosts import captures
from fixtures.sites import ok, page
from fixtures.thread_delay import ThreadDelay

pytestmark = [
    pytest.mark.alone,
    pytest.mark.postgres,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc"),
    pytest.mark.skipif(folder() is None, reason="PostgreSQL is not installed"),
]
HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 7))
RATE = 10  # requests a second to one host
OPTIONS = ("--rate", str(RATE), "--probe", "off", "--min-free-disk", "0", "--warc-age", "2")
FAULTS = int(os.environ.get("ARCHIVER_FAULTS", "12"))
HOLDS_CAPTURES = "SELECT DISTINCT warcs.name FROM captures JOIN warcs ON warcs.id = captures.warc"
BETWEEN = 20  # requests between two faults


def site(pages: int) -> dict[str, Route]:
    """Return the pages of each host: a binary tree."""
    routes: dict[str, Route] = {"/": ok(page("The first page", ["/1"]))}
    for number in range(1, pages):
        links = [f"/{n}" for n in (2 * number, 2 * number + 1) if n < pages]
        routes[f"/{number}"] = ok(page(f"Page {number}", links))
    return routes


@pytest.mark.parametrize("seed", [int(each) for each in os.environ.get("ARCHIVER_SEEDS", "1").split()])
def test_nothing_is_lost_by_random_faults(tmp_path: Path, late: ThreadDelay, seed: int) -> None:
    routes = site((FAULTS + 4) * BETWEEN // len(HOSTS) + 10)
    with ExitStack() as stack:
        server = stack.enter_context(RawServer(routes, hosts=HOSTS))
        faults = Faults(stack, tmp_path, seed)
        first = faults.machine()
        seeds = [server.url("/", host) for host in HOSTS]
        shared = ("--frontier", faults.address_of(first), "--store", faults.store.as_uri())
        first.start("crawl", "-o", first.name, *OPTIONS, *shared, *seeds)
        server.log.holds(len(HOSTS)).wait()
        for _ in range(2):
            faults.join()
        wait_for(faults.address, "SELECT 1 FROM machines HAVING count(*) = 3")
        for number in range(FAULTS):
            server.log.holds(len(HOSTS) + (number + 1) * BETWEEN).wait()
            faults.strike()
        ends = {machine.name: machine.wait() for machine in faults.machines}
        told = "\n".join((str(faults.done), *(machine.said for machine in faults.machines)))
        if set(ends.values()) != {ExitCode.DONE}:  # a database that was away for long ends a crawl; resume goes on
            for machine in faults.machines:
                if not machine.directory.exists():  # the database was away when it came
                    continue
                ran = archiver("resume", machine.name, cwd=tmp_path)
                assert ran.returncode == ExitCode.DONE, (ends, told, ran.stderr)
        wanted = {server.url(target, host) for host in HOSTS for target in routes}
        anywhere = next(machine.directory for machine in faults.machines if machine.directory.exists())
        assert captures(anywhere).keys() == wanted, told
        assert rows(anywhere, "SELECT count(*) FROM urls WHERE state = 'waiting'") == [(0,)], told
        folders = [faults.store, *(machine.directory for machine in faults.machines)]
        there = {file.name for each in folders for file in each.glob("archive/*.warc.gz")}
        assert {
            name for (name,) in rows(anywhere, "SELECT DISTINCT warcs.name FROM captures JOIN warcs ON warcs.id = warc")
        } <= there
        for machine in faults.machines:
            if machine.directory.exists():
                ran = archiver("verify", machine.name, cwd=tmp_path)
                assert ran.returncode == 0, (ran.stdout, told)
    for host in HOSTS:
        assert server.log.most_starts(late.within(1.0), host) <= RATE, told
        assert server.log.most_at_once(host) <= 2, told
