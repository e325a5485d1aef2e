"""The runs of a crawl, and the outcomes of its URLs for the verdict.

A run that was killed has no end. Writing happens in the caller's transaction, reading on any connection. Memory is
bounded, and each query reads a table once.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from archiver.errors import Failure
from archiver.frontier import leases
from archiver.frontier.connection import Connection, Reader
from archiver.frontier.gathered import (
    ERRORS,
    HAS_PATH,
    INCOMPLETE,
    IS_REQUISITE,
    KIND,
    KIND_OF,
    KINDS,
    SEED_OF,
    STATE_OF,
    STATES,
    STATUS_OF,
    TRUNCATED,
    UNDECODABLE,
    UNUSUAL,
    URL_FIGURES,
    count_urls,
    find_missing,
    find_unusual,
)
from archiver.policy.speculative import FAULTY_SITEMAP

BEGIN = "INSERT INTO runs (started) VALUES (?)"
RELEASE = "UPDATE hosts SET paused = 0 WHERE paused = 1"
END = "UPDATE runs SET ended = ?, exit_code = ?, reason = ? WHERE id = (SELECT max(id) FROM runs)"
_OF_RULES = "(SELECT count(*) FROM urls WHERE priority < 0 AND state = '{}')"  # rows of robots.txt, by their index
COUNTS = f"""
SELECT coalesce(sum(waiting), 0), coalesce(sum(archived), 0) - {_OF_RULES.format("archived")},
       coalesce(sum(failed), 0) - {_OF_RULES.format("failed")},
       coalesce(sum(excluded), 0) - {_OF_RULES.format("excluded")},
       coalesce(sum(visited), 0), coalesce(sum(received), 0),
       (SELECT count(*) FROM seeds WHERE EXISTS (
            SELECT 1 FROM captures WHERE captures.url = seeds.url AND blocked = ''
                AND status BETWEEN 200 AND 399)), coalesce(sum(held), 0)
FROM hosts
"""  # noqa: S608 - constants
LAST = "SELECT started, coalesce(ended, 0), coalesce(exit_code, -1), reason FROM runs ORDER BY id DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the database knows it."""

    began: float  # seconds since the epoch
    ended: float  # 0: it is still running, or was killed
    code: int  # of model.ExitCode; -1 if it has not ended
    reason: str


def begin(db: Connection, now: float) -> None:
    """Record that a run begins. Hosts that were paused in the previous run may be asked again, and none is leased."""
    leases.clear(db)
    db.execute(BEGIN, (now,))
    db.execute(RELEASE)


def end(db: Connection, code: int, reason: str, now: float) -> None:
    """Record how the latest run ended."""
    db.execute(END, (now, code, reason))


def last(db: Reader) -> RunRow | None:
    """Return the latest run, None where no run is known."""
    row = db.execute(LAST).fetchone()
    return None if row is None else RunRow(*row)


EXAMPLES = 3
MOST_HOSTS = 1000  # that refuse us
MOST_SEEDS = 1000  # checked for pages that only scripts fill
FEW_PAGES = 5  # a crawl of a whole site has mostly more
REFUSING = (403, 429, 503)  # statuses by which a host may refuse us
_MICRO = 1_000_000

_GROUPS = f"""
SELECT {STATUS_OF} AS status, {KIND_OF} AS kind, {STATE_OF} AS state, failure, sum(urls) FROM {URL_FIGURES}
GROUP BY 1, 2, 3, failure ORDER BY 1, 2, 3, failure
"""  # noqa: S608 - constants
_LAST_IS_BLOCKED = """captures.blocked <> '' AND captures.status = urls.status
  AND captures.id = (SELECT max(newest.id) FROM captures AS newest WHERE newest.url = urls.id)"""
