"""HTTP authentication of a crawl: which challenge is answered, and what a request sends ahead.

A 401 whose challenge we answer is a visit of its own: its URL stays queued, and its next request carries the answer.
The exchange gets the note `AUTHENTICATING`, which is stored with its records, so recovery settles it in the same way.
Later requests of the protection space carry an answer ahead: Basic in the folder of a challenged URL and below, Digest
at the URLs of its domain (without one: everywhere), with the last nonce and a count. Negotiate and NTLM log a
connection in (see `handshake`), and each new connection again; a URL of another user, or of none, gets another one.

The password goes only to URLs of its protection space, over connections whose certificate is valid. One URL gets at
most `MOST_ANSWERS` answers. A password that was refused before it ever worked is not sent again.
"""

import logging
from dataclasses import dataclass, field, replace
from secrets import token_hex

from archiver import url
from archiver.config.auth import AuthRule
from archiver.config.settings import SettingsByHost
from archiver.crawl.login.handshake import INSTALL, HandshakeError, SpnegoHandshake, library, schemes, token_in
from archiver.crawl.secrets import Secrets
from archiver.fetch.private_networks import normalized_host
from archiver.fetch.wire import UNVERIFIED
from archiver.http.auth import (
    OF_CONNECTIONS,
    UNAUTHORIZED,
    ConnectionLogin,
    Credentials,
    DigestUse,
    basic,
    digest,
    is_stale,
    next_nonce,
    sent_in,
    strongest,
)
from archiver.http.challenges import Challenge, challenges
from archiver.http.form_post import FormPost
from archiver.model import Claim, Exchange

AUTHENTICATING = "authenticating"  # a note: the next request for the URL answers the challenge of this answer
MOST_ANSWERS = 3  # for one URL in one run: a server may refuse a nonce as too old more than once
MOST_STEPS = 8  # the same for handshakes: several connections may be logged in at once
MOST_FOLDERS = 64  # whose challenges we remember
MOST_URLS = 10_000  # that may be about to be answered
MOST_DOMAIN = 100  # URLs in the domain of a Digest challenge that are read

log = logging.getLogger(__name__)


@dataclass(slots=True)
class KnownChallenge:
    """A challenge that we answered, and how often its nonce was used."""

    challenge: Challenge
    client_nonce: str
    domain: tuple[str, ...] = ()  # of Digest: the URLs for which it is good, with all that begin with them; none: all
    count: int = 0

    def is_for(self, address: str) -> bool:
        """Return True if a Digest answer may be sent ahead to *address*."""
        return self.challenge.scheme == "digest" and (not self.domain or address.startswith(self.domain))

    def use_nonce(self, nonce: str) -> None:
        """Use *nonce* from now on."""
        parameters = ((name, nonce if name == "nonce" else value) for name, value in self.challenge.parameters)
        self.challenge, self.count = replace(self.challenge, parameters=tuple(parameters)), 0


@dataclass(slots=True)
class ProtectionSpace:
    """The state of one protection space."""

    name: str  # its URL
    credentials: Credentials
    user: str  # the key of connections on which its user is logged in
    schemes: tuple[str, ...] | None = None  # to answer, the best one last; None until a server has asked
    worked: bool = False  # the server has accepted them once
    refused: bool = False  # the server has refused them, and never accepted them
    warned: set[str] = field(default_factory=set)
    by_folder: dict[str, KnownChallenge] = field(default_factory=dict)  # the latest is last

    def take(self, address: str, challenge: Challenge) -> None:
        """Answer *challenge*, which came from *address*, in the requests that follow."""
        folder = _folder(address)
        self.by_folder.pop(folder, None)
        self.by_folder[folder] = KnownChallenge(challenge, token_hex(16), _domain(address, challenge))
        if len(self.by_folder) > MOST_FOLDERS:
            del self.by_folder[next(iter(self.by_folder))]

    def known(self, address: str) -> KnownChallenge | None:
        """Return the challenge to answer ahead in a request for *address*: that of the nearest folder above it."""
        above = [folder for folder in self.by_folder if address.startswith(folder)]
        if above:
            return self.by_folder[max(above, key=len)]
        return next((known for known in reversed(self.by_folder.values()) if known.is_for(address)), None)

    def value(self, known: KnownChallenge, address: str, form: FormPost | None) -> bytes:
        """Return the value of the Authorization field for a request for *address*, a POST of *form* if there is one."""
        if known.challenge.scheme == "basic":
            return basic(self.credentials)
        known.count += 1
        method, body = ("GET", b"") if form is None else ("POST", form.body)
        use = DigestUse(method, url.target(address), known.client_nonce, known.count, body)
        return digest(known.challenge, self.credentials, use)

    def renew(self, sent: Challenge, nonce: str) -> None:
        """Use *nonce* after that of the Digest answer which was *sent*, unless a later one is in use."""
        for known in self.by_folder.values():
            if nonce and sent.scheme == "digest" and known.challenge.get("nonce") == sent.get("nonce"):
                known.use_nonce(nonce)

    def drop(self, scheme: str) -> None:
        """Do not use *scheme* any more."""
        self.schemes = tuple(each for each in self.schemes or () if each != scheme)
        for folder in [folder for folder, known in self.by_folder.items() if known.challenge.scheme == scheme]:
            del self.by_folder[folder]

    def refuse(self, address: str) -> None:
        """Note that the server refuses the credentials at *address*."""
        if self.worked:
            self.warn("page", "%s: some URL refuses the user and password that others accept: %s", address)
        else:
            self.refused = True
            self.warn("password", "%s: the server refuses the user and password; they are not sent any more")

    def warn(self, kind: str, text: str, *arguments: str) -> None:
        """Log a warning, once for each *kind*."""
        if kind not in self.warned:
            self.warned.add(kind)
            log.warning(text, self.name, *arguments)


