"""`archiver index` and `rebuild`: make the index or the database of a collection again from its WARC files.

`archiver index ADDRESS` makes one index of what all machines of a crawl have stored, from its database.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from archiver.cli.directory import (
    check_files_are_here,
    check_frontier,
    check_has_archive,
    check_idle,
    check_is_directory,
    finish_switch_over,
    make_directory,
)
from archiver.cli.options import (
    crawl_argument,
    database_of,
    define_command,
    directory_argument,
    output_option,
    store_option,
)
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.layout import Layout, holds_crawl
from archiver.collection.lock import Lock
from archiver.collection.store import StoredFile, StoredFiles
from archiver.errors import ConfigError
from archiver.humanize import count, printable
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.collection.named_crawl import NamedCrawl
    from archiver.config.settings import Settings
    from archiver.frontier.captures import ClosedFile

MOST_PLAIN = 10_000_000  # lines of an index that is one plain file: some 3 GB


@dataclass(frozen=True, slots=True)
class IndexArguments:
    """The arguments of `archiver index` with an address."""

    output: Path | None
    store: str | None
    plain: int


def index(place: Path | str, **chosen: Any) -> ExitCode:
    """Rebuild the index of the directory *place*, or make one of the crawl at the address *place*."""
    arguments = IndexArguments(**chosen)
    if isinstance(place, str):
        return _index_of_all(place, arguments)
    if arguments.output or arguments.store:
        raise ConfigError(f"{place}: -o and --store are for the index of a crawl that you name by its address")
    return _index_again(place)


def _index_of_all(address: str, arguments: IndexArguments) -> ExitCode:
    """Write one index of what all machines have stored for the crawl at *address*."""
    from archiver.collection.index import INDEX, KEYS, Index, pack, remove_packed
    from archiver.collection.named_crawl import NamedCrawl
    from archiver.frontier import captures

    directory = arguments.output
    if directory is None:
        raise ConfigError(f"{address}: name a directory for the index of all machines: -o DIR")
    layout = Layout(directory)
    if holds_crawl(directory):
        raise ConfigError(f"-o {directory}: it holds a crawl, whose index would be lost; name a new directory")
    crawl = NamedCrawl.at_address(address)
    store = _store_of(crawl, arguments.store)
    make_directory(directory)
    with Lock(layout.lock):
        for folder in (layout.archive, layout.indexes):
            make_directory(folder)
        made = Index(layout.indexes)
        made.forget_runs()
        with crawl.read() as db:
            files = captures.closed_files(db)
            lines = made.gather(captures.in_files(db))
        made.finish(replace=True)
        if lines > arguments.plain:
            pack(layout.indexes)
        else:
            remove_packed(layout.indexes)
        _note_store(layout, store, files)
    result(f"{lines} lines in {layout.indexes / (KEYS if lines > arguments.plain else INDEX)}")
    where = f"in {printable(store, 1000)}" if store else f"not here; copy them to {layout.archive}, or name --store"
    say(f"{count(len(files), 'finished WARC file')}: {where}")
    return ExitCode.DONE


def _store_of(crawl: "NamedCrawl", given: str | None) -> str:
    """Return the address of the store that has the WARC files: as *given*, or by the settings; "" for none."""
    if given is not None:
        return given
    try:
        with crawl.read() as db:
            return crawl.settings(db).warc.store
    except ConfigError:  # settings of another version of this program
        return ""


def _note_store(layout: Layout, store: str, files: "Sequence[ClosedFile]") -> None:
    """Write down that the WARC *files* are in *store*, for replay and verify."""
    from archiver.collection.named_files import vouch

    stored = [StoredFile(f"archive/{each.name}", *each[1:], store) for each in files] if store else []
    StoredFiles(layout).replace(stored)
    vouch(layout, [f"store {store}"] if store else [])


def _index_again(directory: Path) -> ExitCode:
    """Rebuild the index of *directory*."""
    from archiver.collection.index_search import besides_cdxj
    from archiver.collection.reindex import rebuild

    check_is_directory(directory)
    check_has_archive(directory)
    check_idle(directory)
    layout = Layout(directory)
    check_files_are_here(directory)  # the index would lose the lines of the others
    with Lock(layout.lock):  # lines that another process adds meanwhile would be lost
        lines = rebuild(directory)
    result(f"{lines} lines in {layout.indexes / 'index.cdxj'}")
    if others := besides_cdxj(layout.indexes):
        say(f"pywb also reads {', '.join(others)} there and shows each capture twice; remove it if you do not need it")
    return ExitCode.DONE


COMMAND = define_command(
    "index",
    index,
    """Rebuild the index from the WARC files.

    Writes DIR/indexes/index.cdxj. With the ADDRESS of a crawl on several machines: makes one index of all their WARC
    files from the database, also while they crawl. archiver replay serves it, with the files from the store.
    """,
    [
        crawl_argument(),
        output_option("DIR", "With ADDRESS: write the index to this directory."),
        store_option("With ADDRESS: the store that has the WARC files. [default: that of the crawl]"),
        click.Option(
            ["--zipnum-above", "plain"],
            type=click.IntRange(0),
            default=MOST_PLAIN,
            metavar="LINES",
            help=f"With ADDRESS: compress a longer index, in blocks (ZipNum). [default: {MOST_PLAIN}]",
        ),
    ],
    ("archiver index collections/example.org", "after you added or removed WARC files by hand"),
    ("archiver index postgresql://me@db.example/mycrawl -o whole", "all machines; then: archiver replay whole"),
)


def rebuild(directory: Path, frontier: str = "") -> ExitCode:
    """Rebuild the database of *directory*, in the PostgreSQL database at the address *frontier* if there is one."""
    import asyncio

    check_is_directory(directory)
    layout = Layout(directory)
    check_has_archive(directory)
    check_files_are_here(directory)
    check_idle(directory)
    finish_switch_over(directory)
    from archiver.config import toml
    from archiver.config.settings import with_values
    from archiver.crawl.recovery.rebuild import rebuilt

    settings, text = _settings(directory)
    missing = not layout.settings.exists()
    if frontier:
        check_frontier(frontier, new=True)
        settings = with_values(settings, {"frontier": frontier})
        text = toml.render(settings)
    elif layout.address.exists() or settings.limits.frontier:
        raise ConfigError(
            f"{directory}: its database is in PostgreSQL; restore a backup, or name an empty database in which it is "
            f"made again: archiver rebuild {quote(str(directory))} --frontier ADDRESS"
        )
    with ProgressLine() as progress:
        done = asyncio.run(
            rebuilt(
                directory,
                settings,
                lambda number, files, visits: progress.show(
                    f"reading: file {number} of {files}, {count(visits, 'visit')} so far"
                ),
                text,
            )
        )
    if missing:
        say(f"{layout.settings} was missing and is rebuilt from the WARC files")
    for name in done.mended:
        say(f"{layout.archive / name}: damaged parts were moved to {layout.damaged}")
    for name in done.foreign:
        say(f"{layout.archive / name}: not written by archiver; left unchanged")
    for name in done.blank:
        why = "no WARC record is in it, so it is damaged or was overwritten; left unchanged"
        say(f"{layout.archive / name}: {why}; if you have a copy, put that back and run this again")
    again = "archiver record -o" if settings.warc.recording else "archiver resume"
    read = f"{count(done.visits, 'visit')} in {count(done.files, 'WARC file')}"
    result(f"{read}; to continue: {again} {quote(str(directory))}")
    return ExitCode.DONE


def _settings(directory: Path) -> "tuple[Settings, str]":
    """Return the settings of crawl.toml and ""; without one, those in the newest WARC file and a text for it."""
    from archiver.collection.settings_file import read_settings
    from archiver.config import toml
    from archiver.config.settings import Settings, with_values
    from archiver.crawl.recovery.recover import own_files, settings_text

    layout = Layout(directory)
    if layout.settings.exists():
        return with_values(Settings(), read_settings(layout.settings)), ""
    text = settings_text(own_files(layout))
    if not text:
        raise ConfigError(f"{layout.settings} is missing, and no WARC file holds the seeds; write a new one")
    settings = with_values(Settings(), toml.parse(text, "the settings in the WARC files"))
    return settings, toml.render(settings)


REBUILD = define_command(
    "rebuild",
    rebuild,
    """Rebuild a lost or damaged database from the WARC files.

    Recovers every visit that is complete in a WARC file; archiver resume then continues the crawl and fetches damaged
    captures again. Deletes nothing: the old database and damaged parts of WARC files are kept in DIR/damaged. Also
    rebuilds the index, and crawl.toml if it is missing.
    """,
    [
        directory_argument(),
        click.Option(
            ["--frontier"],
            default="",
            metavar="DATABASE",
            type=database_of,
            help="Make it in this empty PostgreSQL database instead of crawl.db.",
        ),
    ],
    ("archiver rebuild collections/example.org", "then: archiver resume collections/example.org"),
)
