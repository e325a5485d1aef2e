"""A frontier in PostgreSQL: its schema, what only it refuses, and connections that are lost."""

import asyncio
import sqlite3
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import database, leases, url_queue
from archiver.frontier.address import write_address
from archiver.frontier.dialect import translate
from archiver.frontier.port import HostWindow
from archiver.frontier.postgres import PostgresConnection, persist, unreachable
from archiver.frontier.postgres_reading import PORTION
from archiver.frontier.sqlite import SqliteFrontier
from archiver.frontier.totals import open_totals
from archiver.model import Event, Hop, NewUrl, Settlement
from fixtures.archives import database_rows
from fixtures.ports import PATIENCE
from fixtures.postgres import LostAnswers, PostgresServer, ServerPair, wait_for
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
    found = [
        row for row in database_rows(tmp_path / "crawl.db", columns) if row[0] != "versions" and row[1] != "has_waiting"
    ]
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
            "INSERT INTO temp.a AS groups SELECT a + b, c, 1, d FROM urls WHERE true ON CONFLICT (c, x) DO UPDATE ...",
            "INSERT INTO a SELECT a + b, c, count(*), sum(d) FROM urls GROUP BY 1, 2",
        ),
        (
            "urls.id IN (SELECT value FROM json_each(:rows))",
            "urls.id = ANY(translate(%(rows)s, '[]', '{}')::bigint[])",
        ),
        (
            "hosts.id NOT IN (SELECT value FROM json_each(?))",
            "hosts.id <> ALL(translate(%s, '[]', '{}')::bigint[])",
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


def test_an_index_finds_hosts_that_may_be_due_in_order(tmp_path: Path, address: str) -> None:
    """So a look at the queue takes as long with a million hosts as with ten thousand."""

    async def made() -> None:
        await (await opened(tmp_path, address)).close()

    asyncio.run(made())
    sql = translate(url_queue.MAY_BE_DUE.format(free=f"NOT {leases.HELD_BY_OTHERS}"))
    given = {"due": 1e9, "since": 0.0, "last": 5000, "page": 256, "crawler": 1, "now": 0.0}
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("INSERT INTO hosts (key, waiting) SELECT n, 1 FROM generate_series(1, 10000) AS n")
        db.execute("ANALYZE")
        plan = "\n".join(row[0] for row in db.execute(f"EXPLAIN {sql}".encode(), given))
    assert "Index Only Scan using hosts_waiting" in plan or "Index Scan using hosts_waiting" in plan, plan
    assert "Sort" not in plan, plan


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)


def test_rows_pass_through_arrays(address: str) -> None:
    """Any text, number or NULL beside a key, also in a column of which all are NULL."""
    db = PostgresConnection(address)
    select = "WITH given (key, a, b, c) AS (VALUES {rows}) SELECT a, b, c FROM given ORDER BY key"

    @given(rows=st.lists(st.tuples(TEXTS, NUMBERS, st.none() | st.floats(allow_nan=False) | st.integers(0, 9))))
    def test(rows: list[tuple[str | None, int | None, float | None]]) -> None:
        found = db.many(select, [(key, *row) for key, row in enumerate(rows)])
        assert found == [(a and a.replace("\0", "\ufffd"), b, c) for a, b, c in rows]

    try:
        test()
    finally:
        db.close()


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


def test_windows_are_read_again_on_a_new_connection(tmp_path: Path, address: str) -> None:
    """Their statements go to the server together."""

    async def test() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.add_seeds([SEED, f"{SEED}b", "http://b.example/"])
            wanted = [HostWindow(row.id, 9, prerequisites=False) for row in await frontier.due_hosts(1.0, 9, ())]
            first = await frontier.windows(wanted, 1.0)
            assert sorted(len(each.claims) for each in first) == [1, 2]
            with psycopg.connect(address, autocommit=True) as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            assert await frontier.windows(wanted, 1.0) == first

    asyncio.run(test())


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


