"""Every setting that is marked as live: a crawl that runs obeys a new value, and then the old one again."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archiver.config.live_settings import LIVE
from archiver.config.option_types import Rate
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.crawl.build import open_crawl
from archiver.crawl.engine import Crawl
from archiver.crawl.orders.live_settings import LiveSettings
from archiver.frontier.orders.table import Order, Verb
from archiver.frontier.port import HostRow
from archiver.model import Claim, Hop, Link, NewUrl
from archiver.policy.limits import GroupLimits, RateLimiter
from archiver.policy.traps import Traps

SEED = "http://h.example/"
OTHER = "http://other.example/"
PAGE = Claim(1, SEED, 1, Hop.LINK, "", 0, 0, 0, seed=SEED)
YEAR = 2026

Probe = Callable[[Crawl], Any]


def live_settings(crawl: Crawl) -> LiveSettings:
    return crawl._changes._orders._live


def limits(key: str) -> Callable[[Crawl], GroupLimits]:
    def probe(crawl: Crawl) -> GroupLimits:
        coming = live_settings(crawl)._parts.groups.limits([HostRow(1, key, 0.0, None)])
        try:
            coming.send(None)  # which waits for nothing, because the domains are known
        except StopIteration as done:
            found: list[GroupLimits] = done.value
            return found[0]
        raise AssertionError

    return probe


def taken(address: str, hop: Hop = Hop.LINK, context: str = "") -> Callable[[Crawl], bool]:
    def probe(crawl: Crawl) -> bool:
        scope = live_settings(crawl)._parts.rules.visit_rules.scope
        return isinstance(scope.judge(Link(address, hop, context), PAGE), NewUrl)

    return probe


def traps_of(crawl: Crawl) -> Traps:
    traps = live_settings(crawl)._parts.rules.visit_rules.traps
    assert traps is not None
    return traps


def odd(address: str) -> Callable[[Crawl], bool]:
    def probe(crawl: Crawl) -> bool:
        return bool(traps_of(crawl).judge(address, Hop.LINK, "", YEAR).level)

    return probe


def of_traps(name: str) -> Callable[[Crawl], Any]:
    return lambda crawl: getattr(traps_of(crawl)._settings, name)


def of_engine(name: str) -> Callable[[Crawl], Any]:
    return lambda crawl: getattr(crawl._settings.common.limits, name)


def quota(crawl: Crawl) -> tuple[str, str]:
    found = crawl._dispatcher._quotas.of("http://h.example")
    return found.reached(7, 7), found.block


def gap(crawl: Crawl) -> float:
    starts = crawl._schedule.starts
    assert isinstance(starts, RateLimiter)
    return starts.gap


CASES: dict[str, tuple[str, Probe, Any]] = {
    "rate": ("1/10", lambda crawl: limits("http://h.example")(crawl).rate, Rate(1, 10)),
    "host-concurrency": ("7", lambda crawl: limits("http://h.example")(crawl).concurrency, 7),
    "host-bandwidth": ("7k", lambda crawl: limits("http://h.example")(crawl).bandwidth, 7000),
    "third-party-rate": ("0", lambda crawl: limits("http://third.example")(crawl).group, ""),
    "host": ("h.example rate=3", lambda crawl: limits("http://h.example")(crawl).rate, Rate(3)),
    "block": ("*.example", quota, ("", "*.example")),
    "global-rate": ("1/8", lambda crawl: gap(crawl) >= 8, True),
    "bandwidth": ("5k", lambda crawl: crawl._schedule._bandwidth, 5000),
    "concurrency": ("3", lambda crawl: crawl._requests.full(3, 0), True),
    "slow-concurrency": ("3", lambda crawl: crawl._requests._most_slow, 3),
    "max-urls": ("3", lambda crawl: crawl._budget._most, 3),
    "max-urls-per-host": ("3", quota, ("max-urls-per-host: 3", "")),
    "max-bytes-per-host": ("3", quota, ("max-bytes-per-host: 3", "")),
    "max-bytes": ("3", of_engine("max_bytes"), 3),
    "max-time": ("3", lambda crawl: crawl._time_limit() - crawl._began, 3),
    "on-low-disk": ("pause", of_engine("on_low_disk"), "pause"),
    "drain-timeout": ("3", of_engine("drain_timeout"), 3),
    "scope": ("any", taken(OTHER), True),
    "scope-surt": ("other.example", taken(OTHER), True),
    "include": ("other", taken(OTHER), True),
    "exclude": ("/x", taken(f"{SEED}x"), False),
    "exclude-ext": ("zip", taken(f"{SEED}a.zip"), False),
    "without": ("trackers", taken("http://ad.doubleclick.net/x.js", Hop.REQUISITE), False),
    "max-depth": ("0", taken(f"{SEED}x"), False),
    "max-hops": ("0", taken(f"{SEED}x"), False),
    "page-requisites": ("false", taken(f"{SEED}x.css", Hop.REQUISITE), False),
    "requisite-hops": ("0", taken(f"{OTHER}x.css", Hop.REQUISITE), False),
    "extra-hops": ("1", taken(OTHER), True),
    "max-repeats": ("1", odd(f"{SEED}aa/aa/b"), True),
    "max-segments": ("2", odd(f"{SEED}a/b/c"), True),
    "max-url-length": ("20", odd(f"{SEED}{'a' * 20}"), True),
    "max-years-ahead": ("0", odd(f"{SEED}calendar/2028/01/"), True),
    "trap-budget": ("7", of_traps("trap_budget"), 7),
    "barren-pages": ("7", of_traps("barren_pages"), 7),
    "pattern-budget": ("7", of_traps("pattern_budget"), 7),
    "directory-budget": ("7", of_traps("directory_budget"), 7),
    "retries": ("7", lambda crawl: live_settings(crawl)._parts.rules.visit_rules.of_host(SEED).retries, 7),
    "timeout": ("7", lambda crawl: live_settings(crawl)._parts.sent.of("http://h.example").fetch.timeout, 7),
}


def text(key: str, value: Any, *, many: bool) -> str:
    kind = next(entry.metadata["kind"] for _, entry in every_setting() if key_of(entry) == key)
    written = "" if many else kind.write(value)
    return f"{key}={written:g}" if isinstance(written, float) else f"{key}={str(written).lower()}"


def test_a_running_crawl_obeys_every_live_setting(tmp_path: Path) -> None:
    assert CASES.keys() == LIVE

    async def run() -> None:
        settings = with_values(Settings(), {"seeds": (SEED,), "min_free_disk": 0, "third_party_rate": Rate(2)})
        known = {key_of(entry): (part, entry) for part, entry in every_setting()}
        async with open_crawl(tmp_path, settings, resume=False) as crawl:
            live = live_settings(crawl)
            await live._parts.groups.limits([HostRow(1, "http://third.example", 0.0, None)])  # reads the domains
            for number, (key, (value, probe, wanted)) in enumerate(sorted(CASES.items()), 1):
                part, entry = known[key]
                before, old = probe(crawl), getattr(getattr(settings, part), entry.name)
                assert before != wanted, key
                order = Order(number, 0.0, "me", Verb.SET, (f"{key}={value}",), "", None)
                await live.put(order)
                assert probe(crawl) == wanted, key
                back = text(key, old, many=entry.metadata["many"])
                await live.put(dataclasses.replace(order, arguments=(back,)))
                assert probe(crawl) == before, key

    asyncio.run(run())
