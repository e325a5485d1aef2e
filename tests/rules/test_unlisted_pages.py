"""Pages that a site keeps out of search engines: they go last, and all of them are fetched."""

from zlib import crc32

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.policy import unlisted
from archiver.policy.unlisted import UnlistedPages, is_unlisted
from fixtures.simulated_crawl import HOME, Simulation

REAL = 40
FORMS = ("edit", "history", "cite")


@pytest.mark.parametrize(
    ("page", "headers", "expected"),
    [
        ("<head><meta name=robots content=noindex></head>", [], True),
        ('<HEAD><META CONTENT="NOINDEX, FOLLOW" NAME="ROBOTS"></HEAD>', [], True),
        ("<meta\nname='robots' content='max-image-preview:large, noindex'>", [], True),
        ("<head><title>a</title></head>", ["noindex, nofollow"], True),
        ("<head><title>a</title></head>", ["archiver: NOINDEX"], True),
        ("<head><meta name=robots content='index,nofollow'></head>", ["nofollow"], False),
        ("<head><meta name=description content='noindex explained'></head>", [], False),
        ("<head><title>noindex robots</title></head>", [], False),
        ("<head></head><p>&lt;meta name=robots content=noindex>", [], False),
        ("<head></head><meta name=robots content=noindex>", [], False),
        ("", [], False),
    ],
)
def test_what_a_page_says(page: str, headers: list[str], *, expected: bool) -> None:
    assert is_unlisted(page.encode(), headers) is expected


def test_a_pattern_or_else_its_directory_decides() -> None:
    pages = UnlistedPages()
    for number in range(9):
        pages.saw(f"{HOME}/w/What_links/{chr(97 + number)}", unlisted=True)
        pages.saw(f"{HOME}/w/{chr(97 + number)}", unlisted=False)
        pages.saw(f"{HOME}/w/{chr(97 + number)}?edit=1", unlisted=True)
        pages.saw(f"{HOME}/i?edit={number}", unlisted=True)
        pages.saw(f"{HOME}/i?page={number}", unlisted=False)
    assert pages.likely(f"{HOME}/w/What_links/new")
    assert pages.likely(f"{HOME}/i?edit=new")
    assert not pages.likely(f"{HOME}/i?page=new")
    assert not pages.likely(f"{HOME}/w/new")
    assert not pages.likely(f"{HOME}/new/")


def test_what_is_forgotten_is_not_unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlisted, "MOST_PLACES", 50)
    pages = UnlistedPages()
    for number in range(1000):
        pages.saw(f"{HOME}/{'a' * (number // 10)}/b?c={number}", unlisted=True)
    assert pages.likely(f"{HOME}/{'a' * 99}/b?c=d")
    assert not pages.likely(f"{HOME}/a/b?c=d")


def _words(*things: object) -> str:
    """Return words that only a page about *things* shows."""
    number = str(crc32(repr(things).encode()))
    return " ".join("abcdefghij"[int(digit)] * (3 + place) for place, digit in enumerate(number))


def _wiki(target: str) -> bytes | None:
    """A page leads to the next one and to its forms, which show texts of their own; a calendar leads on without end."""
    page, _, query = target.partition("?")
    if page == "/calendar":
        day = int(query.partition("=")[2] or 0)
        return f"<p>nothing on this day</p><a href='/calendar?day={day + 1}'>next</a>".encode()
    number = int(page.removeprefix("/page-") or 0) if page != "/" else 0
    links = "".join(f"<a href='/page-{number}?action={form}&version={k}'>" for form in FORMS for k in range(5))
    text = f"<p>about {_words(target)}</p>"
    if query:
        return f"<head><meta name=robots content='noindex,nofollow'></head>{text}".encode()
    following = f"<a href='/page-{number + 1}'>next</a>" if number < REAL else ""
    return f"<head></head>{text}<a href='/calendar'>days</a>{links}{following}".encode()


def test_the_forms_of_a_wiki_go_after_its_pages_and_none_is_held() -> None:
    simulation = Simulation(_wiki, TrapSettings(trap_budget=30)).run(3000)
    asked = simulation.asked
    assert asked.index(f"/page-{REAL}") < 5 * REAL  # of 640 requests
    assert len([target for target in asked if "action=" in target]) == (REAL + 1) * len(FORMS) * 5
    assert list(simulation.held) == [f"{HOME}/calendar?day"]
