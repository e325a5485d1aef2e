"""What no index answers: patterns of the URLs that wait, from a sample; failures by reason, from a scan in portions.

A person who asks gets what is known so far, at once, with the number of rows that it rests on. Work goes on only while
someone asks, and never for longer than `PORTION` at a time.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from archiver import url
from archiver.errors import ConfigError, Failure
from archiver.frontier.connection import Reader
from archiver.policy.url_forms import LONGEST_PATTERN, pattern
from archiver.tools.watch.reading import LAST, MOST, SPAN, Json, shown

SAMPLED = 20_000  # waiting URLs
PROBES = 200  # places of the table at which the sample begins
FEWEST = 1000  # of a sample by place; if there are fewer, the ends of the queues are looked at too
QUEUES = 40  # hosts whose queues are looked at
PORTION = 0.1  # seconds of a scan for one request
AGAIN = 60.0  # seconds after which a scan that is done begins again
MOST_GROUPS = 20_000
MOST_SHAPES = 5000
_PART = re.compile(r"N|H|[^NH]+")

WAITING_AT = (
    "SELECT id, url FROM urls WHERE id > ? AND id <= ? AND state = 'waiting' AND priority >= 0 ORDER BY id LIMIT ?"
)
ALL_WAITING = "SELECT coalesce(sum(waiting), 0) FROM hosts"
QUEUED_HOSTS = "SELECT id, waiting FROM hosts ORDER BY waiting DESC, id LIMIT ?"
END_OF_QUEUE = "SELECT id, url FROM urls WHERE host = ? AND state = 'waiting' ORDER BY priority {0}, id {0} LIMIT ?"


def patterns(db: Reader, chance: random.Random) -> Json:
    """Return the patterns of a sample of the URLs that wait, most frequent first, each with an example."""
    (waiting,) = db.execute(ALL_WAITING).fetchone()
    tally, examples, seen = Counter[str](), dict[str, str](), set[int]()
    for number, address in _sample(db, int(waiting), chance, seen):
        seen.add(number)
        shape = pattern(address)
        if shape in examples or len(examples) < MOST_SHAPES:  # a frequent one is among the first
            tally[shape] += 1
            examples.setdefault(shape, address)
    rows = [
        {"pattern": shown(shape), "count": count, "example": shown(examples[shape]), "regex": regex_of(shape)}
        for shape, count in tally.most_common(MOST)
    ]
    return {"sampled": len(seen), "of": int(waiting), "rows": rows}


def _sample(db: Reader, waiting: int, chance: random.Random, seen: set[int]) -> Iterator[tuple[int, str]]:
    """Yield rows that wait, which are not *seen* yet: at many places of the table, in no order."""
    (last,) = db.execute(LAST).fetchone()
    step = max(1, -(-int(last) // PROBES))
    starts = list(range(0, int(last), step))
    chance.shuffle(starts)
    for start in starts:
        begin = start + (chance.randrange(step - SPAN // 10) if step > SPAN // 10 else 0)
        end = min(begin + SPAN // 10, start + step)
        yield from db.execute(WAITING_AT, (begin, end, SAMPLED // PROBES)).fetchall()
    if len(seen) < min(FEWEST, waiting):
        for host, _ in db.execute(QUEUED_HOSTS, (QUEUES,)).fetchall():
            for way in ("ASC", "DESC"):
                rows = db.execute(END_OF_QUEUE.format(way), (host, SAMPLED // QUEUES // 2)).fetchall()
                yield from (row for row in rows if row[0] not in seen)


def regex_of(shape: str) -> str:
    """Return a regular expression for the URLs of the pattern *shape*. N is a number, H an opaque word."""
    page, mark, query = shape.partition("?")
    start = page.find("/", 8)
    path = _pieces(page[start:])
    is_cut = len(shape) >= LONGEST_PATTERN
    if not mark:
        return f"^{re.escape(page[:start])}{path}{'' if is_cut else '$'}"
    query = query.rpartition("&")[0] if is_cut else query
    parameters = "".join(rf"(?=[^#]*[?&;]{_parameter(part)})" for part in query.split("&") if part)
    return f"^{re.escape(page[:start])}{path}{parameters}\\?"


def _parameter(part: str) -> str:
    name, mark, value = part.partition("=")
    return _pieces(name) + (f"=(?i:{re.escape(value)})(?:[&;]|$)" if mark else "(?:[=&;]|$)")


def _pieces(shape: str) -> str:
    return "".join(map(_piece, _PART.findall(shape)))


def _piece(part: str) -> str:
    if part == "N":
        return "(?:[0-9]+|N)"
    return "(?:[0-9A-Za-z]{12,}|H)" if part == "H" else re.escape(part)


def suggestions(address: str) -> Json:
    """Return regular expressions that exclude URLs like *address*: its host, its folder, its pattern, its query."""
    whole = url.canonical(address)
    if whole is None:
        raise ConfigError("url: not a URL; write it like https://example.org/a")
    origin = url.origin(whole)
    page, mark, query = whole.partition("?")
    rows = [("this host", f"^{re.escape(origin)}/")]
    folder = page.rpartition("/")[0] + "/"
    if folder != f"{origin}/":
        rows.append(("this folder", f"^{re.escape(folder)}"))
    rows.append(("this pattern", regex_of(pattern(whole))))
    if mark:
        names = dict.fromkeys(part.partition("=")[0] for part in query.split("&"))
        rows += [("this query key", rf"[?&]{re.escape(name)}(?:[=&]|$)") for name in list(names)[:5] if name]
    return {"rows": [{"label": label, "regex": regex} for label, regex in rows]}


LOST = """
SELECT urls.id, hosts.key, urls.state, urls.status, urls.failure, urls.url, coalesce(above.url, '')
FROM urls JOIN hosts ON hosts.id = urls.host LEFT JOIN urls AS above ON above.id = urls.via
WHERE urls.id > ? AND urls.id <= ? AND urls.priority >= 0
  AND (urls.state IN ('failed', 'excluded') OR urls.state = 'archived' AND urls.status >= 400)
