"""What the crawl knows about URLs that a replay would miss, and how they are queued.

A missing URL is judged as a requisite of the page that asks for it: by the same scope, limits and traps as in a crawl.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from archiver import url
from archiver.ask import Ask
from archiver.cli.directory import named_crawl, other_machines, resume_hint
from archiver.collection.layout import Layout
from archiver.collection.named_crawl import check_changeable, crawl_lock
from archiver.config.settings import Settings
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import url_lookup
from archiver.frontier.address import SharedFrontier, address_of
from archiver.frontier.links import Found
from archiver.frontier.port import Selection
from archiver.humanize import count, plural, printable
from archiver.model import Hop, Link, Refusal, State

if TYPE_CHECKING:
    from archiver.crawl.visit_rules import VisitRules
    from archiver.frontier.sqlite import SqliteFrontier
    from archiver.tools.look.look import MissingUrl

MAX_REASONS = 5
MAX_NAMES = 500  # characters of the names of machines
AGAIN = (State.FAILED, State.HELD)  # an excluded URL stays so: robots.txt or a rule forbids it


@dataclass(frozen=True, slots=True)
class UrlState:
    """The state of a URL in the crawl, in words."""

    text: str
    state: State | None = None  # None: it was refused


def check_all_is_here(directory: Path) -> None:
    """Refuse a directory with the captures of one machine of several: views would miss what the others have."""
    try:
        others = other_machines(Layout(directory))
    except (ConfigError, ArchiveError):  # received from others, or the server is away
        return
    if others:
        has = plural(len(others), "has", "have")
        address = quote(address_of(Layout(directory).database))
        raise ConfigError(
            f"{directory} holds only what this machine has captured; {printable(', '.join(others), MAX_NAMES)} {has} "
            f"other captures. To look at all: archiver index {address} -o whole; bring the WARC files into "
            f"whole/archive (archiver store fetch whole); archiver look whole --crawl {address}"
        )


def states(place: Path | str, missing: "Iterable[MissingUrl]") -> dict[str, UrlState]:
    """Return what the crawl at *place* knows about URLs; those that it does not know are left out."""
    if isinstance(place, Path) and (place.is_file() or not Layout(place).has_frontier()):
        return {}
    found: dict[str, UrlState] = {}
    with named_crawl(place).read() as db:
        for each in missing:
            address = each.row
            if address is None:
                continue
            row, refused = url_lookup.known(db, address), url_lookup.refused(db, address)
            if row is not None:
                failure = f" ({row.failure})" if row.failure else ""
                found[each.url] = UrlState(f"{row.state.value}{failure}", row.state)
            elif refused is not None:
                found[each.url] = UrlState(f"refused ({printable(refused.rule, 200)})")
    return found


class _Judged(NamedTuple):
    """A URL that the crawl does not know yet, with the row of the page that asks for it; *ask*: what is sent."""

    found: Found
    ask: Ask | None


@dataclass
class _Queued:
    """The result of queueing."""

    added: int = 0
    again: int = 0
    refused: dict[str, str] = field(default_factory=dict)  # the rule by URL
    unsent: int = 0  # requests that a crawl does not send


def queue(place: Path | str, missing: "Sequence[MissingUrl]", known: Mapping[str, UrlState]) -> str:
    """Queue *missing* in the crawl at *place*; return what was done, in words."""
    import asyncio

    crawl = named_crawl(place)
    settings = check_changeable(crawl)
    with crawl_lock(crawl) as running:
        done = asyncio.run(_queue(crawl.frontier, settings, missing, known))
    total = done.added + done.again
    text = f"{count(total, 'URL')} queued{resume_hint(total, crawl, running=running)}"
    if done.unsent:
        text += f"; {done.unsent} not: a crawl sends GET, and POST to its own hosts that is no GraphQL mutation"
    for address, rule in list(done.refused.items())[:MAX_REASONS]:
        text += f"\nnot queued: {printable(address, 500)}: {printable(rule, 200)}"
    if len(done.refused) > MAX_REASONS:
        text += f"\nand {len(done.refused) - MAX_REASONS} more; see: archiver explain {quote(str(place))} URL"
    return text


async def _queue(
    place: Path | SharedFrontier, settings: Settings, missing: "Sequence[MissingUrl]", known: Mapping[str, UrlState]
) -> _Queued:
    from archiver.crawl.rules import learned_rules
    from archiver.frontier.sqlite import SqliteFrontier

    again = {each.row or "" for each in missing if _may_be_tried(known.get(each.url))}
    async with await SqliteFrontier.open(place) as frontier:
        new, done = await _judged(frontier, await learned_rules(settings, frontier), missing)
        done.added = await frontier.add_links([each.found for each in new if each.ask is None])
        for each in new:
            if each.ask is not None:
                done.added += (await frontier.add_viewed([each.found], each.ask)).total()
        if again:
            done.again = await frontier.queue_again(Selection(tuple(again)))
        return done


def _may_be_tried(known: UrlState | None) -> bool:
    return known is not None and known.state in AGAIN


async def _judged(
    frontier: "SqliteFrontier", rules: "VisitRules", missing: "Sequence[MissingUrl]"
) -> tuple[list[_Judged], _Queued]:
    """Return what the crawl does not know yet, and what it refuses."""
    from archiver.browser.answers import NAVIGATION
    from archiver.crawl.visit_rules import judged

    done, now = _Queued(), time.time()
    new: list[_Judged] = []
    for each in missing:
        address, page = each.row, url.canonical(each.page)
        if each.method != "GET" and (each.ask is None or not rules.scope.contains(each.ask.target)):
            done.unsent += 1
        elif address is None or page is None:
            done.refused[each.url] = "not a URL that can be fetched"
        elif (claim := await frontier.claim_of(page)) is None:
            done.refused[each.url] = f"its page is not in the crawl: {page}"
        else:
            hop = Hop.LINK if each.kind == NAVIGATION else Hop.REQUISITE
            verdict = judged(rules, Link(address, hop, f"browser:{each.kind}"), claim, now)
            if isinstance(verdict, Refusal):
                done.refused[each.url] = verdict.rule
            else:
                new.append(_Judged((verdict._replace(held=""), claim.id), each.ask))
    return new, done
