"""What the tests of `explain` and `urls` share: the command in this process, a crawl in which every rule has work."""

from collections.abc import Callable

import pytest

from archiver.cli import entry
from archiver.model import ExitCode
from fixtures.site_of_rules import Crawled, crawled_site


@pytest.fixture(name="said")
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `archiver ARGUMENTS` prints; carried out in this process, for its speed."""

    def run_it(*arguments: str) -> str:
        assert entry.run(arguments) == ExitCode.DONE
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run_it


@pytest.fixture(name="crawled", scope="module")
def crawled_once(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """The crawl; a module has one of its own, for its tests change what is in the database."""
    directory = tmp_path_factory.mktemp("explained") / "crawl"
    directory.mkdir()
    return crawled_site(directory)
