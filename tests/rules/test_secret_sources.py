"""Sources of secrets: how they are written, what is refused, and that a message never shows a secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.host_rules import HOST_RULE
from archiver.config.secret_settings import has_secrets, secret_sources, without_secrets
from archiver.config.secrets import SecretKind, SecretSource, secret_source, source_in_header
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("env:WIKI_PASSWORD", SecretKind.ENV, "WIKI_PASSWORD"),
        ("file:/run/secrets/wiki", SecretKind.FILE, "/run/secrets/wiki"),
        ("file:~/wiki: my password", SecretKind.FILE, "~/wiki: my password"),
        ("file:C:\\Users\\me\\wiki", SecretKind.FILE, "C:\\Users\\me\\wiki"),
        ("keyring:wiki.example.org/me@example.org", SecretKind.KEYRING, "wiki.example.org/me@example.org"),
    ],
)
def test_a_source_is_read_and_written_back(text: str, kind: SecretKind, name: str) -> None:
    source = secret_source(text)
    assert source == SecretSource(kind, name)
    assert str(source) == text
    assert secret_source(source) == source


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("hunter2", "env:NAME, file:/PATH or keyring:SERVICE/USER"),
        ("pass:word", "env:NAME, file:/PATH or keyring:SERVICE/USER"),
        ("", "env:NAME"),
        (7, "env:NAME"),
        ("ENV:hunter2", "env:NAME"),
        ("env:hunter2!", "write the name of an environment variable"),
        ("file:hunter2", "write an absolute path"),
        ("file:/", "write an absolute path"),
        ("keyring:hunter2", "write the names of the service and of the user"),
        ("file:/hunter2\n", "write an absolute path"),
    ],
)
def test_a_plain_secret_is_refused_with_the_right_form_and_not_shown(text: object, right: str) -> None:
    with pytest.raises(ConfigError) as refused:
        secret_source(text)
    assert right in str(refused.value)
    assert "hunter2" not in str(refused.value)


@given(st.text())
def test_any_text_is_a_source_or_is_refused_without_being_shown(text: str) -> None:
    marked = f"{text}\u2603hunter2"
    said = marked
    try:
        assert str(secret_source(marked)) == marked
    except ConfigError as error:
        said = str(error)
    assert said == marked or "hunter2" not in said


def test_a_secret_header_of_a_host_counts_and_is_left_out() -> None:
    rule = HOST_RULE.parse("example.org header='X-Api-Key: hunter2' header='X-Plain: said'")
    settings = with_values(Settings(), {"host": (rule,)})
    assert has_secrets(settings)
    assert not has_secrets(Settings())
    assert "hunter2" not in str(without_secrets(settings))
    assert "X-Plain: said" in str(without_secrets(settings).politeness.host[0])
    assert secret_sources(settings) == ()


@pytest.mark.parametrize(
    ("line", "before", "source"),
    [
        ("X-Api-Key: env:KEY", "X-Api-Key: ", "env:KEY"),
        ("Authorization: Bearer file:/x y", "Authorization: Bearer ", "file:/x y"),
        ("Cookie: id=env:KEY", None, ""),
        ("X-Api-Key: environment", None, ""),
    ],
)
def test_a_header_may_name_a_source(line: str, before: str | None, source: str) -> None:
    expected = None if before is None else (before, secret_source(source))
    assert source_in_header(line) == expected
    settings = with_values(Settings(), {"header": (line,)})
    assert secret_sources(settings) == (() if expected is None else expected[1:])
    assert (line in str(without_secrets(settings))) == (expected is not None)


def test_a_source_counts_only_in_a_header_that_may_be_secret() -> None:
    assert secret_sources(with_values(Settings(), {"header": ("X-Plain: env:KEY",)})) == ()
    with pytest.raises(ConfigError, match="name of an environment variable"):
        secret_sources(with_values(Settings(), {"header": ("X-Api-Key: env:no name",)}))
