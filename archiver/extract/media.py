"""Playlists and DASH manifests: the media files they name.

Playlists are HLS (RFC 8216 and its second edition), M3U, PLS, RAM and Windows Media's. A browser plays a video from
HLS, so everything it names is a requisite: variants, renditions, segments, keys, maps. Of a live stream these are the
current segments. Preload hints and content steering name nothing to fetch. Entries of the older lists are requisites if
the list was one itself (a page plays it), else links.

A WebVTT file may have pictures as its cues, which a player shows above its timeline: they are requisites.

Of a DASH manifest (MPD, ISO/IEC 23009-1) the segments of every representation are requisites. They come from templates,
as far as the duration or the timeline bounds them, from lists, or from a representation's single file. If the end is
not known (a live stream), only what is named now counts. Of several base URLs, which are copies, the first is used. At
most `MOST` segments are named.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from urllib.parse import parse_qsl, urlsplit
from xml.etree.ElementTree import Element  # no parser of it is used

from archiver import url
from archiver.extract import charset
from archiver.extract.document import Document
from archiver.extract.html.tables import Attributes
from archiver.extract.references import LinkCollector
from archiver.extract.sitemap import as_written, lines
from archiver.extract.xml_parser import Pieces, parse_xml
from archiver.model import Hop, Links

MOST_BYTES = 16 << 20
_ATTRIBUTE = re.compile(r"\s*+([A-Z0-9-]++)\s*+=\s*+(?:\"([^\"\r\n]*+)\"?|([^,\"\s]*+))[^,\"]*+,?+")
_ADDRESSES = frozenset(("URI", "X-ASSET-URI", "X-ASSET-LIST"))
_NOT_FETCHED = frozenset(("EXT-X-PRELOAD-HINT", "EXT-X-CONTENT-STEERING"))
_VARIABLE = re.compile(r"\{\$([a-zA-Z0-9_-]++)\}")
_FILE = re.compile(r"\s*+(?:file|ref)\d{1,9}\s*+=\s*+(\S.*+)", re.IGNORECASE | re.DOTALL)
_CUE_PICTURE = re.compile(  # of a timeline: sprite.jpg#xywh=0,0,160,90
    r"[^\s<>\"'#?]{1,1000}\.(?:avif|gif|jpe?g|png|webp)(?:\?[^\s<>\"'#]{0,500})?(?:#xywh=[\w:.,]{1,100})?",
    re.IGNORECASE,
)
_MOST_VARIABLES = 1000
_LONGEST_LINE = 1 << 14  # characters of an address after variables are replaced


def read_playlist(document: Document) -> Links:
    """Return the media and further playlists that the playlist names."""
    encoding = charset.of_text(document.body, document.charset)
    written = [line.strip() for line in lines(charset.pieces(document.body, encoding, MOST_BYTES))]
    note = f"only the first {MOST_BYTES} bytes" if len(document.body) > MOST_BYTES else ""
    found = LinkCollector()
    if written and written[0].lstrip("\ufeff").startswith("WEBVTT"):
        for line in written:
            if _CUE_PICTURE.fullmatch(line):
                found.add(line, Hop.REQUISITE, "cue")
    elif any(line.startswith("#EXT-X-") for line in written):
        for reference, context in _hls_references(written, document.url):
            found.add(reference, Hop.REQUISITE, context)
    else:
        hop = Hop.REQUISITE if document.hop is Hop.REQUISITE else Hop.LINK
        ini = any(line.startswith("[") for line in written[:10])
        for reference in _numbered_entries(written) if ini else _entries_by_line(written):
            found.add(reference, hop, "playlist")
    return found.links(document.url, encoding, note, queries="utf-8")


def _hls_references(written: list[str], address: str) -> Iterator[tuple[str, str]]:
    """Yield the references of an HLS playlist, and the tags that contain them."""
    variables: dict[str, str] = {}

    def replaced(value: str) -> str:
        return (
            _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), value)[:_LONGEST_LINE]
            if "{$" in value
            else value
        )

    for line in written:
        if not line.startswith("#"):
            if line:
                yield replaced(line), "playlist"
            continue
        name, _, rest = line[1:].partition(":")
        if not name.startswith("EXT-X-") or name in _NOT_FETCHED:
            continue
        attributes = [(key, quoted or bare) for key, quoted, bare in _ATTRIBUTE.findall(rest)]
        if name == "EXT-X-DEFINE" and len(variables) < _MOST_VARIABLES:
            variables |= _defined(dict(attributes), replaced, address)
        for key, value in attributes:
            if key in _ADDRESSES:
                yield replaced(value), name


def _defined(attributes: dict[str, str], replaced: Callable[[str], str], address: str) -> dict[str, str]:
    if "QUERYPARAM" in attributes:
        parameters = dict(parse_qsl(urlsplit(address).query, max_num_fields=None))
        name = attributes["QUERYPARAM"]
        return {name: parameters[name]} if name in parameters else {}
    return {attributes["NAME"]: replaced(attributes.get("VALUE", ""))} if attributes.get("NAME") else {}


def _entries_by_line(written: list[str]) -> Iterator[str]:
    """Yield the entries of M3U and RAM."""
    for line in written:
        if line.lower() == "--stop--":  # RealPlayer stops here
            return
        if not line.startswith(("#", "<")):
            yield line


def _numbered_entries(written: list[str]) -> Iterator[str]:
    """Yield the entries of PLS and Windows Media: `File1=…`, `Ref1=…`."""
    for line in written:
        if entry := _FILE.fullmatch(line):
            yield entry[1]


MOST = 20_000  # segments: three hours in five qualities at four seconds each are 13,500
MOST_CHARACTERS = 8 << 20

_LONGEST = 2048  # characters of a template, which is filled in for each segment
_MOST_MARKS = 40  # dollar signs in a template, two for each field; most have two fields
_DURATION = re.compile(
    r"P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?"
)
_UNITS = (31_536_000, 2_592_000, 86_400, 3_600, 60, 1)  # seconds
_FIELD = re.compile(r"\$(?:(RepresentationID|Number|Bandwidth|Time|SubNumber)(?:%0(\d{1,2})d)?)?\$")
_EACH = re.compile(r"\$(?:Number|Time)")
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_XLINK = "{http://www.w3.org/1999/xlink}href"
_TEMPLATE = "segmenttemplate"
_SEGMENT_ELEMENTS = ("segmentbase", "segmentlist", _TEMPLATE)
_SOURCES = ("initialization", "representationindex", "bitstreamswitching")


@dataclass(frozen=True, slots=True)
class _SegmentInfo:
    """A SegmentBase, SegmentList or SegmentTemplate element, read once for all representations that share it."""

    kind: str
    attributes: Mapping[str, str]
    sources: Mapping[str, str]  # files for all segments: element name and sourceURL
    runs: tuple[tuple[int | None, int | None, int, int], ...] | None  # timeline: time, number, duration, repeats
    listed: tuple[tuple[str, str], ...]  # (attribute, value), in order


@dataclass(frozen=True, slots=True)
class _Level:
    """The values inherited from the period, the adaptation set and the representation."""

    base: str
    infos: tuple[_SegmentInfo, ...] = ()  # innermost first
    own: bool = False  # true if there was a BaseURL

    def attribute(self, name: str) -> str | None:
        """Return the inherited value of an attribute of SegmentTemplate."""
        values = (info.attributes[name] for info in self.infos if info.kind == _TEMPLATE and name in info.attributes)
        value = next(values, None)
        return value if value and len(value) <= _LONGEST and value.count("$") <= _MOST_MARKS else None


def read_dash(pieces: Pieces, address: str) -> tuple[LinkCollector, str]:
    """Return what the manifest in *pieces* at *address* names, and a note on what was left out."""
    found = LinkCollector()
    root = parse_xml(partial(_limited, pieces), _Tree)[0].root
    if root is None:
        return found, "no DASH manifest"
    count = 0
    for target, context in islice(_references(root, _level(_Level(address), root)), MOST + 1):
        count += 1
        if count <= MOST:
            found.add(target, Hop.REQUISITE, context)
    return found, f"more than {MOST} segments" if count > MOST else ""


def _limited(pieces: Pieces) -> Iterator[str]:
    left = MOST_CHARACTERS
    for piece in pieces():
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


class _Tree:
    """Builds the tree of a manifest: elements inherit from those around them, in any order."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []

    def start(self, tag: str, attributes: Attributes) -> None:
        """Process a start tag."""
        element = Element(tag, {key: as_written(value) for key, value in attributes.items()})
        if self._open:
            self._open[-1].append(element)
        elif self.root is None:
            self.root = element
        self._open.append(element)

    def data(self, text: str) -> None:
        """Process a piece of text; only text before the first child matters."""
        if self._open and not len(self._open[-1]):
            known = self._open[-1].text or ""
            self._open[-1].text = known + text if len(known) < _LONGEST else known

    def end(self, tag: str) -> None:
        """Process an end tag."""
        del tag
        self._open.pop()

    def close(self) -> None:
        """Do nothing: the tree is complete."""


