"""Bodies that are not read to their end, decided by their heads; and the remarks on them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.http import Extent, WantedBodies, read_head
from archiver.http.body import LISTENED, LISTENING, SAMPLE, SAMPLE_TIME, TELLING, extent, unread_reason
from archiver.policy.block_pages import SUSPECT

OK = "HTTP/1.1 200 OK"

ENDLESS = {
    "SHOUTcast": ("ICY 200 OK", ["icy-notice1:<BR>This stream requires Winamp<BR>", "icy-name:Jazz"], "broadcast"),
    "SHOUTcast, bare": ("ICY 200 OK", [], "broadcast"),
    "SHOUTcast 2": (OK, ["Content-Type: audio/mpeg", "icy-br:128", "icy-metaint:16000"], "broadcast"),
    "Icecast": ("HTTP/1.0 200 OK", ["Server: Icecast 2.4.4", "Content-Type: audio/mpeg", "icy-pub:1"], "broadcast"),
    "Icecast, video": ("HTTP/1.0 200 OK", ["Server: Icecast 2.4.4", "Content-Type: video/ogg"], "broadcast"),
    "Icecast, Ogg": ("HTTP/1.0 200 OK", ["Server: icecast 2.3", "Content-Type: application/ogg"], "broadcast"),
    "ice-audio-info": (OK, ["Content-Type: audio/aacp", "ice-audio-info: bitrate=64"], "broadcast"),
    "audiocast": (OK, ["x-audiocast-name: old", "Content-Type: audio/mpeg"], "broadcast"),
    "chunked broadcast": (OK, ["Transfer-Encoding: chunked", "Content-Type: audio/mpeg", "ICY-Name: x"], "broadcast"),
    "webcam": (OK, ["Content-Type: multipart/x-mixed-replace; boundary=--frame"], "webcam"),
    "webcam, motion": (OK, ["Content-Type: video/x-motion-jpeg"], "webcam"),
    "server-sent events": (
        OK,
        ["Content-Type: text/event-stream; charset=utf-8", "Transfer-Encoding: chunked"],
        "events",
    ),
    "RTSP in HTTP": (OK, ["Content-Type: application/x-rtsp-tunnelled"], "broadcast"),
}

FINITE = {
    "a page": (OK, ["Content-Type: text/html"]),
    "a page without length": ("HTTP/1.0 200 OK", ["Content-Type: text/html"]),
    "a sound with its length": (OK, ["Content-Type: audio/mpeg", "Content-Length: 5000000"]),
    "a sound of a radio's archive": (OK, ["Content-Type: audio/mpeg", "icy-name: x", "Content-Length: 5000000"]),
    "a film without length": (OK, ["Content-Type: video/mp4"]),
    "the status page of Icecast": (OK, ["Server: Icecast 2.4.4", "Content-Type: text/html"]),
    "an error": ("HTTP/1.1 404 Not Found", ["icy-name: x", "Content-Type: audio/mpeg"]),
    "SHOUTcast's error": ("ICY 401 Service Unavailable", ["icy-name: x"]),
    "a redirect": ("HTTP/1.1 302 Found", ["icy-name: x"]),
    "a mail": (OK, ["Content-Type: multipart/mixed; boundary=x"]),
    "an iced name": (OK, ["Icicle: x", "Content-Type: text/html"]),
}


def head(status_line: str, fields: list[str]) -> bytes:
    return "\r\n".join([status_line, *fields, "", ""]).encode()


@pytest.mark.parametrize(("status_line", "fields", "word"), ENDLESS.values(), ids=ENDLESS)
def test_endless(status_line: str, fields: list[str], word: str) -> None:
    found = extent(read_head(head(status_line, fields)))
    assert found == Extent(f"endless:{word}", SAMPLE, SAMPLE_TIME)
    assert unread_reason([found.remark]) == f"an endless stream ({word}); a sample is stored"


@pytest.mark.parametrize(("status_line", "fields"), FINITE.values(), ids=FINITE)
def test_finite(status_line: str, fields: list[str]) -> None:
    assert extent(read_head(head(status_line, fields))) == Extent()


def test_audio_without_a_length_is_recorded_for_a_while() -> None:
    found = extent(read_head(head(OK, ["Content-Type: audio/mpeg"])))
    assert found == Extent("endless:audio", seconds=LISTENED, slow_rate=LISTENING)


TYPES = (
    ((), (), "video/mp4", ""),
    ((), ("video/*",), "video/mp4", "exclude-type:video/*"),
    ((), ("video/mp4",), "video/mp4", "exclude-type:video/mp4"),
    ((), ("video/mp4",), "video/webm", ""),
    ((), ("video/*",), "videos/mp4", ""),
    ((), ("a/b", "video/*"), "video/mp4", "exclude-type:video/*"),
    ((), ("video/*",), "", ""),
    (("text/html",), (), "text/html", ""),
    (("text/*",), (), "text/css", ""),
    (("text/*", "image/png"), (), "image/gif", "no-include-type:image/gif"),
    (("text/*",), (), "", ""),
    (("text/*",), ("text/css",), "text/css", "exclude-type:text/css"),
)


@pytest.mark.parametrize(("include", "exclude", "media_type", "remark"), TYPES)
def test_wanted(include: tuple[str, ...], exclude: tuple[str, ...], media_type: str, remark: str) -> None:
    framing = read_head(head(OK, [f"Content-Type: {media_type}; x=y", "Content-Length: 9"] if media_type else []))
    found = WantedBodies(include, exclude).extent(framing)
    assert found == (Extent(remark, seconds=0.0) if remark else Extent())
    if remark:
        word, _, detail = remark.partition(":")
        told = f"the rest was not wanted: {'no include-type names' if word.startswith('no-') else word} {detail}"
        assert unread_reason(["tls-unverified", remark]) == told


def test_redirects_and_errors_are_read_in_any_media_type() -> None:
    for status in (301, 304, 404, 503):
        framing = read_head(head(f"HTTP/1.1 {status} X", ["Content-Type: video/mp4"]))
        assert WantedBodies((), ("video/*",)).extent(framing) == Extent()


STATUSES = (
    ("200", 200, Extent()),
    ("4xx", 404, Extent()),
    ("2xx,4xx", 500, Extent("no-keep-status:500", seconds=0.0)),
    ("200", 206, Extent("no-keep-status:206", seconds=0.0)),
    ("404", 200, Extent("no-keep-status:200", seconds=0.0)),
    ("200", 999, Extent("no-keep-status:999", seconds=0.0)),
    ("200", 403, Extent("no-keep-status:403", SAMPLE, SAMPLE_TIME)),
    ("403", 403, Extent()),
    *(("200", status, Extent()) for status in (301, 302, 303, 304, 307, 308)),
)


@pytest.mark.parametrize(("statuses", "status", "found"), STATUSES)
def test_kept_statuses(statuses: str, status: int, found: Extent) -> None:
    framing = read_head(head(f"HTTP/1.1 {status} X", ["Content-Type: text/html", "Content-Length: 9"]))
    assert WantedBodies(statuses=tuple(statuses.split(","))).extent(framing) == found
    told = f"the rest was not wanted: keep-status does not name {status}" if found.remark else ""
    assert unread_reason([found.remark]) == told


def test_a_kept_status_of_an_unwanted_type_is_not_read() -> None:
    framing = read_head(head(OK, ["Content-Type: video/mp4"]))
    assert WantedBodies((), ("video/*",), ("200",)).extent(framing).remark == "exclude-type:video/*"


def test_what_may_show_a_block_is_read_far_enough() -> None:
    assert SUSPECT <= TELLING


def test_unwanted_types_are_not_read_even_if_endless() -> None:
    framing = read_head(head(OK, ["Content-Type: audio/mpeg", "icy-name: x"]))
    assert WantedBodies((), ("audio/*",)).extent(framing).remark == "exclude-type:audio/*"


def test_other_remarks_give_no_reason() -> None:
    assert unread_reason(()) == ""
    assert unread_reason(["tls-unverified", "endlessly:x", "exclude"]) == ""


@given(st.binary(max_size=300))
def test_any_head_gets_an_extent(data: bytes) -> None:
    found = WantedBodies(("text/*",), ("video/*",)).extent(read_head(b"HTTP/1.1 200 OK\r\n" + data))
    assert found.seconds >= 0
    assert (found.remark == "") is (found.seconds == math.inf)
