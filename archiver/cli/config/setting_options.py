"""Settings as options of commands. Only commands that run a crawl, or show its settings, import all settings."""

from collections.abc import Callable, Collection
from dataclasses import Field
from typing import Any

import click
from click.core import ParameterSource

from archiver.cli.options import Completion, verbosity_options
from archiver.config.event_settings import ON
from archiver.config.option_types import BOOLEAN, OptionType
from archiver.config.profiles import PROFILES, variable
from archiver.config.settings import TITLES, every_setting, key_of
from archiver.errors import ConfigError


class SettingOption(click.Option):
    """An option that sets one setting; `title` is its group in the help."""

    def __init__(self, title: str, entry: Field[Any]) -> None:
        key, kind = key_of(entry), entry.metadata["kind"]
        text = f"{entry.metadata['help']}{_default(entry)}"
        if kind is BOOLEAN:
            super().__init__([f"--{key}/--no-{key}"], default=None, help=text)
        elif kind is ON:  # two words, which are one text in crawl.toml
            super().__init__([f"--{key}"], nargs=2, metavar=kind.metavar, multiple=True, help=text, callback=_receivers)
        else:
            super().__init__(
                [f"--{key}"],
                type=_parser(key, kind),
                metavar=kind.metavar,
                multiple=entry.metadata["many"],
                help=text,
                shell_complete=_words_of(kind),
            )
        self.title = title


class _IPVersionOption(click.Option):
    """The short form of `--ip-version` that curl and wget have: -4 or -6."""

    def __init__(self, version: str) -> None:
        text = f"Connect over IPv{version} only: --ip-version {version}."
        super().__init__([f"-{version}", f"--ipv{version}"], is_flag=True, help=text)
        self.title = TITLES["network"]


def _words_of(kind: OptionType) -> Completion:
    """Return a completion of values of *kind*: of the last word where they are joined by commas."""

    def completion(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if "," in kind.metavar else ("", "", incomplete)
        known = before.split(",")
        return [f"{before}{comma}{word}" for word in kind.words if word.startswith(last) and word not in known]

    return completion


def _receivers(_context: click.Context, _option: click.Parameter, given: tuple[tuple[str, str], ...]) -> Any:
    """Return the value of `--on`. Events cannot have a space, which would be the end of them in crawl.toml."""
    parse = _parser("on", ON)
    return tuple(parse(f"{events.replace(' ', '')} {target}") for events, target in given)


def _parser(key: str, kind: OptionType) -> Callable[[str], Any]:
    """Return a function from text to value; its errors have the same words as those of crawl.toml."""

    def parse(text: str) -> Any:
        try:
            return kind.parse(text)
        except ConfigError as error:
            raise ConfigError(f"--{key}: {error}") from None

    return parse


def _default(entry: Field[Any]) -> str:
    if entry.metadata["many"]:
        return " Repeatable."
    written = entry.metadata["kind"].write(entry.default)
    if entry.metadata["kind"] is BOOLEAN:
        written = "yes" if written else "no"
    elif isinstance(written, float):
        written = f"{written:g}"
    return f" [default: {written}]" if written != "" else ""


def given_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Return those of the options' *values* that were given, even if the value is None (`--max-depth none`)."""
    source = click.get_current_context().get_parameter_source
    known = (entry.name for _, entry in every_setting() if entry.metadata["option"] and entry.name in values)
    given = {name: values[name] for name in known if source(name) is not ParameterSource.DEFAULT}
    versions = {version for version in ("4", "6") if values.get(f"ipv{version}")}
    versions |= {given["ip_version"]} if "ip_version" in given else set()
    if len(versions) > 1:
        raise ConfigError("-4, -6 and --ip-version contradict each other; give one of them, or none for both")
    if versions:
        given["ip_version"] = versions.pop()
    return given


def profile_option() -> click.Option:
    """Return the option that names a profile."""
    text = f"Start from the settings for a kind of crawl: {', '.join(PROFILES)}, or of your own profile."
    name = variable("profile")
    return click.Option(["--profile"], metavar="NAME", envvar=name, help=text, shell_complete=_profiles)


def _profiles(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from archiver.cli.config.sources import own_profiles

    return [name for name in sorted({*PROFILES, *own_profiles()}) if name.startswith(incomplete)]


def crawl_options() -> list[click.Parameter]:
    """Return the options of a command that runs a crawl: one for every setting, and for more or less output."""
    return [
        *setting_options({key_of(entry) for _, entry in every_setting()}),
        _IPVersionOption("4"),
        _IPVersionOption("6"),
        click.Option(
            ["--load-cookies"],
            multiple=True,
            metavar="FILE",
            help="Send the cookies in a cookies.txt (as browser extensions, curl, wget and yt-dlp write it) or in "
            "Firefox's cookies.sqlite to their sites. They are kept in crawl.db. Repeatable.",
        ),
        *verbosity_options(),
    ]


def setting_options(keys: Collection[str]) -> list[click.Parameter]:
    """Return an option for each of those settings in *keys* that have one."""
    return [
        SettingOption(TITLES[name], entry)
        for name, entry in every_setting()
        if entry.metadata["option"] and key_of(entry) in keys
    ]
