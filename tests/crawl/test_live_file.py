"""live.json while a crawl runs, after its end and after a kill; and a crawl that cannot write it."""

from pathlib import Path

from archiver.collection.layout import Layout
from archiver.collection.live import last_live
from archiver.model import ExitCode
from fixtures.command import archiver, ended, running, said
from fixtures.flag import Gate
from fixtures.live import until
from fixtures.log import Row
from fixtures.rawserver import Answer, RawServer, Sendable
from fixtures.sites import message, ok, page

CRAWL = ("crawl", "-o", "c", "--rate", "0", "--probe", "off")


def test_it_follows_the_crawl_and_the_next_run_counts_on(tmp_path: Path) -> None:
    gate = Gate()
    held = Answer((gate, message("200 OK", page("Two").encode(), content_type="text/html")))
    routes = {"/": ok(page("One", ["/two"])), "/two": held}
    with RawServer(routes) as server:
        with running(*CRAWL, server.url(), cwd=tmp_path) as process:
            live = until(tmp_path / "c", lambda live: live.active == 1 and live.done == 1 and not live.unwritten)
            assert (live.pid, live.state, live.waiting) == (process.pid, "crawling", 1)
            assert [(host.key, host.active) for host in live.hosts] == [(server.url(""), 1)]
            assert live.total.visits == 2  # and robots.txt
            assert live.total.responses == {"2xx": 1, "4xx": 1}
            assert live.total.received == live.received
            assert live.disk_free > 0
            assert live.commit_lag == 0
            process.kill()
            process.wait()
        killed = last_live(Layout(tmp_path / "c"))
        assert killed is not None
        assert killed.state == "crawling"
        gate.open()
        assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    final = last_live(Layout(tmp_path / "c"))
    assert final is not None
    assert (final.state, final.done, final.waiting, final.active) == ("ended", 2, 0, 0)
    assert final.visits < final.total.visits
    assert final.total.responses["2xx"] == 2
    assert final.total.written_bytes > killed.total.written_bytes


def test_several_processes_write_one_file(tmp_path: Path) -> None:
    hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    routes = {"/": ok(page("One", ["/two"])), "/two": ok(page("Two"))}
    with RawServer(routes, hosts=hosts) as server:
        seeds = [server.url("/", host) for host in hosts]
        assert archiver(*CRAWL, "--processes", "2", *seeds, cwd=tmp_path).returncode == ExitCode.DONE
    final = last_live(Layout(tmp_path / "c"))
    assert final is not None
    assert (final.state, final.done) == ("ended", 6)
    assert final.total.responses == {"2xx": 6, "4xx": 3}
    assert final.total.visits == final.visits == 9
    warcs = (tmp_path / "c/archive").iterdir()
    assert final.total.written_bytes == sum(path.stat().st_size for path in warcs if "meta" not in path.name)


def test_a_crawl_goes_on_without_it(tmp_path: Path) -> None:
    gate = Gate()

    def block(_: Row) -> Sendable:
        (tmp_path / "c/live.json.tmp").mkdir()
        return Answer((gate, message("200 OK", page("One").encode(), content_type="text/html")))

    with RawServer({"/": block}) as server, running(*CRAWL, server.url(), cwd=tmp_path) as process:
        said(process, "live.json cannot be written, so the crawl cannot be watched")
        gate.open()
        code, err = ended(process)
    assert code == ExitCode.DONE
    assert "live.json" not in err


def test_a_recrawl_counts_from_zero(tmp_path: Path) -> None:
    with RawServer({"/": ok(page("One"))}) as server:
        assert archiver(*CRAWL, server.url(), cwd=tmp_path).returncode == ExitCode.DONE
        assert archiver("recrawl", "c", cwd=tmp_path).returncode == ExitCode.DONE
        assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
    final = last_live(Layout(tmp_path / "c"))
    assert final is not None
    assert final.total.visits == final.visits == 2
