"""Who hears of a crawl: programs and addresses that get its events, and a second log of its URLs. Pure.

On the command line `--on` takes two words: the events, with commas between, and a command or a URL. In crawl.toml they
are one text. A command is run by the shell of the system; a URL gets a POST. `http://` is only for this machine,
because everyone on the way could read and change what is sent. A URL may hold a secret, as those of chat services do,
so no message shows more of it than the host.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

from archiver import url
from archiver.config.option_types import OptionType, choice
from archiver.config.scope_settings import setting
from archiver.config.secrets import FORMS, SecretSource, secret_source
from archiver.errors import ConfigError

EXAMPLE = "crawl-ended 'mail -s archived me@example.org' or host-blocked,disk-low https://example.org/hook"
ALL = "all"  # events
STDERR = "stderr"
LONGEST = 4000  # characters of a command or a URL
_PROGRAM = re.compile(r"[\w./+-]+")


class EventKind(StrEnum):
    """The events of a crawl."""

    CRAWL_STARTED = "crawl-started"
    CRAWL_ENDED = "crawl-ended"
    CRAWL_PAUSED = "crawl-paused"
    FILE_CLOSED = "file-closed"
    HOST_BLOCKED = "host-blocked"
    HOST_GIVEN_UP = "host-given-up"
    PATTERN_HELD = "pattern-held"
    DISK_LOW = "disk-low"
    LOGIN_LOST = "login-lost"
    TEST = "test"  # by `archiver events --test`, for all receivers


_URLS = "URLs of the whole crawl, earlier runs included"
EVENT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "version": "1; a change that a receiver must know of raises it. New fields do not",
        "id": "32 hexadecimal digits; the same in each try to deliver the event",
        "at": "when it happened: `2026-11-24T10:15:00.123Z`",
        "crawl": "an object: `collection` (name of its folder), `machine`, and `run` (1, 2, … or 0 for `test`)",
        "event": "its name",
        "data": "an object: see below",
    }
)
DATA_FIELDS: Mapping[EventKind, Mapping[str, str]] = MappingProxyType(
    {
        EventKind.CRAWL_STARTED: {"seeds": "number of seeds", "waiting": "URLs in the queue"},
        EventKind.CRAWL_ENDED: {
            "exit_code": "as in [exit codes](exit-codes.md), but never 8",
            "verdict": "name of the exit code in lower case: `done`, `limit`, `no_seed`, …",
            "reason": "why it ended, in words",
            "seeds": "number of seeds",
            "good_seeds": "seeds with a usable answer",
            "archived": _URLS,
            "failed": _URLS,
            "excluded": _URLS,
            "held": _URLS,
            "waiting": _URLS,
            "blocked_hosts": "hosts that refuse us, whose URLs wait",
            "received": "bytes of all responses",
            "grade": "`good`, `attention` (something is missing) or `bad` (nothing is usable), as in the report",
            "headline": "the result in one sentence, as in the report",
            "trouble": "true: `--strict` would exit with code 8",
            "failures": "an object: the 20 most frequent reasons for failed and excluded URLs, with their numbers",
            "findings": "a list of at most 40 objects, as in the verdict of the report: `topic`, `message` (what "
            "happened, to what, and how many), `command` that fetches or lists it (DIR: the directory of the crawl), "
            "`trouble` (true: it counts for `--strict`)",
        },
        EventKind.CRAWL_PAUSED: {"reason": "why, in words"},
        EventKind.FILE_CLOSED: {
            "name": "of the WARC file",
            "bytes": "its size",
            "digest": "`sha256:HEX`; empty: not known",
        },
        EventKind.HOST_BLOCKED: {
            "host": "scheme and authority",
            "since": "when it began to refuse us",
            "waiting": "its URLs that wait for the next run",
        },
        EventKind.HOST_GIVEN_UP: {
            "host": "scheme and authority",
            "failure": "a word of [records](records.md)",
            "reason": "why, in words",
            "urls": "its URLs that failed with it",
        },
        EventKind.PATTERN_HELD: {
            "pattern": "as in `archiver retry DIR --held PATTERN`",
            "rule": "that holds it",
            "example": "a URL of the pattern",
        },
        EventKind.DISK_LOW: {"reason": "where space is missing, and how much"},
        EventKind.LOGIN_LOST: {"page": "URL of the page with the form", "reason": "why no login works any more"},
        EventKind.TEST: {"message": "a sentence for a person"},
    }
)
KINDS = tuple(kind for kind in EventKind if kind is not EventKind.TEST)


@dataclass(frozen=True, slots=True)
class Receiver:
    """A command or an address, and the events that it gets."""

    kinds: tuple[EventKind, ...]
    target: str  # a command, or a canonical URL

    def __str__(self) -> str:
        return f"{ALL if self.kinds == KINDS else ','.join(self.kinds)} {self.target}"

    @property
    def is_address(self) -> bool:
        """True if the target is a URL."""
        return self.target.startswith(("https://", "http://"))

    @property
    def name(self) -> str:
        """A name for messages: the host of a URL, or the program. The rest may be secret."""
        if self.is_address:
            return url.origin(self.target)
        program = self.target.split()[0]
        return program.rpartition("/")[2] if _PROGRAM.fullmatch(program) else "a command"

    def key(self, machine: str) -> str:
        """Return the name of the receiver in the database, which may be handed on. Each *machine* has its own."""
        return sha256(f"{machine}\n{self.target}".encode(errors="surrogatepass")).hexdigest()[:32]


def receiver(given: Any) -> Receiver:
    """Return the receiver in *given*. Raises `ConfigError` that does not show the target."""
    if isinstance(given, Receiver):
        return given
    if not isinstance(given, str):
        raise ConfigError(f"not a text; write {EXAMPLE}")
    words, _, target = given.strip().partition(" ")
    target = target.strip()
    kinds = KINDS if words == ALL else tuple(kind for kind in KINDS if kind in words.split(","))
    if unknown := [word for word in words.split(",") if words != ALL and word not in KINDS]:
        raise ConfigError(f"{unknown[0]!r:.60} is not an event; the events are {', '.join(KINDS)} and {ALL}")
    if not target or len(target) > LONGEST or not target.isprintable():
        raise ConfigError(f"not events and a command or URL on one line; write {EXAMPLE}")
    return Receiver(kinds, _address(target) if re.match(r"https?:", target, re.IGNORECASE) else target)


def _address(text: str) -> str:
    address = url.canonical(text)
    if address is None or "@" in text.split("/", 3)[2]:
        raise ConfigError("the URL cannot be used; write https://HOST/PATH without user and password")
    if address.startswith("http://") and not _is_here(url.host(address)):
        raise ConfigError("http:// can be read and changed on its way; write https://, or a loopback address")
    return address


def _is_here(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _secret(given: Any) -> SecretSource | None:
    return None if given in (None, "") else secret_source(given)


def _place(given: Any) -> str:
    if not isinstance(given, str) or not given.isprintable() or given.endswith("/"):
        raise ValueError
    return given


ON = OptionType("EVENT COMMAND|URL", f"events and a command or URL ({EXAMPLE})", receiver, str)
ON_SECRET = OptionType(
    "SECRET", f"where a secret is ({FORMS})", _secret, lambda value: "" if value is None else str(value)
)
LOG_TO = OptionType("stderr|FILE", "stderr, or the path of a file", _place)


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Who hears of the crawl while it runs."""

    on: tuple[Receiver, ...] = setting(
        (),
        ON,
        "Run a command, with JSON on its stdin, or send JSON to a URL when something happens: crawl-ended, "
        "file-closed, host-blocked and more (docs/reference/events.md), or all.",
        many=True,
    )
    on_secret: SecretSource | None = setting(  # noqa: RUF009 - a field
        None, ON_SECRET, "Sign what --on sends to URLs with this secret, by HMAC-SHA256."
    )
    log_to: str = setting("", LOG_TO, "Also log each URL to stderr or FILE, a line each. crawl.log stays as it is.")
    log_format: str = setting(
        "json",
        choice("json", "heritrix"),
        "Format of --log-to: one JSON object a line (docs/reference/url-log.md), or the lines of crawl.log.",
    )

    @property
    def fills_stderr(self) -> bool:
        """True if the log goes to stderr, which then has no progress."""
        return self.log_to == STDERR
