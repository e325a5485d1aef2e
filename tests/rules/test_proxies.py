"""Proxies as settings name them: every right form, and that no message or setting ever holds a password."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.host_rules import HOST_RULE
from archiver.config.proxies import PROXY, proxy_address
from archiver.config.secret_settings import has_secrets
from archiver.config.settings import Settings, SettingsByHost, with_values
from archiver.config.toml import parse, render
from archiver.crawl.secrets import read_secrets
from archiver.errors import ConfigError, Failure, FetchError
from archiver.fetch.private_networks import AddressGuard
from archiver.fetch.proxy import ProxyRoutes

VARIABLES = {"LOGIN": "ann:pa:s/s@", "PASSWORD": "hunter2", "EMPTY": "", "BAD": "käse:1", "LONG": f"a:{'b' * 256}"}


@pytest.mark.parametrize(
    ("text", "name", "login"),
    [
        ("http://proxy.example:3128", "http://proxy.example:3128", ("", "")),
        (" HTTP://Proxy.Example:3128/ ", "http://proxy.example:3128", ("", "")),
        ("socks5h://127.0.0.1:9050", "socks5h://127.0.0.1:9050", ("", "")),
        ("socks5://[::1]:1080", "socks5://[::1]:1080", ("", "")),
        ("socks4://ann@10.0.0.1:1080", "socks4://10.0.0.1:1080", ("ann", "")),
        ("http://env:LOGIN@p:1", "http://p:1", ("ann", "pa:s/s@")),
        ("socks5h://bob:env:PASSWORD@p:1", "socks5h://p:1", ("bob", "hunter2")),
        ("http://file:{folder}/login@p:1", "http://p:1", ("eve", "hunter 3")),
        ("http://ann:file:{folder}/login@p:1", "http://p:1", ("ann", "eve:hunter 3")),
        ("http://keyring:proxy/ann@example.org@p:1", "http://p:1", ("kim", "hunter 4")),
        ("http://ann:keyring:proxy/ann@example.org@p:1", "http://p:1", ("ann", "kim:hunter 4")),
    ],
)
def test_right_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str, login: tuple[str, str]
) -> None:
    """A login comes from the environment, a file, or the keyring. Settings and texts hold only its place."""
    for variable, value in VARIABLES.items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "login").write_text("eve:hunter 3\n")
    (tmp_path / "login").chmod(0o600)
    entries = {("proxy", "ann@example.org"): "kim:hunter 4"}
    errors = SimpleNamespace(KeyringError=OSError)
    monkeypatch.setitem(
        sys.modules, "keyring", SimpleNamespace(get_password=lambda *of: entries.get(of), errors=errors)
    )
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    given = PROXY.parse(text.format(folder=tmp_path))
    assert PROXY.parse(given) == given
    assert proxy_address(given).name == name
    for settings in (
        with_values(Settings(), {"proxy": (given,)}),
        with_values(Settings(), {"proxy": (PROXY.parse(f"*.test {given}"), "http://other:1")}),
        with_values(Settings(), {"host": (HOST_RULE.parse(f"*.test proxy={given}"),)}),
    ):
        secrets = read_secrets(settings)
        found = ProxyRoutes(SettingsByHost(secrets.filled(settings))).of("http://a.test")
        assert found is not None
        assert (found.name, found.user, found.password) == (name, *login)
        for shown in (repr(found), repr(secrets), render(with_values(settings, {"seeds": ("http://a/",)}))):
            assert login[1] == "" or login[1] not in shown
        assert not has_secrets(settings), "no request to a site holds the login of a proxy"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a proxy"),
        ("proxy.example:3128", "is not a proxy"),
        ("http://proxy.example", "is not a proxy"),
        ("http://proxy.example:99999", "the port is not between"),
        ("https://proxy.example:443", "reached over TLS is not supported"),
        ("ftp://proxy.example:21", "the kinds of proxies are http, socks4, socks5, socks5h"),
        ("http://ann:hunter2@proxy.example:3128", "http://USER:env:NAME@proxy.example:3128"),
        ("http://ann:hun@ter2@proxy.example:3128", "environment variable"),
        ("ftp://ann:hunter2@proxy.example:3128", "the kinds of proxies"),
        ("http://ann:hunter2@proxy.example", "is not a proxy"),
        ("http://ann@proxy.example:3128", "environment variable"),
        ("socks4://ann:env:PASSWORD@p:1", "socks4 knows no passwords"),
        ("http://ann:hun ter2@p:1", "not a proxy"),
        ("a/b http://p:1", "not a proxy"),
        ("*.onion  ann:hunter2@p:1", "is not a proxy"),
        ("http://ann:file:hunter2@p:1", "file:/PATH"),
        ("http://ann:env:hunter-2@p:1", "env:NAME"),
        ("http://ann:keyring:hunter2@p:1", "keyring:SERVICE/USER"),
    ],
)
def test_wrong_forms_have_one_line_without_the_password(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        PROXY.parse(text)
    assert "hun" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["env:MISSING", "env:EMPTY", "env:PASSWORD", "env:BAD", "env:LONG", "file:/no/such"])
def test_a_login_that_is_missing_or_wrong(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    for variable, value in VARIABLES.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=place) as caught:
        read_secrets(with_values(Settings(), {"proxy": (f"http://{place}@p:1",)}))
    assert not [value for value in filter(None, VARIABLES.values()) if value in str(caught.value)]


def test_settings_keep_the_name_of_the_variable_alone() -> None:
    values = {
        "proxy": (PROXY.parse("http://env:LOGIN@p:1"),),
        "host": (HOST_RULE.parse("*.onion proxy=socks5h://a:2"),),
    }
    text = render(with_values(Settings(), {**values, "seeds": ("http://a/",)}))
    assert "env:LOGIN@p:1" in text
    assert parse(text, "x")["proxy"] == values["proxy"]
    assert parse(text, "x")["host"] == values["host"]


def routes(*rules: str, **values: object) -> ProxyRoutes:
    given = {**values, "host": tuple(map(HOST_RULE.parse, rules))}
    return ProxyRoutes(SettingsByHost(with_values(Settings(), given)), lambda host: ".".join(host.split(".")[-2:]))


def way(route: ProxyRoutes, origin: str) -> str:
    found = route.of(origin)
    return found.name if found else ""


def test_the_first_rule_that_matches_decides() -> None:
    route = routes("*.near.example proxy=none", "*.example proxy=socks5://s:1", proxy=("http://p:1",))
    assert way(route, "https://a.near.example") == ""
    assert way(route, "https://far.example") == "socks5://s:1"
    assert way(route, "http://b.test:8080") == "http://p:1"
    assert way(routes(), "http://b.test:8080") == ""


def test_proxies_for_some_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pattern that matches decides, wherever the proxy for all others is. Rules for hosts replace all."""
    monkeypatch.setenv("https_proxy", "http://e:9")
    given = (
        "http://p:1",
        "*.ONION  socks5h://t:1",
        "near.example none",
        "*.example socks5://s:1",
        "https://x.test env",
    )
    route = routes("b.example proxy=none", proxy=tuple(map(PROXY.parse, given)))
    ways = {
        "http://abc.onion": "socks5h://t:1", "https://near.example": "", "https://a.example:81": "socks5://s:1",
        "http://b.example": "", "https://x.test": "http://e:9", "http://x.test": "http://p:1", "http://y.test": "http://p:1",
    }  # fmt: skip
    assert {origin: way(route, origin) for origin in ways} == ways
    assert way(routes(proxy=("*.onion socks5h://t:1",)), "http://y.test") == ""
    pool = routes(proxy=("*.a http://p:1", "*.a http://q:1", "http://r:1"))
    assert {way(pool, f"http://{number}.a") for number in range(30)} == {"http://p:1", "http://q:1"}
    text = render(with_values(Settings(), {"proxy": tuple(map(PROXY.parse, given)), "seeds": ("http://a/",)}))
    assert parse(text, "x")["proxy"] == tuple(map(PROXY.parse, given))


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=8, unique=True), st.randoms())
def test_a_host_stays_with_its_proxy(names: list[str], random: object) -> None:
    """In each run, in any order, with the other hosts of its domain; a proxy that is added takes hosts, moves none."""
    every = tuple(f"http://{name}:1" for name in names)
    route, turned = routes(proxy=every), routes(proxy=every[::-1])
    fewer = routes(proxy=every[:-1])
    for number in range(30):
        found = way(route, f"https://d{number}.test")
        assert found == way(turned, f"https://d{number}.test") == way(route, f"http://www.d{number}.test:81")
        assert found in (way(fewer, f"https://d{number}.test"), every[-1])


