"""`archiver replay`: serve archives with pywb and print the address of each seed."""

import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from archiver.cli.directory import check_has_archive, check_is_directory, dedup_from, first_seeds, seed_titles
from archiver.cli.get import open_holdings
from archiver.cli.options import define_command, port_option, store_option
from archiver.cli.terminal import complain, result, say
from archiver.collection.layout import Layout
from archiver.collection.named_files import strangers
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.tools.replay.server import Served
    from archiver.tools.replay.sources import ReplaySource

SEEDS_SHOWN = 20
LISTED = 1000  # seeds at the top of the start page
MAX_PATH = 1000  # characters of a path
MAX_CAPTURES = 20_000  # captures among which the first pages are looked for if there are no seeds


def serve(paths: Sequence[Path], port: int, *, store: str | None = None, opened: bool = False) -> ExitCode:
    """Serve the archives at *paths* until Ctrl+C; *opened*: open the first seed in a browser.

    Files that are not in a directory are read from the stores that have them, or from *store*.

    An archive is a collection in a directory, a WACZ package, or a WARC file.
    """
    from archiver.tools.replay import server
    from archiver.tools.replay import sources as archives

    directories = [path for path in paths if not path.is_file()]
    for directory in directories:
        check_is_directory(directory)
    stores = {directory: _stores(Layout(directory), store) for directory in directories}
    for directory in directories:
        _check_replayable(directory, stores[directory])
    server.check_installed()
    referred = list(_referred_to(directories))
    with ExitStack() as stack:
        sources = [_source(path, stores.get(path, ()), stack) for path in paths]
        sources += [
            archives.FolderSource(other, _stores(Layout(other), None), originals_only=True) for other in referred
        ]
        every = [first_urls(path) for path in paths]
        seeds = start_urls(every)
        titles = {seed: title for path in reversed(directories) for seed, title in seed_titles(path).items()}
        contents = server.ReplayContents(
            tuple(sources),
            server.collection_name(paths[0]),
            tuple(path.resolve().name for path in paths),
            {seed: titles.get(seed, "") for found in every for seed in found},
        )

        def started(served: "Served") -> None:
            result("\n".join(served.page(printable(seed, len(seed))) for seed in seeds) or served.root)
            say(f"archiver: serving {' and '.join(map(str, paths))} at {served.root}; press Ctrl+C to stop")
            for other in referred:
                say(f"archiver: also serving {printable(str(other), MAX_PATH)}, which holds payloads of revisits")
            if opened:
                _open(served.page(seeds[0]) if seeds else served.root)

        server.serve(contents, port, started)
    return ExitCode.DONE


def _stores(layout: Layout, given: str | None) -> list[str]:
    """Return the addresses of the stores that have WARC files which are not in the directory, and *given*."""
    from archiver.collection.store import Store, StoredFiles

    notes = StoredFiles(layout)
    every = list(dict.fromkeys(each.store for each in notes.everywhere()))
    needed = {each.store for each in notes.absent()}
    unknown = strangers(layout, [f"store {address}" for address in every])
    found = [given] if given else []
    for address in every:
        if f"store {address}" not in unknown:
            found.append(address)
        elif address in needed and address != given:
            shown = printable(address, MAX_PATH)
            complain(
                f"not reading from {shown}: {layout.directory} says that WARC files are there, but you have not named "
                f"it for this collection on this machine; if you trust it: --store {quote(shown)}"
            )
    for address in found:
        if address in needed or address == given:
            Store(address)  # now, so that a missing package is named before the first page
    return list(dict.fromkeys(found))


def _source(path: Path, stores: Sequence[str], stack: ExitStack) -> "ReplaySource":
    """Return the archive at *path* for replay; it can be used while *stack* is open."""
    from archiver.tools.ingest.packages import open_offsets
    from archiver.tools.replay import sources as archives

    if not path.is_file():
        return archives.FolderSource(path, stores)
    found = stack.enter_context(open_offsets(path, lambda text: say(f"archiver: {text}")))
    return archives.PackedSource(found.indexes, found.places)


def _check_replayable(directory: Path, stores: Sequence[str]) -> None:
    """Refuse a directory without an archive, here or in *stores*, or without an index."""
    if not stores:
        check_has_archive(directory)
    layout = Layout(directory)
    if not layout.indexes.is_dir():
        raise ConfigError(f"{directory} holds no index; to build it: archiver index {quote(str(directory))}")


