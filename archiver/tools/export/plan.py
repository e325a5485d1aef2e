"""The plan of an export: the capture for each URL, the name of its file, and redirects.

Of the captures of one URL with a 2xx response, the newest is chosen, or the one closest to a date. If there is none, a
redirect (3xx) leads on. Memory grows with the number of URLs, by some 600 bytes each, not with their content.

File names are safe on Linux, macOS and Windows, unique regardless of case, and of limited length. They depend only on
the URLs and their order in the index. If two names would be equal, a hash of the URL distinguishes them.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from sys import intern
from urllib.parse import unquote_to_bytes

from archiver import url
from archiver.collection.dates import DateRange
from archiver.collection.lookup import Closest, Holdings
from archiver.collection.payload import read_answer
from archiver.config.expressions import compiled
from archiver.errors import ArchiveError
from archiver.extract import Document, is_page
from archiver.extract.document import SNIFFED
from archiver.http import beginning
from archiver.warc.cdxj import IndexEntry, is_plain, is_revisit
from archiver.warc.members import DamagedRecord

START_PAGE = "index.html"  # the start page
DATA = "index-pages.js"  # the list of pages for its filter
MOST_PARTS = 1000  # files of the list
LONGEST = 120  # bytes of a segment; file systems allow 255, some encrypting ones 143
LONGEST_PATH = 200  # bytes of the path; Windows allows 260 characters, including the folder
_DEEPEST = 20  # segments

_UNSAFE = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f]')
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")
_FILE_NAME = compiled(r"filename\*?+\s*+=\s*+(?:\"([^\"]++)\"|([^\s;\"]++))", re.IGNORECASE)

# The extensions by which browsers know a type; the first is given where there is none of them.
_EXTENSIONS = {
    "text/html": ".html .htm",
    "application/xhtml+xml": ".xhtml .xht",
    "text/css": ".css",
    "text/javascript": ".js .mjs",
    "application/javascript": ".js .mjs",
    "application/x-javascript": ".js .mjs",
    "application/json": ".json .map .webmanifest",
    "application/manifest+json": ".webmanifest .json",
    "application/pdf": ".pdf",
    "application/wasm": ".wasm",
    "application/xml": ".xml .rss .atom .rdf .xsl .xslt .xsd .kml .gpx",
    "text/xml": ".xml .rss .atom .rdf .xsl .xslt .xsd .kml .gpx",
    "application/rss+xml": ".xml .rss",
    "application/atom+xml": ".xml .atom",
    "image/svg+xml": ".svg",
    "image/png": ".png",
    "image/jpeg": ".jpg .jpeg .jpe .jfif",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/avif": ".avif",
    "image/bmp": ".bmp",
    "image/x-icon": ".ico",
    "image/vnd.microsoft.icon": ".ico",
    "video/mp4": ".mp4 .m4v",
    "video/webm": ".webm",
    "video/ogg": ".ogv",
    "audio/mpeg": ".mp3",
    "audio/mp4": ".m4a .mp4",
    "audio/ogg": ".ogg .oga .opus",
    "audio/wav": ".wav",
    "font/woff": ".woff",
    "font/woff2": ".woff2",
    "font/ttf": ".ttf",
    "font/otf": ".otf",
    "application/font-woff": ".woff",
    "text/plain": ".txt",
}
_ANY = frozenset(("text/plain", "application/octet-stream", "binary/octet-stream", ""))  # used for anything
_PAGES = frozenset((".html", ".htm", ".xhtml", ".xht", ".svg", ".xml", ".shtml", ".mht", ".mhtml"))  # opened as markup


_EMPTY = frozenset(("204", "205"))
_MAX_PROBLEMS = 1000  # problems kept for the report


def part_name(number: int) -> str:
    """Return the name of a part of the list of pages; the first is the start page."""
    return START_PAGE if number == 1 else f"index-{number}.html"


class FileNames:
    """Gives each URL a unique file name."""

    def __init__(self) -> None:
        self._files = {START_PAGE, DATA, *map(part_name, range(2, MOST_PARTS + 1))}
        self._folders: set[str] = set()

    def add(self, address: str, media_type: str, disposition: str = "") -> str:
        """Return the path for *address* below the export folder, with `/` between its parts.

        *disposition*: its Content-Disposition, for the extension if the type has none.
        """
        folders, name = _wanted(address, media_type, disposition)
        stem, extension = _split(name)
        if len("/".join((*folders, name)).encode()) > LONGEST_PATH or len(folders) > _DEEPEST:
            folders, stem = [folders[0], "~"], f"{_cut(stem, 40)}~{_sum(address)}"
            name = stem + extension
        place = self._folder(folders)
        if _folded(f"{place}{name}") in self._files or _folded(f"{place}{name}") in self._folders:
            stem = f"{_cut(stem, LONGEST - 40)}~{_sum(address)}"
            name = stem + extension
        number = 1
        while _folded(f"{place}{name}") in self._files or _folded(f"{place}{name}") in self._folders:
            number += 1
            name = f"{stem}~{number}{extension}"
        self._files.add(_folded(f"{place}{name}"))
        return f"{place}{name}"

    def _folder(self, segments: list[str]) -> str:
        """Return the path of a folder, ending in a slash, that is not the name of a file."""
        path = ""
        for segment in segments:
            path += segment
            while _folded(path) in self._files:
                path += "~"
            self._folders.add(_folded(path))
            path += "/"
        return path


def _wanted(address: str, media_type: str, disposition: str) -> tuple[list[str], str]:
    """Return the folders and the name for *address*, if no other file had them."""
    path, _, query = url.target(address).partition("?")
    *folders, name = [_plain(segment) for segment in path.split("/")[1:]]
    stem = name or "index"
    extension = _extension(name, media_type, disposition)
    stem = stem.removesuffix(extension) if extension and stem.lower().endswith(extension.lower()) else stem
    if query:
        stem = f"{stem}@{_plain(query)}"
    host = _segment(_plain(re.sub(r"[\[\]]", "", url.authority(address)).replace(":", "_")))
    return [host, *map(_segment, folders)], _segment(f"{_cut(stem, LONGEST - len(extension))}{extension}")


def _extension(name: str, media_type: str, disposition: str) -> str:
    """Return the extension of the file: its own if it fits the type, else that of the type or of *disposition*."""
    found = _EXTENSION.search(name)
    own = found[0] if found else ""
    fitting = _EXTENSIONS.get(media_type, "").split()
    if own.lower() in fitting:
        return own
    if media_type in _ANY or not fitting:
        if own and own.lower() not in _PAGES:
            return own
        return fitting[0] if fitting else _named_extension(disposition)
    return fitting[0]


def _named_extension(disposition: str) -> str:
    """Return the extension of the file name in *disposition*; ".bin" if it has none, or one of a page."""
    for named in _FILE_NAME.finditer(disposition):
        found = _EXTENSION.search(named[1] or named[2])
        if found and found[0].lower() not in _PAGES:
            return found[0]
    return ".bin"


def _plain(segment: str) -> str:
    """Return a part of a URL as text without percent-escapes or special characters of file systems."""
    text = unquote_to_bytes(segment).decode("utf-8", "replace") if "%" in segment else segment
    text = unicodedata.normalize("NFC", _UNSAFE.sub("_", text))
    return "".join(char if char.isprintable() else "_" for char in text)


def _segment(text: str) -> str:
    """Return *text* as a valid name of a file or folder."""
    text = _cut(text, LONGEST)
    bare = text.rstrip(". ")
    text = (bare + "_" * (len(text) - len(bare))) or "_"
    return f"_{text}" if _RESERVED.fullmatch(text) else text


def _split(name: str) -> tuple[str, str]:
    found = _EXTENSION.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


def _cut(text: str, most: int) -> str:
    """Return *text* cut to *most* bytes; if cut, it ends in a hash of all of it."""
    data = text.encode()
    if len(data) <= most:
        return text
    return f"{data[: most - 9].decode('utf-8', 'ignore')}~{_sum(text)}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _folded(path: str) -> str:
    """Return the form in which two names are equal on some file system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A capture that becomes a file."""

    url: str
    path: str  # below the folder, with `/` between its parts
    warc: str
    offset: int
    timestamp: str
    page: bool


@dataclass
class _UnreadFile:
    """A WARC file of which records cannot be read."""

    first: str  # URL …
    error: str  # … and what it met
    urls: int = 1

    @property
    def words(self) -> str:
        """Which URLs are not exported, and why."""
        if self.urls == 1:
            return f"{self.first}: {self.error}"
        return f"{self.error}; {self.urls} URLs of this file are not exported, such as {self.first}"


@dataclass
class ExportPlan:
    """All files to write."""

    files: list[PlannedFile] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # what could not be exported, and why
    _unread: dict[str, _UnreadFile] = field(default_factory=dict)  # by name

    def add_problem(self, text: str) -> None:
        """Add a problem."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(text)

    def add_unread(self, address: str, warc: str, error: Exception) -> None:
        """Add that the record of *address* cannot be read in the file *warc*; each file is reported once."""
        known = self._unread.get(warc)
        if known is not None:
            known.urls += 1
        elif len(self._unread) < _MAX_PROBLEMS:
            self._unread[warc] = _UnreadFile(address, str(error))

    def name_unread(self) -> None:
        """Put the files that could not be read first among the problems."""
        self.problems[:0] = [each.words for each in self._unread.values()]
        self._unread.clear()


