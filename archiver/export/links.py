"""What stands in place of a reference: the way to another file, the live address, or nothing. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from archiver import url
from archiver.extract.found import Joiner

_MOST_REDIRECTS = 20
_NOWHERE = "about:blank"
_SAFE = "/~!$@-._+="  # of a path; what means something to HTML, CSS or a srcset is escaped
_IN_FRAGMENT = "/~!$&*+,;=:@-._?%"


@dataclass(frozen=True, slots=True)
class Site:
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


class Page:
    """One document, at its address and in its file, whose references start from *base*."""

    def __init__(self, site: Site, address: str, file: str, base: str | None = None, encoding: str = "utf-8") -> None:
        self.site = site
        self.address = address
        self.file = file
        self.base = address if base is None else base
        self.encoding = encoding
        self._joiner = Joiner(self.base, encoding)

    def based(self, base: str) -> "Page":
        """The same document, whose references start from another *base*."""
        return Page(self.site, self.address, self.file, base, self.encoding)

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
