"""Formats other than HTML, XML, CSS and scripts: one document per row, and the links found in it."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.extract import Document, links
from archiver.model import Hop
from fixtures.extracted_links import PAGE, Found, found

L, E, X, M = Hop.LINK, Hop.REQUISITE, Hop.SPECULATIVE, Hop.MANIFEST


def test_entries_of_playlists_on_a_page_are_requisites() -> None:
    asx = "<ASX VERSION='3'><Base HREF='/m/'/><Entry><Ref HREF='1.wmv'/><Ref href='mms://e.org/2'></entry></asx>"
    assert found(asx, "video/x-ms-asf", E) == [("/m/1.wmv", E)]
    assert found("\x30\x26\xb2\x75 binary", "video/x-ms-asf", E) == []
    assert found("#EXTM3U\r\n#EXTINF:1,http://no.org/\r\na b.mp3\r\n", "audio/mpegurl") == [("/d/a%20b.mp3", L)]
    assert found("a.mp3\n\n/b.mp3", "audio/x-mpegurl", E) == [("/d/a.mp3", E), ("/b.mp3", E)]
    assert found("[playlist]\nFile1=http://e.org/1\nTitle1=http://no.org/\nfile2 = /2\n", "audio/x-scpls") == [
        ("/1", L),
        ("/2", L),
    ]
    assert found("[Reference]\r\nRef1=http://e.org/1\r\n", "video/x-ms-asf") == [("/1", L)]
    assert found("http://e.org/1.rm\n--stop--\nhttp://no.org/", "audio/x-pn-realaudio", E) == [("/1.rm", E)]


HLS = {
    "master": (
        (
            '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a,b",NAME="n",URI="audio/p.m3u8?x,y"\n'
            '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="a,b"\nlow/p.m3u8\n#EXT-X-I-FRAME-STREAM-INF:URI="i.m3u8",BANDWIDTH=2\n'
            '#EXT-X-SESSION-DATA:DATA-ID="d",URI="d.json"\n#EXT-X-SESSION-KEY:METHOD=AES-128,URI="k"\n'
            '#EXT-X-CONTENT-STEERING:SERVER-URI="/no",URI="/no"\n'
        ),
        [("/d/audio/p.m3u8?x,y", E), ("/d/low/p.m3u8", E), ("/d/i.m3u8", E), ("/d/d.json", E), ("/d/k", E)],
    ),
    "media": (
        (
            '#EXTM3U\r\n#EXT-X-VERSION:7\r\n#EXT-X-KEY:METHOD=AES-128,URI="/k",IV=0x1\r\n#EXT-X-MAP:URI="init.mp4",BYTERANGE="1@0"\r\n'
            "#EXTINF:4,\r\n#EXT-X-BYTERANGE:1@2\r\n1.m4s\r\n\r\n# "
            'http://no.org/\r\n#EXT-X-PART:DURATION=1,URI="2.1.m4s"\r\n'
            '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="no.m4s"\r\n#EXT-X-RENDITION-REPORT:URI="../o.m3u8"\r\n//c.org/2.m4s\r\n'
            '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://k"\r\n'
        ),
        [("/k", E), ("/d/init.mp4", E), ("/d/1.m4s", E), ("/d/2.1.m4s", E), ("/o.m3u8", E), ("http://c.org/2.m4s", E)],
    ),
    "variables": (
        '#EXTM3U\n#EXT-X-DEFINE:NAME="h",VALUE="http://e.org/h"\n#EXT-X-DEFINE:QUERYPARAM="t"\n{$h}/1.ts?{$t}\n{$no}.ts\n',
        [("/h/1.ts?7", E), ("/d/%7B$no%7D.ts", E)],
    ),
}


@pytest.mark.parametrize("name", HLS)
@pytest.mark.parametrize("media_type", ["application/vnd.apple.mpegurl", "audio/mpegurl", "text/plain", ""])
def test_hls(name: str, media_type: str) -> None:
    body, expected = HLS[name]
    assert found(body, media_type, address="http://e.org/d/p.m3u8?t=7") == expected


MANIFEST = {
    "start_url": "/?app",
    "scope": "/no",
    "id": "/no",
    "icons": [{"src": "i.png", "sizes": "1x1"}, {"src": 1}, "no"],
    "screenshots": [{"src": "/s.png"}],
    "shortcuts": [{"url": "/new", "icons": [{"src": "n.png"}]}],
    "file_handlers": [{"action": "/no", "icons": [{"src": "f.png"}]}],
    "share_target": {"action": "/no"},
    "related_applications": [{"url": "http://no.org/", "icons": [{"src": "/no.png"}]}],
}
EXPECTED = [("/?app", L), ("/d/i.png", E), ("/s.png", E), ("/d/n.png", E), ("/d/f.png", E), ("/new", L)]


@pytest.mark.parametrize(
    ("media_type", "address"),
    [
        ("application/manifest+json", PAGE),
        ("application/json", "http://e.org/d/manifest.json"),
        ("text/plain", "http://e.org/d/site.webmanifest"),
        ("", "http://e.org/d/site.webmanifest?v=1"),
    ],
)
def test_web_manifests(media_type: str, address: str) -> None:
    assert found("\ufeff" + json.dumps(MANIFEST), media_type, E, address) == EXPECTED


def test_json_feeds() -> None:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "home_page_url": "/",
        "icon": "/i.png",
        "authors": [{"url": "/me", "avatar": "/me.png"}],
        "hubs": [{"type": "x", "url": "http://no.org/"}],
        "items": [
            {"id": "http://no.org/", "url": "/1", "image": "1.png", "content_html": "<a href=x>y</a><img src=j.png>"},
            {"external_url": "http://x.org/", "attachments": [{"url": "/1.mp3"}], "author": {"url": "/you"}},
        ],
    }
    expected = [
        ("/", L),
        ("/i.png", E),
        ("/me", L),
        ("/me.png", E),
        ("/1", L),
        ("/d/1.png", E),
        ("/d/x", L),
        ("/d/j.png", E),
    ]
    expected += [("http://x.org/", L), ("/you", L), ("/1.mp3", L)]
    assert found(json.dumps(feed), "application/feed+json") == expected
    assert found(json.dumps(feed), "application/json") == expected


@pytest.mark.parametrize(
    "body", ["", "[]", "1", "{", "[" * 100_000, '{"icons":' * 5000, "1" * 10_000, '{"icons":[{"src":[]}]}']
)
def test_json_of_another_kind_names_nothing(body: str) -> None:
    assert found(body, "application/manifest+json") == []
    assert found(body, "application/feed+json") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("http://e.org/1\nhttps://e.org/2?a b", []),
        ("http://e.org/1\r\n\r\n# more\r\n  http://e.org/2  \r\n", [("/1", L), ("/2", L)]),
        ("\ufeff# list\nhttp://e.org/1", [("/1", L)]),
        ("http://e.org/1", [("/1", L)]),
        ("http://e.org/1\rhttp://e.org/2", [("/1", L), ("/2", L)]),
        ("see http://e.org/1\nhttp://e.org/2", []),
        ("http://e.org/1\nsee there", []),
        ("# only words", []),
        ("http://e.org/" + "x" * 2000 + "\nhttp://e.org/2\n", [("/" + "x" * 2000, L), ("/2", L)]),
        ("http://e.org/1\n" * 200 + "and a word", []),
        ("", []),
    ],
)
def test_plain_text_is_read_if_it_is_a_list_of_urls(body: str, expected: Found) -> None:
    assert found(body, "text/plain") == expected
    assert found(body, "text/uri-list") == expected


def packed(objects: bytes) -> bytes:
    stream = zlib.compress(objects)
    return b"9 0 obj\n<</Type/ObjStm/N 2/First 9/Filter/FlateDecode/Length %d>>\nstream\r\n%s\nendstream\nendobj\n" % (
        len(stream),
        stream,
    )


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (b"<</S/URI/URI(http://e.org/a?b)>>", [("/a?b", L)]),
        (b"<< /Type /Action /S /URI /URI (http://e.org/a\\(b\\)c(d)) >>", [("/a(b)c(d)", L)]),
        (b"/URI (http://e.org/\\141\\\nb)", [("/ab", L)]),
        (b"/URI <687474703A2F2F652E6F72672F 61>", [("/a", L)]),
        (b"/URI(\xfe\xff" + "http://e.org/é".encode("utf-16-be") + b")", [("/%C3%A9", L)]),
        (b"/URI(page.html)", [("/d/page.html", L)]),
        (b"/Catalog/URI<</Base(http://x.org/y/)>> /URI(z)", [("http://x.org/y/z", L)]),
        (b"/URI 7 0 R /URI 8 0 R 7 0 obj\n(http://e.org/a)\nendobj 17 0 obj (http://no.org/)", [("/a", L)]),
        (b"/URI(mailto:a@e.org) /URI(#page=2) /URI()", []),
        (b"<</URI 5>> (http://no.org/) http://no.org/", []),
        (packed(b"1 0 2 9 <</S/URI/URI(http://e.org/p)>>"), [("/p", L)]),
        (packed(b"<</URI(http://e.org/p)>>" + bytes(100_000) + b"/URI(/q)")[:-90], [("/p", L)]),
        (b"<</Encrypt 3 0 R>> /URI(\x01\x02)", []),
    ],
)
def test_pdf(inside: bytes, expected: Found) -> None:
    assert found(b"%PDF-1.5\n%\xe2\xe3\n" + inside + b"\n%%EOF", "application/pdf") == expected
    assert found(b"%PDF-1.5\n" + inside + b"\n%%EOF", "application/octet-stream") == expected


@pytest.mark.parametrize(
    "piece",
    [
        b"/URI(",
        b"/URI(()",
        b"/URI(\\(",
        b"/URI<",
        b"/URI 1 0 R ",
        b"1 0 obj (",
        b"1 ",
        b"/Type/ObjStm stream\n",
        b"/URI",
        packed(bytes(9999)),
    ],
)
def test_pdf_is_linear(piece: bytes) -> None:
    assert found(b"%PDF-1.5\n/URI 1 0 R " + piece * (300_000 // len(piece)), "application/pdf") == []


TYPES = (
    *(
        "application/xml",
        "application/rss+xml",
        "application/dash+xml",
        "audio/mpegurl",
        "audio/x-scpls",
        "video/x-ms-asf",
    ),
    *("application/manifest+json", "application/feed+json", "text/uri-list", "text/plain", "application/pdf", ""),
)
SAMPLES = (
    *(body.encode() for body, _ in HLS.values()),
    *(
        b"%PDF-1.5 /URI(a)",
        packed(b"/URI(b)"),
        json.dumps(MANIFEST).encode(),
        b"<MPD><Period><AdaptationSet><Representation/>",
    ),
)


@settings(max_examples=100)
@given(st.sampled_from(SAMPLES), st.sampled_from(TYPES), st.sampled_from([L, E, M]), st.binary(max_size=20), st.data())
def test_nothing_raises(sample: bytes, media_type: str, hop: Hop, noise: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(sample)))
    body = sample[:start] + noise + sample[data.draw(st.integers(start, len(sample))) :]
    assert all(link.url.startswith("http") for link in links(Document(PAGE, media_type, None, body, hop)).links)


def test_pictures_in_the_cues_of_a_video() -> None:
    text = "WEBVTT\n\n1\n00:00.000 --> 00:05.000\ns 1.png#xywh=0,0,9,9\n"
    text += "\n00:05.000 --> 00:09.000\n../s.jpg?v=1#xywh=9,0,9,9\n"
    text += "\n00:09.000 --> 00:10.000\nHello\nLook at a.png\nb.webp\n"
    expected = [("/s.jpg?v=1", E), ("/d/b.webp", E)]
    for media_type in ("text/vtt", "text/plain", "application/octet-stream"):
        assert found(text, media_type) == expected
    assert found("Notes\n\na.png\n", "text/vtt") == []
