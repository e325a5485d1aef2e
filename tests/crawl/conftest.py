"""A recorded crawl and a recorded recovery for the tests of power cuts, and the delay of this machine."""

from collections.abc import Iterator

import pytest

from fixtures.powercut import Ground, Recording, ground
from fixtures.thread_delay import ThreadDelay


@pytest.fixture(name="crawled", scope="module")
def crawled_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A crawl with its server, recorded."""
    with ground(tmp_path_factory.mktemp("crawl")) as recorded:
        yield recorded


@pytest.fixture(name="recovered", scope="module")
def recovered_crawl(crawled: Ground) -> Recording:
    """A recovery of that crawl after a kill, recorded."""
    return crawled.recovery()


@pytest.fixture(name="late")
def delay() -> Iterator[ThreadDelay]:
    """Measure how late threads run while the test runs."""
    with ThreadDelay() as late:
        yield late
