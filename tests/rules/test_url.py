import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url

BASES = (
    "https://docs.example.org/3/library/os.html?x=1",
    "http://h.example:8080/",
    "http://[::1]/a/b/",
    "http://1.2.3.4/c?d",
)

# What references are made of, plain and not, so that both ways through `join` meet at every edge.
CHARACTERS = "aB9.~-_/\\?#:@%'\"&=;+*()$!,|^`{}<>[]é \t\n\0\ud800"
WORDS = (
    "..",
    "./",
    "../",
    "//",
    "%2e",
    "%2E",
    "%c3%a9",
    "%41",
    "http:",
    "https:",
    "http://",
    "https://",
    "javascript:",
)
HOSTS = ("www.example.org", "xn--", "xn--bcher-kva", "1.2", "0x7f", ":80", ":8080", "user:pw@")
PIECES = st.lists(st.sampled_from([*CHARACTERS, *WORDS, *HOSTS]), max_size=8).map("".join)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:8080/a#b", "http://example.org:8080/a"),
        ("http://user:pass@example.org/@x", "http://example.org/@x"),
        ("http://example.org?a@b", "http://example.org/?a@b"),
        ("http://example.org/a/../b/./c", "http://example.org/b/c"),
        ("http://example.org/%e2%82%aC?%aa", "http://example.org/%e2%82%aC?%aa"),
        ("http://example.org/%zz%", "http://example.org/%zz%"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
        ("  http://example.org/ \n", "http://example.org/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]/"),
        ("http://example.org/?", "http://example.org/?"),
        ("htp://x", None),
        ("ftp://example.org/", None),
        ("data:text/html,x", None),
        ("javascript:void(0)", None),
        ("http://", None),
        ("/relative", None),
        ("", None),
        ("http://a b/", None),
        ("http://\ud800/", None),
        ("http://example.org/" + "a" * url.MAX_LENGTH, None),
    ],
)
def test_canonical(given: str, expected: str | None) -> None:
    assert url.canonical(given) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("", "http://h/a/b?q"),
        ("#x y", "http://h/a/b?q"),
        ("?r", "http://h/a/b?r"),
        ("c", "http://h/a/c"),
        ("c/", "http://h/a/c/"),
        ("c?d#e", "http://h/a/c?d"),
        (".c", "http://h/a/.c"),
        ("../c", "http://h/c"),
        ("../../../c", "http://h/c"),
        ("/c//d", "http://h/c//d"),
        ("//other/c", "http://other/c"),
        ("https://other.example/c", "https://other.example/c"),
        ("http:c", "http://h/a/c"),
        ("https:c", "https://c/"),
        ("c:d", None),
        ("mailto:a@b", None),
        ("\tc\n", "http://h/a/c"),
        ("%2e%2E/c", "http://h/c"),
    ],
)
def test_join(reference: str, expected: str | None) -> None:
    assert url.join("http://h/a/b?q", reference) == expected


@pytest.mark.parametrize("base", ["", "nonsense", "mailto:a@b", "http://h/é", "HTTP://H/"])
def test_join_to_a_base_that_is_not_canonical(base: str) -> None:
    for reference in ("", "c", "/c", "?c", "#c", "https://other.example/c"):
        assert url.join(base, reference) == url._finish(reference, base)


@given(base=st.sampled_from(BASES) | st.text(max_size=20), reference=PIECES | st.text(max_size=30))
def test_the_short_way_of_join_is_the_long_one(base: str, reference: str) -> None:
    assert url.join(base, reference) == url._finish(reference, base)


@given(
    PIECES.map("http://h/".__add__) | PIECES.map("https://".__add__) | PIECES.map("http://[::1]:8".__add__) | st.text()
)
def test_the_short_way_of_canonical_is_the_long_one(text: str) -> None:
    assert url.canonical(text) == url._finish(text, None)


