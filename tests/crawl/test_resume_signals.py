"""Signals to a real process: nothing starts any more, what is under way ends, and `resume` makes the crawl whole."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from archiver.model import ExitCode
from fixtures.archives import captured, rows, stored
from fixtures.command import archiver, ended, running, said
from fixtures.flag import Gate
from fixtures.log import Log, Row
from fixtures.rawserver import Answer, End, RawServer, Route, Sendable
from fixtures.sites import ok, page, tree

PAGES = 60
SITE = tree(PAGES)
AT_ONCE = 4
FAST = ("--rate", "0", "--host-concurrency", f"{AT_ONCE}", "--probe", "off")


def _shape(directory: Path, server: RawServer) -> list[tuple[str, str]]:
    """Target and payload digest of each capture: the same for every crawl of one site, whatever its port."""
    return [(url.removeprefix(server.url("")), digest) for url, digest in captured(directory)]


@pytest.fixture(scope="module", name="undisturbed")
def undisturbed_crawl(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """What a crawl holds that nobody stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with RawServer(SITE.routes) as server:
        assert archiver("crawl", server.url(), "-o", "c", *FAST, cwd=folder).returncode == ExitCode.DONE
        shape = _shape(folder / "c", server)
    assert {target for target, _ in shape} == SITE.reachable | {"/robots.txt"}
    return shape


@contextmanager
def held_from(number: int, gate: Gate) -> Iterator[RawServer]:
    """A server of SITE that answers from request *number* on only when *gate* is open."""

    def held(route: Route) -> Route:
        def answer(row: Row) -> Sendable:
            given = route(row) if callable(route) else route
            assert isinstance(given, Answer)
            assert isinstance(given.pieces, tuple)
            return Answer((gate, *given.pieces), given.end) if row.number >= number else given

        return answer

    with RawServer({target: held(route) for target, route in SITE.routes.items()}) as server:
        try:
            yield server
        finally:
            gate.open()


def _targets_after(log: Log, moment: float) -> list[str]:
    return [row.target for row in log if row.arrived > moment]


def _finish(folder: Path, server: RawServer) -> list[tuple[str, str]]:
    """Resume until the end; the shape of what the directory holds then."""
    done = archiver("resume", "c", cwd=folder)
    assert done.returncode == ExitCode.DONE, done.stderr
    checked = archiver("verify", "c", cwd=folder)
    assert checked.returncode == ExitCode.DONE, checked.stdout
    return _shape(folder / "c", server)


@pytest.mark.parametrize("number", [1, 2, 7, 30, 66])
def test_first_signal(tmp_path: Path, undisturbed: list[tuple[str, str]], number: int) -> None:
    """With every answer held back from some request on, all that runs is in flight when the signal comes."""
    gate = Gate()
    with held_from(number, gate) as server, running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
        gate.arrived.wait()
        process.send_signal(signal.SIGINT)
        said(process, "stopping")
        moment = monotonic()
        gate.open()
        code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert "Traceback" not in err
        assert len(_targets_after(server.log, moment)) <= AT_ONCE  # sent before, seen by a busy server later
        assert all(row.ended and not row.lost for row in server.log)
        asked = server.log.targets()
        assert [target for target, _ in _shape(tmp_path / "c", server)] == sorted(asked)
        assert _finish(tmp_path, server) == undisturbed
        assert sorted(server.log.targets()) == [target for target, _ in undisturbed]


@pytest.mark.parametrize(("count", "number"), [(1, signal.SIGINT), (12, signal.SIGTERM), (40, signal.SIGINT)])
def test_a_signal_in_full_flow(
    tmp_path: Path, undisturbed: list[tuple[str, str]], count: int, number: signal.Signals
) -> None:
    with RawServer(SITE.routes) as server:
        with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
            server.log.holds(count).wait()
            process.send_signal(number)
            said(process, "stopping")
            moment = monotonic()
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert len(_targets_after(server.log, moment)) <= AT_ONCE  # sent before, seen by a busy server later
        assert _finish(tmp_path, server) == undisturbed
        assert sorted(server.log.targets()) == [target for target, _ in undisturbed]


def _half(gate: Gate) -> Answer:
    """A page of which the second half comes only when *gate* is open."""
    body = page("Half", ["/other"]).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
    return Answer((head + body[:20], gate, body[20:]), End.KEEP)


