"""Documents that are scripts or data for scripts: their URLs, relative to the page that runs them.

JavaScript resolves strings against the page, not the script. `Document.page` is the page that named the script. Data
may also mean its own folder, so a relative path in JSON is read both ways. Markup in JSON is not: a script inserts it
into the page. All are guesses, except what indexes of known form name.
"""

from itertools import zip_longest

from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.html.elements import add_markup_in_strings
from archiver.extract.references import MOST_LINKS, LinkCollector
from archiver.extract.script import javascript, search_indexes
from archiver.model import Hop, Link, Links

MOST_BYTES = 16 << 20


def read_script(document: Document) -> Links:
    """Return what the script names."""
    head = document.body[: search_indexes.BEGINNING].decode("utf-8", "replace")
    return _read(document, ((not search_indexes.is_own_base(head) and document.page) or document.url,))


def read_data(document: Document) -> Links:
    """Return what the JSON names."""
    return _read(document, tuple(dict.fromkeys((document.page or document.url, document.url))))


def _read(document: Document, bases: tuple[str, ...]) -> Links:
    encoding = charset.of_xml(document.body, document.charset)
    text = charset.text(document.body[:MOST_BYTES], encoding)
    own, of_page, of_folder = LinkCollector(), LinkCollector(), LinkCollector()
    for reference, hop, context in search_indexes.urls(text, document.url):
        own.add(reference, hop, context)
    for reference in javascript.asset_urls(text, document.url):
        own.add(reference, Hop.SPECULATIVE, javascript.CHUNK)
    add_markup_in_strings(of_page, text)
    for reference, context in javascript.references(text, near=len(bases) > 1 or bool(document.page)):
        if context in javascript.OF_ITSELF or not _is_relative(reference):
            own.add(reference, Hop.SPECULATIVE, context)
            continue
        of_page.add(reference, Hop.SPECULATIVE, context)
        of_folder.add(reference, Hop.SPECULATIVE, context)
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    links = own.links(document.url, encoding, note, queries="utf-8")
    if of_page.empty:
        return links
    pairs = zip((of_page, of_folder), bases, strict=False)
    readings = [found.links(base, encoding, queries="utf-8") for found, base in pairs]
    return Links(_interleaved(links, readings), encoding, "; ".join(filter(None, (links.note, readings[0].note))))


def _is_relative(reference: str) -> bool:
    return not reference.startswith(("/", "http:", "https:"))


def _interleaved(links: Links, readings: list[Links]) -> tuple[Link, ...]:
    """Return *links* and those of all *readings*, interleaved: the crawl soon sees which reading is right."""
    known = {link.url: link for link in links.links}  # the surest hop of each URL: guesses come last
    for row in zip_longest(*(reading.links for reading in readings)):
        for link in filter(None, row):
            known.setdefault(link.url, link)
    return tuple(known.values())[:MOST_LINKS]
