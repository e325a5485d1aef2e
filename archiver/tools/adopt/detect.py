"""Tells which program left a crawl behind, by what is in its files and folders."""

from collections.abc import Callable
from pathlib import Path

from archiver.errors import ConfigError
from archiver.tools.adopt.browsertrix import browsertrix_crawl, has_pages, is_saved_state, saved_state
from archiver.tools.adopt.heritrix import BEANS, heritrix_crawl, is_recovery_log, journal
from archiver.tools.adopt.httrack import CACHE, httrack_crawl
from archiver.tools.adopt.source import AdoptedCrawl, archives_in
from archiver.tools.adopt.wget import ENDINGS, is_of_wget, wget_crawl
from archiver.tools.adopt.wpull import NAME, SQLITE, wpull_crawl

MOST_LOOKED_AT = 3  # WARC files
MAGIC = 4096  # bytes of a file that are enough to recognize it

READERS: dict[str, Callable[[Path], AdoptedCrawl]] = {
    "wpull": wpull_crawl,
    "heritrix": heritrix_crawl,
    "browsertrix": browsertrix_crawl,
    "wget": wget_crawl,
    "httrack": httrack_crawl,
}


def adopted_crawl(path: Path, kind: str = "") -> AdoptedCrawl:
    """Return the crawl at *path*, of the program *kind*, or of the one that its content shows."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file or directory")
    if not (path.is_file() or path.is_dir()):  # a named pipe would keep us waiting
        raise ConfigError(f"{path} is neither a regular file nor a directory")
    kind = kind or kind_of(path)
    if not kind:
        raise ConfigError(
            f"{path}: not recognized as a crawl of another program; name its folder, or its program with --kind "
            f"({', '.join(READERS)}); WARC files alone can be imported: archiver import"
        )
    return READERS[kind](path)


def kind_of(path: Path) -> str:
    """Return the program of the crawl at *path*; "" if nothing shows it."""
    return _of_folder(path) if path.is_dir() else _of_file(path)


def _of_folder(folder: Path) -> str:
    if (folder / NAME).is_file():
        return "wpull"
    if (folder / BEANS).is_file() or journal(folder):
        return "heritrix"
    if folder.name == CACHE or (folder / CACHE).is_dir():
        return "httrack"
    state = saved_state(folder)
    if has_pages(folder) or (state is not None and _of_file(state) == "browsertrix"):
        return "browsertrix"
    return "wget" if any(map(is_of_wget, archives_in(folder, ENDINGS, deepest=3)[:MOST_LOOKED_AT])) else ""


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        begin = file.read(MAGIC)
    if begin.startswith(SQLITE):
        return "wpull"
    if is_recovery_log(begin):
        return "heritrix"
    if path.suffix in (".yaml", ".yml") and is_saved_state(begin):
        return "browsertrix"
    return "wget" if path.name.lower().endswith(ENDINGS) and is_of_wget(path) else ""
