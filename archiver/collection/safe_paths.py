"""Check that a collection holds only folders and regular files; a received one may hold links and pipes instead.

If we followed a link, its sender could read, change or delete whatever this user can. So every command checks first,
and refuses the collection with the offending path. The collection's folder itself may be a link, because the user who
names it made it.

A folder in place of a file, and a file in place of a folder, are refused too: a command that skipped them would leave
out what they should hold. So is a collection of which files are being deleted.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from archiver.collection.index import INDEX
from archiver.collection.layout import NEXT, PRUNED, STAMP, Layout
from archiver.collection.records import is_warc
from archiver.errors import ConfigError
from archiver.storage import DRAFT, kind, storage

DEEPEST = 12  # levels of folders
_ENDINGS = ("-wal", "-shm", "-journal")  # of the files that SQLite puts beside a database


def check_files(directory: Path, *, pruning: bool = False) -> None:
    """Refuse the collection in *directory* unless all that archiver uses in it are folders and regular files.

    *pruning*: a prune may be interrupted or under way.
    """
    if not directory.is_dir():
        return
    layout = Layout(directory)
    with storage(directory):
        for path in _folders(layout):
            if _check(path, directory, folder=True):
                _check_below(path, directory, DEEPEST)
        for path in (*_files(layout), *_folders_named_like_warcs(layout)):
            _check(path, directory, folder=False)
        _check_earlier(layout)
        if not pruning and layout.pruning.exists():
            raise ConfigError(
                f"{directory}: archiver prune is deleting files of it, or was interrupted; to finish that: "
                f"archiver prune {quote(str(directory))}"
            )


def make_folders(directory: Path) -> Layout:
    """Create the folders that a crawl needs in *directory*, after `check_files`, and return its layout."""
    check_files(directory)
    layout = Layout(directory)
    layout.make()
    return layout


def _folders(layout: Layout) -> tuple[Path, ...]:
    own = (layout.archive, layout.indexes, layout.log.parent, layout.reports, layout.spool, layout.damaged)
    return (*own, layout.earlier, layout.directory / "imports")


def _files(layout: Layout) -> Iterator[Path]:
    paths = (layout.database, layout.scratch, layout.settings, layout.lock, layout.imports, layout.address)
    names = [path.name for path in (*paths, layout.live, layout.pruning, layout.origins)]
    drafts = [f"{name}{DRAFT}" for name in names]
    yield from (layout.directory / name for name in (*names, *drafts))
    databases = (layout.database.name, layout.scratch.name, *drafts[:2])
    yield from (layout.directory / f"{name}{ending}" for name in databases for ending in _ENDINGS)
    yield layout.log
    yield layout.indexes / INDEX


def _check_earlier(layout: Layout) -> None:
    """Refuse what is misplaced in the folders of earlier crawls, of which a crash may have left any part."""
    if not layout.earlier.is_dir():
        return
    for folder in layout.earlier.iterdir():
        if not STAMP.fullmatch(folder.name.removesuffix(PRUNED)):
            continue
        own = Layout(folder)
        for path in (own.directory, own.log.parent, own.reports):
            _check(path, layout.directory, folder=True)
        for path in (*_files(own), own.directory / NEXT, own.directory / f"{NEXT}{DRAFT}"):
            _check(path, layout.directory, folder=False)


def _folders_named_like_warcs(layout: Layout) -> Iterator[Path]:
    if layout.archive.is_dir():
        with os.scandir(layout.archive) as entries:
            yield from (
                layout.archive / entry.name
                for entry in entries
                if is_warc(entry.name) and entry.is_dir(follow_symlinks=False)
            )


def _check(path: Path, directory: Path, *, folder: bool) -> bool:
    """Refuse *path* unless it is a *folder*, or else a file; return False if it is missing."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)):
        raise _misplaced(path, mode) if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _refused(path, mode, directory)
    return True


def _check_below(folder: Path, directory: Path, left: int) -> None:
    """Refuse links and special files below *folder*. A running crawl may remove files meanwhile."""
    if not left:
        raise ConfigError(f"{folder}: it has more than {DEEPEST} levels of folders, so it is not a collection")
    deeper = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                deeper.append(folder / entry.name)
            elif not entry.is_file(follow_symlinks=False):
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except FileNotFoundError:
                    continue
                raise _refused(folder / entry.name, mode, directory)
    for inner in deeper:
        _check_below(inner, directory, left - 1)


def _misplaced(path: Path, mode: int) -> ConfigError:
    wanted = "a file" if stat.S_ISDIR(mode) else "a folder"
    return ConfigError(f"{path} is {kind(mode)}, where {wanted} belongs; move it away, or restore what was there")


def _refused(path: Path, mode: int, directory: Path) -> ConfigError:
    if not stat.S_ISLNK(mode):
        how = "only regular files and folders may be inside a collection; remove it"
    elif path.is_dir():
        how = (
            f"archiver follows no link inside a collection. To keep it on another disk, move all of {directory} there "
            f"and make {directory} the link, or mount that folder here (mount --bind)"
        )
    else:
        how = "archiver follows no link inside a collection; put the file itself there, or a hard link (ln)"
    return ConfigError(f"{path} is {kind(mode)}; {how}")
