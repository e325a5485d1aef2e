"""Decide whether a string looks like a URL or a file name, for places where pages keep URLs among other things.

Each function takes one string, in time linear in its length.
"""

import re

LONGEST = 2048
FILES = frozenset(  # extensions of the files that pages consist of
    (
        *("css", "js", "mjs", "cjs", "json", "wasm", "webmanifest", "glb", "gltf"),
        *("apng", "avif", "bmp", "cur", "gif", "ico", "jpeg", "jpg", "png", "svg", "webp"),
        *("woff", "woff2", "ttf", "otf", "eot"),
        *("flac", "m3u8", "m4a", "m4v", "mp3", "mp4", "mpd", "oga", "ogg", "ogv", "opus", "vtt", "wav", "webm"),
    )
)

_NEVER_IN_URL = re.compile(r"[\s{}<>\"'|\\^`]")
_PATH = re.compile(r"/|\.[a-zA-Z]\w")
_SURE = re.compile(r"https?://[^\s/]|//[\w-]+(?:\.[\w-]+)+(?:[/:?]|$)|/(?![/*])", re.IGNORECASE)
_EXTENSIONS = FILES | frozenset(
    ("3gp", "aac", "flv", "heic", "jfif", "jxl", "mov", "mpeg", "mpg", "svgz", "swf", "tif", "tiff", "weba")
)
_PATH_CHARS = r"[^\\\x00-\x1f\"'<>{}|^`*?#:]"
_TAIL = rf"{_PATH_CHARS}++(?:[?#][^\s\"'<>{{}}\\]*+)?"
_ENDS_AS_FILE = re.compile(rf"\.(?:{'|'.join(sorted(_EXTENSIONS))})\Z", re.IGNORECASE)
_WHOLE = re.compile(rf"(?:https?:)?//[\w.-]++(?::\d{{1,5}})?/(?!/){_TAIL}|/(?!/){_TAIL}", re.IGNORECASE)
_NEAR = re.compile(rf"(?![\s/]){_TAIL}")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


def like_a_url(value: str) -> bool:
    """True if *value* may be a URL, also a relative one: one word with a slash or an extension."""
    bare = value.strip()
    return len(bare) < LONGEST and bool(_PATH.search(bare)) and not _NEVER_IN_URL.search(bare)


def surely_a_url(value: str) -> bool:
    """True if *value* is an absolute URL, or a path from the root."""
    bare = value.strip()
    return len(bare) < LONGEST and bool(_SURE.match(bare)) and not _NEVER_IN_URL.search(bare)


def a_file(value: str, *, near: bool = False) -> bool:
    """True if *value* is the absolute URL or root path of a file that pages use; with *near* also a relative path."""
    if not 5 <= len(value) < LONGEST:
        return False
    found = _WHOLE.fullmatch(value) or (_NEAR.fullmatch(value) if near else None)
    if not found:
        return False
    path = value.partition("#")[0].partition("?")[0]
    return bool(_ENDS_AS_FILE.search(path)) and not _BROKEN_ESCAPE.search(path)
