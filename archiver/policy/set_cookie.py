"""Set-Cookie fields and their dates, by RFC 6265bis. Pure.

Values are texts of latin-1 characters, one for each byte. The time is an argument, in seconds since the epoch.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

MAX_PAIR = 4096  # bytes of name and value together (RFC 6265bis §5.6)
MAX_ATTRIBUTE = 1024  # bytes of the value of one attribute; longer ones are ignored
LONGEST_LIFE = 400 * 86_400.0  # seconds until any cookie expires (§5.5)

CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DIGITS = re.compile(r"-?[0-9]+")
_BLANK = " \t"


class SameSite(StrEnum):
    """The SameSite attribute of a cookie; `DEFAULT` counts as Lax."""

    DEFAULT = ""
    NONE = "None"
    LAX = "Lax"
    STRICT = "Strict"


@dataclass(frozen=True, slots=True)
class SetCookie:
    """A Set-Cookie field as it was parsed. Attributes that are missing or invalid have their default."""

    name: str
    value: str
    domain: str = ""
    path: str = ""
    secure: bool = False
    http_only: bool = False
    same_site: SameSite = SameSite.DEFAULT
    expires: float = math.inf


def parse(field: str, now: float) -> SetCookie | None:
    """Parse the value of a Set-Cookie field (RFC 6265bis §5.6); None if it is to be ignored."""
    if CONTROL.search(field):
        return None
    pair, _, rest = field.partition(";")
    name, equals, value = pair.partition("=")
    if not equals:
        name, value = "", pair
    name, value = name.strip(_BLANK), value.strip(_BLANK)
    if not name and (not value or value.lower().startswith(("__secure-", "__host-"))):
        return None
    if len(name) + len(value) > MAX_PAIR:
        return None
    attributes = dict(_attributes(rest))  # of several with one name, the last counts
    expires = _expiry(attributes, now)
    return SetCookie(
        name,
        value,
        domain=attributes.get("domain", "").removeprefix(".").lower(),
        path=attributes.get("path", ""),
        secure="secure" in attributes,
        http_only="httponly" in attributes,
        same_site=_same_site(attributes.get("samesite", "")),
        expires=expires,
    )


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes that count: name in lower case, and value."""
    for part in text.split(";"):
        name, _, value = part.partition("=")
        name, value = name.strip(_BLANK).lower(), value.strip(_BLANK)
        if len(value) > MAX_ATTRIBUTE:
            continue
        if name == "expires" and cookie_date(value) is None:
            continue
        if name == "max-age" and not _DIGITS.fullmatch(value):
            continue
        yield name, value


def _expiry(attributes: dict[str, str], now: float) -> float:
    """Return when the cookie expires; Max-Age overrides Expires."""
    age = attributes.get("max-age")
    if age is not None:
        seconds = float(age) if len(age) < 20 else math.copysign(math.inf, -1 if age.startswith("-") else 1)
        return now + min(seconds, LONGEST_LIFE) if seconds > 0 else -math.inf
    moment = cookie_date(attributes.get("expires", ""))
    return math.inf if moment is None else min(moment, now + LONGEST_LIFE)


def _same_site(value: str) -> SameSite:
    return next((known for known in SameSite if known and known.lower() == value.lower()), SameSite.DEFAULT)


_NOT_DATE = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")  # delimiters (§5.1.1)
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d).*", re.DOTALL)
_DAY = re.compile(r"(\d{1,2})(?!\d).*", re.DOTALL)
_YEAR = re.compile(r"(\d{2,4})(?!\d).*", re.DOTALL)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def cookie_date(text: str) -> float | None:
    """Return the seconds since the epoch that *text* means in an Expires attribute (§5.1.1); None if it is no date."""
    time = day = month = year = None
    for token in _NOT_DATE.split(text):
        if time is None and (found := _TIME.fullmatch(token)):
            time = int(found[1]), int(found[2]), int(found[3])
        elif day is None and (found := _DAY.fullmatch(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.fullmatch(token)):
            year = int(found[1])
    if time is None or day is None or month is None or year is None:
        return None
    if year < 100:
        year += 1900 if year >= 70 else 2000
    if year < 1601:
        return None
    try:
        return datetime(year, month, day, time[0], time[1], time[2], tzinfo=UTC).timestamp()
    except ValueError:
        return None
