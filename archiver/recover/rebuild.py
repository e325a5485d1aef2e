"""A lost or damaged database made anew: recovery from offset 0, over every WARC file that this program wrote.

What is damaged in a file is taken out and kept under damaged/; every other visit is settled again, so a crawl goes on
where it was. What no WARC tells (URLs that never answered, or that robots.txt forbids) waits to be visited again.
"""

import logging
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from archiver.archive.layout import OPEN, Layout, storage
from archiver.frontier.port import Frontier
from archiver.recover.damage import finished
from archiver.recover.recovery import Adoption, archive_files, mended, named, ours
from archiver.recover.visits import described
from archiver.visit import Terms

Tell = Callable[[int, int, int], None]  # files done, files in all, visits so far

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuilding came to."""

    visits: int
    files: int
    mended: tuple[str, ...]  # files out of which something was taken
    foreign: tuple[str, ...]  # files of others, left as they are


class Rebuilding:
    """Fills a new frontier from the WARC files of a collection."""

    def __init__(self, layout: Layout, frontier: Frontier, terms: Terms, tell: Tell = lambda *_: None) -> None:
        self._layout = layout
        self._frontier = frontier
        self._terms = terms
        self._tell = tell

    async def run(self) -> Rebuilt:
        """Read every file; afterwards each of them has its final name, and the frontier knows it as closed."""
        adoption = Adoption(self._frontier, self._terms)
        cut, foreign = [], []
        paths = archive_files(self._layout)
        for number, path in enumerate(paths):
            self._tell(number, len(paths), adoption.adopted)
            name = path.name.removesuffix(OPEN)
            with storage(path):
                if not path.name.endswith(OPEN) and not ours(path):
                    foreign.append(name)
                    continue
                if mended(path, name, 0, self._layout, lenient=True):
                    cut.append(name)
                await adoption.read(path, name, 0, self._layout.spool, lenient=True)
                if named(path, name):
                    await self._frontier.settle((), (finished(path.with_name(name), name),))
        self._tell(len(paths), len(paths), adoption.adopted)
        return Rebuilt(adoption.adopted, len(paths) - len(foreign), tuple(cut), tuple(foreign))


def settings_text(paths: Iterable[Path]) -> str:
    """The text of a crawl.toml as the newest of *paths* tells it in its warcinfo record; "" where none does."""
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with storage(path), path.open("rb") as file:
            fields = described(file)
        lines = _settings(value for name, value in fields if name == "setting")
        seeds = [value for name, value in fields if name == "seed"]
        if lines and seeds:
            return "\n".join([_array("seeds", seeds), *lines]) + "\n"
    return ""


def _settings(lines: Iterable[str]) -> list[str]:
    """TOML lines of which each key stands once: a setting with several values is told once for each."""
    values: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition(" = ")
        values.setdefault(key, []).append(value)
    text = []
    for key, given in values.items():
        line = f"{key} = {given[0]}" if len(given) == 1 and not given[0].startswith("[") else _joined(key, given)
        try:
            tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            log.warning("the setting %s cannot be read from the WARC files; its default holds", key)
        else:
            text.append(line)
    return text


def _joined(key: str, arrays: list[str]) -> str:
    return f"{key} = [{', '.join(array.removeprefix('[').removesuffix(']') for array in arrays)}]"


def _array(key: str, values: Iterable[str]) -> str:
    return f"{key} = [{', '.join(chr(34) + value + chr(34) for value in values)}]"
