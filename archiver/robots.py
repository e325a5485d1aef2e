"""robots.txt: what one answer for it means (RFC 9309). Pure.

2xx is read, 4xx allows everything, 5xx and no answer allow nothing. Rules are read by protego.
"""

import re
from collections.abc import Sequence

from protego import Protego

from archiver.model import Robots

MAX_BODY = 512 << 10  # RFC 9309 §2.5 asks for 500 KiB at least
MAX_REDIRECTS = 5  # RFC 9309 §2.3.1.2
MAX_SITEMAPS = 1000

_TOKEN = re.compile(r"([A-Za-z_-]+)(?:/[^\s;,()]*)?")


def product_token(user_agent: str) -> str:
    """The name by which robots.txt speaks of this *user_agent*: what stands after `compatible;`, or first."""
    words = user_agent.partition("compatible;")[2] or user_agent
    parts = [part.strip() for part in re.split(r"[;()]", words) if part.strip() and not part.strip().startswith("+")]
    found = _TOKEN.match(parts[0]) if parts else None
    return found[1] if found else "archiver"


def text_of(body: bytes) -> str:
    """The text of a robots.txt, whatever its line ends and byte order mark."""
    encoding = "utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return body[:MAX_BODY].decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


class Rules:
    """What one host allows to one product."""

    def __init__(self, robots: Robots, token: str) -> None:
        self._token = token
        self._allow_all = not 200 <= robots.status < 300
        self.unreachable = robots.status == 0 or robots.status >= 500
        self._parsed = None if self._allow_all else Protego.parse(text_of(robots.body))

    def allows(self, address: str) -> bool:
        """Whether *address* may be fetched. /robots.txt itself always may."""
        if self.unreachable:
            return False
        return self._parsed is None or address.endswith("/robots.txt") or bool(self._parsed.can_fetch(address, self._token))

    @property
    def delay(self) -> float:
        """Crawl-delay in seconds; 0 where none is asked for."""
        return float(self._parsed.crawl_delay(self._token) or 0.0) if self._parsed is not None else 0.0


def sitemaps(robots: Robots) -> Sequence[str]:
    """The sitemaps that a robots.txt names, as they are written there."""
    if not 200 <= robots.status < 300:
        return ()
    return tuple(Protego.parse(text_of(robots.body)).sitemaps)[:MAX_SITEMAPS]
