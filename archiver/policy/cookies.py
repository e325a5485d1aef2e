"""Cookies by RFC 6265bis: keep what a browser would keep, and choose what a request sends. Pure.

Header values are texts of latin-1 characters, one for each byte. The time is an argument, in seconds since the epoch.
The public suffix list is an argument too: `CookieJar` asks it only where a cookie names a domain other than its host,
or where a request comes from another host.

We differ from browsers in one point: a jar keeps at most `DOMAIN_BYTES` of cookies for one domain, so that a hostile
site cannot fill the memory. Servers refuse request headers of that size.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from archiver import url
from archiver.model import Cookie
from archiver.policy.set_cookie import SameSite, SetCookie, parse

DOMAIN_COOKIES = 180  # of one domain, as in Chromium
DOMAIN_BYTES = 16 << 10  # of names and values
MOST_MEMORY = 64 << 20  # bytes of all cookies in memory, about; the frontier keeps the others
OVERHEAD = 500  # bytes of memory for a cookie besides its texts
MAX_FIELDS = 200  # Set-Cookie fields of one response that are read
MOST_REPEATED = 1000  # fields that are recognized when they come again
LONGEST_REPEATED = 1000  # characters of such a field


def domain_matches(host: str, domain: str) -> bool:
    """True if *host* is *domain* or one of its subdomains (§5.1.3); IP addresses have no subdomains."""
    return host == domain or (host.endswith(f".{domain}") and not is_address(host))


def is_address(host: str) -> bool:
    """True if *host*, from a canonical URL, is an IP address."""
    return host.startswith("[") or host.replace(".", "").isdigit()


def path_matches(path: str, cookie_path: str) -> bool:
    """True if a request for *path* sends a cookie with *cookie_path* (§5.1.4)."""
    return path.startswith(cookie_path) and (
        len(path) == len(cookie_path) or cookie_path.endswith("/") or path[len(cookie_path)] == "/"
    )


def is_for(cookie: Cookie, address: str) -> bool:
    """True if a browser would send *cookie* with a request of URL *address* that a person makes (§5.8.3)."""
    host = url.host(address)
    return (
        (host == cookie.domain or (not cookie.host_only and domain_matches(host, cookie.domain)))
        and (not cookie.secure or address.startswith("https:"))
        and path_matches(url.path(address), cookie.path)
    )


def default_path(path: str) -> str:
    """Return the path of a cookie without a valid Path attribute, set by a response for *path* (§5.1.4)."""
    return path[: path.rindex("/")] or "/"


class Party(NamedTuple):
    """Where a request comes from, for the SameSite rule."""

    same_site: bool  # the page that names the URL is of the same site, or no page names it
    navigation: bool  # a person would go there; not a part of a page


ALONE = Party(same_site=True, navigation=True)


class CookieJar:
    """The cookies of all hosts of a crawl. *suffix* returns the public suffix of a host name.

    `restore` brings in what the frontier has. `store` and `header` are what a browser does with each response and each
    request.
    """

    def __init__(self, suffix: Callable[[str], str], most: int = MOST_MEMORY) -> None:
        self._suffix = suffix
        self._most = most
        self._memory = 0
        self._domains: OrderedDict[str, dict[tuple[str, str, bool], Cookie]] = OrderedDict()
        self._repeated: dict[tuple[str, str, str, Party, bool], Cookie] = {}  # what a field has set there

    @property
    def any(self) -> bool:
        """True if it holds any cookie."""
        return bool(self._domains)

    def restore(self, cookies: Iterable[Cookie]) -> None:
        """Take in stored cookies, unless the jar has newer ones with the same key."""
        for cookie in cookies:
            known = self._of(cookie.domain)
            if (old := known.get(_key(cookie))) is None or old.changed < cookie.changed:
                self._keep(known, cookie)
        self._forget()

    def make_private(self, cookies: Iterable[Cookie]) -> None:
        """Make those of *cookies* private that the jar still has."""
        for cookie in cookies:
            if (old := self._of(cookie.domain).get(_key(cookie))) is not None:
                self._of(cookie.domain)[_key(cookie)] = old._replace(private=True)

    def store(
        self, address: str, fields: Iterable[str], now: float, party: Party = ALONE, *, verified: bool = True
    ) -> tuple[Cookie, ...]:
        """Keep the cookies that the response for URL *address* sets with *fields*.

        A cookie that replaces a private one is private too, and an unverified answer replaces none. Return what
        changed, for the frontier: new cookies, and with a time of expiry in the past those that are gone.
        """
        changes: dict[tuple[str, str, str, bool], Cookie] = {}
        for number, field in enumerate(fields):
            if number >= MAX_FIELDS:
                break
            if len(field) > LONGEST_REPEATED:
                same = None
            else:  # many sites send the same field with each response
                same = field, url.origin(address), default_path(url.path(address)), party, verified
                if (cookie := self._repeated.get(same)) is not None and self._has(cookie):
                    continue
            given = parse(field, now)
            cookie = None if given is None else self._accepted(given, address, now, party)
            if cookie is None:
                continue
            for changed in self._put(cookie, now, verified=verified):
                changes[changed.domain, *_key(changed)] = changed
            if same is not None and math.isinf(cookie.expires):
                self._repeat(same, cookie)
        self._forget()
        return tuple(changes.values())

    def header(self, address: str, now: float, party: Party = ALONE, *, verified: bool = True) -> str:
        """Return the value of the Cookie field for a request of URL *address*; "" if it sends none (§5.8.3).

        *verified*: the certificate of the connection is valid, or there is none.
        """
        if not self._domains:
            return ""
        host = url.host(address)
        path = ""
        chosen: list[Cookie] = []
        for domain in domains_of(host):
            known = self._domains.get(domain)
            if known is None:
                continue
            self._domains.move_to_end(domain)
            path = path or url.path(address)
            secure = address.startswith("https:")
            chosen += (
                cookie
                for cookie in known.values()
                if (domain == host or not cookie.host_only)
                and cookie.expires > now
                and (secure or not cookie.secure)
                and (verified or not cookie.private)
                and path_matches(path, cookie.path)
                and _is_sent(cookie, party)
            )
        chosen.sort(key=lambda cookie: (-len(cookie.path), cookie.created))
        return "; ".join(f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in chosen)

    def party(self, address: str, via: str | None, *, navigation: bool) -> Party:
        """Return where a request for *address* that the page *via* names comes from."""
        return Party(via is None or self.same_site(address, via), navigation)

    def same_site(self, one: str, other: str) -> bool:
        """True if two canonical URLs have the same scheme and registrable domain (HTML §7.1.1)."""
        if one.partition(":")[0] != other.partition(":")[0]:
            return False
        host, foreign = url.host(one), url.host(other)
        return host == foreign or self._site(host) == self._site(foreign)

    def _site(self, host: str) -> str:
        """Return the registrable domain of *host*; an address or a public suffix is its own site."""
        suffix = "" if is_address(host) else self._suffix(host)
        if not suffix or host == suffix:
            return host
        return f"{host[: -len(suffix) - 1].rpartition('.')[2]}.{suffix}"

    def _accepted(self, given: SetCookie, address: str, now: float, party: Party) -> Cookie | None:
        """Return the cookie that *given* makes (§5.7); None if it must be ignored."""
        host, path = url.host(address), url.path(address)
        secure = address.startswith("https:")
        domain = given.domain
        if domain and domain != host and (not domain_matches(host, domain) or self._suffix(domain) == domain):
            return None
        host_only = not domain or (domain == host and (is_address(host) or self._suffix(host) == host))
        if given.secure and not secure:
            return None
        if given.same_site is SameSite.NONE and not given.secure:
            return None
        if given.same_site is not SameSite.NONE and not party.same_site and not party.navigation:
            return None
        lower = given.name.lower()
        if lower.startswith(("__secure-", "__host-")) and not given.secure:
            return None
        if lower.startswith("__host-") and (not host_only or given.domain or given.path != "/"):
            return None
        cookie = Cookie(
            host if host_only else domain,
            given.path if given.path.startswith("/") else default_path(path),
            given.name,
            given.value,
            host_only,
            given.secure,
            given.http_only,
            given.same_site,
            now,
            given.expires,
            changed=now,
        )
        return None if not secure and self._hides(cookie, host) else cookie

    def _hides(self, cookie: Cookie, host: str) -> bool:
        """True if *cookie*, from an insecure response, would stand in the way of a secure one (§5.7, step 15)."""
        return any(
            known.secure and known.name == cookie.name and path_matches(cookie.path, known.path)
            for domain in domains_of(host)
            for known in self._domains.get(domain, {}).values()
        )

    def _put(self, cookie: Cookie, now: float, *, verified: bool) -> Iterator[Cookie]:
        old = self._domains.get(cookie.domain, {}).get(_key(cookie))
        if old is not None and old.private and not verified:
            return  # only the site itself, with a valid certificate, may replace the user's own cookie
        if old is not None:
            self._drop(old)
        if cookie.expires <= now:
            if old is not None:
                yield cookie
            return
        if old is not None:
            changed = old.changed if old.value == cookie.value else now
            cookie = cookie._replace(created=old.created, private=old.private, changed=changed)
        known = self._of(cookie.domain)
        self._keep(known, cookie)
        if old != cookie:
            yield cookie
        while len(known) > DOMAIN_COOKIES or sum(_size(each) for each in known.values()) > DOMAIN_BYTES:
            oldest = min(known.values(), key=lambda each: (each.expires > now, each.private, each.secure, each.created))
            self._drop(oldest)
            yield oldest._replace(value="", expires=-math.inf)

    def _has(self, cookie: Cookie) -> bool:
        """Return True if the jar holds exactly this object."""
        return self._domains.get(cookie.domain, {}).get(_key(cookie)) is cookie

    def _repeat(self, same: tuple[str, str, str, Party, bool], cookie: Cookie) -> None:
        """Remember what the field *same* has set to *cookie*; it changes nothing as long as the jar holds that."""
        kept = self._domains.get(cookie.domain, {}).get(_key(cookie))
        if kept is not None and kept.value == cookie.value and math.isinf(kept.expires):
            if len(self._repeated) >= MOST_REPEATED:
                self._repeated.clear()
            self._repeated[same] = kept

    def _of(self, domain: str) -> dict[tuple[str, str, bool], Cookie]:
        """Return the cookies of *domain*."""
        known = self._domains.setdefault(domain, {})
        self._domains.move_to_end(domain)
        return known

    def _keep(self, known: dict[tuple[str, str, bool], Cookie], cookie: Cookie) -> None:
        known[_key(cookie)] = cookie
        self._memory += OVERHEAD + _size(cookie)

    def _drop(self, cookie: Cookie) -> None:
        known = self._domains[cookie.domain]
        del known[_key(cookie)]
        self._memory -= OVERHEAD + _size(cookie)
        if not known:
            del self._domains[cookie.domain]

    def _forget(self) -> None:
        """Forget the domains that were not used for longest if there are too many."""
        while self._memory > self._most and len(self._domains) > 1:
            known = self._domains.popitem(last=False)[1]
            self._memory -= sum(OVERHEAD + _size(cookie) for cookie in known.values())


def _is_sent(cookie: Cookie, party: Party) -> bool:
    if party.same_site or cookie.same_site == SameSite.NONE:
        return True
    return party.navigation and cookie.same_site != SameSite.STRICT


def domains_of(host: str) -> Iterator[str]:
    """Yield *host* and each domain above it, whose cookies it may get."""
    yield host
    if not is_address(host):
        while "." in host:
            host = host.partition(".")[2]
            yield host


def _key(cookie: Cookie) -> tuple[str, str, bool]:
    """Return the identity of *cookie* within its domain."""
    return cookie.path, cookie.name, cookie.host_only


def _size(cookie: Cookie) -> int:
    return len(cookie.name) + len(cookie.value)
