"""Regular expressions with possessive groups: which are compiled where, and both libraries match them alike."""

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any, AnyStr

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.expressions import PYTHON_IS_RIGHT, compiled

LIST = """
import importlib, json, pkgutil, re, sys
from re import _constants as codes, _parser

FOLLOW = {codes.SUBPATTERN: 3, codes.ASSERT: 1, codes.ASSERT_NOT: 1, codes.MAX_REPEAT: 2, codes.MIN_REPEAT: 2}
ONE = {codes.IN, codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.CATEGORY}

def has_possessive_group(items):
    for code, value in items:
        if code is codes.POSSESSIVE_REPEAT and (len(value[2]) > 1 or value[2][0][0] not in ONE):
            return True
        parts = value[1] if code is codes.BRANCH else [value[FOLLOW[code]]] if code in FOLLOW else []
        parts = [value] if code is codes.ATOMIC_GROUP else parts
        if any(map(has_possessive_group, parts)):
            return True
    return False

found = []
compile = re.compile

def noted(pattern, flags=0):
    caller = sys._getframe(1).f_globals.get("__name__", "")
    if caller.startswith("archiver") and has_possessive_group(_parser.parse(pattern, flags)):
        text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
        found.append((caller, text, isinstance(pattern, bytes), int(flags)))
    return compile(pattern, flags)

re.compile = noted
import archiver
for module in pkgutil.walk_packages(archiver.__path__, "archiver."):
    try:
        module.name.endswith("__main__") or importlib.import_module(module.name)
    except ModuleNotFoundError as error:  # of an extra that is not installed here
        if error.name.startswith("archiver"):
            raise
print(json.dumps(found))
"""
PIECES = (
    *("<", ">", "</", "/>", "<!--", "-->", "<a ", "href", "=", '"', "'", "`", "\\", "${", "{", "}", "(", ")", "[", "]"),
    *("/*", "*/", "//", "http://", "example.org", "&amp;", "&#", ";", ":", ",", "?", "+", "-", "_", "@import", "url("),
    *(
        "a",
        "Z",
        "0",
        "17",
        " ",
        "\t",
        "\n",
        "\r\n",
        ".",
        "/",
        "script",
        "title>",
        "svg",
        "é",
        "\0",
        "#",
        "%20",
        "return ",
    ),
)


@cache
def patterns() -> list[tuple[str, str, bool, int]]:
    """Return the patterns with possessive groups in all modules: by whom they are compiled, text, if bytes, flags."""
    ran = subprocess.run([sys.executable, "-c", LIST], capture_output=True, text=True, check=True)
    return [tuple(each) for each in json.loads(ran.stdout.splitlines()[-1])]


@pytest.mark.parametrize(
    ("pattern", "text", "end"),
    [
        ("(?:ab?c)*+", "aca", 2),
        ("(?:ab?c)++", "acabca", 5),
        ("(?:a(?:b)?c)*+", "acabcab", 5),
        (r"(?:[^/\"]++|/\*(?:[^*]|\*(?!/))*+\*/|/)*+", 'a/*b*/c/"', 8),
    ],
)
def test_an_iteration_that_fails_consumes_nothing(pattern: str, text: str, end: int) -> None:
    found = compiled(pattern).match(text)
    assert found is not None
    assert found.end() == end


def test_flags() -> None:
    assert compiled("(?:é.x)++", re.IGNORECASE | re.DOTALL).fullmatch("É\nX")
    assert not compiled(r"(?:\w.x)++", re.ASCII).fullmatch("éax")
    assert compiled(rb"(?:a b)++ # comment", re.VERBOSE).fullmatch(b"abab")


def test_all_patterns_with_possessive_groups_are_compiled_here() -> None:
    assert {caller for caller, *_ in patterns()} <= {"archiver.config.expressions"}


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_both_libraries_match_alike(text: str) -> None:
    assert len(patterns()) > 50 or not PYTHON_IS_RIGHT  # then `regex` matches all of them
    for _, pattern, as_bytes, flags in patterns():
        if as_bytes:
            assert matches(compiled(pattern.encode("latin-1"), flags), text.encode()) == matches(
                regex.compile(pattern.encode("latin-1"), of_regex(flags)), text.encode()
            )
        else:
            assert matches(compiled(pattern, flags), text) == matches(regex.compile(pattern, of_regex(flags)), text)


def of_regex(flags: int) -> int:
    """Return *flags* of `re` as flags of `regex`."""
    return sum(getattr(regex, str(flag.name)) for flag in re.RegexFlag(flags))


def matches(expression: Any, text: AnyStr) -> list[tuple[object, ...]]:
    """Return what *expression* finds in *text*: places, groups, and the name of the last group."""
    return [(found.span(), found.groups(), found.lastgroup) for found in expression.finditer(text)]
