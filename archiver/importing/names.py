"""What an imported file is called: as at its source as far as that is safe, and as nothing that is there. Pure.

No name from outside leads out of a folder, hides a file, or collides where upper and lower case are one.
"""

import re
from collections.abc import Container
from pathlib import Path

LONGEST = 180  # characters, so that the suffixes of open files and runs still fit into a file system's 255 bytes
ENDINGS = (".warc.gz", ".warc.zst", ".arc.gz", ".warc", ".arc", ".wacz", ".gz", ".zst")

_UNSAFE = re.compile(r"[^A-Za-z0-9._~+=@,-]")
_UNFINISHED = re.compile(r"(?:\.open|\.tmp)+$", re.IGNORECASE)


def safe(name: str, longest: int = LONGEST) -> str:
    """*name* as a single harmless part of a path; "" where nothing is left of it."""
    return _UNSAFE.sub("_", name).strip("._")[-longest:].lstrip("._-")


def stem(name: str) -> str:
    """*name* without the ending that tells what it is."""
    name = _UNFINISHED.sub("", name)
    lower = name.lower()
    ending = next((ending for ending in ENDINGS if lower.endswith(ending)), "")
    return name[: len(name) - len(ending)]


def file_name(name: str, sha256: str, taken: Container[str], *, compressed: bool) -> str:
    """A name for what is called *name* at its source and has this digest; *taken*: names in lower case.

    The ending tells the truth: readers go by it.
    """
    ending = ".warc.gz" if compressed else ".warc"
    begin = safe(stem(name)) or "import"
    for mark in ("", f"-{sha256[:8]}", f"-{sha256}"):
        found = f"{begin}{mark}{ending}"
        if found.lower() not in taken:
            return found
    raise AssertionError("two files of one digest are one file")


def collection_name(path: Path) -> str:
    """What a collection is called into which *path* is the first to be imported."""
    whole = path.resolve()
    if whole.name in ("archive", ""):
        whole = whole.parent
    return safe(stem(whole.name), 100) or "imported"
