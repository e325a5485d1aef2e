"""Files that a viewer or player puts together from what it is given: animations, maps, panoramas, sheets of pictures.

Lottie states folder and name of each picture (`"u":"images/","p":"img_0.png"`). MapLibre adds endings to the address of
its symbols (`sprite`) and fills in the template of its letters (`glyphs`). Pannellum computes the tiles of a panorama.
TexturePacker names the picture beside its table (`"meta":{"image":"a.png"`). epub.js begins in a folder. Scripts have
the same as objects. Anything else names nothing. All are guesses. Linear and bounded on any text.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice
from urllib.parse import quote

from archiver.config.expressions import compiled
from archiver.extract import deep_zoom
from archiver.extract.script import map_tiles

MOST = 2000  # files of one kind in one text
_MOST_STACKS = 20  # of fonts in one map
RANGES = ("0-255", "256-511", "8192-8447")  # the letters of Latin languages, and signs such as dashes and quotes
_Q = r"[\"'`]"
_TEXT = r"[\"'`]([^\"'`\\\s<>${}]{1,500})[\"'`]"


def _key(name: str) -> str:
    return rf"(?<![\w$.]){name}[\"']?\s{{0,10}}:\s{{0,10}}"


_FRAME = re.compile(  # of Lottie: the folder, which may be empty, and the name
    rf"{_key('u')}{_Q}([^\"'`\\\s<>${{}}:]{{0,300}}){_Q}\s{{0,10}},\s{{0,10}}[\"']?p[\"']?\s{{0,10}}:\s{{0,10}}"
    rf"{_Q}([\w~@%+-][\w~@%+.-]{{0,200}}\.(?:png|jpe?g|gif|svg|webp|mp3|wav|mp4|webm)){_Q}"
)
_ANIMATION = re.compile(rf"\bloadAnimation\(\s{{0,10}}\{{[^{{}}]{{0,500}}?{_key('path')}{_TEXT}")
_BOOK = re.compile(rf"(?<![\w$])ePub\(\s{{0,10}}{_Q}([^\"'`\\\s<>${{}}]{{1,300}}/){_Q}")  # an unpacked EPUB
_SHEET = re.compile(rf"{_key('meta')}\{{[^{{}}]{{0,1000}}?{_key('image')}{_TEXT}")
_PARTS_OF_SHEETS = re.compile(rf"\{{[^{{}}]{{0,300}}?{_key('image')}{_TEXT}")

_STYLE = re.compile(rf"{_key('style')}{_Q}([^\"'`\\\s<>${{}}]{{1,300}}\.json){_Q}")
_VERSION = re.compile(_key("version") + r"8(?![\w.])")  # of all styles so far
_SPRITE = re.compile(rf"{_key('sprite')}(?:\[\s{{0,10}}\{{[^{{}}]{{0,300}}?{_key('url')})?{_TEXT}")
_GLYPHS = re.compile(
    rf"{_key('glyphs')}{_Q}([^\"'`\\\s<>$]{{0,300}}\{{fontstack\}}[^\"'`\\\s<>$]{{0,100}}\{{range\}}[\w.?=&-]{{0,100}}){_Q}"
)
_FONTS = compiled(rf"{_key('text-font')}\[((?:\s*+[\"'`][\w .+-]{{1,80}}+[\"'`]\s*+,?+){{1,10}}+)")
_FONT = re.compile(r"[\"'`]([^\"'`]+)[\"'`]")
_USUAL_FONTS = "Open Sans Regular,Arial Unicode MS Regular"
_PACKED = re.compile(rf"{_Q}pmtiles://([^\"'`\\\s<>${{}}]{{1,300}}\.pmtiles){_Q}")

_PANORAMA = re.compile(rf"{_key('panorama')}{_Q}([^\"'`\\\s<>${{}}]{{1,300}}\.(?:jpe?g|png|webp|avif|mp4|webm)){_Q}")
_CUBE = compiled(rf"{_key('cubeMap')}\[((?:\s*+{_TEXT}\s*+,?+){{6}})\s*+\]")
_TILED = re.compile(rf"{_key('multiRes')}\{{([^{{}}]{{0,1000}})\}}")
_BASE = re.compile(rf"{_key('basePath')}{_TEXT}")
_FIELDS = {name: re.compile(_key(name) + _TEXT) for name in ("path", "fallbackPath", "extension")}
_NUMBERS = {
    name: re.compile(_key(name) + r"(\d{1,6})(?!\d)") for name in ("tileResolution", "maxLevel", "cubeResolution")
}
_SIDES = "fbudlr"
_DEEPEST = 10


def of_script(text: str) -> Iterator[str]:
    """Yield what the settings of viewers in the script *text* name, relative to the page."""
    yield from of_page(text)
    yield from beside(text)


def of_page(text: str) -> Iterator[str]:
    """Yield what *text*, a script or data, names relative to the page that shows it."""
    yield from deep_zoom.settings(text)
    yield from map_tiles.tiles(text)
    yield from _map(text)
    if "ePub(" in text:
        yield from (f"{found[1]}META-INF/container.xml" for found in islice(_BOOK.finditer(text), MOST))
    if "loadAnimation(" in text:
        yield from (found[1] for found in islice(_ANIMATION.finditer(text), MOST))


def beside(text: str) -> Iterator[str]:
    """Yield what *text* names relative to itself, if it is data; a script that holds the same means its page."""
    if '"u":' in text or "u:" in text:
        yield from (found[1] + found[2] for found in islice(_FRAME.finditer(text), MOST))
    if "frames" in text and "image" in text:
        sheets = chain(_SHEET.finditer(text), _PARTS_OF_SHEETS.finditer(text) if '"textures"' in text else ())
        yield from (found[1] for found in islice(sheets, MOST))
    if "panorama" in text or "cubeMap" in text or "multiRes" in text:
        yield from islice(_panoramas(text), deep_zoom.MOST)


def _map(text: str) -> Iterator[str]:
    """Yield the symbols and letters of a map, its style, and archives of tiles."""
    if "style" in text:
        yield from (found[1] for found in islice(_STYLE.finditer(text), MOST))
    if "pmtiles://" in text:
        yield from (found[1] for found in islice(_PACKED.finditer(text), MOST))
    if "sources" not in text or _VERSION.search(text) is None:
        return
    for sprite in islice(_SPRITE.finditer(text), _MOST_STACKS):
        address, question, query = sprite[1].partition("?")
        yield from (f"{address}{end}{question}{query}" for end in (".json", ".png", "@2x.json", "@2x.png"))
    template = _GLYPHS.search(text)
    if template is None:
        return
    stacks = dict.fromkeys(",".join(_FONT.findall(fonts[1])) for fonts in islice(_FONTS.finditer(text), MOST))
    for stack in list(stacks or {_USUAL_FONTS: None})[:_MOST_STACKS]:
        filled = template[1].replace("{fontstack}", quote(stack, safe=","))
        yield from (filled.replace("{range}", letters) for letters in RANGES)


def _panoramas(text: str) -> Iterator[str]:
    """Yield the pictures of Pannellum's panoramas; of one in tiles all, coarse ones first."""
    tiled = list(islice(_TILED.finditer(text), _MOST_STACKS))
    within = [found.span() for found in tiled]
    bases = islice(_BASE.finditer(text), MOST)
    stated = next((base for base in bases if not any(start < base.start() < end for start, end in within)), None)
    base = stated[1].rstrip("/") + "/" if stated else ""
    for found in islice(_PANORAMA.finditer(text), MOST):
        yield _below(base, found[1])
    for found in islice(_CUBE.finditer(text), MOST):
        yield from (_below(base, name) for name in _FONT.findall(found[1]))
    for found in tiled:
        own = _BASE.search(found[1])
        folder = _below(base, own[1]) if own else base
        yield from (folder.rstrip("/") + tile for tile in _tiles(found[1]))


def _below(base: str, name: str) -> str:
    return name if name.startswith(("/", "http:", "https:")) else base + name


def _tiles(settings: str) -> Iterator[str]:
    """Yield the tiles of the panorama with these *settings*, below their folder."""
    fields = {name: found[1] for name, field in _FIELDS.items() if (found := field.search(settings))}
    sizes = {name: int(found[1]) for name, number in _NUMBERS.items() if (found := number.search(settings))}
    ending = fields.get("extension", "jpg")
    for side in _SIDES if "fallbackPath" in fields else "":
        yield f"{fields['fallbackPath'].replace('%s', side)}.{ending}"
    if len(sizes) < len(_NUMBERS) or not sizes["tileResolution"] or sizes["maxLevel"] > _DEEPEST:
        return
    path = fields.get("path", "")
    for level in range(1, sizes["maxLevel"] + 1) if path else ():
        length = sizes["cubeResolution"] / 2 ** (sizes["maxLevel"] - level)
        count = max(1, -int(-length // sizes["tileResolution"]))
        for side in _SIDES:
            named = path.replace("%s", side).replace("%l", str(level))
            for place in range(count * count):
                yield f"{named.replace('%x', str(place % count)).replace('%y', str(place // count))}.{ending}"
