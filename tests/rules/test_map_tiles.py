"""Tiles of maps that Leaflet shows from the site's own folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.extract.script import map_tiles

LAYER = 'L.tileLayer("t/{z}/{x}/{y}.png", {OPTIONS}).addTo(map);'
BERLIN = "map.setView([52.52, 13.405], 10);"
NORTH_EAST = "map.fitBounds([[10, 10], [50, 100]]);"


def layer(options: str = "") -> str:
    return LAYER.replace("OPTIONS", options)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("L.map('m').setView([0, 0], 0);" + layer(), {"t/0/0/0.png"}),
        ("L.map('m', {center: [20.5, 10], zoom: 1});" + layer(), {f"t/1/{x}/{y}.png" for x in (0, 1) for y in (0, 1)}),
        (BERLIN + layer(), {f"t/10/{x}/{y}.png" for x in range(547, 553) for y in range(334, 338)}),
        (NORTH_EAST + layer("minZoom: 1, maxZoom: 1"), {"t/1/1/0.png"}),
        (NORTH_EAST + layer("tms: true, minZoom: 1, maxZoom: 1"), {"t/1/1/1.png"}),
        (NORTH_EAST + layer("maxZoom: 9, maxNativeZoom: 1"), {"t/0/0/0.png", "t/1/1/0.png"}),
        (NORTH_EAST + layer(), set()),  # nothing says where the levels end
        (layer(), set()),
        (BERLIN + layer().replace('"t/', '"https://tile.test/'), set()),
        (BERLIN + layer().replace('"t/', '"//tile.test/'), set()),
        (BERLIN + layer().replace("{x}", "1"), set()),
        (BERLIN + layer("tileSize: 512"), set()),
        ("L.map('m', {crs: L.CRS.Simple}).setView([0, 0], 0);" + layer(), set()),
    ],
)
def test_tiles(script: str, expected: set[str]) -> None:
    assert set(map_tiles.tiles(script)) == expected


def test_a_view_is_named_on_the_levels_of_the_layer() -> None:
    found = list(map_tiles.tiles("map.setView([0, 0], 5);" + layer("minZoom: 4, maxZoom: 6")))
    assert {tile.split("/")[1] for tile in found} == {"4", "5", "6"}
    assert len(found) == 3 * 6 * 4


def test_only_so_many_tiles() -> None:
    assert len(list(map_tiles.tiles(NORTH_EAST + layer("maxZoom: 22")))) == map_tiles.MOST


PIECES = ["tileLayer('{z}{x}{y}'", ",{", "maxZoom:", "99", "-1.5", ",", "[", "setView(", "fitBounds(", ")"]


@given(st.lists(st.sampled_from(PIECES)))
def test_any_script(pieces: list[str]) -> None:
    assert len(list(map_tiles.tiles("tileLayer" + "".join(pieces)))) <= map_tiles.MOST
