"""The settings that an order changes in a running crawl, and the text of such an order: KEY=VALUE.

A setting says itself that it is `live`. Everything else is read once, when a crawl starts, for example what requests
are made of and where files are written.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from archiver.config.host_rules import KEYS, HostRule, from_text
from archiver.config.option_types import words_of
from archiver.config.politeness_settings import HOSTS
from archiver.config.presets import WITHOUT
from archiver.config.settings import Settings, every_setting, key_of, with_values
from archiver.errors import ConfigError

LIVE = frozenset(key_of(entry) for _, entry in every_setting() if entry.metadata["live"])
LIVE_FOR_HOSTS = LIVE.intersection(KEYS)  # in a rule for hosts
OF_THE_MACHINE = ("concurrency", "slow_concurrency", "max_bytes", "max_time")  # divided between its crawlers


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def live_values(given: Iterable[str], before: Settings) -> dict[str, Any]:
    """Return the values in *given* (KEY=VALUE) by the names of their fields. Raises `ConfigError`.

    A key that can have several values gets those that are given, none for an empty one. A rule for hosts goes before
    those in *before*, of which one with the same pattern loses the keys that the new rule has.
    """
    known = {key_of(entry): entry for _, entry in every_setting()}
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        key = key.strip().removeprefix("--")
        if not equals or key not in LIVE:
            raise ConfigError(_fault(key, known, has_value=bool(equals)))
        entry = known[key]
        try:
            kind = entry.metadata["kind"]
            parsed = None if entry.metadata["many"] and not value else kind.parse(from_text(kind, value))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
        if isinstance(parsed, HostRule):
            found[entry.name] = with_rule(found.get(entry.name, before.politeness.host), parsed)
        elif entry.metadata["many"]:
            found[entry.name] = (*found.get(entry.name, ()), *(() if parsed is None else (parsed,)))
        elif entry.name in found:
            raise ConfigError(f"{key}: given twice; write it once")
        else:
            found[entry.name] = parsed
    return found


def with_live_values(settings: Settings, given: Iterable[str]) -> Settings:
    """Return *settings* with the values in *given*."""
    return with_values(settings, live_values(given, settings))


def with_exclude(settings: Settings, regex: str, *, undo: bool) -> Settings:
    """Return *settings* with the pattern *regex* among those that exclude URLs; with *undo*, without it.

    `--without=NAME` in its place is an exclude list.
    """
    if regex.startswith(WITHOUT):
        name = regex.removeprefix(WITHOUT)
        others = tuple(one for one in lists_left_out(settings) if one != name)
        return replace(settings, scope=replace(settings.scope, without=others if undo else (*others, name)))
    known = settings.scope.exclude
    kept = tuple(one for one in known if one != regex) if undo else tuple(dict.fromkeys((*known, regex)))
    return replace(settings, scope=replace(settings.scope, exclude=kept))


def lists_left_out(settings: Settings) -> tuple[str, ...]:
    """Return the names of the exclude lists of *settings*."""
    return tuple(dict.fromkeys(words_of(settings.scope.without)))


def with_include(settings: Settings, regex: str, *, undo: bool) -> Settings:
    """Return *settings* with the pattern *regex* among those that include URLs; with *undo*, without it."""
    known = settings.scope.include
    kept = tuple(one for one in known if one != regex) if undo else tuple(dict.fromkeys((*known, regex)))
    return replace(settings, scope=replace(settings.scope, include=kept))


def with_block(settings: Settings, text: str, *, undo: bool) -> Settings:
    """Return *settings* with the hosts that match *text* among those that are not asked; with *undo*, without it."""
    pattern, known = HOSTS.parse(text), settings.politeness.block
    kept = tuple(one for one in known if one != pattern) if undo else tuple(dict.fromkeys((*known, pattern)))
    return replace(settings, politeness=replace(settings.politeness, block=kept))


def with_rule(rules: Sequence[HostRule], new: HostRule) -> tuple[HostRule, ...]:
    """Return *rules* with *new* before them, without what it replaces in a rule of the same pattern."""
    if wrong := [key for key, _ in new.given if key not in LIVE_FOR_HOSTS]:
        live = ", ".join(sorted(LIVE_FOR_HOSTS))
        raise ConfigError(f"host: {wrong[0]} is read when a crawl starts; while it runs, you can change {live}")
    keys = {key for key, _ in new.given}
    kept = [
        replace(rule, given=tuple(one for one in rule.given if one[0] not in keys)) if rule.match == new.match else rule
        for rule in rules
    ]
    return (new, *(rule for rule in kept if rule.given))


def _fault(key: str, known: Iterable[str], *, has_value: bool) -> str:
    if key in LIVE and not has_value:
        return f"{key}: write KEY=VALUE, for example rate=2"
    if key in known:
        return f"{key} is read when a crawl starts; stop it, then archiver resume DIR --{key} …"
    near = get_close_matches(key[:60].lower().replace("_", "-"), LIVE, n=1)
    hint = f"did you mean {near[0]}?" if near else f"settings of a running crawl: {', '.join(sorted(LIVE))}"
    return f"{key[:60]!r} is not a setting; {hint}"
