"""Patterns with a query whose pages differ from each other, although each block of them was shown before. Pure.

The entries of a catalogue are such pages: each has a value that others have too. A form to quote a message, or a print
view, repeats a page of another pattern, and a form to log in is the same each time. So a block counts only if its
pattern was the first to show it. Pages differ if they show different sets of such blocks, or if their titles name the
values in their URLs, and the first pages do so already. A page that repeats another pattern does not count.

Invariant: what is forgotten counts as repeated, so pages are held as if this rule did not exist.
"""

from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence

from archiver.policy.page_blocks import MOST_ANALYSED, SHORTEST_COPY, block_text, is_link, own_words, title_words
from archiver.policy.url_forms import values_of_query

PLACES = 1 << 16  # blocks: half a megabyte
MOST_PATTERNS = 256
ENOUGH = 8  # pages that differ
MOST_REPEATS = 4  # of as many pages, one may repeat another pattern …
SOON = 8  # … and of as many, one must differ from all before: what the filter of content forgets does too, but seldom

Shown = tuple[int, frozenset[str]]  # the sum of blocks, and the values in the title


class _Pages:
    """The barren pages of one pattern."""

    def __init__(self) -> None:
        self.shown: set[Shown] = set()
        self.number = 0
        self.repeats = 0


class Variety:
    """Remembers which pattern was the first to show a block. Not thread-safe."""

    def __init__(self) -> None:
        self._first = array("q", bytes(8 * PLACES))  # the lowest bit: shown first by this pattern
        self._pages: OrderedDict[str, _Pages] = OrderedDict()

    def differs(self, shape: str) -> bool:
        """Return True if the barren pages of the pattern *shape* differ from each other."""
        pages = self._pages.get(shape)
        return pages is not None and len(pages.shown) >= ENOUGH and pages.repeats * MOST_REPEATS <= pages.number

    def restore(self, shape: str) -> None:
        """Remember that an earlier run saw that the barren pages of the pattern *shape* differ."""
        if len(self._pages) < MOST_PATTERNS:
            pages = self._pages.setdefault(shape, _Pages())
            pages.shown.update((number, frozenset[str]()) for number in range(ENOUGH))
            pages.number = max(pages.number, ENOUGH)

    def brought(self, shape: str, text: object) -> None:
        """Remember that a page of the pattern *shape* was the first of its site to show *text*."""
        if "?" in shape:
            self._add(hash((shape, text)), own=True)

    def saw_new(self, shape: str, blocks: Iterable[bytes], unseen: Collection[bytes]) -> None:
        """Take in the *blocks* of a page that is new. Its site had not shown those that are *unseen*."""
        fresh = set(unseen)
        for block in blocks:
            self._add(hash((shape, block)), own=block in fresh)

    def saw_barren(self, address: str, shape: str, page: bytes, blocks: Sequence[bytes], unseen: list[bytes]) -> None:
        """Take in a page of which each text is known."""
        pages = self._pages.setdefault(shape, _Pages())
        self._pages.move_to_end(shape)
        if len(self._pages) > MOST_PATTERNS:
            self._pages.popitem(last=False)
        fresh, own = set(unseen), own_words(address)
        shown, repeats = 0, False
        for block in blocks[:MOST_ANALYSED]:
            if is_link(block):
                continue
            text = block_text(block, own) if block in fresh else None
            keys = [hash((shape, block))] if text is None else [hash((shape, text)), hash((shape, text.words))]
            if found := next((key for key in keys if self._is_own(key)), 0):
                shown += found
            elif not any(map(self._is_known, keys)):
                self._add(keys[-1], own=False)
                repeats = repeats or len((text or block_text(block, own)).words) >= SHORTEST_COPY
        pages.number += 1
        pages.repeats += repeats
        if not repeats and len(pages.shown) < ENOUGH and pages.number <= SOON * (len(pages.shown) + 1):
            pages.shown.add((shown, _named(address, page)))

    def _add(self, key: int, *, own: bool) -> None:
        if not self._is_known(key):
            self._first[key & PLACES - 1] = key & -2 | own

    def _is_known(self, key: int) -> bool:
        return self._first[key & PLACES - 1] | 1 == key | 1

    def _is_own(self, key: int) -> bool:
        return self._first[key & PLACES - 1] == key | 1


def _named(address: str, page: bytes) -> frozenset[str]:
    """Return the values in the query of *address* that the title of *page* names."""
    words = title_words(page)
    return frozenset(value for value in values_of_query(address) if value.lower().encode("utf-8", "replace") in words)
