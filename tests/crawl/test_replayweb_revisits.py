"""replayweb.page shows what is stored as revisits: of other URLs, hosts and dates, in large and in several packages.

A site is crawled three times, and what came is looked at in Chromium, each capture at its date: from one signed
package whose index is in blocks, and from packages that belong together. pywb is held to the same in
`test_dedup_replay` and `test_recrawl`.
"""

import asyncio
import hashlib
import json
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

from archiver.collection.layout import Layout
from archiver.collection.named_crawl import collected_crawls
from archiver.model import ExitCode
from archiver.tools.wacz.contents import PLAIN
from archiver.warc.cdxj import IndexEntry, parse_line
from fixtures import browser, replayweb_page
from fixtures.archives import next_second
from fixtures.conditional_site import Page, served
from fixtures.debian import NotToBeHad
from fixtures.devtools import needs_chromium
from fixtures.forks import Forks
from fixtures.handmade_warc import member, record
from fixtures.rawserver import RawServer, Route
from fixtures.replayweb_page import Capture, hosted, opened_at
from fixtures.sites import ok, page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.replay,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    needs_chromium,
]
HOSTS = ("127.0.0.1", "127.0.0.2")
LONG = f"<!-- {'so that it is stored once only ' * 40} -->"
RED, GREEN, BLUE = (220, 0), (0, 220), (0, 0)
IMAGES = """(async () => {
    await Promise.all([...document.images].map(image => image.decode()))
    return [document.title, [...document.images].map(image => {
        const drawn = new OffscreenCanvas(1, 1).getContext("2d")
        drawn.drawImage(image, 0, 0, 1, 1)
        return [...drawn.getImageData(0, 0, 1, 1).data].slice(0, 2)
    })]
})()"""


@dataclass(frozen=True)
class Picture(Page):
    """One version of a picture."""

    data: bytes = b""

    @property
    def sent(self) -> bytes:
        return self.data


def site(version: int, far: str) -> dict[str, Route]:
    """What both hosts serve; what moves has another *version* after two crawls. Twins name *far*, so it comes last."""
    twin = page("Twin", [far], images=["pic.png", "/logo.png"], body=LONG)
    pages: dict[str, Page | Route] = {
        "/": ok(page("Home", ["/a/twin", "/b/twin", "/kept", "/steady", "/moving"], body=LONG)),
        "//127.0.0.2/": ok(page("Far", body=LONG)),
        "/a/twin": ok(twin),  # the same under another URL, and on another host
        "/b/twin": ok(twin),
        "//127.0.0.2/a/twin": ok(twin),
        "/a/pic.png": ok(noise(RED), "image/png"),
        "/b/pic.png": ok(noise(GREEN), "image/png"),
        "//127.0.0.2/a/pic.png": ok(noise(RED), "image/png"),
        "/logo.png": Picture("", etag='"l"', media_type="image/png", data=noise(BLUE)),
        "//127.0.0.2/logo.png": ok(noise(BLUE), "image/png"),
        "/kept": Page(page("Kept", images=["/kept.png"], body=LONG), etag='"k"'),  # 304, and its picture
        "/kept.png": Picture("", modified="Mon, 16 Nov 2026 08:00:00 GMT", media_type="image/png", data=noise(GREEN)),
        "/steady": ok(page("Steady", body=LONG)),  # comes whole each time, the same
        "/moving": Page(page(f"Moving {version}", images=["/moving.png"], body=LONG), etag=f'"m-{version}"'),
        "/moving.png": ok(noise((200, 200) if version == 1 else (90, 0)), "image/png"),
    }
    return served(pages)


