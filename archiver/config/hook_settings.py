"""Hooks and plugins in settings: the user's file of hooks, pinned by its digest, and how long each may take. Pure.

In crawl.toml the value is the path and the digest of what was in the file: `hooks = "/home/me/hooks.py sha256:HEX"`.
On the command line it is the path alone: of what the file holds now.
"""

import re
from dataclasses import dataclass
from typing import Any

from archiver.config.option_types import SECONDS, OptionType, choice
from archiver.config.scope_settings import setting

NONE = "none"
_WRITTEN = re.compile(r"(?P<path>.+?)(?: sha256:(?P<digest>[0-9a-f]{64}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file with hooks."""

    path: str
    digest: str = ""  # SHA-256 of its bytes in hex; "": of what it holds now

    def __str__(self) -> str:
        return f"{self.path} sha256:{self.digest}" if self.digest else self.path


def _read(given: Any) -> HookFile | None:
    if given is None or isinstance(given, HookFile):
        return given
    if not isinstance(given, str) or not given.isprintable():
        raise ValueError
    found = _WRITTEN.fullmatch(given.strip())
    if found is None or found["path"] == NONE:
        return None
    return HookFile(found["path"], found["digest"] or "")


HOOKS = OptionType(
    "FILE.py", "the path of a Python file, or none", _read, lambda value: "" if value is None else str(value)
)


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The user's own functions that are asked while a crawl runs, and those of other installed programs."""

    hooks: HookFile | None = setting(  # noqa: RUF009 - a field
        None,
        HOOKS,
        "Ask the functions judge, links, keep and settings in this Python file (docs/how-to/hooks.md). none: no file.",
    )
    hook_timeout: float = setting(
        5.0, SECONDS, "Wait this long for each function and page; then the usual rules decide."
    )
    plugins: str = setting(
        "on", choice("on", "off"), "Also read links with the extractors that other installed programs offer (on)."
    )
