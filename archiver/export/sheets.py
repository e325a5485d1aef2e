"""References in CSS changed in their places; every other character stays. Pure."""

import re
from collections.abc import Callable

from archiver.export.links import Page
from archiver.extract import charset, css

_SPECIAL = re.compile(r"([()'\"\\ ])")


def rewritten(text: str, page: Page, meaning: Callable[[str], str]) -> str:
    """*text* with the references that *page* wants otherwise; a fragment alone always means the same document."""
    parts: list[str] = []
    kept = 0
    for start, end, reference in css.placed(text):
        said = meaning(reference)
        new = None if said.startswith("#") else page.replacement(said, loaded=True)
        if new is not None:
            parts += (text[kept:start], _SPECIAL.sub(r"\\\1", new))
            kept = end
    return "".join((*parts, text[kept:])) if parts else text


def labelled(body: bytes, text: str, encoding: str) -> str:
    """*text* that says its *encoding* by itself, where only the answer's header had said it."""
    if body.isascii() or charset.marked(body):
        return text
    if encoding == "utf-8":
        return f"\ufeff{text}"
    return text if charset.of_css(body, None) == encoding else f'@charset "{encoding}";{text}'
