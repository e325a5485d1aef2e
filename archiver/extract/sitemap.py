"""Lists of URLs: XML sitemaps, and plain text.

In a sitemap, errors in the vocabulary are tolerated. A page is a LINK, another sitemap is a MANIFEST. Pictures, videos
and translations of a page are also LINKs, not requisites, because the crawl may not want their page. A sitemap that
follows the format exactly is read by one regular expression (`written_plainly`), others by a parser. The date of an
entry is added to the context of its link: "loc lastmod:2026-11-21".

Only a plain text that is a list of URLs and nothing else names anything. Every line that is neither empty nor a comment
(`#`, as in text/uri-list) must be one absolute http(s) URL.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache

from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.html.tables import Attributes
from archiver.extract.references import LinkCollector
from archiver.model import Hop, Links
from archiver.policy.speculative import FAULTY_SITEMAP

ROOTS = ("urlset", "sitemapindex")
LONGEST = 1 << 14  # characters; a longer text is no address
_ENTRIES = frozenset(("url", "sitemap"))
_PLACES = frozenset(("loc", "url", "sitemap", "content_loc", "thumbnail_loc", "player_loc"))

_S = r"[ \t\n\r]*+"
_NEVER = r"<>&\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff"
_CHARS = rf"[^{_NEVER}]*+"
_TEXT = rf"{_CHARS}(?:&(?:amp|lt|gt|quot|apos);{_CHARS})*+"
_CHILD = "|".join(rf"{name}>{_TEXT}</{name}" for name in ("loc", "lastmod", "changefreq", "priority"))
# &amp; is last, so that it makes no new reference
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
_ADDRESS = re.compile(r"<loc>([^<]*+)")
_LAST = re.compile(r"<lastmod>([^<]{0,60})")
_DATE = re.compile(  # W3C date and time format
    r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
_MODIFIED = " lastmod:"
DAY = 86_400  # seconds
BROKEN, EMPTY = f"{FAULTY_SITEMAP}broken XML", f"{FAULTY_SITEMAP}it names no URL"


@cache  # compiled on first use: it takes a hundredth of a second
def _written(root: str, entry: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_S}(?:<\?xml(?:[ \t\n\r]++[a-z]++=(?:\"[\w.-]*+\"|'[\w.-]*+'))*+{_S}\?>)?+{_S}"
        rf"<{root}(?:[ \t\n\r]++[\w:.-]++=(?:\"[^\"{_NEVER}]*+\"|'[^'{_NEVER}]*+'))*+{_S}>{_S}"
        rf"(?:<{entry}>{_S}(?:<(?:{_CHILD})>{_S})*+</{entry}>{_S})*+</{root}>{_S}",
        re.ASCII,
    )


_PLAIN = (("urlset", "url", Hop.LINK), ("sitemapindex", "sitemap", Hop.MANIFEST))


def written_plainly(text: str) -> LinkCollector | None:
    """Return what `SitemapEntries` finds in *text*, many times faster; None if it needs a parser."""
    for root, entry_name, hop in _PLAIN:
        if _written(root, entry_name).fullmatch(text):
            found = LinkCollector()
            if max(map(len, _ADDRESS.findall(text)), default=0) > LONGEST:
                return None
            for entry in text.split("<sitemap>" if hop is Hop.MANIFEST else "<url>") if "<lastmod>" in text else [text]:
                last = _LAST.search(entry)
                context = f"loc{_dated(last[1])}" if last else "loc"
                for address in _ADDRESS.findall(entry):
                    found.add((_unescaped(address) if "&" in address else address).strip(), hop, context)
            return found
    return None


def modified(context: str) -> float | None:
    """Return the last modification given in the *context* of a link, in seconds since the epoch, or None.

    A date without a time zone is in UTC; a date without a time is the start of that day.
    """
    _, has_date, text = context.partition(_MODIFIED)
    if has_date:
        with suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(f"{text}-01-01"[:10] if len(text) < 10 else text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def modified_until(context: str) -> float | None:
    """Return the last moment that the last modification in the *context* of a link may mean, or None.

    A date without a time ends a day later, a month after 31 days, a year after 366.
    """
    begins, length = modified(context), len(context.partition(_MODIFIED)[2])
    return None if begins is None else begins + DAY * {4: 366, 7: 31, 10: 1}.get(length, 0)


def _dated(text: str) -> str:
    """Return the suffix of a link's context for the date *text*; "" if it is no date."""
    date = text.strip()
    return f"{_MODIFIED}{date}" if _DATE.fullmatch(date) else ""


