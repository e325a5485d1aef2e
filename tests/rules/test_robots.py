import json
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from protego import Protego

from archiver import url
from archiver.model import Robots
from archiver.policy.robots import MAX_BODY, MAX_SITEMAPS, TOO_COSTLY, Rules, product_token, sitemaps
from fixtures.growth import least_seconds

HERE = "http://example.org"


def rules(body: str | bytes, token: str = "archiver", status: int = 200) -> Rules:
    return Rules(Robots(status, body.encode() if isinstance(body, str) else body), token)


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("Mozilla/5.0 (compatible; archiver/1.0)", "archiver"),
        ("Mozilla/5.0 (compatible; +https://me.example/; archiver/1.0)", "archiver"),
        ("Mozilla/5.0 (compatible; heritrix/3.4 +https://x.example)", "heritrix"),
        ("MyBot/2.1 (+https://x.example)", "MyBot"),
        ("my_bot", "my_bot"),
        ("", "archiver"),
        ("123", "archiver"),
    ],
)
def test_product_token(agent: str, token: str) -> None:
    assert product_token(agent) == token


@pytest.mark.parametrize(
    ("status", "allowed", "unreachable"),
    [
        (0, False, True),
        (200, False, False),
        (204, False, False),
        (301, True, False),
        (400, True, False),
        (404, True, False),
        (410, True, False),
        (499, True, False),
        (500, False, True),
        (503, False, True),
        (999, False, True),
    ],
)
def test_what_a_status_means(status: int, allowed: bool, unreachable: bool) -> None:  # noqa: FBT001  a table
    found = rules("User-agent: *\nDisallow: /", status=status)
    assert (found.allows(HERE + "/a"), found.unreachable) == (allowed, unreachable)
    assert found.allows(HERE + "/robots.txt") is not unreachable


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\r\n", "\r\r"])
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_codings(end: str, coding: str) -> None:
    text = end.join(["User-agent: *", "Disallow: /a # not this", "Allow: /a/ü", "Sitemap: /s.xml", "Crawl-delay: 2"])
    found = rules(text.encode(coding))
    assert not found.allows(HERE + "/a/b")
    assert found.allows(HERE + "/a/%C3%BC")
    assert found.delay == 2
    assert sitemaps(Robots(200, text.encode(coding))) == ("/s.xml",)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_a_byte_order_mark_whole_or_in_part(mark: bytes) -> None:
    assert not rules(mark + b"User-agent: *\nDisallow: /").allows(HERE + "/")


