"""`archiver explain`: all that a crawl knows of one URL, also while it runs: gathered here, told in `wording`."""

import json
import re
import sqlite3
import time
from pathlib import Path

from archiver import url
from archiver.archive.layout import Layout
from archiver.cli import directory as place
from archiver.cli import wording
from archiver.cli.judging import Judge, Learned
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
    address = meant(text)
    layout = Layout(directory)
    if not place.holds_crawl(directory):
        raise ConfigError(f"{directory} holds no crawl: there is no {layout.database.name} in it")
    settings = with_values(Settings(), place.read_settings(layout.settings))
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: seeds: there is none; right would be seeds = ["https://example.org/"]')
    running = place.holder(directory) is not None
    with account.opened(directory) as db:
        found = explanation(db, address, settings, time.time(), running=running)
    result(json.dumps(wording.as_json(found), indent=2) if as_json else "\n".join(wording.lines(found)))
    return ExitCode.DONE


def meant(text: str) -> str:
    """The URL that *text* means, in the spelling of the crawl."""
    address = url.canonical(text.strip()) if _HTTP.match(text) else None
    address = address or seed(text)
    if not _HTTP.match(text):
        say(f"archiver: {text} has no scheme; taken as {address}")
    return address


def explanation(db: sqlite3.Connection, address: str, settings: Settings, now: float, *, running: bool) -> Explanation:
    """What the crawl behind *db* knows of *address*."""
    respelled = queries.Respelling(settings.scope.query, settings.scope.drop_query)(address)
    if answers.known(db, address) is None and address not in settings.seeds:
        address = respelled  # as the crawl would ask for it
    moved = answers.moved(db) if settings.scope.redirects == "seeds" else ()
    judge = Judge(settings, Learned(moved, answers.learned(db, MOST_PATTERNS)), now)
    host = answers.host(db, url.origin(address))
    delay = judge.delay(host) if host is not None and settings.politeness.robots == "obey" else 0.0
    row = answers.known(db, address)
    if row is None:
        return Explanation(
            address,
            now,
            judge.of_unknown(address, host),
            running,
            settings,
            refused=answers.refused(db, address),
            untold=tuple(answers.refused_without_trace(db, url.origin(address))),
            host=host,
            pace=judge.pace(address),
            delay=delay,
        )
    steps, cut = answers.way(db, row)
    return Explanation(
        address,
        now,
        judge.of_known(row, host),
        running,
        settings,
        row=row,
        way=tuple(steps),
        way_cut=cut,
        captures=tuple(answers.captures(db, row)),
        host=host,
        pace=judge.pace(address),
        delay=delay,
        ahead=answers.ahead(db, row) if row.state is State.WAITING else 0,
    )
