"""Seeds as a person writes them: one URL, or a list with comments. Pure.

Stricter than the URL standard, which reads `http:///x` as a URL of the host `x`: what nobody can have meant is
refused with the words that would be right. A name without a scheme gets `http://`, as in curl and wget.
"""

import re
from collections.abc import Iterator

from archiver import url
from archiver.errors import ConfigError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PORT = re.compile(r"[0-9]+(?:[/?#].*)?", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)
_OUTSIDE = re.compile(r"[\s\x00-\x20\x7f-\x9f\ud800-\udfff]")
_HERE = re.compile(r"127\.[0-9.]+|\[::1\]|(?:.+\.)?localhost")  # this machine: whoever writes a port of it knows why
MAX_SHOWN = 120  # characters of a bad seed in a message, which is one line


class TooLongError(ConfigError):
    """A seed is longer than a URL may be: a mistake of one line, not of a list."""


def seed(text: str) -> str:
    """The canonical URL that *text* means; `ConfigError` says what would be right."""
    whole = _with_scheme(text.strip())
    scheme, _, rest = whole.partition(":")
    if scheme.lower() not in {"http", "https"}:
        raise ConfigError(f"{_shown(text)}: {scheme}: is not crawled; a seed begins with http:// or https://")
    if not rest.startswith("//"):
        raise ConfigError(f"{_shown(text)}: two slashes are missing: {scheme}://…")
    authority = re.split(r"[/\\?#]", rest[2:], maxsplit=1)[0]
    if not authority or authority.startswith(":"):
        raise ConfigError(f"{_shown(text)} has no host; right would be http://example.org/")
    if "@" in authority:
        raise ConfigError(
            f"{_shown(authority.rpartition('@')[2])}: credentials in URLs are not supported, because they would be "
            "stored with each capture; give the URL without them, and if the site asks for them: "
            "--header 'Authorization: Basic …'"
        )
    if _OUTSIDE.search(whole):
        raise ConfigError(
            f"{_shown(text)} holds a space or a control character; give one URL at a time, and %20 for a space"
        )
    found = url.canonical(whole)
    if found is None and 3 * len(whole.encode("utf-8", "replace")) > url.MAX_LENGTH:  # a byte may become an escape
        told = f"it has {len(whole)} characters; {url.MAX_LENGTH} is the most, escapes included"
        raise TooLongError(f"{_shown(text)} is not a URL: {told}")
    if found is None:
        raise ConfigError(f"{_shown(text)} is not a URL; right would be http://example.org/")
    if (port := url.blocked_port(found)) and not _HERE.fullmatch(url.host(found)):
        raise ConfigError(f"{_shown(text)}: port {port} is for another protocol, and browsers do not ask it either")
    return found


def lacks_scheme(text: str) -> bool:
    """Whether `seed` had to add `http://`, which a person may want to know."""
    return _with_scheme(text.strip()) != text.strip()


def lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a list of seeds that say something, with their numbers; `#` begins a comment."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if written := _COMMENT.sub("", line).strip():
            yield number, written


def _with_scheme(text: str) -> str:
    if text.startswith("//"):
        return f"http:{text}"
    found = _SCHEME.fullmatch(text)
    if found is not None and found[1].lower() != "mailto" and "@" in re.split(r"[/\\?#]", found[2], maxsplit=1)[0]:
        return f"http://{text}"  # `user:word@host`
    if found is None or _PORT.fullmatch(found[2]):  # `localhost:8000/x` is a host and its port
        return f"http://{text}"
    return text


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
