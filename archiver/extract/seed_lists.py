"""URLs in files that people have: sitemaps, feeds, bookmarks, tables, indexes, WARC files; known by content. Pure.

A list of lines is none of these; `config.seeds` reads it.

Some of these files describe their URLs: bookmarks have names in folders, feeds have titles, and tables (CSV, TSV) and
JSON have columns or keys `url`, `title`, `note` or `description`, and `collection`. These texts become lines of limited
length, and their number is limited, because the settings of a crawl hold them. What is left out is named.
"""

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from archiver.config.expressions import compiled
from archiver.config.seeds import LONGEST_ABOUT, NO_ABOUT, SeedAbout, lacks_scheme
from archiver.extract.document import Document
from archiver.extract.feed import article_titles
from archiver.extract.xml import read_xml
from archiver.http import content_coding
from archiver.humanize import count
from archiver.model import Hop
from archiver.url import canonical
from archiver.warc import cdxj
from archiver.warc.members import DamagedRecord
from archiver.warc.reader import Record, scan

HTTP = ("http://", "https://")
MOST_UNPACKED = 256 << 20  # bytes of a gzip file
MOST_DESCRIBED = 10_000  # URLs with descriptions …
MOST_TEXT = 4 << 20  # … and the bytes of these texts: crawl.toml is limited
DEEPEST_FOLDER = 20  # folders of bookmarks whose names are kept
_BASE = "http://list.invalid/"  # of relative references, which such a file should not have
_NETSCAPE = re.compile(rb"\s*+<!DOCTYPE\s++NETSCAPE-Bookmark-file", re.IGNORECASE)
_BOOKMARKS = compiled(  # each part stops at the next "<" outside of quotes: many beginnings take no more time than one
    rb"<a\s(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*?\bhref\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')"
    rb"(?=(?:(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+>([^<]*+))?+)"
    rb"|<h3\b[^<>]*+>([^<]*+)|<(/?+dl)\b|<dd\b[^<>]*+>([^<]*+)",
    re.IGNORECASE,
)
_XML = re.compile(rb"\s*+<(?:\?xml\b|(?:[\w.-]++:)?(?:urlset|sitemapindex|rss|feed|RDF)\b)", re.IGNORECASE)
_CDXJ = re.compile(rb"[^ \n]++ \d{4,17} \{")
_CDX = compiled(rb"(?: CDX(?: \w)++[ \r]*+\n|[^ \n]++ \d{14} https?://[^ \n]++ [^ \n]++ (?:\d{3}|-) )")
_RECORD_TYPES = frozenset(("response", "resource", "revisit"))
_UNWANTED = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]+")  # bidi controls too
_SITEMAP = re.compile(rb"<(?:[\w.-]++:)?(?:urlset|sitemapindex)\b", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n?|\n|\Z")
_HEADER = 4096  # characters of the first line of a table
MOST_LINES = 30  # of one row of CSV, and …
LONGEST_ROW = 100_000  # … its characters
UNREADABLE = "?"  # in place of a longer row
_NAMES = {"title": ("title", "name"), "note": ("note", "description"), "collection": ("collection",)}

Described = tuple[str, SeedAbout]


class ListedSeeds(NamedTuple):
    """The URLs in a file, as they are written there, and what kind of file it is."""

    kind: str
    urls: list[str]
    about: dict[str, SeedAbout]  # descriptions by URL
    notes: tuple[str, ...]  # what was left out or interpreted, each as the end of a message


def seeds_in(content: bytes) -> ListedSeeds | None:
    """Return the URLs in *content*, each once; None if it is a list of lines, or of no known kind."""
    if content.startswith((b"\x1f\x8b", b"WARC/")):
        if _is_warc(content):
            return _once("WARC file", _bare(_warc(content)))
        content, _ = content_coding.decoded(content, ("gzip",), MOST_UNPACKED)
    content = content.removeprefix(b"\xef\xbb\xbf")
    for kind, sign, read in _KINDS:
        if sign(content):
            faults = _Faults()
            return _once(kind, read(content, faults), faults)
    return None


@dataclass(slots=True)
class _Faults:
    """What a file has beside usable lines: the numbers of the lines, and how it was read."""

    bad: list[int] = field(default_factory=list)
    reading: list[str] = field(default_factory=list)

    def notes(self) -> Iterator[str]:
        yield from self.reading
        if self.bad:
            words = count(len(self.bad), "line without a URL", "lines without a URL")
            yield f"skipped {words}{', the first is' if len(self.bad) > 1 else ':'} line {self.bad[0]}"


def _once(kind: str, found: Iterable[Described], faults: _Faults | None = None) -> ListedSeeds:
    """Return each URL of *found* once, with the first description of each, as far as there is room for them."""
    urls: dict[str, None] = {}
    about: dict[str, SeedAbout] = {}
    left_out: set[str] = set()
    room = MOST_TEXT
    for address, texts in found:
        if not address.lower().startswith(HTTP):
            continue
        urls[address] = None
        if not texts or address in about or address in left_out:
            continue
        size = sum(len(text.encode()) for text in (texts.title, texts.note, texts.collection))
        if len(about) < MOST_DESCRIBED and size <= room:
            about[address] = texts
            room -= size
        else:
            left_out.add(address)
    notes = list(faults.notes() if faults is not None else ())
    if left_out:
        notes.append(
            f"the titles and notes of {count(len(left_out), 'URL')} are left out: of a file, those of {MOST_DESCRIBED} "
            f"URLs with {MOST_TEXT >> 20} MiB are kept"
        )
    return ListedSeeds(kind, list(urls), about, tuple(notes))


def _line(text: object, key: str) -> str:
    """Return *text* as one line of the length that *key* may have; "" if it is no text."""
    if not isinstance(text, str):
        return ""
    most = LONGEST_ABOUT[key]
    line = _UNWANTED.sub(" ", text[: 8 * most]).strip()
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _texts(title: object = "", note: object = "", collection: object = "") -> SeedAbout:
    return SeedAbout(_line(title, "title"), _line(note, "note"), _line(collection, "collection"))


def _bare(urls: Iterable[str]) -> Iterator[Described]:
    return ((address, NO_ABOUT) for address in urls)


def _is_warc(content: bytes) -> bool:
    return isinstance(next(scan(io.BytesIO(content)), None), Record)


def _warc(content: bytes) -> Iterator[str]:
    for record in scan(io.BytesIO(content)):
        if not isinstance(record, DamagedRecord) and (record.first("WARC-Type") or "").lower() in _RECORD_TYPES:
            yield (record.first("WARC-Target-URI") or "").strip("<> ")


def _xml(content: bytes, faults: _Faults) -> Iterator[Described]:
    """Yield the pages of a sitemap, the sitemaps of an index, and the articles of a feed, but no pictures."""
    found = read_xml(Document(_BASE, "application/xml", None, content, Hop.MANIFEST))
    if found.note:
        faults.reading.append(f"not all of it was read: {found.note}")
    titles = {} if _SITEMAP.search(content[:_HEADER]) else article_titles(content)
    for link in found.links:
        if link.hop in (Hop.LINK, Hop.MANIFEST):
            yield link.url, _texts(titles.get(canonical(link.url) or "", "")) if titles else NO_ABOUT


def _bookmarks(content: bytes, _faults: _Faults) -> Iterator[Described]:
    """Yield each bookmark with its name, its folders, and the description that may follow it."""
    folders = _Folders()
    last: Described | None = None  # its description may follow
    for found in _BOOKMARKS.finditer(content):
        address, folder, mark, note = found[1] or found[2], found[4], found[5], found[6]
        if last is not None and note is not None:
            last = last[0], _texts(last[1].title, last[1].note or _unescaped(note), last[1].collection)
            continue
        if last is not None:
            yield last
            last = None
        if folder is not None:
            folders.name = _line(_unescaped(folder), "collection")
        elif mark is not None:
            folders.move(inside=not mark.startswith(b"/"))
        elif address:
            last = _unescaped(address).strip(), _texts(_unescaped(found[3] or b""), "", _path(folders.names))
    if last is not None:
        yield last


@dataclass(slots=True)
class _Folders:
    """The folders around a bookmark."""

    names: list[str] = field(default_factory=list)
    name: str = ""  # of the folder that comes next
    deeper: int = 0  # folders whose names are not kept

    def move(self, *, inside: bool) -> None:
        """Go into the next folder, or out of the innermost one."""
        if inside and len(self.names) < DEEPEST_FOLDER:
            self.names.append(self.name)
        elif inside:
            self.deeper += 1
        elif self.deeper:
            self.deeper -= 1
        else:
            del self.names[-1:]
        self.name = ""


def _unescaped(text: bytes) -> str:
    return html.unescape(text.decode("utf-8", "replace"))


def _path(folders: Iterable[str]) -> str:
    return " / ".join(filter(None, folders))


def _json(content: bytes, faults: _Faults) -> Iterator[Described]:
    """Yield the objects with a URL: of a list, of JSON lines, of bookmarks of Chrome and Firefox, of a JSON feed."""
    try:
        values = [json.loads(content)]
    except RecursionError:
        return
    except ValueError:
        yield from _json_lines(content, faults)
        return
    yield from _described_objects(values)


def _json_lines(content: bytes, faults: _Faults) -> Iterator[Described]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        named = list(_described_objects([value]))
        if not any(address.lower().startswith(HTTP) for address, _ in named):
            faults.bad.append(number)
        yield from named


def _described_objects(values: list[Any]) -> Iterator[Described]:
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ()) for value in values]
    while waiting:
        value, folders = waiting.pop()
        if isinstance(value, dict):
            title, note, collection = (
                next((value[name] for name in names if isinstance(value.get(name), str)), "")
                for names in _NAMES.values()
            )
            for address in (value[key] for key in ("url", "uri") if isinstance(value.get(key), str)):
                yield address.strip(), _texts(title, note, collection or _path(folders))
            if isinstance(value.get("children"), list) and title and len(folders) < DEEPEST_FOLDER:
                folders = (*folders, _line(title, "collection"))
            waiting += reversed([(each, folders) for each in value.values() if isinstance(each, dict | list)])
        elif isinstance(value, list):
            waiting += reversed([(each, folders) for each in value])


