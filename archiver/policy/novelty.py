"""Decide whether a page shows something that its site has not shown before. Pure, and bounded in memory.

A page is compared by its blocks: the text between two tags that start or end a paragraph, a row, an item or a script. A
block counts without what follows from the URL of the page or changes at each visit: the text of links, the URL's own
words and numbers, dates, times of day and one-time tokens. Of a large page we read parts: at its heading, in its middle
and at its end.

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
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from archiver import url
from archiver.config.expressions import compiled

READ = 8 << 10  # bytes of a page that is read whole …
OPENING = 768  # … of a larger one below its heading, enough if they show something new …
PARTS = 3 << 10  # … and of its other parts …
READ_ALL = 128 << 10  # … and of one whose parts show nothing new
MOST_BLOCKS = 2000
BLOCK = 256  # bytes of a block that are analysed first …
LONGEST_BLOCK = 16 << 10  # … and if these bring nothing
DATED = 256  # bytes of a block that is searched for dates; longer blocks have other words too
MOST_DAYS = 64  # in one block: a month has no more
MENUS = 32 << 10  # bytes that are searched for a heading
FEW = 16  # blocks
LONGEST_URL_NUMBER = 18  # digits of a number in a URL that matter
SHORTEST_BLOCK = 4  # bytes; a shorter block is a number or a mark
ONCE = 16  # letters and digits mixed: a session id or a nonce
ONCE_LONG = 40  # letters alone

_BLOCK = re.compile(rb"</?+(?:d[dti]|h[1-6]|p(?:re)?|li|t(?:r|itle)|br|s(?:cript|ection)|option)[\s>v/]")
_UPPER = re.compile(rb"</?(?:P|TR|LI|D[DTI]|H[1-6]|BR)[\s>V/]")
_HEADING = b"<h1"
_OTHER_HEADING = re.compile(rb"<(?:main|article|H1)")
_HIDDEN = compiled(
    rb"<(?:(a|style|svg|button|time)\b[^>]*+>[^<]*+(?:<(?!/\1)[^<]*+)*+(?:</\1|\Z)"
    rb"|!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z))"
    rb"|\A[^<>]{0,400}+>|<[^>]*+>?",  # the rest of the tag that began the block, and any other tag
)
_ENTITY = re.compile(rb"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,10});")
_TOKEN = re.compile(rb"[0-9a-z\x80-\xff]++")
_DIGITS = re.compile(rb"[0-9]++")
_DIGIT = re.compile(rb"[0-9]")  # faster to find than several
_NAMES = (
    rb"jan(?:uary?|vier)?|feb(?:ruary?)?|m\xc3\xa4rz|mar(?:ch|s|zo)?|apr(?:il)?|avril|ma[iy]|june?|jui(?:n|llet)|jul[iy]?"
    rb"|aug(?:ust)?|ao\xc3\xbbt|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
    rb"|f\xc3\xa9vrier|septembre|octobre|novembre|d\xc3\xa9cembre|enero|febrero|abril|mayo|junio|julio|agosto|septiembre"
    rb"|octubre|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    rb"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    rb"|mon|tue|wed|thu|fri|sat|sun|mo|tu|we|th|fr|sa|su|di|mi|do|so|kw|week|woche|semaine"
)
_DAY = rb"(?:[0-3]?[0-9](?:st|nd|rd|th|\.)?)"
_YEAR = rb"(?:[12][0-9]{3})"
_TIME = rb"[0-2]?[0-9]:[0-5][0-9]"
_DATE = re.compile(  # a date in any usual spelling, a time of day with seconds, and "3 of the month"
    rb"(?<![0-9a-z\x80-\xff.:-])"
    rb"(?:%b(?:[-/][01]?[0-9](?:[-/]%b)?|\.[01]?[0-9]\.%b)(?:[t ]+%b(?::[0-5][0-9])?(?:\.[0-9]+)?)?"
    rb"|[0-3]?[0-9][./-][01]?[0-9][./-](?:%b|[0-9]{2})"
    rb"|%b:[0-5][0-9]"
    rb"|(?:%b[ ,]+(?:of +)?){0,2}(?:%b)(?![0-9a-z\x80-\xff])\.?"
    rb"(?:[ ,/-]+(?:%b|%b)(?![0-9a-z\x80-\xff]|[:.][0-9])){0,3})"
    rb"(?![0-9a-z\x80-\xff])" % (_YEAR, _DAY, _DAY, _TIME, _YEAR, _TIME, _DAY, _NAMES, _YEAR, _DAY)
)


class BlockText(NamedTuple):
    """The content of one block, without what follows from the URL of its page."""

    words: bytes  # separated by one space, with `#` for numbers; empty if there are none
    numbers: tuple[bytes, ...]


NO_TEXT = BlockText(b"", ())


def heading(page: bytes) -> int:
    """Return where the heading of *page* is, or else its text; 0 if neither is near its beginning."""
    at = page.find(_HEADING, 0, MENUS)
    if at < 0:
        found = _OTHER_HEADING.search(page, 0, MENUS)
        at = found.start() if found is not None else 0
    return at


def opening(page: bytes, start: int) -> tuple[list[bytes], int]:
    """Return the blocks of a large *page* that follow its heading at *start*, and where the next one begins."""
    *found, cut = _BLOCK.split(page[start : start + OPENING])
    return [block for block in found if len(block) > SHORTEST_BLOCK], min(start + OPENING, len(page)) - len(cut)


def others(page: bytes, start: int, opened: int) -> list[bytes]:
    """Return the other blocks that are read of a large *page*: from *opened* on, of its middle and of its end."""
    half, quarter = PARTS // 2, PARTS // 4
    middle = max(start + half, (start + len(page)) // 2)
    end = max(middle + quarter, len(page) - quarter)
    below = page[opened : page.rfind(b"<", opened, start + half) + 1 or start + half]
    return blocks(b"<p>".join((below, _whole_tags(page, middle, middle + quarter), _whole_tags(page, end, len(page)))))


def _whole_tags(page: bytes, first: int, last: int) -> bytes:
    """Return the bytes from *first* to *last*, without what is cut off at either end."""
    begin, end = page.find(b"<", first, last), page.rfind(b"<", first, last)
    return page[begin : end + 1] if end >= 0 else page[first:last]


def blocks(text: bytes) -> list[bytes]:
    """Return the blocks of *text*, including the tags inside them."""
    found = _BLOCK.split(text)
    if len(found) < FEW < len(text) and _UPPER.search(text):  # tags in capitals, as in old pages
        found = _BLOCK.split(text.lower())
    return [block for block in found if len(block) > SHORTEST_BLOCK][:MOST_BLOCKS]


def is_link(block: bytes) -> bool:
    """Return True if *block* is certainly only one link, as most items of lists are."""
    text = block.strip(b"> \t\r\n")  # the end of the tag before it, and of its own
    return text[:3] == b"<a " and text[-3:] == b"</a" and text.count(b"<a ") == 1


def _url_numbers(address: str) -> list[str]:
    """Return the numbers in the path and the query of *address*."""
    return [number[:LONGEST_URL_NUMBER] for number in re.findall("[0-9]+", address[address.index("/", 8) :])]


@lru_cache(maxsize=256)
def own_words(address: str) -> frozenset[bytes]:
    """Return the words and numbers in *address*, in lower case."""
    text = address[address.index("/", 8) :].encode("utf-8", "replace")
    if b"%" in text:
        text = unquote_to_bytes(unquote_to_bytes(text))
    found = set(_TOKEN.findall(text.lower()))
    for token in tuple(found):
        if not token.isalpha() and not token.isdigit():
            found.update(_DIGITS.findall(token))
            found.update(part for part in _DIGITS.split(token) if part)
    found.update(token.lstrip(b"0") for token in tuple(found) if token[:1] == b"0")
    return frozenset(found)


def block_text(block: bytes, own: frozenset[bytes], most: int = BLOCK) -> BlockText:
    """Return the text of the first *most* bytes of *block*, without the page's *own* words."""
    text = _HIDDEN.sub(b" ", block[:most].lower())
    if b"&" in text:
        text = _ENTITY.sub(b" ", text)
    if len(text) < DATED and _DIGIT.search(text) is not None:
        text = _DATE.sub(b" ", text)
    tokens = _TOKEN.findall(text)
    if not tokens or (tokens[-1].isdigit() and _are_days(tokens)):
        return NO_TEXT
    words: list[bytes] = []
    numbers: list[bytes] = []
    last, has_text = b"", False
    for token in tokens:
        if token in own:
            continue
        if token.isdigit():
            if token.lstrip(b"0") in own:
                continue
            numbers.append(token)
            if last != b"#":
                words.append(b"#")
                last = b"#"
        elif len(token) < ONCE or not _is_once(token):
            words.append(token)
            last, has_text = token, True
    return BlockText(b" ".join(words) if has_text else b"", tuple(numbers))