@pytest.mark.parametrize("values", [{}, {"proxy": ("socks5://p:1",)}, {"proxy": ("socks4://p:1",)}])
@pytest.mark.parametrize("host", ["a.onion", "b.a.onion.", "x.i2p"])
def test_hidden_names_need_a_proxy_that_resolves(host: str, values: dict[str, object]) -> None:
    with pytest.raises(FetchError, match="only a proxy that resolves names leads to") as caught:
        routes(**values).of(f"http://{host}")
    assert caught.value.failure is Failure.PROXY
    assert way(routes("*.onion proxy=socks5h://t:1", "*.i2p proxy=http://i:2"), f"http://{host.rstrip('.')}")


@pytest.mark.parametrize("word", ["none", "env"])
def test_words_stand_alone(word: str) -> None:
    with pytest.raises(ConfigError, match="give it alone"):
        routes(proxy=(word, "http://p:1"))


PROXIED = {"http": "http://far.test", "https": "https://far.test", "near": "https://a.near.test"}


@pytest.mark.parametrize(
    ("variables", "ways"),
    [
        ({"HTTP_PROXY": "http://p:1"}, ("http://p:1", "", "")),
        ({"http_proxy": "p:1"}, ("http://p:1", "", "")),
        ({"HTTPS_PROXY": "http://p:1"}, ("", "http://p:1", "http://p:1")),
        ({"ALL_PROXY": "socks5h://p:1"}, ("socks5h://p:1",) * 3),
        ({"all_proxy": "socks5h://p:1", "http_proxy": "q:2"}, ("http://q:2", "socks5h://p:1", "socks5h://p:1")),
        ({"HTTP_PROXY": "p:1", "http_proxy": "q:2"}, ("http://q:2", "", "")),
        ({"ALL_PROXY": "p:1", "NO_PROXY": "near.test"}, ("http://p:1", "http://p:1", "")),
        ({"ALL_PROXY": "p:1", "no_proxy": " .near.test , x"}, ("http://p:1", "http://p:1", "")),
        ({"ALL_PROXY": "p:1", "no_proxy": "*"}, ("", "", "")),
        ({}, ("", "", "")),
    ],
)
def test_each_variable_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], ways: tuple[str, ...]
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert tuple(way(routes(proxy=("env",)), origin) for origin in PROXIED.values()) == ways
    assert {way(routes(), origin) for origin in PROXIED.values()} == {""}
    with pytest.raises(FetchError, match="only a proxy that resolves"):
        routes(proxy=("env",)).of("ftp://a.onion")


