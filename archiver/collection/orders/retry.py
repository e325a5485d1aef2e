"""Queues URLs of a crawl again, or releases held ones, and notes that as an order.

A stopped crawl is locked meanwhile. A running one looks every second whether another process has changed its database.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from shlex import join
from typing import TYPE_CHECKING, Self

from archiver.collection.named_crawl import NamedCrawl, check_changeable, crawl_lock
from archiver.collection.named_urls import canonical_url, find_in_crawl, has_scheme, status_ranges, with_other_scheme
from archiver.collection.orders.given import GivenOrder, Work, done_at_once, user
from archiver.config.settings import Settings
from archiver.errors import ConfigError, Failure
from archiver.frontier import url_lookup
from archiver.frontier.connection import Reader
from archiver.frontier.orders.table import NewOrder, Verb
from archiver.frontier.port import Selection
from archiver.frontier.retry import HeldPattern, chosen_patterns, held_patterns
from archiver.humanize import count, printable
from archiver.model import State

if TYPE_CHECKING:
    from archiver.frontier.sqlite import SqliteFrontier

LONGEST = 300  # characters of an argument in a message
FLAGS = {"--held": "held", "--blocked": "blocked", "--truncated": "truncated"}
VALUES = {"--host": "hosts", "--status": "statuses", "--failure": "failures"}


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """What is to be queued again: the arguments of `archiver retry`."""

    urls: tuple[str, ...] = ()  # with `held` also patterns
    hosts: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    blocked: bool = False  # only URLs whose last answer was a challenge or block page
    truncated: bool = False  # only URLs whose last answer was incomplete
    held: bool = False  # URLs that are suspected to be in a trap

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        """Return the request that *words* of a command line make; an option has its value in the same word."""
        found: dict[str, tuple[str, ...]] = {}
        flags = set[str]()
        for word in words:
            option, equals, value = word.partition("=")
            if not word.startswith("--"):
                found["urls"] = (*found.get("urls", ()), word)
            elif option in VALUES and equals:
                found[VALUES[option]] = (*found.get(VALUES[option], ()), value)
            elif word in FLAGS:
                flags.add(FLAGS[word])
            else:
                known = ", ".join((*(f"{one}=VALUE" for one in VALUES), *FLAGS))
                raise ConfigError(f"retry: {printable(word, LONGEST)} is not known; write URLs or {known}")
        return cls(
            **{name: found.get(name, ()) for name in ("urls", *VALUES.values())},
            blocked="blocked" in flags,
            truncated="truncated" in flags,
            held="held" in flags,
        )

    def words(self) -> tuple[str, ...]:
        """Return the words of a command line that make this request."""
        flags = [word for word, name in FLAGS.items() if getattr(self, name)]
        values = [f"{word}={value}" for word, name in VALUES.items() for value in getattr(self, name)]
        return (*flags, *values, *self.urls)


def retry(crawl: NamedCrawl, request: RetryRequest, *, who: str = "") -> GivenOrder:
    """Queue the URLs of *request* again, and note that as an order of *who*, by default the user of this process.

    Raises `ConfigError` with one line if that cannot be done; then nothing has changed.
    """
    import asyncio  # noqa: PLC0415 - slow to import, and the help of a command needs none of it

    statuses = tuple(status_ranges(request.statuses))
    request = _checked(request)
    settings = check_changeable(crawl)
    work = _release(crawl, settings, request.urls) if request.held else _queue(crawl, settings, request, statuses)
    new = NewOrder(Verb.RETRY, request.words(), who or user())
    with crawl_lock(crawl) as running:
        order, urls = asyncio.run(done_at_once(crawl, new, work))
    return GivenOrder(order, running, join(("archiver", Verb.RETRY, crawl.name, *request.words())), urls)


def _checked(request: RetryRequest) -> RetryRequest:
    """Return *request* with canonical URLs, which hold no password. Refuse what is wrong whatever the crawl is."""
    if request.held:
        if request != RetryRequest(request.urls, held=True):
            raise ConfigError("--held cannot be used with --host, --status, --failure, --blocked or --truncated")
        return replace(request, urls=tuple(map(_canonical_or_same, request.urls)))
    urls = tuple(text if not has_scheme(text) else canonical_url(text) for text in request.urls)
    for text in urls:
        canonical_url(text)
    words = [each.value for each in Failure]
    if wrong := next((each for each in request.failures if each not in words), ""):
        raise ConfigError(f"--failure: {printable(wrong, LONGEST)} is not one of {', '.join(words)}")
    return replace(request, urls=urls)


def _queue(crawl: NamedCrawl, settings: Settings, request: RetryRequest, statuses: tuple[tuple[int, int], ...]) -> Work:
    with crawl.read() as db:
        urls = _known(db, request.urls, settings)
        for host in request.hosts:
            if not url_lookup.keys(db, host):
                raise ConfigError(f"--host {host}: not a host of this crawl; write it like example.org")
    selection = Selection(urls, request.hosts, statuses, request.failures, request.blocked, request.truncated)

    async def work(frontier: "SqliteFrontier") -> tuple[int, str]:
        number = await frontier.queue_again(selection)
        return number, f"{count(number, 'URL')} queued again"

    return work


def _known(db: Reader, urls: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Return *urls* in the spelling of the crawl. Raises `ConfigError` if it does not know one of them."""
    found = [find_in_crawl(db, text, settings) for text in urls]
    for address in found:
        if url_lookup.known(db, address) is None:
            other = with_other_scheme(db, address, settings)
            hint = (
                f"it has {other}"
                if other and url_lookup.known(db, other)
                else "archiver explain says why; archiver add makes it a seed"
            )
            raise ConfigError(f"{address} is not in the crawl, so it cannot be tried again; {hint}")
    return tuple(dict.fromkeys(found))


def _release(crawl: NamedCrawl, settings: Settings, wanted: Sequence[str]) -> Work:
    """Return what queues the held URLs that *wanted* names, or all, and gives their patterns another budget."""
    with crawl.read() as db:
        patterns = held_patterns(db)
        chosen = chosen_patterns(patterns, wanted)
        single = [] if chosen else [text for text in wanted if _is_held(db, text)]
    if wanted and not (chosen or single):
        raise ConfigError(_nothing_held(wanted[0], patterns))

    async def work(frontier: "SqliteFrontier") -> tuple[int, str]:
        number = await frontier.queue_again(Selection(tuple(single))) if single else 0
        number += sum([await frontier.release(each, settings.traps.trap_budget) for each in chosen])
        return number, f"{count(number, 'URL')} released"

    return work


def _nothing_held(wanted: str, patterns: Sequence[HeldPattern]) -> str:
    known = "; held are " + ", ".join(each.pattern for each in patterns[:5]) if patterns else "; nothing is held"
    return f"--held: no held URL or pattern is named {printable(wanted)}{printable(known, 1000)}"


def _canonical_or_same(text: str) -> str:
    if "*" in text or "://" not in text:
        return text
    try:
        return canonical_url(text)
    except ConfigError:  # a pattern need not be a URL
        return text


def _is_held(db: Reader, address: str) -> bool:
    row = url_lookup.known(db, address)
    return row is not None and row.state is State.HELD
