"""Recovery: reads each file that the database does not know as closed, from its committed length on.

Every whole visit found there is settled as if it had just happened, from its own metadata record. What is not a whole
visit moves to damaged/. Then the file gets its final name. A database that is older than the files is refused, because
we would fetch again what it does not know.

Recovery also checks finished files, by size and modification time, and by digest if the time has changed. That is cheap
if nothing was touched. Changed files are reported and left as they are.
"""

import hashlib
import logging
import tomllib
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from shlex import quote

from archiver.collection.earlier_crawls import files_of, stored_links
from archiver.collection.imports import imported_names
from archiver.collection.layout import Layout
from archiver.collection.records import links_at, maybe_ours, original_at
from archiver.crawl.reader_process import ReaderProcess
from archiver.crawl.recovery import quarantine
from archiver.crawl.recovery.earlier_payloads import Originals, payloads_before, whole
from archiver.crawl.recovery.scan import LoneRecord, ScannedVisit, UnclaimedBytes, survey
from archiver.crawl.visit import VisitRules, conclude
from archiver.errors import ArchiveError
from archiver.extract.exchange import UNREAD, is_page, is_robots, read_links, with_page
from archiver.frontier.dedup import Payloads
from archiver.frontier.port import FileRow, Frontier
from archiver.model import Claim, Exchange, FileState, Hop, Links, Profile, Settlement
from archiver.policy import scope
from archiver.storage import OPEN, is_bare, open_file, storage, sync_folder
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import scan
from archiver.warc.warcinfo import read_warcinfo, written_by_archiver


def finished(path: Path, name: str) -> FileState:
    """Return the state of the WARC at *path*, with its final name."""
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    found = path.stat()
    return FileState(name, found.st_size, closed=True, digest=f"sha256:{digest}", modified=found.st_mtime_ns)


def changed(path: Path, row: FileRow) -> str | FileState | None:
    """Return what is wrong with the finished file of *row*, or its new state if only its time has changed."""
    if not path.exists():
        return "is missing; its captures cannot be replayed"
    found = path.stat()
    if found.st_size != row.committed:
        how = "shorter" if found.st_size < row.committed else "longer"
        return f"is {how} than it was: {found.st_size} bytes of {row.committed}"
    if not row.digest or found.st_mtime_ns == row.modified:
        return None
    state = finished(path, row.name)
    return state if state.digest == row.digest else f"was changed since it was written{broken(path, row.committed)}"


def broken(path: Path, until: int) -> str:
    """Describe where *path* is damaged before the offset *until*; "" if it is intact."""
    with open_file(path) as file:
        before = takewhile(lambda item: item.offset < until, scan(file))
        places = [item for item in before if isinstance(item, DamagedRecord)]
    if not places:
        return ""
    more = f", and at {len(places) - 1} more" if len(places) > 1 else ""
    return f": at offset {places[0].offset} {places[0].reason}{more}"


