"""Which payloads are stored already, asked of crawl.db by the threads that write the archive: one question for a batch.

The connection is its own and only reads, so it neither waits for the frontier nor holds it up. What it finds is
committed, and a commit comes after the sync of the files: whatever is named here is on disk.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from archiver.errors import ArchiveError
from archiver.frontier import trouble

MOST = 3  # places named of one payload, the newest first: one of them may have been damaged since
_BUSY = 10.0  # seconds to wait for a moment of the crawl's own transactions

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


class Place(NamedTuple):
    """A response whose record lies in the archive."""

    digest: str  # of its payload
    length: int
    status: int
    url: str
    warc: str  # the final name
    offset: int


class Payloads:
    """The payloads of one crawl, and of *earlier* ones of its collection, newest first. For one thread at a time."""

    def __init__(self, path: Path, earlier: Sequence[Path] = ()) -> None:
        self._modes = {path: "mode=ro"} | dict.fromkeys(earlier, "mode=ro&immutable=1")
        self._dbs: dict[Path, sqlite3.Connection] = {}

    def find(self, digests: Collection[str]) -> list[Place]:
        """Responses with a payload of one of *digests*, a few of each, those that were stored last first."""
        found: list[Place] = []
        missing = set(digests)
        for path in self._modes:
            if missing:
                found += self._find(path, missing)
                missing -= {place.digest for place in found}
        return found

    def _find(self, path: Path, digests: Collection[str]) -> list[Place]:
        try:
            if path not in self._dbs:
                self._dbs[path] = _connected(path, self._modes[path])
            (found,) = self._dbs[path].execute(_FIND, (json.dumps(list(digests)),)).fetchone()
        except sqlite3.Error as error:
            raise ArchiveError(f"{path}: {trouble.words(error, path)}") from error
        return [Place(*row) for row in json.loads(found)]

    def close(self) -> None:
        """No more questions."""
        for db in self._dbs.values():
            db.close()
        self._dbs.clear()


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    where = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(where, uri=True, timeout=_BUSY, isolation_level=None, check_same_thread=False)
