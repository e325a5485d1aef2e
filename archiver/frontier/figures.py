"""The figures for reports and plots: queries of crawl.db, each with one pass over a table.

Figures of hosts and types that several reports need are gathered once, in a temporary table of the connection. The
file itself is only read. Long results are read row by row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from archiver.frontier.connection import Reader
from archiver.frontier.gathered import (
    ANSWER_HOST,
    ANSWER_REVISIT,
    DEPTH_OF,
    IDENTICAL,
    PROFILES,
    STATE_OF,
    STATES,
    STATUS_OF,
    UNMODIFIED,
    UNUSUAL,
    URL_FIGURES,
    count_answers,
    count_urls,
    find_missing,
    find_unusual,
)
from archiver.frontier.totals import Totals

MICRO = 1_000_000
SLICES = 96  # of a crawl's life, at most
SPEEDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds: where classes of response times end
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800)

_KINDS = (  # of media types, as people call them; the first match counts
    ("HTML", "mime IN ('text/html', 'application/xhtml+xml')"),
    ("images", "mime LIKE 'image/%'"),
    ("styles", "mime = 'text/css'"),
    ("scripts", "mime LIKE '%javascript%' OR mime LIKE '%ecmascript%' OR mime = 'application/wasm'"),
    ("fonts", "mime LIKE 'font/%' OR mime LIKE '%font%'"),
    ("audio and video", "mime LIKE 'video/%' OR mime LIKE 'audio/%' OR mime LIKE '%mpegurl' OR mime LIKE '%dash+xml'"),
    ("PDF and e-books", "mime IN ('application/pdf', 'application/epub+zip')"),
    ("data and text", "mime LIKE 'text/%' OR mime LIKE '%json' OR mime LIKE '%xml'"),
)
OTHERS = "others"
UNKNOWN = "unknown"
_KIND = " ".join(f"WHEN {rule} THEN '{name}'" for name, rule in _KINDS)
_SPEED = " ".join(f"WHEN duration <= {bound} THEN {place}" for place, bound in enumerate(SPEEDS))


@dataclass(frozen=True, slots=True)
class TimeSlices:
    """The life of a crawl, cut into slices of equal and round length."""

    begins: int  # seconds since the epoch, a multiple of `step`
    step: int  # seconds
    slices: int  # 0: there is no capture

    @classmethod
    def of(cls, totals: Totals) -> "TimeSlices":
        """The slices from the first capture to the last."""
        if not totals.captures:
            return cls(0, 1, 0)
        first, last = int(totals.first), int(totals.last)
        step = next((step for step in _STEPS if last // step - first // step < SLICES), 0)
        while not step or last // step - first // step >= SLICES:
            step = (step or _STEPS[-1]) * 2
        return cls(first // step * step, step, last // step - first // step + 1)


class CaptureGroup(NamedTuple):
    """Captures that the plots by time count together."""

    slice: int
    status: int  # first digit; 0 if it is not 2 to 5
    speed: int  # index in `SPEEDS` of the class of their response time; one past the last for slower ones
    captures: int
    received: int  # bytes as they crossed the wire


class HostFigures(NamedTuple):
    """All figures of one host."""

    key: str
    waiting: int
    archived: int
    failed: int
    excluded: int
    robots: int  # of the excluded: by its robots.txt
    captures: int
    received: int
    duration: float  # seconds, of all its answers together
    identical: int  # captures whose payload was stored already …
    identical_bytes: int  # … and the bytes received for them
    unmodified: int  # captures with the answer 304
    unmodified_bytes: int


class TruncatedCapture(NamedTuple):
    """A truncated capture."""

    url: str
    status: int
    received: int
    why: str  # a word of model.Truncation
    timestamp: int  # microseconds since the epoch


class MissingRequisite(NamedTuple):
    """A missing requisite of an archived page."""

    url: str
    reason: str
    page: str  # that needs it


class SeedFigures(NamedTuple):
    """A seed, and where it led."""

    url: str
    state: str
    status: int
    failure: str
    note: str
    moved: str  # where its redirect led, if that was accepted; or ""


_SLICES = """
CREATE TEMP TABLE IF NOT EXISTS slice_figures (
    alike INTEGER PRIMARY KEY, captures BIGINT NOT NULL, received BIGINT NOT NULL
)
"""
_COUNT_SLICES = f"""
INSERT INTO temp.slice_figures AS groups
SELECT (timestamp - ?) / ? * 100 + CASE WHEN status BETWEEN 200 AND 599 THEN status / 100 ELSE 0 END * 10
       + CASE {_SPEED} ELSE {len(SPEEDS)} END, 1, received FROM captures WHERE true
