"""The Referer field by the W3C's Referrer Policy: which part of a page's URL a request for its links names. Pure.

A page sets the policy of its links by the Referrer-Policy header or by a meta element, and a link sets its own by its
`referrerpolicy` attribute or by `rel=noreferrer`.
"""

from collections.abc import Iterable

from archiver import url

DEFAULT = "strict-origin-when-cross-origin"
NO_REFERRER = "no-referrer"
POLICIES = (  # the database holds their places in this tuple
    DEFAULT,
    NO_REFERRER,
    "no-referrer-when-downgrade",
    "same-origin",
    "origin",
    "strict-origin",
    "origin-when-cross-origin",
    "unsafe-url",
)
CODES = {policy: place for place, policy in enumerate(POLICIES)}
OLD_NAMES = {  # in meta elements (HTML §4.2.5.3)
    "never": NO_REFERRER,
    "default": DEFAULT,
    "always": "unsafe-url",
    "origin-when-crossorigin": "origin-when-cross-origin",
}
LONGEST = 4096  # characters of a URL that is sent whole (§8.3)
_FULL_FOR_ALL = frozenset(("unsafe-url", "no-referrer-when-downgrade"))
_FULL_AT_HOME = frozenset(("same-origin", "origin-when-cross-origin", DEFAULT))
_NEVER_DOWN = frozenset(("no-referrer-when-downgrade", "strict-origin", DEFAULT))


def of_headers(values: Iterable[str]) -> str:
    """Return the policy that the values of Referrer-Policy fields set: the last one we know; "" if none (§8.1)."""
    known = [word for value in values for part in value.split(",") if (word := part.strip().lower()) in POLICIES]
    return known[-1] if known else ""


def of_attribute(value: str) -> str:
    """Return the policy that a `referrerpolicy` attribute sets; "" if none."""
    word = value.strip().lower()
    return word if word in POLICIES else ""


def of_meta(content: str) -> str:
    """Return the policy that the content of a `<meta name=referrer>` sets; "" if none."""
    word = content.strip().lower()
    return OLD_NAMES.get(word, word if word in POLICIES else "")


def referer(page: str, target: str, policy: str = "") -> str:
    """Return the Referer of a request for *target* that *page* names; "" if it sends none (§8.3).

    Both are canonical URLs; *policy* is a word of `POLICIES`, or "" for the default.
    """
    policy = policy or DEFAULT
    home = url.origin(page)
    at_home = home == url.origin(target)
    if (
        policy == NO_REFERRER
        or (policy == "same-origin" and not at_home)
        or (policy in _NEVER_DOWN and _is_downgrade(page, target))
    ):
        return ""
    is_full = policy in _FULL_FOR_ALL or (at_home and policy in _FULL_AT_HOME)
    return page if is_full and len(page) <= LONGEST else f"{home}/"


def after_redirects(page: str, steps: Iterable[tuple[str, str]]) -> str:
    """Return what is left of *page* as the referrer after requests for *steps*, pairs of target and policy.

    Each request of a chain of redirects cuts the referrer, and the next one starts from the rest (Fetch §4.1).
    """
    for target, policy in steps:
        page = page and referer(page, target, policy)
    return page


def _is_downgrade(page: str, target: str) -> bool:
    """True if *page* is secure and *target* is not; addresses of this machine count as secure."""
    if not page.startswith("https:") or target.startswith("https:"):
        return False
    host = url.host(target)
    return not (host in ("localhost", "[::1]") or host.endswith(".localhost") or host.startswith("127."))
