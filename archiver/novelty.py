"""Novelty: whether a page shows what its site has not shown yet. Pure, and bounded in memory.

Blocks of text are compared as they stand; only those that are new are analysed, and no more of them than are needed to
know. So a page that brings something costs little, and one that brings nothing is looked at whole.
"""

from collections import OrderedDict
from enum import Enum

from archiver import texts, url
from archiver.shown import OFTEN, Shown

MANY_DIGITS = 6  # of at least two new numbers: a row of a table; a counter is one number
MOST_ANALYSED = 200  # blocks of a page
SHORTEST_WORDS = 4  # bytes: less is a label
LONGEST_NUMBER = 15  # digits; a longer number is a token …
_CLOCK = range(1_500_000_000, 2_500_000_000)  # … and such a one the time of the answer, in seconds
_MILLISECONDS = 13  # digits of it
SLOPES = 4096  # templates of which two examples are remembered
MOST_NUMBERS = 8  # of a block by whose numbers it may follow from the URL
OF_THE_ANSWER = frozenset(  # beside these words a number tells of the answer, not of the page
    b"generated rendered seconds sec secs ms took queries query memory visitor visitors hits request uptime besucher "
    b"visites visitas cache cached elapsed load online users session version build".split()
)


class Worth(Enum):
    """What a page brings."""

    NEW = "new"  # words, or bytes that are no markup
    NUMBERS = "numbers"  # many that are new, among known words
    NUMBER = "number"  # some that are new
    COUNTER = "counter"  # some, but nobody else answers for the page
    NOTHING = "nothing"


class Novelty:
    """What the pages of a crawl have shown."""

    def __init__(self) -> None:
        self._shown = Shown()
        self._slopes: OrderedDict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = OrderedDict()

    def is_new(self, host: str, content: int) -> bool:
        """Whether *content* comes for the first time on *host*."""
        return not self._shown.times(hash((host, content)))

    def worth(self, address: str, shape: str, page: bytes, *, markup: bool) -> Worth:
        """What *page* brings, whose URL is *address*, of the pattern *shape*."""
        host = url.origin(address)
        text, whole = texts.parts(page)
        if not markup:
            return Worth.NEW if page and self.is_new(host, hash((len(page), text))) else Worth.NOTHING
        found, specific = self._look(address, shape, host, text)
        if found is Worth.NOTHING and not whole and not specific:
            found, _ = self._look(address, shape, host, page[: texts.READ_ALL])
        return found

    def _look(self, address: str, shape: str, host: str, text: bytes) -> tuple[Worth, bool]:
        """What *text* brings, and whether it shows what few pages have shown."""
        found = texts.blocks(text)
        counts = self._shown.add_all([hash(block) ^ hash(host) for block in found])
        own = texts.own_words(address)
        digits = several = 0
        unseen = [block for block, count in zip(found, counts, strict=True) if not count]
        specific = any(0 < count < OFTEN for count in counts)
        for block in sorted(unseen, key=len, reverse=True)[:MOST_ANALYSED]:  # a long one is most likely to decide
            if texts.is_link(block):
                continue
            for most in (texts.BLOCK, texts.LONGEST_BLOCK) if len(block) > texts.BLOCK else (texts.BLOCK,):
                said = texts.said(block, own, most)
                if len(said.words) >= SHORTEST_WORDS and not self._shown.times(hash((host, said.words))):
                    return Worth.NEW, True
                if said.numbers:
                    more = self._digits(address, shape, host, said)
                    digits, several = digits + more, several + (len(said.numbers) if more else 0)
            if several > 1 and digits >= MANY_DIGITS:
                return Worth.NUMBERS, True
        return (Worth.NUMBER if digits else Worth.NOTHING), specific

    def _digits(self, address: str, shape: str, host: str, said: texts.Said) -> int:
        """How many digits of new numbers stand in a block whose words are known."""
        if not OF_THE_ANSWER.isdisjoint(said.words.split()):
            return 0
        numbers = [number for number in said.numbers if not _is_of_the_answer(number)]
        if not numbers:
            return 0
        if self._shown.times(hash((host, said.words, tuple(numbers)))):
            return 0
        if said.words and self._is_everywhere(host, shape, said.words):
            return 0
        if self._follows(address, shape, said.words, numbers):
            return 0
        return sum(map(len, numbers))

    def _is_everywhere(self, host: str, shape: str, words: bytes) -> bool:
        """Whether pages of several patterns have *words*: a counter at the foot of each page."""
        key = hash((host, words, "patterns"))
        first = not self._shown.times(hash((host, words, shape)))
        seen = self._shown.times(key) if first else self._shown.look(key)
        return seen >= 3

    def _follows(self, address: str, shape: str, words: bytes, numbers: list[bytes]) -> bool:
        """Whether *numbers* follow from those of the URL, as "1221 to 1240" does from page 62."""
        given = tuple(int(number) for number in texts.numbers(address)[-MOST_NUMBERS:])
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
    """Whether (u, v) lies on the line through (a, x) and (b, y), or all three numbers shown are one."""
    return (x == y == v) or (a != b and (v - x) * (b - a) == (y - x) * (u - a))


def _is_of_the_answer(number: bytes) -> bool:
    """Whether *number* is most likely a clock or a token."""
    return len(number) > LONGEST_NUMBER or len(number) == _MILLISECONDS or (len(number) == 10 and int(number) in _CLOCK)
