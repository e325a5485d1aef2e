"""Reads crawl.toml and other files of settings, and writes crawl.toml."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.errors import ConfigError
from archiver.storage import open_file, replace_file, storage

MAX_SETTINGS = 16 * 1024 * 1024  # bytes; a settings file has some kilobytes, with very many seeds some megabytes


def read_settings(path: Path) -> dict[str, Any]:
    """Return the values in the settings file *path*."""
    return toml.parse(settings_text(path), str(path))


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
    if read and stored_text(path) != read:
        raise ConfigError(f"{path} has just been changed by someone else; run archiver resume again")
    if text:
        replace_file(path, lambda file: file.writelines((text.encode(),)), private=True)
    with suppress(OSError):  # not there yet, or not ours to change
        path.chmod(0o600)  # no one else is to read it


def stored_text(path: Path) -> str:
    """Return the text of crawl.toml at *path*, as it is."""
    with storage(path), open_file(path) as file:
        return file.read().decode()
