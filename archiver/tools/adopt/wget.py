"""Reads a folder of WARC files of wget or wget-AT: its command line, which the warcinfo record holds.

wget keeps its queue in memory, so nothing of it is left. The links of the imported pages are read again instead.
Source: src/warc.c of wget (`wget-arguments`, `robots`).
"""

from collections.abc import Iterator
from pathlib import Path

from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedUrl
from archiver.tools.adopt.options import input_files, translate, written_by
from archiver.tools.adopt.source import AdoptedCrawl, SettingsTranslation, archives_in, read_text

ENDINGS = (".warc", ".warc.gz", ".warc.zst")


def wget_crawl(path: Path) -> AdoptedCrawl:
    """Return the crawl of wget whose WARC files are in the folder *path*, or whose WARC file it is."""
    files = archives_in(path, ENDINGS, deepest=3) if path.is_dir() else [path]
    if not files:
        raise ConfigError(f"{path}: it has no WARC file; wget writes one with --warc-file")
    said = [written_by(file) for file in files]
    words = next((each.wget for each in said if each.wget), ())
    first = next((each.first for each in said if each.first), "")
    settings = SettingsTranslation()
    for seed in translate(words, settings) if words else ():
        settings.seed(seed)
    for name in input_files(words):
        lines = read_text((path if path.is_dir() else path.parent) / name).split()
        if not sum(settings.seed(line) for line in lines):
            settings.note(f"--input-file {name}", "not found beside the archives; archiver add DIR --seeds FILE")
    if not words:
        settings.note("command line of wget", "no WARC file holds it, so the settings here are the defaults")
    result = settings.settings()
    if not result.seeds and first:
        settings.seed(first)
        settings.note("URLs of wget", f"the first URL of its archives is the seed: {first}")
        result = settings.settings()
    return AdoptedCrawl(
        "wget", result, tuple(files), _no_urls, ("wget left no queue: links are read from its archives",)
    )


def is_of_wget(path: Path) -> bool:
    """Return True if the WARC at *path* says that wget wrote it."""
    return bool(written_by(path).wget)


def _no_urls() -> Iterator[AdoptedUrl]:
    return iter(())
