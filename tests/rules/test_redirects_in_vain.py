"""Redirects to forms and to pages that the crawl knows go last and end; those to new pages are all followed."""

from collections.abc import Callable
from urllib.parse import quote

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.model import PatternTally
from archiver.policy.dead_ends import RETURNS
from archiver.policy.traps import FREE, PageEvidence, Suspicion, Traps
from fixtures.simulated_crawl import HOME, Simulation
from fixtures.trap_lookalikes import Moved, Site, page, prose

PAGES = 250
UNDER_WAY = 6  # requests that are made before an answer counts
FORM = '<form method="post"><p>User</p><input name="user"><p>Password</p><input type="password" name="word"></form>'

Way = tuple[str, Callable[[int], str]]  # the URL on page N, and the target of its redirect


def _site(*ways: Way, pages: int = PAGES, listed: bool = True) -> Site:
    """Pages `/topic/N/`, each with links in *ways* that redirect. *listed*: the home page names all pages."""
    moved = {way.format(n): to(n) for way, to in ways for n in range(pages)}

    def site(target: str) -> bytes | None:
        if target == "/":
            named = [f"/topic/{n}/" for n in range(pages if listed else 1)]
            return page("Home", "<p>Welcome</p>", [(each, "a topic") for each in named])
        if target in moved:
            return Moved(moved[target].encode())
        if target.startswith("/user/login/"):
            return page("Log in", FORM)
        parts = target.strip("/").split("/")
        if parts[0] == "topic" and parts[1].isdigit():
            own = [(way.format(parts[1]), "a link") for way, _ in ways] if len(parts) == 2 else []
            return page(f"Topic {parts[1]}", f"<p>{prose(target)}</p>", own)
        return None

    return site


def _login(number: int) -> str:
    return f"/user/login/?next={quote(f'/topic/{number}/report/', safe='')}"


def _asked(simulation: Simulation, start: str, end: str = "") -> list[str]:
    return [target for target in simulation.asked if target.startswith(start) and target.endswith(end)]


@pytest.mark.parametrize("way", ["/topic/{}/report/", "/report?topic={}", "/like.php?post={}&do=up"])
def test_few_redirects_to_one_form_are_followed(way: str) -> None:
    def to(number: int) -> str:
        return f"/user/login/?next={quote(way.format(number), safe='')}"

    simulation = Simulation(_site((way, to))).run()
    assert len(_asked(simulation, "/topic/", "/")) >= PAGES
    start = way.partition("{")[0]
    redirects = [target for target in _asked(simulation, start) if target.strip("/").count("/") != 1 or "?" in target]
    assert RETURNS <= len(redirects) <= 3 * RETURNS + UNDER_WAY
    assert len(_asked(simulation, "/user/")) <= RETURNS + UNDER_WAY
    assert sum(simulation.held.values()) >= PAGES - 3 * RETURNS - UNDER_WAY


@pytest.mark.parametrize(
    "way",
    [
        ("/user/switch?return=/topic/{}/", lambda n: f"/topic/{n}/"),
        ("/lang/de?next=/topic/{}/", lambda n: f"/topic/{n}/"),
        ("/dismiss/{}", lambda _: "/"),
    ],
)
def test_redirects_to_known_pages_go_last_and_end(way: Way) -> None:
    simulation = Simulation(_site(way), TrapSettings(trap_budget=50)).run()
    start = way[0].partition("{")[0]
    redirects = _asked(simulation, start)
    assert 50 <= len(redirects) <= 50 + UNDER_WAY or len(redirects) == PAGES  # as many as pages, if not in the query
    pages = [simulation.asked.index(f"/topic/{n}/") for n in range(PAGES)]
    late = [at for at, target in enumerate(simulation.asked) if target in redirects]
    assert max(pages) < late[UNDER_WAY + 16]
    assert sum(simulation.held.values()) == PAGES - len(redirects)


@pytest.mark.parametrize(
    "way",
    [
        ("/goto?post={}", lambda n: f"/topic/{n}/last"),
        ("/topic/{}/unread/", lambda n: f"/topic/{n}/2"),
        ("/goto?post={}", lambda n: f"/topic/{n}/last" if n % 50 == 7 else f"/topic/{n}/"),
        ("/goto?post={}", lambda n: f"/topic/{n}/last" if n > PAGES - 20 else _login(n) if n < 2 else f"/topic/{n}/"),
    ],
)
def test_redirects_to_new_pages_are_all_followed(way: Way) -> None:
    simulation = Simulation(_site(way), TrapSettings(trap_budget=300)).run()
    assert {way[0].format(n) for n in range(PAGES)} <= set(simulation.asked)
    assert {way[1](n) for n in range(PAGES)} <= set(simulation.asked)
    assert not simulation.held


def test_pages_that_only_redirects_lead_to_are_all_found() -> None:
    simulation = Simulation(
        _site(("/next/{}", lambda n: f"/topic/{n + 1}/"), pages=100, listed=False), TrapSettings(trap_budget=20)
    ).run()
    assert {f"/topic/{n}/" for n in range(100)} <= set(simulation.asked)
    assert not simulation.held


def _watch(count: int, target: str) -> Traps:
    watch = Traps(TrapSettings(trap_budget=20))
    for number in range(15):
        watch.saw(PageEvidence(f"{HOME}/{'abcdefghijklmno'[number]}", f"<p>{prose(str(number))}</p>".encode()))
    watch.met([f"{HOME}/known"])
    for number in range(count):
        watch.missed(f"{HOME}/go?n={number}", 302, target.format(number))
    return watch


def test_redirects_cost_no_other_page_its_place() -> None:
    watch = _watch(100, f"{HOME}/known")
    assert watch.waits(f"{HOME}/go?n=500", "") == Suspicion(
        4, "trap-budget: 20 redirects to known pages", f"{HOME}/go?n"
    )
    assert watch.waits(f"{HOME}/other/5", "") == FREE
    watch.learn([PatternTally(f"{HOME}/go?n", 0, 0, 0, released=20)])
    assert watch.waits(f"{HOME}/go?n=500", "") == Suspicion(4)
    watch.saw(PageEvidence(f"{HOME}/go?n=500", b"<p>This one is a page</p>"))
    assert watch.waits(f"{HOME}/go?n=501", "") == FREE


@pytest.mark.parametrize("target", [f"{HOME}/go/?n={{}}", "https://site.test/go?n={}", "https://elsewhere.test/{}"])
def test_redirects_to_another_spelling_or_to_another_site_do_not_count(target: str) -> None:
    assert _watch(100, target).waits(f"{HOME}/go?n=500", "") == FREE
