"""What several figures of a report share is gathered once for a connection, even if there is nothing to gather."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from archiver.frontier import figures, gathered, outcomes
from archiver.frontier.database import connect_readonly
from archiver.frontier.sqlite import SqliteFrontier


async def made(path: Path) -> None:
    await (await SqliteFrontier.open(path)).close()


def test_each_table_is_read_once_though_it_is_empty(tmp_path: Path) -> None:
    """A crawl without failures has no unusual URLs; each list of its report would look at all URLs for them again."""
    asyncio.run(made(tmp_path / "crawl.db"))
    passes: Counter[str] = Counter()
    with closing(connect_readonly(tmp_path / "crawl.db")) as db:
        db.set_trace_callback(lambda sql: passes.update([sql.split()[2]] if "INSERT INTO temp." in sql else []))
        for _ in range(3):
            gathered.count_urls(db)
            gathered.count_answers(db)
            gathered.find_unusual(db)
            gathered.find_missing(db)
    names = ("url_figures", "failure_figures", "answer_figures", "unusual", "missing")
    assert [passes[f"temp.{name}"] for name in names] == [1, 1, 1, 1, 1]


def test_urls_with_and_without_a_failure_are_counted_once(tmp_path: Path) -> None:
    """Those with one are counted apart, whatever their state is: a URL that waits for another try has one, too."""
    asyncio.run(made(tmp_path / "crawl.db"))
    rows = [
        ("archived", 200, ""),
        ("waiting", 0, "timeout"),
        ("waiting", 0, ""),
        ("failed", 0, "dns"),
        ("failed", 0, "dns"),
    ]
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db, db:
        db.execute("INSERT INTO hosts (id, key) VALUES (1, 'http://a')")
        db.executemany(
            "INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, seed, state, status, failure) "
            "VALUES (?, 1, 'L', 'L', 1, 0, 5, 7, ?, ?, ?)",
            [(f"http://a/{number}", *row) for number, row in enumerate(rows)],
        )
    with closing(connect_readonly(tmp_path / "crawl.db")) as db:
        found = Counter({(each.state, each.status, each.failure): each.urls for each in outcomes.groups(db)})
        by_depth = [(depth, state, urls) for depth, state, urls in figures.depths(db)]
    assert found == Counter(rows)
    assert by_depth == [(1, "archived", 1), (1, "failed", 2), (1, "waiting", 2)]
