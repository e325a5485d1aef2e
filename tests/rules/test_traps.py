"""Traps: what a URL alone tells, and what pages have to show so that their pattern is not held back."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import traps
from archiver.config.settings import TrapSettings
from archiver.model import Hop, PatternTally
from archiver.traps import Page, Traps, directory, pattern, runs, suspect

HOME = "http://example.org"
YEAR = 2026


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("/", "/"),
        ("/about", "/about"),
        ("/calendar/2026/11", "/calendar/N/N"),
        ("/page12.html", "/pageN.html"),
        ("/s/9f86d081884c7d65/a", "/s/H/a"),
        ("/20260131120000", "/N"),
        ("/%E3%81%82/%E3%82%A2", "/%E3%81%82/%E3%82%A2"),
        ("/a?b=1&a=2", "/a?a&b"),
        ("/a?b=1&b=2&c", "/a?b&c"),
        ("/a?f[0]=x&f[1]=y", "/a?f[N]"),
        ("/a?", "/a"),
    ],
)
def test_patterns(target: str, shape: str) -> None:
    assert pattern(HOME + target) == HOME + shape


@pytest.mark.parametrize(
    ("target", "folder"),
    [("/", "/*"), ("/a", "/*"), ("/a/", "/*"), ("/a/b", "/a/*"), ("/a/b/c/", "/a/*"), ("/a?b=/c/d", "/*")],
)
def test_directories(target: str, folder: str) -> None:
    assert directory(HOME + target) == HOME + folder


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("/a/b/a/b/a/b/", ""),
        ("/ab/cd/ab/cd/ab/cd/ab/", "max-repeats: 3"),
        ("/ab/ab/ab/ab", "max-repeats: 3"),
        ("/000/000/000/000/001", ""),
        ("/x?ids=1&ids=2&ids=3&ids=4&ids=5", ""),
        ("/x?a=1&a=1&a=1&a=1", "max-repeats: 3"),
        ("/" + "/".join(f"d{n}" for n in range(25)), ""),
        ("/" + "/".join(f"d{n}" for n in range(26)), "max-segments: 25"),
        ("/?path=" + "/a" * 40, ""),
        ("/" + "a" * 1970, ""),
        ("/" + "a" * 2000, "max-url-length: 2000"),
        ("/login?to=%2Flogin%3Fto%3D%252Flogin", ""),
        (
            "/login?to=%2Flogin%3Fto%3D%252Flogin%253Fto%253D%25252F",
            "traps: on: an address within an address within an address",
        ),
        ("/calendar/2028/12", ""),
        ("/calendar/2029/1", "max-years-ahead: 2"),
        ("/events?date=2029-01", "max-years-ahead: 2"),
        ("/calendar.php?year=2031&month=5", "max-years-ahead: 2"),
        ("/anything/2031-05-17", "max-years-ahead: 2"),
        ("/calendar/1848/03", ""),
        ("/topic/2543/5", ""),
        ("/part/2543-11", ""),
        ("/report-2050.pdf", ""),
    ],
)
def test_what_a_url_alone_tells(target: str, rule: str) -> None:
    assert Traps(TrapSettings()).refusal(HOME + target, Hop.LINK, YEAR) == rule
    assert Traps(TrapSettings(traps="off")).refusal(HOME + target, Hop.LINK, YEAR) == ""


def test_each_rule_begins_with_a_setting() -> None:
    named = {field.replace("_", "-") for field in TrapSettings.__dataclass_fields__}
    assert set(traps.RULES) <= named


def test_what_a_page_needs_may_be_long_but_not_endless() -> None:
    watch = Traps(TrapSettings())
    assert watch.refusal(f"{HOME}/{'a' * 3000}", Hop.REQUISITE, YEAR) == ""
    assert watch.refusal(f"{HOME}/css/css/css/css/a.css", Hop.REQUISITE, YEAR) == "max-repeats: 3"
    assert watch.refusal(f"{HOME}/ab/ab/ab/ab/robots.txt", Hop.PREREQUISITE, YEAR) == ""


def test_one_order_of_a_query_is_enough() -> None:
    watch = Traps(TrapSettings())
    rule = "traps: on: the same query in another order is taken"
    assert watch.refusal(f"{HOME}/?a=1&b=2", Hop.LINK, YEAR) == ""
    assert watch.refusal(f"{HOME}/?b=2&a=1", Hop.LINK, YEAR) == rule
    assert watch.refusal(f"{HOME}/?a=1&b=2", Hop.LINK, YEAR) == ""
    assert watch.refusal(f"{HOME}/?b=1&a=2", Hop.LINK, YEAR) == ""
    assert watch.refusal(f"{HOME}/?b=2&a=1", Hop.REQUISITE, YEAR) == ""


def _visit(watch: Traps, target: str, text: str, *shown: str, via: str | None = None, hops: int = 9) -> bool:
    """Visit a page, which one like it led to if *via* is not given; whether others like it are held back then."""
    body = f"<body><p>Welcome to the site</p><p>{text}</p></body>".encode()
    led = HOME + (target if via is None else via)
    watch.saw(Page(HOME + target, runs(body), tuple(HOME + each for each in shown), via=led, hops=hops))
    return bool(watch.held(HOME + target, Hop.LINK))


def _words(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def test_a_large_honest_site_is_not_held_back() -> None:
    watch = Traps(TrapSettings())
    for number in range(20_000):
        assert not _visit(watch, f"/article/{number}", f"About the {_words(number)} of things")
    for number in range(2_000):
        assert not _visit(watch, f"/photo/{number}", "A photo", f"/photo/{number}.jpg")
    for number in range(2_000):
        assert not _visit(
            watch, f"/forum/viewtopic.php?f={number % 9}&t={number}", f"They talk of {_words(number)} here"
        )


def test_one_real_page_in_ten_is_enough() -> None:
    watch = Traps(TrapSettings())
    for number in range(3_000):
        real = number < 50 or number % 10 == 0
        text = f"All of {_words(number)} is told" if real else "This profile is private"
        assert not _visit(watch, f"/user/{number}/", text)


@pytest.mark.parametrize("target", ["/page/{n}", "/2024/05/{n}", "/{n}", "/a/{n}?page={n}&all=1"])
def test_what_a_list_names_is_fetched_though_it_is_all_the_same(target: str) -> None:
    watch = Traps(TrapSettings())
    for number in range(500):
        assert not _visit(watch, target.format(n=number), "Nothing to see here", via="/list")
        assert not _visit(watch, "/list", f"A list of {_words(number)}", via="/")


def test_numbers_are_something_new_where_they_are_no_dates() -> None:
    watch = Traps(TrapSettings())
    for number in range(2_000):
        assert not _visit(watch, f"/page/{number}", f"Page {number}")
        assert not _visit(watch, f"/tree/{number % 40}/{number}", str(number))


def test_far_from_a_seed_numbers_are_nothing_new() -> None:
    watch = Traps(TrapSettings())
    held = [_visit(watch, f"/page/{number}", f"Page {number}", hops=number) for number in range(350)]
    assert not any(held[:200])
    assert held[-1]


def test_a_page_without_a_text_of_its_own_says_nothing() -> None:
    watch = Traps(TrapSettings())
    for number in range(300):
        body = f'<html><body><a href="/next/{number}">to the next page</a></body></html>'.encode()
        assert runs(body) == ()
        here = Page(f"{HOME}/next/{number}", runs(body), (f"{HOME}/a.css",), via=f"{HOME}/next/{number - 1}")
        assert not watch.saw(here)


def test_a_list_is_fruitful_by_what_it_leads_to() -> None:
    """Its own text is the same on each of its pages; the titles are those of links."""
    watch = Traps(TrapSettings())
    for number in range(100):
        here, leads = f"{HOME}/list?sort=new&page={number}", (f"{HOME}/about/{_words(number)}", f"{HOME}/")
        watch.saw(Page(here, (b"all articles",), (), leads, via=f"{HOME}/list?sort=new&page={number - 1}"))
        for lead in (*leads, f"{HOME}/list?sort=new&page={number + 1}"):
            assert not watch.refusal(lead, Hop.LINK, YEAR)


def test_links_to_more_of_a_trap_are_nothing_new() -> None:
    watch, here = Traps(TrapSettings()), ""
    for number in range(3):
        here, lead = f"{HOME}/shop?a={number}&b=1", f"{HOME}/shop?a=1&b={number}&c={number}"
        watch.saw(Page(here, (b"all chairs",), (), (lead, here, f"{HOME}/"), via=here))
        for each in (lead, f"{HOME}/"):
            watch.refusal(each, Hop.LINK, YEAR)
    assert watch.held(here, Hop.LINK)


def test_where_three_choices_brought_nothing_no_others_are_tried() -> None:
    watch = Traps(TrapSettings())
    for names in ("a&b", "b&c", "c&d"):
        for number in range(3):
            here = f"{HOME}/shop?{names.replace('&', '=1&')}={number}"
            watch.saw(Page(here, (b"all chairs",), (), via=here))
    assert watch.held(f"{HOME}/shop?a=1&d=2", Hop.LINK) == f"barren-pages: 8: {HOME}/shop?*"
    assert watch.held(f"{HOME}/shop?a=1", Hop.LINK) == ""
    assert watch.held(f"{HOME}/other?a=1&d=2", Hop.LINK) == ""


def test_a_page_that_is_asked_for_everything_is_no_trap() -> None:
    """As in older systems, where all of a site is index.php: some of its choices bring nothing."""
    watch = Traps(TrapSettings())
    for number in range(50):
        _visit(watch, f"/index.php?view=article&id={number}", f"About the {_words(number)} of things")
        for task in ("login", "print", "vote", "mail"):
            _visit(watch, f"/index.php?{task}=1&id={number}", "Please log in first")
    assert not watch.held(f"{HOME}/index.php?view=article&id=99", Hop.LINK)
    assert not watch.held(f"{HOME}/index.php?view=author&name=99", Hop.LINK)
    assert watch.held(f"{HOME}/index.php?login=1&id=99", Hop.LINK)


def test_no_more_are_under_way_than_may_bring_nothing() -> None:
    watch = Traps(TrapSettings())
    assert watch.room(f"{HOME}/about") == ("", 0)
    assert watch.room(f"{HOME}/lost/1") == (f"{HOME}/lost/N", 8)
    assert watch.room(f"{HOME}/calendar/2026/1") == (f"{HOME}/calendar/N/N", 2)
    for number in range(20):
        _visit(watch, f"/article/{number}", f"About the {_words(number)} of things")
    assert watch.room(f"{HOME}/article/1") == (f"{HOME}/article/N", 18)
    _visit(watch, "/article/21", "About the a of things")
    assert watch.room(f"{HOME}/article/1") == (f"{HOME}/article/N", 17)
    assert Traps(TrapSettings(barren_pages=0)).room(f"{HOME}/lost/1") == ("", 0)
    assert Traps(TrapSettings(traps="off")).room(f"{HOME}/lost/1") == ("", 0)


@pytest.mark.parametrize(
    ("targets", "text", "pages"),
    [
        ("/lost/{n}", "This page could not be found", 9),
        ("/calendar/{y}/{m}", "Nothing happens in {month} {y}", 3),
        ("/events/?day={y}-05-{d}", "No event on May {d}, {y}", 3),
        ("/shop?size={n}&colour=red", "Very good chairs found for size red", 3),
        ("/s/9f86d081884c7d65a{n}/a", "What stands at a", 3),
    ],
)
def test_a_trap_is_held_back_soon(targets: str, text: str, pages: int) -> None:
    watch = Traps(TrapSettings())
    months = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
    held = []
    for n in range(1, 13):
        at = {"n": n, "y": 2000 + n, "m": n, "month": months[n % 10], "d": f"{n:02}"}
        held.append(_visit(watch, targets.format(**at), text.format(**at)))
    assert held.index(True) + 1 == pages


def test_pages_that_show_nothing_answer_for_nothing() -> None:
    watch, held = Traps(TrapSettings()), []
    for number in range(30):
        here, before = (f"/lost/a{_words(which)}/{which}" for which in (number + 1, number))
        held.append(_visit(watch, here, "Not found", via=before))
    assert held[-1]


def test_what_was_learned_is_known_again() -> None:
    watch = Traps(TrapSettings())
    tallies: dict[str, PatternTally] = {}
    for number in range(12):
        for tally in watch.saw(Page(f"{HOME}/lost/{number}", (b"notfound",), (), via=f"{HOME}/lost/9")):
            tallies[tally.pattern] = tally
    rule = f"barren-pages: 8: {HOME}/lost/N"
    assert watch.held(f"{HOME}/lost/99", Hop.LINK) == rule
    assert Traps(TrapSettings(), tallies.values()).held(f"{HOME}/lost/99", Hop.LINK) == rule
    assert Traps(TrapSettings(barren_pages=50), tallies.values()).held(f"{HOME}/lost/99", Hop.LINK) == ""
    assert Traps(TrapSettings(traps="off"), tallies.values()).held(f"{HOME}/lost/99", Hop.LINK) == ""
    assert watch.held(f"{HOME}/lost/99", Hop.REQUISITE) == ""


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "MOST_PATTERNS", 50)
    watch = Traps(TrapSettings(pattern_budget=1, directory_budget=1))
    for number in range(500):
        watch.saw(Page(f"{HOME}/{_words(number)}/{number}", (b"whatever",), ()))
    assert len(watch._tallies) <= 50
    assert len(watch._held) <= 50


def test_runs_are_words_outside_of_links() -> None:
    page = b"<title>No. 7</title><script>var x='hidden words'</script><P>Seen 12 Times</P><a href=/>Five<b>Six</b></a>"
    page += b"<!-- <p>not seen</p> --><p>id 5f3a here</p><style>p{}</style><p>--</p><a\nhref=/>unclosed<p>Seven</p>"
    assert runs(page) == (b"no 7", b"seen 12 times", b"id 5f3a here")
    assert runs(b"<p>\xc3\xbcber  uns</p><address>Where</address>") == (b"\xc3\xbcber uns", b"where")


def test_middle_and_end_of_a_long_page_are_read_too() -> None:
    menu = b"<li>the same</li>" * 20_000
    page = b"<p>Title</p><nav>" + menu + b"</nav><p>What it is about</p>" + menu[:-2000] + b"<p>And its end</p>"
    assert {b"title", b"what it is about", b"and its end"} < set(runs(page))


@pytest.mark.parametrize(
    "body", [b"<", b">", b"><script", b">a1", b"<!--", b"a1b2c3", b">" + b"a" * 999 + b"<", b"<p>a</p>"]
)
def test_runs_take_linear_time(body: bytes) -> None:
    began = process_time()
    runs(body * (1_000_000 // len(body)))
    assert process_time() - began < 1


@given(st.text(max_size=60), st.sampled_from(Hop))
def test_any_url_is_judged(tail: str, hop: Hop) -> None:
    watch = Traps(TrapSettings())
    address = f"{HOME}/{tail}"
    assert isinstance(watch.refusal(address, hop, YEAR), str)
    watch.saw(Page(address, (tail.encode("utf-8", "replace"),), ()))
    suspect(address)
