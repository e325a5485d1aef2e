"""`archiver config`: the settings of a crawl, or of the next one, and where each comes from."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from archiver.cli.config.setting_options import profile_option
from archiver.cli.options import define_command, json_option
from archiver.cli.terminal import complain, result

if TYPE_CHECKING:
    from archiver.config.hook_settings import HookSettings

EDITED = "crawl.toml, edited or changed by an order"


def _config(directory: Path | None, profile: str | None, *, every: bool, as_json: bool) -> int:
    from archiver.cli.directory import check_is_directory
    from archiver.collection.layout import Layout
    from archiver.collection.settings_file import read_origins, read_settings
    from archiver.config.profiles import DEFAULT, SettingOrigin, origin_of
    from archiver.config.secret_settings import without_secrets
    from archiver.config.settings import Settings, every_setting, key_of, with_values
    from archiver.config.toml import plain_value
    from archiver.errors import ConfigError
    from archiver.model import ExitCode

    known: dict[str, SettingOrigin]
    context = click.get_current_context()
    if directory is None:
        settings, known = _next(profile)
    elif profile is not None and context.get_parameter_source("profile") is ParameterSource.COMMANDLINE:
        raise ConfigError("--profile is for new crawls; leave out DIR to see the settings of the next one")
    else:
        check_is_directory(directory)
        layout = Layout(directory)
        if not layout.settings.exists():
            raise ConfigError(f"{directory} holds no crawl: it has no crawl.toml")
        settings, known = with_values(Settings(), read_settings(layout.settings)), read_origins(layout)
    origins = origin_of(settings, known)
    shown = without_secrets(settings)
    for part, entry in every_setting():
        key = key_of(entry)
        origin = origins[key] or EDITED
        if origin == DEFAULT and not every:
            continue
        value = plain_value(getattr(getattr(shown, part), entry.name), entry)
        _show(key, value, origin, as_json=as_json)
    for key, value, origin in _programs(directory, settings.hooks):
        _show(key, value, origin, as_json=as_json, setting=False)
    return ExitCode.DONE


def _show(key: str, value: Any, origin: str, *, as_json: bool, setting: bool = True) -> None:
    """Print one line; what is no setting is a comment of TOML."""
    from archiver.config.toml import toml_value

    if as_json:
        result(json.dumps({"key": key, "value": value, "origin": origin}))
    else:
        result(f"{'' if setting else '# '}{key} = {toml_value(value)}  # {origin}")


def _programs(directory: Path | None, settings: "HookSettings") -> Iterator[tuple[str, str, str]]:
    """Yield the hooks and extractors that a crawl asks: what each is, its place, and whose it is in which version."""
    from archiver.collection.layout import Layout
    from archiver.crawl.hooks.hooks import check_vouched, pinned, written_functions
    from archiver.crawl.hooks.plugins import extractors
    from archiver.errors import ConfigError
    from archiver.humanize import printable

    if settings.hooks is not None:
        named = printable(settings.hooks.path, 1000)
        try:
            if directory is not None:
                check_vouched(Layout(directory), settings)
            file, text = pinned(settings.hooks)
            for name, line in written_functions(file, text).items():
                yield f"hook {name}", f"line {line}", f"{named} sha256:{file.digest[:12]}"
        except ConfigError as error:
            complain(f"the functions of hooks are not shown: {error}")
    for each in extractors(settings):
        yield f"extractor {each.media_type}", each.value, each.distribution


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
    variables such as ARCHIVER_RATE, options. Values that may be secret are not shown. Then come the functions in the
    file of --hooks, and the extractors of other programs that are installed here, with their versions.
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
