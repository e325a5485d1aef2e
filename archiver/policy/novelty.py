"""Decide whether a page shows something that its site has not shown before. Pure, and bounded in memory.

A page is compared by its blocks.

The seen-content filter is a table of 64-bit fingerprints. Each has one place, which keeps 26 more of its bits and how
often it came. What does not fit is forgotten, and counts as new later: that costs a request and loses nothing. The
table is small enough for the processor's caches, because waiting for memory cost more than everything else here.

Blocks are compared as raw bytes. Only new ones are analysed, and only as many as the answer needs. A large page with
something new at its beginning costs least: we neither read nor remember the rest, so it can be new once more later. A
site has a limited amount of that, so a trap still ends. Pages that may come again under another URL (a query, a
session, a print view) are remembered in full samples. A page with nothing new is read in full.
"""

import re
from array import array
from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from archiver import url
from archiver.policy.page_blocks import (
    BLOCK,
    LONGEST_BLOCK,
    MOST_ANALYSED,
    SHORTEST_COPY,
    BlockText,
    block_text,
    blocks,
    heading,
    is_link,
    opening,
    others,
    outward_links,
    own_words,
)
from archiver.policy.patterns.variety import Variety

READ = 8 << 10  # bytes of a page that is read whole …
READ_ALL = 128 << 10  # … and of one whose parts show nothing new

PLACES = 1 << 20  # four megabytes
OFTEN = 15  # counted so far
_KEPT = 34  # the bits above these are kept, except the four that hold the count


class SeenContent:
    """Remembers numbers of 64 bits."""

    def __init__(self, places: int = PLACES) -> None:
        self._places = array("i", bytes(4 * places))
        self._where = places - 1

    def times(self, thing: int) -> int:
        """Add *thing*. Return how often it was added before."""
        count = self.look(thing)
        self._places[thing & self._where] = (thing >> _KEPT & ~OFTEN) + min(count + 1, OFTEN)
        return count

    def look(self, thing: int) -> int:
        """Return how often *thing* was added."""
        known = self._places[thing & self._where]
        return known & OFTEN if known | OFTEN == thing >> _KEPT | OFTEN else 0

    def unseen(self, blocks: Iterable[bytes], salt: int) -> tuple[list[bytes], list[bytes]]:
        """Add *blocks*; return the new ones, and those that are known from only a few pages."""
        places, where, unseen, few = self._places, self._where, list[bytes](), list[bytes]()
        for block in blocks:  # as `times`, without its calls
            thing = hash(block) ^ salt
            at = thing & where
            known, full = places[at], thing >> _KEPT | OFTEN
            if known | OFTEN != full or not known & OFTEN:
                places[at] = full - OFTEN + 1
                unseen.append(block)
            elif known != full:
                places[at] = known + 1
                few.append(block)
        return unseen, few


MANY_DIGITS = 6  # of at least two new numbers: a row of a table; a counter is one number
MANY_NUMBERS = 12  # in JSON with known words: data; fewer count its parts
LONGEST_OF_COPY = 8  # blocks
LONGEST_OF_OPENING = 2  # blocks, besides the heading
SHORTEST_WORDS = 4  # bytes: less is a label
LONGEST_URL_NUMBER = 18  # digits of a number in a URL that matter
LONGEST_NUMBER = 15  # digits; a longer number is a token …
_CLOCK = range(1_500_000_000, 2_500_000_000)  # … and a number in this range is the time of the answer, in seconds
_MILLISECONDS = 13  # digits of it
SLOPES = 4096  # templates, each with two examples
MOST_NUMBERS = 8  # of a block that are compared with those of the URL
_NUMBER = re.compile(rb"[0-9]+")
OF_THE_ANSWER = frozenset(  # next to these words a number describes the answer, not the page
    "generated rendered seconds sec secs ms msec msecs \N{MICRO SIGN}s \N{GREEK SMALL LETTER MU}s took queries query "
    "memory visitor visitors hits request uptime besucher visites visitas cache cached elapsed load online users "
    "session version build".encode().split()
)


class PageNovelty(Enum):
    """The kinds of news that a page brings."""

    NEW = "new"  # new words, or a new file that is not markup
    NUMBERS = "numbers"  # many new numbers among known words
    NUMBER = "number"  # some new numbers
    COUNTER = "counter"  # a new number, but no page of another pattern links here
    COPY = "copy"  # nothing new, but a text that only a few pages show
    NOTHING = "nothing"


class Place(NamedTuple):
    """The place of a page: its URL, pattern and host."""

    address: str
    shape: str  # its pattern
    host: str
    salt: int  # keeps blocks of one host apart from those of another


