"""Seeds as people write them: what is taken, what is refused, and in which words."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.config import toml
from archiver.config.option_types import LEFT_OUT, Rate
from archiver.config.seeds import (
    ABOUT_KEYS,
    KEYS,
    LONGEST_ABOUT,
    SEED_SETTING,
    SeedAbout,
    SeedSetting,
    combine_seed_settings,
    combined,
    conflict,
    contradiction,
    descriptions,
    lacks_scheme,
    listed,
    read_seed,
    seed,
    table_of,
)
from archiver.config.settings import Settings, with_values
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
        (
            "http://a.org zzz=3",
            "the settings of a seed are scope=…, max-depth=…, max-hops=…, include=…, exclude=…, rate=…",
        ),
        ("http://a.org rate=x", "rate: 'x' is not a number of requests"),
        ("http://a.org header='X: y", "is not"),
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
        ("http://a.org title=", "title: the value is missing"),
        (f"http://a.org title={'x' * 301}", "is not a line of text of at most 300 characters"),
        (f"http://a.org note={'x' * 2001}", "is not a line of text of at most 2000 characters"),
        (f"http://a.org collection={'x' * 101}", "is not a line of text of at most 100 characters"),
        ("http://a.org title='a\tb'", "is not a line of text"),
        ("http://a.org title=Our blog", "'blog' after title=…: quote a text that has blanks: title='…'"),
        ("http://a.org title=A http://b.org", "give one URL at a time"),
        ("title=A http://a.org", "write both together: 'https://example.org/ scope=prefix'"),
        ("http://a.org titel=x", "did you mean title=…?"),
        ("http://a.org title=x title=y", "title: given twice"),
    ],
)
def test_settings_of_a_seed_that_are_wrong(line: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        list(listed(f"http://seed.org max-depth=2\n# two\n{line}\n", "list"))
    message = str(refused.value)
    assert message.startswith("list:3: ")
    assert words in message
    assert len(message.splitlines()) == 1


def test_settings_of_seeds_that_cannot_hold_together() -> None:
    own = SeedSetting("http://a.org/", (("scope", "page"), ("rate", Rate(1)), ("timeout", 5.0)))
    assert conflict([own]) == ""
    assert "occurs twice" in conflict([own, own])
    same = SeedSetting("http://a.org/b", (("timeout", 5.0), ("rate", Rate(1)), ("max-depth", 3)))
    elsewhere = SeedSetting("https://a.org/", (("rate", Rate(2)),))
    scope_only = SeedSetting("http://a.org/c", (("scope", "page"),))
    assert conflict([own, same, elsewhere, scope_only]) == ""
    other = SeedSetting("http://a.org/d", (("rate", Rate(2)),))
    assert conflict([own, other]) == (
        "seed: http://a.org/d and http://a.org/ have the same host and other settings for it; "
        "give these settings to one of them"
    )


def test_settings_of_the_host_of_a_seed() -> None:
    headers = """header='X-A: b # c' header="X-B: it's" """
    line = f"http://a.org scope=page rate=1/5 {headers} user-agent='' conditional=false # d"
    given = (
        *(("scope", "page"), ("rate", Rate(1, 5.0)), ("header", "X-A: b # c"), ("header", "X-B: it's")),
        *(("user-agent", ""), ("conditional", False)),
    )
    own = SeedSetting("http://a.org/", given)
    assert list(listed(f"{line}\nb.org # c", "list")) == [
        ("http://a.org", own.url, own),
        ("b.org", "http://b.org/", None),
    ]
    assert (own.for_scope, own.for_host) == (True, given[1:])
    assert table_of(own) == {
        "url": "http://a.org/",
        "scope": "page",
        "rate": "1/5",
        "header": ["X-A: b # c", "X-B: it's"],
        "user-agent": "",
        "conditional": False,
    }
    assert SEED_SETTING.parse(table_of(own)) == own


_WRITTEN = {
    "header": st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])).map(
        lambda text: f"X: {text.strip()}"
    ),
    "exclude": st.sampled_from(["/tag/", r"\d+ x", "'", '"', "a'b c", '"x" y', " # ", "x'y\"z w"]),
    "rate": st.builds(Rate, st.integers(0, 99)),
    "conditional": st.booleans(),
    "max-depth": st.none() | st.integers(0, 9),
    **{
        key: st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=most).map(str.strip)
        for key, most in LONGEST_ABOUT.items()
    },
}


def own(line: str) -> SeedSetting:
    found = read_seed(line)[1]
    assert found is not None
    return found


def test_the_description_of_a_seed() -> None:
    one = own("""http://a.org title='Our "blog"' note="It's # good" collection=blogs scope=prefix rate=1""")
    assert one.about == SeedAbout('Our "blog"', "It's # good", "blogs")
    assert (one.effective, one.for_host) == ((("scope", "prefix"), ("rate", Rate(1))), (("rate", Rate(1)),))
    only = own("http://a.org title=' Blog '")
    assert (only.about, only.for_scope, only.for_host, only.effective) == (SeedAbout("Blog"), False, (), ())
    assert descriptions([one, own("http://b.org scope=page"), own("http://c.org title=''")]) == {one.url: one.about}


