"""Whatever the bytes are, they give links or nothing: Hypothesis, mutation of real documents, and hostile ones.

A few seconds by default. ARCHIVER_FUZZ=600 mutates for so many seconds (the seed is printed with a failure), also the
documents below the folder that ARCHIVER_FUZZ_PAGES names, and makes the hostile documents many times as large.
"""

import os
import subprocess
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import url
from archiver.extract import Document, links, readable
from archiver.extract.exchange import from_fields, nofollow_agents
from archiver.extract.references import MOST_LINKS
from archiver.http.content_coding import decoded
from archiver.model import Hop, Links
from fixtures.command import ROOT, environment
from fixtures.growth import growth, least_seconds
from fixtures.hostile import DICTIONARY, HOSTILE, SITEMAP, TYPES, mutants

PAGE = "http://e.org/d/p?q"
SECONDS = float(os.environ.get("ARCHIVER_FUZZ", "0"))
SEED = int(os.environ.get("ARCHIVER_FUZZ_SEED", "5"))
PAGES = os.environ.get("ARCHIVER_FUZZ_PAGES")
MUTANTS = 250  # of each kind, where no seconds are given
PIECES = 200_000 if SECONDS else 2000

PARTS = st.lists(st.sampled_from(DICTIONARY) | st.binary(max_size=8), max_size=30).map(b"".join)

DOCUMENTS = {
    "text/html": b"""<!DOCTYPE html><html lang=en><head><meta charset="utf-8"><title>a &amp; b</title><base href="/b/">
<link rel="stylesheet" href="a.css"><link rel=preload as=image imagesrcset="a.png 1x, b.png 2x">
<style>@import "b.css"; a { b: url(c.png) }</style>
<script type="application/ld+json">{"@type": "X",
"image": ["http://e.org/i.png", {"url": "/j.png"}]}</script>
<script type=module>import x from "./m.js"; const u = new URL("w.wasm",
import.meta.url); // c</script>
<meta http-equiv=refresh content="5; url=next">
<meta property="og:image" content="/og.png"></head><body background=bg.png>
<!--[if IE]><script src=ie.js></script><![endif]--><noscript><img src=n.png></noscript>
<template><img src=t.png></template>
<a href="x?y=1&amp;z=2#f" rel=nofollow>y</a><img srcset="1.png 1x, 2.png 2x"
sizes="(min-width: 1em) 2em" data-src='l.png' style="a:url('s.png')">
<iframe srcdoc="&lt;img src=f.png&gt;"></iframe>
<form action=s><input type=image src=i.png><button formaction=t></button></form>
<svg><use xlink:href="u.svg#a"/><style>b{c:url(d)}</style></svg>
<video poster=p><source src=v><track src=t></video></body></html>""",
    "text/css": b"""@charset "utf-8"; @import url("a.css") screen; @namespace url(no); /* c */
@font-face { src: url(f.woff2) format("woff2") }
a { b: image-set("a.png" 1x, url(b.png) 2x); c: "\\f101"; d: URL( 'e.png' ) } .sm\\:x { e: url(f\\)g) }""",
    "image/svg+xml": b"""<?xml version="1.0"?><?xml-stylesheet href="s.css"?><svg xmlns="http://www.w3.org/2000/svg"
 xmlns:xlink="http://www.w3.org/1999/xlink">
<style><![CDATA[a{b:url(c)}]]></style><image xlink:href="i.png"/><a href="/x?a&amp;b"/></svg>""",
    SITEMAP: b"""<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
 xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url><loc>http://e.org/a?b&amp;c</loc>
<lastmod>2024-01-01</lastmod>
<image:image><image:loc>http://e.org/i.png</image:loc></image:image></url>
<url><loc><![CDATA[http://e.org/d]]></loc></url></urlset>""",
    "application/rss+xml": b"""<rss version="2.0"><channel><link>http://e.org/</link>
<item><link>/i</link><enclosure url="/e.mp3"/>
<description>&lt;p&gt;&lt;a href="/h"&gt;</description><guid>http://e.org/g</guid></item></channel></rss>""",
    "application/manifest+json": b"""{"name": "x", "start_url": "/?pwa", "icons": [{"src": "i.png", "sizes": "1x1"}],
"shortcuts": [{"url": "/s", "icons": [{"src": "\\u002fj.png"}]}]}""",
    "text/javascript": b"""import a from "./a.js"; export * from './b.js'; const c = `./c-${a}.js`,
d = /["'`]/.test(a) ? "/d.png" : 'e/f.css';
new Worker(new URL("./w.js", import.meta.url)); import("./g.js");
/* "no.js" */ __webpack_require__.u = e => e + ".js" //# sourceMappingURL=a.js.map
""",
    "application/vnd.apple.mpegurl": b"""#EXTM3U
#EXT-X-KEY:METHOD=AES-128,URI="k.key"
#EXTINF:9,
a.ts
#EXT-X-MAP:URI="i.mp4"
b.m3u8
""",
    "application/dash+xml": b"""<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>v/</BaseURL><Period><AdaptationSet>
<SegmentTemplate media="$Number%05d$.m4s"
 initialization="$RepresentationID$.mp4" startNumber="1" duration="2"/>
<Representation id="a"/></AdaptationSet></Period></MPD>""",
    "text/plain": b"http://e.org/a\nhttp://e.org/b\n",
    "application/pdf": b"""%PDF-1.4
1 0 obj<</Type/Annot/A<</S/URI/URI(http://e.org/\\(a\\))>>>>endobj
trailer<</Root 1 0 R>>
%%EOF""",
}


