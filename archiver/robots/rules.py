"""The lines of a robots.txt: groups, their rules, delays and sitemaps, as people write and mistype them. Pure."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from archiver import url
from archiver.model import Robots
from archiver.robots.paths import PathRules

MAX_BODY = 512 << 10  # RFC 9309 §2.5 asks for 500 KiB at least
MAX_LINE = 16_663  # what follows is dropped, as Google does: 8 times 2083, once the longest URL of a browser, less one
PROBE = 16  # bytes by which UTF-16 is known that does not say so
MAX_REDIRECTS = 5  # RFC 9309 §2.3.1.2
MAX_SITEMAPS = 1000

PRODUCT = "archiver"  # by this name robots.txt may speak of us, whatever else we call ourselves
UNREACHABLE = "robots.txt could not be had"

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
    return found[1] if found else PRODUCT


@dataclass(slots=True)
class _Group:
    """What one file says to one product, gathered from all its groups."""

    named: bool = False
    rules: list[tuple[bool, str]] = field(default_factory=list)  # whether it allows, and what
    delay: float = 0.0


class Rules:
    """What one host allows to one product, and how fast."""

    def __init__(self, robots: Robots, token: str) -> None:
        self.unreachable = robots.status == 0 or robots.status >= 500
        group = _group(robots.body, {token.lower(), PRODUCT}) if _readable(robots) else _Group()
        self.delay = group.delay  # seconds of Crawl-delay; 0 where none is asked for
        self._paths = PathRules(group.rules)

    def allows(self, address: str) -> bool:
        """Whether *address* may be fetched. /robots.txt itself always may, unless there is nobody to ask."""
        return not self.refusal(address)

    def refusal(self, address: str) -> str:
        """The rule that forbids *address*, as it was written; "" where it may be fetched."""
        if self.unreachable:
            return UNREACHABLE
        return "" if url.path(address) == "/robots.txt" else self._paths.refusal(url.target(address))


def sitemaps(robots: Robots) -> Sequence[str]:
    """The sitemaps that a robots.txt names, to whatever product, as they are written there."""
    if not _readable(robots):
        return ()
    named = (value for key, value in _records(robots.body) if key == "sitemap" and value)
    return tuple(islice(dict.fromkeys(named), MAX_SITEMAPS))


def _readable(robots: Robots) -> bool:
    return 200 <= robots.status < 300


def _group(body: bytes, tokens: Collection[str]) -> _Group:
    """The rules for the products *tokens*, or for everybody where nothing is said to them (RFC 9309 §2.2.1)."""
    ours, anybody = _Group(), _Group()
    addressed: list[_Group] = []  # by the user-agent lines of the group that is being read
    ruled = False  # it has a rule, so that the next user-agent line begins another one
    for key, value in _records(body):
        if key == "agent":
            if ruled:
                addressed, ruled = [], False
            group = anybody if _is_star(value) else ours if _names(value, tokens) else None
            if group is not None and not any(group is known for known in addressed):
                group.named = True
                addressed.append(group)
        elif key == "delay":
            for group in addressed:
                group.delay = max(group.delay, _seconds(value))
        elif key != "sitemap":
            ruled = True
            for group in addressed if value else ():
                group.rules.append((key == "allow", value))
    return ours if ours.named else anybody


def _is_star(value: str) -> bool:
    return value == "*" or value.startswith("*%")  # what follows a space is a comment to most


def _names(value: str, tokens: Collection[str]) -> bool:
    found = _TOKEN.match(value)
    return found is not None and found[1].lower() in tokens


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if 0 < seconds < math.inf else 0.0


def _records(body: bytes) -> Iterator[tuple[str, str]]:
    """Each line that says something we know: its key, and its value with all but graphic ASCII as percent escapes."""
    for line in _LINE_END.split(_unmarked(body[:MAX_BODY])):
        found = _RECORD.match(line[:MAX_LINE])
        if found is not None:
            key, value = _KEYS[found[1][:1].lower()], found[2].strip(b" \t\0\v\f")
            yield key, _escaped(value)
            if (
                key in ("allow", "disallow") and not value.isascii() and not _is_utf8(value)
            ):  # browsers send latin-1 that stands in a page as UTF-8
                yield key, _escaped(value.decode("latin-1").encode())


def _unmarked(body: bytes) -> bytes:
    """*body* in a coding that has ASCII where ASCII is meant, without a byte order mark."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    for coding, zeros in (("utf-16-le", body[1:PROBE:2]), ("utf-16-be", body[:PROBE:2])):
        if zeros and not zeros.strip(b"\0"):  # UTF-16 whose mark was lost
            return body.decode(coding, "replace").encode("utf-8", "replace")
    return _MARK.sub(b"", body)


def _escaped(value: bytes) -> str:
    return _NO_GRAPHIC.sub(lambda byte: b"%%%02X" % byte[0][0], value).decode("ascii")


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
