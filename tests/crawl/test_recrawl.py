"""A site is crawled again after it has changed in known ways: what is asked, what is stored, what the report says."""

import csv
import gzip
import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from archiver.collection.earlier_crawls import open_earlier_crawls
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.model import ExitCode, Profile
from archiver.tools.verify.collection import verify
from archiver.warc.reader import Record, scan
from archiver.warc.records import VisitMetadata
from fixtures.archives import rows, warcs
from fixtures.conditional_site import MONDAY, TUESDAY, Page, fields, served
from fixtures.forks import Forks, Ran
from fixtures.handmade_warc import member, record
from fixtures.pywb_server import archiver_replay
from fixtures.rawserver import RawServer, Route, keep
from fixtures.sites import message, page, redirect
from fixtures.steps import SWITCH_OVER

pytestmark = pytest.mark.slow

OPTIONS = ("--rate", "0", "--probe", "off", "--retries", "0", "--min-free-disk", "0", "-qq")
GONE = keep(message("410 Gone", b"gone\n", content_type="text/plain"))
BROKEN = keep(message("500 Internal Server Error", b"sorry\n", content_type="text/plain"))
UNASKED_304 = keep(b"HTTP/1.1 304 Not Modified\r\n\r\n")
SHOWN = page("A page, and its source", body="<p>the same</p>" * 200)
LINKED = (
    *("/source", "/etag", "/modified", "/both", "/neither", "/weak", "/gzip", "/hostile", "/star"),
    "/compressed",
    *(
        "/changed",
        "/changed-quietly",
        "/gone",
        "/moved",
        "/redirect",
        "/same-redirect",
        "/failing",
        "/private",
        "/liar",
        "/cut",
        "/chunks",
        "/never-chunked",
    ),
)


def compressed(level: int) -> Route:
    """One page, as a server with this *level* of compression sends it."""
    body = gzip.compress(page("Compressed anew", body="<p>the same</p>" * 200).encode(), level, mtime=0)
    return keep(message("200 OK", body, content_type="text/html", content_encoding="gzip"))


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


def first() -> dict[str, "Page | Route"]:
    """The site as it was."""
    return {
        "/robots.txt": keep(message("200 OK", b"User-agent: *\nDisallow:\n", content_type="text/plain")),
        "/": Page(page("Home", [*LINKED, "/gone-unlinked", "/unlinked"])),
        "/etag": Page(page("By ETag", ["/behind-etag"]), etag='"e-1"'),
        "/behind-etag": Page(page("Behind it", ["/shown"]), etag='"b-1"'),
        "/source": Page(SHOWN, etag='"s-1"', media_type="text/plain"),
        "/shown": Page(SHOWN, etag='"s-2"'),  # stored as a revisit of the source
        "/modified": Page(page("By date"), modified=MONDAY),
        "/both": Page(page("By both"), etag='"two"', modified=MONDAY),
        "/neither": Page(page("By neither", body="<p>as ever</p>" * 200)),
        "/weak": Page(page("By a weak tag"), etag='W/"w-1"'),
        "/gzip": Page(page("Packed", ["/behind-gzip"]), etag='"g-1"', packed=True),
        "/behind-gzip": Page(page("Behind the packed one"), modified=MONDAY),
        "/hostile": Page(page("A tag that is none"), etag='"a", *\x01'),
        "/star": Page(page("A tag that means all"), etag="*"),
        "/changed": Page(page("Old words"), etag='"c-1"', modified=MONDAY),
        "/changed-quietly": Page(page("Old words, no tag")),
        "/gone": Page(page("Soon gone"), etag='"gone"'),
        "/gone-unlinked": Page(page("Soon gone, and unlinked"), etag='"gone-2"'),
        "/unlinked": Page(page("Soon unlinked"), etag='"u-1"'),
        "/moved": Page(page("Soon elsewhere"), etag='"m-1"'),
        "/redirect": redirect("/etag"),
        "/same-redirect": redirect("/both"),
        "/failing": Page(page("Soon broken")),
        "/private": Page(page("Soon forbidden")),
        "/liar": Page(page("Soon a liar")),
        "/cut": Page(page("Soon cut off")),
        "/chunks": Page(page("Soon broken in its chunks")),
        "/never-chunked": Page(page("Soon called chunked")),
        "/compressed": compressed(1),
    }


