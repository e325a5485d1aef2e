"""The readers of what many sites do not have, by kind: one import brings them all, and the libraries they need."""

from collections.abc import Callable

from archiver.extract import indexes, manifest, pdf, playlist, sitemap, xml
from archiver.extract.document import Document
from archiver.extract.kind import Kind
from archiver.model import Links

READERS: dict[Kind, Callable[[Document], Links]] = {
    Kind.XML: xml.read,
    Kind.SITEMAP: sitemap.read,
    Kind.PLAYLIST: playlist.read,
    Kind.MANIFEST: manifest.read,
    Kind.JSON_FEED: manifest.read_feed,
    Kind.PDF: pdf.read,
    Kind.INDEX: indexes.read,
}
