"""Choose the pages of an archive that are looked at: seeds first, then a few of each URL pattern."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from archiver import url
from archiver.collection.lookup import Holdings
from archiver.policy.url_forms import pattern
from archiver.warc.cdxj import IndexEntry, is_plain, is_revisit

PAGE_TYPES = ("text/html", "application/xhtml+xml")
MOST = 100  # pages of a sample
MAX_PATTERNS = 200_000  # patterns that are remembered; a page of a further one is not chosen


@dataclass(frozen=True, slots=True)
class PageToView:
    """A page and the date of its newest capture, 14 digits."""

    url: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class ChosenPages:
    """The pages to look at, and how many were left out."""

    pages: tuple[PageToView, ...]
    left_out: int


def named_pages(holdings: Holdings, addresses: Iterable[str]) -> Iterator[tuple[str, PageToView | None]]:
    """Yield each of *addresses* with its page; None if the archive has none."""
    for address in addresses:
        entry = holdings.closest(url.canonical(address) or address)
        yield address, None if entry is None else PageToView(entry.url, entry.timestamp[:14])


def choose(holdings: Holdings, seeds: Iterable[str], each: int) -> ChosenPages:
    """Return the *seeds* that are archived, and up to *each* pages of every pattern, at most `MOST`; 0: all pages.

    Of a pattern, those with a short URL are taken: they are seldom details of another page.
    """
    chosen = {page.url: page for _, page in named_pages(holdings, seeds) if page is not None}
    found: dict[str, list[PageToView]] = {}
    number: Counter[str] = Counter()
    for page in _pages(holdings):
        shape = pattern(page.url)
        if shape not in found and len(found) >= MAX_PATTERNS:
            shape = ""
        number[shape] += 1
        kept = found.setdefault(shape, [])
        kept.append(page)
        if each and len(kept) > each:
            kept.remove(max(kept, key=lambda page: (len(page.url), page.url)))
    for kept in found.values():
        chosen.update((page.url, page) for page in kept)
    total = number.total()
    pages = sorted(chosen.values(), key=lambda page: page.url)
    first = [page for page in chosen.values() if page.url in set(seeds)]
    every = max(1, -(-len(pages) // MOST)) if each else 1
    taken = tuple(dict.fromkeys((*first, *pages[::every])))
    return ChosenPages(taken, max(0, total - len(taken)))


def _pages(holdings: Holdings) -> Iterator[PageToView]:
    """Yield every page with its newest capture."""
    newest: PageToView | None = None
    page_of: dict[str, bool] = {}
    key = ""
    for entry in holdings.entries():
        if entry.key != key:
            if newest is not None:
                yield newest
            newest, key, page_of = None, entry.key, {}
        if not is_plain(entry) or not _is_page(entry, page_of):
            continue
        newest = PageToView(entry.url, entry.timestamp[:14])
    if newest is not None:
        yield newest


def _is_page(entry: IndexEntry, page_of: dict[str, bool]) -> bool:
    """Return True for a page with status 200; a revisit is one if a capture with its digest was."""
    if not is_revisit(entry):
        page_of[entry.digest] = entry.status == "200" and entry.mime in PAGE_TYPES
        return page_of[entry.digest]
    return page_of.get(entry.digest, False)
