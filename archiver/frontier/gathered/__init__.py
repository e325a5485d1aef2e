"""What several figures of a report need of the tables of URLs and captures, gathered by one pass for all of them.

The results are temporary tables of the connection, so they are as old as its transaction. Rows are counted in groups
without sorting them, which would take as long again as reading them. The URLs that lists are about, such as failures,
are remembered by their rows, because a table has many more that were archived without a remark.
"""

from archiver.frontier.connection import Reader
from archiver.http.chunked import CHUNK_FAULT
from archiver.model import Profile, Truncation
from archiver.policy.retry import CODING_FAULT, CUT, PART_FAULT, cut_note

ERRORS = 400  # the first status of an error
DEEPEST = 12  # deeper URLs are counted together
STATES = ("archived", "failed", "excluded", "waiting", "held")
KINDS = ("rules", "page", "requisite", "guess", "sitemap")
# A guess with the name of a page is one link farther from the seed than its source. If it exists, it is a page.
_PAGE_AFTER_ALL = """
urls.status BETWEEN 200 AND 399 AND urls.depth > (SELECT above.depth FROM urls AS above WHERE above.id = urls.via)
"""
KIND = f"""
CASE WHEN urls.priority < 0 THEN 0 ELSE CASE substr(urls.path, -1) WHEN 'L' THEN 1 WHEN 'E' THEN 2 ELSE
     CASE substr(rtrim(urls.path, 'R'), -1) WHEN 'L' THEN 1 WHEN 'E' THEN 2 WHEN '' THEN 1
     WHEN 'X' THEN CASE WHEN {_PAGE_AFTER_ALL} THEN 1 ELSE 3 END ELSE 4 END END END
"""  # a place in `KINDS`; most paths do not end with a redirect, which takes longer

_STATE = " ".join(f"WHEN '{name}' THEN {place}00" for place, name in enumerate(STATES))
# One number with a digit for each property and the seed before them: SQLite finds a row by a number in half the time
_ALIKE = f"""
coalesce(urls.seed, 0) * 1000000000 + urls.status * 1000000
+ CASE WHEN urls.depth < {DEEPEST} THEN urls.depth ELSE {DEEPEST} END * 10000 + ({KIND}) * 1000
+ CASE urls.state {_STATE} ELSE 900 END + CASE WHEN urls.hop = 'E' THEN 1 ELSE 0 END
+ CASE WHEN urls.path = '' THEN 2 ELSE 0 END + CASE WHEN urls.id = urls.seed THEN 4 ELSE 0 END
"""
SEED_OF, STATUS_OF, DEPTH_OF, KIND_OF, STATE_OF, BITS_OF = (
    "(alike / 1000000000)",
    "(alike / 1000000 % 1000)",
    "(alike / 10000 % 100)",
    "(alike / 1000 % 10)",
    "(alike / 100 % 10)",
    "(alike % 10)",
)
IS_REQUISITE = f"{BITS_OF} IN (1, 3, 5, 7)"
HAS_PATH = f"{BITS_OF} IN (0, 1, 4, 5)"
IS_NO_SEED = f"{BITS_OF} < 4"
_GROUPS = "CREATE TEMP TABLE IF NOT EXISTS url_figures (alike INTEGER PRIMARY KEY, urls BIGINT NOT NULL)"
_COUNT = f"""
INSERT INTO temp.url_figures AS groups SELECT {_ALIKE}, 1 FROM urls WHERE failure = ''
ON CONFLICT (alike) DO UPDATE SET urls = groups.urls + 1
"""  # noqa: S608 - constants
_FAILED_GROUPS = """
CREATE TEMP TABLE IF NOT EXISTS failure_figures (
    alike BIGINT NOT NULL, failure TEXT NOT NULL, urls BIGINT NOT NULL, PRIMARY KEY (alike, failure)
) WITHOUT ROWID
"""
URL_FIGURES = """
(SELECT alike, '' AS failure, urls FROM temp.url_figures
 UNION ALL SELECT alike, failure, urls FROM temp.failure_figures) AS figures
"""

PROFILES = ("", *(each.value for each in Profile))  # "" of a response; revisits of others have a place behind them
IDENTICAL, UNMODIFIED = PROFILES.index(Profile.IDENTICAL), PROFILES.index(Profile.NOT_MODIFIED)
_PROFILE = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(PROFILES))
_ANSWERS = """
CREATE TEMP TABLE IF NOT EXISTS answer_figures (
    alike INTEGER PRIMARY KEY, captures BIGINT NOT NULL, received BIGINT NOT NULL, payload_length BIGINT NOT NULL,
    duration DOUBLE PRECISION NOT NULL
)
"""
_COUNT_ANSWERS = f"""
INSERT INTO temp.answer_figures AS groups
SELECT (captures.status * 1000000000000 + coalesce(urls.host, 0)) * 10
       + CASE captures.revisit {_PROFILE} ELSE {len(PROFILES)} END,
       1, received, payload_length, duration FROM captures LEFT JOIN urls ON urls.id = captures.url WHERE true
ON CONFLICT (alike) DO UPDATE SET captures = groups.captures + 1, received = groups.received + excluded.received,
    payload_length = groups.payload_length + excluded.payload_length, duration = groups.duration + excluded.duration
"""  # noqa: S608 - constants
ANSWER_STATUS, ANSWER_HOST, ANSWER_REVISIT = "(alike / 10000000000000)", "(alike / 10 % 1000000000000)", "(alike % 10)"