_BLOCKED = f"""
SELECT {KIND}, urls.status, count(*) FROM captures INDEXED BY captures_blocked
CROSS JOIN urls ON urls.id = captures.url
WHERE urls.state = 'archived' AND {_LAST_IS_BLOCKED}
GROUP BY 1, 2
"""  # noqa: S608 - constants
_CUT = f"""
SELECT {KIND}, urls.status, count(*) FROM {UNUSUAL}
WHERE noted = 1 AND unusual.state = 'archived' AND {{}} AND urls.status < 400
  AND NOT EXISTS (SELECT 1 FROM captures WHERE captures.url = urls.id AND {_LAST_IS_BLOCKED})
GROUP BY 1, 2
"""  # noqa: S608 - constants
_HOSTS = """
SELECT id, key, blocked_since, paused, waiting FROM hosts WHERE blocked_since > 0 OR id IN (
    SELECT urls.host FROM captures JOIN urls ON urls.id = captures.url WHERE captures.blocked <> ''
) ORDER BY blocked_since = 0, waiting DESC, key LIMIT ?
"""
_COURSE = f"""
SELECT urls.host, captures.status, captures.blocked, captures.timestamp, ({KIND}) = 1
FROM captures JOIN urls ON urls.id = captures.url
WHERE urls.host IN (SELECT value FROM json_each(?)) AND urls.priority >= 0 ORDER BY captures.id
"""  # noqa: S608 - constants
_LINKED = f"""
SELECT seed FROM (
    SELECT {SEED_OF} AS seed, coalesce(sum(urls) FILTER (WHERE {KIND_OF} = 1 AND {HAS_PATH}), 0) AS pages,
           coalesce(sum(urls) FILTER (WHERE {IS_REQUISITE}), 0) AS requisites
    FROM {URL_FIGURES} WHERE {SEED_OF} IN (SELECT url FROM seeds) GROUP BY 1
) AS linked WHERE pages <= 1 AND requisites > 0 ORDER BY seed LIMIT ?
"""  # noqa: S608 - constants
_LEFT_OUT = f"""
SELECT urls.url FROM {UNUSUAL} WHERE unusual.state = 'excluded' AND failure = 'trap' AND note LIKE 'speculative%'
UNION SELECT url FROM refusals WHERE rule LIKE 'speculative: % not there' OR rule LIKE 'speculative-per-%'
"""  # noqa: S608 - a constant
_SITEMAPS = f"""
SELECT urls.url, CASE WHEN failure <> '' THEN failure WHEN status >= {ERRORS} THEN 'status ' || status
                 ELSE replace(note, '{FAULTY_SITEMAP}', '') END
FROM {UNUSUAL} WHERE (noted = 1 AND note LIKE '%{FAULTY_SITEMAP}%') OR (unusual.hop IN ('M', 'R')
  AND rtrim(urls.path, 'R') GLOB '*M'
  AND (unusual.state = 'failed' OR status >= {ERRORS} OR {INCOMPLETE})) ORDER BY unusual.id
"""  # noqa: S608 - constants
_SCRIPTS = """
SELECT urls.seed, origin.url, count(DISTINCT urls.id) FROM urls JOIN captures ON captures.url = urls.id
JOIN urls AS origin ON origin.id = urls.seed
WHERE urls.seed IN (SELECT value FROM json_each(?)) AND urls.hop = 'E' AND urls.status BETWEEN 200 AND 299
  AND (captures.mime LIKE '%javascript%' OR captures.mime LIKE '%ecmascript%')
GROUP BY urls.seed, origin.url ORDER BY urls.seed
"""
_ALONE = f"""
SELECT origin.id, origin.url FROM seeds CROSS JOIN urls AS origin ON origin.id = seeds.url
WHERE EXISTS (
    SELECT 1 FROM urls JOIN captures ON captures.url = urls.id
    WHERE urls.seed = origin.id AND rtrim(urls.path, 'R') = '' AND urls.status BETWEEN 200 AND 299
      AND captures.mime IN ('text/html', 'application/xhtml+xml')
) AND NOT EXISTS (
    SELECT 1 FROM urls WHERE urls.seed = origin.id AND rtrim(urls.path, 'R') <> '' AND ({KIND}) = 1
) ORDER BY position
"""  # noqa: S608 - a constant
_REFUSED_OF = """
SELECT refusals.url FROM refusals JOIN urls AS above ON above.id = refusals.via
WHERE above.seed = ? AND rule LIKE 'scope: %' ORDER BY refusals.url LIMIT 1
"""
_HOOK_FAILED = (
    f"SELECT urls.url, note FROM {UNUSUAL} WHERE noted = 1 "  # noqa: S608 - a constant
    "AND (note LIKE 'hook % failed: %' OR note LIKE '%; hook % failed: %') ORDER BY unusual.id"
)
_EXAMPLE = (
    f"SELECT urls.url FROM {UNUSUAL} WHERE unusual.state = 'excluded' AND failure = ? AND priority >= 0 "  # noqa: S608 - a constant
    "ORDER BY unusual.id LIMIT 1"
)
_BY_ORDERS = (
    f"SELECT note, count(*) AS urls FROM {UNUSUAL} WHERE unusual.state = 'excluded' AND failure = ? "  # noqa: S608 - a constant
    "GROUP BY note ORDER BY count(*) DESC, note LIMIT ?"
)
_REFUSED_LINKS = """
SELECT above.seed, count(*) FROM refusals JOIN urls AS above ON above.id = refusals.via
WHERE above.seed IN (SELECT value FROM json_each(?)) GROUP BY above.seed
"""
_NARROW = "SELECT 1 FROM refusal_counts AS counts WHERE rule LIKE 'scope: page%' OR rule LIKE 'max-depth: 0%' LIMIT 1"


