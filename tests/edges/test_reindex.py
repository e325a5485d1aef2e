"""The index made from WARC files: line for line that of cdxj-indexer, for files of any origin."""

import gzip
import json
from base64 import b32encode
from collections.abc import Callable
from hashlib import sha1
from io import BytesIO
from pathlib import Path

import pytest

from archiver.collection import reindex
from fixtures.expected_index import as_ours, theirs, untidy
from fixtures.handmade_warc import DATE, member, record

SUFFIXES = (".warc", ".warc.gz", ".warc.gz.open")

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>hello"
URL = ("WARC-Target-URI", "http://www.example.org/Form?b=1&a=2")


def ours(data: bytes, name: str = "a.warc") -> list[str]:
    return sorted({line.decode().removesuffix("\n") for line in reindex.lines(BytesIO(data), name)})


def entries(data: bytes) -> list[dict[str, str]]:
    return [json.loads(line.split(" ", 2)[2]) for line in ours(data)]


def request(head: bytes, body: bytes = b"", *fields: tuple[str, str], number: int = 2) -> bytes:
    together = ("WARC-Concurrent-To", "<urn:uuid:00000000-0000-4000-8000-000000000001>")
    return record("request", head + b"\r\n" + body, URL, together, *fields, number=number)


def post(kind: str, body: bytes, method: str = "POST", *more: str) -> bytes:
    lines = [f"{method} /Form HTTP/1.1", "Host: example.org", f"Content-Type: {kind}", *more]
    return record("response", ANSWER, URL) + request("".join(f"{line}\r\n" for line in lines).encode(), body)


def sized(kind: str, body: bytes, method: str = "POST") -> bytes:
    return post(kind, body, method, f"Content-Length: {len(body)}")


