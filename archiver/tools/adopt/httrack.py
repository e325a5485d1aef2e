"""Reads what HTTrack keeps of a mirror: the URLs in its cache and its log, and its command line.

The cache holds bodies without the exact heads, so nothing of it becomes a capture: every URL waits. WARC files that
HTTrack wrote (3.49-23 and later, --warc) are imported. A ZIP without its directory, as an interruption leaves it, is
not read; `new.txt` has the same URLs. `winprofile.ini` is not read either: WinHTTrack and WebHTTrack keep the fields of
their forms there, and `doit.log` has the command line that they made of these.

Source: HTTrack's src/htscache.c, htscore.c (`new.txt`, `doit.log`) and its manual.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from archiver.config.expressions import compiled
from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedState, AdoptedUrl
from archiver.storage import storage
from archiver.tools.adopt.source import (
    AdoptedCrawl,
    SettingsTranslation,
    archives_in,
    literal,
    open_source,
    read_text,
    whole_number,
)

CACHE = "hts-cache"
LARGEST_DIRECTORY = 32 << 20  # bytes of the list in the ZIP, of which `zipfile` takes a dozen times as much in memory
END_OF_ZIP = b"PK\x05\x06"
LONGEST_END = 66 << 10  # bytes behind that list
LARGEST_LINE = 256 << 10  # bytes
COLUMNS = 9  # of a line of new.txt

_FROM = re.compile(r"\(from (\S+)\)")
_NUMBERS = {  # letter: keys of crawl.toml
    "m": ("max-response-size",),
    "M": ("max-bytes",),
    "E": ("max-time",),
    "A": ("bandwidth",),
    "R": ("retries",),
    "T": ("timeout",),
    "r": ("max-depth",),
    "%e": ("extra-hops",),
    "c": ("concurrency", "host-concurrency"),
    "%c": ("rate",),
    "s": ("robots",),
}
_UNLIMITED = frozenset(  # 0: HTTrack has no limit
    ("max-response-size", "max-bytes", "max-time", "bandwidth", "timeout", "concurrency", "host-concurrency", "rate")
)
_WORD = compiled(r'"((?:[^"\\]|\\.)*+)"(?!\S)|\S+')
_ESCAPE = re.compile(r'\\(["\\])')
_LETTER = re.compile(r"%?[A-Za-z!#][0-9,]*")
_TAKES_A_VALUE = {
    "F": "user-agent",
    "%F": "",
    "O": "",
    "%l": "accept-language",
    "%E": "contact",
    "%X": "",
    "%S": "",
    "%L": "",
    "P": "",
}
_QUIET_LETTERS = frozenset((*"qwWCQizZNIKkfouXYbBjJnt", *(f"%{letter}" for letter in "suIPfHApxwNMqlFkvibzhDant")))
_SCOPES = {"a": "host", "d": "domain", "e": "any", "S": "prefix", "D": "prefix"}


class Mirror:
    """The URLs in the cache of a mirror."""

    def __init__(self, folder: Path) -> None:
        self._cache = folder / CACHE

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield the URLs of its log, then those in its cache."""
        for name in ("old.txt", "new.txt"):
            yield from _logged(self._cache / name)
        for name in ("new.zip", "old.zip"):
            yield from _cached(self._cache / name)


def _logged(path: Path) -> Iterator[AdoptedUrl]:
    if not path.is_file():
        return
    with storage(path), open_source(path) as file:
        while line := file.readline(LARGEST_LINE):
            columns = line.decode("utf-8", "replace").split("\t")
            if len(columns) < COLUMNS or "://" not in columns[7]:
                continue
            found = _FROM.search(columns[-1])
            yield AdoptedUrl(_address(columns[7]), AdoptedState.WAITING, via=found[1] if found else "")


def _cached(path: Path) -> Iterator[AdoptedUrl]:
    if not path.is_file() or not 0 < _directory_size(path) <= LARGEST_DIRECTORY:
        return
    try:
        with storage(path), open_source(path) as data, zipfile.ZipFile(data) as file:
            names = file.namelist()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError, ValueError):
        return  # as an interruption leaves it
    for name in names:
        if "://" in name:
            yield AdoptedUrl(_address(name), AdoptedState.WAITING)


