"""A page that has not changed costs little when its site is crawled again, and nothing of its visit is lost."""

import gzip
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver import verify
from archiver.archive.compressing import member
from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.conditional import Page, served
from fixtures.forks import Forks
from fixtures.rawserver import RawServer
from fixtures.sites import page

pytestmark = pytest.mark.slow

OPTIONS = ("--rate", "0", "--probe", "off", "--retries", "0", "--min-free-disk", "0", "-qq")
MOST = 300  # bytes that a 304 may cost beside request and revisit
TAGGED = [f"/tagged/article-{number}.html" for number in range(12)]
PLAIN = [f"/plain/article-{number}.html" for number in range(12)]
LINES = ("via: ", "hopsFromSeed: ", "fetchTimeMs: ", "seed: ", "hop: ", "depth: ", "strays: ", "tries: ")
MORE = ("payloadLength: ", "receivedLength: ", "outlinksOf: ", "fault: ", "remark: ", "notModifiedHead: ")

URLS = """
    SELECT urls.url, urls.state, urls.status, urls.hop, urls.path, urls.depth, urls.strays, urls.tries, urls.note,
           via.url, seeds.url
    FROM urls LEFT JOIN urls AS via ON via.id = urls.via LEFT JOIN urls AS seeds ON seeds.id = urls.seed
    ORDER BY urls.url
"""
CAPTURES = """
    SELECT urls.url, timestamp, captures.status, mime, payload_digest, payload_length, offset, response_length,
           request_length, metadata_length, received, truncated, revisit
    FROM captures JOIN urls ON urls.id = captures.url ORDER BY urls.url, timestamp
"""


def site() -> dict[str, Page]:
    """Pages with many links, half of which have a tag by which they can be asked for."""
    links = [*TAGGED, *PLAIN, *(f"/gone/{number}/a-page-that-is-not-there.html" for number in range(30))]
    pages = {
        target: Page(page(target, links, body=f"<p>Words of {target}</p>" * 30), etag=f'"{target}"')
        for target in TAGGED
    }
    pages |= {target: Page(page(target, links, body=f"<p>Words of {target}</p>" * 30)) for target in PLAIN}
    return {"/": Page(page("Home", [TAGGED[0], PLAIN[0]])), **pages}


def done(forks: Forks, *arguments: str, cwd: Path) -> None:
    """Run archiver, and let it succeed."""
    ran = forks.run(*arguments, cwd=cwd)
    assert ran.code == ExitCode.DONE, ran.said


@pytest.fixture(name="crawled", scope="module")
def crawled_once(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[Path]:
    """The directory of a crawl of the site, which is still there."""
    folder = tmp_path_factory.mktemp("sizes")
    with RawServer(served(site())) as server:
        done(forks, "crawl", server.url(), "-o", "c", *OPTIONS, cwd=folder)
        yield folder / "c"


def copied(crawled: Path, folder: Path) -> Path:
    """A copy of the collection, to be crawled again."""
    shutil.copytree(crawled, folder / "c")
    return folder / "c"


def test_what_a_page_that_was_not_modified_costs(tmp_path: Path, forks: Forks, crawled: Path) -> None:
    directory = copied(crawled, tmp_path)
    done(forks, "recrawl", "c", *OPTIONS, cwd=tmp_path)
    found = rows(
        directory,
        "SELECT warcs.name, offset, response_length, metadata_length FROM captures "
        "JOIN warcs ON warcs.id = captures.warc WHERE revisit = 'server-not-modified'",
    )
    assert len(found) == len(TAGGED)
    for name, *numbers in found:
        offset, length, metadata = (int(str(number)) for number in numbers)
        whole = (directory / "archive" / str(name)).read_bytes()[offset : offset + length]
        lines = gzip.decompress(whole).decode().split("\r\n")
        bare = "\r\n".join(line for line in lines if not line.startswith((*LINES, *MORE)))
        assert len(bare) < len("\r\n".join(lines)) - 200
        assert length - len(member(bare.encode())) + metadata <= MOST


def test_a_rebuilt_database_knows_the_same(tmp_path: Path, forks: Forks, crawled: Path) -> None:
    directory = copied(crawled, tmp_path)
    done(forks, "recrawl", "c", *OPTIONS, cwd=tmp_path)
    before = rows(directory, URLS), rows(directory, CAPTURES)
    (directory / "crawl.db").unlink()
    done(forks, "rebuild", "c", cwd=tmp_path)
    assert (rows(directory, URLS), rows(directory, CAPTURES)) == before
    report = verify.run([directory])
    assert (report.ok, report.faults) == (True, ()), report.faults


@pytest.mark.parametrize("passing", [2, 7, 20, 40])
def test_a_kill_loses_no_link(tmp_path: Path, forks: Forks, crawled: Path, passing: int) -> None:
    """After a kill and a resume each URL is known as in a crawl that nothing stopped."""
    directory = copied(crawled, tmp_path)
    ran = forks.run("recrawl", "c", *OPTIONS, cwd=tmp_path, step="request-appended", passing=passing)
    assert ran.code == -signal.SIGKILL, ran.said
    done(forks, "resume", "c", "-qq", cwd=tmp_path)
    (earlier,) = (directory / "crawls").iterdir()
    known = "SELECT url, state FROM urls ORDER BY url"
    assert rows(directory, known) == rows(earlier, known)
    assert not rows(directory, "SELECT url FROM urls WHERE note LIKE '%not read%'")
    report = verify.run([directory])
    assert (report.ok, report.faults) == (True, ()), report.faults
    assert len(warcs(directory)) > 1
