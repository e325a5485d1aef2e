"""Whole sites, crawled without a network: real ones are fetched whole, and traps end by themselves."""

from base64 import b32encode
from functools import cache, partial
from hashlib import sha1
from urllib.parse import parse_qsl, urlencode
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


@pytest.mark.parametrize("name", [name for name in endless_sites.TRAPS if "made-up" in name])
@pytest.mark.parametrize("stops", [(600,), (500, 1000)])
def test_a_resumed_crawl_of_made_up_text_ends(name: str, stops: tuple[int, ...]) -> None:
    simulation = Simulation(endless_sites.alone(name))
    for stop in (*stops, 2 * MOST):
        simulation.run(stop)
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


SHELVES, GOODS, SHOWN = 8, 80, 8
PRODUCTS = {f"/item/{trap_lookalikes.word(1000 + number)}" for number in range(SHELVES * GOODS)}
FURTHER = {f"/shelf/{trap_lookalikes.word(shelf)}/?page={n}" for shelf in range(SHELVES) for n in range(2, 11)}


def _shop(target: str) -> bytes | None:
    """A shop of eight shelves with ten pages each, of which each names the next. Every page has sixteen filters.

    Filters add up without end, and show the first products of a shelf again.
    """
    path, _, query = target.partition("?")
    _, kind, name, *_ = f"{path}//".split("/")
    shelves = {trap_lookalikes.word(shelf): shelf for shelf in range(SHELVES)}
    if target == "/":
        return trap_lookalikes.page("Shop", "<p>Welcome</p>", [(f"/shelf/{each}/", each) for each in shelves])
    if kind == "item":
        return trap_lookalikes.page(name, f"<p>{trap_lookalikes.prose(name)}</p>", [("/", "home")])
    if kind != "shelf" or name not in shelves:
        return None
    filters = [pair for pair in parse_qsl(query) if pair[0] == "filter"]
    number, first = int(dict(parse_qsl(query)).get("page", 1)), shelves[name] * GOODS
    inside = [n for n in range(first, first + GOODS) if all(crc32(f"{n}{value}".encode()) % 3 for _, value in filters)]
    named = [trap_lookalikes.word(1000 + n) for n in inside[(number - 1) * SHOWN : number * SHOWN]]
    rows = "".join(f'<p><a href="/item/{each}">{each}</a> {crc32(each.encode()) % 999} EUR</p>' for each in named)
    ways = [(f"{path}?{urlencode([*filters, ('filter', f'{what}{n}')])}", what) for what in "abcd" for n in range(4)]
    if number * SHOWN < len(inside):
        ways.append((f"{path}?{urlencode([*filters, ('page', str(number + 1))])}", "next"))
    return trap_lookalikes.page(name, f"<p>{len(inside)} products</p>{rows}", ways)


@pytest.mark.parametrize("budget", [200, 1100])
def test_the_pages_of_a_list_go_before_its_filters(budget: int) -> None:
    simulation = Simulation(_shop, TrapSettings(trap_budget=budget)).run(5000)
    asked = set(simulation.asked)
    assert asked >= PRODUCTS
    assert asked >= FURTHER
    assert len(asked) - len(PRODUCTS | FURTHER) < 1.5 * budget


LETTERS = [b32encode(sha1(str(number).encode()).digest()).decode() for number in range(300)]
MONTHS = 60
MAIL = {f"/{kind}/{name}/" for kind in ("thread", "message") for name in LETTERS}


def _mail(target: str) -> bytes | None:
    """A mail archive with ids like session ids. Each page links to two forms that return to it.

    The forms show nothing but each other, and a token; they write the address to return to in another way.
    """
    path, _, query = target.partition("?")
    kind, _, name = path.strip("/").partition("/")
    links = [(f"/{form}/?next={path}", form) for form in ("login", "signup")]
    if path == "/":
        return trap_lookalikes.page("List", "<p>Months</p>", [*links, *((f"/month/{n}/", "m") for n in range(MONTHS))])
    if kind in {"login", "signup"}:
        other = "signup" if kind == "login" else "login"
        token = f"<input type=hidden name=token value={trap_lookalikes.digest(target)}>"
        back = (f"/{other}/?{query.replace('/', '%2F')}", other)
        return trap_lookalikes.page("Your account", f"<p>Give a name and a password</p>{token}", [*links, back])
    if kind == "month" and name.isdigit():
        inside = LETTERS[int(name) - MONTHS // 2 :: MONTHS // 2] if int(name) >= MONTHS // 2 else []
        named = [(f"/thread/{each}/", each) for each in inside]
        return trap_lookalikes.page(f"Month {name}", f"<p>{len(inside)} discussions</p>", [*links, *named])
    if kind == "thread" and name in LETTERS:
        named = [(f"/message/{name}/", "link")]
        return trap_lookalikes.page("Thread", f"<p>{trap_lookalikes.prose(name)}</p>", [*links, *named])
    return trap_lookalikes.page("Message", f"<p>{trap_lookalikes.prose(name, 'rest')}</p>", links)


def test_forms_that_name_each_other_go_behind_pages_with_ids_like_those_of_sessions() -> None:
    asked = Simulation(_mail).run(5000).asked
    assert set(asked) >= MAIL
    assert max(map(asked.index, MAIL)) < 1.5 * len(MAIL)


def _wiki(target: str) -> bytes | None:
    """A wiki of forty pages. Each has four views that bring nothing, and a list of its old versions."""
    given = dict(parse_qsl(target.partition("?")[2]))
    number = given.get("id", "")
    if "rev" in given or (number and "do" not in given):
        ways = [(f"/?id={number}&do={what}", what) for what in ("index", "media", "links", "recent", "old")]
        text = f"<p>{trap_lookalikes.prose(number, given.get('rev'))}</p>"
        return trap_lookalikes.page("A page", text, [(f"/?id={n}", "a page") for n in range(40)] + ways)
    old = [(f"/?id={number}&rev={rev}", "old") for rev in range(1, 4)] if given.get("do") == "old" else []
    return trap_lookalikes.page("Wiki", f"<p>{given.get('do', 'start')}</p>", [("/?id=0", "start"), *old])


def test_pages_that_are_found_when_the_budget_is_spent_are_tried() -> None:
    asked = Simulation(_wiki, TrapSettings(trap_budget=60)).run(2000).asked
    lists = sum("do=old" in target for target in asked)
    assert 10 < lists < 40  # the budget is spent
    assert sum("rev=" in target for target in asked) == 3 * lists