BATCH = 64  # visits settled in one transaction …
MOST_LINKS = 20_000  # … or fewer, if their pages have so many links together

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a recovery."""

    adopted: int = 0  # visits that were on disk but not in the database
    cut: tuple[str, ...] = ()  # files from which something was moved to damaged/
    damaged: tuple[str, ...] = ()  # finished files that have changed


class Recovery:
    """Makes files and database agree again; after a clean end there is nothing to do."""

    def __init__(self, layout: Layout, frontier: Frontier, terms: VisitRules) -> None:
        self._layout = layout
        self._frontier = frontier
        self._adoption = VisitAdoption(frontier, terms, (Payloads(layout.database), *payloads_before(layout)))
        self._cut: list[str] = []
        self._damaged: list[str] = []

    async def run(self) -> Recovered:
        """Recover every file, and return the result."""
        known = {row.name: row for row in await self._frontier.files()}
        unknown = self._unknown(known)
        self._layout.forget_drafts()
        for row in known.values():
            if not row.closed:
                await self._finish(row.name, row.committed)
            else:
                await self._look(self._layout.archive / row.name, row)
        for path in unknown:
            await self._finish(path.name.removesuffix(OPEN), 0)
        if self._damaged:
            where = quote(str(self._layout.directory))
            log.warning(
                "archiver verify %s lists everything that is lost; archiver rebuild %s makes a database without it, "
                "and archiver resume then fetches it again",
                where,
                where,
            )
        return Recovered(self._adoption.adopted, tuple(self._cut), tuple(self._damaged))

    def _unknown(self, known: Container[str]) -> list[Path]:
        """Return unfinished files of this crawl that are not *known*. Raises `ArchiveError` for a finished one."""
        others = files_of(self._layout) | imported_names(self._layout)
        paths = [path for path in maybe_ours(self._layout) if path.name.removesuffix(OPEN) not in others]
        unknown = [path for path in paths if path.name.removesuffix(OPEN) not in known]
        for path in unknown:
            if path.name.endswith(OPEN) or not ours(path):
                continue
            if _belongs(path, _seeds(self._layout)):
                raise ArchiveError(
                    f"{self._layout.database} is older than the WARC files (a copy that was put back, or its -wal file "
                    f"is gone): it does not know {path.name}, so everything in it would be fetched again; rebuild it: "
                    f"archiver rebuild {quote(str(self._layout.directory))}"
                )
            log.warning("%s is not known to crawl.db and is left as it is", path)
        return [path for path in unknown if path.name.endswith(OPEN)]

    async def _look(self, path: Path, row: FileRow) -> None:
        with storage(path):
            found = changed(path, row)
        if isinstance(found, str):
            self._name(path, found)
        elif found is not None:
            await self._frontier.settle((), (found,))

    def _name(self, path: Path, trouble: str) -> None:
        log.warning("%s %s", path, trouble)
        self._damaged.append(path.name)

    async def _finish(self, name: str, committed: int) -> None:
        path = self._on_disk(name)
        if path is None:
            self._name(self._layout.archive / name, "is missing; its captures cannot be replayed")
            return
        with storage(path):
            size = path.stat().st_size
            if size < committed:
                self._name(path, f"is shorter than it was: {size} bytes of {committed}")
            elif trouble := broken(path, committed):
                self._name(path, f"is damaged{trouble}")
            quarantine.write_again(path, committed)
            if mended(path, name, committed, self._layout):
                self._cut.append(name)
            await self._adoption.read(path, name, committed, self._layout.spool)
            if size := path.stat().st_size:  # a file without a visit too is known before it has its name
                await self._frontier.settle((), (FileState(name, max(size, committed), closed=False),))
            if publish(path, name):
                state = finished(path.with_name(name), name)
                await self._frontier.settle((), (replace(state, size=max(state.size, committed)),))

    def _on_disk(self, name: str) -> Path | None:
        folder = self._layout.archive
        return next((path for path in (folder / (name + OPEN), folder / name) if path.exists()), None)


def _seeds(layout: Layout) -> frozenset[str]:
    """Return the seeds in the settings of the crawl."""
    with suppress(OSError, ValueError), open_file(layout.settings) as file:
        return frozenset(tomllib.load(file).get("seeds", ()))
    return frozenset()


def _belongs(path: Path, seeds: frozenset[str]) -> bool:
    """Return True if the WARC at *path* belongs to a crawl of one of *seeds*, by its warcinfo."""
    with suppress(OSError), open_file(path) as file:
        info = read_warcinfo(file)
        return info is not None and any(name == "seed" and value in seeds for name, value in info.fields)
    return False


class VisitAdoption:
    """Settles the visits that are found in files."""

    def __init__(self, frontier: Frontier, terms: VisitRules, payloads: Sequence[Payloads]) -> None:
        self.adopted = 0
        self._originals = Originals(payloads)
        self._frontier = frontier
        self._terms = terms
        self._read = ReaderProcess(near=0)  # a document may have ended the last process

    async def read(self, path: Path, name: str, offset: int, spool: Path, *, lenient: bool = False) -> None:
        """Settle every visit of *path* from *offset* on."""
        batch: list[ScannedVisit | LoneRecord] = []
        with open_file(path) as file:
            try:
                for unit in survey(file, name, offset, spool, lenient=lenient):
                    if isinstance(unit, UnclaimedBytes):
                        continue
                    if (
                        len(batch) >= BATCH
                        or sum(map(_weight, batch)) > MOST_LINKS
                        or (isinstance(unit, ScannedVisit) and _names(batch, unit.capture.url))
                    ):
                        await self._settle(batch, path, spool)  # two visits of one URL are two transitions of its state
                    batch.append(unit)
                await self._settle(batch, path, spool)
            finally:
                self._read.close()
                self._originals.close()
                for unit in batch:
                    _close(unit)

    async def _settle(self, batch: list[ScannedVisit | LoneRecord], path: Path, spool: Path) -> None:
        """Settle *batch*, and empty it."""
        if not batch:
            return
        visits = [unit for unit in batch if isinstance(unit, ScannedVisit)]
        resources = [unit.resource for unit in batch if isinstance(unit, LoneRecord) and unit.resource is not None]
        claims = await self._frontier.record_visits([_claim(found) for found in visits]) if visits else []
        for found in visits:
            self._originals.remember(found)
        settlements = [
            self._settlement(claim, found, path.parent, spool) for claim, found in zip(claims, visits, strict=True)
        ]
        state = FileState(path.name.removesuffix(OPEN), batch[-1].end, closed=False)
        await self._frontier.settle(settlements, (state,), resources=resources)
        self.adopted += len(visits)
        for unit in batch:
            _close(unit)
        batch.clear()

    def _settlement(self, claim: Claim, found: ScannedVisit, folder: Path, spool: Path) -> Settlement:
        """Return the settlement as it was when the visit happened, with the same words and the same time."""
        then = _as_visited(claim, found)
        exchange = self._whole(then, found, folder, spool) or found.exchange
        now = exchange.started / 1e6 + exchange.duration
        try:
            links = self._links(then, found, exchange, folder, spool)
            return conclude(self._terms, then, exchange, links, now)._replace(capture=found.capture)
        finally:
            if exchange is not found.exchange:
                exchange.response.close()

    def _whole(self, then: Claim, found: ScannedVisit, folder: Path, spool: Path) -> Exchange | None:
        """Return the answer that is stored as a revisit, with its payload; None if no links are to be read from it."""
        reads = found.notes is None or found.notes.links_of is not None or is_page(then)
        if found.capture.revisit is not Profile.IDENTICAL or not reads or is_robots(then):
            return None
        return whole(found, self._originals.place(found), folder, spool)

    def _links(self, then: Claim, found: ScannedVisit, exchange: Exchange, folder: Path, spool: Path) -> Links:
        """Return the links of the visit, from its notes or those of its original, or by reading the answer again."""
        if found.notes is None:
            return read_links(then, exchange, self._read)
        if found.notes.links_of is None:
            return with_page(then, exchange, found.notes.links)
        name, offset = found.notes.links_of
        original = original_at(folder, name, offset) if is_bare(name) else None
        if original is None or original.digest != found.capture.payload_digest:
            log.warning("links of %s, which had not changed, cannot be read: %s lacks its record", then.url, name)
            return Links(note=f"{UNREAD}: not modified, and the stored answer is not there")
        if found.capture.revisit is Profile.NOT_MODIFIED:
            return stored_links(folder / name, offset, spool, then, self._read)
        links = links_at(folder, name, offset)
        return read_links(then, exchange, self._read) if links is None else with_page(then, exchange, links)


def _as_visited(claim: Claim, found: ScannedVisit) -> Claim:
    """Return *claim* as it was when the visit happened, if its notes say so."""
    if found.notes is None:
        return claim
    then = _claim(found)
    return replace(
        claim, hop=then.hop, path=then.path, depth=then.depth, off_scope_hops=then.off_scope_hops, tries=then.tries
    )


def _names(batch: list[ScannedVisit | LoneRecord], url: str) -> bool:
    return any(isinstance(unit, ScannedVisit) and unit.capture.url == url for unit in batch)


def _weight(unit: ScannedVisit | LoneRecord) -> int:
    """Return the number of links of a visit."""
    return len(unit.notes.links.links) if isinstance(unit, ScannedVisit) and unit.notes is not None else 0


def _close(unit: ScannedVisit | LoneRecord) -> None:
    if isinstance(unit, ScannedVisit):
        unit.exchange.response.close()


def _claim(found: ScannedVisit) -> Claim:
    """Return the claim of a visit from its own records; without notes it is that of an ordinary link."""
    notes, address = found.notes, found.capture.url
    if notes is None:
        return Claim(0, address, 0, Hop.LINK, Hop.LINK.value, 1, 0, 0, priority=scope.priority("L", 1))
    priority = scope.priority(notes.path, notes.depth)
    return Claim(
        0,
        address,
        0,
        notes.hop,
        notes.path,
        notes.depth,
        notes.off_scope_hops,
        notes.tries,
        notes.via,
        notes.seed,
        priority,
    )


def mended(path: Path, name: str, offset: int, layout: Layout, *, lenient: bool = False) -> bool:
    """Take out of *path*, from *offset* on, what is not a whole visit; return False if there is nothing like that.

    *lenient*: whole records that belong to no visit stay, except an unfinished visit at the end of an open file.
    """
    gaps: list[UnclaimedBytes] = []
    unfinished = path.name.endswith(OPEN)
    with open_file(path) as file:
        for unit in survey(file, name, offset, layout.spool, lenient=lenient, unfinished=unfinished):
            if not isinstance(unit, UnclaimedBytes):
                _close(unit)
            elif unit.damaged or not lenient:
                gaps.append(unit)
    for gap in gaps:
        log.warning("%s: %s; %d bytes are kept under damaged/", path, gap.why, gap.end - gap.start)
    quarantine.cut(path, gaps, layout)
    return bool(gaps)


def publish(path: Path, name: str) -> bool:
    """Give *path* its final name; return False if nothing in it was whole, so that it is gone."""
    if path.stat().st_size == 0:
        path.unlink()
    elif path.name != name:
        path.rename(path.with_name(name))
    sync_folder(path.parent)
    return path.with_name(name).exists()


def ours(path: Path) -> bool:
    """Return True if the WARC at *path* was written by this program."""
    with suppress(OSError), open_file(path) as file:
        return written_by_archiver(file)
    return False
