"""POST requests of pages: which of them may be sent, and the URL by which each is known."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.ask import LARGEST, METHOD, Ask
from archiver.browser.answers import MAX_FIELDS, Asked, post_of
from archiver.http.form_post import FormPost
from archiver.url import canonical
from archiver.warc.cdxj import safe_key
from archiver.warc.post_keys import asked_of, asked_url, parts_of

TARGET = "http://example.org/api"


def asked(body: bytes = b"{}", kind: str = "XHR", method: str = "POST", fields: dict[str, str] | None = None) -> Asked:
    return Asked(TARGET, method, kind, tuple((fields or {}).items()), body)


@pytest.mark.parametrize("kind", ["XHR", "Fetch"])
def test_a_post_of_a_script_is_sent(kind: str) -> None:
    fields = {"content-type": "application/json", "x-own": "1", "accept": "text/x", "accept-language": "fr"}
    fields |= {"origin": "http://a", "authorization": "Bearer x", "cookie": "c=1"}
    ask = post_of(asked(kind=kind, fields=fields), TARGET)
    assert ask == Ask(TARGET, "application/json", b"{}", (("X-Own", "1"), ("Accept", "text/x")))


@pytest.mark.parametrize(
    "wrong",
    [
        asked(method="PUT"),
        asked(method="DELETE"),
        asked(kind="Ping"),
        asked(kind="Document"),
        asked(b"x" * (LARGEST + 1)),
        asked(json.dumps({"query": "mutation { a }"}).encode()),
        asked(json.dumps({"query": "  # note\n mutation M { a }"}).encode()),
        asked(json.dumps({"query": "query A { a } mutation B { b }", "operationName": "A"}).encode()),
        asked(json.dumps([{"query": "{ a }"}, {"query": "subscription { a }"}]).encode()),
        asked(fields={"content-type": "text/plain\r\nX: y"}),
        asked(fields={"content-type": "é"}),
    ],
)
def test_what_is_not_sent(wrong: Asked) -> None:
    assert post_of(wrong, TARGET) is None


@pytest.mark.parametrize(
    "body", [b"", b"{ a }", b"[1, null]", b"[" * 100_000, b'{"query": 1}', b'{"query": "{ mutations }"}']
)
def test_other_bodies_are_sent(body: bytes) -> None:
    assert post_of(asked(body), TARGET) is not None


def test_headers_are_bounded_and_cannot_break_a_line() -> None:
    many = {"x-bad": "a\r\nb"} | {f"x-{number}": "1" for number in range(100)}
    ask = post_of(asked(fields=many), TARGET)
    assert ask is not None
    assert len(ask.fields) == MAX_FIELDS
    assert all("\n" not in value for _, value in ask.fields)


TYPES = st.sampled_from(
    ["", "application/json", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"]
)
ASKS = st.builds(
    Ask,
    st.just(TARGET),
    TYPES,
    st.binary(max_size=200),
    st.lists(st.tuples(st.just("X-A"), st.text("ab 1"))).map(tuple),
)


@given(ASKS)
def test_text_round_trip(ask: Ask) -> None:
    assert Ask.of_text(ask.text()) == ask


@given(ASKS)
def test_the_url_of_a_post_names_its_host_and_its_method(ask: Ask) -> None:
    known = asked_url(ask)
    assert known is not None
    assert known.startswith(f"{TARGET}?{METHOD}POST")
    assert canonical(known) == known


@given(ASKS)
def test_a_stored_request_gives_the_same_url(ask: Ask) -> None:
    """Recovery knows a visit by its records alone."""
    head = f"POST /api HTTP/1.1\r\nHost: example.org\r\nContent-Length: {len(ask.body)}\r\n"
    head += f"Content-Type: {ask.content_type}\r\n" if ask.content_type else ""
    found = asked_of(TARGET, head.encode() + b"\r\n" + ask.body)
    assert asked_url(found) == asked_url(ask)
    assert safe_key(parts_of(found)[1]) == safe_key(parts_of(ask)[1])


@pytest.mark.parametrize("request_bytes", [b"", b"GET /api HTTP/1.1\r\n\r\n", b"POST /api HTTP/1.1\r\nHost: a\r\n"])
def test_what_is_no_post_of_ours(request_bytes: bytes) -> None:
    with pytest.raises(ValueError, match="no POST"):
        asked_of(TARGET, request_bytes)


def test_a_form_is_secret_unless_a_script_sent_it() -> None:
    assert FormPost(b"", "", "").secret
