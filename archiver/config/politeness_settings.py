"""The settings of politeness: how often each host is asked, and which hosts are not asked at all."""

from dataclasses import dataclass
from typing import Any

from archiver.config.auth import host_pattern
from archiver.config.host_rules import HOST_RULE, HostRule
from archiver.config.option_types import (
    COUNT,
    NOFOLLOW,
    RATE,
    RATE_OR_SAME,
    ROBOTS,
    SECONDS_OR_NONE,
    SIZE,
    OptionType,
    Rate,
    choice,
)
from archiver.config.scope_settings import setting


def _hosts(given: Any) -> str:
    pattern = host_pattern(given) if isinstance(given, str) else ""
    if not pattern:
        raise ValueError
    return pattern


HOSTS = OptionType("HOSTS", "a host name (*.example.org) or an origin (https://example.org:8443)", _hosts)


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """How often to send requests to each host."""

    rate: Rate = setting(
        Rate(5),
        RATE,
        "Start at most N requests per second (or per SECONDS) on one host. 0: no limit.",
        live=True,
    )
    host_concurrency: int = setting(2, COUNT, "Send at most N requests at once to one host.", live=True)
    host: tuple[HostRule, ...] = setting(
        (),
        HOST_RULE,
        "Use other settings for hosts that match: rate, robots, user-agent, header, timeout and more. "
        "For each setting the first match that has it applies.",
        many=True,
        live=True,
    )
    block: tuple[str, ...] = setting(
        (),
        HOSTS,
        "Send no request to this host, or to those that match (*.example.org); its URLs wait until archiver unblock.",
        many=True,
        live=True,
    )
    politeness_group: str = setting(
        "host",
        choice("host", "ip", "domain"),
        "Apply rate and host-concurrency to each host, to all hosts at one IP address, or to all hosts of one "
        "registered domain.",
    )
    third_party_rate: Rate | None = setting(
        None,
        RATE_OR_SAME,
        "Limit hosts without a seed together if they share an IP address or registered domain: N requests per "
        "second (or per SECONDS). same: as --rate; 0: each host alone.",
        live=True,
    )
    global_rate: Rate = setting(
        Rate(0),
        RATE,
        "Start at most N requests per second (or per SECONDS) on all hosts together. 0: no limit.",
        live=True,
    )
    bandwidth: int = setting(
        0,
        SIZE,
        "Receive at most this many bytes per second on average, by delaying requests. 0: no limit.",
        live=True,
    )
    host_bandwidth: int = setting(
        0,
        SIZE,
        "Receive at most this many bytes per second from each host on average, by slow reading and delayed requests. "
        "0: no limit.",
        live=True,
    )
    host_patience: float = setting(
        3600.0,
        SECONDS_OR_NONE,
        "Give up a host and its queued URLs if it has not answered for this long while other hosts did. 0: no limit.",
    )
    robots: str = setting(
        "obey",
        ROBOTS,
        "Obey robots.txt; do not request it (ignore); or crawl everything and log what it forbids (observe, which "
        "still obeys Crawl-delay).",
    )
    robots_patience: float = setting(
        300.0,
        SECONDS_OR_NONE,
        "Retry a robots.txt that answers with a server error for this long, then skip the host. Until then no "
        "other request goes to the host. 0: no limit.",
    )
    crawl_delay_cap: float = setting(
        300.0, SECONDS_OR_NONE, "Obey Crawl-delay in robots.txt, but wait no longer than this. 0: no limit."
    )
    nofollow: str = setting(
        "ignore",
        NOFOLLOW,
        "Obey or ignore nofollow on links to pages: in robots meta elements, X-Robots-Tag headers and the rel of "
        "a link.",
    )
