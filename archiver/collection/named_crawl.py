"""The crawl that a command is about: named by its directory, or by the address of its frontier in PostgreSQL.

An address is all that a command needs on a machine that does not crawl. Then the settings are those in the database,
and WARC files, crawl.log and earlier crawls are out of reach.

The crawls of a collection are named by their number, 1 for the oldest, or by a date.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Self

from archiver.collection import lock
from archiver.collection.dates import date_range
from archiver.collection.earlier_crawls import stamp_for, stamp_of
from archiver.collection.layout import Layout, holds_crawl, rounds
from archiver.collection.lock import Holder, Lock
from archiver.collection.settings_file import read_settings
from archiver.config import toml
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import machines, totals
from archiver.frontier.address import SharedFrontier, address_of, check_driver
from archiver.frontier.captures import file_names, first_capture
from archiver.frontier.connection import Reader
from archiver.humanize import count, plural
from archiver.policy.quotas import NO_QUOTAS, Quotas
from archiver.storage import DRAFT, open_file, sha256_of, why_closed
from archiver.warc.members import MAGIC

_FINISHED = "SELECT id, name, committed, digest, modified FROM warcs WHERE closed = 1 ORDER BY id"
CAPTURES_IN = "SELECT count(*) FROM captures WHERE warc IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class LostFiles:
    """WARC files of a crawl that are missing, shorter than they were, overwritten, or may not be read."""

    names: tuple[str, ...] = ()
    captures: int = 0  # that they held
    whole: bool = False  # as far as one can see: they may not be read

    @property
    def words(self) -> str:
        """How many they are."""
        files = count(len(self.names), "WARC file")
        lost = f"{plural(len(self.names), 'is', 'are')} missing or damaged"
        return f"{files} with {count(self.captures, 'capture')} {'cannot be read' if self.whole else lost}"

    @property
    def example(self) -> str:
        """The same, with an example."""
        return f"{self.words}, such as {self.names[0]}"


NOTHING_LOST = LostFiles()


def _is_lost(path: Path, size: int, digest: str, modified: int, *, recovered: float | None) -> bool:
    """Return True if *path* is missing, shorter than *size*, or overwritten, as far as a look at its beginning tells.

    *digest* and *modified* are as it was finished; *recovered*: as for `NamedCrawl.lost`.
    """
    try:
        found = path.stat()
        if found.st_size != size or not digest or found.st_mtime_ns == modified:
            return found.st_size < size
        with open_file(path) as file:
            if path.suffix == ".gz" and file.read(len(MAGIC)) != MAGIC:
                return True
            if recovered is None:
                return False
            file.seek(0)
            return found.st_ctime < recovered or digest != f"sha256:{sha256_of(file)}"
    except (OSError, ArchiveError):
        return True


def _may_not_be_read(path: Path) -> bool:
    try:
        return bool(why_closed(path))
    except (OSError, ArchiveError):
        return False


@dataclass(frozen=True, slots=True)
class NamedCrawl:
    """A crawl that a command names."""

    layout: Layout | None  # of its directory; None: only the address is known
    address: str = ""  # of its frontier in PostgreSQL, which has no password; "": it is crawl.db
    collection: Layout | None = None  # to which it belongs as an earlier crawl; None: it is the newest one

    @property
    def home(self) -> Layout | None:
        """The collection with its WARC files, if that is within reach."""
        return self.collection or self.layout

    @property
    def stamp(self) -> str:
        """The name of its folder, if it is an earlier crawl of its collection; else ""."""
        return self.layout.directory.name if self.layout is not None and self.collection is not None else ""

    @property
    def is_recording(self) -> bool:
        """True if clients have asked for what it holds, so that there is no queue to go on with."""
        try:
            return self.layout is not None and bool(read_settings(self.layout.settings).get("recording"))
        except ConfigError:  # other commands report it
            return False

    @classmethod
    def in_directory(cls, directory: Path) -> Self:
        """Return the crawl in *directory*."""
        layout = Layout(directory)
        return cls(layout, address_of(layout.database))

    @classmethod
    def at_address(cls, address: str) -> Self:
        """Return the crawl whose frontier is at *address*. Raises `ConfigError` if there is none."""
        check_driver(address)
        from archiver.frontier import postgres_reading  # noqa: PLC0415 - an extra, which only such a crawl needs

        try:
            there = postgres_reading.holds_crawl(address)
        except ArchiveError as error:
            raise ConfigError(str(error)) from None
        if not there:
            raise ConfigError(f"{address} holds no crawl; to start one: archiver crawl URL --frontier {quote(address)}")
        return cls(None, address)

    @property
    def name(self) -> str:
        """The directory, or the address."""
        return self.address if self.layout is None else str(self.layout.directory)

    @property
    def title(self) -> str:
        """The name of the directory or the database, without anything of this machine."""
        if self.layout is not None and self.collection is not None:
            return f"{self.collection.directory.resolve().name}, crawl of {stamp_of(self.layout)}"
        if self.layout is None:
            return self.address.partition("?")[0].rpartition("/")[2]
        return self.layout.directory.resolve().name

    @property
    def resume_command(self) -> str:
        """The command that continues the crawl, for messages that do not repeat the directory."""
        return f"archiver join {quote(self.address)}" if self.layout is None else "archiver resume"

    @property
    def settings_name(self) -> str:
        """Where its settings are, for messages."""
        return self.address if self.layout is None else str(self.layout.settings)

    @property
    def frontier(self) -> Path | SharedFrontier:
        """What opens the frontier for a change."""
        return SharedFrontier(self.address, "", 0) if self.layout is None else self.layout.database

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Open the database in one read transaction."""
        with totals.open_totals(self.address if self.layout is None else self.layout.directory) as db:
            yield db

    def settings(self, db: Reader) -> Settings:
        """Return the settings of the crawl with the database *db*."""
        if self.layout is not None:
            return with_values(Settings(), read_settings(self.layout.settings))
        return with_values(Settings(), toml.parse(machines.settings_text(db), self.address))

    def quotas(self, db: Reader) -> Quotas:
        """Return the limits per host of the crawl with the database *db*; none if its settings cannot be read."""
        try:
            return Quotas(SettingsByHost(self.settings(db)))
        except ConfigError:
            return NO_QUOTAS

    def lost(self, db: Reader, *, recovered: float | None = None) -> LostFiles:
        """Return which finished WARC files of the newest crawl of a directory, with the database *db*, are not whole.

        Files that were moved to a store are not lost. Of several machines, each has its own files. *recovered*: a run
        that began then has just ended. It has read each file with another time than in *db*, and noted that time if
        the bytes were the same. So such a file has changed, and is read again only if that may have been since.
        """
        if self.layout is None or self.address or self.collection is not None:
            return NOTHING_LOST
        from archiver.collection.store import StoredFiles  # noqa: PLC0415 - of no use to most commands

        stored = {each.key.removeprefix("archive/") for each in StoredFiles(self.layout).absent()}
        files = db.execute(_FINISHED).fetchall()
        here = [(self.layout.archive / name, row, state) for row, name, *state in files if name not in stored]
        closed = {row: path.name for path, row, _ in here if _may_not_be_read(path)}
        lost = {row: path.name for path, row, state in here if _is_lost(path, *state, recovered=recovered)}
        if not (named := {**lost, **closed}):
            return NOTHING_LOST
        (captures,) = db.execute(CAPTURES_IN, (json.dumps(list(named)),)).fetchone()
        return LostFiles(tuple(named.values()), captures, whole=named.keys() == closed.keys())

    def holder(self, db: Reader) -> Holder | None:
        """Return the process that runs the crawl with the database *db*, which may be unknown; None if none does."""
        found = None if self.layout is None else lock.holder(self.layout.directory)
        return found or (Holder() if self.address and machines.is_running(db) else None)

    def runs_elsewhere(self) -> bool:
        """Return True if processes crawl that have not locked the directory, because they are on other machines."""
        if not self.address:
            return False
        with self.read() as db:
            return machines.is_running(db)


