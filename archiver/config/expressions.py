"""Compiles regular expressions with possessive groups, such as `(?:ab?c)*+`, also where Python matches them wrongly.

Before Python 3.11.5, an iteration that fails keeps what it has consumed (CPython issue 106052): `(?:ab?c)*+` matches
all of `aca`. Debian 12 has such a Python. There the library `regex`, which knows the same syntax, matches them.
"""

import re
from typing import AnyStr, cast

PYTHON_IS_RIGHT = re.compile("(?:ab?c)*+").match("aca").end() == 2  # type: ignore[union-attr]


def compiled(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return *pattern* compiled with *flags* of `re`. Use it for each pattern in which a group is possessive."""
    if PYTHON_IS_RIGHT:
        return re.compile(pattern, flags)
    import regex  # noqa: PLC0415 - slow to import

    its_flags = sum(getattr(regex, str(flag.name)) for flag in re.RegexFlag(flags))
    return cast("re.Pattern[AnyStr]", regex.compile(pattern, its_flags))
