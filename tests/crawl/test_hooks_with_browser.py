"""Hooks and a browser in one crawl: the hooks decide about what views of pages ask for, as about all else."""

import gzip
from pathlib import Path

from archiver.model import ExitCode
from fixtures.archives import rows, warcs
from fixtures.command import archiver
from fixtures.devtools import SLOW_IN_BROWSER
from fixtures.rawserver import RawServer, Route
from fixtures.sites import PIXEL, ok, page

pytestmark = SLOW_IN_BROWSER
OPTIONS = (
    "-o",
    "c",
    "--rate",
    "0",
    "--probe",
    "off",
    "--min-free-disk",
    "0",
    "--speculative",
    "off",
    "--hooks",
    "h.py",
)
HOOKS = """
from archiver import HookLink

def judge(link, page):
    shown = link.context.startswith("browser:") and page.url == page.seed and page.hops == ""
    if shown and link.hop == "E" and "/api/no" in link.url:
        return False
    if shown and link.hop == "L" and link.text == "Do not want this":
        return False
    if shown and "127.0.0.2" in link.url:
        return True

def links(document):
    if document.content_type == "application/json" and document.page.hops == "E":
        yield HookLink("/named-by-" + document.url.rpartition("/")[2])

def keep(exchange):
    return not exchange.url.endswith("/api/large")

def settings(host):
    return {"user-agent": "for " + host}
"""
SHELL = """<!doctype html><title>Application</title><div id=app></div><script>
const get = name => fetch(["/a", "pi/"].join("") + name).then(found => found.text()).catch(() => "nothing")
const start = async () => {
    const found = [await get("yes"), await get("no")]
    get("large")
    const links = ["/wanted", "OTHER"].map(each => `<a href="${each}">${each}</a>`)
    links.push(`<a href="${["/un", "wanted"].join("")}"><b>Do not</b>\\n want <img src="/wanted.gif" alt="this"></a>`)
    document.getElementById("app").innerHTML = found.join(" ") + links.join(" ")
}
start()
</script>"""


def test_hooks_decide_about_what_views_ask_for(tmp_path: Path) -> None:
    (tmp_path / "h.py").write_text(HOOKS)
    with (
        RawServer({"/there": ok(page("There"))}, hosts=("127.0.0.2",)) as other,
        RawServer({}) as site,
    ):
        there = other.url("/there", "127.0.0.2")
        routes: dict[str, Route] = {
            "/": ok(SHELL.replace("OTHER", there)),
            "/api/yes": ok('"yes"', "application/json"),
            "/api/large": ok("x" * 3_000_000, "text/plain"),
            "/wanted.gif": ok(PIXEL, "image/gif"),
            **{f"/{name}": ok(page(name)) for name in ("wanted", "named-by-yes")},
        }
        site.routes = routes
        words = ("--browser", "auto", "--allow-private", "127.0.0.2", site.url())
        ran = archiver("crawl", *words, *OPTIONS, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert " failed: " not in ran.stderr
        assert {row.target for row in site.log} - {"/robots.txt"} == set(routes)
        assert other.log.targets().count("/there") == 1
        assert all(b"User-Agent: for 127.0.0." in row.request for row in (*site.log, *other.log))
        refused = {(site.url(target),) for target in ("/api/no", "/unwanted")}
    assert set(rows(tmp_path / "c", "SELECT url FROM refusals WHERE rule = 'hook: judge'")) == refused
    assert rows(tmp_path / "c", "SELECT rounds > 1 FROM views WHERE brought > 0") == [(1,)]
    assert "2 links were refused by your hook" in ran.stderr  # each once, in however many views
    stored = (
        "SELECT truncated, received < 3000000 FROM captures JOIN urls ON urls.id = captures.url WHERE urls.url LIKE "
    )
    assert rows(tmp_path / "c", f"{stored}'%/api/large'") == [("length", 1)]
    content = b"".join(gzip.decompress(path.read_bytes()) for path in warcs(tmp_path / "c"))
    assert b'"yes" nothing' in content  # urn:text: the view went on without what the hook refused
    assert archiver("verify", "c", cwd=tmp_path).returncode == ExitCode.DONE