class Authenticator:
    """Answers the challenges of servers, for the protection spaces in *settings*."""

    def __init__(self, settings: SettingsByHost, secrets: Secrets) -> None:
        self._settings = settings
        self._secrets = secrets
        self._spaces: dict[tuple[str, AuthRule], ProtectionSpace] = {}
        self._answered: dict[tuple[int, int], int] = {}  # how many challenges of a URL were answered

    def line(self, address: str, form: FormPost | None, login: ConnectionLogin, *, verified: bool) -> bytes:
        """Return the Authorization line of a request for URL *address*, which posts *form*; b"" if it sends none.

        *login*: that of its connection.
        """
        space = self._space(address)
        login.unfit = login.user not in ("", space.user if space is not None else "")
        if login.unfit or space is None or space.refused or not self._is_safe(address, verified=verified):
            return b""
        known = space.known(address) if login.handshake is None else None
        value = b""
        if login.handshake is not None or (known is not None and known.challenge.scheme in OF_CONNECTIONS):
            value = _next_step(space, login, address, known)
        elif known is not None:
            value = space.value(known, address, form)
        return b"Authorization: %b\r\n" % value if value else b""

    def answers(self, claim: Claim, exchange: Exchange, login: ConnectionLogin) -> bool:
        """Return True if the next request for *claim* will answer the challenge in *exchange*.

        *login*: that of its connection.
        """
        space = self._space(claim.url)
        if space is None:
            return False
        sent = sent_in(exchange.request)
        if exchange.framing.status != UNAUTHORIZED:
            self._answered.pop(_key(claim), None)
            _accepted(space, exchange, sent, login)
            return False
        refused = sent is not None and login.handshake is not None and login.handshake.final
        offered = None if refused else self._offered(space, exchange, login)
        if refused:
            login.clear()
            space.refuse(claim.url)
        elif offered is None:
            _warn_scheme(space, exchange, login)
        elif not self._is_safe(claim.url, verified=UNVERIFIED not in exchange.notes):
            host = normalized_host(url.host(claim.url))
            text = "%s: the certificate does not verify, so the password is not sent; --insecure-secrets %s sends it"
            space.warn("certificate", text, host)
        elif not space.refused and self._is_new(space, claim, sent, offered):
            self._count(claim)
            if login.token is None:
                space.take(claim.url, offered)
            return True
        elif sent is not None and sent.scheme not in OF_CONNECTIONS:
            space.refuse(claim.url)
        self._answered.pop(_key(claim), None)
        return False

    def _count(self, claim: Claim) -> None:
        """Count a challenge that the next request for *claim* answers."""
        self._answered[_key(claim)] = self._answered.get(_key(claim), 0) + 1
        if len(self._answered) > MOST_URLS:
            del self._answered[next(iter(self._answered))]

    def _offered(self, space: ProtectionSpace, exchange: Exchange, login: ConnectionLogin) -> Challenge | None:
        """Return the challenge in *exchange* to answer, and keep the token of a handshake; None if there is none."""
        fields = exchange.framing.all("www-authenticate")
        if login.handshake is not None and not login.handshake.final:
            if token := token_in(login.handshake.scheme, fields):
                login.token = token
                return Challenge(login.handshake.scheme)
            if not space.worked:
                space.drop(login.handshake.scheme)  # the server does not go on with it: try the next one
        login.clear()
        if space.schemes is None:
            asked = {each.scheme for each in challenges(fields)}
            space.schemes = schemes(space.credentials.user) if asked & OF_CONNECTIONS else None
        usable = space.schemes if space.schemes is not None else ("basic", "digest")
        if not _keeps_apart(exchange, login):
            usable = tuple(each for each in usable if each not in OF_CONNECTIONS)
        return strongest(fields, usable)

    def _is_new(self, space: ProtectionSpace, claim: Claim, sent: Challenge | None, offered: Challenge) -> bool:
        """Return True if the challenge *offered* does not mean that what was *sent* in answer to it is wrong."""
        answers = self._answered.get(_key(claim), 0)
        of_connection = offered.scheme in OF_CONNECTIONS
        if answers >= (MOST_STEPS if of_connection else MOST_ANSWERS):
            return False
        if of_connection or (sent is not None and sent.scheme in OF_CONNECTIONS):
            return True
        if sent is None or sent.scheme != offered.scheme:
            return sent is None or not answers
        if offered.scheme == "basic":
            return False
        other_realm = sent.get("realm") != offered.get("realm")
        sent_ahead = space.worked and not answers and sent.get("nonce") != offered.get("nonce")
        return is_stale(offered) or other_realm or sent_ahead

    def _space(self, address: str) -> ProtectionSpace | None:
        origin = url.origin(address)
        fetch = self._settings.of(origin).fetch
        rule = next((each for each in fetch.auth if _applies(each, address, self._settings)), None)
        if rule is None or any(line.lower().startswith("authorization:") for line in fetch.header):
            return None
        name = rule.space or f"{origin}/"
        space = self._spaces.get((name, rule))
        if space is None:
            credentials = Credentials(rule.user, self._secrets[rule.secret])
            space = self._spaces[name, rule] = ProtectionSpace(name, credentials, f"{name} {rule.user}")
        return space

    def _is_safe(self, address: str, *, verified: bool) -> bool:
        insecure = self._settings.common.fetch.insecure_secrets
        return verified or normalized_host(url.host(address)) in map(normalized_host, insecure)