def _references(root: Element, level: _Level) -> Iterator[tuple[str | None, str]]:
    whole = _seconds(root.get("mediaPresentationDuration"))
    for location in _children(root, "location"):
        yield url.join(level.base, _text(location)), "Location"
    periods = list(_children(root, "period"))
    starts = [_seconds(period.get("start")) for period in periods]
    for index, period in enumerate(periods):
        if remote := period.get(_XLINK):
            yield url.join(level.base, remote), "Period/@xlink:href"
        ends = starts[index + 1] if index + 1 < len(periods) else whole
        duration = _seconds(period.get("duration")) or (ends - (starts[index] or 0.0) if ends is not None else None)
        inside = _level(level, period)
        for group in _children(period, "adaptationset"):
            shared = _level(inside, group)
            if remote := group.get(_XLINK):
                yield url.join(level.base, remote), "AdaptationSet/@xlink:href"
            for representation in _children(group, "representation"):
                yield from _segments_of(representation, _level(shared, representation), duration)


def _level(outer: _Level, element: Element) -> _Level:
    """Return the level inside *element*."""
    base = next((_text(child) for child in _children(element, "baseurl")), "")
    joined = url.join(outer.base, base) if base else None
    level = replace(outer, base=joined, own=True) if joined else outer
    infos: dict[str, _SegmentInfo] = {}
    for child in element:
        kind = _name(child)
        if kind in _SEGMENT_ELEMENTS and kind not in infos:
            infos[kind] = _segment_info(kind, child)
    return replace(level, infos=(*infos.values(), *outer.infos))


