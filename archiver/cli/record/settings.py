"""The settings that have an effect on a recording, which a proxy makes of what clients ask. Pure.

Clients decide what is asked, when, and with which headers. So the settings for that have no effect, wherever they are.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from archiver.config.profiles import Source
from archiver.config.settings import Settings, every_setting, key_of, with_values

OPTIONS = frozenset(
    (
        *("allow-private", "insecure-secrets", "proxy", "timeout", "max-response-size", "max-unstated-size"),
        *("resolve", "dns-server", "source-address", "ip-version"),
        *("dns-timeout", "connect-timeout", "first-byte-timeout", "max-response-time"),
        *("ca-file", "system-ca", "client-cert", "tls-min", "tls-max"),
        *("min-free-disk", "drain-timeout"),
        *("warc-prefix", "warc-size", "metadata-warc", "digest", "operator", "description"),
        *("dedup", "dedup-min-size", "dedup-from"),
    )
)  # of archiver record
APPLICABLE = OPTIONS | {"contact", "host"}  # the contact is in the warcinfo records, and no request has it
# What a recording does differently from a crawl, in the settings of a crawl.
FIXED: dict[str, Any] = {"recording": True, "robots": "ignore", "retries": 0, "probe": "off", "cookies": "off"}


def recording_settings(given: Mapping[str, Any]) -> Settings:
    """Return the settings of a recording from those that were *given*."""
    return with_values(Settings(), {**given, **FIXED})


def applicable(source: Source) -> tuple[Source, tuple[str, ...]]:
    """Return of *source* what has an effect on a recording, and the keys of the rest."""
    keys = {entry.name: key_of(entry) for _, entry in every_setting()}
    values, without = dict[str, Any](), set[str]()
    for name, value in source.values.items():
        key = keys.get(name, name)
        if key == "host":
            rules = [replace(rule, given=tuple(one for one in rule.given if one[0] in OPTIONS)) for rule in value]
            without |= {f"{key}: {one}" for rule in value for one, _ in rule.given if one not in OPTIONS}
            if kept := tuple(rule for rule in rules if rule.given):
                values[name] = kept
        elif key in OPTIONS or key in APPLICABLE:
            values[name] = value
        elif name not in FIXED:
            without.add(key)
    return Source(values, {name: source.origins[name] for name in values}), tuple(sorted(without))
