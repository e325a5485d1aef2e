"""`archiver look`: what a replay would miss is found without a network, fetched by the crawl, and then replayed."""

import asyncio
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL

import pytest

from archiver.model import ExitCode
from fixtures import browser
from fixtures.command import COMMAND, archiver, environment
from fixtures.debian import NotToBeHad
from fixtures.devtools import needs_chromium, needs_namespace
from fixtures.log import Row
from fixtures.mounts import mounted
from fixtures.pywb_server import archiver_replay
from fixtures.rawserver import NOT_FOUND, Answer, End, RawServer, Route, Sendable, keep
from fixtures.replay_comparison import Viewer, compared, look
from fixtures.replayweb_page import hosted
from fixtures.sites import ok, page

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
    needs_namespace,
]
OPTIONS = ("--rate", "0", "--probe", "off", "--min-free-disk", "0")
CHANCE = """<!doctype html><title>Chance</title><p id=told>nothing</p><img id=drawn><script>
const number = crypto.getRandomValues(new Uint32Array(1))[0]
fetch("/told?chance=" + Math.random() + "&number=" + number + "&day=" + new Date().toISOString().slice(0, 16))
    .then(answer => answer.text()).then(text => {
        document.getElementById("told").textContent = text
        document.getElementById("drawn").src = "/drawn/" + ["by", "script"].join("-") + ".svg"
    })
</script>"""
DRAWN = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40" fill="red"/></svg>'


def told(row: Row) -> Sendable:
    return ok(f"<p>told {row.target}</p>") if row.target.startswith("/told") else keep(NOT_FOUND)


SITE: dict[str, Route] = {
    "/": ok(page("Start", ["/chance.html", "/plain.html"])),
    "/chance.html": ok(CHANCE),
    "/plain.html": ok(page("Plain")),
    "/drawn/by-script.svg": ok(DRAWN, "image/svg+xml"),
}


@pytest.fixture(name="site")
def served_site() -> Iterator[RawServer]:
    with RawServer(dict(SITE), otherwise=told) as server:
        yield server


