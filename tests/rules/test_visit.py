"""One visit: what its answer links to, and what the frontier is told of it."""

import gzip
from dataclasses import replace

import pytest

from archiver.config.scope_settings import ScopeSettings, TrapSettings
from archiver.crawl.visit import (
    Visited,
    conclude,
    conclude_failure,
    conclude_unasked,
    refusal,
)
from archiver.crawl.visit_rules import LATER, HostVisitRules, VisitRules, judged
from archiver.errors import Failure, FetchError
from archiver.extract.exchange import MAX_DOCUMENT, is_robots, payload, read_links
from archiver.fetch.spool import MemoryBlock
from archiver.http import read_stored
from archiver.model import Claim, Event, Exchange, Hop, Link, Links, NewUrl, PatternTally, Peer, Robots, Truncation
from archiver.policy.scope import PRIORITY_GUESS, Scope
from archiver.policy.traps import Traps
from archiver.policy.url_forms import likeness

NOW = 1_800_000_000.0
HOME = "http://site.test"
RULES = VisitRules(Scope(ScopeSettings(), (f"{HOME}/",), str), HostVisitRules(3))


def _claim(target: str = "/", path: str = "", tries: int = 0) -> Claim:
    return Claim(7, HOME + target, 1, Hop(path[-1:] or "L"), path, 0, 0, tries)


def _exchange(raw: bytes, truncated: Truncation | None = None) -> Exchange:
    peer = Peer("127.0.0.1")
    return Exchange(b"", MemoryBlock(raw), read_stored(raw), None, peer, 1, 0.5, truncated)


def _answer(body: bytes, fields: bytes = b"Content-Type: text/html\r\n", status: bytes = b"200 OK") -> Exchange:
    return _exchange(b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, fields, len(body), body))


@pytest.mark.parametrize(
    ("target", "path", "expected"),
    [
        ("/robots.txt", "", True),
        ("/robots.txt", "LL", True),
        ("/moved", "PR", True),
        ("/moved", "PRRRR", True),
        ("/moved", "PRL", False),
        ("/a/robots.txt", "L", False),
        ("/robots.txt?x", "L", False),
        ("/", "", False),
    ],
)
def test_what_holds_the_rules_of_a_host(target: str, path: str, expected: bool) -> None:  # noqa: FBT001  a column
    assert is_robots(_claim(target, path)) is expected


PAGE = b'<meta charset=utf-8><a href="/next">n</a><img src="//cdn.test/i.gif"><a href="#here">h</a>'


@pytest.mark.parametrize(
    "exchange",
    [
        _answer(PAGE),
        _answer(gzip.compress(PAGE), b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n"),
        _exchange(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(PAGE), PAGE)),
        _exchange(PAGE),
    ],
    ids=["plain", "gzip", "chunked", "http/0.9"],
)
def test_links_are_found_under_each_coding(exchange: Exchange) -> None:
    found = [(link.url, link.hop) for link in read_links(_claim(), exchange).links]
    assert (f"{HOME}/next", Hop.LINK) in found
    assert ("http://cdn.test/i.gif", Hop.REQUISITE) in found


@pytest.mark.parametrize(
    "exchange",
    [
        _answer(PAGE, status=b"404 Not Found"),
        _answer(PAGE, status=b"500 Oops"),
        _answer(PAGE, b"Content-Type: image/png\r\n"),
        _answer(b""),
    ],
    ids=["404", "500", "image", "empty"],
)
def test_where_nothing_is_looked_for(exchange: Exchange) -> None:
    assert read_links(_claim("/dead", "L"), exchange).links == ()


@pytest.mark.parametrize("path", ["", "R"])
def test_the_error_page_of_a_seed_is_read(path: str) -> None:
    assert len(read_links(_claim("/", path), _answer(PAGE, status=b"404 Not Found")).links) == 2


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        (b"audio/mpegurl", b"#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:4,\n/1.ts\n", [f"{HOME}/1.ts"]),
        (b"image/svg+xml", b"<svg><image href='/i.png'/></svg>", [f"{HOME}/i.png"]),
        (b"video/mp4", b"\0\0\0\x20ftypisom http://no.test/", []),
        (b"image/png", b"<svg><image href='/i.png'/></svg>", []),
    ],
)
def test_of_pictures_and_sounds_only_texts_are_read(media_type: bytes, body: bytes, expected: list[str]) -> None:
    found = read_links(_claim(), _answer(body, b"Content-Type: %b\r\n" % media_type))
    assert [link.url for link in found.links] == expected