def test_only_the_robots_txt_itself_is_always_allowed() -> None:
    found = rules("User-agent: *\nDisallow: /")
    assert found.allows(HERE + "/robots.txt")
    for path in ("/private/robots.txt", "/x?y=/robots.txt", "/robots.txt/", "/Robots.txt"):
        assert not found.allows(HERE + path)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("User-agent: archiver\nDisallow: /x\n\nUser-agent: ARCHIVER\nDisallow: /y", {"/z"}),
        ("User-agent: *\nDisallow: /\n\nUser-agent: archiver\nDisallow: /x", {"/y", "/z"}),
        ("User-agent: *\nDisallow: /\n\nUser-agent: archiver\n", {"/x", "/y", "/z"}),
        ("User-agent: archiverbot\nDisallow: /\n\nUser-agent: arch\nDisallow: /", {"/x", "/y", "/z"}),
        ("User-agent: other\nUser-agent: archiver/2.0\nDisallow: /x", {"/y", "/z"}),
        ("User-agent: archiver and friends\nDisallow: /x", {"/y", "/z"}),
        ("User-agent: other\nSitemap: /s\nFoo: bar\nUser-agent: *\nDisallow: /x", {"/y", "/z"}),
        ("Disallow: /\nUser-agent: *\nAllow: /", {"/x", "/y", "/z"}),
        ("User-agent: *\nDisallow:\n", {"/x", "/y", "/z"}),
        ("User-agent: *\nDisallow: /\nAllow: /", {"/x", "/y", "/z"}),
        ("User-agent: *\nDisallow: /x$\nDisallow: /*y", {"/z"}),
        ("user agent *\ndisalow /x\nALLOW : /", {"/y", "/z"}),
        ("<html><body>User-agent: *\nDisallow: /</body>", {"/x", "/y", "/z"}),
        ("User-agent: archiver\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x", {"/y", "/z"}),
        ("User-agent: a\nCrawl-delay: 5\nSitemap: /s\nUser-agent: archiver\nDisallow: /x", {"/y", "/z"}),
        ("\0\1\2\nUser-agent: *\n\xff\xfe\nDisallow: /x", {"/y", "/z"}),
    ],
)
def test_groups(text: str, allowed: set[str]) -> None:
    found = rules(text)
    assert {path for path in ("/x", "/y", "/z") if found.allows(HERE + path)} == allowed


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 1.5", 1.5),
        ("User-agent: *\nCrawl-delay: 5\n\nUser-agent: archiver\nCrawl-delay: 2", 2),
        ("User-agent: *\nCrawl-delay: 5\n\nUser-agent: archiver\nDisallow: /x", 0),
        ("User-agent: other\nCrawl-delay: 30\nUser-agent: *\nDisallow: /x", 0),
        ("User-agent: *\nCrawl-delay: nan", 0),
        ("User-agent: *\nCrawl-delay: inf", 0),
        ("User-agent: *\nCrawl-delay: -3", 0),
        ("User-agent: *\nCrawl-delay: soon", 0),
        ("Crawl-delay: 9", 0),
    ],
)
def test_crawl_delay(text: str, delay: float) -> None:
    assert rules(text).delay == delay


def test_sitemaps() -> None:
    body = b"sitemap: /a\nUser-agent: x\nSitemap:http://h/b\nsite-map: /a\nSITEMAPS: /c d # e\nSitemap:\n"
    assert sitemaps(Robots(200, body)) == ("/a", "http://h/b", "/c%20d")
    assert sitemaps(Robots(404, body)) == ()
    assert len(sitemaps(Robots(200, b"".join(b"sitemap: /%d\n" % n for n in range(2000))))) == MAX_SITEMAPS


def test_the_first_512_kib_are_read() -> None:
    begin = "User-agent: *\nDisallow: /early\n"
    body = (begin + "# " + "x" * (MAX_BODY - len(begin) - 3) + "\n").encode() + b"Disallow: /late\n" + b"y" * MAX_BODY
    assert not rules(body).allows(HERE + "/early")
    assert rules(body).allows(HERE + "/late")


@given(st.binary(max_size=300), st.text("Mozilabtcherv/5.0(;)+ ", max_size=30))
def test_any_bytes(body: bytes, agent: str) -> None:
    for data in (body, b"User-agent: *\nDisallow: " + body, b"\xff\xfe" + body):
        found = rules(data, product_token(agent))
        assert found.allows(HERE + "/a") in (True, False)
        assert found.delay >= 0
        sitemaps(Robots(200, data))


HOSTILE = {
    "agents": b"".join(b"User-agent: a%d\n" % n for n in range(20_000)) + b"Disallow: /a\n" * 10_000,
    "stars": b"User-agent: *\n" + b"Disallow: /*a*a*a*a*a*a*a*b\n" * 15_000,
    "many-stars": b"User-agent: *\n" + b"".join(b"Disallow: /*a*%d*a*b\n" % n for n in range(25_000)),
    "short-ends": b"User-agent: *\n" + b"".join(b"Disallow: /*a%da$\n" % n for n in range(30_000)),
    "lengths": b"User-agent: *\n" + b"".join(b"Disallow: /%sb\n" % (b"a" * n) for n in range(1000)),
    "one-rule": b"User-agent: *\n" + b"Allow: /" + b"*a" * 8000 + b"\n",
    "same-agent": b"User-agent: *\n" * 30_000,
    "escapes": b"User-agent: *\n" + b"Disallow: /" + b"%61" * 170_000,
    "typo": b"disss" * 100_000,
    "spaces": b" " * MAX_BODY,
    "gap": b"Disallow" + b" " * MAX_BODY + b"x",
}


