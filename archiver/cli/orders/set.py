"""`archiver set`: change settings of a crawl, whether it runs or not."""

from collections.abc import Sequence
from pathlib import Path

import click

from archiver.cli.options import crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.config.live_settings import LIVE
from archiver.frontier.orders.table import Verb
from archiver.model import ExitCode


def put(place: Path | str, given: Sequence[str]) -> ExitCode:
    """Change the settings of the crawl at *place* as *given*, KEY=VALUE each."""
    return give_and_print(place, Verb.SET, given)


COMMAND = define_command(
    "set",
    put,
    f"""Change settings of a crawl, even while it runs.

    The values are written to DIR/crawl.toml. A running crawl applies them within seconds, in all its processes and on
    all its machines; then the command prints "in force". A lower rate applies from the next request on. Other scope
    rules apply to links that are found from then on.

    A key that can be given several times loses its earlier values; KEY= removes all. host='MATCH KEY=VALUE' adds a rule
    before the others.

    Keys: {", ".join(sorted(LIVE))}. All others are read when a crawl starts: see archiver resume.
    """,
    [crawl_argument(), click.Argument(["given"], nargs=-1, metavar="KEY=VALUE...")],
    ("archiver set collections/example.org rate=1 concurrency=4", "crawl more slowly, from now on"),
    ("archiver set collections/example.org host='img.example.org rate=1/10'", "one host only"),
    ("archiver set collections/example.org max-urls=0 max-time=0", "remove these limits"),
)
