"""What an adopted crawl consists of, and the translation of settings with a line for each that has no counterpart."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from archiver import url
from archiver.config.settings import every_setting, key_of
from archiver.config.toml import value_of
from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedUrl
from archiver.humanize import printable
from archiver.storage import open_file, storage

LARGEST_TEXT = 16 << 20  # bytes of a file of settings or patterns
MOST_SEEDS = 100_000  # more are queued like other URLs: crawl.toml is read by people too
MOST_PATTERNS = 10_000  # of one source
LONGEST_SHOWN = 300  # characters of a setting in a message

_SECRET = re.compile(r"pass|secret|token|auth|credential|proxy|cookie|login", re.IGNORECASE)  # names of settings
_NAMED = re.compile(r"[^:=]*[:=]")  # the name of a setting, before its value
_ENTRIES = {key_of(entry): entry for _, entry in every_setting()}


@dataclass(frozen=True, slots=True)
class AdoptedSettings:
    """Settings here, by name of field, and one line for each setting of the other program that has no counterpart."""

    values: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()  # canonical
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdoptedCrawl:
    """A crawl of another program."""

    kind: str  # for a person: "wpull"
    settings: AdoptedSettings
    archives: tuple[Path, ...]  # WARC and WACZ files and folders of them; empty: none
    read: Callable[[], Iterator[AdoptedUrl]]
    remarks: tuple[str, ...] = ()  # what a person should know about it

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield every URL of its queue and seen-set."""
        return self.read()


class SettingsTranslation:
    """Collects settings; what cannot be used becomes a note, so nothing is lost silently."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._lists: dict[str, list[Any]] = {}
        self._notes: dict[str, None] = {}
        self._seeds: dict[str, None] = {}

    def put(self, key: str, value: Any, theirs: str) -> None:
        """Set *key* of crawl.toml to *value*, because the other program has *theirs*; lists grow."""
        entry = _ENTRIES[key]
        try:
            new = value_of(entry, [value] if entry.metadata["many"] else value)
        except ConfigError as error:
            self.note(theirs, str(error))
            return
        if entry.metadata["many"]:
            self._lists.setdefault(entry.name, []).extend(new)
        else:
            self._values[entry.name] = new

    def exclude(self, patterns: Iterable[str], theirs: str) -> None:
        """Exclude URLs that match one of *patterns*; *theirs* names where they come from."""
        for number, pattern in enumerate(dict.fromkeys(patterns)):
            if number >= MOST_PATTERNS:
                self.note(theirs, f"only the first {MOST_PATTERNS} patterns are taken over")
                return
            self.put("exclude", pattern, f"{theirs}: {pattern}")

    def seed(self, text: str) -> bool:
        """Add a seed; return False if it is no URL or there are too many."""
        address = url.canonical(text)
        if address is None or len(self._seeds) >= MOST_SEEDS:
            return False
        self._seeds[address] = None
        return True

    def note(self, theirs: str, why: str) -> None:
        """Note that *theirs* has no counterpart, and *why* or what to do."""
        found = _NAMED.match(theirs)
        shown = f"{found[0]} …" if found and _SECRET.search(found[0]) else theirs
        self._notes[f"{printable(shown, LONGEST_SHOWN)}: {printable(why, LONGEST_SHOWN)}"] = None

    def settings(self) -> AdoptedSettings:
        """Return everything that was collected."""
        lists = {name: tuple(values) for name, values in self._lists.items()}
        return AdoptedSettings(self._values | lists, tuple(self._seeds), tuple(self._notes))


def open_source(path: Path) -> BinaryIO:
    """Open the file at *path*. Raises `ConfigError` for a link: in a received folder it may lead to a file of ours."""
    if path.is_symlink():
        raise ConfigError(f"{path}: a link, which is not followed; put the file itself there")
    return open_file(path)


def read_text(path: Path, largest: int = LARGEST_TEXT) -> str:
    """Return the text of the file at *path*, with U+FFFD for what is not UTF-8; "" if it is not there.

    Raises `ConfigError` if it has more than *largest* bytes, or is a link.
    """
    if not path.is_file():
        return ""
    with storage(path), open_source(path) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise ConfigError(f"{path}: it has more than {largest} bytes, the maximum for such a file")
    return data.decode("utf-8", "replace")


def literal(text: str) -> str:
    """Return a regular expression for *text* itself."""
    return re.escape(text)


def first_line(text: str) -> str:
    """Return the first line of *text* without white space."""
    return text.strip().partition("\n")[0].strip()


def whole_number(text: str) -> int | None:
    """Return the number in *text*; None if there is none."""
    found = re.fullmatch(r"\s*(-?[0-9]{1,15})\s*", text)
    return int(found[1]) if found else None


def archives_in(folder: Path, endings: Sequence[str], deepest: int = 1) -> list[Path]:
    """Return the files in *folder*, and up to *deepest* - 1 folders below it, whose names end with one of *endings*."""
    with storage(folder):
        entries = sorted(folder.iterdir())
        found = [path for path in entries if path.name.lower().endswith(tuple(endings)) and path.is_file()]
        for path in entries if deepest > 1 else ():
            if path.is_dir() and not path.is_symlink():
                found += archives_in(path, endings, deepest - 1)
    return found
