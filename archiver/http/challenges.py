"""Parse WWW-Authenticate fields: the challenges of a server (RFC 9110 §11). Pure.

Everything here comes from strangers. Text beyond `MOST_TEXT` is ignored, and each character is read a fixed number of
times. Parsing ends where a field cannot be read; what came before it counts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from archiver.config.expressions import compiled

MOST_TEXT = 16 << 10  # characters of all fields
MOST_CHALLENGES = 20
MOST_PARAMETERS = 30  # of one challenge

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_SKIPPED = re.compile(r"[ \t,]*+")
_PARAMETER = compiled(rf'({_WORD})[ \t]*+=[ \t]*+(?:"((?:[^"\\]|\\.)*+)"|({_WORD}))[ \t]*+(?=,|$)')
_SCHEME = re.compile(rf"({_WORD})(?=[ \t,]|$)")
_TOKEN68 = re.compile(r"([A-Za-z0-9._~+/-]++=*+)[ \t]*+(?=,|$)")
_ESCAPED = re.compile(r"\\(.)")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Challenge:
    """One challenge, or the credentials of a request, which have the same form."""

    scheme: str  # in lower case
    parameters: tuple[tuple[str, str], ...] = ()  # names in lower case, in order
    token: str = ""  # what some schemes send in place of parameters

    def get(self, name: str) -> str:
        """Return the value of the first parameter *name*; "" if there is none."""
        return next((value for known, value in self.parameters if known == name), "")


def challenges(fields: Iterable[str]) -> list[Challenge]:
    """Return the challenges in *fields*, the values of all WWW-Authenticate fields, in order."""
    found: list[Challenge] = []
    left = MOST_TEXT
    for field in fields:
        found += _in_field(field[:left], MOST_CHALLENGES - len(found))
        left -= min(left, len(field))
    return found


def _in_field(text: str, most: int) -> list[Challenge]:
    found: list[Challenge] = []
    if _CONTROL.search(text):
        return found  # nothing of it may get into a request
    place = _skip(text, 0)
    while place < len(text) and len(found) < most:
        scheme = _SCHEME.match(text, place)
        if scheme is None:
            break
        place = _skip(text, scheme.end())
        token = None if _PARAMETER.match(text, place) else _TOKEN68.match(text, place)
        if token is not None and "," not in text[scheme.end() : place]:
            found.append(Challenge(scheme[1].lower(), token=token[1]))
            place = _skip(text, token.end())
            continue
        parameters, place = _parameters(text, place)
        found.append(Challenge(scheme[1].lower(), parameters))
    return found


def _parameters(text: str, place: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return the parameters from *place* on, and the place behind them."""
    found: list[tuple[str, str]] = []
    while len(found) < MOST_PARAMETERS and (parameter := _PARAMETER.match(text, place)):
        quoted = parameter[2]
        value = parameter[3] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        found.append((parameter[1].lower(), value))
        place = _skip(text, parameter.end())
    return tuple(found), place


def _skip(text: str, place: int) -> int:
    skipped = _SKIPPED.match(text, place)
    return skipped.end() if skipped else place
