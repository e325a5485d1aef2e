"""Which earlier crawls a collection has: a folder for each, named after the second in which it began."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from archiver.archive.layout import Layout, storage
from archiver.frontier.past import Past

MOST_ASKED = 32  # of the newest crawls what they hold is asked for: each is an open file, and a question for each URL
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


def stamp_of(folder: Layout) -> str:
    """When the crawl in *folder* began, in UTC, as ISO 8601 has it."""
    return f"{datetime.strptime(folder.directory.name, '%Y%m%d%H%M%S').replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
