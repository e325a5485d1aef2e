"""Start a crawl from the page: checked seeds and a few settings become a command of archiver, which runs on its own.

The page can set what limits a crawl and says who crawls, and nothing that names a file, a program or a proxy. The crawl
is a process of its own, in a new directory of the watched folder, and goes on when this server ends.
"""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import IO, Any

from archiver import url
from archiver.collection.layout import Layout
from archiver.collection.orders.add import described_seeds
from archiver.config import toml
from archiver.config.seeds import SeedList, table_of
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.errors import ArchiveError, ConfigError
from archiver.frontier import totals
from archiver.humanize import printable
from archiver.storage.temporary import temporary_file

SETTINGS = frozenset(
    ("scope", "rate", "contact", "max-depth", "max-hops", "max-urls", "max-bytes", "max-time", "include", "exclude")
)  # that the page can give
MOST_SEEDS = 1000
MOST_VALUES = 100  # of one setting
MOST_RUNNING = 20  # crawls that one server has started
MOST_NAMES = 1000  # directories of one site
START_TIME = 30.0  # seconds in which a crawl makes its database
POLL = 0.05
LARGEST_PAGE = 32 << 20  # bytes of a report
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from archiver.cli import main; main()"


@dataclass(frozen=True, slots=True)
class NewCrawl:
    """A crawl that is about to start."""

    seeds: SeedList
    options: tuple[str, ...]  # --KEY=VALUE
    toml: str  # what its crawl.toml will say, without settings that have their defaults
    directory: Path

    def command(self) -> list[str]:
        """Return the command that runs the crawl."""
        return own_command("crawl", "-q", "-o", str(self.directory), *self.options, "--", *self._seeds())

    def typed(self) -> str:
        """Return the command as a person would type it, who lets archiver name the directory."""
        return join(("archiver", "crawl", *self._seeds(), *self.options))

    def _seeds(self) -> Iterator[str]:
        own = {one.url: str(one) for one in self.seeds.own}
        return (own.get(address, address) for address in self.seeds.urls)


def own_command(*words: str) -> list[str]:
    """Return the command that runs archiver with *words*. It imports nothing from the current folder."""
    places = json.dumps([path or str(Path.cwd()) for path in sys.path])
    return [sys.executable, "-P", "-c", _PROGRAM, places, *words]


