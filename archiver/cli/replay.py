"""`archiver replay`: serve collections and say where each seed can be seen."""

import signal
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from shlex import quote

from archiver.cli import directory as place
from archiver.cli.get import open_holdings as holdings_of
from archiver.cli.terminal import complain, result, say
from archiver.collection.dedup_sources import strangers
from archiver.collection.layout import Layout
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.humanize import printable
from archiver.model import ExitCode
from archiver.tools import replay
from archiver.tools.ingest.view import laid_open
from archiver.tools.replay import ReplaySource, Served

SEEDS_SHOWN = 20
_LONGEST = 1000  # characters of a path
_LOOKED_AT = 20_000  # captures of which the first pages are taken where no seeds are known


def serve(paths: Sequence[Path], port: int, *, opened: bool = False) -> ExitCode:
    """Serve the archives at *paths* until it is stopped, in the browser too where that is to be *opened*.

    An archive is a collection in a directory, a package, or a WARC file.
    """
    directories = [path for path in paths if not path.is_file()]
    for directory in directories:
        place.check_is_directory(directory)
        _check_replayable(directory)
    replay.check_installed()
    _end_in_order()
    others = list(_referred_to(directories))
    with ExitStack() as stack:
        shelves = [_shelf(path, stack) for path in paths]
        shelves += [replay.FolderSource(other, originals_only=True) for other in others]
        seeds = starts(paths)

        def started(served: Served) -> None:
            result("\n".join(served.page(printable(seed, len(seed))) for seed in seeds) or served.root)
            say(f"archiver: serving {' and '.join(map(str, paths))} at {served.root} until Ctrl+C")
            for other in others:
                say(f"archiver: and {printable(str(other), _LONGEST)}, where payloads lie that are not stored twice")
            if opened:
                _open(served.page(seeds[0]) if seeds else served.root)

        replay.serve(shelves, replay.collection_name(paths[0]), port, started)
    return ExitCode.DONE


def _end_in_order() -> None:
    """A terminal that is closed ends it as Ctrl+C does, so that temporary files are removed."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def _shelf(path: Path, stack: ExitStack) -> ReplaySource:
    """What is served of the archive at *path*, as long as *stack* is open."""
    if not path.is_file():
        return replay.FolderSource(path)
    found = stack.enter_context(laid_open(path, lambda text: say(f"archiver: {text}")))
    return replay.PackedSource(found.indexes, found.places)


def _check_replayable(directory: Path) -> None:
    """Refuse a directory without the folders that hold an archive and its index."""
    layout = Layout(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} holds no archive to replay: there is no {layout.archive.name}/ in it")
    if not layout.indexes.is_dir():
        raise ConfigError(f"{directory} holds no index; make it with: archiver index {quote(str(directory))}")


def starts(paths: Sequence[Path]) -> list[str]:
    """Return where a person begins, some of each archive: none is left out because another has many."""
    each = max(SEEDS_SHOWN // len(paths), 1)
    return list(dict.fromkeys(seed for path in paths for seed in _seeds(path)[:each]))


def _referred_to(directories: Sequence[Path]) -> Iterator[Path]:
    """The collections that hold payloads of *directories* (`--dedup-from`), and those that hold payloads of these."""
    every = [directory.resolve() for directory in directories]
    for directory in every:  # which grows meanwhile
        for path in _dedup_from(directory):
            if path not in every and Layout(path).archive.is_dir() and Layout(path).indexes.is_dir():
                every.append(path)
                yield path


def _dedup_from(directory: Path) -> list[Path]:
    try:
        found = place.dedup_from(directory)
    except ConfigError as error:
        complain(f"whether payloads lie elsewhere is not known: {error}")
        return []
    unknown = strangers(Layout(directory), map(str, found))
    for path in unknown:
        complain(
            f"{printable(path, _LONGEST)} is not shown: {Layout(directory).settings} says that payloads lie there, and "
            "it was not named for this collection on this machine; name it yourself if you trust both"
        )
    return [path for path in found if str(path) not in unknown]


def _seeds(directory: Path) -> list[str]:
    """The first seeds; where only the archive was kept, the first pages."""
    if directory.is_file() or not Layout(directory).database.is_file():
        return list(_pages(directory))
    with totals.open_totals(directory) as db:
        return [seed.url for seed in totals.seeds(db)[:SEEDS_SHOWN]]


def _pages(directory: Path) -> Iterator[str]:
    """The shortest URLs of pages among the first captures of the index."""
    try:
        with holdings_of(directory) as holdings:
            looked = islice(holdings.entries(), _LOOKED_AT)
            pages = dict.fromkeys(entry.url for entry in looked if entry.mime == "text/html" and entry.status == "200")
    except (ArchiveError, ConfigError) as error:  # pywb may read it still
        complain(str(error))
        return
    yield from sorted(pages, key=lambda page: (page.count("/"), len(page), page))[:SEEDS_SHOWN]


def _open(address: str) -> None:
    """Open *address* in the browser; only a word is said where there is none."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        complain(f"there is no browser to open; the address is {address}")
        return

    def open_it() -> None:
        if not browser.open(address):
            complain(f"the browser cannot be opened; the address is {address}")

    threading.Thread(target=open_it, daemon=True).start()  # some wait for their browser to end
