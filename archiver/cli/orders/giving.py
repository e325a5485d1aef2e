"""Gives an order to a crawl for a command, and prints what comes of it."""

from collections.abc import Sequence
from pathlib import Path

from archiver.cli.directory import named_crawl, resume_hint
from archiver.cli.terminal import result
from archiver.collection.orders.give import give
from archiver.frontier.orders.table import Verb
from archiver.humanize import printable
from archiver.model import ExitCode

LONGEST = 10_000  # characters of an answer


def give_and_print(place: Path | str, verb: Verb, arguments: Sequence[str] = (), *, undo: bool = False) -> ExitCode:
    """Give an order to the crawl at *place* and print its answer."""
    crawl = named_crawl(place)
    given = give(crawl, verb, arguments, undo=undo)
    if given.order.answered is None:
        result("the running crawl has not answered yet; archiver orders shows its answer")
        return ExitCode.DONE
    waits = not given.running and verb not in {Verb.PAUSE, Verb.BLOCK, Verb.NOTE, Verb.STOP}
    hint = resume_hint(1, crawl, running=False) if waits else ""
    result(f"{printable(given.order.answer, LONGEST)}{hint}")
    return ExitCode.DONE
