"""The logins of a crawl: which hosts wait for one, when it is due, and when a page shows that the session has ended.

While a login is due, its site gets no request but robots.txt and those of the login; its URLs wait in the frontier. The
session is a set of private cookies: a resumed crawl that still has them does not log in again until a page shows that
it must. After the last attempt the hosts of the site are paused for this run.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from archiver import url
from archiver.clock import Clock
from archiver.config.logins import Login
from archiver.config.option_types import Pattern
from archiver.config.settings import SettingsByHost
from archiver.crawl.login.form_login import FormLogin, LoginResult, Result, shows
from archiver.crawl.session import Session
from archiver.crawl.visit import Visited
from archiver.extract.exchange import is_robots
from archiver.frontier.port import Frontier, HostRow
from archiver.humanize import printable
from archiver.policy.cookies import is_for
from archiver.policy.leased_host import LeasedHost
from archiver.policy.quotas import Quotas
from archiver.policy.retry import pause
from archiver.policy.schedule import Schedule

NEVER = float("inf")
log = logging.getLogger(__name__)


class LoginState(Enum):
    """The states of one login."""

    UNKNOWN = "unknown"  # no host of the site was leased yet
    OUT = "out"
    IN = "in"
    FAILED = "failed"  # it needs a person


@dataclass(slots=True)
class LoginCase:
    """One login form, and the results of its logins in this run."""

    rule: Login
    domain: str
    logged_out: Pattern | None
    state: LoginState = LoginState.UNKNOWN
    done: int = 0  # logins
    since: float = 0.0  # seconds since the epoch: time of the last login
    not_before: float = 0.0
    running: bool = False
    reason: str = ""
    wanted: bool = False  # a host waits for it

    @property
    def origin(self) -> str:
        """The host of the page with the form."""
        return url.origin(self.rule.page)


class Logins:
    """All logins of a crawl; without any, nothing here costs anything."""

    def __init__(
        self,
        places: tuple[Frontier, Schedule, Session],
        clock: Clock,
        settings: SettingsByHost,
        form: FormLogin,
        domains: Callable[[], Callable[[str], str]],
    ) -> None:
        self._frontier, self._schedule, self._session = places
        self._clock = clock
        self._settings = settings
        self._form = form
        rules = settings.common.fetch.login
        domain_of = self._domain_of = domains() if rules else str
        self._cases = [
            LoginCase(
                rule,
                domain_of(url.host(rule.page)),
                Pattern("logged-out", rule.logged_out) if rule.logged_out else None,
            )
            for rule in rules
        ]
        self.any = bool(self._cases)

    @property
    def pending(self) -> bool:
        """True if a host waits for a login that is still to be done."""
        return any(case.wanted and case.state is LoginState.OUT for case in self._cases)

    @property
    def next_due(self) -> float:
        """Return when a login that had to wait may be tried."""
        return min((case.not_before for case in self._cases if case.wanted and case.not_before), default=NEVER)

    @property
    def description(self) -> str:
        """Return a sentence about the logins that need a person, or ""."""
        failed = [case for case in self._cases if case.state is LoginState.FAILED]
        return "; ".join(
            f"login: {printable(case.rule.page)} needs a person ({printable(case.reason)})" for case in failed
        )

    def missing_hosts(self) -> list[str]:
        """Return the origins of pages with a form that must be leased, because a login there is due."""
        due = {case.origin for case in self._cases if case.wanted and case.state is LoginState.OUT}
        return sorted(due - {host.key for host in self._schedule.hosts()}) if due else []

    async def leased(self, rows: Sequence[HostRow]) -> None:
        """Let the hosts in *rows*, which were just leased, wait for their login if they have one."""
        for row in rows if self.any else ():
            case, host = self._case_of(row.key), self._schedule.find(row.id)
            if case is None or host is None:
                continue
            if case.state is LoginState.UNKNOWN:
                known = await self._frontier.cookies(self._session.domains(case.origin))
                self._session.restore(known)
                now, page = self._clock.now(), case.rule.page
                has_session = any(each.private and each.expires > now and is_for(each, page) for each in known)
                case.state = LoginState.IN if has_session else LoginState.OUT
            if case.state is LoginState.OUT:
                case.wanted = host.memory.awaits_login = True
                await self.give_up_blocked()
            elif case.state is LoginState.FAILED and not host.memory.paused:
                await self._give_up((host,))

    async def give_up_blocked(self) -> None:
        """Give up the logins whose page is on a host that a person has blocked; their sites wait for the next run."""
        for case in self._cases:
            if case.wanted and case.state is LoginState.OUT and (block := Quotas(self._settings).block(case.origin)):
                await self._fail(case, f"a person blocked its host: archiver unblock DIR {block}")

    def due(self, now: float) -> Iterator[tuple[LoginCase, LeasedHost]]:
        """Yield the logins that may begin, each with the host of its page: nothing of its site is under way."""
        for case in self._cases:
            if not case.wanted or case.running or case.state is not LoginState.OUT or case.not_before > now:
                continue
            site = list(self._site(case))
            page = next((host for host in site if host.key == case.origin), None)
            if page is None or any(host.active for host in site) or self._needs_robots(page):
                continue
            if page.not_before > now:
                case.not_before = page.not_before
            else:
                case.running = True
                yield case, page

    def _needs_robots(self, host: LeasedHost) -> bool:
        return host.robots is None and self._settings.of(host.key).politeness.robots != "ignore"

    async def log_in(self, case: LoginCase, host: LeasedHost) -> None:
        """Log in with the form of *case*. Its page is on *host*."""
        try:
            if not self._session.domains(case.origin):
                done = LoginResult(Result.REFUSED, "cookies are off for this host, or a Cookie header replaces them")
            else:
                done = await self._form.run(case.rule, host.id, case.logged_out)
            await self._settle(case, done)
        finally:
            case.running = False

    async def shows_logged_out(self, visited: Visited) -> bool:
        """Return True if an answer shows that the session has ended; its URL is to be requested again."""
        exchange, claim = visited.exchange, visited.claim
        if exchange is None or is_robots(claim):
            return False
        case = self._case_of(url.origin(claim.url))
        if case is None or case.logged_out is None or case.rule.is_at(claim.url):
            return False
        if not await asyncio.to_thread(shows, case.logged_out, claim.url, exchange):
            return False
        exchange.response.close()
        if case.state is LoginState.IN and exchange.started / 1e6 >= case.since:
            log.warning("%s shows that the session has ended", printable(claim.url))
            await self._out(case)
        return True

    async def _out(self, case: LoginCase) -> None:
        case.state = LoginState.OUT
        case.wanted = True
        for host in self._site(case):
            host.memory.awaits_login = True
            self._schedule.clear(host.id)
        if case.done >= case.rule.attempts:
            await self._fail(case, f"the session ended again after {case.done} logins")

    async def _settle(self, case: LoginCase, done: LoginResult) -> None:
        now = self._clock.now()
        if done.result is Result.HELD:
            case.not_before = now + pause(0)
            return
        case.done += 1
        if done.result is Result.IN:
            await self._frontier.bring_cookies(self._session.keep_private(done.cookies), ())
            case.state, case.since, case.wanted, case.not_before = LoginState.IN, self._clock.now(), False, 0.0
            log.info("logged in at %s", printable(case.rule.page))
            for host in self._site(case):
                host.memory.awaits_login = False
                self._schedule.refresh(host.id)
        elif done.result is Result.LATER and case.done < case.rule.attempts:
            case.not_before = now + pause(case.done - 1)
            log.warning(
                "login at %s failed, another try follows: %s", printable(case.rule.page), printable(done.reason)
            )
        else:
            await self._fail(case, done.reason)

    async def _fail(self, case: LoginCase, reason: str) -> None:
        case.state, case.reason, case.wanted = LoginState.FAILED, reason, False
        log.warning("%s; the URLs of its site wait for archiver resume", self.description)
        await self._give_up(tuple(self._site(case)), case.rule.page, reason)

    async def _give_up(self, hosts: Sequence[LeasedHost], page: str = "", reason: str = "") -> None:
        """Pause *hosts* for this run; *page*: where no login works any more."""
        await self._frontier.pause_until_login([host.id for host in hosts], page, reason)
        for host in hosts:
            host.memory.awaits_login = False
            host.memory.paused = True
            self._schedule.clear(host.id)

    def _site(self, case: LoginCase) -> Iterator[LeasedHost]:
        return (host for host in self._schedule.hosts() if self._case_of(host.key) is case)

    def _case_of(self, origin: str) -> LoginCase | None:
        """Return the login of the host *origin*: that of its own page, or else the first of its site."""
        own = next((case for case in self._cases if case.origin == origin), None)
        if own is not None or not self._cases:
            return own
        domain = self._domain_of(url.host(f"{origin}/"))
        return next((case for case in self._cases if case.domain == domain), None)
