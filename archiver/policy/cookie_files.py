"""Cookie files in Netscape format (cookies.txt), as curl, wget, yt-dlp and extensions of browsers write them. Pure.

Texts are latin-1 characters, one for each byte, as in `archiver.policy.cookies`. A line has seven fields with tabs in
between: domain, TRUE if subdomains get the cookie, path, TRUE if it is secure, time of expiry, name, value.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from archiver import url
from archiver.errors import ConfigError
from archiver.model import Cookie
from archiver.policy.cookies import DOMAIN_BYTES, DOMAIN_COOKIES
from archiver.policy.set_cookie import CONTROL, MAX_PAIR

HEADER = "# Netscape HTTP Cookie File"
HTTP_ONLY = "#HttpOnly_"
FIELDS = 7
MAX_COOKIES = 20_000  # of one file
MAX_FILE = 64 << 20  # bytes of one file; a browser's database has one or two megabytes
WORDS = {"TRUE": True, "FALSE": False}
SHOWN = 60  # characters of what is wrong in a message

_HOST_AND_PORT = re.compile(r"([^:]+):[0-9]{1,5}")  # wget writes a port other than 80 and 443; browsers ignore ports
_EXPIRY = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]*)?")
_MILLISECONDS = 1e11  # a later time of expiry is not in seconds; in seconds it would be in the year 5138
_MICROSECONDS = 1e14


def cookies_in(text: str, now: float) -> Iterator[Cookie]:
    """Yield the cookies in *text*, a cookies.txt. Raises `ConfigError` that names the line and the reason."""
    text = text.removeprefix("\xef\xbb\xbf")
    if text.startswith(("\xff\xfe", "\xfe\xff")):
        raise ConfigError("line 1: UTF-16 text; save it as UTF-8")
    if text.lstrip()[:1] in {"[", "{"}:
        raise ConfigError("line 1: JSON; export the cookies in Netscape format (cookies.txt)")
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        http_only = line.startswith(HTTP_ONLY)
        if not line.strip() or (line.startswith("#") and not http_only):
            continue
        try:
            yield cookie_in(line.removeprefix(HTTP_ONLY).split("\t", FIELDS - 1), now)._replace(http_only=http_only)
        except ConfigError as error:
            raise ConfigError(f"line {number}: {error}") from None


def cookie_in(fields: list[str], now: float) -> Cookie:
    """Return the cookie of the user in *fields*; an empty value may be left out."""
    if len(fields) == FIELDS - 1:
        fields = [*fields, ""]
    if len(fields) != FIELDS:
        raise ConfigError(f"{len(fields)} of {FIELDS} fields; a tab must separate them")
    domain, subdomains, path, secure, expires, name, value = fields
    if wget := _HOST_AND_PORT.fullmatch(domain):
        domain = wget[1]
    for word in (subdomains, secure):
        if word.upper() not in WORDS:
            raise ConfigError(f"{shown(word)} is neither TRUE nor FALSE")
    return brought(
        (domain, path),
        (name, value),
        expiry(expires),
        now,
        host_only=not WORDS[subdomains.upper()],
        secure=WORDS[secure.upper()],
    )


def brought(
    place: tuple[str, str], pair: tuple[str, str], expires: float, now: float, *, host_only: bool, secure: bool
) -> Cookie:
    """Return a cookie of the user, from domain and path, name and value. Raises `ConfigError` if it cannot be one."""
    (domain, path), (name, value) = place, pair
    if CONTROL.search(name + value + path):
        raise ConfigError("a control character in the path, the name or the value")
    if len(name) + len(value) > MAX_PAIR:
        raise ConfigError(f"name and value are longer than {MAX_PAIR} bytes")
    if ";" in name + value or "=" in name or not name + value:
        raise ConfigError(f"{shown(name)} is not the name of a cookie, or its value has a semicolon")
    return Cookie(
        host_of(domain),
        path if path.startswith("/") else "/",
        name,
        value,
        host_only,
        secure,
        created=now,
        expires=expires,
        private=True,
        changed=now,
    )


def host_of(domain: str) -> str:
    """Return the host name that *domain*, with or without leading dots, means."""
    name = domain.strip().lstrip(".")
    address = url.canonical(f"http://[{name}]/" if name.count(":") > 1 and "[" not in name else f"http://{name}/")
    is_name = name.count(":") != 1 and not set(name) & set("@/?#")
    if not name or address is None or not is_name or url.authority(address) != url.host(address):
        raise ConfigError(f"{shown(domain)} is not a host name")
    return url.host(address)


def expiry(text: str) -> float:
    """Return the time of expiry that *text* means; 0 or nothing: with the session."""
    if not text.strip():
        return math.inf
    if _EXPIRY.fullmatch(text.strip()) is None:
        raise ConfigError(f"{shown(text)} is not a time in seconds since 1970")
    return moment(float(text))


def moment(seconds: float) -> float:
    """Return a time of expiry in seconds since 1970, which may be in milliseconds or microseconds; 0: no end."""
    if seconds <= 0:
        return math.inf
    return seconds / (1e6 if seconds > _MICROSECONDS else 1e3 if seconds > _MILLISECONDS else 1)


def check_bounds(cookies: Iterable[Cookie]) -> None:
    """Refuse more cookies than a browser has. Raises `ConfigError` that names the domain."""
    number: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for total, cookie in enumerate(cookies, 1):
        number[cookie.domain] += 1
        size[cookie.domain] += len(cookie.name) + len(cookie.value)
        if number[cookie.domain] > DOMAIN_COOKIES or size[cookie.domain] > DOMAIN_BYTES:
            raise ConfigError(f"{cookie.domain} has more than {DOMAIN_COOKIES} cookies or {DOMAIN_BYTES >> 10} KiB")
        if total > MAX_COOKIES:
            raise ConfigError(f"more than {MAX_COOKIES} cookies")


def cookies_txt(cookies: Iterable[Cookie]) -> str:
    """Return *cookies* as a cookies.txt. It has no mark for HttpOnly: wget would take such lines for comments."""
    return "".join(f"{line}\n" for line in (HEADER, "", *map(_line, cookies)))


def _line(cookie: Cookie) -> str:
    fields = (
        cookie.domain if cookie.host_only else f".{cookie.domain}",
        str(not cookie.host_only).upper(),
        cookie.path,
        str(cookie.secure).upper(),
        "0" if math.isinf(cookie.expires) else str(max(1, int(cookie.expires))),
        cookie.name,
        cookie.value,
    )
    return "\t".join(fields)


def shown(text: str) -> str:
    """Return the beginning of *text* for a message."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
