"""The steps of an import, in an order that allows a kill between any two of them.

Each file is copied to a draft and hashed. Files that cannot be replayed are converted into a second draft. All drafts
are verified. imports.json lists them. They get their names, originals first. Their lines are added to the index, and
imports.json says so. The next start removes drafts, recognizes named files by their digest, and adds missing index
lines.
"""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from archiver.collection import reindex, safe_paths
from archiver.collection.imports import ImportedFile, KeptOriginal, imported_files, write_imports
from archiver.collection.index import INDEX, Index
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import second, volume
from archiver.storage import DRAFT, STEP, amount, free, storage, sync_data, sync_folder
from archiver.tools.ingest.convert import convert_archive
from archiver.tools.ingest.names import ExistingFiles, file_name, keep_original, keep_side_files, place_for
from archiver.tools.ingest.sources import ArchiveFile, ArchiveFormat
from archiver.tools.ingest.wacz import CHUNK, disagreement, hash_for, mismatches
from archiver.tools.verify.collection import verify
from archiver.tools.verify.findings import Severity, VerifyFinding, VerifyReport
from archiver.tools.wacz.signature import SignatureStatus

CONVERT = "--convert makes a WARC of it that can be replayed, and keeps the original"

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ImportedSource:
    """The result for one file."""

    label: str  # of its source
    name: str  # in archive/
    records: int
    known: bool  # it was already there
    original: str = ""  # path of the original below the directory; empty if the file is unchanged


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import."""

    files: tuple[ImportedSource, ...]
    findings: tuple[VerifyFinding, ...]  # a sample of each kind
    doubts: tuple[str, ...]  # what packages say wrongly about themselves
    faulty: bool  # something is wrong with the input
    refused: bool = False  # and therefore nothing was imported
    signatures: tuple[str, ...] = ()  # results of checking the signatures of packages


@dataclass(slots=True)
class _Draft:
    """A file in archive/ without its final name."""

    source: ArchiveFile
    path: Path
    sha256: str
    size: int
    doubts: tuple[str, ...]
    records: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    shared: bool = False  # must be converted, because its records share gzip members
    original: "_Draft | None" = None  # the draft that it was converted from


def import_archives(
    found: Sequence[ArchiveFile],
    directory: Path,
    *,
    strict: bool,
    convert: bool = True,
    report: Report = lambda _: None,
) -> ImportResult:
    """Import *found* into the collection at *directory*, which may be empty.

    With *strict*, nothing is imported if anything is wrong. Files that cannot be replayed are converted if *convert* is
    set, and their originals are kept. Raises `ConfigError` before any file gets its name if something cannot be
    imported at all.
    """
    layout = Layout(directory)
    for source in found:
        if source.form is not ArchiveFormat.WARC and not convert:
            raise ConfigError(f"{source.label}: {source.form.value}; {CONVERT}")
    safe_paths.check_files(directory)
    with storage(directory):
        _refuse_own_files(found, layout)
        for folder in (layout.archive, layout.indexes):
            folder.mkdir(parents=True, exist_ok=True)
        sync_folder(directory)
    with Lock(layout.lock):
        layout.forget_drafts()
        try:
            return _Import(layout, found, report, convert=convert).run(strict=strict)
        finally:
            layout.forget_drafts()


def _refuse_own_files(found: Iterable[ArchiveFile], layout: Layout) -> None:
    for source in found:
        if source.path.resolve().parent == layout.archive.resolve():
            raise ConfigError(f"{source.path} is already in that collection; to index it, run archiver index")


class _Import:
    """One import, in a collection whose lock is held."""

    def __init__(self, layout: Layout, found: Sequence[ArchiveFile], report: Report, *, convert: bool) -> None:
        self._layout = layout
        self._found = found
        self._convert = convert
        self._report = report
        self._present = ExistingFiles(layout.archive)
        self._imported: list[ImportedSource] = []
        # Forget files that never got their names; their sources still exist.
        self._entries = [
            each for each in imported_files(layout) if each.indexed or (layout.archive / each.name).exists()
        ]
        self._converted = {
            each.original.sha256: (each.name, each.original.bytes)
            for each in self._entries
            if each.original is not None and (layout.archive / each.name).exists()
        }

    def run(self, *, strict: bool) -> ImportResult:
        """Run all steps."""
        packages = {source.package for source in self._found if source.package is not None}
        side_files = sum(member.size for package in packages for member in package.kept)
        self._check_room(
            side_files + sum(source.size * (1 if source.form is ArchiveFormat.WARC else 2) for source in self._found)
        )
        drafts = [
            draft if draft.source.form is ArchiveFormat.WARC else self._convert_draft(draft)
            for draft in self._copy_all()
        ]
        verification = self._verify(drafts)
        drafts = [self._convert_draft(draft) if draft.shared else draft for draft in drafts]
        doubts = self._doubts(drafts)
        faulty = not verification.ok or bool(doubts)
        refused = strict and faulty
        outcome = ImportResult(
            (), verification.findings, doubts, faulty, refused=refused, signatures=self._signatures()
        )
        if outcome.refused:
            return outcome
        self._publish(drafts)
        self._index()
        return replace(outcome, files=tuple(self._imported))

    def _check_room(self, wanted: int) -> None:
        with storage(self._layout.archive):
            available = free(self._layout.archive)
        if wanted > available:
            raise ArchiveError(
                f"{self._layout.archive}: the import needs {amount(wanted)}, but {amount(available)} are free on "
                f"its disk: {amount(wanted - available)} are missing"
            )

    def _copy_all(self) -> list[_Draft]:
        """Return a synced draft of each new file."""
        drafts: dict[str, _Draft] = {}  # by digest
        total = sum(source.size for source in self._found)
        done = 0
        for number, source in enumerate(self._found):

            def at(part: int, before: int = done, number: int = number) -> None:
                share = (before + part) / max(total, 1)
                self._report(f"copying: {share:.0%} of {volume(total)}, file {number + 1} of {len(self._found)}")

            at(0)
            done += source.size
            if name := self._existing_name(source):
                self._imported.append(ImportedSource(source.label, name, 0, known=True))
                continue
            draft = _copy(source, self._layout.archive / f"import-{number:05}{DRAFT}", at)
            same = drafts.get(draft.sha256)
            if same is not None:
                draft.path.unlink()
                self._imported.append(ImportedSource(source.label, same.source.label, 0, known=True))
                continue
            drafts[draft.sha256] = draft
        return list(drafts.values())

    def _existing_name(self, source: ArchiveFile) -> str:
        """Return the name of the file that has the bytes of *source*, or was converted from them; empty if none."""
        if not self._present.may_hold(source.size) and all(size != source.size for _, size in self._converted.values()):
            return ""
        sha256 = _digest(source)
        return self._present.holder(source.size, sha256) or self._converted.get(sha256, ("", 0))[0]

    def _convert_draft(self, draft: _Draft) -> _Draft:
        """Convert *draft*, which cannot be replayed, into another draft."""
        self._check_room(draft.size)
        source = draft.source
        converted = convert_archive(
            source,
            draft.path,
            draft.sha256,
            draft.path.with_name(f"converted-{draft.path.name}"),
            lambda at: self._report(f"converting {source.label}: {at / max(draft.size, 1):.0%}"),
        )
        doubts = (*draft.doubts, *converted.doubts)
        return replace(
            draft, path=converted.path, sha256=converted.sha256, size=converted.size, doubts=doubts, original=draft
        )

    def _verify(self, drafts: Sequence[_Draft]) -> VerifyReport:
        """Verify the drafts and return the report with source names. Raises `ConfigError` for files without records."""
        if not drafts:
            return VerifyReport((), (), {})
        by_path = {str(draft.path): draft for draft in drafts}
        report = verify(
            list(map(Path, by_path)),
            lambda at: self._report(f"verifying: {at.bytes_done / max(at.bytes_total, 1):.0%} of the copies"),
        )
        for read in report.files:
            by_path[read.file].records = read.records
        for finding in report.findings:
            draft = by_path.get(finding.file)
            if draft is not None and finding.severity is Severity.FAULT:
                draft.faults[finding.code] += 1
        codes_of: dict[str, set[str]] = {}
        for finding in report.findings:
            codes_of.setdefault(finding.file, set()).add(finding.code)
        for draft in drafts:
            codes = codes_of.get(str(draft.path), set())
            draft.shared = "member-shared" in codes
            _check_usable(draft, codes, convert=self._convert)
        named = [
            replace(finding, file=by_path[finding.file].source.label) if finding.file in by_path else finding
            for finding in report.findings
        ]
        return VerifyReport(report.files, tuple(named), report.counts)

    def _doubts(self, drafts: Sequence[_Draft]) -> tuple[str, ...]:
        """Return what packages say wrongly about themselves: in their lists, archives and other files."""
        doubts = [doubt for draft in drafts for doubt in draft.doubts]
        for package in dict.fromkeys(source.package for source in self._found if source.package is not None):
            doubts += [f"{package.path}: {doubt}" for doubt in package.doubts]
            found = mismatches(package.path, (*package.kept, *package.others))
            doubts += [f"{package.path}: {doubt}" for _, doubt in found if doubt]
        return tuple(doubts)

    def _signatures(self) -> tuple[str, ...]:
        """Return the results of checking signatures, except those reported as doubts."""
        packages = dict.fromkeys(source.package for source in self._found if source.package is not None)
        signed = ((package.path, package.signature) for package in packages if package.signature is not None)
        return tuple(f"{path}: {found}" for path, found in signed if found.status is not SignatureStatus.NOT_VALID)

    def _publish(self, drafts: Sequence[_Draft]) -> None:
        """List every draft in imports.json, then give it its name."""
        when = second(time.time())
        taken = self._present.names()
        kept: set[str] = set()  # paths of originals
        packages = {draft.source.path: draft.source.package for draft in drafts}
        folders = {
            path: keep_side_files(self._layout, package) for path, package in packages.items() if package is not None
        }
        for draft in drafts:
            source = draft.source
            compressed = source.compressed or draft.original is not None
            name = file_name(source.name, draft.sha256, taken, compressed=compressed)
            taken.add(name.lower())
            original = self._original(draft, kept)
            self._imported.append(
                ImportedSource(
                    source.label, name, draft.records, known=False, original=original.name if original else ""
                )
            )
            self._entries.append(
                ImportedFile(
                    name=name,
                    source=str(source.path.absolute()),
                    member=source.member.name if source.member else "",
                    package=folders[source.package.path] if source.package else "",
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
                _rename(draft.path, self._layout.archive / entry.name)
            sync_folder(self._layout.archive)

    def _original(self, draft: _Draft, kept: set[str]) -> KeptOriginal | None:
        """Return where to keep the original of *draft*, and add the path to *kept*."""
        if draft.original is None:
            return None
        name = place_for(self._layout, draft.source.name, draft.original.sha256, kept)
        kept.add(name.lower())
        return KeptOriginal(name, draft.original.sha256, draft.original.size)

    def _index(self) -> None:
        """Index the files that are not in the index yet, then note it in imports.json."""
        waiting = [each for each in self._entries if not each.indexed]
        lost = not (self._layout.indexes / INDEX).exists()
        if not waiting and not lost:
            return
        self._report("writing the index")
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


def _digest(source: ArchiveFile) -> str:
    state = hashlib.sha256()
    with source.opened() as file:
        while piece := file.read(CHUNK):
            state.update(piece)
    return state.hexdigest()


def _copy(source: ArchiveFile, path: Path, at: Callable[[int], None]) -> _Draft:
    """Copy *source* to *path*, synced and hashed; *at* receives the number of bytes written."""
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
        raise ConfigError(f"{source.label} changed while it was copied: {source.size} bytes before, {written} now")
    doubt = disagreement(source.member, stated) if source.member and stated is not None else ""
    return _Draft(source, path, state.hexdigest(), written, (f"{source.path}: {doubt}",) if doubt else ())


def _check_usable(draft: _Draft, codes: set[str], *, convert: bool) -> None:
    label = draft.source.label
    if "arc" in codes:
        raise ConfigError(f"{label}: an ARC file, which a package must not contain; unpack it and import it separately")
    if not draft.records:
        raise ConfigError(f"{label}: it has no complete record")
    if draft.shared and not convert:
        raise ConfigError(f"{label}: its records share gzip members, so they cannot be replayed; {CONVERT}")


def _rename(draft: Path, path: Path) -> None:
    """Rename *draft* without overwriting a file."""
    if os.path.lexists(path):
        raise ArchiveError(f"{path} was created by someone else during the import; it was not replaced")
    draft.rename(path)
