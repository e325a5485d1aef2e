"""The steps of an import, in the order that lets it be killed between any two of them.

Each file is copied to a draft and hashed; what cannot be replayed as it is becomes another draft beside its own; all
drafts are read whole by the code of `verify`; imports.json names them; they get their names, originals first; their
lines become part of the index; imports.json says so. A draft is gone at the next start; a file that has its name is
known by its digest, and an entry without index lines gets them the next time.
"""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from archiver import storage as disk
from archiver.collection import reindex, safe_paths
from archiver.collection.imports import ImportedFile, KeptOriginal, imported_files, write_imports
from archiver.collection.index import INDEX, Index
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import second, volume
from archiver.storage import DRAFT, STEP, storage, sync_data, sync_folder
from archiver.tools import verify
from archiver.tools.ingest.convert import remake
from archiver.tools.ingest.names import file_name, keep_original, keep_papers, place_for
from archiver.tools.ingest.sources import ArchiveFile, ArchiveFormat
from archiver.tools.ingest.wacz import CHUNK, disagreement, hash_for, mismatches
from archiver.tools.verify import Fault, Severity, VerifyReport
from archiver.tools.wacz.signature import SignatureStatus

CONVERT = "with --convert a WARC is made of it that can be replayed, and it is kept as it is beside that"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """One file and what became of it."""

    label: str  # of its source
    name: str  # in archive/
    records: int
    known: bool  # it was there already
    original: str = ""  # where it is kept as it came, below the directory; "" where the file is as it came


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import came to."""

    files: tuple[ImportedSource, ...]
    faults: tuple[Fault, ...]  # a sample of each kind, as verify keeps it
    doubts: tuple[str, ...]  # what packages say that is not so
    faulty: bool  # whether something is wrong with what was read
    refused: bool = False  # and nothing was imported for that reason
    signatures: tuple[str, ...] = ()  # what became of checking those of packages


@dataclass(slots=True)
class _Draft:
    """A file that lies in archive/ under no name yet."""

    source: ArchiveFile
    path: Path
    sha256: str
    size: int
    doubts: tuple[str, ...]
    records: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    shared: bool = False  # whether it is to be made anew, for its records share gzip members
    original: "_Draft | None" = None  # of which it was made


def bring(
    found: Sequence[ArchiveFile], directory: Path, *, strict: bool, convert: bool = True, tell: Tell = lambda _: None
) -> ImportResult:
    """Bring *found* into the collection at *directory*, which may be empty.

    With *strict*, nothing is imported if something is wrong with any of it. What nobody could replay as it is comes in
    as another file made of it, the original beside it, if *convert* says so. Raises `ConfigError` for what cannot be
    imported at all, before anything has its name.
    """
    layout = Layout(directory)
    for source in found:
        if source.form is not ArchiveFormat.WARC and not convert:
            raise ConfigError(f"{source.label}: {source.form.value}; {CONVERT}")
    safe_paths.check_files(directory)
    with storage(directory):
        _check_elsewhere(found, layout)
        for folder in (layout.archive, layout.indexes):
            folder.mkdir(parents=True, exist_ok=True)
        sync_folder(directory)
    lock = Lock(layout.lock)
    try:
        layout.forget_drafts()
        return _Import(layout, found, tell, convert=convert).run(strict=strict)
    finally:
        layout.forget_drafts()
        lock.release()


def _check_elsewhere(found: Iterable[ArchiveFile], layout: Layout) -> None:
    for source in found:
        if source.path.resolve().parent == layout.archive.resolve():
            raise ConfigError(f"{source.path} lies in that collection already; archiver index lists what is in it")


class _Import:
    """One import under way, in a collection whose lock is held."""

    def __init__(self, layout: Layout, found: Sequence[ArchiveFile], tell: Tell, *, convert: bool) -> None:
        self._layout = layout
        self._found = found
        self._convert = convert
        self._tell = tell
        self._present = _Present(layout.archive)
        self._arrived: list[ImportedSource] = []
        # What never came to its name is forgotten; the source is still where it was.
        self._entries = [
            each for each in imported_files(layout) if each.indexed or (layout.archive / each.name).exists()
        ]
        self._remade = {
            each.original.sha256: (each.name, each.original.bytes)
            for each in self._entries
            if each.original is not None and (layout.archive / each.name).exists()
        }

    def run(self, *, strict: bool) -> ImportResult:
        """All steps."""
        packages = {source.package for source in self._found if source.package is not None}
        papers = sum(member.size for package in packages for member in package.kept)
        self._check_room(
            papers + sum(source.size * (1 if source.form is ArchiveFormat.WARC else 2) for source in self._found)
        )
        drafts = [
            draft if draft.source.form is ArchiveFormat.WARC else self._made_of(draft) for draft in self._copied()
        ]
        report = self._verified(drafts)
        drafts = [self._made_of(draft) if draft.shared else draft for draft in drafts]
        doubts = self._doubts(drafts)
        faulty = not report.ok or bool(doubts)
        refused = strict and faulty
        outcome = ImportResult((), report.faults, doubts, faulty, refused=refused, signatures=self._signatures())
        if outcome.refused:
            return outcome
        self._named(drafts)
        self._listed()
        return replace(outcome, files=tuple(self._arrived))

    def _check_room(self, wanted: int) -> None:
        with storage(self._layout.archive):
            free = disk.free(self._layout.archive)
        if wanted > free:
            raise ArchiveError(
                f"{self._layout.archive}: {disk.amount(wanted)} are to be imported, {disk.amount(free)} are free on "
                f"its disk: {disk.amount(wanted - free)} are missing"
            )

    def _copied(self) -> list[_Draft]:
        """A draft of each file that is not there yet, its bytes on disk."""
        drafts: dict[str, _Draft] = {}  # by their digests
        total = sum(source.size for source in self._found)
        done = 0
        for number, source in enumerate(self._found):

            def at(part: int, before: int = done, number: int = number) -> None:
                share = (before + part) / max(total, 1)
                self._tell(f"copying: {share:.0%} of {volume(total)}, file {number + 1} of {len(self._found)}")

            at(0)
            done += source.size
            if name := self._known(source):
                self._arrived.append(ImportedSource(source.label, name, 0, known=True))
                continue
            draft = _copy(source, self._layout.archive / f"import-{number:05}{DRAFT}", at)
            same = drafts.get(draft.sha256)
            if same is not None:
                draft.path.unlink()
                self._arrived.append(ImportedSource(source.label, same.source.label, 0, known=True))
                continue
            drafts[draft.sha256] = draft
        return list(drafts.values())

    def _known(self, source: ArchiveFile) -> str:
        """The name of the file that has the bytes of *source*, or was made of them; "" without one."""
        if not self._present.may_hold(source.size) and all(size != source.size for _, size in self._remade.values()):
            return ""
        sha256 = _digest(source)
        return self._present.holder(source.size, sha256) or self._remade.get(sha256, ("", 0))[0]

    def _made_of(self, draft: _Draft) -> _Draft:
        """Another draft, made of *draft*, which cannot be replayed."""
        self._check_room(draft.size)
        source = draft.source
        made = remake(
            source,
            draft.path,
            draft.sha256,
            draft.path.with_name(f"made-{draft.path.name}"),
            lambda at: self._tell(f"{source.label}: each record gets its own place: {at / max(draft.size, 1):.0%}"),
        )
        doubts = (*draft.doubts, *made.doubts)
        return replace(draft, path=made.path, sha256=made.sha256, size=made.size, doubts=doubts, original=draft)

    def _verified(self, drafts: Sequence[_Draft]) -> VerifyReport:
        """What reading the drafts through has found, by the names of their sources; refuses what holds nothing."""
        if not drafts:
            return VerifyReport((), (), {})
        by_path = {str(draft.path): draft for draft in drafts}
        report = verify.verify(
            list(map(Path, by_path)),
            lambda at: self._tell(f"reading: {at.bytes_done / max(at.bytes_total, 1):.0%} of what was copied"),
        )
        for read in report.files:
            by_path[read.file].records = read.records
        for fault in report.faults:
            draft = by_path.get(fault.file)
            if draft is not None and fault.severity is Severity.FAULT:
                draft.faults[fault.code] += 1
        codes_of: dict[str, set[str]] = {}
        for fault in report.faults:
            codes_of.setdefault(fault.file, set()).add(fault.code)
        for draft in drafts:
            codes = codes_of.get(str(draft.path), set())
            draft.shared = "member-shared" in codes
            _check_usable(draft, codes, convert=self._convert)
        named = [
            replace(fault, file=by_path[fault.file].source.label) if fault.file in by_path else fault
            for fault in report.faults
        ]
        return VerifyReport(report.files, tuple(named), report.counts)

    def _doubts(self, drafts: Sequence[_Draft]) -> tuple[str, ...]:
        """What packages say of themselves that is not so: their lists, their archives, and all else in them."""
        doubts = [doubt for draft in drafts for doubt in draft.doubts]
        for package in dict.fromkeys(source.package for source in self._found if source.package is not None):
            doubts += [f"{package.path}: {doubt}" for doubt in package.doubts]
            found = mismatches(package.path, (*package.kept, *package.others))
            doubts += [f"{package.path}: {doubt}" for _, doubt in found if doubt]
        return tuple(doubts)

    def _signatures(self) -> tuple[str, ...]:
        """What became of checking those that no doubt speaks of."""
        packages = dict.fromkeys(source.package for source in self._found if source.package is not None)
        signed = ((package.path, package.signature) for package in packages if package.signature is not None)
        return tuple(f"{path}: {found}" for path, found in signed if found.status is not SignatureStatus.NOT_VALID)

    def _named(self, drafts: Sequence[_Draft]) -> None:
        """Every draft gets its name, after imports.json tells of it."""
        when = second(time.time())
        taken = self._present.names()
        kept: set[str] = set()  # places of originals
        packages = {draft.source.path: draft.source.package for draft in drafts}
        papers = {path: keep_papers(self._layout, package) for path, package in packages.items() if package is not None}
        for draft in drafts:
            source = draft.source
            compressed = source.compressed or draft.original is not None
            name = file_name(source.name, draft.sha256, taken, compressed=compressed)
            taken.add(name.lower())
            original = self._original(draft, kept)
            self._arrived.append(
                ImportedSource(
                    source.label, name, draft.records, known=False, original=original.name if original else ""
                )
            )
            self._entries.append(
                ImportedFile(
                    name=name,
                    source=str(source.path.absolute()),
                    member=source.member.name if source.member else "",
                    package=papers[source.package.path] if source.package else "",
                    sha256=draft.sha256,
                    bytes=draft.size,
                    records=draft.records,
                    when=when,
                    faults=dict(draft.faults),
                    doubts=(*draft.doubts, *(source.package.doubts if source.package else ())),
                    original=original,
                    signature=str(source.package.signature or "") if source.package else "",
                )
            )
        if drafts:
            write_imports(self._layout, self._entries)
        with storage(self._layout.archive):
            for draft, entry in zip(drafts, self._entries[len(self._entries) - len(drafts) :], strict=True):
                if draft.original is not None and entry.original is not None:
                    keep_original(draft.original.path, self._layout, entry.original.name)
                _give_name(draft.path, self._layout.archive / entry.name)
            sync_folder(self._layout.archive)

    def _original(self, draft: _Draft, kept: set[str]) -> KeptOriginal | None:
        """Where that is to be kept of which *draft* was made; *kept* hears of it."""
        if draft.original is None:
            return None
        name = place_for(self._layout, draft.source.name, draft.original.sha256, kept)
        kept.add(name.lower())
        return KeptOriginal(name, draft.original.sha256, draft.original.size)

    def _listed(self) -> None:
        """The lines of all that has none yet become part of the index; then imports.json says so."""
        waiting = [each for each in self._entries if not each.indexed]
        lost = not (self._layout.indexes / INDEX).exists()
        if not waiting and not lost:
            return
        self._tell("writing the index")
        index = Index(self._layout.indexes)
        if lost:
            reindex.rebuild(self._layout.directory)
        else:
            for each in waiting:
                reindex.add_file(index, self._layout.archive / each.name)
            index.merge_in(each.name for each in waiting)
        if waiting:
            self._entries = [replace(each, indexed=True) for each in self._entries]
            write_imports(self._layout, self._entries)


class _Present:
    """What lies in archive/ before the import, by size and digest."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._by_size: dict[int, list[str]] = {}
        self._digests: dict[str, str] = {}
        with storage(archive):
            for path in sorted(archive.iterdir()):
                if path.is_file() and not path.name.endswith(DRAFT):
                    self._by_size.setdefault(path.stat().st_size, []).append(path.name)

    def names(self) -> set[str]:
        """All names, in lower case."""
        return {name.lower() for names in self._by_size.values() for name in names}

    def may_hold(self, size: int) -> bool:
        """Whether a file of *size* bytes is there."""
        return size in self._by_size

    def holder(self, size: int, sha256: str) -> str:
        """The name of the file that has these bytes; "" without one."""
        for name in self._by_size.get(size, ()):
            if name not in self._digests:
                with storage(self._archive / name), (self._archive / name).open("rb") as file:
                    self._digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
            if self._digests[name] == sha256:
                return name
        return ""


