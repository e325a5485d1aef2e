"""Format sizes, durations, dates and counts for people, and make text from the network safe for a terminal. Pure."""

import json
from datetime import UTC, datetime
from typing import Any


def printable(text: str, width: int = 200) -> str:
    """Return *text* as one line of at most *width* characters, with control characters escaped."""
    shown = text[:width]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else _escaped(char) for char in shown)
    return shown if len(text) <= width and len(shown) <= width else f"{shown[: width - 1]}…"


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def json_text(value: Any, indent: str = "") -> str:
    """Return *value* as JSON with a line for each part, but one for parts without parts of their own.

    Python indents JSON in its own code, which takes ten times as long.
    """
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if not any(isinstance(part, dict | list | tuple) and part for part in parts):
        return json.dumps(value, ensure_ascii=False)
    inner = f",\n{indent}  "
    if isinstance(value, dict):
        lines = [
            f"{json.dumps(str(name), ensure_ascii=False)}: {json_text(part, inner[2:])}" for name, part in value.items()
        ]
        return f"{{{inner[1:]}{inner.join(lines)}\n{indent}}}"
    return f"[{inner[1:]}{inner.join(json_text(part, inner[2:]) for part in parts)}\n{indent}]"


def volume(size: int) -> str:
    """Format a number of bytes: `512 B`, `3.1 MB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def count(number: int, one: str, several: str = "") -> str:
    """Return *number* with its noun: `1 page`, `3 pages`. *several* is the plural; by default *one* with an s."""
    return f"{number} {plural(number, one, several)}"


def plural(number: int, one: str, several: str = "") -> str:
    """Return *one*, or for any *number* but 1 its plural."""
    return one if number == 1 else several or f"{one}s"


def rate(each_second: float) -> str:
    """Format a rate: `0.012/s`, `4.8/s`, `668/s`."""
    return f"{each_second:.0f}/s" if each_second > 99 else f"{each_second:.2g}/s"


def second(seconds: float) -> str:
    """Format a time, in *seconds* since the epoch, as ISO 8601 without a fraction."""
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"


def iso(seconds: float) -> str | None:
    """Format a time, in *seconds* since the epoch, as ISO 8601 with milliseconds; None for 0."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(seconds: float) -> str:
    """Format a duration: `4.2 s`, `3:07`, `2:00:00`, `3 d 4:00:00`."""
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}:{rest:02}"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours}:{minutes:02}:{rest:02}" if days else f"{hours}:{minutes:02}:{rest:02}"


LONGEST_EXAMPLE = 60  # characters


def shortened(url: str) -> str:
    """Return *url* for an example in a sentence: without its middle if it is long."""
    whole = printable(url, 2 * len(url) + LONGEST_EXAMPLE)
    half = LONGEST_EXAMPLE // 2
    return whole if len(whole) <= LONGEST_EXAMPLE else f"{whole[: half - 1]}…{whole[-half:]}"
