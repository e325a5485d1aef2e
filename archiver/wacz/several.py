"""Packages that belong together: the JSON file by which replayweb.page opens them as one, and what each says of others.

A page may have come again unchanged, and then only a revisit of it is stored; what it refers to can lie in another
package. replayweb.page looks for it in those that a package names as required.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Part:
    """One of the packages."""

    name: str  # of its file
    digest: str  # of all its bytes
    size: int


def described(parts: Sequence[Part], title: str, created: str, software: str) -> bytes:
    """The JSON file for *parts*, which lie beside it."""
    said = {
        "profile": "multi-wacz-package",
        "title": title,
        "created": created,
        "software": software,
        "resources": [
            {"name": part.name, "path": quote(part.name), "hash": part.digest, "bytes": part.size} for part in parts
        ],
    }
    return json.dumps(said, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def related(before: Sequence[Part], names: Sequence[str], number: int) -> dict[str, Any]:
    """What the package *number* of *names* says of the others; of those *before* it the hash is known."""
    others = [{"filename": part.name, "hash": part.digest} for part in before]
    others += [{"filename": name} for name in names[number + 1 :]]
    return {"relation": {"requires": others}}
