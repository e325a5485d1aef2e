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

from archiver import url
from archiver.ask import GET, LARGEST, POST, Ask
from archiver.config.secret_settings import SECRET

UNTOLD = 0
SCRIPTED = frozenset(("XHR", "Fetch"))  # kinds of requests that scripts make
NAVIGATION = "Navigation"  # the kind of a request by which the page would go to another one
UNSEEN = {"Ping", "CSPViolationReport", "Prefetch"}  # kinds whose answer shows nowhere


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


SENT = re.compile(  # names of headers; not those that make another method of a request, or another sender
    r"(?:accept|accept-language|authorization|content-type|origin|referer"
    r"|hx-[a-z-]{1,40}|turbo-frame|rsc|next-(?:url|router-[a-z-]{1,40})"  # htmx, Turbo, Next.js: a part of the page
    r"|prefer|api-?key|client-id|apollo-require-preflight|apollographql-client-(?:name|version)"
    r"|x-(?!http-method|method-override|forwarded)[a-z0-9-]{1,98})\Z"
)
PLAIN = {("accept", "*/*")}  # what a script sends that sets nothing
LONGEST_FIELD, MAX_FIELDS = 1000, 20  # characters, and headers
MAX_FIELD_BYTES = 4000  # of all headers together
_CHANGES = re.compile(r"(?:^|[}\s])(?:mutation|subscription)\b")  # an operation of GraphQL that is no query


def post_of(asked: Asked, target: str, *, same_site: bool) -> Ask | None:
    """Return the POST that *asked* is, for the canonical URL *target*; None if it may not be sent.

    Only scripts may send one, and no mutation or subscription of GraphQL. *same_site*: as in `script_fields`.
    """
    body = asked.body or b""
    if asked.method != POST or asked.kind not in SCRIPTED or len(body) > LARGEST or _changes_something(body):
        return None
    content_type = asked.first("content-type")
    if not _is_safe(content_type):
        return None
    left_out = ("Content-Type", "Origin", "Referer")  # each POST has them
    fields = [(name, value) for name, value in script_fields(asked, same_site=same_site) if name not in left_out]
    return Ask(target, content_type, body, tuple(fields))


def get_of(asked: Asked, target: str, page: str, *, same_site: bool) -> Ask | None:
    """Return the GET for *target* with the headers that a script of *page* has set; None if it has set none."""
    if asked.method != GET or asked.kind not in SCRIPTED:
        return None
    usual = ("Referer", page.partition("#")[0]), ("Referer", f"{url.origin(page)}/")
    fields = [each for each in script_fields(asked, same_site=same_site) if each not in usual]
    return Ask(target, "", b"", tuple(fields), GET) if fields else None


def script_fields(asked: Asked, *, same_site: bool) -> tuple[tuple[str, str], ...]:
    """Return the headers of *asked* that are sent as the page has set them; they are bounded.

    *same_site*: the page is of the same site. Otherwise none is sent that may be a secret, such as Authorization.
    """
    found: list[tuple[str, str]] = []
    for name, value in asked.fields:
        secret = SECRET.search(name) is not None and not same_site
        if SENT.match(name) is not None and _is_safe(value) and not secret and (name, value) not in PLAIN:
            found.append((name.title(), value))
    size, kept = 0, 0
    while kept < min(len(found), MAX_FIELDS) and size <= MAX_FIELD_BYTES:
        size += sum(map(len, found[kept]))
        kept += 1
    return tuple(found[: kept - (size > MAX_FIELD_BYTES)])


def _is_safe(value: str) -> bool:
    return value.isascii() and value.isprintable() and len(value) < LONGEST_FIELD and value == value.strip()


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


def is_unseen(asked: Asked) -> bool:
    """Return True if the answer shows nowhere, or the browser asks by itself."""
    return asked.kind in UNSEEN or (asked.kind == "Other" and asked.url.endswith("/favicon.ico"))