def _delimiter(content: bytes) -> str:
    """Return what separates the columns of a table whose first line names a column `url`; "" if it is no table."""
    text = content[: 4 * _HEADER].decode("utf-8", "replace")
    line = text[: _LINE_END.search(text).start()]  # type: ignore[union-attr] # it matches at the end
    if line.startswith("#") or "://" in line or len(line) > _HEADER:
        return ""
    return next((each for each in "\t,;" if each in line and "url" in _columns(line, each)), "")


def _columns(line: str, delimiter: str) -> list[str]:
    return [name.strip().strip('"').strip().lower() for name in line.split(delimiter)]


def _table(content: bytes, faults: _Faults) -> Iterator[Described]:
    """Yield the rows of a table with a URL."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        faults.reading.append("it is not UTF-8; read as Windows-1252")
    delimiter, end = _delimiter(content), _LINE_END.search(text)
    columns = _columns(text[: end.start()] if end else "", delimiter)
    lines = list(io.StringIO(text[end.end() :] if end else "", newline=""))
    places = {key: [columns.index(name) for name in names if name in columns] for key, names in _NAMES.items()}
    place, added = columns.index("url"), 0
    for number, values in _unquoted_rows(lines) if delimiter == "\t" else _rows(lines, delimiter):
        address = values[place].strip() if place < len(values) else ""
        if not any(values):
            continue
        if address and lacks_scheme(address) and canonical(f"http://{address.lstrip('/')}"):
            address = f"http://{address.lstrip('/')}"
            added += 1
        if not address.lower().startswith(HTTP):
            faults.bad.append(number)
            continue
        yield address, _texts(*(next((values[at] for at in places[key] if at < len(values)), "") for key in _NAMES))
    if added:
        faults.reading.append(f"{count(added, 'URL')} without a scheme, taken as http://")


def _rows(lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV with their line numbers. A quote that ends no value within some lines is a letter."""
    at = 0
    while at < len(lines):
        end, quotes = at + 1, lines[at].count('"')
        while quotes % 2 and end < min(len(lines), at + MOST_LINES):
            quotes += lines[end].count('"')
            end += 1
        if sum(map(len, lines[at:end])) > LONGEST_ROW:
            end = at + 1
        rows = [[UNREADABLE]]
        if end > at + 1 or len(lines[at]) <= LONGEST_ROW:
            try:
                rows = list(csv.reader(lines[at:end], delimiter=delimiter, strict=True))
            except csv.Error:
                end = at + 1
                rows = [lines[at].strip().split(delimiter)]
        yield from ((at + 2, row) for row in rows)
        at = end


