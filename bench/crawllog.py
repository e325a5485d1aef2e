"""Read what the benchmarks need from a crawl log: the requests, with start and end."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple


class Asked(NamedTuple):
    """A visit; times are seconds since 1970."""

    url: str
    status: str
    since: float
    until: float


def requests(log: Path) -> Iterator[Asked]:
    """Yield each visit with known times, in the order of completion."""
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        fields = line.split()
        moment, _, took = fields[8].partition("+")  # as 20260102030405678+90: milliseconds, both
        if took.isdigit():
            since = datetime.strptime(moment + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC).timestamp()
            yield Asked(fields[3], fields[1], since, since + int(took) / 1000)