def _are_days(tokens: Sequence[bytes]) -> bool:
    """Return True if *tokens* are a calendar row: consecutive days, perhaps after the number of a week."""
    if len(tokens) > MOST_DAYS or not all(len(token) < 3 and token.isdigit() for token in tokens):
        return False
    days = list(map(int, tokens))
    rows = [days, days[1:]] if len(days) > 3 else [days]
    return any(
        all(0 < day < 32 for day in row)
        and all(after == before + 1 or (before > 27 and after == 1) for before, after in pairwise(row))
        for row in rows
    )


def _is_once(token: bytes) -> bool:
    """Return True if *token* was most likely made for this one answer."""
    return len(token) >= ONCE_LONG or (len(token) >= ONCE and _DIGITS.search(token) is not None)


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

    def unseen(self, blocks: Iterable[bytes], salt: int) -> tuple[list[bytes], bool]:
        """Add *blocks*; return the new ones, and True if a block is known from only a few pages."""
        places, where, unseen, few = self._places, self._where, [], False
        for block in blocks:  # as `times`, without its calls
            thing = hash(block) ^ salt
            at = thing & where
            known, full = places[at], thing >> _KEPT | OFTEN
            if known | OFTEN != full or not known & OFTEN:
                places[at] = full - OFTEN + 1
                unseen.append(block)
            elif known != full:
                places[at] = known + 1
                few = True
        return unseen, few


