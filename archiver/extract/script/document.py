"""Documents that are scripts, or data for scripts: what they name, relative to the page that runs them.

The language resolves a string against the page, not against the script. `Document.page` is the page that named the
script; data may mean their own folder as well, so a relative path in JSON is read both ways. Markup in JSON is not:
a script puts it into the page. All of it is a guess, but for what the data of a generated manual surely name.
"""

from itertools import zip_longest

from archiver.extract import charset
from archiver.extract.collector import MOST_LINKS, LinkCollector
from archiver.extract.document import Document
from archiver.extract.html.elements import written
from archiver.extract.script import javascript, search_indexes
from archiver.model import Hop, Link, Links

MOST_BYTES = 16 << 20


def read_script(document: Document) -> Links:
    """What the script names."""
    head = document.body[: search_indexes.BEGINNING].decode("utf-8", "replace")
    return _read(document, ((not search_indexes.means_itself(head) and document.page) or document.url,))


def read_data(document: Document) -> Links:
    """What the JSON names."""
    return _read(document, tuple(dict.fromkeys((document.page or document.url, document.url))))


def _read(document: Document, bases: tuple[str, ...]) -> Links:
    encoding = charset.of_xml(document.body, document.charset)
    text = charset.text(document.body[:MOST_BYTES], encoding)
    own, of_page, of_folder = LinkCollector(), LinkCollector(), LinkCollector()
    for reference, hop, context in search_indexes.names(text, document.url):
        own.add(reference, hop, context)
    for reference in javascript.assets(text, document.url):
        own.add(reference, Hop.SPECULATIVE, javascript.CHUNK)
    written(of_page, text)
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
    return Links(_in_turn(links, readings), encoding, "; ".join(filter(None, (links.note, readings[0].note))))


def _is_relative(reference: str) -> bool:
    return not reference.startswith(("/", "http:", "https:"))


def _in_turn(links: Links, readings: list[Links]) -> tuple[Link, ...]:
    """*links*, and those of all *readings*, of each reference one after the other: soon it shows which one is right."""
    known = {link.url: link for link in links.links}  # with a surer hop where there are two: a guess comes last
    for row in zip_longest(*(reading.links for reading in readings)):
        for link in filter(None, row):
            known.setdefault(link.url, link)
    return tuple(known.values())[:MOST_LINKS]