async def printed(*words: str) -> bytes:
    """Return what archiver prints with *words*, run as a process of its own. Raises `ConfigError` if it fails.

    It has a memory of its own, and does not slow the stream. It ends if no one waits for it any more.
    """
    with temporary_file() as output, temporary_file() as messages:
        process = await asyncio.create_subprocess_exec(
            *own_command(*words), stdin=subprocess.DEVNULL, stdout=output, stderr=messages
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        if code:
            raise ConfigError(_last_line(messages) or f"archiver {words[0]} ended with {code}")
        output.seek(0)
        found = output.read(LARGEST_PAGE + 1)
        if len(found) > LARGEST_PAGE:
            raise ConfigError(f"archiver {words[0]} has printed more than {LARGEST_PAGE} bytes")
        return found


def _last_line(messages: IO[bytes]) -> str:
    messages.seek(0)
    said = messages.read(10_000).decode("utf-8", "replace").strip().splitlines()
    return said[-1].removeprefix("archiver: ") if said else ""


class Starting:
    """Starts crawls in the first of the watched *folders*."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folder = folders[0].absolute() if folders else None
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = asyncio.Lock()

    def checked(self, given: dict[str, Any]) -> NewCrawl:
        """Return the crawl that *given* describes: seeds and settings. Raises `ConfigError` with one line."""
        if self._folder is None:
            raise ConfigError("this page shows one crawl; to start others here: archiver watch FOLDER")
        if wrong := set(given) - {"seeds", "settings"}:
            raise ConfigError(f"{printable(min(wrong), 60)}: only seeds and settings can be given")
        listed = given.get("seeds")
        if not isinstance(listed, list) or not listed or not all(isinstance(each, str) for each in listed):
            raise ConfigError("no seed: give one or more URLs, for example https://example.org/")
        if len(listed) > MOST_SEEDS:
            raise ConfigError(f"more than {MOST_SEEDS} seeds; start the crawl with archiver crawl --seeds FILE")
        seeds = described_seeds(listed, "archiver crawl")
        if not seeds.urls:
            raise ConfigError("no seed: the lines are comments; give one or more URLs")
        settings = given.get("settings", {})
        if not isinstance(settings, dict):
            raise ConfigError('settings: write an object, for example {"rate": "2"}')
        values, options, lines = _settings(settings)
        with_values(Settings(), {**values, "seeds": seeds.urls, "seed": seeds.own})
        first, last = f"seeds = {toml.toml_value(list(seeds.urls))}", "# all other settings have their defaults"
        text = "\n".join((first, *lines, last, *_tables(seeds)))
        return NewCrawl(seeds, options, f"{text}\n", self._free(seeds.urls[0]))

    def _free(self, first: str) -> Path:
        """Return a directory that does not exist, named after the host of the *first* seed."""
        assert self._folder is not None
        name = re.sub(r"[^A-Za-z0-9.-]", "_", url.authority(first)).strip("._")[:100] or "crawl"
        names = (name, *(f"{name}-{number}" for number in range(2, MOST_NAMES)))
        found = next((self._folder / each for each in names if not _exists(self._folder / each)), None)
        if found is None:
            raise ConfigError(f"{self._folder} has {MOST_NAMES} crawls of {name} already; remove or move some")
        return found

    async def start(self, new: NewCrawl) -> None:
        """Start the crawl *new*, and return when its database is there. Raises `ConfigError` if it does not start."""
        async with self._lock:
            self._running = [each for each in self._running if each.poll() is None]
            if len(self._running) >= MOST_RUNNING:
                raise ConfigError(f"{MOST_RUNNING} crawls that were started here are running; wait until one ends")
            if _exists(new.directory):
                raise ConfigError(f"{new.directory} exists already; try again")
            await asyncio.to_thread(self._start, new)

    def _start(self, new: NewCrawl) -> None:
        with temporary_file() as messages:
            process = subprocess.Popen(  # noqa: S603 - a list of checked words
                new.command(), stdin=subprocess.DEVNULL, stdout=messages, stderr=messages, start_new_session=True
            )
            self._running.append(process)
            end = time.monotonic() + START_TIME
            while process.poll() is None and not has_database(new.directory):
                if time.monotonic() > end:
                    raise ConfigError(f"the crawl in {new.directory} has not made its database yet; look again later")
                time.sleep(POLL)
            if process.returncode and not Layout(new.directory).has_frontier():
                raise ConfigError(_last_line(messages) or "the crawl did not start")

    def close(self) -> None:
        """Let the crawls go on without this process."""
        for process in self._running:
            process.returncode = process.poll() or 0  # it is no child to wait for any more
        self._running = []


def has_database(directory: Path) -> bool:
    """Return True if a crawl in *directory* can be read: SQLite makes an empty file some time before its tables."""
    try:
        return totals.has_started(directory)
    except (ArchiveError, ConfigError):  # there is no file yet, or it is locked while its tables are made
        return False


def _tables(seeds: SeedList) -> Iterator[str]:
    """Yield the lines of crawl.toml that describe *seeds*."""
    for own in seeds.own:
        yield from ("", "[[seed]]", *(f"{key} = {toml.toml_value(value)}" for key, value in table_of(own).items()))


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _settings(given: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...], list[str]]:
    """Return the values of settings by field, as options, and as lines of crawl.toml."""
    known = {key_of(entry): entry for _, entry in every_setting()}
    values, options, lines = dict[str, Any](), list[str](), list[str]()
    for key, value in given.items():
        if key not in SETTINGS:
            allowed = ", ".join(sorted(SETTINGS))
            raise ConfigError(f"{printable(key, 60)} cannot be set here; the page can set {allowed}")
        entry = known[key]
        texts = list(_texts(key, value))
        if len(texts) > (MOST_VALUES if entry.metadata["many"] else 1):
            raise ConfigError(f"{key}: too many values")
        if not texts:
            continue
        try:
            parsed = tuple(map(entry.metadata["kind"].parse, texts))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
        many = entry.metadata["many"]
        values[entry.name] = parsed if many else parsed[0]
        written = list(map(entry.metadata["kind"].write, parsed))
        lines.append(f"{key} = {toml.toml_value(written if many else written[0])}")
        options += [f"--{key}={text}" for text in texts]
    return values, tuple(options), lines


def _texts(key: str, value: object) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise ConfigError(f"{key}: write a text or a number")
        if text := str(each).strip():
            if len(text) > 2000 or not text.isprintable():
                raise ConfigError(f"{key}: at most 2000 printable characters")
            yield text
