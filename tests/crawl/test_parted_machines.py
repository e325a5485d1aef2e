"""A machine that is parted from the database, from the sites or from the store, while another one goes on."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from archiver.crawl.leases import LAST_PART
from archiver.frontier.port import LEASE
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.log import Row
from fixtures.machines import Machine
from fixtures.namespaces import Namespace, Networks, networks
from fixtures.postgres import folder, running, wait_for
from fixtures.rawserver import RawServer
from fixtures.s3_server import BUCKET, s3
from fixtures.several_hosts import PATIENCE, binary_tree, captures
from fixtures.thread_delay import ThreadDelay

pytestmark = [
    pytest.mark.alone,
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.skipif(folder() is None, reason="PostgreSQL is not installed"),
]
HOSTS = 6
AT_ONCE = 8  # requests of one machine
OPTIONS = ("--probe", "off", "--min-free-disk", "0", "--concurrency", str(AT_ONCE), "--timeout", "5", "--warc-age", "2")


class Crawl:
    """Machines in namespaces that crawl *HOSTS* hosts with so many *pages* each, at *rate* requests a second."""

    def __init__(self, stack: ExitStack, tmp_path: Path, pages: int, rate: int) -> None:
        self.networks: Networks = stack.enter_context(networks())
        self._stack = stack
        self.rate = rate
        self._folder = tmp_path
        addresses = self.networks.addresses("sites", HOSTS)
        self.server = stack.enter_context(RawServer(binary_tree(pages), hosts=addresses))
        server = stack.enter_context(running(host=self.networks.address("database")))
        self.database = server.new_database()
        self.machines: list[tuple[Machine, Namespace]] = []

    def _machine(self) -> tuple[Machine, Namespace]:
        namespace = self.networks.namespace()
        machine = Machine(self._folder, f"m{len(self.machines)}", namespace=namespace)
        self.machines.append((machine, namespace))
        self._stack.callback(machine.kill)
        return machine, namespace

    def begin(self, *options: str) -> tuple[Machine, Namespace]:
        """Begin the crawl on a first machine."""
        machine, namespace = self._machine()
        seeds = [self.server.url("/", host) for host in self.server.hosts]
        shared = ("--frontier", self.database, "--rate", str(self.rate))
        machine.start("crawl", "-o", machine.name, *OPTIONS, *shared, *options, *seeds)
        self.server.log.holds(HOSTS).wait(PATIENCE)
        return machine, namespace

    def join(self) -> tuple[Machine, Namespace]:
        """Let a machine join; wait until it crawls."""
        machine, namespace = self._machine()
        machine.start("join", self.database, "-o", machine.name, "--name", machine.name)
        self.server.log.shows(lambda row: row.client == namespace.address("sites")).wait(PATIENCE)
        return machine, namespace

    def asked_by(self, namespace: Namespace) -> Iterator[Row]:
        """Yield the requests that came from *namespace*."""
        return (row for row in self.server.log if row.client == namespace.address("sites"))

    def asked_twice(self) -> list[Row]:
        """Return the first request for each page that was asked for more than once."""
        rows_of: dict[tuple[str, str], list[Row]] = {}
        for row in self.server.log:
            if row.target in self.server.routes:
                rows_of.setdefault((row.host, row.target), []).append(row)
        return [found[0] for found in rows_of.values() if len(found) > 1]

    def takes(self, namespace: Namespace, hosts: set[str]) -> None:
        """Wait until each of *hosts* is asked from *namespace*."""
        now = time.monotonic()
        asked: set[str] = set()

        def all_asked(row: Row) -> bool:
            if row.client == namespace.address("sites") and row.arrived > now:
                asked.add(row.host)
            return hosts <= asked

        self.server.log.shows(all_asked).wait(PATIENCE)

    def part(self, network: str, parted: Namespace, other: Namespace) -> tuple[float, float]:
        """Part a machine from *network* until the *other* one has taken its hosts, and wait until it asks hosts again.

        Returns when the network was away, and when it was back, on the monotonic clock.
        """
        log = self.server.log
        log.holds(len(log) + 100).wait(PATIENCE)
        parted.part(network)
        began = time.monotonic()
        self.takes(other, {row.host for row in self.asked_by(parted) if row.arrived > began - 2})
        mended = time.monotonic()
        parted.mend(network)
        log.shows(lambda row: row.client == parted.address("sites") and row.arrived > mended).wait(PATIENCE)
        return began, mended

    def complete(self, late: ThreadDelay) -> None:
        """All machines end well, everything is stored, and no host was asked faster than allowed."""
        ends = [machine.wait() for machine, _ in self.machines]
        told = "\n".join(machine.said for machine, _ in self.machines)
        assert set(ends) == {ExitCode.DONE}, told
        stored = captures(self.machines[0][0].directory)
        assert stored.keys() == {
            self.server.url(target, host) for host in self.server.hosts for target in self.server.routes
        }
        for machine, _ in self.machines:
            ran = archiver("verify", machine.name, cwd=self._folder)
            assert ran.returncode == 0, ran.stdout
        for host in self.server.hosts:
            assert self.server.log.most_starts(late.within(1.0), host) <= self.rate, told


def test_parted_from_the_database_for_longer_than_the_lease(tmp_path: Path, late: ThreadDelay) -> None:
    """It stops in time, the other machine takes its hosts, and it goes on afterwards."""
    with ExitStack() as stack:
        crawl = Crawl(stack, tmp_path, pages=240, rate=3)
        _, other = crawl.begin()
        _, parted = crawl.join()
        began, mended = crawl.part("database", parted, other)
        crawl.complete(late)
        meanwhile = [row.arrived for row in crawl.asked_by(parted) if began <= row.arrived < mended]
        assert max(meanwhile, default=began) < began + LEASE - LAST_PART + late.worst + 1
        twice = crawl.asked_twice()
        assert len(twice) <= 2 * AT_ONCE  # in flight, or received and not committed
        assert {row.client for row in twice} <= {parted.address("sites")}


def test_parted_from_the_sites(tmp_path: Path, late: ThreadDelay) -> None:
    """The other machine takes its hosts; it waits without any, and goes on afterwards."""
    with ExitStack() as stack:
        crawl = Crawl(stack, tmp_path, pages=200, rate=5)
        _, other = crawl.begin()
        machine, parted = crawl.join()
        crawl.part("sites", parted, other)
        crawl.complete(late)
        joined = rows(machine.directory, f"SELECT count(*) FROM crawlers WHERE name LIKE '{machine.name}%'")
        assert joined == [(2,)]  # when it began, and when the network was back


def test_parted_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: ThreadDelay) -> None:
    """The crawl goes on, and what was not sent is sent afterwards."""
    with ExitStack() as stack:
        crawl = Crawl(stack, tmp_path, pages=150, rate=3)
        stack.enter_context(s3(monkeypatch, crawl.networks.address("store")))
        machine, parted = crawl.begin("--store", f"s3://{BUCKET}/x")
        parted.part("store")
        began = len(crawl.server.log)
        wait_for(crawl.database, "SELECT 1 FROM warcs WHERE closed = 1")
        crawl.server.log.holds(began + 700).wait(PATIENCE)
        assert "sent later" in machine.said
        parted.mend("store")
        crawl.complete(late)
        assert len(warcs(machine.directory)) > 1
        ran = archiver("store", "check", machine.name, cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout
