"""A page in the browser without a network: it has no socket, and no page keeps it for longer than its limits."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.browser.answers import Asked, Told, part_of
from archiver.browser.behavior_files import check_behaviors, read_behaviors
from archiver.browser.behaviours import BehaviorFile, BehaviourPlan
from archiver.browser.chromium import Chromium, find
from archiver.browser.devtools import BrowserGoneError, DevToolsError, connected
from archiver.browser.tab import ViewLimits
from archiver.browser.view import FLAGS, BrowserViews, Viewed
from archiver.errors import ConfigError
from fixtures.devtools import needs_chromium, needs_namespace

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
    needs_namespace,
]
PAGE = "https://site.example/"
SECOND = 1_700_000_000  # 2023-11-14T22:13:20Z
PATIENT = ViewLimits(seconds=3600)  # what hangs until then fails: pytest ends it


def html(text: str) -> Told:
    return Told(200, (("content-type", "text/html; charset=utf-8"),), f"<!doctype html>{text}".encode(), SECOND)


def viewed(pages: dict[str, Told], limits: ViewLimits = PATIENT) -> Viewed:
    """Return the view of PAGE, where *pages* are all that is archived."""

    async def answer(asked: Asked) -> Told | None:
        return pages.get(asked.url)

    return in_browser(lambda views, _browser: views.view(PAGE, SECOND, answer, limits))


def in_browser(work: Callable[[BrowserViews, Chromium], Awaitable[Viewed]]) -> Viewed:
    async def run() -> Viewed:
        browser = Chromium([*find(""), *FLAGS], network=False)
        async with connected(browser) as connection, BrowserViews.open(connection) as views:
            return await work(views, browser)

    return asyncio.run(run())


def test_the_browser_has_no_network() -> None:
    """Its processes see one interface, the loopback of their namespace, which is down; and they have no socket."""

    async def look(views: BrowserViews, browser: Chromium) -> Viewed:
        async def answer(asked: Asked) -> Told | None:
            assert networks(browser.group) == {"lo", "no socket"}
            return html("<title>There</title>") if asked.url == PAGE else None

        return await views.view(PAGE, SECOND, answer, PATIENT)

    assert in_browser(look).title == "There"


def networks(group: int) -> set[str]:
    """Return the interfaces and the kinds of sockets that the processes of *group* see."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if os.getpgid(int(process.name)) == group:
                found |= {line.split(":")[0].strip() for line in (process / "net/dev").read_text().splitlines()[2:]}
                for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "packet"):
                    lines = (process / "net" / kind).read_text().splitlines()
                    found.add(kind if len(lines) > 1 else "no socket")
    return found


def test_the_world_is_that_of_the_replay() -> None:
    """As wombat.js of pywb makes it: the first numbers after a second as the seed, and a clock that begins with it."""
    script = """document.title = JSON.stringify([Math.random(), Math.random(),
        crypto.getRandomValues(new Uint32Array(1))[0], new Date().toISOString().slice(0, 18),
        Date.now() - 1700000000000 < 9000, new Date(0).getTime(), Date(),
        new Date(2020, 1, 2).getTimezoneOffset(), new Date() instanceof Date, devicePixelRatio])"""
    seed, numbers = SECOND, []
    for _ in range(3):
        seed = (seed * 9301 + 49297) % 233280
        numbers.append(seed / 233280)
    title = viewed({PAGE: html(f"<script>{script}</script>")}).title
    first, second, third, date, soon, epoch, text, zone, same, ratio = json.loads(title)
    assert [first, second] == numbers[:2]
    assert third == int(numbers[2] * 4294967296)
    assert date == "2023-11-14T22:13:2"
    assert "Nov 14 2023 22:13:2" in text
    assert (soon, epoch, zone, same, ratio) == (True, 0, 0, True, 1)


DENSE = """<script>
    const name = devicePixelRatio > 1 ? "dense" : "plain"
    fetch("/" + name + "/" + devicePixelRatio + "/" + matchMedia("(min-resolution: 2dppx)").matches)
</script>"""


