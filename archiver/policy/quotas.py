"""The quotas of hosts, and the hosts that a person has blocked. Pure.

A host that has used up its quota is asked for nothing but a robots.txt. One that a person has blocked is asked for
nothing at all. The URLs of both wait.
"""

from dataclasses import dataclass, replace
from shlex import quote
from typing import NamedTuple

from archiver.config.auth import covers
from archiver.config.settings import LimitSettings, Settings, SettingsByHost

ANY = (1 << 63) - 1  # more than there can be


@dataclass(frozen=True, slots=True)
class Allowance:
    """The quota of a host; 0: no limit."""

    urls: int = 0
    size: int = 0  # bytes
    block: str = ""  # the pattern by which a person lets no request go to the host
    ignores_robots: bool = False  # its robots.txt is not asked for

    @classmethod
    def of(cls, settings: LimitSettings, block: str = "") -> "Allowance":
        """Return the quota in *settings*."""
        return cls(settings.max_urls_per_host, settings.max_bytes_per_host, block)

    @property
    def bounds(self) -> tuple[int, int]:
        """The numbers of URLs and of bytes that a host must stay below."""
        return self.urls or ANY, self.size or ANY

    def reached(self, urls: int, size: int) -> str:
        """Return the setting that a host has reached after so many *urls* and bytes; "" if it has not."""
        if 0 < self.urls <= urls:
            return f"max-urls-per-host: {self.urls}"
        return f"max-bytes-per-host: {self.size}" if 0 < self.size <= size else ""

    def stop(self, urls: int, size: int) -> str:
        """Return in words why no URL of a host is requested after so many *urls* and bytes; "" if it may be."""
        if self.block:
            return f"a person blocked its host (archiver unblock DIR {quote(self.block)})"
        reached = self.reached(urls, size)
        return f"its host has reached {reached}" if reached else ""


NO_QUOTA = Allowance()


class Quotas:
    """The quota of each host."""

    def __init__(self, settings: SettingsByHost) -> None:
        self._settings = settings
        self._latest = settings.common, _allowance(settings.common)  # as a rule that of all hosts

    @property
    def any(self) -> bool:
        """False if certainly no host has a quota, and none is blocked."""
        return self.blocks or self._settings.any or Allowance.of(self._settings.common.limits) != NO_QUOTA

    @property
    def blocks(self) -> bool:
        """True if a person may have blocked a host."""
        return bool(self._settings.common.politeness.block)

    @property
    def single_pages(self) -> bool:
        """True if the settings take no page but the seeds."""
        scope = self._settings.common.scope
        return scope.scope == "page" or scope.max_depth == 0

    def of(self, origin: str) -> Allowance:
        """Return the quota of the host *origin* (scheme and authority)."""
        settings = self._settings.of(origin)
        known, allowance = self._latest
        if settings is not known:
            allowance = _allowance(settings)
            self._latest = settings, allowance
        block = self.block(origin)
        return replace(allowance, block=block) if block else allowance

    def block(self, origin: str) -> str:
        """Return the pattern by which a person has blocked the host *origin*; "" if no one did."""
        return next((each for each in self._settings.common.politeness.block if covers(each, origin)), "")


def _allowance(settings: Settings) -> Allowance:
    """Return the quota in *settings* of a host that no one has blocked."""
    return replace(Allowance.of(settings.limits), ignores_robots=settings.politeness.robots == "ignore")


NO_QUOTAS = Quotas(SettingsByHost(Settings()))


class HeldBack(NamedTuple):
    """What keeps hosts with waiting URLs from being asked, in words; "" if nothing does."""

    limits: str  # quotas
    blocked: str  # a person


class BlockedByPerson(NamedTuple):
    """What waits because a person has blocked it."""

    pattern: str
    hosts: int
    urls: int
