"""Reads crawl.toml and other files of settings, and writes crawl.toml and where its values came from."""

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.profiles import SettingOrigin
from archiver.config.seeds import SeedAbout, descriptions
from archiver.errors import ConfigError
from archiver.humanize import volume
from archiver.storage import open_file, replace_file, storage

MAX_SETTINGS = 16 * 1024 * 1024  # bytes; a settings file has some kilobytes, with very many seeds some megabytes


def read_settings(path: Path) -> dict[str, Any]:
    """Return the values in the settings file *path*."""
    return dict(_parsed(settings_text(path), str(path)))


@lru_cache(maxsize=1)  # the end of a crawl reads its crawl.toml several times, perhaps with very many seeds
def _parsed(text: str, name: str) -> dict[str, Any]:
    return toml.parse(text, name)


def seed_descriptions(layout: Layout) -> dict[str, SeedAbout]:
    """Return the descriptions of seeds in the crawl.toml of *layout*, by URL; none if there is no such file."""
    if not layout.settings.is_file():
        return {}
    return descriptions(read_settings(layout.settings).get("seed", ()))


def settings_text(path: Path) -> str:
    """Return the text of the settings file *path*."""
    try:
        with open_file(path) as file:
            content = file.read(MAX_SETTINGS + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_SETTINGS:
        raise ConfigError(f"{path}: longer than {MAX_SETTINGS} bytes; this cannot be a settings file")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8; a TOML file must be") from None


def put_settings(layout: Layout, text: str, read: str = "") -> None:
    """Write *text*, if any, to crawl.toml durably. Raises `ConfigError` if the file no longer holds *read*."""
    path = layout.settings
    check_length(text)
    if read and stored_text(path) != read:
        raise ConfigError(f"{path} has just been changed by someone else; run archiver resume again")
    if text:
        replace_file(path, lambda file: file.writelines((text.encode(),)), private=True)
    with suppress(OSError):  # not there yet, or not ours to change
        path.chmod(0o600)  # no one else is to read it


def check_length(text: str) -> str:
    """Return *text*; refuse it as crawl.toml if it is longer than the file may be: no command could read it again."""
    size = len(text.encode())
    if size > MAX_SETTINGS:
        raise ConfigError(
            f"crawl.toml would have {volume(size)} and can have {volume(MAX_SETTINGS)}; give fewer seeds, or leave out "
            "titles and notes"
        )
    return text


def stored_text(path: Path) -> str:
    """Return the text of crawl.toml at *path*, as it is."""
    with storage(path), open_file(path) as file:
        return file.read().decode()


def put_origins(layout: Layout, origins: Mapping[str, SettingOrigin]) -> None:
    """Write where the values of crawl.toml came from, by key."""
    text = json.dumps({key: (found.origin, found.digest) for key, found in origins.items()}, indent=0)
    replace_file(layout.origins, lambda file: file.writelines((text.encode(),)), private=True)


def read_origins(layout: Layout) -> dict[str, SettingOrigin]:
    """Return where the values of crawl.toml came from, by key, as far as that is known."""
    try:
        with open_file(layout.origins) as file:
            found = json.loads(file.read(MAX_SETTINGS))
        return {str(key): SettingOrigin(str(origin), str(digest)) for key, (origin, digest) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
