"""Guesses: the budget of a host, and its early end; where they may lead, and what comes of them."""

import pytest

from archiver.config.scope_settings import ScopeSettings
from archiver.crawl.visit import Visited, conclude, conclude_failure, refusal
from archiver.crawl.visit_rules import HostVisitRules, VisitRules
from archiver.errors import Failure, FetchError
from archiver.extract.exchange import read_links
from archiver.fetch.spool import MemoryBlock
from archiver.http import read_stored
from archiver.model import Claim, Event, Exchange, Hop, Link, Links, NewUrl, Peer, Refusal
from archiver.policy.scope import PRIORITY_GUESS, Scope, priority
from archiver.policy.speculative import FORGIVEN, MOST_TRIALS, TRIAL, SpeculativeBudget

HOME, CDN = "http://site.test", "http://cdn.test"
NOW = 1_800_000_000.0


def rules(**settings: object) -> VisitRules:
    chosen = ScopeSettings(**settings)  # type: ignore[arg-type]
    return VisitRules(Scope(chosen, (f"{HOME}/",), str), HostVisitRules(3), guesses=SpeculativeBudget(chosen))


def claim(address: str = f"{HOME}/app.js", path: str = "E", tries: int = 0, off_scope_hops: int = 0) -> Claim:
    return Claim(7, address, 1, Hop(path[-1:] or "L"), path, 0, off_scope_hops, tries)


def answer(status: str, media_type: str, body: bytes = b"") -> Exchange:
    raw = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    return Exchange(b"", MemoryBlock(raw), read_stored(raw), None, Peer("127.0.0.1"), 1, 0.5)


def test_the_budget_of_a_host() -> None:
    guesses = SpeculativeBudget(ScopeSettings(speculative_per_host=3))
    for number in range(2):
        guesses.saw(f"{HOME}/{number}.png", there=False)
        guesses.saw(f"{HOME}/right/{number}.png", there=True)
        assert guesses.refusal(f"{HOME}/b.png") == "", number
    tally = guesses.saw(f"{HOME}/2.png", there=False)
    assert guesses.refusal(f"{HOME}/b.png") == "speculative-per-host: 3"
    assert guesses.refusal(f"{CDN}/b.png") == ""
    later = SpeculativeBudget(ScopeSettings(speculative_per_host=3), [tally])
    assert later.refusal(f"{HOME}/b.png") == "speculative-per-host: 3"


def test_no_more_wrong_guesses_than_right_ones() -> None:
    guesses = SpeculativeBudget(ScopeSettings(speculative_per_host=0))
    for number in range(FORGIVEN + 1):
        assert guesses.refusal(f"{HOME}/") == "", number
        guesses.saw(f"{HOME}/{number}.png", there=False)
    assert guesses.refusal(f"{HOME}/x.png", f"{HOME}/app.js") == ""
    tally = guesses.saw(f"{HOME}/last.png", there=False)
    assert tally.visits - tally.fruitful == FORGIVEN + 2
    rule = f"speculative: {FORGIVEN + 1} of {FORGIVEN + 1} that {HOME}/app.js names were not there"
    for number in range(FORGIVEN + 1):
        guesses.saw(f"{HOME}/a/{number}.png", f"{HOME}/app.js", there=False)
    assert guesses.refusal(f"{HOME}/x.png", f"{HOME}/app.js") == rule
    for number in range(FORGIVEN + 1):
        guesses.saw(f"{HOME}/there/{number}.png", f"{HOME}/app.js", there=True)
    assert guesses.refusal(f"{HOME}/x.png", f"{HOME}/app.js") == ""


def test_what_proves_right_is_followed_to_its_end() -> None:
    guesses = SpeculativeBudget(ScopeSettings(speculative_per_page=2, speculative_per_host=2))
    for number in range(5000):
        assert guesses.refusal(f"{HOME}/{number}.html", f"{HOME}/toc.js") == "", number
        guesses.saw(f"{HOME}/{number}.html", f"{HOME}/toc.js", there=True)


