"""The entries of an XML sitemap, told tag by tag; faults of the vocabulary are forgiven.

A page is a LINK, another sitemap is a MANIFEST. Pictures, films and other languages of a page are LINKs as
well: they belong to pages that the crawl may not want, so they are no requisites. A sitemap of addresses and dates
that is written as the format says is read in one leap (`written_plainly`), any other one by a parser. When an entry was
modified last stands in the context of its link: "loc lastmod:2026-11-21".
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache

from archiver.extract.collector import LinkCollector
from archiver.extract.html.elements import Attributes
from archiver.model import Hop, Links

ROOTS = ("urlset", "sitemapindex")
LONGEST = 1 << 14  # characters; a text that is longer is no address
_ENTRIES = frozenset(("url", "sitemap"))
_PLACES = frozenset(("loc", "url", "sitemap", "content_loc", "thumbnail_loc", "player_loc"))

_S = r"[ \t\n\r]*+"
_NEVER = r"<>&\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff"
_CHARS = rf"[^{_NEVER}]*+"
_TEXT = rf"{_CHARS}(?:&(?:amp|lt|gt|quot|apos);{_CHARS})*+"
_CHILD = "|".join(rf"{name}>{_TEXT}</{name}" for name in ("loc", "lastmod", "changefreq", "priority"))
_NAMED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))  # the last makes no new one
_ADDRESS = re.compile(r"<loc>([^<]*+)")
_LAST = re.compile(r"<lastmod>([^<]{0,60})")
_DATE = re.compile(  # as W3C writes dates and times
    r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
_MODIFIED = " lastmod:"


@cache  # made when the first sitemap comes, for it would take a hundredth of a second of every start
def _written(root: str, entry: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_S}(?:<\?xml(?:[ \t\n\r]++[a-z]++=(?:\"[\w.-]*+\"|'[\w.-]*+'))*+{_S}\?>)?+{_S}"
        rf"<{root}(?:[ \t\n\r]++[\w:.-]++=(?:\"[^\"{_NEVER}]*+\"|'[^'{_NEVER}]*+'))*+{_S}>{_S}"
        rf"(?:<{entry}>{_S}(?:<(?:{_CHILD})>{_S})*+</{entry}>{_S})*+</{root}>{_S}",
        re.ASCII,
    )


_PLAIN = (("urlset", "url", Hop.LINK), ("sitemapindex", "sitemap", Hop.MANIFEST))


def written_plainly(text: str) -> LinkCollector | None:
    """What `Entries` finds in *text*, many times faster; None where it is not written plainly."""
    for root, entry_name, hop in _PLAIN:
        if _written(root, entry_name).fullmatch(text):
            found = LinkCollector()
            if max(map(len, _ADDRESS.findall(text)), default=0) > LONGEST:
                return None
            for entry in text.split("<sitemap>" if hop is Hop.MANIFEST else "<url>") if "<lastmod>" in text else [text]:
                last = _LAST.search(entry)
                context = f"loc{_dated(last[1])}" if last else "loc"
                for address in _ADDRESS.findall(entry):
                    found.add((_meant(address) if "&" in address else address).strip(), hop, context)
            return found
    return None


def modified(context: str) -> float | None:
    """When the page was modified last that a link with this *context* names, in seconds since the epoch, if it says so.

    A date without a time zone is one of UTC, and a date without a time the beginning of that day.
    """
    _, named, text = context.partition(_MODIFIED)
    if named:
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(f"{text}-01-01"[:10] if len(text) < 10 else text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _dated(text: str) -> str:
    """What the context of a link says of *text*, if that is a date."""
    date = text.strip()
    return f"{_MODIFIED}{date}" if _DATE.fullmatch(date) else ""


def _meant(text: str) -> str:
    for name, character in _NAMED:
        text = text.replace(name, character)
    return text


class SitemapEntries:
    """What libxml2's parser talks to while it reads a sitemap."""

    def __init__(self) -> None:
        self._pages = LinkCollector()
        self._beside = LinkCollector()  # what is named with them must not crowd them out
        self._hop = Hop.LINK
        self._named: list[tuple[str, Hop, str]] = []  # in this entry
        self._date = ""  # of this entry
        self._pieces: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take in a start tag."""
        name, _ = _local(tag)
        if name in _ENTRIES:
            self._end_entry()
        if name in ("sitemap", "sitemapindex"):
            self._hop = Hop.MANIFEST
        elif name == "urlset":
            self._hop = Hop.LINK
        elif name == "link":
            self._beside.add(as_written(attributes.get("href", "")), Hop.LINK, "link/@href")
        self._forget()

    def data(self, text: str) -> None:
        """Take in a piece of text."""
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        """Take in an end tag."""
        name, beside = _local(tag)
        if name in _PLACES and self._pieces:
            text = "".join(self._pieces).strip()
            if beside and "://" in text:
                self._beside.add(text, Hop.LINK, name)
            elif not beside and (name == "loc" or "://" in text):  # it may stand in the entry itself, with no loc
                self._named.append((text, self._hop, name))
        elif name == "lastmod" and not beside:
            self._date = _dated("".join(self._pieces))
        if name in _ENTRIES:
            self._end_entry()
        self._forget()

    def close(self) -> None:
        """The text is at its end."""
        self._end_entry()

    def links(self, address: str, encoding: str, note: str) -> Links:
        """What was named, the entries themselves first, in a sitemap found at *address*."""
        self._end_entry()  # where the text broke off
        pages = self._pages.links(address, encoding, note, queries="utf-8")
        beside = self._beside.links(address, encoding, queries="utf-8")
        known = {(link.url, link.hop): link for link in (*pages.links, *beside.links)}
        return Links(tuple(known.values()), encoding, "; ".join(filter(None, (pages.note, beside.note))))

    def _end_entry(self) -> None:
        for text, hop, name in self._named:
            self._pages.add(text, hop, name + self._date)
        self._named, self._date = [], ""

    def _forget(self) -> None:
        if self._length:
            self._pieces = []
            self._length = 0


@lru_cache(maxsize=100)  # a sitemap has ten names and a million tags
def _local(tag: str) -> tuple[str, bool]:
    """The name without its namespace, or a prefix that stands for none; and whether it names what is beside a page."""
    name = tag.rpartition("}")[2].rpartition(":")[2].lower()
    return name, name.endswith("_loc") or "image" in tag.lower()


def as_written(value: str) -> str:
    """An attribute's value; libxml2 leaves ampersands escaped for a second reading when it expands no entities."""
    return value.replace("&#38;", "&")
