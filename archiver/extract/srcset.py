"""The candidates of a srcset attribute, by the HTML standard's own algorithm. Linear, never raises."""

import re
from collections.abc import Iterator

_GAP = re.compile(r"[\t\n\f\r ,]*+")
_URL = re.compile(r"[^\t\n\f\r ]++")
_DESCRIPTORS = re.compile(r"(?:[^(,]|\([^)]*+\)?+)*+")
_DESCRIPTOR = re.compile(r"(?:[^\t\n\f\r (]|\([^)]*+\)?+)++")
_WIDTH = re.compile(r"0*[1-9][0-9]*w")
_HEIGHT = re.compile(r"0*[1-9][0-9]*h")
_DENSITY = re.compile(r"(?:-(?:0+(?:\.0+)?|\.0+)|(?=[.0-9])[0-9]*(?:\.[0-9]+)?)(?:[eE][+-]?[0-9]+)?x")


def candidates(value: str) -> Iterator[str]:
    """The URL of each image candidate that a browser would keep, in order."""
    return (value[start:end] for start, end in placed(value))


def placed(value: str) -> Iterator[tuple[int, int]]:
    """Where the URL of each such candidate begins and ends in *value*."""
    position = 0
    while True:
        position = _match_end(_GAP, value, position)
        found = _URL.match(value, position)
        if found is None:
            return
        start, position = found.span()
        size = len(found.group().rstrip(","))
        if size < position - start:
            valid = True
        else:
            end = _match_end(_DESCRIPTORS, value, position)
            valid = _valid(_DESCRIPTOR.findall(value, position, end))
            position = end
        if valid:
            yield start, start + size


def _match_end(pattern: re.Pattern[str], value: str, position: int) -> int:
    found = pattern.match(value, position)
    return found.end() if found else position


def _valid(descriptors: list[str]) -> bool:
    """Whether these make a candidate: at most a density, or a width with at most a height."""
    kinds = ""
    for descriptor in descriptors:
        if _WIDTH.fullmatch(descriptor) or _HEIGHT.fullmatch(descriptor) or _DENSITY.fullmatch(descriptor):
            kinds += descriptor[-1]
        else:
            return False
    return kinds in ("", "x", "w", "wh", "hw")
