"""Cookies by RFC 6265bis. Most cases are facts from the cookie tests of WPT (`cookies/`), http-state and curl."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.model import Cookie
from archiver.policy.cookies import (
    ALONE,
    DOMAIN_BYTES,
    DOMAIN_COOKIES,
    OVERHEAD,
    CookieJar,
    Party,
    default_path,
    domain_matches,
    path_matches,
)
from archiver.policy.set_cookie import LONGEST_LIFE, cookie_date, parse

NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
HERE = "http://www.example.org/dir/page?q"
SAFE = "https://www.example.org/dir/page"
SUFFIXES = ("org", "com", "co.uk", "github.io", "uk", "io")
OTHER_SITE = Party(same_site=False, navigation=True)
PART_OF_OTHER_SITE = Party(same_site=False, navigation=False)


def suffix(host: str) -> str:
    """A small public suffix list."""
    found = [known for known in SUFFIXES if host == known or host.endswith(f".{known}")]
    return max(found, key=len) if found else host.rpartition(".")[2]


def jar_of(*fields: str, at: str = HERE, party: Party = ALONE) -> CookieJar:
    jar = CookieJar(suffix)
    jar.store(at, fields, NOW, party)
    return jar


def sent(*fields: str, at: str = HERE, to: str = "", party: Party = ALONE) -> str:
    """The Cookie field of a request for *to* after a response for *at* has set *fields*."""
    return jar_of(*fields, at=at).header(to or at, NOW, party)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["foo=bar"], "foo=bar"),
        (["foo=bar", "foo=qux"], "foo=qux"),
        (["z=y", "a=b"], "z=y; a=b"),
        (["z=y, a=b"], "z=y, a=b"),
        (["foo"], "foo"),  # a value without a name
        (["=foo"], "foo"),
        (["foo", "bar"], "bar"),
        (["a=b", "=", "c=d"], "a=b; c=d"),
        (["a=b", "x=", "c=d"], "a=b; x=; c=d"),
        ([""], ""),
        (["; bar"], ""),
        (["   "], ""),
        (["  A  = BC  ;foo;;;   bar"], "A=BC"),
        (["  A=== BC"], "A=== BC"),
        (['a="B'], 'a="B'),
        (['aBc="zz;pp" ; ;'], 'aBc="zz'),
        (['aBc="zzz "   "ppp" ;'], 'aBc="zzz "   "ppp"'),
        (["foo=bar; version=1;"], "foo=bar"),
        (["foo=b;max-age=3600, c=d;path=/"], "foo=b"),
        (["\tname=\tvalue\t"], "name=value"),
        (["a=one\ttwo"], "a=one\ttwo"),
        (["a=\x01b"], ""),
        (["a=b\x7f"], ""),
        (["a=b; path=/\x01"], ""),
        (["a=\xe6\x98\xa5"], "a=\xe6\x98\xa5"),
        (["a=" + "v" * 4095], "a=" + "v" * 4095),
        (["a=" + "v" * 4096], ""),
        (["t=1; path=/wrong" + "x" * 1018 + "; Domain=" + "y" * 1025], ""),
        (["t=1; path=/" + "x" * 1024], "t=1"),  # an attribute over 1,024 bytes is ignored
        (["__Secure-a=b"], ""),
        (["__host-a=b"], ""),
        (["__Secure-"], ""),
        (["=__Host-a=b"], ""),
        (["===a=b"], "==a=b"),
        (["a b=c d"], "a b=c d"),
        (['"a=5"=b', '"a=5'], '"a=5'),
        (["$Version=1; a=7"], "$Version=1"),
        (["a", "b", "=c", "d=e"], "c; d=e"),
        (["=a=b", "c"], "c"),
        (["a=1", "=n", "b=1"], "a=1; n; b=1"),
        (["%74=%32"], "%74=%32"),
        (["\t"], ""),
        (['a=b; lol="c;d"; Path=/'], "a=b"),
        (['a="9! = b;c";" parser; max-age=6', "d; max-age=2.63,"], 'a="9! = b; d'),
        (["a=1; max-age=60", "b=1; max-age=60", "a=2; max-age=0", "c=1; max-age=0"], "b=1"),
        (["domain=value;path=/"], "domain=value"),
    ],
)
def test_pairs(fields: list[str], expected: str) -> None:
    assert sent(*fields) == expected


@pytest.mark.parametrize(
    ("attributes", "is_sent"),
    [
        ("Secure", False),
        ("seCURe", False),
        ('"Secure"', True),
        ("Secure=aaaa", False),
        ("Secure qux", True),
        ("Secure =aaaaa", False),
        ("qux; Secure", False),
        ("HttpOnly", True),
        ("Path", True),
        ("Path=", True),
        ("Path=/", True),
        ("Path=/qux", False),
        ("Path    =/qux", False),
        ("Path=/qux; Path=/", True),
        ("Path=/; Path=/qux", False),
        ("Path=/dir/", True),
        ("Path=/di", False),
        ("Path=/dir/page", True),
        ("Path=dir", True),  # not absolute: the default path
        ("Path=    /qux", False),
        ("Path=/qux      ; taz", False),
        ("Path= /", True),
        ("Path=/DIR", False),
        ("\tpath\t=\t/dir", True),
        ("Path=; Path=/dog", False),
        ("Path=/dog; Path=", True),
        ("Path=;Path=/", True),
        ('Path="/silly/"', True),  # curl takes the quotes off; browsers use the default path
        ("b,az=qux; baz=q,ux", True),
        ("                Secure", False),
        ("Domain=.parser.test; ;; ;=; ,,, ===,abc,=; abracadabra! max-age=20;=;;", False),
        ("Domain=..org", False),
        ("Domain=nope.example.org; Path=/moo", False),
        ("Max-Age=50,399", True),
        ("Expires=Fri 01 Jan 2038 00:00:00 GMT, baz=qux", True),
        ("expires=Fri Feb 13 11:56:27 GMT 2037", True),
        ("Domain=www.example.org", True),
        ("Domain=.www.example.org", True),
        ("Domain=..example.org", False),
        ("Domain=EXAMPLE.org", True),
        ("Domain=example.org", True),
        ("Domain=org", False),
        ("Domain=.org", False),
        ("Domain=other.example.org", False),
        ("Domain=sub.www.example.org", False),
        ("Domain=example.com", False),
        ("Domain=xample.org", False),
        ("Domain=", True),
        ("Domain=example.com; Domain=", True),
        ("Domain=example.com; Domain=example.org", True),
        ("Domain=example.org; Domain=example.com", False),
        ("Max-Age=0", False),
        ("Max-Age=-1", False),
        ("Max-Age=1", True),
        ("Max-Age=0x10", True),
        ('Max-Age="0"', True),
        ("Max-Age=", True),
        ("Max-Age=+0", True),
        ("Max-Age=0; Max-Age=10", True),
        ("Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", True),
        ("Max-Age=0; Expires=Fri, 01 Jan 2038 00:00:00 GMT", False),
        ("Max-Age=" + "9" * 400, True),
        ("Max-Age=-" + "9" * 400, False),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", False),
        ("Expires=Fri, 01 Jan 2038 00:00:00 GMT", True),
        ("Expires=nonsense", True),
        ("Expires=Thu, 10 Apr 1980 16:33:12 GMT; Expires=Fri, 01 Jan 2038 00:00:00 GMT", True),
        ("SameSite=None", False),  # without Secure
        ("SameSite=Lax", True),
        ("SameSite=Strict", True),
        ("SameSite=nonsense", True),
    ],
)
def test_attributes(attributes: str, is_sent: bool) -> None:  # noqa: FBT001 - a column of the table
    assert (sent(f"a=b; {attributes}") == "a=b") is is_sent


@pytest.mark.parametrize(
    ("attributes", "is_sent"),
    [
        ("Secure; Path=/", True),
        ("Secure", False),
        ("Path=/", False),
        ("Secure; Path=/dir", False),
        ("Secure; Path=/; Domain=www.example.org", False),
        ("Secure; Path=/; Domain=", True),
    ],
)
def test_the_host_prefix(attributes: str, is_sent: bool) -> None:  # noqa: FBT001
    assert (sent(f"__Host-a=b; {attributes}", at=SAFE) == "__Host-a=b") is is_sent


@pytest.mark.parametrize(
    ("set_at", "attributes", "to", "is_sent"),
    [
        (HERE, "", "http://example.org/dir/", False),
        (HERE, "", "http://sub.www.example.org/dir/", False),
        (HERE, "Domain=example.org", "http://example.org/dir/", True),
        (HERE, "Domain=example.org", "http://a.b.example.org/dir/", True),
        (HERE, "Domain=example.org", "http://badexample.org/dir/", False),
        (HERE, "", "http://www.example.org:8080/dir/", True),  # cookies do not know ports
        (HERE, "", "https://www.example.org/dir/", True),
        (SAFE, "Secure", "http://www.example.org/dir/", False),
        (SAFE, "Secure", SAFE, True),
        (HERE, "", "http://www.example.org/", False),
        (HERE, "", "http://www.example.org/dirt", False),
        (HERE, "", "http://www.example.org/dir", True),
        (HERE, "Path=/a", "http://www.example.org/a?b", True),
        (HERE, "Path=/a", "http://www.example.org/a/b", True),
        (HERE, "Path=/a%41", "http://www.example.org/aA", False),
        ("http://127.0.0.1/", "Domain=127.0.0.1", "http://127.0.0.1/", True),
        ("http://127.0.0.1/", "Domain=0.0.1", "http://127.0.0.1/", False),
        ("http://[::1]/", "", "http://[::1]/", True),
        ("http://github.io/", "Domain=github.io", "http://github.io/", True),
        ("http://github.io/", "Domain=github.io", "http://you.github.io/", False),
        ("http://me.github.io/", "Domain=github.io", "http://you.github.io/", False),
        ("http://localhost/", "Domain=localhost", "http://localhost/", True),
    ],
)
def test_where_it_is_sent(set_at: str, attributes: str, to: str, is_sent: bool) -> None:  # noqa: FBT001
    assert bool(sent(f"a=b; {attributes}", at=set_at, to=to)) is is_sent


@pytest.mark.parametrize(
    ("same_site", "party", "is_sent"),
    [
        ("Lax", ALONE, True),
        ("Lax", OTHER_SITE, True),
        ("Lax", PART_OF_OTHER_SITE, False),
        ("", PART_OF_OTHER_SITE, False),
        ("Strict", ALONE, True),
        ("Strict", OTHER_SITE, False),
        ("None", PART_OF_OTHER_SITE, True),
        ("none", OTHER_SITE, True),
    ],
)
def test_same_site(same_site: str, party: Party, is_sent: bool) -> None:  # noqa: FBT001
    assert bool(sent(f"a=b; Secure; SameSite={same_site}", at=SAFE, party=party)) is is_sent


def test_a_part_of_another_site_sets_no_cookie_but_with_same_site_none() -> None:
    jar = jar_of("a=1", "b=2; SameSite=None; Secure", at=SAFE, party=PART_OF_OTHER_SITE)
    assert jar.header(SAFE, NOW) == "b=2"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (HERE, "http://shop.example.org/", True),
        (HERE, "https://www.example.org/", False),
        (HERE, "http://example.com/", False),
        ("http://me.github.io/", "http://you.github.io/", False),
        ("http://a.example.co.uk/", "http://example.co.uk/", True),
        ("http://127.0.0.1/", "http://127.0.0.2/", False),
        ("http://localhost/", "http://localhost:8080/", True),
    ],
)
def test_which_urls_are_of_one_site(one: str, other: str, same: bool) -> None:  # noqa: FBT001
    assert CookieJar(suffix).same_site(one, other) is same


def test_longer_paths_go_first_then_older_cookies() -> None:
    jar = jar_of("root=1; Path=/", "dir=2; Path=/dir", "page=3; Path=/dir/page")
    jar.store(HERE, ["late=4; Path=/dir", "root=5; Path=/"], NOW + 5)  # a new value keeps its place
    assert jar.header(HERE, NOW + 6) == "page=3; dir=2; late=4; root=5"


def test_an_insecure_page_cannot_replace_a_secure_cookie() -> None:
    jar = jar_of("a=safe; Secure; Path=/", "b=1; Secure; Path=/other", at=SAFE)
    assert not jar.store(HERE, ["a=evil; Path=/", "a=evil; Path=/dir/page", "a=evil; Domain=example.org"], NOW)
    assert jar.header(SAFE, NOW) == "a=safe"
    assert jar.store(HERE, ["b=2; Path=/"], NOW)  # /other is not above /


def test_changes_name_what_the_frontier_has_to_store() -> None:
    jar = jar_of("a=1; Max-Age=60")
    assert [(one.name, one.value, one.expires) for one in jar.store(HERE, ["b=2"], NOW)] == [("b", "2", math.inf)]
    assert jar.store(HERE, ["b=2"], NOW + 1) == ()  # nothing new
    (gone,) = jar.store(HERE, ["a=; Max-Age=0", "c=3; Max-Age=0"], NOW + 2)
    assert (gone.name, gone.expires <= NOW) == ("a", True)
    (last,) = jar.store(HERE, ["d=1", "d=2"], NOW + 3)
    assert last.value == "2"


def test_a_restored_jar_sends_the_same_and_keeps_what_is_newer() -> None:
    jar = CookieJar(suffix)
    stored = jar.store(HERE, ["a=1; Domain=example.org", "b=2; Path=/"], NOW)
    later = CookieJar(suffix)
    later.store(HERE, ["b=3; Path=/"], NOW + 9)
    later.restore(stored)
    assert later.header(HERE, NOW + 9) == "a=1; b=3"


def test_cookies_expire() -> None:
    jar = jar_of("a=1; Max-Age=60", "b=2; Expires=Fri, 01 Jan 2038 00:00:00 GMT", "c=3")
    assert jar.header(HERE, NOW + 59) == "a=1; b=2; c=3"
    assert jar.header(HERE, NOW + 60) == "b=2; c=3"
    assert jar.header(HERE, NOW + LONGEST_LIFE) == "c=3"


def test_a_site_cannot_fill_the_memory() -> None:
    """The oldest cookies go, and those that are secure stay longest, as in Chromium."""
    jar = jar_of("login=1; Secure", at=SAFE)
    changes = jar.store(HERE, [f"n{number}=v" for number in range(190)], NOW)
    assert len(jar.header(SAFE, NOW).split("; ")) == DOMAIN_COOKIES
    assert "login=1" in jar.header(SAFE, NOW)
    assert sum(1 for each in changes if each.expires < NOW) <= 11
    jar.store(HERE, [f"m{number}={'v' * 4000}" for number in range(20)], NOW)
    assert len(jar.header(SAFE, NOW)) < DOMAIN_BYTES + 1000


def test_of_many_domains_those_used_last_stay_in_memory() -> None:
    """The frontier has the others."""
    jar = CookieJar(suffix, most=1000 * (OVERHEAD + 2))
    for number in range(5000):
        jar.store(f"http://h{number}.example.org/", ["a=b"], NOW)
        assert jar.header("http://h0.example.org/", NOW) == "a=b"
    assert jar.header("http://h4999.example.org/", NOW) == "a=b"
    assert jar.header("http://h4000.example.org/", NOW) == ""
    for number in range(5000):
        jar.store(f"http://h{number}.example.org/", ["a=b; Max-Age=0"], NOW)
    assert not jar.any


def test_the_cookies_of_the_user_go_last() -> None:
    jar = CookieJar(suffix)
    jar.restore(jar_of("mine=1; Path=/").store(HERE, ["mine=2; Path=/"], NOW))
    jar.restore([Cookie("www.example.org", "/", "login", "1", host_only=True, private=True)])
    jar.store(HERE, [f"n{number}=v" for number in range(190)], NOW)
    assert "login=1" in jar.header(HERE, NOW)
    assert "mine" not in jar.header(HERE, NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mon, 10-Dec-2007 17:02:24 GMT", "2007-12-10T17:02:24"),
        ("Wed, 09 Dec 2009 16:27:23 GMT", "2009-12-09T16:27:23"),
        ("Thursday, 01-Jan-1970 00:00:00 GMT", "1970-01-01T00:00:00"),
        ("Mon Dec 24 16:32:39 1977 GMT", "1977-12-24T16:32:39"),
        ("Wed, 30-Dec-37 18:11:28 GMT", "2037-12-30T18:11:28"),
        ("Tue, 01-Jan-70 08:00:01 GMT", "1970-01-01T08:00:01"),
        ("Tue, 01-Jan-69 08:00:01 GMT", "2069-01-01T08:00:01"),
        ("2017 apr 18 16:33:12", "2017-04-18T16:33:12"),
        ("Sat, 15-Apr-17 21:01:22 UTC+2", "2017-04-15T21:01:22"),
        ("1:2:3 4 Janissary 2005x", "2005-01-04T01:02:03"),
        ("00:00:60 1 Jan 2020", None),
        ("Thu, 32 Jan 2020 00:00:00 GMT", None),
        ("Sun, 30 Feb 2020 00:00:00 GMT", None),
        ("1 Jan 1600 00:00:00", None),
        ("01 Jan 1970", None),
        ("00:00:00 1 Jan", None),
        ("", None),
    ],
)
def test_dates(text: str, expected: str | None) -> None:
    moment = cookie_date(text)
    assert (moment is None) if expected is None else (moment == datetime.fromisoformat(f"{expected}+00:00").timestamp())


@pytest.mark.parametrize(
    ("path", "expected"), [("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/", "/a/b"), ("//", "/")]
)
def test_default_paths(path: str, expected: str) -> None:
    assert default_path(path) == expected


LABELS = st.lists(st.sampled_from(("a", "b", "org", "com", "example", "1")), min_size=1, max_size=4).map(".".join)
FIELDS = st.text(st.characters(max_codepoint=255), max_size=80) | st.builds(
    "{}={}; {}={}; {}".format,
    st.sampled_from(("a", "b", "__Host-a", "__secure-b", "")),
    st.sampled_from(("", "1", "x y")),
    st.sampled_from(("Domain", "Path", "Max-Age", "Expires", "SameSite")),
    LABELS | st.sampled_from(("/", "/dir", "0", "-1", "60", "None", "Thu, 01 Jan 1970 00:00:00 GMT")),
    st.sampled_from(("", "Secure", "HttpOnly")),
)


SCHEMES = st.sampled_from(("http", "https"))


@given(st.lists(FIELDS, max_size=6), LABELS, LABELS, SCHEMES, SCHEMES)
def test_a_cookie_goes_only_where_it_may(fields: list[str], host: str, other: str, first: str, second: str) -> None:
    jar = CookieJar(suffix)
    changes = jar.store(f"{first}://{host}/dir/x", fields, NOW)
    for cookie in changes:
        assert cookie.host_only or suffix(cookie.domain) != cookie.domain
        assert domain_matches(host, cookie.domain)
        assert first == "https" or not cookie.secure
    got = jar.header(f"{second}://{other}/dir/x", NOW)
    if got:
        assert host == other or suffix(host) == suffix(other) != host
        assert any(cookie.expires > NOW for cookie in changes)
    assert not any(character in got for character in "\r\n\0")


@given(st.text(st.characters(max_codepoint=255)))
def test_any_field_can_be_parsed(field: str) -> None:
    given_ = parse(field, NOW)
    assert given_ is None or given_.expires <= NOW + LONGEST_LIFE or given_.expires == math.inf


@pytest.mark.parametrize(
    ("path", "cookie_path", "matches"),
    [
        ("/", "/", True),
        ("/a", "/", True),
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a/b", "/a/", True),
        ("/ab", "/a", False),
        ("/a", "/a/", False),
        ("/", "/a", False),
    ],
)
def test_paths_match_by_whole_segments(path: str, cookie_path: str, matches: bool) -> None:  # noqa: FBT001
    assert path_matches(path, cookie_path) is matches


REPEATED = [
    "sid=1; Path=/",
    "sid=1; Path=/; Secure",
    "sid=2; Path=/; HttpOnly",
    "sid=1",
    "sid=1; Path=/; Max-Age=60",
    "sid=; Max-Age=0; Path=/",
    "sid=1; Domain=example.org; Path=/",
    "other=1; SameSite=None; Secure; Path=/",
]
PLACES = [HERE, SAFE, "http://www.example.org/other/page", "http://example.org/"]
PARTIES: list[Party] = [ALONE, OTHER_SITE, PART_OF_OTHER_SITE]
ANSWERS = st.tuples(st.sampled_from(PLACES), st.sampled_from(REPEATED), st.sampled_from(PARTIES), st.booleans())


@given(st.lists(ANSWERS, max_size=30))
def test_a_field_that_comes_again_means_the_same(
    answers: list[tuple[str, str, Party, bool]],
) -> None:
    jar, forgetful = CookieJar(suffix), CookieJar(suffix)
    for number, (address, field, party, verified) in enumerate(answers):
        forgetful._repeated.clear()
        now = NOW + 10 * number
        changed = [one.store(address, [field], now, party, verified=verified) for one in (jar, forgetful)]
        assert changed[0] == changed[1]
        for each in (HERE, SAFE, "http://example.org/"):
            sent = [sorted(one.header(each, now).split("; ")) for one in (jar, forgetful)]
            assert sent[0] == sent[1]