UNUSUAL = "temp.unusual CROSS JOIN urls ON urls.id = unusual.id"
_UNUSUAL = """
CREATE TEMP TABLE IF NOT EXISTS unusual (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, hop TEXT NOT NULL, noted BIGINT NOT NULL, failed BIGINT NOT NULL
)
"""
_REMEMBER = """
INSERT INTO temp.unusual
SELECT urls.id, urls.state, urls.hop, CASE urls.note WHEN '' THEN 0 ELSE 1 END,
       CASE urls.failure WHEN '' THEN 0 ELSE 1 END FROM urls
WHERE urls.state IN ('failed', 'excluded') OR urls.status >= 400 OR urls.note <> '' OR urls.failure <> ''
ORDER BY urls.id
"""
_COUNT_FAILED = f"""
INSERT INTO temp.failure_figures AS groups SELECT {_ALIKE}, urls.failure, 1 FROM {UNUSUAL} WHERE failed = 1
ON CONFLICT (alike, failure) DO UPDATE SET urls = groups.urls + 1
"""  # noqa: S608 - constants

_KNOWN_CUTS = sorted((*CUT, Truncation.LENGTH))  # where only the length is contradictory, the answer may be whole


def _noted(*notes: str) -> str:
    """Return the condition for URLs with one of these *notes*."""
    return "(" + " OR ".join(f"urls.note LIKE '{note}'" for note in notes) + ")"


def _faulty(word: str, before: str = "") -> tuple[str, str]:
    """Return the notes on responses with the fault *word*, alone or behind others."""
    return f"{before}malformed: {word}%", f"{before}malformed: %, {word}%"


TRUNCATED = _noted(
    *(f"{cut_note(why)}%" for why in _KNOWN_CUTS),
    *_faulty(CHUNK_FAULT, f"{cut_note(Truncation.UNSPECIFIED)}; "),
    *_faulty(PART_FAULT),
)
UNDECODABLE = _noted(*_faulty(CODING_FAULT))
INCOMPLETE = f"({TRUNCATED} OR {UNDECODABLE})"
MISSING = (
    "urls.hop IN ('E', 'R') AND (urls.state IN ('failed', 'excluded') OR urls.state = 'archived' AND "
    "urls.status >= 400) AND rtrim(urls.path, 'R') GLOB '*E'"
)  # a missing requisite
_MISSING_ROWS = """
CREATE TEMP TABLE IF NOT EXISTS missing (
    id INTEGER PRIMARY KEY, url TEXT NOT NULL, reason TEXT NOT NULL, page TEXT NOT NULL
)
"""
_REMEMBER_MISSING = f"""
INSERT INTO temp.missing
SELECT urls.id, urls.url, CASE WHEN urls.failure <> '' THEN urls.failure WHEN urls.status > 0
                          THEN 'status ' || urls.status ELSE urls.state END, page.url
FROM {UNUSUAL} JOIN urls AS page ON page.id = urls.via
WHERE unusual.hop IN ('E', 'R') AND {MISSING} AND page.state = 'archived' ORDER BY unusual.id
"""  # noqa: S608 - constants

_GATHERED = "CREATE TEMP TABLE IF NOT EXISTS gathered (name TEXT PRIMARY KEY)"


def count_urls(db: Reader) -> None:
    """Count the URLs by all their properties and their seed in `URL_FIGURES`, unless they are counted.

    URLs with a failure are few, and their groups have its word.
    """
    _gather(db, "url_figures", _GROUPS, _COUNT)
    find_unusual(db)
    _gather(db, "failure_figures", _FAILED_GROUPS, _COUNT_FAILED)


def count_answers(db: Reader) -> None:
    """Create temp.answer_figures, the captures counted by host, status and profile, unless it is there."""
    _gather(db, "answer_figures", _ANSWERS, _COUNT_ANSWERS)


def find_unusual(db: Reader) -> None:
    """Create temp.unusual unless it is there: URLs that were excluded, or have a failure, an error's status or a note.

    `UNUSUAL` joins them with their rows. A condition on columns of temp.unusual saves looking the others up.
    """
    _gather(db, "unusual", _UNUSUAL, _REMEMBER)


def find_missing(db: Reader) -> None:
    """Create temp.missing unless it is there: the missing requisites of archived pages, in order of discovery."""
    find_unusual(db)
    _gather(db, "missing", _MISSING_ROWS, _REMEMBER_MISSING)


def _gather(db: Reader, name: str, create: str, fill: str) -> None:
    """Create and fill the temporary table *name*, unless this connection has done so; it may be empty."""
    db.execute(_GATHERED)
    if db.execute("SELECT 1 FROM temp.gathered WHERE name = ?", (name,)).fetchone() is None:
        db.execute(create)
        db.execute(fill)
        db.execute("INSERT INTO temp.gathered VALUES (?)", (name,))
