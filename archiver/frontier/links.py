"""Links of the frontier: queued URLs as claims, and a memory of recent links that would change nothing.

A claim has the page that its request names in the Referer.

The memory keeps a committed link for each URL. The row is at least that near and early, so a link that is no better
changes nothing. Rows also change in other ways: seeds, commands, recovery, and URLs that are held or put off. Each such
change raises a revision in the database, in its own transaction. A crawler that finds a revision raised by others
forgets its memory.
"""

import json
from collections.abc import Iterable
from typing import Any

from archiver import url
from archiver.ask import METHOD, Ask
from archiver.frontier.connection import Connection
from archiver.frontier.database import ASKED
from archiver.model import Claim, Hop, NewUrl
from archiver.policy.referrer import CODES, POLICIES, after_redirects
from archiver.policy.scope import is_guess
from archiver.policy.speculative import is_unnamed

# What is sent for a POST, whose URL says that it is one; `ASKED` also finds what is sent with a GET.
POSTED = f"CASE WHEN instr(urls.url, '{METHOD}') > 0 THEN {ASKED} END"
SAVE_ASK = """
INSERT INTO asks (url, ask) SELECT id, CAST(? AS TEXT) FROM urls WHERE url = ? ON CONFLICT (url) DO NOTHING
"""
_POLICIES = dict(enumerate(POLICIES))
_NAMED_BY_PAGES = (Hop.LINK, Hop.REQUISITE)
# For a redirect, the redirecting URLs before it: the chain is read only where there is one, and needs no column.
_CHAIN = """
CASE WHEN urls.hop = 'R' THEN (
    WITH RECURSIVE chain (id, step) AS (
        SELECT urls.via, 1
        UNION ALL
        SELECT earlier.via, step + 1 FROM chain JOIN urls AS earlier ON earlier.id = chain.id
        WHERE earlier.hop = 'R' AND step < 30
    )
    SELECT json_group_array(json_array(step, moved.url, moved.path, moved.referrer, page.url))
    FROM chain JOIN urls AS moved ON moved.id = chain.id LEFT JOIN urls AS page ON page.id = moved.via
) END
"""
# The page above all its parts on the way, for what a script may have named; `claim_of` looks closer.
_PAGE = """
CASE WHEN urls.hop IN ('E', 'X') AND via.hop IN ('E', 'X')
     AND (via.url LIKE '%.js%' OR via.url LIKE '%.mjs%' OR via.url LIKE '%.md%') THEN (
    WITH RECURSIVE way (id, step) AS (
        SELECT via.via, 1
        UNION ALL
        SELECT named.via, step + 1 FROM way JOIN urls AS named ON named.id = way.id
        WHERE named.hop IN ('E', 'X') AND step < 30
    )
    SELECT page.url FROM way JOIN urls AS page ON page.id = way.id WHERE page.hop NOT IN ('E', 'X')
    ORDER BY step DESC LIMIT 1
) END
"""
CLAIM_COLUMNS = f"""
SELECT urls.id, urls.url, urls.host, urls.hop, urls.path, urls.depth, urls.off_scope_hops,
       urls.tries - urls.tries_before, via.url, coalesce(seed.url, ''), urls.priority, urls.referrer, urls.language,
       {_CHAIN}, {_PAGE}, {ASKED}, urls.requeued > 0
FROM urls LEFT JOIN urls AS via ON via.id = urls.via LEFT JOIN urls AS seed ON seed.id = urls.seed
"""  # noqa: S608  a constant


def policy_code(new: NewUrl | Claim) -> int:
    """Return the place of the referrer policy of *new* in the table of policies."""
    return CODES.get(new.referrer_policy, 0)


def claims(db: Connection, addresses: Iterable[str]) -> list[Claim]:
    """Return the rows of the known URLs *addresses*, in their order."""
    return [claim_of(db.row(f"{CLAIM_COLUMNS} WHERE urls.url = ?", (address,))) for address in addresses]


def claim_of(row: Any) -> Claim:
    """Return the claim in a *row* of `CLAIM_COLUMNS`."""
    number, address, host, hop, path, depth, hops, tries, via, seed, priority, policy, language, *others = row
    chain, page, asked, again = others
    way = Hop(hop), path, depth, hops, tries, via, seed, priority
    asking = page if page is not None and url.may_be_script(via) else via  # a page runs the script that names a URL
    said = _POLICIES.get(policy, ""), _referrer(path, address, asking, chain)
    return Claim(number, address, host, *way, *said, language, Ask.of_text(asked) if asked else None, bool(again))


