"""Registered domains by the list in tldextract, which never asks the network, and the scope of a crawl.

Few crawls need the list, and it takes a fifth of a second to read.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from archiver.config.settings import Settings
from archiver.policy.scope import Scope
from archiver.policy.seed_scopes import Scopes, scope_of

if TYPE_CHECKING:
    from tldextract import TLDExtract


@cache
def registered_domains() -> Callable[[str], str]:
    """Return a function from host name to registered domain."""
    extract = _extract()
    return lambda host: extract(host).top_domain_under_public_suffix or host


def public_suffix(host: str) -> str:
    """Return the public suffix of *host*: by the list, or else its last label (the list's rule `*`)."""
    return _extract()(host).suffix or host.rpartition(".")[2]


@cache
def _extract() -> "TLDExtract":
    import tldextract  # noqa: PLC0415 - takes a fifth of a second, and few crawls need it

    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def scope_for(settings: Settings) -> Scope | Scopes:
    """Return the scope of a crawl with *settings*, without places that seeds have moved to."""
    reaches = {settings.scope.scope, *(own.get("scope") for own in settings.scope.seed)}
    return scope_of(settings.scope, settings.seeds, registered_domains() if "domain" in reaches else str)