def test_replayweb_shows_revisits(tmp_path: Path) -> None:
    """Every capture at its date, by its digest; and a page of revisits of revisits' originals is drawn."""
    try:
        replayweb_page.files()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    with Forks() as forks, RawServer(hosts=HOSTS) as server:

        def run(*arguments: str) -> None:
            ran = forks.run(*arguments, cwd=tmp_path)
            assert ran.code == ExitCode.DONE, ran.said

        seeds = (server.url("/"), server.url("/", HOSTS[1]), "--allow-private", HOSTS[1])
        begin = ("crawl", *seeds, "-o", "c", "--rate", "0", "--probe", "off", "--min-free-disk", "0")
        for version, arguments in ((1, begin), (1, ("recrawl", "c")), (2, ("recrawl", "c"))):
            server.routes = site(version, server.url("/a/twin", HOSTS[1]))
            run(*arguments)
            next_second()
        run("pack", "c", "-o", "several.wacz", "--split", "1")  # a package for each WARC file
        wanted = captures(tmp_path / "c" / "indexes" / "index.cdxj")
        many(tmp_path / "c", server.url)
        run("pack", "c", "-o", "large.wacz", "--sign")
        run("pack", "c", "--crawl", "2", "-o", "second.wacz")  # nearly all of it are revisits
        far, kept, moving = server.url("/a/twin", HOSTS[1]), server.url("/kept"), server.url("/moving")
    revisits = [each for each in wanted if each.mime == "warc/revisit"]
    assert {each.url for each in revisits} >= {far, kept, moving, server.url("/b/twin"), server.url("/kept.png")}
    assert [each.status for each in revisits if each.url == kept] == ["-", "-"]  # not modified, twice
    assert "indexes/index.idx" in ZipFile(tmp_path / "large.wacz").namelist()
    first = {each.url: each.timestamp for each in reversed(revisits)}

    async def look() -> None:
        async with browser.opened(tmp_path / "profile") as shown:
            async with hosted(tmp_path / "large.wacz") as host:
                viewing = await opened_at(shown, host)
                for url, moment, said in (
                    (far, first[far], ["Twin", [RED, BLUE]]),
                    (moving, first[moving], ["Moving 1", [(200, 200)]]),
                ):
                    await shown.go(host.address(url, moment))
                    title, colours = await shown.within(await shown.shown(f"{moment}mp_/{url}"), IMAGES)
                    assert [title, [tuple(colour) for colour in colours]] == said
                asked = [Capture(each.url, each.timestamp) for each in wanted]
                for _ in range(2):  # it remembers what it has found, and goes another way then
                    assert false(wanted, await viewing.payloads(asked)) == []
                assert await viewing.signed() is True
            async with hosted(tmp_path / "second.wacz") as host:
                viewing = await opened_at(shown, host)
                those = of_crawl(wanted, tmp_path / "c", 2)
                assert kept in {each.url for each in those}
                asked = [Capture(each.url, each.timestamp) for each in those]
                assert false(those, await viewing.payloads(asked)) == []
            async with hosted(tmp_path / "several.json") as host:
                viewing = await opened_at(shown, host)
                lies = places(tmp_path / "several.json")
                newest = sorted(wanted, key=lambda each: each.timestamp, reverse=True)
                asked = [Capture(each.url, each.timestamp, lies[each.filename]) for each in newest]
                assert false(newest, await viewing.payloads(asked)) == []
                asked = [Capture(each.url, each.timestamp) for each in wanted]
                assert false(wanted, await viewing.payloads(asked)) == []

    asyncio.run(look())


def captures(index: Path) -> list[IndexEntry]:
    """What was captured by HTTP, but for robots.txt."""
    entries = [entry for line in index.read_bytes().splitlines() if (entry := parse_line(line)) is not None]
    return [entry for entry in entries if entry.url.startswith("http:") and not entry.url.endswith("/robots.txt")]


def of_crawl(entries: list[IndexEntry], directory: Path, number: int) -> list[IndexEntry]:
    """Those of *entries* that the crawl with this *number* captured."""
    files = collected_crawls(Layout(directory))[number - 1].files()
    return [each for each in entries if each.filename in files]


def false(entries: list[IndexEntry], found: list[tuple[int, bytes]]) -> list[str]:
    """Those of *entries* whose payload is not what was *found*."""
    return [
        f"{entry.url} at {entry.timestamp}: {status}, {body[:80]!r}"
        for entry, (status, body) in zip(entries, found, strict=True)
        if (status, f"sha256:{hashlib.sha256(body).hexdigest()}") != (200, entry.digest)
    ]


def places(several: Path) -> dict[str, str]:
    """By which digest the viewer knows the package in which each WARC file lies."""
    found = {}
    for part in json.loads(several.read_text())["resources"]:
        for name in ZipFile(several.parent / part["path"]).namelist():
            found[name.rpartition("/")[2]] = part["hash"].removeprefix("sha256:")
    return found


def many(directory: Path, url: Callable[..., str]) -> None:
    """So many lines in the index, all of one record, that a package has it in blocks, which part both hosts."""
    name = "many.warc.gz"
    data = member(record("response", b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"))
    (directory / "archive" / name).write_bytes(data)
    said = {"mime": "image/png", "status": "200", "digest": "-", "length": str(len(data)), "offset": "0"}
    lines = []
    for host in HOSTS:
        key = f"{','.join(reversed(host.split('.')))}:{url('').rpartition(':')[2]})"
        for number in range(PLAIN // 2 + 1):
            target = f"/{'al'[number % 2]}{number:05}"
            rest = json.dumps({"url": url(target, host), **said, "filename": name})
            lines.append(f"{key}{target} 20260101000000 {rest}\n".encode())
    (directory / "indexes" / "many.cdxj").write_bytes(b"".join(sorted(lines)))


def noise(colour: tuple[int, int], size: int = 60) -> bytes:
    """A picture of one *colour*, large enough to be stored once only."""
    chance = random.Random(repr(colour))
    lines = b"".join(b"\0" + b"".join(bytes((*colour, chance.randrange(40))) for _ in range(size)) for _ in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    body = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)