@given(PIECES.map("http://h/".__add__) | PIECES.map("https://".__add__) | st.text())
def test_canonical_is_the_end_of_it(text: str) -> None:
    found = url.canonical(text)
    if found is not None:
        assert url.canonical(found) == found
        assert found.isascii()
        assert url.origin(found) + url.target(found) == found
        assert found.partition("//")[2] == url.authority(found) + url.target(found)
        port = url.authority(found).removeprefix(url.host(found))
        assert port == "" or (port[0] == ":" and port[1:].isdigit())
        assert url.target(found).startswith(url.path(found))
        assert "?" not in url.path(found)
        assert url.join(found, "") == found


@given(st.binary(max_size=200))
def test_any_bytes_that_leaked_into_a_link(data: bytes) -> None:
    for encoding in ("latin-1", "utf-8"):
        text = data.decode(encoding, "surrogateescape")
        assert url.canonical(text) is None or url.canonical(text)
        assert url.join(BASES[0], text) is None or url.join(BASES[0], text)


def test_the_key_is_pywbs() -> None:
    assert url.surt("https://www.Example.org:443/A?b=2&a=1") == "org,example)/a?a=1&b=2"


@pytest.mark.parametrize(
    ("given", "capitals", "spellings"),
    [
        ("http://e.org/a", "http://e.org/a", ["http://e.org/a"]),
        ("http://e.org/%2f%Zz%", "http://e.org/%2F%Zz%", ["http://e.org/%2f%Zz%", "http://e.org/%2F%Zz%"]),
        ("http://e.org/%C3%a9", "http://e.org/%C3%A9", [f"http://e.org/{it}" for it in ("%C3%a9", "%C3%A9", "%c3%a9")]),
        ("http://e.org/%20?%AB", "http://e.org/%20?%AB", ["http://e.org/%20?%AB", "http://e.org/%20?%ab"]),
    ],
)
def test_escapes_in_other_letters(given: str, capitals: str, spellings: list[str]) -> None:
    assert url.canonical(given) == given
    assert url.in_capitals(given) == capitals
    assert list(url.spellings(given)) == spellings


# --- the cases of web-platform-tests ---------------------------------------------------------------------------------


def lenient(given: str, found: str | None, expected: str | None) -> bool:
    """Punycode that decodes to nothing: ada takes the label as it is, the standard refuses it. so will DNS."""
    return expected is None and found is not None and "xn--" in given.lower() and "xn--" in url.host(found)


def expected_of(case: dict[str, Any]) -> str | None:
    """What the standard's href is in our spelling: no fragment, no user, only http."""
    if case.get("failure") or case["protocol"] not in ("http:", "https:"):
        return None
    href = f"{case['protocol']}//{case['host']}{case['pathname']}{case['search']}"
    if not case["search"] and "?" in case["href"].partition("#")[0]:
        href += "?"
    return href


@pytest.mark.suites
def test_whatwg_cases(suites: Path) -> None:
    cases = [case for case in json.loads((suites / "url/urltestdata.json").read_text()) if isinstance(case, dict)]
    differ = []
    for case in cases:
        base = case["base"]
        found = url.canonical(case["input"]) if base is None else url.join(base, case["input"])
        if found != expected_of(case):
            differ.append((case["input"], found, expected_of(case)))
    assert [case for case in differ if not lenient(*case)] == []
    assert (len(cases) - len(differ), len(cases)) >= (862, 869)


@pytest.mark.suites
def test_hosts_to_ascii(suites: Path) -> None:
    cases = [case for case in json.loads((suites / "url/toascii.json").read_text()) if isinstance(case, dict)]
    differ = []
    for case in cases:
        found = url.canonical(f"https://{case['input']}/x")
        expected = f"https://{case['output']}/x" if case["output"] else None
        if found != expected:
            differ.append((case["input"], found, expected))
    assert [case for case in differ if not lenient(*case)] == []
    assert (len(cases) - len(differ), len(cases)) >= (80, 87)


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("http://a.example:25/", "25"),
        ("https://a.example:6667/x?y:1", "6667"),
        ("http://[::1]:10080/", "10080"),
        ("http://a.example/:25/", ""),
        ("http://a.example:8080/25", ""),
        ("http://[2001:db8::25]/", ""),
        ("http://a.example/", ""),
    ],
)
def test_ports_that_browsers_block(address: str, port: str) -> None:
    assert url.blocked_port(address) == port
