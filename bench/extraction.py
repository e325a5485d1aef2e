"""Compare the speed of link extraction with other libraries: `python bench/extraction.py [FOLDER]`.

Everything runs on one core, in one process, on the same bytes: the pages and style sheets below FOLDER (by default
Python's manual as Debian packages it), and sitemaps made here. Each peer does the work nearest to ours. It decodes
the bytes, collects every a[href], area[href], link[href], img[src] and script[src], and joins them with the page's
address. In style sheets it reads url() and @import, in sitemaps the addresses. Ours also extracts everything else
that a page names. The program prints medians of CPU time over the rounds. Peers that are not installed are named and
left out.
"""

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import testsite  # bench/testsite.py: this folder is first on the path

from archiver.extract import Document, links

MANUAL = Path("/usr/share/doc/python3.11/html")
BASE = "http://example.org/"
CHOSEN = "a[href], area[href], link[href], img[src], script[src]"
ENTRIES = 5000  # of one sitemap
OURS, RIVAL = "archiver", "Scrapy"

Read = Callable[[str, bytes], Iterable[str]]
"""From a body and its address to the URLs in it."""


@dataclass(frozen=True)
class Corpus:
    """Bodies of one media type, by address."""

    name: str
    media_type: str
    bodies: Sequence[tuple[str, bytes]]

    @property
    def megabytes(self) -> float:
        """Their size."""
        return sum(len(body) for _, body in self.bodies) / 1e6


def ours(media_type: str) -> Read:
    """Return the reader of this project."""
    return lambda url, body: [link.url for link in links(Document(url, media_type, None, body)).links]


def scrapy_pages() -> Read:
    """Return Scrapy's LinkExtractor, set to accept pictures, styles, scripts and all file names."""
    response, extractor = import_module("scrapy.http"), import_module("scrapy.linkextractors")
    extract = extractor.LinkExtractor(
        tags=("a", "area", "link", "img", "script"), attrs=("href", "src"), deny_extensions=[]
    )
    return lambda url, body: [link.url for link in extract.extract_links(response.HtmlResponse(url, body=body))]


def soup_pages(parser: str) -> Callable[[], Read]:
    """Return a reader with BeautifulSoup on one of its parsers."""

    def make() -> Read:
        soup = import_module("bs4").BeautifulSoup
        if parser != "html.parser":
            import_module(parser)

        def read(url: str, body: bytes) -> list[str]:
            chosen = soup(body, parser).find_all(["a", "area", "link", "img", "script"])
            found = (tag.get("src" if tag.name in ("img", "script") else "href") for tag in chosen)
            return [urljoin(url, reference) for reference in found if reference]

        return read

    return make


def selectolax_pages() -> Read:
    """Return a reader with selectolax, on its faster engine."""
    parser = import_module("selectolax.lexbor").LexborHTMLParser

    def read(url: str, body: bytes) -> list[str]:
        attributes = (node.attributes for node in parser(body).css(CHOSEN))
        return [urljoin(url, found.get("href") or found.get("src") or "") for found in attributes]

    return read


def tinycss2_sheets() -> Read:
    """Return a reader with tinycss2's tokens; Scrapy and the others do not read style sheets."""
    tinycss2 = import_module("tinycss2")

    def read(url: str, body: bytes) -> list[str]:
        rules, _ = tinycss2.parse_stylesheet_bytes(body)
        found: list[str] = []
        waiting = list(rules)
        while waiting:
            node = waiting.pop()
            if node.type == "url" or (node.type == "function" and node.lower_name == "url"):
                found.append(node.value if node.type == "url" else "".join(a.value for a in node.arguments))
            waiting += [*(getattr(node, "prelude", None) or ()), *(getattr(node, "content", None) or ())]
            if node.type == "at-rule" and node.lower_at_keyword == "import":
                found += [part.value for part in node.prelude if part.type == "string"]
        return [urljoin(url, reference) for reference in found]

    return read


def scrapy_sitemaps() -> Read:
    """Return the reader of Scrapy's SitemapSpider: it makes a request of each entry, which normalizes the URL."""
    sitemap, request = import_module("scrapy.utils.sitemap").Sitemap, import_module("scrapy.http").Request
    return lambda _, body: [request(entry["loc"]).url for entry in sitemap(body)]


def soup_sitemaps() -> Read:
    """Return a reader with BeautifulSoup on lxml's XML parser."""
    soup = import_module("bs4").BeautifulSoup
    import_module("lxml")
    return lambda url, body: [urljoin(url, tag.get_text()) for tag in soup(body, "lxml-xml").find_all("loc")]


