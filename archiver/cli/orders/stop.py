"""`archiver stop`: end the run of a crawl in order, from any terminal."""

import time
from contextlib import ExitStack
from pathlib import Path

import click

from archiver.cli.directory import named_crawl
from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.collection.lock import HolderWatch
from archiver.collection.named_crawl import check_holds_crawl
from archiver.frontier.orders.table import NOW, Verb
from archiver.model import ExitCode

LOOK_EVERY = 0.2  # seconds


def stop(place: Path | str, *, now: bool, wait: bool) -> ExitCode:
    """End the run of the crawl at *place* and, with *wait*, return when it has ended; *now*: cut requests under way."""
    arguments = (NOW,) if now else ()
    if not wait:
        return give_and_print(place, Verb.STOP, arguments)
    crawl = named_crawl(place)
    check_holds_crawl(crawl)
    with ExitStack() as stack:
        watch = None if crawl.layout is None else HolderWatch(crawl.layout.directory)
        if watch is not None:
            stack.callback(watch.close)
        code = give_and_print(place, Verb.STOP, arguments)
        while not (watch is None or watch.has_ended(time.monotonic())) or crawl.runs_elsewhere():
            time.sleep(LOOK_EVERY)
    return code


COMMAND = define_command(
    "stop",
    stop,
    """Stop a running crawl, as Ctrl+C does.

    Within seconds, none of its processes and machines starts requests any more. Requests in flight may finish within
    --drain-timeout; then everything is committed, and the run ends with exit code 4. archiver resume continues it. The
    command waits until then; Ctrl+C ends only the waiting. The order applies to this run only. If no request should
    start after archiver resume either, use archiver pause.
    """,
    [
        crawl_argument(),
        click.Option(
            ["--wait/--no-wait"],
            default=True,
            help="Return when the run has ended, or as soon as the crawl has received the order. [default: --wait]",
        ),
        click.Option(
            [NOW], is_flag=True, help="Cut requests in flight, as a second Ctrl+C does. Their URLs stay queued."
        ),
    ],
    ("archiver stop collections/example.org", "let requests in flight finish"),
    ("archiver stop collections/example.org --now", "do not wait for them"),
)
