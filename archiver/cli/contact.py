"""A crawl of other people's sites should say whom they can turn to: one line for who forgot."""

from ipaddress import ip_address

from archiver import url
from archiver.config.settings import Settings

_OWN = ("localhost", "local", "lan", "internal", "home.arpa", "test", "invalid", "example")  # RFC 6761, 6762, 8375


def warning(settings: Settings) -> str:
    """What to tell a person whose crawl leaves their own machines and networks without a contact; "" otherwise."""
    fetch = settings.fetch
    given = " ".join((fetch.user_agent, *fetch.header))
    if fetch.contact or "@" in given or "://" in given:
        return ""
    away = next((url.host(seed) for seed in settings.seeds if not _is_near(url.host(seed))), None)
    if away is None:
        return ""
    return (
        f"the owner of {away} cannot tell who crawls it: give --contact, a URL or mail address by which you can be "
        "reached (--contact you@example.org)"
    )


def _is_near(host: str) -> bool:
    """Whether *host* is on this machine or a network of its own."""
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        labels = host.rstrip(".")
        return "." not in labels or labels.endswith(tuple(f".{name}" for name in _OWN))