def _segment_info(kind: str, element: Element) -> _SegmentInfo:
    sources: dict[str, str] = {}
    runs: tuple[tuple[int | None, int | None, int, int], ...] | None = None
    listed: list[tuple[str, str]] = []
    for child in element:
        name = _name(child)
        if name in _SOURCES and (source := child.get("sourceURL")):
            sources.setdefault(name, source)
        elif name == "segmenttimeline" and runs is None:
            runs = tuple(
                (_number(run.get("t")), _number(run.get("n")), _number(run.get("d")) or 0, _number(run.get("r")) or 0)
                for run in islice(_children(child, "s"), MOST)
            )
        elif name == "segmenturl" and len(listed) < MOST:
            listed += [(key, value) for key in ("media", "index") if (value := child.get(key))]
    return _SegmentInfo(kind, dict(element.attrib), sources, runs, tuple(listed))


def _segments_of(representation: Element, level: _Level, duration: float | None) -> Iterator[tuple[str | None, str]]:
    """Yield the files of one representation, which has this *duration* in seconds if it is known."""
    values: dict[str, str | int] = {
        "RepresentationID": representation.get("id", ""),
        "Bandwidth": _number(representation.get("bandwidth")) or 0,
    }
    for name in _SOURCES:
        source = next((info.sources[name] for info in level.infos if name in info.sources), None)
        if source:
            yield url.join(level.base, source), f"{name}/@sourceURL"
    if level.attribute("media"):
        yield from _templated(level, duration, values)
        return
    listed = next((info.listed for info in level.infos if info.listed), ())
    for name, reference in listed:
        yield url.join(level.base, reference), f"SegmentURL/@{name}"
    if level.own and not listed:
        yield level.base, "BaseURL"


