"""`archiver urls`: the URLs of a crawl, one on each line, as fast as the reader takes them, also while it runs."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from archiver.cli import directory as place
from archiver.cli import explain_text
from archiver.cli.explain_text import REFUSED
from archiver.cli.terminal import results
from archiver.errors import ConfigError
from archiver.frontier import totals, url_lookup
from archiver.frontier.url_lookup import RefusedLink, UrlFilter, UrlRow
from archiver.humanize import printable
from archiver.model import ExitCode, State
from archiver.policy.limits import Allowance
from archiver.tools.report.summary import iso

STATES = (*(state.value for state in State), REFUSED)
LONGEST = 20_000  # characters of a URL; a longer one does not exist
LONGEST_REASON = 1000
_STATUS = re.compile(r"([1-9])(?:xx|([0-9]{2}))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UrlsQuery:
    """Which URLs, and how."""

    states: tuple[str, ...]  # none: all that the frontier holds
    statuses: tuple[str, ...]  # of the last answer: 404, 4xx
    missing: bool  # only requisites of archived pages that are not there
    blocked: bool  # only those whose last answer is a challenge or block page
    host: str | None
    why: bool
    as_json: bool
    limit: int | None


def urls(directory: Path, wish: UrlsQuery) -> ExitCode:
    """List the URLs of the crawl in *directory* that *wish* names."""
    place.check_is_directory(directory)
    now = time.time()
    which = UrlFilter(tuple(_states(wish)), tuple(spans(wish.statuses)), wish.missing, wish.blocked)
    with totals.open_totals(directory) as db:
        hosts = url_lookup.keys(db, wish.host) if wish.host is not None else None
        if hosts == []:
            raise ConfigError(
                f"--host {wish.host}: the crawl knows no such host; right would be a name as example.org, with a port "
                "where it is an odd one, or with the scheme before it"
            )
        found = islice(_found(db, wish.states, which, hosts), wish.limit)
        reason = partial(_reason, now=now, allowance=place.allowance(directory))
        results(_json(one, reason(one)) if wish.as_json else _line(one, reason if wish.why else None) for one in found)
    return ExitCode.DONE


def spans(texts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the statuses that *texts* mean, first and last: `404`, `5xx` for all of a class, `404,5xx` for both."""
    for text in (part.strip() for each in texts for part in each.split(",")):
        found = _STATUS.fullmatch(text)
        if found is None:
            raise ConfigError(f"--status: {text!r} is no status; right would be 404, or 5xx for all that begin with 5")
        first = int(found[1]) * 100
        yield (first, first + 99) if found[2] is None else (first + int(found[2]),) * 2


def _states(wish: UrlsQuery) -> Iterator[State]:
    for state in wish.states or State:
        if state != REFUSED:
            yield State(state)


def _found(
    db: Connection, states: Sequence[str], which: UrlFilter, hosts: Sequence[str] | None
) -> Iterator[UrlRow | RefusedLink]:
    if which.states:
        yield from url_lookup.listed(db, which, hosts)
    if REFUSED in states:
        yield from url_lookup.listed_refused(db, hosts)


def _line(one: UrlRow | RefusedLink, reason: Callable[[UrlRow | RefusedLink], str] | None) -> str:
    address = printable(one.url, LONGEST)
    return f"{address}\t{printable(reason(one), LONGEST_REASON)}" if reason else address


def _reason(one: UrlRow | RefusedLink, *, now: float, allowance: Allowance) -> str:
    if isinstance(one, RefusedLink):
        return f"{REFUSED}: {one.rule}" + (f", as a link of {one.via}" if one.via else "")
    reason = explain_text.why(one, now, allowance)
    return f"{one.state.value}: {reason}" if reason else one.state.value


def _json(one: UrlRow | RefusedLink, reason: str) -> str:
    told: dict[str, Any]
    if isinstance(one, RefusedLink):
        told = {"url": one.url, "state": REFUSED, "rule": one.rule, "via": one.via}
    else:
        told = {
            "url": one.url,
            "state": one.state.value,
            **explain_text.tried(one),
            "due": iso(one.due),
            "via": one.via,
            "hops": one.path,
            "depth": one.depth,
        }
    return json.dumps({**told, "reason": reason})
