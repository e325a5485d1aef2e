"""robots.txt: what one answer for it means (RFC 9309). Pure; linear in the size of the file.

2xx is read, 4xx allows everything, 5xx and no answer allow nothing. Lines and groups are told apart here, so that the
rules of other crawlers, of which a hostile file may name any number, cost nothing; which of our rules decides about a
URL is protego's part.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from protego import Protego

from archiver import url
from archiver.model import Robots

MAX_BODY = 512 << 10  # RFC 9309 §2.5 asks for 500 KiB at least
MAX_LINE = 16_663  # what follows is dropped, as Google does: 8 times 2083, once the longest URL of a browser, less one
MAX_REDIRECTS = 5  # RFC 9309 §2.3.1.2
MAX_SITEMAPS = 1000

_TOKEN = re.compile(r"([A-Za-z_-]+)(?:/[^\s;,()]*)?")

_RECORD = re.compile(  # keys as people write and mistype them; the colon may be missing
    rb"[ \t]*(user[- ]?agent|dis+all?ow|diasllow|disallaw|allow|site-?maps?|crawl[- ]?delay)[ \t]*[: \t]([^#]*)",
    re.IGNORECASE,
)
_KEYS = {b"u": "agent", b"d": "disallow", b"a": "allow", b"s": "sitemap", b"c": "delay"}  # by their first letter
_MARK = re.compile(rb"\A\xef(?:\xbb\xbf?)?")  # a byte order mark, or what careless editors leave of it
_LINE_END = re.compile(rb"\r\n?|\n")
_NO_GRAPHIC = re.compile(rb"[^!-~]")


def product_token(user_agent: str) -> str:
    """The name by which robots.txt speaks of this *user_agent*: what stands after `compatible;`, or first."""
    words = user_agent.partition("compatible;")[2] or user_agent
    parts = [part.strip() for part in re.split(r"[;()]", words) if part.strip() and not part.strip().startswith("+")]
    found = _TOKEN.match(parts[0]) if parts else None
    return found[1] if found else "archiver"


@dataclass(slots=True)
class _Group:
    """What one file says to one product, gathered from all its groups."""

    named: bool = False
    rules: list[str] = field(default_factory=list)
    delay: float = 0.0


class Rules:
    """What one host allows to one product, and how fast."""

    def __init__(self, robots: Robots, token: str) -> None:
        self.unreachable = robots.status == 0 or robots.status >= 500
        group = _group(robots.body, token) if _readable(robots) else _Group()
        self.delay = group.delay  # seconds of Crawl-delay; 0 where none is asked for
        self._parsed = Protego.parse("\n".join(["User-agent: *", *group.rules])) if group.rules else None

    def allows(self, address: str) -> bool:
        """Whether *address* may be fetched. /robots.txt itself always may, unless there is nobody to ask."""
        if self.unreachable:
            return False
        return self._parsed is None or url.path(address) == "/robots.txt" or bool(self._parsed.can_fetch(address, "*"))


def sitemaps(robots: Robots) -> Sequence[str]:
    """The sitemaps that a robots.txt names, to whatever product, as they are written there."""
    if not _readable(robots):
        return ()
    named = (value for key, value in _records(robots.body) if key == "sitemap" and value)
    return tuple(islice(dict.fromkeys(named), MAX_SITEMAPS))


def _readable(robots: Robots) -> bool:
    return 200 <= robots.status < 300


def _group(body: bytes, token: str) -> _Group:
    """The rules for the product *token*, or for everybody where nothing is said to it (RFC 9309 §2.2.1)."""
    ours, anybody = _Group(), _Group()
    addressed: list[_Group] = []  # by the user-agent lines of the group that is being read
    ruled = False  # it has a rule, so that the next user-agent line begins another one
    for key, value in _records(body):
        if key == "agent":
            if ruled:
                addressed, ruled = [], False
            group = anybody if _is_star(value) else ours if _names(value, token) else None
            if group is not None and not any(group is known for known in addressed):
                group.named = True
                addressed.append(group)
        elif key == "delay":
            for group in addressed:
                group.delay = max(group.delay, _seconds(value))
        elif key != "sitemap":
            ruled = True
            for group in addressed if value else ():
                group.rules.append(f"{key}: {value}")
    return ours if ours.named else anybody


def _is_star(value: str) -> bool:
    return value == "*" or value.startswith("*%")  # what follows a space is a comment to most


def _names(value: str, token: str) -> bool:
    found = _TOKEN.match(value)
    return found is not None and found[1].lower() == token.lower()


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < math.inf else 0.0


def _records(body: bytes) -> Iterator[tuple[str, str]]:
    """Each line that says something we know: its key, and its value with all but graphic ASCII as percent escapes."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body[:MAX_BODY].decode("utf-16", "replace").encode("utf-8", "replace")
    for line in _LINE_END.split(_MARK.sub(b"", body[:MAX_BODY])):
        found = _RECORD.match(line[:MAX_LINE])
        if found is not None:
            value = _NO_GRAPHIC.sub(lambda byte: b"%%%02X" % byte[0][0], found[2].strip(b" \t\0\v\f"))
            yield _KEYS[found[1][:1].lower()], value.decode("ascii")
