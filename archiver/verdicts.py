"""Verdicts: links that were taken, remembered by where they stood; most links of a page were on another page before.

Pure. A verdict is kept as long as nothing changes by which it was given. Bounded: some four megabytes where URLs are as
usual, twenty at most; what is not remembered is judged again, with the same result. Two threads may use it at once.
"""

from archiver.model import LINK_OUTSIDE, Claim, Hop, NewUrl

MOST = 16_384  # verdicts, after which all are forgotten …
MOST_PLACES = 64  # … as after so many kinds of places
LONGEST = 256  # characters of a URL that is remembered

_Place = tuple[Hop, str, int, int]


class Verdicts:
    """Remembers what was taken, while the grounds are the same objects, and the year the same."""

    def __init__(self) -> None:
        self._now: tuple[object, int, dict[_Place, dict[str, NewUrl]]] = (None, 0, {})

    def at(self, parent: Claim, grounds: object, year: int) -> tuple[dict[str, NewUrl], dict[str, NewUrl]]:
        """What is known of links to pages, and to what pages need, in the document of *parent*: URL to verdict."""
        if parent.strays >= LINK_OUTSIDE:  # there a verdict depends on the host of the page too
            return {}, {}
        known_grounds, known_year, places = self._now
        full = len(places) >= MOST_PLACES or sum(map(len, places.values())) >= MOST
        if known_grounds is not grounds or known_year != year or full:
            places = {}
            self._now = grounds, year, places  # all at once: another thread may ask
        where = parent.path, parent.depth, parent.strays
        return places.setdefault((Hop.LINK, *where), {}), places.setdefault((Hop.REQUISITE, *where), {})


def remember(known: dict[str, NewUrl], address: str, verdict: NewUrl) -> None:
    """Let *known* know that a link to *address* was taken, if there is room."""
    if len(address) <= LONGEST and len(known) < MOST:
        known[address] = verdict
