"""Moves what a repair takes out of a collection to damaged/, durably, with a note that says what it was."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from archiver.collection.layout import Layout
from archiver.crawl.recovery.scan import UnclaimedBytes
from archiver.storage import OPEN, open_file, replace_file, storage, sync_data, sync_folder

STEP = 1 << 20  # bytes copied at a time

_DATABASE = ("", "-wal", "-shm")  # the files of one SQLite database, by the end of their names


def cut(path: Path, gaps: Sequence[UnclaimedBytes], layout: Layout) -> None:
    """Take *gaps* out of the WARC at *path*; everything between them stays, in its order.

    A gap at the end is cut off. If there is one in the middle, the file is rewritten and replaced in one step.
    """
    if not gaps:
        return
    _folder(layout)
    size = path.stat().st_size
    with open_file(path) as source:
        for gap in gaps:
            _keep(source, gap, path, layout, size)
        if len(gaps) == 1 and gaps[0].end == size:
            with open_file(path, "r+b") as file:
                file.truncate(gaps[0].start)
                sync_data(file)
            return

        def fill(target: BinaryIO) -> None:
            start = 0
            for gap in [*gaps, UnclaimedBytes(size, size, "")]:
                _copy(source, start, gap.start, target)
                start = gap.end

        replace_file(path, fill, lambda: size)


def replace_database(layout: Layout, new: Path) -> None:
    """Replace crawl.db by the database *new*; the old one is kept under damaged/ with its other files.

    The old one goes first, with its write-ahead file, which must never be read with a new database. Between the two
    steps there is no database, so no program takes the directory for a crawl.
    """
    set_database_aside(layout)
    with storage(new):
        sync_folder(layout.directory)
        new.rename(layout.database)
        sync_folder(layout.directory)


def set_database_aside(layout: Layout) -> None:
    """Move crawl.db, if there is one, to damaged/ with its other files."""
    _folder(layout)
    number = 1
    while (kept := layout.damaged / f"{layout.database.name}.{number}").exists():
        number += 1
    if layout.database.exists():
        size = layout.database.stat().st_size
        _note(kept, {"file": layout.database.name, "bytes": size, "why": "it was rebuilt from the WARC files"})
    for ending in _DATABASE:
        part = layout.database.with_name(layout.database.name + ending)
        with storage(part):
            if part.exists():
                part.rename(kept.with_name(kept.name + ending))
    sync_folder(layout.damaged)


def write_again(path: Path, offset: int) -> None:
    """Put the bytes of *path* from *offset* on on disk, even if an earlier sync has failed.

    After a failed sync the bytes may be readable but not on disk, and the kernel does not try again (Linux marks them
    as written). So we write them once more.
    """
    with open_file(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        for start in range(offset, end, STEP):
            file.seek(start)
            piece = file.read(STEP)
            file.seek(start)
            file.write(piece)
        sync_data(file)


def _folder(layout: Layout) -> None:
    if not layout.damaged.exists():
        with storage(layout.damaged):
            layout.damaged.mkdir()
            sync_folder(layout.directory)


def _keep(source: BinaryIO, gap: UnclaimedBytes, path: Path, layout: Layout, size: int) -> None:
    name = path.name.removesuffix(OPEN)
    kept = layout.damaged / f"{name}.{gap.start}.{'tail' if gap.end == size else 'part'}"
    replace_file(
        kept, lambda target: _copy(source, gap.start, gap.end, target), lambda: gap.end - gap.start, private=True
    )
    _note(kept, {"file": name, "offset": gap.start, "bytes": gap.end - gap.start, "why": gap.why})


def _note(kept: Path, facts: dict[str, str | int]) -> None:
    text = json.dumps(facts, indent=2) + "\n"
    replace_file(kept.with_name(kept.name + ".json"), lambda target: target.writelines((text.encode(),)))


def _copy(source: BinaryIO, start: int, end: int, target: BinaryIO) -> None:
    source.seek(start)
    while start < end:
        piece = source.read(min(STEP, end - start))
        if not piece:
            raise OSError(f"the file ends at {start}, {end - start} bytes early")
        target.write(piece)
        start += len(piece)
