"""Each kind of value: what is right, what is refused, and that a value survives being written."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config import option_types, responses
from archiver.config.addresses import DATABASE
from archiver.config.auth import covers
from archiver.config.host_rules import HOST_RULE, KEYS, MANY, HostRule, table_of
from archiver.config.option_types import Rate
from archiver.config.proxies import PROXY
from archiver.config.secret_settings import has_secrets, may_hold_secret, without_secrets
from archiver.config.seeds import SEED_SETTING, read_seed
from archiver.config.settings import Settings, SettingsByHost, every_setting, key_of, with_values
from archiver.config.toml import render
from archiver.errors import ConfigError

KINDS = [
    value for value in (vars(option_types) | vars(responses)).values() if isinstance(value, option_types.OptionType)
]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (option_types.COUNT, "1", 1),
        (option_types.COUNT, 7, 7),
        (option_types.NUMBER, "0", 0),
        (option_types.NUMBER_OR_NONE, "none", None),
        (option_types.NUMBER_OR_NONE, "3", 3),
        (option_types.SECONDS, "0.5", 0.5),
        (option_types.SECONDS, 30, 30.0),
        (option_types.SECONDS_OR_NONE, "0", 0.0),
        (option_types.SECONDS_OR_NONE, 0, 0.0),
        (option_types.SECONDS_OR_NONE, 0.0, 0.0),
        (option_types.SECONDS_OR_NONE, "90", 90.0),
        (option_types.SIZE, "500M", 500_000_000),
        (option_types.SIZE, "1.5 kB", 1500),
        (option_types.SIZE, "9007199254740993", 9_007_199_254_740_993),
        (option_types.SIZE, 12, 12),
        (option_types.RATE, "5", Rate(5)),
        (option_types.RATE, 5, Rate(5)),
        (option_types.RATE, "30/60", Rate(30, 60.0)),
        (option_types.RATE, "0", Rate(0)),
        (option_types.BOOLEAN, False, False),
        (option_types.TEXT, "", ""),
        (option_types.TEXT, "Žluťoučký kůň", "Žluťoučký kůň"),
        (option_types.PATTERN, r"/cal(endar)?/\d+", r"/cal(endar)?/\d+"),
        (option_types.HEADER, "X-Key:   a b ", "X-Key: a b"),
        (option_types.HEADER, "Empty:", "Empty: "),
        (responses.MEDIA_TYPE, " Video/* ", "video/*"),
        (responses.MEDIA_TYPE, "image/svg+xml", "image/svg+xml"),
        (responses.STATUSES, " 200, 4XX,200", "200,4xx"),
        (responses.STATUSES, 200, "200"),
        (responses.STATUSES, "", ""),
        (option_types.PLACE, "Wiki.Intranet", "wiki.intranet"),
        (option_types.PLACE, "bücher.local", "xn--bcher-kva.local"),
        (option_types.PLACE, "10.0.0.5", "10.0.0.5"),
        (option_types.PLACE, "0x7f.1", "127.0.0.1"),
        (option_types.PLACE, "[FD00::1]", "fd00::1"),
        (option_types.PLACE, "fe80::1%eth0", "fe80::1"),
        (option_types.PLACE, "10.0.0.0/8", "10.0.0.0/8"),
        (option_types.LABEL, "a.b-c_d", "a.b-c_d"),
        (option_types.choice("obey", "ignore"), "ignore", "ignore"),
    ],
)
def test_right(kind: option_types.OptionType, text: object, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (option_types.COUNT, "0"),
        (option_types.COUNT, "-1"),
        (option_types.COUNT, True),
        (option_types.COUNT, 1.0),
        (option_types.NUMBER, "1_000"),
        (option_types.NUMBER, " 1"),
        (option_types.NUMBER, "٣"),
        (option_types.NUMBER, "9" * 5000),
        (option_types.NUMBER, 2**63),
        (option_types.NUMBER, None),
        (option_types.NUMBER_OR_NONE, "None"),
        (option_types.SECONDS, "0"),
        (option_types.SECONDS, "nan"),
        (option_types.SECONDS, "inf"),
        (option_types.SECONDS, "1e999"),
        (option_types.SECONDS_OR_NONE, False),
        (option_types.SIZE, "1X"),
        (option_types.SIZE, "999999999999T"),
        (option_types.SIZE, "-1k"),
        (option_types.SIZE, ""),
        (option_types.SIZE, 1.5),
        (option_types.RATE, "1/0"),
        (option_types.RATE, "5/s"),
        (option_types.RATE, 2.5),
        (option_types.RATE, True),
        (option_types.RATE, "-1"),
        (option_types.BOOLEAN, "true"),
        (option_types.BOOLEAN, 1),
        (option_types.TEXT, "a\nb"),
        (option_types.TEXT, "a\x1b[2J"),
        (option_types.TEXT, "\udcff"),
        (option_types.TEXT, 3),
        (option_types.PATTERN, "("),
        (option_types.PATTERN, "[[a]"),
        (option_types.PATTERN, "a{99999999999}"),
        (option_types.PATTERN, ["x"]),
        (option_types.HEADER, "no colon"),
        (option_types.HEADER, "Na me: x"),
        (option_types.HEADER, "X: a\r\nY: b"),
        (option_types.HEADER, "Host: evil"),
        (option_types.HEADER, "content-LENGTH: 3"),
        (responses.STATUSES, "20"),
        (responses.STATUSES, "100"),
        (responses.STATUSES, "200 404"),
        (responses.STATUSES, "200,"),
        (responses.STATUSES, True),
        (responses.MEDIA_TYPE, "video"),
        (responses.MEDIA_TYPE, "*/*"),
        (responses.MEDIA_TYPE, "video/*4"),
        (responses.MEDIA_TYPE, "text/html; charset=utf-8"),
        (option_types.PLACE, ""),
        (option_types.PLACE, "--rate"),  # the option that follows, where the name was forgotten
        (option_types.PLACE, "10.0.0.1/8"),
        (option_types.PLACE, "http://10.0.0.1/"),
        (option_types.PLACE, "wiki.intranet:8080"),
        (option_types.PLACE, "10.0.0.999"),
        (option_types.PLACE, "*.intranet"),
        (option_types.LABEL, "a/b"),
        (option_types.LABEL, ""),
        (option_types.LABEL, "x" * 65),
        (option_types.choice("obey"), "Obey"),
        (option_types.choice("obey"), ["obey"]),
    ],
)
def test_wrong(kind: option_types.OptionType, text: object) -> None:
    with pytest.raises(ConfigError) as refused:
        kind.parse(text)
    assert kind.right in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.metavar)
@given(anything=ANYTHING)
def test_anything_is_taken_or_refused(kind: option_types.OptionType, anything: object) -> None:
    try:
        value = kind.parse(anything)
    except ConfigError:
        return
    assert kind.parse(kind.write(value)) == value


@given(st.integers(0, 10**9), st.floats(min_value=1e-6, max_value=1e6))
def test_rate_loses_no_digit(starts: int, interval: float) -> None:
    assert option_types.RATE.parse(str(Rate(starts, interval))) == Rate(starts, interval)


@pytest.mark.parametrize(
    ("text", "match", "given"),
    [
        (
            "*.example.org rate=30/60 host-concurrency=1",
            "*.example.org",
            {"rate": Rate(30, 60.0), "host-concurrency": 1},
        ),
        ("Example.org rate=2", "example.org", {"rate": Rate(2)}),
        ("10.0.0.* rate=0 timeout=2m", "10.0.0.*", {"rate": Rate(0), "timeout": 120.0}),
        (
            "https://e.org:8443 header='X-A: b c' user-agent=''",
            "https://e.org:8443",
            {"header": "X-A: b c", "user-agent": ""},
        ),
        ("e.org conditional=false robots=observe", "e.org", {"conditional": False, "robots": "observe"}),
    ],
)
def test_settings_for_some_hosts(text: str, match: str, given: dict[str, Any]) -> None:
    rule = HOST_RULE.parse(text)
    assert rule == HostRule(match, tuple(given.items()))
    assert HOST_RULE.parse(HOST_RULE.write(rule)) == rule
    assert HOST_RULE.parse(table_of(rule)) == rule
    assert HOST_RULE.parse(rule) == rule


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a host pattern"),
        ("example.org", "example.org has no settings"),
        ("example.org x", "'x' is not KEY=VALUE"),
        ("example.org rate", "'rate' is not KEY=VALUE"),
        ("example.org rat=5", "did you mean rate?"),
        ("example.org colour=red", "the settings of a host are rate, host-concurrency"),
        ("example.org rate=x", "rate: 'x' is not a number of requests"),
        ("example.org rate=1 rate=2", "rate: given twice"),
        ("ex/y rate=5", "'ex/y' is not a host pattern"),
        ("rate=5", "'rate=5' is not a host pattern"),
        ("e.org header='X: y", "is not a host pattern and its settings"),
        (5, "5 is not a host pattern and its settings"),
        ({"rate": 5}, "None is not a host pattern"),
        ({"match": "e.org", "rate": []}, "rate: [] is not"),
    ],
)
def test_no_settings_for_some_hosts(text: object, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        HOST_RULE.parse(text)


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("BÜCHER.example", "http://xn--bcher-kva.example", "http://bucher.example"),
        ("*.bücher.example", "https://a.xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("[::1]", "http://[::1]:8080", "http://[::2]"),
        ("0:0::1", "http://[::1]", "http://1"),
        ("[::1]:80", "http://[::1]", "http://[::1]:8080"),
        ("https://[::1]", "https://[::1]", "http://[::1]"),
        ("*.example.org:8080", "http://a.example.org:8080", "http://a.example.org"),
        ("example.org:443", "https://example.org", "http://example.org"),
        ("*:8080", "http://[::1]:8080", "http://[::1]:8081"),
        ("https://Example.org:443", "https://example.org", "https://example.org:8443"),
        ("*", "http://[::1]:8080", ""),
    ],
)
def test_a_pattern_matches_names_and_addresses_as_users_write_them(pattern: str, matched: str, others: str) -> None:
    rule = HOST_RULE.parse(f"{pattern} rate=5")
    assert rule.covers(matched)
    assert not others or not rule.covers(others)
    assert HOST_RULE.parse(HOST_RULE.write(rule)) == rule
    proxy = PROXY.parse(f"{pattern} http://proxy.example:3128")
    assert covers(proxy.partition(" ")[0], matched)


@pytest.mark.parametrize("pattern", ["b*ü.example", "a:b:c", "[x]", "https://", "example.org:port"])
def test_a_pattern_that_could_match_no_host_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is not a host pattern"):
        HOST_RULE.parse(f"{pattern} rate=5")


def test_the_settings_of_a_host_are_those_of_the_crawl_with_the_rules_that_match() -> None:
    rules = (
        HOST_RULE.parse("*.example.org rate=1 header='A: 1' header='B: 2'"),
        HOST_RULE.parse("https://www.example.org rate=2 timeout=5"),
        HOST_RULE.parse("* host-concurrency=7"),
    )
    by_host = SettingsByHost(with_values(Settings(), {"host": rules, "header": ("C: 3",), "timeout": 9.0}))
    www = by_host.of("https://www.example.org")
    assert (www.politeness.rate, www.politeness.host_concurrency) == (Rate(1), 7)
    assert (www.fetch.timeout, www.fetch.header) == (5.0, ("A: 1", "B: 2"))
    assert by_host.rules("https://www.example.org") == {
        "rate": "host[0] *.example.org",
        "header": "host[0] *.example.org",
        "timeout": "host[1] https://www.example.org",
        "host-concurrency": "host[2] *",
    }
    other = by_host.of("http://other.org:8080")
    assert (other.politeness.rate, other.politeness.host_concurrency, other.fetch.header) == (Rate(5), 7, ("C: 3",))
    assert by_host.of("http://www.example.org") is by_host.of("http://a.b.example.org")


def test_the_settings_of_a_seed_go_before_those_of_rules() -> None:
    """On its own host, not on the other scheme or port; a further seed changes them."""
    rules = (HOST_RULE.parse("* rate=1 timeout=5"),)
    own = SEED_SETTING.parse("http://[::1]:8080/a rate=2 scope=page header='A: 1' header='A: 2'")
    given = with_values(Settings(), {"host": rules, "seed": (own,), "max_depth": 3})
    by_host = SettingsByHost(given)
    seed, other = by_host.of("http://[::1]:8080"), by_host.of("https://[::1]:8080")
    assert (seed.politeness.rate, seed.fetch.timeout, seed.fetch.header) == (Rate(2), 5.0, ("A: 1", "A: 2"))
    assert (other.politeness.rate, other.fetch.timeout, other.fetch.header) == (Rate(1), 5.0, ())
    assert by_host.rules("http://[::1]:8080") == {
        "rate": "seed[0] http://[::1]:8080/a",
        "header": "seed[0] http://[::1]:8080/a",
        "timeout": "host[0] *",
    }
    further = SEED_SETTING.parse("https://[::1]:8080/ rate=3")
    by_host.take(replace(given, scope=replace(given.scope, seed=(own, further))))
    assert by_host.of("https://[::1]:8080").politeness.rate == Rate(3)
    assert not SettingsByHost(with_values(Settings(), {"seed": (read_seed("http://a/ scope=page")[1],)})).any


def test_a_secret_of_a_seed_or_host_is_left_out() -> None:
    own = read_seed("http://a/ header='Cookie: id=hunter2' rate=1")[1]
    rules = (HOST_RULE.parse("* header='X-Api-Key: hunter2' header='X-A: b'"),)
    for values in ({"seed": (own,)}, {"host": rules}):
        settings = with_values(Settings(), values)
        assert has_secrets(settings)
        assert "hunter2" not in repr(without_secrets(settings))
        assert may_hold_secret(render(settings))
    assert not has_secrets(with_values(Settings(), {"seed": (read_seed("http://a/ header='X-A: b'")[1],)}))


def test_every_setting_of_a_host_is_one_of_the_crawl_of_the_same_type() -> None:
    known = {key_of(entry): entry.metadata for _, entry in every_setting()}
    for key, kind in KEYS.items():
        assert known[key]["kind"] is kind
        assert known[key]["many"] == (key in MANY)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "postgresql://db.example/crawl",
        "postgres://me@db.example:5432/crawl?sslmode=verify-full&target_session_attrs=read-write",
        "postgresql://me@db1,db2:5433/crawl",
        "postgresql://me@[2001:db8::1]:5432/crawl",
        "postgresql:///crawl",
        "postgresql://db.example/lost-passwords",
        "postgresql://password@password.example/password",
        "postgresql://me@db.example/password?sslmode=require",
        "postgresql://my%20password%3D@db.example/the%20password%3D1?sslmode=require",
    ],
)
def test_an_address_of_a_database(address: str) -> None:
    assert DATABASE.parse(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hidden@db.example/crawl",
        "postgresql://me:@db.example/crawl",
        "postgresql://me:hid/den@db.example/crawl",
        "postgresql://db.example/crawl?password=hidden",
        "postgresql://db.example/crawl?sslmode=require&PassWord=hidden",
        "postgresql://db.example/crawl?pass%77ord=hidden",
        "postgresql://db.example/crawl?sslpassword=hidden",
        "postgresql://db.example/crawl password = hidden",
        "host=db.example dbname=crawl password=hidden",
    ],
)
def test_a_password_in_the_address_of_a_database_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"must not hold a password; put it into ~/\.pgpass or PGPASSWORD") as caught:
        DATABASE.parse(address)
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db.example",
        "postgresql://db.example/crawl?passfile=/tmp/hidden",
        "postgresql://db.example/crawl?host=/tmp",
        "postgresql://db.example/crawl?sslmode=require&sslkey=key",
        "mysql://db.example/crawl",
    ],
)
def test_what_is_no_address_of_a_database(address: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a PostgreSQL database"):
        DATABASE.parse(address)
