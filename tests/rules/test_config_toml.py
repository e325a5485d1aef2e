"""crawl.toml: what is refused and in which words, and that what is written is read back the same."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config import toml
from archiver.config.auth import AUTH
from archiver.config.event_settings import ON
from archiver.config.hook_settings import HookFile
from archiver.config.host_rules import HostRule
from archiver.config.logins import Login
from archiver.config.option_types import OptionType, Rate
from archiver.config.secrets import SecretKind, SecretSource
from archiver.config.seeds import SeedSetting
from archiver.config.settings import SLICES, Settings, every_setting, key_of, with_values
from archiver.config.tls import CLIENT_CERT
from archiver.config.toml import TABLES
from archiver.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-depht = 3", "f:1: max-depht: unknown key; did you mean max-depth?"),
        ("max_depth = 3", "f:1: max_depth: unknown key; did you mean max-depth?"),
        ('"--rate" = 3', "f:1: --rate: unknown key; did you mean rate?"),
        ("\n\nzzzzzz = 3", "f:3: zzzzzz: unknown key; docs/reference/settings.md names them all"),
        ("# max-depth\n\nmax-depth = -1", 'f:3: max-depth: -1 is not a whole number of 0 or more, or "none"'),
        ('operator = "a"\n"rate" = true', "f:2: rate: True is not a number of requests"),
        ("rate = 2.5", "f:1: rate: 2.5 is not a number of requests"),
        ('robots = "maybe"', "f:1: robots: 'maybe' is not one of obey, ignore"),
        ("page-requisites = 1", "f:1: page-requisites: 1 is not true or false"),
        ('include = "x"', 'f:1: include: not a list of strings; write include = ["…", "…"]'),
        ("include = [1]", "f:1: include: not a list of strings"),
        ('include = [\n  "a",\n  "("\n]', "f:1: include: '(' is not a regular expression (missing )"),
        ('seeds = ["htp://x"]', "f:1: seeds: 'htp://x': htp: is not supported"),
        ('seeds = ["a.org scope=page"]', "f:1: seeds: a seed with settings is a table: write [[seed]] and"),
        ('seed = ["a.org"]', "f:1: seed: 'a.org' is not the URL of a seed and its own settings (https"),
        (
            'rate = 1\n[[seed]]\nurl = "a.org"\nscope = "all"',
            "f:2: seed: scope: 'all' is not one of host, domain, prefix",
        ),
        ('[seed]\nurl = "a.org"\nscope = "all"', "f:1: seed: write [[seed]] with two brackets, once for each"),
        ('seed-setting = ["a.org scope=page"]', "f:1: seed-setting: unknown key"),
        ("[crawl]\nrate = 3", "f:1: [crawl]: tables are not supported"),
        ("rate = 1\n[scope]\nmax-depth = 3", "f:2: scope: the value is a table"),
        ("scope.max-depth = 3", "f:1: scope: the value is a table"),
        ("rate = 1\nrate = 2\n", "f:2: not TOML: Cannot overwrite a value"),
        ("rate = 1\nbad line\n", "f:2: not TOML: "),
        ("rate = \n", "f:1: not TOML: "),
        ("operator = " + "[" * 5000, "f:1: not TOML: "),
        ('operator = """\nrate = 0\n"""\nrate = -1', "f:1: operator: "),
        ('description = "rate = 1"\nrate = -1', "f:2: rate: "),
        ("timeout = 0", "f:1: timeout: 0 is not a number of seconds above 0"),
        ("timeout = inf", "f:1: timeout: inf is not"),
        ("timeout = 2020-01-01", "f:1: timeout: datetime.date"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        toml.parse(text, "f")
    assert str(refused.value).startswith(message)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


SECOND = '[[seed]]\nurl = "a.org"\nexclude = ["456"]\n'


@pytest.mark.parametrize(
    ("text", "key", "length"),
    [
        ('exclude = ["12345", "678901"]', "exclude", 11),
        ('include = ["12345"]\nrate = 1\nexclude = ["678901"]', "exclude", 11),
        ('include = ["12345678"]\n' + SECOND, "seed", 11),
        ('seed = ["a.org exclude=12345"]\n', "seed", 19),
        ('[[login]]\nlogged-out = "12345678901"\n', "login", 11),
    ],
)
def test_patterns_that_take_minutes_to_read_are_refused(
    text: str, key: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any of them is compiled."""
    monkeypatch.setattr(toml, "MOST_PATTERNS", 10)
    with pytest.raises(ConfigError) as raised:
        toml.parse(text, "f")
    assert f": {key}: with these, the patterns of the crawl have {length} characters, and 10 is the most; " in str(
        raised.value
    )
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        'exclude = ["12345", "67890"]\n',
        'include = ["1234567"]\n' + SECOND,
        'exclude-ext = ["12345678901"]\n[[seed]]\nurl = "a.org"\ntitle = "a long title"\n',
    ],
)
def test_as_many_patterns_as_may_be_are_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml, "MOST_PATTERNS", 10)
    values = toml.parse(text, "f")
    assert toml.parse(toml.render(with_values(Settings(), values)), "f").items() >= values.items()


