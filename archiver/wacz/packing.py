"""A collection becomes one WACZ file, or several: one pass over each WARC file, in constant memory.

A WARC file is copied as it is read: what the copy gets is read for its pages and hashed on the way. Packages are
written as drafts and get their names when all of them are on disk: each appears whole or not at all. What fails takes
its drafts with it; what is killed leaves drafts that the next one replaces.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, BinaryIO, cast

from archiver.archive.layout import DRAFT, replace_file, storage, sync_folder
from archiver.errors import ArchiveError, ConfigError
from archiver.reader_process import ReaderProcess
from archiver.wacz import listing, rows, splitting
from archiver.wacz.listing import Blocks, Listing
from archiver.wacz.package import Member, Package, Sign
from archiver.wacz.pages import Finder, moment
from archiver.wacz.rows import Rows
from archiver.wacz.several import Part, described, related
from archiver.wacz.stock import Stock, Warc
from archiver.warc.members import Torn
from archiver.warc.reader import Record, scan
from archiver.warc.warcinfo import Strays

MOST_DAMAGE = 20  # places that are named; `verify` names them all

_PIECE = 1 << 20
_TELL = 1 << 20  # bytes between two signs of life


@dataclass(frozen=True, slots=True)
class Wish:
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
class Progress:
    """How far it is."""

    done: int  # bytes of WARC files
    total: int
    file: int  # that is being packed
    files: int
    listing: bool = False  # whether the index and the lists of pages are written now


@dataclass(frozen=True, slots=True)
class Packed:
    """One package that was made."""

    path: Path
    size: int
    warcs: int
    captures: int  # lines of its index
    seeds: int
    pages: int  # besides the seeds
    without_text: int
    damage: tuple[str, ...]  # what is not whole in its WARC files


Tell = Callable[[Progress], None]


def names(wish: Wish, stock: Stock) -> list[Path]:
    """What the packages will be called; where there are several, what describes them stands last."""
    count = len(_shares(wish, stock))
    if count == 1:
        return [wish.output]
    return [*(_part(wish, number) for number in range(1, count + 1)), wish.output.with_suffix(".json")]


def _part(wish: Wish, number: int) -> Path:
    return wish.output.with_name(f"{wish.output.stem}-{number:03}.wacz")


def foreign_part(wish: Wish, made: Sequence[Packed]) -> Path | None:
    """What lies there under the name of a part more than those *made*, from a time when there were more."""
    path = _part(wish, len(made) + 1 if len(made) > 1 else 1)
    return path if path.exists() else None


def refuse_existing(wish: Wish, stock: Stock) -> None:
    """Refuse where a file that would be made is there already."""
    there = next((path for path in names(wish, stock) if path.exists()), None)
    if there is not None:
        raise ConfigError(f"{there} is there already; name another one with -o, or replace it with --force")


def pack(wish: Wish, stock: Stock, tell: Tell = lambda _: None) -> list[Packed]:
    """Make the packages; existing ones are replaced. `ArchiveError` where that fails, and then nothing is left."""
    shares, paths = _shares(wish, stock), names(wish, stock)
    drafts = [path.with_name(path.name + DRAFT) for path in paths[: len(shares)]]
    packing = _Packing(wish, stock, tell)
    parts: list[Part] = []
    made: list[Packed] = []
    try:
        for number, (share, draft, path) in enumerate(zip(shares, drafts, paths, strict=False)):
            several = related(parts, [each.name for each in paths[:-1]], number) if len(shares) > 1 else {}
            with storage(path, packing.left), draft.open("w+b") as file:
                made.append(packing.package(file, share, path, several))
            if len(shares) > 1:
                parts.append(Part(path.name, _digest(draft), made[-1].size))
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


def _shares(wish: Wish, stock: Stock) -> list[tuple[Warc, ...]]:
    if wish.split is None:
        return [stock.warcs]
    return splitting.shares(stock.warcs, wish.split, _beside(stock))


def _beside(stock: Stock) -> int:
    """Bytes for the logs, of which less than half is left when they are compressed."""
    return sum(path.stat().st_size for _, path in stock.logs) // 2


def _digest(path: Path) -> str:
    with storage(path), path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


class _Packing:
    """The packages of one collection on their way."""

    def __init__(self, wish: Wish, stock: Stock, tell: Tell) -> None:
        self._wish = wish
        self._stock = stock
        self._tell = tell
        self._finder = Finder(text=wish.text, reader=ReaderProcess())
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

    def package(self, draft: BinaryIO, warcs: Sequence[Warc], path: Path, several: dict[str, Any]) -> Packed:
        """Write the package of *warcs*, whole and synced; its name will be *path*."""
        wish = self._wish
        first = warcs[0] == self._stock.warcs[0]
        budget = None
        if wish.split is not None and sum(warc.size for warc in warcs) < wish.split:  # else nothing is won without text
            fixed = splitting.ROOM + splitting.needed(warcs) + (_beside(self._stock) if first else 0)
            budget = max(0, wish.split - fixed)
        damage: list[str] = []
        with Rows(path.parent, budget, text=wish.text) as found, ExitStack() as stack:
            package = Package(draft)
            stack.callback(package.abandon)
            for warc in warcs:
                damage += self._warc(package, warc, found)
            self._tell(Progress(self._done, self._total, self._file, len(self._stock.warcs), listing=True))
            _index(package, warcs, self._stock)
            package.add(rows.PAGES, found.seeds.pieces(), size=found.seeds.size)
            if found.others.rows:
                package.add(rows.EXTRA, found.others.pieces(), size=found.others.size)
            for place, log in self._stock.logs if first else ():
                package.add(place, _pieces(log), size=log.stat().st_size)
            package.finish({**self._said(found), **several}, wish.sign)
            return Packed(
                path=path,
                size=draft.seek(0, 2),
                warcs=len(warcs),
                captures=sum(warc.lines for warc in warcs),
                seeds=found.seeds.rows,
                pages=found.others.rows,
                without_text=found.without_text,
                damage=tuple(damage),
            )

    def _said(self, found: Rows) -> dict[str, Any]:
        wish, main = self._wish, found.main()
        said: dict[str, Any] = {"title": wish.title}
        if wish.description:
            said["description"] = wish.description
        said |= {"created": wish.created, "software": wish.software}
        if main is not None:
            said |= {"mainPageUrl": main[0], "mainPageDate": moment(main[1])}
        return said

    def _warc(self, package: Package, warc: Warc, found: Rows) -> list[str]:
        """Copy *warc* and add its pages to *found*; what is not whole in it."""
        damage: list[str] = []
        self._file += 1
        before = self._done
        with storage(warc.path):
            file = warc.path.open("rb")
        with file, package.member(warc.place, warc.size, packed=False) as member:
            strays = Strays(file)
            copied = _Copied(warc.path, file, member, lambda size: self._stand(before + size))
            for item in scan(cast("BinaryIO", copied)):
                if strays.is_stray(item):
                    continue
                if isinstance(item, Torn):
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
            self._tell(Progress(done, self._total, self._file, len(self._stock.warcs)))

    def _add(self, record: Record, found: Rows) -> None:
        for page in self._finder.take(record):
            found.add(page)


def _index(package: Package, warcs: Sequence[Warc], stock: Stock) -> None:
    """The index of *warcs*: plain where it is short, else in blocks."""
    lines = sum(warc.lines for warc in warcs)
    size = sum(warc.line_bytes for warc in warcs)
    known = {warc.path.name for warc in warcs}
    folder = warcs[0].path.parent if any(warc.revisits for warc in stock.warcs) else None
    with Listing(stock.indexes) as whole:
        if lines <= listing.PLAIN:
            package.add(listing.INDEX, whole.of(known, folder), size=size)
        else:
            with package.member(listing.BLOCKS, size, packed=False) as member:
                blocks = Blocks(member.write)
                blocks.take(whole.of(known, folder))
            package.add(listing.KEYS, blocks.keys)
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

    def __init__(self, path: Path, file: BinaryIO, member: Member, moved: Callable[[int], None]) -> None:
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