@pytest.mark.alone
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_costs_little(body: bytes) -> None:
    assert least_seconds(lambda: rules(body), 5) < 5  # in a thread of its own; a second at most on an idle machine
    found = rules(body)
    for path in ("/" + "a" * 2000, "/" + "a1" * 1000, "/" + "%C3%A9" * 300, "/a"):
        assert least_seconds(partial(found.allows, HERE + path), 0.005) < 0.005  # one millisecond on an idle machine


def test_more_wildcards_than_can_be_tried_forbid() -> None:
    found = rules("User-agent: *\nAllow: /a\n" + "".join(f"Disallow: /*b{'*a' * n}\n" for n in range(600)))
    assert found.refusal(HERE + "/" + "a" * 2000) == TOO_COSTLY
    assert found.allows(HERE + "/xyz")


# --- which rule decides, by a model and by protego --------------------------------------------------------------------

PATTERNS = st.text("ab/*$.=&", max_size=9).map("/".__add__)
PATHS = st.text("ab/.=&", max_size=12).map("/".__add__)
GROUP = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), PATTERNS), max_size=8)


def decided(group: list[tuple[str, str]], path: str) -> bool:
    """RFC 9309 §2.2.2 as it is written: of all rules that match the longest, and of those as long the kinder."""
    matching = [
        (len(pattern), word == "Allow")
        for word, pattern in group
        if re.match(
            ".*".join(map(re.escape, pattern.removesuffix("$").split("*"))) + ("$" if pattern.endswith("$") else ""),
            path,
        )
    ]
    return max(matching, default=(0, True))[1]


@given(GROUP, PATHS)
@settings(max_examples=300)
def test_the_longest_match_decides(group: list[tuple[str, str]], path: str) -> None:
    group = [(word, pattern[:-1].replace("$", "") + pattern[-1:]) for word, pattern in group]
    found = rules("User-agent: *\n" + "\n".join(map(": ".join, group)))
    assert found.allows(HERE + path) == decided(group, path)


@given(GROUP, PATHS)
@settings(max_examples=300)
def test_protego_decides_the_same(group: list[tuple[str, str]], path: str) -> None:
    """But for lengths: protego leaves out asterisks at the end (or before a last `$`), and counts `&` as `%26`."""
    assume("&" not in "".join(pattern for _, pattern in group))
    lines = [f"{word}: {re.sub(r'[*]+(?=[$]?$)', '', pattern)}" for word, pattern in group]
    text = "\n".join(("User-agent: *", *lines))
    assert rules(text).allows(HERE + path) == Protego.parse(text).can_fetch(HERE + path, "x")


@given(st.text(max_size=12), st.data())
@settings(max_examples=200)
def test_however_a_path_is_spelled(text: str, data: st.DataObject) -> None:
    """A rule with any of its characters escaped, in either case, means what it means without."""
    address = url.canonical(HERE + "/" + text)
    assume(address is not None and "*" not in text and "$" not in text and url.path(address) != "/robots.txt")
    assert address is not None
    plain = url.target(address)
    once = "".join(
        f"%{ord(char):02x}" if char.isalnum() and data.draw(st.booleans()) else char
        for char in re.sub(r"%..", "", plain)
    )
    bare = HERE + re.sub(r"%..", "", plain)
    assert not rules(f"User-agent: *\nDisallow: {once}$").allows(bare)
    assert not rules(f"User-agent: *\nDisallow: {plain}$").allows(address)


