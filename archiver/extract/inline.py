"""What a script that stands in its page names: where it takes its reader, its framework's state, files and pages.

The same is read of event handlers (`onload="…"`) and of `javascript:` URLs.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from archiver.extract import generators, navigation, script, state
from archiver.model import Hop

Named = Iterator[tuple[str, Hop, str]]  # a reference, how it leads on, and by what

_QUOTE = re.compile("[\"'`]")
_SCHEME = re.compile(r"\s*javascript:", re.IGNORECASE)
_NAVIGATES = re.compile(r"location|open|jump|go\b|goto|navigate|redirect|href|submit", re.IGNORECASE)


def program(text: str) -> Named:
    """What the *text* of a script element names."""
    yield from _code(text)
    yield from ((reference, hop, "script/state") for reference, hop in state.assigned(text))
    yield from ((reference, hop, generators.LOADED) for reference, hop in generators.inline(text))


def _code(text: str, *, sure_opens: bool = False) -> Named:
    known: set[str] = set()
    for goal in navigation.goals(text, sure_opens=sure_opens):
        known.add(goal.reference)
        yield goal
    for reference, kind in script.references(text, inline=True):
        if reference not in known:
            yield reference, Hop.SPECULATIVE, kind


def handler(text: str) -> Named:
    """What the value of an event handler names: what it opens is what a click is for."""
    if _QUOTE.search(text):
        yield from _code(text, sure_opens=True)


def is_script(reference: str) -> bool:
    """Whether *reference* is a script instead of an address."""
    return reference[:1] in "jJ \t\n" and _SCHEME.match(reference) is not None


def script_url(reference: str) -> Named:
    """What a `javascript:` URL names."""
    code = reference.partition(":")[2]
    return handler(unquote(code) if "%" in code else code)


def navigates(text: str) -> bool:
    """Whether a handler, which is called when another choice of a menu is made, opens what the choice names."""
    return bool(_NAVIGATES.search(text))
