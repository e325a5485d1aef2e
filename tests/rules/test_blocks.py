"""Challenge and block pages: which answers are recognised, which are not, and when a host is paused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.model import Grade, Sign
from archiver.policy import block_pages
from archiver.policy.block_pages import ENOUGH_AGAIN, MOST_CERTAIN, HostAnswer, Reaction, RefusalRecord, after, sign_of

HTML = ("content-type", "text/html; charset=utf-8")
CERTAIN, LIKELY, HINT = Grade.CERTAIN, Grade.LIKELY, Grade.HINT


def doc(title: str, body: str = "") -> bytes:
    """A page."""
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>".encode()


ARTICLE = "<p>" + "A wall may show the words Just a moment... or Checking your browser before accessing a site. " * 12
APACHE = doc("403 Forbidden", "<h1>Forbidden</h1><p>You don't have permission to access this resource.</p>")
AKAMAI = doc(
    "Access Denied",
    "<h1>Access Denied</h1>You don't have permission to access &#34;http&#58;&#47;&#47;a&#34; on this server.<p>"
    "Reference&#32;&#35;18&#46;1 <p>https&#58;&#47;&#47;errors.edgesuite.net&#47;18.1",
)
JSD = "<script>window.__CF$cv$params={};a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'</script>"

WALLS = [
    (403, [("cf-mitigated", "challenge")], b"", "Cloudflare"),
    (200, [("cf-mitigated", "challenge"), HTML], doc("x"), "Cloudflare"),
    (202, [("x-amzn-waf-action", "challenge")], b"", "AWS WAF"),
    (405, [("x-amzn-waf-action", "captcha"), HTML], doc("Human Verification"), "AWS WAF"),
    (429, [("x-vercel-mitigated", "challenge")], doc("Vercel Security Checkpoint"), "Vercel"),
    (202, [("sg-captcha", "challenge")], b"", "SiteGround"),
    (403, [("x-sucuri-block", "9000")], b"", "Sucuri"),
    (403, [("x-datadome", "protected"), HTML], doc("a.example"), "DataDome"),
    (429, [("x-kpsdk-ct", "abc")], b"", "Kasada"),
    (403, [("server", "AkamaiGHost")], doc("Access Denied"), "Akamai"),
    (403, [HTML], AKAMAI.replace(b"https&#58;&#47;&#47;", b"https://"), "Akamai"),
    (403, [HTML], doc("Just a moment..."), "Cloudflare"),
    (503, [HTML], doc("Just a moment…"), "Cloudflare"),
    (403, [HTML], doc("Attention Required! | Cloudflare"), "Cloudflare"),
    (403, [HTML], doc("Access denied | a.example used Cloudflare to restrict access"), "Cloudflare"),
    (403, [HTML], doc("  JUST A\n MOMENT...  "), "Cloudflare"),
    (403, [HTML], doc("DDoS-Guard"), "DDoS-Guard"),
    (405, [HTML], doc("Pardon Our Interruption"), "Imperva"),
    (
        403,
        [HTML],
        b"<html><body>Request unsuccessful. Incapsula incident ID: 443000-1</body></html>",
        "a browser check",
    ),
    (403, [HTML], b'<html><iframe src="/_Incapsula_Resource?SWUDNSAI=31"></iframe></html>', "Imperva"),
    (503, [HTML], doc("a.example", "<h1>Checking your browser before accessing a.example.</h1>"), "a browser check"),
    (403, [HTML], doc("Access to this page has been denied", '<div id="px-captcha"></div>'), "HUMAN"),
    (
        200,
        [HTML],
        doc("Just a moment...", "<noscript>Enable JavaScript and cookies to continue</noscript>"),
        "Cloudflare",
    ),
    (200, [HTML], doc("Making sure you&#39;re not a bot!", '<script id="anubis_challenge"></script>'), "Anubis"),
    (200, [HTML], doc("a.example", "<p>Checking your browser before accessing a.example</p>"), "a browser check"),
    (
        200,
        [HTML],
        doc("One moment, please...", "<h1>Please wait while your request is being verified...</h1>"),
        "Imunify360",
    ),
]


@pytest.mark.parametrize(("status", "fields", "body", "wall"), WALLS)
def test_walls(status: int, fields: list[tuple[str, str]], body: bytes, wall: str) -> None:
    assert sign_of(status, fields, body, 0) == Sign(wall, CERTAIN)


PAGES = [
    (200, [HTML, ("server", "cloudflare")], doc("Home", "<p>hello")),
    (200, [HTML], doc("Just a moment...", ARTICLE)),  # a poem of that name
    (200, [HTML], doc("What Just a moment... means", ARTICLE)),
    (200, [HTML], doc("How walls work", "<p>They say: Checking your browser before accessing example.org. " * 20)),
    (200, [HTML, ("x-datadome", "protected")], doc("Shop", "<p>Shoes")),
    (200, [HTML, ("x-iinfo", "1-2-3")], doc("Shop", "<p>Shoes")),
    (200, [HTML, ("server", "cloudflare")], doc("App", f'<div id="app"></div>{JSD}')),
    (404, [HTML, ("server", "cloudflare")], doc("Not found", "Just a moment...")),
    (500, [HTML], doc("Just a moment...")),
    (403, [HTML], APACHE),
    (403, [HTML], doc("Access denied | Museum", "You are not authorized to access this page.")),
    (403, [HTML], doc("Access Denied", "Only members may read this.")),
    (401, [HTML, ("server", "cloudflare")], doc("Log in")),
    (429, [("retry-after", "30")], b"slow down"),
    (503, [HTML], doc("Maintenance", "We are back soon.")),
    (301, [("location", "/a")], b""),
    (304, [("server", "cloudflare")], b""),
    (200, [("content-type", "image/gif")], b"GIF89a"),
]


@pytest.mark.parametrize(("status", "fields", "body"), PAGES)
def test_pages_of_the_site(status: int, fields: list[tuple[str, str]], body: bytes) -> None:
    assert sign_of(status, fields, body, 0) is None


def test_a_page_with_links_is_none_whatever_it_says() -> None:
    body = doc("Just a moment...", "Checking your browser before accessing")
    assert sign_of(200, [HTML], body, block_pages.FEW_LINKS + 1) is None


def test_an_article_that_quotes_a_wall_is_at_most_a_hint() -> None:
    short = doc("News", "<h1>Today</h1><p>Our shop shows “Checking your browser before accessing” to some of you.")
    sign = sign_of(200, [HTML], short, 0)
    assert sign is None or sign.grade is HINT


@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_wall_that_names_itself_beside_a_refusal(status: int) -> None:
    """The site behind it may have answered, so it is likely and no more."""
    assert sign_of(status, [("server", "cloudflare"), HTML], APACHE, 0) == Sign("Cloudflare", LIKELY)
    assert sign_of(status, [("server", "ddos-guard")], b"", 0) == Sign("DDoS-Guard", LIKELY)


@given(st.binary(max_size=500), st.sampled_from([200, 202, 403, 429, 503]))
def test_any_bytes_are_read(body: bytes, status: int) -> None:
    sign_of(status, [HTML], body, 0)


@pytest.mark.parametrize("piece", [b"<", b"<script", b"<title>", b"<!--", b"<style>", b"</script", b"&#", b" "])
def test_what_is_never_closed_costs_no_more_than_its_length(piece: bytes) -> None:
    """Quadratic readers would need minutes here; the count of steps is that of the pieces."""
    sign_of(403, [HTML], piece * (1 << 20), 0)


NO = HostAnswer(403)
FINE = HostAnswer(200, None, "sha256:a")
WALL = HostAnswer(403, Sign("Cloudflare", CERTAIN))
BUSY = HostAnswer(429)


def played(watch: RefusalRecord, *answers: HostAnswer) -> tuple[RefusalRecord, list[Reaction]]:
    """The answers one after the other, and what was to be done after each."""
    steps = []
    for answer in answers:
        watch, step = after(watch, answer)
        steps.append(step)
    return watch, steps


def test_a_run_of_refusals_raises_a_doubt_that_one_page_settles() -> None:
    watch, steps = played(RefusalRecord(good=1), *[NO] * 10)
    assert steps[-1] is Reaction.ASK
    assert Reaction.PAUSE not in steps
    assert Reaction.SLOWER in steps
    assert after(watch, NO._replace(asked_again=True))[1] is Reaction.PAUSE
    calm, step = after(watch, FINE._replace(asked_again=True))
    assert step is Reaction.RELAX
    assert Reaction.PAUSE not in played(calm, *[NO] * 1000)[1]  # but for the answer to another look


def test_a_directory_that_is_closed_to_all_never_pauses_its_host() -> None:
    """However many of its pages answer 403: each doubt is settled, and doubts become rare."""
    watch, looks = RefusalRecord(good=1), 0
    for _ in range(500):
        watch, step = after(watch, NO)
        assert step is not Reaction.PAUSE
        if step is Reaction.ASK:
            looks += 1
            watch, step = after(watch, FINE._replace(asked_again=True))
            assert step is Reaction.RELAX
    assert looks < 12


@pytest.mark.parametrize(
    "bad", [HostAnswer(500), HostAnswer(404), HostAnswer(410), HostAnswer(401), HostAnswer(301), HostAnswer(200)]
)
def test_other_answers_are_no_refusals(bad: HostAnswer) -> None:
    watch, steps = played(RefusalRecord(good=1), *[bad] * 200)
    assert set(steps) == {Reaction.NOTHING}
    assert watch.row == 0


def test_every_second_page_is_refused() -> None:
    _, steps = played(RefusalRecord(good=1), *[NO, FINE] * 200)
    assert set(steps) <= {Reaction.NOTHING, Reaction.RELAX}


def test_certain_signs_pause_a_host_even_if_it_still_gives_its_first_page() -> None:
    watch, steps = RefusalRecord(good=1), []
    for _ in range(MOST_CERTAIN):
        watch, step = after(watch, WALL)
        steps.append(step)
        if step is Reaction.ASK:
            watch, _ = after(watch, FINE._replace(asked_again=True))
    assert steps[-1] is Reaction.PAUSE
    assert Reaction.PAUSE not in steps[:-1]


def test_a_host_that_never_gave_anything() -> None:
    assert played(RefusalRecord(), *[WALL] * 5)[1][-1] is Reaction.PAUSE
    assert (
        Reaction.PAUSE not in played(RefusalRecord(), *[NO] * 200)[1]
    )  # pictures that no other site may show, perhaps


def test_what_may_pass_has_to_last() -> None:
    """A server that starts again answers 503 for some seconds, to everything."""
    _, steps = played(RefusalRecord(good=1), *[BUSY._replace(at=float(second) / 10) for second in range(300)])
    assert Reaction.ASK not in steps
    _, steps = played(RefusalRecord(good=1), *[BUSY._replace(at=float(second) * 10) for second in range(10)])
    assert Reaction.ASK in steps


def test_a_host_that_refused_us_before_is_paused_soon_and_forgiven_at_once() -> None:
    assert played(RefusalRecord(wary=True), *[NO] * ENOUGH_AGAIN)[1][-1] is Reaction.PAUSE
    watch, _ = after(RefusalRecord(wary=True), FINE)
    assert not watch.wary


def test_one_small_page_under_many_urls() -> None:
    """It speaks as walls do and comes again and again: a doubt. Other small pages are pages."""
    sign = sign_of(200, [HTML], doc("a.example", "<p>Please verify that you are no robot."), 0)
    assert sign is not None
    assert sign.grade is HINT
    same = HostAnswer(200, sign, "sha256:b")
    watch, steps = played(RefusalRecord(good=3), *[same] * 12)
    assert Reaction.ASK in steps
    assert after(watch, same._replace(asked_again=True))[1] is Reaction.PAUSE
    differing = [HostAnswer(200, sign, f"sha256:{number}") for number in range(50)]
    assert Reaction.ASK not in played(RefusalRecord(good=3), *differing)[1]


@given(st.lists(st.sampled_from([NO, FINE, WALL, BUSY, HostAnswer(500), NO._replace(asked_again=True)]), max_size=60))
def test_a_host_is_paused_for_refusals_alone(answers: list[HostAnswer]) -> None:
    """Never right after an answer that is no refusal, and never before three of them."""
    watch = RefusalRecord(good=1)
    refused = 0
    for answer in answers:
        watch, step = after(watch, answer)
        refused += answer.status in block_pages.REFUSING
        if step is Reaction.PAUSE:
            assert answer.status in block_pages.REFUSING
            assert refused >= 2
