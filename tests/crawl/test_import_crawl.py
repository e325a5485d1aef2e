"""A crawl and what is imported beside it: the index is one, and each keeps to its own files."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from archiver.cli import entry
from archiver.collection import reindex
from archiver.collection.index import INDEX
from archiver.crawl.recovery.rebuild import rebuilt
from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from fixtures.archives import rows, warcs
from fixtures.badserver import BAD, routes
from fixtures.crawl_in_process import crawl, settings
from fixtures.expected_index import as_ours, theirs, untidy
from fixtures.handmade_warc import member, record
from fixtures.rawserver import RawServer, Route
from fixtures.sites import oddities, ok, page

BLANK = "blank-lines-first"  # cdxj-indexer finds neither status nor type behind them
FOREIGN = member(record("warcinfo", b"software: other\r\n")) + member(
    record("response", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>from elsewhere", number=2)
)


def site() -> dict[str, Route]:
    """Whatever a server can answer."""
    odd = {target: route for target, route in oddities().routes.items() if target not in ("/itself", "/cut")}
    all_of_it = odd | {f"/{name}": routes()[f"/{name}"] for name in BAD}
    return all_of_it | {"/": ok(page("All", [target for target in all_of_it if target != "/"]))}


def index(directory: Path) -> list[str]:
    return (directory / "indexes" / INDEX).read_text().splitlines()


def urls(directory: Path) -> list[str]:
    return [json.loads(line.split(" ", 2)[2])["url"] for line in index(directory)]


@pytest.mark.slow
def test_what_a_crawl_writes_is_what_reading_its_files_gives(tmp_path: Path) -> None:
    """And what cdxj-indexer gives, but for what is meant to be different."""
    with RawServer(site()) as server:
        assert crawl(tmp_path / "c", server.url(), retries=0).code is ExitCode.DONE
    written = index(tmp_path / "c")
    assert len(written) > 60
    reindex.rebuild(tmp_path / "c")
    assert index(tmp_path / "c") == written
    expected: set[str] = set()
    with untidy():
        for path in warcs(tmp_path / "c"):
            expected |= set(map(as_ours, theirs(path, tmp_path) or ()))
    unlike = expected ^ set(written)
    assert {json.loads(line.split(" ", 2)[2])["url"].rpartition("/")[2] for line in unlike} <= {BLANK}


@pytest.fixture(name="crawled")
def a_crawl_with_an_import(tmp_path: Path) -> Path:
    """Of a crawl's own files one was imported: a copy of what another crawl wrote, and one of another program."""
    with RawServer({"/": ok(page("One", ["/a"])), "/a": ok("a")}) as server:
        for name in ("c", "other"):
            assert crawl(tmp_path / name, server.url(), retries=0).code is ExitCode.DONE
    (tmp_path / "foreign.warc.gz").write_bytes(FOREIGN)
    arguments = [str(tmp_path / "foreign.warc.gz"), str(tmp_path / "other"), "-o", str(tmp_path / "c")]
    assert entry.run(["import", *arguments]) == ExitCode.DONE
    return tmp_path / "c"


def test_the_index_of_both_is_made_again_when_it_is_lost(crawled: Path) -> None:
    """Of the crawl from the database, of the others from their files."""
    before = index(crawled)
    assert len(before) == 2 * len(rows(crawled, "SELECT 1 FROM captures")) + 1
    (crawled / "indexes" / INDEX).unlink()
    [seed] = [str(address) for (address,) in rows(crawled, "SELECT url FROM urls WHERE path = ''")]
    assert crawl(crawled, seed, resume=True).code is ExitCode.DONE
    assert index(crawled) == before


def test_a_database_made_again_knows_only_the_crawl(crawled: Path) -> None:
    """Also where this program wrote the other file."""
    before = rows(crawled, "SELECT timestamp, offset FROM captures ORDER BY 1")
    lines = index(crawled)
    shutil.rmtree(crawled / "indexes")
    (crawled / "crawl.db").unlink()
    done = asyncio.run(rebuilt(crawled, settings(), lambda *_: None))
    assert done.foreign == ()
    assert rows(crawled, "SELECT timestamp, offset FROM captures ORDER BY 1") == before
    assert index(crawled) == lines
    report = verify([crawled])
    assert report.ok
    assert "warc-unknown" not in report.counts


def test_the_index_command_lists_what_lies_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With no database, and no imports.json: files that somebody copied there."""
    (tmp_path / "c" / "archive").mkdir(parents=True)
    (tmp_path / "c" / "archive" / "a.warc.gz").write_bytes(FOREIGN)
    assert entry.run(["index", str(tmp_path / "c")]) == ExitCode.DONE
    assert urls(tmp_path / "c") == ["http://example.org/2"]
    assert capsys.readouterr().out.startswith("1 lines in")