def check_holds_crawl(crawl: NamedCrawl) -> None:
    """Refuse a directory without a crawl; an address was checked when it was named."""
    if crawl.layout is not None and not holds_crawl(crawl.layout.directory):
        raise ConfigError(totals.without_crawl(crawl.layout.directory))


def recorded_only(directory: Path) -> str:
    """Return what to do instead with a recording in *directory* that a command for crawls names."""
    name = quote(str(directory))
    return (
        f"{directory} holds a recording, which has no queue; to record more: archiver record -o {name}; to crawl into "
        f"the same collection: archiver crawl URL --since {name}"
    )


def check_changeable(crawl: NamedCrawl) -> Settings:
    """Return the settings of *crawl*. Refuse a directory without a crawl that a command can change."""
    check_holds_crawl(crawl)
    if crawl.layout is None:
        with crawl.read() as db:
            return crawl.settings(db)
    settings = with_values(Settings(), read_settings(crawl.layout.settings))
    if settings.warc.recording:
        raise ConfigError(recorded_only(crawl.layout.directory))
    if not crawl.layout.has_frontier() or not totals.has_started(crawl.layout.directory):
        raise ConfigError(f"{crawl.name}: the crawl has not started; run archiver resume first")
    return settings


@contextmanager
def crawl_lock(crawl: NamedCrawl) -> Iterator[bool]:
    """Lock the directory of *crawl*, unless it is in use. Yields whether other processes crawl."""
    layout = crawl.layout
    try:
        held = None if layout is None else Lock(layout.lock)
    except ConfigError:
        if layout is not None and layout.database.with_name(f"{layout.database.name}{DRAFT}").exists():
            raise ConfigError(f"{layout.database} is being rebuilt; try again when that is done") from None
        yield True
        return
    with held or nullcontext():
        yield crawl.runs_elsewhere()


