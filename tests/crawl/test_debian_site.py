"""A whole real site: Python's manual as Debian packages it, served on loopback.

A browser loads some of its pages: every 120th, with ARCHIVER_LONG every 40th, with ARCHIVER_EVERY=10 every tenth.
ARCHIVER_SITE names the folder of another site for the browser; the other checks expect Python's manual.
"""

import json
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from cdxj_indexer.main import CDXJIndexer
from fastwarc.warc import ArchiveIterator
from warcio.checker import Checker

from archiver.model import ExitCode
from archiver.policy.url_forms import pattern
from archiver.policy.views import ViewSample, need_of
from fixtures import browser, devtools
from fixtures.archives import Stored, states, stored, warcs
from fixtures.command import archiver
from fixtures.debian import NotToBeHad, python_manual, sqlite_manual
from fixtures.folder import content_type, files, serve_tree
from fixtures.reachable_urls import reachable
from fixtures.sites import UNNAMED

EVERY = int(os.environ.get("ARCHIVER_EVERY", "40" if os.environ.get("ARCHIVER_LONG") else "120"))

pytestmark = [pytest.mark.site, pytest.mark.slow]


@pytest.mark.parametrize("manual", [python_manual, sqlite_manual])
def test_a_browser_would_show_few_of_its_pages(manual: Callable[[Path], Path], tmp_path: Path) -> None:
    """All pages have scripts, which bring nothing: `--browser auto` shows the first of some patterns, and samples."""
    try:
        root = manual(tmp_path)
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    sample, shown = ViewSample(every=False), 0
    pages = sorted(root.rglob("*.html"))
    for path in pages:
        shape = pattern(f"http://host/{path.relative_to(root)}")
        if sample.takes("http://host", shape, need_of(path.read_bytes())):
            sample.ended("http://host", shape, brought=False)
            shown += 1
    assert len(pages) > 400
    assert 0 < shown < len(pages) / 20


class Site:
    """The site, a crawl of it, and its reachable URLs."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.files = files(root)
        self.directory = folder / "c"
        with serve_tree(root) as server:
            self.base = server.url("")
            options = ("-o", "c", "--rate", "0", "--host-concurrency", "8", "--warc-size", "4000000")
            ran = archiver("crawl", server.url(), *options, cwd=folder)
            assert ran.returncode == ExitCode.DONE, ran.stderr
            self.asked = server.log.targets()
        self.stored = stored(self.directory)
        self.reachable = {url.removeprefix(self.base) for url in reachable(self.base + "/", self._look)}

    def _look(self, url: str) -> tuple[str, bytes] | None:
        path = self.files.get(url.removeprefix(self.base).partition("?")[0])
        return (content_type(path), path.read_bytes()) if path else None

    def target(self, record: Stored) -> str:
        """Return the requested target."""
        return record.url.removeprefix(self.base)


@pytest.mark.timeout(1200)
def test_a_real_site(tmp_path: Path) -> None:
    """One test for all checks, so that the site is crawled once and walked once by independent code."""
    named = os.environ.get("ARCHIVER_SITE")
    try:
        site = Site(Path(named) if named else python_manual(tmp_path / "manual"), tmp_path)
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    if devtools.command() is not None:
        _a_browser_asks_for_nothing_that_was_not_captured(site, tmp_path)
    if named:
        return
    _what_is_reachable_is_captured_and_nothing_else(site)
    _every_payload_is_the_file(site)
    _others_read_every_record(site)
    _the_index_is_what_cdxj_indexer_writes(site, tmp_path)
    _verify_finds_nothing(site)


def _what_is_reachable_is_captured_and_nothing_else(site: Site) -> None:
    assert len(site.reachable) > 400
    listed = re.search(r"\"?docnames\"?:\s?(\[[^\]]*\])", site.files["/searchindex.js"].read_text("utf-8"))
    assert listed is not None
    found_by_search = {f"/{name}.html" for name in json.loads(listed[1])}
    assert {site.target(record) for record in site.stored} == site.reachable | found_by_search | UNNAMED - {
        "/favicon.ico"
    } | {
        "/_static/glossary.json",  # only the script of the search names it …
        "/_static/plus.png",  # … and another script this one
        "/robots.txt",
    }
    assert len(site.stored) == len(site.asked) == len(set(site.asked))
    assert set(states(site.directory).values()) == {"archived"}


def _every_payload_is_the_file(site: Site) -> None:
    for record in site.stored:
        path = site.files.get(site.target(record).partition("?")[0])
        if path is None:  # links into other packages, which are not installed
            assert record.status == "404"
        else:
            assert (record.status, record.body) == ("200", path.read_bytes())


def _a_browser_asks_for_nothing_that_was_not_captured(site: Site, tmp_path: Path) -> None:
    """A browser loads pages from the server and scrolls to their ends; the server logs its requests."""
    captured = {site.target(record) for record in site.stored}
    pages = sorted(target for target in captured if target.endswith(".html") and target in site.files)
    chosen = pages[::EVERY]
    with serve_tree(site.root) as server:
        browser.tour(map(server.url, chosen), tmp_path / "profile")
        asked = server.log.targets()
    print(f"{len(pages)} pages, {len(chosen)} loaded, {len(asked)} requests for {len(set(asked))} URLs")
    assert len(chosen) > 1
    assert set(chosen) < set(asked)
    assert set(asked) <= captured


def _others_read_every_record(site: Site) -> None:
    paths = warcs(site.directory)
    assert len(paths) > 2
    checker = Checker(_Options([str(path) for path in paths]))
    said = StringIO()
    with redirect_stdout(said):
        checker.process_all()
    assert checker.exit_value == 0
    assert "fail" not in said.getvalue()
    read = 0
    for path in paths:
        with path.open("rb") as file:
            for record in ArchiveIterator(file, parse_http=False):
                assert record.verify_block_digest()
                read += not path.name.endswith("-meta.warc.gz")
    assert read == 3 * len(site.stored) + len(paths) - 1


class _Options:
    """The options that warcio's command line passes to its checker."""

    verbose = False

    def __init__(self, inputs: list[str]) -> None:
        self.inputs = inputs


def _the_index_is_what_cdxj_indexer_writes(site: Site, tmp_path: Path) -> None:
    """Byte for byte, order included."""
    theirs = tmp_path / "theirs.cdxj"
    CDXJIndexer(str(theirs), [str(path) for path in warcs(site.directory)], sort=True).process_all()
    ours = site.directory / "indexes" / "index.cdxj"
    assert ours.read_bytes().splitlines() == theirs.read_bytes().splitlines()


def _verify_finds_nothing(site: Site) -> None:
    checked = archiver("verify", str(site.directory), cwd=site.directory)
    assert checked.returncode == ExitCode.DONE, checked.stdout
