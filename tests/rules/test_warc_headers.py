"""The quick way to read and judge a usual record header gives what the thorough way gives."""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.tools.verify import record_checks
from archiver.warc import reader
from archiver.warc.reader import Record, read_records
from fixtures.handmade_warc import END

NAMES = [
    *sorted(reader.LOOKED_UP),
    "warc-date",
    "Warc-Type",
    "hopsFromSeed",
    "via",
    "x-y",
    "A b",
    "",
    "é",
    "content-TYPE",
]
VALUES = [
    *("response", "request", "revisit", "metadata", "warcinfo", "conversion", "a", "", " ", " a", "a ", "a\tb", "ü"),
    *("<urn:uuid:6841e2f6-6322-4a4b-bffd-353b658ce3d0>", "urn:x", "http://example.org/", "<http://example.org/>"),
    *("2026-11-24T18:03:06.147238Z", "2026-11-24T18:03:06Z", "2026-02-30T00:00:00Z", "127.0.0.1", "127.0.0.256"),
    *("sha1:" + "A" * 32, "sha256:" + "0a" * 32, "sha256:" + "0A" * 32, "sha1:1", "md5", "length", "2", "0", "a: b"),
    *("application/http;msgtype=response", "application/warc-fields", "a\x0bb", "a\rb", "a\nb", "\x85", "a\x1c"),
]
LINE = st.builds(
    lambda name, colon, value: name + colon + value,
    st.sampled_from(NAMES),
    st.sampled_from([": "] * 9 + [":", "", ":  "]),
    st.sampled_from(VALUES),
)
GOOD = [
    "WARC-Type: response",
    "WARC-Record-ID: <urn:uuid:6841e2f6-6322-4a4b-bffd-353b658ce3d0>",
    "WARC-Target-URI: http://example.org/",
    "WARC-Date: 2026-11-24T18:03:06.147238Z",
    "Content-Type: application/http",
]


def records_of(header: bytes) -> tuple[Record, Record]:
    """The record that begins with *header*, read in both ways."""
    data = header + END
    quick = next(read_records(io.BytesIO(data)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_parse_usual", lambda _header: None)
        thorough = next(read_records(io.BytesIO(data)))
    return quick, thorough


@settings(max_examples=400)
@given(
    st.sampled_from(["WARC/1.1", "WARC/1.0", "WARC/2.0", "warc/1.1"]),
    st.lists(LINE, max_size=6),
    st.sampled_from(["\r\n"] * 5 + ["\n"]),
    st.sampled_from([[], GOOD]),
)
def test_a_header_is_read_and_judged_alike_in_both_ways(
    version: str, lines: list[str], end: str, good: list[str]
) -> None:
    written = [version, *good, *lines, "Content-Length: 0", "", ""]
    quick, thorough = records_of(end.join(written).encode("utf-8"))
    for name in (*NAMES, "CONTENT-LENGTH"):
        assert quick.first(name) == thorough.first(name)
        assert quick.all(name) == thorough.all(name)
    seen = [(each.version, each.type, each.size, each.fields, each.faults, each.header) for each in (quick, thorough)]
    assert seen[0] == seen[1]
    assert list(record_checks.field_findings(quick)) == list(record_checks.field_findings(thorough))


@pytest.mark.parametrize("more", [(), ("WARC-Protocol: h2", "WARC-Protocol: tls/1.3"), ("hopsFromSeed: L",)])
def test_usual_headers_are_read_in_the_quick_way(more: tuple[str, ...]) -> None:
    quick, thorough = records_of("\r\n".join(["WARC/1.1", *GOOD, *more, "Content-Length: 0", "", ""]).encode())
    assert quick.is_usual
    assert not thorough.is_usual
    assert quick.fields == thorough.fields


@pytest.mark.parametrize(("name", "check"), record_checks._SYNTAX.items())
@given(st.data())
def test_values_that_are_not_checked_by_themselves_are_sound(name: str, check: Any, data: st.DataObject) -> None:
    value = data.draw(st.from_regex(record_checks._USUAL[check], fullmatch=True, alphabet=st.characters(codec="ascii")))
    assert check(name, value) is None


@pytest.mark.parametrize("name", record_checks._SYNTAX)
def test_a_value_that_is_not_usual_is_checked_by_itself(name: str) -> None:
    fields = {line.partition(": ")[0]: line for line in GOOD} | {name: f"{name}: {{odd}}"}
    written = ["WARC/1.1", *fields.values(), "Content-Length: 0", "", ""]
    quick, thorough = records_of("\r\n".join(written).encode())
    assert list(record_checks.field_findings(quick)) == list(record_checks.field_findings(thorough)) != []
