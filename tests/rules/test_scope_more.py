"""Scope beyond hosts: SURT prefixes, endings, hops, redirects, spellings of a query, and patterns that take long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.config import presets
from archiver.config.option_types import ENDINGS, PARAMETERS, SETS, SLOW, SURT, Pattern
from archiver.config.scope_settings import ScopeSettings
from archiver.errors import ConfigError
from archiver.model import LINK_OUTSIDE, Claim, Hop, Link, NewUrl, Refusal
from archiver.policy.scope import Scope, hops
from archiver.policy.url_forms import Respelling
from archiver.url import form, prefix
from fixtures.growth import least_seconds, seconds

HOME = "http://example.org/"


def scope(**settings: object) -> Scope:
    return Scope(ScopeSettings(**settings), [HOME], lambda host: ".".join(host.split(".")[-2:]))  # type: ignore[arg-type]


def claim(path: str = "", address: str = HOME, off_scope_hops: int = 0) -> Claim:
    return Claim(1, address, 1, Hop(path[-1]) if path else Hop.LINK, path, path.count("L"), off_scope_hops, 0)


def judged(judge: Scope, address: str, hop: Hop = Hop.LINK, parent: Claim | None = None) -> str:
    verdict = judge.judge(Link(address, hop), parent or claim())
    return verdict.rule if isinstance(verdict, Refusal) else ""


def spelled(judge: Scope, address: str, hop: Hop = Hop.LINK) -> str:
    verdict = judge.judge(Link(address, hop), claim())
    assert isinstance(verdict, NewUrl)
    return verdict.url


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://(org,example,", "(org,example,"),
        ("(org,Example,", "(org,example,"),
        ("https://(org,example,www,)/Docs", "(org,example,www,)/Docs"),
        ("example.org", "(org,example,"),
        ("http://example.org", "(org,example,"),
        ("http://example.org/", "(org,example,)/"),
        ("http://Example.org/docs/a?b", "(org,example,)/docs/a?b"),
        ("http://example.org:8080/", "(org,example,:8080)/"),
        ("http://10.0.0.1/", "(10.0.0.1,)/"),
        ("http://[::1]/", "([::1],)/"),
    ],
)
def test_surt_prefixes(given: str, kept: str) -> None:
    assert prefix(given) == kept
    assert prefix(kept) == kept


@pytest.mark.parametrize("given", ["", "http://", "http://(org,example,)x y", "ftp://example.org/", "a(b"])
def test_no_surt_prefix(given: str) -> None:
    with pytest.raises(ConfigError):
        SURT.parse(given)


def test_the_scope_by_surt() -> None:
    judge = scope(scope_surt=("(net,other,", "(com,docs,)/en/"))
    assert judged(judge, HOME + "a") == ""
    assert judged(judge, "https://www.other.net/a") == ""
    assert judged(judge, "http://other.net:8080/a") == ""
    assert judged(judge, "http://another.net/a") == "scope: host"
    assert judged(judge, "http://docs.com/en/a") == ""
    assert judged(judge, "http://docs.com/de/a") == "scope: host"
    assert judged(judge, "http://www.docs.com/en/a") == "scope: host"
    assert form("https://example.org/a?b") == "(org,example,)/a?b"


def test_any() -> None:
    judge = scope(scope="any", exclude=("/no",))
    assert judged(judge, "http://anywhere.net/") == ""
    assert (
        judged(judge, "http://anywhere.net/sitemap.xml", Hop.MANIFEST, claim("P", "http://anywhere.net/robots.txt"))
        == ""
    )
    assert judged(judge, "http://anywhere.net/no") == "exclude[0]: /no"


def test_endings_and_sets() -> None:
    judge = scope(exclude_ext=("zip,iso", "tar.gz"), without=("wikis,comments", "shops"))
    assert judged(judge, HOME + "a.ZIP?x=1") == "exclude-ext: zip"
    assert judged(judge, HOME + "a.iso", Hop.REQUISITE) == "exclude-ext: iso"
    assert judged(judge, HOME + "zip") == ""
    assert judged(judge, HOME + "a.zip/b") == ""
    assert judged(judge, HOME + "a.tar.gz") == "exclude-ext: tar.gz"
    assert judged(judge, HOME + "a?x=a.zip") == ""
    assert judged(judge, HOME + "w?oldid=5") == r"without: wikis: [?&]oldid=\d"
    assert judged(judge, HOME + "w?add-to-cart=5") == "without: shops: [?&]add-to-cart="
    assert judged(judge, HOME + "viewtopic.php?p=1") == ""


OUT = LINK_OUTSIDE


@pytest.mark.parametrize(
    ("path", "off_scope_hops", "hop", "target", "expected"),
    [
        ("", 0, Hop.LINK, "http://other.net/", OUT),
        ("LR", 0, Hop.LINK, "http://other.net/", OUT),
        ("LE", 0, Hop.LINK, "http://other.net/", OUT),  # a frame of the site
        ("LE", 1, Hop.LINK, "http://other.net/", None),  # a frame of somebody else
        ("M", 0, Hop.LINK, "http://other.net/", None),
        ("X", 0, Hop.LINK, "http://other.net/", None),
        ("L", OUT, Hop.LINK, "http://other.net/", 2 * OUT),
        ("LL", 2 * OUT, Hop.LINK, "http://other.net/", None),
        ("LL", 2 * OUT, Hop.LINK, HOME + "back", 0),
        ("L", OUT, Hop.REDIRECT, "https://www.other.net/", OUT),
        ("L", 0, Hop.REDIRECT, "http://other.net/", OUT),
        ("E", 1, Hop.REDIRECT, "http://other.net/", 1),
        ("L", OUT, Hop.REQUISITE, "http://cdn.net/a.css", OUT + 1),
        ("LE", OUT, Hop.REQUISITE, "http://www.other.net/a.css", OUT),  # beside it
        ("LE", OUT + 2, Hop.REQUISITE, "http://cdn.net/a.css", None),
        ("L", OUT, Hop.MANIFEST, "http://other.net/sitemap.xml", None),
        ("L", OUT, Hop.SPECULATIVE, "http://other.net/a.js", None),
    ],
)
def test_extra_hops(path: str, off_scope_hops: int, hop: Hop, target: str, expected: int | None) -> None:
    parent = claim(path, "http://other.net/a" if off_scope_hops else HOME, off_scope_hops)
    verdict = scope(extra_hops=2).judge(Link(target, hop), parent)
    assert (verdict.off_scope_hops if isinstance(verdict, NewUrl) else None) == expected
    if off_scope_hops < OUT and HOME not in target and hop is Hop.LINK:
        assert judged(scope(), target, hop, parent) == "scope: host"


def test_hops_count_everything() -> None:
    judge = scope(max_hops=2)
    assert judged(judge, HOME + "a", Hop.LINK, claim("L")) == ""
    for hop in (Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE, Hop.REDIRECT, Hop.MANIFEST):
        assert judged(judge, HOME + "a", hop, claim("LR")) == "max-hops: 2"
    assert judged(judge, HOME + "robots.txt", Hop.PREREQUISITE, claim("LR")) == ""
    assert hops("12+LLL") == 15
    assert judged(scope(max_hops=0), HOME + "a", Hop.REQUISITE) == "max-hops: 0"


@pytest.mark.parametrize("most", [0, 1, 3])
def test_requisite_hops(most: int) -> None:
    judge = scope(requisite_hops=most)
    if most:
        assert judged(judge, "http://cdn.net/a", Hop.REQUISITE, claim("E", off_scope_hops=most - 1)) == ""
    assert (
        judged(judge, "http://cdn.net/a", Hop.REQUISITE, claim("E", off_scope_hops=most)) == f"requisite-hops: {most}"
    )
    assert judged(judge, HOME + "a.css", Hop.REQUISITE, claim("E", off_scope_hops=0)) == ""


@pytest.mark.parametrize(
    ("kind", "path", "rule"),
    [
        ("follow", "", ""),
        ("follow", "L", ""),
        ("seeds", "", ""),
        ("seeds", "R", ""),
        ("seeds", "L", "redirects: seeds"),
        ("stop", "", "redirects: stop"),
        ("stop", "L", "redirects: stop"),
        ("stop", "E", ""),  # what a page needs may have moved
        ("stop", "P", ""),  # robots.txt too
    ],
)
def test_redirects_out_of_the_scope(kind: str, path: str, rule: str) -> None:
    judge = scope(redirects=kind)
    assert judged(judge, "http://moved.net/", Hop.REDIRECT, claim(path)) == rule
    assert judged(judge, HOME + "b", Hop.REDIRECT, claim(path)) == ""
    further = "" if kind == "seeds" and not rule else "scope: host"
    assert judged(judge, "http://moved.net/next", Hop.LINK, claim("R", "http://moved.net/")) == further


def test_what_is_excluded_is_not_welcome() -> None:
    judge = scope(redirects="seeds", exclude=("moved",))
    assert judged(judge, "http://moved.net/", Hop.REDIRECT) == "exclude[0]: moved"
    assert judge.moved_seeds == ()


@pytest.mark.parametrize(
    ("drops", "query", "given", "asked"),
    [
        ((), "keep", "a?b=2&a=1", "a?b=2&a=1"),
        ((), "sort", "a?b=2&a=1&b=1", "a?a=1&b=1&b=2"),
        ((), "sort", "a?", "a?"),
        (("utm_*",), "keep", "a?utm_source=x&b=1&UTM_Medium=y", "a?b=1"),
        (("utm_*",), "keep", "a?utm_source=x", "a"),
        (("utm_*",), "keep", "a?utmost=x", "a?utmost=x"),
        (("trackers",), "sort", "a?z=1&fbclid=x&b=2", "a?b=2&z=1"),
        (("a,b",), "keep", "a?a=1&b=2&c=3", "a?c=3"),
        (("session-paths",), "keep", "a;jsessionid=0A1B.node1?b=1", "a?b=1"),
        (("session-paths",), "keep", "a;v=1", "a;v=1"),
        (("sessions",), "keep", "a?sid=5&b", "a?sid=5&b"),
        (("none",), "keep", "a?sid=0123456789abcdef0123456789abcdef", "a?sid=0123456789abcdef0123456789abcdef"),
    ],
)
def test_what_is_asked_for(drops: tuple[str, ...], query: str, given: str, asked: str) -> None:
    judge = scope(drop_query=drops, query=query)
    assert spelled(judge, HOME + given) == HOME + asked
    assert spelled(judge, HOME + given, Hop.REDIRECT) == HOME + given  # a site that insists is obeyed


@pytest.mark.parametrize(
    "given",
    [
        "a?PHPSESSID=0123456789abcdef0123456789abcdef&b=1",
        "a?sid=0123456789ABCDEF0123456789abcdef&b=1",
        "a?jsessionid=0123456789ABCDEF0123456789ABCDEF",
        "x/(S(abcdefghij0123456789abcd))/y.aspx?z=1",
    ],
)
def test_by_default_only_that_is_dropped_which_a_replay_drops(given: str) -> None:
    asked = spelled(scope(), HOME + given)
    assert asked != HOME + given
    assert url.surt(asked) == url.surt(HOME + given)
    last = f"{HOME}a?b=1&sid=0123456789abcdef0123456789abcdef"  # another key without it
    assert spelled(scope(), last) == last


@given(st.text(alphabet="ab=&?;%()S/.x1", max_size=40), st.sampled_from(["keep", "sort"]))
def test_a_spelling_is_canonical_and_final(tail: str, query: str) -> None:
    respelled = Respelling(query, [*presets.PRESETS, "a", "x*"])
    address = url.canonical(HOME + tail)
    assert address is not None
    asked = respelled(address)
    assert respelled(asked) == asked
    assert url.canonical(asked) == asked


@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a*)*b$", r"(a+)\1+$"])
def test_no_pattern_hangs(text: str) -> None:
    address = HOME + "a" * 4000 + "!"

    def run() -> None:
        pattern = Pattern("exclude[0]", text)
        for _ in range(5):
            pattern.found_in(address)

    assert least_seconds(run, 5) < 5


def test_what_takes_too_long_refuses_and_does_not_include() -> None:
    bad, address = "(a|aa)+$", HOME + "a" * 4000 + "!"
    assert judged(scope(exclude=(bad,)), address) == f"exclude[0]: {bad} (it took too long on this URL)"
    other = address.replace("example.org", "other.net")
    assert judged(scope(include=(bad,)), other) == f"scope: host (include[0]: {bad} took too long on this URL)"
    assert judged(scope(include=(bad,)), address) == ""
    assert judged(scope(include=(bad,)), "http://other.net/aaa") == ""


def test_a_page_of_bad_urls_passes() -> None:
    pattern = Pattern("exclude[0]", "(a|aa)+$")

    def run() -> None:
        assert all(pattern.found_in(f"http://h/{number}/{'a' * 3000}!") is SLOW for number in range(300))

    assert seconds(run) < 15
    assert pattern.found_in("http://h/aaa") is True
    assert pattern.found_in("http://h/b") is False


@given(
    st.text(alphabet="ab/.?=1", max_size=30),
    st.sampled_from([r"/a+", r"[?&]b=", r"a{2}.*b", r"^http://h/(a|b)*$", r"(a)\1"]),
)
def test_both_engines_find_the_same(tail: str, text: str) -> None:
    import re  # noqa: PLC0415 - the measure here, and nothing else in this file

    address = f"http://h/{tail}"
    assert Pattern("", text).found_in(address) is (re.search(text, address) is not None)


def test_lists_between_commas() -> None:
    assert ENDINGS.parse(".ZIP, iso,tar.gz") == "zip,iso,tar.gz"
    assert SETS.parse("wikis,shops") == "wikis,shops"
    assert PARAMETERS.parse("utm_*,trackers") == "utm_*,trackers"
    for kind, text in (
        (ENDINGS, "a/b"),
        (ENDINGS, ""),
        (SETS, "wiki"),
        (SETS, ""),
        (PARAMETERS, "a&b"),
        (PARAMETERS, "a,,b"),
    ):
        with pytest.raises(ConfigError):
            kind.parse(text)
