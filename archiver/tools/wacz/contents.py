"""The parts of a collection that can be packed: finished WARC files, their index lines, and logs.

Everything that would make a package wrong is refused here, before a byte is written: unfinished files, an index that
names missing files, or one that lacks records. Each message says what to do.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from archiver.collection import safe_paths
from archiver.collection.earlier_crawls import rounds
from archiver.collection.imports import imported_files
from archiver.collection.layout import Layout
from archiver.collection.records import WARC_ENDINGS
from archiver.collection.reindex import lines
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import OPEN, storage
from archiver.tools.wacz.index import PackageIndex, WarcTotals

NO_WARC = "it is not a WARC file"
UNFINISHED_IMPORT = "its import was interrupted, so the index lacks some of it; run the same import again"

_IMPORTED = "imports"  # other files of imported packages are below it
_LOGS = (".log", ".txt")


@dataclass(frozen=True, slots=True)
class PackedWarc:
    """A WARC file, and its totals in the index."""

    path: Path
    size: int
    lines: int = 0
    line_bytes: int = 0
    revisits: int = 0

    @property
    def place(self) -> str:
        """Its path in a package."""
        return f"archive/{self.path.name}"


@dataclass(frozen=True, slots=True)
class PackContents:
    """The parts of a collection that go into packages."""

    directory: Path
    warcs: tuple[PackedWarc, ...]  # by name
    indexes: tuple[Path, ...]
    logs: tuple[tuple[str, Path], ...]  # path in the package, and file
    left_out: tuple[tuple[str, str], ...] = ()  # names in archive/, and the reason for each


def read_contents(directory: Path) -> PackContents:
    """Return the parts of the collection in *directory*. Raises `ConfigError` if it cannot be packed as it is."""
    layout = Layout(directory)
    rebuild_index = f"archiver index {quote(str(directory))}"
    safe_paths.check_files(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} has no archive to pack: it has no archive/")
    with storage(layout.archive):
        files = sorted(path for path in layout.archive.iterdir() if path.is_file())
    _refuse_unfinished(files, directory)
    paths = [path for path in files if path.name.endswith(WARC_ENDINGS)]
    if not paths:
        raise ConfigError(f"{layout.archive} has no WARC file to pack")
    for path in paths:
        _check_name(path)
    indexes = tuple(sorted(layout.indexes.glob("*.cdxj")))
    if not indexes:
        raise ConfigError(f"{layout.indexes} has no index; make it with: {rebuild_index}")
    with PackageIndex(indexes, rebuild_index) as index:
        totals = index.totals()
    _refuse_missing_files(totals, {path.name for path in paths}, layout, rebuild_index)
    unfinished = _unfinished(layout, totals)
    paths = [path for path in paths if path.name not in unfinished]
    if not paths:
        raise ConfigError(f"{layout.archive} has only {min(unfinished)}: {UNFINISHED_IMPORT}")
    with storage(layout.archive):
        warcs = tuple(_warc(path, totals.get(path.name)) for path in paths)
    for warc in warcs:
        if not warc.lines and _holds_captures(warc.path):
            raise ConfigError(f"{warc.path}: the index has none of its records; rebuild it with: {rebuild_index}")
    left_out = tuple(
        (path.name, UNFINISHED_IMPORT if path.name in unfinished else NO_WARC) for path in files if path not in paths
    )
    logs = dict(_logs(layout))
    logs |= dict(_logs_of_others(layout, logs))
    return PackContents(directory, warcs, indexes, tuple(logs.items()), left_out)


def _refuse_unfinished(files: Iterable[Path], directory: Path) -> None:
    unfinished = next((path for path in files if path.name.endswith(OPEN)), None)
    if unfinished is not None:
        where = quote(str(directory))
        raise ConfigError(
            f"{unfinished} is not finished: its crawl was interrupted; continue it with: archiver resume {where}, or "
            f"close the file with: archiver rebuild {where}"
        )


def _check_name(path: Path) -> None:
    try:
        path.name.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: its name is not UTF-8, which WACZ requires; rename it") from None
    if not path.name.isprintable() or "\\" in path.name:
        raise ConfigError(f"{path}: its name has characters that WACZ does not allow; rename it")


def _refuse_missing_files(totals: dict[str, WarcTotals], known: set[str], layout: Layout, rebuild_index: str) -> None:
    missing = next((name for name in totals if name not in known), None)
    if missing is not None:
        raise ConfigError(
            f"{layout.indexes} names {missing!r}, which is missing in {layout.archive}; restore it, or "
            f"rebuild the index with: {rebuild_index}"
        )


def _warc(path: Path, total: WarcTotals | None) -> PackedWarc:
    total = total or WarcTotals()
    return PackedWarc(path, path.stat().st_size, total.lines, total.size, total.revisits)


def _holds_captures(path: Path) -> bool:
    """Return whether a new index would have a line for it."""
    with storage(path), path.open("rb") as file:
        return next(lines(file, path.name), None) is not None


def _unfinished(layout: Layout, totals: dict[str, WarcTotals]) -> set[str]:
    """Return the files whose import was interrupted before the index had all their records."""
    found: set[str] = set()
    try:
        entries = imported_files(layout)
    except ArchiveError:  # reported by `verify`
        return found
    for each in entries:
        path = layout.archive / each.name
        if not each.indexed and path.is_file():
            with storage(path), path.open("rb") as file:
                count = sum(1 for _ in lines(file, path.name))
            if totals.get(each.name, WarcTotals()).lines < count:
                found.add(each.name)
    return found


def _logs(layout: Layout) -> Iterable[tuple[str, Path]]:
    """Yield the logs of this crawl and of earlier ones, with names that are unique in one folder."""
    if layout.log.is_file():
        yield "logs/crawl.log", layout.log
    for earlier in reversed(rounds(layout)):
        if earlier.log.is_file():
            yield f"logs/crawl-{earlier.directory.name}.log", earlier.log


def _logs_of_others(layout: Layout, taken: Collection[str]) -> Iterable[tuple[str, Path]]:
    """Yield the logs of imported packages, with names that are not *taken*.

    JSON and CSV files are left out: an irregular one would fail the reference validator.
    """
    names = {place.lower() for place in taken}
    for log in sorted((layout.directory / _IMPORTED).glob("*/logs/*")):
        if log.suffix in _LOGS and log.is_file():
            plain, marked = f"logs/{log.name}", f"logs/{log.parent.parent.name}-{log.name}"
            place = marked if plain.lower() in names else plain
            if place.lower() not in names:
                names.add(place.lower())
                yield place, log
