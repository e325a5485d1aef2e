"""Where a refresh leads: the content of a meta element or of a Refresh field, by the HTML standard's algorithm."""

import re

_DELAY = re.compile(r"[\t\n\f\r ]*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\t\n\f\r ]|\Z)[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+")
_PREFIX = re.compile(r"url[\t\n\f\r ]*+=[\t\n\f\r ]*+", re.IGNORECASE)
_DROPPED = {ord(char): None for char in "\t\n\r"}


def target(content: str) -> str | None:
    """The reference that *content* leads to; "" is the page itself, None says that it is no refresh."""
    delay = _DELAY.match(content)
    if delay is None:
        return None
    rest = content[delay.end() :]
    prefix = _PREFIX.match(rest)
    if prefix:
        rest = rest[prefix.end() :]
    if rest[:1] in ('"', "'"):
        rest = rest[1:].partition(rest[0])[0]
    return rest.translate(_DROPPED).strip()
