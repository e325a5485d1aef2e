"""Two crawls of some hundred URLs, one after the other, that are killed again and again, at instants that nobody chose.

The long run is `python -m fixtures.torture`; what it came to stands in docs/explanation/reliability.md.
"""

import os
from pathlib import Path

import pytest

from fixtures.kill_checks import SENTINEL
from fixtures.proxies import RestartedProxy, needs_microsocks, needs_tinyproxy
from fixtures.torture import PROXY, Plan, Torture, served

KILLS = 250 if os.environ.get("ARCHIVER_LONG") else 5  # of each of the two crawls
PROXY_KILLS = 12
PROCESS_KILLS = 200 if os.environ.get("ARCHIVER_LONG") else 12
URLS = 500 if os.environ.get("ARCHIVER_LONG") else 300
SEED = int(os.environ.get("ARCHIVER_TORTURE_SEED", "1"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600 if KILLS == 5 else 7200),
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups"),
]


@pytest.mark.parametrize(
    "program",
    [pytest.param("tinyproxy", marks=needs_tinyproxy), pytest.param("microsocks", marks=needs_microsocks)],
)
def test_kills_of_a_crawl_and_its_proxy(tmp_path: Path, program: str) -> None:
    """The archive is that of an undisturbed crawl. Only requests in flight are repeated; none goes past the proxy."""
    with served(URLS) as (server, sites), RestartedProxy(program, PROXY, tmp_path) as proxy:
        figures = Torture(tmp_path, server, sites, Plan(PROXY_KILLS, SEED, size=200_000), proxy).run(print)
        assert {row.client for row in server.log if row.target != SENTINEL} == {PROXY}
    print(figures.table())
    assert figures.kills >= PROXY_KILLS - 2
    assert figures.requests == figures.urls + figures.repeated


def test_kills_of_a_crawl_with_two_processes(tmp_path: Path) -> None:
    """All processes are killed at once, or the supervisor or a crawler first."""
    with served(2 * URLS) as (server, sites):
        figures = Torture(tmp_path, server, sites, Plan(PROCESS_KILLS, SEED, size=200_000, processes=2)).run(print)
    print(figures.table())
    assert figures.kills >= PROCESS_KILLS - 2
    assert figures.requests == figures.urls + figures.repeated


def test_many_kills(tmp_path: Path) -> None:
    with served(URLS) as (server, sites):
        torture = Torture(tmp_path, server, sites, Plan(KILLS, SEED, size=200_000, rounds=2, imports=1))
        figures = torture.run(print)  # seen where the test fails
    print(figures.table())
    assert figures.kills >= 2 * (KILLS - 1)  # the one that is to fall into the end may come too late
    assert figures.revisits > URLS * 0.6
    assert figures.rebuilt
    assert figures.urls >= URLS * 1.5
    assert figures.files > 5
    assert figures.requests == figures.urls + figures.repeated
