"""A page that has not changed costs little when its site is crawled again, and nothing of its visit is lost."""

import gzip
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from archiver.warc.writer import member
from fixtures.archives import rows, warcs
from fixtures.conditional_site import Page, served
from fixtures.forks import Forks
from fixtures.rawserver import RawServer
from fixtures.sites import page

pytestmark = pytest.mark.slow

OPTIONS = ("--rate", "0", "--probe", "off", "--retries", "0", "--min-free-disk", "0", "-qq")
MOST = 300  # bytes that a 304 may cost beside request and revisit
TAGGED = [f"/tagged/article-{number}.html" for number in range(12)]
PLAIN = [f"/plain/article-{number}.html" for number in range(12)]
LINES = ("via: ", "hopsFromSeed: ", "fetchTimeMs: ", "seed: ", "hop: ", "depth: ", "offScopeHops: ", "tries: ")
MORE = ("payloadLength: ", "receivedLength: ", "outlinksOf: ", "fault: ", "remark: ", "notModifiedHead: ")

URLS = """
    SELECT urls.url, urls.state, urls.status, urls.hop, urls.path, urls.depth, urls.off_scope_hops, urls.tries,
           urls.note, via.url, seeds.url
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
    pages = {}
    for number, target in enumerate((*TAGGED, *PLAIN)):
        text = page(target, [*links, f"/behind-{number}"], body=f"<p>Words of {target}</p>" * 30)
        pages[target] = Page(text, etag=f'"{target}"' if target in TAGGED else "")
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


def test_a_page_that_came_again_as_it_was_does_not_repeat_its_links(
    tmp_path: Path, forks: Forks, crawled: Path
) -> None:
    directory = copied(crawled, tmp_path)
    done(forks, "recrawl", "c", *OPTIONS, cwd=tmp_path)
    done(forks, "recrawl", "c", *OPTIONS, cwd=tmp_path)
    identical = rows(directory, "SELECT count(*) FROM captures WHERE revisit = 'identical-payload-digest'")
    assert identical == [(len(PLAIN),)]
    notes = [
        text for path in warcs(directory) for text in gzip.decompress(path.read_bytes()).decode().split("WARC/1.1\r\n")
    ]
    plain = [text for text in notes if "Type: metadata\r\n" in text and "/plain/" in text.partition("WARC-Date")[0]]
    assert len(plain) == 3 * len(PLAIN)
    assert sum("\r\noutlink: " in text for text in plain) == len(PLAIN)  # those of the first crawl
    assert sum("\r\noutlinksOf: " in text for text in plain) == 2 * len(PLAIN)
    ran = forks.run("explain", "c", f"{_origin(directory)}/gone/3/a-page-that-is-not-there.html", cwd=tmp_path)
    assert "a/@href" in ran.said


def _origin(directory: Path) -> str:
    ((home,),) = rows(directory, "SELECT url FROM urls WHERE path = '' AND priority > 0")
    return str(home).rstrip("/")


def test_a_rebuilt_database_knows_the_same(tmp_path: Path, forks: Forks, crawled: Path) -> None:
    directory = copied(crawled, tmp_path)
    done(forks, "recrawl", "c", *OPTIONS, cwd=tmp_path)
    before = rows(directory, URLS), rows(directory, CAPTURES)
    (directory / "crawl.db").unlink()
    done(forks, "rebuild", "c", cwd=tmp_path)
    assert (rows(directory, URLS), rows(directory, CAPTURES)) == before
    report = verify([directory])
    assert (report.ok, report.findings) == (True, ()), report.findings


def test_links_of_a_page_whose_first_record_is_damaged_are_read_from_it(
    tmp_path: Path, forks: Forks, crawled: Path
) -> None:
    """The metadata record with the links is gone, the page itself is whole; the crawl has not followed them yet."""
    directory = copied(crawled, tmp_path)
    ran = forks.run("recrawl", "c", "--max-urls", str(1 + len(TAGGED) + len(PLAIN)), *OPTIONS, cwd=tmp_path)
    assert ran.code == ExitCode.LIMIT, ran.said
    before = rows(directory, URLS)
    assert rows(directory, "SELECT count(*) FROM urls WHERE url LIKE '%/behind-%' AND state = 'waiting'") == [(24,)]
    assert rows(directory, "SELECT count(*) FROM captures WHERE revisit = 'identical-payload-digest'") == [(12,)]
    (earlier,) = (directory / "crawls").iterdir()
    found = rows(
        earlier,
        "SELECT warcs.name, offset + response_length + request_length + metadata_length / 2 FROM captures "
        "JOIN warcs ON warcs.id = captures.warc JOIN urls ON urls.id = captures.url WHERE urls.url LIKE '%/plain/%'",
    )
    for name, offset in found:
        with (directory / "archive" / str(name)).open("r+b") as file:
            file.seek(int(str(offset)))
            file.write(b"\0\0\0\0")
    (directory / "crawl.db").unlink()
    done(forks, "rebuild", "c", cwd=tmp_path)
    assert rows(directory, URLS) == before


def test_pages_stored_as_revisits_count_for_the_tallies_of_traps(tmp_path: Path, forks: Forks) -> None:
    """Many URLs with one page: nearly all of them are revisits, and a rebuilt database knows what they brought."""
    lost = [f"/lost/{number}" for number in range(40)]
    same = Page(page("Lost", body="<p>There is nothing here.</p>" * 200))
    tallies = "SELECT pattern, visits, fruitful, streak, barren, listed FROM pattern_tallies ORDER BY pattern"
    with RawServer(served({"/": Page(page("Home", lost)), **dict.fromkeys(lost, same)})) as server:
        done(forks, "crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path)
        directory = tmp_path / "c"
        assert rows(directory, "SELECT count(*) FROM captures WHERE revisit <> ''") == [(len(lost) - 1,)]
        for _ in range(2):
            before = rows(directory, tallies)
            assert ("/lost/N", len(lost)) in {(str(row[0])[len(server.url("")) :], row[1]) for row in before}
            (directory / "crawl.db").unlink()
            done(forks, "rebuild", "c", cwd=tmp_path)
            assert rows(directory, tallies) == before
            done(forks, "recrawl", "c", *OPTIONS, cwd=tmp_path)  # then the originals are those of the crawl before


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
    report = verify([directory])
    assert (report.ok, report.findings) == (True, ()), report.findings
    assert len(warcs(directory)) > 1
