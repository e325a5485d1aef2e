"""Pages that are alike: many with one body, or many that redirect to one place.

A site that blocks us, wants a login, or has lost its pages often says so with status 200 or with a redirect, in any
language. Nothing else shows it, and it may also be what the site is, so the verdict tells and a person looks. Of a
large crawl the newest captures are looked at, which takes the same time whatever its size.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from archiver.frontier.connection import Reader
from archiver.frontier.gathered import KIND
from archiver.frontier.gathered.redirects import MOVED, TARGET
from archiver.humanize import count, shortened

LOOKED_AT = 20_000  # captures
FEWEST = 10  # pages that are worth a word …
SHARE = 0.1  # … and of those looked at

_PAGES = f"""
FROM captures CROSS JOIN urls ON urls.id = captures.url
WHERE captures.id > (SELECT max(id) FROM captures) - {LOOKED_AT} AND urls.state = 'archived' AND urls.priority >= 0
AND captures.blocked = '' AND captures.language = '' AND ({KIND}) = 1
"""  # noqa: S608 - constants
_ALL = f"SELECT count(DISTINCT urls.id) {_PAGES}"
_OF_ONE_BODY = f"""
SELECT count(DISTINCT urls.id) AS pages, max(urls.id) {_PAGES} AND captures.status BETWEEN 200 AND 299
GROUP BY payload_digest ORDER BY pages DESC, payload_digest LIMIT 1
"""
_PLACE = f"substr({TARGET}, 1, instr({TARGET} || '?', '?') - 1)"  # without its query
_TO_ONE_PLACE = f"""
SELECT count(DISTINCT urls.id) AS pages, max(urls.id), {_PLACE} AS place {_PAGES}
AND captures.status BETWEEN 300 AND 399 AND urls.status = captures.status AND urls.note LIKE '%{MOVED}%'
GROUP BY place ORDER BY pages DESC, place LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class AlikePages:
    """Pages that are alike, and one of them."""

    urls: int
    looked_at: int  # pages
    example: str
    place: str = ""  # to which they redirect; "": they have one body

    @property
    def common(self) -> str:
        """What they have in common."""
        many = f"{self.urls} of {count(self.looked_at, 'page')}"
        return f"{many} redirect to one page" if self.place else f"{many} have the same content"

    @property
    def words(self) -> str:
        """The same, with an example."""
        place = f", {shortened(self.place)}" if self.place else ""
        return f"{self.common}{place}, such as {shortened(self.example)}"

    @property
    def command(self) -> str:
        """The command that shows them."""
        return "archiver urls DIR --status 3xx --why" if self.place else f"archiver get DIR {quote(self.example)}"


def alike(db: Reader) -> Iterator[AlikePages]:
    """Yield the most pages in *db* that have one body, and the most that redirect to one place, if they are many."""
    pages = int(db.execute(_ALL).fetchone()[0])
    for sql in (_OF_ONE_BODY, _TO_ONE_PLACE) if pages >= FEWEST else ():
        row = db.execute(sql).fetchone()
        if row is not None and row[0] >= max(FEWEST, SHARE * pages):
            (example,) = db.execute("SELECT url FROM urls WHERE id = ?", (row[1],)).fetchone()
            yield AlikePages(row[0], pages, example, *row[2:])