def test_second_signal_cuts_what_is_in_flight(tmp_path: Path) -> None:
    gate = Gate()
    routes = {"/": ok(page("Start", ["/slow", "/fast"])), "/slow": _half(gate), "/fast": ok("fast"), "/other": ok("o")}
    with RawServer(routes) as server:
        with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
            gate.arrived.wait()
            process.send_signal(signal.SIGINT)
            said(process, "stopping")
            process.send_signal(signal.SIGINT)
            said(process, "cut")
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert server.url("/slow") not in dict(captured(tmp_path / "c"))
        assert rows(tmp_path / "c", "SELECT state, tries FROM urls WHERE url LIKE '%/slow'") == [("waiting", 0)]
        gate.open()
        assert [target for target, _ in _finish(tmp_path, server)] == ["/", "/fast", "/other", "/robots.txt", "/slow"]
        assert [row.target for row in server.log if row.lost] == ["/slow"]


def test_third_signal_ends_at_once(tmp_path: Path) -> None:
    gate = Gate()
    with RawServer({"/": ok(page("Start", ["/slow"])), "/slow": _half(gate), "/other": ok("o")}) as server:
        with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
            gate.arrived.wait()
            for word in ("waiting up to", "cutting", "ended at once"):
                process.send_signal(signal.SIGINT)
                said(process, word)
            code, _ = ended(process)
        assert code == ExitCode.STOPPED
        gate.open()
        assert [target for target, _ in _finish(tmp_path, server)] == ["/", "/other", "/robots.txt", "/slow"]


@pytest.mark.alone
def test_patience_with_requests_in_flight_ends(tmp_path: Path) -> None:
    gate = Gate()
    with (
        RawServer({"/": ok(page("Start", ["/slow"])), "/slow": _half(gate)}) as server,
        running("crawl", server.url(), "-o", "c", "--drain-timeout", "1", *FAST, cwd=tmp_path) as process,
    ):
        gate.arrived.wait()
        process.send_signal(signal.SIGTERM)
        said(process, "up to 1 s")
        begun = monotonic()
        code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert 0.9 < monotonic() - begun < 25  # and not the 30 s of the default
        assert [row.target for row in server.log if row.lost] == ["/slow"]


@pytest.mark.alone
@pytest.mark.parametrize("rate", ["1/60", "1/600"])
def test_who_waits_for_a_turn_is_let_go_at_once(tmp_path: Path, rate: str) -> None:
    """A request that waits for its host's pace is not in flight: a stop does not wait for it."""
    links = [f"/{number}" for number in range(5)]
    with (
        RawServer({"/": ok(page("Start", links))}) as server,
        running("crawl", server.url(), "-o", "c", "--rate", rate, "--robots", "ignore", cwd=tmp_path) as process,
    ):
        server.log.holds(1).wait()
        process.send_signal(signal.SIGINT)
        said(process, "stopping")
        begun = monotonic()
        code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert monotonic() - begun < 25  # neither the turn nor --drain-timeout is waited for


def test_a_stop_before_the_first_answer_keeps_everything_waiting(tmp_path: Path) -> None:
    """A server that accepts and says nothing: the request is in flight, and is cut by the second signal."""
    with RawServer({"/robots.txt": Answer((), End.HANG)}) as server:
        with running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process:
            server.log.holds(1).wait()
            process.send_signal(signal.SIGINT)
            said(process, "stopping")
            process.send_signal(signal.SIGINT)
            code, err = ended(process)
        assert code == ExitCode.STOPPED, err
        assert stored(tmp_path / "c") == []
        assert rows(tmp_path / "c", "SELECT count(*) FROM urls WHERE state = 'waiting'") == [(2,)]
        checked = archiver("verify", "c", cwd=tmp_path)
        assert checked.returncode == ExitCode.DONE, checked.stdout


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    gate = Gate()
    with (
        RawServer({"/": Answer((gate,), End.CLOSE)}) as server,
        running("crawl", server.url(), "-o", "c", *FAST, cwd=tmp_path) as process,
    ):
        gate.arrived.wait()
        refused = archiver("resume", "c", cwd=tmp_path)
        assert refused.returncode == ExitCode.USAGE
        assert f"process {process.pid}" in refused.stderr
        assert subprocess.run(["kill", "-0", str(process.pid)], check=False).returncode == 0
        gate.open()
