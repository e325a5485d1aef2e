"""The session of a crawl, as a browser has one: the Referer, cookies and passwords it sends, and what answers set."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from archiver import url
from archiver.ask import Ask
from archiver.config.fetch_settings import FetchSettings
from archiver.config.settings import Settings, SettingsByHost
from archiver.crawl.login.authentication import AUTHENTICATING, Authenticator
from archiver.extract.exchange import is_page
from archiver.fetch.wire import UNVERIFIED
from archiver.http.auth import ConnectionLogin
from archiver.http.form_post import FormPost
from archiver.model import Claim, Cookie, Exchange
from archiver.policy import referrer
from archiver.policy.cookies import CookieJar, domains_of

KEEP = "keep"
BY_POLICY = "policy"
FOR_PAGES = b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
FOR_PARTS = b"Accept: */*\r\n"  # some sites send a page in place of a picture to those who accept pages


class Session:
    """The cookies and Referers of a crawl with *settings*. *suffix* returns the public suffix of a host name."""

    def __init__(
        self,
        settings: SettingsByHost | None = None,
        suffix: Callable[[str], str] = str,
        authenticator: Authenticator | None = None,
    ) -> None:
        self._jar = CookieJar(suffix)
        self._authenticator = authenticator
        self._settings = settings or SettingsByHost(Settings())

    def restore(self, cookies: list[Cookie]) -> None:
        """Take in what the frontier holds about hosts that were leased."""
        self._jar.restore(cookies)

    def domains(self, origin: str) -> list[str]:
        """Return the domains whose cookies a request to *origin* may send; none if its cookies are not kept."""
        return list(domains_of(url.host(f"{origin}/"))) if _keeps(self._settings.of(origin).fetch) else []

    def lines(
        self, claim: Claim, form: FormPost | None, now: float, *, verified: bool, login: ConnectionLogin
    ) -> bytes:
        """Return the Accept, Referer, Cookie and Authorization lines of a request for *claim*; b"" if it sends none.

        Those that a script of a page has set are among them. *form*: the form that it posts. *login*: that of its
        connection.
        """
        settings = self._settings.of(url.origin(claim.url)).fetch
        lines = self._cookie_line(claim, settings, now, verified=verified)
        if self._authenticator is not None:
            lines += self._authenticator.line(claim.url, form, login, verified=verified)
        if claim.ask is None:
            return _accept(claim, settings) + _referer(claim, settings) + lines
        fields = _script_fields(claim, claim.ask, settings, authorized=b"Authorization: " in lines)
        named = {name for name, _ in fields}
        ours = b"" if "Accept" in named else _accept(claim, settings)
        ours += b"" if "Referer" in named else _referer(claim, settings)
        return ours + lines + "".join(f"{name}: {value}\r\n" for name, value in fields).encode()

    def same_site(self, one: str, other: str) -> bool:
        """Return True if two canonical URLs have the same scheme and registrable domain."""
        return self._jar.same_site(one, other)

    def answered(self, claim: Claim, exchange: Exchange, login: ConnectionLogin) -> Exchange:
        """Return *exchange*, with a note if the next request for *claim* will answer its challenge.

        *login*: that of its connection.
        """
        if self._authenticator is None or not self._authenticator.answers(claim, exchange, login):
            return exchange
        return replace(exchange, notes=(*exchange.notes, AUTHENTICATING))

    def _cookie_line(self, claim: Claim, settings: FetchSettings, now: float, *, verified: bool) -> bytes:
        if not self._jar.any or not _keeps(settings):
            return b""
        party = self._jar.party(claim.url, claim.via, navigation=is_page(claim))
        value = self._jar.header(claim.url, now, party, verified=verified)
        return b"Cookie: %b\r\n" % value.encode("latin-1") if value else b""

    def keep_private(self, cookies: Sequence[Cookie]) -> list[Cookie]:
        """Make *cookies*, those of a login, private: for verified connections alone. Return them, for the frontier."""
        own = [cookie._replace(private=True) for cookie in cookies]
        self._jar.make_private(own)
        return own

    def received(self, claim: Claim, exchange: Exchange) -> tuple[Cookie, ...]:
        """Keep the cookies that *exchange* sets; return what changed, for the frontier.

        A language variant sets none: a cookie that remembers its language would change all later responses.
        """
        fields = exchange.framing.all("set-cookie")
        if not fields or claim.language or not _keeps(self._settings.of(url.origin(claim.url)).fetch):
            return ()
        party = self._jar.party(claim.url, claim.via, navigation=is_page(claim))
        now = exchange.started / 1e6 + exchange.duration
        return self._jar.store(claim.url, fields, now, party, verified=UNVERIFIED not in exchange.notes)


def _keeps(settings: FetchSettings) -> bool:
    """Return True if cookies are kept; a Cookie header of the user replaces them."""
    return settings.cookies == KEEP and not _is_given("cookie:", settings)


def _script_fields(claim: Claim, ask: Ask, settings: FetchSettings, *, authorized: bool) -> list[tuple[str, str]]:
    """Return the headers of a script that a request for *claim* sends; the user's own replace them."""
    replaced = {"Authorization"} if authorized else set()
    replaced |= {"Referer"} if settings.referer != BY_POLICY else set()
    replaced |= {"Accept-Language"} if claim.language else set()
    return [
        (name, value)
        for name, value in ask.fields
        if name not in replaced and not _is_given(f"{name.lower()}:", settings)
    ]


def _accept(claim: Claim, settings: FetchSettings) -> bytes:
    """Return the Accept line of a request for *claim*; b"" if the user gives one."""
    if _is_given("accept:", settings):
        return b""
    if settings.accept:
        return b"Accept: %b\r\n" % settings.accept.encode()
    return FOR_PAGES if is_page(claim) else FOR_PARTS


def _referer(claim: Claim, settings: FetchSettings) -> bytes:
    """Return the Referer line of a request for *claim*; b"" if it sends none, or if the user gives another one."""
    if not claim.referrer or settings.referer != BY_POLICY or _is_given("referer:", settings):
        return b""
    value = referrer.referer(claim.referrer, claim.url, claim.referrer_policy)
    return b"Referer: %b\r\n" % value.encode() if value else b""


def _is_given(start: str, settings: FetchSettings) -> bool:
    """Return True if the user gives a header that begins with *start*."""
    return any(line.lower().startswith(start) for line in settings.header)
