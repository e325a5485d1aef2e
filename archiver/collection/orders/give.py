"""Gives an order to a crawl: for the commands of a person, and for the control room, which can do no more than these.

An order is a row of the database. A running crawl looks every second, acts and answers in the row. If no process
crawls, the order is done at once, and the next run begins with it. See decisions 0065 and 0066.
"""

import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from shlex import join
from typing import TYPE_CHECKING

from archiver.collection.named_crawl import NamedCrawl, check_changeable, crawl_lock
from archiver.collection.orders.add import add_seeds, described_seeds
from archiver.collection.orders.given import Change, GivenOrder, change_common, user
from archiver.collection.orders.retry import RetryRequest, retry
from archiver.collection.settings_file import put_settings, read_settings
from archiver.config import toml
from archiver.config.live_settings import (
    cores,
    lists_left_out,
    with_block,
    with_exclude,
    with_include,
    with_live_values,
)
from archiver.config.option_types import PATTERN, Pattern
from archiver.config.politeness_settings import HOSTS
from archiver.config.presets import SETS, WITHOUT
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.errors import ConfigError
from archiver.frontier import url_lookup
from archiver.frontier.orders import excluding, including, table
from archiver.frontier.orders.including import Matches
from archiver.frontier.orders.table import MOST_KEPT, NOW, UNDO, NewOrder, Order, Verb
from archiver.humanize import count, printable
from archiver.policy.domains import scope_for
from archiver.policy.quotas import Quotas
from archiver.policy.scope import Moved, Scope
from archiver.policy.seed_scopes import Scopes

if TYPE_CHECKING:
    from archiver.frontier.connections import Worker
    from archiver.frontier.sqlite import SqliteFrontier

PATIENCE = 15.0  # seconds until we no longer wait for the answer of a running crawl
LONGEST = 2000  # characters of an argument in a message
EXAMPLES = 10  # URLs of a preview
PREVIEW = 5.0  # seconds for each part of a preview

