"""Requests of clients to a proxy: what is read, what is refused and with which status, and what the server gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.ask import opens_websocket
from archiver.http.request_head import (
    MOST_FIELDS,
    RequestFault,
    head_for_client,
    read_authority,
    read_request,
    split_absolute,
)

OPEN = b"Connection: keep-alive, Upgrade, X-Once\r\nUpgrade: WebSocket\r\nX-Once: 1\r\n"
LINE = b"GET http://example.org/a HTTP/1.1\r\n"
HOST = b"Host: example.org\r\n"


def refused(head: bytes) -> int:
    """Return the status with which *head* is refused."""
    with pytest.raises(RequestFault) as found:
        read_request(head)
    return found.value.status


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET http://example.org/ HTTP/1.1\n" + HOST + b"\r\n", 400),  # bare LF
        (LINE + b"Host: example.org\nX: 1\r\n\r\n", 400),
        (LINE + HOST + b"X: a\rY: b\r\n\r\n", 400),
        (b"GET  http://example.org/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),  # two spaces
        (b"GET http://example.org/a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET http://example.org/ HTTP/2.0\r\n" + HOST + b"\r\n", 505),
        (b"GET http://example.org/\r\n" + HOST + b"\r\n", 400),  # HTTP/0.9
        (b"G@T http://example.org/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET http://example.org/" + b"x" * 17_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET http://example.org/\x01 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (LINE + b"\r\n", 400),  # no Host
        (LINE + HOST + HOST + b"\r\n", 400),
        (LINE + HOST + b"X : 1\r\n\r\n", 400),  # a space before the colon
        (LINE + HOST + b" folded\r\n\r\n", 400),
        (LINE + HOST + b"no colon\r\n\r\n", 400),
        (LINE + HOST + b": nothing\r\n\r\n", 400),
        (LINE + HOST + b"X: \0\r\n\r\n", 400),
        (LINE + HOST + b"".join(b"X-%d: 1\r\n" % number for number in range(MOST_FIELDS)) + b"\r\n", 431),
        (LINE + HOST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),  # request smuggling
        (LINE + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400),
        (LINE + HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (LINE + HOST + b"Content-Length: 1, 1\r\n\r\n", 400),
        (LINE + HOST + b"Content-Length: +1\r\n\r\n", 400),
        (LINE + HOST + b"Content-Length: -1\r\n\r\n", 400),
        (LINE + HOST + b"Content-Length: 0x1\r\n\r\n", 400),
        (LINE + HOST + b"Content-Length:\r\n\r\n", 400),
        (LINE + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (LINE + HOST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", 501),
        (LINE + HOST + b"Transfer-Encoding: xchunked\r\n\r\n", 501),
        (LINE + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 501),
        (b"POST http://example.org/a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
    ],
)
def test_what_two_programs_could_read_differently_is_refused(head: bytes, status: int) -> None:
    assert refused(head) == status


@pytest.mark.parametrize(
    ("fields", "length"),
    [
        (b"", 0),
        (b"Content-Length: 12\r\n", 12),
        (b"content-length:12\r\n", 12),
        (b"Transfer-Encoding: Chunked\r\n", None),
    ],
)
def test_the_body_ends_as_the_head_says(fields: bytes, length: int | None) -> None:
    assert read_request(LINE + HOST + fields + b"\r\n").length == length


def test_the_server_gets_the_headers_byte_for_byte_but_those_of_the_connection() -> None:
    head = (
        b"POST http://example.org/a HTTP/1.1\r\nhOST: example.org\r\nProxy-Connection: keep-alive\r\n"
        b"X-Odd:\t spaced  \r\nCookie: a=1; b=\xe9\r\nConnection: keep-alive, X-Own\r\nX-Own: 1\r\nTE: trailers\r\n"
        b"Proxy-Authorization: Basic eDp5\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nX-Last: 2\r\n\r\n"
    )
    assert read_request(head).for_server("/a?b", 7) == (
        b"POST /a?b HTTP/1.1\r\nhOST: example.org\r\nX-Odd:\t spaced  \r\nCookie: a=1; b=\xe9\r\n"
        b"Content-Length: 7\r\nX-Last: 2\r\n\r\n"
    )


@pytest.mark.parametrize("name", [b"Host", b"Content-Length", b"Transfer-Encoding"])
def test_connection_cannot_take_away_what_frames_the_request(name: bytes) -> None:
    value = {b"Host": b"example.org", b"Content-Length": b"3", b"Transfer-Encoding": b"chunked"}[name]
    line = name + b": " + value + b"\r\n"
    fields = line if name == b"Host" else HOST + line
    sent = read_request(LINE + fields + b"Connection: " + name + b"\r\n\r\n").for_server("/a", 3)
    assert (b"Host: example.org" if name == b"Host" else b"Content-Length: 3") in sent


@pytest.mark.parametrize(
    ("version", "fields", "persistent"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: Close\r\n", False),
        (b"1.1", b"Connection: x, close\r\n", False),
        (b"1.1", b"Proxy-Connection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Proxy-Connection: Keep-Alive\r\n", True),
    ],
)
def test_the_connection_goes_on_as_the_client_wants(version: bytes, fields: bytes, *, persistent: bool) -> None:
    head = b"GET http://example.org/ HTTP/" + version + b"\r\n" + HOST + fields + b"\r\n"
    assert read_request(head).persistent == persistent


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("http://example.org", ("http://example.org", "/")),
        ("HTTP://Example.org:8080/a%2fb?c=/d", ("http://Example.org:8080", "/a%2fb?c=/d")),
        ("http://example.org?q", ("http://example.org", "/?q")),
        ("http://example.org/a#b", ("http://example.org", "/a")),
    ],
)
def test_an_absolute_url_is_split_as_it_is_written(target: str, parts: tuple[str, str]) -> None:
    assert split_absolute(target) == parts


@pytest.mark.parametrize(
    "target",
    ["/", "*", "example.org:80", "https://example.org/", "ftp://example.org/", "http://a@example.org/", "http:///"],
)
def test_what_leads_nowhere_is_refused(target: str) -> None:
    with pytest.raises(RequestFault):
        split_absolute(target)


@pytest.mark.parametrize(
    ("text", "place"),
    [("example.org:443", ("example.org", 443)), ("[::1]:8443", ("[::1]", 8443)), ("127.0.0.1:1", ("127.0.0.1", 1))],
)
def test_a_tunnel_has_host_and_port(text: str, place: tuple[str, int]) -> None:
    assert read_authority(text) == place


@pytest.mark.parametrize(
    "text", ["example.org", "example.org:", ":443", "a:0", "a:65536", "a:x", "a b:1", "::1:443", "/:1"]
)
def test_another_tunnel_is_refused(text: str) -> None:
    with pytest.raises(RequestFault):
        read_authority(text)


def test_the_client_gets_the_head_as_it_came_but_what_concerns_the_connection() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nServer: x\nConnection: Keep-Alive, X-Own\r\n folded\r\nKeep-Alive: 5\r\nX-Own: 1\r\n"
        b"Transfer-Encoding: chunked\r\nSet-Cookie: a\r\n\tb\r\n\r\n"
    )
    assert head_for_client(head, keep=True) == (
        b"HTTP/1.1 200 OK\r\nServer: x\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a\r\n\tb\r\n"
        b"Connection: keep-alive\r\n\r\n"
    )
    assert head_for_client(b"HTTP/1.0 204 No\n\n", keep=False) == b"HTTP/1.0 204 No\r\nConnection: close\r\n\r\n"


@given(st.binary(max_size=300))
def test_no_bytes_do_harm(data: bytes) -> None:
    for head in (data, data + b"\r\n\r\n", LINE + data + b"\r\n\r\n", LINE + HOST + data + b"\r\n\r\n"):
        try:
            request = read_request(head)
        except RequestFault as fault:
            assert 400 <= fault.status < 600  # noqa: PT017  either way is right
        else:
            assert read_request(request.for_server("/", 0)).all("host") == request.all("host")
    head_for_client(data, keep=True)


NAMES = st.text("abcdefghijklmnopqrstuvwxyzABC-", min_size=1, max_size=12).filter(
    lambda name: name.lower() not in {"te", "host", "upgrade", "expect"}
)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, blacklist_categories=["Cc"]), max_size=30)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8))
def test_headers_of_no_special_meaning_reach_the_server_unchanged(fields: list[tuple[str, str]]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields).encode("latin-1")
    sent = read_request(LINE + HOST + lines + b"\r\n").for_server("/a", 0)
    assert sent == b"GET /a HTTP/1.1\r\n" + HOST + lines + b"\r\n"


@pytest.mark.parametrize(
    ("head", "opens"),
    [
        (LINE + HOST + OPEN + b"\r\n", True),
        (LINE + HOST + OPEN.replace(b"Upgrade, ", b"") + b"\r\n", False),
        (LINE + HOST + OPEN.replace(b"WebSocket", b"websocket, h2c") + b"\r\n", False),
        (LINE + HOST + OPEN + b"Upgrade: websocket\r\n\r\n", False),
        (LINE + HOST + OPEN + b"Content-Length: 1\r\n\r\n", False),
        (LINE.replace(b"1.1", b"1.0") + HOST + OPEN + b"\r\n", False),
        (LINE.replace(b"GET", b"POST") + HOST + OPEN + b"\r\n", False),
    ],
)
def test_a_websocket_connection_begins_as_the_standard_says(head: bytes, opens: bool) -> None:  # noqa: FBT001
    assert read_request(head).opens_websocket is opens


def test_the_server_sees_the_wish_for_a_websocket_connection() -> None:
    head = LINE + HOST + OPEN + b"Proxy-Authorization: Basic x\r\nSec-WebSocket-Key: a \r\n\r\n"
    sent = read_request(head).for_websocket("/a")
    assert sent == (
        b"GET /a HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: a \r\n\r\n"
    )
    assert opens_websocket(sent.partition(b"\r\n\r\n")[0])
    assert not opens_websocket(LINE + HOST + b"X: upgrade: websocket")
    assert not opens_websocket(b"POST /a HTTP/1.1\r\n" + HOST + b"Upgrade: websocket")
