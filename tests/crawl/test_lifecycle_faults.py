"""Faults of our own side: storage that fails, and bugs. Loud, and nothing that was committed is lost."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from archiver.crawl.build import open_crawl
from archiver.fetch.client import Fetcher, Gate
from archiver.model import Exchange, ExitCode
from fixtures.archives import captured, rows
from fixtures.command import archiver, ended, running
from fixtures.crawl_in_process import attended, crawl, settings
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page, tree

SITE = tree(30)
ALL = SITE.reachable | {"/robots.txt"}


class Buggy(Fetcher):
    """Makes a mistake at one URL."""

    at = "/p17.html"

    async def fetch(self, address: str, gate: Gate, **asked: Any) -> Exchange:
        """As ever, but for the mistake."""
        if address.endswith(self.at):
            raise ZeroDivisionError(f"a bug at {address}")
        return await super().fetch(address, gate, **asked)


def test_a_bug_is_loud_and_loses_nothing(tmp_path: Path) -> None:
    async def run(seed: str) -> None:
        async with open_crawl(tmp_path, settings(seed), resume=False) as lifetime:
            lifetime._fetcher.__class__ = Buggy
            await attended(lifetime)

    with RawServer(SITE.routes) as server:
        with pytest.raises(ZeroDivisionError, match="a bug at"):
            asyncio.run(run(server.url()))
        committed = rows(tmp_path, "SELECT count(*) FROM captures")
        assert committed > [(0,)]
        assert crawl(tmp_path, server.url(), resume=True).code is ExitCode.DONE
        assert [url for url, _ in captured(tmp_path)] == sorted(map(server.url, ALL))
    assert archiver("verify", str(tmp_path), cwd=tmp_path).returncode == ExitCode.DONE


def test_no_file_may_grow(tmp_path: Path) -> None:
    """`ulimit -f`: a line, exit code 3, and it goes on."""
    names = [f"/{number}.bin" for number in range(60)]
    routes: dict[str, Route] = {"/": ok(page("Start", [], names))}
    routes |= {name: ok(random.Random(name).randbytes(20_000), "image/x") for name in names}
    limit = ("bash", "-c", 'ulimit -f 300; exec "$@"', "bash")
    with RawServer(routes) as server:
        with running(
            "crawl", server.url(), "-o", "c", "--rate", "0", "--probe", "off", cwd=tmp_path, before=limit
        ) as process:
            code, err = ended(process)
        assert code == ExitCode.STORAGE, err
        assert "Traceback" not in err
        assert str(Path("c")) in err.splitlines()[-1]
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        assert [url for url, _ in captured(tmp_path / "c")] == sorted(map(server.url, ["/", "/robots.txt", *names]))
    checked = archiver("verify", "c", cwd=tmp_path)
    assert checked.returncode == ExitCode.DONE, checked.stdout
