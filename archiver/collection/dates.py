"""Parse dates as a person types them: a moment, or a whole year, month, day, hour or minute. UTC. Pure.

Forms: `2026`, `202611`, `20261121103000` as in pywb's addresses, and ISO 8601: `2026-11-21`, `2026-11-21T10:30`, with
optional seconds, fractions and time zone.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple

from archiver.errors import ConfigError

_DIGITS = re.compile(r"\d{4}(?:\d\d){0,5}", re.ASCII)
_ISO = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)?", re.ASCII)
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)\Z", re.IGNORECASE | re.ASCII)
_FIRST, _LAST = "00000101000000", "99991231235959"


class DateRange(NamedTuple):
    """A range of seconds, with both ends included; 14 digits each."""

    first: str
    last: str

    def distance(self, timestamp: str) -> float:
        """Return the seconds between the range and *timestamp* (14 digits); 0 inside."""
        if self.first <= timestamp <= self.last:
            return 0.0
        return abs(_seconds(timestamp) - _seconds(self.first if timestamp < self.first else self.last))


def date_range(text: str, name: str) -> DateRange:
    """Parse *text*; raise a `ConfigError` that begins with *name* and shows valid forms."""
    written = text.strip()
    zone = _ZONE.search(written) if len(written) > 10 and not written.isdigit() else None
    plain = written[: zone.start()] if zone else written
    digits = re.sub(r"\D", "", plain.partition(".")[0])
    if not (_DIGITS.fullmatch(plain) or _ISO.fullmatch(plain)):
        raise _refused(text, name)
    first = digits + _FIRST[len(digits) :]
    if len(digits) == 4:
        first = digits + "0101000000"
    last = digits + _LAST[len(digits) :]
    if len(digits) <= 6:
        last = _end_of_month(last)
    try:
        start, end = (_to_utc(one, zone[0] if zone else "Z") for one in (first, last))
    except (ValueError, OverflowError):
        raise _refused(text, name) from None
    return DateRange(start, end)


def _refused(text: str, name: str) -> ConfigError:
    shown = repr(text)
    return ConfigError(
        f"{name} {shown[:60]} is not a date; use 2026, 20261121, 20261121103000, 2026-11-21 or 2026-11-21T10:30:00Z"
    )


def _end_of_month(last: str) -> str:
    year, month = int(last[:4]), last[4:6]
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = "30" if month in ("04", "06", "09", "11") else "31" if month != "02" else "29" if leap else "28"
    return f"{last[:6]}{days}235959"


def _to_utc(digits: str, zone: str) -> str:
    zone = "+0000" if zone in "Zz" else zone
    found = datetime.strptime(f"{digits}{zone}", "%Y%m%d%H%M%S%z").astimezone(UTC)
    return f"{found.year:04}{found:%m%d%H%M%S}"


def _seconds(timestamp: str) -> float:
    """Convert 14 digits to seconds; approximate those that are no valid date, as some indexes have them."""
    padded = (timestamp + _FIRST[len(timestamp) :])[:14]
    try:
        return datetime.strptime(f"{padded}+0000", "%Y%m%d%H%M%S%z").timestamp()
    except ValueError:
        return float(int(padded[:4] or 0) * 31_556_952) - 62_167_219_200 if padded[:4].isdigit() else 0.0
