"""Traps: what a URL alone tells, what pages have to show, and what becomes of a pattern that shows nothing."""

import hashlib
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.scope_settings import TrapSettings
from archiver.model import Hop, PatternTally
from archiver.policy import dead_ends, traps, url_forms
from archiver.policy.content_ids import ContentIds
from archiver.policy.novelty import OFTEN, READ, Novelty, PageNovelty
from archiver.policy.patterns import tallies
from archiver.policy.traps import FREE, PageEvidence, Suspicion, Traps
from archiver.policy.url_forms import family, pattern, variant

HOME = "http://example.org"
YEAR = 2026
SMALL = TrapSettings(trap_budget=20)


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("/", "/"),
        ("/about", "/about"),
        ("/calendar/2026/11", "/calendar/N/N"),
        ("/page12.html", "/pageN.html"),
        ("/s/9f86d081884c7d65/a", "/s/H/a"),
        ("/api/SimpleTypeVisitor14.html", "/api/SimpleTypeVisitorN.html"),
        ("/20260131120000", "/N"),
        ("/%E3%81%82/%E3%82%A2", "/%E3%81%82/%E3%82%A2"),
        ("/a?b=1&a=2", "/a?a&b"),
        ("/a?b=1&b=2&c", "/a?b&c"),
        ("/a?f[0]=x&f[1]=y", "/a?f[N]"),
        ("/a?", "/a"),
        ("/git?p=x.git;a=tree;h=0a1b2c3d4e5f", "/git?a=tree&h&p"),
        ("/git?p=x.git;a=tree;hb=0a1b2c3d4e5f;f=a/b.c", "/git?a=tree&f&hb&p"),
        ("/tags?of=red;green;blue", "/tags?of"),
        ("/w/index.php?title=A&action=history", "/w/index.php?action=history&title"),
        ("/b?option=com_content&view=article&id=5", "/b?id&option=com_content&view=article"),
        ("/b?Action=Edit&id=5", "/b?Action=edit&id"),
        ("/b?action=0a1b2c&mode=a+b&do=", "/b?action&do&mode"),
        (f"/b?action={'x' * 30}", "/b?action"),
    ],
)
def test_patterns(target: str, shape: str) -> None:
    assert pattern(HOME + target) == HOME + shape


@pytest.mark.parametrize(
    ("target", "name"),
    [
        *(("/", "/*"), ("/a", "/a*"), ("/a7", "/aN*"), ("/a/b", "/a/*"), ("/a/b/c/", "/a/*"), ("/a?b=/c/d", "/a*?*")),
        ("/a/c?z=1&b=2", "/a/*?*"),
    ],
)
def test_families(target: str, name: str) -> None:
    assert family(HOME + target) == HOME + name


@pytest.mark.parametrize(
    ("target", "common"),
    [
        ("/a?b=1", ""),
        ("/station/123456789012345678901234", ""),
        ("/a?b=2&a=1", "/a?a=1&b=2"),
        ("/a?s=0123456789abcdef0123", "/a?s=H"),
        ("/s/f47ac10b-58cc-4372-a567-0e02b2c3d479/a", "/s/H/a"),
        ("/part/stm32f108zeu2", ""),
        ("/api/PKCS8EncodedKeySpec.html", ""),
        ("/api/C14NMethodParameterSpec.html", ""),
        ("/s/Xa9bQz1LkWm4TtRe/a", "/s/H/a"),
    ],
)
def test_variants(target: str, common: str) -> None:
    assert variant(HOME + target) == (HOME + common if common else "")


