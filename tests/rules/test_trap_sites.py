"""Whole sites, crawled without a network: real ones are fetched whole, and traps end by themselves."""

from functools import cache, partial
from urllib.parse import parse_qsl
from zlib import crc32

import pytest

from archiver.config.scope_settings import TrapSettings
from archiver.policy.novelty import READ
from fixtures import endless_sites, trap_lookalikes
from fixtures.simulated_crawl import HOME, Simulation

MOST = 1500  # requests that a trap may cost
PARTS = cache(partial(trap_lookalikes.family, "parts", trap_lookalikes.parts(150)))


@pytest.mark.parametrize("name", trap_lookalikes.FAMILIES)
def test_a_site_of_real_pages_is_fetched_whole(name: str) -> None:
    family = trap_lookalikes.named_family(name)
    asked = {trap_lookalikes.plain(target) for target in Simulation(family.site).run().asked}
    assert family.real <= asked


@pytest.mark.parametrize("name", endless_sites.TRAPS)
def test_a_trap_ends_by_itself(name: str) -> None:
    simulation = Simulation(endless_sites.alone(name)).run(2 * MOST)
    assert len(simulation.asked) < MOST
    assert simulation.held


@pytest.mark.parametrize("name", endless_sites.TRAPS)
def test_a_trap_beside_a_real_site_costs_none_of_its_pages(name: str) -> None:
    family = PARTS()
    simulation = Simulation(endless_sites.beside(family.site, name), TrapSettings(trap_budget=200)).run(MOST)
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) - len(family.real) < 500  # a budget of 200, and what is seen before it counts


@pytest.mark.parametrize("name", ["reply, share and print links", "facets in every order", "session ids in the path"])
def test_a_trap_of_large_pages_ends_by_itself(name: str) -> None:
    """Of large pages only samples are read, and of most of them only the opening is remembered."""
    trap = endless_sites.alone(name)
    menu, foot = (
        b"".join(b"<li>%b %d of all pages</li>" % (word, n) for n in range(300)) for word in (b"Menu", b"Foot")
    )

    def site(target: str) -> bytes | None:
        body = trap(target)
        return None if body is None else menu + body + foot

    assert len(site("/") or b"") > 2 * READ
    simulation = Simulation(site, TrapSettings(trap_budget=200)).run(MOST)
    assert len(simulation.asked) < 400  # a budget of 200, real posts, and their print views, which are copies
    assert simulation.held


def test_several_traps_on_one_site_share_one_budget() -> None:
    family = trap_lookalikes.family("weather", trap_lookalikes.weather())
    names = [name for name in endless_sites.TRAPS if "made-up" not in name]
    simulation = Simulation(endless_sites.beside(family.site, *names)).run(5 * MOST)
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) - len(family.real) < 1.5 * MOST  # what each of them shows first is new


def test_how_many_answers_are_under_way_costs_no_page() -> None:
    family = trap_lookalikes.family("weather", trap_lookalikes.weather(20, 12))
    simulation = Simulation(endless_sites.beside(family.site, "calendar with a page for each day"), width=40).run(
        3 * MOST
    )
    assert family.real <= set(simulation.asked)
    assert len(simulation.asked) - len(family.real) < MOST


def test_a_budget_that_is_spent_holds_what_is_left() -> None:
    settings = TrapSettings(trap_budget=300)
    simulation = Simulation(endless_sites.alone("calendar with a page for each day"), settings).run(MOST)
    assert 300 <= len(simulation.asked) < 450
    assert sum(simulation.held.values()) > 50


POSTS, ON_PAGE = 200, 10
LISTS = {f"/?cat={cat}&paged={number}" for cat in range(4) for number in range(2, 6)}
MORE_COMMENTS = {f"/?p={post}&cpage=1" for post in range(0, POSTS, 20)}


def _blog(target: str) -> bytes | None:
    """A blog whose pages differ in their queries only, as that of a site without rewritten addresses.

    Lists repeat the beginnings of posts. Few posts have a second page of comments, but all link to one, which is mostly
    a copy. Each comment has a link for replies, which leads to the post again.
    """
    given = dict(parse_qsl(target.partition("?")[2]))
    if "p" not in given:
        cat, number = int(given.get("cat", 0)), int(given.get("paged", 1))
        first = cat * POSTS // 4 + (number - 1) * ON_PAGE
        posts = "".join(
            f"<h2><a href='/?p={post}'>x</a></h2><p>{_text(post)}</p>" for post in range(first, first + ON_PAGE)
        )
        others = "".join(f"<a href='/?cat={other}'>c</a>" for other in range(4))
        following = f"<a href='/?cat={cat}&paged={number + 1}'>more</a>" if number < POSTS / 4 / ON_PAGE else ""
        return f"<h1>Blog</h1>{posts}{others}{following}".encode()
    post = int(given["p"])
    more = "cpage" in given and f"/?p={post}&cpage=1" in MORE_COMMENTS
    replies = "".join(f"<a href='/?p={post}&replytocom={post * 9 + k}'>reply</a>" for k in range(6))
    text = f"<p>{_text(post)}</p><p>{_text(post, 'rest')}</p><p>{_text(post, 'comments', more)}</p>"
    return f"<h1>Blog</h1><a href='/?cat=0'>c</a>{text}<a href='/?p={post}&cpage=1'>comments</a>{replies}".encode()


NAMED = {f"/2020/{1 + post % 12:02d}/{crc32(str(post).encode()):x}-post/": post for post in range(POSTS)}


def _chain(target: str) -> bytes | None:
    """A blog whose posts have names and lead to the next ones only, with links for replies as above."""
    page = target.partition("?")[0]
    post = NAMED.get(page, 0)
    text = f"<p>{_text(post)}</p>" if page != "/" else "<p>Welcome to this blog</p>"
    replies = "".join(f"<a href='{page}?replytocom={post * 9 + k}'>reply</a>" for k in range(6 if page != "/" else 0))
    following = "".join(f"<a href='{name}'>next</a>" for name in list(NAMED)[post : post + 3])
    return f"<h1>Blog</h1><a href='/'>home</a><a href='/?about'>about</a>{text}{replies}{following}".encode()


def test_links_with_a_query_speak_against_no_page_without_one() -> None:
    simulation = Simulation(_chain, TrapSettings(trap_budget=100)).run(2000)
    assert set(NAMED) <= set(simulation.asked)
    assert len(simulation.asked) < 2 * POSTS
    assert f"{HOME}/N/*?*" in simulation.held


def _text(*about: object) -> str:
    number = str(crc32(repr(about).encode()))
    return " ".join("abcdefghij"[int(digit)] * (3 + place) for place, digit in enumerate(number))


def test_where_all_pages_are_in_one_directory_those_that_bring_least_go_last() -> None:
    simulation = Simulation(_blog, TrapSettings(trap_budget=500)).run(5000)
    asked = set(simulation.asked)
    assert {f"/?p={post}" for post in range(POSTS)} <= asked
    assert asked >= LISTS
    assert asked >= MORE_COMMENTS
    assert simulation.held[f"{HOME}/?p&replytocom"] > POSTS
