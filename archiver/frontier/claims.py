"""Claims as the frontier reads them: queued URLs, each with the page that its request names in the Referer."""

import json
from collections.abc import Iterable
from typing import Any

from archiver.frontier.connection import Connection
from archiver.model import Claim, Hop, NewUrl
from archiver.policy.referrer import CODES, POLICIES, after_redirects
from archiver.policy.speculative import is_unnamed

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
CLAIM_COLUMNS = f"""
SELECT urls.id, urls.url, urls.host, urls.hop, urls.path, urls.depth, urls.off_scope_hops,
       urls.tries - urls.tries_before, via.url, coalesce(seed.url, ''), urls.priority, urls.referrer, urls.language,
       {_CHAIN}
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
    number, address, host, hop, path, depth, hops, tries, via, seed, priority, policy, language, chain = row
    way = Hop(hop), path, depth, hops, tries, via, seed, priority
    said = _POLICIES.get(policy, ""), _referrer(path, address, via, chain)
    return Claim(number, address, host, *way, *said, language)


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
