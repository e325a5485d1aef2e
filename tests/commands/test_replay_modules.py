"""Pages whose scripts are ECMAScript modules run in `archiver replay` as they ran on their site, in a real browser."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from archiver.warc import cdxj
from fixtures import browser
from fixtures.command import ROOT
from fixtures.devtools import needs_chromium
from fixtures.folder import content_type, files
from fixtures.handmade_warc import Collection, Visit
from fixtures.pywb_server import Wayback, archiver_replay
from fixtures.sites import PIXEL

pytestmark = [
    pytest.mark.browser,
    pytest.mark.replay,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    needs_chromium,
]
HOME = "https://site.example"
THERE = """new Promise(done => {
    const look = () => {
        const found = Object.fromEntries(%s.map(id => [id, document.getElementById(id)?.textContent]))
        if (Object.values(found).every(text => text !== undefined)) done(found)
    }
    new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true })
    look()
})"""
SAY = """const say = (id, textContent) =>
    document.body.append(Object.assign(document.createElement("p"), { id, textContent }))
"""


def held(folder: Path, answers: dict[str, tuple[str, bytes]]) -> Path:
    """A collection of *answers*: for each URL its media type and body."""
    answers = {f"{HOME}/favicon.ico": ("image/gif", PIXEL)} | answers  # which browsers ask for
    visits = tuple(
        Visit(url, body, f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n".encode(), mime=media.partition(";")[0])
        for url, (media, body) in answers.items()
    )
    Collection(folder, visits, surt=cdxj.lookup_key).database.unlink()
    return folder


def shown(wayback: Wayback, profile: Path, url: str, wanted: list[str]) -> tuple[dict[str, Any], list[str], list[str]]:
    """The texts of the elements *wanted* when all are there, the console's errors, and the requests that failed."""

    async def run() -> tuple[dict[str, Any], list[str], list[str]]:
        async with browser.opened(profile) as page, asyncio.timeout(browser.PATIENCE):
            await page.go(wayback.address(url))
            frame = await page.shown(f"mp_/{url}")
            try:
                async with asyncio.timeout(browser.PATIENCE / 2):
                    found = await page.within(frame, THERE % json.dumps(wanted))
            except TimeoutError:
                there = await page.within(frame, "document.body.innerText")
                raise AssertionError(f"not all of {wanted}; there is {there!r}; errors: {page.errors}") from None
            await page.quiet(browser.IDLE)
            return found, page.errors, [f"{each.fault} {each.url}" for each in page.asked if each.fault]

    return asyncio.run(run())


def test_a_site_that_vite_built(tmp_path: Path) -> None:
    """Its text, chunks that come later with their style sheets, a worker, pictures and data; its modules run once."""
    tree = files(ROOT / "fixtures" / "vite" / "dist")
    answers = {HOME + target: (content_type(path), path.read_bytes()) for target, path in tree.items()}
    wanted = ["static", "where", "late", "worker", "data"]
    with archiver_replay(held(tmp_path / "c", answers)) as wayback:
        found, errors, failed = shown(wayback, tmp_path / "profile", f"{HOME}/", wanted)
    assert found == {
        "static": "hello from the entry, time 1",
        "where": "site.example/ true",
        "late": "hello from a chunk that came later, time 2",
        "worker": "the worker says 42 and data of the site",
        "data": "data of the site",
    }
    assert (errors, failed) == ([], [])


INLINE = f"""<!doctype html><title>inline</title><base href="/deep/er/">
<script type="importmap">{{"imports": {{"bare": "/lib/bare.js", "kit/": "../kit/"}}}}</script>
<body><link rel="modulepreload" href="/lib/bare.js">
<script type="module">
import {{ name }} from "bare"
import part from 'kit/part.js'
import * as near from "./near.js"
import "{HOME}/lib/effect.js"
{SAY}
say("bare", name)
say("part", part)
say("near", near.where)
say("effect", window.effect + " " + top.document.title)
say("meta", import.meta.url)
say("resolved", import.meta.resolve("/x.js") + " " + import.meta.resolve("./y.js"))
const text = "import './never.js'; location = '/never'"  // import "/never.js"
say("text", text + /import "x"/.source + `${{(await import("/lib/bare.js")).name}} import("/never.js")`)
say("built", (await import(new URL("near.js", import.meta.url))).where)
</script>
<script>import("./near.js").then(near => document.body.append(
    Object.assign(document.createElement("p"), {{ id: "classic", textContent: near.where }})))</script>
<script>
const added = document.createElement("script")
added.type = "module"
added.src = "/lib/added.js"
document.head.append(added)
</script>
<script type="module" src="strict.js"></script>
"""
STRICT = f"""{SAY}
let parent = "mine"
const {{ opener: mine = "none" }} = {{}}
function shadows() {{ var self = this; let location = "a"; location = "b"; return [self === undefined, location] }}
const given = (location = "c") => location, arrow = location => location
class Kept {{ field = location.href; location = 'd'; eval = 1; arguments = 2; static from() {{ return this }} }}
const same = Kept.from() === Kept
say("strict", [parent, mine, shadows(), given(), new Kept().field, new Kept().location, same, arrow("e")].join(" "))
const count = (function () {{ return arguments.length }})(1, 2)
say("arguments", String(count) + eval("1 + 1"))
export {{ count as default }}
"""
SCRIPTS = {
    "/lib/bare.js": f'export * from "./more.js"; {"window"}.bared = (window.bared || 0) + 1',
    "/lib/more.js": "export const name = `bare of ${location.host}, run ${(window.mored = (window.mored || 0) + 1)}`",
    "/deep/kit/part.js": 'import { name } from "../../lib/bare.js"; export default name.length > 0 ? "a part" : ""',
    "/deep/er/near.js": "window.near = (window.near || 0) + 1;"
    "export const where = new URL(import.meta.url).pathname + window.near",
    "/lib/effect.js": 'window.effect = "done"',
    "/lib/added.js": f'{SAY} import {{ name }} from "bare"; say("added", name)',
    "/deep/er/strict.js": STRICT,
}


