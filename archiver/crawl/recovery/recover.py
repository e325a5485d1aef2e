"""Makes WARC files and database agree again after a crash.

`Recovery` reads each file that the database does not know as closed, from its committed length on. Every whole visit
found there is settled as if it had just happened, from its own metadata record. What is not a whole visit moves to
damaged/. Then the file gets its final name. A crawl.db that is older than the files is refused, because we would fetch
again what it does not know. In PostgreSQL a backup was restored then, and each machine adds the files it has. Recovery
also checks finished files, by size and modification time, and by digest if the time has changed. That is cheap if
nothing was touched. Changed files are reported and left as they are.
"""

import asyncio
import logging
import tomllib
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import Any

from archiver.collection import reindex
from archiver.collection.earlier_crawls import files_of
from archiver.collection.imports import imported_names
from archiver.collection.index import INDEX, Index
from archiver.collection.layout import Layout
from archiver.collection.records import maybe_ours
from archiver.collection.store import StoredFiles
from archiver.config import host_rules
from archiver.config import seeds as seed_lists
from archiver.config.secret_settings import is_left_out
from archiver.config.tls import KEYS_WITH_FILES
from archiver.config.toml import toml_value
from archiver.crawl.recovery import quarantine
from archiver.crawl.recovery.adoption import Unread, VisitAdoption, payloads_before
from archiver.crawl.recovery.scan import ScannedVisit, UnclaimedBytes, survey
from archiver.crawl.visit_rules import VisitRules
from archiver.errors import ArchiveError
from archiver.frontier.dedup import Payloads
from archiver.frontier.port import FileRow, Frontier
from archiver.humanize import duration
from archiver.model import FileState
from archiver.policy.retry import LONGEST_PARK
from archiver.storage import OPEN, open_file, sha256_of, storage, sync_folder, why_closed
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan
from archiver.warc.records import parse_date
from archiver.warc.warcinfo import read_warcinfo, written_by_archiver

ENDING = ".warc.gz"
CAPTURES_AT_ONCE = 5000  # rows in memory while an index is rebuilt

log = logging.getLogger(__name__)


