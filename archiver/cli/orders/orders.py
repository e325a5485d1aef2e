"""`archiver orders` and `archiver note`: what people have told a crawl to do, what came of it, and their notes."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import join

import click

from archiver.cli.directory import named_crawl
from archiver.cli.options import EACH_LINE, crawl_argument, define_command, json_option
from archiver.cli.orders.giving import give_and_print
from archiver.cli.terminal import results, say
from archiver.frontier.orders import table
from archiver.frontier.orders.table import Order, Verb
from archiver.humanize import iso, printable
from archiver.model import ExitCode

LONGEST = 10_000  # characters of an order or an answer


def orders(place: Path | str, *, as_json: bool) -> ExitCode:
    """Print the orders of the crawl at *place*, oldest first."""
    with named_crawl(place).read() as db:
        found = table.orders(db)
    if not found and not as_json:
        say(f"archiver: {place} was given no orders")
    results(map(_json, found) if as_json else _lines(found))
    return ExitCode.DONE


def note(place: Path | str, text: str) -> ExitCode:
    """Add the note *text* to the orders of the crawl at *place*."""
    return give_and_print(place, Verb.NOTE, (text,))


def _lines(found: list[Order]) -> Iterator[str]:
    for each in found:
        words = printable(join((each.verb, *each.arguments)), LONGEST)
        answer = printable(each.answer, LONGEST) if each.answered is not None else "not done yet"
        yield f"{iso(each.given)}  {printable(each.who)}  {words}: {answer}"


def _json(one: Order) -> str:
    answered = None if one.answered is None else iso(one.answered)
    return json.dumps({**asdict(one), "given": iso(one.given), "answered": answered})


COMMAND = define_command(
    "orders",
    orders,
    """List the orders given to a crawl.

    Prints when and by whom each order was given, and its result. A metadata WARC holds the orders too.
    """,
    [crawl_argument(), json_option(EACH_LINE)],
    ("archiver orders collections/example.org", "who changed what, and when"),
)

NOTE = define_command(
    "note",
    note,
    """Write a note for colleagues into the list of orders.

    archiver orders prints it with your name and the time, and the archive keeps it. It does not affect the crawl.
    """,
    [crawl_argument(), click.Argument(["text"], metavar="TEXT")],
    ("archiver note collections/example.org 'slow on purpose: the site asked us'", "say why, for others"),
)
