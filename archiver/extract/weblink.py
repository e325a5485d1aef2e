"""The Link header field, by the parsing algorithm of RFC 8288 (appendix B): each target with its parameters.

Of a parameter that comes twice the first counts; names are in lower case, values without quotes and escapes.
Never raises, and takes time linear in the value: what is malformed is passed over up to the next comma.
"""

import re
from collections.abc import Iterator

_APART = re.compile(r"[\s,]*+")
_TARGET = re.compile(r"<([^<>]*+)>")
_PARAMETER = re.compile(
    r"\s*+;[\s;]*+(?P<name>[^\s=;,\"<>]++)(?:\s*+=\s*+(?:\"(?P<quoted>(?:[^\"\\]|\\.)*+)(?:\"|\\?\Z)|(?P<bare>[^\s;,\"]*+)))?+",
    re.DOTALL,
)
_REST = re.compile(r"(?:[^\",]|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z))*+,?+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def entries(value: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each target in *value* as it stands there, and its parameters."""
    position = 0
    while position < len(value):
        apart = _APART.match(value, position)
        position = apart.end() if apart else position
        target = _TARGET.match(value, position)
        if target:
            position = target.end()
            parameters: dict[str, str] = {}
            while parameter := _PARAMETER.match(value, position):
                position = parameter.end()
                text = parameter["bare"] or _ESCAPE.sub(r"\1", parameter["quoted"] or "")
                parameters.setdefault(parameter["name"].lower(), text)
            yield target[1], parameters
        rest = _REST.match(value, position)
        position = max(rest.end() if rest else 0, position + 1)
