"""`imports.json`: the imported files in `archive/`, with their sources and the faults found in them.

The crawl treats every listed file as foreign, even one that this program wrote. An entry is written before its file
gets its name, so the file may be missing, or have no lines in the index, until the entry says `indexed`.
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
    """The original of a file that was converted because it could not be replayed as it was."""

    name: str  # below the directory
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One imported file."""

    name: str  # in `archive`
    source: str  # the path it was read from
    member: str  # of a package; "" if the source is the file itself
    package: str  # the folder, below the directory, with the other contents of the package; "" without one
    sha256: str  # of the file in `archive`
    bytes: int
    records: int
    when: str
    faults: Mapping[str, int] = field(default_factory=dict)  # counts by verify's codes
    doubts: tuple[str, ...] = ()  # wrong statements of its package, and parts of its original that it lacks
    indexed: bool = False
    original: KeptOriginal | None = None  # None if the file was not converted
    signature: str = ""  # the result of checking the package's signature; "" if it has none
    adopted: bool = False  # it belongs to the crawl that `archiver adopt` took over, so the database knows it too


def imported_files(layout: Layout) -> tuple[ImportedFile, ...]:
    """Return all entries of imports.json; raises `ArchiveError` if it cannot be read."""
    path = layout.imports
    if not path.exists():
        return ()
    try:
        with storage(path), open_file(path) as file:
            return imports_of(json.loads(file.read(LARGEST)), path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArchiveError(
            f"{path} cannot be read ({str(error)[:100]}); restore a copy, or remove it: without it the list of "
            "imported files is lost"
        ) from None


def imports_of(document: Any, path: Path) -> tuple[ImportedFile, ...]:
    """Return the entries in *document*, which is from *path*."""
    return tuple(_entry(each, path) for each in document["files"])


def imported_names(layout: Layout) -> frozenset[str]:
    """Return the names of the imported files."""
    return frozenset(each.name for each in imported_files(layout))


def adopted_names(layout: Layout) -> frozenset[str]:
    """Return the names of the imported files that belong to the crawl itself."""
    return frozenset(each.name for each in imported_files(layout) if each.adopted)


def write_imports(layout: Layout, files: Iterable[ImportedFile]) -> None:
    """Replace imports.json by *files*; it is on disk when this returns."""
    text = json.dumps({"files": [asdict(each) for each in files]}, indent=1, ensure_ascii=False) + "\n"
    data = text.encode("utf-8", "replace")
    replace_file(layout.imports, lambda file: file.writelines((data,)), lambda: len(data))


def _entry(fields: Any, path: Path) -> ImportedFile:
    return ImportedFile(
        name=bare(fields["name"], path),
        source=str(fields.get("source", "")),
        member=str(fields.get("member", "")),
        package=str(fields.get("package", "")),
        sha256=str(fields["sha256"]),
        bytes=int(fields["bytes"]),
        records=int(fields.get("records", 0)),
        when=str(fields.get("when", "")),
        faults={str(word): int(number) for word, number in fields.get("faults", {}).items()},
        doubts=tuple(map(str, fields.get("doubts", ()))),
        indexed=bool(fields.get("indexed")),
        original=_original(fields.get("original"), path),
        signature=str(fields.get("signature", "")),
        adopted=bool(fields.get("adopted")),
    )


def _original(fields: Any, path: Path) -> KeptOriginal | None:
    if not fields:
        return None
    name = str(fields["name"])
    for part in PurePosixPath(name).parts or ("",):
        bare(part, path)
    return KeptOriginal(name, str(fields["sha256"]), int(fields["bytes"]))