MANY_DIGITS = 6  # of at least two new numbers: a row of a table; a counter is one number
MOST_ANALYSED = 200  # blocks of a page
LONGEST_OF_OPENING = 2  # blocks, besides the heading
SHORTEST_WORDS = 4  # bytes: less is a label
LONGEST_NUMBER = 15  # digits; a longer number is a token …
_CLOCK = range(1_500_000_000, 2_500_000_000)  # … and a number in this range is the time of the answer, in seconds
_MILLISECONDS = 13  # digits of it
SLOPES = 4096  # templates, each with two examples
MOST_NUMBERS = 8  # of a block that are compared with those of the URL
OF_THE_ANSWER = frozenset(  # next to these words a number describes the answer, not the page
    b"generated rendered seconds sec secs ms took queries query memory visitor visitors hits request uptime besucher "
    b"visites visitas cache cached elapsed load online users session version build".split()
)


class PageNovelty(Enum):
    """The kinds of news that a page brings."""

    NEW = "new"  # new words, or a new file that is not markup
    NUMBERS = "numbers"  # many new numbers among known words
    NUMBER = "number"  # some new numbers
    COUNTER = "counter"  # a new number, but no page of another pattern links here
    NOTHING = "nothing"


class Place(NamedTuple):
    """The place of a page: its URL, pattern and host."""

    address: str
    shape: str  # its pattern
    host: str
    salt: int  # keeps blocks of one host apart from those of another


class Novelty:
    """Remembers the content of a crawl's pages and tells what is new on a page."""

    def __init__(self) -> None:
        self._shown = SeenContent()
        self._slopes: OrderedDict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = OrderedDict()

    def is_new(self, host: str, content: int) -> bool:
        """Add *content*. Return True if it is new on *host*."""
        return not self._shown.times(hash((host, content)))

    def worth(self, address: str, shape: str, page: bytes, *, markup: bool, varied: bool = False) -> PageNovelty:
        """Return what is new on the *page* at *address*, with the pattern *shape*. *varied*: it may have variants."""
        host = url.origin(address)
        if not markup:
            return PageNovelty.NEW if page and self.is_new(host, _fingerprint(page)) else PageNovelty.NOTHING
        at = Place(address, shape, host, hash(host))
        if len(page) > READ:
            return self._worth_of_large(page, at, varied=varied)
        unseen, _ = self._shown.unseen(blocks(page), at.salt)
        return self._judge(unseen, at)

    def _worth_of_large(self, page: bytes, at: Place, *, varied: bool) -> PageNovelty:
        """Return what is new on a large *page*. Read on after an opening with news only if the page is *varied*."""
        start = heading(page)
        first, opened = opening(page, start)
        unseen, specific = self._shown.unseen(first, at.salt)
        brings = self._opens_with_news(unseen, at)
        if brings and not varied:
            return PageNovelty.NEW
        more, few = self._shown.unseen(others(page, start, opened), at.salt)
        found = PageNovelty.NEW if brings else self._judge(unseen + more, at)
        if found is PageNovelty.NOTHING and not specific and not few:
            unseen, _ = self._shown.unseen(blocks(page[:READ_ALL]), at.salt)
            found = self._judge(unseen, at)
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

    def _judge(self, unseen: list[bytes], at: Place) -> PageNovelty:
        """Return what the *unseen* blocks of a page bring."""
        own = own_words(at.address) if unseen else frozenset()
        digits = several = 0
        for block in sorted(unseen, key=len, reverse=True)[:MOST_ANALYSED]:  # a long block is most likely to decide
            if is_link(block):
                continue
            for most in (BLOCK, LONGEST_BLOCK) if len(block) > BLOCK else (BLOCK,):
                text = block_text(block, own, most)
                if len(text.words) >= SHORTEST_WORDS and not self._shown.times(hash((at.host, text.words))):
                    return PageNovelty.NEW
                if text.numbers:
                    more = self._digits(at, text)
                    digits, several = digits + more, several + (len(text.numbers) if more else 0)
            if several > 1 and digits >= MANY_DIGITS:
                return PageNovelty.NUMBERS
        return PageNovelty.NUMBER if digits else PageNovelty.NOTHING

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
