"""`archiver store`: send a collection to an object store, check what is there, and fetch it back."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from archiver import humanize
from archiver.cli.directory import check_has_archive, check_is_directory
from archiver.cli.options import define_command
from archiver.cli.terminal import ProgressLine, complain, result
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.collection.safe_paths import check_files
from archiver.collection.settings_file import read_settings
from archiver.config.settings import Settings, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable, volume
from archiver.model import ExitCode
from archiver.storage import storage, sync_folder

if TYPE_CHECKING:
    from archiver.collection.store import Store

PATIENCE = 3600.0  # seconds of failures after which we do not try to send any more


def store(what: str, directory: Path, files: Sequence[str], *, address: str | None, read: bool) -> ExitCode:
    """Send the collection in *directory* to a store, check what is there, or fetch *files* back, without any: all."""
    from archiver.collection.store import Store

    check_is_directory(directory)
    if files and what != "fetch":
        raise ConfigError(f"{what} takes no FILE; only fetch does")
    if what != "fetch":
        check_has_archive(directory)
    layout = Layout(directory)
    place = with_values(Settings(), {"store": address}).warc.store if address else store_of(layout)
    if not place:
        raise ConfigError(f"{layout.settings} names no store; name one: --store s3://BUCKET/PREFIX")
    opened = Store(place)
    if what == "send":
        opened.check()
        return ExitCode.DONE if send(directory, opened, mend=True) else ExitCode.LIMIT
    return _fetch(layout, opened, files) if what == "fetch" else _check(layout, opened, read=read)


def store_of(layout: Layout) -> str:
    """Return the address of the store in the settings of *layout*; "" if there is none."""
    given = read_settings(layout.settings) if layout.settings.exists() else {}
    return with_values(Settings(), {"store": given.get("store", "")}).warc.store


def send(directory: Path, store: "Store", *, mend: bool = False) -> bool:
    """Send what *store* lacks; try again for an hour, and until Ctrl+C. Return False if something is left.

    *mend*: also files that were sent and are not there any more.
    """
    from archiver.collection.store import next_pause, send_all

    layout, stop = Layout(directory), threading.Event()
    count, pause, since = 0, 0.0, 0.0
    with ProgressLine() as meter:

        def tell(key: str, done: int, size: int) -> None:
            meter.show(f"sending {printable(key, 60)}: {volume(done)} of {volume(size)}")

        while True:
            try:
                if mend:
                    _forget_missing(layout, store)
                count += send_all(layout, store, stop, others=True, report=tell)
                break
            except ArchiveError as error:
                since = since if pause else time.monotonic()
                if time.monotonic() - since > PATIENCE:
                    complain(str(error))
                    break
                if not pause:
                    complain(f"{error}; trying again for an hour, or until Ctrl+C")
                pause = next_pause(pause)
                time.sleep(pause)
            except KeyboardInterrupt:
                break
    return tell_stored(directory, store.address)


def tell_stored(directory: Path, address: str) -> bool:
    """Print how much is in the store at *address*, and how to send the rest. Return False if something is left."""
    from archiver.collection.store import StoredFiles, unsent

    layout = Layout(directory)
    stored = StoredFiles(layout).read(address).values()
    size = sum(each.size for each in stored)
    result(f"stored    {humanize.count(len(stored), 'file')} of {volume(size)} in {printable(address, 1000)}")
    if left := len(unsent(layout, address, others=True)):
        command = f"archiver store send {quote(str(directory))}"
        complain(f"{humanize.count(left, 'file is', 'files are')} not stored yet; send the rest: {command}")
    return not left


def delete_stored(directory: Path, store: "Store") -> None:
    """Delete the WARC files here that *store* has, and say so. It is asked for each of them again."""
    from archiver.collection.store import StoredFiles, is_same

    layout = Layout(directory)
    count = size = 0
    with Lock(layout.lock):
        for file in StoredFiles(layout).of_warcs(store.address):
            path = layout.directory / file.key
            try:
                if not path.is_file() or not is_same(path, file) or store.fault(file):
                    continue
            except ArchiveError as error:  # the store is away; the file stays
                complain(str(error))
                break
            with storage(path):
                path.unlink()
            count, size = count + 1, size + file.size
        with storage(layout.archive):
            sync_folder(layout.archive)
    if count:
        command = f"archiver store fetch {quote(str(directory))}"
        result(f"deleted   {humanize.count(count, 'WARC file')} of {volume(size)} here; to get them back: {command}")


def _forget_missing(layout: Layout, store: "Store") -> None:
    """Forget files that were stored and are missing or different now, so that they are sent again."""
    from archiver.collection.store import StoredFiles, finished_files

    notes, here = StoredFiles(layout), finished_files(layout, others=True)
    for file in notes.read(store.address).values():
        if file.key in here and store.fault(file):
            notes.forget(file)


def _check(layout: Layout, store: "Store", *, read: bool) -> ExitCode:
    """Print what of *layout* is in *store*, what is missing there, and what differs."""
    from archiver.collection.store import StoredFiles, unsent

    stored = StoredFiles(layout).read(store.address)
    faults = 0
    with ProgressLine() as meter:
        for number, file in enumerate(stored.values(), 1):
            meter.show(f"checking: file {number} of {len(stored)}")
            if wrong := store.fault(file, read=read):
                faults += 1
                result(f"{printable(file.key, 1000)} {wrong}")
    left = unsent(layout, store.address, others=True)
    for _, key in left:
        result(f"{printable(key, 1000)} is not sent as it is now")
    good = humanize.count(len(stored) - faults, "file is", "files are")
    result(f"{good} in {printable(store.address, 1000)}, {faults} missing or different, {len(left)} not sent")
    if faults or left:
        complain(f"send them: archiver store send {quote(str(layout.directory))}")
    return ExitCode.FAULTS if faults else ExitCode.DONE


def _fetch(layout: Layout, store: "Store", wanted: Sequence[str]) -> ExitCode:
    """Fetch WARC files that are in *store* and not in *layout*, those named *wanted* or all."""
    from archiver.collection.store import StoredFiles, StoreError

    stored = {each.key.removeprefix("archive/"): each for each in StoredFiles(layout).of_warcs(store.address)}
    for name in wanted:
        if name not in stored:
            raise ConfigError(f"{printable(name, 1000)}: {layout.directory} does not say that {store.address} has it")
    check_files(layout.directory)
    absent = [name for name in wanted or sorted(stored) if not (layout.archive / name).exists()]
    faults = 0
    with ProgressLine() as meter, Lock(layout.lock):
        for number, name in enumerate(absent, 1):
            meter.show(f"fetching file {number} of {len(absent)}: {printable(name, 60)}")
            try:
                (layout.archive / name).parent.mkdir(parents=True, exist_ok=True)
                store.fetch(stored[name], layout.archive / name)
            except StoreError as error:
                faults += 1
                complain(printable(str(error), 2000))
    there = humanize.count(len(absent) - faults, "file")
    result(f"{there} fetched from {printable(store.address, 1000)}, {len(wanted or stored) - len(absent)} were here")
    return ExitCode.FAULTS if faults else ExitCode.DONE


COMMAND = define_command(
    "store",
    store,
    """Send a collection to an object store, check what is there, or fetch it back.

    send copies finished WARC files, the index and crawl.log that the store does not have yet. check asks the store for
    each file that was sent; the exit code is 7 if one is missing or different. fetch copies WARC files back that are
    not in DIR any more, and compares length and SHA-256. The store is that of DIR/crawl.toml, or the one you name.
    Credentials come from the environment, as for other programs of that store.
    """,
    [
        click.Argument(["what"], type=click.Choice(["send", "check", "fetch"])),
        click.Argument(["directory"], metavar="DIR", type=click.Path(path_type=Path)),
        click.Argument(["files"], nargs=-1, metavar="[FILE]..."),
        click.Option(
            ["--store", "address"], metavar="STORE", help="Use this store: s3://BUCKET/PREFIX, file:///FOLDER."
        ),
        click.Option(["--read"], is_flag=True, help="With check: read each file back, and compare all of its bytes."),
    ],
    ("archiver store send collections/example.org --store s3://archives/example", "copy a collection"),
    ("archiver store check collections/example.org --store s3://archives/example --read", "read all back, and compare"),
    ("archiver store fetch collections/example.org --store s3://archives/example", "get WARC files back"),
)
