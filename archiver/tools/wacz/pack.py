"""A collection becomes one WACZ file, or several: one pass over each WARC file, in constant memory.

A WARC file is copied as it is read: what the copy gets is read for its pages and hashed on the way. Packages are
written as drafts and get their names when all of them are on disk: each appears whole or not at all. What fails takes
its drafts with it; what is killed leaves drafts that the next one replaces.

What goes into which package, where a collection is packed into several: by the sizes that are known beforehand.

WARC files stay whole and in order. Pure.

Packages that belong together: the JSON file by which replayweb.page opens them as one, and what each says of others.

A page may have come again unchanged, and then only a revisit of it is stored; what it refers to can lie in another
package. replayweb.page looks for it in those that a package names as required.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

from archiver.errors import ArchiveError, ConfigError
from archiver.storage import DRAFT, replace_file, storage, sync_folder
from archiver.tools.wacz import index
from archiver.tools.wacz import pages as rows
from archiver.tools.wacz.contents import PackContents, PackedWarc
from archiver.tools.wacz.index import PackageIndex, ZipNumBlocks
from archiver.tools.wacz.pages import DocumentReader, Finder, PageLists, moment
from archiver.tools.wacz.zip import PackageWriter, Sign, ZipMember
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from archiver.warc.warcinfo import ForgedRecords

ROOM = 256 << 10  # bytes for what describes a package
ROOM_EACH = 2 << 10  # and for each WARC file in it
PAGES = 10  # a part of so many of a WARC file is left for its pages; most need a third of it


def shares(warcs: Sequence[PackedWarc], limit: int, beside: int) -> list[tuple[PackedWarc, ...]]:
    """The WARC files of each package; only where one alone is too large a package is larger than *limit* bytes.

    *beside* is what else goes into the first one.
    """
    found: list[list[PackedWarc]] = [[]]
    taken = beside
    for warc in warcs:
        wanted = needed((warc,)) + warc.size // PAGES
        if found[-1] and ROOM + taken + wanted > limit:
            found.append([])
            taken = 0
        found[-1].append(warc)
        taken += wanted
    return [tuple(share) for share in found]


def needed(warcs: Sequence[PackedWarc]) -> int:
    """Bytes for *warcs* and their index; of a line of the index less than half is left when it is compressed."""
    return sum(warc.size + warc.line_bytes // 2 + ROOM_EACH for warc in warcs)


@dataclass(frozen=True, slots=True)
class PackagePart:
    """One of the packages."""

    name: str  # of its file
    digest: str  # of all its bytes
    size: int


def described(parts: Sequence[PackagePart], title: str, created: str, software: str) -> bytes:
    """The JSON file for *parts*, which lie beside it."""
    said = {
        "profile": "multi-wacz-package",
        "title": title,
        "created": created,
        "software": software,
        "resources": [
            {"name": part.name, "path": quote(part.name), "hash": part.digest, "bytes": part.size} for part in parts
        ],
    }
    return json.dumps(said, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def related(before: Sequence[PackagePart], names: Sequence[str], number: int) -> dict[str, Any]:
    """What the package *number* of *names* says of the others; of those *before* it the hash is known."""
    others = [{"filename": part.name, "hash": part.digest} for part in before]
    others += [{"filename": name} for name in names[number + 1 :]]
    return {"relation": {"requires": others}}


MOST_DAMAGE = 20  # places that are named; `verify` names them all

_PIECE = 1 << 20
_TELL = 1 << 20  # bytes between two signs of life


@dataclass(frozen=True, slots=True)
class PackOptions:
    """What is to be made of a collection."""

    output: Path  # NAME.wacz; of several packages: NAME-001.wacz …, and NAME.json
    software: str
    created: str  # RFC 3339
    title: str
    description: str = ""
    text: bool = True
    split: int | None = None  # bytes that a package may have
    sign: Sign | None = None


@dataclass(frozen=True, slots=True)
class PackProgress:
    """How far it is."""

    done: int  # bytes of WARC files
    total: int
    file: int  # that is being packed
    files: int
    listing: bool = False  # whether the index and the lists of pages are written now


@dataclass(frozen=True, slots=True)
class PackResult:
    """One package that was made."""

    path: Path
    size: int
    warcs: int
    captures: int  # lines of its index
    seeds: int
    pages: int  # besides the seeds
    without_text: int
    damage: tuple[str, ...]  # what is not whole in its WARC files


Tell = Callable[[PackProgress], None]


def names(wish: PackOptions, stock: PackContents) -> list[Path]:
    """What the packages will be called; where there are several, what describes them stands last."""
    count = len(_shares(wish, stock))
    if count == 1:
        return [wish.output]
    return [*(_part(wish, number) for number in range(1, count + 1)), wish.output.with_suffix(".json")]


def _part(wish: PackOptions, number: int) -> Path:
    return wish.output.with_name(f"{wish.output.stem}-{number:03}.wacz")


def foreign_part(wish: PackOptions, made: Sequence[PackResult]) -> Path | None:
    """What lies there under the name of a part more than those *made*, from a time when there were more."""
    path = _part(wish, len(made) + 1 if len(made) > 1 else 1)
    return path if path.exists() else None


def refuse_existing(wish: PackOptions, stock: PackContents) -> None:
    """Refuse where a file that would be made is there already."""
    there = next((path for path in names(wish, stock) if path.exists()), None)
    if there is not None:
        raise ConfigError(f"{there} is there already; name another one with -o, or replace it with --force")


def pack(
    wish: PackOptions, stock: PackContents, reader: DocumentReader, tell: Tell = lambda _: None
) -> list[PackResult]:
    """Write the packages and return them. Existing files are replaced.

    *reader* reads the pages and is closed at the end. On failure it raises `ArchiveError` and leaves no files.
    """
    shares, paths = _shares(wish, stock), names(wish, stock)
    drafts = [path.with_name(path.name + DRAFT) for path in paths[: len(shares)]]
    packing = _Packing(wish, stock, reader, tell)
    parts: list[PackagePart] = []
    made: list[PackResult] = []
    try:
        for number, (share, draft, path) in enumerate(zip(shares, drafts, paths, strict=False)):
            several = related(parts, [each.name for each in paths[:-1]], number) if len(shares) > 1 else {}
            with storage(path, packing.left), draft.open("w+b") as file:
                made.append(packing.package(file, share, path, several))
            if len(shares) > 1:
                parts.append(PackagePart(path.name, _digest(draft), made[-1].size))
        if parts:  # a description speaks of packages that are there: an old one goes first, the new one comes last
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
        text = described(parts, wish.title, wish.created, wish.software)
        replace_file(paths[-1], lambda file: cast("None", file.write(text)))
    return made


def _shares(wish: PackOptions, stock: PackContents) -> list[tuple[PackedWarc, ...]]:
    if wish.split is None:
        return [stock.warcs]
    return shares(stock.warcs, wish.split, _beside(stock))


def _beside(stock: PackContents) -> int:
    """Bytes for the logs, of which less than half is left when they are compressed."""
    return sum(path.stat().st_size for _, path in stock.logs) // 2


def _digest(path: Path) -> str:
    with storage(path), path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


class _Packing:
    """The packages of one collection on their way."""

    def __init__(self, wish: PackOptions, stock: PackContents, reader: DocumentReader, tell: Tell) -> None:
        self._wish = wish
        self._stock = stock
        self._tell = tell
        self._finder = Finder(text=wish.text, reader=reader)
        self._total = sum(warc.size for warc in stock.warcs)
        self._done = 0
        self._told = 0
        self._file = 0

    def close(self) -> None:
        """End what reads pages."""
        self._finder.close()

    def left(self) -> int:
        """Bytes that are still to be written, at least."""
        return self._total - self._done

    def package(self, draft: BinaryIO, warcs: Sequence[PackedWarc], path: Path, several: dict[str, Any]) -> PackResult:
        """Write the package of *warcs*, whole and synced; its name will be *path*."""
        wish = self._wish
        first = warcs[0] == self._stock.warcs[0]
        budget = None
        if wish.split is not None and sum(warc.size for warc in warcs) < wish.split:  # else nothing is won without text
            fixed = ROOM + needed(warcs) + (_beside(self._stock) if first else 0)
            budget = max(0, wish.split - fixed)
        damage: list[str] = []
        with PageLists(path.parent, budget, text=wish.text) as found, ExitStack() as stack:
            package = PackageWriter(draft)
            stack.callback(package.abandon)
            for warc in warcs:
                damage += self._warc(package, warc, found)
            self._tell(PackProgress(self._done, self._total, self._file, len(self._stock.warcs), listing=True))
            _index(package, warcs, self._stock)
            package.add(rows.PAGES_FILE, found.seeds.pieces(), size=found.seeds.size)
            if found.others.rows:
                package.add(rows.EXTRA, found.others.pieces(), size=found.others.size)
            for place, log in self._stock.logs if first else ():
                package.add(place, _pieces(log), size=log.stat().st_size)
            package.finish({**self._said(found), **several}, wish.sign)
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

    def _said(self, found: PageLists) -> dict[str, Any]:
        wish, main = self._wish, found.main()
        said: dict[str, Any] = {"title": wish.title}
        if wish.description:
            said["description"] = wish.description
        said |= {"created": wish.created, "software": wish.software}
        if main is not None:
            said |= {"mainPageUrl": main[0], "mainPageDate": moment(main[1])}
        return said

    def _warc(self, package: PackageWriter, warc: PackedWarc, found: PageLists) -> list[str]:
        """Copy *warc* and add its pages to *found*; what is not whole in it."""
        damage: list[str] = []
        self._file += 1
        before = self._done
        with storage(warc.path):
            file = warc.path.open("rb")
        with file, package.member(warc.place, warc.size, packed=False) as member:
            forged = ForgedRecords(file)
            copied = _Copied(warc.path, file, member, lambda size: self._stand(before + size))
            for item in scan(cast("BinaryIO", copied)):
                if forged.is_forged(item):
                    continue
                if isinstance(item, DamagedRecord):
                    damage.append(f"{warc.path}: {item}")
                    del damage[MOST_DAMAGE:]
                else:
                    self._add(item, found)
            for page in self._finder.rest():
                found.add(page)
            copied.rest()
        if member.size != warc.size:
            raise _changed(warc.path)
        return damage

    def _stand(self, done: int) -> None:
        """So much is *done*; it is told now and then."""
        self._done = done
        if done - self._told >= _TELL or done == self._total:
            self._told = done
            self._tell(PackProgress(done, self._total, self._file, len(self._stock.warcs)))

    def _add(self, record: Record, found: PageLists) -> None:
        for page in self._finder.take(record):
            found.add(page)


def _index(package: PackageWriter, warcs: Sequence[PackedWarc], stock: PackContents) -> None:
    """The index of *warcs*: plain where it is short, else in blocks."""
    lines = sum(warc.lines for warc in warcs)
    size = sum(warc.line_bytes for warc in warcs)
    known = {warc.path.name for warc in warcs}
    folder = warcs[0].path.parent if any(warc.revisits for warc in stock.warcs) else None
    with PackageIndex(stock.indexes) as whole:
        if lines <= index.PLAIN:
            package.add(index.INDEX, whole.of(known, folder), size=size)
        else:
            with package.member(index.BLOCKS, size, packed=False) as member:
                blocks = ZipNumBlocks(member.write)
                blocks.take(whole.of(known, folder))
            package.add(index.KEYS, blocks.keys)
        if whole.given != lines:
            raise _changed(stock.indexes[0].parent)


def _changed(path: Path) -> ArchiveError:
    return ArchiveError(f"{path}: it has changed while it was packed; pack it again when nothing works in it")


def _pieces(path: Path) -> Iterator[bytes]:
    with storage(path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


class _Copied:
    """A file that is copied as far as it was read, for who reads it forward and now and then again."""

    def __init__(self, path: Path, file: BinaryIO, member: ZipMember, moved: Callable[[int], None]) -> None:
        self._moved = moved  # is told how much was copied
        self._path = path
        self._file = file
        self._member = member
        self._at = 0

    def seek(self, offset: int) -> int:
        """Go to *offset*."""
        self._at = self._file.seek(offset)
        return self._at

    def read(self, size: int) -> bytes:
        """The next *size* bytes; those that were not copied yet are."""
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
        """Copy what was not read."""
        self.seek(self._member.size)
        while self.read(_PIECE):
            pass

    def _copy_to(self, offset: int) -> None:
        self.seek(self._member.size)
        while self._at < offset:
            if not self.read(min(_PIECE, offset - self._at)):
                break
        self.seek(offset)
