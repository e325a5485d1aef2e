"""Types of settings: convert text and TOML to values and back. Pure.

Each type describes its valid values; the message of a `ConfigError` contains that description.

Regular expressions of users are matched against URLs of strangers in bounded time. A simple pattern uses Python's `re`;
any other one uses `regex`, which understands the same syntax and has a timeout. A pattern that timed out several times
gets a shorter timeout, so that a page with many such URLs is not held up.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from ipaddress import ip_address, ip_network
from typing import Any, Final, Literal

from archiver import url
from archiver.config import presets
from archiver.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `starts` requests in any `interval` seconds; 0 means no limit."""

    starts: int
    interval: float = 1.0

    def __str__(self) -> str:
        return f"{self.starts}" if self.interval == 1 else f"{self.starts}/{_plain(self.interval)}"


def _plain(number: float) -> str:
    """Return *number* with all digits, but without a trailing `.0`."""
    return str(int(number)) if number.is_integer() else repr(number)


def words_of(lists: Iterable[str]) -> Iterator[str]:
    """Return the words of *lists*, which separate them with commas."""
    return (word for words in lists for word in words.split(","))


@dataclass(frozen=True, slots=True)
class OptionType:
    """A type of value: its name in usage lines, a description of valid values, and functions to read and write."""

    metavar: str
    right: str
    read: Callable[[Any], Any]  # from text or a TOML value; raises ValueError or TypeError
    write: Callable[[Any], Any] = lambda value: value  # to a TOML value
    words: tuple[str, ...] = ()  # all valid values, or the parts of which a valid value is made, with commas

    def parse(self, given: Any) -> Any:
        """Return the value. Raises `ConfigError` with a description of valid values."""
        try:
            return self.read(given)
        except (ValueError, TypeError, OverflowError, RecursionError, re.error, FutureWarning) as error:
            why = f" ({error})" if isinstance(error, re.error | FutureWarning) else ""
            raise ConfigError(f"{_brief(given)} is not {self.right}{why}") from None


def _brief(given: Any) -> str:
    """Return *given* for a message: on one line, without control characters, and not too long."""
    shown = repr(given)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"


MAX_SHOWN = 80  # characters of a bad value in a message, which is one line

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SPANS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
_SPANS |= {"d": 24 * _SPANS["h"], "w": 7 * 24 * _SPANS["h"]}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|[smhdw])")
_TIME = re.compile(rf"(?:{_PART.pattern} ?)+")
_DIGITS = re.compile(r"[0-9]{1,18}")  # SQLite and WARC readers count in 64 bits
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([kmgt]?)b?", re.IGNORECASE)
LEFT_OUT = "[left out: a secret]"  # replaces the value of a secret header in packages

_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
_HOST = re.compile(r"(?!-)[^\s/:?#@\[\]\\*,;]+")  # not an option, in case the name was forgotten
_OURS = frozenset({"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"})
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")  # controls, and bytes that were no text


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError
    if isinstance(given, str) and _DIGITS.fullmatch(given) is None:
        raise ValueError
    number = int(given)
    if not 0 <= number < 2**63:
        raise ValueError
    return number


def _number_or_none(given: Any) -> int | None:
    return None if given is None or given == "none" else _whole(given)


def _at_least_one(given: Any) -> int:
    number = _whole(given)
    if number < 1:
        raise ValueError
    return number


