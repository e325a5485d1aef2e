"""What holds after `archiver adopt`: a rebuild, a lost index, a recrawl, a kill in the middle, and PostgreSQL."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from archiver.cli import entry
from archiver.collection.imports import imported_files
from archiver.collection.layout import Layout
from archiver.crawl.recovery.foreign import foreign_visits
from archiver.crawl.recovery.scan import ScannedVisit
from archiver.model import ExitCode, Truncation
from fixtures.adopted_crawls import WGET, Queued, fetched_by_wget, wpull_database
from fixtures.archives import database_rows, rows, states
from fixtures.command import archiver, environment
from fixtures.handmade_warc import member, record
from fixtures.postgres import PostgresServer
from fixtures.rawserver import RawServer
from fixtures.sites import Site, tree
from tests.crawl.test_adopt import adopted, all_is_sound, asked, resumed

SITE: Site = tree(12, images=2)
needs_wget = pytest.mark.skipif(WGET is None, reason="wget is not installed")
pytestmark = needs_wget


def half_crawled(server: RawServer, job: Path) -> list[str]:
    """Make a job of wpull in *job* that has fetched a part of the site; return the URLs of its captures."""
    job.mkdir()
    start = server.url()
    done = [start, server.url("/p1.html"), server.url("/p2.html"), server.url("/style.css")]
    fetched_by_wget(job, "half", urls=done)
    rest = [server.url("/p3.html"), server.url("/p9.html")]
    queue = [Queued(address, "done", 0 if address == start else 1, None, start) for address in done]
    wpull_database(job / "wpull.db", [*queue, *(Queued(address, "todo", 1, start, start) for address in rest)])
    return done


def archived(directory: Path) -> set[str]:
    return {address for address, state in states(directory).items() if state == "archived"}


def test_a_rebuild_reads_the_adopted_files_too(tmp_path: Path) -> None:
    """The queue of the other program is gone by then, but the links of its pages are there."""
    with RawServer(SITE.routes) as server:
        done = half_crawled(server, tmp_path / "job")
        assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
        first = asked(server)
        captures = rows(tmp_path / "c", "SELECT url, timestamp, offset FROM captures ORDER BY 2, 3")
        (tmp_path / "c" / "crawl.db").unlink()
        assert entry.run(["rebuild", str(tmp_path / "c")]) == ExitCode.DONE
        assert archived(tmp_path / "c") == set(done)
        assert len(rows(tmp_path / "c", "SELECT 1 FROM captures")) == len(captures)
        all_is_sound(tmp_path / "c")
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert not {server.url(target) for target in again} & set(done)
    all_is_sound(tmp_path / "c")


def test_a_lost_index_has_every_record_of_the_adopted_files_again(tmp_path: Path) -> None:
    """Also those that are no captures, such as the log that wget stores."""
    with RawServer(SITE.routes) as server:
        half_crawled(server, tmp_path / "job")
        extra = record("resource", b"a log", ("WARC-Target-URI", "urn:log"), ("Content-Type", "text/plain"))
        with (tmp_path / "job" / "half.warc.gz").open("ab") as file:
            file.write(member(extra))
        assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
        index = tmp_path / "c" / "indexes" / "index.cdxj"
        before = [line for line in index.read_text().splitlines() if "half.warc.gz" in line]
        assert any("urn:log" in line for line in before)
        index.unlink()
        resumed(tmp_path / "c")
    assert [line for line in index.read_text().splitlines() if "half.warc.gz" in line] == before
    all_is_sound(tmp_path / "c")


def test_a_recrawl_asks_for_what_was_adopted_and_a_prune_keeps_it(tmp_path: Path) -> None:
    with RawServer(SITE.routes) as server:
        half_crawled(server, tmp_path / "job")
        assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
        resumed(tmp_path / "c")
        first = len(asked(server))
        ran = archiver("recrawl", "c", "--rate", "0", "--quiet", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert set(asked(server)[first:]) == SITE.reachable
    all_is_sound(tmp_path / "c")
    captures = "SELECT warcs.name, offset FROM captures JOIN warcs ON warcs.id = captures.warc ORDER BY 1, 2"
    before = rows(tmp_path / "c", captures)
    (tmp_path / "c" / "crawl.db").unlink()
    assert entry.run(["rebuild", str(tmp_path / "c")]) == ExitCode.DONE
    assert rows(tmp_path / "c", captures) == before  # those of the second crawl only
    ran = archiver("prune", "c", "--keep-last", "1", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert (tmp_path / "c" / "archive" / "half.warc.gz").exists()
    assert [each.adopted for each in imported_files(Layout(tmp_path / "c")) if each.name == "half.warc.gz"] == [False]
    all_is_sound(tmp_path / "c")


def test_the_report_and_the_list_of_urls_count_what_was_adopted(tmp_path: Path) -> None:
    with RawServer(SITE.routes) as server:
        done = half_crawled(server, tmp_path / "job")
        wpull_database(
            tmp_path / "job" / "more.db",
            [Queued(server.url(), "todo", 0), Queued(server.url("/gone"), "skipped", 1, server.url(), tries=5)],
        )
        shutil.move(tmp_path / "job" / "more.db", tmp_path / "job" / "wpull.db")
        assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
        assert archived(tmp_path / "c") == set(done)
        for command in (("status",), ("urls", "--state", "failed", "--why"), ("explain",), ("report",)):
            arguments = [server.url("/gone")] if command[0] == "explain" else []
            ran = archiver(command[0], "c", *command[1:], *arguments, cwd=tmp_path)
            assert ran.returncode == ExitCode.DONE, ran.stderr
            if command[0] != "status":
                assert "wpull gave up after 5 tries" in ran.stdout + ran.stderr or command[0] == "report"
        before = len(asked(server))
        ran = archiver("retry", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        resumed(tmp_path / "c")
        assert "/gone" in asked(server)[before:]
    all_is_sound(tmp_path / "c")


def last_response(warc: Path) -> int:
    """Return the offset of the last response record in *warc*."""
    with warc.open("rb") as file:
        records = ArchiveIterator(file)
        return max(int(records.get_record_offset()) for each in records if each.rec_type == "response")


def test_what_an_interruption_leaves_of_archives_is_read_as_far_as_it_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without a byte, one that is cut, and one that wpull has moved elsewhere."""
    with RawServer(SITE.routes) as server:
        done = half_crawled(server, tmp_path / "job")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        fetched_by_wget(elsewhere, "moved", urls=[server.url("/p5.html")])
        (tmp_path / "job" / "next.warc.gz").write_bytes(b"")
        shutil.copyfile(elsewhere / "moved.warc.gz", tmp_path / "mine.warc.gz")
        (tmp_path / "job" / "link.warc.gz").symlink_to(tmp_path / "mine.warc.gz")
        warc = tmp_path / "job" / "half.warc.gz"
        warc.write_bytes(warc.read_bytes()[: last_response(warc) + 100])
        first = asked(server)
        arguments = (tmp_path / "job", "-o", tmp_path / "c", "--warcs", elsewhere)
        assert adopted(*arguments) == ExitCode.DONE
        said = capsys.readouterr()
        assert "left out" in said.err
        assert "next.warc.gz" in said.err
        assert "link.warc.gz is a link" in said.err
        assert not (tmp_path / "c" / "archive" / "link.warc.gz").exists()
        assert "some of its archives have faults" in said.err
        assert archived(tmp_path / "c") == {*done[:-1], server.url("/p5.html")}
        assert states(tmp_path / "c")[done[-1]] == "waiting"
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert again.count("/style.css") == 1
    assert "/p5.html" not in again
    assert archived(tmp_path / "c") >= {server.url(target) for target in SITE.reachable}


