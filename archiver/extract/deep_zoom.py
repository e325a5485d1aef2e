"""Pictures that a viewer loads in tiles: Deep Zoom, Zoomify, and IIIF images of level 0. Pure.

A short description states the size of the picture and of its tiles. From it follows the address of every tile, as
OpenSeadragon computes it. Servers of IIIF above level 0 cut any part of a picture on request; there is no list of
those, so none is named. Of a picture with more than `MOST` tiles, the coarse levels are named and the rest is noted.

Pages may state the same in the settings of the viewer, which also name the folder of the pictures on its buttons.
Linear on any text.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from archiver.config.expressions import compiled
from archiver.extract.html.tables import Attributes
from archiver.extract.references import LinkCollector
from archiver.model import Hop

MOST = 20_000  # tiles of one picture
CONTEXT = "tiles"
_LARGEST = 10_000_000  # pixels of a side
_NUMBER = re.compile(r"[1-9]\d{0,7}")
ROOTS = frozenset(("image", "image_properties"))  # of the descriptions in XML
_NAMESPACE = "schemas.microsoft.com/deepzoom/"
_NAME = re.compile(r"([^/?#]+?)(?:\.(?:dzi|xml|js))?(\?[^#]*)?\Z")
_FORMAT = re.compile(r"[a-z]{2,5}")

_VIEWERS = ("OpenSeadragon", "tileSource")
_FIELD = r"[\"']?(?<![\w$.]){}[\"']?\s*+:\s*+[\"'`]?([^\s\"'`,{{}}]{{1,500}})"
_SETTINGS = re.compile(r"deepzoom/200[89]|[\"'`]zoomifytileservice[\"'`]")
_AROUND = 600  # characters of the settings of one picture before and after its type
_FIELDS = {
    name: re.compile(_FIELD.format(name))
    for name in (
        "Url",
        "Format",
        "TileSize",
        "Width",
        "Height",
        "width",
        "height",
        "tilesUrl",
        "tileSize",
        "fileFormat",
    )
}
_MOST_PICTURES = 100  # of one script
_SOURCES = compiled(
    r"\btileSources?[\"']?\s*+:\s*+\[?\s*+((?:[\"'`][^\"'`\\\s<>]{1,500}+[\"'`]\s*+,?\s*+){1,1000}+)", re.ASCII
)
_SOURCE = re.compile(r"[\"'`]([^\"'`]+)[\"'`]")
_DESCRIPTION = re.compile(r"(?:\.dzi|\.xml|/info\.json)(?:\?|\Z)")
_BUTTONS = re.compile(r"[\"']?\bprefixUrl[\"']?\s*+:\s*+[\"'`]([^\"'`\\\s<>$]{1,500})[\"'`]")
_NO_BUTTONS = re.compile(r"\bshowNavigationControl[\"']?\s*+:\s*+(?:false|!1)|\bnavImages\b")
_OPTIONAL = {"showRotationControl": ("rotateleft", "rotateright"), "showFlipControl": ("flip",)}
_OPTIONAL |= {"sequenceMode": ("previous", "next")}
STATES = ("rest", "grouphover", "hover", "pressed")


class Picture(NamedTuple):
    """Width and height of a picture, and the side of its tiles."""

    width: int
    height: int
    side: int


class Description:
    """Reads the description of a picture in XML, tag by tag."""

    def __init__(self) -> None:
        self._root = ""
        self._attributes: dict[str, str] = {}
        self._partly = False  # only some parts of the picture have tiles on all levels

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        self._root = self._root or tag
        name = tag.rpartition("}")[2].lower()
        if tag == self._root or name == "size":
            self._attributes |= {key.lower(): value for key, value in attributes.items()}
        self._partly |= name == "displayrect"

    def data(self, text: str) -> None:
        """Do nothing: no text has a meaning."""

    def end(self, tag: str) -> None:
        """Do nothing: all is in the start tags."""

    def close(self) -> None:
        """Do nothing: all tags have been processed."""

    def tiles(self, address: str) -> Iterator[str]:
        """Return the tiles of the picture whose description is at *address*."""
        read = self._attributes.get
        sizes = picture(read("width", ""), read("height", ""), read("tilesize", "256"))
        if sizes is None or self._partly:
            return iter(())
        if self._root.lower() == "image_properties":
            count = read("numtiles", "")
            return zoomify(sizes, "./", count=int(count) if _NUMBER.fullmatch(count) else None)
        folder, ending = folder_of(address, read("format", "")) if _NAMESPACE in self._root else ("", "")
        return deep_zoom(sizes, read("url", folder), ending) if folder else iter(())


def collected(tiles: Iterable[str]) -> tuple[LinkCollector, str]:
    """Return the *tiles* as requisites, and a note if there are too many."""
    found, left = LinkCollector(), iter(tiles)
    for tile in islice(left, MOST):
        found.add(tile, Hop.REQUISITE, CONTEXT)
    return found, f"only the first {MOST} tiles" if next(left, None) else ""


def picture(width: str, height: str, side: str) -> Picture | None:
    """Return the picture with these sizes as written; None if one of them is no sensible number."""
    written = (width.strip(), height.strip(), side.strip())
    if not all(map(_NUMBER.fullmatch, written)):
        return None
    sizes = Picture(*map(int, written))
    return sizes if max(sizes) <= _LARGEST else None


def deep_zoom(sizes: Picture, folder: str, ending: str) -> Iterator[str]:
    """Yield the tiles below *folder*, coarse ones first. Each level has twice the size of the one before."""
    levels = (max(sizes.width, sizes.height) - 1).bit_length()
    for level in range(levels + 1):
        scale = 1 << (levels - level)
        for column in range(_parts(sizes.width, scale * sizes.side)):
            for row in range(_parts(sizes.height, scale * sizes.side)):
                yield f"{folder}{level}/{column}_{row}.{ending}"


def folder_of(address: str, ending: str) -> tuple[str, str]:
    """Return the folder of the tiles that the description at *address* describes, and what follows their names.

    Viewers repeat the query of the description.
    """
    name = _NAME.search(address)
    return (f"{name[1]}_files/", f"{ending}{name[2] or ''}") if name and _FORMAT.fullmatch(ending) else ("", "")


def zoomify(sizes: Picture, folder: str, ending: str = "jpg", count: int | None = None) -> Iterator[str]:
    """Yield the tiles below *folder*, coarse ones first, in groups of 256.

    Each level has half the size of the next, with the odd pixel dropped or not. The *count* of tiles decides; without
    it, OpenSeadragon drops the pixel.
    """
    ways = [_halved(sizes, up=up) for up in (False, True)]
    levels = next((way for way in ways if count in (None, sum(columns * rows for columns, rows in way))), [])
    number = 0
    for level, (columns, rows) in enumerate(levels):
        for row in range(rows):
            for column in range(columns):
                yield f"{folder}TileGroup{number // 256}/{level}-{column}-{row}.{ending}"
                number += 1


def _halved(sizes: Picture, *, up: bool) -> list[tuple[int, int]]:
    """Return columns and rows of each level, the coarsest first."""
    width, height, side = sizes
    levels = [(_parts(width, side), _parts(height, side))]
    while width > side or height > side:
        width, height = max(1, (width + up) // 2), max(1, (height + up) // 2)
        levels.insert(0, (_parts(width, side), _parts(height, side)))
    return levels


def _parts(length: int, side: int) -> int:
    return -(-length // side)


def iiif(body: bytes) -> list[str]:
    """Return the tiles, or else the whole sizes, of an IIIF image of level 0; [] if *body* describes something else.

    There is one more than `MOST` if some are left out.
    """
    try:
        described = json.loads(body)
    except (ValueError, RecursionError):
        return []
    if not isinstance(described, dict) or "level0" not in json.dumps(described.get("profile")):
        return []
    base = described.get("@id") or described.get("id")
    picture = _objects([described])
    if not isinstance(base, str) or not picture:
        return []
    sides = picture[0]["width"], picture[0]["height"]
    newest = "/image/3/" in json.dumps(described.get("@context"))
    tiles, sizes = described.get("tiles"), described.get("sizes")
    parts = (part for grid in _objects(tiles) for part in _parts_of_iiif(grid, sides, newest=newest))
    found = [f"{base.rstrip('/')}/{part}/0/default.jpg" for part in islice(parts, MOST + 1)]
    whole = [f"{base.rstrip('/')}/full/{size['width']},{size['height']}/0/default.jpg" for size in _objects(sizes)]
    return found or whole


def _objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in the list *value* whose sizes make sense."""
    listed = value[:100] if isinstance(value, list) else []
    sensible = [each for each in listed if isinstance(each, dict) and _sensible(each.get("width"))]
    return [each for each in sensible if _sensible(each.setdefault("height", each["width"]))]


