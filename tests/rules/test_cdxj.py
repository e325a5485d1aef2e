"""Lines of the index: keys as pywb looks them up, fields in cdxj-indexer's order."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import url
from archiver.model import Capture, Span
from archiver.warc import cdxj
from archiver.warc.cdxj import capture_line, lookup_key, parse_line, parse_strict_line, timestamp14
from archiver.warc.resources import PLACE


def _capture(url: str = "http://www.site.test/Page?b=2&a=1", status: int = 200, mime: str = "text/html") -> Capture:
    here, nowhere = Span(1234, 567), Span(0, 0)
    digest = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    return Capture(url, 1_795_000_000_999_999, status, mime, digest, 5, 100, "a.warc.gz", here, nowhere, nowhere)


def test_a_line() -> None:
    assert capture_line(_capture(), "a.warc.gz.open").decode() == (
        "test,site)/page?a=1&b=2 20261118110640 "
        '{"url": "http://www.site.test/Page?b=2&a=1", "mime": "text/html", "status": "200", '
        '"digest": "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "567", "offset": "1234", '
        '"filename": "a.warc.gz.open"}\n'
    )


def test_what_an_answer_does_not_say() -> None:
    entry = json.loads(capture_line(_capture(status=0, mime=""), "a.warc.gz").split(b" ", 2)[2])
    assert entry["status"] == "-"
    assert "mime" not in entry


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://site.test/", "test,site)/"),
        ("https://www.site.test/", "test,site)/"),
        ("http://site.test:8080/a/", "test,site:8080)/a"),
        ("http://127.0.0.1:80/", "1,0,0,127)/"),
        ("http://site.test/%C3%A9?", "test,site)/%c3%a9"),
        ("http://xn--bcher-kva.test/", "test,xn--bcher-kva)/"),
    ],
)
def test_keys(url: str, key: str) -> None:
    assert capture_line(_capture(url), "a.warc.gz").split(b" ")[0].decode() == key


@given(st.integers(0, 253_402_300_799_999_999))
def test_timestamps(microseconds: int) -> None:
    stamp = timestamp14(microseconds)
    assert len(stamp) == 14
    assert stamp.isdigit()


@given(st.text(max_size=40), st.text(max_size=20))
def test_a_line_is_one_line_and_ascii(path: str, mime: str) -> None:
    """Whatever a server calls its types."""
    made = capture_line(_capture(f"http://site.test/{path.encode().hex()}", mime=mime), "a.warc.gz")
    assert made.isascii()
    assert made.count(b"\n") == 1
    assert json.loads(made.split(b" ", 2)[2]).get("mime", "") == mime


GOOD = '{"url": "http://e.org/", "digest": "sha256:0", "length": "5", "offset": "7", "filename": "a"}'


@pytest.mark.parametrize(
    ("line", "lenient", "strict"),
    [
        (f"org,e)/ 20261118110640 {GOOD}\n", True, True),
        (f"org,e)/ 20261118110640 {GOOD}", True, False),
        (f"org,e)/ 2026 {GOOD}\n", True, False),
        ("org,e)/ 20261118110640 " + GOOD.replace('"7"', '"-7"') + "\n", True, False),
        ('org,e)/ 20261118110640 {"url": "http://e.org/", "offset": 7, "filename": "a"}\n', True, False),
        ('org,e)/ 20261118110640 {"url": "http://e.org/"}\n', False, False),
        ("org,e)/ 20261118110640 []\n", False, False),
        ("!meta 0 {}\n", False, False),
        ("", False, False),
    ],
)
def test_the_strict_parser_takes_only_complete_lines(line: str, *, lenient: bool, strict: bool) -> None:
    assert (parse_line(line.encode()) is not None) == lenient
    assert (parse_strict_line(line.encode()) is not None) == strict


FIELDS = ["url", "mime", "status", "digest", "length", "offset", "filename", "method"]
TEXTS = ["http://e.org/", "7", "12345678901234567890", "-7", "", "a b", "é", 'a"b', "a\\b", "a\nb"]


@settings(max_examples=400)
@given(
    st.sampled_from(["org,e)/", "", "org,é)/", "a\tb"]),
    st.sampled_from(["20261118110640", "20261118110640123", "2026"]),
    st.one_of(
        st.permutations(FIELDS),
        st.sampled_from([FIELDS[:-1], [name for name in FIELDS[:-1] if name not in ("mime", "status")]]),
    ),
    st.lists(st.sampled_from([*TEXTS[:2]] * 5 + [*TEXTS, 7]), min_size=8, max_size=8),
    st.tuples(st.booleans(), st.sampled_from(["\n"] * 5 + ["\r\n", "", " \n"])),
)
def test_the_strict_parser_reads_usual_lines_as_json(
    key: str, timestamp: str, names: list[str], values: list[str | int], form: tuple[bool, str]
) -> None:
    text = json.dumps(dict(zip(names, values, strict=False)), ensure_ascii=form[0])
    line = f"{key} {timestamp} {text}{form[1]}".encode()
    found = parse_strict_line(line)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdxj, "_USUAL_LINE", re.compile("(?!)"))
        assert parse_strict_line(line) == found


def test_the_lines_that_we_write_are_usual() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json, "loads", None)
        assert parse_strict_line(capture_line(_capture("http://site.test/"), "a.warc.gz")) is not None


SCHEMES = st.sampled_from(["http", "https", "metadata"])
HOSTS = ["site.test", "www.site.test", "www2.a-b.test:8080", "127.0.0.1:8931", "a..b", "12", "www.1.2", "0177.0.0.1"]
PARTS = [
    *("a", "B", "1", "~", "-", ".", "..", "/", "//", "?", "&", "=", ";", ",", "(", "%41", "%2f", "+", "é", "/x.aspx"),
    *("%20", "%25", "%C3%A4", "%e2%82%ac", "%FF", "%80", "/%20", "a%20b"),
    *(
        "%7B",
        "%7d",
        "%22",
        "%23",
        "%27",
        "(a)",
        "/'",
        "%28",
        "%29",
        "%3a",
        "%3F",
        "%3d",
        "%26",
        "%5C",
        "%2E",
        "%7F",
        "%0A",
    ),
    *("sid=", "PHPSESSID=", ";jsessionid=", "jsessionid=", "cfid=1", "cftoken=2", "ASPSESSIONIDabcdefgh="),
    *("0123456789abcdef0123456789abcdef", "abcdefghijklmnopqrstuvwx", "(S(abcdefghijklmnopqrstuvwx))/", "http://"),
]


@settings(max_examples=600)
@given(SCHEMES, st.sampled_from(HOSTS), st.lists(st.sampled_from(PARTS), max_size=9))
def test_a_plain_url_has_the_key_that_the_library_makes(scheme: str, host: str, parts: list[str]) -> None:
    address = f"{scheme}://{host}/{''.join(parts)}"
    assert lookup_key(address) == url.surt(address)


NAMES = st.sampled_from(
    ["www", "www7", "ww", "site", "a-b", "a_b", "xn--bcher-kva", "https", "test", "co", "x1", "1x", "9"]
)
BYTES = st.one_of(st.integers(0, 255), st.sampled_from(["00", "010", "256", "0x1"])).map(str)
HOSTS_OF_ALL_KINDS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=4).map(".".join),
    st.lists(BYTES, min_size=4, max_size=4).map(".".join),
    st.ip_addresses(v=6).map(lambda address: f"[{address.compressed}]"),
)
PORTS = st.one_of(st.just(""), st.integers(1, 65535).map(":{}".format), st.sampled_from([":80", ":443", ":080", ":"]))


@settings(max_examples=400)
@given(SCHEMES, HOSTS_OF_ALL_KINDS, PORTS)
def test_every_host_has_the_key_that_the_library_makes(scheme: str, host: str, port: str) -> None:
    address = f"{scheme}://{host}{port}/Path"
    assert lookup_key(address) == url.surt(address)


@given(st.one_of(st.lists(NAMES, min_size=1, max_size=4).map(".".join), st.sampled_from(["A.test", "a%2fb", "a..b"])))
def test_a_look_up_has_the_key_that_the_library_makes(host: str) -> None:
    assert lookup_key(f"dns:{host}") == url.surt(f"dns:{host}")


PLAIN = [
    *("http://127.0.0.1:8931/a?b", "http://[::1]:8080/a/", "https://www.site.test/", "http://site.test:8080/"),
    *("http://site.test/font.eot?", "http://site.test/Stra%C3%9Fe/a%20b?q=%C3%A4"),
    *("http://site.test/%7B%7B%20path('a.css',%201)%20%7D", "http://site.test/f(x)?q=%5B%22a%22%5D&a=%7c"),
    *("dns:www.site.test", f"{PLACE}crawl.toml", f"{PLACE}logs/crawl.log?begun=20261118110640000&from=0&to=12"),
]


def test_plain_urls_need_no_library() -> None:
    """It brings an HTTP client and a list of suffixes with it: a tenth of a second and 8 MB."""
    program = (
        "import sys\nfrom archiver.warc.cdxj import lookup_key\n"
        f"for a in {PLAIN}: lookup_key(a)\nprint('surt' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


@given(
    st.from_regex(
        r"[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?[Zz]?", fullmatch=True
    )
)
def test_usual_dates_are_read_as_all_others(date: str) -> None:
    quick = cdxj._read_timestamp(date)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdxj, "_USUAL_DATE", re.compile("no date"))
        assert quick == cdxj._read_timestamp(date)
