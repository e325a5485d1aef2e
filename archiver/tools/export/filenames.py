"""The name of the file for each URL: safe on Linux, macOS and Windows, unique in any case, of bounded length.

The same archive gives the same names: they depend on the URLs and on their order, which is that of the index. What had
to be changed so that two would be one is told apart by a sum of the URL. No name leads out of the folder. Pure.
"""

import hashlib
import re
import unicodedata
from urllib.parse import unquote_to_bytes

from archiver import url

FRONT = "index.html"  # the page that leads to the others
LONGEST = 120  # bytes of a segment; file systems take 255, and some that encrypt 143
LONGEST_PATH = 200  # bytes of all of it; Windows takes 260 characters, the folder included
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
_ANY = frozenset(("text/plain", "application/octet-stream", "binary/octet-stream", ""))  # said of everything
_PAGES = frozenset((".html", ".htm", ".xhtml", ".xht", ".svg", ".xml", ".shtml", ".mht", ".mhtml"))  # opened as markup


class FileNames:
    """Gives names, each once."""

    def __init__(self) -> None:
        self._files = {FRONT}
        self._folders: set[str] = set()

    def give(self, address: str, media_type: str) -> str:
        """The path of the file for *address*, below the folder of all, with `/` between its parts."""
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
        """The path of a folder, which ends with a slash; none of those in it has the name of a file."""
        path = ""
        for segment in segments:
            path += segment
            while _folded(path) in self._files:
                path += "~"
            self._folders.add(_folded(path))
            path += "/"
        return path


def _wanted(address: str, media_type: str) -> tuple[list[str], str]:
    """The folders and the name that would be right for *address*, if nothing else had them."""
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
    """The extension that the file has, its own where that fits its type."""
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
    """A part of a URL as text: what is escaped in it is meant, and nothing in it means anything to a file system."""
    text = unquote_to_bytes(segment).decode("utf-8", "replace") if "%" in segment else segment
    text = unicodedata.normalize("NFC", _UNSAFE.sub("_", text))
    return "".join(char if char.isprintable() else "_" for char in text)


def _segment(text: str) -> str:
    """*text* as the name of a file or a folder."""
    text = _cut(text, LONGEST)
    bare = text.rstrip(". ")
    text = (bare + "_" * (len(text) - len(bare))) or "_"
    return f"_{text}" if _RESERVED.fullmatch(text) else text


def _split(name: str) -> tuple[str, str]:
    found = _EXTENSION.search(name)
    return (name[: found.start()], found[0]) if found else (name, "")


def _cut(text: str, most: int) -> str:
    """The beginning of *text*, at most *most* bytes; what was cut is told by a sum of it all."""
    data = text.encode()
    if len(data) <= most:
        return text
    return f"{data[: most - 9].decode('utf-8', 'ignore')}~{_sum(text)}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _folded(path: str) -> str:
    """What two names have in common that one file system or another takes for the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())
