"""References: decide if a string is one, collect those of a document, and turn them into links.

References are kept as written until the whole document is read, because a base element may come late. References that
cannot lead to an http(s) URL are dropped, and at most `MOST_LINKS` are kept. Each (URL, hop) occurs once, in document
order.

Pages keep URLs among other things, so `like_a_url` and the like decide by the string alone, in linear time.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from operator import itemgetter

from archiver import url
from archiver.config.expressions import compiled
from archiver.extract import charset
from archiver.model import Hop, Link, Links

MOST_LINKS = 50_000
LONGEST_CONTEXT = 100  # characters of the context of a link
NOFOLLOW = " rel=nofollow"  # suffix of the context of links with rel=nofollow
_POLICY = " referrerpolicy="  # in the context of links with a referrer policy of their own, before `NOFOLLOW`

WHOLE_URL = "script/address"  # the context of a URL without an extension in a script: a page, if it is on the own host
REFRESH = "refresh"  # the context of the link to which a page refreshes itself after a while
_INDEX = "index.html"  # the file that a folder shows, in the paths that generators write
_DEEPEST = 8  # steps of a path that may be repeated
_FEW_PAGES = 5  # that a page that only waits for a cookie names besides itself

USELESS = ("#", "data:", "javascript:", "mailto:", "tel:")  # the common ones; `url.join` drops the other schemes
_BEGIN_USELESS = frozenset(word[0] for word in USELESS)
# A relative reference that needs no rewriting: no slash at its start, no segment that starts with a dot.
_BELOW = compiled(
    r"(?!/)(?:[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+|/|%(?!2E)[0-9A-F]{2})*+"
    r"(?:\?(?:[\w~!$&()*+,;=@./?:-]++|%[0-9A-F]{2})*+)?",
    re.ASCII,
)
_REMEMBERED = 256  # characters of a reference and its base up to which the link is cached
_ADDRESS, _CONTEXT = itemgetter(0), itemgetter(2)  # of a link
_FILLED_IN = re.compile(r"\{\{|\$\{|\{%|<%")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_NO_BASE = ("http", "https", "data", "javascript")  # an unparsable base with one of these schemes is ignored
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_IN_QUERY = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")


Reference = tuple[tuple[str, Hop], str]  # ((reference as written, hop), context)
References = tuple[Reference, ...]


def redirect_target(links: Links) -> str:
    """Return the URL to which an answer with *links* redirects, or ""."""
    return links.links[0].url if len(links.links) == 1 and links.links[0].hop is Hop.REDIRECT else ""


def refreshes_itself(address: str, links: Links) -> bool:
    """Return True if the page at *address* asks to be loaded again and has few links, as a page that tests cookies."""
    if REFRESH not in map(_CONTEXT, links.links):  # as on most pages
        return False
    if not any(link.context == REFRESH and link.url == address for link in links.links):
        return False
    others = (link for link in links.links if link.hop is Hop.LINK and link.url != address)
    return sum(1 for _ in islice(others, _FEW_PAGES + 1)) <= _FEW_PAGES


def of_own_host(links: Links, page: str) -> Links:
    """Return *links* without the whole URLs in scripts that are not on the host of *page*, `www.` aside."""
    if WHOLE_URL not in map(_CONTEXT, links.links):  # as in most documents
        return links
    home = url.site(page)
    kept = tuple([link for link in links.links if link.context != WHOLE_URL or url.site(link.url) == home])
    return replace(links, links=kept)


def without_own_path(links: Links, address: str) -> Links:
    """Return *links* without guesses that repeat the path of the page at *address* below the page.

    A page may tell scripts its own path from the root: `{"path": "a/b/index.html"}` in `/a/b/`, read as `/a/b/a/b/…`.
    """
    folder, _, name = address.partition("?")[0].rpartition("/")
    steps = [*folder.split("/")[3:], name or _INDEX]
    starts = range(max(0, len(steps) - _DEEPEST), len(steps) - 1)
    repeated = {f"{folder}/{'/'.join(steps[start:])}" for start in starts}
    if repeated.isdisjoint(map(_ADDRESS, links.links)):  # as on most pages
        return links
    kept = (link for link in links.links if link.url not in repeated or not link.context.startswith("script/"))
    return replace(links, links=tuple(kept))


class LinkCollector:
    """Collects the references of one document; `links` turns them into links."""

    def __init__(self) -> None:
        self._references: dict[tuple[str, Hop], str] = {}
        self.full = False  # there were more references than are kept
        self.in_template = False  # inside a template that a script fills in

    def add(self, reference: str | None, hop: Hop, context: str) -> None:
        """Keep *reference* if it may name something to fetch."""
        if not reference or (reference[0] in _BEGIN_USELESS and reference.startswith(USELESS)):
            return
        if ("{" in reference or "<" in reference) and (self.in_template or hop is Hop.LINK) and _is_template(reference):
            return
        self.add_all((((reference, hop), context),))

    def add_all(self, new: Iterable[Reference]) -> None:
        """Keep references that passed the checks of `add`."""
        references = self._references
        for key, context in new:
            if len(references) >= MOST_LINKS:
                self.full = True
                return
            known = references.setdefault(key, context)
            if known is not context and known != context and known.endswith(NOFOLLOW):
                references[key] = context

    def add_as_utf8(self, encoding: str) -> None:
        """Guess what the references mean if the page, read in *encoding*, is in UTF-8 and fails to say so."""
        for (reference, _), context in [*self._references.items()]:
            address = reference.partition("#")[0]
            if not address.isascii():
                with suppress(UnicodeError):
                    meant = charset.encoded(address, encoding).decode("utf-8")
                    self.add(ascii_form(meant, "utf-8"), Hop.SPECULATIVE, context)

    def set_policy(self, before: int, policy: str) -> None:
        """Set the referrer *policy* of all references except the first *before*."""
        for key in list(islice(reversed(self._references), len(self._references) - before)):
            self._references[key] = with_policy(self._references[key], policy)

    @property
    def references(self) -> dict[tuple[str, Hop], str]:
        """All references in order: ((reference, hop), context)."""
        return self._references

    @property
    def empty(self) -> bool:
        """True if there are no references."""
        return not self._references

    def links(self, base: str, encoding: str, note: str = "", *, queries: str | None = None) -> Links:
        """Return the links of a text in *encoding*, resolved against *base*. URLs use *queries* if given."""
        links = UrlJoiner(base, queries or encoding).links(self._references)
        if len(set(map(_ADDRESS, links))) < len(links):
            links = _each_once(links)
        if self.full:
            note = f"{note}; " * bool(note) + f"more than {MOST_LINKS} links"
        return Links(tuple(links), encoding, note)


def _each_once(links: Iterable[Link]) -> list[Link]:
    """Return *links* without duplicates. A link that may be followed replaces one with nofollow."""
    once: dict[tuple[str, Hop], Link] = {}
    for link in links:
        known = once.setdefault(link[:2], link)
        if known is not link and known.context.endswith(NOFOLLOW) and not link.context.endswith(NOFOLLOW):
            once[link[:2]] = link
    return list(once.values())


def _is_template(reference: str) -> bool:
    """True if the path of *reference* has placeholders that a script or server fills in."""
    return _FILLED_IN.search(reference.partition("?")[0]) is not None


def base_of(address: str, href: str | None) -> str:
    """Return the base URL of a document at *address* whose first base element has this *href*.

    By the HTML standard, the address itself is used if the href cannot be parsed, or is a data or javascript URL. A
    base with another scheme is valid, so relative references lead to nothing that can be fetched.
    """
    if not href:
        return address
    base = url.join(address, href)
    if base is None and (scheme := _SCHEME.match(href.strip())) and scheme[1].lower() not in _NO_BASE:
        return href.strip()
    return base or address


def with_policy(context: str, policy: str) -> str:
    """Return the *context* of a link that has a referrer *policy* of its own."""
    return f"{context.removesuffix(NOFOLLOW)}{_POLICY}{policy}{NOFOLLOW * context.endswith(NOFOLLOW)}"


def policy_in(context: str) -> str:
    """Return the referrer policy in the *context* of a link; "" if it has none of its own."""
    return context.rpartition(_POLICY)[2].partition(" ")[0] if _POLICY in context else ""


def _short(context: str) -> str:
    """Return the beginning of *context*: element names may be as long as a document."""
    short = context[:LONGEST_CONTEXT].partition(_POLICY)[0] + NOFOLLOW * context.endswith(NOFOLLOW)
    policy = policy_in(context)
    return with_policy(short, policy) if policy else short


class UrlJoiner:
    """Resolves references against one base like `url.join`, but faster if they need no rewriting."""

    def __init__(self, base: str, encoding: str = "utf-8") -> None:
        self._base = base
        self._encoding = None if encoding.startswith(("utf-", "replacement")) else encoding
        canonical = url.canonical(base)
        self._root = f"{url.origin(canonical)}/" if canonical else ""
        self._folder = canonical.partition("?")[0].rpartition("/")[0] + "/" if canonical else ""
        self._above: dict[str, str] = {}  # the folders above, by relative path ("../")
        self._longest = _REMEMBERED - len(self._folder) if canonical else 0

    def links(self, references: Mapping[tuple[str, Hop], str]) -> list[Link]:
        """Return the links for *references*, without those that name nothing to fetch."""
        links: list[Link] = []
        for (reference, hop), context in references.items():
            link = self._plain(reference, hop, context) if len(context) <= LONGEST_CONTEXT else None
            if link is not None:
                links.append(link)
            elif target := self.join(reference):
                links.append(Link(target, hop, context if len(context) <= LONGEST_CONTEXT else _short(context)))
        return links

    def target(self, reference: str) -> str | None:
        """Return what `links` finds for one *reference*."""
        link = self._plain(reference, Hop.LINK, "")
        return self.join(reference) if link is None else link.url

    def _plain(self, reference: str, hop: Hop, context: str) -> Link | None:
        """Return the link to *reference*; None if it needs rewriting or names nothing to fetch."""
        if len(reference) >= self._longest:
            return None
        first = reference[0]
        plain = reference.partition("#")[0] if "#" in reference else reference
        if first == "/":
            return _below(self._root, plain[1:], hop, context)
        if first == ".":
            end = plain.rfind("../") + 3 or 2
            rest = plain[end:]
            if rest[:1].isalnum() or rest.startswith("_"):
                return _below(self._above.get(plain[:end]) or self._up(plain[:end]), rest, hop, context)
            return None
        if ":" in plain:
            return self._absolute(plain, hop, context)
        return _below(self._folder, plain, hop, context) if first.isalnum() or first == "_" else None

    def _absolute(self, reference: str, hop: Hop, context: str) -> Link | None:
        """Return the link to *reference*, which contains a colon; None if it needs rewriting."""
        slash = reference.find("/", 8) + 1
        if not slash:  # nothing but a host
            reference += "/"
            slash = len(reference)
        root = reference[:slash]
        if root == self._root:
            return _below(root, reference[slash:], hop, context)
        return _plainly_below(root, reference[slash:], hop, context) if url.is_root(root) else None

    def _up(self, steps: str) -> str:
        """Return the folder that *steps* lead up to; "" if *steps* is anything else."""
        if steps == "./":
            return self._folder
        if steps != "../" * (len(steps) // 3):
            return ""
        folder = self._folder
        for _ in range(len(steps) // 3):
            folder = folder[: folder.rindex("/", 0, -1) + 1] if len(folder) > len(self._root) else folder
        self._above[steps] = folder
        return folder

    def join(self, reference: str) -> str | None:
        """Return the canonical URL that *reference* names; None if it names nothing to fetch."""
        reference = reference.strip("\t\n\f\r ")
        if not reference or reference.startswith("#"):
            return None
        if self._encoding and not reference.isascii():
            reference = _with_query_in(self._encoding, reference)
        return url.join(self._base, reference)


def _plainly_below(folder: str, rest: str, hop: Hop, context: str) -> Link | None:
    """Return the link to *rest* below *folder*, which ends with a slash; None if it needs rewriting."""
    plain = _BELOW.fullmatch(rest) if folder else None
    return Link(folder + rest, hop, context) if plain else None


_below = lru_cache(maxsize=8192)(_plainly_below)  # links within the site; links to other sites rarely repeat


def _with_query_in(encoding: str, reference: str) -> str:
    """Return *reference* with its query encoded as a page in *encoding* would send it."""
    address, mark, query = reference.partition("#")[0].partition("?")
    return address + mark + _NOT_ASCII.sub(lambda run: _escaped(run.group(), encoding), query)


def ascii_form(reference: str, encoding: str) -> str:
    """Return *reference* with all other characters than ASCII escaped as a page in *encoding* would send them."""
    if reference.isascii():
        return reference
    address, hash_mark, fragment = reference.partition("#")
    if not encoding.startswith("utf-"):
        address = _with_query_in(encoding, address)
    return _NOT_ASCII.sub(lambda run: _escaped(run.group(), "utf-8"), address + hash_mark + fragment)


def _escaped(run: str, encoding: str) -> str:
    try:
        return "".join(chr(b) if b in _IN_QUERY else f"%{b:02X}" for b in charset.encoded(run, encoding))
    except UnicodeEncodeError:
        if len(run) == 1:
            return f"%26%23{ord(run)}%3B"
    return "".join(_escaped(char, encoding) for char in run)


_LONGEST = 2048  # characters of a string that may be a URL
FILES = frozenset(  # extensions of the files that pages consist of
    (
        *("css", "js", "mjs", "cjs", "json", "wasm", "webmanifest", "glb", "gltf", "dzi"),
        *("apng", "avif", "bmp", "cur", "gif", "ico", "jpeg", "jpg", "png", "svg", "webp"),
        *("woff", "woff2", "ttf", "otf", "eot"),
        *("flac", "m3u8", "m4a", "m4v", "mp3", "mp4", "mpd", "oga", "ogg", "ogv", "opus", "vtt", "wav", "webm"),
    )
)

_SEGMENT = r"(?:[\w~@+!$&(),=. -]|%[0-9A-Fa-f]{2}){1,200}+"
_DOWNLOAD = compiled(  # a relative one needs a folder, whose name is not that of a host
    rf"(?:https?://[\w.-]{{1,200}}(?::[0-9]{{1,5}})?/|/(?!/)|\./|(?:\.\./){{1,20}}|(?=[^/.]{{1,200}}/))(?:{_SEGMENT}/){{0,20}}"
    rf"(?=[^/]{{1,200}}\.(?P<ending>[a-z][a-z0-9]{{0,7}}|7z)(?:[?#]|\Z)){_SEGMENT}(?:\?[^\s\"'<>{{}}\\]{{1,500}}+)?(?:#\S{{0,200}}+)?",
    re.IGNORECASE,
)
URL_KEY = (  # names of values that hold a URL: url, og_url, downloadLink
    r"(?:(?:\w{0,30}_)?(?:url|uri|href|link|download|pdf)|\w{0,30}(?:Ur[li]|UR[LI]|Href|Link|Download|Pdf|PDF))"
)
KNOWN_DOWNLOADS = (  # extensions of files that are made to be handed out
    "7z|apk|appimage|bz2|deb|dmg|docx?|epub|exe|gz|iso|jar|msi|od[pst]|pdf|pkg|pptx?|rpm|tar|tgz|whl|xlsx?|xz|zip|zst"
)
_KNOWN_DOWNLOAD = re.compile(rf"\.(?:{KNOWN_DOWNLOADS})(?:[?#]|\Z)", re.IGNORECASE)
_NO_DOWNLOADS = url.PAGE_ENDINGS | frozenset(("cjs", "css", "git", "js", "map", "mjs"))
_NEVER_IN_URL = re.compile(r"[\s{}<>\"'|\\^`]")
_PATH_OR_EXTENSION = re.compile(r"/|\.[a-zA-Z]\w")
_SURE = re.compile(r"https?://[^\s/]|//[\w-]+(?:\.[\w-]+)+(?:[/:?]|$)|/(?![/*])", re.IGNORECASE)
_EXTENSIONS = FILES | frozenset(
    ("3gp", "aac", "flv", "heic", "jfif", "jxl", "mov", "mpeg", "mpg", "svgz", "swf", "tif", "tiff", "weba")
)
_PATH_CHARS = r"[^\\\x00-\x1f\"'<>{}|^`*?#:]"
_TAIL = rf"{_PATH_CHARS}++(?:[?#][^\s\"'<>{{}}\\]*+)?"
_ENDS_AS_FILE = re.compile(rf"\.(?:{'|'.join(sorted(_EXTENSIONS))})\Z", re.IGNORECASE)
_WHOLE = re.compile(rf"(?:https?:)?//[\w.-]++(?::\d{{1,5}})?/(?!/){_TAIL}|/(?!/){_TAIL}", re.IGNORECASE)
_NEAR = re.compile(rf"(?![\s/]){_TAIL}")


def a_download(value: str) -> bool:
    """True if *value*, which is surely a URL, names a file with any extension except those of pages and scripts."""
    found = _DOWNLOAD.fullmatch(value) if "." in value and len(value) < _LONGEST else None
    return found is not None and found["ending"].lower() not in _NO_DOWNLOADS and value.strip() == value


def a_known_download(value: str) -> bool:
    """True if *value*, which names a file of the site or of a disk, is one that a site hands out."""
    return _KNOWN_DOWNLOAD.search(value) is not None and a_download(value)


def like_a_url(value: str) -> bool:
    """True if *value* may be a URL, also a relative one: one word with a slash or an extension."""
    bare = value.strip()
    return len(bare) < _LONGEST and bool(_PATH_OR_EXTENSION.search(bare)) and not _NEVER_IN_URL.search(bare)


def surely_a_url(value: str) -> bool:
    """True if *value* is an absolute URL, or a path from the root."""
    bare = value.strip()
    return len(bare) < _LONGEST and bool(_SURE.match(bare)) and not _NEVER_IN_URL.search(bare)


def a_file(value: str, *, near: bool = False) -> bool:
    """True if *value* is the absolute URL or root path of a file that pages use; with *near* also a relative path."""
    if not 5 <= len(value) < _LONGEST:
        return False
    found = _WHOLE.fullmatch(value) or (_NEAR.fullmatch(value) if near else None)
    if not found:
        return False
    path = value.partition("#")[0].partition("?")[0]
    return bool(_ENDS_AS_FILE.search(path)) and not url.STRAY_PERCENT.search(path)