"""


@dataclass(slots=True)
class ProblemScan:
    """Failures and error answers by reason and host, as far as they were counted. For one thread at a time."""

    groups: dict[tuple[str, str], list[Any]] = field(default_factory=dict)  # count, example, the page that names it
    place: int = 0  # the row up to which they were counted
    done: float = 0.0  # when the scan had come to the end
    shown: dict[tuple[str, str], list[Any]] = field(default_factory=dict)  # of the last scan that came to the end

    def problems(self, db: Reader, after: str, now: float) -> Json:
        """Count for a while, and return a page of the groups, largest first."""
        if self.done and now - self.done > AGAIN:
            self.groups, self.place, self.done = {}, 0, 0.0
        (last,) = db.execute(LAST).fetchone()
        end = time.monotonic() + PORTION
        while self.place < last and not self.done and time.monotonic() < end:
            for row in db.execute(LOST, (self.place, self.place + SPAN)).fetchall():
                self._count(*row[1:])
            self.place += SPAN
        if self.place >= last and not self.done:
            self.done, self.shown = now, self.groups
        found = self.groups if self.done or not self.shown else self.shown
        start = int(after) if after.isascii() and after.isdigit() and len(after) < 9 else 0
        rows = sorted(found.items(), key=lambda each: (-each[1][0], each[0]))
        page = [
            {
                "reason": reason,
                "host": shown(host),
                "count": count,
                "example": shown(example),
                "via": shown(via),
                "retry": _retry_words(reason, shown(host)),
            }
            for (reason, host), (count, example, via) in rows[start : start + MOST]
        ]
        more = str(start + MOST) if len(rows) > start + MOST else None
        return {"rows": page, "next": more, "seen": min(self.place, last), "of": last, "complete": bool(self.done)}

    def _count(self, host: str, state: str, status: int, failure: str, address: str, via: str) -> None:
        reason = failure or (f"status {status}" if status else state)
        known = self.groups.get((reason, host))
        if known is not None:
            known[0] += 1
        elif len(self.groups) < MOST_GROUPS:
            self.groups[reason, host] = [1, address, via]


def _retry_words(reason: str, host: str) -> list[str] | None:
    """Return the words of `archiver retry` for the URLs of a group; None if it does not choose by this reason."""
    kind, _, status = reason.partition(" ")
    if kind == "status":
        return [f"--host={host}", f"--status={status}"]
    chosen = reason in set(Failure) - {Failure.RULE}  # a person has excluded the others, and takes that back by --undo
    return [f"--host={host}", f"--failure={reason}"] if chosen else None
