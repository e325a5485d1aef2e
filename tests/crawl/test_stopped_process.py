"""A process that stands still (SIGSTOP; a laptop asleep is the same): nothing is cut or failed because of it."""

import signal
import time
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, stored
from fixtures.command import ended, running
from fixtures.flag import Gate
from fixtures.log import Row
from fixtures.rawserver import Answer, End, RawServer, Sendable
from fixtures.sites import message, ok, page
from fixtures.thread_delay import ThreadDelay

TIMEOUT = 3.0
STOPPED = 4.0  # seconds: longer than the timeout, and than a look of the clock that notices it
HALF, REST = message("200 OK", b"first half, second half")[:-11], b"second half"


@pytest.mark.alone
@pytest.mark.parametrize("before", [b"", HALF])
def test_no_request_is_cut_because_we_stood_still(tmp_path: Path, before: bytes) -> None:
    """The answer comes well after the process goes on, so what is left of the timeout must still be waited for."""
    gate, rest = Gate(), HALF[len(before) :] + REST
    pieces = (before, gate, 1.0, rest) if before else (gate, 1.0, rest)
    with RawServer({"/": ok(page("Start", ["/slow"])), "/slow": Answer(pieces, End.CLOSE)}) as server:
        quick = ("--rate", "0", "--timeout", f"{TIMEOUT:g}")
        with running("crawl", server.url(), "-o", "c", *quick, cwd=tmp_path) as process:
            gate.arrived.wait()
            process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED)
            process.send_signal(signal.SIGCONT)
            gate.open()
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert len(server.log.requests("/slow")) == 1
    assert rows(tmp_path / "c", "SELECT count(*) FROM captures WHERE truncated <> ''") == [(0,)]
    assert {each.body for each in stored(tmp_path / "c") if each.url.endswith("/slow")} == {HALF[-12:] + REST}


@pytest.mark.alone
def test_a_server_that_says_nothing_is_given_up_all_the_same(tmp_path: Path) -> None:
    gate = Gate()
    with RawServer({"/": ok(page("Start", ["/slow"])), "/slow": Answer((gate,), End.HANG)}) as server:
        quick = ("--rate", "0", "--timeout", "1", "--retries", "0")
        with running("crawl", server.url(), "-o", "c", *quick, cwd=tmp_path) as process:
            gate.arrived.wait()
            process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED / 2)
            process.send_signal(signal.SIGCONT)
            code, err = ended(process, timeout=300)
        gate.open()
        assert code == ExitCode.DONE, err
    assert rows(tmp_path / "c", "SELECT failure FROM urls WHERE url LIKE '%/slow'") == [("timeout",)]


@pytest.mark.alone
def test_no_burst_after_it(tmp_path: Path, late: ThreadDelay) -> None:
    """Requests that were missed while the process was stopped are not made up for in a burst."""
    arrivals: list[float] = []

    def noted(row: Row) -> Sendable:
        arrivals.append(row.arrived)
        return ok(page("Page"))

    links = [f"/{number}" for number in range(40)]
    with RawServer({"/": ok(page("Start", links))}, otherwise=noted) as server:
        with running("crawl", server.url(), "-o", "c", "--rate", "10", "--probe", "off", cwd=tmp_path) as process:
            server.log.holds(10).wait()
            process.send_signal(signal.SIGSTOP)
            time.sleep(2.0)
            process.send_signal(signal.SIGCONT)
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        # A burst would bring the 20 that were missed besides the 10 of a second; a busy machine delays a few.
        assert server.log.most_starts(late.within(1)) <= 15
    assert len(arrivals) == len(links) + 1