def test_the_environment_is_heard_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://ann:p%40ss@p:1")
    monkeypatch.setenv("https_proxy", "q:2")
    monkeypatch.setenv("no_proxy", "near.test,127.0.0.1")
    assert way(routes(), "http://far.test") == ""
    route = routes(proxy=("env",))
    assert way(route, "http://far.test") == "http://p:1"
    assert way(route, "https://far.test") == "http://q:2"
    assert way(route, "https://a.near.test") == way(route, "http://127.0.0.1:8080") == ""
    found = route.of("http://far.test")
    assert found is not None
    assert (found.user, found.password) == ("ann", "p@ss")
    assert "p@ss" not in repr(found)
    monkeypatch.setenv("https_proxy", "https://ann:p%40ss@q")
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY in the environment") as caught:
        routes(proxy=("env",))
    assert "p%40ss" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("example.org", False), ("local.example", False), ("8.8.8.8", False), ("[2600::1]", False),
        ("localhost", True), ("a.localhost", True), ("LOCALHOST.", True), ("router", True), ("nas.lan", True),
        ("printer.local.", True), ("metadata.google.internal", True), ("wiki.corp", True), ("ok.lan", False),
    ],
)  # fmt: skip
def test_names_that_are_private_by_their_spelling(host: str, *, private: bool) -> None:
    guard = AddressGuard(["ok.lan"], [])
    if private:
        with pytest.raises(FetchError, match="--allow-private") as caught:
            guard.check_name(host)
        assert caught.value.failure is Failure.PRIVATE
    else:
        guard.check_name(host)
