"""The records of a view: what the page asked for, its text, and a picture. Pure.

Their URIs and the JSON are those of browsertrix-crawler, so that its tools can read them; `title`, `missing`, `live`,
`round` and `ended` are ours. Each is a `resource` record, and all of one view have the same date.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from archiver.browser.answers import Asked
from archiver.humanize import printable
from archiver.warc.post_keys import key_parts

if TYPE_CHECKING:
    from archiver.browser.view import Viewed

VIEW, TEXT, PAGE_INFO = "urn:view:", "urn:text:", "urn:pageinfo:"  # each before the URL of the page
BY_BROWSERTRIX = "urn:textFinal:", "urn:thumbnail:", "urn:fullPage:", "urn:fullPageFinal:"  # we write none of these
JSON_TYPE, TEXT_TYPE, PICTURE_TYPE = "application/json", "text/plain; charset=utf-8", "image/jpeg"
LONGEST_URL = 4000  # characters; longer ones are left out
LONGEST_TITLE = 500  # characters
LARGEST_INFO = 16 << 20  # bytes of JSON that are read
MICRO = 1_000_000


class ViewRecord(NamedTuple):
    """A record of a view."""

    uri: str
    type: str
    block: bytes


def records_of(viewed: "Viewed", captured: int, number: int, late: int = 0) -> Iterator[ViewRecord]:
    """Yield the records of a view, the view *number* of this page; *captured*: microseconds since the epoch.

    *late*: the views in which it had to go on without an answer that came later.
    """
    yield ViewRecord(PAGE_INFO + viewed.url, JSON_TYPE, _page_info(viewed, captured, number, late))
    if viewed.text:
        yield ViewRecord(TEXT + viewed.url, TEXT_TYPE, viewed.text.encode("utf-8", "replace"))
    if viewed.picture:
        yield ViewRecord(VIEW + viewed.url, PICTURE_TYPE, viewed.picture)


def page_of(target: str) -> str:
    """Return the URL of the page to which the record with the URI *target* belongs; if it is of no view, *target*."""
    kinds = (PAGE_INFO, TEXT, VIEW, *BY_BROWSERTRIX)
    return next((target.removeprefix(each) for each in kinds if target.startswith(each)), target)


def _page_info(viewed: "Viewed", captured: int, number: int, late: int) -> bytes:
    urls: dict[str, dict[str, Any]] = {}
    for asked, given in viewed.answered.items():
        _put(urls, asked, {"status": given.status, "mime": given.mime, "type": asked.kind.lower()})
    missing: dict[str, dict[str, Any]] = {}
    for asked in viewed.missing:
        _put(missing, asked, {"type": asked.kind.lower()})
        _put(urls, asked, {"status": 0, "type": asked.kind.lower()})
    fields = {
        "pageid": page_id(viewed.url, captured),
        "url": viewed.url,
        "ts": _date(captured),
        "title": printable(viewed.title, LONGEST_TITLE),
        "round": number,
        "late": late,
        "urls": urls,
        "missing": [*missing],
        "live": [each for each in viewed.live if len(each) <= LONGEST_URL],
        "ended": viewed.ended,
        **({"behavior": viewed.behavior} if viewed.behavior else {}),
    }
    return json.dumps(fields).encode()


def _put(urls: dict[str, dict[str, Any]], asked: Asked, about: dict[str, Any]) -> None:
    """Enter *asked* under the URL by which a replay looks it up; the first answer counts."""
    address = asked.url
    if asked.method not in ("GET", "HEAD"):
        body = asked.body or b""
        _, address = key_parts(asked.method, address, asked.first("content-type"), str(len(body)), body)
    if len(address) <= LONGEST_URL:
        urls.setdefault(address, about)


def page_id(address: str, captured: int) -> str:
    """Return the name of the page *address* captured at this time, as in the page lists of packages."""
    name = sha256(f"{address} {captured}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"page-{name[:20]}"


def _date(timestamp: int) -> str:
    moment = datetime.fromtimestamp(timestamp // MICRO, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp // 1000 % 1000:03}Z"


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What a `urn:pageinfo` record says of its page."""

    second: int  # of the page's capture, since the epoch
    title: str = ""  # "" if it names none

    @classmethod
    def parse(cls, block: bytes) -> "PageInfo | None":
        """Read *block*, which may come from anywhere; None if it names no date."""
        if len(block) > LARGEST_INFO:
            return None
        try:
            fields = json.loads(block)
            moment = datetime.fromisoformat(fields["ts"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if moment.tzinfo is None:
            return None
        title = fields.get("title")
        return cls(int(moment.timestamp()), printable(title, LONGEST_TITLE) if isinstance(title, str) else "")
