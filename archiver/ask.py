"""A request as a page in a browser sends it by itself: a POST, or a GET with headers of its script. Pure.

A request that was recorded may have any method.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

METHOD = "__wb_method="  # in the keys of responses to other methods than GET
GET, POST = "GET", "POST"
WEBSOCKET = "WEBSOCKET"  # in place of GET for a request that opens a WebSocket connection (RFC 6455)
WITH_BODY = frozenset((POST, "PUT"))  # methods whose responses are looked up by what was sent
ASKED_BY_SCRIPT = "askedByScript"  # in the notes of its exchange …
ASKED_BY_CLIENT = "askedByClient"  # in the notes of a recorded exchange with another method than GET
HEADERS_BY_SCRIPT = "headersByScript:"  # … and before the names of its headers, with a slash between them
LARGEST = 1 << 20  # bytes of a body
_UPGRADE = re.compile(rb"\nupgrade:[ \t]*websocket[ \t]*(?:\r\n|\Z)", re.IGNORECASE)


def opens_websocket(head: bytes) -> bool:
    """Return True if the request with this *head* opens a WebSocket connection: its answer is no answer to a GET."""
    return head.startswith(b"GET ") and b"websocket" in head.lower() and _UPGRADE.search(head) is not None


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: all that is sent but the headers that every request has."""

    target: str  # canonical URL; the row of a POST has another one, by which a replay looks the answer up
    content_type: str  # of the body; "" if the page names none
    body: bytes = field(repr=False)
    fields: tuple[tuple[str, str], ...] = ()  # headers that scripts of the page have set
    method: str = POST

    @property
    def posts(self) -> bool:
        """True if it is no GET, so that its response is not that of its target."""
        return self.method != GET

    def bare(self) -> "Ask":
        """Return it without what was sent: a recorded request may hold secrets of a person."""
        return replace(self, content_type="", body=b"", fields=())

    def text(self) -> str:
        """Return it as text for a database."""
        method = () if self.method == POST else (self.method,)
        return json.dumps([self.target, self.content_type, b64encode(self.body).decode(), self.fields, *method])

    @classmethod
    def of_text(cls, text: str) -> "Ask":
        """Return what `text` has written."""
        target, content_type, body, fields, *method = json.loads(text)
        return cls(target, content_type, b64decode(body), tuple((name, value) for name, value in fields), *method)

    def redirected(self, target: str, kept: tuple[tuple[str, str], ...]) -> "Ask":
        """Return the request that follows a redirect to *target*, with the headers *kept*."""
        return replace(self, target=target, fields=kept)

    def notes(self, request: bytes) -> tuple[str, ...]:
        """Return what recovery must know of it, as notes of the exchange that sent *request*."""
        sent = set(request.partition(b"\r\n\r\n")[0].split(b"\r\n"))
        names = [name for name, value in self.fields if f"{name}: {value}".encode() in sent]
        return ASKED_BY_SCRIPT, *((HEADERS_BY_SCRIPT + "/".join(names),) if names else ())


def named_headers(notes: Iterable[str]) -> frozenset[str]:
    """Return the names of the headers that a script has set, in lower case, as *notes* of an exchange name them."""
    found = (each.removeprefix(HEADERS_BY_SCRIPT) for each in notes if each.startswith(HEADERS_BY_SCRIPT))
    return frozenset(name.lower() for each in found for name in each.split("/"))