@pytest.mark.parametrize(
    ("known", "new", "together"),
    [
        ("scope=page title=A note=N", "scope=prefix title=B", "scope=prefix note=N title=B"),
        ("scope=page title=A", "scope=prefix", "scope=prefix title=A"),
        ("scope=page rate=1", "title=B", "scope=page rate=1 title=B"),
        ("scope=page rate=1 title=A", "rate=2", "rate=2 title=A"),
        ("title=A collection=c", "title=''", "title='' collection=c"),
        ("title=A", "note=N", "title=A note=N"),
    ],
)
def test_a_new_entry_keeps_what_it_does_not_give(known: str, new: str, together: str) -> None:
    before, after, wanted = (own(f"http://a.org {text}") for text in (known, new, together))
    [found] = combine_seed_settings([before], [after])
    assert dict(found.given) == dict(wanted.given)
    assert SEED_SETTING.parse(table_of(found)) == found


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ("title=A", "title=B", "title"),
        ("title=A", "title=A note=N", ""),
        ("title=A", "scope=page", ""),
        ("scope=page title=A", "scope=page note=N", ""),
        ("scope=page title=A", "scope=host title=A", "settings"),
        ("collection=c", "collection=d", "collection"),
    ],
)
def test_entries_that_contradict_each_other(one: str, other: str, what: str) -> None:
    pair = own(f"http://a.org {one}"), own(f"http://a.org {other}")
    assert contradiction(*pair) == contradiction(*reversed(pair)) == what


def test_lines_about_one_seed() -> None:
    text = "http://a.org title=A\nhttp://a.org scope=page\nhttp://a.org note=N title=A\n"
    found = [each for _, _, each in listed(text, "list") if each is not None]
    assert contradiction(found[0], found[1]) == ""
    with pytest.raises(ConfigError, match=r"^list:4: http://a.org/ has another note on line 3; delete one of the two$"):
        list(listed(f"{text}http://a.org note=other", "list"))
    with pytest.raises(ConfigError, match=r"^list:4: http://a.org/ has another title on line 1; delete one"):
        list(listed(f"{text}http://a.org title=B", "list"))
    with pytest.raises(ConfigError, match=r"^list:4: http://a.org/ has other settings on line 2; write all of them"):
        list(listed(f"{text}http://a.org scope=host", "list"))


@given(st.lists(st.sampled_from(sorted(_WRITTEN)), unique=True, min_size=1), st.data())
def test_entries_combined_have_the_texts_of_both(keys: list[str], data: st.DataObject) -> None:
    known, new = (
        SeedSetting("http://a.org/", tuple((key, data.draw(_WRITTEN[key])) for key in keys if data.draw(st.booleans())))
        for _ in range(2)
    )
    found = combined(known, new)
    assert found.effective == (new.effective or known.effective)
    for key in ABOUT_KEYS:
        assert found.get(key, "") == new.get(key, known.get(key, ""))


@given(st.lists(st.sampled_from(sorted(_WRITTEN)), unique=True, min_size=1), st.data())
def test_what_is_written_for_a_seed_is_read_back(keys: list[str], data: st.DataObject) -> None:
    own = SeedSetting("http://a.org/", tuple((key, data.draw(_WRITTEN[key])) for key in keys))
    assert read_seed(str(own)) == (own.url, own)
    assert list(listed(f"{own} # a comment", "list")) == [("http://a.org/", own.url, own)]
    assert SEED_SETTING.parse(table_of(own)) == own
    assert toml.parse(toml.render(with_values(Settings(), {"seed": (own,)})), "crawl.toml")["seed"] == (own,)


@given(st.text())
def test_any_line_is_read_or_refused(line: str) -> None:
    with suppress(ConfigError):
        list(listed(line, "list"))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rate": 1}, "url: a seed needs its URL"),
        ({"url": 5, "rate": 1}, "url: a seed needs its URL"),
        ({"url": "ftp://a.org", "rate": 1}, "ftp: is not supported"),
        ({"url": "a.org"}, "http://a.org/ has no settings; write, for example, rate = 1"),
        ({"url": "a.org", "rat": 1}, "'rat' is not a setting of a seed; did you mean rate?"),
        ({"url": "a.org", "zzz": 1}, f"the settings of a seed are {', '.join(KEYS)}"),
        ({"url": "a.org", "rate": [1]}, "rate: [1] is not"),
        ({"url": "a.org", "header": ["X"]}, "header: 'X' is not"),
        ({"url": "a.org", "header": [f"Cookie: {LEFT_OUT}"]}, "the value of Cookie is a secret that was left out"),
    ],
)
def test_tables_of_a_seed_that_are_wrong(table: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        SEED_SETTING.parse(table)
    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


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
