"""Guesses: the budget of a host, and its early end; where they may lead, and what comes of them."""

import pytest

from archiver.config.settings import ScopeSettings
from archiver.errors import Failure, FetchError
from archiver.fetch.spool import MemoryBlock
from archiver.guesses import FORGIVEN, Guesses
from archiver.http import read_stored
from archiver.model import Claim, Event, Exchange, Hop, Link, Links, Peer, Refusal
from archiver.scope import PRIORITY_GUESS, Scope, priority
from archiver.visit import Terms, Visited, conclude, conclude_failure, held, read_links

HOME, CDN = "http://site.test", "http://cdn.test"
NOW = 1_800_000_000.0


def terms(**settings: object) -> Terms:
    chosen = ScopeSettings(**settings)  # type: ignore[arg-type]
    return Terms(Scope(chosen, (f"{HOME}/",), str), retries=3, guesses=Guesses(chosen))


def claim(address: str = f"{HOME}/app.js", path: str = "E", tries: int = 0, strays: int = 0) -> Claim:
    return Claim(7, address, 1, Hop(path[-1:] or "L"), path, 0, strays, tries)


def answer(status: str, media_type: str, body: bytes = b"") -> Exchange:
    raw = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    return Exchange(b"", MemoryBlock(raw), read_stored(raw), None, Peer("127.0.0.1"), 1, 0.5)


def test_the_budget_of_a_host() -> None:
    guesses = Guesses(ScopeSettings(speculative_per_host=3))
    for number in range(2):
        guesses.saw(f"{HOME}/{number}.png", there=True)
        assert guesses.refusal(f"{HOME}/b.png") == "", number
    tally = guesses.saw(f"{HOME}/2.png", there=True)
    assert guesses.refusal(f"{HOME}/b.png") == "speculative-per-host: 3"
    assert guesses.refusal(f"{CDN}/b.png") == ""
    later = Guesses(ScopeSettings(speculative_per_host=3), [tally])
    assert later.refusal(f"{HOME}/b.png") == "speculative-per-host: 3"


def test_no_more_wrong_guesses_than_right_ones() -> None:
    guesses = Guesses(ScopeSettings(speculative_per_host=0))
    for number in range(FORGIVEN + 1):
        assert guesses.refusal(f"{HOME}/") == "", number
        guesses.saw(f"{HOME}/{number}.png", there=False)
    assert guesses.refusal(f"{HOME}/") == "speculative: 21 of 21 on this host were not there"
    for number in range(FORGIVEN + 1):
        guesses.saw(f"{HOME}/there/{number}.png", there=True)
    assert guesses.refusal(f"{HOME}/") == ""


@pytest.mark.parametrize(
    ("address", "context", "parent", "setting", "rule"),
    [
        (f"{HOME}/a.png", "script/string", HOME, "site", ""),
        ("https://www.site.test/a.png", "script/string", HOME, "site", ""),
        (f"{CDN}/a.png", "script/string", HOME, "site", "speculative: site"),
        (f"{CDN}/a.js", "script/import", HOME, "site", "speculative: site"),
        (f"{CDN}/a.js", "script/import", CDN, "site", ""),
        (f"{CDN}/a.png", "script/url", CDN, "site", ""),
        (f"{CDN}/a.png", "script/string", CDN, "site", "speculative: site"),
        (f"{CDN}/a.js", "script/chunk", CDN, "site", "speculative: site"),
        (f"{CDN}/a.png", "script/string", HOME, "any", ""),
        (f"{HOME}/a.png", "script/string", HOME, "off", "speculative: off"),
        (f"{HOME}/a.js.map", "script/sourcemap", HOME, "any", "source-maps: false"),
        (f"{HOME}/a.js.map", "sourcemap", HOME, "any", "source-maps: false"),
    ],
)
def test_where_guesses_lead(address: str, context: str, parent: str, setting: str, rule: str) -> None:
    at = claim(f"{parent}/app.js", strays=int(parent == CDN))
    verdict = terms(speculative=setting).scope.judge(Link(address, Hop.SPECULATIVE, context), at)
    assert (verdict.rule if isinstance(verdict, Refusal) else "") == rule


def test_source_maps_are_asked_for_on_wish() -> None:
    link = Link(f"{HOME}/a.js.map", Hop.SPECULATIVE, "script/sourcemap")
    assert not isinstance(terms(source_maps=True).scope.judge(link, claim()), Refusal)


