"""Carry out a plan of `archiver prune`. Its file, `prune.json`, is on disk before anything is deleted.

The order: the list of imported files gets what stays of earlier crawls. The index forgets what goes, so that a replay
never names a missing file. Then the WARC files go, and last the databases of their crawls. Each step can be repeated.
Until all is done, other commands refuse the collection, and `archiver prune DIR` finishes.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from archiver.collection import index
from archiver.collection.imports import imports_of, write_imports
from archiver.collection.layout import PRUNED, STAMP, Layout
from archiver.errors import ArchiveError
from archiver.storage import bare, open_file, replace_file, storage, sync_folder
from archiver.tools.retention.plan import PrunePlan
from archiver.warc.cdxj import parse_line

LARGEST = 256 << 20  # bytes of prune.json


def carry_out(layout: Layout, plan: PrunePlan) -> None:
    """Delete what *plan* says. The caller holds the lock."""
    document = {
        "crawls": [crawl.stamp for crawl in plan.crawls],
        "delete": [file.name for file in plan.deleted],
        "files": [asdict(each) for each in plan.imports],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    replace_file(layout.pruning, lambda file: file.writelines((text,)), lambda: len(text))
    finish(layout)


def finish(layout: Layout) -> int:
    """Do what prune.json says and remove it. Return the number of WARC files that were still there to delete."""
    if not layout.pruning.exists():
        return 0
    crawls, names, files = _read(layout.pruning)
    write_imports(layout, imports_of({"files": files}, layout.pruning))
    _forget_lines(layout.indexes, names)
    deleted = _delete([layout.archive / name for name in names])
    for stamp in crawls:
        _retire(layout, stamp)
    _delete([layout.pruning])
    return deleted


def _read(path: Path) -> tuple[list[str], set[str], object]:
    try:
        with storage(path), open_file(path) as file:
            document = json.loads(file.read(LARGEST))
        crawls = [each for each in map(str, document["crawls"]) if STAMP.fullmatch(each)]
        return crawls, {bare(each, path) for each in document["delete"]}, document["files"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveError(
            f"{path} cannot be read ({str(error)[:100]}); if nothing is missing (archiver verify), remove it"
        ) from None


def _forget_lines(folder: Path, names: set[str]) -> None:
    """Remove the lines of the WARC files *names* from every index in *folder*."""
    for path in sorted(folder.glob("*.cdxj")) if names else ():

        def fill(file: BinaryIO, path: Path = path) -> None:
            with path.open("rb") as before:
                file.writelines(_without(before, names))

        replace_file(path, fill)
    if folder.is_dir():
        index.Index(folder).notify_replays()


def _without(lines: BinaryIO, names: set[str]) -> Iterator[bytes]:
    for line in lines:
        entry = parse_line(line)
        if entry is None or entry.filename not in names:
            yield line


def _delete(paths: list[Path]) -> int:
    """Delete those of *paths* that are there, durably; return how many."""
    count = 0
    for path in paths:
        with storage(path):
            count += path.exists()
            path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        sync_folder(folder)
    return count


def _retire(layout: Layout, stamp: str) -> None:
    """Let the crawl *stamp* be no crawl of the collection any more."""
    folder, retired = layout.earlier / stamp, layout.earlier / f"{stamp}{PRUNED}"
    with storage(folder):
        if folder.exists():
            folder.rename(retired)
        sync_folder(layout.earlier)
    if retired.is_dir():
        _delete([path for path in Layout(retired).database_files() if path.exists()])
