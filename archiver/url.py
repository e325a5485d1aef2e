"""Parse URLs by the WHATWG standard, in the canonical form that this program compares, stores and fetches. Pure.

The canonical form is absolute, with http or https, without fragment, user, password and default port. The host is in
lower case and punycode, dot segments are resolved. Two spellings that differ only in these are one URL. Percent escapes
stay as they are written, as in browsers: some servers and replays tell `%2f` from `%2F`. Rules compare them in
capitals. No text raises an exception here, except for `prefix`.

SURT prefixes name parts of the web by reversed host names, such as `(org,example,` for all of example.org. They are
stored without a scheme, because http and https count as one in the scope.
"""

import re
from functools import lru_cache

import ada_url

from archiver.errors import ConfigError

PAGE_ENDINGS = frozenset(
    (
        *("html", "htm", "xhtml", "xht", "shtml", "shtm", "phtml", "php", "php3", "php4", "php5", "asp", "aspx", "jsp"),
        *("jspx", "jsf", "cfm", "cgi", "pl", "do"),
    )
)
DATABASE_SCHEMES = ("postgresql://", "postgres://")  # in front of the address of a frontier
MAX_LENGTH = 16_384  # longer URLs are data that leaked into a link; servers refuse more than 8 KiB

# References that need no parser, because nothing in them must be escaped or normalized. Absolute ones have a host that
# is neither a number nor punycode; relative ones have no scheme and no dot segments.
_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9_~.-]*+"
_QUERY = r"\?[A-Za-z0-9_~./?:@!$&()*+,;=-]*+"
_TAIL = rf"(?>(?:{_SEGMENT}/)*)(?>(?:{_SEGMENT})?)(?>(?:{_QUERY})?)"  # old Pythons match possessive groups wrongly
_PLAIN = re.compile(
    rf"(?:(?P<whole>https?://(?!(?:[a-z0-9-]*\.)*xn--)(?>(?:[a-z0-9-]+\.)*)[a-z][a-z0-9-]*+/{_TAIL})"
    rf"|(?P<root>/{_TAIL})|(?P<query>{_QUERY})|(?P<near>(?=[^?#]){_TAIL})|(?P<same>))"
    r"(?>(?:#[^\ud800-\udfff]*+)?)"
)

_PLAIN_PATH = re.compile(rf"(/{_TAIL})(?>(?:#[^\ud800-\udfff]*+)?)")
_LONGEST_ROOT = 200  # characters

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
STRAY_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")  # it begins no escape
_LOWER_ESCAPE = re.compile(r"%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f])")


def canonical(text: str) -> str | None:
    """Return the canonical form of an absolute URL; None if it cannot be fetched."""
    slash = text.find("/", 8)
    if slash > 0 and len(text) <= MAX_LENGTH and is_root(text[: slash + 1]):
        plain = _PLAIN_PATH.fullmatch(text, slash)
        if plain is not None:
            return text[:slash] + plain[1]
    return _finish(text, None)


def is_root(text: str) -> bool:
    """Return True if *text* is the canonical root URL of a host, such as `https://example.org/`."""
    return len(text) <= _LONGEST_ROOT and _is_root(text)


@lru_cache(maxsize=1 << 14)  # a crawl of ten thousand hosts meets each several times
def _is_root(text: str) -> bool:
    return text.find("/", 8) == len(text) - 1 and _finish(text, None) == text


def join(base: str, reference: str) -> str | None:
    """Return the canonical URL of *reference* in a document at *base*; None if it cannot be fetched."""
    if len(reference) + len(base) <= MAX_LENGTH and (parts := _parts(base)) is not None:
        plain = _PLAIN.fullmatch(reference)
        if plain is not None and plain.lastgroup is not None:
            return parts[plain.lastgroup] + plain[plain.lastgroup]
    return _finish(reference, base)


@lru_cache(maxsize=256)
def _parts(base: str) -> dict[str, str] | None:
    """Return the prefix of each kind of plain reference in a document at *base*; None if that is not canonical."""
    if canonical(base) != base:
        return None
    page = base.partition("?")[0]
    return {"whole": "", "root": origin(base), "near": page[: page.rindex("/") + 1], "query": page, "same": base}


def _finish(text: str, base: str | None) -> str | None:
    if len(text) > MAX_LENGTH:
        return None
    try:
        href: str = ada_url.join_url(base, text) if base is not None else ada_url.normalize_url(text)
    except (ValueError, UnicodeEncodeError):
        return None
    if not href.startswith(("http://", "https://")):
        return None
    href = href.partition("#")[0]
    scheme, _, rest = href.partition("//")
    authority_part, _, tail = rest.partition("/")
    if "@" in authority_part:
        href = f"{scheme}//{authority_part.rpartition('@')[2]}/{tail}"
    return href if len(href) <= MAX_LENGTH else None


def in_capitals(address: str) -> str:
    """Return *address* with percent escapes in capitals. URLs that differ only there are equal (RFC 3986 §6.2.2.1)."""
    return _LOWER_ESCAPE.sub(_upper, address) if "%" in address else address


