"""Decide what replaces a reference: a path to another file, the live address, or nothing. Pure.

References in CSS are rewritten here too, in place; every other character stays as it is.

`view` gives the bytes of a document as text that can be changed in places and converted back to the same bytes
elsewhere. UTF-8 and UTF-16 are decoded, with invalid sequences preserved. Other encodings use ASCII for markup: each
byte becomes one character, and `meaning` decodes a part of it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import quote

from archiver import url
from archiver.extract import charset, css
from archiver.extract.references import UrlJoiner

_MOST_REDIRECTS = 20
NOWHERE = "about:blank"
_SAFE = "/~!$@-._+="  # in a path; characters with a meaning in HTML, CSS or srcset are escaped
_UNQUOTED = re.compile(rf"[A-Za-z0-9{re.escape(_SAFE)}]*+")
_IN_FRAGMENT = "/~!$&*+,;=:@-._?%"


class Exported(Protocol):
    """Where the references of exported documents lead."""

    @property
    def live(self) -> bool:
        """True if links to what is not exported lead to the live address."""

    @property
    def loads(self) -> bool:
        """True if page requisites that are not exported are loaded from the live address."""

    def reference(self, target: str, here: str, mark: str, *, loaded: bool) -> str | None:
        """Return the reference to *target* from the file *here*; None if it is not exported.

        *mark*: the fragment that follows. *loaded*: a browser loads it by itself.
        """


@dataclass(frozen=True, slots=True)
class ExportedSite:
    """The file of each exported URL, and the redirects."""

    files: Mapping[str, str]
    redirects: Mapping[str, str]
    live: bool  # links without a file lead to the live address …
    loads: bool  # … and page requisites are loaded from it

    def reference(self, target: str, here: str, mark: str, *, loaded: bool) -> str | None:  # noqa: ARG002 - for others
        """Return the way from the file *here* to that of *target*; None if there is none."""
        file = self.files.get(target) or self.file(target)  # most have one of their own
        if file is None:
            return None
        return relative(here, file) if file != here or not mark else ""

    def file(self, address: str) -> str | None:
        """Return the file of *address* or of its redirect target."""
        for _ in range(_MOST_REDIRECTS):
            known = next((one for one in _alike(address) if one in self.files or one in self.redirects), None)
            if known is None:
                return None
            if known in self.files:
                return self.files[known]
            address = self.redirects[known]
        return None


class ExportedPage:
    """One document, at its address and in its file. References are relative to *base*."""

    def __init__(
        self, site: Exported, address: str, file: str, base: str | None = None, encoding: str = "utf-8"
    ) -> None:
        self.site = site
        self.address = address
        self.file = file
        self.base = address if base is None else base
        self.encoding = encoding
        self._joiner = UrlJoiner(self.base, encoding)

    def based(self, base: str) -> "ExportedPage":
        """Return the same document with another *base*."""
        return ExportedPage(self.site, self.address, self.file, base, self.encoding)

    def encoded(self, encoding: str) -> "ExportedPage":
        """Return the same document in another *encoding*."""
        return ExportedPage(self.site, self.address, self.file, self.base, encoding)

    def replacement(self, reference: str, *, optional: bool = False, loaded: bool = False) -> str | None:
        """Return the ASCII text that replaces *reference*; None if it stays.

        With *optional* it stays if it has no file, because it may not be a reference. With *loaded* a browser loads it
        by itself.
        """
        plain = reference.strip("\t\n\f\r ")
        if not plain or (plain[0] == "#" and (loaded or self.base == self.address)):  # no base moves url(#x) or <use>
            return None
        target = url.join(self.base, plain) if plain[0] == "#" else self._joiner.target(plain)
        if target is None:
            return None  # javascript:, data:, mailto:
        mark = fragment = ""
        if "#" in plain:
            mark = plain.partition("#")[2]
            fragment = f"#{quote(mark, safe=_IN_FRAGMENT)}"
        known = self.site.reference(target, self.file, mark, loaded=loaded)
        if known is not None:
            return known + fragment
        if optional:
            return None
        if not (self.site.loads if loaded else self.site.live):
            return NOWHERE
        whole = plain.lower().startswith(("http://", "https://"))
        return None if whole else target + fragment


def relative(start: str, file: str) -> str:
    """Return the relative reference from *start* to *file*, both below one folder."""
    folder, name = _place(file)
    return _way(_place(start)[0], folder) + name


@lru_cache(maxsize=16_384)
def _place(file: str) -> tuple[str, str]:
    """Return the folder of *file*, and its name as it is written in a reference."""
    folder, _, name = file.rpartition("/")
    return folder, name if _UNQUOTED.fullmatch(name) else quote(name, safe=_SAFE)


@lru_cache(maxsize=4096)
def _way(start: str, end: str) -> str:
    """Return the relative reference from the folder *start* to the folder *end*; "" if they are the same."""
    here, there = start.split("/") if start else [], end.split("/") if end else []
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    steps = [".."] * (len(here) - common) + there[common:]
    return "".join(f"{quote(step, safe=_SAFE)}/" for step in steps)


def _alike(address: str) -> tuple[str, ...]:
    """Return *address* and those that pywb treats as equal: other letters in escapes, http or https, `www.` or not."""
    found: list[str] = []
    for each in url.spellings(address):
        scheme, _, rest = each.partition("://")
        other = "http" if scheme == "https" else "https"
        moved = rest.removeprefix("www.") if rest.startswith("www.") else f"www.{rest}"
        found += each, f"{other}://{rest}", f"{scheme}://{moved}", f"{other}://{moved}"
    return tuple(found)


_SPECIAL = re.compile(r"([()'\"\\ ])")


def rewrite_css(text: str, page: ExportedPage, meaning: Callable[[str], str]) -> str:
    """Return *text* with the references of *page* changed; a fragment alone stays."""
    parts: list[str] = []
    kept = 0
    for start, end, reference in css.reference_spans(text):
        decoded = meaning(reference)
        new = None if decoded.startswith("#") else page.replacement(decoded, loaded=True)
        if new is not None:
            parts += (text[kept:start], _SPECIAL.sub(r"\\\1", new))
            kept = end
    return "".join((*parts, text[kept:])) if parts else text


_WIDE = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
_BROKEN = re.compile("[\ud800-\udfff]")


class TextView(NamedTuple):
    """A document as text."""

    text: str
    meaning: Callable[[str], str]  # decodes a part of the text; ASCII stays as it is
    back: Callable[[str], bytes]


def view(body: bytes, encoding: str) -> TextView | None:
    """Return *body* in *encoding*, a name of the standard; None if it could not be converted back."""
    if encoding in ("utf-8", "replacement"):
        text = body.decode("utf-8", "surrogateescape")
        return TextView(text, _replace_broken, lambda changed: changed.encode("utf-8", "surrogateescape"))
    if encoding in _WIDE:
        name, odd = _WIDE[encoding], len(body) % 2
        text = body[: len(body) - odd].decode(name, "surrogatepass")
        return TextView(
            text, _replace_broken, lambda changed: changed.encode(name, "surrogatepass") + body[len(body) - odd :]
        )
    if encoding == "iso-2022-jp":
        return _stateful(body, encoding)
    return TextView(
        body.decode("latin-1"), lambda part: _decode(part, encoding), lambda changed: changed.encode("latin-1")
    )


def _stateful(body: bytes, encoding: str) -> TextView | None:
    text = charset.text(body, encoding)
    try:
        same = charset.encoded(text, encoding) == body
    except UnicodeEncodeError:
        return None
    return TextView(text, _replace_broken, lambda changed: charset.encoded(changed, encoding)) if same else None


def _replace_broken(part: str) -> str:
    return part if part.isascii() else _BROKEN.sub("\ufffd", part)


def _decode(part: str, encoding: str) -> str:
    try:
        return part if part.isascii() else charset.text(part.encode("latin-1"), encoding)
    except UnicodeEncodeError:  # an escape is in it, which needs no decoding
        return part
