"""Handwritten SVG plots: line charts with axes from zero, and bars of shares."""

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = (
    *("#2563eb", "#dc2626", "#16a34a", "#d97706", "#7c3aed"),
    *("#0891b2", "#be185d", "#65a30d", "#475569", "#a8a29e"),
)
GREY = "#666"
TICKS = 4  # of an axis, at least
LETTER, LINE = 6.5, 16  # pixels, about

Points = Sequence[tuple[float, float]]


def document(width: float, height: float, *parts: str) -> str:
    """Return the whole picture on white."""
    size = f'width="{width:g}" height="{height:g}"'
    style = 'font-family="sans-serif" font-size="12"'
    background = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join((f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', background, *parts, "</svg>", ""))


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "black") -> str:
    """Return text at a position."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    fill = "" if colour == "black" else f' fill="{colour}"'
    return f'<text x="{x:g}" y="{y:g}"{where}{fill}>{escape(words, quote=False)}</text>'


def curve(points: Points, colour: str = COLOURS[0]) -> str:
    """Return a line through *points*, in pixels."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def straight(start: tuple[float, float], end: tuple[float, float], colour: str = GREY, *, dashed: bool = False) -> str:
    """Return a straight line, in pixels."""
    dashes = ' stroke-dasharray="4"' if dashed else ""
    return f'<path d="M{start[0]:.1f},{start[1]:.1f} L{end[0]:.1f},{end[1]:.1f}" stroke="{colour}"{dashes}/>'


def ticks(highest: float) -> list[float]:
    """Return round numbers from zero to beyond *highest*."""
    rough = max(highest, 1e-9) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [step * number for number in range(math.ceil(highest / step) + 1)]


def chart(series: Mapping[str, Points], across: str, up: str, size: tuple[float, float] = (720, 300)) -> str:
    """Return a picture of several curves; *across* and *up* name the axes."""
    width, height = size
    left, right, top, bottom = 70, 30, 22 + LINE * len(series), 50
    columns = ticks(max((x for points in series.values() for x, _ in points), default=1))
    rows = ticks(max((y for points in series.values() for _, y in points), default=1))

    def place(x: float, y: float) -> tuple[float, float]:
        wide, high = width - left - right, height - top - bottom
        return left + x / columns[-1] * wide, height - bottom - y / rows[-1] * high

    parts = []
    for row in rows:
        parts.append(straight(place(0, row), place(columns[-1], row), GREY if row == 0 else "#ddd"))
        parts.append(text(left - 8, place(0, row)[1] + 4, f"{row:,.6g}", "end"))
    parts += [text(place(each, 0)[0], height - bottom + 18, f"{each:,.6g}", "middle") for each in columns]
    parts.append(text(left - 50, LINE, up))
    parts.append(text(width - right, height - 12, across, "end"))
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(curve([place(*point) for point in points], colour))
        if len(series) > 1:
            parts.append(text(width - right, LINE * (number + 1), name, "end", colour))
    return document(width, height, *parts)


def shares(parts: Mapping[str, float], unit: str, width: float = 720) -> str:
    """Return a picture of one bar, divided into *parts* with names and sizes below."""
    left, top, high, row = 20, 20, 40, 20
    whole = sum(parts.values()) or 1.0
    drawn, x = [], float(left)
    for number, (name, part) in enumerate(parts.items()):
        colour = COLOURS[number % len(COLOURS)]
        wide = part / whole * (width - 2 * left)
        drawn.append(f'<rect x="{x:.1f}" y="{top}" width="{wide:.1f}" height="{high}" fill="{colour}"/>')
        y = top + high + row * (number + 1)
        drawn.append(f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        drawn.append(text(left + 20, y, name))
        drawn.append(text(left + 26 * LETTER + 60, y, f"{part:,.0f} {unit}", "end"))
        drawn.append(text(left + 26 * LETTER + 120, y, f"{part / whole:.0%}", "end"))
        x += wide
    end = top + high + row * (len(parts) + 1)
    drawn.append(text(left + 20, end, "all"))
    drawn.append(text(left + 26 * LETTER + 60, end, f"{whole:,.0f} {unit}", "end"))
    return document(width, end + 20, *drawn)
