"""Plots as SVG: stacked columns, and bars with text.

Plots are drawn for the width of a phone and scale. All text is escaped here. Colours are the classes `k0` to `k5`, so
that the page can choose them for light and dark.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LINE, LETTER = 480, 16, 8.0  # pixels; the letter width is an estimate for phones
TICKS = 4  # per axis, at most, besides the one at zero
WIDEST = 72  # pixels of a column
_LEFT, _RIGHT, _TOP, _BOTTOM, _HIGH = 58, 12, 12, 26, 190

Series = tuple[str, Sequence[float]]  # class of its colour, and a value for each column


@dataclass(frozen=True, slots=True)
class PlotBar:
    """A bar with the text above it."""

    name: str
    size: float | None  # None: without a bar, because it is not comparable
    words: str


def ticks(highest: float, *, whole: bool = False) -> list[float]:
    """Return at least two round numbers from zero to *highest* or more; integers if *whole*."""
    highest = max(highest, 1.0 if whole else 1e-9)
    rough = max(highest / TICKS, 1.0 if whole else 0.0)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


def columns(
    title: str,
    series: Sequence[Series],
    marks: Sequence[tuple[float, str]],
    written: Callable[[float], str],
    pauses: Sequence[tuple[int, int, str]] = (),
) -> str:
    """Draw stacked columns. *marks* are (position among the columns, text) below them.

    *pauses* are (first column, columns, text) without data; *written* formats a value of the axis.
    """
    count = max(len(values) for _, values in series)
    heights = [sum(each) for each in zip(*(values for _, values in series), strict=True)]
    rows = ticks(max(heights, default=1) or 1, whole=all(map(_is_whole, heights)))
    wide = (WIDTH - _LEFT - _RIGHT) / max(count, 1)
    floor = _TOP + _HIGH
    parts = []
    for row in rows:
        y = floor - row / rows[-1] * _HIGH
        parts.append(f'<path class="{"axis" if row == 0 else "grid"}" d="M{_LEFT},{y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 6, y + 4, written(row), "end"))
    for first, length, word in pauses:
        x, across = _LEFT + first * wide, length * wide
        parts.append(f'<rect class="pause" x="{x:.1f}" y="{_TOP}" width="{across:.1f}" height="{_HIGH}"/>')
        if across > (len(word) + 1) * LETTER:
            parts.append(_text(x + across / 2, _TOP + LINE, word, "middle", "soft"))
    parts += _stacks(series, wide, rows[-1])
    for place, word in marks:
        half = len(word) * LETTER / 2
        x = min(max(_LEFT + place * wide, half), WIDTH - half)
        parts.append(_text(x, floor + 18, word, "middle"))
    return _picture(title, floor + _BOTTOM, parts)


def _is_whole(value: float) -> bool:
    return value == int(value)


def _stacks(series: Sequence[Series], wide: float, highest: float) -> list[str]:
    """Return one path per colour."""
    gap = min(1.0, wide / 6) if wide < 20 else max(wide / 6, wide - WIDEST)
    heights = [0.0] * max(len(values) for _, values in series)
    drawn = []
    for colour, values in series:
        path = []
        for place, value in enumerate(values):
            if not value:
                continue
            low, heights[place] = heights[place], heights[place] + value
            x, y = _LEFT + place * wide + gap / 2, _TOP + _HIGH * (1 - heights[place] / highest)
            high = max(_HIGH * value / highest, 0.8 if not low else 0.0)
            path.append(f"M{x:.1f},{y:.1f}h{wide - gap:.1f}v{high:.1f}h-{wide - gap:.1f}z")
        if path:
            drawn.append(f'<path class="{colour}" d="{"".join(path)}"/>')
    return drawn


def bars(title: str, rows: Sequence[PlotBar]) -> str:
    """Draw a bar for each of *rows*, with its name and text above it."""
    most = max((row.size or 0 for row in rows), default=0) or 1
    high, parts = 30, []
    for place, row in enumerate(rows):
        y = place * high + 14
        fits = int((WIDTH - (len(row.words) + 2) * LETTER) / LETTER)
        parts.append(_text(0, y, _cut(row.name, fits), full=row.name))
        parts.append(_text(WIDTH, y, row.words, "end", "soft"))
        if row.size is None:
            continue
        wide = max(WIDTH * row.size / most, 1 if row.size else 0)
        parts.append(f'<rect class="track" x="0" y="{y + 4}" width="{WIDTH}" height="7" rx="2"/>')
        parts.append(f'<rect class="k0" x="0" y="{y + 4}" width="{wide:.1f}" height="7" rx="2"/>')
    return _picture(title, len(rows) * high + 4, parts)


def _cut(name: str, fits: int) -> str:
    """Shorten *name* in the middle if it is too long."""
    if len(name) <= fits:
        return name
    half = max(fits // 2, 2)
    return f"{name[:half]}…{name[1 - half :]}"


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "", full: str = "") -> str:
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    kind = f' class="{kind}"' if kind else ""
    hint = f"<title>{escape(full)}</title>" if full and full != words else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{where}{kind}>{escape(words)}{hint}</text>'


def _picture(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