ON CONFLICT (alike) DO UPDATE SET captures = groups.captures + 1, received = groups.received + excluded.received
"""  # noqa: S608 - constants; one number is compared fast


def answered(db: Reader, span: TimeSlices) -> Iterator[CaptureGroup]:
    """Yield all captures, grouped as the plots need them: at most some thousands of rows, from one pass."""
    db.execute(_SLICES)
    db.execute("DELETE FROM temp.slice_figures")
    db.execute(_COUNT_SLICES, (span.begins * MICRO, span.step * MICRO))
    for alike, captures, received in db.execute("SELECT alike, captures, received FROM temp.slice_figures"):
        yield CaptureGroup(alike // 100, alike // 10 % 10, alike % 10, captures, received)


def failed(db: Reader, span: TimeSlices) -> list[tuple[int, int]]:
    """Return (slice, URLs that failed in it). A slice may be before the first answer or after the last."""
    find_unusual(db)
    return list(
        db.execute(
            f"SELECT (CAST(coalesce(settled, 0) AS INTEGER) - ?) / ? AS slice, count(*) FROM {UNUSUAL} "  # noqa: S608 - a constant
            "WHERE unusual.state = 'failed' GROUP BY slice",
            (span.begins, span.step),
        )
    )


def depths(db: Reader) -> Iterator[tuple[int, str, int]]:
    """Yield (depth, state, URLs). URLs deeper than `DEEPEST` count as that depth."""
    count_urls(db)
    question = f"SELECT {DEPTH_OF}, {STATE_OF}, sum(urls) FROM {URL_FIGURES} GROUP BY 1, 2 ORDER BY 1, 2"  # noqa: S608 - constants
    for depth, state, urls in db.execute(question):
        yield depth, STATES[state], urls


def _gather_types(db: Reader) -> None:
    """Create a temporary table of media types, if there is none yet."""
    db.execute(
        "CREATE TEMP TABLE IF NOT EXISTS type_figures AS "
        "SELECT mime, count(*) AS captures, sum(received) AS received FROM captures GROUP BY mime"
    )


def media_types(db: Reader) -> Iterator[tuple[str, int, int]]:
    """Yield (media type, captures, bytes), most frequent first."""
    _gather_types(db)
    yield from db.execute("SELECT mime, captures, received FROM temp.type_figures ORDER BY captures DESC, mime")


def kinds(db: Reader) -> list[tuple[str, int, int]]:
    """Return (kind of media types, captures, bytes), most bytes first."""
    _gather_types(db)
    return list(
        db.execute(
            f"SELECT CASE {_KIND} ELSE '{OTHERS}' END AS kind, sum(captures), sum(received) AS size "  # noqa: S608 - constants
            "FROM temp.type_figures GROUP BY kind ORDER BY size DESC, kind"
        )
    )


_HOSTS = f"""
CREATE TEMP TABLE IF NOT EXISTS host_figures AS
WITH rules AS (
    SELECT host, count(*) FILTER (WHERE state = 'archived') AS archived,
           count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE state = 'excluded') AS excluded
    FROM urls WHERE priority < 0 GROUP BY host
), denied AS (
    SELECT host, count(*) AS robots FROM {UNUSUAL}
    WHERE unusual.state = 'excluded' AND failure = 'robots' GROUP BY host
), answered AS (
    SELECT CAST({ANSWER_HOST} AS BIGINT) AS host,  -- SQLite makes no index of a number whose type it does not know
           sum(captures) AS captures, sum(received) AS received, sum(duration) AS duration,
           sum(captures) FILTER (WHERE {ANSWER_REVISIT} = {IDENTICAL}) AS identical,
           sum(received) FILTER (WHERE {ANSWER_REVISIT} = {IDENTICAL}) AS identical_bytes,
           sum(captures) FILTER (WHERE {ANSWER_REVISIT} = {UNMODIFIED}) AS unmodified,
           sum(received) FILTER (WHERE {ANSWER_REVISIT} = {UNMODIFIED}) AS unmodified_bytes
    FROM temp.answer_figures GROUP BY 1
)
SELECT key, waiting, hosts.archived - coalesce(rules.archived, 0) AS archived,
       hosts.failed - coalesce(rules.failed, 0) AS failed, hosts.excluded - coalesce(rules.excluded, 0) AS excluded,
       coalesce(denied.robots, 0) AS robots, coalesce(captures, 0) AS captures,
       coalesce(answered.received, 0) AS received, coalesce(duration, 0.0) AS duration,
       coalesce(identical, 0) AS identical, coalesce(identical_bytes, 0) AS identical_bytes,
       coalesce(unmodified, 0) AS unmodified, coalesce(unmodified_bytes, 0) AS unmodified_bytes
