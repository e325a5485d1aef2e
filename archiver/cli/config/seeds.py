"""The seeds of a command line: URLs, and files, stdin or URLs with lists of them."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from archiver import __version__
from archiver.cli.terminal import say
from archiver.config.option_types import MOST_PATTERNS
from archiver.config.seeds import (
    SETTINGS,
    SeedAbout,
    SeedList,
    SeedSetting,
    combined,
    contradiction,
    described,
    lacks_scheme,
    listed,
    read_seed,
    seed,
)
from archiver.errors import ConfigError
from archiver.humanize import count, printable
from archiver.url import canonical

STDIN = "-"
TOO_LONG_SHOWN = 10  # messages about seeds that are too long
MOST_SHOWN = 100  # characters of such a seed
MAX_LIST = 256 * 1024 * 1024  # bytes: some millions of URLs; more is a mistake, such as a disk image
SLOWEST_LIST = 60.0  # seconds without a byte of a list at a URL


def read_seeds(urls: Sequence[str], lists: Sequence[str], configured: tuple[str, ...]) -> SeedList:
    """Return the seeds of the command line and of *lists*; those *configured* in the settings file if there are none.

    The settings file also holds the per-seed settings of its seeds, so they are not returned with them. Lines of lists
    come before the texts of other files: those describe seeds that have no description yet.
    """
    found: dict[str, None] = {}
    own: dict[str, tuple[SeedSetting, str]] = {}  # and where it was given
    texts: list[SeedSetting] = []
    for label, given in (("the command line", map(_seed_argument, urls)), *map(_seeds_in, lists)):
        for address, settings, is_text in given:
            found[address] = None
            if settings is not None and is_text:
                texts.append(settings)
            elif settings is not None:
                known, where = own.get(address, (settings, label))
                _check_agreement(known, settings, f"{where} and {label}" if where != label else label)
                own[address] = combined(known, settings), label
    if found:
        together = {address: one for address, (one, _) in own.items()}
        for one in texts:
            together[one.url] = combined(one, together[one.url]) if one.url in together else one
        return SeedList(tuple(found), tuple(together.values()))
    if configured:
        return SeedList(configured, ())
    raise ConfigError("no URL: give one or more, or --seeds FILE; for example: archiver crawl https://example.org/")


def _check_agreement(one: SeedSetting, other: SeedSetting, where: str) -> None:
    what = contradiction(one, other)
    if what == SETTINGS:
        raise ConfigError(f"{one.url}: given twice with different settings; give all of them once")
    if what:
        raise ConfigError(f"{one.url}: {where} give different {what}s; keep one of them")


_GivenSeed = tuple[str, SeedSetting | None, bool]  # True: the settings are texts that a file has beside the URL


def _seeds_in(name: str) -> tuple[str, list[_GivenSeed]]:
    """Return the list *name* as messages name it, and its seeds."""
    label = "stdin" if name == STDIN else name
    from archiver.extract.seed_lists import seeds_in

    content = _read_list(name)
    found: list[tuple[str, str, SeedSetting | None]]
    known = seeds_in(content)
    if known is not None:
        found = [_described(text, known.about) for text in known.urls]
        too_long = [f"{label}: not a URL of a page: {printable(text, MOST_SHOWN)}" for text, at, _ in found if not at]
        say(f"archiver: {label}: a {known.kind} with {count(len(found) - len(too_long), 'URL')}")
        for note in known.notes:
            say(f"archiver: {label}: {note}")
    else:
        found = list(_with_few_patterns(listed(_decoded(content, label), label), label))
        too_long = [message for message, address, _ in found if not address]
    seeds = [each for each in found if each[1]]
    for message in too_long[:TOO_LONG_SHOWN]:
        say(f"archiver: skipped: {message}")
    if len(too_long) > TOO_LONG_SHOWN:
        say(f"archiver: skipped: {len(too_long) - TOO_LONG_SHOWN} more seeds of {label} that are too long")
    if not seeds:
        raise ConfigError(f"{label}: no URL found; write one per line")
    without = sum(lacks_scheme(text) for text, _, _ in seeds)
    if without:
        say(f"archiver: {label}: {count(without, 'URL')} without a scheme, taken as http://")
    return label, [(address, own, known is not None) for _, address, own in seeds]


def _with_few_patterns(
    found: Iterable[tuple[str, str, SeedSetting | None]], label: str
) -> Iterator[tuple[str, str, SeedSetting | None]]:
    """Yield the seeds *found* in the list *label*. Raises `ConfigError` if they have more patterns than a crawl may."""
    length = 0
    for each in found:
        own = each[2]
        length += 0 if own is None else sum(map(len, (*own.all("include"), *own.all("exclude"))))
        if length > MOST_PATTERNS:
            raise ConfigError(
                f"--seeds {label}: its patterns (include, exclude) have more than {MOST_PATTERNS} characters, which is "
                "the most for a crawl; leave some out, or write one pattern for many"
            )
        yield each


def _described(text: str, about: Mapping[str, SeedAbout]) -> tuple[str, str, SeedSetting | None]:
    """Return the URL *text*, in canonical form too, and what a file says about it."""
    address = canonical(text) or ""
    return text, address, described(address, about[text]) if address and text in about else None


def _seed_argument(text: str) -> _GivenSeed:
    if lacks_scheme(text) and _is_file(text):
        raise ConfigError(f"{text!r} is a file; if it lists seeds: --seeds {text}")
    address, own = read_seed(text)
    if lacks_scheme(text):
        say(f"archiver: {text} has no scheme; taken as {address}")
    return address, own, False


def _is_file(text: str) -> bool:
    with suppress(OSError):  # a URL may be longer than a path may be
        return Path(text).is_file()
    return False


def _read_list(name: str) -> bytes:
    """Return the content of the file *name*, of stdin, or of what a URL names."""
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(MAX_LIST + 1)
        elif name.lower().startswith(("http://", "https://")):
            content = _downloaded(seed(name))
        else:
            with Path(name).open("rb") as file:
                content = file.read(MAX_LIST + 1)
    except OSError as error:
        raise ConfigError(f"--seeds {name}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_LIST:
        raise ConfigError(f"--seeds {name}: longer than {MAX_LIST} bytes; this cannot be a list of URLs")
    return content


def _downloaded(address: str) -> bytes:
    """Return what is at *address*, as one request without the settings of the crawl gets it."""
    import urllib.request
    from http.client import HTTPException

    agent = {"User-Agent": f"archiver/{__version__}"}
    request = urllib.request.Request(address, headers=agent)  # noqa: S310 - a canonical seed is http or https
    try:
        with urllib.request.urlopen(request, timeout=SLOWEST_LIST) as answer:  # noqa: S310 - it is http or https
            return bytes(answer.read(MAX_LIST + 1))
    except (HTTPException, ValueError) as error:
        raise OSError(str(error)) from None


def _decoded(content: bytes, label: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{label}:{line}: not UTF-8; write one URL per line") from None