class Novelty:
    """Remembers the content of a crawl's pages and tells what is new on a page."""

    def __init__(self, variety: Variety | None = None) -> None:
        self._variety = variety or Variety()
        self._shown = SeenContent()
        self._slopes: OrderedDict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = OrderedDict()

    def is_new(self, host: str, content: int) -> bool:
        """Add *content*. Return True if it is new on *host*."""
        return not self._shown.times(hash((host, content)))

    def worth(self, address: str, shape: str, page: bytes, *, markup: bool, varied: bool = False) -> PageNovelty:
        """Return what is new on the *page* at *address*, with the pattern *shape*. *varied*: it may have variants."""
        host = url.origin(address)
        if not markup:
            return self._worth_of_data(page, host)
        at = Place(address, shape, host, hash(host))
        if len(page) > READ:
            return self._worth_of_large(page, at, varied=varied)
        found = blocks(page)
        unseen, few = self._shown.unseen(found, at.salt)
        worth = self._judge(unseen, few, at)
        self._compare(page, at, found, unseen, worth)
        return worth

    def _compare(self, page: bytes, at: Place, found: list[bytes], unseen: list[bytes], worth: PageNovelty) -> None:
        """Compare the blocks *found* on a page with a query with those of its pattern."""
        if "?" not in at.address:
            return
        if worth is PageNovelty.NEW or worth is PageNovelty.NUMBERS:
            self._variety.saw_new(at.shape, found, unseen)
        else:
            self._variety.saw_barren(at.address, at.shape, page, found, unseen)

    def _worth_of_data(self, page: bytes, host: str) -> PageNovelty:
        """Return what is new in a *page* that is not markup. Of short JSON, numbers alone are no new words."""
        times = self._shown.times(hash((host, _fingerprint(page)))) if page else OFTEN
        if times:
            return PageNovelty.COPY if times < OFTEN else PageNovelty.NOTHING
        if page[:1] in (b"{", b"[") and len(page) <= READ:
            words, numbers = _NUMBER.subn(b"0", page)
            if self._shown.times(hash((host, words))):
                return PageNovelty.NUMBERS if numbers >= MANY_NUMBERS else PageNovelty.NUMBER
        return PageNovelty.NEW

    def _worth_of_large(self, page: bytes, at: Place, *, varied: bool) -> PageNovelty:
        """Return what is new on a large *page*. Read on after an opening with news only if the page is *varied*."""
        start = heading(page)
        first, opened = opening(page, start)
        unseen, specific = self._shown.unseen(first, at.salt)
        brings = self._opens_with_news(unseen, at)
        if brings and not varied:
            return PageNovelty.NEW
        rest = others(page, start, opened)
        more, few = self._shown.unseen(rest, at.salt)
        found = PageNovelty.NEW if brings else self._judge(unseen + more, specific + few, at)
        self._compare(page, at, first + rest, unseen + more, found)
        if found is PageNovelty.NOTHING:
            read = frozenset(first + rest)  # they are known from this page now
            unread = [block for block in blocks(page[:READ_ALL]) if block not in read]
            found = self._judge(*self._shown.unseen(unread, at.salt), at)
        return found

    def _opens_with_news(self, unseen: list[bytes], at: Place) -> bool:
        """Return True if the heading (the first of the *unseen* blocks) or one of the longest others has new words."""
        if not unseen:
            return False
        own = own_words(at.address)
        if self._has_news(unseen[0], own, at):
            return True
        longest = sorted(unseen[1:], key=len, reverse=True)[:LONGEST_OF_OPENING]
        return any(self._has_news(block, own, at) for block in longest)

    def _has_news(self, block: bytes, own: frozenset[bytes], at: Place) -> bool:
        """Return True if the beginning of *block* has new words."""
        if is_link(block):
            return False
        words = block_text(block, own).words
        return len(words) >= SHORTEST_WORDS and not self._shown.times(hash((at.host, words)))

    def _judge(self, unseen: list[bytes], few: list[bytes], at: Place) -> PageNovelty:
        """Return what the *unseen* blocks of a page bring; a *few* pages have shown the others."""
        own = own_words(at.address) if unseen or few else frozenset()
        digits = several = 0
        copied = False
        longest = sorted(unseen, key=len, reverse=True)[:MOST_ANALYSED]  # a long block is most likely to decide
        for block in longest:
            if is_link(block):
                continue
            for most in (BLOCK, LONGEST_BLOCK) if len(block) > BLOCK else (BLOCK,):
                text = block_text(block, own, most)
                if len(text.words) >= SHORTEST_WORDS:
                    times = self._shown.times(hash((at.host, text.words)))
                    if not times:
                        self._variety.brought(at.shape, text.words)
                        return PageNovelty.NEW
                    copied = copied or (times < OFTEN and len(text.words) >= SHORTEST_COPY)
                if text.numbers:
                    more = self._digits(at, text)
                    digits, several = digits + more, several + (len(text.numbers) if more else 0)
            if several > 1 and digits >= MANY_DIGITS:
                return PageNovelty.NUMBERS
        if self._new_links(longest, own, at):
            return PageNovelty.NEW
        if digits:
            return PageNovelty.NUMBER
        return PageNovelty.COPY if copied or _is_copy(few, own) else PageNovelty.NOTHING

    def _new_links(self, blocks: Iterable[bytes], own: frozenset[bytes], at: Place) -> int:
        """Add the links in *blocks* to other sites and to mail addresses. Return how many are new."""
        return sum(
            not self._shown.times(hash((at.host, words, "link")))
            for block in blocks
            if b"//" in block or b"mailto:" in block
            for words in outward_links(block, at.address, own)
            if len(words) >= SHORTEST_WORDS
        )

    def _digits(self, at: Place, text: BlockText) -> int:
        """Return the number of digits of new numbers in a block whose words are known."""
        if not OF_THE_ANSWER.isdisjoint(text.words.split()):
            return 0
        numbers = [number for number in text.numbers if not _is_of_the_answer(number)]
        if not numbers or self._shown.times(hash((at.host, text.words, tuple(numbers)))):
            return 0
        if text.words and self._is_everywhere(at.host, at.shape, text.words):
            return 0
        if self._follows(at.address, at.shape, text.words, numbers):
            return 0
        self._variety.brought(at.shape, text)
        return sum(map(len, numbers))

    def _is_everywhere(self, host: str, shape: str, words: bytes) -> bool:
        """Return True if pages of several patterns have *words*, as with a counter at the foot of each page."""
        key = hash((host, words, "patterns"))
        first = not self._shown.times(hash((host, words, shape)))
        seen = self._shown.times(key) if first else self._shown.look(key)
        return seen >= 3

    def _follows(self, address: str, shape: str, words: bytes, numbers: list[bytes]) -> bool:
        """Return True if *numbers* follow from those of the URL, as "1221 to 1240" does from page 62."""
        given = tuple(int(number) for number in _url_numbers(address)[-MOST_NUMBERS:])
        shown = tuple(int(number) for number in numbers[:MOST_NUMBERS])
        key = hash((shape, words, len(given), len(shown)))
        examples = self._slopes.pop(key, [])
        follows = len(examples) == 2 and all(
            any(_is_on_line(a, b, x, y, u, v) for a, b, u in zip(*(e[0] for e in examples), given, strict=True))
            for x, y, v in zip(*(e[1] for e in examples), shown, strict=True)
        )
        self._slopes[key] = [*examples[-1:], (given, shown)]
        if len(self._slopes) > SLOPES:
            self._slopes.popitem(last=False)
        return follows