FROM hosts LEFT JOIN denied ON denied.host = hosts.id
LEFT JOIN answered ON answered.host = hosts.id LEFT JOIN rules ON rules.host = hosts.id
"""  # noqa: S608 - constants


def _gather_hosts(db: Reader) -> None:
    """Create the temporary table of hosts, if there is none yet."""
    find_unusual(db)
    count_answers(db)
    db.execute(_HOSTS)


def hosts(db: Reader) -> Iterator[HostFigures]:
    """Yield the hosts, those with most captures first."""
    _gather_hosts(db)
    for row in db.execute("SELECT * FROM temp.host_figures ORDER BY captures DESC, waiting DESC, key"):
        yield HostFigures(*row)


_AUTHORITY = "substr(key, instr(key, '://') + 3)"
_PORTLESS = f"rtrim({_AUTHORITY}, '0123456789')"
_NAME = f"CASE WHEN {_PORTLESS} LIKE '%:' THEN substr({_PORTLESS}, 1, length({_PORTLESS}) - 1) ELSE {_AUTHORITY} END"
_SUMS = ", ".join(f"sum({name}) AS {name}" for name in HostFigures._fields[1:])


def named_hosts(db: Reader) -> Iterator[HostFigures]:
    """Yield the hosts by name alone: http, https and all ports of a name count as one host."""
    _gather_hosts(db)
    question = (
        f"SELECT {_NAME} AS name, {_SUMS} FROM temp.host_figures GROUP BY name "  # noqa: S608 - constants
        "ORDER BY captures DESC, waiting DESC, name"
    )
    for row in db.execute(question):
        yield HostFigures(*row)


def slowest_hosts(db: Reader, most: int) -> Iterator[HostFigures]:
    """Yield the *most* hosts with the slowest answers on average."""
    _gather_hosts(db)
    question = "SELECT * FROM temp.host_figures WHERE captures > 0 ORDER BY duration / captures DESC, key LIMIT ?"
    for row in db.execute(question, (most,)):
        yield HostFigures(*row)


def largest_hosts(db: Reader, most: int) -> list[HostFigures]:
    """Return the *most* hosts with most bytes received, and after them the sum of all others with key ""."""
    _gather_hosts(db)
    rows = list(db.execute("SELECT * FROM temp.host_figures ORDER BY received DESC, key LIMIT ?", (most,)))
    count, *whole = db.execute(f"SELECT count(*), {_SUMS} FROM temp.host_figures").fetchone()  # noqa: S608 - constants
    if count > len(rows):
        rest = [total - sum(row[place] for row in rows) for place, total in enumerate(whole, 1)]
        rows.append(("", *rest))
    return [HostFigures(*row) for row in rows]


def host_count(db: Reader) -> int:
    """Return the number of hosts that the crawl has met."""
    return int(db.execute("SELECT count(id) FROM hosts").fetchone()[0])


_REVISITS = f"""
SELECT {ANSWER_REVISIT}, sum(captures), sum(received), sum(payload_length) FROM temp.answer_figures
WHERE {ANSWER_REVISIT} > 0 GROUP BY 1
"""  # noqa: S608 - constants


def revisits(db: Reader) -> list[tuple[str, int, int, int]]:
    """Return (profile, captures, bytes received for them, bytes of payload not stored again).

    Revisits with a profile that this version does not know count together, as `UNKNOWN`.
    """
    count_answers(db)
    rows = db.execute(_REVISITS).fetchall()
    names = (*PROFILES, UNKNOWN)
    return sorted((names[place], captures, received, length) for place, captures, received, length in rows)


def truncated(db: Reader) -> Iterator[TruncatedCapture]:
    """Yield the truncated captures, in the order of their commits."""
    rows = db.execute(
        "SELECT urls.url, captures.status, received, truncated, timestamp FROM captures "
        "JOIN urls ON urls.id = captures.url WHERE truncated <> '' ORDER BY captures.id"
    )
    for row in rows:
        yield TruncatedCapture(*row)


def missing_requisites(db: Reader) -> Iterator[MissingRequisite]:
    """Yield the missing requisites of archived pages, in order of discovery.

    A redirect on the way counts as the requisite. URLs that only a script names, and URLs that wait, are left
    out.
    """
    find_missing(db)
    for row in db.execute("SELECT url, reason, page FROM temp.missing ORDER BY id"):
        yield MissingRequisite(*row)


class BrokenUrl(NamedTuple):
    """A page of the site without a usable response."""

    url: str
    status: int  # 0: no response
    failure: str  # why there is none, or ""
    via: str  # the page that named it first


def broken_pages(db: Reader) -> Iterator[BrokenUrl]:
    """Yield the pages that answered 4xx or 5xx, or did not answer, in order of discovery.

    A redirect on the way counts as the page.
    """
    find_unusual(db)
    rows = db.execute(
        f"SELECT urls.url, urls.status, CASE urls.state WHEN 'failed' THEN urls.failure ELSE '' END, "  # noqa: S608 - a constant
        f"coalesce(above.url, '') FROM {UNUSUAL} LEFT JOIN urls AS above ON above.id = urls.via "
        "WHERE (urls.state = 'archived' AND urls.status >= 400 OR urls.state = 'failed') AND urls.priority >= 0 "
        "AND substr(rtrim(urls.path, 'R'), -1) IN ('', 'L') ORDER BY unusual.id"
    )
    for row in rows:
        yield BrokenUrl(*row)


def pages_stored(db: Reader, most: int) -> Iterator[tuple[str, str, int, int]]:
    """Yield (URL, WARC file, offset and length of the metadata record) of the first *most* captures of pages."""
    yield from db.execute(
        "SELECT urls.url, warcs.name, offset + response_length + request_length, metadata_length FROM captures "
        "JOIN urls ON urls.id = captures.url JOIN warcs ON warcs.id = captures.warc "
        "WHERE metadata_length > 0 AND captures.status BETWEEN 200 AND 299 AND mime LIKE '%html%' "
        "ORDER BY captures.id LIMIT ?",
        (most,),
    )


def endings(db: Reader) -> list[tuple[str, str, int, int]]:
    """Return (state, failure, status, URLs) of the URLs that do not wait."""
    count_urls(db)
    rows = db.execute(
        f"SELECT {STATE_OF}, failure, {STATUS_OF}, sum(urls) FROM {URL_FIGURES} WHERE {STATE_OF} <> ? "  # noqa: S608 - constants
        "GROUP BY 1, failure, 3 ORDER BY 1, failure, 3",
        (STATES.index("waiting"),),
    )
    return [(STATES[state], failure, status, urls) for state, failure, status, urls in rows]


def seeds(db: Reader) -> Iterator[SeedFigures]:
    """Yield the seeds, in the order given."""
    rows = db.execute(
        "SELECT urls.url, state, status, failure, note, coalesce((SELECT moved.url FROM urls AS moved "
        "WHERE moved.seed = urls.id AND moved.hop = 'R' AND moved.via = urls.id LIMIT 1), '') "
        "FROM seeds CROSS JOIN urls ON urls.id = seeds.url ORDER BY position"
    )
    for row in rows:
        yield SeedFigures(*row)
