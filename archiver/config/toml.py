"""Parse and render crawl.toml. Pure; the caller reads and writes the file.

The keys are flat and have the names of the options. A bad file is refused as a whole; the message has the file, the
line, the key and a valid example. `parse` reads back exactly what `render` writes.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import Field
from difflib import get_close_matches
from itertools import chain
from textwrap import wrap
from typing import Any

from archiver.config import host_rules, logins, seeds
from archiver.config.option_types import MOST_PATTERNS, OptionType
from archiver.config.settings import TITLES, Settings, every_setting, key_of
from archiver.errors import ConfigError

SEEDS = "seeds"
TABLES: dict[str, Callable[[Any], dict[str, Any]]] = {  # settings whose values are tables: `[[host]]`
    "seed": seeds.table_of,
    "host": host_rules.table_of,
    "login": logins.table_of,
}
_EXAMPLES = {
    "seed": ("# [[seed]]", '# url = "https://example.org/blog/"', '# scope = "prefix"', "# rate = 1"),
    "host": ("# [[host]]", '# match = "*.example.org"', "# rate = 1", "# host-concurrency = 1"),
    "login": (
        "# [[login]]",
        '# page = "https://example.org/login"',
        '# fields = { user = "me", password = "env:SITE_PASSWORD" }',
        "# logged-out = 'Please log in'",
    ),
}
MAX_SHOWN = 60  # characters of an unknown key in a message, which is one line
_COMMENT_WIDTH = 100
_PLACE = re.compile(r"\(at line (\d+), column \d+\)$")
_PATTERNS = frozenset(("include", "exclude", "logged-out"))  # keys whose values are patterns, in tables too
_SHORT_FORM = re.compile(rf"\s(?:{'|'.join(sorted(_PATTERNS))})=")  # a table on one line
_PLAIN = re.compile(r"[ !#-\[\]-~]*+")  # ASCII in which nothing is to be escaped


def _seed(text: str) -> str:
    address, own = seeds.read_seed(text)
    if own is not None:
        raise ConfigError(f"a seed with settings is a table: write [[seed]] and below it url = {toml_value(address)}")
    return address


_SEEDS_KIND = OptionType("URL", "a URL", _seed)


def parse(text: str, name: str) -> dict[str, Any]:
    """Return the values in *text*, by name of field and `seeds`. *name* is the name of the file, for messages."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(_syntax_fault(text, name, error)) from None
    known = {key_of(entry): entry for _, entry in every_setting()}
    values: dict[str, Any] = {}
    patterns = 0
    for key, given in document.items():
        try:
            patterns = _more_patterns(key, given, patterns)
            if key == SEEDS:
                values[SEEDS] = tuple(dict.fromkeys(_listed(SEEDS, given, _SEEDS_KIND)))
            else:
                entry = _known(key, given, known)
                values[entry.name] = value_of(entry, given)
        except ConfigError as error:
            raise ConfigError(f"{name}:{_line_of(text, key)}: {error}") from None
    if own := values.get("seed"):
        values[SEEDS] = tuple(dict.fromkeys((*values.get(SEEDS, ()), *(one.url for one in own))))
    return values


def render(settings: Settings) -> str:
    """Return the text of crawl.toml: every setting, each below its help."""
    lines = [
        "# The settings of this crawl. `archiver resume` reads them; its options override them and are written back.",
        "",
        f"{SEEDS} = {toml_value(list(settings.seeds))}",
    ]
    chapter, patterns = None, 0
    for name, entry in every_setting():
        part = getattr(settings, name)
        patterns = _more_patterns(key_of(entry), plain_value(getattr(part, entry.name), entry), patterns)
        if name != chapter:
            chapter = name
            lines += ["", f"# -- {TITLES[name]}. {type(part).__doc__} --"]
        if key_of(entry) in TABLES:
            continue  # tables come last, or the keys below them would be theirs
        lines += ["", *_comment(explained(entry))]
        lines.append(f"{key_of(entry)} = {toml_value(plain_value(getattr(part, entry.name), entry))}")
    for name, entry in every_setting():
        if key_of(entry) in TABLES:
            lines += ["", *_comment(entry.metadata["help"]), "#", *_EXAMPLES[key_of(entry)]]
            for value in getattr(getattr(settings, name), entry.name):
                table = TABLES[key_of(entry)](value)
                lines += ["", f"[[{key_of(entry)}]]", *(f"{key} = {toml_value(one)}" for key, one in table.items())]
    return "\n".join(lines) + "\n"


def _more_patterns(key: str, given: Any, before: int) -> int:
    """Return the characters of all patterns: so many *before*, and those in *given*, the TOML value of *key*.

    Raises `ConfigError` if it would take very long to read them. No one checks each link against so many.
    """
    total = before + _pattern_length(key, given)
    if total > MOST_PATTERNS:
        raise ConfigError(
            f"{key}: with these, the patterns of the crawl have {total} characters, and {MOST_PATTERNS} is the most; "
            "leave some out, or write one pattern for many"
        )
    return total