@pytest.mark.parametrize(
    ("target", "via", "whole"),
    [
        ("/shelf/?page=2", "/shelf/", "/shelf/"),
        ("/shelf/?page=3", "/shelf/?page=2", "/shelf/"),
        ("/shelf/?start=40", "/shelf/?start=20", "/shelf/"),
        ("/f.php?id=3&p=2", "/f.php?id=3", "/f.php?id=3"),
        ("/f.php?p=3&id=77", "/f.php?p=2&id=77", "/f.php?id=77"),
        ("/f.php?p=3&id=77", "/f.php?id=77&p=2", "/f.php?id=77"),
        ("/f.php?id=77&p=3", "/f.php?id=76&p=2", ""),
        ("/f.php?id=77&p=3", "/f.php?id=77&q=2", ""),
        ("/shelf/?colour=red&page=2", "/shelf/?colour=red", "/shelf/?colour=red"),
        ("/shelf/?page=2", "/shelf/?colour=red", ""),
        ("/shelf/?page=2", "/other/", ""),
        ("/shelf/?colour=red", "/shelf/", ""),
        ("/post/?reply=4711", "/post/", ""),
        ("/shelf/2", "/shelf/1", ""),
        ("/?a=" + "9" * 5000, "/", ""),
    ],
)
def test_which_pages_belong_to_one_list(target: str, via: str, whole: str) -> None:
    assert url_forms.list_of(HOME + target, HOME + via) == (HOME + whole if whole else "")


@given(st.lists(st.sampled_from(["a", "1", "f47ac10b", "-58cc", "-", "0e02b2c3d479", "/", "?", "&"]), max_size=12))
def test_variants_without_a_long_word_need_no_search(parts: list[str]) -> None:
    address = f"{HOME}/{''.join(parts)}"
    quick = variant(address)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(url_forms, "_LONG_WORD", re.compile(""))
        assert quick == variant(address)


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
    """It is fetched all the same, only later; and held under this rule when the site's budget is spent."""
    assert Traps(TrapSettings()).judge(HOME + target, Hop.LINK, HOME, YEAR) == Suspicion(int(bool(rule)))
    assert Traps(TrapSettings(traps="off")).judge(HOME + target, Hop.LINK, HOME, YEAR) == FREE
    spent = _spent()
    assert spent.judge(HOME + target, Hop.LINK, HOME, YEAR).rule == rule


def test_each_rule_begins_with_a_setting() -> None:
    named = {field.replace("_", "-") for field in TrapSettings.__dataclass_fields__}
    assert set(traps.RULES) <= named


def test_another_order_of_a_query_goes_later() -> None:
    watch = Traps(TrapSettings())
    assert watch.judge(f"{HOME}/?a=1&b=2", Hop.LINK, HOME, YEAR) == FREE
    assert watch.judge(f"{HOME}/?b=2&a=1", Hop.LINK, HOME, YEAR).level > 0
    assert watch.judge(f"{HOME}/?a=1&b=2", Hop.LINK, HOME, YEAR) == FREE
    assert watch.judge(f"{HOME}/?b=1&a=2", Hop.LINK, HOME, YEAR) == FREE
    assert watch.judge(f"{HOME}/?b=2&a=1", Hop.REQUISITE, HOME, YEAR) == FREE


def test_pages_with_ids_like_those_of_sessions_go_in_their_turn_until_they_bring_nothing() -> None:
    watch = Traps(SMALL)
    for number in range(50):
        target = f"/items/f47ac10b-58cc-4372-a567-0e02b2c3d{number:03}"
        level = watch.judge(HOME + target, Hop.LINK, HOME, YEAR).level
        assert (level > 0) is (number > 30 + SMALL.barren_pages)
        _visit(watch, target, f"About the {_words(number)} of things" if number < 30 else "Nothing", "/")


def _visit(watch: Traps, target: str, text: str, via: str = "", *leads: str) -> None:
    body = f"<body><p>Welcome to the site</p><p>{text}</p></body>".encode()
    watch.saw(PageEvidence(HOME + target, body, tuple(HOME + lead for lead in leads), HOME + via if via else ""))


def _hash(*key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:40]


def _levels(watch: Traps, targets: Iterable[str]) -> list[int]:
    return [watch.judge(HOME + target, Hop.LINK, f"{HOME}/log", YEAR).level for target in targets]