def test_modules_in_the_page_and_import_maps(tmp_path: Path) -> None:
    """Every way in which one names another leads to one instance, and what only looks like a name stays as it is."""
    answers = {f"{HOME}/": ("text/html", INLINE.encode())}
    answers |= {HOME + target: ("text/ecmascript", text.encode()) for target, text in SCRIPTS.items()}
    wanted = ["bare", "part", "near", "effect", "meta", "resolved", "text", "built", "classic", "strict", "added"]
    wanted.append("arguments")
    with archiver_replay(held(tmp_path / "c", answers)) as wayback:
        found, errors, failed = shown(wayback, tmp_path / "profile", f"{HOME}/", wanted)
    bare = "bare of site.example, run 1"
    assert found == {
        "bare": bare,
        "part": "a part",
        "near": "/deep/er/near.js1",
        "effect": "done inline",
        "meta": f"{HOME}/deep/er/",
        "resolved": f"{HOME}/x.js {HOME}/deep/er/y.js",
        "text": "import './never.js'; location = '/never'" + 'import "x"' + bare + ' import("/never.js")',
        "built": "/deep/er/near.js1",
        "classic": "/deep/er/near.js1",
        "strict": f"mine none true,b c {HOME}/ d true e",
        "arguments": "22",
        "added": bare,
    }
    assert (errors, failed) == ([], [])


CLASSIC = f"""{SAY}
const pattern = /(?:exports|import(?:\\s+static)?)\\s+[a-z]+/
const text = 'import ("/never.js") and ' + "an import (of 'things')"
import("./near.js").then(near => say("there", [pattern.test("import static a"), text.length > 9, near.where].join(" ")))
"""


def test_what_only_looks_like_an_import_breaks_no_classic_script(tmp_path: Path) -> None:
    """The real one is resolved against the URL of the script."""
    answers = {
        f"{HOME}/a/page": ("text/html", b"<!doctype html><script src='/deep/er/classic.js' async></script>"),
        f"{HOME}/deep/er/classic.js": ("text/javascript", CLASSIC.encode()),
        f"{HOME}/deep/er/near.js": ("text/javascript", SCRIPTS["/deep/er/near.js"].encode()),
    }
    with archiver_replay(held(tmp_path / "c", answers)) as wayback:
        found, errors, failed = shown(wayback, tmp_path / "profile", f"{HOME}/a/page", ["there"])
    assert (found, errors, failed) == ({"there": "true true /deep/er/near.js1"}, [], [])


DECLARES = """const first = "const"
const { second = "50 € früh", third: [fourth] } = { third: ["pattern"] }
let counter = 1,
    other = 0
class Part { name() { return "class" } }
async function later() { return "async" }
function* each() { yield "generator" }
function plain() { return "plain" }
const fetch = () => "ours", status = "a property of window"
function count() { return counter }
const hidden = "mine", kept = window.kept // without a semicolon
var top = top || {}
var self = this, frames = []
"""
USES = f"""{SAY}
counter += 1
const made = [new Part().name(), each().next().value, plain()].join(" ")
later().then(text => say("names", [first, second, fourth, made, text, hidden, kept].join(" ")))
say("shared", count() + " " + other + " " + typeof self.document + " " + frames.length + " " + location.host)
let refused = ""
try {{ first = 1 }} catch (error) {{ refused = error.name }}
say("constant", refused + " " + Object.keys(window).includes("first") + " " + typeof window.fetch)
"""
PAGE = """<!doctype html><body><script>window.hidden = window.kept = "window's"
const inline = "inline"</script><script src="/a.js"></script>
<script>let before = first + inline; var parent = "mine"; before += parent</script><script src="/b.js"></script>
<script>say("inline", before + inline)</script>
"""