PEERS: dict[str, dict[str, tuple[str, Callable[[], Read]]]] = {  # by corpus and name: what to install, and the reader
    "HTML": {
        RIVAL: ("scrapy", scrapy_pages),
        "BeautifulSoup, lxml": ("beautifulsoup4 lxml", soup_pages("lxml")),
        "BeautifulSoup, html.parser": ("beautifulsoup4", soup_pages("html.parser")),
        "selectolax": ("selectolax", selectolax_pages),
    },
    "CSS": {"tinycss2": ("tinycss2", tinycss2_sheets)},
    "sitemaps": {
        RIVAL: ("scrapy", scrapy_sitemaps),
        "BeautifulSoup, lxml-xml": ("beautifulsoup4 lxml", soup_sitemaps),
    },
}


def corpora(folder: Path, most: int) -> list[Corpus]:
    """Return at most so many pages, spread evenly over the folder, all its style sheets, and sitemaps of its pages."""
    pages = sorted(folder.rglob("*.html"))
    names = [BASE + path.relative_to(folder).as_posix() for path in pages]
    chosen = list(zip(names, pages, strict=True))[:: max(1, -(-len(pages) // most))]
    sheets = [(f"{BASE}{path.relative_to(folder).as_posix()}", path) for path in sorted(folder.rglob("*.css"))]
    return [
        Corpus("HTML", "text/html", [(url, path.read_bytes()) for url, path in chosen]),
        Corpus("CSS", "text/css", [(url, path.read_bytes()) for url, path in sheets]),
        Corpus("sitemaps", "application/xml", [(f"{BASE}{part}.xml", sitemap(names, part)) for part in range(4)]),
    ]


def sitemap(names: Sequence[str], part: int) -> bytes:
    """Return a sitemap that repeats *names*, each with another query."""
    entries = "\n".join(
        f"<url><loc>{names[number % len(names)]}?part={part}&amp;n={number}</loc><lastmod>2024-01-31</lastmod></url>"
        for number in range(ENTRIES)
    )
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{entries}\n</urlset>'.encode()


def readers(corpus: Corpus) -> dict[str, Read]:
    """Return the installed readers of *corpus*; name the others on standard error."""
    found = {OURS: ours(corpus.media_type)}
    for name, (packages, make) in PEERS[corpus.name].items():
        try:
            found[name] = make()
        except ImportError:
            print(f"{corpus.name}: {name} is left out; it needs: pip install {packages}", file=sys.stderr)
    return found


def seconds(read: Read, corpus: Corpus) -> tuple[float, int]:
    """Return the CPU time for the whole *corpus* and the number of other URLs in each body."""
    gc.collect()
    began = time.process_time()
    results = [(url, list(read(url, body))) for url, body in corpus.bodies]
    took = time.process_time() - began
    return took, sum(len(elsewhere(url, found)) for url, found in results)


def elsewhere(url: str, found: Iterable[str]) -> set[str]:
    """Return those of *found* that lead to other web addresses; anchors within the page do not count."""
    return {address for address in (urldefrag(each).url for each in found) if address.startswith("http")} - {url}


def measure(corpus: Corpus, rounds: int) -> None:
    """Let the readers read *corpus* in turn, round by round, and print the results."""
    known = readers(corpus)
    times: dict[str, list[float]] = {name: [] for name in known}
    found: dict[str, int] = {}
    for _ in range(rounds):
        for name, read in known.items():
            took, found[name] = seconds(read, corpus)
            times[name].append(took)
    print(f"\n{corpus.name}: {len(corpus.bodies)} documents, {corpus.megabytes:.1f} MB, medians of {rounds} rounds")
    print(f"{'':<28}{'documents/s':>12}{'MB/s':>9}{'URLs':>9}{'ours is faster':>17}")
    best = statistics.median(times[OURS])
    for name, each in times.items():
        took = statistics.median(each)
        rates = f"{len(corpus.bodies) / took:12.0f}{corpus.megabytes / took:9.1f}{found[name]:9d}"
        print(f"{name:<28}{rates}{'' if name == OURS else f'{took / best:10.1f} times'}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", nargs="?", type=Path, help=f"a site's files (by default {MANUAL}, else made ones)")
    arguments.add_argument("--pages", type=int, default=100, help="at most so many (%(default)s)")
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or (MANUAL if MANUAL.is_dir() else Path(made))
        if folder == Path(made):
            testsite.make(folder, given.pages)
        for corpus in corpora(folder, given.pages):
            if corpus.bodies:
                measure(corpus, given.rounds)


if __name__ == "__main__":
    main()
