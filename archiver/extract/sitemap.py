"""What a sitemap names: XML (also feeds) or a list of addresses, plain or packed with gzip.

How it is named and what type it is said to have does not count; its bytes do.
"""

from dataclasses import replace
from functools import partial

from archiver.extract import charset, coding, xml
from archiver.extract.document import Document
from archiver.extract.found import Found
from archiver.extract.text import lines
from archiver.model import Hop, Links

MOST_BYTES = 50 << 20  # sitemaps.org's own bound


def read(document: Document) -> Links:
    """The entries of the sitemap: pages as LINK, further sitemaps as MANIFEST."""
    body, note = document.body, ""
    if body.startswith(b"\x1f\x8b"):
        body, note = coding.decoded(body, ("gzip",), MOST_BYTES)
    elif len(body) > MOST_BYTES:
        note = f"only the first {MOST_BYTES} bytes"
    encoding = charset.of_xml(body, document.charset)
    pieces = partial(charset.pieces, body, encoding, MOST_BYTES)
    if next(pieces(), "").lstrip().startswith("<"):
        return xml.of_text(pieces, replace(document, body=body), encoding, note)
    found = Found()
    for line in lines(pieces()):
        address = line.strip()
        if address[:8].lower().startswith(("http://", "https://")):
            found.add(address, Hop.LINK, "line")
        if found.full:
            break
    return found.links(document.url, encoding, note, queries="utf-8")
