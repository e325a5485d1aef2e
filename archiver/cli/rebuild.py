"""`archiver rebuild`: a new crawl.db from the WARC files, and crawl.toml too where it is gone."""

import asyncio
from pathlib import Path
from shlex import quote

from archiver.cli import directory as place
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.layout import Layout
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.model import ExitCode


def rebuild(directory: Path) -> ExitCode:
    """Make the database of *directory* anew."""
    place.check_is_directory(directory)
    layout = Layout(directory)
    if not layout.archive.is_dir():
        raise ConfigError(f"{directory} holds no crawl: there is no archive/ in it")
    place.check_idle(directory)
    place.finish_turn(directory)
    from archiver.crawl.build import rebuilt  # noqa: PLC0415 - the network and the database; bad input is refused without

    settings, text = _settings(directory)
    with ProgressLine() as meter:
        done = asyncio.run(
            rebuilt(
                directory,
                settings,
                lambda number, files, visits: meter.show(f"reading: file {number} of {files}, {visits} visits so far"),
                text,
            )
        )
    if text:
        say(f"{layout.settings} was missing; it was written anew from the WARC files")
    for name in done.mended:
        say(f"{layout.archive / name}: what is damaged was taken out and is kept in {layout.damaged}")
    for name in done.foreign:
        say(f"{layout.archive / name}: not written by archiver; it was left as it is")
    result(f"{done.visits} visits in {done.files} WARC files; go on with: archiver resume {quote(str(directory))}")
    return ExitCode.DONE


def _settings(directory: Path) -> tuple[Settings, str]:
    """Those in crawl.toml; where it is missing, as the newest WARC file tells them, and the text of a new one."""
    from archiver.crawl.recovery.rebuild import own_files, settings_text  # noqa: PLC0415 - as above

    layout = Layout(directory)
    if layout.settings.exists():
        return with_values(Settings(), place.read_settings(layout.settings)), ""
    text = settings_text(own_files(layout))
    if not text:
        raise ConfigError(f"{layout.settings} is missing, and no WARC file tells its seeds; write it anew")
    settings = with_values(Settings(), toml.parse(text, "the settings in the WARC files"))
    return settings, toml.render(settings)
