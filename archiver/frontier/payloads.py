"""Which payloads are stored already, asked of crawl.db by the threads that write the archive: one question for a batch.

The connection is its own and only reads, so it neither waits for the frontier nor holds it up. What it finds is
committed, and a commit comes after the sync of the files: whatever is named here is on disk.
"""

import json
import logging
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from archiver.disk import bare
from archiver.errors import ArchiveError
from archiver.frontier import trouble, trust
from archiver.frontier.readonly import REVISITS_SINCE, connected, version_of

MOST = 6  # places named of one payload, the newest first: some may be coded otherwise, or damaged since

# As in the index `captures_payload`. The answer is one row, because a thread that waits for its next row may wait long
# for its turn. Rows of the same end of a digest are the same payload, but for one in some hundred.
_FIND = f"""
SELECT json_group_array(json_array(payload_digest, payload_length, captures.status, urls.url, warcs.name, offset))
FROM json_each(?) AS wanted CROSS JOIN captures ON captures.id IN (
    SELECT id FROM captures AS near WHERE substr(near.payload_digest, -8) = substr(wanted.value, -8)
       AND near.revisit = '' AND near.truncated = '' AND near.payload_length > 0 AND near.status / 100 <> 3
    ORDER BY id DESC LIMIT {MOST}
)
CROSS JOIN urls ON urls.id = captures.url CROSS JOIN warcs ON warcs.id = captures.warc
WHERE payload_digest = wanted.value
"""  # noqa: S608 - a constant above

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """A response whose record lies in the archive."""

    digest: str  # of its payload
    length: int
    status: int
    url: str
    warc: str  # the final name
    offset: int


class Payloads:
    """The payloads of one crawl. To be used by one thread at a time.

    *at_rest*: nobody writes to its database. One that is damaged, or of an older version, says nothing then.
    """

    def __init__(self, path: Path, *, at_rest: bool = False) -> None:
        self._path = path
        self._at_rest = at_rest
        self._db: sqlite3.Connection | None = None
        self._silent = False

    def find(self, digests: Collection[str]) -> list[Place]:
        """Responses with a payload of one of *digests*, a few of each, those that were stored last first."""
        if self._silent:
            return []
        try:
            if self._db is None:
                self._db = connected(self._path, at_rest=self._at_rest)
                trust.check(self._db, self._path)
                self._silent = version_of(self._db) < REVISITS_SINCE
                return self.find(digests)
            (found,) = self._db.execute(_FIND, (json.dumps(list(digests)),)).fetchone()
        except sqlite3.Error as error:
            if self._at_rest:
                self._silent = True  # its payloads are stored once more, which no crawl need end for
                log.warning("%s cannot be read, its payloads are not looked for: %s", self._path, error)
                return []
            raise ArchiveError(f"{self._path}: {trouble.words(error, self._path)}") from error
        places = [Place(*row) for row in json.loads(found)]
        for place in places:
            bare(place.warc, self._path)
        return places

    def close(self) -> None:
        """No more questions."""
        if self._db is not None:
            self._db.close()
            self._db = None
