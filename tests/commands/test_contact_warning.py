"""Who crawls other people's sites is told, in one line, to say who they are."""

import pytest

from archiver.cli.config.sources import contact_warning
from archiver.config.fetch_settings import FetchSettings
from archiver.config.settings import Settings

AWAY = ("https://example.org/",)


@pytest.mark.parametrize(
    "seeds",
    [
        ("http://127.0.0.1:8000/", "http://[::1]/", "http://192.168.7.1/", "http://[fd00::1]:81/"),
        ("http://localhost/", "http://printer.local/", "http://wiki/", "http://a.test/"),
    ],
)
def test_near_hosts_need_no_contact(seeds: tuple[str, ...]) -> None:
    assert contact_warning(Settings(seeds=seeds)) == ""
    assert "example.org" in contact_warning(Settings(seeds=(*seeds, *AWAY)))


@pytest.mark.parametrize("seed", ["http://93.184.216.34/", "http://[2606:2800::1]/", *AWAY])
def test_others_do_and_the_line_says_how(seed: str) -> None:
    assert "--contact" in contact_warning(Settings(seeds=(seed,)))


@pytest.mark.parametrize(
    "fetch",
    [
        FetchSettings(contact="me@example.org"),
        FetchSettings(user_agent="MyBot/1 (+https://me.example/bot)"),
        FetchSettings(header=("From: me@example.org",)),
    ],
)
def test_any_contact_will_do(fetch: FetchSettings) -> None:
    assert contact_warning(Settings(seeds=AWAY, fetch=fetch)) == ""
