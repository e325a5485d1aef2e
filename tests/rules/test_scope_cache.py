"""What is remembered of links changes no verdict: a crawl with a memory against one that forgets after each page."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.config.scope_settings import ScopeSettings, TrapSettings
from archiver.config.seeds import SeedSetting
from archiver.crawl.visit import conclude
from archiver.crawl.visit_rules import HostVisitRules, VisitRules
from archiver.fetch.spool import MemoryBlock
from archiver.http import read_stored
from archiver.model import Claim, Exchange, Hop, Link, Links, NewUrl, Peer
from archiver.policy import seed_scopes, url_forms
from archiver.policy.scope import Scope
from archiver.policy.seed_scopes import LONGEST, ScopeCache, remember, remember_foreign, scope_of
from archiver.policy.speculative import SpeculativeBudget
from archiver.policy.traps import Traps
from archiver.policy.url_forms import Respelling

HOME = "http://example.org"
SEEDS = (f"{HOME}/", "http://other.test/a/b")
HOSTS = (
    HOME,
    "https://www.example.org",
    "http://other.test",
    "http://cdn.test",
    "http://a;jsessionid=b.test",
    "http://cdn.test:25",
)
TAILS = (
    *("/", "/a/1", "/a/2", "/a/b/c", "/i.png", "/calendar/2031/05", "/a/a/a/a/a", "/x.zip", "/q?sid=" + "a" * 32),
    *("/q?a=1&b=2", "/q?b=2&a=1", "/q?SID=1&utm_x=2", "/s;jsessionid=abc", "/" + "long" * 100, "/s/9f86d081884c7d65"),
)
ADDRESSES = st.builds(str.__add__, st.sampled_from(HOSTS), st.sampled_from(TAILS))
LINKS = st.builds(Link, ADDRESSES, st.sampled_from(Hop), st.sampled_from(["", "a/@href", "a/@href nofollow"]))
PATHS = st.sampled_from(["", "L", "LL", "LE", "R", "LR", "X", "M", "P"])
PAGES = st.lists(st.tuples(ADDRESSES, PATHS, st.integers(0, 2), st.lists(LINKS, max_size=8)), min_size=2, max_size=8)
SETTINGS = (
    ScopeSettings(),
    ScopeSettings(scope="domain", max_depth=1),
    ScopeSettings(scope="prefix", requisite_hops=0, redirects="seeds"),
    ScopeSettings(exclude=("/a/2",), include=("cdn",), drop_query=("trackers", "session-paths"), query="sort"),
    ScopeSettings(scope="any", exclude_ext=("zip",), redirects="seeds", max_hops=2),
    ScopeSettings(redirects="seeds", seed=(SeedSetting(SEEDS[1], (("scope", "prefix"), ("max-depth", 1))),)),
)
RAW = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def _rules(chosen: ScopeSettings) -> VisitRules:
    traps = Traps(TrapSettings(barren_pages=1, pattern_budget=2))
    return VisitRules(
        scope_of(chosen, SEEDS, str), HostVisitRules(3, nofollow="archiver"), traps, SpeculativeBudget(chosen)
    )


@settings(max_examples=40)
@given(st.sampled_from(SETTINGS), PAGES)
def test_a_memory_changes_no_verdict(chosen: ScopeSettings, pages: list[tuple[str, str, int, list[Link]]]) -> None:
    remembers, forgets = _rules(chosen), _rules(chosen)
    exchange = Exchange(b"", MemoryBlock(RAW), read_stored(RAW), None, Peer("127.0.0.1"), 1, 0.5)
    for number, (address, path, depth, links) in enumerate(pages):
        claim = Claim(number, address, 1, Hop(path[-1:] or "L"), path, depth, 0, 0, via=pages[0][0], seed=SEEDS[1])
        found = Links(tuple(dict.fromkeys(links)), page=b"<p>Nothing</p>")
        told = conclude(remembers, claim, exchange, found, 1.8e9)
        assert told == conclude(replace(forgets, verdicts=ScopeCache()), claim, exchange, found, 1.8e9)


@given(st.sampled_from(["host", "domain"]), LINKS, PATHS, st.integers(0, 2))
def test_the_short_way_of_a_scope_by_hosts(kind: str, link: Link, path: str, depth: int) -> None:
    parent = Claim(1, SEEDS[0], 1, Hop.LINK, path, depth, 0, 0)
    short = Scope(ScopeSettings(scope=kind, max_depth=1), SEEDS, str)
    whole = Scope(ScopeSettings(scope=kind, max_depth=1, include=("no such address",)), SEEDS, str)
    assert short.judge(link, parent) == whole.judge(link, parent)


@given(ADDRESSES)
def test_names_without_wildcards_are_dropped_as_those_with(address: str) -> None:
    assert Respelling("keep", ["sid", "a"])(address) == Respelling("keep", ["[s]id", "[a]"])(address)


@given(st.text("ab1%2F/-_.?&=", max_size=40).map(lambda tail: f"{HOME}/{tail}"))
def test_what_is_said_of_a_url_is_the_same_in_short(address: str) -> None:
    page = address.partition("?")[0][len(HOME) :]
    told = url_forms.likeness(address)
    assert told.pattern.partition("?")[0] == HOME + url_forms._VARIABLE.sub(url_forms._letter, page)
    assert told == (url_forms.pattern(address), url_forms.family(address))


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_scopes, "MOST", 10)
    monkeypatch.setattr(seed_scopes, "MOST_FOREIGN", 20)
    memory, grounds = ScopeCache(), ()
    new = NewUrl("", Hop.LINK, "L", 1, 0, 2)
    for number in range(200):
        known, _, foreign = memory.at(Claim(1, HOME, 1, Hop.LINK, "L" * (number % 3), number % 3, 0, 0), grounds, 2026)
        for each in range(30):
            remember(known, f"{HOME}/{number}/{each}", new)
            remember_foreign(foreign, f"http://{number}.{each}.test/", "scope: host")
        remember(known, "a" * (LONGEST + 1), new)
        assert "a" * (LONGEST + 1) not in known
        assert sum(len(each.pages) for each in memory._now[2].values()) <= 20
        assert 0 < len(foreign) <= 20
    for number in range(200):
        memory.at(Claim(1, HOME, 1, Hop.LINK, "L", number, 0, 0), grounds, 2026)
        assert len(memory._now[2]) <= seed_scopes.MOST_PLACES + 2


def test_other_grounds_are_another_memory() -> None:
    memory, claim = ScopeCache(), Claim(1, HOME, 1, Hop.LINK, "", 0, 0, 0)
    before = (("http://moved.test/", HOME),)
    remember(memory.at(claim, before, 2026)[0], HOME, NewUrl(HOME, Hop.LINK, "L", 1, 0, 2))
    assert memory.at(claim, before, 2026)[0]
    assert not memory.at(claim, before, 2027)[0]
    assert not memory.at(claim, (*before, *before), 2027)[0]
