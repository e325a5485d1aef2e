"""The seeds of a new crawl, gathered from the command line, lists in files or on stdin, and the settings file."""

import sys
from collections.abc import Sequence
from pathlib import Path

from archiver.cli.terminal import say
from archiver.config.seeds import lacks_scheme, listed, seed
from archiver.errors import ConfigError

STDIN = "-"
_MAX_LIST = 256 * 1024 * 1024  # bytes: some millions of URLs; more is a mistake, such as a disk image


def gathered(urls: Sequence[str], lists: Sequence[str], configured: tuple[str, ...]) -> tuple[str, ...]:
    """Canonical seeds, each once, in the order given; those of the settings file only where none is given."""
    found: dict[str, None] = {}
    for text in urls:
        canonical = _argument(text)
        if lacks_scheme(text):
            say(f"archiver: {text} has no scheme; taken as {canonical}")
        found[canonical] = None
    for name in lists:
        found |= dict.fromkeys(_listed(name))
    if found:
        return tuple(found)
    if configured:
        return configured
    raise ConfigError("no URL: give one or more, or --seeds FILE; for example: archiver crawl https://example.org/")


def _listed(name: str) -> list[str]:
    seeds = list(listed(_read(name), _label(name)))
    if not seeds:
        raise ConfigError(f"{_label(name)}: there is no URL in it; one is expected on each line")
    without = sum(lacks_scheme(text) for text, _ in seeds)
    if without:
        say(f"archiver: {_label(name)}: {without} URL{'' if without == 1 else 's'} without a scheme, taken as http://")
    return [canonical for _, canonical in seeds]


def _argument(text: str) -> str:
    if lacks_scheme(text) and Path(text).is_file():
        raise ConfigError(f"{text!r} is a file; if it lists seeds: --seeds {text}")
    return seed(text)


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
