"""Hooks of the user in whole crawls: what they judge, add, keep and set, in every process and after every crash."""

import gzip
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures.archives import rows, states, warcs
from fixtures.command import COMMAND, ROOT, archiver, environment, running
from fixtures.conditional_site import Page, served
from fixtures.rawserver import RawServer, Route
from fixtures.several_hosts import PATIENCE, captures, crawlers, several_hosts
from fixtures.sites import ok, page

OPTIONS = ("-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0", "--hooks", "hooks.py")
linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")

ODD = """
def judge(link, page):
    number = link.url.rpartition("/")[2]
    return False if number.isdigit() and int(number) % 2 and int(number) > 1 else None
"""


def hooks(folder: Path, text: str) -> None:
    (folder / "hooks.py").write_text(text)


def crawled(folder: Path, text: str, site: Mapping[str, Route], *options: str, seed: str = "/") -> RawServer:
    """Crawl *site* into c with the hooks *text*, to its end; return the server, for its log."""
    hooks(folder, text)
    with RawServer(dict(site)) as server:
        ran = archiver("crawl", *OPTIONS, *options, server.url(seed), cwd=folder)
    assert ran.returncode == ExitCode.DONE, ran.stderr
    return server


def content(directory: Path) -> bytes:
    """Return all records of the archive in *directory*."""
    return b"".join(gzip.decompress(path.read_bytes()) for path in warcs(directory))


def targets(server: RawServer) -> set[str]:
    return {row.target for row in server.log} - {"/robots.txt"}


def test_judge_refuses_a_link_and_the_screen_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    hooks(tmp_path, "def judge(link, page):\n    return False if page.depth == 0 and '/old' in link.url else None\n")
    with RawServer({"/": ok(page("F", ["/old", "/new"])), "/new": ok(page("N")), "/old": ok(page("O"))}) as server:
        ran = archiver("crawl", *OPTIONS, server.url(), cwd=tmp_path)
        assert targets(server) == {"/", "/new"}
        assert "1 link was refused by your hook" in ran.stderr
        command = re.search(r"archiver include c '?(\^http\S+\$)'? && archiver resume c", ran.stderr)
        assert command is not None, ran.stderr
        assert "hook: judge" in archiver("explain", "c", server.url("/old"), cwd=tmp_path).stdout
        assert archiver("include", "c", command[1], cwd=tmp_path).returncode == 0
        assert archiver("resume", "c", cwd=tmp_path).returncode == 0
        assert targets(server) == {"/", "/new", "/old"}


def test_judge_takes_a_link_out_of_scope_but_no_limit_is_lifted(tmp_path: Path) -> None:
    with RawServer({"/page": ok(page("Elsewhere", ["/next"])), "/next": ok(page("N"))}, hosts=("127.0.0.2",)) as other:
        there = other.url("/page", "127.0.0.2")
        site = {"/": ok(page("F", [there, "/out"])), "/out": ok(page("Out"))}
        limits = ("--max-depth", "1", "--exclude", "/out", "--allow-private", "127.0.0.2")
        crawled(tmp_path, "def judge(link, page):\n    return True\n", site, *limits)
        assert targets(other) == {"/page"}


def test_judge_sees_the_page_and_the_place_of_a_link(tmp_path: Path) -> None:
    text = """
def judge(link, page):
    if link.hop == "E":
        return link.context == "img/@src" and page.url == page.seed and page.hops == "" and page.via == ""
"""
    body = '<img src="/a.png"><script src="/b.js"></script><a href="/two">2</a>'
    site: dict[str, Route] = {"/": ok(body), "/two": ok('<img src="/c.png">')}
    assert targets(crawled(tmp_path, text, site)) == {"/", "/a.png", "/two"}


BY_TEXT = """
def judge(link, page):
    if link.hop == "L":
        return False if link.text in ("print view", "") else None
    return link.text == "a cat"
"""


