"""Forms that are the same under each URL: a few are fetched, and pages that only look like them are all fetched."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from urllib.parse import quote

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.model import PatternTally
from archiver.policy.dead_ends import ABOUT, RETURNS
from archiver.policy.traps import FREE, PageEvidence, Suspicion, Traps
from archiver.policy.url_forms import pattern
from fixtures.simulated_crawl import HOME, Simulation
from fixtures.trap_lookalikes import Site, digest, page, prose, word

PAGES = 150
UNDER_WAY = 6  # requests that are made before an answer counts

Form = Callable[[str, str], str]


def _site(pages: str, ways: tuple[str, ...], form: Form) -> Site:
    """Pages at *pages*, each of which names forms: *ways* with its target, escaped or not, and with its number."""
    named = {pages.format(number, word=word(number)): number for number in range(PAGES)}
    back = {
        way.format(
            target=target,
            escaped=quote(target, safe=""),
            name=target[1:],
            n=number,
            base64=quote(b64encode(f"{HOME}{target}".encode()).decode(), safe=""),
        ): target
        for target, number in named.items()
        for way in ways
    }

    def site(target: str) -> bytes | None:
        if target == "/":
            return page("Home", "<p>Welcome</p>", [(each, "a page") for each in named])
        if target in named:
            own = [each for each, of in back.items() if of == target]
            return page(f"Page {named[target]}", f"<p>{prose(target)}</p>", [(each, "a form") for each in own])
        if target.startswith(("/bug.gif?", "/thumb.gif?")):
            return b"GIF89a" + (digest(target).encode() if "thumb" in target else b"")
        if target not in back:
            return None
        token = f'<input type="hidden" name="token" value="{digest(target)}">'
        return page("A form", form(target, back[target]).replace("</form>", f"{token}</form>"), [("/", "home")])

    return site


def _hidden(name: str) -> Form:
    return lambda target, of: (
        f'<form action="/in" method="post"><input type="hidden" name="{name}" value="{of}">'
        '<p>User name</p><input name="who"><p>Password</p><input type="password" name="word"></form>'
    )


def _hidden_by(attribute: str) -> Form:
    """A field of text that only a rule of CSS or an attribute hides."""
    return lambda target, of: _hidden("next")(target, of).replace('type="hidden"', f'type="text" {attribute}')


def _to_itself(target: str, of: str) -> str:
    return '<form method=POST><p>Password</p><INPUT TYPE=password name="word"></form>'


def _with_a_bug(target: str, of: str) -> str:
    """A page with an image that is the same under each URL, and counts visitors."""
    return _hidden("id")(target, of.partition("=")[2]) + f'<img src="/bug.gif?of={of}&at={digest(of)[:8]}">'


def _number(target: str, of: str) -> str:
    number = of.rpartition("/")[2]
    return f'<form action="/send" method="post"><input type=hidden name=what value={number}><p>Why?</p></form>'


@pytest.mark.parametrize(
    ("pages", "way", "form", "enough"),
    [
        ("/topic/{}", "/login?next={target}", _hidden("next"), RETURNS),
        ("/topic/{}", "/accounts/login/?next={escaped}", _hidden("next"), RETURNS),
        ("/topic/{}/", "/wp-login.php?redirect_to=http%3A%2F%2Fsite.test{escaped}", _hidden("redirect_to"), RETURNS),
        ("/topic/{}", "/_login?destination={escaped}", _hidden_by('style="display: none;"'), RETURNS),
        ("/topic/{}", "/login?next={target}", _hidden_by("class=hidden"), RETURNS),
        ("/topic/{}", "/login?next={target}", _hidden_by("hidden"), RETURNS),
        ("/node/{}", "/user/login?destination={name}", _to_itself, RETURNS),
        ("/node/{}", "/user/login?destination={name}%23comment-form", _to_itself, RETURNS),
        ("/Some_{}_page", "/index.php?title=Special:UserLogin&returnto={name}", _hidden("wpReturnTo"), RETURNS),
        ("/t.php?t={}", "/login.php?redirect={escaped}", _hidden("redirect"), RETURNS),
        ("/t.php?t={}", "/ucp.php?mode=login&redirect={name}", _to_itself, RETURNS),
        ("/doku.php?id=one:name{}", "/{name}&do=login&sectok=", _with_a_bug, 2 * RETURNS),
        ("/{word}", "/{name}?do=login", _to_itself, RETURNS),
        ("/post/{}", "/report?post={n}", _number, ABOUT),
        ("/post/{}", "/reply?quote={n}&style=plain", lambda *_: "<form method=post><p>Reply</p></form>", ABOUT),
        ("/post/{}", "/post/{n}/share", lambda *_: "<form action='' method='post'><p>To</p></form>", ABOUT),
    ],
)
def test_few_forms_are_fetched_and_all_pages(pages: str, way: str, form: Form, enough: int) -> None:
    simulation = Simulation(_site(pages, (way,), form)).run()
    assert {pages.format(number, word=word(number)) for number in range(PAGES)} <= set(simulation.asked)
    # Where two URLs share a place in a table, which depends on the hashes of a run, a form may count as another page.
    assert sum(".gif" not in target for target in simulation.asked) - PAGES - 1 <= 3 * enough + UNDER_WAY
    assert sum(simulation.held.values()) >= PAGES - 3 * enough - UNDER_WAY
    assert len(simulation.held) == 1


def test_forms_on_pages_with_names_of_their_own_are_held_under_one_pattern() -> None:
    simulation = Simulation(_site("/{word}", ("/{name}?action=login",), _to_itself)).run()
    assert list(simulation.held) == [f"{HOME}/*?action=login"]


def test_two_forms_that_take_turns_are_known_both() -> None:
    def form(target: str, of: str) -> str:
        return _hidden("next")(target, of) + ("<p>New here?</p>" if "%2F" in target else "")

    ways = ("/account?next={target}", "/account?next={escaped}")
    simulation = Simulation(_site("/topic/{}", ways, form)).run()
    assert len(simulation.asked) - PAGES - 1 <= 5 * RETURNS


def _titled(site: Site) -> Site:
    """*site* with words of its own in the title of each topic."""

    def titled(target: str) -> bytes | None:
        body = site(target)
        if body is None or not target.startswith("/topic/"):
            return body
        return re.sub(rb"Page ([0-9]+)", lambda found: _title(found[1].decode()).encode(), body)

    return titled


def _title(number: str) -> str:
    return f"{word(7 * int(number))} and {word(3 * int(number) + 1)}"


def _quoting(form: Form) -> Form:
    return lambda target, of: f"<h2>About the topic {_title(of.rpartition('/')[2])}</h2>{form(target, of)}"


def _in_base64(target: str, of: str) -> str:
    return _hidden("return")(target, b64encode(f"{HOME}{of}".encode()).decode())


@pytest.mark.parametrize(
    ("way", "form", "enough"),
    [
        ("/login?next={target}", _quoting(_hidden("next")), RETURNS),
        ("/report?post={n}", _quoting(_number), ABOUT),
        ("/login?next={target}", _in_base64, RETURNS),
        ("/login?return={base64}", _in_base64, RETURNS),
        ("/login?return={base64}", _hidden("return"), RETURNS),
        ("/login?return={base64}", _quoting(_to_itself), RETURNS),
    ],
)
def test_forms_that_quote_a_title_or_write_a_page_in_base64(way: str, form: Form, enough: int) -> None:
    simulation = Simulation(_titled(_site("/topic/{}", (way,), form))).run()
    assert {f"/topic/{number}" for number in range(PAGES)} <= set(simulation.asked)
    assert len(simulation.asked) - PAGES - 1 <= enough + UNDER_WAY
    assert len(simulation.held) == 1


@pytest.mark.parametrize(
    ("way", "form"),
    [
        ("/reply?to={n}", lambda target, of: f"<p>{prose(of)}</p>{_quoting(_number)(target, of)}"),
        ("/map?of={n}", lambda target, of: f"<p>At {int(digest(of)[:8], 16)}</p>{_quoting(_number)(target, of)}"),
        ("/look?at={base64}", lambda target, of: f"<p>{prose(of)}</p>{_in_base64(target, of)}"),
        ("/entry?of={base64}", lambda target, of: _hidden("return")(target, b64encode(target.encode()).decode())),
    ],
)
def test_pages_with_more_than_a_title_are_all_fetched(way: str, form: Form) -> None:
    simulation = Simulation(_titled(_site("/topic/{}", (way,), form))).run()
    assert len(set(simulation.asked)) >= 2 * PAGES + 1
    assert not simulation.held


@pytest.mark.parametrize(
    ("way", "form"),
    [
        ("/print?url={target}", lambda _, of: f"<p>{prose(of)}</p>{_hidden('url')(_, of)}"),
        ("/viewer?file={target}", lambda *_: "<p>It is loaded</p><form><input type=password></form>"),
        ("/viewer?file={target}", lambda target, _: _hidden("next")(target, target)),
        ("/look?at={target}", lambda _, of: f"<img src='/thumb.gif?of={of}'>{_hidden('at')(_, of)}"),
        ("/app?show={target}", lambda _, of: f'<div id="app"></div>{_hidden("show")(_, of)}'),
        ("/item?n={n}", lambda _, of: f'<img src="/{of[7:]}.gif"><form method=post><p>Comment</p></form>'),
        ("/item?n={n}", _hidden("n")),
        ("/item?n={n}", lambda target, _: f"<p>{prose(target)}</p><form method=post><p>Comment</p></form>"),
        ("/item/{n}/map", lambda _, of: f"<form method=post><p>At {int(digest(of)[:8], 16)}</p></form>"),
    ],
)
def test_pages_that_are_like_forms_are_all_fetched(way: str, form: Form) -> None:
    site = _site("/topic/{}", (way,), form)
    simulation = Simulation(site).run()
    assert len(set(simulation.asked)) >= 2 * PAGES + 1
    assert not simulation.held


def test_forms_after_many_real_pages_hold_none_of_the_others() -> None:
    def form(target: str, of: str) -> str:
        return _hidden("next")(target, of) if 40 <= int(of.rpartition("/")[2]) < 60 else f"<p>{prose(target)}</p>"

    simulation = Simulation(_site("/topic/{}", ("/open?next={target}",), form)).run()
    assert len(simulation.asked) == 2 * PAGES + 1
    assert not simulation.held


def test_one_real_page_among_forms_lets_many_more_of_them_be_fetched() -> None:
    def form(target: str, of: str) -> str:
        return f"<p>{prose(of)}</p>" if of.endswith("5") else _hidden("next")(target, of)

    simulation = Simulation(_site("/topic/{}", ("/open?next={target}",), form)).run()
    assert not simulation.held


@pytest.mark.parametrize("settings", [TrapSettings(trap_budget=0), TrapSettings(traps="off")])
def test_without_a_limit_all_forms_are_fetched(settings: TrapSettings) -> None:
    simulation = Simulation(_site("/topic/{}", ("/login?next={target}",), _hidden("next")), settings).run()
    assert Counter(pattern(HOME + target) for target in simulation.asked)[f"{HOME}/login?next"] == PAGES


def _broken(real: frozenset[int], links: int = 3000) -> Site:
    """A site with links to pages of one pattern, of which only those with a number in *real* are there."""

    def site(target: str) -> bytes | None:
        kind, _, name = target[1:].partition("/")
        if not kind:
            named = [(f"/old/{n}", "old") for n in range(links)] + [(f"/news/{n}", "news") for n in range(50)]
            return page("Home", "<p>Welcome</p>", named)
        real_one = kind == "news" or (name.isdigit() and int(name) in real)
        return page(f"Page {name}", f"<p>{prose(target)}</p>") if real_one else None

    return site


def test_links_of_one_pattern_that_all_lead_nowhere_go_last_and_end() -> None:
    simulation = Simulation(_broken(frozenset()), TrapSettings(trap_budget=200)).run()
    asked = [target for target in simulation.asked if target.startswith("/old/")]
    assert 200 <= len(asked) <= 200 + UNDER_WAY
    assert max(map(simulation.asked.index, (f"/news/{n}" for n in range(50)))) < 50 + 20
    assert list(simulation.held) == [f"{HOME}/old/N"]


@pytest.mark.parametrize("real", [range(0, 3000, 60), range(150, 170), range(190, 2000), range(150, 153)])
def test_a_few_pages_that_are_there_speak_for_all_of_their_pattern(real: range) -> None:
    simulation = Simulation(_broken(frozenset(real)), TrapSettings(trap_budget=200)).run()
    assert {f"/old/{n}" for n in real} <= set(simulation.asked)
    assert not simulation.held


def test_missing_pages_cost_no_other_page_its_place() -> None:
    watch = Traps(TrapSettings(trap_budget=20))
    for number in range(100):
        watch.missed(f"{HOME}/old/{number}", 404)
        watch.missed(f"{HOME}/busy/{number}", 503)
    for number in range(15):
        watch.saw(PageEvidence(f"{HOME}/lost/{number}", b"<p>It is always this page</p>"))
    assert watch.waits(f"{HOME}/old/500", "") == Suspicion(4, "trap-budget: 20 missing pages", f"{HOME}/old/N")
    assert watch.waits(f"{HOME}/lost/500", "") == Suspicion(1)
    assert watch.waits(f"{HOME}/busy/500", "") == FREE
    watch.learn([PatternTally(f"{HOME}/old/N", 0, 0, 0, released=20)])
    assert watch.waits(f"{HOME}/old/500", "") == Suspicion(4)
    watch.saw(PageEvidence(f"{HOME}/old/500", b"<p>This one is there</p>"))
    assert watch.waits(f"{HOME}/old/501", "") == FREE
