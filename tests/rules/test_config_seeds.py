"""Seeds as people write them: what is taken, what is refused, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.config.seeds import lacks_scheme, listed, seed
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
        ("htp://x", "htp: is not crawled"),
        ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://?x", "no host"),
        ("http://:80/", "no host"),
        ("http:x", "two slashes"),
        ("http:/example.org", "two slashes"),
        ("mailto:me@example.org", "mailto: is not crawled"),
        ("ftp://example.org/", "ftp: is not crawled"),
        ("javascript:alert(1)", "javascript: is not crawled"),
        ("file:///etc/passwd", "file: is not crawled"),
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
        ("http://a.org/#part", "http://a.org/"),
        ("b.org/x", "http://b.org/x"),
        ("http://c.org", "http://c.org/"),
    ]


def test_list_names_the_line() -> None:
    with pytest.raises(ConfigError, match=r"^list:3: 'htp://x': htp: is not crawled"):
        list(listed("# a\nhttp://a.org\nhtp://x\n", "list"))