def start_urls(every: Sequence[Sequence[str]]) -> list[str]:
    """Return the URLs to print: some seeds of each archive, so that a large list leaves none out."""
    each = max(SEEDS_SHOWN // len(every), 1)
    return list(dict.fromkeys(seed for seeds in every for seed in seeds[:each]))


def _referred_to(directories: Sequence[Path]) -> Iterator[Path]:
    """Yield the collections that hold payloads of *directories* (`--dedup-from`), and in turn those of these."""
    every = [directory.resolve() for directory in directories]
    for directory in every:  # grows in the loop
        for path in _other_archives(directory):
            if path not in every and Layout(path).archive.is_dir() and Layout(path).indexes.is_dir():
                every.append(path)
                yield path


def _other_archives(directory: Path) -> list[Path]:
    try:
        found = dedup_from(directory)
    except ConfigError as error:
        complain(f"cannot tell if other archives hold payloads of this one: {error}")
        return []
    unknown = strangers(Layout(directory), map(str, found))
    for path in unknown:
        complain(
            f"not serving {printable(path, MAX_PATH)}: {Layout(directory).settings} says that it holds payloads, but "
            "you have not named it for this collection on this machine; add it to the command if you trust both"
        )
    return [path for path in found if str(path) not in unknown]


def first_urls(path: Path) -> list[str]:
    """Return the first seeds of the archive at *path*; if none are known, the first pages."""
    seeds = [] if path.is_file() else first_seeds(path, LISTED)
    if seeds:
        _report_damage(path)
    return seeds or list(_pages(path))


def _report_damage(directory: Path) -> None:
    """Print a message if the index of *directory* is damaged; pywb would silently show fewer captures."""
    try:
        with open_holdings(directory):
            pass
    except ArchiveError as error:
        complain(str(error))
    except ConfigError:  # the crawl has no captures yet
        return


def _pages(directory: Path) -> Iterator[str]:
    """Yield the shortest URLs of pages among the first captures of the index."""
    try:
        with open_holdings(directory) as holdings:
            looked = islice(holdings.entries(), MAX_CAPTURES)
            pages = dict.fromkeys(entry.url for entry in looked if entry.mime == "text/html" and entry.status == "200")
    except (ArchiveError, ConfigError) as error:  # pywb may still be able to read it
        complain(str(error))
        return
    yield from sorted(pages, key=lambda page: (page.count("/"), len(page), page))[:SEEDS_SHOWN]


def _open(address: str) -> None:
    """Open *address* in the browser, or print a message if there is none."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        complain(f"no browser found; open {address} yourself")
        return

    def open_it() -> None:
        if not browser.open(address):
            complain(f"the browser did not start; open {address} yourself")

    threading.Thread(target=open_it, daemon=True).start()  # some calls return only when the browser is closed


COMMAND = define_command(
    "replay",
    serve,
    """Serve archives with pywb on this machine.

    Prints the address of each seed; of an archive without crawl.db, the first pages. The start page lists all pages by
    title with their dates, seeds first, and filters them by title or URL. Titles are read after the start. Each DIR is
    a collection, even one whose crawl is running; each FILE is a WACZ or WARC file. Several are served as one, so that
    a revisit in one finds its payload in another. WARC files that are only in a store are read there. Press Ctrl+C to
    stop. Needs pywb: in the checkout, pip install '.[replay]'.
    """,
    [
        click.Argument(["paths"], nargs=-1, required=True, metavar="DIR|FILE...", type=click.Path(path_type=Path)),
        port_option(8080),
        store_option("Read WARC files that are not in DIR from this store. [default: the one they were sent to]"),
        click.Option(["--open", "opened"], is_flag=True, help="Open the first seed in the browser."),
    ],
    ("archiver replay collections/example.org", "serve at http://127.0.0.1:8080/"),
    ("archiver replay collections/example.org --port 0 --open", "serve at a free port and open the browser"),
    ("archiver replay example.wacz", "serve a package that you received"),
    ("archiver replay whole --store s3://archives/example", "read WARC files that are not in whole from a store"),
    ("archiver replay collections/new collections/old", "serve a crawl with the earlier one that it refers to"),
)
