"""What site generators keep in their pages for searches and loaders is captured, by default settings."""

from pathlib import Path

import pytest

from archiver.model import ExitCode
from fixtures import bundled
from fixtures.archives import stored
from fixtures.crawl_in_process import crawl
from fixtures.generated import SITES, Built
from fixtures.generated_applications import APPLICATIONS
from fixtures.generated_docs import DOCUMENTATION
from fixtures.generated_lists import MANUALS
from fixtures.rawserver import NOT_FOUND, RawServer, keep
from fixtures.sites import ok

TYPES = {
    "js": "text/javascript",
    "css": "text/css",
    "json": "application/json",
    "md": "text/markdown",
    "html": "text/html",
    "": "text/html",
}
BUILT = {**SITES, **DOCUMENTATION, **MANUALS, **APPLICATIONS, **bundled.SITES}
ABOUT_THE_HOST = {"/robots.txt", "/favicon.ico", "/sitemap.xml", "/sitemap_index.xml"}


def served(target: str) -> str:
    """Return the media type of the file at *target*; pages may have no ending."""
    _, dot, ending = target.partition("?")[0].rpartition("/")[2].rpartition(".")
    return TYPES.get(ending if dot else "", "application/octet-stream")


START = "/portal/of/all/start.html"  # a page of another folder, from which nothing can be resolved


@pytest.mark.parametrize("start", ["", START], ids=["its own start", "another page"])
@pytest.mark.parametrize("name", BUILT)
def test_a_built_site_is_captured_with_what_its_scripts_ask_for(name: str, start: str, tmp_path: Path) -> None:
    site: Built = BUILT[name]
    routes = {target: ok(body, served(target)) for target, body in site.files.items()}
    routes[START] = ok(f'<p><a href="{site.seed}">Manual</a></p>'.encode(), "text/html")
    with RawServer(routes, keep(NOT_FOUND)) as server:
        assert crawl(tmp_path, server.url(start or site.seed)).code is ExitCode.DONE
        root = server.url("")
    captured = {each.url.removeprefix(root): each.status for each in stored(tmp_path)}
    assert site.asked - captured.keys() == set()
    assert captured.keys() - ABOUT_THE_HOST - site.files.keys() - {start} == site.wrong
