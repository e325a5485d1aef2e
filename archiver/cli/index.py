"""`archiver index` and `rebuild`: make the index or the database of a collection again from its WARC files."""

from pathlib import Path
from shlex import quote

from archiver.cli.directory import check_has_archive, check_idle, check_is_directory, finish_switch_over, read_settings
from archiver.cli.options import define_command, directory_argument
from archiver.cli.terminal import ProgressLine, result, say
from archiver.collection.layout import Layout
from archiver.collection.lock import Lock
from archiver.config import toml
from archiver.config.settings import Settings, with_values
from archiver.errors import ConfigError
from archiver.model import ExitCode


def index(directory: Path) -> ExitCode:
    """Rebuild the index of *directory*."""
    from archiver.collection.index_search import besides_cdxj
    from archiver.collection.reindex import rebuild

    check_is_directory(directory)
    check_has_archive(directory)
    check_idle(directory)
    layout = Layout(directory)
    with Lock(layout.lock):  # lines that another process adds meanwhile would be lost
        lines = rebuild(directory)
    result(f"{lines} lines in {layout.indexes / 'index.cdxj'}")
    if others := besides_cdxj(layout.indexes):
        say(f"pywb also reads {', '.join(others)} there and shows each capture twice; remove it if you do not need it")
    return ExitCode.DONE


COMMAND = define_command(
    "index",
    index,
    """Rebuild the index from the WARC files.

    Writes DIR/indexes/index.cdxj.
    """,
    [directory_argument()],
    ("archiver index collections/example.org", "after you added or removed WARC files by hand"),
)


def rebuild(directory: Path) -> ExitCode:
    """Rebuild the database of *directory*."""
    import asyncio

    check_is_directory(directory)
    layout = Layout(directory)
    if layout.address.exists():
        raise ConfigError(f"{layout.address}: a database in PostgreSQL cannot be rebuilt yet; restore a backup of it")
    check_has_archive(directory)
    check_idle(directory)
    finish_switch_over(directory)
    from archiver.crawl.build import rebuilt

    settings, text = _settings(directory)
    with ProgressLine() as progress:
        done = asyncio.run(
            rebuilt(
                directory,
                settings,
                lambda number, files, visits: progress.show(
                    f"reading: file {number} of {files}, {visits} visits so far"
                ),
                text,
            )
        )
    if text:
        say(f"{layout.settings} was missing and is rebuilt from the WARC files")
    for name in done.mended:
        say(f"{layout.archive / name}: damaged parts were moved to {layout.damaged}")
    for name in done.foreign:
        say(f"{layout.archive / name}: not written by archiver; left unchanged")
    result(f"{done.visits} visits in {done.files} WARC files; to continue: archiver resume {quote(str(directory))}")
    return ExitCode.DONE


def _settings(directory: Path) -> tuple[Settings, str]:
    """Return the settings of crawl.toml and ""; without one, those in the newest WARC file and a text for it."""
    from archiver.crawl.recovery.recover import own_files, settings_text

    layout = Layout(directory)
    if layout.settings.exists():
        return with_values(Settings(), read_settings(layout.settings)), ""
    text = settings_text(own_files(layout))
    if not text:
        raise ConfigError(f"{layout.settings} is missing, and no WARC file holds the seeds; write a new one")
    settings = with_values(Settings(), toml.parse(text, "the settings in the WARC files"))
    return settings, toml.render(settings)


REBUILD = define_command(
    "rebuild",
    rebuild,
    """Rebuild a lost or damaged crawl.db from the WARC files.

    Recovers every visit that is complete in a WARC file; archiver resume then continues the crawl and fetches damaged
    captures again. Deletes nothing: the old database and damaged parts of WARC files are kept in DIR/damaged. Also
    rebuilds the index, and crawl.toml if it is missing.
    """,
    [directory_argument()],
    ("archiver rebuild collections/example.org", "then: archiver resume collections/example.org"),
)
