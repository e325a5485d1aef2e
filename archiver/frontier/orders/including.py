"""URLs that a person brings into a crawl by a rule: those that rules have refused or excluded, judged again.

Refused links are judged as their pages have named them, as far as the sample of refusals shows that. URLs that a person
had excluded wait again if no rule excludes them any more; the table `included` keeps what they had been excluded by.
Taken back, the URLs that match and wait are judged by the rules that are left: those that these refuse, and those in
`included`, are excluded. What was fetched stays. Each page of rows is a short transaction.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from archiver import url
from archiver.errors import Failure
from archiver.frontier import url_queue
from archiver.frontier.connection import Connection, Reader
from archiver.frontier.links import CLAIM_COLUMNS, Found, claim_of
from archiver.frontier.orders.excluding import AT_ONCE, changed
from archiver.model import Claim, Hop, Link, NewUrl
from archiver.policy.scope import Scope
from archiver.policy.seed_scopes import Scopes

REFUSED = "SELECT url, rule, via FROM refusals WHERE url > ? ORDER BY url LIMIT ?"
NOT_KEPT = "SELECT coalesce(sum(links - kept), 0) FROM refusal_counts"
EXCLUDED = """
SELECT id, url, hop, via FROM urls
WHERE id > ? AND state = 'excluded' AND failure = ? AND priority >= 0 ORDER BY id LIMIT ?
"""
REMEMBER = """
INSERT INTO included (url, rule, note)
SELECT id, CAST(? AS TEXT), note FROM urls
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'excluded' AND failure = ?
ON CONFLICT (url) DO UPDATE SET rule = excluded.rule, note = excluded.note
"""
REVIVE = """
UPDATE urls SET state = 'waiting', failure = '', note = ''
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'excluded' AND failure = ?
"""
WAITING = """
SELECT urls.id, urls.url, urls.hop, urls.via, coalesce(included.note, '') FROM urls
LEFT JOIN included ON included.url = urls.id AND included.rule = ?
WHERE urls.id > ? AND urls.state = 'waiting' AND urls.priority >= 0 AND urls.path <> ''
  AND NOT EXISTS (SELECT 1 FROM captures WHERE captures.url = urls.id)
