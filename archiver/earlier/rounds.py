"""Which earlier crawls a collection has: a folder for each, named after the second in which it began."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from archiver.archive.layout import Layout, storage
from archiver.frontier.past import Past

STAMP = re.compile(r"[0-9]{14}")


def rounds(layout: Layout) -> list[Layout]:
    """The earlier crawls in the collection of *layout*, newest first."""
    if not layout.earlier.is_dir():
        return []
    with storage(layout.earlier):
        folders = [Layout(path) for path in layout.earlier.iterdir() if STAMP.fullmatch(path.name)]
    found = [folder for folder in folders if folder.database.is_file()]
    return sorted(found, key=lambda folder: folder.directory.name, reverse=True)


@contextmanager
def database(folder: Layout) -> Iterator[Past]:
    """The database of the earlier crawl in *folder*."""
    with closing(Past(folder.database)) as past:
        yield past


def files_of(layout: Layout) -> frozenset[str]:
    """The names of all WARC files that belong to earlier crawls; none of them is ever written again."""
    names: set[str] = set()
    for folder in rounds(layout):
        with database(folder) as past:
            names.update(past.files())
    return frozenset(names)


def stamp_of(folder: Path) -> str:
    """When the crawl in *folder* began, for a person: `2026-11-21 07:01:02`."""
    digits = folder.name
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:]}"
