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
const given = (location = "c") => location
class Kept {{ field = location.href; location = 'd'; eval = 1; arguments = 2; static from() {{ return this }} }}
say("strict", [parent, mine, shadows(), given(), new Kept().field, new Kept().location, Kept.from() === Kept].join(" "))
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
        "strict": f"mine none true,b c {HOME}/ d true",
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