def crawled(folder: Path, *words: str) -> None:
    ran = archiver("crawl", *words, "-o", "c", *OPTIONS, cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr


def looked(folder: Path, *words: str, code: ExitCode) -> str:
    ran = archiver("look", "c", *words, cwd=folder)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout


def table(folder: Path) -> list[dict[str, str]]:
    """Return the lines of the table that `look` wrote."""
    names, *lines = (folder / "c/reports/missing-in-replay.tsv").read_text().splitlines()
    return [dict(zip(names.split("\t"), line.split("\t"), strict=True)) for line in lines]


@pytest.mark.replay
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_page_of_chance_replays_whole(tmp_path: Path, site: RawServer) -> None:
    """Its URLs are made by chance, by the clock and from pieces; pywb and replayweb.page ask for the same ones."""
    crawled(tmp_path, site.url())
    asked = len(site.log)
    out = looked(tmp_path, code=ExitCode.FAULTS)
    assert len(site.log) == asked  # the browser has no network
    assert "complete   2 pages" in out
    assert {re.sub(r"\?.*", "", each["url"]): each["kind"] for each in table(tmp_path)} == {site.url("/told"): "XHR"}
    report = archiver("report", "c", cwd=tmp_path).stdout
    assert re.search(rf"^Missing in the replay\..*\n.*\n +{re.escape(site.url('/told'))}\?", report, re.MULTILINE)
    out = looked(tmp_path, "--fetch", code=ExitCode.FAULTS)
    assert "1 URL queued; to continue: archiver resume c" in out
    assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    looked(tmp_path, "--fetch", code=ExitCode.FAULTS)  # the answer led to a picture
    assert [each["url"] for each in table(tmp_path)] == [site.url("/drawn/by-script.svg")]
    assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert "complete   4 pages" in looked(tmp_path, code=ExitCode.DONE)
    assert table(tmp_path) == []
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("pack", "c", "-o", "c.wacz", cwd=tmp_path).returncode == ExitCode.DONE

    async def replayed() -> None:
        chance = site.url("/chance.html")
        async with browser.opened(tmp_path / "profile") as shown:
            live = await look(shown, chance, chance)
            site.routes = {}
            with archiver_replay(tmp_path / "c") as wayback:
                viewer = Viewer(wayback.root, wayback.address, f"{wayback.root}static/")
                found = await compared(shown, viewer, chance, live, patience=0)
                assert (found.failed, found.outside) == ([], [])
            try:
                async with hosted(tmp_path / "c.wacz") as host:
                    viewer = Viewer(host.root, host.address, f"{host.root}replay/static/")
                    found = await compared(shown, viewer, chance, live, patience=0)
                    assert (found.failed, found.outside) == ([], [])
            except NotToBeHad as reason:
                pytest.skip(f"passed in pywb; replayweb.page: {reason}")

    asyncio.run(replayed())


FEATURES = """<!doctype html><title>Features</title>
<link rel=stylesheet href=/style-{n}.css><script>
document.write('<link rel=stylesheet href="/style-' + 'a.css"><iframe src="/frame-' + 'a.html"></iframe>')
for (const [kind, make] of Object.entries({
    image: () => { new Image().src = "/image-" + "a.png" },
    set: () => { const i = new Image(); i.srcset = "/set-" + "a.png 1x, /set-" + "b.png 2x" },
    far: () => { new Image().src = FAR + "/far-" + "a.png" },
    frame: () => {
        const frame = document.createElement("iframe")
        frame.src = FAR + "/frame-" + "b.html"
        document.body.append(frame)
    },
    fetch: () => fetch("/fetch-" + "a"),
    cors: () => fetch(FAR + "/cors-" + "a", { headers: { "X-Own": "1" } }),
    post: () => fetch("/post-" + "a", { method: "POST", body: "{}" }),
    request: () => { const r = new XMLHttpRequest(); r.open("GET", "/request-" + "a"); r.send() },
    module: () => import("/module-" + "a.js"),
    worker: () => new Worker("/worker-" + "a.js"),
    inside: () => new Worker(URL.createObjectURL(new Blob(["fetch('" + HERE + "/inside-' + 'a')"]))),
    shared: () => new SharedWorker("/shared-" + "a.js"),
    font: () => new FontFace("own", "url(/font-" + "a.woff2)").load(),
    audio: () => new Audio("/audio-" + "a.ogg").load(),
    events: () => new EventSource("/events-" + "a"),
    socket: () => new WebSocket("ws://socket.example/" + "a"),
    beacon: () => navigator.sendBeacon("/beacon-" + "a", ""),
    away: () => setTimeout(() => { location = "/away-" + "a.html" }),
    dialog: () => alert("stop"),
    opened: () => window.open("/opened-" + "a.html"),
})) try { Promise.resolve(make()).catch(() => 0) } catch {}
</script>"""
MISSING = {
    "/style-a.css": "Stylesheet",
    "/frame-a.html": "Document",
    "/image-a.png": "Image",
    "/set-a.png": "Image",
    "far /far-a.png": "Image",
    "far /frame-b.html": "Document",
    "/fetch-a": "XHR",
    "far /cors-a": "XHR",
    "/post-a": "XHR",
    "/request-a": "XHR",
    "/module-a.js": "Script",
    "/worker-a.js": "Other",
    "/inside-a": "XHR",
    "/shared-a.js": "Other",
    "/font-a.woff2": "Font",
    "/audio-a.ogg": "Media",
    "/events-a": "XHR",
    "/away-a.html": "Navigation",
}


def test_every_way_to_ask_is_seen(tmp_path: Path, site: RawServer) -> None:
    """A WebSocket is named apart, since no archive can answer it; beacons show nowhere."""
    here, far = site.url("").rstrip("/"), site.url("", "localhost").rstrip("/")
    text = FEATURES.replace("HERE", f'"{here}"').replace("FAR", f'"{far}"').replace("{n}", "b")
    site.routes = {"/": ok(text), "/style-b.css": ok("p { color: red }", "text/css")}
    site.otherwise = keep(NOT_FOUND)
    crawled(tmp_path, site.url(), "--max-depth", "0", "--speculative", "off")
    out = looked(tmp_path, code=ExitCode.FAULTS)
    found = {each["url"].replace(far, "far ").replace(here, ""): each["kind"] for each in table(tmp_path)}
    assert found == MISSING
    assert "live only  ws://socket.example/a" in out
    methods = {each["method"] for each in table(tmp_path) if "/post-" in each["url"]}
    assert methods == {"POST"}


def test_ctrl_c_ends_it(tmp_path: Path, site: RawServer) -> None:
    """Also in the middle of a view, whose page never becomes quiet."""
    site.routes = {
        "/": ok("<script>setInterval(() => fetch('/again/' + performance.now()), 50)</script><title>Restless</title>")
    }
    crawled(tmp_path, site.url())
    words = [*COMMAND, "look", "c"]
    with subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=DEVNULL, stderr=DEVNULL) as process:
        until_a_page_is_shown(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0


def until_a_page_is_shown(pid: int) -> None:
    """Wait until a browser that *pid* has started has a renderer."""
    end = time.monotonic() + 120
    while not any("--type=renderer" in line for line in children(pid)):
        assert time.monotonic() < end
        time.sleep(0.05)


def children(pid: int) -> list[str]:
    """Return the command lines of the processes below *pid*."""
    ran = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in ran.stdout.splitlines()[1:]]
    below, found = {str(pid)}, []
    for _ in range(10):
        below |= {row[0] for row in rows if row[1] in below}
    found += [row[2] for row in rows if row[0] in below]
    return found