def finished(path: Path, name: str) -> FileState:
    """Return the state of the WARC at *path*, with its final name."""
    with open_file(path) as file:
        digest = sha256_of(file)
    found = path.stat()
    return FileState(name, found.st_size, closed=True, digest=f"sha256:{digest}", modified=found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class FileFault:
    """What is wrong with a WARC file that the database knows."""

    text: str  # follows the path in a message
    lost: bool = True  # no user can bring its bytes back


MISSING = FileFault("is missing; its captures cannot be replayed")


def changed(path: Path, row: FileRow) -> FileFault | FileState | None:
    """Return what is wrong with the finished file of *row*, or its new state if only its time has changed."""
    if not path.exists():
        return MISSING
    found = path.stat()
    if found.st_size != row.committed:
        how = "shorter" if found.st_size < row.committed else "longer"
        return FileFault(f"is {how} than it was: {found.st_size} bytes of {row.committed}")
    if why := why_closed(path):
        return FileFault(f"cannot be read: {why}; let this user read it", lost=False)
    if not row.digest or found.st_mtime_ns == row.modified:
        return None
    state = finished(path, row.name)
    if state.digest == row.digest:
        return state
    return FileFault(f"was changed since it was written{broken(path, row.committed)}")


def broken(path: Path, until: int) -> str:
    """Describe where *path* is damaged before the offset *until*; "" if it is intact."""
    with open_file(path) as file:
        before = takewhile(lambda item: item.offset < until, scan(file))
        places = [item for item in before if isinstance(item, DamagedRecord)]
    if not places:
        return ""
    more = f", and at {len(places) - 1} more" if len(places) > 1 else ""
    return f": at offset {places[0].offset} {places[0].reason}{more}"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a recovery."""

    adopted: int = 0  # visits that were on disk but not in the database
    cut: tuple[str, ...] = ()  # files from which something was moved to damaged/
    damaged: tuple[str, ...] = ()  # finished files that have changed


class Recovery:
    """Makes files and database agree again; after a clean end there is nothing to do."""

    def __init__(self, layout: Layout, frontier: Frontier, rules: VisitRules) -> None:
        self._layout = layout
        self._frontier = frontier
        self._adoption = VisitAdoption(frontier, rules, (Payloads(layout.database), *payloads_before(layout)))
        self._stored = {each.key.removeprefix("archive/"): each for each in StoredFiles(layout).absent()}
        self._cut: list[str] = []
        self._damaged: list[str] = []
        self._lost = False  # nothing that the user may do brings the bytes back

    async def run(self) -> Recovered:
        """Recover every file, and return the result."""
        known = {row.name: row for row in await self._frontier.files()}
        unknown = self._unknown(known)
        self._layout.forget_drafts()
        files: list[Unread] = []
        for row in known.values():
            if not row.closed:
                files += self._mended(row.name, row.committed)
            else:
                await self._look(self._layout.archive / row.name, row)
        for path in unknown:
            if path.name.endswith(OPEN):
                files += self._mended(path.name.removesuffix(OPEN), 0)
            else:
                log.warning("%s is not known to the database, an older copy; its captures are added", path)
                files.append(unread(path, path.name, lenient=True))
        await self._finish(files)
        if self._lost:
            where = quote(str(self._layout.directory))
            log.warning(
                "archiver verify %s lists everything that is lost; archiver rebuild %s makes a database without it, "
                "and archiver resume then fetches it again",
                where,
                where,
            )
        return Recovered(self._adoption.adopted, tuple(self._cut), tuple(self._damaged))

    async def finish_files_of(self, crawler: str) -> list[str]:
        """Recover the open files of one *crawler*, which has died; return their names. Other crawlers go on."""
        known = {row.name: row.committed for row in await self._frontier.files() if not row.closed}
        found = {path.name.removesuffix(OPEN): 0 for path in self._layout.archive.glob(f"*{OPEN}")}
        names = [name for name in {**found, **known} if name.endswith(f"-{crawler}{ENDING}")]
        await self._finish([file for name in names for file in self._mended(name, known.get(name, 0))])
        closed = {row.name for row in await self._frontier.files() if row.closed}
        return [name for name in names if name in closed]

    def _unknown(self, known: Container[str]) -> list[Path]:
        """Return files of this crawl that are not *known*. Raises `ArchiveError` if crawl.db lacks a finished one."""
        unknown = [path for path in own_files(self._layout) if path.name.removesuffix(OPEN) not in known]
        found = [path for path in unknown if path.name.endswith(OPEN)]
        for path in unknown:
            if path.name.endswith(OPEN) or not ours(path):
                continue
            if _belongs(path, _seeds(self._layout)):
                if self._layout.address.exists():
                    found.append(path)
                    continue
                raise ArchiveError(
                    f"{self._layout.database} is older than the WARC files (a copy that was put back, or its -wal file "
                    f"is gone): it does not know {path.name}, so everything in it would be fetched again; rebuild it: "
                    f"archiver rebuild {quote(str(self._layout.directory))}"
                )
            log.warning("%s is not known to the database and is left as it is", path)
        return sorted(found)

    async def _look(self, path: Path, row: FileRow) -> None:
        there = self._stored.get(row.name)
        if there is not None and (there.size, there.digest) == (row.committed, row.digest):
            return  # a store has it
        with storage(path):
            found = changed(path, row)
        if isinstance(found, FileFault):
            self._name(path, found)
        elif found is not None:
            await self._frontier.settle((), (found,))

    def _name(self, path: Path, fault: FileFault) -> None:
        log.warning("%s %s", path, fault.text)
        self._damaged.append(path.name)
        self._lost = self._lost or fault.lost

    def _mended(self, name: str, committed: int) -> Iterator[Unread]:
        """Yield the file *name*, if it is there, when what is not whole has been taken out from *committed* on."""
        path = self._on_disk(name)
        if path is None:
            self._name(self._layout.archive / name, MISSING)
            return
        with storage(path):
            size = path.stat().st_size
            if size < committed:
                self._name(path, FileFault(f"is shorter than it was: {size} bytes of {committed}"))
            elif trouble := broken(path, committed):
                self._name(path, FileFault(f"is damaged{trouble}"))
            quarantine.write_again(path, committed)
            if mended(path, name, committed, self._layout):
                self._cut.append(name)
        yield unread(path, name, committed)

    async def _finish(self, files: Iterable[Unread]) -> None:
        """Settle the visits of *files*, all by date, and give each file its final name."""
        in_order = sorted(files, key=attrgetter("began"))
        async for file in self._adoption.read_all(in_order, self._layout.spool):
            path, name, committed = file.path, file.name, file.offset
            with storage(path):
                if size := path.stat().st_size:  # a file without a visit too is known before it has its name
                    await self._frontier.settle((), (FileState(name, max(size, committed), closed=False),))
                if publish(path, name):
                    state = finished(path.with_name(name), name)
                    await self._frontier.settle((), (state._replace(size=max(state.size, committed)),))

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


def mended(path: Path, name: str, offset: int, layout: Layout, *, lenient: bool = False) -> bool:
    """Take out of *path*, from *offset* on, what is not a whole visit; return False if there is nothing like that.

    *lenient*: whole records that belong to no visit stay, except an unfinished visit at the end of an open file.
    """
    gaps: list[UnclaimedBytes] = []
    unfinished = path.name.endswith(OPEN)
    with open_file(path) as file:
        for unit in survey(file, name, offset, layout.spool, lenient=lenient, unfinished=unfinished):
            if isinstance(unit, ScannedVisit):
                unit.close()
            elif isinstance(unit, UnclaimedBytes) and (unit.damaged or not lenient):
                gaps.append(unit)
    for gap in gaps:
        log.warning("%s: %s; %d bytes are kept under damaged/", path, gap.why, gap.end - gap.start)
    quarantine.cut(path, gaps, layout)
    return bool(gaps)


def unread(path: Path, name: str, offset: int = 0, *, lenient: bool = False) -> Unread:
    """Return the file at *path*, whose visits are unknown from *offset* on, with the date of its first record there."""
    began = 0
    with storage(path), open_file(path) as file:
        first = next(scan(file, offset), None)
        with suppress(ValueError):
            began = parse_date(first.first("WARC-Date") or "") if isinstance(first, Record) else 0
    return Unread(path, name, offset, began, lenient)


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


async def catch_up(layout: Layout, frontier: Frontier, rules: VisitRules, index: Index, now: float) -> None:
    """Recover what the last run left on disk, adjust the waits in *frontier* to our clock, and complete *index*."""
    for crawler in await frontier.crawlers():  # other machines have gone on, and may have taken its hosts over
        await frontier.act_for(crawler)
        await recover_crawler(layout, frontier, rules, index, crawler)
        await frontier.leave({})
    recovered = await Recovery(layout, frontier, rules).run()
    if ahead := await frontier.correct_waits(now, LONGEST_PARK):
        log.warning("the clock is %s behind the latest answer; waits are moved accordingly", duration(ahead))
    if recovered.adopted:
        log.info("%d visits were stored but not settled; they are now", recovered.adopted)
    await restore_index(layout, frontier, index, recorded=rules.settings.common.warc.recording)


async def restore_index(layout: Layout, frontier: Frontier, index: Index, *, recorded: bool = False) -> None:
    """Add the lines of closed files that index.cdxj may lack, from the database or from the files.

    *recorded*: by a client, and the database does not know what it sent, on which keys depend.
    """
    index.forget_runs()
    lost = not (layout.indexes / INDEX).exists()
    if lost:
        if any(file.indexed for file in await frontier.files()):
            log.warning("%s is missing; it is rebuilt from the database", layout.indexes / INDEX)
        await frontier.forget_index()
    others = imported_names(layout)  # also those that the crawl adopted: the database has not all of their records
    own = [file for file in await frontier.files() if file.name not in others]
    for file in own:
        if file.indexed or not file.closed:
            continue
        if recorded:
            await asyncio.to_thread(reindex.add_file, index, layout.archive / file.name)
        else:
            await _add_lines(frontier, index, file.name)
    await asyncio.to_thread(reindex.add_others, index, layout, own, all_of_them=lost)


async def _add_lines(frontier: Frontier, index: Index, name: str) -> None:
    """Add the lines of the closed file *name* to *index*, from the database."""
    after = -1
    while captures := await frontier.captures(name, after, CAPTURES_AT_ONCE):
        index.add(captures)
        after = captures[-1].response.offset
    after = -1
    while resources := await frontier.resources(name, after, CAPTURES_AT_ONCE):
        index.add(resources)
        after = resources[-1].span.offset
    index.close_file(name)


async def recover_crawler(layout: Layout, frontier: Frontier, rules: VisitRules, index: Index, crawler: str) -> None:
    """Recover the files of one *crawler* that has died, while others go on, and complete *index*."""
    recovery = Recovery(layout, frontier, rules)
    for name in await recovery.finish_files_of(crawler):
        await asyncio.to_thread(index.forget_runs_of, name)
        await _add_lines(frontier, index, name)


def own_files(layout: Layout) -> list[Path]:
    """Return the WARC files that neither belong to an earlier crawl of the collection nor were imported."""
    others = files_of(layout) | imported_names(layout)
    return [path for path in maybe_ours(layout) if path.name.removesuffix(OPEN) not in others]


def settings_text(paths: Iterable[Path]) -> str:
    """Return a crawl.toml from the warcinfo record of the newest of *paths* that has settings; "" if none has."""
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with storage(path), open_file(path) as file:
            info = read_warcinfo(file)
        fields = () if info is None else info.fields
        values = _settings(value for name, value in fields if name == "setting")
        seeds = [value for name, value in fields if name == "seed"]
        if headers := values.pop("header", None):
            values["header"] = [header for header in headers if not is_left_out(header)]
            if len(values["header"]) < len(headers):
                log.warning("secret headers are not in the WARC files; give them again with --header")
        for key, kept in (("host", host_rules.without_left_out), ("seed", seed_lists.without_left_out)):
            if rules := values.pop(key, None):
                values[key] = [*filter(None, map(kept, rules))]
                if values[key] != rules:
                    log.warning(
                        "secrets and files of single %ss are not in the WARC files; add them to crawl.toml", key
                    )
        for key in (*KEYS_WITH_FILES, "behavior", "hooks"):
            if values.pop(key, None):
                log.warning("the files of %s are not in the WARC files; name them again with --%s", key, key)
        if values and (seeds or values.get("recording")):
            return "".join(f"{key} = {toml_value(value)}\n" for key, value in {"seeds": seeds, **values}.items())
    return ""


def _settings(lines: Iterable[str]) -> dict[str, Any]:
    """Return the values in TOML *lines*; each value of a setting with several has a line of its own."""
    values: dict[str, Any] = {}
    for line in lines:
        try:
            given = tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            log.warning("a setting in the WARC files cannot be read; its default applies: %s", line)
            continue
        for key, value in given.items():
            values[key] = [*values.get(key, ()), *value] if isinstance(value, list) else value
    return values
