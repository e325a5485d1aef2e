"""The blocks and the forms of a page. Pure.

A block is the text between two tags that start or end a paragraph, a row, an item or a script.

A block counts without what follows from the URL of the page or changes at each visit: the text of links, the URL's own
words and numbers, dates, times of day and one-time tokens. Of a large page we read parts: at its heading, in its middle
and at its end.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from archiver import url
from archiver.config.expressions import compiled

OPENING = 768  # … of a larger one below its heading, enough if they show something new …
PARTS = 3 << 10  # … and of its other parts …
MOST_BLOCKS = 2000
BLOCK = 256  # bytes of a block that are analysed first …
LONGEST_BLOCK = 16 << 10  # … and if these bring nothing
DATED = 256  # bytes of a block that is searched for dates; longer blocks have other words too
MOST_DAYS = 64  # in one block: a month has no more
MOST_OUTWARD = 64  # links of one block …
LONGEST_LINK = 800  # bytes, and those of each that are read
MENUS = 32 << 10  # bytes that are searched for a heading
FEW = 16  # blocks
MOST_ANALYSED = 200  # blocks of a page
SHORTEST_COPY = 24  # bytes of words: less is on many pages by chance
SHORTEST_BLOCK = 4  # bytes; a shorter block is a number or a mark
MOST_WORDS = 1000  # of a page with a form
LONGEST_FORM = 64 << 10  # bytes
ONCE = 16  # letters and digits mixed: a session id or a nonce
ONCE_LONG = 40  # letters alone

_BLOCK = re.compile(rb"</?+(?:d[dti]|h[1-6]|p(?:re)?|li|t(?:r|itle)|br|s(?:cript|ection)|option)[\s>v/]")
_UPPER = re.compile(rb"</?(?:P|TR|LI|D[DTI]|H[1-6]|BR)[\s>V/]")
_HEADING = b"<h1"
_MAIN = b"<main"
_OTHER_HEADING = re.compile(rb"<(?:main|article|H1)")
_HIDDEN = compiled(
    rb"<(?:(a|style|svg|button|time)\b[^>]*+>[^<]*+(?:<(?!/\1)[^<]*+)*+(?:</\1|\Z)"
    rb"|!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z))"
    rb"|\A[^<>]{0,400}+>|<[^>]*+>?",  # the rest of the tag that began the block, and any other tag
)
_ENTITY = re.compile(rb"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,10});")
_TOKEN = re.compile(rb"[0-9a-z\x80-\xff]++")
_TOKEN_OR_TIME = re.compile(  # of "29ms" and "0.003s", the time that an answer took, the number and the unit
    rb"[0-9]++(?=(?:ms(?:ecs?)?|secs?|\xc2\xb5s|\xce\xbcs)(?![0-9a-z\x80-\xff]))"
    rb"|(?<=[.,])[0-9]++(?=s(?![0-9a-z\x80-\xff]))|[0-9a-z\x80-\xff]++"
)
_NAMED_TIME = compiled(  # `"wgBackendResponseTime":148` in MediaWiki, `"cputime":"0.006"`: what one answer took
    rb"((?:response|elapsed|render(?:ing)?|generation|cpu|wall)[_-]?time[\"']?+\s*+[:=]\s*+[\"']?+)[0-9]++(?:\.[0-9]++)?+"
)
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
_OPENS = re.compile(rb"<form\b[^>]{0,2000}", re.IGNORECASE)
_POST = re.compile(rb"""\bmethod\s*=\s*["']?\s*post\b""", re.IGNORECASE)
_ACTION = re.compile(rb"""\saction\s*=\s*("[^"]*|'[^']*|[^\s"'>]+)""", re.IGNORECASE)
_HIDDEN_FIELD = re.compile(  # by its type, an attribute or a class, or by its style
    rb"""<input\b(?=[^>]{0,500}?(?:[\s"'=]hidden\b|\bdisplay\s*:\s*none\b))[^>]{0,2000}""", re.IGNORECASE
)
_OUTWARD = compiled(rb"""\shref\s*+=\s*+["']?+\s*+(mailto:|(?:https?:)?//)([^/"'?#\s]{1,100})([^"'?#\s]{0,300})""")
_SOURCE = re.compile(rb"""\s(?:src|srcset|poster|data)\s*=\s*("[^"]*|'[^']*|[^\s"'>]+)""", re.IGNORECASE)
_TITLE = re.compile(rb"<(?:title|h1)\b[^>]{0,200}>[^<]{0,300}", re.IGNORECASE)
_VALUE = re.compile(rb"""\svalue\s*=\s*("[^"]*|'[^']*|[^\s"'>]+)""", re.IGNORECASE)


