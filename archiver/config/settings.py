"""The settings: frozen slices, each for one part of the program, every field with its own help text.

Pure. `--help`, docs/reference/settings.md and errors about a key show the help of its field. The command line, the keys
of crawl.toml and the documents are all made from this one list, so they cannot disagree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from archiver.config.option_types import (
    ARCHIVE,
    BOOLEAN,
    COUNT,
    HEADER,
    HOST_LIMIT,
    LABEL,
    MEDIA_TYPE,
    NUMBER,
    PLACE,
    RATE,
    RATE_OR_SAME,
    SECONDS,
    SECONDS_OR_NONE,
    SIZE,
    TEXT,
    HostLimit,
    Rate,
    choice,
)
from archiver.config.scope_settings import ScopeSettings, TrapSettings, setting


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How often to send requests to each host."""

    rate: Rate = setting(
        Rate(5), RATE, "Start at most N requests per second (or per SECONDS) on one host. 0: no limit."
    )
    host_concurrency: int = setting(2, COUNT, "At most N requests at once on one host.")
    host_limit: tuple[HostLimit, ...] = setting(
        (),
        HOST_LIMIT,
        "On hosts whose name is like this (*.example.org) keep to this rate, and to this many requests at once if "
        "given, in place of rate and host-concurrency. The first that fits holds.",
        many=True,
    )
    polite_by: str = setting(
        "host",
        choice("host", "ip", "domain"),
        "For whom rate and concurrency hold: each host, all hosts at one address, or all of one registered domain.",
    )
    third_party_rate: Rate | None = setting(
        None,
        RATE_OR_SAME,
        "On hosts that are no seed's, start at most N requests per second (or per SECONDS) on all together that have "
        "one address, or one registered domain; they share host-concurrency too. same: as --rate. 0: do not share.",
    )
    global_rate: Rate = setting(
        Rate(0), RATE, "Start at most N requests per second (or per SECONDS) over all hosts. 0: no limit."
    )
    bandwidth: int = setting(
        0, SIZE, "Receive at most this many bytes per second on the average, by starting requests later. 0: no limit."
    )
    host_patience: float = setting(
        3600.0,
        SECONDS_OR_NONE,
        "Give a host up, with all that waits on it, when it does not answer for so long while others do. 0: no limit.",
    )
    robots: str = setting(
        "obey",
        choice("obey", "ignore", "observe"),
        "What to do about robots.txt: keep to it, not ask for it, or crawl everything and note in crawl.log and with "
        "the URL what it would have forbidden (Crawl-delay is kept).",
    )
    robots_patience: float = setting(
        300.0,
        SECONDS_OR_NONE,
        "Ask again for a robots.txt that is answered with an error of the server until the pauses between come to "
        "this; nothing else is asked of its host meanwhile, nor after it. 0: no limit.",
    )
    crawl_delay_cap: float = setting(
        300.0, SECONDS_OR_NONE, "Keep to a Crawl-delay in robots.txt, but to no longer one than this. 0: no limit."
    )
    nofollow: str = setting(
        "ignore",
        choice("obey", "ignore"),
        "What to do about nofollow in robots meta elements, X-Robots-Tag headers and the rel of links: not follow such "
        "links to pages, or all the same.",
    )


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How to send requests and read responses."""

    user_agent: str = setting(
        "", TEXT, "The User-Agent header, whole. Empty: archiver's name and version, and your contact."
    )
    contact: str = setting(
        "", TEXT, "A URL or mail address by which a site's owner can reach you; sent in User-Agent and From."
    )
    header: tuple[str, ...] = setting(
        (),
        HEADER,
        "Send this header with each request; one that may be a secret (Cookie, Authorization, X-Api-Key) to the hosts "
        "of the seeds alone.",
        many=True,
    )
    insecure_secrets: tuple[str, ...] = setting(
        (),
        PLACE,
        "Send headers that may be a secret also to this host of a seed while its certificate does not verify.",
        many=True,
    )
    timeout: float = setting(60.0, SECONDS, "Give a request up when nothing came for this long.")
    max_response_size: int = setting(
        0, SIZE, "Cut a response after this many bytes and mark it as truncated. 0: no limit."
    )
    max_unstated_size: int = setting(
        10**9,
        SIZE,
        "Cut a body whose length the server does not state after this many bytes, or earlier if the disk has no room, "
        "and mark it as truncated; it is not asked for again. 0: no limit but the disk.",
    )
    exclude_type: tuple[str, ...] = setting(
        (),
        MEDIA_TYPE,
        "Do not read the body of an answer of this media type (video/*): its head is stored, and what came with it. "
        "Goes before include-type.",
        many=True,
    )
    include_type: tuple[str, ...] = setting(
        (),
        MEDIA_TYPE,
        "Read no bodies but those of this media type; give text/html too where links are to be followed. "
        "An answer that names no type is read.",
        many=True,
    )
    allow_private: tuple[str, ...] = setting(
        (),
        PLACE,
        "Ask also this host, address or network (10.0.0.0/8) although it is not on the public web. "
        "A seed that is written as an address needs no such word.",
        many=True,
    )
    conditional: bool = setting(
        True,
        BOOLEAN,
        "Where an earlier crawl of the same collection has a URL with an ETag or a Last-Modified, ask only for what "
        "has changed since.",
    )
    retries: int = setting(3, NUMBER, "Try a URL N more times when no answer came or the server is overloaded.")


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """When to stop, and how many requests to make at once."""

    concurrency: int = setting(32, COUNT, "At most N requests at once, over all hosts.")
    slow_concurrency: int = setting(
        256,
        NUMBER,
        "Besides these, make at most N slow requests at once: for a second nothing came, or less than 16 kB. "
        "One host has at most a quarter of them.",
    )
    max_urls: int = setting(0, NUMBER, "Stop after N URLs, robots.txt aside. 0: no limit.")
    max_bytes: int = setting(0, SIZE, "Stop after this many bytes were received. 0: no limit.")
    max_urls_per_host: int = setting(
        0, NUMBER, "Ask no host for more than N URLs, robots.txt aside; what is left waits. 0: no limit."
    )
    max_bytes_per_host: int = setting(
        0, SIZE, "Ask a host for nothing more when this many bytes were received from it; the rest waits. 0: no limit."
    )
    max_time: float = setting(0.0, SECONDS_OR_NONE, "Stop after this long. 0: no limit.")
    min_free_disk: int = setting(
        10**9, SIZE, "Stop when less than this is free on the disk of the archive; resume goes on. 0: no limit."
    )
    offline_patience: float = setting(
        86_400.0,
        SECONDS_OR_NONE,
        "While no host answers because the network is lost, wait this long, then stop; resume goes on. 0: no limit.",
    )
    drain_timeout: float = setting(30.0, SECONDS, "When stopped, wait this long for requests in flight.")
    strict: bool = setting(
        False,
        BOOLEAN,
        "End with exit code 8 if the crawl is done but a seed or a page failed, a site refused us, or URLs are held.",
    )


@dataclass(frozen=True, slots=True)
class WarcSettings:
    """How to write the WARC files."""

    warc_prefix: str = setting("archiver", LABEL, "WARC file names begin with this.")
    warc_size: int = setting(10**9, SIZE, "Begin a new WARC file when one has reached this size.")
    metadata_warc: bool = setting(
        True,
        BOOLEAN,
        "At the end of each run, store settings, seeds, crawl.log and reports in a WARC file of their own.",
    )
    digest: str = setting("sha256", choice("sha256", "sha1"), "The algorithm of block and payload digests.")
    operator: str = setting("", TEXT, "Who runs this crawl; stands in each warcinfo record.")
    description: str = setting("", TEXT, "What this crawl is for; stands in each warcinfo record.")


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """When to store a payload that is already stored."""

    dedup: str = setting(
        "on",
        choice("on", "off"),
        "Whether a payload that is stored already is stored once more, or a short revisit record names where it is.",
    )
    dedup_min_size: int = setting(
        1024, SIZE, "Store payloads of fewer bytes as they are: a revisit record would save nothing."
    )
    dedup_from: tuple[str, ...] = setting(
        (),
        ARCHIVE,
        "Count as stored what this earlier crawl holds too, or what this CDXJ index lists; replay needs both archives.",
        many=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All slices together, and the seeds. Parts of the program are given their slice, never this."""

    seeds: tuple[str, ...] = ()  # canonical URLs
    scope: ScopeSettings = ScopeSettings()  # noqa: RUF009 - frozen, as all slices
    traps: TrapSettings = TrapSettings()  # noqa: RUF009
    politeness: PolitenessSettings = PolitenessSettings()
    fetch: FetchSettings = FetchSettings()
    limits: LimitSettings = LimitSettings()
    warc: WarcSettings = WarcSettings()
    dedup: DedupSettings = DedupSettings()


TITLES = {
    "scope": "Scope",
    "traps": "Traps",
    "politeness": "Politeness",
    "fetch": "Fetch",
    "limits": "Limits",
    "warc": "WARC files",
    "dedup": "Deduplication",
}
SLICES = tuple(TITLES)


def every_setting() -> Iterator[tuple[str, Field[Any]]]:
    """Each setting with the name of its slice, in the order of help and documents."""
    defaults = Settings()
    for name in SLICES:
        for entry in fields(getattr(defaults, name)):
            yield name, entry


def with_values(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """*settings*, with the values in *given*, which is keyed as `every_setting` names the fields, and `seeds`."""
    slices = {
        name: replace(
            getattr(settings, name),
            **{entry.name: given[entry.name] for entry in fields(getattr(settings, name)) if entry.name in given},
        )
        for name in SLICES
    }
    return replace(settings, seeds=given.get("seeds", settings.seeds), **slices)


def key_of(entry: Field[Any]) -> str:
    """The key in crawl.toml, and with two dashes the option: `max-depth`."""
    return entry.name.replace("_", "-")
