"""`archiver explain`: all that a crawl knows of one URL, also while it runs: gathered here, told in `wording`."""

import json
import re
import sqlite3
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from archiver import url
from archiver.archive.layout import Layout
from archiver.cli import directory as place
from archiver.cli import wording
from archiver.cli.judging import Judge, Learned
from archiver.cli.places import context
from archiver.cli.terminal import result, say
from archiver.cli.wording import Explanation
from archiver.config import queries
from archiver.config.seeds import seed
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.frontier import account, answers
from archiver.model import ExitCode, State
from archiver.traps import MOST_PATTERNS

_HTTP = re.compile(r"\s*https?://[^/\\?#\s]", re.IGNORECASE)


def explain(directory: Path, text: str, *, as_json: bool) -> ExitCode:
    """Tell everything about the URL *text* in the crawl of *directory*."""
    place.check_is_directory(directory)
    spelled(text)  # what is no URL is refused before anything else is looked at
    layout = Layout(directory)
    if not place.holds_crawl(directory):
        raise ConfigError(account.without_crawl(directory))
    settings = with_values(Settings(), place.read_settings(layout.settings))
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: seeds: there is none; right would be seeds = ["https://example.org/"]')
    running = place.holder(directory) is not None
    with account.opened(directory) as db:
        address = meant(db, text, settings)
        tell_scheme(text, address)
        if other := "" if _known(db, address, settings) else with_other_scheme(db, address, settings):
            say(f"archiver: {address} is not in the crawl, but {other} is")
        found = explanation(db, address, settings, time.time(), running=running)
        found = replace(found, place=_place(db, layout, found))
    result(json.dumps(wording.as_json(found), indent=2) if as_json else "\n".join(wording.lines(found)))
    return ExitCode.DONE


def _place(db: sqlite3.Connection, layout: Layout, found: Explanation) -> str:
    """Where the link to it stands in the page that led to it."""
    respelled = queries.Respelling(found.settings.scope.query, found.settings.scope.drop_query)
    steps = found.way
    if found.row is None:
        return context(db, layout, steps[-1].url, lambda link: respelled(link.url) == found.url) if steps else ""
    if len(steps) < 2:
        return ""
    hop, names = steps[-1].hop, found.url
    return context(db, layout, steps[-2].url, lambda link: link.hop is hop and names in (link.url, respelled(link.url)))


def spelled(text: str) -> str:
    """The URL that *text* is, in its one spelling: without fragment, user and dot segments."""
    address = url.canonical(text.strip()) if _HTTP.match(text) else None
    return address or seed(text)


def meant(db: sqlite3.Connection, text: str, settings: Settings) -> str:
    """The URL of the crawl that *text* means, by any spelling; the one that it would ask for where it knows none.

    Without a scheme it is the one of http and https that the crawl knows.
    """
    first = spelled(text)
    found = _known(db, first, settings)
    if not found and not _HTTP.match(text):
        found = with_other_scheme(db, first, settings)
    return found or queries.Respelling(settings.scope.query, settings.scope.drop_query)(first)


def with_other_scheme(db: sqlite3.Connection, address: str, settings: Settings) -> str:
    """The URL of the crawl that is *address* but for http and https; "" where it knows none."""
    scheme, _, rest = address.partition(":")
    return _known(db, f"{'http' if scheme == 'https' else 'https'}:{rest}", settings)


def tell_scheme(text: str, address: str) -> None:
    """Say that *text*, which has no scheme, was taken as *address*."""
    if not _HTTP.match(text):
        say(f"archiver: {text} has no scheme; taken as {address}")


def _known(db: sqlite3.Connection, address: str, settings: Settings) -> str:
    """*address* as the crawl has it; "" where it has not."""
    respelled = queries.Respelling(settings.scope.query, settings.scope.drop_query)(address)
    for one in dict.fromkeys((address, respelled)):
        if one in settings.seeds or answers.known(db, one) is not None or answers.refused(db, one) is not None:
            return one
    return ""


def explanation(db: sqlite3.Connection, address: str, settings: Settings, now: float, *, running: bool) -> Explanation:
    """What the crawl behind *db* knows of *address*, which is spelled as there."""
    moved = answers.moved(db) if settings.scope.redirects == "seeds" else ()
    judge = Judge(settings, Learned(moved, answers.learned(db, MOST_PATTERNS)), now)
    host = answers.host(db, url.origin(address))
    delay = judge.delay(host) if host is not None and settings.politeness.robots == "obey" else 0.0
    common = partial(
        Explanation, address, now, running=running, settings=settings, host=host, pace=judge.pace(address), delay=delay
    )
    row = answers.known(db, address)
    if row is None:
        refused = answers.refused(db, address)
        above = answers.known(db, refused.via) if refused is not None and refused.via else None
        steps, cut = answers.way(db, above) if above is not None else ([], False)
        untold = tuple(answers.refused_without_trace(db, url.origin(address)))
        verdict = judge.of_unknown(address, host)
        return common(verdict, refused=refused, untold=untold, way=tuple(steps), way_cut=cut)
    steps, cut = answers.way(db, row)
    return common(
        judge.of_known(row, host),
        row=row,
        way=tuple(steps),
        way_cut=cut,
        captures=tuple(answers.captures(db, row)),
        ahead=answers.ahead(db, row) if row.state is State.WAITING else 0,
    )
