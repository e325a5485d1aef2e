"""File names for URLs: safe on Linux, macOS and Windows, unique regardless of case, and of limited length.

The same archive gives the same names, because they depend only on the URLs and their order in the index. If two names
would be equal after a change, a hash of the URL distinguishes them. No name leads out of the folder. Pure.
"""

import hashlib
import re
import unicodedata
from urllib.parse import unquote_to_bytes

from archiver import url

START_PAGE = "index.html"  # the start page
LONGEST = 120  # bytes of a segment; file systems allow 255, some encrypting ones 143
LONGEST_PATH = 200  # bytes of the path; Windows allows 260 characters, including the folder
_DEEPEST = 20  # segments

_UNSAFE = re.compile(r'[<>:"|?*\\/\x00-\x1f\x7f]')
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")

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


class FileNames:
    """Gives each URL a unique file name."""

    def __init__(self) -> None:
        self._files = {START_PAGE}
        self._folders: set[str] = set()

    def add(self, address: str, media_type: str) -> str:
        """Return the path for *address* below the export folder, with `/` between its parts."""
        folders, name = _wanted(address, media_type)
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


def _wanted(address: str, media_type: str) -> tuple[list[str], str]:
    """Return the folders and the name for *address*, if no other file had them."""
    path, _, query = url.target(address).partition("?")
    *folders, name = [_plain(segment) for segment in path.split("/")[1:]]
    stem = name or "index"
    extension = _extension(name, media_type)
    stem = stem.removesuffix(extension) if extension and stem.lower().endswith(extension.lower()) else stem
    if query:
        stem = f"{stem}@{_plain(query)}"
    host = _segment(_plain(re.sub(r"[\[\]]", "", url.authority(address)).replace(":", "_")))
    return [host, *map(_segment, folders)], _segment(f"{_cut(stem, LONGEST - len(extension))}{extension}")


def _extension(name: str, media_type: str) -> str:
    """Return the extension of the file: its own if it fits the type."""
    found = _EXTENSION.search(name)
    own = found[0] if found else ""
    fitting = _EXTENSIONS.get(media_type, "").split()
    if own.lower() in fitting:
        return own
    if media_type in _ANY or not fitting:
        if own and own.lower() not in _PAGES:
            return own
        return fitting[0] if fitting else ".bin"
    return fitting[0]


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
