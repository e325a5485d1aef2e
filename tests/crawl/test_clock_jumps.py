"""Wall clocks that jump, during a crawl and between two runs: nothing waits for hours, and no site is hurt."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, states, stored
from fixtures.command import archiver, ended, running
from fixtures.crawl_in_process import crawl
from fixtures.log import Row
from fixtures.rawserver import RawServer, Route, Sendable, keep
from fixtures.sites import message, ok, page, tree

HOURS = 3 * 3600.0
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def _moved(directory: Path, seconds: float) -> None:
    """The crawl as it would lie there, had the clock been ahead by *seconds*."""
    with closing(sqlite3.connect(directory / "crawl.db", isolation_level=None)) as db:
        db.execute("UPDATE urls SET settled = settled + ?", (seconds,))
        db.execute("UPDATE urls SET due = due + ? WHERE due > 0", (seconds,))
        db.execute("UPDATE hosts SET not_before = not_before + ? WHERE not_before > 0", (seconds,))


def _later(first: str, seconds: int) -> tuple[dict[str, Route], list[float]]:
    """A site of which one page asks for patience the first time; when it was asked for."""
    asked: list[float] = []

    def patient(row: Row) -> Sendable:
        asked.append(row.arrived)
        return keep(message(first, retry_after=f"{seconds}")) if len(asked) == 1 else ok(page("Now"))

    return {"/": ok(page("Start", ["/later"])), "/later": patient}, asked


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_clock_that_was_set_back_between_two_runs(tmp_path: Path, status: str) -> None:
    """What was meant to wait for seconds waits for seconds, and for no less; a second look moves nothing more."""
    routes, asked = _later(status, 3)
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), max_urls=2).code is ExitCode.LIMIT
        _moved(tmp_path, HOURS)
        stopped = crawl(tmp_path, server.url(), max_urls=2, resume=True, max_time=0.2)
        assert stopped.code is ExitCode.LIMIT
        began = time.monotonic()
        assert crawl(tmp_path, server.url(), resume=True).code is ExitCode.DONE
    assert set(states(tmp_path).values()) == {"archived"}
    assert len(asked) == 2
    assert asked[1] - asked[0] >= 3
    assert asked[1] - began < 100  # by the clock it would be hours


def test_it_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with RawServer(tree(5).routes) as server:
        assert crawl(tmp_path, server.url(), max_urls=2).code is ExitCode.LIMIT
        _moved(tmp_path, HOURS)
        assert crawl(tmp_path, server.url(), resume=True).code is ExitCode.DONE
    assert [record.message[:22] for record in caplog.records] == ["the clock is 2:59:59 b"]


def test_no_wait_is_longer_than_a_day(tmp_path: Path) -> None:
    """Whatever the clock was, and whatever it is."""
    routes, _ = _later("503 Service Unavailable", 60)
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), max_urls=2).code is ExitCode.LIMIT
        with closing(sqlite3.connect(tmp_path / "crawl.db", isolation_level=None)) as db:
            db.execute("UPDATE urls SET due = due + 1e9 WHERE due > 0")
            db.execute("UPDATE hosts SET not_before = not_before + 1e9 WHERE not_before > 0")
        crawl(tmp_path, server.url(), max_urls=2, resume=True, max_time=0.1)
    tomorrow = time.time() + 86_400
    assert rows(tmp_path, f"SELECT count(*) FROM urls WHERE due > {tomorrow}") == [(0,)]
    assert rows(tmp_path, f"SELECT count(*) FROM hosts WHERE not_before > {tomorrow}") == [(0,)]


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed, which sets the clock of one process")
def test_a_clock_that_jumps_during_a_crawl(tmp_path: Path) -> None:
    """The pace holds, a retry comes when it should, and records bear the wall clock's time, whatever it says."""
    routes, asked = _later("503 Service Unavailable", 2)
    links = ["/later", *(f"/{number}" for number in range(20))]
    site = {"/": ok(page("Start", links)), **{link: ok(page(link)) for link in links}, "/later": routes["/later"]}
    wall = tmp_path / "clock"
    wall.write_text("+0h\n")
    faked = (
        *("env", f"LD_PRELOAD={LIBRARY}", "FAKETIME_CACHE_DURATION=1", f"FAKETIME_TIMESTAMP_FILE={wall}"),
        *("DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"),
    )
    with RawServer(site) as server:
        with running(
            "crawl", server.url(), "-o", "c", "--rate", "5", "--probe", "off", cwd=tmp_path, before=faked
        ) as process:
            for count, jump in ((4, "+5h"), (14, "-5h")):
                server.log.holds(count).wait()
                wall.write_text(f"{jump}\n")
            code, err = ended(process, timeout=300)
        assert code == ExitCode.DONE, err
        assert server.log.most_starts(0.9) <= 5
    assert 2 <= asked[1] - asked[0] < 100  # by the clock it would be hours
    hours = {each.date[:13] for each in stored(tmp_path / "c")}
    assert len(hours) >= 3
    checked = archiver("verify", "c", cwd=tmp_path)
    assert checked.returncode == ExitCode.DONE, checked.stdout
