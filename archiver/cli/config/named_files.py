"""Files, secrets and receivers that settings name: crawl.toml may name only those that this user has named himself.

Somebody else may have written the crawl.toml of a collection that was received.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from archiver.collection.layout import Layout
from archiver.collection.named_files import (
    archive_use,
    event_uses,
    file_uses,
    secret_uses,
    store_uses,
    strangers,
    way_uses,
)
from archiver.config.event_settings import STDERR
from archiver.config.secret_settings import with_changed
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.humanize import printable


def check_named_files(directory: Path, settings: Settings, given: Mapping[str, Any], *, trusted: bool) -> None:
    """Refuse files and secrets of this machine that crawl.toml names, unless this user named them for this collection.

    *given* are the settings that the user gives now; *trusted*: all of crawl.toml may be followed.
    """
    if trusted:
        return
    layout = Layout(directory)
    archives = {} if "dedup_from" in given else {archive_use(path): path for path in settings.dedup.dedup_from}
    if unknown := [archives[use] for use in strangers(layout, archives)]:
        shown = printable(" ".join(f"--dedup-from {quote(path)}" for path in unknown), 1000)
        raise ConfigError(
            f"{layout.settings}: dedup-from: you have not named {printable(unknown[0], 1000)} for this "
            f"collection on this machine; if you trust both, name it: {shown}; otherwise delete it from the file"
        )
    now = with_values(Settings(), {**given, "seeds": settings.seeds})
    uses = file_uses(with_file_paths(settings))
    mine = file_uses(with_file_paths(now))
    if foreign := strangers(layout, [use for use in uses if use not in mine]):
        shown = printable(" ".join(uses[use] for use in foreign), 1000)
        raise ConfigError(
            f"{layout.settings}: you have not named {printable(foreign[0], 1000)} for this collection on "
            f"this machine; if you trust it, name it: {shown}; otherwise delete it from the file"
        )
    if (store := settings.warc.store) and "store" not in given and strangers(layout, store_uses(settings)):
        raise ConfigError(
            f"{layout.settings}: you have not named the store {printable(store, 1000)} for this collection on this "
            f"machine; to copy the archive there, add --store {quote(store)}; otherwise delete it from the file"
        )
    own = {*secret_uses(now), *way_uses(now)}
    if foreign := strangers(layout, [use for use in secret_uses(settings) if use not in own]):
        raise ConfigError(
            f"{layout.settings}: you have not named this for this collection on this machine, and it decides who gets "
            f"your secrets: {printable('; '.join(foreign), 1000)}; if you trust it, add --trust-settings; otherwise "
            "delete it from the file"
        )
    check_receivers(layout, settings, now)


def check_receivers(layout: Layout, settings: Settings, now: Settings) -> None:
    """Refuse receivers of events, and logs, that are in crawl.toml, unless this user names them *now* or did before."""
    own = event_uses(now)
    if foreign := strangers(layout, [use for use in event_uses(settings) if use not in own]):
        raise ConfigError(
            f"{layout.settings}: you have not named this for this collection on this machine, and it would run, send "
            f"or write something: {printable('; '.join(foreign), 1000)}; if you trust it, run archiver resume with "
            "--trust-settings; otherwise delete it from the file"
        )


def with_file_paths(settings: Settings) -> Settings:
    """Return *settings* with absolute paths of files; one that is relative begins at the current folder."""
    log_to = settings.events.log_to
    hooks = settings.hooks.hooks and replace(settings.hooks.hooks, path=_absolute(settings.hooks.hooks.path))
    log_to = log_to if log_to in ("", STDERR) else _absolute(log_to)
    moved = with_values(settings, {"log_to": log_to, "hooks": hooks})
    changes: dict[str, Callable[[Any], Any]] = {"client-cert": lambda cert: cert.moved(_absolute)}
    return with_changed(moved, {**changes, "ca-file": _absolute, "behavior": _absolute})


def _absolute(path: str) -> str:
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # ~someone
        raise ConfigError(f"{printable(path, 1000)}: there is no such home folder; write an absolute path") from None