@pytest.mark.parametrize(
    ("pattern", "path", "same"),
    [
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", True),  # the table of RFC 9309 §2.2.2
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar", True),
        ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/a%2Fb", "/a/b", False),  # another segment
        ("/a%3Fb", "/a?b", False),  # another path
        ("/a%26b", "/a&b", False),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),  # §2.2.3
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24$", "/path/foo-$x", False),
        ("/a$b", "/a$b", True),
        ("/a*b", "/a%2Ab", True),
        ("/a%2Ab", "/axb", False),
        ("/a|b", "/a%7Cb", True),
        ("/100%", "/100%", True),
        ("/a%zz", "/a%zz", True),
    ],
)
def test_escapes(pattern: str, path: str, same: bool) -> None:  # noqa: FBT001  a table
    assert rules(f"User-agent: *\nDisallow: {pattern}").allows(HERE + path) is not same


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_utf_16_that_does_not_say_so(coding: str) -> None:
    assert not rules("User-agent: *\r\nDisallow: /a".encode(coding)).allows(HERE + "/a")


def test_latin_1_means_both_spellings() -> None:
    found = rules("User-agent: *\nDisallow: /caf\xe9".encode("latin-1"))
    assert not found.allows(HERE + "/caf%E9")
    assert not found.allows(HERE + "/caf%C3%A9")
    assert found.allows(HERE + "/cafe")


def test_a_refusal_names_its_rule() -> None:
    found = rules("User-agent: *\nDisallow: /a*b$\nDisallow: /a\nAllow: /a/*")
    assert found.refusal(HERE + "/ab") == "Disallow: /a*b$"
    assert found.refusal(HERE + "/ac") == "Disallow: /a"
    assert found.refusal(HERE + "/a/c") == ""


def test_the_product_is_meant_whatever_the_user_agent() -> None:
    text = "User-agent: archiver\nDisallow: /x\n\nUser-agent: mybot\nDisallow: /y\n\nUser-agent: *\nDisallow: /z"
    found = rules(text, "MyBot")
    assert [path for path in ("/x", "/y", "/z") if found.allows(HERE + path)] == ["/z"]


# --- the rows of Google's own parser test -----------------------------------------------------------------------------

RFC_SAYS_OTHERWISE = {
    "ID_Encoding-3": "expects a URL that nobody has escaped; ours are canonical, and then RFC 9309 allows it",
    "ID_Encoding-5": "the same",
    "ID_Encoding-6": "RFC 9309 §2.2.2 compares after decoding escapes of unreserved characters; Google does not",
}


@pytest.mark.suites
def test_google_rows(suites: Path) -> None:
    cases = json.loads((suites / "robots/google_robots_allowed.json").read_text())
    differ = set()
    for case in cases:
        address = url.canonical(case["url"]) or case["url"] or "http://foo.bar/"
        if rules(case["robots"], case["agent"]).allows(address) != case["allowed"]:
            differ.add(case["id"])
    assert differ == set(RFC_SAYS_OTHERWISE)
    assert len(cases) == 145


@pytest.mark.suites
def test_google_lines(suites: Path) -> None:
    """The files say nothing that forbids our URL; what counts is which of their lines were understood."""
    expected = {"kUtf8FileBrokenBOM": True}  # the first line is spoilt, so that its rules are nobody's
    for case in json.loads((suites / "robots/google_robots_lines_bom.json").read_text()):
        body = case["robots_latin1"].encode("latin-1").replace(b"Allow: /AnyValue", b"Disallow: /")
        if case["name"] == "kUtf8BOMSomewhereInMiddleOfFile":
            assert rules(body, "foo").allows(HERE + "/")
        elif case["name"].startswith("kUtf8"):
            assert rules(body, "foo").allows(HERE + "/") is expected.get(case["name"], False), case["name"]
        else:
            assert not rules(body, "bar").allows(HERE + "/"), case["name"]


@pytest.mark.suites
def test_google_escapes(suites: Path) -> None:
    """A rule and a URL that mean one path are one, however each is spelled."""
    for case in json.loads((suites / "robots/google_path_escape.json").read_text()):
        if case["fn"] == "TestEscape" and case["input"].startswith(("/", "%", "á")):
            path = "/" + case["input"].lstrip("/")
            address = url.canonical(HERE + path)
            assert address is not None
            assert url.in_capitals(address) == HERE + "/" + case["expected"].lstrip("/")
            assert not rules(f"User-agent: *\nDisallow: {path}$").allows(address)
