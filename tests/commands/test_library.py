"""The program as a library: `import archiver`."""

import asyncio
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from threading import Event

import pytest

import archiver
from archiver.crawl.crawler_process import event_loop
from archiver.model import ExitCode
from fixtures.archives import warcs
from fixtures.command import ROOT, environment
from fixtures.log import Row
from fixtures.rawserver import RawServer, Route, Sendable
from fixtures.sites import message, ok, page

HOME = ok(page("Home", ("/a", "/b", "/calendar/1", "/gone")))
SITE: dict[str, Route] = {
    "/": HOME,
    "/a": ok(page("A")),
    "/b": ok(page("B")),
    "/gone": message("404 Not Found", b"gone"),
}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FREE = {"rate": 0, "min_free_disk": 0}


@pytest.fixture(autouse=True, scope="module")
def _pipe_of_libuv() -> None:
    """Let uvloop make its pipe for signals, of which each process has one for good."""
    with asyncio.Runner(loop_factory=event_loop()) as runner:
        runner.run(asyncio.sleep(0))


def test_the_examples_of_the_document_work(tmp_path: Path) -> None:
    """As one program, in a process of its own: nothing but what it prints is printed."""
    text = (ROOT / "docs/how-to/use-as-a-library.md").read_text("utf-8")
    program = "\n".join(BLOCK.findall(text)).replace('rate="30/60"', "rate=0, min_free_disk=0")
    with RawServer(SITE) as server:
        program = program.replace("https://example.org/", server.url())
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        asked = [row.target for row in server.log]
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("LIMIT ")
    assert lines[0].endswith(" False")
    assert any(line.startswith("404 ") and line.endswith("/gone") for line in lines)
    assert "True" in lines
    assert "1 of 4 pages" in lines[-1]
    assert not any("calendar" in target for target in asked)


async def _events(run: archiver.CrawlRun) -> list[archiver.Captured]:
    return [event async for event in run]


def test_each_capture_is_an_event_once(tmp_path: Path) -> None:
    with RawServer(SITE) as server:
        run = archiver.archive(server.url(), directory=tmp_path / "c", **FREE)
        assert not server.log
        events = asyncio.run(_events(run))
        stored = list(archiver.open(tmp_path / "c").captures())
        captured = [each.url for each in stored if each.url.startswith("http")]
        assert sorted(event.url for event in events) == sorted(captured)
        assert run.result is not None
        assert (run.result.code, run.result.complete, run.result.directory) == (ExitCode.DONE, True, tmp_path / "c")
        with pytest.raises(archiver.ArchiveError, match="has begun already"):
            run.run()
        again = archiver.open(tmp_path / "c").resume()
        assert [event for event in asyncio.run(_events(again)) if "robots" not in event.url] == []


def test_a_run_that_is_left_stops_and_can_be_resumed(tmp_path: Path) -> None:
    pages = {f"/{number}": ok(page(str(number))) for number in range(60)}
    site: dict[str, Route] = {"/": ok(page("Home", tuple(pages))), **pages}

    async def first_events(run: archiver.CrawlRun) -> list[str]:
        found = []
        events = aiter(run)
        async for event in events:
            found.append(event.url)
            if len(found) > 2:
                break
        await events.aclose()  # type: ignore[attr-defined] # it is a generator
        return found

    with RawServer(site) as server:
        run = archiver.archive(server.url(), directory=tmp_path / "c", rate=20, min_free_disk=0)
        assert len(asyncio.run(first_events(run))) == 3
        assert run.result is not None
        assert run.result.code is ExitCode.STOPPED
        before = len(server.log)
        assert before < 62
        assert archiver.open(tmp_path / "c").resume(rate=0).run().complete
        counted = [row.target for row in server.log]
    assert {f"/{number}" for number in range(60)} <= set(counted)
    assert len([target for target in counted if target in pages]) == 60


