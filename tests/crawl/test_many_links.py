"""Pages with very many links: settled in portions, whole after any crash, and never in the way of a stop."""

import gzip
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.crawl import batch_writer, reader_process
from archiver.model import ExitCode
from fixtures.archives import rows, stored
from fixtures.command import archiver, ended, environment, running, said
from fixtures.crawl_in_process import crawl
from fixtures.rawserver import RawServer
from fixtures.sites import ok, page
from fixtures.steps import PORTIONS

LINKS = 4500  # two portions before the settlement, and the rest with it
MANY = page("many", (f"/{number}" for number in range(LINKS)))
OPTIONS = ("-o", "c", "--rate", "0", "--traps", "off", "--max-urls", "2")
STATES = "SELECT state, count(*) FROM urls WHERE url NOT LIKE '%robots.txt' GROUP BY state ORDER BY state"


def asked(server: RawServer, target: str) -> int:
    return sum(row.target == target for row in server.log)


def number(folder: Path, sql: str) -> int:
    ((found,),) = rows(folder, sql)
    assert isinstance(found, int)
    return found


def check(folder: Path, server: RawServer) -> None:
    """The page was fetched once and settled once, and each of its links is known once."""
    assert asked(server, "/") == 1
    assert sum(each.url == server.url() for each in stored(folder / "c")) == 1
    known = rows(folder / "c", "SELECT count(*), count(DISTINCT url), min(depth) FROM urls WHERE path = 'L'")
    assert known == [(LINKS, LINKS, 1)]
    assert ("archived", 2) in rows(folder / "c", STATES)
    assert archiver("verify", "c", cwd=folder).returncode == ExitCode.DONE


@pytest.mark.parametrize(
    "body", [MANY.encode(), b"<b '=x>" + MANY.encode() + b" " * (300 << 10)], ids=["small", "large"]
)
def test_each_link_of_a_page_with_very_many_is_known_once(tmp_path: Path, body: bytes) -> None:
    with RawServer({"/": ok(body), "/0": ok("0"), "/1": ok("1")}) as server:
        assert archiver("crawl", server.url(), *OPTIONS, cwd=tmp_path).returncode == ExitCode.LIMIT
        check(tmp_path, server)


