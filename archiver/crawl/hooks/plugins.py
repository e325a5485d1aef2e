"""Extractors that other installed programs offer: entry points of the group `archiver.extractors`.

The name of an entry point is a media type, `application/epub+zip` or `video/*`. Its object is a function that gets a
`HookDocument` and returns links, as the hook `links` does.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archiver.config.hook_settings import HookSettings
from archiver.crawl.hooks.worker import GROUP

MOST = 100  # entry points
LARGEST = 1 << 20  # bytes of a list of entry points


@dataclass(frozen=True, slots=True)
class InstalledExtractor:
    """One entry point."""

    media_type: str
    value: str  # module:function
    distribution: str  # name and version

    def __str__(self) -> str:
        return f"{self.media_type} ({self.distribution})"

    def reads(self, media_type: str) -> bool:
        """Return True if it reads documents of *media_type*."""
        named = self.media_type
        return media_type.startswith(named[:-1]) if named.endswith("/*") else media_type == named


def extractors(settings: HookSettings) -> tuple[InstalledExtractor, ...]:
    """Return the extractors that a crawl with *settings* uses."""
    return _installed() if settings.plugins == "on" else ()


@cache
def _installed() -> tuple[InstalledExtractor, ...]:
    """Return the extractors that are installed, in the order of their media types and names."""
    if not any(map(_names_group, sys.path)):
        return ()
    from importlib.metadata import entry_points  # noqa: PLC0415 - takes longer than all else, and few installations need it

    found = {
        InstalledExtractor(each.name.lower(), each.value, f"{each.dist.name} {each.dist.version}" if each.dist else "?")
        for each in entry_points(group=GROUP)
        if "/" in each.name and each.name.isprintable()
    }
    return tuple(sorted(found, key=str))[:MOST]


def _names_group(folder: str) -> bool:
    """Return True if a distribution in *folder* has entry points of our group."""
    with suppress(OSError):
        return any(map(_is_named_in, Path(folder or ".").glob("*.*-info/entry_points.txt")))
    return False


def _is_named_in(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return GROUP.encode() in file.read(LARGEST)
    return False