def test_what_the_crawl_refused_stays_refused(tmp_path: Path, site: RawServer) -> None:
    """A missing URL is judged like a link of its page, and the crawl says why it lacks it."""
    scripts = "".join(f"new Image().src = '/{name}-' + 'a.png';" for name in ("kept", "no"))
    site.routes = {"/": ok(f"<!doctype html><title>Two</title><script>{scripts}</script>")}
    crawled(tmp_path, site.url(), "--exclude", "/no-", "--speculative", "off")
    out = looked(tmp_path, "--fetch", code=ExitCode.FAULTS)
    assert "1 URL queued" in out
    assert re.search(r"not queued: \S+/no-a\.png: exclude", out)
    site.routes = {**site.routes, "/kept-a.png": ok(b"\x89PNG", "image/png")}
    archiver("resume", "c", cwd=tmp_path)
    out = looked(tmp_path, code=ExitCode.FAULTS)
    assert [each["url"] for each in table(tmp_path)] == [site.url("/no-a.png")]


def test_a_url_that_failed_is_tried_again(tmp_path: Path, site: RawServer) -> None:
    site.routes = {"/": ok(page("Start", images=["/a.png"])), "/a.png": Answer((), End.RESET)}
    crawled(tmp_path, site.url(), "--retries", "0")
    out = looked(tmp_path, "--fetch", code=ExitCode.FAULTS)
    assert "Image, on" in out
    assert "; failed (" in out
    site.routes = {**site.routes, "/a.png": ok(b"\x89PNG", "image/png")}
    assert archiver("resume", "c", cwd=tmp_path).returncode == ExitCode.DONE
    looked(tmp_path, code=ExitCode.DONE)


@pytest.mark.timeout(120)
def test_what_pages_showed_is_stored_on_wish(tmp_path: Path, site: RawServer) -> None:
    crawled(tmp_path, site.url("/plain.html"))
    looked(tmp_path, "--screenshots", "--records", site.url("/plain.html"), code=ExitCode.DONE)
    for kind, expected in (("text", "Plain"), ("pageinfo", '"title": "Plain"')):
        ran = archiver("get", "c", f"urn:{kind}:{site.url('/plain.html')}", cwd=tmp_path)
        assert expected in ran.stdout, ran.stderr
    ran = archiver("get", "c", f"urn:view:{site.url('/plain.html')}", "-o", "view.jpg", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert (tmp_path / "view.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    ran = archiver("verify", "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.DONE, ran.stdout + ran.stderr


@pytest.mark.timeout(120)
def test_a_read_only_collection(tmp_path: Path, site: RawServer) -> None:
    """The results are printed, and no change that fails loses them."""
    crawled(tmp_path, site.url("/"))
    with mounted(tmp_path / "disk", "50m") as disk:
        shutil.copytree(tmp_path / "c", tmp_path / "disk/c")
        disk.forbid_writing()
        ran = archiver("look", "disk/c", cwd=tmp_path)
        assert ran.returncode == ExitCode.FAULTS
        assert ran.stderr == (
            "archiver: disk/c/reports is not writable, so no list of missing URLs is written; name a file for it with "
            "-o\n"
        )
        assert "/told?" in ran.stdout
        ran = archiver("look", "disk/c", "-o", "list.tsv", cwd=tmp_path)
        assert (ran.returncode, ran.stderr) == (ExitCode.FAULTS, "archiver: 1 missing URL listed in list.tsv\n")
        assert "/told?" in (tmp_path / "list.tsv").read_text()
        for words in (("--fetch",), ("--records",), ("-o", "disk/list.tsv")):
            ran = archiver("look", "disk/c", *words, cwd=tmp_path)
            assert ran.returncode == ExitCode.STORAGE
            assert "/told?" in ran.stdout
            assert re.fullmatch(r"archiver: disk/\S+: Read-only file system\n", ran.stderr)


def test_what_cannot_be_looked_at(tmp_path: Path, site: RawServer) -> None:
    crawled(tmp_path, site.url("/plain.html"))
    assert archiver("pack", "c", "-o", "c.wacz", cwd=tmp_path).returncode == ExitCode.DONE
    assert archiver("look", "c.wacz", cwd=tmp_path).returncode == ExitCode.DONE
    for words, message in (
        (("c", site.url("/other.html")), f"c holds no capture of {site.url('/other.html')}; similar: "),
        (("c.wacz", "--fetch"), "--fetch: c.wacz holds no crawl"),
        (("c.wacz", "--screenshots"), "--screenshots: c.wacz holds no crawl"),
        (("c.wacz", "--records"), "--records: c.wacz holds no crawl"),
        (("c", "--behavior", "none.js"), "--behavior none.js: cannot be read: No such file or directory"),
        (("c", "--behavior", "c.wacz"), "--behavior c.wacz: it is not UTF-8"),
        (("c", "--browser", "no-such-browser"), "--browser no-such-browser: there is no such program"),
        (("nothing",), "nothing"),
    ):
        ran = archiver("look", *words, cwd=tmp_path)
        assert ran.returncode == ExitCode.USAGE, ran.stderr
        assert message in ran.stderr
        assert "Traceback" not in ran.stderr
    ran = archiver("look", "c", "--browser", "false", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE, ran.stderr
    assert "false: the browser did not start: " in ran.stderr
