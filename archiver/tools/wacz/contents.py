"""What there is to pack: finished WARC files, the lines that the index has for each, and logs.

Everything that would make a package false is refused here, before a byte is written: a file that is not finished, an
index that names what is not there or leaves out what is. Each refusal says what to do.
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

NO_WARC = "it is no WARC file"
ARRIVING = "its import was stopped, so not all of it is listed; the same import, once more, ends it"

_IMPORTED = "imports"  # below it lies what else was in packages that were imported
_LOGS = (".log", ".txt")


@dataclass(frozen=True, slots=True)
class PackedWarc:
    """One WARC file, and what the index says of it."""

    path: Path
    size: int
    lines: int = 0
    line_bytes: int = 0
    revisits: int = 0

    @property
    def place(self) -> str:
        """Where it lies in a package."""
        return f"archive/{self.path.name}"


@dataclass(frozen=True, slots=True)
class PackContents:
    """A collection as it is packed."""

    directory: Path
    warcs: tuple[PackedWarc, ...]  # by name
    indexes: tuple[Path, ...]
    logs: tuple[tuple[str, Path], ...]  # the place in a package, and the file
    left_out: tuple[tuple[str, str], ...] = ()  # names in archive/, and why each is


def take_stock(directory: Path) -> PackContents:
    """What can be packed of the collection in *directory*; `ConfigError` where it cannot be packed as it is."""
    layout = Layout(directory)
    anew = f"archiver index {quote(str(directory))}"
    safe_paths.check_files(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} holds no archive to pack: there is no archive/ in it")
    with storage(layout.archive):
        files = sorted(path for path in layout.archive.iterdir() if path.is_file())
    _refuse_unfinished(files, directory)
    paths = [path for path in files if path.name.endswith(WARC_ENDINGS)]
    if not paths:
        raise ConfigError(f"{layout.archive} holds no WARC file: there is nothing to pack")
    for path in paths:
        _check_name(path)
    indexes = tuple(sorted(layout.indexes.glob("*.cdxj")))
    if not indexes:
        raise ConfigError(f"{layout.indexes} holds no index of the archive; make it with: {anew}")
    with PackageIndex(indexes, anew) as listing:
        tallies = listing.tallies()
    _refuse_strangers(tallies, {path.name for path in paths}, layout, anew)
    arriving = _arriving(layout, tallies)
    paths = [path for path in paths if path.name not in arriving]
    if not paths:
        raise ConfigError(f"{layout.archive} holds nothing but {min(arriving)}: {ARRIVING}")
    with storage(layout.archive):
        warcs = tuple(_warc(path, tallies.get(path.name)) for path in paths)
    for warc in warcs:
        if not warc.lines and _holds_captures(warc.path):
            raise ConfigError(f"{warc.path}: the index lists nothing of what is in it; make it anew with: {anew}")
    left_out = tuple((path.name, ARRIVING if path.name in arriving else NO_WARC) for path in files if path not in paths)
    logs = dict(_logs(layout))
    logs |= dict(_logs_of_others(layout, logs))
    return PackContents(directory, warcs, indexes, tuple(logs.items()), left_out)


def _refuse_unfinished(files: Iterable[Path], directory: Path) -> None:
    unfinished = next((path for path in files if path.name.endswith(OPEN)), None)
    if unfinished is not None:
        where = quote(str(directory))
        raise ConfigError(
            f"{unfinished} is not finished: its crawl was cut off; go on with: archiver resume {where}, or have it "
            f"finished as it is with: archiver rebuild {where}"
        )


def _check_name(path: Path) -> None:
    try:
        path.name.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: its name is not UTF-8, as names in a WACZ file must be; give it another") from None
    if not path.name.isprintable() or "\\" in path.name:
        raise ConfigError(f"{path}: its name holds what names in a WACZ file may not; give it another")


def _refuse_strangers(tallies: dict[str, WarcTotals], known: set[str], layout: Layout, anew: str) -> None:
    strange = next((name for name in tallies if name not in known), None)
    if strange is not None:
        raise ConfigError(
            f"{layout.indexes} names {strange!r}, and there is no such WARC file in {layout.archive}; put it back, or "
            f"make the index anew with: {anew}"
        )


def _warc(path: Path, tally: WarcTotals | None) -> PackedWarc:
    tally = tally or WarcTotals()
    return PackedWarc(path, path.stat().st_size, tally.lines, tally.size, tally.revisits)


def _holds_captures(path: Path) -> bool:
    """Whether an index made anew would list anything of it."""
    with storage(path), path.open("rb") as file:
        return next(lines(file, path.name), None) is not None


def _arriving(layout: Layout, tallies: dict[str, WarcTotals]) -> set[str]:
    """The files whose import was stopped before the index listed all of them."""
    found: set[str] = set()
    try:
        told = imported_files(layout)
    except ArchiveError:  # `verify` tells of it
        return found
    for each in told:
        path = layout.archive / each.name
        if not each.indexed and path.is_file():
            with storage(path), path.open("rb") as file:
                count = sum(1 for _ in lines(file, path.name))
            if tallies.get(each.name, WarcTotals()).lines < count:
                found.add(each.name)
    return found


def _logs(layout: Layout) -> Iterable[tuple[str, Path]]:
    """The logs of the crawl and of those before it, with names that stand in one folder."""
    if layout.log.is_file():
        yield "logs/crawl.log", layout.log
    for earlier in reversed(rounds(layout)):
        if earlier.log.is_file():
            yield f"logs/crawl-{earlier.directory.name}.log", earlier.log


def _logs_of_others(layout: Layout, taken: Collection[str]) -> Iterable[tuple[str, Path]]:
    """The logs of packages that were imported, with names that are not *taken*.

    Only those that nobody takes for tables: a ragged JSON or CSV file would be a fault to the reference validator.
    """
    names = {place.lower() for place in taken}
    for log in sorted((layout.directory / _IMPORTED).glob("*/logs/*")):
        if log.suffix in _LOGS and log.is_file():
            plain, marked = f"logs/{log.name}", f"logs/{log.parent.parent.name}-{log.name}"
            place = marked if plain.lower() in names else plain
            if place.lower() not in names:
                names.add(place.lower())
                yield place, log
