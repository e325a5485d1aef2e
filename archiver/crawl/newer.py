"""Sitemaps say when a page has changed: what is newer than every capture of earlier crawls is asked for first.

A hint: it changes the order, and nothing is left out because of it. How a sitemap says it stands with the link.
"""

from archiver.earlier import Memory
from archiver.extract.entries import modified
from archiver.model import Hop, Links, Settlement
from archiver.scope.scope import PRIORITY_PAGE

MOST = 10_000  # entries of one sitemap that are looked up: a tenth of a second


def hurried(settlement: Settlement, links: Links, memory: Memory) -> Settlement:
    """*settlement*, in which pages that are newer than what *memory* has wait as seeds do, before all other pages."""
    dates = {link.url: date for link in links.links[:MOST] if link.hop is Hop.LINK and (date := modified(link.context))}
    if not dates:
        return settlement
    newer = {address for address, date in dates.items() if _is_newer(address, date, memory)}
    found = tuple(
        new._replace(priority=min(new.priority, PRIORITY_PAGE)) if new.url in newer else new for new in settlement.found
    )
    return settlement._replace(found=found)


def _is_newer(address: str, date: float, memory: Memory) -> bool:
    taken = memory.newest(address)
    return taken is None or date > taken.timestamp / 1e6