LONGEST_NUMBER = 3  # digits; four are a year
SHOWN = 5  # crawls in a message


@dataclass(frozen=True, slots=True)
class CollectedCrawl:
    """One of the crawls of a collection."""

    number: int  # 1: the oldest
    stamp: str  # when it began, 14 digits in UTC
    layout: Layout  # of its folder, which for the newest one is the collection

    @property
    def date(self) -> str:
        """When it began, as ISO 8601."""
        return f"{datetime.strptime(self.stamp, '%Y%m%d%H%M%S').replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"

    def as_named(self, collection: Layout) -> NamedCrawl:
        """Return it as one that a command is about."""
        named = NamedCrawl.in_directory(self.layout.directory)
        return named if self.layout.directory == collection.directory else replace(named, collection=collection)

    def files(self) -> frozenset[str]:
        """Return the names of its WARC files."""
        with NamedCrawl.in_directory(self.layout.directory).read() as db:
            return frozenset(file_names(db))


def collected_crawls(layout: Layout) -> list[CollectedCrawl]:
    """Return the crawls of the collection of *layout*, the oldest first."""
    folders = list(reversed(rounds(layout)))
    found = [CollectedCrawl(number, each.directory.name, each) for number, each in enumerate(folders, 1)]
    if layout.has_frontier():
        with NamedCrawl.in_directory(layout.directory).read() as db:
            began = first_capture(db)
        if began:
            found.append(CollectedCrawl(len(found) + 1, stamp_for(layout, began, folders), layout))
    return found


def chosen_crawl(known: Sequence[CollectedCrawl], text: str, option: str) -> CollectedCrawl:
    """Return the one of *known* that *text* names: by its number, or a date. *option* is named in errors."""
    if (number := _number(text)) is not None:
        named = [each for each in known if each.number == number]
        what = "is the number of no crawl of this collection"
    else:
        span = date_range(text, option)
        named = [each for each in known if span.first <= each.stamp <= span.last]
        what = f"names {count(len(named), 'crawl')}" if named else "is the date of no crawl of this collection"
    if len(named) != 1:
        some = (named or known)[-SHOWN:]
        dates = ", ".join(f"{each.number} ({each.date})" for each in some)
        raise ConfigError(f"{option} {text!r} {what}; {f'write one of these: {dates}' if some else 'there is none'}")
    return named[0]


def crawls_since(known: Sequence[CollectedCrawl], text: str, option: str) -> list[CollectedCrawl]:
    """Return those of *known* that began at the date *text* or later, or have this number or a higher one."""
    if _number(text) is not None:
        first = chosen_crawl(known, text, option).number
        return [each for each in known if each.number >= first]
    start = date_range(text, option).first
    if found := [each for each in known if each.stamp >= start]:
        return found
    newest = f"the newest began {known[-1].date}" if known else "there is none"
    raise ConfigError(f"{option} {text!r} is after all crawls of this collection; {newest}")


def _number(text: str) -> int | None:
    written = text.strip()
    return int(written) if written.isascii() and written.isdigit() and len(written) <= LONGEST_NUMBER else None
