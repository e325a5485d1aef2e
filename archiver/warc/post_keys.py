"""The keys of responses to requests with a body.

A query is appended to the URL of the key, so that each body has its own key. The query has the values of a form or of
JSON, or else the body in base64, cut at 4096 characters. pywb and replayweb.page look it up. cdxj-indexer writes
numbers, booleans and nulls of JSON as Python does, so that neither finds them. Pure, linear; nothing but `asked_of`
raises. Source: "CDX for non-GET requests".
"""

import base64
import json
import re
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote_plus, urlencode

from archiver import url
from archiver.ask import GET, METHOD, POST, WEBSOCKET, WITH_BODY, Ask, opens_websocket

LONGEST_QUERY = 4096  # characters of a query
MAX_BODY = 4 << 20  # bytes of a body that are read; longer JSON gives no values
WITHOUT_LENGTH = 8192  # bytes that are read of a body without Content-Length

_NAME = re.compile(rb'[; \t]name="([^"\r\n]*)"', re.IGNORECASE)
_FILENAME = re.compile(rb"[; \t]filename\*?=", re.IGNORECASE)
_LENGTH = re.compile(r"[ \t]*[0-9]{1,18}[ \t]*")


def key_parts(method: str, url: str, content_type: str, length: str | None, body: bytes) -> tuple[str | None, str]:
    """Return the query made from *body*, and *url* with all that is appended for the lookup of the response.

    *length* is the request's Content-Length, None without one; if it is not a number, there is no query.
    """
    query: str | None = ""
    if method in WITH_BODY:
        size = _size(length)
        query = None if size is None else _query(content_type, body[:size])[:LONGEST_QUERY]
    joined = f"{url}{'&' if '?' in url else '?'}{METHOD}{method}"
    return query, f"{joined}&{query}" if query else joined


def _size(length: str | None) -> int | None:
    if length is None:
        return WITHOUT_LENGTH
    return int(length) if _LENGTH.fullmatch(length) else None


def _query(content_type: str, body: bytes) -> str:
    if content_type.startswith("application/x-www-form-urlencoded"):
        try:
            return unquote_plus(body.decode())
        except UnicodeDecodeError:
            return _binary(body)
    if content_type.startswith("multipart/"):
        boundary = content_type.partition("boundary=")[2]
        return _multipart(body, boundary) if boundary else _binary(body)
    if content_type.startswith("application/json"):
        return _json(body) or ""
    if content_type.startswith("text/plain"):
        values = _json(body)
        return _binary(body) if values is None else values
    return _binary(body)


def _binary(body: bytes) -> str:
    return f"__wb_post_data={base64.b64encode(body[:LONGEST_QUERY]).decode()}"


def _multipart(body: bytes, boundary: str) -> str:
    """Return the fields of a multipart form as a query; a file's bytes are kept as they are."""
    mark = b"\r\n--" + boundary.partition(";")[0].strip(' \t"').encode("latin-1", "replace")
    values: list[tuple[str, str | bytes]] = []
    for part in (b"\r\n" + body).split(mark)[1:]:
        if part.startswith(b"--"):
            break
        head, end, value = part.partition(b"\r\n\r\n")
        name = _NAME.search(head) if end else None
        if name is not None:
            is_file = _FILENAME.search(head)
            values.append((name[1].decode("utf-8", "replace"), value if is_file else value.decode("utf-8", "replace")))
    return urlencode(values)


def _json(body: bytes) -> str | None:
    """Return names and values of JSON, or of JSON lines, as a query; None if *body* is not JSON."""
    try:
        try:
            documents = [json.loads(body)]
        except json.JSONDecodeError:
            if b"\n" not in body:
                return None
            documents = [json.loads(line) for line in body.split(b"\n")]
        values: dict[str, str] = {}
        repeated: dict[str, int] = {}
        for document in documents:
            _gather(document, "", values, repeated)
        return urlencode(values)
    except (ValueError, RecursionError):  # an unpaired surrogate, a number with too many digits, or too deep nesting
        return None


def _gather(value: Any, name: str, values: dict[str, str], repeated: dict[str, int]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _gather(inner, key, values, repeated)
    elif isinstance(value, list):
        for inner in value:
            _gather(inner, name, values, repeated)
    elif name:
        if name in values:
            repeated[name] = repeated.get(name, 1) + 1
            name = f"{name}.{repeated[name]}_"
        values[name] = _text(value)


def _text(value: Any) -> str:
    """Return a value of JSON as JavaScript writes it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def asked_url(ask: Ask) -> str | None:
    """Return the URL by which *ask* is known to the frontier; None if there can be none.

    That of a POST is the one of its key.
    """
    if not ask.posts:
        return ask.target
    _, looked_up = parts_of(ask)
    return url.canonical(looked_up)


def parts_of(ask: Ask) -> tuple[str | None, str]:
    """Return the query and the looked-up URL of *ask*, which is no GET, as in `key_parts`."""
    return key_parts(ask.method, ask.target, ask.content_type, str(len(ask.body)), ask.body)


def asked_of(target: str, request: bytes, named: Collection[str] = ()) -> Ask:
    """Return what a script has sent to *target*, which crossed the wire as *request*.

    *named*: the headers that the script has set, in lower case. Raises `ValueError` if it is none of ours.
    """
    head, end, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    sent = [line.partition(": ")[::2] for line in lines]
    method = first.partition(" ")[0]
    if not end or method not in (GET, POST):
        raise ValueError("its request is neither GET nor POST")
    fields = tuple((name, value) for name, value in sent if name.lower() in named)
    if method == GET:
        return Ask(target, "", b"", fields, GET)
    content_type = next((value for name, value in sent if name.lower() == "content-type"), "")
    return Ask(target, content_type, body, fields)


def recorded_url(ask: Ask) -> str:
    """Return the URL by which a recorded *ask* is known to the frontier: without what was sent, which may be secret."""
    method = f"{ask.target}{'&' if '?' in ask.target else '?'}{METHOD}{ask.method}"
    return url.canonical(method) or ask.target if ask.posts else ask.target


def recorded_ask(target: str, request: bytes) -> Ask:
    """Return what a client has sent to *target* as *request*; of the body only the part that keys depend on."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method = WEBSOCKET if opens_websocket(head) else first.partition(" ")[0]
    if method not in WITH_BODY:
        return Ask(target, "", b"", (), method)
    fields = (line.partition(":") for line in lines)
    content_type = next((value.strip() for name, _, value in fields if name.lower() == "content-type"), "")
    return Ask(target, content_type, body[:MAX_BODY], (), method)