def _pattern_length(key: str, given: Any) -> int:
    """Return the characters of the patterns in *given*: in a list of them, or in tables that may have some."""
    length = 0
    for one in given if isinstance(given, list) else ():
        if isinstance(one, str) and (key in _PATTERNS or (key in TABLES and _SHORT_FORM.search(one))):
            length += len(one)
        elif isinstance(one, dict):
            inside = (value for name, value in one.items() if name in _PATTERNS)
            lists = (value if isinstance(value, list) else [value] for value in inside)
            length += sum(len(each) for each in chain.from_iterable(lists) if isinstance(each, str))
    return length


def plain_value(value: Any, entry: Field[Any]) -> Any:
    """Return the *value* of the setting *entry* in strings, numbers, lists and dicts."""
    if key_of(entry) in TABLES:
        return [TABLES[key_of(entry)](one) for one in value]
    kind: OptionType = entry.metadata["kind"]
    return [kind.write(one) for one in value] if entry.metadata["many"] else kind.write(value)


def _comment(text: str) -> list[str]:
    """Return *text* as lines of comment. Names of settings such as max-depth stay whole."""
    return [f"# {line}" for line in wrap(text, _COMMENT_WIDTH, break_on_hyphens=False)]


def explained(entry: Field[Any]) -> str:
    """Return the help of a setting and its valid values, as one paragraph."""
    kind: OptionType = entry.metadata["kind"]
    right = f"a list; each item: {kind.right}" if entry.metadata["many"] else kind.right
    return f"{entry.metadata['help']} ({right[0].upper()}{right[1:]}.)"


def _known(key: str, given: Any, known: dict[str, Field[Any]]) -> Field[Any]:
    if key not in known:
        raise ConfigError(_unknown(key, given, [SEEDS, *known]))
    return known[key]


def value_of(entry: Field[Any], given: Any) -> Any:
    """Return *given*, a TOML value, as that of the setting *entry*. Raises `ConfigError`, which begins with its key."""
    kind: OptionType = entry.metadata["kind"]
    key = key_of(entry)
    if isinstance(given, dict):
        raise ConfigError(_table_fault(key))
    if entry.metadata["many"]:
        return tuple(_listed(key, given, kind))
    try:
        return kind.parse(given)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from None


def _listed(key: str, given: Any, kind: OptionType) -> Iterator[Any]:
    allowed = (str, dict) if key in TABLES else str
    if not isinstance(given, list) or not all(isinstance(one, allowed) for one in given):
        raise ConfigError(f'{key}: not a list of strings; write {key} = ["…", "…"]')
    for one in given:
        try:
            yield kind.parse(one)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None


def _unknown(key: str, given: Any, known: list[str]) -> str:
    shown = repr(key[:MAX_SHOWN])[1:-1]
    near = get_close_matches(key[:MAX_SHOWN].lower().replace("_", "-").lstrip("-"), known, n=1)
    if isinstance(given, dict) and not near:
        return f"[{shown}]: tables are not supported; write each key at the top level, for example max-depth = 3"
    return f"{shown}: unknown key; " + (
        f"did you mean {near[0]}?" if near else "docs/reference/settings.md names them all"
    )


def _table_fault(key: str) -> str:
    if key in TABLES:
        return f"{key}: write [[{key}]] with two brackets, once for each"
    return f"{key}: the value is a table; write {key} = … at the top level"


def _syntax_fault(text: str, name: str, error: Exception) -> str:
    found = _PLACE.search(str(error))
    line = int(found[1]) if found else text.rstrip().count("\n") + 1
    reason = "nested too deeply" if isinstance(error, RecursionError) else _PLACE.sub("", str(error)).strip()
    return f"{name}:{line}: not TOML: {repr(reason)[1:-1]}; write, for example, max-depth = 3"


def _line_of(text: str, key: str) -> int:
    """Return the line that sets *key*: the first one with its name outside a multi-line string."""
    named = re.compile(rf"""[ \t]*\[{{0,2}}[ \t]*(["']?){re.escape(key)}\1[ \t]*[.=\]]""")
    lines = text.split("\n")
    candidates = [number for number, line in enumerate(lines) if named.match(line)]
    for number in candidates:
        try:
            tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        return number + 1
    return candidates[0] + 1 if candidates else 1


def toml_value(value: Any) -> str:
    """Return *value* as TOML, with strings escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_value(key)} = {toml_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, list):
        inner = [toml_value(one) for one in value]
        return f"[{', '.join(inner)}]" if len(inner) < 2 else "[\n" + "".join(f"    {one},\n" for one in inner) + "]"
    if isinstance(value, str):
        if _PLAIN.fullmatch(value):
            return f'"{value}"'
        return '"' + "".join(_escaped(char) for char in value) + '"'
    return repr(value)


def _escaped(char: str) -> str:
    if char in {'"', "\\"}:
        return f"\\{char}"
    return char if char.isprintable() else f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
