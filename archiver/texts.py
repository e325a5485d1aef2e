"""Texts: what stands in a page besides its links, as runs by which one page is told from another. Pure.

A run is the text between two tags, in lower case, as words of letters and digits. That of links is none, nor that of
scripts, styles, drawings and comments. `runs` gives the words. `marks` gives a number for each run instead: that of its
letters without spaces, which is quicker, and the same one that `marks_of` gives for the words. Numbers are good within
one process. Linear in what is read, and that is bounded.
"""

import re
from collections.abc import Iterable, Sequence

from archiver.shown import NUMBERS

READ = 16 << 10  # bytes of a page that are looked at, from its beginning …
READ_ON = 8 << 10  # … and from its middle and its end, for some begin with long menus
MOST_RUNS = 1000
LONGEST_RUN = 160
LETTERS = 128  # of a run, by which it is known again: about as much text as that
_NUMBER = NUMBERS - 1
SHORTEST_RUN = 5  # letters, where numbers are nothing new; less is a label


def _up_to_end(name: bytes) -> bytes:
    """An expression for what follows on the beginning of a tag, up to the end tag of *name* or of the page."""
    return rb"[^<]*+(?:<(?!/%b)[^<]*+)*+(?:</%b)?+" % (name, name)


# Tags, with all that is skipped behind them, and the text that follows, in which there may be comments.
_HIDDEN = (b"[sS](?i:cript)", b"[sS](?i:tyle)", b"[sS](?i:vg)", b"[nN](?i:oscript)")
_COMMENT = rb"!--[^-]*+(?:-(?!->)[^-]*+)*+"
_SKIPPED = b"|".join(
    (
        rb"[aA][\s>]%b" % _up_to_end(b"[aA]"),
        *(rb"%b\b%b" % (name, _up_to_end(name)) for name in _HIDDEN),
        rb"%b(?:--)?+" % _COMMENT,
    )
)
_TAG_AND_TEXT = re.compile(
    rb"(?:<(?:(?=[aAsSnN!])(?:%b))?+[^>]*+>?+\s*+)++([^<]*+(?:<%b(?:-->|\Z)[^<]*+)*+)" % (_SKIPPED, _COMMENT)
)
_WHOLE_COMMENT = re.compile(rb"<%b(?:-->|\Z)" % _COMMENT)

_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum() and code != ord("<"))  # `<` is between runs
_WORDS = bytes(range(256)).lower().translate(bytes(32 if code in _NO_LETTERS else code for code in range(256)))
_WITH_DIGIT = re.compile(rb"(?<![^ ])[^0-9 ]*+[0-9][^ ]*+ ?")


def excerpt(body: bytes) -> bytes:
    """The part of a page that is looked at."""
    if len(body) <= READ:
        return body
    middle = max(READ, len(body) // 2)
    return b">".join((body[:READ], body[middle : middle + READ_ON], body[max(READ, len(body) - READ_ON) :]))


def runs(page: bytes) -> tuple[bytes, ...]:
    """The runs of text in the excerpt of *page*, each once, as words with one space between them."""
    found = (run[: 4 * LONGEST_RUN].translate(_WORDS).split() for run in _texts(excerpt(page)).split(b"<"))
    return tuple(dict.fromkeys(b" ".join(run)[:LONGEST_RUN] for run in found if run))[:MOST_RUNS]


def marks(page: bytes) -> Sequence[int]:
    """The runs of text in the excerpt of *page* as numbers."""
    found = _texts(excerpt(page)).translate(_WORDS, _NO_LETTERS).split(b"<")
    numbers = [hash(run[:LETTERS]) & _NUMBER for run in found if run]
    return numbers if len(numbers) <= MOST_RUNS else list(dict.fromkeys(numbers))[:MOST_RUNS]


def marks_of(words: Iterable[bytes]) -> Sequence[int]:
    """The same numbers for runs that are given as words."""
    return [hash(run.replace(b" ", b"")[:LETTERS]) & _NUMBER for run in words if run]


def without_numbers(run: bytes) -> bytes:
    """*run* without its words that hold digits; empty where too little is left."""
    rest = _WITH_DIGIT.sub(b"", run)
    return rest if len(rest) >= SHORTEST_RUN else b""


def _texts(page: bytes) -> bytes:
    """The texts between tags, with `<` between them."""
    found = _TAG_AND_TEXT.findall(page)[:-1]  # behind the last tags, a text may go on
    text = b"<".join(filter(None, found))
    if b">" not in text:  # as in most pages
        return text
    return b"<".join(_WHOLE_COMMENT.sub(b"", run).rpartition(b">")[2] for run in found)
