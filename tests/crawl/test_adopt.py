"""`archiver adopt`: an interrupted crawl of another program goes on here, and nothing is asked for twice."""

import re
from pathlib import Path

import pytest

from archiver.cli import entry
from archiver.model import ExitCode
from archiver.tools.verify.collection import verify
from fixtures.adopted_crawls import WGET, Queued, fetched_by_wget, grab_site_files, wpull_database
from fixtures.archives import rows, states
from fixtures.command import archiver
from fixtures.rawserver import RawServer
from fixtures.sites import tree

PAGES = 12
SITE = tree(PAGES, images=2)

needs_wget = pytest.mark.skipif(WGET is None, reason="wget is not installed")


def asked(server: RawServer) -> list[str]:
    """The targets of all requests so far, without robots.txt and what no page names."""
    unnamed = ("/robots.txt", "/favicon.ico", "/sitemap.xml", "/sitemap_index.xml")
    return [row.target for row in server.log if row.target not in unnamed]


def resumed(directory: Path) -> None:
    """Go on with the crawl in *directory* until its end."""
    ran = archiver("resume", str(directory), "--rate", "0", "--quiet", cwd=directory.parent)
    assert ran.returncode == ExitCode.DONE, ran.stderr


def adopted(*arguments: object) -> int:
    return entry.run(["adopt", *map(str, arguments)])


def all_is_sound(directory: Path) -> None:
    report = verify([directory])
    assert report.ok, [str(finding) for finding in report.findings]


@needs_wget
def test_a_grab_site_job_goes_on_and_nothing_is_asked_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What has a capture is archived; what is only said to be done waits; what failed stays failed."""
    job = tmp_path / "job"
    job.mkdir()
    with RawServer(SITE.routes) as server:
        start = server.url()
        page = [server.url(f"/p{number}.html") for number in range(PAGES)]
        done = [start, page[1], page[2], server.url("/style.css"), server.url("/i0.gif")]
        fetched_by_wget(job, "job-00000", urls=done)
        first = asked(server)
        queue = [
            Queued(start, "done", 0, root=start, tries=1),
            *(Queued(address, "done", 1, start, start, tries=1) for address in done[1:3]),
            *(Queued(address, "done", 1, start, start, tries=1, inline=1) for address in done[3:]),
            Queued(page[3], "done", 1, start, start, tries=1),  # the WARC with it is lost
            Queued(page[4], "todo", 1, start, start),
            Queued(page[5], "in_progress", 2, page[1], start),
            Queued(page[6], "error", 2, page[1], start, tries=1),
            Queued(server.url("/gone.html"), "skipped", 2, page[1], start, tries=4),
            Queued("http://elsewhere.example/", "skipped", 2, page[1], start, tries=1),
            Queued(server.url("/calendar/2026"), "todo", 2, page[1], start),
            Queued("ftp://127.0.0.1/x", "todo", 2, page[1], start),
        ]
        wpull_database(job / "wpull.db", queue)
        grab_site_files(
            job, start, ignores="/calendar/\n/i0\\.gif\n(unclosed\n", igsets="global,imdb,forums", delay="250-500"
        )
        assert adopted(job, "-o", tmp_path / "c") == ExitCode.DONE
        said = capsys.readouterr()
        found = states(tmp_path / "c")
        assert {address for address, state in found.items() if state == "archived"} == set(done)
        assert {address for address, state in found.items() if state == "failed"} == {server.url("/gone.html")}
        assert {*page[3:7]} <= {address for address, state in found.items() if state == "waiting"}
        assert "http://elsewhere.example/" not in found
        assert re.search(r"\b1 URL that it calls fetched, but without a whole capture", said.out)
        assert "1 URL that it gave up stay failed" in said.out
        assert "ftp://127.0.0.1/x" in said.out
        assert found[server.url("/calendar/2026")] == "excluded"
        assert "1 URL of its queue excluded by its own patterns" in said.out
        ran = archiver("urls", "c", "--state", "excluded", "--why", cwd=tmp_path)
        assert server.url("/calendar/2026") in ran.stdout
        assert "exclude[0]: /calendar/" in ran.stdout
        for line in ("ignores: (unclosed", "igsets: imdb", "igsets: global", "delay: 250-500"):
            assert f"no counterpart: {line}" in said.err
        resumed(tmp_path / "c")
        again = asked(server)[len(first) :]
    assert len(again) == len(set(again))
    assert not {server.url(target) for target in again} & set(done)
    assert set(again) | {address.removeprefix(start[:-1]) for address in done} == SITE.reachable
    all_is_sound(tmp_path / "c")
    ran = archiver("retry", "c", "--failure", "rule", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert states(tmp_path / "c")[server.url("/calendar/2026")] == "waiting"


@needs_wget
@pytest.mark.parametrize("version", [1, 2])
def test_depth_parent_and_path_are_those_of_wpull(tmp_path: Path, version: int) -> None:
    queue = [
        Queued("http://example.org/", "done", 0, root="http://example.org/"),
        Queued("http://example.org/a", "done", 1, "http://example.org/", "http://example.org/"),
        Queued("http://example.org/b", "todo", 2, "http://example.org/a", "http://example.org/"),
        Queued("http://example.org/b.png", "todo", 3, "http://example.org/a", "http://example.org/", inline=1),
        Queued("http://other.example/", "todo", 2, "http://example.org/a", "http://example.org/"),
    ]
    wpull_database(tmp_path / "wpull.db", queue, version=version)
    assert adopted(tmp_path / "wpull.db", "-o", tmp_path / "c") == ExitCode.DONE
    found = rows(
        tmp_path / "c",
        "SELECT urls.url, urls.path, urls.depth, urls.off_scope_hops, above.url, seed.url FROM urls "
        "LEFT JOIN urls AS above ON above.id = urls.via LEFT JOIN urls AS seed ON seed.id = urls.seed ORDER BY urls.id",
    )
    seed = "http://example.org/"
    assert found == [
        (seed, "", 0, 0, None, seed),
        (f"{seed}a", "L", 1, 0, seed, seed),
        (f"{seed}b", "LL", 2, 0, f"{seed}a", seed),
        (f"{seed}b.png", "LLE", 2, 0, f"{seed}a", seed),
        ("http://other.example/", "LL", 2, 1000, f"{seed}a", seed),
    ]
    all_is_sound(tmp_path / "c")