def _digest(source: ArchiveFile) -> str:
    state = hashlib.sha256()
    with source.opened() as file:
        while piece := file.read(CHUNK):
            state.update(piece)
    return state.hexdigest()


def _copy(source: ArchiveFile, path: Path, at: Callable[[int], None]) -> _Draft:
    """The bytes of *source* at *path*, on disk, and their digest; *at* hears how many are written."""
    state = hashlib.sha256()
    stated = hash_for(source.member.stated) if source.member else None
    written = synced = 0
    with source.opened() as file, storage(path, lambda: source.size - written), path.open("xb") as copy:
        while piece := file.read(CHUNK):
            state.update(piece)
            if stated is not None:
                stated.update(piece)
            copy.write(piece)
            written += len(piece)
            if written - synced >= STEP:
                sync_data(copy)
                synced = written
                at(written)
        sync_data(copy)
    if written != source.size:
        raise ConfigError(f"{source.label} has {written} bytes and not {source.size}, as it had before: it is changing")
    doubt = disagreement(source.member, stated) if source.member and stated is not None else ""
    return _Draft(source, path, state.hexdigest(), written, (f"{source.path}: {doubt}",) if doubt else ())


def _check_usable(draft: _Draft, codes: set[str], *, convert: bool) -> None:
    label = draft.source.label
    if "arc" in codes:
        raise ConfigError(f"{label}: an ARC file, which no package may hold; unpack it, and import it by itself")
    if not draft.records:
        raise ConfigError(f"{label}: there is no whole record in it")
    if draft.shared and not convert:
        raise ConfigError(f"{label}: several records share a gzip member, so they cannot be replayed; {CONVERT}")


def _give_name(draft: Path, path: Path) -> None:
    """Rename *draft*, over nothing."""
    if os.path.lexists(path):
        raise ArchiveError(f"{path} has come to be there in this moment; it was left as it is")
    draft.rename(path)
