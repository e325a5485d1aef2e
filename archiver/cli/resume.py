"""`archiver resume`: continue a crawl."""

from pathlib import Path
from typing import Any

from archiver.cli.directory import check_dedup_sources, check_resumable, finish_switch_over, settings_text
from archiver.cli.options import (
    define_command,
    directory_argument,
    given_settings,
    setting_options,
    verbosity,
    verbosity_options,
)
from archiver.cli.start import (
    ExistingCrawl,
    check_disk_space,
    check_seed_settings,
    run_and_report,
    with_absolute_paths,
)
from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.model import ExitCode


def resume(directory: Path, given: dict[str, Any], verbosity: int) -> ExitCode:
    """Continue the crawl in *directory*; the settings *given* override those of its crawl.toml."""
    finish_switch_over(directory)
    check_resumable(directory)
    layout = Layout(directory)
    read = settings_text(layout.settings)
    settings = with_values(Settings(), {**toml.parse(read, str(layout.settings)), **given})
    if not settings.seeds:
        raise ConfigError(f'{layout.settings}: no seeds; add, for example, seeds = ["https://example.org/"]')
    check_seed_settings(settings, f"{layout.settings}: ")
    check_dedup_sources(directory, settings, given)
    settings = with_absolute_paths(settings, directory)
    check_disk_space(directory, settings)
    text = toml.render(settings) if given else ""
    existing = ExistingCrawl(resume=layout.database.exists(), text=text, read=read)
    return run_and_report(directory, settings, verbosity, existing)


def _run(directory: Path, **rest: Any) -> int:
    return resume(directory, given_settings(rest), verbosity(rest))


COMMAND = define_command(
    "resume",
    _run,
    """Continue a crawl after Ctrl+C, a crash or a limit.

    The settings are those of DIR/crawl.toml. Options override them and are written back.
    """,
    [directory_argument(), *setting_options(), *verbosity_options()],
    ("archiver resume collections/example.org", "continue"),
    ("archiver resume collections/example.org --max-urls 100000 --rate 10", "continue with other settings"),
)
