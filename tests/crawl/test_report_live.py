"""The log and the reports of a real crawl of a server with bad manners: what tools and browsers make of them."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

from archiver.collection.layout import Layout
from fixtures import badserver, browser, devtools
from fixtures.archives import rows
from fixtures.command import archiver
from fixtures.devtools import needs_chromium
from fixtures.rawserver import RawServer
from fixtures.sites import PIXEL, ok, page

QUIET = [flag for flag in devtools.FLAGS if "debugging" not in flag]
LINE = re.compile(  # as strict as the strictest reader
    r"(?P<logged>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) "
    r"(?P<status>[ \d-]{5}) "
    r"(?P<size>(?= *(?:\d+|-) )[ \d-]{10,}) "
    r"(?P<url>(?:https?://|dns:)[^\s]+) "
    r"(?P<path>-|(?:\d+\+)?[LEXRPM]{1,50}) "
    r"(?P<via>-|https?://[^\s]+) "
    r"(?P<mime>[^\s;,]+) "
    r"#(?P<worker>\d{3}) "
    r"(?P<started>-|\d{17}\+\d+) "
    r"(?P<digest>-|sha256:[0-9a-f]{64}) "
    r"(?P<source>-|https?://[^\s]+) "
    r"(?P<annotations>-|[^\s,]+(?:,[^\s,]+)*)"
)


@dataclass(frozen=True)
class Crawled:
    """A crawl that has ended, and what it said."""

    directory: Path
    seed: str
    said: str


@pytest.fixture(name="crawled", scope="module")
def odd_crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A crawl of every bad answer, with requisites that are missing, and pages that are forbidden."""
    folder = tmp_path_factory.mktemp("crawl")
    routes = {
        **badserver.routes(),
        "/robots.txt": ok("User-agent: *\nDisallow: /private\n", "text/plain"),
        "/closed": badserver.NO_ANSWER["closed"],
        "/there.gif": ok(PIXEL, "image/gif"),
        "/deep": ok(
            page("Deep", ["/private/x", "/a,b;c%20d", "/closed"], ["/there.gif", "/gone.gif", "/private/i.gif"])
        ),
    }
    routes["/"] = ok(page("Bad <b>answers</b>", [*badserver.BAD, "/deep"]))
    with RawServer(routes=routes) as server:
        options = ("--rate", "1000", "--host-concurrency", "8", "--retries", "0", "--timeout", "5")
        ran = archiver("crawl", server.url(), "-o", "c", *options, cwd=folder)
        assert ran.returncode == 0, ran.stderr
        yield Crawled(folder / "c", server.url(), ran.stderr)


def test_each_line_of_the_log_is_heritrix_s(crawled: Crawled) -> None:
    lines = [LINE.fullmatch(line) for line in Layout(crawled.directory).log.read_text().splitlines()]
    found = [line for line in lines if line is not None]
    assert len(found) == len(lines)
    sources = {(line["path"] == "P", line["source"]) for line in found}
    assert sources == {(True, "-"), (False, crawled.seed)}  # a robots.txt is asked for by no seed alone
    assert {line["worker"] for line in found} == {"000"}
    told = Counter((line["url"], line["digest"]) for line in found if line["digest"] != "-")
    stored = rows(
        crawled.directory, "SELECT urls.url, payload_digest FROM captures JOIN urls ON urls.id = captures.url"
    )
    assert told == Counter(map(tuple, stored))
    by_path = {line["url"].removeprefix(crawled.seed): line for line in found}
    seed, forbidden, closed = by_path[""], by_path["private/x"], by_path["closed"]
    assert (seed["path"], seed["via"], seed["mime"]) == ("-", "-", "text/html")
    assert (forbidden["status"], forbidden["mime"], forbidden["started"]) == ("-9998", "unknown", "-")
    assert (closed["status"], closed["size"].strip(), closed["path"]) == ("   -3", "-", "LL")
    assert unquote(closed["annotations"]).startswith("err=disconnect: ")
    assert by_path["robots.txt"]["path"] == "P"
    assert by_path["gone.gif"]["path"] == "LE"
    assert by_path["short-body"]["annotations"].split(",")[0] == "midFetchTrunc"


def test_the_end_names_the_page(crawled: Crawled) -> None:
    page_of = (crawled.directory / "reports" / "report.html").absolute()
    assert f"report    {page_of.as_uri()}\n" in crawled.said


def test_the_command_says_the_same_and_writes_nothing(crawled: Crawled) -> None:
    before = {path: path.stat().st_mtime_ns for path in crawled.directory.rglob("*")}
    folder = crawled.directory.parent
    told = json.loads(archiver("report", "c", "--json", cwd=folder).stdout)
    kept = json.loads((crawled.directory / "reports" / "report.json").read_text())
    for one in (told, kept):
        del one["written"], one["run"]
        del one["totals"]["warcs"], one["totals"]["stored"]  # the report itself goes into a WARC file, too
    assert told.pop("ended") == kept.pop("ended") == "done"
    assert told == kept
    missing = told["tables"]["missing-requisites"]["rows"]
    assert [(url.rpartition("/")[2], reason) for url, reason, _ in missing] == [
        ("gone.gif", "status 404"),
        ("i.gif", "robots"),
    ]
    ran = archiver("report", "c", "--html", "-o", "own.html", cwd=folder)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert (folder / "own.html").read_text().count("<figure>") == 6
    assert {path: path.stat().st_mtime_ns for path in crawled.directory.rglob("*")} == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("c", "-o", "c"), "-o c holds a crawl; name a file such as report.html, or a folder of its own"),
        (("c", "-o", "no/where.txt"), "-o no/where.txt cannot be written: its folder does not exist; name a file"),
    ],
)
def test_what_cannot_be_done(crawled: Crawled, arguments: tuple[str, ...], told: str) -> None:
    ran = archiver("report", *arguments, cwd=crawled.directory.parent)
    assert ran.returncode == 2
    assert told in ran.stderr
    assert ran.stderr.count("\n") == 1


@needs_chromium
def test_a_browser_shows_the_page(crawled: Crawled, tmp_path: Path) -> None:
    """Our script runs, though the page forbids every other; nothing is complained of."""
    address = (crawled.directory / "reports" / "report.html").absolute().as_uri()
    options = (*QUIET, f"--user-data-dir={tmp_path}", "--enable-logging=stderr", "--dump-dom")
    ran = subprocess.run(
        [str(devtools.command()), *options, address],
        capture_output=True,
        text=True,
        timeout=browser.PATIENCE,
        check=True,
    )
    assert "CONSOLE" not in ran.stderr
    assert ran.stdout.count('<th class="n" scope="col"><button type="button">') > 10


@needs_chromium
def test_a_browser_obeys_no_other_script(crawled: Crawled, tmp_path: Path) -> None:
    """What the test above looks for would be seen."""
    spoiled = tmp_path / "spoiled.html"
    told = (crawled.directory / "reports" / "report.html").read_text()
    spoiled.write_text(told.replace("</body>", "<script>document.title = 'mine'</script></body>"))
    options = (*QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom")
    ran = subprocess.run(
        [str(devtools.command()), *options, spoiled.as_uri()],
        capture_output=True,
        text=True,
        timeout=browser.PATIENCE,
        check=True,
    )
    assert "CONSOLE" in ran.stderr
    assert "<title>mine</title>" not in ran.stdout
