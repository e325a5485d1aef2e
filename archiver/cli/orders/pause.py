"""`archiver pause` and `archiver go`: let a crawl start no request, and let it go on."""

from pathlib import Path

from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.frontier.orders.table import Verb
from archiver.model import ExitCode


def pause(place: Path | str) -> ExitCode:
    """Let the crawl at *place* start no request."""
    return give_and_print(place, Verb.PAUSE)


def go(place: Path | str) -> ExitCode:
    """Let the crawl at *place* go on."""
    return give_and_print(place, Verb.GO)


COMMAND = define_command(
    "pause",
    pause,
    """Pause a crawl until archiver go.

    No new request starts, and requests in flight finish. The crawl stays paused after stops, crashes and archiver
    resume, for as long as you like. A paused crawl does not end by itself; Ctrl+C, SIGTERM and --max-time end the run.
    """,
    [crawl_argument()],
    ("archiver pause collections/example.org", "start no request until archiver go"),
)

GO = define_command(
    "go",
    go,
    """Continue a paused crawl.

    A running crawl starts requests again within seconds.
    """,
    [crawl_argument()],
    ("archiver go collections/example.org", "end the pause"),
)
