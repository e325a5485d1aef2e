"""A host that takes no connection is not knocked at more often than it may be asked."""

import socket
from pathlib import Path

from archiver.config.option_types import Rate
from archiver.model import ExitCode
from archiver.policy.retry import HOST_FAILURES
from fixtures.archives import rows
from fixtures.crawl_in_process import crawl


def test_connections_that_are_refused_keep_to_the_rate(tmp_path: Path) -> None:
    with socket.socket() as deaf:  # bound, so that nobody else takes the port, but it does not listen
        deaf.bind(("127.0.0.1", 0))
        seeds = [f"http://127.0.0.1:{deaf.getsockname()[1]}/{number}" for number in range(30)]
        ending = crawl(tmp_path, *seeds, rate=Rate(10, 2.0), host_concurrency=4, retries=0, robots="ignore")
    assert ending.code is ExitCode.NO_SEED
    settled = rows(tmp_path, "SELECT settled, tries FROM urls")
    # The host is given up with all the others. A failure that is not saved yet when that happens counts among them.
    assert 1 <= sum(int(str(tries)) > 0 for _, tries in settled) < HOST_FAILURES
    times = [float(str(time)) for time, _ in settled]
    assert max(times) - min(times) > 0.3  # a fifth of a second apart each; when they were settled is a little later
