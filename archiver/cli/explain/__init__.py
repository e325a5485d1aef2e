"""`archiver explain`: everything that a crawl knows about one URL, even while it runs.

This module collects the facts, `rules` finds the rule that took or refused the URL, `text` formats the answer. The
element and attribute of a link are not in the database; they are read from the metadata record of the linking page.
They are left out if that record cannot be read: the WARC file was moved, is damaged, comes from another crawl, or is
on another machine.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import click

from archiver import url
from archiver.cli.directory import named_crawl
from archiver.cli.explain.text import Explanation, explanation_json, explanation_lines
from archiver.cli.options import complete_urls, crawl_argument, define_command, json_option
from archiver.cli.terminal import result, say
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import NamedCrawl, check_holds_crawl
from archiver.collection.named_urls import (
    canonical_url,
    find_in_crawl,
    has_scheme,
    known_spelling,
    respelling,
    with_other_scheme,
)
from archiver.collection.records import open_warc
from archiver.config.seeds import NO_ABOUT, SeedAbout, descriptions
from archiver.config.settings import Settings
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import url_lookup
from archiver.frontier.connection import Reader
from archiver.frontier.url_lookup import DiscoveryStep
from archiver.model import ExitCode, Link, Links, State
from archiver.storage import is_bare
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import read_records
from archiver.warc.records import VisitMetadata

MAX_METADATA = 64 << 20  # bytes of a metadata record: 50,000 links of more than a thousand characters
MAX_RECORDS = 8  # of a visit with its metadata record, and some of other visits when two writers wrote in turn


def explain(place: Path | str, url: str, *, as_json: bool) -> ExitCode:
    """Print everything that the crawl at *place* knows about *url*."""
    found = explained(named_crawl(place), url)
    say_if_without_scheme(url, found.url)
    if found.other:
        say(f"archiver: {found.url} is not in the crawl, but {found.other} is")
    result(json.dumps(explanation_json(found), indent=2) if as_json else "\n".join(explanation_lines(found)))
    return ExitCode.DONE


def explained(crawl: NamedCrawl, url: str) -> Explanation:
    """Return everything that *crawl* knows about *url*."""
    canonical_url(url)  # refuse what is not a URL before anything else
    check_holds_crawl(crawl)
    with crawl.read() as db:
        settings = crawl.settings(db)
        if not settings.seeds and not settings.warc.recording:
            raise ConfigError(f'{crawl.settings_name}: no seeds; add, for example, seeds = ["https://example.org/"]')
        running = crawl.holder(db) is not None
        address = find_in_crawl(db, url, settings)
        other = "" if known_spelling(db, address, settings) else with_other_scheme(db, address, settings)
        found = explanation(db, address, settings, time.time(), running=running)
        return replace(found, link_context=_link_context(db, crawl, found), other=other)


def explanation(db: Reader, address: str, settings: Settings, now: float, *, running: bool) -> Explanation:
    """Return what the crawl behind *db* knows about *address*, which has the spelling of the crawl."""
    from archiver.cli.explain.rules import LearnedState, RuleJudge
    from archiver.policy.patterns.tallies import MOST_PATTERNS

    moved = url_lookup.moved(db) if settings.scope.redirects == "seeds" else ()
    judge = RuleJudge(settings, LearnedState(moved, url_lookup.learned(db, MOST_PATTERNS)), now)
    host = url_lookup.host(db, url.origin(address))
    delay = judge.delay(host) if host is not None and judge.of_host(address).politeness.robots != "ignore" else 0.0
    common = partial(
        Explanation,
        address,
        now,
        running=running,
        settings=judge.of_host(address),
        host=host,
        host_settings=judge.host_settings(address),
        delay=delay,
    )
    row = url_lookup.known(db, address)
    if row is None:
        refused = url_lookup.refused(db, address)
        above = url_lookup.known(db, refused.via) if refused is not None and refused.via else None
        steps, cut = url_lookup.way(db, above) if above is not None else ([], False)
        unsampled = tuple(url_lookup.refused_without_trace(db, url.origin(address)))
        verdict = judge.of_unknown(address, host)
        about = _about_seed(settings, steps)
        return common(verdict, refused=refused, unsampled=unsampled, path=tuple(steps), path_cut=cut, about=about)
    steps, cut = url_lookup.way(db, row)
    return common(
        judge.of_known(row, host),
        row=row,
        path=tuple(steps),
        path_cut=cut,
        about=_about_seed(settings, steps),
        captures=tuple(url_lookup.captures(db, row)),
        ahead=url_lookup.ahead(db, row) if row.state is State.WAITING else 0,
    )


def _about_seed(settings: Settings, path: Sequence[DiscoveryStep]) -> SeedAbout:
    """Return what the user says of the seed at the head of *path*."""
    seed = path[0].url if path and path[0].hop is None else ""
    return descriptions(settings.scope.seed).get(seed, NO_ABOUT)


def say_if_without_scheme(text: str, address: str) -> None:
    """Print that *text* was taken as *address* if it has no scheme."""
    if not has_scheme(text):
        say(f"archiver: {text} has no scheme; taken as {address}")


def _link_context(db: Reader, crawl: NamedCrawl, found: Explanation) -> str:
    """Return element and attribute of the link to the URL in the page that led to it."""
    if crawl.layout is None:
        return ""
    layout, respelled = crawl.layout, respelling(found.settings)
    steps = found.path
    if found.row is None:
        return _context(db, layout, steps[-1].url, lambda link: respelled(link.url) == found.url) if steps else ""
    if len(steps) < 2:
        return ""
    hop, names = steps[-1].hop, found.url
    return _context(
        db, layout, steps[-2].url, lambda link: link.hop is hop and names in (link.url, respelled(link.url))
    )


def _context(db: Reader, layout: Layout, page: str, matches: Callable[[Link], bool]) -> str:
    """Return element and attribute of the first link on *page* that *matches*; "" if there is none."""
    row = url_lookup.known(db, page)
    for capture in url_lookup.captures(db, row) if row is not None else ():
        for link in _links(layout.archive, capture.file, capture.offset).links:
            if matches(link):
                return link.context
    return ""


def _links(folder: Path, name: str, offset: int, *, follow: bool = True) -> Links:
    """Return the links of the visit whose response is at *offset* of the WARC *name*.

    For a 304 answer these are the links of the stored page that has not changed, if *follow* is true.
    """
    with suppress(ArchiveError, OSError, DamagedRecord, ValueError), open_warc(folder, name)[1] as file:
        target = ""
        for record in islice(read_records(file, offset), MAX_RECORDS):
            metadata = VisitMetadata.of_revisit(record) if not target else None
            target = target or record.first("WARC-Record-ID") or ""
            if metadata is None and record.type == "metadata" and (record.size or 0) <= MAX_METADATA:
                block = b"".join(record.pieces())
                if target in (record.first("WARC-Refers-To"), record.first("WARC-Concurrent-To")):
                    metadata = VisitMetadata.parse(block)
            if metadata is not None:
                if metadata.links_of is None:
                    return metadata.links
                stored, place = metadata.links_of
                return _links(folder, stored, place, follow=False) if follow and is_bare(stored) else Links()
    return Links()


COMMAND = define_command(
    "explain",
    explain,
    """Explain what happened to a URL and why.

    Shows its state, the rule of crawl.toml that took or refused it, the path from the seed, its tries and answers,
    where its captures are, when it is due, and what its host waits for. A URL that the crawl does not know is judged as
    if the page of a seed linked to it. Changes nothing; works while the crawl runs.
    """,
    [
        crawl_argument(),
        click.Argument(["url"], metavar="URL", shell_complete=complete_urls),
        json_option(),
    ],
    ("archiver explain collections/example.org https://example.org/a", "why is it in the archive, or why not?"),
    ("archiver explain collections/example.org https://example.org/a --json | jq .rule", "print the rule only"),
)
