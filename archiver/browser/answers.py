"""Requests of a page in the browser, and what the browser is told from what is stored.

These are rules: they know no browser. An answer is told without its codings, and without the headers that would make
the browser load something else, leave the page, or hide an answer from its scripts: pywb and wabac drop these as well.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from archiver.ask import LARGEST, POST, Ask

UNTOLD = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a page."""

    url: str  # without its fragment
    method: str
    kind: str  # ResourceType of the protocol: Document, Stylesheet, Image, Media, Font, Script, XHR, Fetch, …
    fields: tuple[tuple[str, str], ...] = ()  # headers, with names in lower case
    body: bytes | None = None

    def first(self, name: str) -> str:
        """Return the value of the header *name* (in lower case)."""
        return next((value for known, value in self.fields if known == name), "")


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to a request."""

    status: int  # UNTOLD: the archive has it, but it is too large for the browser
    fields: tuple[tuple[str, str], ...]
    body: bytes
    second: int = 0  # of the capture; 0: of none


DROPPED = frozenset(
    (
        *("connection", "keep-alive", "transfer-encoding", "trailer", "upgrade", "proxy-authenticate"),
        *("content-encoding", "content-length", "content-md5", "digest", "repr-digest", "content-digest"),
        *("content-security-policy", "content-security-policy-report-only", "x-frame-options", "permissions-policy"),
        *("cross-origin-opener-policy", "cross-origin-embedder-policy", "cross-origin-resource-policy"),
        *("strict-transport-security", "clear-site-data", "refresh", "link", "alt-svc", "nel", "report-to"),
        *("reporting-endpoints", "service-worker-allowed", "origin-agent-cluster", "document-policy"),
    )
)
LARGEST_PART = 2 << 20  # bytes of an answer to a request for a range
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")


def asked_by(params: Mapping[str, Any]) -> Asked:
    """Return the request in the parameters of a `Fetch.requestPaused` event."""
    request = params["request"]
    fields = tuple((name.lower(), value) for name, value in request["headers"].items())
    parts = (base64.b64decode(entry.get("bytes", "")) for entry in request.get("postDataEntries") or ())
    body = b"".join(parts) if request.get("hasPostData") else None
    return Asked(request["url"].partition("#")[0], request["method"], params["resourceType"], fields, body)


SENT = ("Accept", "X-")  # beginnings of the headers of a POST that are sent as the page has set them
LONGEST_FIELD, MAX_FIELDS = 1000, 20  # characters, and headers
_FIELD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHANGES = re.compile(r"(?:^|[}\s])(?:mutation|subscription)\b")  # an operation of GraphQL that is no query


def post_of(asked: Asked, target: str) -> Ask | None:
    """Return the POST that *asked* is, for the canonical URL *target*; None if it may not be sent.

    Only scripts may send one, and no mutation or subscription of GraphQL.
    """
    body = asked.body or b""
    if asked.method != POST or asked.kind not in {"XHR", "Fetch"} or len(body) > LARGEST or _changes_something(body):
        return None
    content_type = asked.first("content-type")
    fields = [
        ("Accept" if name == "accept" else name.title(), value)
        for name, value in asked.fields
        if name.title().startswith(SENT) and not name.startswith("accept-") and _is_safe(name, value)
    ]
    if not _is_safe("content-type", content_type):
        return None
    return Ask(target, content_type, body, tuple(fields[:MAX_FIELDS]))


def _is_safe(name: str, value: str) -> bool:
    return _FIELD.fullmatch(name) is not None and value.isascii() and value.isprintable() and len(value) < LONGEST_FIELD


def _changes_something(body: bytes) -> bool:
    """Return True if *body* is a GraphQL request with an operation that is no query (GraphQL over HTTP, §5)."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return False
    documents = [
        each.get("query") for each in (given if isinstance(given, list) else [given]) if isinstance(each, dict)
    ]
    return any(isinstance(text, str) and _CHANGES.search(text) is not None for text in documents)


def told_fields(fields: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the headers of a stored answer that the browser is told."""
    return tuple(
        (name, value) for name, value in fields if name not in DROPPED and not name.startswith("access-control-")
    )


def readable(asked: Asked, told: Told) -> Told:
    """Return *told* so that any page may read it, as in a replay, where all is of one origin."""
    cors = (
        ("access-control-allow-origin", asked.first("origin") or "*"),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "*"),
    )
    return replace(told, fields=(*told.fields, *cors))


def preflight(asked: Asked) -> Told:
    """Return the answer to the question before a request to another origin; sites are not asked it."""
    allowed = (
        ("access-control-allow-methods", asked.first("access-control-request-method")),
        ("access-control-allow-headers", asked.first("access-control-request-headers") or "*"),
    )
    return readable(asked, Told(204, allowed, b""))


def part_of(asked: Asked, told: Told) -> Told:
    """Return the part of *told* that *asked* asks for with Range (RFC 9110 §14.2), or all of it."""
    wanted = _RANGE.fullmatch(asked.first("range").strip())
    if wanted is None or told.status != 200 or int(wanted[2] or wanted[1]) < int(wanted[1]):
        return told
    size = len(told.body)
    first = int(wanted[1])
    if first >= size:
        return Told(416, (("content-range", f"bytes */{size}"),), b"", told.second)
    last = min(int(wanted[2] or size - 1), size - 1, first + LARGEST_PART - 1)
    fields = (*told.fields, ("content-range", f"bytes {first}-{last}/{size}"), ("accept-ranges", "bytes"))
    return Told(206, fields, told.body[first : last + 1], told.second)