def test_judge_sees_the_text_of_a_link_and_again_after_the_database_is_lost(tmp_path: Path) -> None:
    body = '<a href="/1">print\n<b>view</b></a><a href="/2"><img src="/c.png" alt="a cat"></a><img src="/d.png">'
    site: dict[str, Route] = {"/": ok(body), "/2": ok("<a href='/3'></a><a href='/4'>Four</a>"), "/4": ok("4")}
    assert targets(crawled(tmp_path, BY_TEXT, site)) == {"/", "/2", "/4", "/c.png"}
    before = states(tmp_path / "c")
    (tmp_path / "c" / "crawl.db").unlink()
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == 0
    assert states(tmp_path / "c") == before


def test_judge_sees_the_texts_of_a_stored_page_that_has_not_changed(tmp_path: Path) -> None:
    pages = {
        "/": Page('<a href="/1">print view</a><a href="/2">two</a>', etag='"1"'),
        "/2": Page(page("Two", ["/3"]), etag='"2"'),
        "/3": Page(page("Three"), etag='"3"'),
    }
    hooks(tmp_path, BY_TEXT)
    with RawServer(served(pages)) as server:
        for command in (("crawl", *OPTIONS, server.url()), ("recrawl", "c")):
            ran = archiver(*command, cwd=tmp_path)
            assert ran.returncode == ExitCode.DONE, ran.stderr
    assert [row.target for row in server.log if row.target != "/robots.txt"] == ["/", "/2", "/3"] * 2
    assert rows(tmp_path / "c", "SELECT count(*) FROM captures WHERE status = 304") == [(3,)]
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == 0
    assert {url.removeprefix(server.url("")) for url in states(tmp_path / "c")} == {"/", "/2", "/3", "/robots.txt"}


def test_links_of_a_json_answer_are_added_and_survive_in_the_metadata_record(tmp_path: Path) -> None:
    text = """
import json
from archiver import HookLink
def links(document):
    if document.content_type == "application/json":
        for each in json.loads(document.text)["items"]:
            yield HookLink("/item/" + each["id"])
            yield HookLink(each["picture"], "E", "json/picture")
"""
    api = ok('{"items": [{"id": "7", "picture": "p.png"}]}', "application/json")
    site = {"/": ok(page("F", ["/api/"])), "/api/": api, "/item/7": ok(page("7"))}
    server = crawled(tmp_path, text, site)
    assert targets(server) == {"/", "/api/", "/item/7", "/api/p.png"}
    assert re.search(rb"/item/7 L hook\r\noutlink: \S+/api/p.png E json/picture\r\n", content(tmp_path / "c"))


def test_what_keep_refuses_is_not_read_and_every_byte_that_came_is_stored(tmp_path: Path) -> None:
    large = ok("x" * 3_000_000, "text/plain")
    text = "def keep(exchange):\n    return exchange.length < 1000 and exchange.header('content-type') != ''\n"
    crawled(tmp_path, text, {"/": ok(page("F", ["/large"])), "/large": large})
    ((truncated, size, note),) = rows(
        tmp_path / "c",
        "SELECT truncated, received, note FROM captures JOIN urls ON urls.id = captures.url "
        "WHERE urls.url LIKE '%/large'",
    )
    assert truncated == "length"
    assert isinstance(size, int)
    assert size < 3_000_000
    assert note == "cut: length; the rest was not wanted: hook keep"
    assert archiver("verify", "c", cwd=tmp_path).returncode == 0


def test_settings_of_a_host_are_those_that_a_hook_returns(tmp_path: Path) -> None:
    text = "def settings(host):\n    return {'user-agent': 'for ' + host, 'retries': 0}\n"
    server = crawled(tmp_path, text, {"/": ok(page("F"))})
    assert all(b"User-Agent: for 127.0.0.1\r\n" in row.request for row in server.log)


