"""Links that a person brings into the scope of a crawl, and URLs whose rule is gone: preview, order, undo."""

from pathlib import Path

from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import archiver, ended, running
from fixtures.rawserver import RawServer, Route
from fixtures.sites import ok, page
from tests.crawl.test_orders import HOSTS, OPTIONS, did, site, wait_until_settled, way_of_crawling

__all__ = ["way_of_crawling"]  # a fixture

FOREIGN = HOSTS[2]
QUEUE = "SELECT url, state, due, tries, priority, failure, note FROM urls WHERE state <> 'excluded' ORDER BY id"
OUT = "SELECT url, note FROM urls WHERE state = 'excluded' ORDER BY id"


def linking(server: RawServer, links: int, pages: int) -> dict[str, Route]:
    """Return a site whose home page also links to pages of another host."""
    named = site(pages)
    own = [name for name in named if name != "/"]
    foreign = [f"/f/{number}" for number in range(links)]
    home = page("Home", [*own, *(server.url(name, FOREIGN) for name in foreign)])
    return {**named, "/": ok(home), **{name: ok(page(name, [])) for name in foreign}}


def test_included_is_what_the_preview_says_and_undo_is_exact(tmp_path: Path, way: tuple[str, ...]) -> None:
    with RawServer({}, hosts=HOSTS) as server:
        server.routes = linking(server, 30, 120)
        wanted = {server.url(f"/f/{number}", FOREIGN) for number in range(30) if str(number).startswith("1")}
        with running("crawl", *OPTIONS, *way, "--allow-private", FOREIGN, server.url(), cwd=tmp_path) as process:
            server.log.holds(20).wait()
            did("pause", cwd=tmp_path)
            wait_until_settled(tmp_path, len(server.log))
            before = rows(tmp_path / "c", QUEUE)
            shown = did("include", "/f/1", "--dry-run", cwd=tmp_path).splitlines()
            assert shown[0] == "11 of 30 refused and excluded URLs would wait"
            assert len(shown) == 1 + 10
            assert set(shown[1:]) < wanted
            assert (rows(tmp_path / "c", QUEUE), rows(tmp_path / "c", OUT)) == (before, [])
            assert did("include", "/f/1", cwd=tmp_path) == "11 URLs wait that rules had refused or excluded\n"
            waits = {row[0] for row in rows(tmp_path / "c", QUEUE)} - {row[0] for row in before}
            assert waits == wanted
            assert did("include", "/f/1", "--undo", cwd=tmp_path) == "11 waiting URLs excluded again\n"
            assert rows(tmp_path / "c", QUEUE) == before
            assert {row[0] for row in rows(tmp_path / "c", OUT)} == wanted
            assert did("include", "/f/1", cwd=tmp_path).startswith("11 URLs wait")
            did("go", cwd=tmp_path)
            code, err = ended(process)
        assert code == ExitCode.DONE, err
        assert {server.url(row.target, FOREIGN) for row in server.log if row.host == FOREIGN} == wanted


def test_what_an_order_excluded_is_judged_again(tmp_path: Path) -> None:
    with RawServer(site(20)) as server:
        ran = archiver("crawl", *OPTIONS, "--max-urls", "2", server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.LIMIT, ran.stderr
        did("exclude", "/a/", cwd=tmp_path)
        out = rows(tmp_path / "c", OUT)
        assert {row[1] for row in out} == {"exclude: /a/"}
        assert did("include", "/a/", cwd=tmp_path).startswith("0 URLs wait")  # the rule to exclude is stronger
        assert did("include", "/a/", "--undo", cwd=tmp_path).startswith("0 waiting URLs")
        did("set", "exclude=", cwd=tmp_path)
        assert did("include", "/a/", cwd=tmp_path).startswith(f"{len(out)} URLs wait")
        assert rows(tmp_path / "c", OUT) == []
        assert did("include", "/a/", "--undo", cwd=tmp_path).startswith(f"{len(out)} waiting URLs")
        assert rows(tmp_path / "c", OUT) == out


def test_links_that_are_not_kept_come_back_with_the_named_command(tmp_path: Path) -> None:
    with RawServer({}, hosts=HOSTS) as server:
        server.routes = linking(server, 1003, 3)
        ran = archiver("crawl", *OPTIONS, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        said = did("include", "/f/", cwd=tmp_path)
        assert said.startswith("1000 URLs wait that rules had refused or excluded; 3 refused links are not kept")
        assert "archiver retry DIR --status 2xx" in said
        did("retry", "--status", "2xx", cwd=tmp_path)
        ran = archiver("resume", "c", "--rate", "0", "--max-urls", "1003", cwd=tmp_path)
        known = rows(tmp_path / "c", f"SELECT count(*) FROM urls WHERE url LIKE '%{FOREIGN}%/f/%'")
        assert known == [(1003,)], ran.stderr
