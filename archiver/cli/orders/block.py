"""`archiver block` and `archiver unblock`: send no request to a host, and let its URLs go on."""

from pathlib import Path

import click

from archiver.cli.options import complete_hosts, crawl_argument, define_command
from archiver.cli.orders.giving import give_and_print
from archiver.frontier.orders.table import Verb
from archiver.model import ExitCode


def block(place: Path | str, host: str) -> ExitCode:
    """Let the crawl at *place* send no request to hosts that match *host*."""
    return give_and_print(place, Verb.BLOCK, (host,))


def unblock(place: Path | str, host: str) -> ExitCode:
    """Let the crawl at *place* ask hosts again that match *host*."""
    return give_and_print(place, Verb.UNBLOCK, (host,))


COMMAND = define_command(
    "block",
    block,
    """Send no more requests to a host.

    HOST is a name, *.example.org for all names below one, or an origin such as https://example.org:8443. A running
    crawl obeys within seconds: no request goes to these hosts, not even for robots.txt. Requests in flight finish.
    Links to the hosts are still found, and their URLs wait until archiver unblock, even in later runs.

    HOST is added to block in DIR/crawl.toml. Prints the number of hosts and of waiting URLs.
    """,
    [crawl_argument(), click.Argument(["host"], metavar="HOST", shell_complete=complete_hosts)],
    ("archiver block collections/example.org ads.example.net", "one host"),
    ("archiver block collections/example.org '*.example.net'", "all hosts below a name"),
)

UNBLOCK = define_command(
    "unblock",
    unblock,
    """Allow requests to a blocked host again.

    HOST is the pattern that you gave to archiver block; crawl.toml lists these patterns under block. The URLs that
    waited because of it can then be fetched, unless another pattern blocks their host too.
    """,
    [crawl_argument(), click.Argument(["host"], metavar="HOST", shell_complete=complete_hosts)],
    ("archiver unblock collections/example.org ads.example.net", "allow requests to it again"),
)