class OutcomeGroup(NamedTuple):
    """A group of URLs that the verdict counts together."""

    kind: str  # of KINDS
    state: str
    status: int  # of the last answer; 0: none, or one without a status line
    failure: str
    urls: int


@dataclass(frozen=True, slots=True)
class RefusingHost:
    """A host that refuses us, or has shown challenge or block pages."""

    key: str
    since: float  # seconds since the epoch: when the refusals began
    paused: bool
    waiting: int
    pages: int  # that it gave before
    answers: int  # since then …
    statuses: tuple[tuple[int, int], ...]  # … and of these the refusals: (status, answers)
    sign: str  # of the last refusal; "" if only the run of refusals shows the block

    @property
    def refused(self) -> int:
        """Return the number of answers since then that were refusals."""
        return sum(count for _, count in self.statuses)


@dataclass(frozen=True, slots=True)
class Examples:
    """A count, and the first few examples."""

    count: int = 0
    first: tuple[tuple[str, str], ...] = ()  # (URL, why)

    @classmethod
    def of(cls, found: Iterable[tuple[str, str]]) -> "Examples":
        """Return the number of *found*, and the first of them."""
        rest = iter(found)
        first = tuple(islice(rest, EXAMPLES))
        return cls(len(first) + sum(1 for _ in rest), first)


NONE = Examples()


@dataclass(slots=True)
class _Course:
    """The answers of one host, read in order."""

    since: float
    pages: int = 0
    answers: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    sign: str = ""

    def take(self, status: int, blocked: str, moment: float, *, page: bool) -> None:
        """Read one more answer."""
        refused = bool(blocked) or status in REFUSING
        if not self.since and blocked:
            self.since = moment
        if not self.since or moment < self.since:
            self.pages += page and not refused and status < 400
            return
        self.answers += 1
        if refused:
            self.statuses[status] += 1
            self.sign = blocked or self.sign


def groups(db: Reader) -> Iterator[OutcomeGroup]:
    """Return all URLs, counted by kind, state, status and failure: some hundred rows at most."""
    count_urls(db)
    for status, kind, state, failure, urls in db.execute(_GROUPS):
        if state < len(STATES):
            yield OutcomeGroup(KINDS[kind], STATES[state], status, failure, urls)


def blocked(db: Reader) -> list[tuple[str, int, int]]:
    """Return (kind, status, URLs) of the URLs whose last answer was a challenge or block page."""
    return [(KINDS[kind], status, urls) for kind, status, urls in db.execute(_BLOCKED)]


def truncated(db: Reader) -> list[tuple[str, int, int]]:
    """Return (kind, status, URLs) of the URLs whose last answer is incomplete, but no error and no block page."""
    find_unusual(db)
    return [(KINDS[kind], status, urls) for kind, status, urls in db.execute(_CUT.format(TRUNCATED))]


def undecodable(db: Reader) -> list[tuple[str, int, int]]:
    """Return the same of those whose last answer does not decode as its Content-Encoding says, or ends early."""
    find_unusual(db)
    return [(KINDS[kind], status, urls) for kind, status, urls in db.execute(_CUT.format(UNDECODABLE))]


