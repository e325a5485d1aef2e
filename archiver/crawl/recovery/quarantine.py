"""What a repair takes out of a collection is kept under damaged/, for certain, with a note that says what it was."""

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
    """Take *gaps* out of the WARC at *path*; what lies between them stays, in its order.

    A gap at the end is cut off. For one in the middle the file is written anew and put in place in one step.
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
    """Put the database *new* in the place of crawl.db, which is kept under damaged/ with all that belongs to it.

    The old one goes first, and its write-ahead file with it: a new database must never be read with an old one's.
    Between the two steps there is none, which nobody takes for a crawl.
    """
    _folder(layout)
    number = 1
    while (kept := layout.damaged / f"{layout.database.name}.{number}").exists():
        number += 1
    if layout.database.exists():
        size = layout.database.stat().st_size
        _note(kept, {"file": layout.database.name, "bytes": size, "why": "it was made anew from the WARC files"})
    for ending in _DATABASE:
        part = layout.database.with_name(layout.database.name + ending)
        with storage(part):
            if part.exists():
                part.rename(kept.with_name(kept.name + ending))
    sync_folder(layout.damaged)
    with storage(new):
        sync_folder(layout.directory)
        new.rename(layout.database)
        sync_folder(layout.directory)


def write_again(path: Path, offset: int) -> None:
    """The bytes of *path* from *offset* on are on disk, whatever became of an earlier attempt.

    A sync that fails may leave bytes that can be read but are on no disk, and will not be tried again (Linux marks
    them as written). Written once more, they are.
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


def _note(kept: Path, said: dict[str, str | int]) -> None:
    text = json.dumps(said, indent=2) + "\n"
    replace_file(kept.with_name(kept.name + ".json"), lambda target: target.writelines((text.encode(),)))


def _copy(source: BinaryIO, start: int, end: int, target: BinaryIO) -> None:
    source.seek(start)
    while start < end:
        piece = source.read(min(STEP, end - start))
        if not piece:
            raise OSError(f"the file ends at {start}, {end - start} bytes early")
        target.write(piece)
        start += len(piece)
