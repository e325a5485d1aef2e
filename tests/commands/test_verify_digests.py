"""Block and payload digests computed again, however the block arrives, and what is said where they fail."""

import base64
import gzip
import hashlib
import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.tools.verify.record_checks import BlockCheck
from archiver.tools.verify.usual_blocks import summary_of, usual_summary
from archiver.warc.reader import read_records
from fixtures.handmade_warc import record, sha256

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"


def base32(algorithm: str, data: bytes) -> str:
    return f"{algorithm}:{base64.b32encode(hashlib.new(algorithm, data).digest()).decode()}"


def findings(data: bytes, step: int = 1 << 16) -> list[str]:
    found = next(read_records(io.BytesIO(data)))
    check = BlockCheck(found)
    for piece in found.pieces():
        for start in range(0, len(piece), step):
            check.feed(piece[start : start + step])
    check.finish()
    return [code for code, _ in check.findings()]


def response(block: bytes, payload: str, *fields: tuple[str, str]) -> bytes:
    return record("response", block, ("WARC-Payload-Digest", payload), *fields)


GOOD = {
    "plain": response(HEAD + b"<p>", sha256(b"<p>")),
    "no body": response(HEAD, sha256(b"")),
    "chunked": response(CHUNKED + CHUNKS, sha256(b"abcde")),
    "chunked, cut and marked": response(CHUNKED + b"9\r\nabc", sha256(b"abc"), ("WARC-Truncated", "disconnect")),
    "HTTP/0.9": response(b"<p>hello\r\n\r\n<p>", sha256(b"<p>hello\r\n\r\n<p>")),
    "a head without end": response(b"HTTP/1.1 200 OK\r\nA: b", sha256(b"")),
    "LF only": response(b"HTTP/1.0 200 OK\nA: b\n\nbody", sha256(b"body")),
    "empty": response(b"", sha256(b"")),
    "sha1": response(HEAD + b"<p>", base32("sha1", b"<p>")),
    "sha1 in lower case": response(HEAD + b"<p>", base32("sha1", b"<p>").lower()),
    "sha1 in base 16": response(HEAD + b"<p>", "sha1:" + hashlib.sha1(b"<p>").hexdigest()),
    "sha256 in base 32": response(HEAD + b"<p>", base32("sha256", b"<p>")),
    "sha512": response(HEAD + b"<p>", "sha512:" + hashlib.sha512(b"<p>").hexdigest()),
    "md5": response(HEAD + b"<p>", "md5:" + hashlib.md5(b"<p>").hexdigest()),
    "an unknown algorithm": response(HEAD + b"<p>", "blake3:00"),
    "no digest": record("response", HEAD + b"<p>", without=["WARC-Block-Digest"]),
    "a 304 with a length": response(b"HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", sha256(b"")),
    "a request with a body": record(
        "request", b"POST / HTTP/1.1\r\nHost: a\r\n\r\na=b", ("WARC-Payload-Digest", sha256(b"a=b"))
    ),
    "a chunked request": record(
        "request",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
        ("WARC-Payload-Digest", sha256(b"abcde")),
    ),
    "a resource": record("resource", b"text", ("WARC-Payload-Digest", sha256(b"text"))),
    "DNS": record("response", b"x", ("Content-Type", "text/dns"), ("WARC-Payload-Digest", sha256(b"x"))),
    "a revisit has the digest of the original": record("revisit", HEAD, ("WARC-Payload-Digest", sha256(b"<p>"))),
}


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
@pytest.mark.parametrize("data", GOOD.values(), ids=GOOD)
def test_what_is_right_has_no_finding(data: bytes, step: int) -> None:
    assert findings(data, step) == []


OTHER = sha256(b"other")
BAD = {
    "block": (record("resource", b"text", ("WARC-Block-Digest", OTHER)), ["block-digest"]),
    "payload": (response(HEAD + b"<p>", OTHER), ["payload-digest"]),
    "both": (response(HEAD, OTHER, ("WARC-Block-Digest", OTHER)), ["block-digest", "payload-digest"]),
    "of the framing": (response(CHUNKED + CHUNKS, sha256(CHUNKS)), ["payload-digest-of-framing"]),
    "of neither": (response(CHUNKED + CHUNKS, OTHER), ["payload-digest"]),
    "of the block": (response(HEAD + b"<p>", sha256(HEAD + b"<p>")), ["payload-digest"]),
    "cut": (response(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", sha256(b"half")), ["truncation-unmarked"]),
    "cut in chunks": (response(CHUNKED + b"9\r\nabc", sha256(b"abc")), ["truncation-unmarked"]),
    "no chunks": (response(CHUNKED + b"<p>not a chunk\n", sha256(b"<p>not a chunk\n")), ["chunked-unframed"]),
    "no chunks, no line": (response(CHUNKED + b"<p>", sha256(b"<p>")), ["chunked-unframed"]),
    "segmented": (response(HEAD + b"<p", sha256(b"<p>"), ("WARC-Segment-Number", "1")), ["segmented"]),
}


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
@pytest.mark.parametrize(("data", "wanted"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(data: bytes, wanted: list[str], step: int) -> None:
    assert findings(data, step) == wanted


EVERY = {**GOOD, **{f"wrong: {name}": data for name, (data, _) in BAD.items()}}
WEBSOCKET = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\n\r\n"
REQUESTS = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    WEBSOCKET,
    b"HEAD / HTTP/1.1\nHost: a\r\n\r\n",
    b"\r\nGET / HTTP/1.1\r\n\r\n",
]
EVERY |= {f"request {number}": record("request", block) for number, block in enumerate(REQUESTS)}


@pytest.mark.parametrize("data", EVERY.values(), ids=EVERY)
def test_the_quick_way_gives_what_the_thorough_one_does(data: bytes) -> None:
    found = next(read_records(io.BytesIO(gzip.compress(data))))
    block = found.take_block()
    assert block is not None
    check = BlockCheck(found)
    check.feed(block)
    check.finish()
    quick = usual_summary(found, block)
    assert quick is None or (quick == summary_of(check) and not list(check.findings()))


@pytest.mark.parametrize(
    "name", ["plain", "no body", "sha1", "a resource", "DNS", "no digest", "request 0", "request 1"]
)
def test_usual_blocks_are_checked_in_the_quick_way(name: str) -> None:
    found = next(read_records(io.BytesIO(gzip.compress(EVERY[name]))))
    assert usual_summary(found, found.take_block() or b"") is not None


def test_a_repeated_block_digest_is_recognised() -> None:
    found = next(read_records(io.BytesIO(BAD["of the block"][0])))
    check = BlockCheck(found)
    for piece in found.pieces():
        check.feed(piece)
    check.finish()
    assert [sentence.endswith("repeats the block digest") for _, sentence in check.findings()] == [True]


def heads() -> Iterator[bytes]:
    yield from (
        HEAD,
        CHUNKED,
        b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"",
        b"\r\n\r\nHTTP/1.1 ",
    )


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(tuple(heads())),
    st.binary(max_size=60),
    st.integers(1, 30),
    st.sampled_from(["response", "request"]),
)
def test_the_steps_in_which_a_block_arrives_do_not_matter(head: bytes, body: bytes, step: int, kind: str) -> None:
    data = record(kind, head + body, ("WARC-Payload-Digest", sha256(body)))
    assert findings(data, step) == findings(data)
