"""Sizes, durations and dates as people read them, and text from the network made safe for a terminal. Pure."""

from datetime import UTC, datetime


def printable(text: str, width: int = 200) -> str:
    """*text* on one line of at most *width* characters, with nothing in it that a terminal would obey."""
    shown = text[:width]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else _escaped(char) for char in shown)
    return shown if len(text) <= width and len(shown) <= width else f"{shown[: width - 1]}…"


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def volume(count: int) -> str:
    """A number of bytes as people say it: `512 B`, `3.1 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def second(seconds: float) -> str:
    """A moment, in *seconds* since the epoch, as ISO 8601 has it, to the second."""
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"


def duration(seconds: float) -> str:
    """A length of time as people say it: `4.2 s`, `3:07`, `2:00:00`, `3 d 4:00:00`."""
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes}:{rest:02}"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours}:{minutes:02}:{rest:02}" if days else f"{hours}:{minutes:02}:{rest:02}"