def test_a_commit_that_a_standby_never_got_is_made_again(postgres_server: PostgresServer | None) -> None:
    """The standby gives the number of the lost transaction to another one, whose commit must not be taken for ours."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    attempts: list[int] = []

    def add(db: Any) -> None:
        with db.transaction():
            (number,) = db.row("SELECT pg_current_xact_id()::text")
            attempts.append(int(number))
            db.execute("INSERT INTO done VALUES (?)", ("ours",))
            if len(attempts) == 1:
                pair.fail_over()
                reach(int(number))

    def reach(number: int) -> None:
        """Let another connection commit transactions on the new server, the last one as this *number*."""
        other = PostgresConnection(address)
        now = 0
        while now < number:
            with other.transaction():
                (now,) = map(int, other.row("SELECT pg_current_xact_id()::text"))
                other.execute("INSERT INTO done VALUES (?)", ("other",))
        assert now == number
        other.close()

    with ExitStack() as stack:
        pair = ServerPair(stack)
        name = pair.server.new_database().rpartition("/")[2]
        first, second = pair.ports
        address = f"postgresql://tester@127.0.0.1:{first},127.0.0.1:{second}/{name}"
        db = stack.enter_context(closing(PostgresConnection(address)))
        db.prepare()
        db.execute("CREATE TABLE done (name TEXT)")
        with db.transaction():
            db.execute("INSERT INTO done VALUES (?)", ("before",))
        pair.detach()
        persist(db, add)
        assert len(attempts) == 2
        assert db.rows("SELECT name FROM done WHERE name <> 'other' ORDER BY name") == [("before",), ("ours",)]


def test_a_lease_outlives_the_server(tmp_path: Path, postgres_server: PostgresServer | None) -> None:
    """It waits for the standby. If a standby that never got it took over, a second crawler could lease the host."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")

    async def check(pair: ServerPair, address: str) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            write_address(tmp_path / name / "crawl.db", address, name)
        async with (
            await SqliteFrontier.open(tmp_path / "one" / "crawl.db") as one,
            await SqliteFrontier.open(tmp_path / "two" / "crawl.db") as two,
        ):
            await one.join("one~1")
            await two.join("two~1")
            await one.add_seeds([SEED])
            (host,) = await one.due_hosts(1000.0, 1, ())
            pair.detach()
            leased = asyncio.create_task(one.lease({host.id: host.key}))
            waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            await asyncio.to_thread(wait_for, pair.server.address(), waiting)
            await asyncio.to_thread(pair.fail_over)
            assert host.id in await leased
            assert await two.lease({host.id: host.key}) == {}

    with ExitStack() as stack:
        pair = ServerPair(stack)
        name = pair.server.new_database().rpartition("/")[2]
        first, second = pair.ports
        asyncio.run(check(pair, f"postgresql://tester@127.0.0.1:{first},127.0.0.1:{second}/{name}"))


def test_a_long_result_is_read_in_portions(tmp_path: Path, address: str) -> None:
    """It need not fit into memory, other queries may come in between, and its beginning is there at once."""

    async def made() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.add_seeds([f"{SEED}{number}" for number in range(PORTION + 2)])

    asyncio.run(made())
    with open_totals(address) as db:
        endless = iter(db.execute("SELECT generate_series(1, 1000000000000)"))
        other = iter(db.execute("WITH seed AS (SELECT url FROM urls) SELECT url FROM seed ORDER BY url"))
        assert [next(endless) for _ in range(3)] == [(1,), (2,), (3,)]
        assert len(list(other)) == PORTION + 2
        assert db.execute("SELECT count(*) FROM urls").fetchone() == (PORTION + 2,)
        assert len(list(db.execute("SELECT 1 FROM urls LIMIT ?", (PORTION,)))) == PORTION
        assert next(endless) == (4,)
        assert db.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1h",)


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


