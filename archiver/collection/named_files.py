"""What the user named for a collection: other archives, certificates, behaviors, secrets and commands.

A received collection can name any file and any secret of this machine in its crawl.toml, where to send it, and commands
that hear of events. They count only if this user named them for this collection: then the collection holds a mark of
each, made with the user's own key.
"""

import hmac
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from archiver import url
from archiver.collection.layout import Layout
from archiver.config.event_settings import STDERR
from archiver.config.secret_settings import proxy_sources, secret_sources, source_at_end
from archiver.config.secrets import SecretSource
from archiver.config.settings import Settings, all_values, all_values_of
from archiver.storage import open_file, replace_file, user_key

NAME = "named-files.known"  # in the collection: one signature per line
LARGEST = 1 << 20  # bytes of it
WAYS = ("proxy", "resolve", "dns-server", "insecure-secrets")  # settings that decide to whom a request really goes


def vouch(layout: Layout, uses: Sequence[str]) -> None:
    """Sign *uses*, which this user named, if a key can be stored."""
    key = user_key(make=True) if uses else b""
    marks = _marks(layout)
    wanted = {_mark(key, use) for use in uses} if key else set()
    if wanted <= marks:
        return
    text = "".join(f"{mark}\n" for mark in sorted(marks | wanted)).encode()
    replace_file(layout.directory / NAME, lambda file: file.writelines((text,)))


def strangers(layout: Layout, uses: Iterable[str]) -> list[str]:
    """Return those of *uses* that this user did not name for this collection."""
    key, marks = user_key(make=False), _marks(layout)
    return [use for use in uses if not key or _mark(key, use) not in marks]


def archive_use(path: str) -> str:
    """Return the use of the archive at *path* for deduplication."""
    return str(Path(path).resolve())


def file_uses(settings: Settings) -> dict[str, str]:
    """Return the uses of files of this machine, for TLS, a browser and hooks; for each the option that names it."""
    found: dict[str, str] = {}
    for hosts, key, value in all_values(settings):
        if key == "client-cert":
            use = str(replace(value, hosts=value.hosts or hosts))
            found[f"client-cert {use}"] = f"--client-cert {quote(use)}"
        elif key == "ca-file":
            found[f"ca-file {value}"] = f"--ca-file {quote(value)}"
        elif key == "behavior":
            found[f"behavior {value}"] = f"--behavior {quote(value)}"
        elif key == "hooks" and value is not None:
            found[f"hooks {value}"] = f"--hooks {quote(value.path)}"
    return found


def secret_uses(settings: Settings) -> list[str]:
    """Return the uses of secrets of this machine: each place of one, with the hosts that get it, and the way there."""
    found: list[str] = []
    for hosts, key, value in all_values(settings):
        if key == "auth":
            found.append(f"auth {hosts} {value}")
        elif key == "header" and source_at_end(value):
            found += (f"header {hosts} {value} for {origin}" for origin in sorted(set(map(url.origin, settings.seeds))))
        elif key == "login":
            found += (f"login {value.page} {field}={each}" for field, each in value.fields if _is_place(each))
    certs = all_values_of(settings, "client-cert")
    return [*found, *way_uses(settings)] if certs or secret_sources(settings) or proxy_sources(settings) else []


def store_uses(settings: Settings) -> list[str]:
    """Return the use of the store to which the archive is copied."""
    return [f"store {settings.warc.store}"] if settings.warc.store else []


def event_uses(settings: Settings) -> list[str]:
    """Return the uses that run a command, send something or write a file outside because of what happens in a crawl."""
    events = settings.events
    uses = [f"on {each}" for each in events.on]
    if events.on_secret is not None:
        uses += (f"on-secret {events.on_secret} for {each.target}" for each in events.on if each.is_address)
    return uses + ([f"log-to {events.log_to}"] if events.log_to not in ("", STDERR) else [])


def way_uses(settings: Settings) -> list[str]:
    """Return the uses that decide to whom a request really goes."""
    return [f"{key} {hosts} {value}" for hosts, key, value in all_values(settings) if key in WAYS]


def _is_place(value: object) -> bool:
    return isinstance(value, SecretSource)


def _mark(key: bytes, use: str) -> str:
    return hmac.digest(key, use.encode(errors="surrogateescape"), "sha256").hex()


def _marks(layout: Layout) -> set[str]:
    with suppress(FileNotFoundError), open_file(layout.directory / NAME) as file:
        return set(file.read(LARGEST).decode("ascii", "replace").split())
    return set()
