"""Cookie files: what curl, wget, yt-dlp and extensions of browsers write is read, and what is wrong is named."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import ConfigError
from archiver.model import Cookie
from archiver.policy.cookie_files import check_bounds, cookies_in, cookies_txt
from archiver.policy.cookies import DOMAIN_COOKIES, is_for

NOW = 1_800_000_000.0
LINE = "example.org\tFALSE\t/\tFALSE\t0\tid\t1"
PLAIN = Cookie("example.org", "/", "id", "1", host_only=True, created=NOW, private=True, changed=NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINE, PLAIN),
        (f"# Netscape HTTP Cookie File\n# a comment\n\n{LINE}\n", PLAIN),
        (f"\xef\xbb\xbf{LINE}\r\n\r\n", PLAIN),
        (f"#HttpOnly_{LINE}", PLAIN._replace(http_only=True)),
        (f"#HttpOnly_.{LINE}".replace("FALSE\t/", "TRUE\t/"), PLAIN._replace(http_only=True, host_only=False)),
        (LINE.replace("example", ".example").replace("FALSE\t/", "TRUE\t/"), PLAIN._replace(host_only=False)),
        (LINE.replace("FALSE\t/", "TRUE\t/"), PLAIN._replace(host_only=False)),
        (LINE.replace("FALSE\t0", "true\t0"), PLAIN._replace(secure=True)),
        (LINE.replace("\t0\t", "\t1900000000\t"), PLAIN._replace(expires=1.9e9)),
        (LINE.replace("\t0\t", "\t1900000000.5\t"), PLAIN._replace(expires=1_900_000_000.5)),
        (LINE.replace("\t0\t", "\t1900000000000\t"), PLAIN._replace(expires=1.9e9)),  # in milliseconds
        (LINE.replace("\t0\t", "\t\t"), PLAIN),
        (LINE.replace("\t0\t", "\t-1\t"), PLAIN),
        (LINE.replace("id\t1", "id\t"), PLAIN._replace(value="")),
        (LINE.replace("id\t1", "id"), PLAIN._replace(value="")),
        (LINE.replace("id\t1", "\tbare"), PLAIN._replace(name="", value="bare")),
        (LINE.replace("\t1", "\ta=b c\td"), PLAIN._replace(value="a=b c\td")),
        (LINE.replace("\t/\t", "\t/a/b\t"), PLAIN._replace(path="/a/b")),
        (LINE.replace("\t/\t", "\t\t"), PLAIN),
        (LINE.replace("example.org", "EXAMPLE.org"), PLAIN),
        (LINE.replace("example.org", "::1"), PLAIN._replace(domain="[::1]")),
        (LINE.replace("example.org", "127.0.0.1"), PLAIN._replace(domain="127.0.0.1")),
        (LINE.replace("example.org", "example.org:8080"), PLAIN),  # by wget
        (LINE.replace("id\t1", "id\t\xe6\x98\xa5"), PLAIN._replace(value="\xe6\x98\xa5")),
    ],
)
def test_a_line_is_a_cookie(text: str, expected: Cookie) -> None:
    assert list(cookies_in(text, NOW)) == [expected]


@pytest.mark.parametrize("text", ["", "\n", "# Netscape HTTP Cookie File\n", "#example.org\tFALSE\t/\tFALSE\t0\ta\tb"])
def test_a_file_may_have_none(text: str) -> None:
    assert not list(cookies_in(text, NOW))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{LINE}\nexample.org FALSE / FALSE 0 a b", "line 2: 1 of 7 fields; a tab must separate them"),
        ("a\tb\tc", "line 1: 3 of 7 fields"),
        (LINE.replace("FALSE\t/", "yes\t/"), "line 1: 'yes' is neither TRUE nor FALSE"),
        (LINE.replace("\t0\t", "\ttomorrow\t"), "line 1: 'tomorrow' is not a time in seconds since 1970"),
        (LINE.replace("example.org", "exa mple/x"), "line 1: 'exa mple/x' is not a host name"),
        (LINE.replace("example.org", "example.org:port"), "is not a host name"),
        (LINE.replace("example.org", "example.org:80:80"), "is not a host name"),
        (LINE.replace("example.org", "me@example.org"), "is not a host name"),
        (LINE.replace("example.org", "."), "is not a host name"),
        (LINE.replace("\t1", "\tx\x01"), "line 1: a control character"),
        (LINE.replace("\t1", "\tx\ry"), "line 1: a control character"),
        (LINE.replace("\t1", "\tx; y=1"), "line 1: 'id' is not the name of a cookie, or its value has a semicolon"),
        (LINE.replace("\t1", "\t" + "v" * 4096), "line 1: name and value are longer than 4096 bytes"),
        ('[{"domain": "example.org"}]', "line 1: JSON; export the cookies in Netscape format"),
        ("\xff\xfee\0", "line 1: UTF-16 text; save it as UTF-8"),
        ("<html>", "line 1: 1 of 7 fields"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        list(cookies_in(text, NOW))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_domain_has_no_more_cookies_than_in_a_browser() -> None:
    check_bounds([PLAIN._replace(name=str(number)) for number in range(DOMAIN_COOKIES)])
    with pytest.raises(ConfigError, match=r"example\.org has more than 180 cookies or 16 KiB"):
        check_bounds([PLAIN._replace(name=str(number)) for number in range(DOMAIN_COOKIES + 1)])
    with pytest.raises(ConfigError, match=r"example\.org has more than"):
        check_bounds([PLAIN._replace(name=str(number), value="v" * 4000) for number in range(5)])


TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f;="), max_size=20)
COOKIES = st.builds(
    Cookie,
    domain=st.sampled_from(("example.org", "a.example.org", "127.0.0.1", "[::1]", "localhost")),
    path=st.sampled_from(("/", "/a", "/a/b/")),
    name=TEXT.filter(bool),
    value=TEXT,
    host_only=st.booleans(),
    secure=st.booleans(),
    http_only=st.just(value=False),
    same_site=st.just(""),
    created=st.just(NOW),
    expires=st.just(math.inf) | st.integers(1, 4_000_000_000).map(float),
    private=st.just(True),
    changed=st.just(NOW),
)


@given(st.lists(COOKIES, max_size=5))
def test_what_is_written_is_read_again(cookies: list[Cookie]) -> None:
    assert list(cookies_in(cookies_txt(cookies), NOW)) == cookies


@given(st.text(st.characters(max_codepoint=255)) | st.lists(TEXT, max_size=9).map("\t".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = list(cookies_in(text, NOW))
    except ConfigError:
        return
    for cookie in found:
        assert cookie.private
        assert is_for(cookie, f"https://{cookie.domain}{cookie.path}")
