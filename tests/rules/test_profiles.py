"""Where settings come from: profiles, environment variables, and what is kept of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config import toml
from archiver.config.option_types import Rate
from archiver.config.profiles import (
    DEFAULT,
    PROFILES,
    Source,
    from_environment,
    layered,
    misspelt,
    origin_of,
    profile,
    recorded,
    variable,
)
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.errors import ConfigError

KEYS = [key_of(entry) for _, entry in every_setting()]


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_sets_what_is_no_default(name: str) -> None:
    found = profile(name, {})
    settings = with_values(Settings(), found.values)
    assert set(found.origins.values()) == {f"--profile {name}"}
    assert all(origin_of(settings, recorded(settings, found.origins, {})).values())
    assert toml.parse(toml.render(settings), "")
    for field in found.values:
        part = next(part for part, entry in every_setting() if entry.name == field)
        assert getattr(getattr(settings, part), field) != getattr(getattr(Settings(), part), field)


def test_an_own_profile_replaces_one_of_the_same_name() -> None:
    assert profile("gentle", {"gentle": "rate = 3"}).values == {"rate": Rate(3)}
    with pytest.raises(ConfigError, match=r"no such profile; there are broad, gentle, intranet, mine, one-page"):
        profile("x", {"mine": ""})
    with pytest.raises(ConfigError, match=r"profile mine:1: rate: "):
        profile("mine", {"mine": 'rate = "often"'})


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("ARCHIVER_RATE", "30/60", "rate", Rate(30, 60)),
        ("ARCHIVER_MAX_DEPTH", "none", "max_depth", None),
        ("ARCHIVER_STRICT", "yes", "strict", True),
        ("ARCHIVER_PAGE_REQUISITES", "0", "page_requisites", False),
        ("ARCHIVER_HEADER", "X-A: 1\n\n  X-B: a, b \n", "header", ("X-A: 1", "X-B: a, b")),
        ("ARCHIVER_EXCLUDE", "", "exclude", ()),
        ("ARCHIVER_WARC_SIZE", "2 GB", "warc_size", 2 * 10**9),
    ],
)
def test_a_variable_has_the_value_of_an_option(name: str, text: str, field: str, value: Any) -> None:
    assert from_environment({name: text, "PATH": "/"}) == Source({field: value}, {field: name})


@pytest.mark.parametrize("text", ["", "maybe", "1/0"])
def test_a_wrong_variable_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^ARCHIVER_RATE: "):
        from_environment({"ARCHIVER_RATE": text})
    assert from_environment({"ARCHIVER_RATE": text}, {"concurrency"}) == Source({}, {})


def test_each_setting_has_a_variable_of_its_own() -> None:
    assert len({variable(key) for key in KEYS}) == len(KEYS)
    assert not misspelt(map(variable, [*KEYS, "profile"]))
    assert not misspelt(["ARCHIVER_SUITES", "ARCHIVER_LONG", "ARCHIVER_HOME", "EDITOR"])
    assert misspelt(["ARCHIVER_RATES", "ARCHIVER_MAXDEPTH"]) == [
        ("ARCHIVER_MAXDEPTH", "ARCHIVER_MAX_DEPTH"),
        ("ARCHIVER_RATES", "ARCHIVER_RATE"),
    ]


def test_a_later_source_replaces_an_earlier_one() -> None:
    found = layered((Source.of({"rate": 1, "scope": "any"}, "file"), Source.of({"rate": 2}, "--rate")))
    assert found == Source({"rate": 2, "scope": "any"}, {"rate": "--rate", "scope": "file"})


@given(st.sampled_from(["any", "host", "page"]), st.sampled_from(["any", "host", "page"]), st.booleans())
def test_an_origin_is_told_as_long_as_its_value_stands(first: str, then: str, again: bool) -> None:  # noqa: FBT001
    """Nothing is told of a value that something else has changed since."""
    settings = with_values(Settings(), {"scope": first})
    known = recorded(settings, {"scope": "ARCHIVER_SCOPE"}, {})
    edited = with_values(settings, {"scope": then})
    assert origin_of(edited, known)["scope"] == ("ARCHIVER_SCOPE" if then == first else "")
    assert origin_of(edited, known)["rate"] == DEFAULT
    if again:
        later = recorded(edited, {"rate": "--rate"}, known)
        assert later["rate"].origin == "--rate"
        assert ("scope" in later) == (then == first)
    assert origin_of(Settings(), {})["scope"] == DEFAULT


def test_a_secret_is_not_kept() -> None:
    settings = with_values(Settings(), {"header": ("Authorization: Bearer abcdef",)})
    assert "abcdef" not in repr(recorded(settings, {"header": "--header"}, {}))
