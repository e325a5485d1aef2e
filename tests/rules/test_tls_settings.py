"""Client certificates in settings: which hosts see them, and what remains of them in what is handed on."""

import pytest

from archiver.config.host_rules import HOST_RULE, without_left_out
from archiver.config.option_types import LEFT_OUT
from archiver.config.secret_settings import has_secrets, may_hold_secret, without_secrets
from archiver.config.settings import Settings, with_values
from archiver.config.tls import CLIENT_CERT, ClientCert
from archiver.errors import ConfigError

FILES = "/home/me/a.crt key=/home/me/a.key password=env:PASSWORD"


@pytest.mark.parametrize(
    ("hosts", "origin", "seen"),
    [
        ("example.org", "https://example.org", True),
        ("example.org", "https://example.org:8443", True),
        ("Example.ORG", "https://example.org", True),
        ("example.org", "http://example.org", False),
        ("example.org", "https://www.example.org", False),
        ("example.org", "https://example.org.evil.example", False),
        ("example.org", "https://notexample.org", False),
        ("*.example.org", "https://www.example.org", True),
        ("*.example.org", "https://example.org", False),
        ("*.example.org", "https://example.org.evil.example", False),
        ("https://example.org", "https://example.org", True),
        ("https://example.org", "https://example.org:8443", False),
        ("https://example.org:8443", "https://example.org:8443", True),
        ("127.0.0.1", "https://127.0.0.1:4433", True),
    ],
)
def test_hosts_that_see_a_client_certificate(hosts: str, origin: str, *, seen: bool) -> None:
    cert = CLIENT_CERT.parse(f"{hosts} a.pem")
    assert cert.covers(origin) is seen
    assert CLIENT_CERT.parse("a.pem").covers(origin) is origin.startswith("https:")  # in a rule that applies


def test_nothing_but_the_hosts_is_handed_on() -> None:
    rule = HOST_RULE.parse(f'b.example client-cert="{FILES}" ca-file=/home/me/ca.pem rate=1')
    given = with_values(
        Settings(),
        {"client_cert": (CLIENT_CERT.parse(f"a.example {FILES}"),), "ca_file": ("/home/me/ca.pem",), "host": (rule,)},
    )
    bare = without_secrets(given)
    assert has_secrets(given)
    assert str(bare.tls.client_cert[0]) == f"a.example {LEFT_OUT}"
    assert bare.tls.ca_file == ("ca.pem",)
    assert "/home" not in repr(bare)
    assert "PASSWORD" not in repr(bare)
    assert without_left_out(str(bare.politeness.host[0])) == "b.example rate=1"
    with pytest.raises(ConfigError, match="left out"):
        CLIENT_CERT.parse(str(bare.tls.client_cert[0]))


def test_its_text_form_shows_no_password() -> None:
    cert = ClientCert("a.example", "/a.pem", "", None, "hunter2")
    assert "hunter2" not in repr(cert) + str(cert)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('# client-cert = ["a.example /home/me/a.pem"]', True),
        ('  ## ca-file = "/home/me/ca.pem"', True),
        ('client-cert = []\nca-file = []\n# rate = "1"', False),
    ],
)
def test_a_comment_in_crawl_toml_may_name_a_file(text: str, *, holds: bool) -> None:
    assert may_hold_secret(text) is holds
