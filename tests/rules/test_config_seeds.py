"""Seeds as people write them: what is taken, what is refused, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.config.seeds import SeedSetting, lacks_scheme, listed, read_seed, seed, unknown
from archiver.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("http://example.org", "http://example.org/"),
        ("  https://Example.ORG:443/a/../b#part ", "https://example.org/b"),
        ("HTTP://example.org/", "http://example.org/"),
        ("example.org", "http://example.org/"),
        ("example.org/x?y=a:b", "http://example.org/x?y=a:b"),
        ("example.org:8080/x", "http://example.org:8080/x"),
        ("localhost:8000", "http://localhost:8000/"),
        ("//example.org/x", "http://example.org/x"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://example.org/@user", "http://example.org/@user"),
        ("http://example.org/?u=a@b", "http://example.org/?u=a@b"),
        ("http://example.org/http://other.org/", "http://example.org/http://other.org/"),
    ],
)
def test_taken(text: str, canonical: str) -> None:
    assert seed(text) == canonical


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("htp://x", "htp: is not supported"),
        ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://?x", "no host"),
        ("http://:80/", "no host"),
        ("http:x", "two slashes"),
        ("http:/example.org", "two slashes"),
        ("mailto:me@example.org", "mailto: is not supported"),
        ("ftp://example.org/", "ftp: is not supported"),
        ("javascript:alert(1)", "javascript: is not supported"),
        ("file:///etc/passwd", "file: is not supported"),
        ("http://user:secret@example.org/", "credentials"),
        ("http://user@example.org/", "credentials"),
        ("user@example.org", "credentials"),
        ("http://exa mple.org/", "a space"),
        ("http://example.org/a b", "a space"),
        ("http://a.org http://b.org", "a space"),
        ("http://example.org/\x1b[2J", "control character"),
        ("http://exa\tmple.org/", "control character"),
        ("http://example.org:99999/", "not a URL"),
        ("http://[::1", "not a URL"),
        ("http://exa<mple.org/", "not a URL"),
        ("http://example.org/" + "x" * 20_000, "not a URL"),
        ("", "no host"),
        ("/etc/passwd", "no host"),
        ("http://\udcff/", "control character"),
    ],
)
def test_refused(text: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as refused:
        seed(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@given(st.text())
def test_any_text_is_a_seed_or_refused(text: str) -> None:
    try:
        found = seed(text)
    except ConfigError:
        return
    assert url.canonical(found) == found
    assert url.host(found)


def test_only_what_was_added_is_said() -> None:
    assert lacks_scheme("example.org")
    assert lacks_scheme("//example.org")
    assert not lacks_scheme(" https://example.org ")


def test_list_with_comments_and_blank_lines() -> None:
    text = "\ufeff# seeds\r\n\r\nhttp://a.org/#part\r\n  b.org/x # the second\n\t#end\nhttp://c.org"
    assert list(listed(text, "list")) == [
        ("http://a.org/#part", "http://a.org/", None),
        ("b.org/x", "http://b.org/x", None),
        ("http://c.org", "http://c.org/", None),
    ]


def test_list_names_the_line() -> None:
    with pytest.raises(ConfigError, match=r"^list:3: 'htp://x': htp: is not supported"):
        list(listed("# a\nhttp://a.org\nhtp://x\n", "list"))


def test_settings_of_a_seed() -> None:
    text = "http://a.org scope=prefix max-depth=none exclude=/tag/ exclude=x=1 # why\nhttp://b.org/#x\n"
    own = SeedSetting(
        "http://a.org/", (("scope", "prefix"), ("max-depth", None), ("exclude", "/tag/"), ("exclude", "x=1"))
    )
    assert list(listed(text, "list")) == [
        ("http://a.org", "http://a.org/", own),
        ("http://b.org/#x", "http://b.org/", None),
    ]
    assert str(own) == "http://a.org/ scope=prefix max-depth=none exclude=/tag/ exclude=x=1"
    assert read_seed(str(own)) == (own.url, own)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "http://a.org max-depht=3",
            "'max-depht=3' after the URL is not a setting of a seed; did you mean max-depth=…?",
        ),
        ("http://a.org max_depth=3", "did you mean max-depth=…?"),
        ("http://a.org rate=3", "the settings of a seed are scope=…, max-depth=…, max-hops=…, include=…, exclude=…"),
        ("http://a.org max-depth 3", "'max-depth' after the URL is not a setting"),
        ("http://a.org http://b.org", "give one URL at a time"),
        ("http://a.org/a b", "%20 for a space"),
        ("http://a.org max-depth=-1", "max-depth: '-1' is not a whole number of 0 or more"),
        ("http://a.org scope=site", "scope: 'site' is not one of host, domain, prefix, page, any"),
        ("http://a.org exclude=(", "exclude: '(' is not a regular expression"),
        ("http://a.org exclude=", "exclude: the value is missing"),
        ("http://a.org scope=page scope=host", "scope: given twice"),
        ("scope=page http://a.org", "has no URL before it"),
        ("ftp://a.org scope=page", "ftp: is not supported"),
        ("http://seed.org max-depth=3", "has other settings on line 1"),
    ],
)
def test_settings_of_a_seed_that_are_wrong(line: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        list(listed(f"http://seed.org max-depth=2\n# two\n{line}\n", "list"))
    message = str(refused.value)
    assert message.startswith("list:3: ")
    assert words in message
    assert len(message.splitlines()) == 1


def test_settings_for_no_seed() -> None:
    own = SeedSetting("http://a.org/", (("scope", "page"),))
    assert unknown(["http://a.org/"], [own]) == ""
    assert "http://a.org/ is not a seed" in unknown(["http://b.org/"], [own])
    assert "occurs twice" in unknown(["http://a.org/"], [own, own])


def test_a_port_for_another_protocol_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'mail\.example:25/': port 25 belongs to another protocol"):
        seed("mail.example:25/")
    for own in ("http://127.0.0.1:25/", "http://localhost:6000/", "http://[::1]:1/", "http://db.localhost:6667/"):
        assert seed(own) == own


@pytest.mark.parametrize("tail", ["x" * 16_384, "x" * 1_000_000, "ü" * 5_000])
def test_a_seed_that_is_too_long_is_left_out_alone(tail: str) -> None:
    """The others of its list are taken, and the line says where it stands."""
    found = list(listed(f"http://a.example/\nhttp://b.example/{tail}\nhttp://c.example/\n", "list"))
    assert [address for _, address, _ in found if address] == ["http://a.example/", "http://c.example/"]
    [told] = [text for text, address, _ in found if not address]
    assert told.startswith("list:2: 'http://b.example/")
    assert "is not a URL: it has" in told
    assert len(told) < 300
    with pytest.raises(ConfigError, match="16384 is the most"):
        seed(f"http://b.example/{tail}")