KILL = """
import sys
from archiver.cli.entry import main
from fixtures.failpoints import Step, arm
arm(Step("here", sys.argv.pop(1)))
main()
"""


@pytest.mark.parametrize(
    "step",
    [
        "archiver.tools.ingest.run:write_imports",
        "archiver.crawl.recovery.takeover:write_imports",
        "archiver.crawl.recovery.takeover:_Takeover._place",
        "archiver.crawl.recovery.takeover:finished",
        "archiver.crawl.recovery.takeover:replace_database",
    ],
)
def test_after_a_kill_the_same_command_makes_the_crawl(tmp_path: Path, step: str) -> None:
    with RawServer(SITE.routes) as server:
        done = half_crawled(server, tmp_path / "job")
        words = (sys.executable, "-c", KILL, step, "adopt", "job", "-o", "c")
        killed = subprocess.run(words, cwd=tmp_path, env=environment(), check=False, timeout=100)
        assert killed.returncode == -signal.SIGKILL
        assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
        assert archived(tmp_path / "c") == set(done)
        assert [each.adopted for each in imported_files(Layout(tmp_path / "c"))] == [True]
        resumed(tmp_path / "c")
        assert len(asked(server)) == len(set(asked(server)))
    all_is_sound(tmp_path / "c")


@pytest.mark.postgres
def test_the_queue_can_be_kept_in_postgresql(tmp_path: Path, postgres_server: PostgresServer | None) -> None:
    if postgres_server is None:
        pytest.skip("PostgreSQL is not installed")
    address = postgres_server.new_database()
    with RawServer(SITE.routes) as server:
        done = half_crawled(server, tmp_path / "job")
        queue = [Queued(server.url(), "done", 0), Queued(server.url("/gone"), "skipped", 2, server.url(), tries=4)]
        (tmp_path / "job" / "wpull.db").unlink()
        wpull_database(tmp_path / "job" / "wpull.db", queue)
        first = asked(server)
        assert adopted(tmp_path / "job", "-o", tmp_path / "c", "--frontier", address) == ExitCode.DONE
        database = tmp_path / "c" / "crawl.db"
        found = {str(url): str(state) for url, state in database_rows(database, "SELECT url, state FROM urls")}
        assert {url for url, state in found.items() if state == "archived"} == set(done)
        assert found[server.url("/gone")] == "failed"
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert not {server.url(target) for target in again} & set(done)
    assert set(again) | {address.removeprefix(server.url()[:-1]) for address in done} >= SITE.reachable
    all_is_sound(tmp_path / "c")


