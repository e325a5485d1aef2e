"""The bytes of a document as text that can be changed in places, and becomes the same bytes again everywhere else.

UTF-8 and UTF-16 are read as they are, with what is broken in them kept. In other encodings markup is ASCII: each byte
stands for one character there, and `meaning` tells what a part of it says. Pure.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from archiver.extract import charset

_WIDE = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
_BROKEN = re.compile("[\ud800-\udfff]")


class View(NamedTuple):
    """One document as text."""

    text: str
    meaning: Callable[[str], str]  # what a part of the text says
    back: Callable[[str], bytes]


def view(body: bytes, encoding: str) -> View | None:
    """*body* in *encoding*, a name of the standard; None where it could not become the same bytes again."""
    if encoding in ("utf-8", "replacement"):
        text = body.decode("utf-8", "surrogateescape")
        return View(text, _sound, lambda changed: changed.encode("utf-8", "surrogateescape"))
    if encoding in _WIDE:
        name, odd = _WIDE[encoding], len(body) % 2
        text = body[: len(body) - odd].decode(name, "surrogatepass")
        return View(text, _sound, lambda changed: changed.encode(name, "surrogatepass") + body[len(body) - odd :])
    if encoding == "iso-2022-jp":
        return _stateful(body, encoding)
    return View(body.decode("latin-1"), lambda part: _said(part, encoding), lambda changed: changed.encode("latin-1"))


def _stateful(body: bytes, encoding: str) -> View | None:
    text = charset.text(body, encoding)
    try:
        same = charset.encoded(text, encoding) == body
    except UnicodeEncodeError:
        return None
    return View(text, _sound, lambda changed: charset.encoded(changed, encoding)) if same else None


def _sound(part: str) -> str:
    return _BROKEN.sub("\ufffd", part)


def _said(part: str, encoding: str) -> str:
    try:
        return part if part.isascii() else charset.text(part.encode("latin-1"), encoding)
    except UnicodeEncodeError:  # an escape stood in it, whose meaning is plain
        return part