def second() -> dict[str, "Page | Route"]:
    """The site as it is."""
    return {
        **first(),
        "/robots.txt": keep(message("200 OK", b"User-agent: *\nDisallow: /private\n", content_type="text/plain")),
        "/": Page(page("Home", [*LINKED, "/new"])),
        "/new": Page(page("New"), etag='"n-1"'),
        "/changed": Page(page("New words"), etag='"c-2"', modified=TUESDAY),
        "/changed-quietly": Page(page("New words, no tag")),
        "/gone": keep(message("404 Not Found", b"no\n", content_type="text/plain")),
        "/gone-unlinked": GONE,
        "/moved": redirect("/moved-here", "301 Moved Permanently"),
        "/moved-here": Page(page("Here it is")),
        "/redirect": redirect("/both"),
        "/same-redirect": redirect("./both"),  # the same place, in other words
        "/failing": BROKEN,
        "/liar": UNASKED_304,
        "/cut": message("200 OK", page("Soon cut off").encode())[:-20],
        "/chunks": CHUNKED + b"5\r\n<p>so\r\nno size\r\n",
        "/never-chunked": CHUNKED + b"<p>without a size\r\n<p>at all\r\n",
        "/compressed": compressed(9),
    }


CHANGES = {
    "new": {"/new", "/moved-here"},
    "changed": {"/", "/changed", "/changed-quietly", "/redirect", "/never-chunked"},
    "moved": {"/moved"},
    "gone": {"/gone", "/gone-unlinked"},
    "failed": {"/failing", "/liar", "/cut", "/chunks"},
    "excluded": {"/private"},
    "unchanged": {
        *("/etag", "/behind-etag", "/modified", "/both", "/neither", "/weak", "/gzip", "/behind-gzip"),
        *("/hostile", "/star", "/unlinked", "/same-redirect", "/source", "/shown", "/compressed"),
    },
}
UNMODIFIED = {"/etag", "/behind-etag", "/modified", "/both", "/weak", "/gzip", "/behind-gzip", "/unlinked", "/source"}
CONDITIONS = {  # what is sent for each page of which a server had said something
    "/etag": ('"e-1"', None),
    "/behind-etag": ('"b-1"', None),
    "/source": ('"s-1"', None),  # but not what is shown in another way than the record with its payload
    "/modified": (None, MONDAY),
    "/both": ('"two"', MONDAY),
    "/weak": ('W/"w-1"', None),
    "/gzip": ('"g-1"', None),
    "/behind-gzip": (None, MONDAY),
    "/changed": ('"c-1"', MONDAY),
    "/gone": ('"gone"', None),
    "/gone-unlinked": ('"gone-2"', None),
    "/unlinked": ('"u-1"', None),
    "/moved": ('"m-1"', None),
}


def done(ran: Ran) -> None:
    assert ran.code == ExitCode.DONE, ran.said