def _is_copy(few: list[bytes], own: frozenset[bytes]) -> bool:
    """Return True if one of the longest of these blocks, which a *few* pages show, is a text and no link."""
    longest = sorted(few, key=len, reverse=True)[:LONGEST_OF_COPY]
    return any(not is_link(block) and len(block_text(block, own).words) >= SHORTEST_COPY for block in longest)


def _url_numbers(address: str) -> list[str]:
    """Return the numbers in the path and the query of *address*."""
    return [number[:LONGEST_URL_NUMBER] for number in re.findall("[0-9]+", address[address.index("/", 8) :])]


def _is_on_line(a: int, b: int, x: int, y: int, u: int, v: int) -> bool:
    """Return True if (u, v) is on the line through (a, x) and (b, y), or if x, y and v are equal."""
    return (x == y == v) or (a != b and (v - x) * (b - a) == (y - x) * (u - a))


def _is_of_the_answer(number: bytes) -> bool:
    """Return True if *number* is most likely a clock or a token."""
    return len(number) > LONGEST_NUMBER or len(number) == _MILLISECONDS or (len(number) == 10 and int(number) in _CLOCK)


def _fingerprint(page: bytes) -> int:
    """Return the fingerprint of a *page* that is not markup."""
    third = READ // 3
    middle = len(page) // 2
    return hash((len(page), page[:third], page[middle : middle + third], page[-third:]))