def test_early_hints_are_links() -> None:
    hints = (
        b"HTTP/1.1 100 Continue\r\nLink: </no>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n"
    )
    exchange = replace(_answer(b"", b"Link: </t.css>; rel=preload\r\n"), interim=hints)
    found = read_links(_claim(), exchange).links
    assert [(link.url, link.hop) for link in found] == [
        (f"{HOME}/t.css", Hop.REQUISITE),
        (f"{HOME}/s.css", Hop.REQUISITE),
    ]


def test_a_redirect_leads_where_it_says_and_its_body_says_nothing() -> None:
    exchange = _answer(PAGE, b"Location: /there\r\nContent-Type: text/html\r\n", b"302 Found")
    assert [(link.url, link.hop) for link in read_links(_claim(), exchange).links] == [(f"{HOME}/there", Hop.REDIRECT)]


@pytest.mark.parametrize(
    ("status", "location", "found"),
    [
        (b"302 Found", b"", []),
        (b"302 Found", b"Location:\r\n", []),
        (b"301 Moved", b"Location: http://[::bad/\r\n", []),
        (b"307 Moved", b"Location: mailto:a@site.test\r\n", []),
        (b"302 Found", b"Location: #part\r\n", []),
        (b"300 Multiple Choices", b"Location: /there\r\n", [(f"{HOME}/there", Hop.REDIRECT)]),  # a browser stays
        (b"399 Odd", b"", []),
    ],
)
def test_a_page_that_sends_the_browser_nowhere_is_read(
    status: bytes, location: bytes, found: list[tuple[str, Hop]]
) -> None:
    exchange = _answer(PAGE, location + b"Content-Type: text/html\r\n", status)
    in_page = [(link.url, link.hop) for link in read_links(_claim(), _answer(PAGE)).links]
    assert in_page
    assert [(link.url, link.hop) for link in read_links(_claim(), exchange).links] == [*found, *in_page]


def test_the_first_location_that_says_something_counts() -> None:
    exchange = _answer(b"", b"Location:\r\nLocation: /there\r\nLocation: /no\r\n", b"302 Found")
    assert [link.url for link in read_links(_claim(), exchange).links] == [f"{HOME}/there"]


def test_robots_txt_names_sitemaps() -> None:
    body = b"Sitemap: /map.xml\nSitemap: http://site.test/map.xml\nSitemap: http://[\n"
    links = read_links(_claim("/robots.txt", "P"), _answer(body, b"Content-Type: text/plain\r\n"))
    assert [(link.url, link.hop) for link in links.links] == [(f"{HOME}/map.xml", Hop.MANIFEST)]


def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(MAX_DOCUMENT * 2))
    body, note = payload(_answer(bomb, b"Content-Encoding: gzip\r\n"), 1000)
    assert len(body) <= 1000
    assert note


def test_an_answer_is_the_last_word() -> None:
    links = Links((Link(f"{HOME}/next", Hop.LINK), Link("http://other.test/", Hop.LINK), Link(f"{HOME}/", Hop.LINK)))
    settled = conclude(RULES, _claim(), _answer(PAGE), links, NOW)
    assert (settled.event, settled.status, settled.note) == (Event.CAPTURE, 200, "")
    assert [new.url for new in settled.found] == [f"{HOME}/next"]
    assert [refusal.url for refusal in settled.refused] == ["http://other.test/"]


@pytest.mark.parametrize(
    ("location", "note"),
    [
        ("/there", "redirects to http://site.test/there"),
        ("/", "redirect loop: back to itself"),
        ("http://other.test/", "redirects to http://other.test/, which is outside the scope"),
    ],
)
def test_a_redirect_says_where_it_leads(location: str, note: str) -> None:
    exchange = _answer(b"", b"Location: %b\r\n" % location.encode(), b"302 Found")
    assert conclude(RULES, _claim(), exchange, read_links(_claim(), exchange), NOW).note == note


def test_a_chain_of_redirects_that_is_too_long_says_so() -> None:
    claim = _claim(path="R" * 10)
    exchange = _answer(b"", b"Location: /next\r\n", b"302 Found")
    settled = conclude(RULES, claim, exchange, read_links(claim, exchange), NOW)
    assert settled.note == "redirects to http://site.test/next, not followed (max-redirects: 10)"
    assert settled.found == ()


@pytest.mark.parametrize(("tries", "event"), [(0, Event.RETRY), (2, Event.RETRY), (3, Event.CAPTURE)])
def test_an_overloaded_server(tries: int, event: Event) -> None:
    exchange = _answer(b"", b"Retry-After: 120\r\n", b"503 Later")
    settled = conclude(RULES, _claim(tries=tries), exchange, Links(), NOW)
    assert (settled.event, settled.not_before) == (event, NOW + 120)
    assert settled.annotations == ((f"{tries + 1}t",) if tries else ())


