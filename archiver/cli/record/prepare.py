"""The settings of a recording: where they come from, and whether it can begin or go on. Nothing is written yet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from archiver.cli.config.named_files import check_named_files
from archiver.cli.config.sources import (
    GivenSettings,
    check_network_choices,
    check_proxies,
    usable_in,
    user_defaults,
)
from archiver.cli.directory import check_free, check_resumable
from archiver.cli.record.settings import FIXED, applicable, recording_settings
from archiver.cli.terminal import say
from archiver.collection.layout import Layout, holds_crawl
from archiver.collection.settings_file import check_length, read_origins, settings_text
from archiver.config import toml
from archiver.config.profiles import SettingOrigin, Source, layered, recorded
from archiver.config.settings import Settings
from archiver.crawl.build import Opening
from archiver.errors import ConfigError

COMMAND = "archiver record"


@dataclass(frozen=True, slots=True)
class PreparedRecording:
    """A recording whose settings were checked, ready to run."""

    settings: Settings
    opening: Opening
    origins: Mapping[str, SettingOrigin] | None  # of the values in the new crawl.toml; None: as before


def prepare_recording(directory: Path, given: GivenSettings, *, is_named: Callable[[str], bool]) -> PreparedRecording:
    """Return the recording in *directory*, a new one or one that goes on, with what the user has *given*.

    *is_named*: whether an option was given on the command line, and not by an environment variable.
    """
    if directory.is_dir() and holds_crawl(directory):
        return _continued(directory, given, is_named)
    check_free(directory)
    general, _ = applicable(user_defaults())
    own, without = applicable(given.whole())
    if without and (is_named("config") or is_named("profile")):
        say(f"archiver: no effect on a recording, because clients decide: {', '.join(without)}")
    found = layered((general, own, Source.of(FIXED, COMMAND)))
    settings = _checked(directory, recording_settings(found.values))
    text = check_length(toml.render(settings))
    return PreparedRecording(settings, Opening(False, text, ""), recorded(settings, found.origins, {}))


def _continued(directory: Path, given: GivenSettings, is_named: Callable[[str], bool]) -> PreparedRecording:
    """Return the recording in *directory*, whose crawl.toml has all settings; those of variables and options count."""
    check_resumable(directory)
    layout = Layout(directory)
    read = settings_text(layout.settings)
    before = toml.parse(read, str(layout.settings))
    if not before.get("recording"):
        name = quote(str(directory))
        raise ConfigError(
            f"{directory} holds a crawl, and a recording needs a collection of its own: choose another directory "
            f"with -o; archiver replay {name} DIR serves both as one"
        )
    for option in ("config", "profile"):
        if is_named(option):
            raise ConfigError(
                f"--{option} is for a new recording, and {directory} holds one already; give settings as options"
            )
    now, _ = applicable(given.now())
    settings = recording_settings({**before, **now.values})
    check_named_files(directory, settings, now.values, trusted=False)
    settings = _checked(directory, settings)
    opening = Opening(layout.has_frontier(), toml.render(settings) if now.values else "", read)
    kept = recorded(settings, now.origins, read_origins(layout)) if now.values else None
    return PreparedRecording(settings, opening, kept)


def _checked(directory: Path, settings: Settings) -> Settings:
    """Return *settings* with absolute paths. Raises `ConfigError` if a recording cannot use them."""
    check_proxies(settings)
    check_network_choices(settings)
    return usable_in(directory, settings)