Work = Callable[["SqliteFrontier"], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an order does."""

    later: str  # the answer if no process crawls
    change: Change | None = None  # of the stored settings
    work: Work | None = None  # done when it is in force everywhere; returns the answer
    at_once: bool = False  # no crawler need take it up


def give(
    crawl: NamedCrawl, verb: str, arguments: Sequence[str] = (), *, undo: bool = False, who: str = ""
) -> GivenOrder:
    """Give the order *verb* with *arguments* to *crawl*, do its work, and return what came of it.

    *undo* takes an earlier order back. *who*: the person for the list of orders, by default the user of this process.
    Waits up to `PATIENCE` for a running crawl, so an event loop calls this in a thread. Raises `ConfigError` with one
    line if the order cannot be given; then nothing has changed.
    """
    import asyncio  # noqa: PLC0415 - slow to import, and the help of a command needs none of it

    settings = check_changeable(crawl)
    kind, wanted = checked(settings, verb, arguments, undo=undo)
    if kind is Verb.RETRY:
        return retry(crawl, RetryRequest.parse(arguments), who=who)
    if kind is Verb.ADD:
        seeds = described_seeds(arguments, "archiver add")
        about = {own.url: str(own) for own in seeds.own}
        return add_seeds(crawl, seeds, [about.get(address, address) for address in seeds.urls], who=who)
    words = (*arguments, UNDO) if undo else tuple(arguments)
    with crawl_lock(crawl) as running:
        order = asyncio.run(_given(crawl, NewOrder(kind, words, who or user()), wanted, running=running))
    return GivenOrder(order, running, command_of(crawl, verb, arguments, undo=undo))


def command_of(crawl: NamedCrawl, verb: str, arguments: Sequence[str] = (), *, undo: bool = False) -> str:
    """Return the command that gives an order, as a person would type it."""
    return join(("archiver", verb, crawl.name, *arguments, *((UNDO,) if undo else ())))


def checked(settings: Settings, verb: str, arguments: Sequence[str], *, undo: bool) -> tuple[Verb, _Wanted]:
    """Return what the order does to a crawl with *settings*. Raises `ConfigError` if it is wrong."""
    if sum(map(len, arguments)) > MOST_KEPT:
        raise ConfigError(f"{printable(verb, 100)}: more than {MOST_KEPT} characters; give several orders")
    try:
        kind = Verb(verb)
    except ValueError:
        raise ConfigError(f"{printable(verb, 100)} is not an order; write one of {', '.join(Verb)}") from None
    if undo and kind not in {Verb.EXCLUDE, Verb.INCLUDE}:
        raise ConfigError(f"{kind} cannot be undone")
    return kind, _wanted(settings, kind, arguments, undo=undo)


ALONE = {Verb.PAUSE: "paused: the next run starts no request until archiver go", Verb.GO: "no longer paused"}


def _wanted(settings: Settings, kind: Verb, arguments: Sequence[str], *, undo: bool) -> _Wanted:
    if kind in ALONE:
        if arguments:
            raise ConfigError(f"{kind} takes no argument, not {printable(arguments[0], LONGEST)}")
        return _Wanted(ALONE[kind])
    if kind is Verb.SET:
        return _set(settings, arguments)
    if kind in (Verb.RETRY, Verb.ADD, Verb.STOP):
        _check_words(kind, arguments)
        return _Wanted("the crawl does not run, so nothing is stopped")
    given = _one(kind, arguments)
    match kind:
        case Verb.EXCLUDE:
            return _exclude(settings, given, undo=undo)
        case Verb.INCLUDE:
            return _include(settings, given, undo=undo)
        case Verb.BLOCK | Verb.UNBLOCK:
            return _block(settings, given, undo=kind is Verb.UNBLOCK)
        case Verb.FIRST:
            return _Wanted("in force", work=partial(_put_first, matches=matching(given)))
        case _:
            if not given.strip():
                raise ConfigError("the note is empty; for example: archiver note DIR 'slow on purpose'")
            return _Wanted("noted", at_once=True)


def _check_words(kind: Verb, arguments: Sequence[str]) -> None:
    """Refuse what is wrong whatever the crawl is."""
    match kind:
        case Verb.RETRY:
            RetryRequest.parse(arguments)
        case Verb.ADD if not arguments:
            raise ConfigError("no URL: give one or more; for example: archiver add DIR https://example.org/")
        case Verb.STOP if tuple(arguments) not in ((), (NOW,)):
            raise ConfigError(f"stop takes no argument but {NOW}, not {printable(arguments[0], LONGEST)}")


def _one(kind: Verb, arguments: Sequence[str]) -> str:
    if len(arguments) != 1:
        raise ConfigError(f"{kind} takes one argument, not {len(arguments)}")
    return arguments[0]


def _set(settings: Settings, given: Sequence[str]) -> _Wanted:
    if not given:
        raise ConfigError("no setting: give one or more as KEY=VALUE; for example: archiver set DIR rate=2")
    after = with_live_values(settings, given)
    crawlers = min(settings.limits.processes or cores(), settings.limits.concurrency)
    if after.limits.concurrency < crawlers and not settings.fetch.login:
        raise ConfigError(f"concurrency: the crawl has {crawlers} processes, which need at least {crawlers}")
    return _Wanted("in force from the next run on", partial(with_live_values, given=given))


def _exclude(settings: Settings, regex: str, *, undo: bool) -> _Wanted:
    matches = _leaving_out(regex)
    if undo and regex not in (*settings.scope.exclude, *(WITHOUT + name for name in lists_left_out(settings))):
        raise ConfigError(f"{printable(regex, LONGEST)} is not a rule of this crawl; its crawl.toml has them all")
    work = partial(_taken_back, regex=regex) if undo else partial(_excluded, regex=regex, matches=matches)
    return _Wanted("in force", partial(with_exclude, regex=regex, undo=undo), work)


def _include(settings: Settings, regex: str, *, undo: bool) -> _Wanted:
    matches = matching(regex)
    if undo and regex not in settings.scope.include:
        raise ConfigError(f"{printable(regex, LONGEST)} is not a rule of this crawl; its crawl.toml has them all")
    work = partial(_taken_out if undo else _included, settings=settings, regex=regex, matches=matches)
    return _Wanted("in force", partial(with_include, regex=regex, undo=undo), work)


def _scope_with(settings: Settings, regex: str, moved: Sequence[Moved], *, undo: bool) -> Scope | Scopes:
    """Return the scope as it is with the pattern *regex*; with *undo*, without it. *moved*: where seeds redirect to."""
    scope = scope_for(with_include(settings, regex, undo=undo))
    if settings.scope.redirects == "seeds":
        scope.add_moved_seeds(moved)
    return scope


async def _included(frontier: "SqliteFrontier", settings: Settings, regex: str, matches: Matches) -> str:
    scope = _scope_with(settings, regex, await frontier.seed_redirects(), undo=False)
    number = await frontier.include(regex, matches, scope)
    return f"{count(number, 'URL')} wait that rules had refused or excluded{_unknown(await frontier.links_not_kept())}"


async def _taken_out(frontier: "SqliteFrontier", settings: Settings, regex: str, matches: Matches) -> str:
    scope = _scope_with(settings, regex, await frontier.seed_redirects(), undo=True)
    return f"{count(await frontier.take_out(regex, matches, scope), 'waiting URL')} excluded again"


def _unknown(links: int) -> str:
    """Say what cannot come back, because *links* were only counted when they were refused."""
    if not links:
        return ""
    return (
        f"; {links:,} refused links are not kept, and some may match; they come back when their pages are fetched "
        "again: archiver retry DIR --status 2xx"
    )


def _block(settings: Settings, text: str, *, undo: bool) -> _Wanted:
    try:
        pattern = HOSTS.parse(text)
    except ConfigError as error:
        raise ConfigError(f"HOST: {error}") from None
    known = settings.politeness.block
    if undo and pattern not in known:
        hint = f"blocked are {', '.join(known)}" if known else "no host is blocked"
        raise ConfigError(f"{pattern} is not blocked; {printable(hint, LONGEST)}")
    change = partial(with_block, text=pattern, undo=undo)
    quotas = Quotas(SettingsByHost(with_block(Settings(), pattern, undo=False)))
    return _Wanted("in force", change, partial(_counted_block, quotas=quotas, undo=undo))


async def _counted_block(frontier: "SqliteFrontier", quotas: Quotas, *, undo: bool) -> str:
    found = await frontier.blocked_hosts(quotas)
    urls = sum(each.urls for each in found)
    waiting = f"{count(sum(each.hosts for each in found), 'host')} with {count(urls, 'waiting URL')}"
    return f"no longer blocked: {waiting}" if undo else f"blocked: {waiting}"


def _leaving_out(given: str) -> Callable[[str], bool]:
    """Return whether the scope refuses a URL by *given*: a regular expression, or `--without=` and an exclude list."""
    if not given.startswith(WITHOUT):
        return matching(given)
    known = SETS.get(given.removeprefix(WITHOUT))
    if known is None:
        raise ConfigError(f"{printable(given, LONGEST)}: there is no such list; write one of {', '.join(SETS)}")
    return known.hits


def matching(regex: str) -> Callable[[str], bool]:
    """Return whether the scope refuses a URL by *regex*; one that takes too long is refused too."""
    try:
        pattern = Pattern("exclude", PATTERN.parse(regex))
    except ConfigError as error:
        raise ConfigError(f"REGEX: {error}") from None
    return lambda address: bool(pattern.found_in(address))


async def _excluded(frontier: "SqliteFrontier", regex: str, matches: Callable[[str], bool]) -> str:
    return f"{count(await frontier.exclude(regex, matches), 'waiting URL')} excluded"


async def _taken_back(frontier: "SqliteFrontier", regex: str) -> str:
    return f"{count(await frontier.take_back(regex), 'URL')} wait again"


async def _put_first(frontier: "SqliteFrontier", matches: Callable[[str], bool]) -> str:
    return f"{count(await frontier.put_first(matches), 'waiting URL')} put first"


@dataclass(frozen=True, slots=True)
class Preview:
    """What an order would do to the URLs that wait."""

    matching: int  # waiting URLs that it would exclude or put first; refused and excluded ones that it would include
    of: int  # such URLs that were looked at
    complete: bool  # these are all of them; if not, there was no time
    examples: tuple[str, ...]
    archived: int  # archived URLs that match too, and stay
    command: str  # what a person would type to do it
    warning: str = ""  # what it cannot do


def preview(crawl: NamedCrawl, verb: str, argument: str) -> Preview:
    """Return what the order *verb* with *argument* would do to *crawl*, and change nothing.

    Takes up to twice `PREVIEW`. Raises `ConfigError` with one line if the order could not be given.
    """
    settings = check_changeable(crawl)
    kind, _ = checked(settings, verb, (argument,), undo=False)
    if kind is Verb.INCLUDE:
        return _preview_include(crawl, settings, argument)
    if kind is Verb.BLOCK:
        return _preview_block(crawl, argument)
    if kind not in {Verb.EXCLUDE, Verb.FIRST}:
        raise ConfigError(f"{kind} has no preview")
    matches = _leaving_out(argument) if kind is Verb.EXCLUDE else matching(argument)
    with crawl.read() as db:
        of, found, examples, complete = _counted(excluding.pages(db, excluding.WAITING, matches))
        _, archived, _, _ = _counted(excluding.pages(db, excluding.ARCHIVED, matches))
    return Preview(found, of, complete, tuple(examples), archived, command_of(crawl, verb, (argument,)))


def _preview_include(crawl: NamedCrawl, settings: Settings, regex: str) -> Preview:
    matches, command = matching(regex), command_of(crawl, Verb.INCLUDE, (regex,))
    with crawl.read() as db:
        scope = _scope_with(settings, regex, url_lookup.moved(db), undo=False)
        excluded = including.excluded_pages(db, matches, scope)
        refused = including.refused_pages(db, matches, scope)
        rows = (excluding.Page(each.last, each.seen, each.found) for each in excluded)
        links = (excluding.Page(1, each.seen, tuple((via, new.url) for new, via in each.found)) for each in refused)
        of, found, examples, complete = _counted(itertools.chain(rows, links))
        warning = _unknown(including.not_kept(db)).removeprefix("; ")
    return Preview(found, of, complete, tuple(examples), 0, command, warning)


def _preview_block(crawl: NamedCrawl, text: str) -> Preview:
    """Return how many of the URLs that wait would not be fetched because of their hosts, with these as examples."""
    quotas = Quotas(SettingsByHost(with_block(Settings(), HOSTS.parse(text), undo=False)))
    with crawl.read() as db:
        rows = db.execute("SELECT key, waiting, archived FROM hosts").fetchall()
    found = [(key, waiting, archived) for key, waiting, archived in rows if quotas.block(key)]
    waiting, archived = (sum(int(row[place]) for row in found) for place in (1, 2))
    examples = tuple(str(key) for key, _, _ in found[:EXAMPLES])
    of = sum(int(row[1]) for row in rows)
    return Preview(waiting, of, True, examples, archived, command_of(crawl, Verb.BLOCK, (text,)))


def _counted(pages: Iterator[excluding.Page]) -> tuple[int, int, list[str], bool]:
    """Return how many URLs were looked at, how many match, examples of these, and whether there was time for all."""
    end, seen, found, examples = time.monotonic() + PREVIEW, 0, 0, list[str]()
    for page in pages:
        seen, found = seen + page.seen, found + len(page.found)
        examples += [address for _, address in page.found[: EXAMPLES - len(examples)]]
        if time.monotonic() > end:
            return seen, found, examples, False
    return seen, found, examples, True


async def _given(crawl: NamedCrawl, new: NewOrder, wanted: _Wanted, *, running: bool) -> Order:
    from archiver.frontier.sqlite import SqliteFrontier  # noqa: PLC0415 - as asyncio, which it imports

    async with await SqliteFrontier.open(crawl.frontier) as frontier:
        now = time.time() + await frontier.clock_ahead()
        async with frontier.exclusive_transaction() as writer:
            if wanted.change is not None:
                await _rewrite(crawl, writer, wanted.change)
            number = await writer.run(
                table.give, replace(new, given=now), None if running and not wanted.at_once else wanted.later
            )
        order = await frontier.answered_order(number, PATIENCE)
        if wanted.work is not None:
            await frontier.amend_answer(number, await wanted.work(frontier))
            order = await frontier.answered_order(number, 0.0)
        return order


async def _rewrite(crawl: NamedCrawl, writer: "Worker", change: Change) -> None:
    """Change the settings of *crawl*: crawl.toml, and those in the database if several machines can crawl.

    Called while no other process can write either of them. The file is written first, so a crash before the order is
    stored loses nothing: the next run begins with the change.
    """
    if crawl.layout is not None:
        before = with_values(Settings(), read_settings(crawl.layout.settings))
        if (after := change(before)) != before:
            put_settings(crawl.layout, toml.render(after))
    if crawl.address:
        await change_common(crawl, writer, change)