@pytest.mark.parametrize(
    "address", ["postgresql://tester@nowhere.invalid/none", "postgresql://tester@127.0.0.1:{}/none"]
)
def test_a_server_that_refuses_is_not_waited_for(postgres_server: PostgresServer | None, address: str) -> None:
    """It has no such name or no such database: the next connection tells."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    assert list(unreachable(address.format(postgres_server.port))) == []


def test_waiting_for_a_server_in_vain() -> None:
    reasons = unreachable("postgresql://tester@127.0.0.1:1/none", 0.2)
    assert next(reasons) == "Connection refused"
    with pytest.raises(ArchiveError, match=r"127\.0\.0\.1:1/none: Connection refused; start the server, then run the"):
        deque(reasons)


def test_another_schema_is_refused(tmp_path: Path, address: str) -> None:
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("CREATE TABLE urls (url TEXT)")
    with pytest.raises(ConfigError, match="has a table urls that archiver has not made"):
        asyncio.run(opened(tmp_path, address))


def test_after_waiting_in_vain_no_further_step_waits(postgres_server: PostgresServer | None) -> None:
    """A crawl ends in several steps, each of which asks the database."""
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    made: list[int] = []

    class Counted(PostgresConnection):
        def connect_again(self) -> None:
            made.append(1)
            super().connect_again()

    with LostAnswers(postgres_server.port, 0) as proxy:
        db = Counted(f"postgresql://tester@127.0.0.1:{proxy.port}/postgres")
    db.patience = 0.5
    for most in (6, 1):
        made.clear()
        with pytest.raises(psycopg.OperationalError):
            persist(db, lambda it: it.row("SELECT 1"))
        assert 1 <= len(made) <= most


def test_a_run_goes_on_while_a_server_has_lost_its_sessions(tmp_path: Path, address: str) -> None:
    """After a restart of the server a machine is still alive by its lease, although no session holds its lock.

    If a machine that comes first then began a new run, two crawlers would ask the same hosts.
    """

    async def machine(name: str) -> SqliteFrontier:
        folder = tmp_path / name
        folder.mkdir()
        write_address(folder / "crawl.db", address, name)
        frontier: SqliteFrontier = await SqliteFrontier.open(folder / "crawl.db")
        return frontier

    async def check() -> None:
        async with await machine("one") as one, await machine("two") as two:
            began = await one.enter_run("host:/one", (), 1000.0)
            await one.join("one~1")
            await one.add_seeds([SEED])
            (host,) = await one.due_hosts(1000.0, 1, ())
            assert await one.lease({host.id: host.key})
            with psycopg.connect(address, autocommit=True) as server:
                server.execute(
                    b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    b"WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
                )
            assert await two.enter_run("host:/two", (), 2000.0) == began
            await two.join("two~1")
            assert await two.lease({host.id: host.key}) == {}
            assert await one.renew()
            assert await two.others_run()  # it has its lock again
            await two.leave({})
            assert await two.end_run(0, "done", 3000.0)  # one goes on
            await one.leave({})
            assert not await one.end_run(0, "done", 4000.0)

    asyncio.run(check())


def test_a_crawler_that_a_new_run_has_forgotten_owns_nothing(tmp_path: Path, address: str) -> None:
    async def check() -> None:
        async with await opened(tmp_path, address) as frontier:
            await frontier.join("one~1")
            await frontier.add_seeds([SEED])
            (host,) = await frontier.due_hosts(1000.0, 1, ())
            assert await frontier.lease({host.id: host.key})
            with psycopg.connect(address, autocommit=True) as server:
                server.execute(b"DELETE FROM leases")
                server.execute(b"DELETE FROM crawlers")
            assert await frontier.lease({host.id: host.key}) == {}
            assert not await frontier.renew()

    asyncio.run(check())


def test_a_commit_that_is_ended_while_it_waits_for_a_standby_took_place(tmp_path: Path, address: str) -> None:
    """The server says that it ends the session, but the transaction is committed already; it is not done again."""

    def add(db: Any) -> None:
        with db.transaction():
            db.execute("INSERT INTO done VALUES (1)")

    async def made() -> None:
        await (await opened(tmp_path, address)).close()

    asyncio.run(made())
    with psycopg.connect(address, autocommit=True) as server, ThreadPoolExecutor(1) as thread:
        server.execute(b"CREATE TABLE done (number INTEGER)")
        db = PostgresConnection(address)
        server.execute(b"ALTER SYSTEM SET synchronous_standby_names = '*'")
        try:
            server.execute(b"SELECT pg_reload_conf()")
            attempts = [thread.submit(persist, db, add)]
            end = time.monotonic() + PATIENCE
            while server.execute(b"SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").fetchone() is None:
                assert time.monotonic() < end
                if attempts[-1].done():  # before the server's checkpointer told sessions to wait
                    attempts.append(thread.submit(persist, db, add))
            server.execute(b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        finally:
            server.execute(b"ALTER SYSTEM RESET synchronous_standby_names")
            server.execute(b"SELECT pg_reload_conf()")
        for attempt in attempts:
            attempt.result()
        db.close()
        assert server.execute(b"SELECT count(*) FROM done").fetchone() == (len(attempts),)