def plan_export(holdings: Holdings, hosts: Iterable[str], at: DateRange | None) -> ExportPlan:
    """Return the plan for all of *holdings*, or for *hosts* only."""
    names, plan, seen = FileNames(), ExportPlan(), set[str]()
    chosen = [holdings.of_host(host) for host in sorted({host.lower() for host in hosts})] or [holdings.entries()]
    for entries in chosen:
        for _, group in groupby(entries, lambda entry: entry.key):
            for address, entry in _best(holdings, group, at):
                if address in seen:
                    continue
                seen.add(address)
                try:
                    _add(holdings, address, entry, names, plan)
                except (ArchiveError, DamagedRecord) as error:
                    plan.add_unread(address, entry.filename, error)
    return plan


def _best(holdings: Holdings, group: Iterable[IndexEntry], at: DateRange | None) -> Iterator[tuple[str, IndexEntry]]:
    """Yield each URL of one key with its capture. Captures with their own payload come before revisits without it."""
    pages: dict[str, Closest] = defaultdict(partial(holdings.closest_of, at=at))
    own: dict[str, Closest] = defaultdict(partial(holdings.closest_of, at=at))
    redirects: dict[str, Closest] = defaultdict(partial(holdings.closest_of, at=at))
    for entry in group:
        address = url.canonical(entry.url) if is_plain(entry) else None
        if address is None:
            continue
        if _has_payload(holdings, entry):
            pages[address].add(entry)
            if not is_revisit(entry):
                own[address].add(entry)
        elif entry.status[:1] == "3" and not is_revisit(entry):
            redirects[address].add(entry)
    for address, found in (redirects | pages).items():
        best = found.best()
        if best is not None and is_revisit(best) and address in own and _original(holdings, best) is None:
            best = own[address].best()
        if best is not None:
            yield address, best


