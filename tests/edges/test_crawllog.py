"""Lines of crawl.log: every field in its place, and times to the millisecond."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archiver.clock import Clock
from archiver.collection.crawl_log import CrawlLog, LogLine
from archiver.collection.index import Index
from archiver.crawl.batch_writer import Journal, StoredBatch
from archiver.model import Capture, Claim, Event, Hop, Profile, Settlement, Span

LINE = LogLine(
    logged=1_795_000_000.25,
    status=200,
    size=12_455,
    url="http://site.test/page",
    path="LLE",
    via="http://site.test/",
    mime="text/html",
    started=1_795_000_000.123456,
    duration=0.0316,
    digest="sha256:00",
    annotations=("retry", "timeTrunc"),
    source="http://site.test/",
)


def test_a_line() -> None:
    assert LINE.render() == (
        "2026-11-18T11:06:40.250Z   200      12455 http://site.test/page LLE http://site.test/ text/html #000 "
        "20261118110640123+32 sha256:00 http://site.test/ retry,timeTrunc"
    )


def test_what_is_not_known() -> None:
    line = LINE._replace(size=None, path="", via=None, mime="", started=None, digest="", annotations=(), source="")
    assert line.render() == "2026-11-18T11:06:40.250Z   200          - http://site.test/page - - unknown #000 - - - -"


@pytest.mark.parametrize("said", ["a b", "a\nb", "a\x7fb", "a\u2028b"])
def test_no_field_holds_a_space_or_a_line_end(said: str) -> None:
    line = LINE._replace(url=said, via=said, source=said, annotations=(said,)).render()
    assert line.split(" ")[-1] == "a%20b"
    assert line.count("a%20b") == 4


@pytest.mark.parametrize(
    ("path", "shown"),
    [("L" * 50, "L" * 50), ("P" + "L" * 50, "1+" + "L" * 50), ("L" * 30 + "E" * 50, "30+" + "E" * 50)],
)
def test_a_long_hop_path_is_shortened(path: str, shown: str) -> None:
    assert LINE._replace(path=path).render().split()[4] == shown


@pytest.mark.parametrize(
    ("mime", "shown"),
    [
        ("text/html; charset=utf-8", "text/html"),
        ("text html", "text"),
        (" ;x", "x"),
        ("a\x1bb", "a%20b"),
        (";", "unknown"),
    ],
)
def test_a_media_type_is_one_word(mime: str, shown: str) -> None:
    assert LINE._replace(mime=mime).render().split()[6] == shown


def test_a_comma_parts_annotations_and_nothing_else() -> None:
    line = LINE._replace(annotations=("2t", "err=timeout: no answer, again")).render()
    assert line.split()[-1] == "2t,err=timeout:%20no%20answer%2C%20again"


def test_a_name_that_was_looked_up() -> None:
    """How a `dns:` record is told of, which is no answer of a server."""
    line = LINE._replace(
        status=1, size=56, url="dns:site.test", path="P", mime="text/dns", digest="sha1:A", annotations=()
    )
    assert line.render() == (
        "2026-11-18T11:06:40.250Z     1         56 dns:site.test P http://site.test/ text/dns #000 "
        "20261118110640123+32 sha1:A http://site.test/ -"
    )


@given(st.floats(0, 253_402_300_799))
@example(1_795_000_000.9999996)
@example(1_795_000_000.9994999)
@example(0.0005)
def test_times(seconds: float) -> None:
    moment = datetime.fromtimestamp(seconds, UTC)
    millis = moment.microsecond // 1000
    line = LINE._replace(logged=seconds, started=seconds).render()
    assert line.split()[0] == f"{moment:%Y-%m-%dT%H:%M:%S}.{millis:03}Z"
    assert f"#000 {moment:%Y%m%d%H%M%S}{millis:03}+32 " in line


CLAIM = Claim(1, "http://site.test/a", 1, Hop.LINK, "L", 1, 0, 2, "http://site.test/", "http://site.test/")
CAPTURE = Capture(
    url=CLAIM.url,
    timestamp=1_795_000_000_000_000,
    status=200,
    mime="text/html",
    payload_digest="sha256:00",
    payload_length=70,
    received=100,
    warc="w.warc.gz",
    response=Span(0, 10),
    request=Span(10, 10),
    metadata=Span(20, 10),
)


@pytest.mark.parametrize(
    ("settlement", "status", "size", "annotations"),
    [
        (Settlement(CLAIM, Event.CAPTURE, capture=CAPTURE), "200", "70", "-"),
        (Settlement(CLAIM, Event.RETRY, capture=CAPTURE, annotations=("3t",)), "200", "70", "3t,retry"),
        (
            Settlement(CLAIM, Event.CAPTURE, capture=CAPTURE._replace(revisit=Profile.IDENTICAL)),
            *("200", "70", "duplicate:digest"),
        ),
        (
            Settlement(CLAIM, Event.CAPTURE, capture=CAPTURE._replace(revisit=Profile.NOT_MODIFIED, status=304)),
            *("304", "0", "duplicate:server-not-modified"),
        ),
        (Settlement(CLAIM, Event.GIVE_UP, failure="timeout", note="x, y"), "-4", "-", "3t,err=x%2C%20y"),
        (Settlement(CLAIM, Event.RETRY, failure="dns"), "-1", "-", "3t,retry"),
        (Settlement(CLAIM, Event.GIVE_UP, failure="robots", asked=False), "-61", "-", "-"),
        (Settlement(CLAIM, Event.FORBID, failure="robots", note="Disallow: /"), "-9998", "-", "-"),
    ],
)
def test_what_a_visit_leaves_in_the_log(
    tmp_path: Path, settlement: Settlement, status: str, size: str, annotations: str
) -> None:
    log = CrawlLog(tmp_path / "crawl.log")
    books = Journal(Index(tmp_path), log, Clock())
    books.enter(StoredBatch((settlement._replace(settled=1_795_000_000.0),), ()))
    books.close()
    words = (tmp_path / "crawl.log").read_text().split()
    assert len(words) == 12
    assert (words[1], words[2], words[10], words[11]) == (status, size, CLAIM.seed, annotations)