def _sensible(value: object) -> bool:
    return isinstance(value, int) and 0 < value <= _LARGEST


def _parts_of_iiif(grid: dict[str, Any], whole: tuple[int, int], *, newest: bool) -> Iterator[str]:
    """Yield region and size of each tile in *grid*, the coarse ones first."""
    factors = grid.get("scaleFactors")
    scales = [scale for scale in factors if _sensible(scale)] if isinstance(factors, list) else []
    width, height = whole
    for scale in sorted(set(scales), reverse=True):
        wide, high = grid["width"] * scale, grid["height"] * scale
        for top in range(0, height, high):
            for left in range(0, width, wide):
                part = min(wide, width - left), min(high, height - top)
                size = _parts(part[0], scale), _parts(part[1], scale)
                region = "full" if part == whole else f"{left},{top},{part[0]},{part[1]}"
                if newest:
                    yield f"{region}/{'max' if size == whole else f'{size[0]},{size[1]}'}"
                else:
                    yield f"{region}/{'full' if size[0] == width else f'{size[0]},'}"


def settings(text: str) -> Iterator[str]:
    """Yield the descriptions, tiles and buttons that the settings of viewers in the script *text* name."""
    if not any(viewer in text for viewer in _VIEWERS):
        return
    for listed in islice(_SOURCES.finditer(text), _MOST_PICTURES):
        if not _is_comment(text, listed.start()):
            yield from (source for source in _SOURCE.findall(listed[1]) if _DESCRIPTION.search(source))
    for found in islice(_SETTINGS.finditer(text), _MOST_PICTURES):
        if not _is_comment(text, found.start()):
            yield from islice(_in_settings(text, found), MOST)
    folder = _BUTTONS.search(text)
    if folder and not _NO_BUTTONS.search(text):
        more = (name for option, names in _OPTIONAL.items() if option in text for name in names)
        yield from (
            f"{folder[1]}{name}_{state}.png"
            for name in ("zoomin", "zoomout", "home", "fullpage", *more)
            for state in STATES
        )


def _is_comment(text: str, position: int) -> bool:
    """True if *position* is in a comment: the viewer's own script has examples there."""
    line = text[max(0, position - _AROUND) : position].rpartition("\n")[2].lstrip()
    return line.startswith("//") or text.rfind("/*", 0, position) > text.rfind("*/", 0, position)


def _in_settings(text: str, found: re.Match[str]) -> Iterator[str]:
    begin = max(text.rfind("{", 0, found.start()), found.start() - _AROUND)
    near = text[begin : found.end() + _AROUND]
    values = {name: value[1] for name, field in _FIELDS.items() if (value := field.search(near))}
    if "deepzoom" in found[0]:
        sizes = picture(values.get("Width", ""), values.get("Height", ""), values.get("TileSize", ""))
        ending = values.get("Format", "")
        if sizes and "Url" in values and _FORMAT.fullmatch(ending):
            yield from deep_zoom(sizes, values["Url"], ending)
    else:
        sizes = picture(values.get("width", ""), values.get("height", ""), values.get("tileSize", "256"))
        ending = values.get("fileFormat", "jpg")
        if sizes and "tilesUrl" in values and _FORMAT.fullmatch(ending):
            yield from zoomify(sizes, values["tilesUrl"], ending)