def _directory_size(path: Path) -> int:
    """Return the bytes of the directory of the ZIP at *path*; 0 if it has none."""
    with storage(path), open_source(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - LONGEST_END))
        end = file.read()
    at = end.rfind(END_OF_ZIP)
    return int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0


def _address(text: str) -> str:
    return text.strip()


def httrack_crawl(path: Path) -> AdoptedCrawl:
    """Return the crawl of the mirror in the folder *path*, or in the one that holds the cache *path*."""
    folder = path.parent if path.name == CACHE else path
    if not (folder / CACHE).is_dir():
        raise ConfigError(f"{path}: it has no {CACHE}, the folder in which HTTrack keeps its cache")
    settings = SettingsTranslation()
    words = _words(read_text(folder / CACHE / "doit.log"))
    if words:
        _command_line(words, settings)
    else:
        settings.note("doit.log", "missing or empty, so the settings here are the defaults")
        if (folder / CACHE / "winprofile.ini").is_file():
            settings.note("winprofile.ini", "not read; set what it has with archiver set DIR KEY=VALUE")
    mirror = Mirror(folder)
    if not settings.settings().seeds:
        first = next((each.url for each in mirror.urls() if each.url.startswith("http") and not each.via), "")
        if settings.seed(first):
            settings.note("URLs of HTTrack", f"the first URL of its cache is the seed: {first}")
    archives = archives_in(folder, (".warc", ".warc.gz"), deepest=2)
    remark = "HTTrack's cache lacks the exact heads of responses, so its URLs are fetched again"
    return AdoptedCrawl("HTTrack", settings.settings(), tuple(archives), mirror.urls, () if archives else (remark,))


def _words(text: str) -> list[str]:
    """Return the words of a command line, of which HTTrack quotes those with blanks, quotes or backslashes."""
    found = _WORD.finditer(text.strip().partition("\n")[0])
    return [word[0] if word[1] is None else _ESCAPE.sub(r"\1", word[1]) for word in found]


def _command_line(words: list[str], settings: SettingsTranslation) -> None:
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word.startswith("--"):
            settings.note(word, "no counterpart is set; see docs/how-to/from-httrack.md")
        elif word.startswith("-") and len(word) > 1 and not set(word) & {"*", "/", "."}:
            _letters(word[1:], rest, settings)
        elif word[:1] in ("+", "-"):
            _filter(word, settings)
        else:
            settings.seed(word if "://" in word else f"http://{word}")


def _letters(text: str, rest: list[str], settings: SettingsTranslation) -> None:
    """Translate options that are written together, such as `-qwC2%Ps2r6`."""
    for found in _LETTER.finditer(text):
        letter = found[0].rstrip("0123456789,")
        number = whole_number(found[0][len(letter) :])
        shown = f"-{found[0]}"
        if letter in _TAKES_A_VALUE and number in (None, 1) and rest:
            value, key = rest.pop(), _TAKES_A_VALUE[letter]
            if key:
                settings.put(key, value, f"{shown} {value}")
        elif letter in _SCOPES:
            settings.put("scope", _SCOPES[letter], shown)
        elif number is not None and letter in _NUMBERS:
            _number(letter, number, shown, settings)
        elif letter not in _QUIET_LETTERS:
            settings.note(shown, "no counterpart is set; see docs/how-to/from-httrack.md")


def _number(letter: str, number: int, shown: str, settings: SettingsTranslation) -> None:
    for key in _NUMBERS[letter]:
        if key == "max-depth":
            settings.put(key, max(number - 1, 0), shown)  # HTTrack counts the first page
        elif key == "robots":
            settings.put(key, "obey" if number else "ignore", shown)
        elif number or key not in _UNLIMITED:
            settings.put(key, number, shown)


def _filter(word: str, settings: SettingsTranslation) -> None:
    """Translate a filter such as `-*.zip` or `+*.example.net/*`."""
    if "[" in word or word[1:].startswith("mime:"):
        kind = word[1:].removeprefix("mime:")
        if word.startswith("-mime:"):
            settings.put("exclude-type", kind, word)
        else:
            settings.note(word, "no counterpart; write a regular expression into exclude or include of crawl.toml")
        return
    pattern = word[1:].removeprefix("http://").removeprefix("https://")
    expression = "".join(".*" if part == "*" else literal(part) for part in re.split(r"(\*)", pattern))
    key = "include" if word.startswith("+") else "exclude"
    settings.put(key, f"^https?://{expression}$", word)
