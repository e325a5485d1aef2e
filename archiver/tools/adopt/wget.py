"""Reads a folder of WARC files of wget or wget-AT, and command lines of wget and wpull, which has the same options.

wget keeps its queue in memory, so nothing of it is left. The links of the imported pages are read again instead. Both
programs write their command line into the warcinfo record: `wget-arguments` as shell words, `wpull-argv` as JSON.
Source: the manual and src/warc.c of wget; wpull/application/tasks/warc.py and options.py.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from archiver import url
from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedUrl
from archiver.storage import storage
from archiver.tools.adopt.source import AdoptedCrawl, SettingsTranslation, archives_in, read_text, whole_number
from archiver.tools.ingest.streams import MAGICS, ZstdStream
from archiver.warc.cdxj import target_url
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, read_records, scan
from archiver.warc.warcinfo import warcinfo_of

GRAB_SITE = "wpull_hooks.py"  # the plugin by which grab-site controls wpull
LOOK = 50  # records of a file in which its warcinfo and its first response are
ENDINGS = (".warc", ".warc.gz", ".warc.zst")
MOST_WORDS = 10_000  # of a command line

_NUMBERS = {  # option with a number: key of crawl.toml
    "--level": "max-depth",
    "--tries": "retries",
    "--max-redirect": "max-redirects",
    "--page-requisites-level": "requisite-hops",
    "--concurrent": "host-concurrency",
}
_SECONDS = {"--timeout": "timeout", "--dns-timeout": "dns-timeout", "--connect-timeout": "connect-timeout"}
_SECONDS["--read-timeout"] = "timeout"
_SIZES = {"--quota": "max-bytes", "--limit-rate": "bandwidth", "--warc-max-size": "warc-size"}
_TEXTS = {"--user-agent": "user-agent", "--reject-regex": "exclude", "--bind-address": "source-address"}
_SHORT = {
    "-l": "--level",
    "-t": "--tries",
    "-T": "--timeout",
    "-Q": "--quota",
    "-U": "--user-agent",
    "-w": "--wait",
    "-D": "--domains",
    "-R": "--reject",
    "-A": "--accept",
    "-X": "--exclude-directories",
    "-I": "--include-directories",
    "-i": "--input-file",
    "-e": "--execute",
    "-o": "--output-file",
    "-O": "--output-document",
    "-P": "--directory-prefix",
    "-a": "--append-output",
    "-B": "--base",
}
_TAKE_A_VALUE = frozenset(  # with the value in the next word
    (
        *_NUMBERS,
        *_SECONDS,
        *_SIZES,
        *_TEXTS,
        *_SHORT.values(),
        *("--warc-file", "--warc-header", "--warc-cdx-file", "--warc-dedup", "--warc-tempdir", "--header", "--referer"),
        *("--accept-regex", "--regex-type", "--waitretry", "--read-timeout", "--load-cookies", "--save-cookies"),
        *("--database", "--database-uri", "--plugin-script", "--plugin-args", "--html-parser", "--concurrent"),
        *("--span-hosts-allow", "--page-requisites-level", "--session-timeout", "--warc-move", "--hostnames"),
        *("--exclude-domains", "--exclude-hostnames", "--follow-tags", "--ignore-tags", "--link-extractors"),
        *("--lua-script", "--rejected-log", "--local-encoding", "--remote-encoding", "--restrict-file-names"),
    )
)
_QUIET = frozenset(  # of the same use here, or of none
    (
        *("--mirror", "--recursive", "--page-requisites", "--no-parent", "--span-hosts", "--no-check-certificate"),
        *("--quiet", "--no-verbose", "--verbose", "--debug", "--server-response", "--progress", "--show-progress"),
        *("--warc-file", "--warc-cdx", "--warc-tempdir", "--warc-header", "--no-warc-compression", "--no-warc-digests"),
        *("--no-warc-keep-log", "--warc-append", "--warc-move", "--output-file", "--append-output", "--delete-after"),
        *("--output-document", "--directory-prefix", "--force-directories", "--no-directories", "--truncate-output"),
        *("--timestamping", "--continue", "--no-clobber", "--convert-links", "--adjust-extension", "--rejected-log"),
        *("--random-wait", "--waitretry", "--no-hsts", "--no-netrc", "--save-cookies", "--keep-session-cookies"),
        *("--database", "--debug-manhole", "--html-parser", "--sitemaps", "--strip-session-id"),
        *("--escaped-fragment", "--concurrent", "--session-timeout", "--no-host-directories"),
    )
)
_LETTERS = {
    "m": "--mirror",
    "r": "--recursive",
    "p": "--page-requisites",
    "q": "--quiet",
    "v": "--verbose",
    "x": "--force-directories",
    "k": "--convert-links",
    "E": "--adjust-extension",
    "N": "--timestamping",
    "c": "--continue",
    "S": "--server-response",
    "H": "--span-hosts",
    "L": "--relative",
    "4": "--inet4-only",
    "6": "--inet6-only",
    "d": "--debug",
}
_WORDS = {
    "nv": "--no-verbose",
    "np": "--no-parent",
    "nc": "--no-clobber",
    "nd": "--no-directories",
    "nH": "--no-host-directories",
}
_PASSWORDS = "secrets are not taken over; see docs/how-to/archive-behind-a-login.md"
_SECRETS = {
    **dict.fromkeys(("--user", "--password", "--http-user", "--http-password", "--post-data"), _PASSWORDS),
    "--load-cookies": "to send them: archiver resume DIR --load-cookies FILE",
}
_SIZE = re.compile(r"([0-9]{1,12})(?:\.[0-9]+)?([kKmMgG]?)")
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class WrittenBy(NamedTuple):
    """What a WARC file says of the program that wrote it."""

    wget: tuple[str, ...]  # the command line; empty: not of this program
    wpull: tuple[str, ...]
    first: str  # URL of its first response


def written_by(path: Path) -> WrittenBy:
    """Return what the WARC at *path* says of its program."""
    said: dict[str, str] = {}
    first = ""
    with storage(path), path.open("rb") as file:
        for record in islice(_records(file), LOOK):
            if record.type == "warcinfo" and not said and (info := warcinfo_of(record)) is not None:
                said = {name.lower(): value for name, value in info.fields}
            elif record.type == "response" and not first:
                address = url.canonical(target_url(record))
                first = address if address and url.path(address) != "/robots.txt" else ""
    return WrittenBy(_words(said.get("wget-arguments", "")), _listed(said.get("wpull-argv", "")), first)


def _records(file: BinaryIO) -> Iterator[Record]:
    """Yield the records of *file*, which zstd may have compressed, as that of wget-AT."""
    packed = file.read(len(MAGICS[0])) in MAGICS
    file.seek(0)
    with suppress(DamagedRecord):
        found = read_records(cast("BinaryIO", ZstdStream(file))) if packed else scan(file)
        yield from (each for each in found if isinstance(each, Record))


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text)[:MOST_WORDS])
    except ValueError:
        return tuple(text.split()[:MOST_WORDS])


def _listed(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, found[:MOST_WORDS])) if isinstance(found, list) else ()


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option by its long name with its value, and each URL with "" as its name."""
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            yield "", word
        elif word.startswith("--"):
            if not equals and name in _TAKE_A_VALUE and rest:
                value = rest.pop()
            yield name, value
        elif word[1:] in _WORDS:
            yield _WORDS[word[1:]], ""
        else:
            yield from _short(word[1:], rest)


