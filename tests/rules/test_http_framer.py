"""The end of a message: the same result however its bytes are split, with no byte lost or added."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.http import Dechunker, Digester, Framer, digest_of, digests_of
from archiver.http.chunked import CHUNK_FAULT, MAX_LINE, MAX_TRAILER
from archiver.http.framer import LONGEST_HEAD, MAX_INTERIM, MAX_SURPLUS
from archiver.model import Framing, Truncation
from fixtures.badserver import BAD, Verdict
from fixtures.growth import growth
from fixtures.rawserver import End

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STRANGER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"


@dataclass(frozen=True)
class Read:
    """Everything that a framer reports about a message."""

    block: bytes
    interim: bytes
    surplus: bytes
    framing: Framing
    truncated: Truncation | None
    reusable: bool
    ended: bool  # by itself, before the connection did


def read(pieces: Iterable[bytes], *, clean: bool = True, method: str = "GET") -> Read:
    framer = Framer(method)
    block = b"".join(framer.feed(piece) for piece in pieces)
    ended = framer.done
    block += framer.finish(clean=clean)
    assert framer.framing is not None
    return Read(block, framer.interim, framer.surplus, framer.framing, framer.truncated, framer.reusable, ended)


def cut(data: bytes, places: Iterable[int]) -> Iterator[bytes]:
    last = 0
    for place in sorted(places):
        yield data[last:place]
        last = place
    yield data[last:]


def bytewise(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


@dataclass(frozen=True)
class Sample:
    """A message on the wire, and the expected result."""

    block: bytes
    payload: bytes
    before: bytes = b""
    truncated: Truncation | None = None
    faults: tuple[str, ...] = ()
    ends: bool = True  # by itself; if not, with the connection
    reusable: bool = True  # only of one that ends by itself


def until_close(block: bytes, payload: bytes, *faults: str, truncated: Truncation | None = None) -> Sample:
    return Sample(block, payload, truncated=truncated, faults=faults, ends=False, reusable=False)


SAMPLES: dict[str, Sample] = {
    "sized": Sample(HEAD + b"Content-Length: 2\r\n\r\nhi", b"hi"),
    "sized, nothing": Sample(HEAD + b"Content-Length: 0\r\n\r\n", b""),
    "sized, LF only": Sample(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", b"hi"),
    "sized, to be closed": Sample(HEAD + b"Connection: Close\r\nContent-Length: 2\r\n\r\nhi", b"hi", reusable=False),
    "sized, HTTP/1.0": Sample(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", reusable=False),
    "kept, HTTP/1.0": Sample(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    "the same size twice": Sample(HEAD + b"Content-Length: 2,2\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    "blank lines first": Sample(b"\r\n\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nhi", b"hi"),
    "no content": Sample(b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", b""),
    "no content, though chunked": Sample(b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
    "not modified": Sample(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", b""),
    "upgrade": Sample(b"HTTP/1.1 101 Fine\r\n\r\n", b"", faults=("unasked-upgrade",), reusable=False),
    "chunked": Sample(CHUNKED + b"2\r\nhi\r\nA\r\n0123456789\r\n0\r\n\r\n", b"hi0123456789"),
    "chunked, nothing": Sample(CHUNKED + b"0\r\n\r\n", b""),
    "chunked, LF only": Sample(CHUNKED + b"2\nhi\n1\n!\n0\n\n", b"hi!"),
    "chunked, with extensions": Sample(CHUNKED + b'2;a="b\t"\r\nhi\r\n01 ;x\r\n!\r\n0;end\r\n\r\n', b"hi!"),
    "chunked, with trailers": Sample(CHUNKED + b"2\r\nhi\r\n0\r\nA: 1\r\nB: 2\r\n\r\n", b"hi"),
    "chunked, NUL in the trailer": Sample(
        CHUNKED + b"2\r\nhi\r\n0\r\nA: \0\r\n\r\n", b"hi", faults=("nul-in-trailer",), reusable=False
    ),
    "chunked and sized": Sample(
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi", reusable=False
    ),
    "chunked in capitals": Sample(HEAD + b"TRANSFER-ENCODING: Chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n", b"!"),
    "gzip, chunked": Sample(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n", b"!"),
    "identity and sized": Sample(HEAD + b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    "100 first": Sample(HEAD + b"Content-Length: 2\r\n\r\nhi", b"hi", before=CONTINUE),
    "103 first, often": Sample(
        HEAD + b"Content-Length: 2\r\n\r\nhi", b"hi", before=b"HTTP/1.1 103 Hints\nLink: <a>\n\n" * 1500
    ),
    "in small letters": Sample(
        b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", faults=("http-version",), reusable=False
    ),
    "ICY, sized": Sample(
        b"ICY 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", faults=("icy-status-line",), reusable=False
    ),
    "until the end": until_close(HEAD + b"\r\n" + b"hi", b"hi"),
    "until the end, nothing": until_close(HEAD + b"\r\n", b""),
    "HTTP/0.9": until_close(b"<p>hi", b"<p>hi", "no-status-line"),
    "HTTP/0.9, blank lines first": until_close(b"\n\n<p>hi", b"\n\n<p>hi", "no-status-line"),
    "HTTP/0.9, nearly a head": until_close(b"HTTPS!", b"HTTPS!", "no-status-line"),
    "HTTP/0.9 after 100": Sample(b"hi", b"hi", CONTINUE, None, ("no-status-line",), ends=False, reusable=False),
    "two sizes": until_close(
        HEAD + b"Content-Length: 2, 3\r\n\r\nhi", b"hi", "content-length", truncated=Truncation.UNSPECIFIED
    ),
    "gzip alone": until_close(
        HEAD + b"Transfer-Encoding: gzip\r\n\r\nhi", b"hi", "transfer-coding", truncated=Truncation.UNSPECIFIED
    ),
    "never chunked": until_close(CHUNKED + b"<p>hi\n</p>", b"<p>hi\n</p>", "chunk", truncated=Truncation.UNSPECIFIED),
    "chunks that break": until_close(
        CHUNKED + b"2\r\nhi\r\nzz\r\nhi", b"hi", "chunk", truncated=Truncation.UNSPECIFIED
    ),
    "chunk too long": until_close(
        CHUNKED + b"2\r\nhigh\r\n0\r\n\r\n", b"hi", "chunk", truncated=Truncation.UNSPECIFIED
    ),
    "size of a chunk endless": until_close(
        CHUNKED + b"2\r\nhi\r\n2;" + b"x" * MAX_LINE + b"\r\n!", b"hi", "chunk", truncated=Truncation.UNSPECIFIED
    ),
    "trailer endless": until_close(
        CHUNKED + b"0\r\n" + b"A: 1\r\n" * (MAX_TRAILER // 6 + 1) + b"\r\n",
        b"",
        "chunk",
        truncated=Truncation.UNSPECIFIED,
    ),
    "short": until_close(HEAD + b"Content-Length: 3\r\n\r\nhi", b"hi", truncated=Truncation.DISCONNECT),
    "size beyond all": until_close(HEAD + b"Content-Length: %d\r\n\r\nhi" % 10**40, b"hi", "large-content-length"),
    "chunks cut": until_close(CHUNKED + b"2\r\nhi\r\n5\r\nth", b"hith", truncated=Truncation.DISCONNECT),
    "chunks without the last": until_close(CHUNKED + b"2\r\nhi\r\n", b"hi", truncated=Truncation.DISCONNECT),
    "not one line of chunks": until_close(CHUNKED + b"<p>hi", b"<p>hi", truncated=Truncation.DISCONNECT),
    "no body of chunks": until_close(CHUNKED, b"", truncated=Truncation.DISCONNECT),
    "head without end": until_close(HEAD + b"A: 1\r\n", b"", "no-head-end", truncated=Truncation.DISCONNECT),
    "half a word": until_close(b"HTT", b"HTT", "no-status-line", truncated=Truncation.DISCONNECT),
    "only blank lines": until_close(b"\r\n\r\n", b"\r\n\r\n", "no-status-line", truncated=Truncation.DISCONNECT),
    "only 100": Sample(
        b"", b"", CONTINUE, Truncation.DISCONNECT, ("no-status-line",), ends=False, reusable=False
    ),
}  # fmt: skip


def check(sample: Sample, after: bytes, got: Read) -> None:
    own = sample.block if sample.ends else sample.block + after
    assert got.block == own
    assert got.interim == sample.before
    assert got.surplus == (after[:MAX_SURPLUS] if sample.ends else b"")
    assert got.ended == sample.ends
    assert got.truncated == sample.truncated
    assert got.framing.faults == sample.faults
    assert got.reusable == (sample.ends and sample.reusable and not after)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_message_at_once_and_byte_by_byte(name: str) -> None:
    sample = SAMPLES[name]
    data = sample.before + sample.block
    whole = read([data])
    check(sample, b"", whole)
    assert read(bytewise(data)) == whole


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.ends])
def test_bytes_after_a_message_are_kept_apart(name: str) -> None:
    sample = SAMPLES[name]
    data = sample.before + sample.block + STRANGER
    whole = read([data])
    check(sample, STRANGER, whole)
    assert read(bytewise(data)) == whole


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.truncated is None])
def test_a_broken_connection_is_marked_unless_the_message_was_complete(name: str) -> None:
    sample = SAMPLES[name]
    got = read([sample.before + sample.block], clean=False)
    assert got.truncated == (None if sample.ends else Truncation.DISCONNECT)


@given(name=st.sampled_from(sorted(SAMPLES)), after=st.sampled_from([b"", STRANGER, b"\r\n"]), data=st.data())
def test_it_does_not_matter_where_the_bytes_are_cut(name: str, after: bytes, data: st.DataObject) -> None:
    sample = SAMPLES[name]
    raw = sample.before + sample.block + (after if sample.ends else b"")
    places = data.draw(st.lists(st.integers(0, len(raw)), max_size=12))
    assert read(cut(raw, places)) == read([raw])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_payload_is_decoded(name: str) -> None:
    sample = SAMPLES[name]
    got = read([sample.before + sample.block])
    for pieces in ([got.block], bytewise(got.block)):
        digester = Digester("sha256", got.framing)
        for piece in pieces:
            digester.feed(piece)
        digests = digester.digests()
        assert digests.block == digest_of("sha256", got.block)
        assert digests.payload == digest_of("sha256", sample.payload)
        assert digests.payload_length == len(sample.payload)


@pytest.mark.parametrize("name", BAD)
def test_bad_answers(name: str) -> None:
    bad = BAD[name]
    for pieces in ([bad.raw], bytewise(bad.raw)):
        got = read(pieces, clean=bad.end is not End.RESET)
        assert got.block == bad.block
        assert got.interim + got.block + got.surplus == bad.raw
        if bad.verdict is Verdict.COMPLETE:
            assert got.truncated is None
        elif bad.verdict is Verdict.TRUNCATED:
            assert got.truncated is Truncation.DISCONNECT
        else:
            assert got.truncated or got.framing.faults
        if bad.end is End.KEEP:
            assert got.ended


def test_head_has_no_body() -> None:
    got = read([HEAD + b"Content-Length: 99\r\n\r\n"], method="HEAD")
    assert (got.ended, got.truncated, got.reusable) == (True, None, True)


ALPHABET = (
    *(b"HTTP/1.1 200 OK", b"HTTP/1.1 100 C", b"ICY 200", b"Connection: close", b"Content-Length: 5"),
    *(b"Content-Length: 3,3", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip"),
    *(b"5\r\nhello\r\n", b"0\r\n", b"a\r\n", b";ext", b"0", b"zz", b"hello"),
    *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\n\n", b" ", b"\t", b":", b"\0", b"\xff"),
)
WIRE = st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(ALPHABET), max_size=30).map(b"".join))


@given(raw=WIRE, method=st.sampled_from(["GET", "HEAD"]), clean=st.booleans(), data=st.data())
def test_any_bytes_are_kept_and_read_the_same_way(raw: bytes, method: str, *, clean: bool, data: st.DataObject) -> None:
    whole = read([raw], clean=clean, method=method)
    assert whole.interim + whole.block + whole.surplus == raw
    assert read(bytewise(raw), clean=clean, method=method) == whole
    places = data.draw(st.lists(st.integers(0, len(raw)), max_size=8))
    assert read(cut(raw, places), clean=clean, method=method) == whole


@given(raw=WIRE, size=st.integers(0, 200))
def test_our_own_cut_keeps_what_was_received(raw: bytes, size: int) -> None:
    framer = Framer()
    block = framer.feed(raw[:size]) + framer.cut(Truncation.TIME)
    assert framer.interim + block + framer.surplus == raw[:size]
    assert (framer.done, framer.truncated, framer.reusable) == (True, Truncation.TIME, False)
    assert framer.feed(b"more") == framer.finish() == b""


@given(raw=WIRE, data=st.data())
def test_the_digester_finds_the_payload_that_the_dechunker_finds(raw: bytes, data: st.DataObject) -> None:
    got = read([raw])
    dechunker = Dechunker()
    body = got.block[got.framing.head_length :]
    payload = b"".join([*dechunker.feed(body), *dechunker.finish()]) if got.framing.chunked else body
    digester = Digester("sha1", got.framing)
    for piece in cut(got.block, data.draw(st.lists(st.integers(0, len(got.block)), max_size=8))):
        digester.feed(piece)
    digests = digester.digests()
    assert digests.payload == digest_of("sha1", payload)
    assert digests.payload_length == len(payload)
    assert digests.block == digest_of("sha1", got.block)


def test_a_head_is_cut_at_the_limit_wherever_the_pieces_end() -> None:
    fits = HEAD + b"A: " + b"x" * (LONGEST_HEAD - len(HEAD) - 7) + b"\r\n\r\n"
    assert len(fits) == LONGEST_HEAD
    assert read([fits + b"hi"]).block == fits + b"hi"
    longer = fits[:-4] + b"x\r\n\r\nhi"
    for pieces in (
        [longer],
        [longer[:LONGEST_HEAD], longer[LONGEST_HEAD:]],
        [longer[: LONGEST_HEAD + 1], longer[LONGEST_HEAD + 1 :]],
    ):
        got = read(pieces)
        assert (got.block, got.surplus, got.truncated) == (
            longer[:LONGEST_HEAD],
            longer[LONGEST_HEAD:],
            Truncation.LENGTH,
        )


def test_too_many_interim_responses_are_not_skipped() -> None:
    many = CONTINUE * (MAX_INTERIM // len(CONTINUE))
    got = read([many + CONTINUE + HEAD + b"\r\n"])
    assert (got.interim, got.block) == (many, CONTINUE + HEAD + b"\r\n")
    assert got.framing.faults == ("too-many-interim",)


def test_surplus_is_kept_up_to_its_limit() -> None:
    got = read([SAMPLES["sized"].block, b"x" * 50_000, b"y" * 50_000])
    assert got.surplus == (b"x" * 50_000 + b"y" * 50_000)[:MAX_SURPLUS]


HOSTILE = {
    "chunks of a byte": lambda n: CHUNKED + b"1\r\nx\r\n" * n,
    "chunks with extensions": lambda n: CHUNKED + b"1;abcdefgh\r\nx\r\n" * (n // 3),
    "a size without end": lambda n: CHUNKED + b"1;" + b"x" * n * 6,
    "a body that was never chunked": lambda n: CHUNKED + b"x" * n * 6,
    "trailers without end": lambda n: CHUNKED + b"0\r\n" + b"A:1\r\n" * n,
    "fields without end": lambda n: HEAD + b"a:b\r\n" * n,
    "a folded field without end": lambda n: HEAD + b"a: b\r\n" + b" x\r\n" * n,
    "blank lines without end": lambda n: b"\r\n" * n * 3,
    "blank lines in the head": lambda n: HEAD + b"\r" * n * 6,
    "sizes without end": lambda n: HEAD + b"Content-Length: " + b"1," * n + b"\r\n\r\n",
    "codings without end": lambda n: HEAD + b"Transfer-Encoding: " + b"a," * n + b"\r\n\r\n",
    "a version without end": lambda n: b"HTTP/" + b"1" * n * 6 + b"\r\n\r\n",
    "interim responses": lambda n: b"HTTP/1.1 100\n\n" * (n // 10),
}


@pytest.mark.alone
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [1, 1400, 1 << 30], ids=["byte by byte", "packets", "whole"])
def test_ten_times_as_much_takes_about_ten_times_as_long(name: str, size: int) -> None:
    def pieces(count: int) -> list[bytes]:
        raw = HOSTILE[name](count)
        return [raw[at : at + size] for at in range(0, len(raw), size)]

    few, many = pieces(2_000), pieces(20_000)
    assert growth(lambda: read(few), lambda: read(many), enough=40, floor=0.0005) < 40  # quadratic would be 100 times


def test_fault_words_are_plain() -> None:
    named = {fault for bad in BAD.values() for fault in read([bad.raw]).framing.faults}
    assert named
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", fault) for fault in named)


@given(st.binary(max_size=200), st.integers(0, 250), st.booleans(), st.sampled_from(["sha256", "sha1", "md5"]))
def test_digests_at_once_equal_digests_of_pieces(block: bytes, head: int, chunked: bool, algorithm: str) -> None:  # noqa: FBT001
    framing = Framing(200, head, chunked=chunked, media_type="", fields=())
    digester = Digester(algorithm, framing)
    for at in range(0, len(block), 7):
        digester.feed(block[at : at + 7])
    assert digests_of(algorithm, framing, block) == digester.digests()


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_what_another_protocol_says_is_kept_whole(step: int) -> None:
    head, said = b"HTTP/1.1 101 Fine\r\nUpgrade: WebSocket\r\n\r\n", bytes(range(256)) * 300
    framer, block = Framer(upgrade="websocket"), b""
    for at in range(0, len(head + said), step):
        block += framer.feed((head + said)[at : at + step])
    assert (block, framer.early, framer.surplus) == (head, said, b"")
    assert framer.framing is not None
    assert (framer.upgraded, framer.done, framer.reusable, framer.framing.faults) == (True, True, False, ())


@pytest.mark.parametrize("named", [b"", b"Upgrade: h2c\r\n"])
def test_another_protocol_than_the_one_asked_for_is_none(named: bytes) -> None:
    framer = Framer(upgrade="websocket")
    framer.feed(b"HTTP/1.1 101 Fine\r\n" + named + b"\r\nsaid")
    assert framer.framing is not None
    assert (framer.upgraded, framer.early, framer.surplus) == (False, b"", b"said")
    assert framer.framing.faults == ("unasked-upgrade",)


def test_the_word_for_broken_chunks_is_the_one_that_the_verdict_knows() -> None:
    framer = Framer()
    framer.feed(CHUNKED + b"2\r\nhi\r\nzz\r\n")
    assert framer.framing is not None
    assert framer.framing.faults == (CHUNK_FAULT,)