def test_a_guess_that_moves_stays_on_the_site() -> None:
    def moved(target: str, path: str) -> object:
        return terms().scope.judge(Link(target, Hop.REDIRECT), claim(path=path))

    assert moved(f"{CDN}/a.png", "EX") == Refusal(f"{CDN}/a.png", "speculative: site")
    assert moved(f"{CDN}/a.png", "EXR") == Refusal(f"{CDN}/a.png", "speculative: site")
    assert not isinstance(moved(f"{HOME}/b.png", "EX"), Refusal)
    assert not isinstance(moved(f"{CDN}/a.png", "E"), Refusal)


def test_guesses_come_last() -> None:
    assert priority("LX", 1) == priority("XR", 0) == PRIORITY_GUESS > priority("L" * 200, 200)
    assert priority("XE", 0) == 0


def test_so_many_from_one_page_and_none_that_something_else_names() -> None:
    links = [Link(f"{HOME}/{n}.png", Hop.SPECULATIVE, "script/string") for n in range(5)]
    named = Link(f"{HOME}/0.png", Hop.REQUISITE, "img/@src")
    found = Links((*links, named, Link(f"{CDN}/x.png", Hop.SPECULATIVE, "script/string")))
    settlement = conclude(terms(speculative_per_page=3), claim(), answer("200 OK", "text/javascript"), found, NOW)
    assert [(new.url, new.hop) for new in settlement.found] == [
        *((f"{HOME}/{n}.png", Hop.SPECULATIVE) for n in (1, 2, 3)),
        (f"{HOME}/0.png", Hop.REQUISITE),
    ]
    assert [refusal.rule for refusal in settlement.refused] == ["speculative-per-page: 3", "speculative: site"]


@pytest.mark.parametrize(
    ("target", "path", "exchange", "counted"),
    [
        ("/a.png", "EX", answer("200 OK", "image/png"), (1, 1)),
        ("/a.png", "EX", answer("302 Found", "text/plain"), (1, 1)),
        ("/a.png", "EX", answer("404 Not Found", "text/html"), (1, 0)),
        ("/a.png", "EXR", answer("404 Not Found", "text/html"), (1, 0)),
        ("/a.png", "EX", answer("200 OK", "text/html"), (1, 0)),
        ("/a.png", "E", answer("404 Not Found", "text/html"), None),
        ("/a.png", "EX", answer("503 Busy", "text/html"), None),
    ],
)
def test_what_is_counted(target: str, path: str, exchange: Exchange, counted: tuple[int, int] | None) -> None:
    settlement = conclude(terms(), claim(HOME + target, path), exchange, Links(), NOW)
    tallies = [(tally.visits, tally.fruitful) for tally in settlement.tallies]
    assert tallies == ([counted] if counted else [])


def test_a_page_in_the_place_of_a_file_is_not_followed() -> None:
    page = answer("200 OK", "text/html", b"<a href=/x>x</a><img src=/y.png>")
    assert read_links(claim(f"{HOME}/a.js", "EX"), page).links == ()
    assert len(read_links(claim(f"{HOME}/a.js", "E"), page).links) == 2
    style = answer("200 OK", "text/css", b"a{background:url(y.png)}")
    assert [link.hop for link in read_links(claim(f"{HOME}/a.css", "EX"), style).links] == [Hop.REQUISITE]


def test_no_answer_to_a_guess_is_no_fault_of_the_site() -> None:
    error = FetchError(Failure.TIMEOUT, "nothing came")
    for_guesses = terms()
    first = conclude_failure(for_guesses, Visited(claim(path="EX"), error=error), NOW)
    assert (first.event, first.tallies) == (Event.RETRY, ())
    last = conclude_failure(for_guesses, Visited(claim(path="EX", tries=1), error=error), NOW)
    assert (last.event, last.failure, len(last.tallies)) == (Event.FORBID, "timeout", 1)
    assert last.note.startswith("speculative, and no answer came")
    real = conclude_failure(for_guesses, Visited(claim(path="E", tries=3), error=error), NOW)
    assert (real.event, real.tallies) == (Event.GIVE_UP, ())


def test_guesses_that_wait_are_held_back_when_the_budget_is_used_up() -> None:
    used_up = terms(speculative_per_host=1)
    assert held(used_up, claim(path="EX")) == ""
    conclude(used_up, claim(path="EX"), answer("200 OK", "image/png"), Links(), NOW)
    assert held(used_up, claim(path="EX")) == "speculative-per-host: 1"
    assert held(used_up, claim(path="E")) == held(used_up, claim(path="EXE")) == ""
