"""A crawl whose leases another crawler takes over while a request is under way, and gives back."""

import asyncio
import logging
import time
from pathlib import Path

import pytest

from archiver.crawl import engine
from archiver.crawl.build import open_crawl
from archiver.frontier.port import LEASE
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.crawl_in_process import settings
from fixtures.flag import Flag, Gate
from fixtures.rawserver import Answer, End, RawServer
from fixtures.sites import message, ok, page


class Notice(logging.Handler):
    """Raises its flag when the crawl says that another one took over."""

    def __init__(self) -> None:
        super().__init__()
        self.flag = Flag()

    def emit(self, record: logging.LogRecord) -> None:
        if "took over hosts" in record.getMessage():
            self.flag.raise_()


@pytest.fixture
def noticed(monkeypatch: pytest.MonkeyPatch) -> Flag:
    """Return a flag that is up when the crawl has noticed its loss."""
    notice = Notice()
    monkeypatch.setattr(engine.log, "handlers", [notice])
    return notice.flag


def test_a_crawl_that_lost_its_leases_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed: Flag) -> None:
    """What it was answered meanwhile is kept as a capture; the URL is asked for once more, and all others once."""
    monkeypatch.setattr(engine, "RENEW_EVERY", 0.1)
    gate = Gate()
    pages = {f"/{number}": ok(page("Page")) for number in range(9)}
    slow = Answer((gate, message("200 OK", b"slow")), End.CLOSE)
    routes = {"/": ok(page("Start", ["/slow", *pages])), "/slow": slow, **pages}

    async def take_over(path: Path) -> None:
        """Lease all hosts for a moment, as a crawler by whose clock the leases have ended."""
        await gate.arrived.reached()
        async with await SqliteFrontier.open(path, lambda: time.monotonic() + LEASE) as other:
            await other.join()
            hosts = [row.id for row in await other.due_hosts(time.time(), 9, ())]
            assert await other.lease({host: str(host) for host in hosts})
            await noticed.reached()
            await other.leave({})
        gate.open()

    async def run(seed: str) -> ExitCode:
        async with open_crawl(tmp_path, settings(seed, host_concurrency=1, robots="ignore"), resume=False) as crawl:
            taking = asyncio.create_task(take_over(tmp_path / "crawl.db"))
            ending = await crawl.run()
            await taking
        return ending.code

    with RawServer(routes) as server:
        assert asyncio.run(run(server.url())) is ExitCode.DONE
        assert len(server.log.requests("/slow")) == 2
        assert all(len(server.log.requests(each)) == 1 for each in ("/", *pages))
    assert rows(tmp_path, "SELECT DISTINCT state FROM urls") == [("archived",)]
    assert rows(
        tmp_path, "SELECT count(*) FROM captures JOIN urls ON urls.id = captures.url WHERE urls.url LIKE '%/slow'"
    ) == [(2,)]
    assert rows(tmp_path, "SELECT count(*) FROM leases WHERE crawler IS NOT NULL") == [(0,)]
