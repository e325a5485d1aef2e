"""Pages that a site keeps out of search engines (`noindex`): edit forms, histories, a list in another order. Pure.

Wikis, blogs and trackers say this themselves about what is no content of its own. Such pages cost most requests of a
crawl: a wiki of 300 pages has 20,000 of them. So they go behind the other pages of their site. They are not held: there
are sites that keep all their pages out.
"""

import re
from collections.abc import Iterable

from archiver.policy.url_forms import likeness

ENOUGH = 5  # pages of a pattern or directory, before it counts as unlisted
MOST = 20  # unlisted pages for each other one
MOST_PLACES = 20_000  # patterns and directories; the least recently seen is forgotten
HEAD = 32 << 10  # bytes of a page that are searched for the end of its head …
NO_HEAD = 8 << 10  # … and those that are read if there is none

_META = re.compile(rb"<meta\s[^>]{0,500}")


def is_unlisted(page: bytes, headers: Iterable[str] = ()) -> bool:
    """Return True if a *page*, or one of its X-Robots-Tag *headers*, asks search engines to leave it out."""
    if any("noindex" in value.lower() for value in headers):
        return True
    end = page.find(b"</head", 0, HEAD)
    head = page[: end if end >= 0 else NO_HEAD].lower()
    if b"noindex" not in head:
        return False
    return any(b"noindex" in tag and b"robots" in tag for tag in _META.findall(head))


class UnlistedPages:
    """Counts unlisted and other pages by their URL pattern and directory. Not thread-safe."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}
        self._any = False

    def saw(self, address: str, *, unlisted: bool) -> None:
        """Count an archived page."""
        self._any = self._any or unlisted
        for place in _places(address):
            hidden, shown = self._places.pop(place, (0, 0))
            self._places[place] = (hidden + unlisted, shown + (not unlisted))
        while len(self._places) > MOST_PLACES:
            del self._places[next(iter(self._places))]

    def likely(self, address: str) -> bool:
        """Return True if *address* is most likely unlisted, by the pages of its pattern or else of its directory."""
        for place in _places(address) if self._any else ():
            hidden, shown = self._places.get(place, (0, 0))
            if hidden + shown >= ENOUGH:
                return hidden >= MOST * shown
        return False


def _places(address: str) -> tuple[str, str]:
    """Return the pattern and the directory of *address*: the more exact one first."""
    return likeness(address).pattern, address.partition("?")[0].rpartition("/")[0] + "/*"
