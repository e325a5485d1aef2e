"""`archiver store`: send a collection to an object store, and check what is there."""

import threading
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from archiver import humanize
from archiver.cli.directory import check_has_archive, check_is_directory, read_settings
from archiver.cli.options import define_command
from archiver.cli.terminal import ProgressLine, complain, result
from archiver.collection.layout import Layout
from archiver.config.settings import Settings, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import printable, volume
from archiver.model import ExitCode

if TYPE_CHECKING:
    from archiver.collection.store import Store

PATIENCE = 3600.0  # seconds of failures after which we do not try to send any more


def store(what: str, directory: Path, *, address: str | None, read: bool) -> ExitCode:
    """Send the collection in *directory* to a store, or check what is there."""
    from archiver.collection.store import Store

    check_is_directory(directory)
    check_has_archive(directory)
    layout = Layout(directory)
    given = {"store": address} if address else read_settings(layout.settings) if layout.settings.exists() else {}
    place = with_values(Settings(), {"store": given.get("store", "")}).warc.store
    if not place:
        raise ConfigError(f"{layout.settings} names no store; name one: --store s3://BUCKET/PREFIX")
    opened = Store(place)
    if what == "send":
        opened.check()
        return ExitCode.DONE if send(directory, opened, mend=True) else ExitCode.LIMIT
    return _check(layout, opened, read=read)


def send(directory: Path, store: "Store", *, mend: bool = False) -> bool:
    """Send what *store* lacks; try again for an hour, and until Ctrl+C. Return False if something is left.

    *mend*: also files that were sent and are not there any more.
    """
    from archiver.collection.store import StoredFiles, next_pause, send_all, unsent

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
    stored = StoredFiles(layout).read(store.address).values()
    size = sum(each.size for each in stored)
    result(f"stored    {humanize.count(len(stored), 'file')} of {volume(size)} in {printable(store.address, 1000)}")
    if left := len(unsent(layout, store.address, others=True)):
        command = f"archiver store send {quote(str(directory))}"
        complain(f"{humanize.count(left, 'file is', 'files are')} not stored yet; send the rest: {command}")
    return not left


def _forget_missing(layout: Layout, store: "Store") -> None:
    """Forget files that were stored and are missing or different now, so that they are sent again."""
    from archiver.collection.store import StoredFiles

    notes = StoredFiles(layout)
    for file in notes.read(store.address).values():
        if (layout.directory / file.key).exists() and store.fault(file):
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


COMMAND = define_command(
    "store",
    store,
    """Send a collection to an object store, or check what is there.

    send copies finished WARC files, the index and crawl.log that the store does not have yet. check asks the store for
    each file that was sent; the exit code is 7 if one is missing or different. The store is that of DIR/crawl.toml, or
    the one you name. Credentials come from the environment, as for other programs of that store.
    """,
    [
        click.Argument(["what"], type=click.Choice(["send", "check"])),
        click.Argument(["directory"], metavar="DIR", type=click.Path(path_type=Path)),
        click.Option(
            ["--store", "address"], metavar="STORE", help="Use this store: s3://BUCKET/PREFIX, file:///FOLDER."
        ),
        click.Option(["--read"], is_flag=True, help="With check: read each file back, and compare all of its bytes."),
    ],
    ("archiver store send collections/example.org --store s3://archives/example", "copy a collection"),
    ("archiver store check collections/example.org --read", "read everything back and compare it"),
)