def _templated(level: _Level, duration: float | None, values: dict[str, str | int]) -> Iterator[tuple[str | None, str]]:
    """Yield the files that the templates of one representation name: shared files first, then each segment."""
    templates = [
        (name, level.attribute(name) or "") for name in ("initialization", "bitstreamSwitching", "index", "media")
    ]
    for name, template in templates:
        if template and not _EACH.search(template):
            yield url.join(level.base, _filled(template, values)), f"SegmentTemplate/@{name}"
    each = [(name, template) for name, template in templates if _EACH.search(template)]
    for number, time in _segments(level, duration) if each else ():
        values |= {"Number": number, "Time": time}
        for name, template in each:
            yield url.join(level.base, _filled(template, values)), f"SegmentTemplate/@{name}"


def _segments(level: _Level, duration: float | None) -> Iterator[tuple[int, int]]:
    """Yield number and time of each segment of a template."""
    first = _number(level.attribute("startNumber"))
    first = 1 if first is None else first
    scale = max(_number(level.attribute("timescale")) or 1, 1)
    runs = next((info.runs for info in level.infos if info.runs is not None), None)
    if runs is not None:
        yield from _on_timeline(runs, first, int(duration * scale) if duration is not None else 0)
        return
    length = _number(level.attribute("duration")) or 0
    last = _number(level.attribute("endNumber"))
    if last is None and length > 0 and duration is not None:
        last = first + int(-(-duration * scale // length)) - 1
    for number in range(first, min(last or 0, first + MOST) + 1):
        yield number, (number - first) * length


def _on_timeline(
    runs: tuple[tuple[int | None, int | None, int, int], ...], number: int, end: int
) -> Iterator[tuple[int, int]]:
    time = 0
    for index, (at, numbered, length, repeats) in enumerate(runs):
        time = time if at is None else at
        number = number if numbered is None else numbered
        if repeats < 0:  # up to the next run with a time, or to the end
            until = runs[index + 1][0] if index + 1 < len(runs) else end
            count = -(-((until or 0) - time) // length) if length > 0 else 1
        else:
            count = repeats + 1
        for _ in range(min(max(count, 1), MOST + 1)):
            yield number, time
            number += 1
            time += length


def _filled(template: str, values: Mapping[str, str | int]) -> str:
    def value(field: re.Match[str]) -> str:
        if field[1] is None:
            return "$"
        known = values.get(field[1], field[0])
        return f"{known:0{min(int(field[2]), 20)}d}" if field[2] and isinstance(known, int) else str(known)

    return _FIELD.sub(value, template)


def _children(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element if _name(child) == name)


def _name(element: Element) -> str:
    """Return the local name in lower case."""
    return element.tag.rpartition("}")[2].lower()


def _text(element: Element) -> str:
    return (element.text or "").strip()


def _number(text: str | None) -> int | None:
    """Return *text* as an integer of at most 18 digits, or None."""
    return int(text) if text and _NUMBER.fullmatch(text) else None


def _seconds(text: str | None) -> float | None:
    """Return a duration in seconds; None if *text* is none."""
    found = _DURATION.fullmatch(text.strip()) if text else None
    if found is None:
        return None
    return sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part)
