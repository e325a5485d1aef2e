"""Delivers the events that are left when a run has ended, the last of which is its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from archiver.cli.terminal import complain
from archiver.collection.layout import Layout
from archiver.config.settings import Settings
from archiver.errors import ArchiveError, ConfigError
from archiver.humanize import count, printable


@contextmanager
def reporting(directory: Path, settings: Settings) -> Iterator[None]:
    """Refuse a `--log-to` that is no log. After the crawl in *directory*, deliver the events that are left."""
    if settings.events.log_to:
        from archiver.collection.url_log import check_place

        check_place(settings.events.log_to)
    try:
        yield
    finally:
        if settings.events.on and Layout(directory).has_frontier():
            send_rest(directory, settings)


def send_rest(directory: Path, settings: Settings) -> None:
    """Deliver what is left of the crawl in *directory*; what cannot be delivered now waits. Never raises an error."""
    import asyncio

    from archiver.crawl.events.delivering import send_left

    try:
        sent = asyncio.run(send_left(directory, settings))
    except (ArchiveError, ConfigError) as error:  # the run has ended by it, or another process has resumed the crawl
        complain(f"events wait: {printable(str(error), 1000)}")
        return
    if sent.left:
        complain(
            f"{count(sent.left, 'event waits', 'events wait')} to be delivered; archiver resume tries again, or: "
            f"archiver events {quote(str(directory))} --send"
        )
