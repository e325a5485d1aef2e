"""All settings: frozen slices, one for each part of the program; every field has its own help text. Pure.

The command line, the keys of crawl.toml and docs/reference/settings.md are made from this one list, so they cannot
disagree.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from archiver import url
from archiver.config.addresses import DATABASE
from archiver.config.event_settings import EventSettings
from archiver.config.fetch_settings import FetchSettings, NetworkSettings, TlsSettings
from archiver.config.hook_settings import HookSettings
from archiver.config.host_rules import HostRule, decisive
from archiver.config.option_types import (
    ARCHIVE,
    BOOLEAN,
    COUNT,
    LABEL,
    NUMBER,
    SECONDS,
    SECONDS_OR_NONE,
    SIZE,
    TEXT,
    OptionType,
    choice,
)
from archiver.config.politeness_settings import PolitenessSettings
from archiver.config.scope_settings import ScopeSettings, TrapSettings, setting
from archiver.config.tls import CA_FILE

_STORE = re.compile(r"(s3|gs|az)://[^/@:?#\s]+(/[^?#\s]*)?|file:///[^?#]+")


def _store(given: Any) -> str:
    if not isinstance(given, str) or (given and _STORE.fullmatch(given) is None):
        raise ValueError
    return given.rstrip("/")


STORE = OptionType("STORE", "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER", _store)
PROCESSES = OptionType(  # 0: one for each processor core
    "N|auto",
    'a whole number of 1 or more, or "auto"',
    lambda given: 0 if given == "auto" else COUNT.read(given),
    lambda value: value or "auto",
)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """When to stop, and how many requests to make at once."""

    concurrency: int = setting(32, COUNT, "Send at most N requests at once, over all hosts.", live=True)
    processes: int = setting(
        1,
        PROCESSES,
        "Crawl with N processes, which share the hosts. auto: one for each processor core. One host is always crawled "
        "by one process.",
    )
    frontier: str = setting(
        "",
        DATABASE,
        "Keep the queue of URLs in an empty PostgreSQL database, not in crawl.db. The password belongs into ~/.pgpass "
        "or PGPASSWORD.",
    )
    slow_concurrency: int = setting(
        256,
        NUMBER,
        "Allow N more requests at once for slow ones, which received less than 16 kB in the last second. One host "
        "gets at most a quarter of them.",
        live=True,
    )
    max_urls: int = setting(0, NUMBER, "Stop after N URLs, not counting robots.txt. 0: no limit.", live=True)
    max_bytes: int = setting(0, SIZE, "Stop after receiving this many bytes. 0: no limit.", live=True)
    max_urls_per_host: int = setting(
        0,
        NUMBER,
        "Request at most N URLs per host, not counting robots.txt; the rest stays queued. 0: no limit.",
        live=True,
    )
    max_bytes_per_host: int = setting(
        0,
        SIZE,
        "Receive at most this many bytes per host; the rest stays queued. 0: no limit.",
        live=True,
    )
    max_time: float = setting(0.0, SECONDS_OR_NONE, "Stop after this long. 0: no limit.", live=True)
    min_free_disk: int = setting(
        10**9,
        SIZE,
        "Stop if less than this is free on the disk of the archive; archiver resume continues. 0: no limit.",
    )
    on_low_disk: str = setting(
        "stop",
        choice("stop", "pause"),
        "Below min-free-disk, stop the crawl, or pause it until there is room again or archiver go.",
        live=True,
    )
    offline_patience: float = setting(
        86_400.0,
        SECONDS_OR_NONE,
        "If the network is down, wait this long, then stop; archiver resume continues. 0: no limit.",
    )
    drain_timeout: float = setting(30.0, SECONDS, "When stopping, wait this long for requests in flight.", live=True)
    strict: bool = setting(
        False,
        BOOLEAN,
        "Exit with code 8 if the crawl is done but a seed or a page failed, a site refused us, or URLs are held.",
    )


@dataclass(frozen=True, slots=True)
class WarcSettings:
    """How to write the WARC files."""

    warc_prefix: str = setting("archiver", LABEL, "Start the names of WARC files with NAME.")
    warc_size: int = setting(10**9, SIZE, "Start a new WARC file when the current one reaches this size.")
    metadata_warc: bool = setting(
        True,
        BOOLEAN,
        "At the end of each run, store settings, seeds, crawl.log and reports in a separate WARC file.",
    )
    digest: str = setting("sha256", choice("sha256", "sha1"), "Use this algorithm for block and payload digests.")
    store: str = setting(
        "", STORE, "Copy finished WARC files to this store: s3://BUCKET/PREFIX, gs://…, az://… or file:///FOLDER."
    )
    warc_age: float = setting(
        600.0, SECONDS_OR_NONE, "With --store, finish a WARC file that is older than this. 0: when it is full."
    )
    keep_local: bool = setting(
        True,
        BOOLEAN,
        "With --store, keep WARC files here too. If not, they are deleted at the end of a run, once it has them.",
    )
    recording: bool = setting(
        False,
        BOOLEAN,
        "archiver record writes this collection: it holds what clients have asked for, and no queue.",
        option=False,
    )
    operator: str = setting("", TEXT, "Say who runs this crawl; stored in each warcinfo record.")
    description: str = setting("", TEXT, "Say what this crawl is for; stored in each warcinfo record.")


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """When to store a payload that is already stored."""

    dedup: str = setting(
        "on",
        choice("on", "off"),
        "If a payload is stored already, store a short revisit record that refers to it (on), or the payload "
        "again (off).",
    )
    dedup_min_size: int = setting(
        1024, SIZE, "Always store payloads smaller than this: a revisit record would save nothing."
    )
    dedup_from: tuple[str, ...] = setting(
        (),
        ARCHIVE,
        "Also treat payloads in this earlier crawl or CDXJ index as stored. Replay then needs both archives.",
        many=True,
    )


def _percent(given: Any) -> int:
    number = COUNT.read(given.removesuffix("%") if isinstance(given, str) else given)
    if number > 100:
        raise ValueError
    return int(number)


PERCENT = OptionType("PERCENT", "a whole number from 1 to 100, such as 20%", _percent)
BEHAVIOR = OptionType("FILE", "the path of a JavaScript file", CA_FILE.read)


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """Which archived pages to show in a browser, to fetch what their scripts ask for."""

    browser: str = setting(
        "off",
        choice("off", "auto", "all"),
        "Show archived pages in Chromium, which has no network, and fetch what their scripts ask for. auto: pages that "
        "need it, and a sample of the others; all: all pages.",
    )
    browser_share: int = setting(
        20, PERCENT, "Show pages for at most this percentage of the time while URLs are queued; the rest comes after."
    )
    browser_patience: float = setting(
        30.0,
        SECONDS,
        "Let a page wait this long for a URL that it asked for, and show it again when that is stored.",
    )
    browser_post: str = setting(
        "on",
        choice("on", "off"),
        "Also send the POST requests that pages in scope send to hosts in scope while they are shown (on), but no "
        "GraphQL mutation.",
    )
    browser_clicks: int = setting(
        0, NUMBER, 'Click a button such as "Load more" up to N times on each page that is shown.'
    )
    behavior: tuple[str, ...] = setting(
        (),
        BEHAVIOR,
        "Run this behavior on pages that are shown: a JavaScript file with a class in the form of browsertrix-crawler, "
        "or a flow in JSON from Chrome's recorder.",
        many=True,
    )
    browser_screenshots: str = setting(
        "off", choice("off", "on"), "Store a picture of each page that is shown, as urn:view:URL (JPEG)."
    )
    browser_tabs: int = setting(2, COUNT, "Show N pages at once.")


@dataclass(frozen=True, slots=True)
class Settings:
    """All slices and the seeds. Parts of the program get their slice only."""

    seeds: tuple[str, ...] = ()  # canonical URLs
    scope: ScopeSettings = ScopeSettings()  # noqa: RUF009 - frozen, as all slices
    traps: TrapSettings = TrapSettings()  # noqa: RUF009 - frozen, as all slices
    politeness: PolitenessSettings = PolitenessSettings()  # noqa: RUF009 - frozen, as all slices
    fetch: FetchSettings = FetchSettings()  # noqa: RUF009 - frozen, as all slices
    network: NetworkSettings = NetworkSettings()  # noqa: RUF009 - frozen, as all slices
    tls: TlsSettings = TlsSettings()  # noqa: RUF009 - frozen, as all slices
    limits: LimitSettings = LimitSettings()
    warc: WarcSettings = WarcSettings()
    dedup: DedupSettings = DedupSettings()
    browser: BrowserSettings = BrowserSettings()
    hooks: HookSettings = HookSettings()  # noqa: RUF009 - frozen, as all slices
    events: EventSettings = EventSettings()  # noqa: RUF009 - frozen, as all slices


TITLES = {
    "scope": "Scope",
    "traps": "Traps",
    "politeness": "Politeness",
    "fetch": "Fetch",
    "network": "Network",
    "tls": "TLS",
    "limits": "Limits",
    "warc": "WARC files",
    "dedup": "Deduplication",
    "browser": "Browser",
    "hooks": "Hooks",
    "events": "Events and logs",
}
SLICES = tuple(TITLES)


def every_setting() -> Iterator[tuple[str, Field[Any]]]:
    """Yield each setting with the name of its slice, in the order of help and documents."""
    defaults = Settings()
    for name in SLICES:
        for entry in fields(getattr(defaults, name)):
            yield name, entry


def all_values(settings: Settings) -> Iterator[tuple[str, str, Any]]:
    """Yield hosts ("": all), key and value of each setting: those of the crawl, then those of hosts and seeds."""
    for name, entry in every_setting():
        value = getattr(getattr(settings, name), entry.name)
        yield from (("", key_of(entry), each) for each in (value if entry.metadata["many"] else (value,)))
    yield from replaced_values(settings)


def all_values_of(settings: Settings, wanted: str) -> tuple[Any, ...]:
    """Return the values of the key *wanted*: those of the crawl, then those of hosts and seeds."""
    return tuple(value for _, key, value in all_values(settings) if key == wanted)


def replaced_values(settings: Settings) -> Iterator[tuple[str, str, Any]]:
    """Yield hosts, key and value of each setting that single hosts and seeds have."""
    for rule in settings.politeness.host:
        yield from ((rule.match, key, value) for key, value in rule.given)
    for own in settings.scope.seed:
        yield from ((url.host(own.url), key, value) for key, value in own.given)


def values_of(given: tuple[tuple[str, Any], ...], wanted: str) -> tuple[Any, ...]:
    """Return the values of the key *wanted* in what a rule or a seed has *given*."""
    return tuple(value for key, value in given if key == wanted)


def with_values(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """Return *settings* with the values of *given*, whose keys are names of fields and `seeds`."""
    slices = {
        name: replace(
            getattr(settings, name),
            **{entry.name: given[entry.name] for entry in fields(getattr(settings, name)) if entry.name in given},
        )
        for name in SLICES
    }
    return replace(settings, seeds=given.get("seeds", settings.seeds), **slices)


MOST_KNOWN = 20_000  # hosts whose settings are remembered


class SettingsByHost:
    """The settings of each host: those of the crawl, with what its seed and the rules for hosts replace."""

    def __init__(self, settings: Settings, answers: dict[str, HostRule | None] | None = None) -> None:
        """*answers*: what a hook gives to hosts, by origin. It grows while the crawl runs; None: there is no hook."""
        self.answers = answers
        self.take(settings)

    def take(self, settings: Settings) -> None:
        """Use *settings* from now on."""
        self.common = settings
        self._rules = [(f"host[{n}] {rule.match}", rule) for n, rule in enumerate(settings.politeness.host)]
        self._seeds: dict[str, tuple[str, HostRule]] = {}  # by host
        for number, one in enumerate(settings.scope.seed):
            if given := one.for_host:
                origin = url.origin(one.url)
                self._seeds.setdefault(origin, (f"seed[{number}] {one.url}", HostRule(origin, given)))
        self.any = bool(self._rules or self._seeds) or self.answers is not None  # some hosts may have their own
        self._answered = 0  # hosts in `answers` when hosts were looked up last
        self._shared: dict[tuple[str, ...], Settings] = {}  # by the names of the rules that apply
        self._known: dict[str, Settings] = {}  # by host; set last, for other threads look here first

    def of(self, origin: str) -> Settings:
        """Return the settings of the host *origin* (scheme and authority)."""
        if not self.any:
            return self.common
        if self.answers is not None and len(self.answers) != self._answered:
            self._answered, self._known = len(self.answers), {}
        known = self._known
        found = known.get(origin)
        if found is None:
            rules = self._applying(origin)
            names = tuple(name for name, _ in rules)
            found = self._shared.get(names)
            if found is None:
                given = {key.replace("-", "_"): value for key, (_, value) in decisive(rules).items()}
                found = self._shared.setdefault(names, with_values(self.common, given))
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[origin] = found
        return found

    def rules(self, origin: str) -> dict[str, str]:
        """Return the name of the rule that decides each setting of the host *origin* that a rule replaces."""
        return {key: name for key, (name, _) in decisive(self._applying(origin)).items()}

    def _applying(self, origin: str) -> list[tuple[str, HostRule]]:
        own = [self._seeds[origin]] if origin in self._seeds else []
        if self.answers and (answer := self.answers.get(origin)) is not None:
            words = str(answer).removeprefix(answer.match)
            own.insert(0, (f"hook settings:{words}", answer))  # hosts with the same answer share it
        return [*own, *((name, rule) for name, rule in self._rules if rule.covers(origin))]


def key_of(entry: Field[Any]) -> str:
    """Return the key in crawl.toml, which is also the option without dashes: `max-depth`."""
    return entry.name.replace("_", "-")
