"""What a crawl takes over from the database of an earlier one: how hosts want to be asked, and URLs that wait again."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archiver.errors import ArchiveError
from archiver.frontier.captures import EarlierDatabase
from archiver.frontier.port import EarlierFind
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Hop, NewUrl

SEED = "http://example.org/"
NOW = 1_800_000_000.0


async def _earlier(path: Path) -> None:
    frontier = await SqliteFrontier.open(path)
    await frontier.add_seeds([SEED, "http://calm.example/"])
    await frontier.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE hosts SET not_before = ?, rate = 0.5 WHERE key = 'http://example.org'", (NOW + 60,))
        db.commit()


def test_a_host_that_asked_for_patience_still_has_it(tmp_path: Path) -> None:
    async def run() -> None:
        await _earlier(tmp_path / "old.db")
        with closing(EarlierDatabase(tmp_path / "old.db")) as past:
            manners = past.throttles(NOW)
        assert [each[:3] for each in manners] == [("http://example.org", NOW + 60, 0.5)]
        frontier = await SqliteFrontier.open(tmp_path / "crawl.db")
        try:
            await frontier.inherit_throttles(manners)
            await frontier.add_seeds([SEED, "http://calm.example/"])
            assert [host.key for host in await frontier.due_hosts(NOW, 10, ())] == ["http://calm.example"]
            assert len(await frontier.due_hosts(NOW + 61, 10, ())) == 2
        finally:
            await frontier.close()

    asyncio.run(run())


def test_a_url_is_recalled_once(tmp_path: Path) -> None:
    async def run() -> None:
        frontier = await SqliteFrontier.open(tmp_path / "crawl.db")
        try:
            await frontier.add_seeds([SEED])
            old = EarlierFind(NewUrl(f"{SEED}old", Hop.LINK, "L", 1, 0, 2), SEED, SEED)
            known = EarlierFind(NewUrl(SEED, Hop.LINK, "L", 1, 0, 2), "", "")
            assert await frontier.unknown([SEED, f"{SEED}old"]) == {f"{SEED}old"}
            assert await frontier.enqueue_earlier([old, known]) == 1
            assert await frontier.enqueue_earlier([old, known]) == 0
            assert await frontier.unknown([SEED, f"{SEED}old"]) == set()
            window = await frontier.window(1, NOW, 10, prerequisites=False)
            assert [(each.url, each.path, each.via, each.seed) for each in window.claims] == [
                (SEED, "", None, SEED),
                (f"{SEED}old", "L", SEED, SEED),
            ]
        finally:
            await frontier.close()

    asyncio.run(run())


def test_a_damaged_database_is_named_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "crawl.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(ArchiveError, match=r"cannot be read: .*move .* away"):
        EarlierDatabase(tmp_path / "crawl.db")
