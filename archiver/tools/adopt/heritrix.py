"""Reads Heritrix's recovery log, its seeds and what its configuration says in plain properties.

The log is written line by line while Heritrix crawls, so it ends wherever Heritrix did: a cut gzip member is read as
far as it goes. A checkpoint begins a new file; the older ones have its name behind theirs. The lines: `F+ URL path via`
(added), `Fs` (fetched), `Ff` (failed); `Fe`, `Fr`, `Fd` and `Fi` change nothing here. Heritrix 1.0 wrote via first.

Source: FrontierJournal and CrawlerJournal of Heritrix 3; RecoveryJournal of Heritrix 1.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedState, AdoptedUrl, shortened
from archiver.model import Hop
from archiver.storage import storage
from archiver.tools.adopt.beans import crawler_beans, defaults
from archiver.tools.adopt.source import AdoptedCrawl, SettingsTranslation, archives_in, open_source, read_text

LOGS = ("frontier.recover.gz", "frontier.recover", "recover.gz", "recover")
BEANS = "crawler-beans.cxml"
GZIP = b"\x1f\x8b"
CHUNK = 64 << 10  # bytes
LONGEST_LINE = 256 << 10  # bytes: a URL, its path and the URL that led to it
SHOWN = 200  # characters of a URL in a message
PLENTY = 64 << 20  # bytes; a log that unpacks to more …
MOST_TIMES = 400  # … may not unpack to more than so many times its size
LINE = re.compile(rb"F[+esrfdi] ")

_STATES = {"F+": AdoptedState.WAITING, "Fs": AdoptedState.FETCHED, "Ff": AdoptedState.FAILED}
_PATH = re.compile(r"(?:([0-9]{1,9})\+)?([A-Za-z]{0,1000})")
_LETTERS = {letter: letter for letter in Hop} | {"I": Hop.SPECULATIVE, "S": Hop.LINK}
_NO_PAGE = ("dns:", "whois:")  # look-ups that Heritrix makes for itself


def is_recovery_log(begin: bytes) -> bool:
    """Return True if a file that begins with *begin* is a recovery log, packed or not."""
    if begin.startswith(GZIP):
        try:
            begin = zlib.decompressobj(31).decompress(begin, CHUNK)
        except zlib.error:
            return False
    lines = [line for line in begin.split(b"\n")[:20] if line.strip() and not line.startswith(b"T ")]
    return bool(lines) and LINE.match(lines[0]) is not None


def journal(folder: Path) -> list[Path]:
    """Return the recovery logs in *folder*, its logs/ or the newest of its launches, the oldest first."""
    launches = sorted((path for path in folder.iterdir() if path.is_dir() and path.name[:4].isdigit()), reverse=True)
    latest = folder / "latest"
    for place in (folder, folder / "logs", latest / "logs", *(launch / "logs" for launch in launches)):
        for name in LOGS:
            if (place / name).is_file():
                older = [path for path in place.glob(f"{name}.*") if path.is_file()]
                return [*sorted(older), place / name]
    return []


class RecoveryLog:
    """The recovery logs of one crawl."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield the URLs of all lines that say something of their state, in order."""
        for path in self._paths:
            for line in _lines(path):
                if (found := _parsed(line)) is not None:
                    yield found

    def seeds(self) -> Iterator[str]:
        """Yield the URLs that were added without a path."""
        return (each.url for each in self.urls() if each.state is AdoptedState.WAITING and not each.path)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of the file at *path*: the beginning of one that is too long, and no last one that is cut."""
    rest = b""
    skipping = False
    for piece in _pieces(path):
        rest += piece
        *whole, rest = rest.split(b"\n")
        for line in whole:
            if not skipping:
                yield line[: LONGEST_LINE + 1]
            skipping = False
        if len(rest) > LONGEST_LINE:
            if not skipping:
                yield rest[: LONGEST_LINE + 1]
            rest, skipping = b"", True


def _pieces(path: Path) -> Iterator[bytes]:
    with storage(path), open_source(path) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        if not packed:
            while piece := file.read(CHUNK):
                yield piece
            return
        unpacker = zlib.decompressobj(31)
        read = made = 0
        while data := file.read(CHUNK):
            read += len(data)
            while data:
                try:
                    piece = unpacker.decompress(data, CHUNK)
                except zlib.error:
                    return  # as Heritrix left it, or damaged: what is before is used
                made += len(piece)
                if made > max(PLENTY, MOST_TIMES * read):
                    raise ConfigError(f"{path}: a gzip bomb: {read} bytes unpack to {made}")
                yield piece
                data = unpacker.unconsumed_tail
                if unpacker.eof:
                    data, unpacker = unpacker.unused_data, zlib.decompressobj(31)


def _parsed(line: bytes) -> AdoptedUrl | None:
    """Return what *line* says of a URL; None if that is nothing."""
    word, _, rest = line.decode("utf-8", "replace").rstrip("\r").partition(" ")
    state = _STATES.get(word)
    address, _, rest = rest.partition(" ")
    if state is None or not address or address.startswith(_NO_PAGE):
        return None
    if len(line) > LONGEST_LINE:
        return AdoptedUrl(f"(too long) {address[:SHOWN]}", state)  # named as one that cannot be used
    first, _, second = rest.partition(" ")
    written, via = (first, second) if ":" not in first else (second, first)
    path = _hops(written)
    if path.rstrip(Hop.REDIRECT).endswith(Hop.PREREQUISITE):
        return None  # robots.txt and its redirects, which we ask for ourselves
    note = "Heritrix gave up" if state is AdoptedState.FAILED else ""
    return AdoptedUrl(address, state, path, via.strip(), note=note)


def _hops(written: str) -> str:
    """Return the hop path that Heritrix has *written*, in our letters; that of a link if it cannot be read."""
    found = _PATH.fullmatch(written.strip())
    if found is None:
        return Hop.LINK.value
    letters = "".join(_LETTERS.get(letter, Hop.LINK) for letter in found[2].upper())
    return f"{found[1]}+{letters}" if found[1] and letters else shortened(letters)


def heritrix_crawl(path: Path) -> AdoptedCrawl:
    """Return the crawl whose recovery log is at *path*, or in the job folder *path*."""
    folder = path if path.is_dir() else path.parent
    logs = journal(path) if path.is_dir() else [path]
    if not logs:
        raise ConfigError(
            f"{path}: it has no {LOGS[0]} in it, in logs/ or in a launch; Heritrix writes one unless its "
            "frontier.recoveryLogEnabled is false"
        )
    log = RecoveryLog(logs)
    settings = SettingsTranslation()
    home = logs[-1].parent.parent if logs[-1].parent.name == "logs" else logs[-1].parent
    places = list(dict.fromkeys((folder, home, home.parent)))
    for place in places:
        for line in read_text(place / "seeds.txt").splitlines():
            if (words := line.split()) and words[0].startswith(("http:", "https:")):
                settings.seed(words[0])
    more = sum(not settings.seed(seed) for seed in log.seeds())
    defaults(settings)
    beans = next((place / BEANS for place in places if (place / BEANS).is_file()), None)
    if beans is None:
        settings.note(BEANS, "not found beside the log; the rate is that of its profile, all else the default")
    else:
        crawler_beans(beans, settings)
    found: list[Path] = []
    for place in (home / "warcs", home / "arcs", home):
        if place.is_dir():
            found += archives_in(place, (".warc", ".warc.gz", ".warc.gz.open", ".arc", ".arc.gz"))
    remarks = [f"{more} of its seeds are no seeds here, because they are no http URLs or too many"] if more else []
    if open_files := [each for each in found if each.name.endswith(".open")]:
        remarks.append(f"{len(open_files)} of its archives were not finished; they are read as far as they are whole")
    return AdoptedCrawl("Heritrix", settings.settings(), tuple(dict.fromkeys(found)), log.urls, tuple(remarks))
