"""Tiles of pictures that a viewer zooms into."""

import json

import pytest

from archiver.extract import Document, deep_zoom, links
from archiver.model import Hop

ROOT = "http://host.test"
E, X = Hop.REQUISITE, Hop.SPECULATIVE


def named(body: str, at: str, media_type: str = "text/xml", hop: Hop = E) -> list[str]:
    """Return the tiles that a description names, without the host."""
    found = links(Document(ROOT + at, media_type, None, body.encode(), hop)).links
    assert {link.hop for link in found if link.context == deep_zoom.CONTEXT} <= {E}
    return [link.url.removeprefix(ROOT) for link in found if link.context == deep_zoom.CONTEXT]


def dzi(width: object = 5, height: object = 3, more: str = "", inside: str = "") -> str:
    return (
        f'<Image xmlns="http://schemas.microsoft.com/deepzoom/2008" Format="png" Overlap="1" TileSize="2" {more}>'
        f'<Size Width="{width}" Height="{height}"/>{inside}</Image>'
    )


LEVELS = ["0/0_0", "1/0_0", "2/0_0", "2/1_0", "3/0_0", "3/0_1", "3/1_0", "3/1_1", "3/2_0", "3/2_1"]


@pytest.mark.parametrize(
    ("at", "folder", "query"),
    [
        ("/a/p.dzi", "/a/p_files/", ""),
        ("/a/p.xml", "/a/p_files/", ""),
        ("/a/p.dzi?v=1", "/a/p_files/", "?v=1"),
        ("/a/p.q", "/a/p.q_files/", ""),
    ],
)
def test_deep_zoom(at: str, folder: str, query: str) -> None:
    """Level 2 of 5 by 3 pixels is 3 by 2, in tiles of 2 pixels."""
    assert named(dzi(), at) == [f"{folder}{tile}.png{query}" for tile in LEVELS]


@pytest.mark.parametrize("media_type", ["text/plain", "application/octet-stream", "", "application/xml"])
@pytest.mark.parametrize("begin", ["", '<?xml version="1.0"?>\n'])
def test_deep_zoom_of_any_type(media_type: str, begin: str) -> None:
    assert len(named(begin + dzi(), "/p.dzi", media_type, X)) == len(LEVELS)


def test_deep_zoom_with_a_folder() -> None:
    assert named(dzi(1, 1, 'Url="t/"'), "/a/p.xml") == ["/a/t/0/0_0.png"]


@pytest.mark.parametrize(
    "body",
    [
        dzi("x"),
        dzi(0),
        dzi(10**8),
        dzi().replace("deepzoom", "other"),
        dzi().replace('"png"', '"../x"'),
        dzi(inside='<DisplayRects><DisplayRect MinLevel="1" MaxLevel="3"><Rect X="0"/></DisplayRect></DisplayRects>'),
        '<IMAGE_PROPERTIES WIDTH="4" HEIGHT="3" NUMTILES="7" TILESIZE="1"/>',
    ],
)
def test_other_descriptions_name_nothing(body: str) -> None:
    assert named(body, "/p.dzi") == []


def test_only_so_many_tiles() -> None:
    found = links(Document(f"{ROOT}/p.dzi", "text/xml", None, dzi(9999, 9999).encode(), E))
    assert (len(found.links), found.note) == (deep_zoom.MOST, f"only the first {deep_zoom.MOST} tiles")


@pytest.mark.parametrize(("count", "columns"), [(6, [1, 2, 3]), (4, [1, 3])])
def test_zoomify(count: int, columns: list[int]) -> None:
    """Half of 5 pixels in tiles of 2 is 3 or 2: the count of tiles shows which."""
    body = f'<IMAGE_PROPERTIES WIDTH="5" HEIGHT="1" NUMTILES="{count}" NUMIMAGES="1" VERSION="1.8" TILESIZE="2" />'
    tiles = [f"{level}-{column}-0" for level, wide in enumerate(columns) for column in range(wide)]
    assert named(body, "/z/ImageProperties.xml") == [f"/z/TileGroup0/{tile}.jpg" for tile in tiles]


def test_the_tiles_of_zoomify_are_in_groups() -> None:
    tiles = named('<IMAGE_PROPERTIES WIDTH="20" HEIGHT="20" NUMTILES="539" TILESIZE="1"/>', "/z/ImageProperties.xml")
    assert [tiles[255], tiles[256]] == ["/z/TileGroup0/5-16-5.jpg", "/z/TileGroup1/5-17-5.jpg"]