def _unquoted_rows(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of TSV with their line numbers. A quote is a letter, unless a value is whole in quotes."""
    for number, line in enumerate(lines, 2):
        values = line.rstrip("\r\n").split("\t")
        yield number, [each[1:-1].replace('""', '"') if re.fullmatch('".*"', each) else each for each in values]


def _cdxj(content: bytes, _faults: _Faults) -> Iterator[Described]:
    for line in content.splitlines():
        entry = cdxj.parse_line(line)
        if entry is not None:
            yield entry.url, NO_ABOUT


def _cdx(content: bytes, _faults: _Faults) -> Iterator[Described]:
    """Yield the original URLs of CDX lines; the third field, if there is no line that names the fields."""
    place = 2
    for line in content.splitlines():
        if line.startswith(b" CDX "):
            names = line.split()[1:]
            place = names.index(b"a") if b"a" in names else 2
            continue
        fields = line.split(b" ")
        if len(fields) > place:
            yield fields[place].decode("utf-8", "replace"), NO_ABOUT


_Kind = tuple[str, Callable[[bytes], object], Callable[[bytes, _Faults], Iterator[Described]]]
_KINDS: tuple[_Kind, ...] = (
    ("bookmarks file", _NETSCAPE.match, _bookmarks),
    ("sitemap or feed", _XML.match, _xml),
    ("JSON file", lambda content: content.lstrip()[:1] in {b"{", b"["}, _json),
    ("CDXJ index", _CDXJ.match, _cdxj),
    ("CDX index", _CDX.match, _cdx),
    ("table", _delimiter, _table),
)
