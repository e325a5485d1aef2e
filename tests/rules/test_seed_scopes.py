"""Seeds with settings of their own: who judges a URL, and how the rule is named."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.scope_settings import ScopeSettings
from archiver.config.seeds import SeedSetting, read_seed
from archiver.model import Claim, Hop, Link, NewUrl, Refusal
from archiver.policy.scope import Moved, Scope
from archiver.policy.seed_scopes import Scopes, SeedGroup, scope_of

BLOG = "http://e.org/blog/"
NEWS = "http://e.org/news/"
HOME = "http://f.org/"


def registered_domain(host: str) -> str:
    return ".".join(host.split(".")[-2:])


def scopes(*seeds: str, **settings: object) -> Scope | Scopes:
    """*seeds* as lines of a list."""
    pairs = [read_seed(line) for line in seeds]
    own = tuple(own for _, own in pairs if own is not None)
    given = ScopeSettings(**settings, seed=own)  # type: ignore[arg-type]
    return scope_of(given, [address for address, _ in pairs], registered_domain)


def rule(judge: Scope | Scopes, url: str, hop: Hop = Hop.LINK, depth: int = 0, path: str = "L") -> str:
    """The rule that refuses, or "" where the link is taken."""
    verdict = judge.judge(Link(url, hop), Claim(1, BLOG, 1, Hop.LINK, path, depth, 0, 0, seed=BLOG))
    return verdict.rule if isinstance(verdict, Refusal) else ""


def test_without_own_settings_nothing_is_different() -> None:
    assert type(scopes(BLOG, HOME)) is Scope


def test_a_url_is_judged_by_the_seeds_that_hold_it() -> None:
    judge = scopes(
        f"{BLOG} scope=prefix max-depth=2 exclude=/tag/", f"{NEWS} scope=prefix max-depth=2", HOME, max_depth=4
    )
    told = partial(rule, judge)
    assert told(f"{BLOG}a", depth=1) == ""
    assert told(f"{BLOG}a", depth=2) == f"seed[0]: {BLOG} max-depth=2"
    assert told(f"{NEWS}a/b/c", depth=2) == f"seed[1]: {NEWS} max-depth=2"
    assert told(f"{BLOG}tag/x") == f"seed[0]: {BLOG} exclude=/tag/"
    assert told(f"{NEWS}tag/x") == ""
    assert told("http://e.org/tag/x") == f"seed[0]: {BLOG} exclude=/tag/"
    assert told("http://www.e.org/other") == f"seed[0]: {BLOG} scope=prefix"
    assert told(f"{HOME}a", depth=3) == ""
    assert told(f"{HOME}a", depth=4) == "max-depth: 4"
    assert told("http://g.org/") == "scope: host"
    assert told("http://g.org/i.gif", Hop.REQUISITE) == ""


def test_the_nearest_seed_is_found_whatever_the_letters_of_escapes() -> None:
    own = {name: SeedSetting(f"http://e.org/{name}/", (("max-depth", 1),)) for name in ("a", "caf%C3%A9")}
    group = SeedGroup(ScopeSettings(), Scope(ScopeSettings(), (), registered_domain), tuple(enumerate(own.values())))
    for number, one in enumerate(own.values()):
        group.place(one.url, number, "e.org")
    for address in ("http://e.org/caf%c3%a9/", "http://e.org/caf%c3%a9/x", "http://e.org/caf%C3%A9/x?y"):
        assert group.nearest(address, "e.org") == (1, own["caf%C3%A9"])


def test_one_that_takes_it_is_enough() -> None:
    judge = scopes("http://e.org/ max-depth=1 exclude=/blog/secret", f"{BLOG} scope=prefix max-depth=5")
    assert rule(judge, f"{BLOG}a", depth=3) == ""
    assert rule(judge, f"{BLOG}secret") == ""
    assert rule(judge, "http://e.org/a", depth=1) == "seed[0]: http://e.org/ max-depth=1"
    assert isinstance(judge, Scopes)
    for address, depth in ((f"{BLOG}a", 3), (f"{BLOG}secret", 0)):
        assert judge.own_rule(address, depth) == f"seed[1]: {BLOG} scope=prefix"
    assert judge.own_rule(f"{BLOG}a", 6) == ""
    assert rule(judge, f"{BLOG}a", depth=5) == "seed[0]: http://e.org/ max-depth=1"


def test_what_the_crawl_excludes_no_seed_takes() -> None:
    judge = scopes(f"{BLOG} exclude=/a include=//cdn.org/", exclude=("/logout", r"\.zip$"), without=("wikis",))
    assert rule(judge, "http://e.org/logout") == "exclude[0]: /logout"
    assert rule(judge, "http://e.org/x.zip") == r"exclude[1]: \.zip$"
    assert rule(judge, "http://e.org/a") == f"seed[0]: {BLOG} exclude=/a"
    assert rule(judge, "http://e.org/w?action=edit").startswith("without: wikis")
    assert rule(judge, "http://cdn.org/b") == ""
    assert rule(judge, "http://cdn.org/a") == f"seed[0]: {BLOG} exclude=/a"
    assert rule(judge, "http://cdn.net/b") == "scope: host"


def test_what_the_crawl_includes_has_the_settings_of_the_crawl() -> None:
    judge = scopes(f"{BLOG} scope=prefix max-depth=1", include=("/pdf/",), scope_surt=("(net,",), max_depth=3)
    assert rule(judge, "http://e.org/pdf/1", depth=2) == ""
    assert rule(judge, "http://e.org/pdf/1", depth=3) == "max-depth: 3"
    assert rule(judge, "http://any.net/") == ""
    assert rule(judge, "http://e.org/") == f"seed[0]: {BLOG} scope=prefix"


@pytest.mark.parametrize(
    ("reach", "inside", "outside"),
    [
        ("host", "http://www.e.org/x", "http://sub.e.org/"),
        ("domain", "http://sub.e.org/", "http://e.net/"),
        ("prefix", f"{BLOG}2020/", "http://e.org/"),
        ("page", BLOG, f"{BLOG}x"),
        ("any", "http://x.net/", None),
    ],
)
def test_reaches(reach: str, inside: str, outside: str | None) -> None:
    judge = scopes(f"{BLOG} scope={reach}", HOME, scope="page")
    assert isinstance(judge, Scopes)
    assert rule(judge, inside) == ""
    assert judge.own_rule(inside) == f"seed[0]: {BLOG} scope={reach}"
    if outside is not None:
        assert rule(judge, outside) in {f"seed[0]: {BLOG} scope={reach}", "scope: page"}
        assert judge.own_rule(outside) == ""
    assert rule(judge, f"{HOME}x") == ("" if reach == "any" else "scope: page")


def test_the_crawls_any_is_for_the_seeds_that_have_it() -> None:
    assert rule(scopes(f"{BLOG} scope=prefix", scope="any"), "http://x.net/") == "scope: any"
    assert rule(scopes(f"{BLOG} scope=prefix", HOME, scope="any"), "http://x.net/") == ""


def test_a_seed_that_moves_keeps_its_settings() -> None:
    place = "http://new.org/"
    lines = (f"{BLOG} max-depth=1", HOME)
    judge = scopes(*lines, redirects="seeds")
    assert rule(judge, f"{place}a") == "scope: host"
    assert rule(judge, place, Hop.REDIRECT, path="L") == "redirects: seeds"
    assert rule(judge, place, Hop.REDIRECT, path="") == ""
    assert judge.moved_seeds == ((place, BLOG),)
    later = scopes(*lines, redirects="seeds")
    moved: Moved = (place, BLOG)
    later.add_moved_seeds([moved])
    for one in (judge, later):
        assert rule(one, f"{place}a") == ""
        assert rule(one, f"{place}a", depth=1) == f"seed[0]: {BLOG} max-depth=1"
        assert one.contains(f"{place}a")


def test_a_page_may_redirect_as_the_crawl_says() -> None:
    assert rule(scopes(f"{BLOG} max-depth=1", redirects="stop"), "http://x.org/", Hop.REDIRECT) == "redirects: stop"
    followed = scopes(f"{BLOG} max-depth=1").judge(
        Link("http://x.org/", Hop.REDIRECT), Claim(1, BLOG, 1, Hop.LINK, "", 0, 0, 0, seed=BLOG)
    )
    assert isinstance(followed, NewUrl)


def test_a_pattern_that_takes_too_long_is_named_as_the_seed_has_it() -> None:
    bad = "(a|aa)+$"
    judge = scopes(f"{BLOG} scope=prefix exclude={bad} include={bad.replace('a', 'b')}")
    slow = rule(judge, f"{BLOG}{'a' * 3000}!")
    assert slow == f"seed[0]: {BLOG} exclude={bad} (it took too long on this URL)"
    slow = rule(judge, f"http://e.org/{'b' * 3000}!")
    assert slow == f"seed[0]: {BLOG} scope=prefix (include=(b|bb)+$ took too long on this URL)"


def test_many_seeds_cost_little() -> None:
    """A URL meets the seeds of its own domain alone; those with the same settings are one."""
    lines = [f"http://s{number}.org/ max-depth={number}" for number in range(2000)]
    same = [f"http://t.org/{number}/ scope=prefix max-depth=1" for number in range(2000)]
    judge = scopes(*lines, *same)
    assert rule(judge, "http://s1999.org/x", depth=1999) == "seed[1999]: http://s1999.org/ max-depth=1999"
    assert rule(judge, "http://t.org/1500/x", depth=1) == "seed[3500]: http://t.org/1500/ max-depth=1"
    assert rule(judge, "http://t.org/9999/x") == "seed[2000]: http://t.org/0/ scope=prefix"
    assert rule(judge, f"http://t.org/7{'/y' * 5000}", depth=1) == "seed[2007]: http://t.org/7/ max-depth=1"


SEEDS = st.lists(
    st.builds(
        lambda url, keys: " ".join((url, *keys)),
        st.sampled_from([BLOG, NEWS, HOME, "http://e.org/", "http://sub.e.org/"]),
        st.lists(st.sampled_from(["scope=prefix", "max-depth=1", "exclude=/tag/", "include=/x"]), unique=True),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda line: line.split()[0],
)
URLS = st.sampled_from(
    [f"{BLOG}tag/x", f"{BLOG}a", f"{NEWS}x", HOME, "http://e.org/y", "http://sub.e.org/tag/", "http://z.org/x"]
)


@given(SEEDS, URLS, st.integers(0, 2))
def test_it_is_taken_by_any_or_judged_as_the_nearest_seeds_say(lines: list[str], address: str, depth: int) -> None:
    """The same as each seed judging by itself, written down naively."""
    together = rule(scopes(*lines), address, depth=depth)
    each = [(line, Scope(*_alone(line), registered_domain)) for line in lines]
    holding = [(line, one) for line, one in each if one.contains(address)]
    if holding:
        taken = any(rule(one, address, depth=depth) == "" for _, one in holding)
        assert (together == "") is taken
    else:
        assert together != ""
    if together.startswith("seed["):
        number, name, said = together.removeprefix("seed[").split(maxsplit=2)
        own = [line for line in lines if " " in line][int(number.removesuffix("]:"))]
        assert own.split()[0] == name
        assert said in own.split()


def _alone(line: str) -> tuple[ScopeSettings, list[str]]:
    address, own = read_seed(line)
    own = own or SeedSetting(address, ())
    settings = ScopeSettings(
        scope=own.get("scope", "host"),
        max_depth=own.get("max-depth"),
        include=own.all("include"),
        exclude=own.all("exclude"),
    )
    return settings, [address]
