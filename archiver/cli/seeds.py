"""The seeds of a new crawl, gathered from the command line, lists in files or on stdin, and the settings file."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from archiver import humanize
from archiver.cli.terminal import say
from archiver.config.seeds import SeedSetting, lacks_scheme, listed, read_seed
from archiver.errors import ConfigError

STDIN = "-"
_TOLD = 10  # seeds that are left out
_MAX_LIST = 256 * 1024 * 1024  # bytes: some millions of URLs; more is a mistake, such as a disk image


@dataclass(frozen=True, slots=True)
class SeedList:
    """Canonical seeds, each once, in the order given, and the settings that some of them have for themselves."""

    urls: tuple[str, ...]
    own: tuple[SeedSetting, ...]


def gathered(urls: Sequence[str], lists: Sequence[str], configured: tuple[str, ...]) -> SeedList:
    """The seeds that are given; those of the settings file, which has their settings too, only where none is."""
    found: dict[str, None] = {}
    own: dict[str, SeedSetting] = {}
    for given in (*map(_argument, urls), *(one for name in lists for one in _listed(name))):
        address, theirs = given
        found[address] = None
        if theirs is not None and own.setdefault(address, theirs) != theirs:
            raise ConfigError(f"{address}: given with other settings too; right would be one set of settings for it")
    if found:
        return SeedList(tuple(found), tuple(own.values()))
    if configured:
        return SeedList(configured, ())
    raise ConfigError("no URL: give one or more, or --seeds FILE; for example: archiver crawl https://example.org/")


def together(known: Iterable[SeedSetting], further: Iterable[SeedSetting]) -> tuple[SeedSetting, ...]:
    """Those of *known*, and *further* ones, which go before what is known of the same seed."""
    return tuple({one.url: one for one in (*known, *further)}.values())


def _listed(name: str) -> list[tuple[str, SeedSetting | None]]:
    found = list(listed(_read(name), _label(name)))
    seeds = [each for each in found if each[1]]
    too_long = [told for told, address, _ in found if not address]
    for told in too_long[:_TOLD]:
        say(f"archiver: left out: {told}")
    if len(too_long) > _TOLD:
        say(f"archiver: left out: {len(too_long) - _TOLD} more seeds of {_label(name)} that are too long")
    if not seeds:
        raise ConfigError(f"{_label(name)}: there is no URL in it; one is expected on each line")
    without = sum(lacks_scheme(text) for text, _, _ in seeds)
    if without:
        say(f"archiver: {_label(name)}: {humanize.count(without, 'URL')} without a scheme, taken as http://")
    return [(address, own) for _, address, own in seeds]


def _argument(text: str) -> tuple[str, SeedSetting | None]:
    if lacks_scheme(text) and _is_file(text):
        raise ConfigError(f"{text!r} is a file; if it lists seeds: --seeds {text}")
    address, own = read_seed(text)
    if lacks_scheme(text):
        say(f"archiver: {text} has no scheme; taken as {address}")
    return address, own


def _is_file(text: str) -> bool:
    with suppress(OSError):  # a URL may be longer than a path may be
        return Path(text).is_file()
    return False


def _read(name: str) -> str:
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(_MAX_LIST + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(_MAX_LIST + 1)
    except OSError as error:
        raise ConfigError(f"--seeds {name}: cannot be read: {error.strerror or error}") from None
    if len(content) > _MAX_LIST:
        raise ConfigError(f"--seeds {name}: longer than {_MAX_LIST} bytes; this cannot be a list of URLs")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{_label(name)}:{line}: not UTF-8 text; one URL is expected on each line") from None


def _label(name: str) -> str:
    return "stdin" if name == STDIN else name