def _original(holdings: Holdings, entry: IndexEntry) -> IndexEntry | None:
    try:
        return holdings.original(entry)
    except (ArchiveError, DamagedRecord):
        return None


def _has_payload(holdings: Holdings, entry: IndexEntry) -> bool:
    if is_revisit(entry):
        return entry.status in ("304", "-", "") or entry.status[:1] == "2"
    if entry.status == "-":
        try:
            with holdings.record(entry) as record:
                return record.type == "resource"
        except (ArchiveError, DamagedRecord):
            return False
    return entry.status[:1] == "2" and entry.status not in _EMPTY


def _add(holdings: Holdings, address: str, entry: IndexEntry, names: FileNames, plan: ExportPlan) -> None:
    if entry.status[:1] == "3" and not is_revisit(entry):
        target = holdings.location(entry)
        if target is not None and target != address:
            plan.redirects[address] = target
        return
    original = holdings.original(entry)
    if original is None:
        plan.add_problem(f"{address}: its payload is in another collection; this one has only a revisit")
        return
    if is_revisit(entry) and original.status[:1] not in ("2", "-"):
        return
    media_type, page, disposition = _type(holdings, original)
    path = names.add(address, media_type, disposition)
    plan.files.append(PlannedFile(address, path, intern(original.filename), original.offset, entry.timestamp, page))


def _type(holdings: Holdings, entry: IndexEntry) -> tuple[str, bool, str]:
    """Return the media type of the payload of *entry*, whether it is a page, and its Content-Disposition if needed."""
    known = entry.mime not in _ANY and entry.mime != "unk"
    if known and (entry.mime in _EXTENSIONS or _EXTENSION.search(entry.url.partition("?")[0])):
        return entry.mime, entry.mime in ("text/html", "application/xhtml+xml"), ""
    with holdings.record(entry) as record:
        answer = read_answer(record)
        disposition = answer.framing.first("content-disposition") or ""
        if known:
            return entry.mime, False, disposition
        begin = beginning(iter(answer.decoded()), SNIFFED)
    media_type = "" if entry.mime == "unk" else entry.mime
    page = is_page(Document(entry.url, media_type, None, begin))
    return ("text/html" if page else media_type), page, disposition