def iiif(version: int, profile: object, **more: object) -> str:
    described = {"@context": f"http://iiif.io/api/image/{version}/context.json", "profile": profile}
    named_by = {"@id" if version == 2 else "id": f"{ROOT}/i/a"}
    return json.dumps(described | named_by | {"width": 5, "height": 3} | more)


LEVEL_0 = ["http://iiif.io/api/image/2/level0.json", {"formats": ["jpg"]}]
TILES = [{"width": 2, "scaleFactors": [1, 2, 4]}]
FINE = ["0,0,2,2", "2,0,2,2", "4,0,1,2", "0,2,2,1", "2,2,2,1", "4,2,1,1"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            iiif(2, LEVEL_0, tiles=TILES),
            ["full/2,", "0,0,4,3/2,", "4,0,1,3/1,", *(f"{part}/{part.split(',')[2]}," for part in FINE)],
        ),
        (
            iiif(3, "level0", tiles=TILES),
            ["full/2,1", "0,0,4,3/2,2", "4,0,1,3/1,2", *(f"{part}/{part.partition(',')[2][2:]}" for part in FINE)],
        ),
        (iiif(3, "level0", tiles=[{"width": 9, "scaleFactors": [1]}]), ["full/max"]),
        (iiif(2, LEVEL_0, tiles=[{"width": 9, "scaleFactors": [1]}]), ["full/full"]),
        (iiif(3, "level0", sizes=[{"width": 5, "height": 3}]), ["full/5,3"]),
        (iiif(3, "level2", tiles=TILES), []),
        (iiif(3, "level0", tiles=[{"width": 0, "scaleFactors": [1]}, 1], sizes={}), []),
        (iiif(3, "level0", tiles=[{"width": 2, "scaleFactors": "1"}], width="5"), []),
        (iiif(3, "level0", tiles=TILES)[:-1], []),
    ],
)
def test_iiif(body: str, expected: list[str]) -> None:
    tiles = named(body, "/i/a/info.json", "application/json", X)
    assert tiles == [f"/i/a/{tile}/0/default.jpg" for tile in expected]


def shown(script: str) -> set[str]:
    """Return what a script in a page names, and the same script apart from it."""
    page = links(Document(f"{ROOT}/d/", "text/html", "utf-8", f"<script>{script}</script>".encode())).links
    apart = Document(f"{ROOT}/js/a.js", "text/javascript", "utf-8", script.encode(), E, f"{ROOT}/d/")
    assert {link.url for link in links(apart).links} == {link.url for link in page}
    assert {link.hop for link in page} <= {X}
    return {link.url.removeprefix(ROOT) for link in page}


BUTTONS = [f"{name}_{state}" for name in ("zoomin", "zoomout", "home", "fullpage") for state in deep_zoom.STATES]
INLINE = (
    'OpenSeadragon({id: "v", tileSources: {Image: {xmlns: "http://schemas.microsoft.com/deepzoom/2008", '
    'Url: "t/", Format: "jpg", Overlap: "1", TileSize: "2", Size: {Height: "3", Width: "5"}}}});'
)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('OpenSeadragon({tileSources: "a.dzi"})', {"/d/a.dzi"}),
        (
            'OpenSeadragon({tileSources: ["a/b.dzi", "c.xml", "/i/a/info.json"]})',
            {"/d/a/b.dzi", "/d/c.xml", "/i/a/info.json"},
        ),
        ('v.addTiledImage({tileSource: "i/a/info.json", x: 1})', {"/d/i/a/info.json"}),
        ('// tileSource: "i/a/info.json"', set()),
        (INLINE, {f"/d/t/{tile}.jpg" for tile in LEVELS}),
        (f"/* {INLINE} */", set()),
        (INLINE.replace("TileSize", "Side"), set()),
        (
            'OpenSeadragon({tileSources: [{type: "zoomifytileservice", width: 3, height: 1, tilesUrl: "z/"}]})',
            {"/d/z/TileGroup0/0-0-0.jpg"},
        ),
        ('OpenSeadragon({prefixUrl: "osd/"})', {f"/d/osd/{name}.png" for name in BUTTONS}),
        ('OpenSeadragon({prefixUrl: "osd/", showNavigationControl: false})', set()),
        (
            'OpenSeadragon({prefixUrl: "osd/", sequenceMode: true})',
            {f"/d/osd/{name}.png" for name in BUTTONS}
            | {f"/d/osd/{name}_{state}.png" for name in ("previous", "next") for state in deep_zoom.STATES},
        ),
        ('f({prefixUrl: "osd/"})', set()),
    ],
)
def test_the_settings_of_a_viewer(script: str, expected: set[str]) -> None:
    assert shown(script) == expected
