"""Answers to the requests of a page in a browser, from an archive alone.

A capture is looked up as replay tools do: the exact URL, then its key in the index (SURT), then the same without
parameters that only defeat caches. Of several captures, the one closest to that of the page answers. A URL with other
letters in its escapes (`%2f`, `%2F`) does not.
"""

import re
from calendar import timegm
from collections.abc import Iterable
from itertools import islice
from time import strptime

from archiver import url
from archiver.ask import POST, Ask
from archiver.browser.answers import UNTOLD, Asked, Told, part_of, told_fields
from archiver.collection.dates import DateRange
from archiver.collection.lookup import Holdings
from archiver.collection.payload import read_answer
from archiver.errors import ArchiveError
from archiver.warc.cdxj import IndexEntry, is_plain
from archiver.warc.members import DamagedRecord
from archiver.warc.post_keys import parts_of
from archiver.warc.reader import Record

MAX_SIMILAR = 2000  # captures whose URLs are compared
LARGEST = 32 << 20  # bytes of an answer without its codings
NO_BODY = frozenset((101, 103, 204, 205, 304))
_CACHE_BUSTERS = re.compile(  # those that pywb ignores at any host
    r"[?&](?:(?:_|cb|uncache)=\d+|utm_[^=&]+=[^&]+|\w*(?:bust|ts)\w*=1\d{12,15}|fbclid=[^&]*)(?=&|$)", re.IGNORECASE
)


class ArchiveAnswers:
    """The captures of several archives; the methods block, so call them in a thread of their own."""

    def __init__(self, archives: Iterable[Holdings]) -> None:
        self._archives = tuple(archives)

    def answer(self, asked: Asked, at: DateRange) -> Told | None:
        """Return the answer to *asked* in the archive as of *at*; None if there is none."""
        address = url.canonical(asked.url)
        if address is not None and asked.method == POST:
            return self._posted(asked, address, at)
        if address is None or asked.method not in ("GET", "HEAD"):
            return None
        for holdings in self._archives:
            for each in dict.fromkeys((address, without_cache_busters(address))):
                entry = holdings.closest(each, at)
                if entry is None or _spelled_otherwise(entry.url, each):
                    continue
                told = self._told(holdings, entry)
                if told is not None:
                    return part_of(asked, told)
        plain = without_cache_busters(address)
        found = (self._same(holdings, plain, at) for holdings in self._archives if plain != address)
        told = next((told for told in found if told is not None), None)
        return None if told is None else part_of(asked, told)

    def _same(self, holdings: Holdings, plain: str, at: DateRange) -> Told | None:
        """Return the answer to a URL that differs from *plain* only in parameters by which pages avoid caches."""
        found = holdings.closest_of(at=at)
        for entry in islice(holdings.of_prefix(plain), MAX_SIMILAR):
            known = url.canonical(entry.url)
            if is_plain(entry) and known is not None and without_cache_busters(known) == plain:
                found.add(entry)
        best = found.best()
        return None if best is None else self._told(holdings, best)

    def _posted(self, asked: Asked, address: str, at: DateRange) -> Told | None:
        """Return the answer to a POST, by the key that its body gives it."""
        _, looked_up = parts_of(Ask(address, asked.first("content-type"), asked.body or b""))
        for holdings in self._archives:
            entry = holdings.closest_asked(looked_up, at)
            told = None if entry is None else self._told(holdings, entry)
            if told is not None:
                return told
        return None

    def _told(self, holdings: Holdings, entry: IndexEntry) -> Told | None:
        try:
            original = holdings.original(entry)
            if original is None:
                return None
            with holdings.record(original) as record:
                return told_of(record, second_of(entry.timestamp))
        except (ArchiveError, DamagedRecord):
            return None


def _spelled_otherwise(known: str, address: str) -> bool:
    """Return True if the URLs are equal but for letters of escapes, which replayweb.page and some servers compare."""
    found = url.canonical(known)
    return found is not None and found != address and url.in_capitals(found) == url.in_capitals(address)


def told_of(record: Record, second: int) -> Told:
    """Return what the browser is told of the answer in *record*, captured at *second*. Raises `DamagedRecord`."""
    answer = read_answer(record)
    body = bytearray()
    for piece in answer.decoded():
        body += piece
        if len(body) > LARGEST:
            return Told(UNTOLD, (), b"")
    framing = answer.framing
    status = framing.status or 200  # a resource record has none
    if status in NO_BODY or 300 <= status < 400:
        body.clear()
    return Told(status, told_fields(framing.fields), bytes(body), second)


def without_cache_busters(address: str) -> str:
    """Return *address* without the parameters by which pages avoid caches."""
    page, sign, query = address.partition("?")
    if not sign:
        return address
    rest = _CACHE_BUSTERS.sub("", f"?{query}")
    return page + (f"?{rest[1:]}" if rest else "")


def second_of(timestamp: str) -> int:
    """Return the seconds since the epoch of the 14 digits that begin *timestamp*; 0 if they are no date."""
    try:
        return timegm(strptime(timestamp[:14], "%Y%m%d%H%M%S"))
    except ValueError:
        return 0
