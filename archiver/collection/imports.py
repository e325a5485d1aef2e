"""`imports.json`: which files in `archive/` were brought in from elsewhere, from where, and what was found in them.

A file that stands here is foreign to the crawl, whoever wrote it. An entry is written before its file has its name:
until the entry says `indexed`, the file may be missing, or have no lines in the index.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from archiver.collection.layout import Layout
from archiver.errors import ArchiveError
from archiver.storage import bare, open_file, replace_file, storage

LARGEST = 256 << 20  # bytes: half a million files


@dataclass(frozen=True, slots=True)
class KeptOriginal:
    """The bytes of which a file was made that could not be replayed as it was."""

    name: str  # below the directory
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file that was brought in."""

    name: str  # in `archive`
    source: str  # the path it was read from
    member: str  # of a package; "" where the source is the file itself
    package: str  # the folder, below the directory, that holds what else was in the package; "" without one
    sha256: str  # of the file in `archive`
    bytes: int
    records: int
    when: str
    faults: Mapping[str, int] = field(default_factory=dict)  # by verify's code words
    doubts: tuple[str, ...] = ()  # what its package says that is not so, and what of its original is not in it
    indexed: bool = False
    original: KeptOriginal | None = None  # None: the file is as it came
    signature: str = ""  # what became of checking that of its package; "" where there is none


def imported_files(layout: Layout) -> tuple[ImportedFile, ...]:
    """All that imports.json tells; raises `ArchiveError` where it cannot be read."""
    path = layout.imports
    if not path.exists():
        return ()
    try:
        with storage(path), open_file(path) as file:
            told = json.loads(file.read(LARGEST))
        return tuple(_entry(each, path) for each in told["files"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArchiveError(
            f"{path} cannot be read ({str(error)[:100]}); put a copy back, or take it away: then nobody knows "
            "which files were imported"
        ) from None


def imported_names(layout: Layout) -> frozenset[str]:
    """The names of the files that are foreign."""
    return frozenset(each.name for each in imported_files(layout))


def write_imports(layout: Layout, files: Iterable[ImportedFile]) -> None:
    """imports.json holds *files*, for certain."""
    text = json.dumps({"files": [asdict(each) for each in files]}, indent=1, ensure_ascii=False) + "\n"
    data = text.encode("utf-8", "replace")
    replace_file(layout.imports, lambda file: file.writelines((data,)), lambda: len(data))


def _entry(told: Any, path: Path) -> ImportedFile:
    return ImportedFile(
        name=bare(told["name"], path),
        source=str(told.get("source", "")),
        member=str(told.get("member", "")),
        package=str(told.get("package", "")),
        sha256=str(told["sha256"]),
        bytes=int(told["bytes"]),
        records=int(told.get("records", 0)),
        when=str(told.get("when", "")),
        faults={str(word): int(number) for word, number in told.get("faults", {}).items()},
        doubts=tuple(map(str, told.get("doubts", ()))),
        indexed=bool(told.get("indexed")),
        original=_original(told.get("original"), path),
        signature=str(told.get("signature", "")),
    )


def _original(told: Any, path: Path) -> KeptOriginal | None:
    if not told:
        return None
    name = str(told["name"])
    for part in PurePosixPath(name).parts or ("",):
        bare(part, path)
    return KeptOriginal(name, str(told["sha256"]), int(told["bytes"]))