def test_a_cancelled_run_drains(tmp_path: Path) -> None:
    async def cancelled(run: archiver.CrawlRun) -> None:
        task = asyncio.create_task(run.run_async())
        await asyncio.to_thread(asked.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asked = Event()

    def home(_: Row) -> Sendable:
        asked.set()
        return HOME

    with RawServer({**SITE, "/": home}) as server:
        asyncio.run(cancelled(archiver.archive(server.url(), directory=tmp_path / "c", **FREE)))
        assert archiver.open(tmp_path / "c").resume().run().complete
        targets = [row.target for row in server.log]
    assert targets.count("/a") == targets.count("/b") == 1


def test_what_is_read(tmp_path: Path) -> None:
    body = b"<p>the same page" * 200
    with RawServer({"/": ok(body + b'<a href="/two">'), "/two": ok(body), "/three": ok(body)}) as server:
        seeds = (server.url(), server.url("/two"), server.url("/three"))
        archiver.archive(*seeds, directory=tmp_path / "c", **FREE).run()
    archive = archiver.open(tmp_path / "c")
    two, three = (next(archive.captures(server.url(name))) for name in ("/two", "/three"))
    assert {two.revisit, three.revisit} == {False, True}
    assert archive.read(two).payload == archive.read(three).payload == body
    assert archive.read(three).head.startswith(b"HTTP/1.1 200")
    with pytest.raises(archiver.ArchiveError, match="longer than 10 bytes"):
        archive.read(two, limit=10)
    assert len(list(archive.captures(prefix=server.url("/t")))) == 2
    assert {url.url for url in archive.urls("archived")} >= set(seeds)
    assert list(archive.urls("waiting")) == []
    assert archive.statistics()["totals"]["archived"] >= 3
    files = [each for each in warcs(tmp_path / "c") if "-meta" not in each.name]  # two on a busy machine
    assert any(each for file in files for each in islice(archiver.open(file).captures(prefix=server.url("/t")), 9))


@pytest.mark.parametrize(
    ("urls", "settings", "says"),
    [
        ((), {}, "no URL"),
        (("http://127.0.0.1/",), {"rats": 1}, "rats: no such setting"),
        (("http://127.0.0.1/",), {"rate": "often"}, "rate: 'often' is not a number of requests"),
        (("http://127.0.0.1/",), {"exclude": "/a"}, "exclude: not a list; write exclude="),
        (("http://127.0.0.1/",), {"profile": "fast"}, "no such profile"),
        (("http://127.0.0.1/",), {"config": "nowhere.toml"}, "nowhere.toml: cannot be read"),
        (("http://127.0.0.1/",), {"processes": 2}, "processes: a crawl of the library"),
        (("http://127.0.0.1/",), {"scope": "all"}, "scope: 'all' is not one of host"),
    ],
)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], urls: tuple[str, ...], settings: dict[str, object], says: str
) -> None:
    with pytest.raises(archiver.ConfigError, match=re.escape(says)):
        archiver.archive(*urls, directory=tmp_path / "c", **settings)
    assert not (tmp_path / "c").exists()
    assert capfd.readouterr() == ("", "")


def test_places_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(archiver.ConfigError, match="does not exist"):
        archiver.open(tmp_path / "nowhere")
    with pytest.raises(archiver.ConfigError):
        archiver.open(tmp_path).resume()
    with pytest.raises(archiver.ConfigError):
        list(archiver.open(tmp_path).urls("lost"))
    with pytest.raises(AttributeError):
        _ = archiver.nothing


def test_the_environment_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_USER_AGENT", "from the environment")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "archiver").mkdir()
    (tmp_path / "archiver" / "config.toml").write_text('user-agent = "from a file"')
    with RawServer(SITE) as server:
        archiver.archive(server.url(), directory=tmp_path / "c", user_agent="ours", **FREE).run()
        archiver.open(tmp_path / "c").resume().run()
        assert all(b"User-Agent: ours\r\n" in row.request for row in server.log)


def test_the_public_names_are_there_and_typed() -> None:
    """`import archiver` alone loads nothing of the program."""
    assert all(getattr(archiver, name).__doc__ for name in archiver.__all__)
    assert (ROOT / "archiver/py.typed").exists()
    program = "import sys, archiver; print(sorted(name for name in sys.modules if name.startswith('archiver.')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True)
    assert ran.stdout == "[]\n"
