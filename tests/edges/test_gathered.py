"""What several figures of a report share is gathered once for a connection, even if there is nothing to gather."""

import asyncio
from collections import Counter
from contextlib import closing
from pathlib import Path

from archiver.frontier import gathered
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
