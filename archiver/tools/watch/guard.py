"""Who may ask the control room what. Every request passes here before anything is read.

A page of another site can send requests from a visitor's browser, or give its own name our address (DNS rebinding). So
the name must be one of ours, and a request that changes something must come from our own page, as JSON. A session is a
random number that the server makes after a correct token or password. It ends with the server.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from archiver.errors import ConfigError
from archiver.tools.watch.users import Role, Users

LIFE = 12 * 3600.0  # seconds without a request after which a session ends
MOST_SESSIONS = 500
FAILURES, WINDOW = 10, 600.0  # wrong tokens or passwords from one address, in so many seconds
ALL_FAILURES = 200  # … and from all addresses
MOST_ADDRESSES = 10_000
PLAIN = "/report/"  # takes the token from a form too
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MESSAGES = {
    400: "not a request that this server knows",
    401: "log in first",
    403: "not allowed",
    415: "send application/json",
    421: "this server answers at its own name only",
    429: "too many wrong attempts; wait some minutes",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Server": "archiver",
}
# A report has scripts and styles of its own. In a sandbox it has no origin, so it cannot use a session.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the server is reached."""

    scheme: str  # http or https
    hosts: frozenset[str]  # that a Host header may name
    public: str = ""  # the origin of the page behind a proxy

    @classmethod
    def of(cls, *, tls: bool, names: tuple[str, ...], port: int, behind: str) -> "Origin":
        """Return the origin of a server with these *names* at *port*; *behind*: the address that a proxy has for it."""
        scheme = "https" if tls else "http"
        hosts = {f"{name}:{port}" for name in names}
        if port == (443 if tls else 80):
            hosts |= set(names)
        if not behind:
            return cls(scheme, frozenset(hosts))
        parts = urlsplit(behind)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path.strip("/") or "@" in parts.netloc:
            raise ConfigError(f"--behind-proxy {behind}: write the address of the page, like https://watch.example.org")
        public = f"{parts.scheme}://{parts.netloc}".lower()
        return cls(parts.scheme, frozenset((*hosts, parts.netloc.lower())), public)

    def knows(self, host: str) -> bool:
        """Return True if a Host header *host* is one of ours."""
        return host.strip().lower() in self.hosts

    def is_own(self, origin: str, host: str) -> bool:
        """Return True if an Origin header *origin* is that of our page, asked for at *host*."""
        return origin == (self.public or f"{self.scheme}://{host.strip().lower()}")


@dataclass(frozen=True, slots=True)
class Asking:
    """The parts of a request that decide whether it is answered."""

    method: str
    path: str
    host: str
    origin: str = ""
    content_type: str = ""
    site: str = ""  # Sec-Fetch-Site
    session: str = ""  # of the cookie
    bearer: str = ""
    is_near: bool = False  # from this machine, and not through a proxy


class RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, why: str = "") -> None:
        self.status = status
        self.why = why or MESSAGES[status]
        super().__init__(self.why)


class Attempts:
    """Counts wrong tokens and passwords. Not thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque(maxlen=ALL_FAILURES)

    def check(self, address: str) -> None:
        """Refuse an *address* with too many failures, or any if there are too many in all."""
        since = self._clock() - WINDOW
        mine = self._failed.get(address, ())
        if sum(each > since for each in mine) >= FAILURES or sum(each > since for each in self._all) >= ALL_FAILURES:
            raise RefusedError(429)

    def failed(self, address: str) -> None:
        """Note a failure."""
        mine = self._failed.setdefault(address, deque(maxlen=FAILURES))
        self._failed.move_to_end(address)
        mine.append(self._clock())
        self._all.append(self._clock())
        while len(self._failed) > MOST_ADDRESSES:
            self._failed.popitem(last=False)


@dataclass(slots=True)
class LoggedIn:
    """Someone who has logged in."""

    name: str
    role: Role
    used: float


class Guard:
    """Decides about requests: by their origin, and by who sends them."""

    def __init__(self, origin: Origin, users: Users | None, clock: Callable[[], float]) -> None:
        self.origin = origin
        self.token = "" if users is not None else secrets.token_urlsafe(24)
        self._users = users
        self._clock = clock
        self._sessions: OrderedDict[bytes, LoggedIn] = OrderedDict()
        self._attempts = Attempts(clock)
        self._one = asyncio.Lock()  # passwords are checked one after another: each takes 16 MB

    def check(self, asking: Asking) -> None:
        """Refuse a request that does not come from our own page, without a look at its sender."""
        if not self.origin.knows(asking.host):
            raise RefusedError(421)
        api = asking.path.startswith(("/api/", "/report/"))
        if api and asking.site not in {"", "same-origin", "none"}:
            raise RefusedError(403, "asked by a page of another site")
        if asking.method == "POST":
            plain = asking.path == PLAIN  # a form of our page without scripts, for which browsers hide the origin
            hidden = plain and asking.origin == "null" and asking.site == "same-origin"
            if not hidden and not self.origin.is_own(asking.origin, asking.host):
                raise RefusedError(403, "asked by a page of another origin")
            if asking.content_type != ("application/x-www-form-urlencoded" if plain else "application/json"):
                raise RefusedError(415)

    def session(self, asking: Asking) -> LoggedIn:
        """Return the session of a request. Refuses one without."""
        found = self._sessions.get(_key(asking.session)) if asking.session else None
        if found is None or self._clock() - found.used > LIFE:
            raise RefusedError(401)
        found.used = self._clock()
        return found

    def operator(self, asking: Asking) -> LoggedIn:
        """Return the session of a request that changes something. Refuses one that may only look."""
        found = self.session(asking)
        if found.role is not Role.OPERATOR:
            raise RefusedError(403, "you may look, but not give orders")
        return found

    def check_metrics(self, asking: Asking) -> None:
        """Refuse a program that may not read the metrics: on this machine any may, if the server listens here only."""
        if asking.is_near:
            return
        token = self.token and hmac.compare_digest(asking.bearer.encode("utf-8", "replace"), self.token.encode())
        if not token and (self._users is None or not self._users.may_read_metrics(asking.bearer)):
            raise RefusedError(401, "send a bearer token; archiver watch --add-user NAME --role metrics makes one")

    async def log_in(self, given: object, address: str, before: str) -> str:
        """Return the number of a new session for the token or password in *given*; *before*: the session until now."""
        self._attempts.check(address)
        name, role = await self._known(given, address)
        if role is None:
            self._attempts.failed(address)
            raise RefusedError(403, "wrong token" if self._users is None else "wrong name or password")
        self.log_out(before)
        number = secrets.token_urlsafe(32)
        self._sessions[_key(number)] = LoggedIn(name, role, self._clock())
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return number

    def log_out(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(_key(session), None)

    async def _known(self, given: object, address: str) -> tuple[str, Role | None]:
        fields = given if isinstance(given, dict) else {}
        token, name, password = (str(fields.get(key, "")) for key in ("token", "user", "password"))
        if self._users is None:
            right = hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())
            return "", Role.OPERATOR if right else None
        async with self._one:
            self._attempts.check(address)  # others may have failed meanwhile
            return name, await asyncio.to_thread(self._users.role, name, password)


def _key(number: str) -> bytes:
    return hashlib.sha256(number.encode("utf-8", "replace")).digest()


def is_loopback(address: str) -> bool:
    """Return True if *address* is one that only this machine can reach."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"