def _short(letters: str, rest: list[str]) -> Iterator[tuple[str, str]]:
    while letters:
        name = _SHORT.get(f"-{letters[0]}")
        if name is not None:
            yield name, letters[1:] or (rest.pop() if rest else "")
            return
        yield _LETTERS.get(letters[0], f"-{letters[0]}"), ""
        letters = letters[1:]


def translate(words: Sequence[str], settings: SettingsTranslation) -> list[str]:
    """Translate the command line *words* into *settings*; return its URLs, as they are written."""
    given = list(_options(words))
    names = {name for name, _ in given}
    for name, value in given:
        if name and name != "--input-file":
            _option(name, value, settings)
    if not names & {"--mirror", "--recursive"}:
        settings.put("scope", "page", "no --recursive")
        if "--page-requisites" not in names:
            settings.put("page-requisites", value=False, theirs="no --page-requisites")
    elif "--no-parent" in names:
        settings.put("scope", "prefix", "--no-parent")
    elif "--span-hosts" in names and not names & {"--domains", "--hostnames"}:
        settings.put("scope", "any", "--span-hosts")
    if "--recursive" in names and not names & {"--level", "--mirror"}:
        settings.put("max-depth", 5, "--recursive")  # its default
    urls = [value for name, value in given if not name]
    return [word for word in urls if "://" in word] or [f"http://{word}" for word in urls]


