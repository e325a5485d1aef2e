"""Proxies that do not answer: their hosts wait and lose nothing. A proxy is a part of our own network."""

import logging
from dataclasses import dataclass

from archiver.clock import Clock
from archiver.errors import ProxyError
from archiver.fetch.client import Fetcher
from archiver.humanize import duration
from archiver.policy.leased_host import LeasedHost
from archiver.policy.retry import FIRST_NETWORK_PAUSE, LONGEST_NETWORK_PAUSE

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ProxyOutage:
    """A proxy that fails."""

    since: float
    pause: float  # seconds between two tries
    until: float  # when to try again
    reason: str


class ProxyHealth:
    """Decides when to try proxies again. *patience* in seconds: the crawl ends if nothing comes for so long."""

    def __init__(self, fetcher: Fetcher, clock: Clock, patience: float) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._patience = patience
        self.outages: dict[str, ProxyOutage] = {}
        self.refused = ""  # why the crawl cannot go on: a proxy refuses our login

    def failed(self, host: LeasedHost, error: ProxyError) -> None:
        """Let *host* wait, whose request failed with *error*."""
        now = self._clock.now()
        if error.refused:
            self.refused = f"{error.reason}; correct the login in the environment, then run archiver resume"
            return
        outage = self.outages.get(error.proxy)
        if outage is None:
            outage = ProxyOutage(now, FIRST_NETWORK_PAUSE, now + FIRST_NETWORK_PAUSE, error.reason)
            self.outages[error.proxy] = outage
            log.warning("%s; its hosts wait, and no URL loses a retry", error.reason)
        elif now >= outage.until:
            outage.pause = min(2 * outage.pause, LONGEST_NETWORK_PAUSE)
            outage.until, outage.reason = now + outage.pause, error.reason
        host.wait(outage.until)

    def listen(self) -> None:
        """Forget the outages of proxies that answer again."""
        for name in [*self.outages]:
            if self._fetcher.proxy_answers(name):
                outage = self.outages.pop(name)
                log.warning("proxy %s answers again after %s", name, duration(self._clock.now() - outage.since))

    def exhausted(self, now: float) -> str:
        """Return why the crawl should end: a proxy has failed and nothing has come for the whole patience."""
        if not self._patience:
            return ""
        outage = min(self.outages.values(), key=lambda each: each.since)
        last = max(outage.since, self._clock.at(self._fetcher.last_activity))
        if now - last < self._patience:
            return ""
        return f"{outage.reason}; --offline-patience {self._patience:g} is over"

    @property
    def description(self) -> str:
        """Return how the first of the proxies fails."""
        return next(iter(self.outages.values())).reason