def _seconds(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise TypeError
    text = given.strip().lower() if isinstance(given, str) else ""
    if _TIME.fullmatch(text):  # float reads a bare number
        number = float(sum((Decimal(amount) * _SPANS[unit] for amount, unit in _PART.findall(text)), Decimal(0)))
    else:
        number = float(given)
    if not 0 < number < math.inf:
        raise ValueError
    return number


def _seconds_or_none(given: Any) -> float:
    if not isinstance(given, bool) and given in {0, "0", "0s"}:
        return 0.0
    return _seconds(given)


def _size(given: Any) -> int:
    if isinstance(given, str):
        found = _SIZE.fullmatch(given.strip())
        if found is None:
            raise ValueError
        return _whole(int(Decimal(found[1]) * _UNITS[found[2].lower()]))
    return _whole(given)


def _rate(given: Any) -> Rate:
    if isinstance(given, Rate):
        return given
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError
    starts, slash, interval = str(given).partition("/")
    return Rate(_whole(starts.strip()), _seconds(interval.strip()) if slash else 1.0)


def _rate_or_same(given: Any) -> Rate | None:
    return None if given is None or given == "same" else _rate(given)


def _boolean(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str) or _UNWRITABLE.search(given):
        raise TypeError
    return given


LONGEST_PATTERN = 100_000  # characters; to compile that many takes half a second, and longer ones take minutes
MOST_PATTERNS = 1_000_000  # characters of all patterns of a crawl, which take about five seconds


def _pattern(given: Any) -> str:
    import regex  # noqa: PLC0415 - half as large as this package; only patterns need it

    text = _text(given)
    if len(text) > LONGEST_PATTERN:
        raise ConfigError(f"a pattern of {len(text)} characters; the longest may have {LONGEST_PATTERN}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # for syntax that a later Python will read differently
        re.compile(text)
    try:
        regex.compile(text)  # used if matching could take long
    except regex.error as error:
        raise re.error(str(error)) from None
    return text


def _header(given: Any) -> str:
    found = _HEADER.fullmatch(_text(given))
    if found is None or found[1].lower() in _OURS:
        raise ValueError
    if found[2].strip() == LEFT_OUT:
        raise ConfigError(f"the value of {found[1]} is a secret that was left out; write it again or delete the line")
    return f"{found[1]}: {found[2].strip()}"


def _path(given: Any) -> str:
    if not _text(given):
        raise ValueError
    return str(given)


def _label(given: Any) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", _text(given)) is None:
        raise ValueError
    return str(given)


def _place(given: Any) -> str:
    """Return a network, address or host name in canonical form."""
    text = _text(given).strip()
    if "/" in text:
        return str(ip_network(text))
    try:
        return str(ip_address(text.removeprefix("[").removesuffix("]").partition("%")[0]))
    except ValueError:
        address = url.canonical(f"http://{text}/") if _HOST.fullmatch(text) else None
        if address is None:
            raise
        return url.host(address).strip("[]")  # 0x7f.1 and 127.1 are addresses too


def _surt(given: Any) -> str:
    try:
        return url.prefix(_text(given).strip())
    except ConfigError:
        raise ValueError from None


def _endings(given: Any) -> str:
    """Return extensions in lower case, without dots, separated by commas."""
    endings = [ending.strip().removeprefix(".").lower() for ending in _text(given).split(",")]
    if not all(re.fullmatch(r"[^\s/.?#]+(?:\.[^\s/.?#]+)*", ending) for ending in endings):
        raise ValueError
    return ",".join(endings)


def _parameters(given: Any) -> str:
    if re.fullmatch(r"[^\s&=#?,]+(?:,[^\s&=#?,]+)*", _text(given)) is None:
        raise ValueError
    return str(given)


def _sets(given: Any) -> str:
    if not set(_text(given).split(",")) <= set(presets.SETS):
        raise ValueError
    return str(given)


def _choice(words: tuple[str, ...]) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given not in words:
            raise ValueError
        return str(given)

    return read


def _write_rate(rate: Rate) -> int | str:
    return rate.starts if rate.interval == 1 else str(rate)


COUNT = OptionType("N", "a whole number of 1 or more", _at_least_one)
NUMBER = OptionType("N", "a whole number of 0 or more", _whole)
NUMBER_OR_NONE = OptionType(
    "N",
    'a whole number of 0 or more, or "none" for no limit',
    _number_or_none,
    lambda value: "none" if value is None else value,
)
SECONDS = OptionType("SECONDS", "a number of seconds above 0, or a time with units (90s, 15m, 1h, 2d)", _seconds)
SECONDS_OR_NONE = OptionType(
    "SECONDS",
    "a number of seconds above 0, or a time with units (90s, 15m, 1h, 2d), or 0 for no limit",
    _seconds_or_none,
)
SIZE = OptionType("BYTES", "a number of bytes, optionally with k, M, G or T (500M)", _size)
RATE = OptionType(
    "N[/SECONDS]",
    "a number of requests per second (5), or per so many seconds (30/60), or 0 for no limit",
    _rate,
    _write_rate,
)
RATE_OR_SAME = OptionType(
    "N[/SECONDS]",
    'a number of requests per second (5), or per so many seconds (30/60), 0 for no limit, or "same" for that of --rate',
    _rate_or_same,
    lambda rate: "same" if rate is None else _write_rate(rate),
)
BOOLEAN = OptionType("", "true or false", _boolean)
TEXT = OptionType("TEXT", "a line of text", _text)
PATTERN = OptionType("REGEX", "a regular expression", _pattern)
HEADER = OptionType(
    "'NAME: VALUE'",
    "a header line, 'Name: value', of a header that is not the connection's own (Host, Content-Length …)",
    _header,
)
PLACE = OptionType("HOST", "a host name, an address, or a network without host bits (10.0.0.0/8)", _place)
SURT = OptionType("PREFIX", "a SURT prefix such as http://(org,example, or a URL, or a host", _surt)
ENDINGS = OptionType("EXT[,EXT]", "file name extensions, such as zip,iso", _endings)
PARAMETERS = OptionType(
    "NAME[,NAME]",
    f"names of query parameters, with * for any letters, or of presets: {', '.join(presets.PRESETS)}, {presets.NONE}",
    _parameters,
)
SETS = OptionType("SET[,SET]", f"names of sets: {', '.join(presets.SETS)}", _sets, words=tuple(presets.SETS))
ARCHIVE = OptionType("DIR|CDXJ", "the directory of an archive, or a CDXJ file", _path)
LABEL = OptionType("NAME", "a name of letters, digits, '.', '_' and '-'", _label)


def choice(*words: str) -> OptionType:
    """Return the type whose values are *words*."""
    return OptionType("|".join(words), "one of " + ", ".join(words), _choice(words), words=words)


COOKIES = choice("keep", "off")
ROBOTS = choice("obey", "ignore", "observe")
NOFOLLOW = choice("obey", "ignore")
REFERER = OptionType(
    "policy|off",
    "one of policy, off (a Referer of your own: --header 'Referer: URL')",
    _choice(("policy", "off")),
)
REACH = choice("host", "domain", "prefix", "page", "any")  # scope of a seed

MAX_SIMPLE_URL = 2000  # characters; a pattern with one repetition takes some milliseconds at worst
PATIENCE = 0.1  # seconds of computing for one pattern on one URL …
TRIES = 20  # … so often …
IMPATIENCE = 0.002  # … and from then on; an honest pattern needs a hundredth of this

_REPEATS = re.compile(r"[*+{]")
_LOOKS_BACK = re.compile(r"\\[1-9]|\(\?P=")


class _Slow(Enum):
    SLOW = "slow"


SLOW: Final = _Slow.SLOW


class Pattern:
    """A regular expression of the user, with the name of its *rule*."""

    def __init__(self, rule: str, text: str) -> None:
        import regex  # noqa: PLC0415 - half as large as this package; only patterns need it

        self.rule = rule
        easy = len(_REPEATS.findall(text)) <= 1 and not _LOOKS_BACK.search(text)
        self._easy = re.compile(text) if easy else None
        self._patient = regex.compile(text)
        self._given_up = 0

    def found_in(self, address: str) -> bool | Literal[_Slow.SLOW]:
        """Return whether *address* matches, as it is or with its escapes in capitals; `SLOW` if that took too long."""
        found = self._search(address)
        if found or "%" not in address or (capitals := url.in_capitals(address)) == address:
            return found
        return self._search(capitals)

    def _search(self, address: str) -> bool | Literal[_Slow.SLOW]:
        if self._easy is not None and len(address) <= MAX_SIMPLE_URL:
            return self._easy.search(address) is not None
        seconds = PATIENCE if self._given_up < TRIES else IMPATIENCE
        try:
            return self._patient.search(address, timeout=seconds, concurrent=True) is not None
        except TimeoutError:
            self._given_up += 1
            return SLOW