def test_no_crawl_toml_is_written_that_could_not_be_read() -> None:
    many = ("x" * 90_000,) * 12
    with pytest.raises(ConfigError, match="exclude: with these, the patterns of the crawl have 1080000 characters"):
        toml.render(with_values(Settings(), {"exclude": many}))


def test_line_is_not_one_inside_a_string() -> None:
    with pytest.raises(ConfigError, match=r"^f:4: rate"):
        toml.parse("exclude = [\n'rate',\n]\nrate = -1\n", "f")
    with pytest.raises(ConfigError, match=r"^f:4: zz"):
        toml.parse('description = """\\\n\\\nzz = 0"""\nzz = -1\n', "f")


def test_read() -> None:
    text = 'seeds = ["example.org", "http://example.org/"]\nrate = "30/60"\nmax-depth = 3\ninclude = ["a", "b"]'
    assert toml.parse(text, "f") == {
        "seeds": ("http://example.org/",),
        "rate": Rate(30, 60.0),
        "max_depth": 3,
        "include": ("a", "b"),
    }


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        values = toml.parse(text, "f")
    except ConfigError:
        return
    with_values(Settings(), values)


def test_every_setting_is_written_with_its_help() -> None:
    text = toml.render(Settings())
    written = tomllib.loads(text)
    assert list(written) == ["seeds", *(key_of(entry) for _, entry in every_setting() if key_of(entry) not in TABLES)]
    assert all(f"# [[{key}]]" in text for key in TABLES)  # as an example
    one_line = " ".join(line.removeprefix("# ") for line in text.splitlines())
    for _, entry in every_setting():
        assert entry.metadata["help"] in one_line


def test_keys_are_different_and_in_some_slice() -> None:
    keys = [key_of(entry) for _, entry in every_setting()]
    assert len(keys) == len(set(keys))
    assert {name for name, _ in every_setting()} == set(SLICES)


def test_values_go_over_values() -> None:
    first = with_values(Settings(), {"rate": Rate(1), "max_depth": 2, "seeds": ("http://a/",)})
    second = with_values(first, {"max_depth": None})
    assert second.politeness.rate == Rate(1)
    assert second.scope.max_depth is None
    assert second.seeds == ("http://a/",)
    assert replace(second, seeds=()) == with_values(Settings(), {"rate": Rate(1)})


