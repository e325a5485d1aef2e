"""The examples of hooks in the documents: each does in a crawl what it says."""

import asyncio
import json
import subprocess
from pathlib import Path

from archiver.config.hook_settings import HookFile
from archiver.crawl.hooks.hooks import hooks_of
from archiver.model import ExitCode
from fixtures.archives import rows
from fixtures.command import ROOT, archiver
from fixtures.crawl_in_process import settings
from fixtures.rawserver import RawServer, Route
from fixtures.sites import message, ok, page

EXAMPLES = ROOT / "docs" / "examples" / "hooks"


def crawled(folder: Path, name: str, site: dict[str, Route]) -> tuple["subprocess.CompletedProcess[str]", set[str]]:
    """Crawl *site* into c with the example *name*; return the run, and what was asked for."""
    options = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--hooks", str(EXAMPLES / name))
    with RawServer(site) as server:
        ran = archiver("crawl", *options, server.url(), cwd=folder)
        return ran, {row.target for row in server.log} - {"/robots.txt"}


def test_links_are_left_out_by_a_rule_that_depends_on_their_page(tmp_path: Path) -> None:
    site: dict[str, Route] = {
        "/": ok(page("Forum", ["/thread/7", "/thread/2000", "/user/front"])),
        "/thread/7": ok(page("Old", ["/user/a", "/thread/7?page=2"])),
        "/thread/2000": ok(page("New", ["/user/b", "/thread/2000?page=2"])),
    }
    ran, asked = crawled(tmp_path, "ignore_by_page.py", site)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert asked == {"/", "/thread/7", "/thread/2000", "/user/front", "/thread/2000?page=2"}


def test_urls_in_the_answers_of_an_api_are_added(tmp_path: Path) -> None:
    posts = {"next": "/api/posts?after=1", "posts": [{"id": 1, "pictures": ["/p/1.png"]}]}
    site: dict[str, Route] = {
        "/": ok(page("F", ["/api/posts"])),
        "/api/posts": ok(json.dumps(posts), "application/json"),
        "/api/posts?after=1": ok(json.dumps({"posts": [{"id": 2}]}), "application/json"),
        "/post/1": ok(page("1")),
        "/post/2": ok(page("2")),
    }
    ran, asked = crawled(tmp_path, "json_api.py", site)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    assert asked == {*site, "/p/1.png"}
    assert "hook" not in ran.stderr


async def _asked(path: Path, hosts: list[str]) -> dict[str, str]:
    with hooks_of(settings("http://example.org/", hooks=HookFile(str(path)))) as hooks:
        assert hooks is not None
        await hooks.learn(hosts)
        assert hooks.answers is not None
        return {host: "" if rule is None else str(rule) for host, rule in hooks.answers.items()}


def test_hosts_get_a_rate_by_a_rule() -> None:
    hosts = ["https://www.nasa.gov", "http://cdn.example.org", "https://example.org"]
    assert asyncio.run(_asked(EXAMPLES / "rate_per_host.py", hosts)) == {
        "https://www.nasa.gov": "https://www.nasa.gov rate=1/5 host-concurrency=1",
        "http://cdn.example.org": "http://cdn.example.org rate=10 max-response-size=50000000",
        "https://example.org": "",
    }


def test_long_error_pages_are_not_downloaded(tmp_path: Path) -> None:
    site: dict[str, Route] = {
        "/": ok(page("F", ["/short", "/long"])),
        "/short": message("404 Not Found", b"short"),
        "/long": message("404 Not Found", b"x" * 3_000_000),
    }
    ran, _ = crawled(tmp_path, "error_pages.py", site)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    sql = "SELECT truncated, received < 1000000 FROM captures WHERE url = (SELECT id FROM urls WHERE url LIKE '%/{}')"
    assert rows(tmp_path / "c", sql.format("short")) == [("", 1)]
    assert rows(tmp_path / "c", sql.format("long")) == [("length", 1)]


def test_a_ban_ends_the_crawl(tmp_path: Path) -> None:
    site: dict[str, Route] = {
        "/": ok(page("F", ["/a"])),
        "/a": ok("<p>Your IP address has been banned.</p><a href=/b>b</a>"),
    }
    ran, asked = crawled(tmp_path, "stop_on_ban.py", site)
    assert ran.returncode == ExitCode.STOPPED, ran.stderr
    assert "/a says that we are banned" in ran.stderr
    assert asked == {"/", "/a"}
    banned = message("403 Forbidden", b"no", x_banned="yes")
    (tmp_path / "two").mkdir()
    ran, _ = crawled(tmp_path / "two", "stop_on_ban.py", {"/": ok(page("F", ["/a"])), "/a": banned})
    assert ran.returncode == ExitCode.STOPPED, ran.stderr
