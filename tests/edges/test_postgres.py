"""A frontier in PostgreSQL: its schema, what only it refuses, and connections that are lost."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import database
from archiver.frontier.address import write_address
from archiver.frontier.dialect import translate
from archiver.frontier.sqlite import SqliteFrontier
from archiver.model import Event, Hop, NewUrl, Settlement
from fixtures.archives import database_rows
from fixtures.postgres import LostAnswers, PostgresServer
from fixtures.queued_urls import waiting
from fixtures.two_crawlers import stored

pytestmark = pytest.mark.postgres
SEED = "http://a.example/"


@pytest.fixture(name="address")
def new_database(postgres_server: PostgresServer | None) -> str:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres_server.new_database()


def opened(folder: Path, address: str) -> Any:
    write_address(folder / "crawl.db", address)
    return SqliteFrontier.open(folder / "crawl.db")


def link(address: str) -> NewUrl:
    return NewUrl(address, Hop.LINK, "L", 1, 0, 2)


def test_the_tables_have_the_columns_of_sqlite(tmp_path: Path, address: str) -> None:
    async def made() -> None:
        await (await opened(tmp_path, address)).close()

    asyncio.run(made())
    asyncio.run(made())  # the second time the tables are there
    columns = (
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
        "ORDER BY table_name, ordinal_position"
    )
    found = [row for row in database_rows(tmp_path / "crawl.db", columns) if row[0] != "versions"]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(database.schema_script())
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        expected = [(name, row[1]) for name in tables for row in db.execute(f"PRAGMA table_info({name})")]
    assert found == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1 WHERE a = ? AND b LIKE '%x?'", "SELECT 1 WHERE a = %s AND b LIKE '%%x?'"),
        ("SELECT :now, '://', x::bigint", "SELECT %(now)s, '://', x::bigint"),
        (
            "urls.id IN (SELECT value FROM json_each(:rows))",
            "urls.id IN (SELECT jsonb_array_elements_text(%(rows)s::jsonb)::bigint)",
        ),
        (
            "urls.url IN (SELECT value FROM json_each(?))",
            "urls.url IN (SELECT value FROM jsonb_array_elements_text(%s::jsonb) AS given (value))",
        ),
        ("substr(near.payload_digest, -8)", "right(near.payload_digest, 8)"),
        ("INSERT OR ROLLBACK INTO urls", "INSERT INTO urls"),
        ("ORDER BY offset LIMIT 5 % 3", 'ORDER BY "offset" LIMIT 5 %% 3'),
    ],
)
def test_a_statement_in_the_words_of_postgresql(sql: str, expected: str) -> None:
    assert translate(sql) == expected


def test_a_url_longer_than_an_entry_of_an_index_is_known_once(tmp_path: Path, address: str) -> None:
    """Of characters that cannot be compressed; the index of a B-tree would refuse it."""
    long = SEED + "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=30_000))

    async def test() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.add_seeds([SEED])
            seed = (await waiting(frontier, [SEED]))[SEED]
            again = Settlement(seed, Event.RETRY, found=(link(long), link(long)))
            assert [(await frontier.settle([again], [])).added for _ in range(2)] == [1, 0]
            assert (await waiting(frontier, [long]))[long].url == long

    asyncio.run(test())


def test_text_with_nul_is_stored_without_it(tmp_path: Path, address: str) -> None:
    async def test() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.add_seeds([SEED])
            seed = (await waiting(frontier, [SEED]))[SEED]
            await frontier.settle([Settlement(seed, Event.GIVE_UP, note="a\0b")], [])

    asyncio.run(test())
    assert database_rows(tmp_path / "crawl.db", "SELECT note FROM urls") == [("a\ufffdb",)]


def test_a_lost_connection_is_made_again(tmp_path: Path, address: str) -> None:
    async def test() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.add_seeds([SEED])
            with psycopg.connect(address, autocommit=True) as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            seed = (await waiting(frontier, [SEED]))[SEED]
            await frontier.settle([Settlement(seed, Event.RETRY)], [])

    asyncio.run(test())
    assert database_rows(tmp_path / "crawl.db", "SELECT tries FROM urls") == [(1,)]


def test_a_commit_whose_answer_is_lost_counts_once(tmp_path: Path, address: str) -> None:
    """A retry adds a try each time it is settled, so doing it twice would show."""
    port = int(address.rpartition(":")[2].partition("/")[0])

    async def made() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.add_seeds([SEED])

    async def test(way: str) -> None:
        async with await opened(tmp_path, way) as frontier:
            seed = (await waiting(frontier, [SEED]))[SEED]
            for place in range(3):
                settlement, file = stored(seed, place * 10, event=Event.RETRY)
                await frontier.settle([settlement._replace(status=503)], [file])

    asyncio.run(made())
    with LostAnswers(port, 4) as proxy:
        asyncio.run(test(address.replace(str(port), str(proxy.port))))
    write_address(tmp_path / "crawl.db", address)
    assert database_rows(tmp_path / "crawl.db", "SELECT tries FROM urls") == [(3,)]
    assert database_rows(tmp_path / "crawl.db", "SELECT count(*) FROM captures") == [(3,)]
    assert database_rows(tmp_path / "crawl.db", "SELECT received FROM hosts") == [(27,)]


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        ("postgresql://tester@127.0.0.1:1/none", ArchiveError, r"postgresql://tester@127\.0\.0\.1:1/none: "),
        ("postgresql://u:secret@[h/x", ConfigError, "is not the address of a database"),
    ],
)
def test_an_address_without_a_database(tmp_path: Path, address: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        asyncio.run(opened(tmp_path, address))
    assert "secret" not in str(caught.value)


def test_another_schema_is_refused(tmp_path: Path, address: str) -> None:
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("CREATE TABLE urls (url TEXT)")
    with pytest.raises(ConfigError, match="has a table urls that archiver has not made"):
        asyncio.run(opened(tmp_path, address))
