"""A kill at each step of storing payloads once: every revisit that is whole has its target whole, then and later."""

import signal
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from fixtures.archives import rows, states, warcs
from fixtures.forks import Forks
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page
from fixtures.steps import DEDUP

BODIES = [b"body %d " % number * 300 for number in range(3)]
PAGES = [f"/{number}" for number in range(24)]
OPTIONS = ("-o", "c", "--rate", "0", "--host-concurrency", "4", "--warc-size", "4000", "--min-free-disk", "0", "-qq")

pytestmark = pytest.mark.slow


def orphans(directory: Path) -> list[str]:
    """The revisits that are whole and whose target is not."""
    whole: dict[str, list[tuple[str | None, ...]]] = {"response": [], "revisit": []}
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in scan(file):
                if isinstance(record, Record) and record.type in whole:
                    try:
                        list(record.pieces())
                    except DamagedRecord:
                        continue
                    names = ("WARC-Target-URI", "WARC-Date", "WARC-Payload-Digest")
                    if record.type == "revisit":
                        names = ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Payload-Digest")
                    whole[record.type].append(tuple(map(record.first, names)))
    return [str(named) for named in whole["revisit"] if named not in whole["response"]]


@pytest.mark.parametrize(("step", "passing"), [(step.name, 1 + 3 * (number % 2)) for number, step in enumerate(DEDUP)])
def test_the_target_outlives_every_kill(tmp_path: Path, forks: Forks, step: str, passing: int) -> None:
    routes: dict[str, Route] = {target: ok(BODIES[n % 3], "text/plain") for n, target in enumerate(PAGES)}
    routes["/"] = ok(page("all", PAGES))
    with RawServer(routes) as server:
        ran = forks.run("crawl", server.url(), *OPTIONS, cwd=tmp_path, step=step, passing=passing)
        assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
        assert not orphans(tmp_path / "c")
        ran = forks.run("resume", "c", "-qq", cwd=tmp_path)
        assert ran.code == ExitCode.DONE, ran.said
        assert set(states(tmp_path / "c").values()) == {"archived"}
    assert not orphans(tmp_path / "c")
    ran = forks.run("verify", "c", cwd=tmp_path)
    assert ran.code == ExitCode.DONE, ran.said
    (stored,) = rows(
        tmp_path / "c", "SELECT count(*), sum(revisit <> '') FROM captures WHERE mime = 'text/plain' AND status = 200"
    )
    assert stored == (len(PAGES), len(PAGES) - len(BODIES))
