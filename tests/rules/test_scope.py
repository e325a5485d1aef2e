import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.scope_settings import ScopeSettings
from archiver.model import Claim, Hop, Link, NewUrl, Refusal
from archiver.policy.scope import MAX_MANIFESTS, PATH_KEPT, Scope, extend, redirects_in_a_row


def registered_domain(host: str) -> str:
    return ".".join(host.split(".")[-2:])


def scope(*seeds: str, **settings: object) -> Scope:
    return Scope(ScopeSettings(**settings), seeds, registered_domain)  # type: ignore[arg-type]


def claim(url: str = "http://example.org/", path: str = "", **more: int) -> Claim:
    hop = Hop(path[-1]) if path else Hop.LINK
    return Claim(
        1, url, 1, hop, path, more.get("depth", 0), more.get("off_scope_hops", 0), 0, priority=more.get("priority", 1)
    )


def judged(judge: Scope, url: str, hop: Hop = Hop.LINK, parent: Claim | None = None) -> str:
    """The rule that refuses, or "" where the link is taken."""
    verdict = judge.judge(Link(url, hop), parent or claim())
    return verdict.rule if isinstance(verdict, Refusal) else ""


def taken(judge: Scope, url: str, hop: Hop, parent: Claim) -> NewUrl:
    verdict = judge.judge(Link(url, hop), parent)
    assert isinstance(verdict, NewUrl)
    return verdict


REFUSED = {
    "host": "scope: host",
    "domain": "scope: domain",
    "prefix": "scope: prefix",
    "page": "scope: page",
}


@pytest.mark.parametrize(
    ("url", "host", "domain", "prefix", "page"),
    [
        ("https://example.org/docs/a.html", True, True, True, True),
        ("http://example.org/docs/b.html", True, True, True, False),
        ("https://www.example.org/docs/", True, True, True, False),
        ("http://www.example.org/docs/a/b?c=/d", True, True, True, False),
        ("https://example.org/docs", True, True, False, False),
        ("https://example.org/docsandmore", True, True, False, False),
        ("https://example.org/", True, True, False, False),
        ("https://example.org/Docs/", True, True, False, False),
        ("https://sub.example.org/docs/", False, True, False, False),
        ("https://example.org:8443/docs/", False, True, False, False),
        ("https://evilexample.org/docs/", False, False, False, False),
        ("https://example.org.evil.net/docs/", False, False, False, False),
        ("https://wwwexample.org/docs/", False, False, False, False),
        ("https://example.com/docs/", False, False, False, False),
        ("https://org/docs/", False, False, False, False),
        ("https://evil.net/?https://example.org/docs/", False, False, False, False),
    ],
)
def test_what_belongs_to_a_seed(url: str, *, host: bool, domain: bool, prefix: bool, page: bool) -> None:
    for kind, expected in zip(REFUSED, (host, domain, prefix, page), strict=True):
        judge = scope("https://example.org/docs/a.html", scope=kind)
        assert judged(judge, url) == ("" if expected else REFUSED[kind])
        assert judge.contains(url) is expected


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"scope": "prefix"}, ""),
        ({"scope": "page"}, ""),
        ({"scope": "page", "include": ("caf%C3%A9",)}, ""),
        ({"scope": "page", "scope_surt": ("(org,example,)/caf%C3%A9",)}, ""),
        ({"exclude": ("caf%C3%A9",)}, "exclude[0]: caf%C3%A9"),
        ({"exclude": ("caf%c3%a9",)}, "exclude[0]: caf%c3%a9"),
    ],
)
def test_escapes_are_compared_in_capitals_and_requested_as_they_are(settings: dict[str, object], rule: str) -> None:
    judge = scope("http://example.org/caf%C3%A9/", **settings)
    address = "http://example.org/caf%c3%a9/"
    assert judged(judge, address) == rule
    if not rule:
        assert taken(judge, address, Hop.LINK, claim()).url == address


def test_an_odd_port_is_another_site() -> None:
    judge = scope("http://example.org:8080/")
    assert judged(judge, "http://www.example.org:8080/a") == ""
    assert judged(judge, "https://example.org:8080/a") == ""
    assert judged(judge, "http://example.org/a") == "scope: host"


def test_addresses_and_single_names_are_their_own_domain() -> None:
    judge = Scope(ScopeSettings(scope="domain"), ["http://10.0.0.1/"], lambda host: host)
    assert judged(judge, "http://10.0.0.1:8080/a") == ""
    assert judged(judge, "http://0.0.0.1/") == "scope: domain"


