"""A part of a crawl: the URLs of one host, or those found from one seed. Every figure can be asked about it alone.

`select` gathers the rows of the part in temporary tables of the connection. The statements of the reports stay as they
are: a table that they name without an alias is the part, and one with an alias (`urls AS above`) is the whole. So a
broken page of a host is listed with pages of other hosts that link to it.
"""

import re
from dataclasses import dataclass
from typing import Any

from archiver import url
from archiver.errors import ConfigError
from archiver.frontier.connection import Cursor, Reader
from archiver.frontier.retry import named_hosts, names_of
from archiver.humanize import printable

_OWN = re.compile(
    r"\b(FROM|JOIN) (urls|hosts|seeds|captures|warcs|refusals|refusal_counts|views)\b(?! AS )(?: INDEXED BY \w+)?"
)
_URLS_OF_HOSTS = "SELECT id FROM urls WHERE host IN ({})"
_URLS_OF_SEED = "SELECT id FROM urls WHERE seed = {}"
_MADE = (
    "CREATE TEMP TABLE part AS {urls}",
    "CREATE UNIQUE INDEX temp.part_ids ON part (id)",
    "CREATE TEMP VIEW part_urls AS SELECT * FROM urls WHERE id IN (SELECT id FROM part)",
    """
    CREATE TEMP TABLE part_hosts AS
    SELECT hosts.id, hosts.key, hosts.blocked_since, hosts.paused,
           count(*) FILTER (WHERE urls.state = 'waiting') AS waiting,
           count(*) FILTER (WHERE urls.state = 'waiting') > 0 AS has_waiting,
           count(*) FILTER (WHERE urls.state = 'archived') AS archived,
           count(*) FILTER (WHERE urls.state = 'failed') AS failed,
           count(*) FILTER (WHERE urls.state = 'excluded') AS excluded,
           count(*) FILTER (WHERE urls.state = 'held') AS held
    FROM urls JOIN hosts ON hosts.id = urls.host WHERE urls.id IN (SELECT id FROM temp.part)
    GROUP BY hosts.id, hosts.key, hosts.blocked_since, hosts.paused
    """,
    "CREATE TEMP VIEW part_seeds AS SELECT * FROM seeds WHERE url IN (SELECT id FROM part)",
    "CREATE TEMP VIEW part_captures AS SELECT * FROM captures WHERE url IN (SELECT id FROM part)",
    "CREATE TEMP VIEW part_warcs AS SELECT * FROM warcs WHERE id IN (SELECT warc FROM part_captures)",
    "CREATE TEMP VIEW part_refusals AS SELECT * FROM refusals WHERE via IN (SELECT id FROM part)",
    "CREATE TEMP VIEW part_refusal_counts AS SELECT * FROM refusal_counts WHERE {refusals}",
    "CREATE TEMP VIEW part_views AS SELECT * FROM views WHERE url IN (SELECT id FROM part)",
)


@dataclass(frozen=True, slots=True)
class CrawlPart:
    """The part of a crawl that a person wants to see: one host or one seed."""

    host: str = ""  # a name, a name with a port, or an origin
    seed: str = ""  # its canonical URL

    def __bool__(self) -> bool:
        """Return False for the whole crawl."""
        return bool(self.host or self.seed)

    @property
    def title(self) -> str:
        """The words for it."""
        return f"host {self.host}" if self.host else f"seed {self.seed}" if self.seed else ""

    def has(self, address: str, seed: str) -> bool:
        """Return True if the URL *address*, found from *seed*, belongs to it."""
        if self.host:
            return self.host.lower().rstrip("/") in names_of(url.origin(address))
        return not self.seed or seed == self.seed


WHOLE = CrawlPart()


class PartReader:
    """A connection whose statements are about a part of the crawl."""

    def __init__(self, whole: Reader) -> None:
        self.whole = whole

    def execute(self, sql: str, values: Any = (), /) -> Cursor:
        """Execute *sql* and return its cursor."""
        return self.whole.execute(_of_part(sql), values)


def whole(db: Reader) -> Reader:
    """Return the connection to the whole crawl, a part of which *db* may be."""
    return db.whole if isinstance(db, PartReader) else db


def _of_part(sql: str) -> str:
    return _OWN.sub(r"\1 temp.part_\2 AS \2", sql)


def select(db: Reader, part: CrawlPart) -> Reader:
    """Return a connection on which statements are about *part* of the crawl in *db*; once for each connection.

    Raises `ConfigError` if the crawl does not know the host or the seed.
    """
    if not part:
        return db
    if part.host:
        rows = named_hosts(iter(db.execute("SELECT id, key FROM hosts")), [part.host])
        if not rows:
            raise ConfigError(
                f"--host {printable(part.host)}: not a host of this crawl; write it like example.org, example.org:8443 "
                "or http://example.org"
            )
        _make(db, _URLS_OF_HOSTS.format(", ".join(map(str, rows))), "host IN (SELECT key FROM part_hosts)")
        return PartReader(db)
    row = db.execute(
        "SELECT id FROM urls JOIN seeds ON seeds.url = urls.id WHERE urls.url = ?", (part.seed,)
    ).fetchone()
    if row is None:
        known = [each for (each,) in db.execute(_FIRST_SEEDS)]
        raise ConfigError(
            f"--seed {printable(part.seed)}: not a seed of this crawl; its seeds are {printable(', '.join(known), 300)}"
        )
    _make(db, _URLS_OF_SEED.format(int(row[0])), "1 = 0")  # refused links are counted by host, not by seed
    return PartReader(db)


_SEED = "SELECT urls.id FROM urls JOIN seeds ON seeds.url = urls.id WHERE urls.url = ?"
_FIRST_SEEDS = "SELECT urls.url FROM seeds CROSS JOIN urls ON urls.id = seeds.url ORDER BY position LIMIT 3"


def _make(db: Reader, urls: str, refusals: str) -> None:
    for statement in _MADE:
        db.execute(statement.replace("{urls}", urls).replace("{refusals}", refusals))