def save_asks(db: Connection, asks: Iterable[tuple[str, Ask | None]]) -> None:
    """Save what is sent for each URL that has a row; None: it is an ordinary GET."""
    db.executemany(SAVE_ASK, [(ask.text(), address) for address, ask in asks if ask is not None])


def _referrer(path: str, address: str, via: str | None, chain: str | None = None) -> str:
    """Return the referrer of a request for *address*, reached by *path*; "" if none. *chain*: its column `_CHAIN`.

    The target of a redirect has what the redirects leave of the page that named the first URL. Sitemaps and probes are
    named by no page.
    """
    if chain is not None and (steps := sorted(json.loads(chain), reverse=True)):
        _, first, way, _, page = steps[0]
        moves = [(step[1], _POLICIES.get(step[3], "")) for step in steps]
        return after_redirects(_referrer(way, first, page), moves)
    hop = path[-1:]
    named = hop in _NAMED_BY_PAGES or (hop == Hop.SPECULATIVE and not is_unnamed(address))
    return via or "" if named and path[-2:-1] != Hop.MANIFEST else ""


MOST = 20_000  # links of a generation …
SIZE = 2 << 20  # … and characters in them; there are two generations

Found = tuple[NewUrl, int]  # a URL, and the row of the document that names it


class RecentLinks:
    """A bounded cache of two generations. Links not looked up during a generation are forgotten with it."""

    def __init__(self, most: int = MOST, size: int = SIZE) -> None:
        self._most = most
        self._size = size
        self._young: dict[str, NewUrl] = {}
        self._old: dict[str, NewUrl] = {}
        self._weight = 0  # of the young ones

    def select_new(self, links: Iterable[NewUrl], via: int) -> list[Found]:
        """Return those of *links*, named by the document in row *via*, that may change something."""
        found: list[Found] = []
        for new in links:
            before = self._young.get(new.url)
            if before is new or (before is not None and no_better(new, before)):  # most links end here
                continue
            if before is not None or not self._idle(new):
                found.append((new, via))
        return found

    def _idle(self, new: NewUrl) -> bool:
        """Return True if *new*, which no young link names, is no better than an old one."""
        before = self._old.get(new.url)
        if before is None or (new != before and not no_better(new, before)):
            return False
        self._keep(before)
        return True

    def remember(self, links: Iterable[NewUrl]) -> None:
        """Add committed *links*; their rows are at least as near and as early."""
        for new in links:
            self._keep(new)

    def drop(self, address: str) -> None:
        """Forget *address*: its row is held or has a later priority now, and the next link may change that."""
        self._young.pop(address, None)
        self._old.pop(address, None)

    def forget(self) -> None:
        """Forget all links, because rows may have changed."""
        self._young, self._old, self._weight = {}, {}, 0

    def _keep(self, new: NewUrl) -> None:
        self._weight += len(new.url) + len(new.path)
        if self._weight > self._size or len(self._young) >= self._most:
            self._young, self._old, self._weight = {}, self._young, len(new.url) + len(new.path)
        self._young[new.url] = new


def distance(new: NewUrl) -> tuple[bool, int, int]:
    """Return the distance of *new* as a sort key; a speculative path is the longest."""
    return is_guess(new.path), new.depth, new.off_scope_hops


def no_better(new: NewUrl, other: NewUrl) -> bool:
    """Return True if *new* is neither nearer nor earlier than *other*."""
    if new.priority < other.priority:
        return False
    farther = new.depth >= other.depth and new.off_scope_hops >= other.off_scope_hops
    return (farther and not is_guess(other.path)) or distance(new) >= distance(other)


RAISE = """
INSERT INTO revisions (name, number) VALUES (?, 1)
ON CONFLICT (name) DO UPDATE SET number = revisions.number + 1 RETURNING number
"""


class Revision:
    """A number in the database that changes of one kind raise, and whether others have raised it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: int | None = None
        self._repeats = 0  # of the connection; work that is done again may find its own changes, or none

    def raise_by_one(self, db: Connection) -> None:
        """Record a change of ours, in the caller's transaction."""
        (number,) = db.row(RAISE, (self._name,))
        if self._known == number - 1 and self._repeats == db.repeats:
            self._known = number

    def raised_by_others(self, db: Connection) -> bool:
        """Return True if others have raised it since the last call. The first call returns False."""
        row = db.row("SELECT number FROM revisions WHERE name = ?", (self._name,))
        before, self._known = self._known, row[0] if row else 0
        repeated, self._repeats = self._repeats != db.repeats, db.repeats
        return before is not None and (repeated or before != self._known)