def test_the_order_of_rules() -> None:
    judge = scope(
        "http://example.org/", include=("/wiki/", "^http://other"), exclude=("action=", r"\.exe$"), max_depth=2
    )
    assert judged(judge, "http://example.org/wiki/?action=edit") == "exclude[0]: action="
    assert judged(judge, "http://elsewhere.net/wiki/") == ""
    assert judged(judge, "http://other.net/") == ""
    assert judged(judge, "http://other.net/x.exe") == r"exclude[1]: \.exe$"
    assert judged(judge, "http://another.net/") == "scope: host"
    assert judged(judge, "http://elsewhere.net/wiki/", parent=claim(depth=2)) == "max-depth: 2"
    assert judged(judge, "http://another.net/", parent=claim(depth=2)) == "max-depth: 2"
    for hop in Hop:
        assert judged(judge, "http://example.org/?action=", hop) == "exclude[0]: action="


def test_depth_counts_links_alone() -> None:
    judge = scope("http://example.org/", max_depth=1)
    page = taken(judge, "http://example.org/a", Hop.LINK, claim())
    assert (page.depth, page.priority) == (1, 2)
    image = taken(judge, "http://example.org/i.png", Hop.REQUISITE, claim(path="L", depth=1))
    assert (image.depth, image.priority, image.path) == (1, 0, "LE")
    moved = taken(judge, "http://example.org/b", Hop.REDIRECT, claim(path="L", depth=1, priority=2))
    assert (moved.depth, moved.priority, moved.path) == (1, 2, "LR")
    assert judged(judge, "http://example.org/c", parent=claim(path="LR", depth=1)) == "max-depth: 1"
    assert judged(scope("http://example.org/", max_depth=0), "http://example.org/a") == "max-depth: 0"
    assert judged(scope("http://example.org/", max_depth=0), "http://example.org/i", Hop.REQUISITE) == ""


def test_pages_go_breadth_first_and_after_requisites() -> None:
    judge = scope("http://example.org/")
    order = [
        taken(judge, "http://example.org/robots.txt", Hop.PREREQUISITE, claim()).priority,
        taken(judge, "http://example.org/style.css", Hop.REQUISITE, claim(depth=7)).priority,
        *(taken(judge, "http://example.org/a", Hop.LINK, claim(depth=depth)).priority for depth in range(4)),
    ]
    assert order == sorted(set(order))


def test_redirects_have_a_budget_for_each_chain() -> None:
    judge = scope("http://example.org/", max_redirects=2)
    assert judged(judge, "http://example.org/1", Hop.REDIRECT, claim(path="LR")) == ""
    assert judged(judge, "http://example.org/1", Hop.REDIRECT, claim(path="LRR")) == "max-redirects: 2"
    assert judged(judge, "http://example.org/1", Hop.REDIRECT, claim(path="LRRL")) == ""
    assert judged(judge, "http://example.org/1", Hop.LINK, claim(path="LRR")) == ""
    assert judged(scope("http://a.example/", max_redirects=0), "http://a.example/1", Hop.REDIRECT) == "max-redirects: 0"


def test_a_chain_ends_even_if_its_path_is_written_short() -> None:
    judge = scope("http://example.org/", max_redirects=10_000)
    path, hops = "", 0
    while judged(judge, "http://example.org/next", Hop.REDIRECT, claim(path=path)) == "":
        path, hops = extend(path, Hop.REDIRECT), hops + 1
        assert hops < PATH_KEPT + 1
    assert hops == PATH_KEPT - 1


def test_a_redirect_out_of_scope_is_taken_but_its_links_are_not() -> None:
    judge = scope("http://example.org/")
    there = taken(judge, "http://moved.net/", Hop.REDIRECT, claim())
    assert there.off_scope_hops == 0
    parent = claim("http://moved.net/", path="R")
    assert judged(judge, "http://moved.net/next", Hop.LINK, parent) == "scope: host"
    assert judged(judge, "http://moved.net/i.png", Hop.REQUISITE, parent) == ""
    assert judged(judge, "http://example.org/back", Hop.LINK, parent) == ""


