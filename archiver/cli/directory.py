"""The directory of a crawl as the commands find it: is it free, does it hold a crawl, who works in it.

Whatever is refused is refused before anything is written.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO

from archiver import url
from archiver.allowance import FREE, Allowance
from archiver.archive import inside
from archiver.archive.imports import imported_names
from archiver.archive.layout import OPEN, Layout, storage, sync_folder
from archiver.archive.stored import ARCHIVE_ENDINGS, maybe_ours
from archiver.archive.vouching import strangers
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.disk import opened
from archiver.earlier.rounds import files_of
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import account
from archiver.stats import printable

COLLECTIONS = Path("collections")  # where pywb, started in the same place, looks for them
_MAX_SETTINGS = 16 * 1024 * 1024  # bytes; a settings file is some kilobytes, with very many seeds some megabytes


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that works in a directory; pid 0 where it does not say."""

    pid: int = 0
    host: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.pid else "another process"


def default_for(seed: str) -> Path:
    """Return where a crawl goes by default: a pywb collection named after the host of its first seed.

    The name includes a port that is not the default one, because another port may be another site.
    """
    name = re.sub(r"[^A-Za-z0-9.-]", "_", url.authority(seed)).strip("._")
    return COLLECTIONS / (name or "crawl")


def check_free(directory: Path) -> None:
    """Refuse a directory that a new crawl may not have."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory; name another one with -o")
    inside.check(directory)
    check_idle(directory)
    if holds_crawl(directory):
        name = quote(str(directory))
        raise ConfigError(
            f"{directory} already holds a crawl; go on with: archiver resume {name}; when it is done, crawl the site "
            f"again with: archiver recrawl {name}; crawl into another directory with: -o DIR"
        )
    if not all(map(_is_leftover, directory.iterdir())):
        raise ConfigError(f"{directory} holds something else; name an empty or a new directory with -o")


_LEFTOVERS = frozenset(("archive", "indexes", "logs", "spool", "crawl.lock", "crawl.toml.tmp"))


def _is_leftover(path: Path) -> bool:
    """Whether *path* is what a crawl leaves that was cut off before it had written its settings."""
    return path.name in _LEFTOVERS and (path.is_file() or not any(path.iterdir()))


def holds_crawl(directory: Path) -> bool:
    """Whether a crawl was begun in *directory*."""
    return Layout(directory).database.exists() or Layout(directory).settings.exists()


def check_begun(directory: Path) -> None:
    """Refuse a directory that holds no crawl of ours to go on with."""
    check_is_directory(directory)
    layout = Layout(directory)
    if not holds_crawl(directory):
        name = quote(str(directory))
        if any(layout.archive.glob("*.warc*")):
            raise ConfigError(
                f"{directory} holds an archive, but no crawl; a crawl that lost its database is made anew by: archiver "
                f"rebuild {name}; what others archived is taken for stored by: archiver crawl URL --dedup-from {name}"
            )
        raise ConfigError(f"{directory} holds no crawl; begin one with: archiver crawl URL -o {name}")
    if not layout.settings.exists():
        raise ConfigError(
            f"{layout.settings} is missing; put it back, or make it anew from the WARC files: "
            f"archiver rebuild {quote(str(directory))}"
        )
    there = layout.database.exists()
    if not (there and account.begun(directory)) and _has_files(layout):
        raise ArchiveError(
            f"{layout.database} is {'empty' if there else 'missing'}, though there are WARC files; put it back from a "
            f"copy, or make it anew: archiver rebuild {quote(str(directory))}"
        )
    check_idle(directory)


def _has_files(layout: Layout) -> bool:
    """Whether there are WARC files that belong to no earlier crawl, and were not imported."""
    others = files_of(layout) | imported_names(layout)
    return any(path.name.removesuffix(OPEN) not in others for path in maybe_ours(layout))


def finish_turn(directory: Path) -> None:
    """Where crawling again was cut off while the crawl before was set aside, do the rest of that."""
    inside.check(directory)
    if Layout(directory).earlier.is_dir():
        from archiver import succession  # noqa: PLC0415 - the network and the database; few collections need it

        succession.finish_turn(directory)


def check_idle(directory: Path) -> None:
    """Refuse a directory in which a process works now."""
    running = holder(directory)
    if running:
        raise ConfigError(f"{directory}: {running} is working in it; stop that first")


def check_is_directory(directory: Path) -> None:
    """Refuse what is not there, or is no directory."""
    if not directory.exists():
        raise ConfigError(f"{directory} does not exist{_meant(directory)}")
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory{_hint(directory)}")
    inside.check(directory)


def _meant(directory: Path) -> str:
    """The collection that was surely meant where *directory* has but its name, or is the address of its site."""
    first, *rest = directory.parts or ("",)
    of_site = default_for(f"http://{rest[0]}/") if rest and first in ("http:", "https:") else None
    of_host = default_for(f"http://{url.host(f'http://{rest[0]}/')}/") if of_site else None  # as older ones are called
    for found in (of_site, of_host, COLLECTIONS / directory.name, Path(directory.name)):
        if found is not None and found not in (COLLECTIONS, directory) and holds_crawl(found):
            return f"; there is {found}"
    return ""


def _hint(file: Path) -> str:
    """What to do with a *file* that was given in place of a collection."""
    if not file.name.lower().endswith(ARCHIVE_ENDINGS):
        return ""
    return f"; make a collection of it with: archiver import {quote(str(file))}"


def check_named_here(directory: Path, settings: Settings, given: Mapping[str, Any]) -> None:
    """Refuse other archives that crawl.toml names, unless this user has named them for this collection."""
    if "dedup_from" in given:
        return
    if unknown := strangers(Layout(directory), settings.dedup.dedup_from):
        shown = printable(" ".join(f"--dedup-from {quote(path)}" for path in unknown), 1000)
        raise ConfigError(
            f"{Layout(directory).settings}: dedup-from: you have not named {printable(unknown[0], 1000)} for this "
            f"collection on this machine; if you trust both, give it again: {shown}; else take it out of the file"
        )


def dedup_from(directory: Path) -> list[Path]:
    """Where payloads lie that the crawl in *directory* did not store again; raises `ConfigError`."""
    settings = Layout(directory).settings
    if not settings.is_file():
        return []
    return [Path(path).resolve() for path in read_settings(settings).get("dedup_from", ())]


def made(directory: Path) -> None:
    """Make *directory* and those above it, so that a power cut cannot take them away again."""
    try:
        with storage(directory):
            missing = [place for place in (directory, *directory.parents) if not place.exists()]
            directory.mkdir(parents=True, exist_ok=True)
            for place in missing:
                sync_folder(place.parent)
    except ArchiveError as error:
        if isinstance(error.__cause__, NotADirectoryError | FileExistsError):
            raise ConfigError(f"{directory} cannot be made: a part of its path is not a directory") from None
        raise


def read_settings(path: Path) -> dict[str, Any]:
    """The values that a settings file gives."""
    return toml.parse(settings_text(path), str(path))


def allowance(directory: Path) -> Allowance:
    """What each host of the crawl in *directory* may be asked for; of settings that cannot be read others complain."""
    try:
        return Allowance.of(with_values(Settings(), read_settings(Layout(directory).settings)).limits)
    except ConfigError:
        return FREE


def settings_text(path: Path) -> str:
    """What stands in a settings file."""
    try:
        with opened(path) as file:
            content = file.read(_MAX_SETTINGS + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > _MAX_SETTINGS:
        raise ConfigError(f"{path}: longer than {_MAX_SETTINGS} bytes; this cannot be a settings file")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8, as TOML has to be") from None


def holder(directory: Path) -> Holder | None:
    """Who works in *directory* now; None where nobody does, or where this system cannot tell."""
    try:
        with opened(Layout(directory).lock) as file, _free(file) as free:
            return None if free else _named(file.read(4096).decode(errors="replace"))
    except OSError:
        return None


@contextmanager
def _free(file: BinaryIO) -> Iterator[bool]:
    """Whether nobody holds the lock on *file*."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield True
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _named(text: str) -> Holder:
    with suppress(ValueError, TypeError, KeyError):
        found = json.loads(text)
        return Holder(int(found["pid"]), str(found["host"]))
    return Holder()