ORDER BY urls.id LIMIT ?
"""
TAKE_OUT = """
UPDATE urls SET state = 'excluded', failure = ?, note = ?
WHERE id IN (SELECT value FROM json_each(?)) AND state = 'waiting'
"""
PARENTS = f"{CLAIM_COLUMNS} WHERE urls.id IN (SELECT value FROM json_each(?))"  # noqa: S608  constants
FORGET = "DELETE FROM included WHERE rule = ?"

# The kind of the refused link, by the beginning of its rule. Other rules refuse links of any kind.
KINDS = {
    **dict.fromkeys(("scope", "extra-hops", "max-depth"), Hop.LINK),
    **dict.fromkeys(("requisite-hops", "page-requisites"), Hop.REQUISITE),
    **dict.fromkeys(("redirects", "max-redirects"), Hop.REDIRECT),
    **dict.fromkeys(("speculative", "source-maps"), Hop.SPECULATIVE),
    "sitemaps in sitemaps": Hop.MANIFEST,
}

Matches = Callable[[str], bool]


class RefusedPage(NamedTuple):
    """A number of refused links, in order."""

    last: str  # "": there are no more
    seen: int
    found: tuple[Found, ...]  # links that match and are accepted now


class ExcludedPage(NamedTuple):
    """A number of excluded rows, in order."""

    last: int  # 0: there are no more
    seen: int
    found: tuple[tuple[int, str], ...]  # row and URL of those that match, and that no rule excludes now


class WaitingPage(NamedTuple):
    """A number of waiting rows, in order."""

    last: int  # 0: there are no more
    found: tuple[tuple[int, str], ...]  # row and note of those that are not accepted any more


def note_of(regex: str) -> str:
    """Return the note of a URL that is excluded because the rule *regex* no longer includes it."""
    return f"no longer included: {regex}"


def refused_page(db: Reader, after: str, matches: Matches, scope: Scope | Scopes) -> RefusedPage:
    """Return the next refused links behind the URL *after*."""
    rows = db.execute(REFUSED, (after, AT_ONCE)).fetchall()
    matching = [(address, rule, via) for address, rule, via in rows if via is not None and matches(address)]
    parents = _claims(db, {via for _, _, via in matching})
    found = []
    for address, rule, via in matching:
        if via in parents and isinstance(
            verdict := scope.judge(Link(address, _kind(rule, address)), parents[via]), NewUrl
        ):
            found.append((verdict, via))
    known = _known(db, [new.url for new, _ in found])
    new = {each[0].url: each for each in reversed(found) if each[0].url not in known}
    return RefusedPage(rows[-1][0] if rows else "", len(rows), tuple(new.values()))


def excluded_page(db: Reader, after: int, matches: Matches, scope: Scope | Scopes) -> ExcludedPage:
    """Return the next rows behind *after* that a rule has excluded."""
    rows = db.execute(EXCLUDED, (after, Failure.RULE.value, AT_ONCE)).fetchall()
    matching = [row for row in rows if matches(row[1])]
    parents = _claims(db, {via for *_, via in matching if via is not None})
    found = tuple((row, text) for row, text, hop, via in matching if _accepted(scope, text, Hop(hop), parents.get(via)))
    return ExcludedPage(rows[-1][0] if rows else 0, len(rows), found)


def refused_pages(db: Reader, matches: Matches, scope: Scope | Scopes) -> Iterator[RefusedPage]:
    """Yield all refused links of the sample."""
    after = ""
    while (found := refused_page(db, after, matches, scope)).last:
        yield found
        after = found.last


def excluded_pages(db: Reader, matches: Matches, scope: Scope | Scopes) -> Iterator[ExcludedPage]:
    """Yield all rows that a rule has excluded."""
    after = 0
    while (found := excluded_page(db, after, matches, scope)).last:
        yield found
        after = found.last


def not_kept(db: Reader) -> int:
    """Return the number of refused links that are only counted."""
    return int(db.execute(NOT_KEPT).fetchone()[0])


def add(db: Connection, found: Sequence[Found]) -> int:
    """Let the links *found* wait and return how many are new."""
    added, _ = url_queue.add_links(db, found)
    changed(db)
    return added.total()


def revive(db: Connection, rows: Sequence[int], regex: str) -> int:
    """Let those of *rows* wait that a rule has excluded, and return how many."""
    which, failure = json.dumps(rows), Failure.RULE.value
    db.execute(REMEMBER, (regex, which, failure))
    count = db.execute(REVIVE, (which, failure)).rowcount
    changed(db)
    return count


def waiting_page(db: Reader, regex: str, after: int, matches: Matches, scope: Scope | Scopes) -> WaitingPage:
    """Return the next waiting rows behind *after* that the rule *regex* has brought in, by the *scope* without it."""
    rows = db.execute(WAITING, (regex, after, AT_ONCE)).fetchall()
    matching = [row for row in rows if matches(row[1])]
    parents = _claims(db, {via for _, _, _, via, note in matching if not note and via is not None})
    found = []
    for row, address, hop, via, note in matching:
        if note or (via in parents and not _accepted(scope, address, Hop(hop), parents[via])):
            found.append((row, note or note_of(regex)))
    return WaitingPage(rows[-1][0] if rows else 0, tuple(found))


def take_out(db: Connection, found: Iterable[tuple[int, str]]) -> int:
    """Exclude the waiting rows in *found*, each with its note, and return how many."""
    by_note: dict[str, list[int]] = {}
    for row, note in found:
        by_note.setdefault(note, []).append(row)
    count = sum(
        db.execute(TAKE_OUT, (Failure.RULE.value, note, json.dumps(rows))).rowcount for note, rows in by_note.items()
    )
    changed(db)
    return count


def forget(db: Connection, regex: str) -> None:
    """Forget what the rule *regex* has included."""
    db.execute(FORGET, (regex,))


def _claims(db: Reader, rows: Iterable[int]) -> dict[int, Claim]:
    """Return the claims in *rows*."""
    which = json.dumps(sorted(rows))
    found = map(claim_of, db.execute(PARENTS, (which,)).fetchall()) if which != "[]" else ()
    return {claim.id: claim for claim in found}


def _known(db: Reader, addresses: Sequence[str]) -> set[str]:
    query = "SELECT urls.url FROM json_each(?) AS given JOIN urls ON urls.url = given.value"
    return {str(row[0]) for row in db.execute(query, (json.dumps(addresses),)).fetchall()} if addresses else set()


def _accepted(scope: Scope | Scopes, address: str, hop: Hop, parent: Claim | None) -> bool:
    return parent is not None and isinstance(scope.judge(Link(address, hop), parent), NewUrl)


def _kind(rule: str, address: str) -> Hop:
    known = next((hop for words, hop in KINDS.items() if rule.startswith(f"{words}:")), None)
    return known or (Hop.LINK if url.may_be_page(address) else Hop.REQUISITE)
