"""Reads the folder of a collection of browsertrix-crawler: its saved state, settings and archives.

An interrupted crawl saves `crawls/crawl-….yaml`: its options, and below `state` what is queued, pending, finished and
failed. Queued pages are JSON in strings. Older versions have `done`, a list of such strings, in place of `finished`.

Source: src/util/state.ts (`SaveState`, `load`) and src/util/argParser.ts of browsertrix-crawler.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from archiver.errors import ConfigError
from archiver.frontier.adopted import AdoptedState, AdoptedUrl, hop_path
from archiver.storage import storage
from archiver.tools.adopt.source import AdoptedCrawl, SettingsTranslation, archives_in, open_source, whole_number
from archiver.tools.adopt.yaml import Scalar, YamlError, scalars

LARGEST_ENTRY = 1 << 20  # characters of a line; a queued page has some hundred
MOST_SETTINGS = 10_000
LONGEST_URL = 64 << 10  # characters
STATE = "state"
PAGES = "pages"

_STATES = {
    "queued": AdoptedState.WAITING,
    "pending": AdoptedState.WAITING,
    "failed": AdoptedState.FAILED,
    "done": AdoptedState.FETCHED,
    "finished": AdoptedState.FETCHED,
}
_FIELDS: dict[str, Callable[[str], object]] = {"url": str, "depth": whole_number, "failed": "true".__eq__}
_SCOPES = {"page": "page", "page-spa": "page", "prefix": "prefix", "host": "host", "domain": "domain", "any": "any"}
_SCOPES["custom"] = "page"  # and what its patterns include
_DIRECT = {  # option: key of crawl.toml
    "extraHops": "extra-hops",
    "limit": "max-urls",
    "sizeLimit": "max-bytes",
    "timeLimit": "max-time",
    "workers": "concurrency",
    "rolloverSize": "warc-size",
    "warcPrefix": "warc-prefix",
    "userAgent": "user-agent",
    "maxPageRetries": "retries",
    "description": "description",
}
_UNLIMITED = frozenset(("max-urls", "max-bytes", "max-time"))
_TEXTS = frozenset(("warc-prefix", "user-agent", "description"))
_QUIET = frozenset(  # of the same use here, or of none after an interruption
    (
        *("collection", "cwd", "crawlId", "generateCDX", "generateWACZ", "saveState", "saveStateHistory", "logging"),
        *("saveStateInterval", "useSitemap", "sitemap", "combineWARC", "overwrite", "waitOnDone", "restartsOnError"),
        *(
            "statsFilename",
            "logLevel",
            "logContext",
            "context",
            "text",
            "title",
            "config",
            "allowHash",
            "redisStoreUrl",
        ),
    )
)
_SEED_WAYS = frozenset((("url",), ("url", "-"), ("seeds", "-"), ("seeds", "-", "url"), ("seeds",)))
_UNSET = frozenset(("null", "~", "", "false"))
_LITERAL = re.compile(r"!\S{0,100}js/regexp\S?\s+/((?:[^/\\]|\\.)*)/([a-z]*)", re.DOTALL)  # as js-yaml 3 writes one


def is_saved_state(begin: bytes) -> bool:
    """Return True if a file that begins with *begin* may be a saved state."""
    return re.search(rb"^(?:state|seeds|collection|scopeType|queued):", begin, re.MULTILINE) is not None


def has_pages(folder: Path) -> bool:
    """Return True if *folder* has the list of pages and the archives of a collection."""
    return (folder / PAGES / "pages.jsonl").is_file() and (folder / "archive").is_dir()


def saved_state(folder: Path) -> Path | None:
    """Return the newest saved state of the collection in *folder*; None if there is none."""
    found: list[Path] = []
    for place in (folder / "crawls", folder):
        if place.is_dir():
            found += [path for path in place.glob("*.yaml") if path.is_file()]
        if found:
            break
    return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)


class SavedState:
    """A saved state, read line by line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def scalars(self) -> Iterator[Scalar]:
        """Yield what the file says. Raises `ConfigError` if it is not YAML of this kind."""
        try:
            with storage(self._path), _text(self._path) as file:
                yield from scalars(_lines(file))
        except YamlError as error:
            raise ConfigError(f"{self._path}: cannot be read as a saved state: {error}") from None

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield the pages of the state: texts, or maps as older versions wrote them."""
        fields: dict[str, Any] = {}
        place: tuple[str, tuple[int, ...]] = "", ()
        for each in self.scalars():
            if each.way[:1] != (STATE,) or len(each.way) not in (3, 4) or each.way[1] not in _STATES:
                continue
            if fields and (each.way[1], each.item) != place:
                yield _page_of(fields, _STATES[place[0]])
                fields = {}
            if len(each.way) == 3:
                yield _page(each.text, _STATES[each.way[1]])
            elif each.way[3] in _FIELDS:
                place = each.way[1], each.item
                fields[each.way[3]] = _FIELDS[each.way[3]](each.text)
        if fields:
            yield _page_of(fields, _STATES[place[0]])

    def settings(self, settings: SettingsTranslation) -> None:
        """Translate the options into *settings*."""
        options: list[Scalar] = []
        moved: list[str] = []  # where seeds redirect to
        for each in self.scalars():
            if each.way == (STATE, "extraSeeds", "-"):
                moved += [str(_fields(each.text).get("newUrl", ""))[:LONGEST_URL]] * (len(moved) < MOST_SETTINGS)
            elif each.way[:1] != (STATE,):
                options.append(each)
                if len(options) > MOST_SETTINGS:
                    settings.note("options", f"only the first {MOST_SETTINGS} are read")
                    break
        several = sum(each.way in _SEED_WAYS for each in options) > 1
        for each in options:
            _option(each, settings, several=several)
        for address in moved:
            settings.seed(address)


def _text(path: Path) -> io.TextIOWrapper:
    """Open the text at *path*, which must not be a link."""
    return io.TextIOWrapper(open_source(path), encoding="utf-8", errors="replace")


def _lines(file: Any) -> Iterator[str]:
    while line := file.readline(LARGEST_ENTRY):
        if line.endswith("\n") or len(line) < LARGEST_ENTRY:
            yield line
            continue
        while (rest := file.readline(LARGEST_ENTRY)) and not rest.endswith("\n"):
            pass  # too long for a page


def _fields(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _page(text: str, state: AdoptedState) -> AdoptedUrl:
    """Return the page that *text* describes, as JSON or by its URL; what does not is named as it is."""
    fields = _fields(text)
    return _page_of(fields, state) if isinstance(fields.get("url"), str) else AdoptedUrl(text, state)


def _page_of(fields: dict[str, Any], state: AdoptedState) -> AdoptedUrl:
    """Return the page with these *fields*."""
    depth = fields.get("depth")
    if fields.get("failed") is True:
        state = AdoptedState.FAILED
    links = depth if isinstance(depth, int) and not isinstance(depth, bool) else 1
    note = "browsertrix gave up" if state is AdoptedState.FAILED else ""
    return AdoptedUrl(str(fields.get("url", "")), state, hop_path(links), note=note)


def _option(each: Scalar, settings: SettingsTranslation, *, several: bool) -> None:
    """Translate one option; *several*: there is more than one seed."""
    name, last, value = each.way[0] if each.way else "", each.way[-1] if each.way else "", each.text
    shown = f"{'.'.join(part for part in each.way if part != '-')}: {value}"
    if value in _UNSET and name != "seeds":
        return
    pattern = next((word for word in ("include", "exclude") if word in each.way), "")
    if pattern == "exclude" and name == "seeds" and several:
        settings.note(shown, "it is for one of several seeds; write it into a [[seed]] of crawl.toml")
    elif pattern:
        settings.put(pattern, _expression(value), shown)
    elif each.way in _SEED_WAYS:
        settings.seed(value)
    elif last == "scopeType":
        _scope(value, shown, settings)
    elif last == "depth":
        if (number := whole_number(value)) is not None and number >= 0:
            settings.put("max-depth", number, shown)
    elif value not in _UNSET:
        _plain(name, value, shown, settings)


def _scope(value: str, shown: str, settings: SettingsTranslation) -> None:
    if value in _SCOPES:
        settings.put("scope", _SCOPES[value], shown)
    else:
        settings.note(shown, "no such scope here; that of the path below each seed, prefix, holds")


def _expression(text: str) -> str:
    """Return the regular expression *text*, which may be tagged as an object of JavaScript."""
    found = _LITERAL.fullmatch(text)
    if found is None:
        return text
    pattern = found[1].replace("\\/", "/")
    return f"(?i){pattern}" if "i" in found[2] else pattern


def _plain(name: str, value: str, shown: str, settings: SettingsTranslation) -> None:
    """Translate an option of the whole crawl."""
    number, key = whole_number(value), _DIRECT.get(name, "")
    if key in _TEXTS:
        settings.put(key, " ".join(value.split()), shown)
    elif key and number is not None:
        if number > 0 or key not in _UNLIMITED:
            settings.put(key, number, shown)
    elif name == "pageExtraDelay" and number is not None:
        if number > 0:
            settings.put("rate", f"1/{number}", shown)
    elif name == "blockAds":
        settings.put("without", "trackers", shown)
    elif name not in _QUIET:
        settings.note(shown, "no counterpart is set; see docs/how-to/from-browsertrix.md")


class StoredPageLists:
    """The lists of the pages that were stored. A crawl that was killed leaves no more than these."""

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / PAGES / name for name in ("pages.jsonl", "extraPages.jsonl")]

    def urls(self) -> Iterator[AdoptedUrl]:
        """Yield the pages in the lists; seeds have an empty path."""
        for path in self._paths:
            if not path.is_file():
                continue
            with storage(path), _text(path) as file:
                for line in _lines(file):
                    fields = _fields(line.strip())
                    if isinstance(fields.get("url"), str):
                        found = _page(line.strip(), AdoptedState.FETCHED)
                        yield found._replace(path="") if fields.get("seed") is True else found


def browsertrix_crawl(path: Path) -> AdoptedCrawl:
    """Return the crawl whose saved state is at *path*, or in the collection *path*."""
    file = saved_state(path) if path.is_dir() else path
    folder = path if path.is_dir() else path.parent.parent if path.parent.name == "crawls" else path.parent
    if file is None and not has_pages(folder):
        raise ConfigError(
            f"{path}: it has neither a saved state, crawls/*.yaml, nor {PAGES}/pages.jsonl; its archives can be "
            "imported: archiver import"
        )
    settings = SettingsTranslation()
    settings.put("scope", "prefix", "scopeType: prefix")  # its default
    queue: SavedState | StoredPageLists = StoredPageLists(folder) if file is None else SavedState(file)
    remarks: tuple[str, ...] = ()
    if isinstance(queue, SavedState):
        queue.settings(settings)
    else:
        remarks = ("it was killed before it saved its state: links are read from its archives",)
        settings.note("options of browsertrix", "it saved none, so the settings here are the defaults")
    for each in queue.urls():
        if not each.path:
            settings.seed(each.url)
    archive = folder / "archive"
    found = archives_in(archive, (".warc", ".warc.gz")) if archive.is_dir() else []
    found = found or archives_in(folder, (".wacz",))
    return AdoptedCrawl("browsertrix-crawler", settings.settings(), tuple(found), queue.urls, remarks)
