"""`archiver replay`: serve collections and say where each seed can be seen."""

import threading
import webbrowser
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote

from archiver import replay
from archiver.archive.layout import Layout
from archiver.cli import directory as place
from archiver.cli.terminal import complain, result, say
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import account
from archiver.holdings import Holdings
from archiver.model import ExitCode
from archiver.replay import Served
from archiver.stats import printable

SEEDS_SHOWN = 20
_LONGEST = 1000  # characters of a path
_LOOKED_AT = 20_000  # captures of which the first pages are taken where no seeds are known


def serve(directories: Sequence[Path], port: int, *, opened: bool = False) -> ExitCode:
    """Serve the collections in *directories* until it is stopped, in the browser too where that is to be *opened*."""
    for directory in directories:
        place.check_is_directory(directory)
        _check_replayable(directory)
    replay.check_installed()
    others = list(_referred_to(directories))
    seeds = starts(directories)

    def started(served: Served) -> None:
        result("\n".join(served.page(printable(seed, len(seed))) for seed in seeds) or served.root)
        say(f"archiver: serving {' and '.join(map(str, directories))} at {served.root} until Ctrl+C")
        for other in others:
            say(f"archiver: and {printable(str(other), _LONGEST)}, where payloads lie that are not stored twice")
        if opened:
            _open(served.page(seeds[0]) if seeds else served.root)

    shelves = [replay.Folder(directory) for directory in (*directories, *others)]
    replay.serve(shelves, replay.collection_name(directories[0]), port, started)
    return ExitCode.DONE


def _check_replayable(directory: Path) -> None:
    """Refuse a directory without the folders that hold an archive and its index, in it."""
    layout = Layout(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} holds no archive to replay: there is no {layout.archive.name}/ in it")
    if not layout.indexes.is_dir():
        raise ConfigError(f"{directory} holds no index; make it with: archiver index {quote(str(directory))}")
    replay.check_inside(directory)


def starts(directories: Sequence[Path]) -> list[str]:
    """Where a person begins, some of each directory: none is left out because another has many."""
    each = max(SEEDS_SHOWN // len(directories), 1)
    return list(dict.fromkeys(seed for directory in directories for seed in _seeds(directory)[:each]))


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
        return place.dedup_from(directory)
    except ConfigError as error:
        complain(f"whether payloads lie elsewhere is not known: {error}")
        return []


def _seeds(directory: Path) -> list[str]:
    """The first seeds; where only the archive was kept, the first pages."""
    if not Layout(directory).database.is_file():
        return list(_pages(directory))
    with account.opened(directory) as db:
        return [seed.url for seed in account.seeds(db)[:SEEDS_SHOWN]]


def _pages(directory: Path) -> Iterator[str]:
    """The shortest URLs of pages among the first captures of the index."""
    try:
        with Holdings.opened(directory) as holdings:
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
