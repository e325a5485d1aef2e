"""`archiver urls`: list the URLs of a crawl, one per line, even while it runs."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

from archiver import url
from archiver.cli.directory import named_crawl
from archiver.cli.explain.text import REFUSED, state_reason, tries_json
from archiver.cli.options import (
    EACH_LINE,
    crawl_argument,
    define_command,
    host_option,
    json_option,
    last_status_option,
)
from archiver.cli.terminal import results
from archiver.collection.named_urls import status_ranges
from archiver.errors import ConfigError
from archiver.frontier import url_lookup
from archiver.frontier.connection import Reader
from archiver.frontier.url_lookup import RefusedLink, UrlFilter, UrlRow
from archiver.humanize import iso, printable
from archiver.model import ExitCode, State
from archiver.policy.quotas import Quotas

STATES = (*(state.value for state in State), REFUSED)
LONGEST = 20_000  # characters of a URL; a longer one does not exist
LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True)
class UrlsQuery:
    """The arguments of `archiver urls`."""

    states: tuple[str, ...]  # empty: all but refused
    statuses: tuple[str, ...]  # of the last answer: 404, 4xx
    missing: bool  # only requisites of archived pages that are not archived
    blocked: bool  # only URLs whose last answer is a challenge or block page
    truncated: bool  # only URLs whose last answer is incomplete
    host: str | None
    why: bool
    as_json: bool
    limit: int | None


def urls(place: Path | str, query: UrlsQuery) -> ExitCode:
    """Print the URLs of the crawl at *place* that match *query*."""
    crawl = named_crawl(place)
    now = time.time()
    states, statuses = tuple(_states(query)), tuple(status_ranges(query.statuses))
    which = UrlFilter(states, statuses, query.missing, query.blocked, query.truncated)
    with crawl.read() as db:
        hosts = url_lookup.keys(db, query.host) if query.host is not None else None
        if hosts == []:
            raise ConfigError(
                f"--host {query.host}: not a host of this crawl; write it like example.org, example.org:8443 or "
                "http://example.org"
            )
        found = islice(_found(db, query.states, which, hosts), query.limit)
        reason = partial(_reason, now=now, quotas=crawl.quotas(db))
        results(
            _json(one, reason(one)) if query.as_json else _line(one, reason if query.why else None) for one in found
        )
    return ExitCode.DONE


def _states(query: UrlsQuery) -> Iterator[State]:
    for state in query.states or State:
        if state != REFUSED:
            yield State(state)


def _found(
    db: Reader, states: Sequence[str], which: UrlFilter, hosts: Sequence[str] | None
) -> Iterator[UrlRow | RefusedLink]:
    if which.states:
        yield from url_lookup.listed(db, which, hosts)
    if REFUSED in states:
        yield from url_lookup.listed_refused(db, hosts)


def _line(one: UrlRow | RefusedLink, reason: Callable[[UrlRow | RefusedLink], str] | None) -> str:
    address = printable(one.url, LONGEST)
    return f"{address}\t{printable(reason(one), LONGEST_REASON)}" if reason else address


def _reason(one: UrlRow | RefusedLink, *, now: float, quotas: Quotas) -> str:
    if isinstance(one, RefusedLink):
        return f"{REFUSED}: {one.rule}" + (f", linked from {one.via}" if one.via else "")
    reason = state_reason(one, now, quotas.of(url.origin(one.url)))
    return f"{one.state.value}: {reason}" if reason else one.state.value


def _json(one: UrlRow | RefusedLink, reason: str) -> str:
    fields: dict[str, Any]
    if isinstance(one, RefusedLink):
        fields = {"url": one.url, "state": REFUSED, "rule": one.rule, "via": one.via}
    else:
        fields = {
            "url": one.url,
            "state": one.state.value,
            **tries_json(one),
            "due": iso(one.due),
            "via": one.via,
            "hops": one.path,
            "depth": one.depth,
        }
    return json.dumps({**fields, "reason": reason})


def _run(place: Path | str, **chosen: Any) -> int:
    return urls(place, UrlsQuery(**chosen))


COMMAND = define_command(
    "urls",
    _run,
    """List the URLs of a crawl.

    Prints one URL per line, in the order of discovery; with --host, sorted by URL. Refused URLs are links outside of
    the scope; a sample of them is kept, a thousand per rule and host. Works while the crawl runs.
    """,
    [
        crawl_argument(),
        click.Option(
            ["--state", "states"],
            multiple=True,
            type=click.Choice(["waiting", "archived", "failed", "excluded", "held", "refused"]),
            help="Only URLs in this state. Repeatable. Default: all but refused.",
        ),
        last_status_option(),
        click.Option(
            ["--missing"],
            is_flag=True,
            help="Only images, styles and scripts that archived pages need but that are not archived.",
        ),
        click.Option(["--blocked"], is_flag=True, help="Only URLs whose last answer is a challenge or block page."),
        click.Option(["--truncated"], is_flag=True, help="Only URLs with an incomplete or undecodable answer."),
        host_option(several=False),
        click.Option(["--why"], is_flag=True, help="Add a tab, the state and its reason to each line."),
        json_option(EACH_LINE),
        click.Option(["--limit"], type=click.IntRange(0), metavar="N", help="Print at most N URLs."),
    ],
    ("archiver urls collections/example.org --state failed --why", "what failed, and why"),
    ("archiver urls collections/example.org --status 4xx,5xx --why", "what answered with an error"),
    ("archiver urls collections/example.org --state waiting --host example.org | head", "what comes next"),
    ("archiver urls collections/example.org --json | jq -r 'select(.depth == 1) | .url'", "use it in a script"),
)
