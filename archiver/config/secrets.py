"""Find secret settings, and remove them from everything that is handed on. Pure.

Secret headers are in crawl.toml, which only its owner may read, and in the request records.
"""

import re
from dataclasses import replace

from archiver.config.option_types import LEFT_OUT
from archiver.config.settings import Settings

_NAME = "auth|cookie|token|key|secret|session|password|csrf"
SECRET = re.compile(_NAME, re.IGNORECASE)  # in the name of a header
_LINE = re.compile(rf"""["'][^"':\n]*(?:{_NAME})[^"':\n]*:""", re.IGNORECASE)


def has_secrets(settings: Settings) -> bool:
    """Return whether *settings* hold a header that may be a secret."""
    return any(_is_secret(line) for line in settings.fetch.header)


def without_secrets(settings: Settings) -> Settings:
    """Return *settings* with the names of secret headers, but not their values."""
    header = tuple(
        f"{line.partition(':')[0]}: {LEFT_OUT}" if _is_secret(line) else line for line in settings.fetch.header
    )
    return replace(settings, fetch=replace(settings.fetch, header=header))


def may_tell(text: str) -> bool:
    """Return whether the *text* of a crawl.toml may hold a secret, if only in a comment."""
    return _LINE.search(text) is not None


def is_left_out(header: str) -> bool:
    """Return whether *header* has lost its value in `without_secrets`."""
    return header.partition(":")[2].strip() == LEFT_OUT


def _is_secret(header: str) -> bool:
    return SECRET.search(header.partition(":")[0]) is not None
