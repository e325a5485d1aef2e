"""Pack a collection into one WACZ file or several: one pass over each WARC file, in constant memory.

A WARC file is copied as it is read: its pages are found and its hash is computed on the way. Packages are written as
drafts, which get their names when all of them are on disk, so each appears complete or not at all. A failed run removes
its drafts; those of a killed run are replaced by the next.

With a size limit, WARC files are split between packages by their known sizes, in order and never cut. A JSON file opens
the packages as one in replayweb.page. A revisit may refer to a record in another package, so each package names the
others as required.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from archiver.config.seeds import SeedAbout
from archiver.errors import ArchiveError, ConfigError
from archiver.storage import DRAFT, replace_file, sha256_of, storage, sync_folder
from archiver.tools.wacz.contents import (
    BLOCKS,
    INDEX,
    KEYS,
    PLAIN,
    PackageIndex,
    PackContents,
    PackedWarc,
    ZipNumBlocks,
)
from archiver.tools.wacz.pages import (
    EXTRA_PAGES_FILE,
    NOT_SHOWN,
    PAGES_FILE,
    DocumentReader,
    PageFinder,
    PageLists,
    PageRow,
    Shown,
    format_date,
)
from archiver.tools.wacz.zip import (
    PackagePart,
    PackageWriter,
    Sign,
    ZipMember,
    describe_parts,
    describe_relation,
    describe_seeds,
)
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import scan
from archiver.warc.warcinfo import ForgedRecords

ROOM = 256 << 10  # bytes for the description of a package
ROOM_EACH = 2 << 10  # bytes per WARC file in it
PAGES = 10  # a tenth of a WARC file's size is reserved for its pages; most need a third of that


def split_warcs(warcs: Sequence[PackedWarc], limit: int, beside: int) -> list[tuple[PackedWarc, ...]]:
    """Return the WARC files per package. A package is larger than *limit* bytes only if it has one large WARC file.

    *beside* is the size of everything else in the first package.
    """
    found: list[list[PackedWarc]] = [[]]
    taken = beside
    for warc in warcs:
        wanted = size_of((warc,)) + warc.size // PAGES
        if found[-1] and ROOM + taken + wanted > limit:
            found.append([])
            taken = 0
        found[-1].append(warc)
        taken += wanted
    return [tuple(share) for share in found]


def size_of(warcs: Sequence[PackedWarc]) -> int:
    """Return the bytes for *warcs* and their index, which compresses to less than half."""
    return sum(warc.size + warc.line_bytes // 2 + ROOM_EACH for warc in warcs)


MOST_DAMAGE = 20  # places reported; `verify` reports all
_PIECE = 1 << 20  # bytes read at once, and between two progress reports


@dataclass(frozen=True, slots=True)
class PackOptions:
    """The options of `pack`."""

    output: Path  # NAME.wacz; with several packages NAME-001.wacz … and NAME.json
    software: str
    created: str  # RFC 3339
    title: str
    description: str = ""
    text: bool = True
    split: int | None = None  # maximum size of a package in bytes
    sign: Sign | None = None
    lists: Callable[[PageRow], bool] = lambda _page: True  # tells if a page is listed
    shown: Shown = NOT_SHOWN
    about: Mapping[str, SeedAbout] = field(default_factory=dict)  # descriptions of seeds by URL


@dataclass(frozen=True, slots=True)
class PackProgress:
    """The progress of `pack`."""

    done: int  # bytes of WARC files
    total: int
    file: int  # number of the current file
    files: int
    listing: bool = False  # writing the index and the page lists


@dataclass(frozen=True, slots=True)
class PackResult:
    """One package that was written."""

    path: Path
    size: int
    warcs: int
    captures: int  # lines in its index
    seeds: int
    pages: int  # without the seeds
    without_text: int
    damage: tuple[str, ...]  # incomplete records in its WARC files


Report = Callable[[PackProgress], None]


def output_paths(options: PackOptions, contents: PackContents) -> list[Path]:
    """Return the paths of the packages; if there are several, the JSON file is last."""
    count = len(_split(options, contents))
    if count == 1:
        return [options.output]
    return [*(_part(options, number) for number in range(1, count + 1)), options.output.with_suffix(".json")]


def _part(options: PackOptions, number: int) -> Path:
    return options.output.with_name(f"{options.output.stem}-{number:03}.wacz")


def foreign_part(options: PackOptions, made: Sequence[PackResult]) -> Path | None:
    """Return an existing file that looks like one part more than *made*, from an earlier run with more parts."""
    path = _part(options, len(made) + 1 if len(made) > 1 else 1)
    return path if path.exists() else None


def refuse_existing(options: PackOptions, contents: PackContents) -> None:
    """Raise `ConfigError` if an output file exists."""
    there = next((path for path in output_paths(options, contents) if path.exists()), None)
    if there is not None:
        raise ConfigError(f"{there} already exists; choose another name with -o, or replace it with --force")


def pack(
    options: PackOptions, contents: PackContents, reader: DocumentReader, report: Report = lambda _: None
) -> list[PackResult]:
    """Write the packages and return them. Existing files are replaced.

    *reader* reads the pages and is closed at the end. On failure it raises `ArchiveError` and leaves no files.
    """
    warcs_of, paths = _split(options, contents), output_paths(options, contents)
    drafts = [path.with_name(path.name + DRAFT) for path in paths[: len(warcs_of)]]
    packing = _Packing(options, contents, reader, report)
    parts: list[PackagePart] = []
    made: list[PackResult] = []
    try:
        for number, (share, draft, path) in enumerate(zip(warcs_of, drafts, paths, strict=False)):
            several = describe_relation(parts, [each.name for each in paths[:-1]], number) if len(warcs_of) > 1 else {}
            with storage(path, packing.left), draft.open("w+b") as file:
                made.append(packing.package(file, share, path, several))
            if len(warcs_of) > 1:
                parts.append(PackagePart(path.name, _digest(draft), made[-1].size))
        if parts:  # the JSON names existing packages: remove the old one first, write the new one last
            with storage(paths[-1]):
                paths[-1].unlink(missing_ok=True)
        for draft, path in zip(drafts, paths, strict=False):
            with storage(path):
                draft.replace(path)
                sync_folder(path.parent)
    except BaseException:
        for draft in drafts:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        raise
    finally:
        packing.close()
    if parts:
        text = describe_parts(parts, options.title, options.created, options.software)
        replace_file(paths[-1], lambda file: cast("None", file.write(text)))
    return made


def _split(options: PackOptions, contents: PackContents) -> list[tuple[PackedWarc, ...]]:
    if options.split is None:
        return [contents.warcs]
    return split_warcs(contents.warcs, options.split, _beside(options, contents))


def _beside(options: PackOptions, contents: PackContents) -> int:
    """Return the bytes for the logs and the descriptions of seeds, which compress to less than half."""
    texts = len(json.dumps(describe_seeds(options.about)).encode("utf-8", "replace")) if options.about else 0
    return (sum(path.stat().st_size for _, path in contents.logs) + texts) // 2


def _digest(path: Path) -> str:
    with storage(path), path.open("rb") as file:
        return f"sha256:{sha256_of(file)}"


class _Packing:
    """Writes the packages of one collection."""

    def __init__(self, options: PackOptions, contents: PackContents, reader: DocumentReader, report: Report) -> None:
        self._options = options
        self._contents = contents
        self._report = report
        self._finder = PageFinder(text=options.text, reader=reader, shown=options.shown)
        self._total = sum(warc.size for warc in contents.warcs)
        self._done = self._reported = 0  # bytes
        self._file = 0

    def close(self) -> None:
        """Close the page reader."""
        self._finder.close()

    def left(self) -> int:
        """Return the least number of bytes still to be written."""
        return self._total - self._done

    def package(self, draft: BinaryIO, warcs: Sequence[PackedWarc], path: Path, several: dict[str, Any]) -> PackResult:
        """Write and sync the package of *warcs*; it will be renamed to *path*."""
        options = self._options
        first = warcs[0] == self._contents.warcs[0]
        budget = None
        if options.split is not None and sum(warc.size for warc in warcs) < options.split:  # else nothing is gained
            fixed = ROOM + size_of(warcs) + (_beside(options, self._contents) if first else 0)
            budget = max(0, options.split - fixed)
        damage: list[str] = []
        with PageLists(path.parent, budget, text=options.text) as found, ExitStack() as stack:
            package = PackageWriter(draft)
            stack.callback(package.abandon)
            for warc in warcs:
                damage += self._warc(package, warc, found)
            self._report(PackProgress(self._done, self._total, self._file, len(self._contents.warcs), listing=True))
            _index(package, warcs, self._contents)
            package.add(PAGES_FILE, found.seeds.pieces(), size=found.seeds.size)
            if found.others.rows:
                package.add(EXTRA_PAGES_FILE, found.others.pieces(), size=found.others.size)
            for place, log in self._contents.logs if first else ():
                package.add(place, _pieces(log), size=log.stat().st_size)
            package.finish({**self._metadata(found, seeds=first), **several}, options.sign)
            return PackResult(
                path=path,
                size=draft.seek(0, 2),
                warcs=len(warcs),
                captures=sum(warc.lines for warc in warcs),
                seeds=found.seeds.rows,
                pages=found.others.rows,
                without_text=found.without_text,
                damage=tuple(damage),
            )

    def _metadata(self, found: PageLists, *, seeds: bool) -> dict[str, Any]:
        options, main = self._options, found.main()
        metadata: dict[str, Any] = {"title": options.title}
        if options.description:
            metadata["description"] = options.description
        metadata |= {"created": options.created, "software": options.software}
        if main is not None:
            metadata |= {"mainPageUrl": main[0], "mainPageDate": format_date(main[1])}
        if seeds and options.about:
            metadata["seeds"] = describe_seeds(options.about)
        return metadata

    def _warc(self, package: PackageWriter, warc: PackedWarc, found: PageLists) -> list[str]:
        """Copy *warc*, add its pages to *found*, and return what is incomplete in it."""
        damage: list[str] = []
        self._file += 1
        before = self._done
        with storage(warc.path):
            file = warc.path.open("rb")
        with file, package.member(warc.place, warc.size, packed=False) as member:
            forged = ForgedRecords(file)
            copied = _Copied(warc.path, file, member, lambda size: self._note_progress(before + size))
            for item in scan(cast("BinaryIO", copied)):
                if forged.is_forged(item):
                    continue
                if isinstance(item, DamagedRecord):
                    damage.append(f"{warc.path}: {item}")
                    del damage[MOST_DAMAGE:]
                else:
                    self._add(self._finder.add(item), found)
            self._add(self._finder.finish(), found)
            copied.rest()
        if member.size != warc.size:
            raise _changed(warc.path)
        return damage

    def _note_progress(self, done: int) -> None:
        """Note that *done* bytes are copied; report it now and then."""
        self._done = done
        if done - self._reported >= _PIECE or done == self._total:
            self._reported = done
            self._report(PackProgress(done, self._total, self._file, len(self._contents.warcs)))

    def _add(self, pages: Iterable[PageRow], found: PageLists) -> None:
        about = self._options.about
        for page in filter(self._options.lists, pages):
            texts = about.get(page.found_from or page.url) if page.seed else None
            found.add(page if texts is None else page._replace(about=texts))


def _index(package: PackageWriter, warcs: Sequence[PackedWarc], contents: PackContents) -> None:
    """Write the index of *warcs*: one plain file if short, else in blocks."""
    lines = sum(warc.lines for warc in warcs)
    size = sum(warc.line_bytes for warc in warcs)
    known = {warc.path.name for warc in warcs}
    folder = warcs[0].path.parent if any(warc.revisits for warc in contents.warcs) else None
    with PackageIndex(contents.indexes) as lines_of:
        if lines <= PLAIN:
            package.add(INDEX, lines_of.of(known, folder), size=size)
        else:
            with package.member(BLOCKS, size, packed=False) as member:
                blocks = ZipNumBlocks(member.write)
                blocks.add(lines_of.of(known, folder))
            package.add(KEYS, blocks.keys)
        if lines_of.lines_returned != lines:
            raise _changed(contents.indexes[0].parent)


def _changed(path: Path) -> ArchiveError:
    return ArchiveError(f"{path}: it changed while it was packed; pack it again when nothing writes to it")


def _pieces(path: Path) -> Iterator[bytes]:
    with storage(path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


class _Copied:
    """A file that is copied as far as it was read, for a reader that mostly reads forward."""

    def __init__(self, path: Path, file: BinaryIO, member: ZipMember, moved: Callable[[int], None]) -> None:
        self._moved = moved  # receives the number of bytes copied
        self._path = path
        self._file = file
        self._member = member
        self._at = 0

    def seek(self, offset: int) -> int:
        """Go to *offset*."""
        self._at = self._file.seek(offset)
        return self._at

    def read(self, size: int) -> bytes:
        """Return the next *size* bytes, and copy those that were not copied yet."""
        if self._at > self._member.size:
            self._copy_to(self._at)
        with storage(self._path):
            data = self._file.read(size)
        new = data[max(self._member.size - self._at, 0) :]
        self._at += len(data)
        if new:
            self._member.write(new)
            self._moved(self._member.size)
        return data

    def rest(self) -> None:
        """Copy the rest of the file."""
        self.seek(self._member.size)
        while self.read(_PIECE):
            pass

    def _copy_to(self, offset: int) -> None:
        self.seek(self._member.size)
        while self._at < offset:
            if not self.read(min(_PIECE, offset - self._at)):
                break
        self.seek(offset)
