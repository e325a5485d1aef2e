"""Login forms in the settings: their text, their table, and what is refused without showing a secret."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.logins import LOGIN, Login, table_of
from archiver.config.secret_settings import has_secrets
from archiver.config.secrets import SecretKind, SecretSource
from archiver.config.settings import Settings, with_values
from archiver.config.toml import parse, render
from archiver.crawl.visit_rules import LogoutLinks
from archiver.errors import ConfigError

PAGE = "https://example.org/login"
SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{PAGE} user=me password=env:P",
            Login(PAGE, (("user", "me"), ("password", SecretSource(SecretKind.ENV, "P")))),
        ),
        (f"{PAGE} user='a b' attempts=1 form=2", Login(PAGE, (("user", "a b"),), form="2", attempts=1)),
        (
            f"{PAGE} u=1 store-login=no success=cookie:sid",
            Login(PAGE, (("u", "1"),), "", "cookie:sid", store_login=False),
        ),
        (
            f"{PAGE} u=1 field:form=x 'logged-out=log in|/login'",
            Login(PAGE, (("u", "1"), ("form", "x")), logged_out="log in|/login"),
        ),
    ],
)
def test_a_login_on_the_command_line(text: str, expected: Login) -> None:
    found = LOGIN.parse(text)
    assert found == expected
    assert LOGIN.parse(str(found)) == LOGIN.parse(table_of(found)) == LOGIN.parse(found) == found


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="=\u2028\u2029"), min_size=1).filter(
    lambda name: not re.search("pass|pwd|secret", name, re.IGNORECASE)
)
VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029:"))


@given(
    fields=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    said=VALUES,
    number=st.integers(1, 9),
    kept=st.booleans(),
)
def test_every_login_survives_its_text_and_crawl_toml(
    fields: dict[str, str], said: str, number: int, *, kept: bool
) -> None:
    one = Login(PAGE, tuple(fields.items()), success=said, form=said, attempts=number, store_login=kept)
    assert LOGIN.parse(str(one)) == one
    settings = with_values(Settings(), {"login": (one, one)})
    assert parse(render(settings), "crawl.toml")["login"] == (one, one)
    assert has_secrets(settings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("example.org user=me", "'example.org' is not the URL of a login page"),
        (PAGE, "has no fields"),
        (f"{PAGE} password={SECRET}", "a secret is not written here"),
        (f"{PAGE} user=me attempts=0", "attempts: '0' is not a whole number of 1 or more"),
        (f"{PAGE} user=me 'logged-out=('", "logged-out: '(' is not a regular expression"),
        (f"{PAGE} user=me {SECRET}", "a word is not NAME=VALUE"),
        (f"{PAGE} user='{SECRET}", "with quotes in pairs"),
        ({"page": PAGE, "fields": SECRET}, "fields is not a table"),
        ({"page": PAGE, "fields": {"a": 5}}, "field 'a': not a text"),
        ({"page": PAGE, "fields": {"a": "b"}, "succes": "x"}, "'succes' is not a setting of a login"),
        ({"fields": {"a": "b"}}, "None is not the URL of a login page"),
        (5, "a login is a text"),
    ],
)
def test_a_wrong_login_is_refused_without_its_secret(given: object, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        LOGIN.parse(given)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("https://example.org/logout", True),
        ("https://www.example.org/account/Sign-Out.php", True),
        ("https://example.org/wp-login.php?action=logout&_wpnonce=1", True),
        ("https://example.org/index.php?title=Special:UserLogout", True),
        ("https://example.org/session/log_off?next=/", True),
        ("https://example.org/blog/output", False),
        ("https://example.org/logouts-of-the-year", False),
        ("https://example.org/keep/logout", False),
        ("https://other.org/logout", False),
    ],
)
def test_links_that_log_out_are_refused_on_the_site_of_the_login(address: str, *, refused: bool) -> None:
    links = LogoutLinks([PAGE], ["^https://example.org/keep/"], lambda host: ".".join(host.split(".")[-2:]))
    assert links.refusal(address) == ("login: the link logs out (--include takes it)" if refused else "")


@pytest.mark.parametrize(
    ("page", "address", "is_form"),
    [
        ("https://a.org/login", "https://a.org/login", True),
        ("https://a.org/login", "https://a.org/login?next=/member", True),
        ("https://a.org/login", "https://a.org/login/help", False),
        ("https://a.org/login", "https://b.org/login", False),
        ("https://a.org/doku.php?id=start&do=login", "https://a.org/doku.php?do=login&id=start&sectok=1", True),
        ("https://a.org/doku.php?id=start&do=login", "https://a.org/doku.php?id=start", False),
        ("https://a.org/doku.php?id=start&do=login", "https://a.org/doku.php?id=private:page", False),
        ("https://a.org/ucp.php?mode=login", "https://a.org/ucp.php", False),
    ],
)
def test_the_page_with_the_form_is_known_by_path_and_query(page: str, address: str, *, is_form: bool) -> None:
    rule = LOGIN.parse(f"{page} user=me")
    assert rule.is_at(address) is is_form
