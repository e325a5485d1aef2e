"""The settings: frozen slices, each for one part of the program, every field with its own help text.

Pure. A field's help is what `--help`, `docs/settings.md` and an error about the key say. The command line, the
keys of crawl.toml and the documents are all made from this one list, so they cannot disagree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from archiver.config.values import (
    BOOLEAN,
    COUNT,
    HEADER,
    LABEL,
    NUMBER,
    NUMBER_OR_NONE,
    PATTERN,
    RATE,
    SECONDS,
    SECONDS_OR_NONE,
    SIZE,
    TEXT,
    Kind,
    Rate,
    choice,
)


def setting(default: Any, kind: Kind, help_text: str, *, many: bool = False) -> Any:
    """A field of a slice: its default, kind and help; *many*: given any number of times, kept as a tuple."""
    return field(default=default, metadata={"kind": kind, "help": help_text, "many": many})


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """What belongs to the archive."""

    scope: str = setting(
        "host",
        choice("host", "domain", "prefix", "page"),
        "How far to go from each seed: its host (www. and http/https count as one), its registered domain, "
        "the URLs below its path, or only the page itself.",
    )
    include: tuple[str, ...] = setting(
        (), PATTERN, "Take also URLs in which this regular expression is found, whatever their host.", many=True
    )
    exclude: tuple[str, ...] = setting(
        (), PATTERN, "Refuse URLs in which this regular expression is found. Goes before every other rule.", many=True
    )
    max_depth: int | None = setting(
        None, NUMBER_OR_NONE, "Follow at most N links from a seed; 0 takes the seeds alone, none has no limit."
    )
    page_requisites: bool = setting(
        True, BOOLEAN, "Take what a page needs to be shown (images, styles, scripts, frames), off-host too."
    )
    max_redirects: int = setting(10, NUMBER, "Follow at most N redirects in a row.")


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How gently each host is asked."""

    rate: Rate = setting(
        Rate(5), RATE, "Start at most N requests per second (or per SECONDS) on one host. 0: no limit."
    )
    host_concurrency: int = setting(2, COUNT, "At most N requests at once on one host.")
    robots: str = setting("obey", choice("obey", "ignore"), "What to do about robots.txt.")


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How a request is made."""

    user_agent: str = setting(
        "", TEXT, "The User-Agent header, whole. Empty: archiver's name and version, and your contact."
    )
    contact: str = setting(
        "", TEXT, "A URL or mail address by which a site's owner can reach you; sent in User-Agent and From."
    )
    header: tuple[str, ...] = setting((), HEADER, "Send this header with each request.", many=True)
    timeout: float = setting(60.0, SECONDS, "Give a request up when nothing came for this long.")
    max_response_size: int = setting(
        0, SIZE, "Cut a response after this many bytes and mark it as truncated. 0: no limit."
    )
    retries: int = setting(3, NUMBER, "Try a URL N more times when no answer came or the server is overloaded.")


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """When the whole crawl ends early."""

    concurrency: int = setting(32, COUNT, "At most N requests at once, over all hosts.")
    max_urls: int = setting(0, NUMBER, "Stop after N URLs, robots.txt aside. 0: no limit.")
    max_bytes: int = setting(0, SIZE, "Stop after this many bytes were received. 0: no limit.")
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


@dataclass(frozen=True, slots=True)
class WarcSettings:
    """How the archive is written."""

    warc_prefix: str = setting("archiver", LABEL, "WARC file names begin with this.")
    warc_size: int = setting(10**9, SIZE, "Begin a new WARC file when one has reached this size.")
    digest: str = setting("sha256", choice("sha256", "sha1"), "The algorithm of block and payload digests.")
    operator: str = setting("", TEXT, "Who runs this crawl; stands in each warcinfo record.")
    description: str = setting("", TEXT, "What this crawl is for; stands in each warcinfo record.")


@dataclass(frozen=True, slots=True)
class Settings:
    """All slices together, and the seeds. Parts of the program are given their slice, never this."""

    seeds: tuple[str, ...] = ()  # canonical URLs
    scope: ScopeSettings = ScopeSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    fetch: FetchSettings = FetchSettings()
    limits: LimitSettings = LimitSettings()
    warc: WarcSettings = WarcSettings()


TITLES = {"scope": "Scope", "politeness": "Politeness", "fetch": "Fetch", "limits": "Limits", "warc": "WARC files"}
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
