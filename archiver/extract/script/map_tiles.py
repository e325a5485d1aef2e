"""Tiles of a map that Leaflet shows from the site's own folder: `L.tileLayer("tiles/{z}/{x}/{y}.png")`. Pure.

The script states where the map begins (`setView`) or what it covers (`fitBounds`), and the zoom of the tiles. From a
view, the tiles of one window of a browser are named, on the levels that the layer states; from bounds, all tiles,
coarse ones first. Tiles of other hosts are left out: they belong to a map of the world. So are maps in other
projections. All are guesses. Linear on any text.
"""

import math
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

MOST = 500  # tiles of one script
_SIDE = 256  # pixels of a tile
_WINDOW = 1280, 720  # pixels
_DEEPEST = 24
_MOST_LAYERS = 20
_NUMBER = r"(-?\d{1,3}(?:\.\d{1,20})?)"
_LAYER = re.compile(
    r"\btileLayer\(\s*[\"'`]((?!//)[^\"'`\s<>?:$]{0,200}\{z\}[^\"'`\s<>?:$]{1,200})[\"'`]\s*(?:,\s*\{([^{}]{0,1000})\})?"
)
_VIEW = re.compile(
    rf"\bsetView\(\s*(?:L\.latLng\(|new L\.LatLng\()?\[?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*[\])]?\s*,\s*(\d{{1,2}})"
)
_CENTER = re.compile(rf"\bcenter\s*:\s*\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]")
_ZOOM = re.compile(r"\bzoom\s*:\s*(\d{1,2})")
_CORNER = rf"\s*(?:L\.latLng\()?\[?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*[\])]?\s*"
_BOUNDS = re.compile(rf"\b(?:fitBounds\(|bounds\s*:)\s*(?:L\.latLngBounds\()?\[?{_CORNER},{_CORNER}[\])]")
_LIMIT = {name: re.compile(rf"\b{name}\s*:\s*(\d{{1,2}})") for name in ("minZoom", "maxZoom", "maxNativeZoom")}
_FLIPPED = re.compile(r"\btms\s*:\s*(?:true|1|!0)|\{-y\}")
_OTHER_PROJECTION = re.compile(r"\bcrs\s*:|\bL\.CRS\b|\b(?:tileSize|zoomOffset|zoomReverse)\s*:")


_View = tuple[float, float, int]  # latitude, longitude and zoom


class _Window(NamedTuple):
    """Columns and rows of tiles on one level, from first to last."""

    left: int
    top: int
    right: int
    bottom: int


def tiles(text: str) -> Iterator[str]:
    """Yield the tiles that the maps in the script *text* show."""
    if "tileLayer" not in text or _OTHER_PROJECTION.search(text):
        return
    layers = list(islice(_LAYER.finditer(text), _MOST_LAYERS))
    bounds, view = (_BOUNDS.search(text), _view(text)) if layers else (None, None)
    yield from islice((tile for layer in layers for tile in _of_layer(layer, bounds, view)), MOST)


def _of_layer(layer: re.Match[str], bounds: re.Match[str] | None, view: _View | None) -> Iterator[str]:
    template, options = layer[1], layer[2] or ""
    if "{x}" not in template or ("{y}" not in template and "{-y}" not in template):
        return
    limits = {name: int(found[1]) for name, limit in _LIMIT.items() if (found := limit.search(options))}
    highest = min((limits[name] for name in ("maxZoom", "maxNativeZoom") if name in limits), default=None)
    whole = bounds if highest is not None else None
    if not whole and not view:
        return
    begin = view[2] if view and not whole else 0
    flipped = _FLIPPED.search(options) is not None or "{-y}" in template
    for zoom in range(limits.get("minZoom", begin), min(begin if highest is None else highest, _DEEPEST) + 1):
        window = _covered(whole, zoom) if whole else _shown(view or (0, 0, 0), zoom)
        yield from _filled(template, zoom, window, flipped=flipped)


def _view(text: str) -> _View | None:
    """Return latitude, longitude and zoom with which the map begins."""
    view, center, begin = _VIEW.search(text), _CENTER.search(text), _ZOOM.search(text)
    if view:
        return float(view[1]), float(view[2]), int(view[3])
    return (float(center[1]), float(center[2]), int(begin[1])) if center and begin else None


def _covered(bounds: re.Match[str], zoom: int) -> _Window:
    corners = [_place(float(bounds[at]), float(bounds[at + 1]), zoom) for at in (1, 3)]
    (left, right), (top, bottom) = (sorted(int(corner[axis]) for corner in corners) for axis in (0, 1))
    return _Window(left, top, right, bottom)


def _shown(view: _View, zoom: int) -> _Window:
    across, down = _place(view[0], view[1], zoom)
    wide, high = (length / _SIDE / 2 for length in _WINDOW)
    last = (1 << zoom) - 1
    left, right = (min(max(int(across + side), 0), last) for side in (-wide, wide))
    top, bottom = (min(max(int(down + side), 0), last) for side in (-high, high))
    return _Window(left, top, right, bottom)


def _place(latitude: float, longitude: float, zoom: int) -> tuple[float, float]:
    """Return column and row of a place in the projection of web maps."""
    size = 1 << zoom
    radians = math.radians(min(max(latitude, -85.0511), 85.0511))
    across = (longitude + 180) / 360 * size
    down = (1 - math.asinh(math.tan(radians)) / math.pi) / 2 * size
    return min(max(across, 0), size - 1e-9), min(max(down, 0), size - 1e-9)


def _filled(template: str, zoom: int, window: _Window, *, flipped: bool) -> Iterator[str]:
    template = template.replace("{-y}", "{y}").replace("{r}", "")
    for column in range(window.left, window.right + 1):
        for row in range(window.top, window.bottom + 1):
            shown = (1 << zoom) - 1 - row if flipped else row
            yield template.replace("{z}", str(zoom)).replace("{x}", str(column)).replace("{y}", str(shown))
