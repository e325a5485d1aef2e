"""What one host may be asked for in the whole crawl: so many URLs, so many bytes. Pure.

A host is a row of the frontier: scheme and authority. One that has reached a limit is asked for nothing more but a
robots.txt that somebody waits for; its URLs wait until the limit is larger. What counts is what counts for --max-urls
and --max-bytes, over all runs: URLs that were visited at least once, robots.txt aside; every byte of every response.
"""

from dataclasses import dataclass

from archiver.config.settings import LimitSettings

ANY = (1 << 63) - 1  # more than there can be


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of each host; 0: none."""

    urls: int = 0
    size: int = 0  # bytes

    @classmethod
    def of(cls, settings: LimitSettings) -> "Allowance":
        """As the settings have it."""
        return cls(settings.max_urls_per_host, settings.max_bytes_per_host)

    @property
    def bounds(self) -> tuple[int, int]:
        """The numbers of URLs and of bytes that a host has to stay below, to be compared with what it has cost."""
        return self.urls or ANY, self.size or ANY

    def reached(self, urls: int, size: int) -> str:
        """The limit that a host has reached which has cost so much, as the settings have it; "" where there is none."""
        if 0 < self.urls <= urls:
            return f"max-urls-per-host: {self.urls}"
        return f"max-bytes-per-host: {self.size}" if 0 < self.size <= size else ""


FREE = Allowance()
