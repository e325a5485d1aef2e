"""What people left out of the queue, and the ready-made list by which they could leave out most of the rest.

So a person learns that after the last page of a wiki its forms and histories wait. Of the hosts with most waiting URLs
we look at those that go next and those that go last, so the share is an estimate. Nothing is left out by this: a person
decides, by the command that the verdict shows.
"""

from dataclasses import dataclass

from archiver.config.presets import SETS, WITHOUT
from archiver.frontier import outcomes
from archiver.frontier.connection import Reader
from archiver.frontier.orders.excluding import note_of

MOST_HOSTS = 5
LOOKED_AT = 400  # URLs of a host that go next, and as many that go last
FEWEST = 100  # waiting URLs that are worth a word
SHARE = 0.5  # of the waiting URLs; with less, they are not what a crawl still has to do

_HOSTS = "SELECT id, waiting FROM hosts WHERE waiting > 0 ORDER BY waiting DESC LIMIT ?"
_URLS = """
SELECT url FROM urls WHERE host = ? AND state = 'waiting' AND priority >= 0 ORDER BY priority {way}, id {way} LIMIT ?
"""
_NEXT, _LAST = _URLS.format(way="ASC"), _URLS.format(way="DESC")


@dataclass(frozen=True, slots=True)
class QueuedList:
    """An exclude list and how much of the queue it has."""

    name: str
    share: float  # of the waiting URLs, estimated
    example: str

    @property
    def words(self) -> str:
        """What most of the queue is."""
        return f"about {self.share:.0%} of the waiting URLs are on the exclude list {self.name}"

    @property
    def command(self) -> str:
        """The command that leaves them out."""
        return f"archiver exclude DIR {WITHOUT}{self.name}"


def excluded_by_people(db: Reader) -> tuple[tuple[str, int], ...]:
    """Return the regular expressions and lists of orders, and how many URLs each has excluded."""
    found = outcomes.excluded_by_orders(db)
    return tuple((note.removeprefix(note_of("")), urls) for note, urls in found if note.startswith(note_of("")))


def most_queued(db: Reader, waiting: int) -> QueuedList | None:
    """Return the list that has most of the URLs that wait in *db*, which are *waiting*; None if none has most."""
    if waiting < FEWEST:
        return None
    found = dict.fromkeys(SETS, 0.0)
    examples = dict[str, str]()
    for host, urls in db.execute(_HOSTS, (MOST_HOSTS,)).fetchall():
        rows = (row for way in (_NEXT, _LAST) for row in db.execute(way, (host, LOOKED_AT)).fetchall())
        seen = dict.fromkeys(str(row[0]) for row in rows)
        for name, known in SETS.items():
            hits = [address for address in seen if known.hits(address)]
            found[name] += int(urls) * len(hits) / max(len(seen), 1)
            examples[name] = examples.get(name) or next(iter(hits), "")
    name = max(found, key=lambda each: found[each])
    share = found[name] / waiting
    if share < SHARE or found[name] < FEWEST:
        return None
    return QueuedList(name, min(share, 1.0), examples[name])