@pytest.mark.parametrize("inner", ["", "<iframe src='/frame'></iframe>"])
def test_a_page_that_reads_how_dense_the_screen_is_is_shown_on_two(inner: str) -> None:
    """pywb gives a page one pixel of the screen for each of its own, and replayweb.page two."""
    pages = {PAGE: html(inner or DENSE), f"{PAGE}frame": html(DENSE)}
    found = viewed(pages)
    assert [each.url.removeprefix(PAGE) for each in found.missing] == ["plain/1/false", "dense/2/true"]
    assert found.dense == frozenset({f"{PAGE}dense/2/true"})
    once = viewed(pages, replace(PATIENT, dense=False))
    assert [each.url.removeprefix(PAGE) for each in once.missing] == ["plain/1/false"]


def test_other_pages_are_shown_once() -> None:
    found = viewed({PAGE: html("<script>fetch('/a')</script>")})
    assert (len(found.missing), found.dense) == (1, None)


HOSTILE = {
    "a loop": ("<script>while (true) {}</script>", "2 seconds"),
    "dialogs": ("<script>while (true) alert(confirm(prompt(1)))</script>", "2 seconds"),
    "requests": ("<script>for (let i = 0; i < 999; i++) new Image().src = '/' + i</script>", "150 requests"),
    "frames": (
        """<script>for (let i = 0; i < 99; i++) {
            const frame = document.createElement("iframe")
            frame.src = `https://h${i}.example/`
            document.documentElement.append(frame)
        }</script>""",
        "20 frames and workers",
    ),
    "workers": (
        "<script>const u = URL.createObjectURL(new Blob(['1']));for (let i = 0; i < 99; i++) new Worker(u)</script>",
        "20 frames and workers",
    ),
    "itself": ("<script>location = '?' + Math.random()</script>", ""),
    "reloads": ("<meta http-equiv=refresh content=0>", ""),
    "downloads": ("<a download href=data:,x id=a></a><script>a.click()</script>", ""),
    "other schemes": ("<script>location='file:///etc/passwd'; open('chrome://version')</script>", ""),
    "leaving": ("<script>onbeforeunload = () => 'no'; location = '/b'</script>", ""),
    "a heap without end": (
        "<script>const kept = []; for (;;) kept.push(new Array(100000).fill({}))</script>",
        "the page crashed the browser",
    ),
    "windows": ("<script>for (let i = 0; i < 99; i++) open('/b?' + i)</script>", ""),
    "windows on clicks": (
        """<a target=_blank href=/b id=a></a><script>for (let i = 0; i < 99; i++) a.click()</script>""",
        "",
    ),
    "frames within frames": (
        """<script>const bomb = () => { for (let i = 0; i < 2; i++) {
            const frame = document.createElement("iframe")
            frame.srcdoc = "<script>onload = parent.bomb<\\/script>"
            document.documentElement.append(frame)
        } }; onload = bomb; setInterval(bomb)</script>""",
        "2 seconds",
    ),
    "frames of itself": ("<script>document.write('<iframe src=/?' + Math.random() + '></iframe>')</script>", ""),
    "workers of workers": (
        """<script>const text = `const u = URL.createObjectURL(new Blob(["1"]))
            for (let i = 0; i < 99; i++) new Worker(u)`
        new Worker(URL.createObjectURL(new Blob([text])))</script>""",
        "20 frames and workers",
    ),
    "history": ("<script>setInterval(() => history.pushState(0, '', '?' + Math.random()))</script>", ""),
    "paper": ("<script>for (let i = 0; i < 9; i++) print()</script>", ""),
    "redirects by script": ("<script>setInterval(() => { location = '/b?' + Math.random() })</script>", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends(name: str) -> None:
    text, ended = HOSTILE[name]
    anywhere = {f"https://h{number}.example/": html("") for number in range(99)}
    limits = ViewLimits(seconds=2 if "seconds" in ended else PATIENT.seconds, requests=150, targets=20)
    found = viewed({PAGE: html(text), **anywhere}, limits)
    assert found.ended == ended


AGAIN = {
    "storage": "if (sessionStorage.seen) later(); else { sessionStorage.seen = 1; location.reload() }",
    "cookie": "if (document.cookie) later(); else { document.cookie = 'seen=1'; location = location.href }",
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_page_that_loads_itself_again_is_shown(name: str) -> None:
    """As pages do that have set a cookie first; what they ask for then is what a replay asks for."""
    later = "addEventListener('load', () => setTimeout(() => new Image().src = '/later.png', 100))"
    found = viewed({PAGE: html(f"<script>const later = () => {later}; {AGAIN[name]}</script>")})
    assert [asked.url for asked in found.missing] == [f"{PAGE}later.png"]


def test_a_page_gets_no_more_memory_than_the_limit() -> None:
    """It tries to take 4 GiB."""
    script = """const kept = []
        try {
            while (kept.length < 64) kept.push(new Uint8Array(1 << 26).fill(1))
        } catch {
            document.title = "enough"
        }"""
    assert viewed({PAGE: html(f"<script>{script}</script>")}).title == "enough"


REVEALED = """<title>Revealed</title><script>
let moved = true
addEventListener("scroll", () => moved = true)
setInterval(() => {
    if (!moved) return
    moved = false
    for (const each of document.querySelectorAll("div")) {
        const { top, bottom } = each.getBoundingClientRect()
        if (top < innerHeight && bottom > 0 && !each.seen) each.seen = fetch("/" + each.id)
    }
}, 200)
</script>""" + "".join(f'<div id=part-{n} style="margin-top: 1500px">{n}</div>' for n in range(6))


def test_scripts_that_look_from_time_to_time_see_each_place() -> None:
    """htmx (`revealed`) looks five times a second which elements are on the screen."""
    found = viewed({PAGE: html(REVEALED)} | {f"{PAGE}part-{n}": html(str(n)) for n in range(6)})
    assert {each.url.removeprefix(PAGE) for each in found.answered} == {"", *(f"part-{n}" for n in range(6))}


def test_a_page_that_grows_late_is_scrolled_again() -> None:
    """Its next part is asked for at the end of the page, and each part comes later than the scrolling takes."""
    script = """const end = document.getElementById("end")
        const more = new IntersectionObserver(async ([{ isIntersecting }]) => {
            if (!isIntersecting) return
            more.unobserve(end)
            await fetch("/part?" + document.querySelectorAll("p").length)
            end.before(document.createElement("p"))
            more.observe(end)
        })
        more.observe(end)"""
    text = f"<style>p {{ height: 5000px }}</style><p></p><div id=end>end</div><script>{script}</script>"

    async def show(views: BrowserViews, _browser: Chromium) -> Viewed:
        async def answer(asked: Asked) -> Told | None:
            if asked.url == PAGE:
                return html(text)
            await asyncio.sleep(1)
            return html("")

        return await views.view(PAGE, SECOND, answer, PATIENT)

    asked = [each.url.removeprefix(PAGE) for each in in_browser(show).answered]
    assert asked[:4] == ["", "part?1", "part?2", "part?3"]


def test_too_many_bytes_end_a_view() -> None:
    large = Told(200, (("content-type", "image/png"),), bytes(100_000))
    images = "".join(f"<img src=/{number}>" for number in range(30))
    found = viewed(
        {PAGE: html(images)} | {f"{PAGE}{number}": large for number in range(30)}, ViewLimits(size=1_000_000)
    )
    assert found.ended == "1000000 bytes"


def test_frames_have_the_second_of_their_own_capture() -> None:
    frame = Told(200, (("content-type", "text/html"),), b"<script>fetch('/got?' + Math.random())</script>", SECOND + 1)
    pages = {PAGE: html("<iframe src=https://frame.example/></iframe>"), "https://frame.example/": frame}
    expected = ((SECOND + 1) * 9301 + 49297) % 233280 / 233280
    assert [each.url for each in viewed(pages).missing] == [f"https://frame.example/got?{expected}"]


def test_a_browser_that_is_killed_is_noticed() -> None:
    async def look(views: BrowserViews, browser: Chromium) -> Viewed:
        async def answer(_asked: Asked) -> Told | None:
            os.killpg(browser.group, 9)
            return None

        return await views.view(PAGE, SECOND, answer, PATIENT)

    with pytest.raises(BrowserGoneError):
        in_browser(look)
    assert issubclass(BrowserGoneError, DevToolsError)


def test_a_page_that_repeats_a_request_becomes_quiet() -> None:
    text = "<title>Restless</title><script>setInterval(() => fetch('/again'), 50)</script>"
    found = viewed({PAGE: html(text), f"{PAGE}again": html("again")})
    assert found.ended == ""
    assert [asked.url for asked in found.answered] == [PAGE, f"{PAGE}again"]


TALL = "<div style=height:3000px>tall</div>"
ENDLESS = f"""<title>Endless</title><div id=list>{TALL}</div><script>
let next = 1, busy = false
addEventListener("scroll", async () => {{
    if (busy || next > 4 || scrollY + innerHeight < document.documentElement.scrollHeight - 2000) return
    busy = true
    await fetch("/part-" + next++)
    document.getElementById("list").insertAdjacentHTML("beforeend", `{TALL}`)
    busy = false
}})
</script>"""
FOLDED = """<title>Folded</title><details ontoggle="fetch('/folded')"><summary>more</summary><p>text</details>
<div style=height:5000px></div><img data-src=/seen.png><script>
new IntersectionObserver(([one]) => { if (one.isIntersecting) one.target.src = one.target.dataset.src })
    .observe(document.querySelector("img"))
</script>"""
BUTTON = """<title>Button</title><div id=list></div>
<form action=/bought><button>Show more</button></form><button hidden>Load more</button>
<button id=more>Load more posts</button>
<script>
let next = 1
document.getElementById("more").addEventListener("click", async () => {
    await fetch("/more-" + next++)
    if (next > 3) document.getElementById("more").remove()
})
</script>"""


@pytest.mark.parametrize(
    ("text", "limits", "wanted"),
    [
        (ENDLESS, PATIENT, {"/part-1", "/part-2", "/part-3", "/part-4"}),
        (FOLDED, PATIENT, {"/folded", "/seen.png"}),
        (BUTTON, PATIENT, set()),
        (BUTTON, replace(PATIENT, behaviours=BehaviourPlan(2)), {"/more-1", "/more-2"}),
        (BUTTON, replace(PATIENT, behaviours=BehaviourPlan(20)), {"/more-1", "/more-2", "/more-3"}),
    ],
    ids=["endless", "folded", "no click", "two clicks", "all clicks"],
)
def test_a_view_scrolls_opens_and_clicks_on_wish(text: str, limits: ViewLimits, wanted: set[str]) -> None:
    async def answer(asked: Asked) -> Told | None:
        return html(text) if asked.url == PAGE else Told(200, (("content-type", "text/plain"),), b"part", SECOND)

    found = in_browser(lambda views, _browser: views.view(PAGE, SECOND, answer, limits))
    assert found.ended == ""
    assert {asked.url.replace(PAGE, "/") for asked in found.answered} - {"/"} == wanted


def test_links_of_the_live_document_are_returned() -> None:
    """Also in an open shadow root, and in a frame of the same origin."""
    text = """<title>Links</title><a href=one.html#part>1</a><div id=host></div>
    <svg><a href=two.html><text>2</text></a></svg>
    <iframe srcdoc="<a href=/three.html>3</a>"></iframe><script>
    document.getElementById("host").attachShadow({mode: "open"}).innerHTML = "<a href=/four.html>4</a>"
    </script>"""
    found = viewed({PAGE: html(text)})
    assert sorted(link.removeprefix(PAGE).partition("#")[0] for link in found.links) == [
        "four.html",
        "one.html",
        "three.html",
        "two.html",
    ]


LIST = """<title>List</title><div id=list><p>1</p><p>2</p></div><button onclick="fetch('/clicked')">Reply</button>
<script>
let more = 3
document.getElementById("list").addEventListener("click", async event => {
    await fetch("/opened-" + event.target.textContent)
    if (more < 5) document.getElementById("list").insertAdjacentHTML("beforeend", `<p>${more++}</p>`)
})
</script>"""
STEPS = """
class Threads {
    static id = "Threads"
    static init() { return { state: { threads: 0 }, opts: { limit: 9 } } }
    static isMatch() { return location.href === "https://site.example/" }
    async awaitPageLoad(ctx) { await ctx.Lib.waitUntilNode("//div[@id='list']/p") }
    async *open(ctx, item) {
        item.click()
        yield ctx.Lib.getState(ctx, "opened", "threads")
    }
    async *run(ctx) {
        const { Lib, opts, state } = ctx
        for await (const item of Lib.iterChildMatches("p", Lib.xpathNode("//div[@id='list']"))) {
            Lib.scrollIntoView(item)
            yield* this.open(ctx, item)
        }
        await Lib.scrollAndClick(Lib.xpathNode("//button"), 10)
        Lib.addLink("/named.html")
        Lib.assertContentValid(() => typeof globalThis.more === "undefined", "it sees the page's own objects")
        await Lib.waitUntil(() => [...Lib.xpathNodes("//p")].length === 4)
        const told = [state.threads, opts.limit, Lib.xpathString("//p[1]"), ctx.getState("m", "n").state.n]
        await fetch("/done?" + told.join("-"))
    }
};
"""


def behaving(*sources: str, seconds: float = 3600, steps: int = 1000) -> Viewed:
    """Return the view of LIST with the behaviors *sources*."""
    files = tuple(BehaviorFile(f"{number}.js", source.rstrip("; \n")) for number, source in enumerate(sources))

    async def answer(asked: Asked) -> Told | None:
        return html(LIST) if asked.url == PAGE else Told(200, (("content-type", "text/plain"),), b"part", SECOND)

    plan = BehaviourPlan(files=files, seconds=seconds, steps=steps)
    return in_browser(lambda views, _browser: views.view(PAGE, SECOND, answer, replace(PATIENT, behaviours=plan)))


def test_a_behavior_of_the_user_runs_in_the_form_of_browsertrix() -> None:
    other = "class Other { static id = 'Other'; static isMatch() { return false }; async *run() { fetch('/other') } }"
    later = "class Later { static id = 'Later'; static isMatch() { return true }; async *run() { fetch('/later') } }"
    found = behaving(other, STEPS, later)
    assert (found.ended, found.faults, found.behavior) == ("", (), "Threads")
    asked = [each.url.removeprefix(PAGE) for each in found.answered]
    assert asked == ["", "opened-1", "opened-2", "opened-3", "opened-4", "clicked", "done?4-9-1-1"]
    assert f"{PAGE}named.html" in found.links


def test_a_behavior_runs_in_frames_on_wish() -> None:
    """A frame has a behavior of its own: the first that says `runInIframe` and is for its address."""
    page = """class Page { static id = "Page"; static runInIframe = false; static isMatch() { return true }
        async *run() { await fetch("/page") } }"""
    inner = """class Inner { static id = "Inner"; static runInIframe = true
        static isMatch() { return location.pathname === "/inner.html" }
        async *run(ctx) { ctx.Lib.xpathNode("//button").click(); yield; ctx.Lib.addLink("/named.html") } }"""
    framed = "<title>Framed</title><iframe src=/outer.html></iframe>"
    nested = {
        "outer": "<iframe src=/inner.html></iframe>",
        "inner": "<button onclick=\"fetch('/clicked')\">More</button>",
    }
    pages = {PAGE: framed} | {f"{PAGE}{name}.html": text for name, text in nested.items()}

    async def answer(asked: Asked) -> Told | None:
        return html(pages.get(asked.url, "text"))

    plan = BehaviourPlan(files=(BehaviorFile("0.js", page), BehaviorFile("1.js", inner)))
    limits = replace(PATIENT, behaviours=plan)
    found = in_browser(lambda views, _browser: views.view(PAGE, SECOND, answer, limits))
    assert (found.behavior, found.faults) == ("Page", ())
    asked = [each.url.removeprefix(PAGE) for each in found.answered]
    assert asked == ["", "outer.html", "inner.html", "page", "clicked"]
    assert f"{PAGE}named.html" in found.links


FORM = "class A {{ static id = 'A'; static isMatch() {{ return true }}; async *run() {{ {} }} }}"


@pytest.mark.parametrize(
    ("text", "seconds", "fault"),
    [
        ("throw new Error('wrong')", 3600, "0.js: Error: wrong"),
        ("for (;;) yield 1", 3600, "0.js: it was ended after 20 steps"),
        ("for (;;) {}", 2, "0.js: it was ended after 2 seconds"),
        ("await new Promise(() => 0)", 2, "0.js: it was ended after 2 seconds"),
    ],
)
def test_a_behavior_ends(text: str, seconds: float, fault: str) -> None:
    """And the view goes on: its title and text are read."""
    found = behaving(FORM.format(text), seconds=seconds, steps=20)
    assert (found.ended, found.faults, found.title) == ("", (fault,), "List")
    assert found.text.split() == ["1", "2", "Reply"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("class A {\n  static id = 'A'\n  oops(\n}", "line 4: SyntaxError: "),
        ("", "SyntaxError"),
        ("42", "it is no class"),
        ("class A { static isMatch() {}; async *run() {} }", "no `static id`"),
        ("class A { static id = 'A'; async *run() {} }", "no `static isMatch()`"),
        ("class A { static id = 'A'; static isMatch() {} }", "no `async* run(ctx)`"),
        ("class A { static id = 'A'; static init = 1; static isMatch() {}; async *run() {} }", "`static init`"),
        ("class A { static { for (;;) {} } }", "Execution was terminated"),
        ("\xff", "it is not UTF-8"),
        ("// " + "x" * (1 << 20), "it is larger than 1 MiB"),
    ],
)
def test_a_faulty_behavior_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "a.js"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as error:
        check_behaviors(read_behaviors((str(path),)), (*find(""), *FLAGS))
    message = str(error.value)
    assert message.startswith(f"--behavior {path}: ")
    assert fault in message
    assert "\n" not in message


def test_a_behavior_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_behaviors((str(tmp_path / "a.js"),))


def test_the_text_of_a_page_is_what_it_shows() -> None:
    """Also in an open shadow root and in a frame of the same origin, but nothing that is hidden."""
    text = """<p>One</p><p hidden>Two</p><script>"Three"</script><div id=host></div><iframe srcdoc="<p>Four"></iframe>
    <script>document.getElementById("host").attachShadow({mode: "open"}).innerHTML = "<style>p{}</style><p>Five"
    document.body.append("Six")</script>"""
    assert viewed({PAGE: html(text)}).text.split() == ["One", "Six", "Five", "Four"]


FOR_A_PERSON = """<title>Hidden</title><nav><a href=#/news>News</a> <a href=#part>Part</a></nav><main></main>
<div id=list style=height:300px;overflow:auto><p style=height:900px></div><script>
const list = document.getElementById("list")
let screens = 0
list.addEventListener("scroll", () => {
    if (list.scrollTop + 310 < list.scrollHeight || screens === 3) return
    fetch("/screen-" + ++screens).then(() => list.insertAdjacentHTML("beforeend", "<p style=height:900px>"))
})
addEventListener("hashchange", async () => {
    await fetch("/route-" + location.hash.slice(2))
    document.querySelector("main").innerHTML = "<a href=#/old>Old</a><a href=/by-route>page</a>"
})
let slide = 0
setInterval(() => fetch("/slide-" + slide++ % 3), 3000)
setTimeout(() => fetch("/late").then(() => setTimeout(() => fetch("/later"), 1500)), 4000)
const picture = new Image()
picture.srcset = "/small.png 1w, /large.png 9000w"
document.body.append(picture)
</script>"""


NUMBERED: dict[str, tuple[object, ...]] = {"screen": (1, 2, 3), "route": ("news", "old"), "slide": (0, 1, 2)}


def test_a_view_finds_what_a_person_comes_to() -> None:
    """What scrolls within the page, routes behind the hash, what timers do later, and pictures for other screens."""

    async def answer(asked: Asked) -> Told | None:
        return html(FOR_A_PERSON) if asked.url == PAGE else Told(200, (("content-type", "text/plain"),), b"", SECOND)

    found = in_browser(lambda views, _browser: views.view(PAGE, SECOND, answer, PATIENT))
    assert found.ended == ""
    screens, routes, slides = ({f"{kind}-{n}" for n in some} for kind, some in NUMBERED.items())
    asked = {each.url.removeprefix(PAGE) for each in found.answered}
    assert asked >= {*screens, *routes, *slides, "late", "later"}
    assert [link for link in found.links if link.endswith("/by-route")]
    assert {link.removeprefix(PAGE) for link in found.pictures} == {"small.png", "large.png"}


def test_routes_have_a_limit() -> None:
    text = """<a href=#/0>0</a><script>addEventListener("hashchange", () => {
        fetch("/" + location.hash.slice(2))
        document.body.innerHTML = `<a href="#/${Number(location.hash.slice(2)) + 1}">next</a>`
    })</script>"""
    found = viewed({PAGE: html(text)}, replace(PATIENT, routes=3))
    assert found.ended == "3 routes behind #"
    assert [each.url.removeprefix(PAGE) for each in found.missing] == ["0", "1", "2"]


ROWS = """<title>Rows</title><script type=importmap>{"imports": {"named": "/module.js"}}</script>
<script type=module>
const told = {}
const row = async (name, work) => {
    try { told[name] = await work() } catch (error) { told[name] = error.name }
}
const text = async (path, options) => (await fetch(path, options)).text()
const of = worker => new Promise(done => { worker.onmessage = ({ data }) => done(data) })
await row("redirect", () => text("/redirect"))
await row("cookie", () => text("/cookie"))
await row("cors", () => text("https://far.example/cors", { headers: { "X-Own": "1" }, credentials: "include" }))
await row("range", async () => (await fetch("/bytes", { headers: { Range: "bytes=2-4" } })).status)
await row("synchronous", () => {
    const request = new XMLHttpRequest()
    request.open("GET", "/plain", false)
    request.send()
    return request.responseText
})
await row("keepalive", () => text("/plain", { keepalive: true }))
await row("import map", async () => (await import("named")).name)
await row("worker", () => of(new Worker("/worker.js", { type: "module" })))
await row("shared worker", () => {
    const { port } = new SharedWorker("/shared.js")
    port.start()
    return of(port)
})
await row("events", () => new Promise(done => { new EventSource("/events").onmessage = ({ data }) => done(data) }))
await row("form", () => {
    const data = new FormData()
    data.append("file", new File(["content"], "name.txt"))
    return text("/form", { method: "POST", body: data })
})
await row("blob", () => text("/blob", { method: "POST", body: new Blob(["b".repeat(200000)]) }))
await row("service worker", () => navigator.serviceWorker.register("/service.js"))
await row("login", async () => (await fetch("/login")).status)
await row("secure", () => isSecureContext)
await row("missing", () => text("/missing"))
document.title = JSON.stringify(told)
</script>"""
TOLD = {
    "redirect": "plain",
    "cookie": "session=1",
    "cors": "far",
    "range": 206,
    "synchronous": "plain",
    "keepalive": "plain",
    "import map": "module",
    "worker": "plain",
    "shared worker": "shared",
    "events": "event",
    "form": "7 bytes",
    "blob": "200000 bytes",
    "service worker": "SecurityError",
    "login": 401,
    "secure": True,
    "missing": "TypeError",
}


def test_every_kind_of_request_is_answered() -> None:
    """Also redirects to other hosts, preflights, cookies, ranges, request bodies, and workers of each kind."""

    def plain(text: str, media_type: str = "text/plain") -> Told:
        return Told(200, (("content-type", media_type),), text.encode(), SECOND)

    answers = {
        PAGE: html(ROWS),
        f"{PAGE}redirect": Told(302, (("location", "https://far.example/back"), ("set-cookie", "session=1")), b""),
        "https://far.example/back": Told(302, (("location", f"{PAGE}plain"),), b""),
        "https://far.example/cors": plain("far"),
        f"{PAGE}plain": plain("plain"),
        f"{PAGE}bytes": plain("0123456789"),
        f"{PAGE}module.js": plain("export const name = 'module'", "text/javascript"),
        f"{PAGE}worker.js": plain("postMessage(await (await fetch('/plain')).text())", "text/javascript"),
        f"{PAGE}shared.js": plain("onconnect = ({ ports }) => ports[0].postMessage('shared')", "text/javascript"),
        f"{PAGE}events": plain("data: event\n\n", "text/event-stream"),
        f"{PAGE}login": Told(401, (("www-authenticate", "Basic realm=a"),), b""),
    }

    async def show(views: BrowserViews, _browser: Chromium) -> Viewed:
        async def answer(asked: Asked) -> Told | None:
            if asked.url == f"{PAGE}cookie":
                return plain(asked.first("cookie"))
            if asked.method == "POST":
                body = asked.body or b""
                content = body.partition(b"\r\n\r\n")[2].partition(b"\r\n--")[0] or body
                return plain(f"{len(content)} bytes")
            told = answers.get(asked.url)
            return None if told is None else part_of(asked, told)

        return await views.view(PAGE, SECOND, answer, PATIENT)

    found = in_browser(show)
    assert json.loads(found.title) == TOLD
    assert [each.url for each in found.missing] == [f"{PAGE}missing"]