def test_a_bad_script_takes_nothing_from_a_good_one() -> None:
    guesses = SpeculativeBudget(ScopeSettings())
    for number in range(FORGIVEN + 1):
        guesses.saw(f"{HOME}/{number}.png", f"{HOME}/bad.js", there=False)
    for number in range(TRIAL):
        assert guesses.refusal(f"{HOME}/worse.png", f"{HOME}/also-bad.js") == "", number
        guesses.saw(f"{HOME}/{number}.gif", f"{HOME}/also-bad.js", there=False)
    assert (
        guesses.refusal(f"{HOME}/worse.png", f"{HOME}/also-bad.js")
        == "speculative: 24 of 24 on this host were not there"
    )
    for number in range(200):
        assert guesses.refusal(f"{HOME}/{number}.html", f"{HOME}/toc.js") == ""
        guesses.saw(f"{HOME}/{number}.html", f"{HOME}/toc.js", there=True)


def test_a_host_on_which_all_is_wrong_costs_few_requests() -> None:
    guesses, asked = SpeculativeBudget(ScopeSettings()), 0
    for script in range(1000):
        for number in range(10):
            address = f"{HOME}/{script}/{number}.png"
            if not guesses.refusal(address, f"{HOME}/{script}.js"):
                asked += 1
                guesses.saw(address, f"{HOME}/{script}.js", there=False)
    assert asked == MOST_TRIALS


def test_two_readings_of_one_list_are_counted_apart() -> None:
    guesses = SpeculativeBudget(ScopeSettings(speculative_per_page=0))
    named_by = f"{HOME}/js/toc.json"
    for number in range(FORGIVEN + 1):
        guesses.saw(f"{HOME}/js/{number}.html", named_by, there=False)
        guesses.saw(f"{HOME}/{number}.html", named_by, there=True)
    assert "not there" in guesses.refusal(f"{HOME}/js/x.html", named_by)
    assert guesses.refusal(f"{HOME}/x.html", named_by) == ""


def test_one_page_under_many_names_is_none() -> None:
    guesses = SpeculativeBudget(ScopeSettings())
    for number in range(FORGIVEN + 2):
        guesses.saw(f"{HOME}/{number}.html", f"{HOME}/toc.js", there=True, page=b"Not found, sorry")
    assert "not there" in guesses.refusal(f"{HOME}/x.html", f"{HOME}/toc.js")


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
    at = claim(f"{parent}/app.js", off_scope_hops=int(parent == CDN))
    verdict = rules(speculative=setting).scope.judge(Link(address, Hop.SPECULATIVE, context), at)
    assert (verdict.rule if isinstance(verdict, Refusal) else "") == rule


@pytest.mark.parametrize(
    ("address", "settings", "rule"),
    [
        (f"{HOME}/docs/b.html", {}, ""),
        (f"{HOME}/blog/b.html", {"scope": "prefix"}, "scope: prefix"),
        (f"{HOME}/blog/b.png", {"scope": "prefix"}, ""),
        (f"{CDN}/b.html", {"speculative": "any"}, "scope: host"),
        (f"{HOME}/docs/b.html", {"speculative": "off"}, "speculative: off"),
        (f"{HOME}/docs/b.html", {"max_depth": 0}, "max-depth: 0"),
        (f"{HOME}/docs/b.html", {"page_requisites": False}, ""),
    ],
)
def test_a_guessed_page_is_a_page_to_the_scope(address: str, settings: dict[str, object], rule: str) -> None:
    scope = Scope(ScopeSettings(**settings), (f"{HOME}/docs/",), str)  # type: ignore[arg-type]
    verdict = scope.judge(Link(address, Hop.SPECULATIVE, "script/page"), claim(f"{HOME}/docs/toc.js"))
    assert (verdict.rule if isinstance(verdict, Refusal) else "") == rule
    if isinstance(verdict, NewUrl) and address.endswith(".html"):
        assert (verdict.depth, verdict.off_scope_hops, verdict.priority) == (1, 0, PRIORITY_GUESS)


def test_source_maps_are_asked_for_on_wish() -> None:
    link = Link(f"{HOME}/a.js.map", Hop.SPECULATIVE, "script/sourcemap")
    assert not isinstance(rules(source_maps=True).scope.judge(link, claim()), Refusal)


def test_a_guess_that_moves_stays_on_the_site() -> None:
    def moved(target: str, path: str) -> object:
        return rules().scope.judge(Link(target, Hop.REDIRECT), claim(path=path))

    assert moved(f"{CDN}/a.png", "EX") == Refusal(f"{CDN}/a.png", "speculative: site")
    assert moved(f"{CDN}/a.png", "EXR") == Refusal(f"{CDN}/a.png", "speculative: site")
    assert not isinstance(moved(f"{HOME}/b.png", "EX"), Refusal)
    assert not isinstance(moved(f"{CDN}/a.png", "E"), Refusal)


