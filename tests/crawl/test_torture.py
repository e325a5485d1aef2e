"""A crawl of two thousand URLs that is killed twenty times, at instants that nobody chose.

The long run is `python -m fixtures.torture`; what it came to stands in docs/reliability.md.
"""

import os
from pathlib import Path

import pytest

from fixtures.torture import Torture, served

KILLS = 20
URLS = 2400
SEED = int(os.environ.get("ARCHIVER_TORTURE_SEED", "1"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups"),
]


def test_twenty_kills(tmp_path: Path) -> None:
    with served(URLS) as (server, site):
        torture = Torture(tmp_path, server, site, KILLS, SEED, size=200_000)
        figures = torture.run(print)  # seen where the test fails
    print(figures.table())
    assert figures.kills >= KILLS - 2  # the two that are to fall into the end may come too late
    assert figures.urls >= 2000
    assert figures.files > 5
    assert figures.requests == figures.urls + figures.repeated