@pytest.mark.parametrize("step", [step.name for step in PORTIONS])
def test_a_kill_between_two_portions(tmp_path: Path, step: str) -> None:
    with RawServer({"/": ok(MANY), "/0": ok("0"), "/1": ok("1")}) as server:
        begin = [sys.executable, "-m", "fixtures.failpoints", step, "--", "crawl", server.url(), *OPTIONS]
        killed = subprocess.run(begin, cwd=tmp_path, env=environment(), check=False, capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert rows(tmp_path / "c", "SELECT state FROM urls WHERE path = ''") == [("waiting",)]
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.LIMIT
        check(tmp_path, server)


def test_a_document_whose_reading_kills_the_process_is_read_elsewhere_by_the_next_run(tmp_path: Path) -> None:
    """Also where reading it would kill this run too: the failpoint is only in the crawl's own process."""
    failing = [sys.executable, "-m", "fixtures.failpoints", "document-read", "--"]
    with RawServer({"/": ok(page("one"))}) as server:

        def run(*arguments: str) -> int:
            ran = subprocess.run(
                [*failing, *arguments], cwd=tmp_path, env=environment(), check=False, capture_output=True
            )
            return ran.returncode

        assert run("crawl", server.url(), "-o", "c") == -signal.SIGKILL
        assert (tmp_path / "c" / "spool" / "reading-0").read_text().strip() == server.url()
        assert run("resume", "c") == ExitCode.DONE
        assert [each.url for each in stored(tmp_path / "c") if each.url == server.url()] == [server.url()]
        assert not (tmp_path / "c" / "spool").exists()


def test_a_host_that_is_alone_never_waits_for_a_writer_with_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages are expected to take days each; when one is written after all, the next is requested."""
    monkeypatch.setattr(batch_writer, "MANY", 5)
    monkeypatch.setattr(batch_writer, "SECONDS_PER_LINK", 1e6)
    pages = [f"/{number}" for number in range(10)]
    with RawServer(dict.fromkeys(pages, ok(page("page", pages)))) as server:
        assert crawl(tmp_path, server.url("/0"), robots="ignore", traps="off", max_time=100.0).code is ExitCode.DONE
        assert rows(tmp_path, STATES) == [("archived", len(pages))]


def test_a_stop_does_not_wait_for_answers_that_are_to_be_read(tmp_path: Path) -> None:
    """What is not read by then is asked for again by the next run, and nothing is lost."""
    large = ok(gzip.compress(b"<!doctype html><b '=x>" + b"<i>" * 200_000), content_encoding="gzip")
    parts = [f"/{number}" for number in range(10)]
    hosts = tuple(f"127.0.0.{number}" for number in range(1, 7))
    first = {f"//{host}/": ok(page("first", parts)) for host in hosts}
    with RawServer({**first, **dict.fromkeys(parts, large)}, hosts=hosts) as server:
        seeds = [server.url(host=host) for host in hosts]
        options = ("-o", "c", "--rate", "0", "--traps", "off", "--max-depth", "1", "--drain-timeout", "0.1")
        with running("crawl", *seeds, *options, cwd=tmp_path) as process:
            server.log.holds(len(hosts) * 2 + 6).wait()  # each robots.txt, each first page, and some large ones
            process.send_signal(signal.SIGINT)
            code, _ = ended(process)
        assert code == ExitCode.STOPPED
        assert "waiting" in {state for state, _ in rows(tmp_path / "c", STATES)}
        assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
        urls = [each.url for each in stored(tmp_path / "c")]
        assert sorted(urls) == sorted({*urls})
        assert {server.url(target, host) for host in hosts for target in ("/", *parts)} <= {*urls}


def test_a_document_that_takes_too_much_memory_is_stored_noted_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the reading process is smaller here, so that the test does not need gigabytes."""
    monkeypatch.setattr(reader_process, "MEMORY", 80 << 20)
    hungry = b"<a " + b"".join(b"a%d " % number for number in range(3_000_000)) + b"><a href=/never>"
    packed = gzip.compress(hungry, 1)
    names = ["/hungry", "/large"]
    routes = {"/": ok(page("first", names)), "/hungry": ok(packed, content_encoding="gzip"), "/large": ok(MANY)}
    with RawServer(routes) as server:
        assert crawl(tmp_path, server.url(), traps="off", max_depth=1).code is ExitCode.DONE
        assert [asked(server, name) for name in names] == [1, 1]
        assert asked(server, "/never") == 0
        known = rows(tmp_path, "SELECT state, note FROM urls WHERE url LIKE '%/hungry'")
        assert known == [("archived", "the links were not read: it took more memory than 0.0781 GiB")]
        assert crawl(tmp_path, server.url(), traps="off", max_depth=1, resume=True).code is ExitCode.DONE
        assert asked(server, "/hungry") == 1
        assert {each.url: each.body for each in stored(tmp_path)}[server.url("/hungry")] == packed
    assert archiver("verify", ".", cwd=tmp_path).returncode == ExitCode.DONE


def test_a_stop_writes_no_more_than_the_page_at_hand(tmp_path: Path) -> None:
    """Six pages of 50,000 links are there when the stop comes. Those that no lane has begun wait for the next run."""
    hosts = tuple(f"127.0.0.{number}" for number in range(1, 7))
    body = b"<!doctype html>" + b"".join(b"<a href=/%d>x</a>" % number for number in range(50_000))
    settled = "SELECT count(*) FROM urls WHERE state = 'archived' AND path = '' AND url NOT LIKE '%robots.txt'"
    options = ("-o", "c", "--rate", "0", "--traps", "off", "--drain-timeout", "0.1")
    with RawServer({"/": ok(gzip.compress(body, 1), content_encoding="gzip")}, hosts=hosts) as server:
        seeds = [server.url(host=host) for host in hosts]
        with running("crawl", *seeds, *options, cwd=tmp_path) as process:
            server.log.holds(len(hosts) * 2).wait()  # each robots.txt and each page
            process.send_signal(signal.SIGINT)
            said(process, "stopping")
            before = number(tmp_path / "c", settled)
            code, _ = ended(process)
        assert code == ExitCode.STOPPED
    after = number(tmp_path / "c", settled)
    links = number(tmp_path / "c", "SELECT count(*) FROM urls WHERE path = 'L'")
    assert after - before <= 2  # one page in each lane
    assert links <= 50_000 * (after + 1)
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
