"""The index lines of earlier crawls, where the index is lost: read from their WARC files."""

from archiver.archive.index import Index
from archiver.archive.layout import Layout, storage
from archiver.archive.reindex import captures
from archiver.earlier.rounds import files_of


def list_earlier(layout: Layout, index: Index) -> None:
    """Add every capture of every earlier crawl in the collection of *layout* to *index*."""
    for name in sorted(files_of(layout)):
        path = layout.archive / name
        if not path.exists():  # verify names it
            continue
        with storage(path), path.open("rb") as file:
            for capture in captures(file, name):
                index.add((capture,))
        index.close_file(name)