def _applies(rule: AuthRule, address: str, settings: SettingsByHost) -> bool:
    """Return True if *address* is in the space of *rule*; a rule for hosts is for https unless its pattern has http."""
    if rule.space or address.startswith("https:"):
        return rule.covers(address)
    return " http://" in settings.rules(url.origin(address)).get("auth", "")


def _accepted(space: ProtectionSpace, exchange: Exchange, sent: Challenge | None, login: ConnectionLogin) -> None:
    """Note that the server gave *exchange*, which is no 401, in answer to a request that *sent* credentials."""
    if login.handshake is not None and not login.handshake.final:
        login.clear()  # the URL needs no login
    elif sent is not None:
        space.worked = True
        space.renew(sent, next_nonce(exchange.framing.all("authentication-info")))


def _next_step(space: ProtectionSpace, login: ConnectionLogin, address: str, known: KnownChallenge | None) -> bytes:
    """Return the value of the Authorization field for the handshake of a connection; b"" if it needs no other."""
    try:
        if login.handshake is None and known is not None:
            login.handshake = SpnegoHandshake(known.challenge.scheme, space.credentials, address, login.tls)
            login.user, login.token = space.user, b""
        if login.handshake is None or login.token is None:
            return b""
        token, login.token = login.token, None
        return login.handshake.answer(token)
    except HandshakeError as error:
        scheme = login.handshake.scheme if login.handshake is not None else known.challenge.scheme if known else ""
        space.drop(scheme)
        login.clear()
        space.warn(scheme, "%s: %s authentication fails: %s", scheme, str(error))
        return b""


def _warn_scheme(space: ProtectionSpace, exchange: Exchange, login: ConnectionLogin) -> None:
    """Say why no challenge in *exchange* is answered."""
    asked = {each.scheme for each in challenges(exchange.framing.all("www-authenticate"))}
    if not asked & OF_CONNECTIONS:
        space.warn("scheme", "%s: the server offers neither Basic nor Digest authentication; no password is sent")
    elif library() is None:
        text = "%s: the server wants Negotiate or NTLM authentication, which needs a package: %s"
        space.warn("package", text, INSTALL)
    elif not _keeps_apart(exchange, login):
        text = "%s: Negotiate and NTLM need a connection of their own, but the proxy shares its connections; %s"
        space.warn("proxy", text, "no password is sent")
    else:
        space.warn("handshake", "%s: the server ends the Negotiate or NTLM handshake; no password is sent")


def _keeps_apart(exchange: Exchange, login: ConnectionLogin) -> bool:
    """Return True if no one else may get the connection to the site: no proxy forwards, or it says so (RFC 4559 §6)."""
    supported = ",".join(exchange.framing.all("proxy-support")).lower()
    return not login.forwarded or "session-based-authentication" in supported


def _key(claim: Claim) -> tuple[int, int]:
    """Return a key for *claim*: requests of logins all have the id 0, but a host has one login at a time."""
    return claim.id, claim.host


def _domain(address: str, challenge: Challenge) -> tuple[str, ...]:
    """Return the URLs in the domain of *challenge*, an answer of *address*. () if it has none."""
    words = challenge.get("domain").split(maxsplit=MOST_DOMAIN)[:MOST_DOMAIN]
    return tuple(joined for word in words if (joined := url.join(address, word)) is not None)


def _folder(address: str) -> str:
    """Return *address* up to the last slash of its path."""
    path = address.partition("?")[0]
    return path[: path.rindex("/") + 1]
