"""Reads crawl.toml and other files of settings."""

from pathlib import Path
from typing import Any

from archiver.config import toml
from archiver.errors import ConfigError
from archiver.storage import open_file

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
