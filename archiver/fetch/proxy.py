"""Proxies: which one leads to a host, and connections through it.

A proxy is a part of our own network: if it fails, no site is to blame, and `ProxyError` says so. What it reports about
a site (refused, unreachable, no such name) is the site's failure. Names ending in .onion or .i2p are never looked up
and never leave without a proxy that resolves them (RFC 7686).

Proxies of the kinds http and socks5h resolve names themselves, so the site's address stays unknown. For socks4 and
socks5 we look names up, and the guard decides.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from urllib.parse import unquote

from archiver import url
from archiver.config.auth import covers
from archiver.config.proxies import ENVIRONMENT, NONE, ProxyAddress, parts, proxy_address
from archiver.config.settings import SettingsByHost, values_of
from archiver.errors import SHORTAGES, ConfigError, Failure, FetchError, ProxyError
from archiver.fetch.http_proxy import AUTHENTICATION_REQUIRED, CHALLENGES, LOGIN_REFUSED, MAX_CHALLENGES, ProxyLogin
from archiver.http.auth import Credentials

HIDDEN = (".onion", ".i2p")  # names that only a proxy resolves
MAX_HEAD = 16 << 10  # bytes of a proxy's answer to CONNECT


OWN_TIMEOUT = 86_400.0  # seconds: for python-socks, so long that our own timeout always comes first
_LOGIN_REFUSED = ("No acceptable authentication", "authentication failure")  # python-socks says it in words alone
_SITE_FAILED = {1, 2, 3, 4, 5, 6, 8, 0x5B}  # SOCKS replies: the site fails, or the proxy forbids it
_USER_REFUSED = {0x5C, 0x5D}  # SOCKS4 replies about identd


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy with its login."""

    address: ProxyAddress
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The URL without the login."""
        return self.address.name

    @property
    def resolves(self) -> bool:
        """True if the proxy looks names up."""
        return self.address.kind in ("http", "socks5h")

    def forwards(self, origin: str) -> bool:
        """Return True if requests to *origin* go to the proxy itself: plain HTTP in absolute form."""
        return self.address.kind == "http" and origin.startswith("http://")


class ProxyRoutes:
    """Decides which proxy leads to a host. Proxies in *settings* have their passwords, if they have a login.

    *domain_of* returns the registered domain of a host name.
    """

    def __init__(self, settings: SettingsByHost, domain_of: Callable[[str], str] = str) -> None:
        self._settings = settings
        self._domain_of = domain_of
        given = {settings.common.fetch.proxy}
        common = settings.common
        own = (*(rule.given for rule in common.politeness.host), *(seed.given for seed in common.scope.seed))
        given.update(values_of(each, "proxy") for each in own)
        self._pools = {each: _pools(each) for each in given}
        self._environment: dict[str, Proxy] = {}
        self._bypasses: Callable[[str], bool] = lambda _: False
        if any(parts(text)[1] == ENVIRONMENT for each in given for text in each):
            self._environment, self._bypasses = _environment_proxies()

    def of(self, origin: str) -> Proxy | None:
        """Return the proxy for *origin*; raise `FetchError` if it needs one that is not there."""
        proxy, host = self._chosen(origin), url.host(f"{origin}/").rstrip(".")
        if host.endswith(HIDDEN) and (proxy is None or not proxy.resolves):
            kind = host.rpartition(".")[2]
            raise FetchError(
                Failure.PROXY,
                f"only a proxy that resolves names leads to .{kind}; use --proxy '*.{kind} socks5h://HOST:PORT'",
            )
        return proxy

    def _chosen(self, origin: str) -> Proxy | None:
        given = self._settings.of(origin).fetch.proxy
        if not given:
            return None
        pool = next((pool for pattern, pool in self._pools[given] if not pattern or covers(pattern, origin)), ())
        if pool is None:
            return self._of_environment(origin)
        if len(pool) < 2:
            return pool[0] if pool else None
        domain = self._domain_of(url.host(f"{origin}/"))  # hosts that may share limits go the same way, in each run
        return max(pool, key=lambda proxy: sha256(f"{domain} {proxy.user}@{proxy.name}".encode()).digest())

    def _of_environment(self, origin: str) -> Proxy | None:
        scheme, _, authority = origin.partition("://")
        return None if self._bypasses(authority) else self._environment.get(scheme)


def _pools(given: tuple[str, ...]) -> tuple[tuple[str, tuple[Proxy, ...] | None], ...]:
    """Return host patterns and their proxies, None for those of the environment, in the order to try; "": all hosts."""
    named: dict[str, list[str]] = {}
    for pattern, text in map(parts, given):
        named.setdefault(pattern, []).append(text)
    ordered = sorted(named.items(), key=lambda each: not each[0])  # all hosts come last
    return tuple((pattern, _pool(texts)) for pattern, texts in ordered)


def _pool(texts: list[str]) -> tuple[Proxy, ...] | None:
    for word in (NONE, ENVIRONMENT):
        if word in texts and len(texts) > 1:
            raise ConfigError(f"proxy {word}: other proxies are given for the same hosts; give it alone")
    return None if texts == [ENVIRONMENT] else tuple(_proxy(text) for text in texts if text != NONE)


def _proxy(text: str) -> Proxy:
    """Return the proxy with the URL *text*, which may hold user and password."""
    kind, _, rest = text.partition("://") if "://" in text else ("http", "", text)
    login, _, place = rest.rpartition("@")
    address = proxy_address(f"{kind}://{place}")
    user, _, password = map(unquote, login.partition(":"))
    return Proxy(address, user, password)


def _environment_proxies() -> tuple[dict[str, Proxy], Callable[[str], bool]]:
    """Return the proxy of each scheme in the environment, and a function that is true for hosts in NO_PROXY."""
    import urllib.request  # noqa: PLC0415 - only this setting needs it

    said = urllib.request.getproxies_environment()
    bypasses = partial(urllib.request.proxy_bypass_environment, proxies=said)  # type: ignore[attr-defined]
    found: dict[str, Proxy] = {}
    for scheme in ("http", "https"):
        text = said.get(scheme) or said.get("all", "")
        if text:
            try:
                found[scheme] = _proxy(text)
            except ConfigError as error:
                raise ConfigError(f"{scheme.upper()}_PROXY in the environment: {error}") from None
    return found, bypasses


class ProxyTunnels:
    """Opens connections through proxies, and remembers which proxies answer."""

    def __init__(self) -> None:
        self.answering: set[str] = set()  # names of proxies that have answered since they last failed
        self._logins: dict[Proxy, ProxyLogin] = {}

    def login(self, proxy: Proxy) -> ProxyLogin:
        """Return the login to *proxy* of the kind http."""
        if proxy not in self._logins:
            self._logins[proxy] = ProxyLogin(Credentials(proxy.user, proxy.password))
        return self._logins[proxy]

    async def open(self, proxy: Proxy, site: tuple[str, int], seconds: float, leaves_by: str = "") -> socket.socket:
        """Return a socket that *proxy* has connected to *site* within *seconds*; raise `FetchError` if it fails.

        *leaves_by*: the address of this machine from which to connect to the proxy.
        """
        host, port = site
        try:
            async with asyncio.timeout(seconds):
                if proxy.address.kind == "http":
                    connected = await _dial_http(proxy, self.login(proxy), (host, port), leaves_by)
                else:
                    connected = await _dial_socks(proxy, host, port, leaves_by)
        except TimeoutError as error:
            raise self.timed_out(proxy, f"no connection to {host} within {seconds:g} s") from error
        except ProxyError:
            self.answering.discard(proxy.name)
            raise
        except FetchError:
            self.answering.add(proxy.name)
            raise
        self.answering.add(proxy.name)
        return connected

    def timed_out(self, proxy: Proxy, reason: str) -> FetchError:
        """Return the error for a site that did not answer: the proxy is to blame if it has not answered yet either."""
        if proxy.name in self.answering:
            return FetchError(Failure.TIMEOUT, f"{reason} through proxy {proxy.name}")
        return ProxyError(proxy.name, f"{reason}, and nothing else came through this proxy")

    def failed(self, proxy: Proxy, error: OSError) -> ProxyError:
        """Return the error for a *proxy* that cannot be reached. Raises *error* if this machine is at fault."""
        self.answering.discard(proxy.name)
        return _unreachable(proxy, error)


def _unreachable(proxy: Proxy, error: OSError) -> ProxyError:
    if error.errno in SHORTAGES:
        raise OSError(error.errno, str(error)) from error
    known = error.errno is not None and error.errno > 0
    return ProxyError(proxy.name, os.strerror(error.errno or 0) if known else error.strerror or "no connection")


async def _dial_socks(proxy: Proxy, host: str, port: int, leaves_by: str) -> socket.socket:
    import python_socks.async_.asyncio  # noqa: PLC0415 - takes a fiftieth of a second, and few crawls need it

    address = proxy.address
    if address.kind == "socks4" and ":" in host:
        raise FetchError(Failure.CONNECT, f"proxy {proxy.name}: SOCKS4 knows no IPv6 addresses")
    kind = python_socks.ProxyType.SOCKS4 if address.kind == "socks4" else python_socks.ProxyType.SOCKS5
    client = python_socks.async_.asyncio.Proxy(
        kind, address.host.strip("[]"), address.port, proxy.user, proxy.password, rdns=True
    )
    try:
        return await client.connect(host, port, timeout=OWN_TIMEOUT, local_addr=(leaves_by, 0) if leaves_by else None)
    except python_socks.ProxyTimeoutError:
        raise TimeoutError from None
    except OSError as error:
        raise _unreachable(proxy, error) from error
    except python_socks.ProxyError as error:
        reason = str(error)
        if error.error_code in _USER_REFUSED or any(words in reason for words in _LOGIN_REFUSED):
            raise ProxyError(proxy.name, "it refuses the login", refused=True) from error
        if error.error_code in _SITE_FAILED:
            raise FetchError(Failure.CONNECT, f"proxy {proxy.name}: {reason}") from error
        raise ProxyError(proxy.name, reason) from error


async def _dial_http(proxy: Proxy, login: ProxyLogin, site: tuple[str, int], leaves_by: str) -> socket.socket:
    """Send CONNECT, again if the proxy asks for Digest; return the socket."""
    (host, port), challenges = site, 0
    place = f"{f'[{host}]' if ':' in host else host}:{port}".encode()
    request = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (place, place)
    while True:
        line = login.line(request)
        connected, head = await _answer(proxy, request + line, leaves_by)
        try:
            if challenges == MAX_CHALLENGES or not login.takes(_challenges(head), line):
                _check_answer(proxy, head)
                return connected
        except BaseException:
            connected.close()
            raise
        connected.close()
        challenges += 1


async def _answer(proxy: Proxy, request: bytes, leaves_by: str) -> tuple[socket.socket, bytes]:
    """Send *request* to *proxy*; return the socket and the head of the answer. What follows belongs to the site."""
    try:
        connected = await _reached(proxy.address, leaves_by)
    except OSError as error:
        raise _unreachable(proxy, error) from error
    try:
        await asyncio.get_running_loop().sock_sendall(connected, request + b"\r\n")
        return connected, await _head(connected)
    except OSError as error:
        connected.close()
        if isinstance(error, TimeoutError):
            raise
        raise _unreachable(proxy, error) from error
    except BaseException:
        connected.close()
        raise


def _challenges(head: bytes) -> list[str]:
    """Return the Proxy-Authenticate fields of an answer that refuses a login; [] of others."""
    status, *lines = head.decode("latin-1").split("\r\n")
    if status.split(None, 2)[1:2] != [str(AUTHENTICATION_REQUIRED)]:
        return []
    fields = (line.partition(":") for line in lines)
    return [value.strip() for name, _, value in fields if name.strip().lower() == CHALLENGES]


async def _reached(address: ProxyAddress, leaves_by: str) -> socket.socket:
    """Return a socket connected to the proxy at *address*, from our address *leaves_by* if that is given."""
    loop, failed = asyncio.get_running_loop(), OSError("no address")
    for family, kind, protocol, _, place in await loop.getaddrinfo(
        address.host.strip("[]"), address.port, type=socket.SOCK_STREAM
    ):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.setblocking(False)
            if leaves_by:
                connected.bind((leaves_by, 0))
            await loop.sock_connect(connected, place)
        except OSError as error:
            connected.close()
            failed = error
        except BaseException:
            connected.close()
            raise
        else:
            return connected
    raise failed


async def _head(connected: socket.socket) -> bytes:
    """Return the head of an HTTP answer. Not a byte after it is read."""
    loop, head = asyncio.get_running_loop(), b""
    while not head.endswith(b"\r\n\r\n"):
        least = 4 - next(size for size in (3, 2, 1, 0) if head.endswith(b"\r\n\r\n"[:size]))
        piece = await loop.sock_recv(connected, least)
        if not piece or len(head) > MAX_HEAD:
            break
        head += piece
    return head


def _check_answer(proxy: Proxy, head: bytes) -> None:
    """Raise `FetchError` unless *head* says that the proxy has connected us."""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit() or not head.endswith(b"\r\n\r\n"):
        raise ProxyError(proxy.name, "it closed the connection" if not head else "its answer to CONNECT is not HTTP")
    status, reason = int(words[1]), " ".join(words[1:])[:100]
    if status in LOGIN_REFUSED:
        raise ProxyError(proxy.name, f"it refuses the login ({reason})", refused=True)
    if not 200 <= status < 300:
        raise FetchError(Failure.CONNECT, f"proxy {proxy.name} answers {reason}")
