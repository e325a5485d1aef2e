"""`archiver events`: what was reported of a crawl and to whom, and what is still to be delivered."""

import json
from itertools import chain
from pathlib import Path

import click

from archiver.cli.config.named_files import check_receivers
from archiver.cli.directory import named_crawl
from archiver.cli.options import EACH_LINE, crawl_argument, define_command, json_option
from archiver.cli.terminal import result, results, say
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, check_holds_crawl
from archiver.collection.settings_file import read_settings
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.frontier.address import machine_of
from archiver.frontier.events import deliveries
from archiver.frontier.events.deliveries import WAITING, ListedDelivery
from archiver.humanize import count, iso, printable
from archiver.model import ExitCode

LONGEST = 2000  # characters of an event or a result
TEST = "a test of archiver events --test; nothing has happened"


def events(place: Path | str, *, as_json: bool, undelivered: bool, send: bool, test: bool) -> ExitCode:
    """List the events of the crawl at *place*, or deliver what is left of them, or a test event."""
    if send and test:
        raise ConfigError("--send cannot be used with --test")
    crawl = named_crawl(place)
    check_holds_crawl(crawl)
    if send or test:
        if as_json or undelivered:
            raise ConfigError("--json and --undelivered list events; they cannot be used with --send or --test")
        if crawl.layout is None:
            raise ConfigError("the receivers are in the settings of each machine; give the directory of this one")
        settings = _settings(crawl.layout)
        return _test(crawl.layout, settings) if test else _send(crawl.layout, settings)
    names = _names(crawl)
    with crawl.read() as db:
        found = (each for each in deliveries.listed(db) if not undelivered or each.state == WAITING)
        first = next(found, None)
        if first is None:
            say(_none(crawl, undelivered=undelivered))
        else:
            results((_json(each, names) if as_json else _line(each, names)) for each in chain((first,), found))
    return ExitCode.DONE


def _none(crawl: NamedCrawl, *, undelivered: bool) -> str:
    """Return why there is nothing to list."""
    if undelivered:
        return f"archiver: {crawl.name}: no event is still to be delivered"
    hint = "" if _names(crawl) else "; only those are kept that --on asks for (see archiver crawl --help)"
    return f"archiver: {crawl.name} has no events{hint}"


def _settings(layout: Layout) -> Settings:
    """Return the settings, if their receivers may be used: this user has named them."""
    settings = with_values(Settings(), read_settings(layout.settings))
    if not settings.events.on:
        raise ConfigError(f"{layout.settings}: on: there is no receiver; name one with archiver resume DIR --on …")
    check_receivers(layout, settings, Settings())
    return settings


def _send(layout: Layout, settings: Settings) -> ExitCode:
    import asyncio

    from archiver.crawl.events.delivering import send_left

    sent = asyncio.run(send_left(layout.directory, settings))
    given_up = f", {sent.given_up} given up" if sent.given_up else ""
    result(f"{count(sent.delivered, 'event')} delivered{given_up}, {sent.left} still waiting")
    return ExitCode.FAULTS if sent.left or sent.given_up else ExitCode.DONE


def _test(layout: Layout, settings: Settings) -> ExitCode:
    import asyncio

    from archiver.crawl.events.delivering import send_test

    code = ExitCode.DONE
    for name, tried in asyncio.run(send_test(layout.directory, settings, TEST)):
        state = "delivered" if tried.delivered else "not delivered"
        result(f"{printable(name)}: {state}, {printable(tried.text, LONGEST)}")
        code = code if tried.delivered else ExitCode.FAULTS
    return code


def _names(crawl: NamedCrawl) -> dict[str, str]:
    """Return the names of the receivers in the settings, by their names in the database."""
    if crawl.layout is None or not crawl.layout.settings.exists():
        return {}
    machine = machine_of(crawl.layout.database) if crawl.address else ""
    settings = with_values(Settings(), read_settings(crawl.layout.settings))
    return {each.key(machine): each.name for each in settings.events.on}


def _line(one: ListedDelivery, names: dict[str, str]) -> str:
    event = one.event
    data = printable(json.dumps(event.get("data"), ensure_ascii=False), LONGEST)
    head = f"{printable(str(event.get('at')))}  {printable(str(event.get('event')))}  {data}"
    tries = f" after {count(one.tries, 'try', 'tries')}" if one.tries else ""
    result_text = f" ({printable(one.result, LONGEST)})" if one.result else ""
    return f"{head}  {names.get(one.receiver, 'a former receiver')}: {one.state}{tries}{result_text}"


def _json(one: ListedDelivery, names: dict[str, str]) -> str:
    delivery = {"receiver": names.get(one.receiver, ""), "state": one.state, "tries": one.tries, "result": one.result}
    tried = None if one.tried is None else iso(one.tried)
    return json.dumps({**one.event, "delivery": {**delivery, "tried": tried}})


COMMAND = define_command(
    "events",
    events,
    """List the events of a crawl, and who received them.

    Prints the events that --on asks for (see archiver crawl), oldest first, and whether each receiver got them. A
    running crawl delivers them itself, and tries again after a failure. Without a running crawl, they wait.

    Exits with 7 if --send or --test could not deliver something.
    """,
    [
        crawl_argument(),
        json_option(EACH_LINE),
        click.Option(["--undelivered"], is_flag=True, help="Only events that are still to be delivered."),
        click.Option(["--send"], is_flag=True, help="Try to deliver now what is left of a crawl that does not run."),
        click.Option(["--test"], is_flag=True, help="Send a test event to every receiver, once."),
    ],
    ("archiver events collections/example.org --undelivered", "what has not arrived"),
    ("archiver events collections/example.org --test", "check commands and addresses before you need them"),
    ("archiver events collections/example.org --send", "deliver what is left after the crawl"),
)