def test_guesses_come_last() -> None:
    assert priority("LX", 1) == priority("XR", 0) == PRIORITY_GUESS > priority("L" * 200, 200)
    assert priority("XE", 0) == 0


def test_no_guess_at_what_something_else_names() -> None:
    links = [Link(f"{HOME}/{n}.png", Hop.SPECULATIVE, "script/string") for n in range(5)]
    named = Link(f"{HOME}/0.png", Hop.REQUISITE, "img/@src")
    found = Links((*links, named, Link(f"{CDN}/x.png", Hop.SPECULATIVE, "script/string")))
    settlement = conclude(rules(), claim(), answer("200 OK", "text/javascript"), found, NOW)
    assert [(new.url, new.hop) for new in settlement.found] == [
        *((f"{HOME}/{n}.png", Hop.SPECULATIVE) for n in (1, 2, 3, 4)),
        (f"{HOME}/0.png", Hop.REQUISITE),
    ]
    assert [refusal.rule for refusal in settlement.refused] == ["speculative: site"]


@pytest.mark.parametrize(
    ("target", "path", "exchange", "counted"),
    [
        ("/a.png", "EX", answer("200 OK", "image/png"), (1, 1)),
        ("/a.png", "EX", answer("302 Found", "text/plain"), (1, 1)),
        ("/a.png", "EX", answer("404 Not Found", "text/html"), (1, 0)),
        ("/a.png", "EXR", answer("404 Not Found", "text/html"), (1, 0)),
        ("/a.png", "EX", answer("200 OK", "text/html"), (1, 0)),
        ("/a.html", "EX", answer("200 OK", "text/html"), (1, 1)),
        ("/a/", "EX", answer("200 OK", "text/html"), (1, 1)),
        ("/a.html", "EX", answer("404 Not Found", "text/html"), (1, 0)),
        ("/a.png", "E", answer("404 Not Found", "text/html"), None),
        ("/a.png", "EX", answer("503 Busy", "text/html"), None),
    ],
)
def test_what_is_counted(target: str, path: str, exchange: Exchange, counted: tuple[int, int] | None) -> None:
    settlement = conclude(rules(), claim(HOME + target, path), exchange, Links(), NOW)
    tallies = [(tally.visits, tally.fruitful) for tally in settlement.tallies]
    assert tallies == ([counted] if counted else [])


def test_a_page_in_the_place_of_a_file_is_not_followed() -> None:
    page = answer("200 OK", "text/html", b"<a href=/x>x</a><img src=/y.png>")
    assert read_links(claim(f"{HOME}/a.js", "EX"), page).links == ()
    assert len(read_links(claim(f"{HOME}/a.js", "E"), page).links) == 2
    assert len(read_links(claim(f"{HOME}/a.html", "EX"), page).links) == 2
    style = answer("200 OK", "text/css", b"a{background:url(y.png)}")
    assert [link.hop for link in read_links(claim(f"{HOME}/a.css", "EX"), style).links] == [Hop.REQUISITE]


def test_no_answer_to_a_guess_is_no_fault_of_the_site() -> None:
    error = FetchError(Failure.TIMEOUT, "nothing came")
    for_guesses = rules()
    first = conclude_failure(for_guesses, Visited(claim(path="EX"), error=error), NOW)
    assert (first.event, first.tallies) == (Event.RETRY, ())
    last = conclude_failure(for_guesses, Visited(claim(path="EX", tries=1), error=error), NOW)
    assert (last.event, last.failure, len(last.tallies)) == (Event.FORBID, "timeout", 1)
    assert last.note.startswith("speculative, and no answer came")
    real = conclude_failure(for_guesses, Visited(claim(path="E", tries=3), error=error), NOW)
    assert (real.event, real.tallies) == (Event.GIVE_UP, ())


def test_guesses_that_wait_are_held_back_when_the_budget_is_used_up() -> None:
    used_up = rules(speculative_per_host=1)
    assert refusal(used_up, claim(path="EX")) is None
    conclude(used_up, claim(path="EX"), answer("404 Not Found", "text/html"), Links(), NOW)
    refused = refusal(used_up, claim(path="EX"))
    assert refused is not None
    assert (refused.forbidden, refused.event) == ("speculative-per-host: 1", Event.FORBID)
    assert refusal(used_up, claim(path="E")) is refusal(used_up, claim(path="EXE")) is None