def test_requisites_may_stray_two_hops() -> None:
    judge = scope("http://example.org/")
    style = taken(judge, "http://cdn.net/style.css", Hop.REQUISITE, claim())
    assert style.off_scope_hops == 1
    font = taken(
        judge, "http://fonts.net/font.woff", Hop.REQUISITE, claim("http://cdn.net/style.css", "E", off_scope_hops=1)
    )
    assert font.off_scope_hops == 2
    far = claim("http://fonts.net/x", "EE", off_scope_hops=2)
    assert judged(judge, "http://third.net/y", Hop.REQUISITE, far) == "requisite-hops: 2"
    assert judged(judge, "http://third.net/y.png", Hop.SPECULATIVE, far) == "speculative: site"
    assert taken(judge, "http://fonts.net/y", Hop.REDIRECT, far).off_scope_hops == 2
    assert taken(judge, "http://example.org/y", Hop.REQUISITE, far).off_scope_hops == 0
    assert (
        judged(judge, "http://cdn.net/page", Hop.LINK, claim("http://cdn.net/frame", "E", off_scope_hops=1))
        == "scope: host"
    )


def test_requisites_on_the_seeds_own_host_are_no_strays() -> None:
    for kind in ("page", "prefix"):
        judge = scope("http://example.org/docs/a.html", scope=kind)
        path, off_scope_hops = "", 0
        for name in ("main.css", "more.css", "fonts.css", "font.woff"):
            new = taken(
                judge,
                f"http://www.example.org/static/{name}",
                Hop.REQUISITE,
                claim(path=path, off_scope_hops=off_scope_hops),
            )
            path, off_scope_hops = new.path, new.off_scope_hops
        assert (path, off_scope_hops) == ("EEEE", 0)


def test_without_page_requisites() -> None:
    judge = scope("http://example.org/", page_requisites=False)
    for hop in (Hop.REQUISITE, Hop.SPECULATIVE):
        assert judged(judge, "http://example.org/i.png", hop) == "page-requisites: false"
    assert judged(judge, "http://example.org/a") == ""


@pytest.mark.parametrize(
    ("kind", "robots", "rule"),
    [
        ("host", "http://example.org/robots.txt", ""),
        ("host", "https://www.example.org/robots.txt", ""),
        ("host", "http://cdn.net/robots.txt", "scope: host"),
        ("domain", "http://sub.example.org/robots.txt", ""),
        ("domain", "http://cdn.net/robots.txt", "scope: domain"),
        ("prefix", "http://example.org/robots.txt", ""),
        ("prefix", "http://cdn.net/robots.txt", "scope: prefix"),
        ("page", "http://example.org/robots.txt", "scope: page"),
    ],
)
def test_sitemaps_are_those_of_the_seeds_hosts(kind: str, robots: str, rule: str) -> None:
    judge = scope("http://example.org/docs/", scope=kind)
    assert judged(judge, "http://maps.net/sitemap.xml", Hop.MANIFEST, claim(robots, "P")) == rule


def test_sitemaps_name_pages_and_sitemaps() -> None:
    judge = scope("http://example.org/")
    index = claim("http://maps.net/index.xml", "PM")
    assert judged(judge, "http://maps.net/1.xml", Hop.MANIFEST, index) == ""
    assert taken(judge, "http://example.org/page", Hop.LINK, index).depth == 1
    assert judged(judge, "http://maps.net/page", Hop.LINK, index) == "scope: host"
    deep = claim("http://maps.net/x.xml", "P" + "M" * MAX_MANIFESTS)
    assert judged(judge, "http://maps.net/y.xml", Hop.MANIFEST, deep) == "sitemaps in sitemaps: at most 3 deep"
    assert judged(scope("http://example.org/", max_depth=0), "http://example.org/s.xml", Hop.MANIFEST) == "max-depth: 0"


@given(st.lists(st.sampled_from(Hop), max_size=600))
def test_a_path_says_how_long_it_is(hops: list[Hop]) -> None:
    path = ""
    for hop in hops:
        path = extend(path, hop)
    dropped, _, letters = path.rpartition("+")
    assert int(dropped or 0) + len(letters) == len(hops)
    assert letters == "".join(hops)[-PATH_KEPT:]
    in_a_row = len(hops) - len("".join(hops).rstrip("R"))
    assert redirects_in_a_row(path) == min(in_a_row, PATH_KEPT) or len(path) > PATH_KEPT


@given(st.text(max_size=50), st.sampled_from(Hop), st.sampled_from(list(REFUSED)))
def test_every_link_is_judged(tail: str, hop: Hop, kind: str) -> None:
    judge = scope("http://example.org/docs/", scope=kind)
    verdict = judge.judge(Link(f"http://example.org/{tail}", hop), claim())
    assert verdict.url == f"http://example.org/{tail}"
