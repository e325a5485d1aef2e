"""Names of exported files: safe on every system, each once, the same every time, and telling."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import url
from archiver.tools.export.plan import LONGEST_PATH, FileNames

E = "http://e.org"


@pytest.mark.parametrize(
    ("address", "media_type", "path"),
    [
        ("/", "text/html", "e.org/index.html"),
        ("/a", "text/html", "e.org/a.html"),
        ("/a/", "text/html", "e.org/a/index.html"),
        ("/a.html", "text/html", "e.org/a.html"),
        ("/a.HTM", "text/html", "e.org/a.HTM"),
        ("/a.php?id=1&x=/y", "text/html", "e.org/a.php@id=1&x=_y.html"),
        ("/a.html?p=2", "text/html", "e.org/a@p=2.html"),
        ("/style.css?v=3", "text/css", "e.org/style@v=3.css"),
        ("/feed/", "application/rss+xml", "e.org/feed/index.xml"),
        ("/image", "image/png", "e.org/image.png"),
        ("/image.jpg", "image/webp", "e.org/image.jpg.webp"),
        ("/x.svg", "image/svg+xml", "e.org/x.svg"),
        ("/tar.gz", "application/octet-stream", "e.org/tar.gz"),
        ("/data", "application/octet-stream", "e.org/data.bin"),
        ("/page.html", "application/octet-stream", "e.org/page.html.bin"),
        ("/page.html", "text/plain", "e.org/page.html.txt"),
        ("/README.md", "text/plain", "e.org/README.md"),
        ("/x.foo", "application/x-foo", "e.org/x.foo"),
        ("/caf%C3%A9/%E2%82%AC.html", "text/html", "e.org/café/€.html"),
        ("/a%2Fb/%2e%2e%5c/c%00d", "text/html", "e.org/a_b/.._/c_d.html"),
        ("/%252e%252e/x", "text/html", "e.org/%2e%2e/x.html"),
        ("//a//b", "text/html", "e.org/_/a/_/b.html"),
        ("/a:b*c|d", "text/html", "e.org/a_b_c_d.html"),
        ("/con/AUX.txt/nul", "text/html", "e.org/_con/_AUX.txt/_nul.html"),
        ("/x.%20/y.", "text/html", "e.org/x__/y..html"),
        ("/%ff", "text/html", "e.org/\ufffd.html"),
        ("/%E2%80%AEfdp.exe", "text/html", "e.org/_fdp.exe.html"),
    ],
)
def test_name(address: str, media_type: str, path: str) -> None:
    assert FileNames().add(f"{E}{address}", media_type) == path


def test_hosts() -> None:
    names = FileNames()
    assert names.add("https://e.org:8443/", "text/html") == "e.org_8443/index.html"
    assert names.add("http://[::1]:81/", "text/html") == "__1_81/index.html"
    assert names.add("http://con/", "text/html") == "_con/index.html"
    assert names.add("http://index.html/", "text/html") == "index.html~/index.html"


def test_what_would_be_one_is_told_apart() -> None:
    """By the case of letters alone, by a character that no file may have, as a file and as a folder."""
    names = FileNames()
    given = [
        names.add(f"{E}{path}", kind)
        for path, kind in [
            ("/A", "text/html"),
            ("/a", "text/html"),
            ("/a.html", "text/html"),
            ("/x:y", "text/html"),
            ("/x*y", "text/html"),
            ("/dir.css", "text/css"),
            ("/dir.css/in.css", "text/css"),
            ("/DIR.css/in.css", "text/css"),
            ("/later.js/in", "text/html"),
            ("/later.js", "text/javascript"),
        ]
    ]
    assert given[0] == "e.org/A.html"
    assert re.fullmatch(r"e\.org/a~[0-9a-f]{8}\.html", given[1])
    assert given[6] == "e.org/dir.css~/in.css"
    assert given[8] == "e.org/later.js/in.html"
    assert len({name.lower() for name in given}) == len(given)
    files = {name.lower() for name in given}
    assert not [name for name in files for other in files if other.startswith(f"{name}/")]


paths = st.lists(
    st.sampled_from(
        ["a", "A", "a.html", "con", "%2e%2e", "..", "", "x" * 300, "%C3%A9", "e%CC%81", "?q", "?", " ", "~", "\u0130"]
    ),
    max_size=30,
).map("/".join)
types = st.sampled_from(["text/html", "text/css", "", "image/png", "x/y"])


@given(wanted=st.lists(st.tuples(st.one_of(paths, st.text(max_size=30)), types), max_size=12))
@settings(max_examples=60)
def test_any_names(wanted: list[tuple[str, str]]) -> None:
    """Whatever the URLs are: no name leads out of the folder, none is too long, none is another's, or its folder."""
    found = [(url.canonical(f"{E}/{path}"), media_type) for path, media_type in wanted]
    names, again = FileNames(), FileNames()
    given = [names.add(address, kind) for address, kind in found if address]
    assert given == [again.add(address, kind) for address, kind in found if address]
    folded = [name.casefold() for name in given]
    assert len(set(folded)) == len(folded)
    for name in given:
        assert len(name.encode()) <= LONGEST_PATH + 40
        assert not re.search(r'[<>:"|?*\\\x00-\x1f]', name)
        segments = name.split("/")
        assert len(segments) > 1
        for segment in segments:
            assert 0 < len(segment.encode()) <= 200
            assert segment.strip(". ")
            assert segment == segment.rstrip(". ")
            assert not re.match(r"(?i)(con|nul|aux|prn|com\d|lpt\d)(\.|$)", segment)
        assert not any(other.startswith(f"{name.casefold()}/") for other in folded)
