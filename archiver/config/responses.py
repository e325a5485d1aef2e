"""Types of the settings that say which responses are asked for, and which bodies are read. Pure."""

import re
from collections.abc import Callable
from typing import Any

from archiver.config.option_types import OptionType
from archiver.errors import ConfigError

_MEDIA_TYPE = re.compile(r"[!#$%&'+.^_`|~0-9a-z-]+/(?:\*|[!#$%&'+.^_`|~0-9a-z-]+)")
_STATUS = re.compile(r"[2-9](?:xx|[0-9]{2})")
_QUALITY = r"(?:[ \t]*;[ \t]*[qQ]=(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?"
_LANGUAGE = re.compile(rf"(?:\*|[A-Za-z]{{1,8}}(?:-[A-Za-z0-9]{{1,8}})*){_QUALITY}")
_ONE_LANGUAGE = re.compile("[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,8}")
MOST_LANGUAGES = 10  # each costs one more request for each URL
_WORD = r"[!#$%&'+.^_`|~0-9A-Za-z-]+"
_ACCEPTED = re.compile(rf"(?:\*/\*|{_WORD}/(?:\*|{_WORD}))(?:[ \t]*;[ \t]*(?![qQ]=){_WORD}={_WORD})*{_QUALITY}")


def _media_type(given: Any) -> str:
    if not isinstance(given, str) or (found := _MEDIA_TYPE.fullmatch(given.strip().lower())) is None:
        raise ValueError
    return found.group()


def _statuses(given: Any) -> str:
    """Return status codes and classes of them, each once, separated by commas."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise TypeError
    codes = [code.strip().lower() for code in str(given).split(",")] if given != "" else []
    if not all(map(_STATUS.fullmatch, codes)):
        raise ValueError
    return ",".join(dict.fromkeys(codes))


def _languages(given: Any) -> str:
    found = _list_of(_ONE_LANGUAGE)(given)
    if found.count(",") >= MOST_LANGUAGES:
        raise ValueError
    return found


def _list_of(item: re.Pattern[str]) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if not isinstance(given, str) or not given.isprintable():
            raise TypeError
        items = [part.strip() for part in given.split(",")]
        if given.strip() and not all(map(item.fullmatch, items)):
            raise ValueError
        return ", ".join(filter(None, items))

    return read


def _codings(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    words = [word.strip().lower() for word in given.split(",")]
    if "zstd" in words:
        raise ConfigError("pywb does not decode zstd, so pages would not replay; write gzip, or gzip,br")
    if not set(words) <= set(CODINGS):
        raise ValueError
    return ", ".join(dict.fromkeys(words))


CODINGS = ("gzip", "br", "deflate", "identity")  # content codings that we and pywb decode
MEDIA_TYPE = OptionType("TYPE", "a media type, such as video/mp4 or video/*", _media_type)
STATUSES = OptionType(
    "CODE[,CODE]", "status codes, or classes of them, with commas (200,404 or 2xx,4xx), or nothing for all", _statuses
)
ACCEPT = OptionType(
    "TYPES", "media types as in an Accept header (text/html,*/*;q=0.8), or nothing", _list_of(_ACCEPTED)
)
LANGUAGES = OptionType(
    "LANGUAGES", "languages as in an Accept-Language header (fr, en;q=0.5), or nothing", _list_of(_LANGUAGE)
)
LANGUAGE_LIST = OptionType(
    "LANGUAGE[,LANGUAGE]",
    f"at most {MOST_LANGUAGES} languages without weights (fr, pt-BR), or nothing",
    _languages,
)
ACCEPT_ENCODING = OptionType("CODING[,CODING]", f"content codings: {', '.join(CODINGS)}", _codings, words=CODINGS)
