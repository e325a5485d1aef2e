"""Requests of scripts: which POST may be sent, with which headers, and the URL by which each is known."""

import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.ask import ASKED_BY_SCRIPT, GET, LARGEST, METHOD, Ask, named_headers
from archiver.browser.answers import MAX_FIELD_BYTES, MAX_FIELDS, Asked, get_of, post_of
from archiver.http.form_post import FormPost
from archiver.url import canonical
from archiver.warc.cdxj import safe_key
from archiver.warc.post_keys import asked_of, asked_url, parts_of

TARGET = "http://example.org/api"
PAGE = "http://example.org/app/"


def asked(body: bytes = b"{}", kind: str = "XHR", method: str = "POST", fields: dict[str, str] | None = None) -> Asked:
    return Asked(TARGET, method, kind, tuple((fields or {}).items()), body)


@pytest.mark.parametrize("kind", ["XHR", "Fetch"])
def test_a_post_of_a_script_is_sent(kind: str) -> None:
    fields = {"content-type": "application/json", "x-own": "1", "accept": "text/x", "accept-language": "fr"}
    fields |= {"origin": "http://a", "authorization": "Bearer x", "cookie": "c=1"}
    ask = post_of(asked(kind=kind, fields=fields), TARGET, same_site=True)
    own = ("X-Own", "1"), ("Accept", "text/x"), ("Accept-Language", "fr"), ("Authorization", "Bearer x")
    assert ask == Ask(TARGET, "application/json", b"{}", own)
    assert post_of(asked(kind=kind, fields=fields), TARGET, same_site=False) == replace(ask, fields=own[:3])


@pytest.mark.parametrize(
    ("fields", "site", "sent"),
    [
        ({"accept": "*/*", "referer": PAGE, "user-agent": "Chromium", "cookie": "c=1"}, "same", None),
        ({"referer": "http://example.org/"}, "same", None),  # as the policy of another page may cut it
        ({"accept": "application/json"}, "other", {"Accept": "application/json"}),
        (
            {"referer": f"{PAGE}pushed", "origin": "http://a"},
            "same",
            {"Referer": f"{PAGE}pushed", "Origin": "http://a"},
        ),
        ({"authorization": "Bearer x", "x-api-key": "k"}, "same", {"Authorization": "Bearer x", "X-Api-Key": "k"}),
        ({"authorization": "Bearer x", "x-api-key": "k", "x-csrf": "c", "x-own": "1"}, "other", {"X-Own": "1"}),
        ({"x-http-method-override": "DELETE", "x-forwarded-for": "::1", "if-none-match": "e"}, "same", None),
        ({"hx-request": "true", "hx-target": "list"}, "other", {"Hx-Request": "true", "Hx-Target": "list"}),
        ({"rsc": "1", "next-url": "/a", "next-action": "f", "apikey": "k"}, "other", {"Rsc": "1", "Next-Url": "/a"}),
        ({"turbo-frame": "list", "apikey": "k"}, "same", {"Turbo-Frame": "list", "Apikey": "k"}),
        ({"content-type": "application/json", "custom": "1"}, "same", {"Content-Type": "application/json"}),
        ({"x-a": "1\r\nCookie: c", "x-b": "\u00e9", "x-" + "c" * 99: "1", "x-d": " 1"}, "same", None),
    ],
)
def test_headers_of_a_get(fields: dict[str, str], site: str, sent: dict[str, str] | None) -> None:
    same_site = site == "same"
    ask = get_of(asked(method="GET", fields=fields), TARGET, PAGE, same_site=same_site)
    assert (None if ask is None else dict(ask.fields)) == sent
    assert ask is None or (ask.posts, asked_url(ask)) == (False, TARGET)
    assert get_of(asked(kind="Image", method="GET", fields=fields), TARGET, PAGE, same_site=same_site) is None


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
    assert post_of(wrong, TARGET, same_site=True) is None


@pytest.mark.parametrize(
    "body", [b"", b"{ a }", b"[1, null]", b"[" * 100_000, b'{"query": 1}', b'{"query": "{ mutations }"}']
)
def test_other_bodies_are_sent(body: bytes) -> None:
    assert post_of(asked(body), TARGET, same_site=True) is not None


def test_headers_are_bounded_and_cannot_break_a_line() -> None:
    many = {"x-bad": "a\r\nb"} | {f"x-{number}": "1" for number in range(100)}
    ask = post_of(asked(fields=many), TARGET, same_site=True)
    assert ask is not None
    assert len(ask.fields) == MAX_FIELDS
    large = post_of(asked(fields={f"x-{number}": "1" * 900 for number in range(9)}), TARGET, same_site=True)
    assert large is not None
    assert len(large.fields) == MAX_FIELD_BYTES // 904
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
    get = replace(ask, body=b"", method=GET)
    assert Ask.of_text(get.text()) == get


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


def test_a_stored_get_gives_the_headers_of_its_script_back() -> None:
    """But not a header of ours, or one of the user that has replaced that of the script."""
    ask = Ask(TARGET, "", b"", (("Accept", "a/b"), ("X-Own", "1"), ("X-Of-User", "2")), GET)
    request = b"GET /api HTTP/1.1\r\nHost: a\r\nX-Of-User: 3\r\nX-Other: 4\r\nAccept: a/b\r\nX-Own: 1\r\n\r\n"
    notes = ask.notes(request)
    assert notes == (ASKED_BY_SCRIPT, "headersByScript:Accept/X-Own")
    assert asked_of(TARGET, request, named_headers(notes)) == replace(ask, fields=ask.fields[:2])


@pytest.mark.parametrize("request_bytes", [b"", b"PUT /api HTTP/1.1\r\n\r\n", b"POST /api HTTP/1.1\r\nHost: a\r\n"])
def test_what_is_no_request_of_ours(request_bytes: bytes) -> None:
    with pytest.raises(ValueError, match="neither GET nor POST"):
        asked_of(TARGET, request_bytes)


def test_a_form_is_secret_unless_a_script_sent_it() -> None:
    assert FormPost(b"", "", "").secret


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé& #"', max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_the_values_of_json_are_those_of_pywb(value: object) -> None:
    inputrequest = pytest.importorskip("pywb.warcserver.inputrequest", reason="needs pywb")
    body = json.dumps(value).encode()
    theirs = inputrequest.MethodQueryCanonicalizer("POST", "application/json", len(body), io.BytesIO(body))
    query, looked_up = parts_of(Ask(TARGET, "application/json", body))
    assert (query or "") == (theirs.query or "")
    assert looked_up == theirs.append_query(TARGET)