def input_files(words: Sequence[str]) -> list[str]:
    """Return the names of the files with URLs that the command line *words* names."""
    return [Path(value).name for name, value in _options(words) if name == "--input-file"]


def _option(name: str, value: str, settings: SettingsTranslation) -> None:
    """Translate one option."""
    shown = f"{name} {value}".strip()
    if key := _NUMBERS.get(name) or _SECONDS.get(name):
        number = whole_number(value)
        if name != "--level" or value not in ("inf", "0"):
            settings.put(key, value if number is None else number, shown)
    elif key := _SIZES.get(name):
        found = _SIZE.fullmatch(value)
        settings.put(key, int(found[1]) * _FACTORS[found[2].lower()] if found else value, shown)
    elif key := _TEXTS.get(name):
        settings.put(key, value, shown)
    elif name in ("--domains", "--hostnames"):
        for domain in filter(None, value.split(",")):
            settings.put("scope-surt", domain, shown)
    elif name == "--reject":
        _rejected(value, settings, shown)
    elif name in _SECRETS:
        settings.note(name, _SECRETS[name])
    elif not _single(name, value, shown, settings) and name not in _QUIET:
        settings.note(shown, "no counterpart is set; see docs/how-to/from-wget.md")


def _single(name: str, value: str, shown: str, settings: SettingsTranslation) -> bool:
    """Translate an option in a way of its own; return False if it has none."""
    if name == "--wait":
        settings.put("rate", f"1/{value}", shown)
    elif (name == "--execute" and value.replace(" ", "") in ("robots=off", "robots=0")) or name == "--no-robots":
        settings.put("robots", "ignore", shown)
    elif name == "--header":
        _header(value, settings)
    elif name == "--no-cookies":
        settings.put("cookies", "off", shown)
    elif name == "--span-hosts-allow":
        settings.put("extra-hops", int("linked-pages" in value), shown)
    elif name in ("--inet4-only", "--inet6-only"):
        settings.put("ip-version", name[6], shown)
    else:
        return name == "--plugin-script" and value.endswith(GRAB_SITE)  # whose rules are in its control files
    return True


def _header(value: str, settings: SettingsTranslation) -> None:
    name, _, text = value.partition(":")
    if name.strip().lower() in ("accept", "accept-language"):
        settings.put(name.strip().lower(), text.strip(), f"--header {value}")
    else:
        settings.note(f"--header {name}", "it may be secret; give it again: archiver resume DIR --header 'NAME: VALUE'")


def _rejected(value: str, settings: SettingsTranslation, shown: str) -> None:
    for part in filter(None, value.split(",")):
        ending = part.removeprefix("*").removeprefix(".")
        if ending.isalnum():
            settings.put("exclude-ext", ending, shown)
        else:
            settings.note(f"--reject {part}", "a pattern of file names; see docs/how-to/from-wget.md")


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
