"""The settings of scope and crawler traps, and the function that declares a setting."""

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


def setting(
    default: Any, kind: OptionType, help_text: str, *, many: bool = False, option: bool = True, live: bool = False
) -> Any:
    """Declare a field of a slice.

    *many*: the option is repeatable, the value a tuple. *option*: there is an option. *live*: `archiver set`
    changes it while the crawl runs.
    """
    given = {"kind": kind, "help": help_text, "many": many, "option": option, "live": live}
    return field(default=default, metadata=given)


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """Which URLs belong to the archive."""

    scope: str = setting(
        "host",
        REACH,
        "Take pages of each seed's host (www. and http/https count as one), its registered domain, the path below "
        "it (prefix), only the seed (page), or any site (any).",
        live=True,
    )
    scope_surt: tuple[str, ...] = setting(
        (),
        SURT,
        "Also take URLs with this SURT prefix: http://(org,example, is all of example.org. You can give a URL or "
        "a host instead; a host includes its subdomains.",
        many=True,
        live=True,
    )
    seed: tuple[SeedSetting, ...] = setting(
        (),
        SEED_SETTING,
        "A seed with settings of its own: scope, max-depth and max-hops replace those of the crawl; include and "
        "exclude add to them. Settings of hosts apply to the host of the seed, before those of [[host]]. title, note "
        "and collection describe the seed in reports and packages. In a list of seeds, write them after the URL.",
        many=True,
        option=False,
    )
    include: tuple[str, ...] = setting(
        (),
        PATTERN,
        "Also take URLs that match this regular expression, on any host.",
        many=True,
        live=True,
    )
    exclude: tuple[str, ...] = setting(
        (),
        PATTERN,
        "Refuse URLs that match this regular expression. Overrides every other rule.",
        many=True,
        live=True,
    )
    exclude_ext: tuple[str, ...] = setting(
        (),
        ENDINGS,
        "Refuse URLs whose path ends with these extensions (zip,iso).",
        many=True,
        live=True,
    )
    without: tuple[str, ...] = setting(
        (),
        SETS,
        "Leave out URLs on these ready-made lists; see docs/reference/exclude-lists.md.",
        many=True,
        live=True,
    )
    max_depth: int | None = setting(
        None,
        NUMBER_OR_NONE,
        "Follow at most N links from a seed. 0: only the seeds; none: no limit.",
        live=True,
    )
    max_hops: int | None = setting(
        None,
        NUMBER_OR_NONE,
        "Follow at most N hops of any kind from a seed: links, requisites, redirects, sitemaps. none: no limit.",
        live=True,
    )
    page_requisites: bool = setting(
        True,
        BOOLEAN,
        "Fetch what pages need to be shown (images, styles, scripts, frames), from other hosts too.",
        live=True,
    )
    requisite_hops: int = setting(
        2,
        NUMBER,
        "Follow page requisites up to N hops out of scope: a style sheet on another host is one hop, its fonts "
        "are two.",
        live=True,
    )
    extra_hops: int = setting(
        0, NUMBER, "Also take pages up to N links out of scope, with their requisites.", live=True
    )
    speculative: str = setting(
        "site",
        choice("site", "any", "off"),
        "Request speculative URLs (only scripts name them, and some may not exist): on hosts of the site, on any "
        "host, or never (off). See docs/explanation/extraction.md.",
    )
    source_maps: bool = setting(
        False,
        BOOLEAN,
        "Also fetch the source maps of scripts. Only developers use them, and few sites have any.",
    )
    speculative_per_page: int = setting(
        100, NUMBER, "Give up speculative URLs of one page or script after N of them did not exist. 0: no limit."
    )
    speculative_per_host: int = setting(
        2000, NUMBER, "Give up speculative URLs of one host after N of them did not exist. 0: no limit."
    )
    probe: str = setting(
        "on",
        choice("on", "off"),
        "Request /sitemap.xml, /sitemap_index.xml and /favicon.ico of each site once, and sitemap.xml in the folder of "
        "a seed, unless the site names its own.",
    )
    max_redirects: int = setting(10, NUMBER, "Follow at most N redirects in a row.")
    redirects: str = setting(
        "follow",
        choice("follow", "seeds", "stop"),
        "If a page redirects out of scope: archive that one page (follow); take the new place as a seed if the "
        "page is a seed, else stop (seeds); or always stop (stop).",
    )
    query: str = setting(
        "keep",
        choice("keep", "sort"),
        "Keep the order of query parameters in links (keep), or sort them by name (sort).",
    )
    drop_query: tuple[str, ...] = setting(
        ("sessions",),
        PARAMETERS,
        "Drop these query parameters (utm_*), or those of a preset, from links. none: drop nothing. Presets: "
        "docs/reference/exclude-lists.md.",
        many=True,
    )


@dataclass(frozen=True, slots=True)
class TrapSettings:
    """How to recognize endless parts of a site, and what to do about them."""

    traps: str = setting(
        "on", choice("on", "off"), "Fetch URLs that look like a crawler trap last, and hold them after a while."
    )
    trap_budget: int = setting(
        1100,
        NUMBER,
        "Hold suspected traps of a site after N pages without new content, or a fifth of its real pages if that "
        "is more. Fetch them with archiver retry --held. 0: no limit.",
        live=True,
    )
    barren_pages: int = setting(
        8, NUMBER, "Fetch a URL pattern last after N of its pages in a row had no new content.", live=True
    )
    max_repeats: int = setting(
        3,
        COUNT,
        "Fetch pages last if their URL has a path segment or query pair more than N times.",
        live=True,
    )
    max_segments: int = setting(25, COUNT, "Fetch pages last if their path has more than N segments.", live=True)
    max_url_length: int = setting(2000, COUNT, "Fetch pages last if their URL has more than N characters.", live=True)
    max_years_ahead: int = setting(
        2, NUMBER, "Fetch pages last if their URL contains a date more than N years ahead.", live=True
    )
    pattern_budget: int = setting(
        0, NUMBER, "Hold a URL pattern (/thread/N) after N of its pages. 0: no limit.", live=True
    )
    directory_budget: int = setting(
        0,
        NUMBER,
        "Hold URLs below a top-level directory after N of its pages. 0: no limit.",
        live=True,
    )