def _upper(found: "re.Match[str]") -> str:
    return found[0].upper()


def spellings(address: str) -> tuple[str, ...]:
    """Return *address*, then the same with all percent escapes in capitals and in small letters; each once."""
    if "%" not in address:
        return (address,)
    small = _ESCAPE.sub(lambda found: found[0].lower(), address)
    return tuple(dict.fromkeys((address, in_capitals(address), small)))


def percents_escaped(address: str) -> str:
    """Return the canonical *address* with `%25` for percent signs in its path that begin no escape; "" without any.

    Browsers leave these signs as they are. Some servers then answer 400, and have the file under the other URL.
    """
    page, mark, query = address.partition("?")
    escaped = STRAY_PERCENT.sub("%25", page)
    return f"{escaped}{mark}{query}" if escaped != page else ""


def origin(url: str) -> str:
    """Return scheme and authority of a canonical *url*, the key of a host: `https://example.org:8443`."""
    return url[: url.index("/", 8)]


def has_origin(text: str) -> bool:
    """Return True if *text*, of a database or a file, is long enough for `origin`."""
    return text.find("/", 8) > 0


def host(url: str) -> str:
    """Return the host name of a canonical *url*, without port; an IPv6 address keeps its brackets."""
    authority = url[url.index("//") + 2 : url.index("/", 8)]
    if authority.startswith("["):
        return authority[: authority.index("]") + 1]
    return authority.partition(":")[0]


def authority(url: str) -> str:
    """Return host and port of a canonical *url*, as in the Host header."""
    return url[url.index("//") + 2 : url.index("/", 8)]


def site(url: str) -> str:
    """Return the host of a canonical *url* without scheme, `www.` and default port."""
    return authority(url).removeprefix("www.")


# The Fetch standard's bad ports (§2.11): servers there speak other protocols, and could misread a request.
BLOCKED_PORTS = frozenset(
    (
        *(0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526),
        *(530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659),
        *(4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
    )
)


def blocked_port(url: str) -> str:
    """Return the port of a canonical *url* if browsers block it; "" otherwise."""
    colon = url.rfind(":", 8, url.index("/", 8))
    port = url[colon + 1 : url.index("/", 8)] if colon > 0 else ""
    return port if port.isdigit() and int(port) in BLOCKED_PORTS else ""


def target(url: str) -> str:
    """Return path and query of a canonical *url*, as in the request line."""
    return url[url.index("/", 8) :]


def path(url: str) -> str:
    """Return the path of a canonical *url*, without its query."""
    return target(url).partition("?")[0]


@lru_cache(maxsize=256)  # of URLs that may be long
def may_be_page(url: str) -> bool:
    """Return True if the last path segment of a canonical URL has no file extension, or one of a page."""
    name, dot, ending = path(url).rpartition("/")[2].rpartition(".")
    return not dot or (name != "" and ending.lower() in PAGE_ENDINGS)


def may_be_script(url: str) -> bool:
    """Return True if the path of *url* ends as that of a script or its data; a page runs it, or shows it (.md)."""
    return path(url).lower().endswith((".js", ".mjs", ".json", ".md"))


def surt(url: str) -> str:
    """Return the key under which pywb looks *url* up: Internet Archive's canonical SURT."""
    import surt as ia_surt  # noqa: PLC0415 - it imports an HTTP client, which takes a fifth of a second

    return str(ia_surt.surt(url))


_SURT = re.compile(r"(?:[a-z]+://)?(\([^\s()/?#]*\)?(?:/\S*)?)", re.IGNORECASE)
_NO_PATH = re.compile(r"(?:https?://)?[^/?#]+", re.IGNORECASE)


def form(address: str) -> str:
    """Return the SURT form of a canonical URL: `(org,example,www,)/path?query`, with a port `(org,example,:8080)/`.

    Percent escapes are in capitals, so that equal URLs have one form.
    """
    name, colon, port = authority(address).rpartition(":")
    if not colon or not port.isdigit():
        name, port = authority(address), ""
    return f"({_reversed_labels(name)},{f':{port}' if port else ''}){in_capitals(target(address))}"


def prefix(text: str) -> str:
    """Return the SURT prefix that *text* means; raise `ConfigError` if it means none.

    A SURT is used as it is. A URL covers all URLs that begin with it, a bare host also its subdomains.
    """
    surt_form = _SURT.fullmatch(text)
    if surt_form is not None:
        return _lower_host(surt_form[1])
    address = canonical(text if "://" in text else f"http://{text}")
    if address is None or "(" in text:
        raise ConfigError(f"{text!r} is neither a SURT prefix, such as http://(org,example, nor a URL or a host")
    if _NO_PATH.fullmatch(text):
        return form(address).partition(")")[0]
    return form(address)


def _lower_host(text: str) -> str:
    host, close, rest = text.partition(")")
    return host.lower() + close + in_capitals(rest)


def _reversed_labels(name: str) -> str:
    if name.startswith("[") or name.replace(".", "").isdigit():
        return name  # IP addresses are not reversed
    return ",".join(reversed(name.split(".")))
