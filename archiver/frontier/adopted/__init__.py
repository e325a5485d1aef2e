"""The queue of a crawl that another program began: its URLs become rows of a new frontier.

`place` adds the URLs before anything else is known of them. When the captures that were imported with them are settled,
`give_up` marks those that the other program gave up and that have no capture. Everything runs in the caller's
transaction.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from archiver import url
from archiver.errors import Failure
from archiver.frontier import url_queue
from archiver.frontier.connection import Connection
from archiver.model import LINK_OUTSIDE, Hop, State
from archiver.policy.scope import PATH_KEPT, priority

LONGEST_PATH = 10_000  # hops of a path; no crawl gets as far

PLACE = """
INSERT INTO urls (url, host, hop, path, depth, off_scope_hops, priority, state, failure, note, via, seed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT id FROM urls WHERE url = ?),
        coalesce((SELECT id FROM urls WHERE url = ?), (SELECT seed FROM urls WHERE url = ?)))
ON CONFLICT DO NOTHING
"""
ROWS = "SELECT urls.url, urls.id, urls.seed FROM json_each(?) AS given JOIN urls ON urls.url = given.value"
ROUNDS = 8  # of URLs that lead to each other, which one call adds in few statements
GIVE_UP = """
UPDATE urls SET state = 'failed', failure = '', note = ?, tries = CASE tries WHEN 0 THEN 1 ELSE tries END
WHERE url = ? AND state = 'waiting'
"""
KNOWN = """
SELECT state, count(*) FROM json_each(?) AS given JOIN urls ON urls.url = given.value GROUP BY state
"""


class AdoptedState(Enum):
    """What the other program made of a URL."""

    WAITING = "waiting"
    FETCHED = "fetched"  # it says so; only a capture shows it
    FAILED = "failed"  # after its last try


class AdoptedUrl(NamedTuple):
    """A URL in the queue or the seen-set of another program. Unknown addresses are ""."""

    url: str
    state: AdoptedState
    path: str = Hop.LINK.value  # hop path from its seed
    via: str = ""  # the URL that led to it
    seed: str = ""
    inside: bool = True  # it belongs to the scope here
    note: str = ""  # why it failed, for a person
    excluded: str = ""  # the rule here that excludes it


def hop_path(links: int, requisites: int = 0) -> str:
    """Return the hop path of a URL that is *requisites* hops behind a page *links* links away from a seed."""
    links, requisites = (min(max(number, 0), LONGEST_PATH) for number in (links, requisites))
    return shortened(Hop.LINK.value * links + Hop.REQUISITE.value * requisites)


def shortened(letters: str) -> str:
    """Return the hop path *letters*; a long one begins with the number of hops that are left out."""
    over = len(letters) - PATH_KEPT
    return letters if over <= 0 else f"{over}+{letters[over:]}"


def place(db: Connection, adopted: Sequence[AdoptedUrl]) -> None:
    """Add a row for each of *adopted* that has none; it waits, or is excluded."""
    hosts = url_queue.hosts_of(db, {url.origin(each.url) for each in adopted})
    known = _known(db, {address for each in adopted for address in (each.url, each.via, each.seed)})
    first: dict[str, AdoptedUrl] = {}
    for each in adopted:
        first.setdefault(each.url, each)
    left = [each for each in first.values() if each.url not in known]
    for _ in range(ROUNDS):  # what leads to a URL gets its row before it
        names = {each.url for each in left}
        ready = [each for each in left if each.via not in names]
        rows = [(*_row(each, hosts[url.origin(each.url)]), 0, *_origin(each, known)) for each in ready]
        db.many(url_queue.INSERT, [(*row, *_life(each)) for row, each in zip(rows, ready, strict=True)])
        known |= _known(db, {each.url for each in ready})
        left = [each for each in left if each.via in names]
    for each in left:  # a long chain, or a ring
        row = _row(each, hosts[url.origin(each.url)])
        db.execute(PLACE, (*row, *_life(each), each.via, each.seed, each.via))


def _life(each: AdoptedUrl) -> tuple[str, str, str]:
    """Return state, failure and note of the row of *each*."""
    if each.excluded:
        return State.EXCLUDED.value, Failure.RULE.value, each.excluded
    return State.WAITING.value, "", ""


def _known(db: Connection, addresses: Collection[str]) -> dict[str, tuple[int, int | None]]:
    """Return the row and the seed of each of *addresses* that has a row."""
    return {str(address): (row, seed) for address, row, seed in db.rows(ROWS, (json.dumps(sorted(addresses)),))}


def _origin(each: AdoptedUrl, known: Mapping[str, tuple[int, int | None]]) -> tuple[int | None, int | None]:
    """Return the rows of what led to *each* and of its seed, as far as they are *known*."""
    via, seed_of_via = known.get(each.via, (None, None))
    return via, known[each.seed][0] if each.seed in known else seed_of_via


def give_up(db: Connection, failed: Sequence[AdoptedUrl]) -> int:
    """Mark those of *failed* that still wait as failed; return how many."""
    return sum(db.execute(GIVE_UP, (each.note, each.url)).rowcount for each in failed)


def states(db: Connection, adopted: Sequence[AdoptedUrl]) -> dict[str, int]:
    """Return how many of *adopted* have a row in each state."""
    return {
        str(state): int(number) for state, number in db.rows(KNOWN, (json.dumps(sorted({one.url for one in adopted})),))
    }


def _row(each: AdoptedUrl, host: int) -> tuple[object, ...]:
    letters = each.path.rpartition("+")[2]
    hop = Hop(letters[-1:] or Hop.LINK)
    dropped = len(each.path) - len(letters) and int(each.path.partition("+")[0])
    depth = dropped + letters.count(Hop.LINK.value)
    outside = 0 if each.inside else 1 if hop in (Hop.REQUISITE, Hop.SPECULATIVE) else LINK_OUTSIDE
    return each.url, host, hop.value, each.path, depth, outside, priority(each.path, depth)
