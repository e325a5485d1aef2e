"""`archiver stop`: end the run of a crawl in order, from any terminal."""

from pathlib import Path

import click

from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.frontier.orders.table import NOW, Verb
from archiver.model import ExitCode


def stop(place: Path | str, *, now: bool) -> ExitCode:
    """End the run of the crawl at *place*; *now*: cut requests under way."""
    return give_and_print(place, Verb.STOP, (NOW,) if now else ())


COMMAND = define_command(
    "stop",
    stop,
    """Stop a crawl that runs, as Ctrl+C does.

    Within seconds no request starts any more, in all its processes and on all its machines. Requests under way end, for
    --drain-timeout at most; then everything is committed, and the run ends with exit code 4. archiver resume continues
    it. The command returns as soon as the crawl has taken the order up. An order to stop is for this run only: a crawl
    that shall stay at rest over archiver resume is paused, by archiver pause.
    """,
    [
        crawl_argument(),
        click.Option(
            [NOW], is_flag=True, help="Cut requests under way, as a second Ctrl+C does. Their URLs stay queued."
        ),
    ],
    ("archiver stop collections/example.org", "let requests under way end"),
    ("archiver stop collections/example.org --now", "do not wait for them"),
)
