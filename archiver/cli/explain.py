"""`archiver explain`: all that a crawl knows of one URL, also while it runs: gathered here, told in `wording`.

Where a link stands in the page that names it: element and attribute, from the page's metadata record.

The database does not keep it, the archive does. Nothing is said where the record cannot be had: the WARC file was
moved away, is damaged, or another crawl wrote it.
"""

import json
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from archiver import url
from archiver.cli import directory as place
from archiver.cli import explain_text
from archiver.cli.explain_rules import LearnedState, RuleJudge
from archiver.cli.explain_text import Explanation
from archiver.cli.terminal import result, say
from archiver.collection import lock
from archiver.collection.layout import Layout
from archiver.collection.records import open_warc
from archiver.config import query_params
from archiver.config.seeds import seed
from archiver.config.settings import Settings, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals, url_lookup
from archiver.model import ExitCode, Link, Links, State
from archiver.policy.traps import MOST_PATTERNS
from archiver.storage import is_bare
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import read_records
from archiver.warc.records import VisitMetadata

LONGEST_NOTES = 64 << 20  # bytes of a metadata record: 50,000 links of more than a thousand characters
RECORDS = 8  # of a visit, the metadata record included, and some of the next ones where two lanes wrote


def context(db: sqlite3.Connection, layout: Layout, page: str, named: Callable[[Link], bool]) -> str:
    """Element and attribute of the first link on *page* that is *named*; "" where that cannot be told."""
    row = url_lookup.known(db, page)
    for capture in url_lookup.captures(db, row) if row is not None else ():
        for link in _links(layout.archive, capture.file, capture.offset).links:
            if named(link):
                return link.context
    return ""


def _links(folder: Path, name: str, offset: int, *, follow: bool = True) -> Links:
    """What the visit named whose response lies at *offset* of the WARC *name*.

    Of an answer that says that nothing has changed, what the stored one named, which is there with *follow*.
    """
    with suppress(ArchiveError, OSError, DamagedRecord, ValueError), open_warc(folder, name)[1] as file:
        target = ""
        for record in islice(read_records(file, offset), RECORDS):
            notes = VisitMetadata.of_revisit(record) if not target else None
            target = target or record.first("WARC-Record-ID") or ""
            if notes is None and record.type == "metadata" and (record.size or 0) <= LONGEST_NOTES:
                block = b"".join(record.pieces())
                if target in (record.first("WARC-Refers-To"), record.first("WARC-Concurrent-To")):
                    notes = VisitMetadata.read(block)
            if notes is not None:
                if notes.links_of is None:
                    return notes.links
                stored, place = notes.links_of
                return _links(folder, stored, place, follow=False) if follow and is_bare(stored) else Links()
    return Links()


_HTTP = re.compile(r"\s*https?://[^/\\?#\s]", re.IGNORECASE)


def explain(directory: Path, text: str, *, as_json: bool) -> ExitCode:
    """Tell everything about the URL *text* in the crawl of *directory*."""
    place.check_is_directory(directory)
    spelled(text)  # what is no URL is refused before anything else is looked at
    layout = Layout(directory)
    if not place.holds_crawl(directory):
        raise ConfigError(totals.without_crawl(directory))
    settings = with_values(Settings(), place.read_settings(layout.settings))
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: seeds: there is none; right would be seeds = ["https://example.org/"]')
    running = lock.holder(directory) is not None
    with totals.open_totals(directory) as db:
        address = meant(db, text, settings)
        tell_scheme(text, address)
        if other := "" if _known(db, address, settings) else with_other_scheme(db, address, settings):
            say(f"archiver: {address} is not in the crawl, but {other} is")
        found = explanation(db, address, settings, time.time(), running=running)
        found = replace(found, place=_place(db, layout, found))
    result(json.dumps(explain_text.as_json(found), indent=2) if as_json else "\n".join(explain_text.lines(found)))
    return ExitCode.DONE


def _place(db: sqlite3.Connection, layout: Layout, found: Explanation) -> str:
    """Where the link to it stands in the page that led to it."""
    respelled = query_params.Respelling(found.settings.scope.query, found.settings.scope.drop_query)
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
    return found or query_params.Respelling(settings.scope.query, settings.scope.drop_query)(first)


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
    respelled = query_params.Respelling(settings.scope.query, settings.scope.drop_query)(address)
    for one in dict.fromkeys((address, respelled)):
        if one in settings.seeds or url_lookup.known(db, one) is not None or url_lookup.refused(db, one) is not None:
            return one
    return ""


def explanation(db: sqlite3.Connection, address: str, settings: Settings, now: float, *, running: bool) -> Explanation:
    """What the crawl behind *db* knows of *address*, which is spelled as there."""
    moved = url_lookup.moved(db) if settings.scope.redirects == "seeds" else ()
    judge = RuleJudge(settings, LearnedState(moved, url_lookup.learned(db, MOST_PATTERNS)), now)
    host = url_lookup.host(db, url.origin(address))
    delay = judge.delay(host) if host is not None and settings.politeness.robots == "obey" else 0.0
    common = partial(
        Explanation, address, now, running=running, settings=settings, host=host, pace=judge.pace(address), delay=delay
    )
    row = url_lookup.known(db, address)
    if row is None:
        refused = url_lookup.refused(db, address)
        above = url_lookup.known(db, refused.via) if refused is not None and refused.via else None
        steps, cut = url_lookup.way(db, above) if above is not None else ([], False)
        untold = tuple(url_lookup.refused_without_trace(db, url.origin(address)))
        verdict = judge.of_unknown(address, host)
        return common(verdict, refused=refused, untold=untold, way=tuple(steps), way_cut=cut)
    steps, cut = url_lookup.way(db, row)
    return common(
        judge.of_known(row, host),
        row=row,
        way=tuple(steps),
        way_cut=cut,
        captures=tuple(url_lookup.captures(db, row)),
        ahead=url_lookup.ahead(db, row) if row.state is State.WAITING else 0,
    )
