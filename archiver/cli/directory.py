"""The directory of a crawl as the commands find it: is it free, does it hold a crawl, who works in it.

Whatever is refused is refused before anything is written.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from archiver import url
from archiver.collection import safe_paths
from archiver.collection.dedup_sources import strangers
from archiver.collection.earlier_crawls import files_of
from archiver.collection.imports import imported_names
from archiver.collection.layout import Layout
from archiver.collection.lock import holder
from archiver.collection.records import ARCHIVE_ENDINGS, maybe_ours
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.humanize import printable
from archiver.policy.limits import FREE, Allowance
from archiver.storage import OPEN, open_file, storage, sync_folder

COLLECTIONS = Path("collections")  # where pywb, started in the same place, looks for them
_MAX_SETTINGS = 16 * 1024 * 1024  # bytes; a settings file is some kilobytes, with very many seeds some megabytes


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
    safe_paths.check_files(directory)
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
    if not (there and totals.begun(directory)) and _has_files(layout):
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
    safe_paths.check_files(directory)
    if Layout(directory).earlier.is_dir():
        from archiver.crawl import switch_over  # noqa: PLC0415 - the network and the database; few collections need it

        switch_over.finish_turn(directory)


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
    safe_paths.check_files(directory)


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


def make_directory(directory: Path) -> None:
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
        with open_file(path) as file:
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