def refusing(db: Reader) -> list[RefusingHost]:
    """Return the hosts that refuse us, or have shown challenge pages; those that are paused first."""
    rows = db.execute(_HOSTS, (MOST_HOSTS,)).fetchall()
    courses = {host: _Course(since) for host, _, since, _, _ in rows}
    if courses:
        for host, status, sign, moment, page in db.execute(_COURSE, (json.dumps(list(courses)),)):
            courses[host].take(status, sign, moment / _MICRO, page=bool(page))
    return [_refusing(row, courses[row[0]]) for row in rows]


def _refusing(row: tuple[int, str, float, int, int], course: _Course) -> RefusingHost:
    _, key, _, paused, waiting = row
    statuses = tuple(course.statuses.most_common())
    return RefusingHost(key, course.since, bool(paused), waiting, course.pages, course.answers, statuses, course.sign)


def missing(db: Reader) -> Examples:
    """Return the requisites of archived pages that are not there."""
    find_missing(db)
    (count,) = db.execute("SELECT count(*) FROM temp.missing").fetchone()
    first = db.execute("SELECT url, reason FROM temp.missing ORDER BY id LIMIT ?", (EXAMPLES,)).fetchall()
    return Examples(count, tuple(first))


def left_out(db: Reader) -> Examples:
    """Return what only scripts name and was not asked for, because most of what was asked for was not there."""
    find_unusual(db)
    return Examples.of((url, "") for (url,) in db.execute(_LEFT_OUT))


def refused_by(db: Reader, rule: str) -> Examples:
    """Return the links that *rule* refused."""
    links = int(db.execute("SELECT coalesce(sum(links), 0) FROM refusal_counts WHERE rule = ?", (rule,)).fetchone()[0])
    if not links:
        return NONE
    rows = db.execute("SELECT url FROM refusals WHERE rule = ? ORDER BY url LIMIT ?", (rule, EXAMPLES)).fetchall()
    return Examples(links, tuple((str(url), rule) for (url,) in rows))


def hook_failures(db: Reader) -> Examples:
    """Return the URLs for which a hook failed, and how."""
    find_unusual(db)
    return Examples.of(db.execute(_HOOK_FAILED))


def faulty_sitemaps(db: Reader) -> Examples:
    """Return the sitemaps that are missing or broken, and why: no other document may name their pages."""
    find_unusual(db)
    return Examples.of(db.execute(_SITEMAPS))


def example(db: Reader, failure: str) -> str:
    """Return the first URL that is excluded by *failure*."""
    find_unusual(db)
    row = db.execute(_EXAMPLE, (failure,)).fetchone()
    return row[0] if row else ""


def excluded_by_orders(db: Reader) -> list[tuple[str, int]]:
    """Return (note, URLs) of the rules by which a person excluded URLs that waited, most URLs first."""
    find_unusual(db)
    return list(db.execute(_BY_ORDERS, (Failure.RULE.value, EXAMPLES)))


def alone(db: Reader, counted: Iterable[OutcomeGroup]) -> list[tuple[str, str]]:
    """Return (seed, link) of the seeds whose page leads to no other page; *link*: one that the scope refused, or "".

    Nothing is said of a crawl with more than `FEW_PAGES` pages; *counted* are its `groups`.
    """
    pages = sum(each.urls for each in counted if each.kind == "page")
    if pages > FEW_PAGES or db.execute(_NARROW).fetchone():
        return []
    found = db.execute(_ALONE).fetchall()
    return [(seed, str((db.execute(_REFUSED_OF, (row,)).fetchone() or ("",))[0])) for row, seed in found]


def scripted(db: Reader) -> list[tuple[str, int]]:
    """Return (seed, scripts) of the seeds that name scripts and next to no links: a browser may show more there.

    Where the scope is single pages nothing is said, for no seed is to lead anywhere.
    """
    if db.execute(_NARROW).fetchone():
        return []
    count_urls(db)
    linked = [seed for (seed,) in db.execute(_LINKED, (MOST_SEEDS,))]
    if not linked:
        return []
    refused = dict(db.execute(_REFUSED_LINKS, (json.dumps(linked),)))
    thin = [seed for seed in linked if refused.get(seed, 0) <= 1]
    return [(url, scripts) for _, url, scripts in db.execute(_SCRIPTS, (json.dumps(thin),))]