LINES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "N|auto": st.integers(0, 100),  # 0: auto
    "PERCENT": st.integers(1, 100),
    "N": st.integers(1, 2**62),
    "SECONDS": st.floats(min_value=1e-9, max_value=1e300),
    "BYTES": st.integers(0, 2**62),
    "N[/SECONDS]": st.builds(Rate, st.integers(0, 10**9), st.floats(min_value=1e-6, max_value=1e9)),
    "'HOSTS KEY=VALUE …'": st.builds(
        HostRule,
        st.sampled_from(["*.example.org", "https://10.0.0.*:80"]),
        st.tuples(
            st.tuples(st.just("rate"), st.builds(Rate, st.integers(0, 99))),
            st.tuples(st.just("header"), LINES.map(lambda text: f"X-Y: {text.strip()}")),
            st.tuples(st.just("header"), st.just("A: b")),
        ),
    ),
    "'URL NAME=VALUE …'": st.builds(
        Login,
        st.just("https://example.org/login"),
        LINES.map(lambda text: (("user", text), ("password", SecretSource(SecretKind.ENV, "P")))),
        success=LINES,
        attempts=st.integers(1, 9),
        store_login=st.booleans(),
    ),
    "": st.booleans(),
    "TEXT": LINES,
    "REGEX": st.sampled_from(["", "/calendar/", r"\d+\.(?:png|gif)$", '"""', "'''", "\\\\", "#", "ž"]),
    "'URL USER:SECRET'": st.sampled_from([AUTH.parse("https://a/ me:env:B"), AUTH.parse("me 2:file:/x: y")]),
    "EVENT COMMAND|URL": st.sampled_from([ON.parse("all x"), ON.parse("disk-low,file-closed https://a.org/?b 'c'")]),
    "SECRET": st.sampled_from([None, SecretSource(SecretKind.ENV, "P")]),
    "'NAME: VALUE'": LINES.map(lambda text: f"X-Y: {text.strip()}"),
    "NAME": st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"),
    "'URL KEY=VALUE …'": st.builds(
        SeedSetting,
        st.sampled_from(["http://a/", "https://b/x?y=1&z"]),
        st.sampled_from(
            [
                (("scope", "prefix"),),
                (("max-depth", None), ("exclude", "a=b"), ("exclude", "#")),
                (("rate", Rate(1, 2.5)), ("header", "X-A: 'b' \"c\""), ("conditional", False)),
            ]
        ),
    ),
    "PREFIX": st.sampled_from(["(org,example,", "(org,example,)/docs/"]),
    "EXT[,EXT]": st.sampled_from(["zip", "zip,iso", "tar.gz"]),
    "SET[,SET]": st.sampled_from(["wikis", "wikis,shops"]),
    "NAME[,NAME]": st.sampled_from(["none", "utm_*,sid", "trackers"]),
    "CODE[,CODE]": st.sampled_from(["", "200", "2xx,404"]),
    "TYPE": st.sampled_from(["video/*", "application/zip", "image/svg+xml"]),
    "TYPES": st.sampled_from(["", "text/html, */*;q=0.8"]),
    "LANGUAGES": st.sampled_from(["", "fr, en-GB;q=0.5"]),
    "LANGUAGE[,LANGUAGE]": st.sampled_from(["", "fr, pt-BR"]),
    "CODING[,CODING]": st.sampled_from(["gzip", "gzip, br", "identity"]),
    "'HOSTS CERT …'": st.sampled_from(
        [
            CLIENT_CERT.parse("'/my certs/a.pem'"),
            CLIENT_CERT.parse("*.a.org ~/a.pem key='it'\"'\"'s.key' password=env:X"),
        ]
    ),
    "FILE": st.sampled_from(["/a b.pem", "c.pem", "~/ž.pem"]),
    "FILE.py": st.sampled_from([None, HookFile("/a b.py"), HookFile("~/ž.py", "0a" * 32)]),
    "VERSION": st.sampled_from(["1.0", "1.1", "1.2", "1.3"]),
    "PROXY": st.sampled_from(["env", "none", "http://proxy.example:3128", "socks5h://ann:env:NAME@[::1]:9050"]),
    "HOST=ADDRESS": st.sampled_from(["a.example=192.0.2.1", "a.example:8443=2001:db8::1,192.0.2.1"]),
    "ADDRESS[:PORT]": st.sampled_from(["192.0.2.53", "[2001:db8::53]:5353"]),
    "ADDRESS": st.sampled_from(["", "192.0.2.1", "2001:db8::1"]),
    "DATABASE": st.sampled_from(["", "postgresql://host/name", "postgresql://me@host:5432/name?sslmode=require"]),
    "STORE": st.sampled_from(["", "s3://bucket", "gs://bucket/a/b", "az://container/a", "file:///mnt/backup of mine"]),
    "HOSTS": st.sampled_from(["example.org", "*.example.org", "https://example.org:8443", "http://[::1]:8080"]),
    "HOST": st.sampled_from(["wiki.intranet", "10.0.0.5", "10.0.0.0/8", "fd00::/8", "::1", "xn--bcher-kva.local"]),
}


def _values(kind: OptionType) -> st.SearchStrategy[Any]:
    known = VALUES.get(kind.metavar)
    return known if known is not None else st.sampled_from(kind.metavar.split("|"))


@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    seeds = st.lists(st.sampled_from(["http://a/", "https://b/x?y"]), unique=True)
    drawn: dict[str, Any] = {"seeds": tuple(data.draw(seeds))}
    for _, entry in every_setting():
        kind = entry.metadata["kind"]
        one = _values(kind)
        drawn[entry.name] = data.draw(st.lists(one, max_size=3).map(tuple) if entry.metadata["many"] else one)
    drawn["seeds"] = tuple(dict.fromkeys((*drawn["seeds"], *(one.url for one in drawn["seed"]))))
    settings = with_values(Settings(), drawn)
    text = toml.render(settings)
    assert with_values(Settings(), toml.parse(text, "f")) == settings
    assert toml.render(with_values(Settings(), toml.parse(text, "f"))) == text


def test_a_table_of_a_seed_makes_its_url_a_seed() -> None:
    text = 'seeds = ["http://b/"]\n[[seed]]\nurl = "a"\nrate = 1\nexclude = ["x", "y"]\n'
    own = SeedSetting("http://a/", (("rate", Rate(1)), ("exclude", "x"), ("exclude", "y")))
    assert toml.parse(text, "f") == {"seeds": ("http://b/", "http://a/"), "seed": (own,)}


def test_defaults_round_trip() -> None:
    assert with_values(Settings(), toml.parse(toml.render(Settings()), "f")) == Settings()