def answer(number: int, url: str, head: str, *fields: tuple[str, str], body: bytes = b"<p>x") -> bytes:
    """A response record as another program writes it, in a member of its own."""
    block = f"HTTP/1.1 {head}\r\nContent-Type: text/html\r\n\r\n".encode() + body
    own = f"<urn:uuid:00000000-0000-4000-8000-{number:012}>"
    return member(record("response", block, ("WARC-Target-URI", url), ("WARC-Record-ID", own), *fields, number=number))


def question(number: int, url: str, method: str, *fields: tuple[str, str]) -> bytes:
    own = f"<urn:uuid:00000000-0000-4000-8000-{number:012}>"
    block = f"{method} / HTTP/1.1\r\nHost: example.org\r\n\r\n".encode()
    return member(record("request", block, ("WARC-Target-URI", url), ("WARC-Record-ID", own), *fields, number=number))


def concurrent(number: int) -> tuple[str, str]:
    return "WARC-Concurrent-To", f"<urn:uuid:00000000-0000-4000-8000-{number:012}>"


AT = "http://example.org/"
RECORDS = {
    "an answer alone": ([answer(1, f"{AT}a", "200 OK")], [f"{AT}a"]),
    "a spelling of the URL": ([answer(1, "<http://EXAMPLE.org>", "200 OK")], [AT]),
    "GET before it": ([question(1, AT, "GET"), answer(2, AT, "200 OK", concurrent(1))], [AT]),
    "GET behind it": ([answer(1, AT, "200 OK"), question(2, AT, "GET", concurrent(1))], [AT]),
    "POST before it": ([question(1, AT, "POST"), answer(2, AT, "200 OK", concurrent(1))], []),
    "POST behind it": ([answer(1, AT, "200 OK"), question(2, AT, "POST", concurrent(1))], []),
    "POST of another": ([answer(1, AT, "200 OK"), question(2, f"{AT}b", "POST", concurrent(9))], [AT]),
    "HEAD": ([question(1, AT, "HEAD"), answer(2, AT, "200 OK", concurrent(1))], []),
    "a part": ([answer(1, AT, "206 Partial Content")], []),
    "not modified": ([answer(1, AT, "304 Not Modified")], []),
    "robots.txt": ([answer(1, f"{AT}robots.txt", "200 OK")], []),
    "no http URL": ([answer(1, "dns:example.org", "200 OK"), answer(2, "urn:x", "200 OK")], []),
    "no date": ([answer(1, AT, "200 OK", ("WARC-Date", "yesterday"))], []),
    "damaged, and one behind it": ([answer(1, AT, "200 OK")[:-30], answer(2, f"{AT}b", "200 OK")], [f"{AT}b"]),
    "cut at the end": ([answer(1, f"{AT}b", "200 OK"), answer(2, AT, "200 OK")[:-30]], [f"{AT}b"]),
    "another digest": ([answer(1, AT, "200 OK", ("WARC-Payload-Digest", "md5:abc"))], [AT]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_only_whole_answers_to_a_get_are_visits(tmp_path: Path, name: str) -> None:
    pieces, expected = RECORDS[name]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(member(record("warcinfo", b"software: other\r\n", number=99)) + b"".join(pieces))
    found = []
    with path.open("rb") as file:
        for visit in foreign_visits(file, path.name, 0, tmp_path):
            assert isinstance(visit, ScannedVisit)
            found.append(visit.capture.url)
            visit.close()
    assert found == expected


def test_pages_out_of_scope_that_nothing_names_lead_nowhere(tmp_path: Path) -> None:
    """A browser stores the frames of advertisements too."""
    frame = b'<a href="http://far.example/">x</a><a href="http://example.org/b">b</a>'
    records = [answer(1, AT, "200 OK"), answer(2, "http://ads.example/frame", "200 OK", body=frame)]
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "a.warc.gz").write_bytes(b"".join(records))
    wpull_database(tmp_path / "job" / "wpull.db", [Queued(AT, "done", 0)])
    assert adopted(tmp_path / "job", "-o", tmp_path / "c") == ExitCode.DONE
    found = states(tmp_path / "c")
    assert found["http://ads.example/frame"] == "archived"
    assert found["http://example.org/b"] == "waiting"
    assert "http://far.example/" not in found
    where = "SELECT path, off_scope_hops FROM urls WHERE url LIKE '%frame'"
    assert rows(tmp_path / "c", where) == [("E", 1)]
    all_is_sound(tmp_path / "c")


def test_what_the_other_program_says_of_a_cut_answer_is_kept(tmp_path: Path) -> None:
    words = {"length": Truncation.LENGTH, "nonsense": Truncation.UNSPECIFIED}
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(answer(1, AT, "200 OK", ("WARC-Truncated", word)) for word in words))
    with path.open("rb") as file:
        visits = [visit for visit in foreign_visits(file, path.name, 0, tmp_path) if isinstance(visit, ScannedVisit)]
    assert [visit.exchange.truncated for visit in visits] == list(words.values())
    for visit in visits:
        visit.close()


@settings(max_examples=30)
@given(st.integers(0, 2_000), st.binary(max_size=8))
def test_no_bytes_make_the_reading_fail(tmp_path_factory: pytest.TempPathFactory, at: int, noise: bytes) -> None:
    data = bytearray(b"".join(piece for pieces, _ in RECORDS.values() for piece in pieces[:1])[:2_000])
    data[at : at + len(noise)] = noise
    folder = tmp_path_factory.mktemp("noise")
    (folder / "a.warc.gz").write_bytes(data)
    with (folder / "a.warc.gz").open("rb") as file:
        for visit in foreign_visits(file, "a.warc.gz", 0, folder):
            if isinstance(visit, ScannedVisit):
                visit.close()