def test_a_hook_cannot_set_what_may_name_a_secret(tmp_path: Path) -> None:
    hooks(tmp_path, "def settings(host):\n    return {'header': ['Cookie: file:/etc/passwd']}\n")
    with RawServer({"/": ok(page("F"))}) as server:
        ran = archiver("crawl", *OPTIONS, server.url(), cwd=tmp_path)
    assert "a hook cannot set header" in ran.stderr
    assert not any(b"Cookie" in row.request for row in server.log)


def test_a_rate_that_a_hook_gives_holds_across_a_resume(tmp_path: Path) -> None:
    hooks(tmp_path, "def settings(host):\n    return {'rate': '1/2'}\n")
    with RawServer({"/": ok(page("F", ["/two"])), "/two": ok(page("2"))}) as server:
        assert archiver("crawl", *OPTIONS, "--max-urls", "1", server.url(), cwd=tmp_path).returncode == ExitCode.LIMIT
        assert archiver("resume", "c", "--max-urls", "0", cwd=tmp_path).returncode == ExitCode.DONE
        arrived = [row.arrived for row in server.log]
    assert len(arrived) == 3
    assert min(after - before for before, after in pairwise(arrived)) >= 1.9


@pytest.mark.parametrize("name", ["links", "keep"])
def test_a_hook_ends_the_crawl_and_resume_continues(tmp_path: Path, name: str) -> None:
    asked = {"links": "links(document):\n    here = document", "keep": "keep(exchange):\n    here = exchange"}[name]
    hooks(
        tmp_path,
        f"from archiver import HookStop\ndef {asked}\n"
        "    if here.url.endswith('/ban'):\n        raise HookStop('we are banned')\n",
    )
    site = {"/": ok(page("F", ["/ban"])), "/ban": ok(page("Banned", ["/after"])), "/after": ok(page("A"))}
    with RawServer(dict(site)) as server:
        ran = archiver("crawl", *OPTIONS, server.url(), cwd=tmp_path)
        assert ran.returncode == ExitCode.STOPPED, ran.stderr
        assert f"stopped by the hook {name}: we are banned" in ran.stderr
        assert archiver("resume", "c", "--hooks", "none", cwd=tmp_path).returncode == ExitCode.DONE
        assert targets(server) == set(site)


def test_warcinfo_has_the_name_and_the_digest_of_the_file_and_no_folder(tmp_path: Path) -> None:
    crawled(tmp_path, "def keep(exchange):\n    pass\n", {"/": ok(page("F"))})
    assert re.search(rb'setting: hooks = "hooks\.py sha256:[0-9a-f]{64}"', content(tmp_path / "c"))
    assert bytes(tmp_path) not in content(tmp_path / "c")