def _unescaped(text: str) -> str:
    for name, character in _ENTITIES:
        text = text.replace(name, character)
    return text


class SitemapEntries:
    """Target of the XML parser that collects the entries of a sitemap."""

    def __init__(self) -> None:
        self._pages = LinkCollector()
        self._extras = LinkCollector()  # kept apart so that extras do not crowd out the pages
        self._hop = Hop.LINK
        self._references: list[tuple[str, Hop, str]] = []  # references of this entry
        self._date = ""  # date of this entry
        self._pieces: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        name, _ = _local(tag)
        if name in _ENTRIES:
            self._end_entry()
        if name in ("sitemap", "sitemapindex"):
            self._hop = Hop.MANIFEST
        elif name == "urlset":
            self._hop = Hop.LINK
        elif name == "link":
            self._extras.add(as_written(attributes.get("href", "")), Hop.LINK, "link/@href")
        self._forget()

    def data(self, text: str) -> None:
        """Process a piece of text."""
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def end(self, tag: str) -> None:
        """Process an end tag."""
        name, is_extra = _local(tag)
        if name in _PLACES and self._pieces:
            text = "".join(self._pieces).strip()
            if is_extra and "://" in text:
                self._extras.add(text, Hop.LINK, name)
            elif not is_extra and (
                name == "loc" or "://" in text
            ):  # some sitemaps put the URL into the entry without a loc
                self._references.append((text, self._hop, name))
        elif name == "lastmod" and not is_extra:
            self._date = _dated("".join(self._pieces))
        if name in _ENTRIES:
            self._end_entry()
        self._forget()

    def close(self) -> None:
        """Finish the last entry."""
        self._end_entry()

    def links(self, address: str, encoding: str, note: str) -> Links:
        """Return the links of a sitemap at *address*, pages first."""
        self._end_entry()  # in case the text was cut
        pages = self._pages.links(address, encoding, note, queries="utf-8")
        extras = self._extras.links(address, encoding, queries="utf-8")
        known = {(link.url, link.hop): link for link in (*pages.links, *extras.links)}
        return Links(tuple(known.values()), encoding, "; ".join(filter(None, (pages.note, extras.note))))

    def _end_entry(self) -> None:
        for text, hop, name in self._references:
            self._pages.add(text, hop, name + self._date)
        self._references, self._date = [], ""

    def _forget(self) -> None:
        if self._length:
            self._pieces = []
            self._length = 0


@lru_cache(maxsize=100)  # a sitemap has ten element names and a million tags
def _local(tag: str) -> tuple[str, bool]:
    """Return the local name, and whether it names an extra of a page. An unbound prefix is removed too."""
    name = tag.rpartition("}")[2].rpartition(":")[2].lower()
    return name, name.endswith("_loc") or "image" in tag.lower()


def as_written(value: str) -> str:
    """Return an attribute's value; without entity expansion libxml2 leaves ampersands escaped as `&#38;`."""
    return value.replace("&#38;", "&")


_MOST_TEXT_BYTES = 32 << 20
_URL = re.compile(r"https?://[^\s<>\"]++", re.IGNORECASE)


def read_text(document: Document) -> Links:
    """Return the URLs of the list; nothing if any line is not a URL."""
    encoding = charset.of_text(document.body, document.charset)
    found = LinkCollector()
    for line in lines(charset.pieces(document.body, encoding, _MOST_TEXT_BYTES)):
        address = line.strip()
        if not address or address.startswith("#"):
            continue
        if not _URL.fullmatch(address):
            return Links(charset=encoding)
        found.add(address, Hop.LINK, "line")
        if found.full:
            break
    note = f"only the first {_MOST_TEXT_BYTES} bytes" if len(document.body) > _MOST_TEXT_BYTES else ""
    return found.links(document.url, encoding, note, queries="utf-8")


def lines(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in *pieces*; a line too long for a URL is cut."""
    rest = ""
    for piece in pieces:
        *whole, last = piece.splitlines(keepends=True) or [""]
        for part in whole:
            yield rest + part
            rest = ""
        if len(rest) <= LONGEST:
            rest += last
        if last[-1:] in ("\n", "\r"):
            yield rest
            rest = ""
    yield rest
