"""What stands in place of a reference: the way to another file, the live address, or nothing. Pure.

References in CSS changed in their places; every other character stays. Pure.

The bytes of a document as text that can be changed in places, and becomes the same bytes again everywhere else.

UTF-8 and UTF-16 are read as they are, with what is broken in them kept. In other encodings markup is ASCII: each byte
stands for one character there, and `meaning` tells what a part of it says. Pure.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from archiver import url
from archiver.extract import charset, css
from archiver.extract.collector import UrlJoiner

_MOST_REDIRECTS = 20
_NOWHERE = "about:blank"
_SAFE = "/~!$@-._+="  # of a path; what means something to HTML, CSS or a srcset is escaped
_IN_FRAGMENT = "/~!$&*+,;=:@-._?%"


@dataclass(frozen=True, slots=True)
class ExportedSite:
    """Which URL has which file, and which leads on to another URL."""

    files: Mapping[str, str]
    redirects: Mapping[str, str]
    live: bool  # where there is no file, a link that a person follows leads to the live address …
    loads: bool  # … and what a page loads by itself comes from there

    def file(self, address: str) -> str | None:
        """The file of *address*, or of where it redirects to."""
        for _ in range(_MOST_REDIRECTS):
            known = next((one for one in _alike(address) if one in self.files or one in self.redirects), None)
            if known is None:
                return None
            if known in self.files:
                return self.files[known]
            address = self.redirects[known]
        return None


class ExportedPage:
    """One document, at its address and in its file, whose references start from *base*."""

    def __init__(
        self, site: ExportedSite, address: str, file: str, base: str | None = None, encoding: str = "utf-8"
    ) -> None:
        self.site = site
        self.address = address
        self.file = file
        self.base = address if base is None else base
        self.encoding = encoding
        self._joiner = UrlJoiner(self.base, encoding)

    def based(self, base: str) -> "ExportedPage":
        """The same document, whose references start from another *base*."""
        return ExportedPage(self.site, self.address, self.file, base, self.encoding)

    def replacement(self, reference: str, *, held: bool = False, loaded: bool = False) -> str | None:
        """What stands in place of *reference*, in ASCII; None where it stays as it is.

        With *held* it stays as it is where there is no file for it: it may be no reference at all. What is *loaded*
        is fetched by a browser without being asked.
        """
        plain = reference.strip("\t\n\f\r ")
        if not plain or (plain.startswith("#") and self.base == self.address):
            return None
        target = self._joiner.join(plain) or (url.join(self.base, plain) if plain.startswith("#") else None)
        if target is None:
            return None  # javascript:, data:, mailto:
        mark = plain.partition("#")[2]
        fragment = f"#{quote(mark, safe=_IN_FRAGMENT)}" if "#" in plain else ""
        file = self.site.file(target)
        if file is not None:
            return (relative(self.file, file) if file != self.file or not mark else "") + fragment
        if held:
            return None
        if not (self.site.loads if loaded else self.site.live):
            return _NOWHERE
        whole = plain.lower().startswith(("http://", "https://"))
        return None if whole else target + fragment


def relative(start: str, file: str) -> str:
    """The reference from the file *start* to *file*, both below one folder."""
    here, there = start.split("/")[:-1], file.split("/")
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    steps = [".."] * (len(here) - common) + there[common:]
    return quote("/".join(steps), safe=_SAFE)


def _alike(address: str) -> tuple[str, ...]:
    """*address*, and those that pywb takes for the same: with the other scheme, with www or without."""
    scheme, _, rest = address.partition("://")
    other = "http" if scheme == "https" else "https"
    moved = rest.removeprefix("www.") if rest.startswith("www.") else f"www.{rest}"
    return (address, f"{other}://{rest}", f"{scheme}://{moved}", f"{other}://{moved}")


_SPECIAL = re.compile(r"([()'\"\\ ])")


def rewritten(text: str, page: ExportedPage, meaning: Callable[[str], str]) -> str:
    """*text* with the references that *page* wants otherwise; a fragment alone always means the same document."""
    parts: list[str] = []
    kept = 0
    for start, end, reference in css.reference_spans(text):
        said = meaning(reference)
        new = None if said.startswith("#") else page.replacement(said, loaded=True)
        if new is not None:
            parts += (text[kept:start], _SPECIAL.sub(r"\\\1", new))
            kept = end
    return "".join((*parts, text[kept:])) if parts else text


def labelled(body: bytes, text: str, encoding: str) -> str:
    """*text* that says its *encoding* by itself, where only the answer's header had said it."""
    if body.isascii() or charset.marked(body):
        return text
    if encoding == "utf-8":
        return f"\ufeff{text}"
    return text if charset.of_css(body, None) == encoding else f'@charset "{encoding}";{text}'


_WIDE = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
_BROKEN = re.compile("[\ud800-\udfff]")


class TextView(NamedTuple):
    """One document as text."""

    text: str
    meaning: Callable[[str], str]  # what a part of the text says
    back: Callable[[str], bytes]


def view(body: bytes, encoding: str) -> TextView | None:
    """*body* in *encoding*, a name of the standard; None where it could not become the same bytes again."""
    if encoding in ("utf-8", "replacement"):
        text = body.decode("utf-8", "surrogateescape")
        return TextView(text, _sound, lambda changed: changed.encode("utf-8", "surrogateescape"))
    if encoding in _WIDE:
        name, odd = _WIDE[encoding], len(body) % 2
        text = body[: len(body) - odd].decode(name, "surrogatepass")
        return TextView(text, _sound, lambda changed: changed.encode(name, "surrogatepass") + body[len(body) - odd :])
    if encoding == "iso-2022-jp":
        return _stateful(body, encoding)
    return TextView(
        body.decode("latin-1"), lambda part: _said(part, encoding), lambda changed: changed.encode("latin-1")
    )


def _stateful(body: bytes, encoding: str) -> TextView | None:
    text = charset.text(body, encoding)
    try:
        same = charset.encoded(text, encoding) == body
    except UnicodeEncodeError:
        return None
    return TextView(text, _sound, lambda changed: charset.encoded(changed, encoding)) if same else None


def _sound(part: str) -> str:
    return _BROKEN.sub("\ufffd", part)


def _said(part: str, encoding: str) -> str:
    try:
        return part if part.isascii() else charset.text(part.encode("latin-1"), encoding)
    except UnicodeEncodeError:  # an escape stood in it, whose meaning is plain
        return part