def test_pages_by_hash_go_in_their_turn_if_they_differ() -> None:
    watch = Traps(TrapSettings())
    changes = [f"/git?a=commit;h={_hash(number)}" for number in range(40)]
    assert _levels(watch, changes[:30]) == [0] * 30
    for number, target in enumerate(changes[:9]):
        _visit(watch, target, f"It mends {_words(number + 100)} of the things", "/log")
    assert _levels(watch, changes) == [0] * 40


def test_a_session_goes_later_after_a_few_pages() -> None:
    watch = Traps(TrapSettings())
    pages = [f"/page?n=1;sid={_hash(number)}" for number in range(40)]
    assert _levels(watch, pages[:9]) == [0] * 9
    for target in pages[:9]:
        _visit(watch, target, "It is always this one", "/log")
    assert min(_levels(watch, pages[9:])) >= 1


def test_a_file_is_known_by_its_own_hash_whatever_change_names_it() -> None:
    watch = Traps(SMALL)

    def blob(version: int, change: int) -> str:
        return f"/git?f=a.c;h={_hash('file', version)};hb={_hash('change', change)}"

    for change in range(60):  # each third change writes the file
        watch.judge(HOME + blob(change // 3, change), Hop.LINK, f"{HOME}/log", YEAR)
        _visit(watch, blob(change // 3, change), f"It holds {_words(change // 3)} of the things", "/log")
    _visit(watch, f"/other?h={_hash('change', 70)}", "Whatever else there is", "/log")
    assert watch.waits(HOME + blob(50, 70), f"{HOME}/log") == FREE
    assert watch.waits(HOME + blob(7, 71), f"{HOME}/log").level > 0


def test_an_image_speaks_for_a_variant_with_the_tally_that_counted_it() -> None:
    watch = Traps(TrapSettings())
    watch.judge(f"{HOME}/shown?h={_hash(0)}", Hop.LINK, HOME, YEAR)
    for number in range(1, 12):
        target = f"/shown?h={_hash(number)}"
        _visit(watch, target, "A photo", "/log")
        watch.saw_part(f"{HOME}/image{number}.png", HOME + target, hash(f"content {number}"))
    assert watch.judge(f"{HOME}/shown?h={_hash(99)}", Hop.LINK, HOME, YEAR) == FREE


def _spent() -> Traps:
    """Twenty pages that are all the same, which is all that is borne here."""
    watch = Traps(SMALL)
    for number in range(21):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
    return watch


def _words(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def test_a_large_real_site_is_never_suspicious() -> None:
    watch = Traps(SMALL)
    for number in range(20_000):
        _visit(watch, f"/article/{number}", f"About the {_words(number)} of things", f"/article/{number - 1}")
    for number in range(2_000):
        _visit(watch, f"/forum/t.php?f={number % 9}&t={number}", f"They talk of {_words(number)} here", "/")
    assert watch.calm
    assert watch.waits(f"{HOME}/article/7", "") == FREE


def test_suspicion_delays_and_a_spent_budget_holds() -> None:
    watch = Traps(SMALL)
    here = f"{HOME}/lost/99"
    levels = []
    for number in range(25):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
        levels.append(watch.waits(here, ""))
    assert levels[0] == FREE
    assert levels[12] == Suspicion(1)
    assert levels[-1] == Suspicion(4, "trap-budget: 20", f"{HOME}/lost/N")
    assert watch.judge(here, Hop.LINK, HOME, YEAR).rule == "trap-budget: 20"
    assert watch.judge(here, Hop.REQUISITE, HOME, YEAR) == FREE
    assert watch.judge(f"{HOME}/real", Hop.LINK, f"{HOME}/", YEAR) == FREE
    assert watch.judge(f"{HOME}/real", Hop.LINK, f"{HOME}/lost/3", YEAR) == Suspicion(4)
    assert watch.judge("http://other.test/lost/3", Hop.LINK, HOME, YEAR) == FREE


def test_a_pattern_that_brought_nothing_barren_is_tried_after_the_budget_is_spent() -> None:
    watch, via = _spent(), f"{HOME}/lost/7"
    for number in range(10):
        assert watch.waits(f"{HOME}/lost/real/{number}", via).rule == ""
        _visit(watch, f"/lost/real/{number}", f"About the {_words(number)} of things", "/lost/7")
    for number in range(traps.TRIES):
        assert watch.waits(f"{HOME}/lost/{_words(number)}/1", via) == Suspicion(4)
        _visit(watch, f"/lost/{_words(number)}/1", "This page could not be found", "/lost/7")
        assert watch.waits(f"{HOME}/lost/{_words(number)}/2", via).rule == "trap-budget: 20"
    assert watch.waits(f"{HOME}/lost/another/1", via).rule == "trap-budget: 20"


def test_the_budget_grows_with_what_the_site_has() -> None:
    watch = Traps(SMALL)
    for number in range(500):
        _visit(watch, f"/article/{number}", f"About the {_words(number)} of things", "/")
    for number in range(99):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
        assert not watch.waits(f"{HOME}/lost/500", "").rule
    for number in range(99, 105):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
    assert watch.waits(f"{HOME}/lost/500", "").rule


def test_what_is_released_makes_progress() -> None:
    watch = _spent()
    here = f"{HOME}/lost/500"
    watch.learn([PatternTally(f"{HOME}/lost/N", 21, 1, 20, barren=20, released=30)])
    assert watch.waits(here, "") == Suspicion(4)
    for number in range(50, 60):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
    assert watch.waits(here, "").rule


def test_a_list_answers_for_what_it_names() -> None:
    watch = Traps(SMALL)
    for number in range(0, 150, 10):
        users = [f"/user/{each}" for each in range(number, number + 10)]
        _visit(watch, f"/members?page={number}", f"A list of {_words(number)}", "/", *users)
        for user in users:
            watch.judge(HOME + user, Hop.LINK, HOME, YEAR)
            _visit(watch, user, "This profile is private", f"/members?page={number}")
        assert not watch.waits(f"{HOME}/user/3", "").rule


def test_no_list_answers_for_hundreds_of_pages_in_vain() -> None:
    """As topics of a forum do, of which each names a form per message; all are named before the first one is seen."""
    watch = Traps(SMALL)
    for number in range(100):
        forms = [f"/quote?p={number}{each}" for each in range(10)]
        _visit(watch, f"/topic/{number}", f"About the {_words(number)} of things", "/", *forms)
        for form in forms:
            watch.judge(HOME + form, Hop.LINK, HOME, YEAR)
    for number in range(dead_ends.IN_VAIN + SMALL.trap_budget):
        assert (watch.waits(f"{HOME}/quote?p=7", "").level > 0) is (number > dead_ends.IN_VAIN)
        _visit(watch, f"/quote?p={number}", "Log in first", f"/topic/{number // 10}")
    _visit(watch, "/quote?p=8", "Log in first", "/topic/1")
    assert watch.waits(f"{HOME}/quote?p=7", "").rule


def test_a_list_is_fruitful_by_what_it_leads_to() -> None:
    """Its own text is the same on each of its pages; the titles are those of links."""
    watch = Traps(SMALL)
    for number in range(100):
        here, about = f"/list?sort=new&page={number}", f"/about/{number}"
        _visit(watch, here, "All articles", f"/list?sort=new&page={number - 1}", about)
        watch.judge(HOME + about, Hop.LINK, HOME + here, YEAR)
        _visit(watch, about, f"About the {_words(number)} of things", here)
    assert not watch.waits(f"{HOME}/list?sort=new&page=100", "").rule


def test_a_few_copies_of_a_page_cost_nothing() -> None:
    """As in a manual in several languages, of which one is written."""
    watch = Traps(SMALL)
    text = "How to set everything up by hand, and what becomes of it"
    for name in ("en", "da", "de", "fr"):
        _visit(watch, f"/{name}/set-up", text, "/")
    assert not any(watch.is_poor(f"{HOME}/{name}/set-up") for name in ("en", "da", "de", "fr"))
    _visit(watch, "/en/set-up?print=yes", text, "/")
    assert watch.is_poor(f"{HOME}/en/set-up?print=yes")
    _visit(watch, "/en/set-up/2", text, "/en/set-up/1")
    assert watch.is_poor(f"{HOME}/en/set-up/2")


def test_very_many_copies_are_barren() -> None:
    watch = Traps(SMALL)
    for number in range(100):
        _visit(watch, f"/{_words(number)}/set-up", "How to set everything up by hand, and what becomes of it", "/")
    free = [number for number in range(100) if not watch.is_poor(f"{HOME}/{_words(number)}/set-up")]
    assert free[:OFTEN] == list(range(OFTEN))
    assert len(free) <= OFTEN + 3  # another page may have taken the place of one in memory


def test_the_budget_of_numbered_pages_in_vain_is_smaller_than_that_of_others() -> None:
    watch = Traps(SMALL)
    for number in range(500):
        _visit(watch, f"/article/{number}", f"About the {_words(number)} of things", "/")
    for number in range(200):
        _visit(watch, f"/uses/{_words(number)}", "No uses", f"/article/{number}")
        _visit(watch, f"/uses/{_words(number)}?sort=up", "No uses", f"/article/{number}")
    assert watch.judge(f"{HOME}/uses/other", Hop.LINK, f"{HOME}/uses/more", YEAR).rule == ""
    assert watch.judge(f"{HOME}/uses/other?sort=up", Hop.LINK, f"{HOME}/uses/more", YEAR).rule == "trap-budget: 20"
    for number in range(10):
        _visit(watch, f"/lost/{number}", "No uses", f"/lost/{number - 1}")
    assert watch.judge(f"{HOME}/lost/500", Hop.LINK, f"{HOME}/lost/9", YEAR).rule == "trap-budget: 20"


def test_an_image_that_is_new_speaks_for_its_page() -> None:
    watch = Traps(SMALL)
    for number in range(100):
        _visit(watch, f"/photo/{number}", "A photo", f"/photo/{number - 1}")
        assert watch.is_poor(f"{HOME}/photo/{number}") or not number
        watch.saw_part(f"{HOME}/image{number}.png", f"{HOME}/photo/{number}", hash(f"content {number}"))
        assert not watch.is_poor(f"{HOME}/photo/{number}")
    assert not watch.waits(f"{HOME}/photo/100", "").rule


def test_an_image_that_is_known_costs_as_its_page_does() -> None:
    watch = Traps(SMALL)
    for number in range(13):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
        watch.saw_part(f"{HOME}/image{number}.png", f"{HOME}/lost/{number}", 7)
    assert watch.waits(f"{HOME}/lost/500", "").rule


def test_an_image_that_is_the_same_with_each_query_costs_nothing() -> None:
    watch = Traps(SMALL)
    for number in range(19):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
        watch.saw_part(f"{HOME}/job.php?id={number}", f"{HOME}/lost/{number}", 7)
    assert not watch.waits(f"{HOME}/lost/500", "").rule
    for number in range(19, 22):
        _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
    assert watch.waits(f"{HOME}/lost/500", "").rule


def test_a_file_speaks_for_a_folder_whose_list_shows_one_new_number() -> None:
    watch = Traps(SMALL)
    _visit(watch, "/", "Index")
    _visit(watch, "/pub/", "Index", "/", "/pub/a/", "/pub/b/", "/pub/c/")
    for number, folder in enumerate(("/pub/a/", "/pub/b/", "/pub/c/")):
        _visit(watch, folder, f"Index {1000 + 7 * number}", "/pub/", f"{folder}1.txt")
        assert watch.is_barren(HOME + folder) == (number > 0)
        _visit(watch, f"{folder}1.txt", f"About the {_words(3000 + number)} of things", folder)
        assert not watch.is_barren(HOME + folder)


def test_plain_budgets() -> None:
    watch = Traps(TrapSettings(pattern_budget=3, directory_budget=5))
    for number in range(3):
        assert not watch.waits(f"{HOME}/a/{number}", "").rule
        _visit(watch, f"/a/{number}", f"About {_words(number)}", "/")
    assert watch.waits(f"{HOME}/a/9", "") == Suspicion(4, "pattern-budget: 3", f"{HOME}/a/N")
    _visit(watch, f"/a/b{_words(0)}", f"More about {_words(0)}", "/")
    _visit(watch, f"/a/b?c={_words(1)}", f"More about {_words(1)}", "/")
    assert watch.judge(f"{HOME}/a/c", Hop.LINK, HOME, YEAR) == Suspicion(4, "directory-budget: 5", f"{HOME}/a/*")


def test_without_a_budget_nothing_is_held_and_without_barren_pages_nothing_is_late() -> None:
    endless, prompt = Traps(TrapSettings(trap_budget=0)), Traps(TrapSettings(barren_pages=0, trap_budget=20))
    for number in range(3000):
        for watch in (endless, prompt):
            _visit(watch, f"/lost/{number}", "This page could not be found", f"/lost/{number - 1}")
    assert endless.waits(f"{HOME}/lost/9", "") == Suspicion(4)
    assert prompt.waits(f"{HOME}/lost/9", "") == FREE


def test_what_was_learned_is_known_again() -> None:
    watch = Traps(SMALL)
    tallies: dict[str, PatternTally] = {}
    for number in range(25):
        found = watch.saw(PageEvidence(f"{HOME}/lost/{number}", b"<p>notfound", (), f"{HOME}/lost/9"))
        tallies.update({tally.pattern: tally for tally in found})
    rule = watch.waits(f"{HOME}/lost/99", "")
    assert rule.rule
    assert Traps(SMALL, tallies.values()).waits(f"{HOME}/lost/99", "") == rule
    assert not Traps(TrapSettings(), tallies.values()).waits(f"{HOME}/lost/99", "").rule
    assert Traps(TrapSettings(traps="off"), tallies.values()).waits(f"{HOME}/lost/99", "") == FREE


def test_memory_of_dead_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_PATTERNS", "MOST_PLACES"):
        monkeypatch.setattr(dead_ends, name, 50)
    mazes, forms = dead_ends.Mazes(), dead_ends.FormPages(lambda _: True)
    for number in range(500):
        here, leads = f"{HOME}/{_words(number)}/{number}", (f"{HOME}/x{number}", f"{HOME}/y{number}")
        mazes.saw(here, leads, leads)
        form = f'<form method=post><input type="hidden" value="{number}">'.encode()
        for _ in range(30):
            forms.saw(here, HOME, form, PageNovelty.NEW)
        assert forms.spent(here)
    assert len(mazes._pages) <= 50
    assert len(forms._patterns) <= 50
    assert forms._spent <= set(forms._patterns)


PLACES = 64


def test_pages_are_variants_although_others_have_their_place() -> None:
    """Their place follows from a hash, which is another one in each process."""
    first, second = (f"{HOME}/{{}}?id={digit * 40}" for digit in ("a1", "b2"))
    place = hash(variant(first.format("page"))) % PLACES
    other = next(name for name in map(str, range(10_000)) if hash(variant(first.format(f"x{name}"))) % PLACES == place)
    ids = ContentIds(PLACES)
    names = ("page", f"x{other}")
    assert not any(ids.is_variant(first.format(name)) for name in names)
    assert all(ids.is_variant(second.format(name)) for name in names)
    assert not any(ids.is_variant(first.format(name)) for name in names)


@pytest.mark.parametrize(
    "name", ["", "word", "//", "http:/", "http://[", "endings ", "endings x", "discoveries x", "site x"]
)
def test_tallies_of_a_damaged_database(name: str) -> None:
    names = (name, *(f"{kind} {name}" for kind in ("endings", "discoveries", "maze")))
    watch = Traps(TrapSettings(), [PatternTally(each, 1 << 62, -5, 1 << 62, 1 << 62) for each in names])
    assert watch.suspicious_sites() == set()
    assert watch.judge(f"{HOME}/{name}", Hop.LINK, HOME, YEAR) == FREE


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MOST_PATTERNS", 50)
    watch = Traps(TrapSettings(barren_pages=1))
    for number in range(500):
        watch.saw(
            PageEvidence(
                f"{HOME}/{_words(number)}/{number}", b"<p>whatever", (f"{HOME}/x{number}", f"{HOME}/y{number}")
            )
        )
    assert len(watch._tallies._tallies) <= 50
    assert len(watch._tallies.levels) <= 50


@pytest.mark.parametrize(
    ("targets", "texts", "worth"),
    [
        ("/a/{n}", "Something about {word}", PageNovelty.NEW),
        ("/a/{n}", "Nothing was found", PageNovelty.NOTHING),
        ("/a?q={word}", "No results for {word}", PageNovelty.NOTHING),
        ("/cal/2026/{n}", "Nothing happens on the {n} of May 2026", PageNovelty.NOTHING),
        ("/cal/{n}", "Monday, {n} May 20{n}", PageNovelty.NOTHING),
        ("/a/{n}", "made at 12:{n}:07 in 0.{n}3 seconds", PageNovelty.NOTHING),
        ("/list?page={n}", "Showing {n}1 to {n}9 of 50", PageNovelty.NOTHING),
        ("/rate/{n}", "1 EUR = 1.{square} USD", PageNovelty.NUMBERS),
        ("/ticket/{n}", "Ticket {square}", PageNovelty.NUMBER),
        ("/obs/{n}", "<table><tr><td>{square}.5<td>{square}3.1<td>7{square}</tr></table>", PageNovelty.NUMBERS),
        ("/a/{n}", "<script>var data = [{square}, {square}1, 3{square}7]</script>", PageNovelty.NUMBERS),
        ("/a/{n}", "<script>nonce = '{long}'; at = 17{square}0000000</script>", PageNovelty.NOTHING),
        ("/a/{n}", "<a href='/{word}'>{word}</a>", PageNovelty.NOTHING),
        ("/a/{n}", "<a href='http://example.org/{word}'>{word}</a>", PageNovelty.NOTHING),
        ("/a/{n}", "<a href='//www.example.org/{word}'>{word}</a>", PageNovelty.NOTHING),
        ("/a/{n}", "<a href='http://other.test/{word}'>on</a>", PageNovelty.NEW),
        ("/a/{n}", "<A class=x HREF=http://other.test/>{word}</A>", PageNovelty.NEW),
        ("/a/{n}", "<a href='mailto:{word}@other.test'>Mail</a>", PageNovelty.NEW),
        ("/a/{n}", "<a href='mailto:?body={word}'>Mail</a>", PageNovelty.NOTHING),
        ("/a/{word}", "<a href='//other.test/save/http://example.org/a/{word}?{long}'>save</a>", PageNovelty.NOTHING),
        ("/a/{n}", "<a href='https://other.test/{long}/{square}'>an advertisement</a>", PageNovelty.NOTHING),
    ],
)
def test_what_a_page_is_worth(targets: str, texts: str, worth: PageNovelty) -> None:
    novelty = Novelty()
    found = []
    for n in range(10, 30):
        given = {"n": n, "word": _words(n) * 3, "square": n * n * 7 % 1000 + 1000, "long": f"{n:032x}a"}
        address = HOME + targets.format(**given)
        body = f"<title>T</title><p>{texts.format(**given)}</p>".encode()
        found.append(novelty.worth(address, pattern(address), body, markup=True))
    assert found[-1] is worth, found


def test_numbers_that_follow_from_the_url_are_nothing_new() -> None:
    novelty = Novelty()
    found = []
    for n in range(40, 60):
        address = f"{HOME}/list?page={n}"
        body = f"<p>Showing {n * 20 - 19} to {n * 20} of 60</p>".encode()
        found.append(novelty.worth(address, pattern(address), body, markup=True))
    assert found[3:] == [PageNovelty.NOTHING] * 17


def test_other_files_are_known_by_their_bytes() -> None:
    novelty = Novelty()
    bodies = (b"a", b"b", *[b"a"] * OFTEN, b"")
    assert [novelty.worth(f"{HOME}/{n}.pdf", f"{HOME}/N.pdf", body, markup=False) for n, body in enumerate(bodies)] == [
        PageNovelty.NEW,
        PageNovelty.NEW,
        *[PageNovelty.COPY] * (OFTEN - 1),
        PageNovelty.NOTHING,
        PageNovelty.NOTHING,
    ]


def test_of_a_large_page_the_rest_is_read_where_its_parts_bring_nothing() -> None:
    novelty, found = Novelty(), PageNovelty.NOTHING
    menu = b"<h1>Data</h1>" + b"<li>the same menu</li>" * 200
    for n in range(20):
        body = menu + f"<p>About the {_words(n)} of things</p><p>and of {_words(n)} others</p>".encode() + menu * 2
        found = novelty.worth(f"{HOME}/a/{n}", f"{HOME}/a/N", body, markup=True)
    assert found is PageNovelty.NEW


def _large(n: int) -> bytes:
    """A page of few, long paragraphs: so few places of the table are taken that two things hardly meet in one."""
    text = b"".join(f"<p>{_words(100 * n + k)} {f'{_words(n)} ' * 100}</p>".encode() for k in range(60))
    return b"<ul>" + b"<li>menu</li>" * 90 + b"<h1>About " + _words(n).encode() + b"</h1>" + text


@pytest.mark.parametrize(("varied", "new"), [(True, 0), (False, 20)])
def test_a_large_page_that_may_have_variants_is_remembered_beyond_its_opening(*, varied: bool, new: int) -> None:
    novelty, shape = Novelty(), f"{HOME}/post/N"
    assert len(_large(1)) > READ
    for n in range(20):
        assert novelty.worth(f"{HOME}/post/{n}", shape, _large(n), markup=True, varied=varied) is PageNovelty.NEW
    for k, expected in enumerate((new, 0, 0)):  # what was not remembered is new once
        found = [
            novelty.worth(f"{HOME}/post/{n}?to={k}", f"{shape}?to", _large(n), markup=True, varied=True)
            for n in range(20)
        ]
        assert abs(found.count(PageNovelty.NEW) - expected) <= 2  # two things may have met in one place of the table


@pytest.mark.parametrize(
    ("address", "leads", "varied"),
    [
        ("/post/7", ["/post/7/print"], True),
        ("/post/7", ["/post/7?reply=3"], True),
        ("/post/7", ["/post/8", "/"], False),
        ("/show?id=7", [], True),
        ("/s/0123456789abcdef0123/home", [], True),
    ],
)
def test_which_pages_may_have_variants(address: str, leads: list[str], *, varied: bool) -> None:
    """Seen by what the first variant of a large page costs: nothing that is remembered is new."""
    traps = Traps(SMALL)
    traps.saw(PageEvidence(HOME + address, _large(7), [HOME + lead for lead in leads], f"{HOME}/"))
    again = f"{HOME}/copy?of=the-same"
    traps.saw(PageEvidence(again, _large(7), (), f"{HOME}/"))
    assert traps.is_poor(again) is varied


@given(st.text(max_size=60), st.sampled_from(Hop))
def test_any_url_is_judged(tail: str, hop: Hop) -> None:
    watch = Traps(SMALL)
    address = f"{HOME}/{tail}"
    assert isinstance(watch.judge(address, hop, HOME, YEAR), Suspicion)
    watch.saw(PageEvidence(address, tail.encode("utf-8", "replace"), (address,)))
    assert isinstance(watch.waits(address, address), Suspicion)