FORM, JSON, TEXT = "application/x-www-form-urlencoded", "application/json", "text/plain"
PARTS = (
    b'--XX\r\nContent-Disposition: form-data; name="a b"\r\n\r\nc\xc3\xa9\r\n'
    b'--XX\r\nContent-Disposition: form-data; name="f"; filename="x.bin"\r\nContent-Type: a/b\r\n\r\n'
    b"\x00\xff\r\n--XX--\r\n"
)
POSTED = request(b"POST / HTTP/1.1\r\n")
REVISIT = (URL, ("WARC-Payload-Digest", "sha256:ab"), ("WARC-Profile", "http://x"))
DNS = (("WARC-Target-URI", "dns:example.org"), ("Content-Type", "text/dns"))
ODD = (("WARC-Target-URI", "urn:pageinfo:http://a.b/"), ("Content-Type", "Text/Plain; x=y"))
CASES = {
    "form": sized(FORM, b"x=1&y=%C3%A9+z"),
    "form-not-utf8": sized(FORM, b"x=\xff"),
    "form-with-line-end": sized(FORM, b"x=1%0Ay"),
    "put": sized(FORM, b"x=1", "PUT"),
    "small-letters": sized(FORM, b"x=1", "post"),
    "patch-is-none": sized(FORM, b"x=1", "PATCH"),
    "json": sized(JSON, b'{"a": [1, "z", {"a": "x", "b": 2.5}], "c": {"a": "y"}}'),
    "json-lines": sized(JSON, b'{"a": 1}\n{"a": 2}'),
    "json-broken": sized(JSON, b'{"a": 1'),
    "json-many-digits": sized(JSON, b'{"a": ' + b"9" * 5000 + b"}"),
    "json-deep": sized(JSON, b"[" * 100_000),
    "text-json": sized(TEXT, b'{"a": "b&c=d"}'),
    "text": sized(TEXT, b"hello"),
    "parts": sized("multipart/form-data; boundary=XX", PARTS),
    "parts-without-boundary": sized("multipart/form-data", b"hello"),
    "binary": sized("application/octet-stream", bytes(range(256))),
    "long": sized("application/octet-stream", b"x" * 9000),
    "long-form": sized(FORM, b"x=" + b"%41" * 9000),
    "no-length": post(TEXT, b"some words"),
    "bad-length": post(TEXT, b"some words", "POST", "Content-Length: many"),
    "short-length": post(TEXT, b"some words", "POST", "Content-Length: 4"),
    "chunked": post(TEXT, b"4\r\nsome\r\n0\r\n\r\n", "POST", "Transfer-Encoding: chunked"),
    "no-body": post(FORM, b"", "POST", "Content-Length: 0"),
    "request-first": request(b"POST / HTTP/1.1\r\n", b"", ("WARC-Concurrent-To", "<urn:uuid:x>"))
    + record("response", ANSWER, URL, ("WARC-Concurrent-To", "<urn:uuid:00000000-0000-4000-8000-000000000002>")),
    "not-adjacent": record("response", ANSWER, URL) + record("metadata", b"a: b\r\n", number=9) + POSTED,
    "another-url": record("response", ANSWER, URL)
    + request(b"POST / HTTP/1.1\r\n", b"", ("WARC-Target-URI", "http://example.org/other")),
    "not-concurrent": record("response", ANSWER, URL)
    + request(b"POST / HTTP/1.1\r\n", b"", ("WARC-Concurrent-To", "<urn:uuid:other>")),
    "revisit": record("revisit", ANSWER[:60], *REVISIT),
    "revisit-empty": record("revisit", b"", *REVISIT),
    "revisit-not-joined": record("revisit", ANSWER, *REVISIT) + POSTED,
    "dns": record("resource", b"20200101\nexample.org. 1 IN A 1.2.3.4\n", *DNS),
    "dns-response": record("response", b"x", *DNS),
    "resource": record("resource", b"words", *ODD),
    "fields": record("resource", b"a: b\r\n", ("Content-Type", "application/warc-fields")),
    "metadata": record("metadata", b"{}", ("Content-Type", "application/json")),
    "conversion": record("conversion", b"words", ("Content-Type", "text/plain")),
    "brackets": record("response", ANSWER, ("WARC-Target-URI", "<http://example.org/a b>")),
    "no-type": record("response", b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n"),
    "odd-type": record("response", b"HTTP/1.1 200 OK\r\nContent-Type: HTML\r\n\r\n"),
    "empty": record("response", b""),
    "garbage": record("response", b"garbage and more\r\n", ("WARC-Payload-Digest", "sha256:ab")),
    "date-short": record("response", ANSWER, ("WARC-Date", "2020-01-02")),
    "date-long": record("response", ANSWER, ("WARC-Date", "2020-01-02T03:04:05.123456789Z"), version="1.1"),
    "date-without-zone": record("response", ANSWER, ("WARC-Date", "2020-01-02T03:04:05")),
    "latin-1": record("response", ANSWER, ("WARC-Target-URI", "http://example.org/é")).replace("é".encode(), b"\xe9"),
    "utf-8": record("response", ANSWER, ("WARC-Target-URI", "http://bücher.example/é?ü")),
    "odd-port": record("response", ANSWER, ("WARC-Target-URI", "http://example.org:99999/")),
    "same-twice": record("response", ANSWER, URL) + record("response", ANSWER, URL, number=2),
}  # fmt: skip


def test_lines_are_those_of_cdxj_indexer(tmp_path: Path) -> None:
    """Uncompressed and compressed."""
    with untidy():
        for name, data in CASES.items():
            packed = b"".join(member(part) for part in _parts(data))
            for file, content in ((f"{name}.warc", data), (f"{name}.warc.gz", packed)):
                (tmp_path / file).write_bytes(content)
                expected = theirs(tmp_path / file, tmp_path)
                assert expected is not None
                assert ours(content, file) == sorted(map(as_ours, expected))


def _parts(data: bytes) -> list[bytes]:
    return [b"WARC/1.1\r\n" + part for part in data.split(b"WARC/1.1\r\n")[1:]]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_answers_without_a_payload_of_their_own_are_left_out(method: str) -> None:
    """Otherwise they would stand before the answer to GET."""
    asked = record("response", ANSWER, URL) + request(f"{method} / HTTP/1.1\r\n".encode())
    assert entries(asked) == []
    assert len(entries(asked + record("response", ANSWER, URL, number=3))) == 1


UNLISTED = {
    "no date": record("response", ANSWER, without=["WARC-Date"]),
    "a date that is none": record("response", ANSWER, ("WARC-Date", "5088968-11-06T12:31:23Z")),
    "a day that is none": record("response", ANSWER, ("WARC-Date", "2020-02-31T00:00:00Z")),
    "no url": record("response", ANSWER, without=["WARC-Target-URI"]),
    "no whole block": member(record("response", ANSWER)[:-10]),
    "no length": record("response", ANSWER, without=["Content-Length"]),
}


@pytest.mark.parametrize("why", UNLISTED)
def test_what_cannot_be_listed_is_left_out(why: str) -> None:
    """And what follows is listed."""
    after = record("response", ANSWER, URL, number=7)
    after = member(after) if UNLISTED[why].startswith(b"\x1f") else after
    assert [entry["url"] for entry in entries(UNLISTED[why] + after)] == [URL[1]]


def test_a_date_of_another_zone() -> None:
    [line] = ours(record("response", ANSWER, ("WARC-Date", "2020-01-02T03:04:05+02:00")))
    assert line.split(" ")[1] == "20200102010405"


@pytest.mark.parametrize("wrap", [bytes, member], ids=["plain", "gzip"])
def test_a_record_without_its_line_ends_is_listed(wrap: Callable[[bytes], bytes]) -> None:
    whole, cut = wrap(record("response", ANSWER)), wrap(record("response", ANSWER)[:-4])
    last = max(entries(whole + cut), key=lambda entry: int(entry["offset"]))
    assert int(last["offset"]) == len(whole)
    assert int(last["length"]) == len(cut)


def test_a_large_payload_without_a_digest_is_hashed_whole() -> None:
    body = bytes(range(256)) * 6000
    [entry] = entries(record("response", ANSWER + body))
    assert entry["digest"] == f"sha1:{b32encode(sha1(b'<p>hello' + body).digest()).decode()}"
    [entry] = entries(record("resource", ANSWER + body))
    assert entry["digest"] == f"sha1:{b32encode(sha1(ANSWER + body).digest()).decode()}"


def test_of_records_in_one_member_the_first_is_listed() -> None:
    """With the length of the member: a reader begins at its start."""
    shared = gzip.compress(CASES["same-twice"])
    after = member(record("response", ANSWER, number=3))
    found = [(int(entry["offset"]), int(entry["length"])) for entry in entries(shared + after)]
    assert sorted(found) == [(0, len(shared)), (len(shared), len(after))]


def test_a_key_is_one_word_whatever_is_in_it() -> None:
    for hostile in ("http://[a b/\t", "http://a:99999/\x0b \x7f", "x" * 70_000, "urn:a\u2028b", "http://\udcff/"):
        data = record("resource", b"x", ("WARC-Target-URI", "@@")).replace(
            b"@@", hostile.encode("utf-8", "surrogateescape")
        )
        [line] = [line.decode() for line in reindex.lines(BytesIO(data), "a.warc")]
        key, stamp, text = line.split(" ", 2)
        assert key
        assert stamp == DATE[:19].translate({ord(c): None for c in "-T:"})
        assert json.loads(text)["filename"] == "a.warc"
        assert line.count("\n") == 1


@pytest.mark.suites
def test_of_every_sample_that_cdxj_indexer_reads(suites: Path, tmp_path: Path) -> None:
    """It does not read several records in a member, files cut inside a record, dates and lengths that are none."""
    compared = 0
    unlike = []
    samples = [path for path in (suites / "warc").rglob("*") if path.name.endswith(SUFFIXES)]
    with untidy():
        for path in samples:
            expected = theirs(path, tmp_path)
            if expected is not None:
                compared += len(expected)
                if ours(path.read_bytes(), path.name) != sorted(map(as_ours, expected)):
                    unlike.append(path.name)
    assert sorted(unlike) == sorted(UNLIKE)
    assert compared > 150


UNLIKE = {
    "example.warc.gz": "a Content-Type of `text/html charset=utf-8`, of which cdxj-indexer takes the first word",
    "valid-warcfile-fields-metainfo.warc": "a record header with folded fields, which cdxj-indexer does not find",
}
