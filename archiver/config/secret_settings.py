"""Which settings hold secrets, and settings without them. Pure.

Secret headers are in crawl.toml, which only its owner may read, and in the request records. Everything else that is
handed on goes through `without_secrets`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from archiver.config.option_types import LEFT_OUT
from archiver.config.proxies import ENVIRONMENT, NONE, parts, proxy_address
from archiver.config.secrets import SecretSource, source_in_header
from archiver.config.settings import Settings, all_values, all_values_of, every_setting, key_of, with_values
from archiver.config.tls import ClientCert

_WORDS = "auth|cookie|token|key|secret|session|password|csrf"
SECRET = re.compile(_WORDS, re.IGNORECASE)  # in the name of a header
_SECRET_LINE = re.compile(
    rf"""["'][^"':\n]*(?:{_WORDS})[^"':\n]*:|^[ \t]*#[# \t]*(?:client-cert|ca-file|on)[ \t]*=""",
    re.IGNORECASE | re.MULTILINE,
)


def has_secrets(settings: Settings) -> bool:
    """Return True if requests with *settings* hold something that may be a secret."""
    return (
        any(map(_is_secret, all_values_of(settings, "header")))
        or bool(secret_sources(settings))
        or bool(settings.fetch.login or all_values_of(settings, "client-cert"))
    )


def secret_sources(settings: Settings) -> tuple[SecretSource, ...]:
    """Return the sources of all secrets in *settings*: values that are or end in one, or have one as `secret`."""
    values = [value for _, key, value in all_values(settings) if key != "on-secret"]
    values += [value for login in settings.fetch.login for _, value in login.fields]
    in_headers = (source_at_end(line) for line in all_values_of(settings, "header"))
    found = (*(getattr(value, "secret", value) for value in values), *(held[1] for held in in_headers if held))
    return tuple(dict.fromkeys(each for each in found if isinstance(each, SecretSource)))


def proxy_sources(settings: Settings) -> tuple[SecretSource, ...]:
    """Return the sources of the passwords of proxies. No record and no request to a site holds these."""
    proxies = (parts(text)[1] for text in all_values_of(settings, "proxy"))
    found = (proxy_address(text).secret for text in proxies if text not in (ENVIRONMENT, NONE))
    return tuple(dict.fromkeys(each for each in found if each is not None))


def event_sources(settings: Settings) -> tuple[SecretSource, ...]:
    """Return the source of the secret that signs events. No record and no request to a site holds it."""
    return (settings.events.on_secret,) if settings.events.on_secret else ()


def source_at_end(header: str) -> tuple[str, SecretSource] | None:
    """Return the source at the end of a *header* that may be secret and the text before it; None if it has none."""
    return source_in_header(header) if _is_secret(header) else None


def without_secrets(settings: Settings) -> Settings:
    """Return *settings* with the names of secret headers, but not their values; a source of a secret stays.

    Client certificates keep their hosts, and files of certificate authorities, of behaviors and of hooks their names
    without folders. Those who get events are left out, because a URL or command may hold a secret.
    """
    bare = with_changed(
        settings, {"header": _bare, "client-cert": _without_files, "ca-file": _file_name, "behavior": _file_name}
    )
    hooks = settings.hooks.hooks and replace(settings.hooks.hooks, path=_file_name(settings.hooks.hooks.path))
    return with_values(bare, {"on": (), "on_secret": None, "log_to": "", "hooks": hooks})


def with_changed(settings: Settings, changes: Mapping[str, Callable[[Any], Any]]) -> Settings:
    """Return *settings* with all values, those of hosts and seeds too, as *changes* return them.

    The keys of *changes* are those of repeatable settings.
    """
    common = {
        entry.name: tuple(map(changes[key_of(entry)], getattr(getattr(settings, part), entry.name)))
        for part, entry in every_setting()
        if key_of(entry) in changes
    }
    host = tuple(replace(rule, given=_changed(rule.given, changes)) for rule in settings.politeness.host)
    seed = tuple(replace(own, given=_changed(own.given, changes)) for own in settings.scope.seed)
    return with_values(settings, {**common, "host": host, "seed": seed})


def _changed(
    given: tuple[tuple[str, Any], ...], changes: Mapping[str, Callable[[Any], Any]]
) -> tuple[tuple[str, Any], ...]:
    return tuple((key, changes[key](value) if key in changes else value) for key, value in given)


def _without_files(cert: ClientCert) -> ClientCert:
    return cert.bare


def _file_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _bare(header: str) -> str:
    if not _is_secret(header) or source_at_end(header):
        return header
    return f"{header.partition(':')[0]}: {LEFT_OUT}"


def may_hold_secret(text: str) -> bool:
    """Return whether the *text* of a crawl.toml may hold a secret, if only in a comment."""
    return _SECRET_LINE.search(text) is not None


def is_left_out(header: str) -> bool:
    """Return True if *header* has lost its value in `without_secrets`."""
    return header.partition(":")[2].strip() == LEFT_OUT


def _is_secret(header: str) -> bool:
    return SECRET.search(header.partition(":")[0]) is not None


_LIMITS = ("concurrency", "slow-concurrency", "processes", "frontier", "min-free-disk", "drain-timeout", "strict")
_PLACES = ("source-address", "ip-version", "dns-server", "client-cert", "ca-file", "behavior", "dedup-from")
_HEARD = ("on", "on-secret", "log-to", "log-format")
OF_EACH_MACHINE = frozenset((*_LIMITS, *_PLACES, *_HEARD))  # the machines of one crawl need not have them in common


def in_common(settings: Settings) -> Settings:
    """Return *settings* as all machines of a crawl have them: without secrets, and with defaults for their own."""
    default = Settings()
    own = {
        entry.name: getattr(getattr(default, part), entry.name)
        for part, entry in every_setting()
        if key_of(entry) in OF_EACH_MACHINE
    }
    bare = with_values(without_secrets(settings), own)
    host = tuple(replace(rule, given=_kept(rule.given)) for rule in bare.politeness.host)
    seed = tuple(replace(one, given=_kept(one.given)) for one in bare.scope.seed)
    header = tuple(line for line in bare.fetch.header if not is_left_out(line))
    kept = {"host": tuple(rule for rule in host if rule.given), "seed": tuple(one for one in seed if one.given)}
    return with_values(bare, {"header": header, **kept})


def _kept(given: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((key, one) for key, one in given if key not in _PLACES and not (key == "header" and is_left_out(one)))


def left_out(settings: Settings) -> str:
    """Return the names of the headers that `in_common` leaves out, with commas between."""
    bare = all_values_of(without_secrets(settings), "header")
    return ", ".join(sorted({line.partition(":")[0] for line in bare if is_left_out(line)}))


def on_this_machine(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in *common* with those of *own* that each machine has itself."""
    kept = {name: value for name, value in own.items() if name.replace("_", "-") in OF_EACH_MACHINE}
    return {**{name: value for name, value in common.items() if name.replace("_", "-") not in OF_EACH_MACHINE}, **kept}