def test_a_cut_answer_is_annotated_as_heritrix_does() -> None:
    for truncated, word in ((Truncation.LENGTH, "lenTrunc"), (Truncation.DISCONNECT, "midFetchTrunc")):
        exchange = _exchange(b"HTTP/1.1 200 OK\r\n\r\nhalf", truncated)
        assert word in conclude(RULES, _claim(), exchange, Links(), NOW).annotations


def _robots(exchange: Exchange) -> Robots | None:
    claim = _claim("/robots.txt", "P")
    return conclude(RULES, claim, exchange, read_links(claim, exchange), NOW).robots


def test_the_answer_for_robots_txt() -> None:
    assert _robots(_answer(b"User-agent: *")) == Robots(200, b"User-agent: *")
    assert _robots(_answer(b"gone", status=b"404 Not Found")) == Robots(404, b"")
    assert _robots(_answer(b"", b"Location: /rules\r\n", b"301 Moved")) == Robots(301, b"", f"{HOME}/rules")
    assert _robots(_answer(b"", b"Location: /robots.txt\r\n", b"301 Moved")) == Robots(301, b"")
    assert _robots(_answer(b"", status=b"503 Later")) is None  # it is asked again


def test_a_failure_is_tried_again_and_then_a_row() -> None:
    error = FetchError(Failure.CONNECT, "Connection refused")
    again = conclude_failure(RULES, Visited(_claim(), error=error), NOW)
    assert (again.event, again.due > NOW, again.failure) == (Event.RETRY, True, "connect")
    last = conclude_failure(RULES, Visited(_claim(tries=3), error=error), NOW)
    assert (last.event, last.note, last.robots) == (Event.GIVE_UP, "connect: Connection refused", None)
    final = conclude_failure(RULES, Visited(_claim(), error=error, final=True), NOW)
    assert final.event is Event.GIVE_UP
    given_up = conclude_failure(RULES, Visited(_claim("/robots.txt", "P", 3), error=error), NOW)
    assert given_up.robots == Robots(0, b"connect: Connection refused")


def test_a_visit_that_did_not_fail_has_no_failure() -> None:
    with pytest.raises(ValueError, match="did not fail"):
        conclude_failure(RULES, Visited(_claim()), NOW)


def test_what_robots_txt_forbids() -> None:
    settled = conclude_unasked(RULES, Visited(_claim(), forbidden="robots.txt forbids it"), NOW)
    assert (settled.event, settled.failure, settled.note) == (Event.FORBID, "robots", "robots.txt forbids it")


def test_a_page_whose_links_were_not_read_is_settled_and_named() -> None:
    links = Links(note="the links were not read: it took more than 4 s")
    settled = conclude(RULES, _claim(), _answer(b"<a href=x>"), links, NOW)
    assert settled.event is Event.CAPTURE
    assert settled.note == links.note
    assert settled.annotations == ("linksNotRead",)


@pytest.mark.parametrize("barren", [16, 64, 256, 600])
@pytest.mark.parametrize("priority", [4, PRIORITY_GUESS], ids=["link", "guess"])
def test_what_becomes_suspicious_is_delayed_once_for_each_level(barren: int, priority: int) -> None:
    """A guessed page is as late as others of its level, and still after the pages that are named for certain."""
    page = f"{HOME}/lost/99"
    names = likeness(page)
    known = [PatternTally(name, barren, 0, barren, barren) for name in (names.pattern, names.family)]
    rules = replace(RULES, traps=Traps(TrapSettings(), known))
    hop = Hop.SPECULATIVE if priority == PRIORITY_GUESS else Hop.LINK
    claim = Claim(7, page, 1, hop, hop.value, 2, 0, 0, via=f"{HOME}/", priority=priority)
    late = refusal(rules, claim)
    assert late is not None
    assert late.event is Event.DELAY
    assert late.priority > PRIORITY_GUESS
    assert refusal(rules, replace(claim, priority=late.priority)) is None
    level = rules.traps.waits(page, "").level if rules.traps is not None else 0
    assert late.priority % LATER == priority
    assert late.priority // LATER == level > 0
    found = judged(rules, Link(page, hop, "script"), _claim(), NOW)
    assert isinstance(found, NewUrl)
    assert (found.priority // LATER, found.priority % LATER >= PRIORITY_GUESS) == (level, hop is Hop.SPECULATIVE)
