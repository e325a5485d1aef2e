"""The URLs of a crawl that a person names: in any spelling that means them, or by the status of their last answer."""

import re
from collections.abc import Iterable, Iterator

from archiver import url
from archiver.config.seeds import seed
from archiver.config.settings import Settings
from archiver.errors import ConfigError
from archiver.frontier import url_lookup
from archiver.frontier.connection import Reader
from archiver.policy.url_forms import Respelling

_HTTP = re.compile(r"\s*https?://[^/\\?#\s]", re.IGNORECASE)
_STATUS = re.compile(r"([0-9])(?:xx|([0-9]{2}))", re.IGNORECASE)


def has_scheme(text: str) -> bool:
    """Return True if *text* begins like an absolute URL."""
    return bool(_HTTP.match(text))


def canonical_url(text: str) -> str:
    """Return the URL *text* in canonical form: without fragment, user name and dot segments."""
    address = url.canonical(text.strip()) if has_scheme(text) else None
    return address or seed(text)


def find_in_crawl(db: Reader, text: str, settings: Settings) -> str:
    """Return the URL of the crawl that *text* means; if it knows none, the URL that it would request.

    Without a scheme, that is the one of http and https that the crawl knows.
    """
    first = canonical_url(text)
    found = known_spelling(db, first, settings)
    if not found and not has_scheme(text):
        found = with_other_scheme(db, first, settings)
    return found or respelling(settings)(first)


def with_other_scheme(db: Reader, address: str, settings: Settings) -> str:
    """Return *address* with https for http, or the reverse, if the crawl knows it; "" otherwise."""
    scheme, _, rest = address.partition(":")
    return known_spelling(db, f"{'http' if scheme == 'https' else 'https'}:{rest}", settings)


def respelling(settings: Settings) -> Respelling:
    """Return how the crawl changes the URLs that it finds."""
    return Respelling(settings.scope.query, settings.scope.drop_query)


def known_spelling(db: Reader, address: str, settings: Settings) -> str:
    """Return *address* in the spelling of the crawl, perhaps with other letters in its escapes; "" if it knows none."""
    for one in dict.fromkeys((*url.spellings(address), *url.spellings(respelling(settings)(address)))):
        if one in settings.seeds or url_lookup.known(db, one) is not None or url_lookup.refused(db, one) is not None:
            return one
    return ""


def status_ranges(texts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and last status of each range in *texts*: `404`, `5xx`, or `404,5xx` for both.

    `0xx` are those that no client can use: below 100, or none at all, which is kept as 0.
    """
    for text in (part.strip() for each in texts for part in each.split(",")):
        found = _STATUS.fullmatch(text)
        if found is None:
            raise ConfigError(f"--status: {text!r} is not a status; write 404, or 5xx for 500 to 599, or 0xx for none")
        first = int(found[1]) * 100
        yield (first, first + 99) if found[2] is None else (first + int(found[2]),) * 2
