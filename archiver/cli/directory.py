"""Checks of the argument DIR: whether it is free, holds a crawl, or is in use; and its settings file.

A command calls them before it writes anything.
"""

import re
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from archiver import url
from archiver.cli.terminal import complain
from archiver.collection import safe_paths
from archiver.collection.layout import NAME_A_COLLECTION, Layout, holds_crawl
from archiver.collection.lock import holder
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier.address import address_of, check_driver, machine_of
from archiver.storage import OPEN, storage, sync_folder
from archiver.url import DATABASE_SCHEMES

if TYPE_CHECKING:
    from archiver.collection.named_crawl import NamedCrawl
    from archiver.config.settings import Settings

COLLECTIONS = Path("collections")  # where pywb looks for collections


def default_directory(seed: str) -> Path:
    """Return the default directory of a crawl: a pywb collection named after the host of its first seed.

    The name includes a port that is not the default one, because another port may be another site.
    """
    name = re.sub(r"[^A-Za-z0-9.-]", "_", url.authority(seed)).strip("._")
    return COLLECTIONS / (name or "crawl")


def check_free(directory: Path) -> None:
    """Refuse a directory that a new crawl cannot use."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory; choose another one with -o")
    safe_paths.check_files(directory)
    check_idle(directory)
    if holds_crawl(directory):
        name = quote(str(directory))
        raise ConfigError(
            f"{directory} already holds a crawl; to continue it: archiver resume {name}; to crawl the site again: "
            f"archiver recrawl {name}; to use another directory: -o DIR"
        )
    if not all(map(_is_leftover, directory.iterdir())):
        raise ConfigError(f"{directory} is not empty and holds no crawl; choose an empty or new directory with -o")


_LEFTOVERS = frozenset(
    (
        *("archive", "indexes", "logs", "spool", "crawl.lock", "crawl.toml.tmp"),
        *("crawl-origins.json", "crawl-origins.json.tmp"),
        *("loaded-cookies.json", "loaded-cookies.json.tmp", "named-files.known", "named-files.known.tmp"),
    )
)


def _is_leftover(path: Path) -> bool:
    """Return whether *path* is left over from a crawl that was killed before it wrote its settings."""
    return path.name in _LEFTOVERS and (path.is_file() or not any(path.iterdir()))


def check_resumable(directory: Path) -> None:
    """Refuse a directory that holds no crawl to continue."""
    check_is_directory(directory)
    layout = Layout(directory)
    if not holds_crawl(directory):
        name = quote(str(directory))
        if any(layout.archive.glob("*.warc*")):
            raise ConfigError(
                f"{directory} holds an archive, but no crawl; to rebuild a lost database: archiver rebuild {name}; to "
                f"crawl without storing again what it holds: archiver crawl URL --dedup-from {name}"
            )
        raise ConfigError(f"{directory} holds no crawl; to start one: archiver crawl URL -o {name}")
    if not layout.settings.exists():
        raise ConfigError(
            f"{layout.settings} is missing; restore it, or rebuild it from the WARC files: "
            f"archiver rebuild {quote(str(directory))}"
        )
    from archiver.frontier import totals

    wait_for_server(address_of(layout.database))
    there = layout.has_frontier()
    if not (there and totals.has_started(directory)) and _has_files(layout):
        raise ArchiveError(
            f"{layout.database} is {'empty' if there else 'missing'}, but there are WARC files; restore it, "
            f"or rebuild it: archiver rebuild {quote(str(directory))}"
        )
    check_idle(directory)


def _has_files(layout: Layout) -> bool:
    """Return whether there are WARC files that are not of an earlier crawl and were not imported."""
    from archiver.collection.earlier_crawls import files_of
    from archiver.collection.imports import imported_names
    from archiver.collection.records import maybe_ours

    others = files_of(layout) | imported_names(layout)
    return any(path.name.removesuffix(OPEN) not in others for path in maybe_ours(layout))


def finish_switch_over(directory: Path) -> None:
    """Finish setting the previous crawl aside, if a recrawl was killed while it did that."""
    safe_paths.check_files(directory)
    if Layout(directory).earlier.is_dir():
        from archiver.crawl import recrawl

        recrawl.finish_switch_over(directory)


def check_idle(directory: Path) -> None:
    """Refuse a directory that another process is using."""
    running = holder(directory)
    if running:
        raise ConfigError(f"{directory} is in use by {running}; stop that first")


def check_has_archive(directory: Path) -> None:
    """Refuse a directory without the folder of WARC files."""
    if not Layout(directory).archive.is_dir():
        raise ConfigError(f"{directory} holds no archive: it has no archive/ folder{NAME_A_COLLECTION}")


def check_files_are_here(directory: Path) -> None:
    """Refuse a collection with WARC files that only a store has: what is made of the others would not be whole."""
    from archiver.collection.store import StoredFiles

    if away := len(StoredFiles(Layout(directory)).absent()) if directory.is_dir() else 0:
        files = "1 WARC file is" if away == 1 else f"{away} WARC files are"
        raise ConfigError(
            f"{directory}: {files} in a store only; to bring them back: archiver store fetch {quote(str(directory))}"
        )


def named_crawl(place: Path | str) -> "NamedCrawl":
    """Return the crawl in the directory *place*, or at the address *place*. Refuse a place without a crawl."""
    from archiver.collection.named_crawl import NamedCrawl

    if isinstance(place, str):
        return NamedCrawl.at_address(place)
    check_is_directory(place)
    return NamedCrawl.in_directory(place)


def check_is_directory(directory: Path, *, pruning: bool = False) -> None:
    """Refuse a path that does not exist or is not a directory. *pruning*: a prune of it may be interrupted."""
    check_no_address(directory)
    if not directory.exists():
        raise ConfigError(f"{directory} does not exist{_similar(directory)}")
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory{_hint(directory)}")
    safe_paths.check_files(directory, pruning=pruning)


def check_no_address(path: Path) -> None:
    """Refuse the address of a database that was taken for a *path*."""
    if is_address(path):
        raise ConfigError(_NO_ADDRESS)


def check_shows_captures(path: Path) -> None:
    """Refuse the address of a database, and say how its crawl gets a directory that shows all captures."""
    if is_address(path):
        raise ConfigError(
            f"{_NO_ADDRESS}; to make a directory with the captures of all machines: archiver index ADDRESS -o whole"
        )


def is_address(path: Path) -> bool:
    """Return True if *path* is the address of a database, which may hold a password."""
    return bool(path.parts) and path.parts[0] in _ADDRESS and not path.exists()


_NO_ADDRESS = "this command needs a directory of the crawl, not the address of a database"
_ADDRESS = {scheme.rstrip("/") for scheme in DATABASE_SCHEMES}  # the first part of an address that is taken for a path


def _similar(directory: Path) -> str:
    """Return a hint: the collection with *directory* as its name, or as the URL of its site, or an example."""
    first, *rest = directory.parts or ("",)
    of_site = default_directory(f"http://{rest[0]}/") if rest and first in ("http:", "https:") else None
    of_host = (
        default_directory(f"http://{url.host(f'http://{rest[0]}/')}/") if of_site else None
    )  # as older collections are named
    for found in (of_site, of_host, COLLECTIONS / directory.name, Path(directory.name)):
        if found is not None and found not in (COLLECTIONS, directory) and holds_crawl(found):
            return f"; did you mean {found}?"
    return "; name the directory of a crawl, for example collections/example.org"


def _hint(file: Path) -> str:
    """Return a hint for a *file* that was given in place of a collection."""
    from archiver.collection.records import ARCHIVE_ENDINGS

    if not file.name.lower().endswith(ARCHIVE_ENDINGS):
        return ""
    return f"; to import it into a collection: archiver import {quote(str(file))}"


def wait_for_server(address: str) -> None:
    """Wait until the server of the database at *address* can be reached: it may start together with this machine."""
    if not address:
        return
    check_driver(address)
    from archiver.frontier import dialect, postgres

    told = set()
    for reason in postgres.unreachable(address):
        if reason not in told:
            told.add(reason)
            most = f"{postgres.START / 60:g} minutes"
            complain(f"waiting up to {most} for {dialect.name_of(address)}: {reason}; Ctrl+C stops")


def check_frontier(address: str, *, new: bool) -> None:
    """Refuse a database that is not at *address*, and for a *new* crawl one that holds a crawl."""
    if not address:
        return
    wait_for_server(address)
    from archiver.frontier import postgres_reading

    try:
        holds_crawl = postgres_reading.holds_crawl(address)
    except ArchiveError as error:
        raise ConfigError(f"--frontier {error}") from None
    if new and holds_crawl:
        raise ConfigError(f"--frontier {address}: it holds a crawl already; name an empty database")


def lacks_frontier(layout: Layout, address: str) -> bool:
    """Return True if there is no frontier, but crawl.toml names *address*."""
    from archiver.collection.settings_file import read_settings

    there = layout.has_frontier() or not layout.settings.exists()
    return not there and read_settings(layout.settings).get("frontier") == address


def check_one_machine(layout: Layout) -> None:
    """Refuse a crawl of several machines: each has captures that the next crawl would ask for, and other files."""
    if not layout.address.exists():
        return
    from archiver.collection.named_crawl import NamedCrawl
    from archiver.frontier import machines

    with NamedCrawl.in_directory(layout.directory).read() as db:
        if len(names := [each.name for each in machines.accounts(db)]) > 1:
            raise ConfigError(
                f"{layout.directory}: {', '.join(names)} have crawled together, and their archives cannot be crawled "
                f"again as one yet; start a new crawl with --dedup-from {quote(str(layout.directory))}"
            )


def other_machines(layout: Layout) -> list[str]:
    """Return the names of the machines with captures of the same crawl that are not in the directory.

    Raises `ConfigError` or `ArchiveError` if the database, which knows of them, cannot be read.
    """
    if not layout.address.exists():
        return []
    from archiver.collection.named_crawl import NamedCrawl
    from archiver.frontier import machines

    own = machine_of(layout.database)
    with NamedCrawl.in_directory(layout.directory).read() as db:
        return [each.name for each in machines.accounts(db) if each.name != own and each.warcs]


def check_same_frontier(layout: Layout, settings: "Settings") -> None:
    """Refuse a crawl.toml that names another database than the one of the crawl."""
    address = address_of(layout.database)
    if address != settings.limits.frontier:
        here = address or layout.database.name
        raise ConfigError(
            f"{layout.settings}: frontier: the crawl is in {here}; if it was moved: "
            f"archiver resume {quote(str(layout.directory))} --frontier ADDRESS"
        )


def dedup_from(directory: Path) -> list[Path]:
    """Return the archives that hold payloads which the crawl in *directory* did not store again."""
    from archiver.collection.settings_file import read_settings

    settings = Layout(directory).settings
    if not settings.is_file():
        return []
    return [Path(path).resolve() for path in read_settings(settings).get("dedup_from", ())]


def first_seeds(directory: Path, most: int) -> list[str]:
    """Return the first seeds of the crawl in *directory*; none if there is no database.

    An archive can be read without it. So if it is damaged, of another version or on a server, crawl.toml has the seeds.
    """
    from archiver.frontier import totals
    from archiver.frontier.retry import SEEDS

    layout = Layout(directory)
    if layout.database.is_file():
        try:
            with totals.open_totals(directory) as db:
                return [address for (address,) in islice(db.execute(SEEDS), most)]
        except (ArchiveError, ConfigError) as error:
            complain(f"{error}; the seeds are read from {layout.settings.name}")
    elif not layout.address.is_file():
        return []
    from archiver.collection.settings_file import read_settings
    from archiver.config.settings import Settings, with_values

    try:
        return list(with_values(Settings(), read_settings(layout.settings)).seeds[:most])
    except ConfigError as error:
        complain(str(error))
        return []


def seed_titles(directory: Path) -> dict[str, str]:
    """Return the titles that the user gave seeds of the crawl in *directory*, by URL."""
    from archiver.collection.settings_file import seed_descriptions

    try:
        return {address: about.title for address, about in seed_descriptions(Layout(directory)).items() if about.title}
    except ConfigError as error:
        complain(f"{error}; its titles of seeds are not shown")
        return {}


def check_store(settings: "Settings", *, resumed: bool = False) -> None:
    """Refuse a store that cannot be written to; a crawl that is *resumed* goes on without it."""
    if not settings.warc.store:
        return
    from archiver.collection.store import Store

    store = Store(settings.warc.store)
    try:
        store.check()
    except ConfigError as error:
        if not resumed:
            raise
        complain(f"{error}; the crawl goes on, and files are sent later")


def check_collection(directory: Path) -> None:
    """Refuse to write into *directory* if it exists and is not a collection."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory; choose another one with -o")
    safe_paths.check_files(directory)
    if any(directory.iterdir()) and not (directory / "archive").is_dir():
        raise ConfigError(f"{directory} is not empty and not a collection; choose another one with -o")


def make_directory(directory: Path) -> None:
    """Make *directory* and its parents, durably: they are still there after a power cut."""
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


def resume_hint(count: int, crawl: "NamedCrawl", *, running: bool) -> str:
    """Return when *count* changes of *crawl* take effect, as the end of a message; "" if there are none."""
    if not count:
        return ""
    if running:
        return "; the running crawl starts on it within seconds"
    command = crawl.resume_command if crawl.layout is None else f"archiver resume {quote(crawl.name)}"
    return f"; to continue: {command}"
