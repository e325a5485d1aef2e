"""The settings of what a crawl takes: the scope, and what goes on without end; and how a setting is written down."""

from dataclasses import dataclass, field
from typing import Any

from archiver.config.option_types import (
    BOOLEAN,
    COUNT,
    ENDINGS,
    NUMBER,
    NUMBER_OR_NONE,
    PARAMETERS,
    PATTERN,
    REACH,
    SETS,
    SURT,
    OptionType,
    choice,
)
from archiver.config.seeds import SEED_SETTING, SeedSetting


def setting(default: Any, kind: OptionType, help_text: str, *, many: bool = False) -> Any:
    """A field of a slice: its default, kind and help; *many*: given any number of times, kept as a tuple."""
    return field(default=default, metadata={"kind": kind, "help": help_text, "many": many})


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """Which URLs belong to the archive."""

    scope: str = setting(
        "host",
        REACH,
        "How far to go from each seed: its host (www. and http/https count as one), its registered domain, "
        "the URLs below its path, only the page itself, or anywhere; set other limits with the last.",
    )
    scope_surt: tuple[str, ...] = setting(
        (),
        SURT,
        "Take also URLs that begin so when their host is turned round: http://(org,example, is all of example.org; "
        "a URL stands for what begins with it, a host for itself and all below it.",
        many=True,
    )
    seed_setting: tuple[SeedSetting, ...] = setting(
        (),
        SEED_SETTING,
        "For this seed alone: how far to go (scope, max-depth, max-hops) in place of what the crawl's settings say, "
        "and what to take or refuse (include, exclude) besides them. In a list of seeds the same stands behind a URL.",
        many=True,
    )
    include: tuple[str, ...] = setting(
        (), PATTERN, "Take also URLs in which this regular expression is found, whatever their host.", many=True
    )
    exclude: tuple[str, ...] = setting(
        (), PATTERN, "Refuse URLs in which this regular expression is found. Goes before every other rule.", many=True
    )
    exclude_ext: tuple[str, ...] = setting((), ENDINGS, "Refuse URLs whose path ends so (zip,iso).", many=True)
    without: tuple[str, ...] = setting(
        (), SETS, "Leave out what these ready-made lists match; see docs/reference/exclude-lists.md.", many=True
    )
    max_depth: int | None = setting(
        None, NUMBER_OR_NONE, "Follow at most N links from a seed; 0 takes the seeds alone, none has no limit."
    )
    max_hops: int | None = setting(
        None,
        NUMBER_OR_NONE,
        "Go at most N hops of any kind from a seed: links, requisites, redirects, sitemaps; none has no limit.",
    )
    page_requisites: bool = setting(
        True, BOOLEAN, "Take what a page needs to be shown (images, styles, scripts, frames), off-host too."
    )
    requisite_hops: int = setting(
        2, NUMBER, "Take what a page needs at most N hops outside of the scope: a foreign style sheet, and its fonts."
    )
    extra_hops: int = setting(
        0, NUMBER, "Take pages outside of the scope that its pages link to, at most N links far, with what they need."
    )
    speculative: str = setting(
        "site",
        choice("site", "any", "off"),
        "Whether to ask for what only a script names (strings that are surely files or pages, markup in strings, "
        "imports, what loaders put together): on the hosts of the site, anywhere, or not. "
        "See docs/explanation/extraction.md.",
    )
    source_maps: bool = setting(
        False,
        BOOLEAN,
        "Ask also for the source maps that scripts name; only developers use them, and few sites have any.",
    )
    speculative_per_page: int = setting(
        100, NUMBER, "Give up what only one page or script names after N of it were not there. 0: no limit."
    )
    speculative_per_host: int = setting(
        2000, NUMBER, "Give up what only scripts name on one host after N of it were not there. 0: no limit."
    )
    probe: str = setting(
        "on",
        choice("on", "off"),
        "Ask each site once for /sitemap.xml, /sitemap_index.xml and /favicon.ico, where nothing names one.",
    )
    max_redirects: int = setting(10, NUMBER, "Follow at most N redirects in a row.")
    redirects: str = setting(
        "follow",
        choice("follow", "seeds", "stop"),
        "What a redirect of a page out of the scope means: it is followed, one page far; only that of a seed is, and "
        "where it leads counts as a seed too; or none is.",
    )
    query: str = setting(
        "keep",
        choice("keep", "sort"),
        "Whether links are asked for with the parameters of their query in the order given, or sorted.",
    )
    drop_query: tuple[str, ...] = setting(
        ("sessions",),
        PARAMETERS,
        "Drop these query parameters (utm_*), or those of a preset, from links. none: drop nothing. "
        "docs/reference/exclude-lists.md has the presets.",
        many=True,
    )


@dataclass(frozen=True, slots=True)
class TrapSettings:
    """How to recognize endless parts of a site, and what to do about them."""

    traps: str = setting("on", choice("on", "off"), "Fetch last what looks endless, and hold it after a while.")
    trap_budget: int = setting(
        1100,
        NUMBER,
        "Hold what looks endless after N pages of a site that showed nothing new, or a fifth of its real pages if that "
        "is more; archiver retry --held fetches it then. 0: no limit.",
    )
    barren_pages: int = setting(8, NUMBER, "Fetch a pattern of URLs last when N of its pages in a row brought nothing.")
    max_repeats: int = setting(
        3, COUNT, "Fetch pages last whose URL has a path segment or query pair more than N times."
    )
    max_segments: int = setting(25, COUNT, "Fetch pages last whose path has more than N segments.")
    max_url_length: int = setting(2000, COUNT, "Fetch pages last with more than N characters in the URL.")
    max_years_ahead: int = setting(2, NUMBER, "Fetch pages last whose URL names a day more than N years ahead.")
    pattern_budget: int = setting(0, NUMBER, "Hold a pattern of URLs (/thread/N) after N of its pages. 0: no limit.")
    directory_budget: int = setting(0, NUMBER, "Hold URLs below a first directory after N of its pages. 0: no limit.")
