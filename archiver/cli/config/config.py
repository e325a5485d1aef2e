"""`archiver config`: the settings of a crawl, or of the next one, and where each comes from."""

import json
import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from archiver.cli.options import define_command, json_option, profile_option
from archiver.cli.terminal import result

EDITED = "crawl.toml, edited or changed by an order"


def _config(directory: Path | None, profile: str | None, *, every: bool, as_json: bool) -> int:
    from archiver.collection.layout import Layout
    from archiver.collection.settings_file import read_origins, read_settings
    from archiver.config.profiles import DEFAULT, SettingOrigin, origin_of
    from archiver.config.secret_settings import without_secrets
    from archiver.config.settings import Settings, every_setting, key_of, with_values
    from archiver.config.toml import plain_value, toml_value
    from archiver.errors import ConfigError
    from archiver.model import ExitCode

    known: dict[str, SettingOrigin]
    context = click.get_current_context()
    if directory is None:
        settings, known = _next(profile)
    elif profile is not None and context.get_parameter_source("profile") is ParameterSource.COMMANDLINE:
        raise ConfigError("--profile is for new crawls; leave out DIR to see the settings of the next one")
    else:
        layout = Layout(directory)
        settings, known = with_values(Settings(), read_settings(layout.settings)), read_origins(layout)
    origins = origin_of(settings, known)
    shown = without_secrets(settings)
    for part, entry in every_setting():
        key = key_of(entry)
        origin = origins[key] or EDITED
        if origin == DEFAULT and not every:
            continue
        value = plain_value(getattr(getattr(shown, part), entry.name), entry)
        if as_json:
            result(json.dumps({"key": key, "value": value, "origin": origin}))
        else:
            result(f"{key} = {toml_value(value)}  # {origin}")
    return ExitCode.DONE


def _next(profile: str | None) -> Any:
    """Return the settings that a crawl begun now would have, and where they come from."""
    from archiver.cli.config.sources import GivenSettings, user_defaults
    from archiver.config.profiles import layered, recorded
    from archiver.config.settings import Settings, with_values

    found = layered((user_defaults(), GivenSettings({}, None, profile, os.environ).whole()))
    settings = with_values(Settings(), found.values)
    return settings, recorded(settings, found.origins, {})


COMMAND = define_command(
    "config",
    _config,
    """Show the settings of a crawl, and where each comes from.

    Shows those that are not defaults; without DIR, those that a crawl begun now would have. Later sources replace
    earlier ones: the defaults, your own defaults in ~/.config/archiver/config.toml, --profile, --config, environment
    variables such as ARCHIVER_RATE, options. Values that may be secret are not shown.
    """,
    [
        click.Argument(["directory"], metavar="[DIR]", required=False, type=click.Path(path_type=Path)),
        profile_option(),
        click.Option(["--all", "every"], is_flag=True, help="Also show settings that have their default."),
        json_option("Print JSON, one object per line."),
    ],
    ("archiver config collections/example.org", "see what this crawl was told, and by whom"),
    ("archiver config --profile gentle", "see what a profile sets"),
    ("archiver config --all", "see all settings that a new crawl would have"),
)