class BlockText(NamedTuple):
    """The content of one block, without what follows from the URL of its page."""

    words: bytes  # separated by one space, with `#` for numbers; empty if there are none
    numbers: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PageModel:
    """What a page with a form shows, and the words of its URL."""

    words: frozenset[bytes]
    numbers: frozenset[bytes]
    sources: frozenset[bytes]
    own: frozenset[bytes]

    def is_like(self, other: "PageModel") -> bool:
        """Return True if the pages differ only in words of their URLs."""
        return self.sources == other.sources and (self.words ^ other.words) <= (self.own | other.own)

    def has_numbers_of(self, other: "PageModel") -> bool:
        """Return True if the pages differ only in numbers of their URLs."""
        return (self.numbers ^ other.numbers) <= (self.own | other.own)


NO_TEXT = BlockText(b"", ())


def heading(page: bytes) -> int:
    """Return where the heading of *page* is, or else its text; 0 if neither is near its beginning.

    A heading above the main part is often the name of the site, so one in the main part, or that part, goes first.
    """
    main = page.find(_MAIN, 0, MENUS)
    at = page.find(_HEADING, max(main, 0), MENUS)
    if at < 0 <= main:
        return main
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


def outward_links(block: bytes, address: str, own: frozenset[bytes]) -> Iterator[bytes]:
    """Yield the words of each link in *block* to another site, or to a mail address: its target and its text.

    The query of a link, words with digits and the *own* words of the page at *address* do not count. So a link to share
    the page says nothing.
    """
    here = url.host(address).removeprefix("www.").encode()
    for part in block[:LONGEST_BLOCK].lower().split(b"<a")[1 : MOST_OUTWARD + 1]:
        tag, _, text = part[:LONGEST_LINK].partition(b">")
        if (found := _OUTWARD.search(tag)) is None:
            continue
        kind, host, path = found.groups()
        there = host.rpartition(b"@")[2].partition(b":")[0]
        if kind != b"mailto:" and (there == here or there.endswith(b"." + here)):
            continue
        words = _TOKEN.findall(b" ".join((host, path, text.partition(b"<")[0])))
        yield b" ".join(word for word in words if word.isalpha() and word not in own and len(word) < ONCE_LONG)


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
    if _DIGIT.search(text) is None:
        words = [token for token in _TOKEN.findall(text) if token not in own and len(token) < ONCE_LONG]
        return BlockText(b" ".join(words), ()) if words else NO_TEXT
    tokens = _tokens(text)
    if not tokens or (tokens[-1].isdigit() and _are_days(tokens)):
        return NO_TEXT
    words = []
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


def _tokens(text: bytes) -> list[bytes]:
    """Return the words and numbers of *text*, without dates and without the time that an answer took."""
    if b"time" in text:  # faster to find
        text = _NAMED_TIME.sub(rb"\1", text)
    return _TOKEN_OR_TIME.findall(_DATE.sub(b" ", text) if len(text) < DATED else text)


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


def posted_forms(page: bytes) -> Iterator[bytes]:
    """Yield the forms in *page* that are sent by POST, with what is in them."""
    for found in _OPENS.finditer(page):
        if _POST.search(found[0]) is not None:
            end = page.find(b"</form", found.end(), found.end() + LONGEST_FORM)
            yield page[found.start() : end if end >= 0 else found.end() + LONGEST_FORM]


def _text(attribute: bytes) -> str:
    return unescape(attribute.strip(b"\"'").decode("utf-8", "replace"))


def form_action(form: bytes, address: str) -> str:
    """Return the URL to which *form* on the page at *address* is sent."""
    opening = form[: form.find(b">")] if b">" in form else form
    found = _ACTION.search(opening)
    return (url.join(address, _text(found[1])) if found is not None else None) or address


def hidden_values(form: bytes) -> Iterator[str]:
    """Yield the values of the hidden fields of *form*."""
    for field_ in _HIDDEN_FIELD.findall(form):
        if (value := _VALUE.search(field_)) is not None:
            yield _text(value[1])


def title_words(page: bytes) -> frozenset[bytes]:
    """Return the words of the title and of the first heading of *page*."""
    start = heading(page)
    found = [_TITLE.search(page, 0, MENUS), _TITLE.search(page, start, start + BLOCK)]
    texts = [block_text(each[0] + b">", frozenset(), LONGEST_BLOCK) for each in found if each is not None]
    return frozenset(word for text in texts for word in (*text.words.split(), *text.numbers))


def page_model(page: bytes, address: str, quoted: frozenset[bytes], *, whole: bool) -> PageModel | None:
    """Return what *page* shows; None if that is more than a form has. *whole*: with the queries of its images.

    Words that are *quoted* from the page that it is about count as its own.
    """
    words: set[bytes] = set()
    numbers: set[bytes] = set()
    for block in blocks(page):
        text = block_text(block, frozenset(), LONGEST_BLOCK)
        words.update(text.words.split())
        numbers.update(text.numbers)
        if len(words) > MOST_WORDS:
            return None
    sources = _SOURCE.findall(page)
    shown = frozenset(sources if whole else (each.partition(b"?")[0].strip(b"\"'") for each in sources))
    return PageModel(frozenset(words), frozenset(numbers), shown, own_words(address) | quoted)