def document(media_type: str, body: bytes, charset: str | None = None) -> Document:
    if media_type == SITEMAP:
        return Document(PAGE, "text/xml", charset, body, Hop.MANIFEST)
    return Document(PAGE, media_type, charset, body, Hop.REQUISITE if media_type == "text/css" else Hop.LINK)


def checked(given: Document) -> Links:
    """Return the links of a document after checking that a frontier can take them."""
    found = links(given)
    assert readable(given) or not found.links
    assert len(found.links) <= MOST_LINKS
    assert len({(link.url, link.hop) for link in found.links}) == len(found.links)
    for link in found.links:
        assert link.url.startswith(("http://", "https://"))
        assert url.canonical(link.url) == link.url
        assert len(link.context) < 200
    return found


@given(
    st.binary() | PARTS,
    st.sampled_from(TYPES),
    st.sampled_from(("utf-8", "utf-16", "iso-2022-jp", "x", "\0")) | st.none(),
)
def test_any_bytes_of_any_type(body: bytes, media_type: str, charset: str | None) -> None:
    checked(document(media_type, body, charset))


@given(
    PARTS.map(lambda body: body.decode("latin-1")),
    st.sampled_from(("link", "refresh", "location", "x-robots-tag", "content-location", "sourcemap")),
)
def test_any_field(value: str, name: str) -> None:
    fields = [(name, value), (name, f"<{value}>; rel={value}")]
    for link in from_fields(PAGE, fields):
        assert url.canonical(link.url) == link.url
    nofollow_agents(fields)


@given(PARTS, st.sampled_from(("gzip", "deflate", "br", "zstd", "x")))
def test_any_packed_bytes(body: bytes, coding: str) -> None:
    assert len(decoded(body, (coding,), 1000)[0]) <= 1000


def test_the_documents_to_mutate_have_links() -> None:
    for media_type in ("text/html", "text/css", "image/svg+xml", SITEMAP, "application/rss+xml"):
        assert checked(document(media_type, DOCUMENTS[media_type])).links


@pytest.mark.timeout(int(SECONDS) + 300)
def test_mutated_documents() -> None:
    """No exception, and no more than a second plus 20 microseconds per byte."""
    bodies = {media_type: [body] for media_type, body in DOCUMENTS.items()}
    for kind, ending in (
        ("text/html", "*.html"),
        ("text/css", "*.css"),
        ("image/svg+xml", "*.svg"),
        ("text/javascript", "*.js"),
    ):
        bodies[kind] += [path.read_bytes() for path in sorted(Path(PAGES).rglob(ending))] if PAGES else []
    every = [body for some in bodies.values() for body in some]
    streams = {kind: mutants(some, SEED) for kind, some in bodies.items()}
    streams |= {media_type: mutants(every, SEED) for media_type in TYPES if media_type not in bodies}
    end = time.monotonic() + SECONDS
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        for media_type, stream in streams.items():
            for number, body in enumerate(islice(stream, MUTANTS), rounds * MUTANTS):
                most = 1 + 2e-5 * len(body)
                try:
                    assert least_seconds(partial(checked, document(media_type, body)), most) < most
                except Exception as fault:
                    raise AssertionError(f"{media_type!r}, mutant {number} of seed {SEED}: {body!r}") from fault
        rounds += 1
    print(f"{rounds * MUTANTS} mutants of each of {len(streams)} kinds")


@pytest.mark.alone
@pytest.mark.parametrize("name", HOSTILE)
def test_four_times_the_size_takes_four_times_the_time(name: str) -> None:
    """Less than eight times: quadratic work takes 16 times. Work of a few milliseconds is not compared.

    A large document may need the parser where a small one needs the scanner only: at 20 MB a second at least.
    """
    hostile = HOSTILE[name]
    once, four = (document(hostile.media_type, hostile.make(pieces)) for pieces in (PIECES, 4 * PIECES))
    floor = max(0.05, 5e-8 * len(four.body)) / 8
    assert growth(lambda: checked(once), lambda: checked(four), enough=8, floor=floor) < 8


@pytest.mark.alone
@pytest.mark.parametrize(
    "value", ["<", "<a>;", "<a>,", '"', "<a>; rel=", "\\", '<a>;a="', ";", ",", ", ", " ", "a:nofollow,"]
)
@pytest.mark.parametrize("name", ["link", "refresh", "location", "x-robots-tag"])
def test_huge_fields(name: str, value: str) -> None:
    fields = [(name, value * 50_000), (name, f"<x>{value * 50_000}")]
    assert least_seconds(lambda: (from_fields(PAGE, fields), nofollow_agents(fields)), 1) < 1


STATUS = Path("/proc/self/status")  # getrusage counts what the process was before it became this program
MEASURED = """
import re, sys
from pathlib import Path
from archiver.extract import Document, links
from fixtures.hostile import HOSTILE, HTML
name, pieces = sys.argv[1], int(sys.argv[2])
hostile = HOSTILE[name]
body = hostile.make(pieces)

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
before = peak()
links(Document("http://e.org/", hostile.media_type, None, body))
print(len(body), peak() - before)
"""


@pytest.mark.alone
@pytest.mark.skipif(not STATUS.exists(), reason="only Linux tells the peak of one program")
@pytest.mark.parametrize(
    ("name", "pieces", "most"),
    [
        ("HTML '<'", 4_000_000, 20),
        ("attributes of one element", 200_000, 60),
        ("elements with links", 100_000, 60),
    ],
)
def test_memory_is_bounded(name: str, pieces: int, most: int) -> None:
    """The peak is at most *most* bytes for each byte of the document."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, name, str(pieces * (10 if SECONDS else 1))],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    size, used = map(int, ran.stdout.split())
    print(f"{name}: {size / 1e6:.1f} MB, {used / 1e6:.1f} MB at the peak")
    assert used < most * size