def changes(directory: Path, server: RawServer) -> dict[str, set[str]]:
    """The targets that the report names, by its words."""
    found: dict[str, set[str]] = {}
    with (directory / "reports" / "changes.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            found.setdefault(row["change"], set()).add(row["url"].removeprefix(server.url("")))
    return found


def blocks(directory: Path, kind: str) -> Iterator[bytes]:
    """The blocks of all records of one *kind*."""
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type == kind:
                    yield record.content_stream().read()


def records(directory: Path, kind: str) -> list[dict[str, str]]:
    """The fields of all records of one *kind*, and the status in their block."""
    found = []
    for path in warcs(directory):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == kind:
                    status = record.http_headers.get_statuscode() if record.http_headers else ""
                    found.append({**dict(record.rec_headers.headers), "status": status})
    return found


def test_the_report_names_exactly_what_changed(tmp_path: Path, forks: Forks) -> None:
    with RawServer(served(first())) as server:
        done(forks.run("crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path))
        directory, before = tmp_path / "c", len(server.log)
        server.routes = served(second())
        again = forks.run("recrawl", "c", *OPTIONS[:-1], cwd=tmp_path)
        done(again)
        assert changes(directory, server) == CHANGES
        counts = json.loads((directory / "reports" / "summary.json").read_text())["changes"]
        assert counts == {**{word: len(urls) for word, urls in CHANGES.items()}, "left out": 0, "unvisited": 0}
        said = "2 new, 5 changed, 1 moved, 2 gone, 15 unchanged, 4 failed, 1 excluded"
        assert said in again.said
        assert said in (directory / "reports" / "summary.txt").read_text()
        _check_requests(server, before)
        _check_revisits(directory, server)
        _check_third(directory, server, forks)
        checked = forks.run("verify", "c", cwd=tmp_path)
        done(checked)
        assert "0 faults, 0 warnings" in checked.said, checked.said
        _check_rebuilt(directory, forks)


def _check_rebuilt(directory: Path, forks: Forks) -> None:
    """The links of pages that were not modified are found again where the pages are stored."""
    archived = "SELECT url, path, status FROM urls WHERE state = 'archived' ORDER BY url"
    before = rows(directory, archived)
    (directory / "crawl.db").unlink()
    done(forks.run("rebuild", "c", cwd=directory.parent))
    assert rows(directory, archived) == before
    assert not rows(directory, "SELECT url FROM urls WHERE note LIKE '%not read%'")
    via = "SELECT via.url FROM urls JOIN urls AS via ON via.id = urls.via WHERE urls.url LIKE '%/behind-etag'"
    assert [str(url).rpartition("/")[2] for (url,) in rows(directory, via)] == ["etag"]


def _check_requests(server: RawServer, before: int) -> None:
    """Each URL is asked for once, under the conditions that its server had given; what is unmodified sends no body."""
    asked = list(server.log)[before:]
    assert len({row.target for row in asked}) == len(asked)
    sent = {row.target: (fields(row).get("if-none-match"), fields(row).get("if-modified-since")) for row in asked}
    assert {target: both for target, both in sent.items() if any(both)} == CONDITIONS
    assert all(row.sent < 120 for row in asked if row.target in UNMODIFIED)
    order = [row.target for row in asked]
    linked = {"/", "/robots.txt", *LINKED, "/new", "/moved-here", "/behind-etag", "/behind-gzip", "/shown"} - {
        "/private"
    }
    assert set(order[-2:]) == {"/gone-unlinked", "/unlinked"}  # after everything that is linked
    assert set(order[:-2]) == linked


def _check_revisits(directory: Path, server: RawServer) -> None:
    revisits = records(directory, "revisit")
    same = [each["WARC-Target-URI"] for each in revisits if each["WARC-Profile"].endswith("/identical-payload-digest")]
    # These came whole; their payloads were stored by the crawl before.
    assert sorted(same) == [server.url("/neither"), *[server.url("/shown")] * 2]
    found = [each for each in revisits if each["WARC-Profile"].endswith("/server-not-modified")]
    assert {each["WARC-Target-URI"].removeprefix(server.url("")) for each in found} == UNMODIFIED
    responses = {each["WARC-Record-ID"]: each for each in records(directory, "response")}
    for each in found:
        original = responses[each["WARC-Refers-To"]]
        assert (each["status"], each["Content-Length"]) == ("", "0")
        assert each["WARC-Refers-To-Target-URI"] == original["WARC-Target-URI"] == each["WARC-Target-URI"]
        assert each["WARC-Refers-To-Date"] == original["WARC-Date"]
        assert each["WARC-Payload-Digest"] == original["WARC-Payload-Digest"]
    unmodified = [notes for path in warcs(directory) for notes in _in_headers(path)]
    assert all(found.links_of is not None and not found.links.links for found in unmodified)
    answers = [found.unmodified for found in unmodified]
    assert sum(answer.startswith(b"HTTP/1.1 304 Not Modified\r\n") for answer in answers) == len(UNMODIFIED)
    paths: dict[object, object] = {row[0]: row[1] for row in rows(directory, "SELECT url, path FROM urls")}
    assert paths[server.url("/behind-etag")] == "LL"  # found in the stored page, which did not come again
    assert paths[server.url("/behind-gzip")] == "LL"


def _in_headers(path: Path) -> list[VisitMetadata]:
    """The notes of visits that have no metadata record."""
    with path.open("rb") as file:
        found = [VisitMetadata.of_revisit(item) for item in scan(file) if isinstance(item, Record)]
    return [notes for notes in found if notes is not None]


def _check_third(directory: Path, server: RawServer, forks: Forks) -> None:
    """Nothing changes any more: revisits refer to responses of the crawl that has them, never to revisits."""
    before = len(server.log)
    done(forks.run("recrawl", "c", *OPTIONS, cwd=directory.parent))
    found = changes(directory, server)
    assert set(found) == {"unchanged", "failed", "excluded"}
    assert found["failed"] == {"/failing", "/liar", "/cut", "/chunks"}  # as before, for the first crawl had them
    assert found["excluded"] == {"/private"}
    assert {"/new", "/changed"} <= {row.target for row in list(server.log)[before:] if "if-none-match" in fields(row)}
    ids = {each["WARC-Record-ID"] for each in records(directory, "response")}
    assert all(each["WARC-Refers-To"] in ids for each in records(directory, "revisit"))
    index = (directory / "indexes" / "index.cdxj").read_text().splitlines()
    assert sum("/etag" in line and "behind" not in line for line in index) == 3
    assert not list((directory / "indexes").glob("run-*"))


def test_without_conditions(tmp_path: Path, forks: Forks) -> None:
    pages = {"/": Page(page("Home", body="long enough " * 100), etag='"h"')}
    with RawServer(served(pages)) as server:
        done(forks.run("crawl", server.url(), "-o", "c", "--max-depth", "2", *OPTIONS, cwd=tmp_path))
        for options in (
            ("--no-conditional", "--max-depth", "none"),
            ("--conditional", "--header", 'If-None-Match: "x"'),
        ):
            before = len(server.log)
            done(forks.run("recrawl", "c", *options, *OPTIONS, cwd=tmp_path))
            rest = [fields(row).get("if-none-match") for row in list(server.log)[before:] if row.target == "/"]
            assert rest == (['"x"'] if "--header" in options else [None])
            assert 'max-depth = "none"' in (tmp_path / "c" / "crawl.toml").read_text()  # no limit was asked for
        rebuilt = forks.run("rebuild", "c", cwd=tmp_path)  # the payload lies in a file of the first crawl
        assert (rebuilt.code, "lost" in rebuilt.said) == (ExitCode.DONE, False), rebuilt.said
        before = len(server.log)
        done(forks.run("resume", "c", "-qq", cwd=tmp_path))
        assert len(server.log) == before


def test_what_a_server_says_of_another_version_is_asked_for_whole(tmp_path: Path, forks: Forks) -> None:
    """A 304 whose tag is not the one that was named: its server has looked at the date alone."""
    new = message("200 OK", b"new words\n", content_type="text/plain", etag='"2"')
    wrong = b'HTTP/1.1 304 Not Modified\r\nETag: "2"\r\n\r\n'
    with RawServer(served({"/": Page("old words\n", etag='"1"', modified=MONDAY)})) as server:
        done(forks.run("crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path))
        server.routes = {"/": lambda row: keep(wrong if "if-none-match" in fields(row) else new)}
        done(forks.run("recrawl", "c", *OPTIONS, cwd=tmp_path))
        assert changes(tmp_path / "c", server) == {"changed": {"/"}}
        stored = [block for block in blocks(tmp_path / "c", "response") if b"404" not in block]
        assert stored[1:] == [wrong, new]  # what it said is kept as well
    report = verify([tmp_path / "c"])
    assert (report.ok, report.findings) == (True, ()), report.findings


BEFORE = {
    "/": Page(page("Home", ["/a", "/b", "/c"]), etag='"h-1"'),
    "/a": Page(page("A", ["/behind"]), etag='"a-1"'),
    "/b": Page(page("B")),
    "/c": Page(page("C"), modified=MONDAY),
    "/behind": Page(page("Behind A"), etag='"z-1"'),
}
AFTER = {**BEFORE, "/": Page(page("Home", ["/a", "/b", "/new"]), etag='"h-2"'), "/new": Page(page("New"))}
DIFFERENCE = {"new": {"/new"}, "changed": {"/"}, "unchanged": {"/a", "/b", "/c", "/behind"}}
STOPS = {  # also in the midst of the second crawl: the step, and its passing
    **{step.name: step.passing for step in SWITCH_OVER},
    "response-appended": 3,
    "transaction-to-end": 3,
    "first-lane-closed": 1,
}


@pytest.fixture(name="small", scope="module")
def small_site_crawled_once(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[tuple[RawServer, Path]]:
    """A server, and the directory of a crawl of what it was; it has changed since."""
    folder = tmp_path_factory.mktemp("small")
    with RawServer(served(BEFORE)) as server:
        done(forks.run("crawl", server.url(), "-o", "c", "--description", "first", *OPTIONS, cwd=folder))
        server.routes = served(AFTER)
        yield server, folder / "c"


@pytest.mark.parametrize("step", STOPS)
def test_a_kill_loses_nothing(tmp_path: Path, forks: Forks, small: tuple[RawServer, Path], step: str) -> None:
    """Whatever was cut off, resume goes on rightly: with the crawl before, or with the new one and its settings."""
    directory = tmp_path / "c"
    shutil.copytree(small[1], directory)
    files = {path.name: path.read_bytes() for path in warcs(directory)}
    again = ("recrawl", "c", "--description", "second", *OPTIONS)
    if step == "database-moved":  # what was imported belongs to no crawl, and is no sign of a lost database
        (tmp_path / "other.warc.gz").write_bytes(member(record("warcinfo", b"software: other\r\n")))
        done(forks.run("import", "other.warc.gz", "-o", "c", cwd=tmp_path))
    ran = forks.run(*again, cwd=tmp_path, step=step, passing=STOPS[step])
    assert (ran.code, ran.passed) == (-signal.SIGKILL, step), ran.said
    done(forks.run("resume", "c", "-qq", cwd=tmp_path))
    if not list((directory / "crawls").glob("*/crawl.db")):
        assert 'description = "first"' in (directory / "crawl.toml").read_text()
        done(forks.run(*again, cwd=tmp_path))
    (earlier,) = (directory / "crawls").glob("*")
    assert sorted(path.name for path in earlier.iterdir()) == ["crawl.db", "crawl.toml", "logs", "reports"]
    assert 'description = "first"' in (earlier / "crawl.toml").read_text()
    assert 'description = "second"' in (directory / "crawl.toml").read_text()
    assert {path.name: path.read_bytes() for path in warcs(directory) if path.name in files} == files
    assert changes(directory, small[0]) == DIFFERENCE
    report = verify([directory])
    assert (report.ok, report.findings) == (True, ()), report.findings


def test_a_collection_that_lost_something(tmp_path: Path, forks: Forks, small: tuple[RawServer, Path]) -> None:
    """Index and database are made anew, and what belongs to the crawl before stays what it is."""
    directory = tmp_path / "c"
    shutil.copytree(small[1], directory)
    before_recrawl = len(warcs(directory))
    stopped = forks.run("recrawl", "c", "--max-urls", "2", *OPTIONS, cwd=tmp_path)
    assert stopped.code == ExitCode.LIMIT, stopped.said
    assert changes(directory, small[0])["unvisited"]
    index = directory / "indexes" / "index.cdxj"
    before = index.read_text()
    index.unlink()
    (directory / "crawl.db").write_bytes(b"")
    refused = forks.run("resume", "c", cwd=tmp_path)
    assert refused.code == ExitCode.STORAGE
    assert "archiver rebuild c" in refused.said
    rebuilt = forks.run("rebuild", "c", cwd=tmp_path)
    files = len(warcs(directory)) - before_recrawl  # the second writer has one if the machine is busy
    assert f"3 visits in {files} WARC files" in rebuilt.said, rebuilt.said
    assert index.read_text() == before
    index.unlink()
    done(forks.run("resume", "c", "--max-urls", "0", "-qq", cwd=tmp_path))
    assert set(before.splitlines()) < set(index.read_text().splitlines())
    assert changes(directory, small[0]) == DIFFERENCE
    report = verify([directory])
    assert (report.ok, report.findings) == (True, ()), report.findings
    done(status := forks.run("status", "c", cwd=tmp_path))
    assert "number 2 of this collection" in status.said
    (earlier,) = (directory / "crawls").iterdir()
    (warc, *_) = warcs(directory)
    with open_earlier_crawls(Layout(directory)) as memory:
        assert memory is not None
        version = memory.version(small[0].url("/a"))
        assert version is not None
        whole = warc.read_bytes()
        cut = whole.index(b"\x1f\x8b\x08", version.offset + 1) - 20
        warc.write_bytes(whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :])
        assert memory.version(small[0].url("/a")) is None  # its head can be read, but its payload is not what it was
    warc.unlink()
    words = {(fault.code, Path(fault.file).parent) for fault in verify([directory]).findings}
    assert ("warc-missing", earlier) in words
    done(forks.run("recrawl", "c", *OPTIONS, cwd=tmp_path))  # what cannot be read back comes whole
    assert not [fault for fault in verify([directory]).findings if fault.code.startswith("revisit-of")]


def test_a_file_that_cannot_be_read_is_named_once(tmp_path: Path, forks: Forks, small: tuple[RawServer, Path]) -> None:
    directory = tmp_path / "c"
    shutil.copytree(small[1], directory)
    for warc in warcs(directory):
        warc.write_bytes(bytes(warc.stat().st_size))
    before = len(small[0].log)
    loud = [option for option in OPTIONS if option != "-qq"]
    done(ran := forks.run("recrawl", "c", *loud, cwd=tmp_path))
    told = [line for line in ran.said.splitlines() if "without conditions" in line]
    assert len({row.target for row in tuple(small[0].log)[before:]} & set(BEFORE)) > 2
    assert len(told) == 1, ran.said
    assert any(warc.name in told[0] for warc in warcs(directory))
    with open_earlier_crawls(Layout(directory)) as memory:
        assert memory is not None
        taken = memory.newest(small[0].url("/a"))
        assert taken is not None
        taken = taken._replace(revisit=Profile.IDENTICAL)
        assert not memory.same_content(taken, taken)  # unknown, which is no reason to end without a report


def test_other_seeds_and_refusals(tmp_path: Path, forks: Forks, small: tuple[RawServer, Path]) -> None:
    server, _ = small
    stopped = forks.run("crawl", server.url("/a"), "-o", "c", "--max-urls", "1", *OPTIONS, cwd=tmp_path)
    assert stopped.code == ExitCode.LIMIT, stopped.said
    directory = tmp_path / "c"
    shutil.copytree(directory / "archive", tmp_path / "foreign/archive")
    for arguments, said in (
        (("recrawl", "nowhere"), "nowhere does not exist"),
        (("recrawl", "."), "holds no crawl"),
        (("recrawl", "foreign"), "foreign holds an archive, but no crawl"),
        (("crawl", "--since", "c", "-o", "d"), "leave out -o"),
        (("recrawl", "c", "--rate", "fast"), "--rate"),
    ):
        refused = forks.run(*arguments, cwd=tmp_path)
        assert refused.code == ExitCode.USAGE, refused.said
        assert said in refused.said
    lock = Lock(directory / "crawl.lock")
    try:
        refused = forks.run("recrawl", "c", cwd=tmp_path)
    finally:
        lock.release()
    assert refused.code == ExitCode.USAGE
    assert "is in use by" in refused.said
    assert not (directory / "crawls").exists()
    ran = forks.run("crawl", "--since", "c", server.url("/b"), "--max-urls", "0", *OPTIONS[:-1], cwd=tmp_path)
    done(ran)
    assert "the previous crawl ends with 1 URL still queued" in ran.said
    assert changes(directory, server) == {"new": {"/b", "/behind"}, "unchanged": {"/a"}}
    assert server.url("/a") not in (directory / "crawl.toml").read_text()


def test_what_a_sitemap_says_is_newer_goes_first(tmp_path: Path, forks: Forks) -> None:
    entries = {"/p1": "2001-01-01", "/p2": "2001-01-01", "/p3": "2099-01-01", "/p4": "2001-01-01", "/p5": "soon"}

    def sitemap(server: RawServer) -> Page:
        urls = "".join(
            f"<url><loc>{server.url(target)}</loc><lastmod>{date}</lastmod></url>" for target, date in entries.items()
        )
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return Page(f'<urlset xmlns="{space}">{urls}</urlset>', media_type="application/xml")

    with RawServer() as server:
        robots = f"User-agent: *\nDisallow:\nSitemap: {server.url('/map.xml')}\n".encode()
        server.routes = served(
            {
                "/robots.txt": keep(message("200 OK", robots, content_type="text/plain")),
                "/": Page("nothing", media_type="text/plain"),
                "/map.xml": sitemap(server),
                **{target: Page(target, etag=f'"{target}"') for target in entries},
            }
        )
        one = (*OPTIONS, "--host-concurrency", "1", "--concurrency", "1")
        done(forks.run("crawl", server.url(), "-o", "c", *one, cwd=tmp_path))
        before = len(server.log)
        assert [row.target for row in server.log][-5:] == [*entries]
        done(forks.run("recrawl", "c", *one, cwd=tmp_path))
        assert [row.target for row in list(server.log)[before:]][-5:] == ["/p3", "/p1", "/p2", "/p4", "/p5"]
    notes = [
        line
        for path in warcs(tmp_path / "c")
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()
        if line.startswith("outlink: ") and "/p3" in line
    ]
    assert [line.partition(" L ")[2] for line in notes] == ["loc lastmod:2099-01-01"] * 2


@pytest.mark.replay
def test_each_date_replays(tmp_path: Path, forks: Forks) -> None:
    """What changed shows what it was on each date; what did not is there on each date too, though it came once."""
    same, packed = "<p>as ever</p>" * 200, Page(page("Packed"), etag='"g"', packed=True)
    pages = {"/": Page(page("Old", ["/same", "/gz"])), "/same": Page(same, etag='"s"'), "/gz": packed}
    with RawServer(served(pages)) as server:
        done(forks.run("crawl", server.url(), "-o", "c", *OPTIONS, cwd=tmp_path))
        between = int(time.time())
        while int(time.time()) <= between:  # a date in an index has whole seconds
            time.sleep(0.05)
        server.routes = served({**pages, "/": Page(page("New", ["/same", "/gz"]))})
        done(forks.run("recrawl", "c", *OPTIONS, cwd=tmp_path))
        urls = {name: server.url(name) for name in pages}
    lines = [line.split(" ", 2) for line in (tmp_path / "c" / "indexes" / "index.cdxj").read_text().splitlines()]
    dates = {name: [line[1] for line in lines if json.loads(line[2])["url"] == url] for name, url in urls.items()}
    assert all(len(set(each)) == 2 for each in dates.values())
    with archiver_replay(tmp_path / "c") as wayback:
        for title, date in zip(("Old", "New"), dates["/"], strict=True):
            assert f"<h1>{title}</h1>" in wayback.get(urls["/"], f"{date}id_").body.decode()
        for name, body in (("/same", same.encode()), ("/gz", packed.sent)):
            for date in dates[name]:
                got = wayback.get(urls[name], f"{date}id_")
                assert (got.status, got.body) == (200, body)
                assert got.headers["memento-datetime"]


@pytest.mark.parametrize("released", [False, True])
def test_held_urls_are_no_changes(tmp_path: Path, forks: Forks, *, released: bool) -> None:
    """A site with a trap that has not changed: the same pages are asked for again, and the same ones are held."""
    routes = {
        f"/item/{n}": keep(message("200 OK", page("Nothing", [f"/item/{n + 1}"]).encode(), content_type="text/html"))
        for n in range(60)
    }
    routes["/"] = keep(message("200 OK", page("Home", ["/item/0"]).encode(), content_type="text/html"))
    with RawServer(routes) as server:
        done(forks.run("crawl", server.url(), "-o", "c", "--trap-budget", "20", *OPTIONS, cwd=tmp_path))
        if released:
            done(forks.run("retry", "c", "--held", cwd=tmp_path))
            done(forks.run("resume", "c", cwd=tmp_path))
        asked = {target for target in server.log.targets() if target != "/robots.txt"}
        assert 20 < len(asked) < (25 if not released else 50)
        held = rows(tmp_path / "c", "SELECT url FROM urls WHERE state = 'held'")
        done(forks.run("recrawl", "c", cwd=tmp_path))
        assert changes(tmp_path / "c", server) == {"unchanged": asked}
        assert rows(tmp_path / "c", "SELECT url FROM urls WHERE state = 'held'") == held
