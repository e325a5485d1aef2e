"""What a recording says of itself while it runs: live.json, metrics, `archiver status` and the page of `watch`."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from archiver.collection.layout import Layout
from archiver.collection.live import last_live
from archiver.model import ExitCode
from fixtures.command import archiver, said
from fixtures.devtools import needs_chromium
from fixtures.flag import PATIENCE, Gate
from fixtures.live import until
from fixtures.ports import free_port
from fixtures.rawserver import Answer, RawServer, Route
from fixtures.recording import RecordingProxy, recording
from fixtures.sites import message, ok, page
from fixtures.watch_page import WatchPage, shown
from fixtures.watching import watching

LONG = page("Start") + "<!-- stored once -->" * 1000
ROUTES: dict[str, Route] = {"/": ok(LONG), "/same": ok(LONG)}
VIEWS = ["Stream", "Hosts", "Problems", "URLs", "Files", "Report"]


@pytest.fixture(name="server")
def a_server() -> Iterator[RawServer]:
    """Serves the site; what is not in it gets 404."""
    with RawServer(ROUTES) as server:
        yield server


@pytest.fixture(name="proxy")
def a_proxy(tmp_path: Path) -> Iterator[RecordingProxy]:
    """Records into a collection."""
    with recording(tmp_path / "c") as proxy:
        yield proxy


def fill(server: RawServer, proxy: RecordingProxy) -> None:
    """Record two pages, one of them twice, one that is missing and one without an answer."""
    for target in ("/", "/", "/same", "/missing"):
        proxy.get(server.url(target))
    proxy.get(f"http://127.0.0.1:{free_port()}/")


def test_live_json_follows_the_recording_and_the_next_run_counts_on(
    server: RawServer, proxy: RecordingProxy, tmp_path: Path
) -> None:
    directory = tmp_path / "c"
    fill(server, proxy)
    live = until(directory, lambda live: live.visits == 5 and live.done == 3)
    assert (live.pid, live.state, live.waiting, live.active, live.unwritten) == (
        *(proxy.process.pid, "recording", 0, 0, 0),
    )
    assert live.total.results == {"archived": 4, "failed": 1}
    assert live.total.responses == {"2xx": 3, "4xx": 1}
    assert live.total.revisits == 2
    assert live.received == live.total.received > 0
    assert live.last_commit > 0
    proxy.kill()
    with recording(directory) as again:
        again.get(server.url("/"))
        last = until(directory, lambda live: live.visits == 1)
        assert last.total.responses["2xx"] == 4
        assert (last.done, last.failed) == (3, 1)  # the URL is known
        again.end()
    final = last_live(Layout(directory))
    assert final is not None
    assert (final.state, final.done, final.visits, final.active) == ("ended", 3, 1, 0)
    assert final.total.written_bytes == sum(
        path.stat().st_size for path in (directory / "archive").iterdir() if "meta" not in path.name
    )
    assert (directory / "live.json").stat().st_mode & 0o077 == 0  # URLs are a person's own


def test_a_request_under_way_and_the_end_are_shown(server: RawServer, proxy: RecordingProxy, tmp_path: Path) -> None:
    gate = Gate()
    server.routes = {"/slow": Answer((gate, message("200 OK", b"late", content_type="text/plain")))}
    client = proxy.connect()
    client.sendall(f"GET {server.url('/slow')} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
    until(tmp_path / "c", lambda live: live.active == 1 and live.state == "recording")
    proxy.signal()
    until(tmp_path / "c", lambda live: live.active == 1 and live.state == "draining")
    gate.open()
    proxy.process.wait(PATIENCE)
    client.close()
    assert "200" in (tmp_path / "c/logs/crawl.log").read_text()


def test_status_says_that_it_goes_on_and_what_was_stored(
    server: RawServer, proxy: RecordingProxy, tmp_path: Path
) -> None:
    fill(server, proxy)
    until(tmp_path / "c", lambda live: live.visits == 5 and live.done == 3)
    text = archiver("status", "c", cwd=tmp_path).stdout
    assert re.search(rf"^state     recording \(process {proxy.process.pid} on .*\)", text)
    assert re.search(r"^this run  \d exchanges of .* in .*, 0 requests under way$", text, re.MULTILINE)
    assert f"{server.url('')}: 3 archived" in text
    assert re.search(r"^URLs      3 archived, 1 failed$", text, re.MULTILINE)  # it has no queue and no rules
    found = json.loads(archiver("status", "c", "--json", cwd=tmp_path).stdout)
    assert found["state"] == "recording"
    assert (found["this_run"]["exchanges"], found["this_run"]["active"]) == (5, 0)
    assert found["this_run"]["received"] > len(LONG)
    proxy.end()
    text = archiver("status", "c", cwd=tmp_path).stdout
    assert text.startswith("state     done")
    assert "this run" not in text
    assert "URLs      3 archived, 1 failed\n" in (tmp_path / "c/reports/report.txt").read_text()
    assert json.loads(archiver("status", "c", "--json", cwd=tmp_path).stdout)["this_run"] is None


@pytest.mark.skipif(sys.platform == "win32", reason="--metrics is not for Windows")
def test_metrics_have_the_names_of_those_of_a_crawl(server: RawServer, tmp_path: Path) -> None:
    with recording(tmp_path / "c", "--metrics", "0") as proxy:
        address = said(proxy.process, "metrics at").strip().rpartition(" ")[2]
        fill(server, proxy)
        until(tmp_path / "c", lambda live: live.visits == 5 and live.done == 3)
        with urlopen(address) as answer:
            text = answer.read().decode()
        for line in (
            'archiver_responses_total{class="2xx"} 3.0',
            'archiver_urls{state="archived"} 3.0',
            "archiver_revisits_total 2.0",
            "archiver_requests_active 0.0",
        ):
            assert f"{line}\n" in text
        proxy.end()
    with pytest.raises(OSError, match="refused"):
        urlopen(address)


def test_a_recording_takes_no_orders(server: RawServer, proxy: RecordingProxy, tmp_path: Path) -> None:
    fill(server, proxy)
    until(tmp_path / "c", lambda live: live.visits == 5)
    with watching("c", cwd=tmp_path) as room:
        [row] = room.crawls
        assert (row["state"], row["waiting"]) == ("recording", 0)
        details = room.get(f"/api/crawls/{row['id']}").json
        assert (details["recording"], details["verbs"], details["running"]) == (True, [], True)
        for finding in details["verdict"]["findings"]:
            assert finding["command"] == ""
        for verb in ("pause", "stop", "retry", "note"):
            refused = room.post(f"/api/crawls/{row['id']}/orders", {"verb": verb, "arguments": []})
            assert refused.status == 409
            assert "c holds a recording, which has no queue" in refused.json["error"]


@needs_chromium
@pytest.mark.browser
@pytest.mark.slow
def test_the_page_shows_what_applies_and_no_orders(server: RawServer, tmp_path: Path) -> None:
    with recording(tmp_path / "c", "--watch", "0") as proxy:
        assert "http://127.0.0.1:" in said(proxy.process, "archiver: watch c at")
        fill(server, proxy)
        until(tmp_path / "c", lambda live: live.visits == 5 and live.done == 3)

        async def steps(seen: WatchPage) -> None:
            await seen.sees("document.querySelector('.badge')?.textContent === 'recording'")
            await seen.sees("document.querySelectorAll('.t-stream tbody tr').length >= 4")
            await seen.sees("document.querySelectorAll('.views a').length === 6")
            assert await seen.texts(".views a") == VIEWS
            assert await seen.texts(".controls button") == []
            assert {"waiting", "held as traps", "excluded"}.isdisjoint(await seen.texts(".cards span"))
            [number] = [each["id"] for each in room.crawls]
            for view in ("hosts", "problems", "urls", "files", "report"):
                await seen.view(number, view)
                assert "queue" not in (await seen.text(".view")).lower()
            assert "The recording is running" in await seen.text(".verdict")
            await asyncio.to_thread(proxy.end)
            await seen.sees("document.body.textContent.includes('Nothing is recorded now.')")
            assert "archiver record -o" in await seen.text(".banner")
            assert "archiver resume" not in await seen.text()

        async def run() -> None:
            async with shown(room, tmp_path / "profile") as seen:
                await steps(seen)

        with watching("c", cwd=tmp_path) as room:
            asyncio.run(run())


def test_figures_are_refused_where_a_crawl_refuses_them(tmp_path: Path) -> None:
    for words, why in (
        (("--metrics", "0.0.0.0:0"), "give --metrics-token env:NAME or file:/PATH"),
        (("--watch", "nowhere"), "--watch nowhere: write a port"),
        (("--watch-users", "x"), "--watch-users is used with --watch"),
    ):
        ran = archiver("record", "-o", "c", "--port", "0", *words, cwd=tmp_path)
        assert (ran.returncode, why in ran.stderr, ran.stderr.count("\n")) == (ExitCode.USAGE, True, 1), ran.stderr
    assert not (tmp_path / "c").exists()