def test_classic_scripts_see_what_others_declare(tmp_path: Path) -> None:
    """In files and in the page; what `window` has of its own stays, and a script may declare what pywb declares."""
    answers = {
        f"{HOME}/": ("text/html; charset=utf-8", PAGE.encode()),
        f"{HOME}/a.js": ("text/javascript", DECLARES.encode()),
        f"{HOME}/b.js": ("text/javascript", USES.encode()),
    }
    with archiver_replay(held(tmp_path / "c", answers)) as wayback:
        wanted = ["names", "shared", "constant", "inline"]
        found, errors, failed = shown(wayback, tmp_path / "profile", f"{HOME}/", wanted)
    assert found == {
        "names": "const 50 € früh pattern class generator plain async mine window's",
        "shared": "2 0 object 0 site.example",
        "constant": "TypeError false function",
        "inline": "constinlinemineinline",
    }
    assert (errors, failed) == ([], [])


STRICT_CLASSIC = """/* strict */ "use strict"
function who() { return this }
function shared() { return "shared" }
var plain = "a var"
const kept = Object.freeze({ mark: 1 })
let refused = "not refused"
try { undeclared = 1 } catch (error) { refused = error.name }
try { kept.mark = 2 } catch (error) { refused += " " + error.name }
say("strict", [who() === undefined, refused, location.host, globalThis.location.host, globalThis === window].join(" "))
"""
TEXTS = """#!/usr/bin/env node
class Goes {
    to = () => { const at = 1, location = at; if (!location) location = "/never"; return location }
}
say("texts", ["In general, this works; x = this; return this", "set location = here", 'eval ("x")'] +
    `(a, this ${[1].map(function () { return this.document === document }, window)} = this)` +
    /, this|[/]location=/.test("/location=") + (function () { return this })().location.host) // , this
{ let place = 0; (location => { location = 1; place = location })(0); say("local", place + " " + new Goes().to()) }
"""
FUNCTIONS = """say("functions", [
    new Function("return location.host")(),
    Function("return this")().location.host,
    Function("'use strict'; return this")() === undefined,
    new Function("location", "return location")("mine"),
    new Function("let self = 1; return self + document.title")(),
    Function("a", "b", "return a + b").length,
    Object.getPrototypeOf(async () => {}).constructor("return 1").constructor.name,
    (() => {}).constructor === Function && Function() instanceof Function,
    new (class extends Function {})("return 1")(),
].join(" "))
if (location.hash === "") location = "#"
const go = () => { location = "#" /* here */; return location.host }
say("set", [go(), go() && location.hash, location.pathname].join(" "))
addEventListener("message", given)
function given(event) { removeEventListener("message", given); say("message", event.data + " " + event.origin) }
"""
FRAME = "<script>parent.postMessage('from a frame', '*')</script>"


def test_classic_scripts_mean_what_they_meant(tmp_path: Path) -> None:
    """Strict code, texts that look like code, code in texts, and functions of the window without its name."""
    page = "<!doctype html><title>page</title><body><script src=/say.js></script><script src=/strict.js></script>"
    page += "<script>say('seen', shared() + ' ' + plain + ' ' + typeof window.who)</script>"
    page += "<script>'use strict'; say('inline', String((function () { return this })()))</script>"
    page += "<script src=/texts.js></script><script src=/functions.js></script><iframe src=/frame></iframe>"
    scripts = {"say.js": SAY, "strict.js": STRICT_CLASSIC, "texts.js": TEXTS, "functions.js": FUNCTIONS}
    answers = {f"{HOME}/": ("text/html", page.encode()), f"{HOME}/frame": ("text/html", FRAME.encode())}
    answers |= {f"{HOME}/{name}": ("text/javascript", text.encode()) for name, text in scripts.items()}
    with archiver_replay(held(tmp_path / "c", answers)) as wayback:
        wanted = ["strict", "seen", "texts", "inline", "functions", "set", "local", "message"]
        found, errors, failed = shown(wayback, tmp_path / "profile", f"{HOME}/", wanted)
    assert found == {
        "strict": "true ReferenceError TypeError site.example site.example true",
        "seen": "shared a var function",
        "texts": 'In general, this works; x = this; return this,set location = here,eval ("x")'
        "(a, this true = this)truesite.example",
        "inline": "undefined",
        "functions": "site.example site.example true mine 1page 2 AsyncFunction true 1",
        "set": "site.example  /",
        "local": "1 1",
        "message": f"from a frame {HOME}",
    }
    assert (errors, failed) == ([], [])
