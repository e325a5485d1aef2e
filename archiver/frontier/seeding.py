"""Seeds: URLs that were given, not found. Runs inside its caller's transaction."""

from collections.abc import Sequence

from archiver import url
from archiver.frontier import again
from archiver.frontier.connection import Connection

ALL = "SELECT urls.url FROM seeds CROSS JOIN urls ON urls.id = seeds.url ORDER BY position"
BE_A_SEED = """
INSERT INTO urls (url, host, hop, path, depth, strays, priority, due)
VALUES (?, (SELECT id FROM hosts WHERE key = ?), 'L', '', 0, 0, 1, ?)
ON CONFLICT (url) DO UPDATE SET hop = 'L', path = '', depth = 0, strays = 0, priority = 1, via = NULL
WHERE state = 'waiting' AND priority >= 0 AND (hop, path, depth, strays, priority, via) IS NOT ('L', '', 0, 0, 1, NULL)
"""  # what is so already is not written: at a resume nothing is to be synced for it
HEAD_ITSELF = "UPDATE urls SET seed = id WHERE url = ? AND path = '' AND seed IS NOT id"
COUNT = "SELECT count(url) FROM seeds"
STAND = "INSERT OR IGNORE INTO seeds (url, position) VALUES ((SELECT id FROM urls WHERE url = ?), ?)"


def add(db: Connection, seeds: Sequence[str], due: float) -> int:
    """Make *seeds* known and waiting; how many were new. With *due*: not before; settled URLs wait again too."""
    if due:
        again.come_back_as_seeds(db, seeds, due)
    keys = sorted({url.origin(seed) for seed in seeds})
    db.executemany("INSERT OR IGNORE INTO hosts (key) VALUES (?)", [(key,) for key in keys])
    db.executemany(BE_A_SEED, [(seed, url.origin(seed), due) for seed in seeds])
    db.executemany(HEAD_ITSELF, [(seed,) for seed in seeds])
    (before,) = db.row(COUNT)
    db.executemany(STAND, [(seed, before + number) for number, seed in enumerate(seeds)])
    (after,) = db.row(COUNT)
    return int(after - before)