def test_two_processes_ask_the_same_hooks(tmp_path: Path) -> None:
    hooks(tmp_path, ODD)
    with several_hosts() as hosts:
        ran = archiver("crawl", *OPTIONS, "--processes", "2", *hosts.seeds, cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        asked = set(hosts.asked())
    assert {url.rpartition("/")[2] for url in asked} - {"robots.txt"} == {"", "1", "2", "4", "8", "16", *even_tree()}


def even_tree(pages: int = 30) -> set[str]:
    """The pages of a binary tree that are reached over even numbers only, behind page 1."""
    reached, ways = set[int](), [1]
    while ways:
        here = ways.pop()
        reached.add(here)
        ways += [n for n in (2 * here, 2 * here + 1) if n < pages and n % 2 == 0]
    return set(map(str, reached))


@linux
def test_a_killed_crawler_is_recovered_with_the_hooks(tmp_path: Path) -> None:
    hooks(tmp_path, ODD)
    with several_hosts(after=10) as hosts:
        with running("crawl", *OPTIONS, "--processes", "2", *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            os.kill(crawlers(process.pid)[0], signal.SIGKILL)
            _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == ExitCode.DONE, err
        asked = {url.rpartition("/")[2] for url in hosts.asked()}
    assert asked - {"robots.txt", ""} == even_tree()


def test_a_killed_crawl_resumes_with_the_hooks(tmp_path: Path) -> None:
    hooks(tmp_path, ODD)
    with several_hosts(after=10) as hosts:
        with running("crawl", *OPTIONS, *hosts.seeds, cwd=tmp_path) as process:
            assert hosts.reached.wait(PATIENCE)
            process.kill()
            process.wait()
        ran = archiver("resume", "c", cwd=tmp_path)
        assert ran.returncode == ExitCode.DONE, ran.stderr
        assert {url.rpartition("/")[2] for url in hosts.asked()} - {"robots.txt", ""} == even_tree()
    assert set(captures(tmp_path / "c").values()) == {1}
    assert archiver("rebuild", "c", cwd=tmp_path).returncode == 0
    assert set(states(tmp_path / "c").values()) == {"archived"}


def test_resume_says_in_one_line_that_the_file_has_changed_or_is_missing(tmp_path: Path) -> None:
    hooks(tmp_path, ODD)
    with RawServer({"/": ok(page("F", ["/two"])), "/two": ok(page("2"))}) as server:
        archiver("crawl", *OPTIONS, "--max-urls", "1", server.url(), cwd=tmp_path)
        hooks(tmp_path, f"{ODD}# other\n")
        changed = archiver("resume", "c", cwd=tmp_path)
        (tmp_path / "hooks.py").unlink()
        missing = archiver("resume", "c", cwd=tmp_path)
        hooks(tmp_path, f"{ODD}# other\n")
        ran = archiver("resume", "c", "--hooks", "hooks.py", "--max-urls", "0", cwd=tmp_path)
    assert (changed.returncode, missing.returncode, ran.returncode) == (ExitCode.USAGE, ExitCode.USAGE, ExitCode.DONE)
    assert len(changed.stderr.splitlines()) == len(missing.stderr.splitlines()) == 1
    assert "it has changed since it was named for this crawl" in changed.stderr
    assert f"--hooks {tmp_path / 'hooks.py'}" in changed.stderr
    assert "No such file or directory; put it back" in missing.stderr


@pytest.mark.parametrize("command", ["resume", "rebuild"])
def test_the_file_that_a_received_collection_names_does_not_run(tmp_path: Path, command: str) -> None:
    with RawServer({"/": ok(page("F"))}) as server:
        archiver("crawl", *OPTIONS[:-2], server.url(), cwd=tmp_path)
    hooks(tmp_path, "open('ran', 'w')\ndef judge(link, page): ...\n")
    path = tmp_path / "c" / "crawl.toml"
    path.write_text(path.read_text().replace('\nhooks = ""', f'\nhooks = "{tmp_path / "hooks.py"}"'))
    assert str(tmp_path) in path.read_text()
    ran = archiver(command, "c", cwd=tmp_path)
    assert ran.returncode == ExitCode.USAGE
    assert "you have not named" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not (tmp_path / "ran").exists()


def test_an_installed_extractor_reads_its_media_type_and_is_named(tmp_path: Path) -> None:
    info = tmp_path / "site" / "archiver_book-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: archiver-book\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[archiver.extractors]\napplication/x-book = book:links\n")
    (tmp_path / "site" / "book.py").write_text("def links(document):\n    return document.text.split()\n")
    site = {"/": ok(page("F", ["/book"])), "/book": ok("/one /two", "application/x-book"), "/one": ok(page("1"))}
    seen = []
    for number, options in enumerate([(), ("--plugins", "off")]):
        with RawServer(site) as server:
            ran = subprocess.run(
                [*COMMAND, "crawl", "-o", f"c{number}", "--rate", "0", "--probe", "off", *options, server.url()],
                cwd=tmp_path,
                env={**environment(), "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path / 'site'}"},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        assert ran.returncode == ExitCode.DONE, ran.stderr
        seen.append((targets(server), "application/x-book (archiver-book 1.2)" in ran.stderr))
    assert seen == [({"/", "/book", "/one", "/two"}, True), ({"/", "/book"}, False)]
    assert b"extractor: application/x-book (archiver-book 1.2)\r\n" in content(tmp_path / "c0")
