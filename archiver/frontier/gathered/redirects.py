"""Where the redirects of a crawl lead, which is in the notes on their URLs."""

import re
from collections.abc import Mapping

from archiver.frontier.connection import Reader
from archiver.frontier.gathered import ERRORS

MOVED = "redirects to "  # in the note on a URL; its target follows, up to a space
_AFTER = f"substr(urls.note, instr(urls.note, '{MOVED}') + {len(MOVED)})"
TARGET = f"substr({_AFTER}, 1, instr({_AFTER} || ' ', ' ') - 1)"  # of a redirect

MOST_MOVES = 20  # redirects in a row that are followed from a seed
_MOVED_SEEDS = """
SELECT urls.id, urls.url, status, note FROM seeds CROSS JOIN urls ON urls.id = seeds.url
WHERE urls.state = 'archived' AND urls.status BETWEEN 300 AND 399 ORDER BY position
"""
_MOVED_TO = "SELECT url, state, status, failure, note FROM urls WHERE url = ?"
_REVISITS = "SELECT 1 FROM captures WHERE url = ? AND revisit <> '' LIMIT 1"
NO_STATUS = "no usable status"
LOWEST = 100  # of all statuses; browsers show an error for a smaller one, as for a response without any, which is 0
_NOTED_TARGET = re.compile(rf"{MOVED}(\S+?)(?:, not followed \((.*)\)|[,;] .*)?$")


def is_usable(status: int) -> bool:
    """Return True if browsers show what came with *status*, or follow it."""
    return 200 <= status < ERRORS


def status_words(status: int) -> str:
    """Return *status* in words."""
    return f"status {status}" if status >= LOWEST else NO_STATUS


def lost_redirects(db: Reader, followed: Mapping[int, int]) -> dict[int, tuple[str, str]]:
    """Return where the redirects of seeds end that lead to nothing usable, and why; *followed*: the URLs of each."""
    seeds = db.execute(_MOVED_SEEDS).fetchall()
    ends = ((row, _lost(db, (row, *answer), followed.get(row, 0))) for row, *answer in seeds)
    return {row: end for row, end in ends if end is not None}


def _lost(db: Reader, seed: tuple[int, str, int, str], followed: int) -> tuple[str, str] | None:
    """Return where the redirects of a *seed* end, and why that is not usable; None if it is, or may become so."""
    row, address, status, note = seed
    if status == 304:
        return None if db.execute(_REVISITS, (row,)).fetchone() else (address, "status 304 without a stored version")
    for moves in range(MOST_MOVES):
        if "redirect loop" in note:
            return address, "a redirect loop"
        named = _NOTED_TARGET.search(note)
        if named is None:  # browsers show the body of such a response, which may have links
            return (address, f"status {status} without a usable Location") if followed <= moves else None
        found = db.execute(_MOVED_TO, (named[1],)).fetchone()
        if found is None:
            return named[1], named[2] or "it was not requested"
        address, state, status, failure, note = found
        if state in {"waiting", "held"} or (state == "archived" and (200 <= status < 300 or status == 304)):
            return None
        if state != "archived" or not is_usable(status):
            return address, failure or status_words(status)
    return address, "a redirect loop"
